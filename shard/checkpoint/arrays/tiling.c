/*
 * Whether boxes tile an array, and what is wrong where they do not: see shard/checkpoint/arrays/box.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "shard/checkpoint/arrays/box.h"

/* ---- corners ------------------------------------------------------------------------------------------------------- */

/* The finaliser of splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void add_corner(const uint64_t *point, size_t n_dims, int sign, int64_t sum[FSDPI_TILING_WORDS])
{
    uint64_t a = FSDPI_HASH_START, b = ~FSDPI_HASH_START;

    for (size_t d = 0; d < n_dims; d++) {
        a = mix(a + 0x9e3779b97f4a7c15u + point[d]);
        b = mix((b ^ point[d]) + 0x9e3779b97f4a7c15u * (d + 1));
    }
    sum[0] += sign * (int64_t)(a & UINT32_MAX);
    sum[1] += sign * (int64_t)(a >> 32);
    sum[2] += sign * (int64_t)(b & UINT32_MAX);
    sum[3] += sign * (int64_t)(b >> 32);
}

void fsdpi_tiling_add(const size_t *offset, const size_t *extent, size_t n_dims, int64_t sum[FSDPI_TILING_WORDS])
{
    uint64_t point[FSDP_MAX_DIMS] = {0};

    for (unsigned corner = 0; corner < 1u << n_dims; corner++) {
        int sign = 1;

        for (size_t d = 0; d < n_dims; d++) {
            const bool upper = (corner >> d & 1) != 0;

            point[d] = offset[d] + (upper ? extent[d] : 0);
            sign     = upper ? -sign : sign;
        }
        add_corner(point, n_dims, sign, sum);
    }
}

bool fsdpi_tiling_holds(const int64_t sum[FSDPI_TILING_WORDS], const size_t *shape, size_t n_dims)
{
    const size_t zeros[FSDP_MAX_DIMS]      = {0};
    int64_t      array[FSDPI_TILING_WORDS] = {0};

    fsdpi_tiling_add(zeros, shape, n_dims, array);
    return memcmp(sum, array, sizeof array) == 0;
}

/* ---- what is wrong ------------------------------------------------------------------------------------------------- */

typedef struct tiling {
    const char    *name;
    const int64_t *boxes;
    size_t         n, n_dims;
    const size_t  *shape;
    size_t        *list; /* ranks */
    size_t        *work; /* as many */
    fsdpi_problem *problem;
} tiling;

static uint64_t lower(const tiling *t, size_t rank, size_t d)
{
    return (uint64_t)t->boxes[rank * 2 * t->n_dims + d];
}

static uint64_t upper(const tiling *t, size_t rank, size_t d)
{
    return lower(t, rank, d) + (uint64_t)t->boxes[rank * 2 * t->n_dims + t->n_dims + d];
}

static bool is_empty(const tiling *t, size_t rank)
{
    for (size_t d = 0; d < t->n_dims; d++) {
        if (lower(t, rank, d) == upper(t, rank, d)) {
            return true;
        }
    }
    return false;
}

typedef struct order {
    const tiling *t;
    size_t        d;
    bool          by_end;
} order;

static int by_place(const void *a, const void *b, void *argument)
{
    const order   *o = argument;
    const size_t   p = *(const size_t *)a, q = *(const size_t *)b;
    const uint64_t x = o->by_end ? upper(o->t, p, o->d) : lower(o->t, p, o->d);
    const uint64_t y = o->by_end ? upper(o->t, q, o->d) : lower(o->t, q, o->d);

    return x != y ? (x < y ? -1 : 1) : p < q ? -1 : p > q;
}

static void sort(const tiling *t, size_t *ranks, size_t n, size_t d, bool by_end)
{
    order o = {.t = t, .d = d, .by_end = by_end};

    qsort_r(ranks, n, sizeof *ranks, by_place, &o);
}

/* "[0:4, 2:6]" */
static void describe(const uint64_t *begin, const uint64_t *end, size_t n_dims, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");

    for (size_t d = 0; d < n_dims && used < size; d++) {
        used +=
            (size_t)snprintf(text + used, size - used, "%s%" PRIu64 ":%" PRIu64, d > 0 ? ", " : "", begin[d], end[d]);
    }
    if (used < size) {
        (void)snprintf(text + used, size - used, "]");
    }
}

static void describe_rank(const tiling *t, size_t rank, char *text, size_t size)
{
    uint64_t begin[FSDP_MAX_DIMS], end[FSDP_MAX_DIMS];

    for (size_t d = 0; d < t->n_dims; d++) {
        begin[d] = lower(t, rank, d);
        end[d]   = upper(t, rank, d);
    }
    describe(begin, end, t->n_dims, text, size);
}

/* ---- overlaps ------------------------------------------------------------------------------------------------------ */

/* How many boxes lie beside each other at most, seen along a dimension. `t->list` has those that are not empty. */
static size_t most_abreast(const tiling *t, size_t n, size_t d)
{
    size_t open = 0, most = 0, ended = 0;

    sort(t, t->list, n, d, false);
    memcpy(t->work, t->list, n * sizeof *t->work);
    sort(t, t->work, n, d, true);
    for (size_t i = 0; i < n; i++) {
        while (upper(t, t->work[ended], d) <= lower(t, t->list[i], d)) {
            ended++;
            open--;
        }
        most = ++open > most ? open : most;
    }
    return most;
}

