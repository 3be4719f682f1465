/* A stand-in for cuBLASLt: the functions that cyrt calls, over a kernel of the test's own. Its
   statuses, version and workspace are set by the test. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int type;
    uint64_t rows, columns;
    int64_t step, batch_step;
    int batch;
} Layout;
typedef struct {
    int compute, scale, transposed[2];
} Desc;
typedef struct {
    uint64_t workspace;
    uint32_t reduction, alignment[4];
} Preference;
typedef struct {
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} Result;
/* The parameters of the kernel, passed in one buffer; the padding is whatever the stack holds. */
typedef struct {
    const void *a, *b, *c;
    void* d;
    char turned_a, turned_b, with_c;
    int64_t rows, columns, depth, step_a, step_b, step_c, step_d;
    int64_t batch_a, batch_b, batch_c, batch_d;
    double alpha[2], beta[2];
    int* counter;
    const void* memory; /* of the library's own, which the kernel does not use */
} Gemm;

typedef int (*LaunchFn)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        void*, void**, void**);
typedef int (*AllocFn)(uint64_t*, size_t);
typedef int (*FreeFn)(uint64_t);
typedef int (*MemsetFn)(uint64_t, unsigned char, size_t, void*);

static struct {
    LaunchFn launch;
    MemsetFn set;
    AllocFn allocate;
    FreeFn release;
    void* kernels[16]; /* by type of the result; int8 is of type 10 */
    void* spoil;
    size_t version, workspace;
    int create, heuristic, algorithms, matmul;
    int handles, products, asked, live, compute;
    uint64_t memory;
    Preference preference;
} state = {.version = 130000, .algorithms = 1};

void standin_reset(void) {
    state.version = 130000;
    state.workspace = 0;
    state.create = state.heuristic = state.matmul = 0;
    state.algorithms = 1;
    state.products = state.asked = 0;
}
void standin_driver(LaunchFn launch, MemsetFn set, AllocFn allocate, FreeFn release) {
    state.launch = launch;
    state.set = set;
    state.allocate = allocate;
    state.release = release;
}
void standin_kernel(int type, void* kernel) { state.kernels[type] = kernel; }
void standin_spoiler(void* kernel) { state.spoil = kernel; }
void standin_set(size_t version, size_t workspace, int create, int heuristic, int algorithms,
                 int matmul) {
    state.version = version;
    state.workspace = workspace;
    state.create = create;
    state.heuristic = heuristic;
    state.algorithms = algorithms;
    state.matmul = matmul;
}
int standin_products(void) { return state.products; }
int standin_asked(void) { return state.asked; }
int standin_handles(void) { return state.handles; }
void standin_memory(uint64_t address) { state.memory = address; }
int standin_compute(void) { return state.compute; }
int standin_live(void) { return state.live; }
uint64_t standin_preference(int index) {
    return index == 0   ? state.preference.workspace
           : index == 1 ? state.preference.reduction
                        : state.preference.alignment[index - 2];
}

size_t cublasLtGetVersion(void) { return state.version; }
const char* cublasLtGetStatusName(int status) {
    return status == 3    ? "CUBLAS_STATUS_ALLOC_FAILED"
           : status == 7  ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == 13 ? "CUBLAS_STATUS_EXECUTION_FAILED"
           : status == 14 ? "CUBLAS_STATUS_INTERNAL_ERROR"
           : status == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED"
                          : "CUBLAS_STATUS";
}
const char* cublasLtGetStatusString(int status) {
    return status == 13 ? "the function failed to launch on the GPU" : "another failure";
}

static void* made(size_t size) {
    ++state.live;
    return calloc(1, size);
}
static int dropped(void* object) {
    --state.live;
    free(object);
    return 0;
}

