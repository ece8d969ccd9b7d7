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

typedef struct arrays {
    double *a, *b, *c;
    size_t  n;
} arrays;

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

/* The same in four pages at once, a line of each in turn: the prefetchers of the hardware end at each page. */
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

/* BYTES per second of a node: the best of a few passes of all ranks together. */
static double rate(const bench_world *world, const arrays *x, void (*pass)(const arrays *), int streams)
{
    double least = 1e30;

    for (int i = 0; i < REPEATS; i++) {
        double begin, seconds;

        MPI_Barrier(world->comm);
        begin = bench_now();
        pass(x);
        MPI_Barrier(world->comm); /* with fewer cores than ranks, some begin when others have ended */
        seconds = bench_max(world, bench_now() - begin);
        least   = i > 0 && seconds > least ? least : seconds;
    }
    return (double)(x->n * sizeof(double)) * streams * fsdp_node_size(world->ctx) / least;
}

static void measure(const bench_world *world, const arrays *x, bench_bandwidth *bandwidth)
{
    const double ordinary_copy = rate(world, x, copy, BYTES_COPY), past_copy = rate(world, x, copy_past, BYTES_COPY);
    const double ordinary_triad = rate(world, x, triad, BYTES_TRIAD),
                 past_triad     = rate(world, x, triad_past, BYTES_TRIAD);
    const double past           = past_copy > past_triad ? past_copy : past_triad;

    bandwidth->copy   = past_copy > ordinary_copy ? past_copy : ordinary_copy;
    bandwidth->triad  = past_triad > ordinary_triad ? past_triad : ordinary_triad;
    bandwidth->best   = bandwidth->copy > bandwidth->triad ? bandwidth->copy : bandwidth->triad;
    bandwidth->pages  = rate(world, x, copy_pages, BYTES_COPY);
    bandwidth->stores = bandwidth->best <= past ? "non-temporal" : "ordinary";
}

fsdp_status bench_bandwidth_measure(const bench_world *world, bench_bandwidth *bandwidth)
{
    const size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t       bytes;
    arrays       x;
    char        *block;
    fsdp_status  status;

    bandwidth->cache_bytes = fsdp_cache_bytes(world->ctx);
    bandwidth->array_bytes = TIMES_CACHE * bandwidth->cache_bytes;
    if (bandwidth->array_bytes > memory / PART_OF_MEMORY / 3) {
        bandwidth->array_bytes = memory / PART_OF_MEMORY / 3;
    }
    bytes  = (bandwidth->array_bytes / (size_t)world->machine_ranks + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    block  = aligned_alloc(ALIGNMENT, 3 * bytes);
    status = bench_agree(world, block != NULL, "no memory for the arrays that measure its bandwidth; use fewer ranks");
    if (status == FSDP_OK) {
        memset(block, 0, 3 * bytes);
        x = (arrays){(double *)(void *)block, (double *)(void *)(block + bytes), (double *)(void *)(block + 2 * bytes),
                     bytes / sizeof(double)};
        measure(world, &x, bandwidth);
    }
    free(block);
    return status;
}
