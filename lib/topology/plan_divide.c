/*
 * How the cores of a region are divided. Along caches and kinds of cores, if none gets much less by that than its even share;
 * otherwise evenly, in one piece each, across as few boundaries as can be.
 */
#include <stdarg.h>
#include <stdio.h>

#include "lib/topology/mask.h"
#include "lib/topology/node.h"
#include "lib/topology/plan_pool.h"

/* Ranks of one region, and its cores: `pool->cores`, neighbours side by side. */
typedef struct division {
    fsdpi_pool *pool;
    fsdp_mask   region;
    size_t      n_members;
    size_t     *members; /* places in pool->members, the first ones of pool->parts */
    size_t      n_cores;
    size_t      n_caches; /* pool->starts: where each begins, and the end */
    size_t      n_idle;   /* NUMA nodes of the pool that no region is on */
} division;

static fsdp_place *place_of(const division *d, size_t j)
{
    return &d->pool->plan->places[d->pool->members[d->members[j]]];
}

/* ---- what is divided, by whom ------------------------------------------------------------------------------------ */

static void find_members(division *d, size_t first)
{
    const fsdpi_pool     *pool = d->pool;
    const fsdpi_planning *plan = pool->plan;

    d->region     = plan->regions[pool->members[first]];
    d->members    = pool->parts;
    d->members[0] = first;
    d->n_members  = 1;
    for (size_t i = first + 1; i < pool->n; i++) {
        if (fsdpi_mask_equal(&plan->regions[pool->members[i]], &d->region)) {
            d->members[d->n_members++] = i;
        }
    }
}