static bool overlap(const tiling *t, size_t p, size_t q)
{
    for (size_t d = 0; d < t->n_dims; d++) {
        if (lower(t, p, d) >= upper(t, q, d) || lower(t, q, d) >= upper(t, p, d)) {
            return false;
        }
    }
    return true;
}

static fsdp_status refuse_overlap(const tiling *t, size_t p, size_t q)
{
    char a[160], b[160];

    describe_rank(t, p < q ? p : q, a, sizeof a);
    describe_rank(t, p < q ? q : p, b, sizeof b);
    return fsdpi_problem_set(
        t->problem, FSDP_ERR_ARG,
        "array '%.200s': the boxes %s of rank %zu and %s of rank %zu overlap; boxes tile the array, and "
        "what all ranks hold alike has the box NULL",
        t->name, a, p < q ? p : q, b, p < q ? q : p);
}

/* Along dimension `d`: each box is compared with those that have begun and not ended. */
static fsdp_status sweep(const tiling *t, size_t n, size_t d)
{
    size_t open = 0;

    sort(t, t->list, n, d, false);
    for (size_t i = 0; i < n; i++) {
        size_t kept = 0;

        for (size_t k = 0; k < open; k++) {
            const size_t other = t->work[k];

            if (upper(t, other, d) > lower(t, t->list[i], d)) {
                t->work[kept++] = other;
                if (overlap(t, other, t->list[i])) {
                    return refuse_overlap(t, other, t->list[i]);
                }
            }
        }
        t->work[kept] = t->list[i];
        open          = kept + 1;
    }
    return FSDP_OK;
}

static fsdp_status find_overlap(const tiling *t, size_t n)
{
    size_t best = 0, fewest = SIZE_MAX;

    for (size_t d = 0; d < t->n_dims; d++) {
        const size_t abreast = most_abreast(t, n, d);

        best   = abreast < fewest ? d : best;
        fewest = abreast < fewest ? abreast : fewest;
    }
    return sweep(t, n, best);
}

/* ---- holes --------------------------------------------------------------------------------------------------------- */

/* ELEMENTS of a box's cross-section behind dimension `d`. */
static uint64_t section(const tiling *t, size_t rank, size_t d)
{
    uint64_t count = 1;

    for (size_t k = d + 1; k < t->n_dims; k++) {
        count *= upper(t, rank, k) - lower(t, rank, k);
    }
    return count;
}

/* The first stretch of dimension `d` of which the `n` boxes of the list, which do not overlap, do not cover everything. */
static void find_gap(const tiling *t, size_t n, size_t d, uint64_t *begin, uint64_t *end)
{
    size_t   begun = 0, ended = 0;
    uint64_t whole = 1, covered = 0;

    for (size_t k = d + 1; k < t->n_dims; k++) {
        whole *= t->shape[k];
    }
    sort(t, t->list, n, d, false);
    memcpy(t->work, t->list, n * sizeof *t->work);
    sort(t, t->work, n, d, true);
    for (uint64_t at = 0; at < t->shape[d]; at = *end) {
        for (; begun < n && lower(t, t->list[begun], d) <= at; begun++) {
            covered += section(t, t->list[begun], d);
        }
        for (; ended < n && upper(t, t->work[ended], d) <= at; ended++) {
            covered -= section(t, t->work[ended], d);
        }
        *begin = at;
        *end   = t->shape[d];
        *end   = begun < n && lower(t, t->list[begun], d) < *end ? lower(t, t->list[begun], d) : *end;
        *end   = ended < n && upper(t, t->work[ended], d) < *end ? upper(t, t->work[ended], d) : *end;
        if (covered < whole) {
            return;
        }
    }
}

static fsdp_status find_hole(const tiling *t, size_t n)
{
    uint64_t begin[FSDP_MAX_DIMS] = {0}, end[FSDP_MAX_DIMS] = {0};
    char     text[320];

    for (size_t d = 0; d < t->n_dims; d++) {
        size_t kept = 0;

        find_gap(t, n, d, &begin[d], &end[d]);
        for (size_t i = 0; i < n; i++) { /* those that are beside the hole */
            if (lower(t, t->list[i], d) <= begin[d] && upper(t, t->list[i], d) > begin[d]) {
                t->list[kept++] = t->list[i];
            }
        }
        n = kept;
    }
    describe(begin, end, t->n_dims, text, sizeof text);
    return fsdpi_problem_set(
        t->problem, FSDP_ERR_ARG,
        "array '%.200s': its elements %s are in no rank's box; the boxes of all ranks tile the array", t->name, text);
}

fsdp_status fsdpi_tiling_explain(const char *name, const int64_t *boxes, size_t n, const size_t *shape, size_t n_dims,
                                 fsdpi_problem *problem)
{
    tiling      t      = {.name = name, .boxes = boxes, .n = n, .n_dims = n_dims, .shape = shape, .problem = problem};
    size_t      full   = 0;
    fsdp_status status = FSDP_ERR_MEMORY;

    t.list = malloc((n + 1) * sizeof *t.list);
    t.work = malloc((n + 1) * sizeof *t.work);
    if (t.list == NULL || t.work == NULL) {
        status = fsdpi_problem_memory(problem, name, n * sizeof *t.list);
    } else {
        for (size_t rank = 0; rank < n; rank++) {
            if (!is_empty(&t, rank)) {
                t.list[full++] = rank;
            }
        }
        status = find_overlap(&t, full);
        status = status == FSDP_OK ? find_hole(&t, full) : status;
    }
    free(t.list);
    free(t.work);
    return status;
}