int cublasLtCreate(void** handle) {
    uint64_t memory = 0;
    if (state.create) return state.create;
    /* The library's handle has device memory, which no capture allows to allocate. */
    if (state.allocate && (state.allocate(&memory, 256) || state.release(memory))) return 1;
    ++state.handles;
    *handle = calloc(1, 16);
    return 0;
}
int cublasLtDestroy(void* handle) {
    --state.handles;
    free(handle);
    return 0;
}
int cublasLtMatrixLayoutCreate(Layout** out, int type, uint64_t rows, uint64_t columns,
                               int64_t step) {
    Layout* layout = made(sizeof(Layout));
    layout->type = type;
    layout->rows = rows;
    layout->columns = columns;
    layout->step = step;
    layout->batch = 1;
    *out = layout;
    return step < (int64_t)rows ? 7 : 0;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) { return dropped(layout); }
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int id, const void* value, size_t size) {
    if (id == 5 && size == 4)
        memcpy(&layout->batch, value, size);
    else if (id == 6 && size == 8)
        memcpy(&layout->batch_step, value, size);
    else
        return 7;
    return 0;
}
int cublasLtMatmulDescCreate(Desc** out, int compute, int scale) {
    Desc* desc = made(sizeof(Desc));
    desc->compute = state.compute = compute;
    desc->scale = scale;
    *out = desc;
    return 0;
}
int cublasLtMatmulDescDestroy(Desc* desc) { return dropped(desc); }
int cublasLtMatmulDescSetAttribute(Desc* desc, int id, const void* value, size_t size) {
    if ((id != 3 && id != 4) || size != 4) return 7;
    memcpy(&desc->transposed[id - 3], value, size);
    return 0;
}
int cublasLtMatmulPreferenceCreate(Preference** out) {
    *out = made(sizeof(Preference));
    return 0;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) { return dropped(preference); }
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int id, const void* value,
                                         size_t size) {
    if (id == 1 && size == 8)
        memcpy(&preference->workspace, value, size);
    else if (id == 3 && size == 4)
        memcpy(&preference->reduction, value, size);
    else if (id >= 5 && id <= 8 && size == 4)
        memcpy(&preference->alignment[id - 5], value, size);
    else
        return 7;
    return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void* handle, Desc* desc, Layout* a, Layout* b, Layout* c,
                                   Layout* d, Preference* preference, int wanted, Result* results,
                                   int* count) {
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d, (void)wanted;
    ++state.asked;
    state.preference = *preference;
    if (state.heuristic) return state.heuristic;
    *count = state.algorithms;
    memset(results, 0, sizeof *results);
    results->workspace = state.workspace;
    return state.workspace > preference->workspace ? 15 : 0;
}

static void scale(double out[2], const void* value, int type) {
    const float* f = value;
    const double* d = value;
    out[0] = type == 10 ? *(const int*)value : type == 0 || type == 4 ? f[0] : d[0];
    out[1] = type == 4 ? f[1] : type == 5 ? d[1] : 0;
}

int cublasLtMatmul(void* handle, Desc* desc, const void* alpha, const void* a, Layout* la,
                   const void* b, Layout* lb, const void* beta, const void* c, Layout* lc, void* d,
                   Layout* ld, const void* algo, void* workspace, size_t workspace_bytes,
                   void* stream) {
    Gemm g;
    size_t size = sizeof g;
    void* extra[] = {(void*)1, &g, (void*)2, &size, 0};
    (void)handle, (void)algo;
    ++state.products;
    if (state.matmul) return state.matmul;
    if (workspace_bytes < state.workspace) return 7;
    g.a = a;
    g.b = b;
    g.c = c;
    g.d = d;
    g.turned_a = (char)desc->transposed[0];
    g.turned_b = (char)desc->transposed[1];
    g.rows = (int64_t)ld->rows;
    g.columns = (int64_t)ld->columns;
    g.depth = (int64_t)(desc->transposed[0] ? la->rows : la->columns);
    g.step_a = la->step;
    g.step_b = lb->step;
    g.step_c = lc->step;
    g.step_d = ld->step;
    g.batch_a = la->batch_step;
    g.batch_b = lb->batch_step;
    g.batch_c = lc->batch_step;
    g.batch_d = ld->batch_step;
    scale(g.alpha, alpha, desc->scale);
    scale(g.beta, beta, desc->scale);
    g.with_c = g.beta[0] != 0 || g.beta[1] != 0;
    g.counter = workspace_bytes ? workspace : 0;
    g.memory = (const void*)state.memory;
    if (workspace_bytes && state.set((uint64_t)workspace, 0, 4, stream)) return 13;
    if (state.launch(state.kernels[ld->type], (unsigned)((g.rows * g.columns + 127) / 128),
                     (unsigned)ld->batch, 1, 128, 1, 1, 0, stream, 0, extra))
        return 13;
    if (workspace_bytes) {
        void* params[] = {&g.counter};
        if (state.launch(state.spoil, 1, 1, 1, 1, 1, 1, 0, stream, params, 0)) return 13;
    }
    return 0;
}
