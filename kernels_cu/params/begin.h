// What the headers of parameters begin with. They are C, read by the kernels (as C++, in namespace
// cyrt) and by the modules that launch them, so that a struct is written once.
//
// Sizes and alignment are the same in both: CYRT_PARAMETERS aligns a struct to 16 bytes, and a
// CYRT_POINTER is typed in the kernel, and on the host a number of 64 bits.
#if defined(__CUDACC__)
#define CYRT_PARAMETERS __align__(16)
#define CYRT_POINTER(TYPE) TYPE*
namespace cyrt {
#else
#define CYRT_POINTER(TYPE) unsigned long long
#if defined(_MSC_VER)
#define CYRT_PARAMETERS __declspec(align(16))
#else
#define CYRT_PARAMETERS __attribute__((aligned(16)))
#endif
#endif
