#include "bench/machine/bandwidth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define REPEATS        5
#define TIMES_CACHE    4 /* STREAM's rule for an array */
#define PART_OF_MEMORY 8 /* the arrays together take no more than this part */
#define ALIGNMENT      64
#define BYTES_COPY     2 /* elements of memory traffic per element, as STREAM counts */
#define BYTES_TRIAD    3
#define AGAIN_SECONDS  4e-3 /* of a pass over a part of the arrays */

typedef struct arrays {
    double *a, *b, *c;
    size_t  n;
} arrays;

/* One way to move them. */
typedef struct way {
    void (*pass)(const arrays *);
    int streams; /* elements of memory traffic per element */
} way;

struct bench_arrays {
    arrays whole; /* one block, which begins with its first array */
    way    best;
    size_t next; /* element that the next part begins with */
};

static void copy(const arrays *x)
{
    for (size_t i = 0; i < x->n; i++) {
        x->a[i] = x->b[i];
    }
    __asm__ volatile("" ::"r"(x->a) : "memory"); /* each pass counts, though the next one writes the same */
}

static void triad(const arrays *x)
{
    for (size_t i = 0; i < x->n; i++) {
        x->a[i] = x->b[i] + 3.0 * x->c[i];
    }
    __asm__ volatile("" ::"r"(x->a) : "memory");
}

/* The same past the caches: no line is read in order to be overwritten. */
static void copy_past(const arrays *x)
{
#ifdef __SSE2__
    for (size_t i = 0; i < x->n; i += 2) {
        _mm_stream_pd(x->a + i, _mm_load_pd(x->b + i));
    }
    _mm_sfence();
#else
    copy(x);
#endif
}

static void triad_past(const arrays *x)
{
#ifdef __SSE2__
    const __m128d three = _mm_set1_pd(3.0);

    for (size_t i = 0; i < x->n; i += 2) {
        _mm_stream_pd(x->a + i, _mm_add_pd(_mm_load_pd(x->b + i), _mm_mul_pd(three, _mm_load_pd(x->c + i))));
    }
    _mm_sfence();
#else
    triad(x);
#endif
}

/* The same in four pages at once, a line of each in turn: some prefetchers of the hardware end at each page. */
static void copy_pages(const arrays *x)
{
#ifdef __SSE2__
    enum { PAGES = 4, PAGE = 4096 / sizeof(double), LINE = 64 / sizeof(double) };

    for (size_t i = 0; i + (size_t)PAGES * PAGE <= x->n; i += (size_t)PAGES * PAGE) {
        for (size_t at = i; at < i + PAGE; at += LINE) {
            for (size_t page = at; page < at + (size_t)PAGES * PAGE; page += PAGE) {
                for (size_t j = page; j < page + LINE; j += 2) {
                    _mm_stream_pd(x->a + j, _mm_load_pd(x->b + j));
                }
            }
        }
    }
    _mm_sfence();
#else
    copy(x);
#endif
}

/* SECONDS of one pass of all ranks together. */
static double time_pass(const bench_world *world, const arrays *x, const way *w)
{
    double begin;

    MPI_Barrier(world->comm);
    begin = bench_now();
    w->pass(x);
    MPI_Barrier(world->comm); /* with fewer cores than ranks, some begin when others have ended */
    return bench_max(world, bench_now() - begin);
}

static double rate_of(const bench_world *world, const arrays *x, const way *w, double seconds)
{
    return (double)(x->n * sizeof(double)) * w->streams * fsdp_node_size(world->ctx) / seconds;
}

/* BYTES per second of a node: the best of a few passes. */
static double rate(const bench_world *world, const arrays *x, const way *w)
{
    double least = time_pass(world, x, w);

    for (int i = 1; i < REPEATS; i++) {
        const double seconds = time_pass(world, x, w);

        least = seconds < least ? seconds : least;
    }
    return rate_of(world, x, w, least);
}

