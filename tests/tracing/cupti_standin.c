/* A stand-in for CUPTI: it hands out two kernels that overlap, one that follows, and a copy. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    uint32_t kind;
    uint32_t caches[3];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    uint32_t memory[4];
    uint32_t correlation;
    int64_t grid_id;
    const char* name;
    void* reserved;
    uint64_t queued, submitted;
    uint8_t launch[4];
    uint32_t shared_memory;
    uint64_t graph_node;
    uint32_t limit, graph;
} Kernel;
typedef struct {
    uint32_t kind;
    uint8_t kinds[4];
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t correlations[2], pad;
    void* reserved;
    uint64_t graph_node;
    uint32_t graph;
} Copy;
typedef union {
    Kernel kernel;
    Copy copy;
} Record;

static void (*provide)(uint8_t**, size_t*, size_t*);
static void (*take)(void*, uint32_t, uint8_t*, size_t, size_t);
static int enabled, refused;
static uint64_t begun;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time); /* another clock than Python's */
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}
void standin_refuse(int result) { refused = result; }
int cuptiActivityRegisterCallbacks(void* request, void* complete) {
    provide = request;
    take = complete;
    return 0;
}
int cuptiActivityEnable(int kind) {
    if (refused) return refused;
    enabled |= 1 << kind;
    begun = now();
    return 0;
}
int cuptiActivityDisable(int kind) {
    enabled &= ~(1 << kind);
    return 0;
}
int cuptiGetTimestamp(uint64_t* time) {
    *time = now();
    return 0;
}
int cuptiGetResultString(int result, const char** text) {
    *text = result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "?";
    return 0;
}
int cuptiActivityFlushAll(uint32_t flag) {
    uint8_t* buffer;
    size_t size, most;
    if (begun == 0) return 0;
    provide(&buffer, &size, &most);
    if (((uintptr_t)buffer & 7) || size < 4 * sizeof(Record)) return 1;
    Record* records = memset(buffer, 0, size);
    const char* names[] = {"_Z4axpyIfEvT_PKS0_PS0_i", "plain", "plain"};
    uint64_t starts[] = {1000, 2000, 6000}, ends[] = {5000, 4000, 7000};
    for (int i = 0; i < 3; ++i) {
        Kernel* kernel = &records[i].kernel;
        kernel->kind = 10;
        kernel->start = begun + starts[i];
        kernel->end = begun + ends[i];
        kernel->stream = 7;
        kernel->grid[0] = 4, kernel->grid[1] = kernel->grid[2] = 1;
        kernel->block[0] = 256, kernel->block[1] = kernel->block[2] = 1;
        kernel->name = names[i];
        kernel->graph = i < 2 ? 3 : 0;
    }
    Copy* copy = &records[3].copy;
    copy->kind = 1;
    copy->bytes = 4096;
    copy->start = begun + 8000;
    copy->end = begun + 9000;
    copy->stream = 7;
    copy->graph = 3;
    take(0, 7, buffer, size, 4 * sizeof(Record));
    begun = 0;
    return 0;
}
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record) {
    uint8_t* next = *record ? (uint8_t*)*record + sizeof(Record) : buffer;
    if (next + sizeof(Record) > buffer + valid) return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED */
    *record = next;
    return 0;
}
