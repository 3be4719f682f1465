// What the headers of parameters end with.
#if defined(__CUDACC__)
}  // namespace cyrt
#endif
#undef CYRT_PARAMETERS
#undef CYRT_POINTER