static void measure(const bench_world *world, bench_arrays *x, bench_bandwidth *bandwidth)
{
    enum { COPY, COPY_PAST, TRIAD, TRIAD_PAST, WAYS };
    static const way ways[WAYS] = {
        {copy, BYTES_COPY}, {copy_past, BYTES_COPY}, {triad, BYTES_TRIAD}, {triad_past, BYTES_TRIAD}};
    static const way pages = {copy_pages, BYTES_COPY};
    double           rates[WAYS];
    int              best = COPY;

    for (int i = 0; i < WAYS; i++) {
        rates[i] = rate(world, &x->whole, &ways[i]);
        best     = rates[i] > rates[best] ? i : best;
    }
    MPI_Bcast(&best, 1, MPI_INT, 0, world->comm); /* nodes of other sizes round otherwise */
    x->best           = ways[best];
    bandwidth->copy   = rates[COPY_PAST] > rates[COPY] ? rates[COPY_PAST] : rates[COPY];
    bandwidth->triad  = rates[TRIAD_PAST] > rates[TRIAD] ? rates[TRIAD_PAST] : rates[TRIAD];
    bandwidth->best   = rates[best];
    bandwidth->stores = best == COPY_PAST || best == TRIAD_PAST ? "non-temporal" : "ordinary";
    bandwidth->pages  = rate(world, &x->whole, &pages);
}

/* All of it is touched, by the rank that will work on it. @return NULL: no memory */
static bench_arrays *allocate(size_t array_bytes)
{
    bench_arrays *x     = calloc(1, sizeof *x);
    char         *block = aligned_alloc(ALIGNMENT, 3 * array_bytes);

    if (!x || !block) {
        free(x);
        free(block);
        return NULL;
    }
    memset(block, 0, 3 * array_bytes);
    x->whole = (arrays){(double *)(void *)block, (double *)(void *)(block + array_bytes),
                        (double *)(void *)(block + 2 * array_bytes), array_bytes / sizeof(double)};
    return x;
}

fsdp_status bench_bandwidth_measure(const bench_world *world, bench_bandwidth *bandwidth)
{
    const size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t       bytes;
    fsdp_status  status;

    *bandwidth             = (bench_bandwidth){.cache_bytes = fsdp_cache_bytes(world->ctx)};
    bandwidth->array_bytes = TIMES_CACHE * bandwidth->cache_bytes;
    if (bandwidth->array_bytes > memory / PART_OF_MEMORY / 3) {
        bandwidth->array_bytes = memory / PART_OF_MEMORY / 3;
    }
    bytes             = (bandwidth->array_bytes / (size_t)world->machine_ranks + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    bandwidth->arrays = allocate(bytes);
    status            = bench_agree(world, bandwidth->arrays != NULL,
                                    "no memory for the arrays that measure its bandwidth; use fewer ranks");
    if (status == FSDP_OK) {
        measure(world, bandwidth->arrays, bandwidth);
    }
    return status;
}

/* As many elements as take a few milliseconds, in whole lines. */
static size_t part_of(const bench_world *world, const bench_bandwidth *bandwidth)
{
    enum { LINE = ALIGNMENT / sizeof(double) };

    const bench_arrays *x      = bandwidth->arrays;
    const double        bytes  = bandwidth->best * AGAIN_SECONDS / x->best.streams / fsdp_node_size(world->ctx);
    const double        wanted = bytes / sizeof(double);
    const size_t        n      = wanted < (double)x->whole.n ? (size_t)wanted : x->whole.n;

    return n >= LINE ? n / LINE * LINE : x->whole.n;
}

double bench_bandwidth_again(const bench_world *world, const bench_bandwidth *bandwidth)
{
    bench_arrays *x = bandwidth->arrays;
    const size_t  n = part_of(world, bandwidth);
    arrays        part;

    x->next = x->next + n > x->whole.n ? 0 : x->next;
    part    = (arrays){x->whole.a + x->next, x->whole.b + x->next, x->whole.c + x->next, n};
    x->next += n;
    return rate_of(world, &part, &x->best, time_pass(world, &part, &x->best));
}

void bench_bandwidth_close(bench_bandwidth *bandwidth)
{
    if (bandwidth->arrays) {
        free(bandwidth->arrays->whole.a);
    }
    free(bandwidth->arrays);
    bandwidth->arrays = NULL;
}
