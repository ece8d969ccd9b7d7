#include "bench/kernels/kernels.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/job/gpu_rate.h"

#define GB          1e9
#define US          1e6
#define MOST_ARRAYS 9
#define CHUNK       ((size_t)1 << 20) /* BYTES that are filled or checked at once */
#define ALIGNED     64                /* ELEMENTS; so every array is aligned */
#define TOLERANCE   1e-6F             /* of what is not exact */

/* What a word of an array holds: f32, or two times bf16. */
#define ONE     0x3F800000U
#define TWO     0x40000000U
#define EIGHT   0x41000000U
#define STEPPED 0x3F200000U /* 0.625: 1 after a step of AdamW on a gradient of 1 */
#define ONES16  0x3F803F80U
#define NOTHING 0xA5A5A5A5U

/* The arrays of a kernel on the GPU; the first one is the result. */
typedef struct arrays {
    void  *at[MOST_ARRAYS];
    size_t n, count;
} arrays;

typedef struct kernel {
    const char *name;
    void (*launch)(bench_gpu *gpu, const void *arguments); /* given its arrays */
    size_t   moved;                                        /* BYTES read and written, per element */
    size_t   n, out_width, in_width; /* arrays, and BYTES of an element of the first and of all others */
    uint32_t before[MOST_ARRAYS];    /* in each word of each array */
    uint32_t result;
    int      exact;
} kernel;

static void launch_add(bench_gpu *gpu, const void *arguments)
{
    const arrays *a = arguments;

    bench_gpu_add(gpu, a->at[0], (const void *const *)&a->at[1], a->n - 1, a->count);
}

static void launch_narrow(bench_gpu *gpu, const void *arguments)
{
    const arrays *a = arguments;

    bench_gpu_cast(gpu, a->at[0], FSDP_BF16, a->at[1], FSDP_F32, a->count);
}

static void launch_widen(bench_gpu *gpu, const void *arguments)
{
    const arrays *a = arguments;

    bench_gpu_cast(gpu, a->at[0], FSDP_F32, a->at[1], FSDP_BF16, a->count);
}

static void launch_adamw(bench_gpu *gpu, const void *arguments)
{
    const arrays *a = arguments;

    bench_gpu_adamw(gpu, a->at[0], a->at[1], a->at[2], a->at[3], a->count);
}

static const kernel kernels[] = {
    {"reduce of 2", launch_add, 12, 3, 4, 4, {NOTHING, ONE, ONE}, TWO, 1},
    {"reduce of 8", launch_add, 36, 9, 4, 4, {NOTHING, ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE}, EIGHT, 1},
    {"f32 to bf16", launch_narrow, 6, 2, 2, 4, {NOTHING, ONE}, ONES16, 1},
    {"bf16 to f32", launch_widen, 6, 2, 4, 2, {NOTHING, ONES16}, ONE, 1},
    {"AdamW", launch_adamw, 28, 4, 4, 4, {ONE, ONE, 0, 0}, STEPPED, 0},
};
#define N_KERNELS (sizeof kernels / sizeof kernels[0])

/* Memory of the GPU, for all arrays or both sides of a copy, and of the host for a chunk. */
typedef struct room {
    char     *block;
    uint32_t *chunk;
} room;

typedef struct row {
    const kernel *kernel;
    size_t        bytes, count; /* of the copy, ELEMENTS of the kernel */
    double        seconds, copy_seconds;
    size_t        wrong;
} row;

static size_t width_of(const kernel *k, size_t array)
{
    return array == 0 ? k->out_width : k->in_width;
}

/* As many elements as move what a copy of so many bytes moves. */
static size_t count_of(const kernel *k, size_t bytes)
{
    const size_t count = 2 * bytes / k->moved / ALIGNED * ALIGNED;

    return count ? count : ALIGNED;
}

static arrays place(const kernel *k, char *block, size_t count)
{
    arrays a = {.n = k->n, .count = count};

    for (size_t i = 0; i < k->n; i++) {
        a.at[i] = block;
        block += count * width_of(k, i);
    }
    return a;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void fill(const bench_job *job, const room *r, uint32_t word, char *array, size_t bytes)
{
    for (size_t i = 0; i < CHUNK / sizeof word; i++) {
        r->chunk[i] = word;
    }
    for (size_t done = 0; done < bytes; done += CHUNK) {
        bench_gpu_copy(job->gpu, array + done, r->chunk, smaller(CHUNK, bytes - done));
    }
    bench_gpu_finish(job->gpu);
}

static int is_right(const kernel *k, uint32_t found)
{
    float number, wanted;

    if (k->exact) {
        return found == k->result;
    }
    memcpy(&number, &found, sizeof number);
    memcpy(&wanted, &k->result, sizeof wanted);
    return fabsf(number - wanted) <= TOLERANCE * fabsf(wanted);
}

static size_t count_wrong(const bench_job *job, const room *r, const kernel *k, const char *array, size_t bytes)
{
    size_t wrong = 0;

    for (size_t done = 0; done < bytes; done += CHUNK) {
        const size_t n = smaller(CHUNK, bytes - done);

        bench_gpu_copy(job->gpu, r->chunk, array + done, n);
        bench_gpu_finish(job->gpu);
        for (size_t i = 0; i < n / sizeof *r->chunk; i++) {
            wrong += !is_right(k, r->chunk[i]);
        }
    }
    return wrong;
}

/* Runs a kernel once, and adds up over all ranks what is wrong with the result. */
static void check(const bench_job *job, const room *r, const arrays *a, row *into)
{
    const kernel *k = into->kernel;
    uint64_t      mine;

    for (size_t i = 0; i < k->n; i++) {
        fill(job, r, k->before[i], a->at[i], a->count * width_of(k, i));
    }
    k->launch(job->gpu, a);
    mine = count_wrong(job, r, k, a->at[0], a->count * k->out_width);
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_UINT64_T, MPI_SUM, job->world->comm);
    into->wrong = mine;
}

