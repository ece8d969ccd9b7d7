/* Runs kernels that were compiled for the host, and follows what they read and write. */
#include <stdlib.h>
#include <string.h>

#include "kernels/hip/emulation.h"
#include "tests/doubles/hip/streams.h"

enum { RUNS = 8192, NEAR = 80, SPREAD_WORK = 512 };

typedef struct kernel {
    double_operation operation;
    void (*run)(const void *arguments, size_t n_threads);
    size_t n_threads;
    _Alignas(16) unsigned char arguments[];
} kernel;

/* Of the kernel that this thread is running. */
static _Thread_local struct {
    const double_moment *now;
    double_memory       *last; /* memory that it touched, most likely to be touched next */
    size_t               n, next;
    double_access        runs[RUNS];
} running;

static int by_place(const void *left, const void *right)
{
    const double_access *a = left, *b = right;

    if (a->memory != b->memory) {
        return (uintptr_t)a->memory < (uintptr_t)b->memory ? -1 : 1;
    }
    if (a->writes != b->writes) {
        return a->writes ? 1 : -1;
    }
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Makes one of runs that touch. */
static void join_runs(void)
{
    size_t kept = 0;

    qsort(running.runs, running.n, sizeof running.runs[0], by_place);
    for (size_t i = 0; i < running.n; i++) {
        const double_access *run  = &running.runs[i];
        double_access       *last = &running.runs[kept > 0 ? kept - 1 : 0];

        if (kept > 0 && run->memory == last->memory && run->writes == last->writes && run->begin <= last->end) {
            last->end = run->end > last->end ? run->end : last->end;
        } else {
            running.runs[kept++] = *run;
        }
    }
    running.n    = kept;
    running.next = 0;
}

/* The next run of an operand follows those of the others: looks behind the last one first, and not far. */
static void remember(double_memory *memory, size_t begin, size_t end, bool writes)
{
    const size_t most = running.n < NEAR ? running.n : NEAR;

    for (size_t tried = 0; tried < most; tried++) {
        double_access *run = &running.runs[(running.next + tried) % running.n];

        if (run->memory == memory && run->end == begin && run->writes == writes) {
            run->end     = end;
            running.next = (running.next + tried + 1) % running.n;
            return;
        }
    }
    if (running.n == RUNS) {
        join_runs();
        if (running.n > RUNS / 2) {
            double_mistake("a kernel touches more than %d runs of bytes", RUNS / 2);
        }
    }
    running.runs[running.n++] = (double_access){.memory = memory, .begin = begin, .end = end, .writes = writes};
    running.next              = 0;
}

static void check_reachable(const double_memory *memory)
{
    const int device = double_memory_device(memory);

    if (device >= 0 && !double_memory_is_imported(memory) && !double_peer_enabled(running.now->device, device)) {
        double_mistake("a kernel on device %d touches memory of device %d without peer access", running.now->device,
                       device);
    }
}

void *fsdpi_emulate_access(const void *address, size_t bytes, int writes)
{
    double_memory *memory = double_memory_of(address);
    size_t         offset;

    if (memory == NULL) {
        double_mistake("a kernel touches %p, which is no memory of a device and not pinned", address);
        return (void *)(uintptr_t)address;
    }
    if (memory != running.last) {
        check_reachable(memory);
        running.last = memory;
    }
    void *view = double_memory_view(memory, address, bytes, &offset);
    remember(memory, offset, offset + bytes, writes != 0);
    return view;
}

static void run_kernel(double_operation *operation, double_moment *now)
{
    const kernel *this = (const kernel *)operation;

    running.now  = now;
    running.last = NULL;
    running.n = running.next = 0;
    this->run(this->arguments, this->n_threads);
    join_runs();
    for (size_t i = 0; i < running.n; i++) {
        double_order_access(&running.runs[i], now->stream, &now->clock);
    }
}

/* One thread, one per piece of work, or, where that leaves few runs to remember, some number in between. */
static size_t choose_threads(size_t work)
{
    static uint64_t random = 1;
    const uint64_t  next   = __atomic_add_fetch(&random, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED) >> 40;

    if (next % 3 == 0) {
        return 1;
    }
    return next % 3 == 1 || work > SPREAD_WORK ? work : 1 + next % work;
}

int fsdpi_emulate_launch(const void *arguments, size_t bytes, void (*run)(const void *arguments, size_t n_threads),
                         size_t work, void *stream)
{
    hipError_t error = double_enter("hipLaunchKernel");
    kernel    *one   = error == hipSuccess ? calloc(1, sizeof *one + bytes) : NULL;

    if (one == NULL) {
        return (int)(error != hipSuccess ? error : double_error(hipErrorOutOfMemory));
    }
    one->run       = run;
    one->n_threads = choose_threads(work);
    memcpy(one->arguments, arguments, bytes);
    error = double_enqueue(stream, &one->operation, sizeof *one + bytes, run_kernel);
    free(one);
    return (int)error;
}