static void find_cores(division *d)
{
    const fsdp_node *node  = d->pool->plan->node;
    size_t          *cores = d->pool->cores;

    d->n_cores = d->n_caches = 0;
    for (size_t i = 0; i < node->n_cores * (node->n_kinds + 1); i++) { /* kind by kind */
        const size_t c = i % node->n_cores, last = d->n_cores > 0 ? cores[d->n_cores - 1] : c;

        if (node->cores[c].kind != (int)(i / node->n_cores) || !fsdpi_mask_meets(&node->cores[c].threads, &d->region)) {
            continue;
        }
        if (d->n_cores == 0 || node->cores[last].cache != node->cores[c].cache ||
            node->cores[last].kind != node->cores[c].kind) {
            d->pool->starts[d->n_caches++] = d->n_cores;
        }
        cores[d->n_cores++] = c;
    }
    d->pool->starts[d->n_caches] = d->n_cores;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static const char *about_gpu(const division *d, size_t j)
{
    const fsdpi_planning *plan  = d->pool->plan;
    const fsdp_place     *place = place_of(d, j);

    if (place->gpu < 0) {
        return "";
    }
    const fsdp_gpu *gpu  = &plan->node->gpus[place->gpu];
    const fsdp_mask near = fsdpi_numa_threads(plan->node, gpu);
    switch (fsdpi_distance_to(plan->node, &d->region, gpu)) {
    case FSDPI_NEAREST:
    case FSDPI_SAME_NUMA:
        return ", next to its GPU";
    case FSDPI_DISTANCE_UNKNOWN:
        return "; which cores its GPU is next to is not known";
    case FSDPI_SAME_PACKAGE:
    case FSDPI_FAR:
        break;
    }
    return fsdpi_mask_meets(&near, &plan->masks[d->pool->members[d->members[j]]])
               ? "; those next to its GPU are taken"
               : "; no core next to its GPU is in its mask";
}

static void where_is(const division *d, char *text, size_t size)
{
    const fsdp_node *node  = d->pool->plan->node;
    const int        numa  = fsdpi_domain_of(node->numas, node->n_numas, &d->region);
    size_t           numas = 0;

    for (size_t m = 0; m < node->n_numas; m++) {
        numas += fsdpi_mask_meets(&node->numas[m].threads, &d->region);
    }
    const int  kind  = node->cores[d->pool->cores[0]].kind;
    const bool named = node->n_kinds > 1 && kind == node->cores[d->pool->cores[d->n_cores - 1]].kind;
    const int  used  = snprintf(text, size, "%zu %.16s%score%s", d->n_cores, named ? node->kinds[kind].name : "",
                              named ? " " : "", d->n_cores == 1 ? "" : "s");
    if (numa >= 0) {
        (void)snprintf(text + used, size - (size_t)used, " of NUMA node %d", node->numas[numa].number);
    } else if (numas > 1) {
        (void)snprintf(text + used, size - (size_t)used, " of %zu NUMA nodes", numas);
    }
}

__attribute__((format(printf, 2, 3))) static void say(fsdp_place *place, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(place->cores_reason, sizeof place->cores_reason, format, arguments);
    va_end(arguments);
}

static void say_part(const division *d, size_t j)
{
    char where[64], idle[80] = "";

    where_is(d, where, sizeof where);
    if (d->n_idle > 0 && place_of(d, j)->gpu < 0) {
        (void)snprintf(idle, sizeof idle, "; %zu NUMA node%s idle, so that none is divided", d->n_idle,
                       d->n_idle == 1 ? " stays" : "s stay");
    }
    if (d->n_members > d->n_cores) {
        say(place_of(d, j), "the %s, shared by %zu ranks: there are more ranks than cores", where, d->n_members);
    } else if (d->n_members > 1) {
        say(place_of(d, j), "part %zu of %zu of the %s%s%s", j + 1, d->n_members, where, about_gpu(d, j), idle);
    } else {
        say(place_of(d, j), "the %s%s%s", where, about_gpu(d, j), idle);
    }
}

/* ---- dividing ---------------------------------------------------------------------------------------------------- */

static void give(const division *d, size_t j, size_t begin, size_t end)
{
    const fsdp_node *node    = d->pool->plan->node;
    fsdp_mask       *threads = &place_of(d, j)->threads;

    *threads = (fsdp_mask){{0}};
    for (size_t c = begin; c < end; c++) {
        const fsdp_mask part = fsdpi_mask_both(&node->cores[d->pool->cores[c]].threads, &d->region);
        fsdpi_mask_include(threads, &part);
    }
    say_part(d, j);
}

/* The cache that a member's GPU is next to; -1: none, or several. */
static int cache_of_gpu(const division *d, size_t j)
{
    const fsdp_node *node  = d->pool->plan->node;
    const int        gpu   = place_of(d, j)->gpu;
    int              found = -1;

    for (size_t k = 0; gpu >= 0 && k < d->n_caches; k++) {
        bool next = false;

        for (size_t c = d->pool->starts[k]; c < d->pool->starts[k + 1]; c++) {
            next = next || fsdpi_mask_meets(&node->cores[d->pool->cores[c]].threads, &node->gpus[gpu].threads);
        }
        if (next && found >= 0) {
            return -1;
        }
        found = next ? (int)k : found;
    }
    return found;
}

/* How many members each cache is for: those with GPUs next to it. False where that does not say it of all, in order. */
static bool fill_by_gpus(const division *d)
{
    int last = 0;

    for (size_t k = 0; k < d->n_caches; k++) {
        d->pool->counts[k] = 0;
    }
    for (size_t j = 0; j < d->n_members; j++) {
        const int cache = cache_of_gpu(d, j);

        if (cache < last) {
            return false;
        }
        d->pool->counts[cache]++;
        last = cache;
    }
    return true;
}

/* The same where GPUs do not say it: so that shares differ as little as can be. */
static void fill_evenly(const division *d)
{
    const size_t *starts = d->pool->starts;
    size_t       *counts = d->pool->counts;

    for (size_t k = 0; k < d->n_caches; k++) {
        counts[k] = 0;
    }
    for (size_t j = 0; j < d->n_members; j++) {
        size_t best = 0;

        for (size_t k = 1; k < d->n_caches; k++) {
            const size_t mine = (starts[best + 1] - starts[best]) * (counts[k] + 1);

            best = (starts[k + 1] - starts[k]) * (counts[best] + 1) > mine ? k : best;
        }
        counts[best]++;
    }
}

static void part_along_caches(const division *d, size_t j, size_t *begin, size_t *end)
{
    const size_t *starts = d->pool->starts, *counts = d->pool->counts;
    size_t        k = 0;

    if (d->n_members <= d->n_caches) {
        *begin = starts[j * d->n_caches / d->n_members];
        *end   = starts[(j + 1) * d->n_caches / d->n_members];
        return;
    }
    while (j >= counts[k]) {
        j -= counts[k++];
    }
    const size_t share = (starts[k + 1] - starts[k]) / counts[k];
    *begin             = starts[k] + j * share;
    *end               = *begin + share;
}

/* False where someone would have less than three quarters of an even share. */
static bool divide_along_caches(const division *d)
{
    const size_t even = d->n_cores / d->n_members;

    for (int give_them = 0; give_them < 2; give_them++) {
        for (size_t j = 0; j < d->n_members; j++) {
            size_t begin, end;

            part_along_caches(d, j, &begin, &end);
            if (4 * (end - begin) < 3 * even) {
                return false;
            }
            if (give_them) {
                give(d, j, begin, end);
            }
        }
    }
    return true;
}

static size_t count_crossed(const division *d, size_t begin, size_t end)
{
    size_t crossed = 0;

    for (size_t k = 0; k < d->n_caches; k++) {
        crossed += d->pool->starts[k] > begin && d->pool->starts[k] < end;
    }
    return crossed;
}

/* Cores that an even division leaves over stay free: equal work on unequal cores ends when the fewest are done. They are
   left where a part begins at a cache instead of reaching into it. */
static void divide_evenly(const division *d)
{
    const size_t share = d->n_cores / d->n_members;
    size_t       left = d->n_cores % d->n_members, at = 0;

    for (size_t j = 0; j < d->n_members; j++) {
        for (size_t skip = 1; skip <= left; skip++) {
            if (count_crossed(d, at + skip, at + skip + share) < count_crossed(d, at, at + share)) {
                at += skip;
                left -= skip;
            }
        }
        give(d, j, at, at + share);
        at += share;
    }
}

static size_t count_idle(const fsdpi_pool *pool)
{
    const fsdp_node *node = pool->plan->node;
    fsdp_mask        used = {{0}};
    size_t           idle = 0;

    for (size_t i = 0; i < pool->n; i++) {
        fsdpi_mask_include(&used, &pool->plan->regions[pool->members[i]]);
    }
    for (size_t m = 0; m < node->n_numas; m++) {
        idle += pool->room[m] > 0 && !fsdpi_mask_meets(&node->numas[m].threads, &used);
    }
    return idle;
}

void fsdpi_pool_divide(fsdpi_pool *pool)
{
    division d = {.pool = pool, .n_idle = count_idle(pool)};

    for (size_t i = 0; i < pool->n; i++) {
        pool->plan->places[pool->members[i]].cores_reason[0] = '\0';
    }
    for (size_t i = 0; i < pool->n; i++) {
        if (pool->plan->places[pool->members[i]].cores_reason[0] != '\0') {
            continue;
        }
        find_members(&d, i);
        find_cores(&d);
        if (d.n_members > d.n_cores) {
            for (size_t j = 0; j < d.n_members; j++) {
                give(&d, j, 0, d.n_cores);
            }
        } else if (!fill_by_gpus(&d) || !divide_along_caches(&d)) {
            fill_evenly(&d);
            if (!divide_along_caches(&d)) {
                divide_evenly(&d);
            }
        }
    }
}