/* Blocks of the kernel and of copies in alternation. `seconds`: for twice --repeat of them. */
static void time_both(const bench_job *job, const room *r, const arrays *a, double *seconds, row *into)
{
    const bench_gpu_copy_of copy      = {r->block + into->bytes, r->block, into->bytes};
    const bench_gpu_work    copy_work = bench_gpu_copy_work(&copy), work = {into->kernel->launch, a};
    const size_t            n = job->options->repeat, times = bench_gpu_probe(job, &work);
    double                 *copy_seconds = seconds + n;

    (void)bench_gpu_probe(job, &copy_work);
    for (size_t i = 0; i < n; i++) {
        seconds[i]      = bench_gpu_time(job, &work, times);
        copy_seconds[i] = bench_gpu_time(job, &copy_work, times);
    }
    into->seconds      = bench_median(seconds, n);
    into->copy_seconds = bench_median(copy_seconds, n);
}

static double moved(const row *r)
{
    return (double)(r->count * r->kernel->moved);
}

/* Of the bytes per second that the copy moves. */
static double share_of(const row *r)
{
    return moved(r) / r->seconds / (2 * (double)r->bytes / r->copy_seconds);
}

static void print_head(const bench_job *job)
{
    if (job->world->rank == 0) {
        printf("#\n# kernels, beside copies inside the GPU that read and write as many bytes\n"
               "# %12s %12s  %-12s | %11s %10s | %11s %10s | %7s %7s\n",
               "size(B)", "count", "kernel", "time(us)", "GB/s", "copy(us)", "GB/s", "share", "#wrong");
        (void)fflush(stdout);
    }
}

static void print_foot(const bench_job *job)
{
    if (job->world->rank == 0) {
        printf("#\n# size: of the copy, which moves twice as much, as the kernel does; GB/s: moved by one GPU, of the "
               "medians "
               "(--repeat %zu);\n# share: of the copy's\n",
               job->options->repeat);
    }
}

static void report(bench_job *job, const row *r)
{
    const int         checked = !job->options->no_check;
    const double      rate = moved(r) / r->seconds / GB, copy_rate = 2 * (double)r->bytes / r->copy_seconds / GB;
    const bench_field fields[] = {
        {"kernel", r->kernel->name, 0},
        {"size_bytes", NULL, (double)r->bytes},
        {"count", NULL, (double)r->count},
        {"time_us", NULL, r->seconds * US},
        {"moved_gb_s", NULL, rate},
        {"copy_us", NULL, r->copy_seconds * US},
        {"copy_moved_gb_s", NULL, copy_rate},
        {"share", NULL, share_of(r)},
        {"wrong", NULL, checked ? (double)r->wrong : -1},
    };
    char wrong[24] = "-";

    bench_records_row(&job->records, fields, sizeof fields / sizeof fields[0]);
    if (job->world->rank != 0) {
        return;
    }
    if (checked) {
        (void)snprintf(wrong, sizeof wrong, "%zu", r->wrong);
    }
    printf("  %12zu %12zu  %-12s | %11.2f %10.3f | %11.2f %10.3f | %6.1f%% %7s\n", r->bytes, r->count, r->kernel->name,
           r->seconds * US, rate, r->copy_seconds * US, copy_rate, 100 * share_of(r), wrong);
    (void)fflush(stdout);
}

static void measure(bench_job *job, const room *r, const kernel *k, size_t bytes, double *seconds, size_t *wrong)
{
    row          into = {.kernel = k, .bytes = bytes, .count = count_of(k, bytes)};
    const arrays a    = place(k, r->block, into.count);

    if (!job->options->no_check) {
        check(job, r, &a, &into);
        *wrong += into.wrong;
    }
    time_both(job, r, &a, seconds, &into);
    bench_progress_bar_clear(&job->bar);
    report(job, &into);
    bench_progress_bar_step(&job->bar);
}

static void measure_all(bench_job *job, const room *r, double *seconds, size_t *wrong)
{
    const bench_options *o     = job->options;
    size_t               sizes = 0;

    for (size_t bytes = bench_next_size(o, 0); bytes; bytes = bench_next_size(o, bytes)) {
        sizes++;
    }
    bench_progress_bar_open(&job->bar, job->world, job->options->progress, sizes * N_KERNELS);
    print_head(job);
    for (size_t bytes = bench_next_size(o, 0); bytes; bytes = bench_next_size(o, bytes)) {
        for (size_t k = 0; k < N_KERNELS; k++) {
            measure(job, r, &kernels[k], bytes, seconds, wrong);
        }
    }
    bench_progress_bar_clear(&job->bar);
    print_foot(job);
}

fsdp_status bench_kernels(bench_job *job, size_t *wrong)
{
    const size_t least = ALIGNED * sizeof(float) * MOST_ARRAYS, wanted = 2 * job->options->end;
    double      *seconds = calloc(2 * job->options->repeat, sizeof *seconds);
    room         r;
    fsdp_status  status;

    r.block = bench_gpu_alloc(job->gpu, wanted > least ? wanted : least);
    r.chunk = bench_gpu_alloc_pinned(job->gpu, CHUNK);
    status  = bench_agree(job->world, seconds && r.block && r.chunk,
                          "no memory for the arrays of the kernels on every rank; use a smaller --end");
    if (status == FSDP_OK) {
        measure_all(job, &r, seconds, wrong);
    }
    bench_gpu_free_pinned(job->gpu, r.chunk);
    bench_gpu_free(job->gpu, r.block);
    free(seconds);
    return status;
}
