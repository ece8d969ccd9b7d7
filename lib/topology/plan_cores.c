/*
 * Which rank gets which cores. A rank with a mask of its own keeps what of it is on its GPU's NUMA node. Ranks that have
 * one mask together divide it: those whose GPUs are on one NUMA node its part of the mask, in the order of their GPUs.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/topology/mask.h"
#include "lib/topology/node.h"
#include "lib/topology/plan.h"

__attribute__((format(printf, 2, 3))) static void say(fsdp_place *place, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(place->cores_reason, sizeof place->cores_reason, format, arguments);
    va_end(arguments);
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

/* The part of a rank's mask that is on its GPU's NUMA node; all of it where there is no GPU. */
static fsdp_mask wanted_region(const fsdpi_planning *plan, size_t rank)
{
    const int gpu = plan->places[rank].gpu;

    if (gpu < 0) {
        return plan->masks[rank];
    }
    const fsdp_mask numa = fsdpi_numa_threads(plan->node, &plan->node->gpus[gpu]);
    return fsdpi_mask_both(&numa, &plan->masks[rank]);
}

/* Whether another rank with the same mask wants a part of the region but not the same one. */
static bool is_contested(const fsdpi_planning *plan, size_t rank)
{
    for (size_t r = 0; r < plan->n; r++) {
        if (plan->first[r] == plan->first[rank] && fsdpi_mask_meets(&plan->regions[r], &plan->regions[rank]) &&
            !fsdpi_mask_equal(&plan->regions[r], &plan->regions[rank])) {
            return true;
        }
    }
    return false;
}

static int count_on(const fsdpi_planning *plan, const fsdp_domain *numa)
{
    int count = 0;

    for (size_t r = 0; r < plan->n; r++) {
        count += !fsdpi_mask_is_empty(&plan->regions[r]) && fsdpi_mask_within(&plan->regions[r], &numa->threads);
    }
    return count;
}

/* The part on that NUMA node which has the most hardware threads for one rank more. */
static fsdp_mask roomiest_part(const fsdpi_planning *plan, size_t rank)
{
    const fsdp_node *node = plan->node;
    fsdp_mask        best = plan->regions[rank];
    int              room = 0, users = 0; /* of the best */

    for (size_t i = 0; i < node->n_numas; i++) {
        const fsdp_mask part  = fsdpi_mask_both(&node->numas[i].threads, &plan->regions[rank]);
        const int       count = fsdp_mask_count(&part), here = count_on(plan, &node->numas[i]) + 1;

        if (count > 0 && (room == 0 || count * users > room * here)) {
            best  = part;
            room  = count;
            users = here;
        }
    }
    return best;
}

/*
 * Ranks with one mask divide regions that are the same or have nothing in common. A GPU of a whole package, or none, makes
 * for a region of several NUMA nodes: where others want some of it, one of these nodes has to do.
 */
static void find_regions(const fsdpi_planning *plan)
{
    for (size_t r = 0; r < plan->n; r++) {
        plan->regions[r] = wanted_region(plan, r);
    }
    for (size_t r = 0; r < plan->n; r++) {
        if (plan->sharers[r] > 1 && is_contested(plan, r) &&
            fsdpi_domain_of(plan->node->numas, plan->node->n_numas, &plan->regions[r]) < 0) {
            plan->regions[r] = roomiest_part(plan, r);
        }
    }
}

/* The number of the NUMA node that all of a mask is on; -1: several. */
static int numa_number(const fsdp_node *node, const fsdp_mask *threads)
{
    const int numa = fsdpi_domain_of(node->numas, node->n_numas, threads);

    return numa >= 0 ? node->numas[numa].number : -1;
}

static void leave(const fsdpi_planning *plan, size_t rank, const char *why)
{
    plan->places[rank].threads = plan->masks[rank];
    say(&plan->places[rank], "left alone: %s", why);
}

static const char *why_no_region(const fsdpi_planning *plan, size_t rank)
{
    const fsdp_gpu *gpu = &plan->node->gpus[plan->places[rank].gpu];

    return fsdpi_mask_is_empty(&gpu->threads) ? "which cores its GPU is next to is not known"
                                              : "no core next to its GPU is in its mask";
}

static void keep_own(const fsdpi_planning *plan, size_t rank)
{
    const fsdp_mask region = plan->regions[rank];
    fsdp_place     *place  = &plan->places[rank];

    if (fsdpi_mask_is_empty(&region)) {
        leave(plan, rank, why_no_region(plan, rank));
        return;
    }
    place->threads = region;
    if (fsdpi_mask_equal(&region, &plan->masks[rank])) {
        say(place, "its own mask, %s", place->gpu >= 0 ? "all of it next to its GPU" : "as launched");
    } else {
        say(place, "the part of its own mask that is next to its GPU");
    }
}

/* ---- dividing ---------------------------------------------------------------------------------------------------- */

/* Ranks that divide a region, and its cores. */
typedef struct division {
    const fsdpi_planning *plan;
    fsdp_mask             region;
    size_t                n_members;
    size_t               *members; /* in the order in which they get cores */
    size_t                n_cores;
    size_t               *cores; /* indices into the node's */
    bool                  snapped;
} division;

static int position_of(const fsdpi_planning *plan, size_t rank)
{
    return plan->places[rank].gpu >= 0 ? plan->position[plan->places[rank].gpu] : 0;
}

/* All that have the mask of `first` and the same region; insertion keeps them in the order of GPUs, then ranks. */
static void find_members(division *d, size_t first)
{
    const fsdpi_planning *plan = d->plan;
    size_t                n    = 1;

    d->members[0] = first;
    for (size_t r = first + 1; r < plan->n; r++) {
        size_t at = n;

        if (plan->first[r] != plan->first[first] || !fsdpi_mask_equal(&plan->regions[r], &d->region)) {
            continue;
        }
        while (at > 0 && position_of(plan, d->members[at - 1]) > position_of(plan, r)) {
            d->members[at] = d->members[at - 1];
            at--;
        }
        d->members[at] = r;
        n++;
    }
    d->n_members = n;
}

static void find_cores(division *d)
{
    const fsdp_node *node = d->plan->node;

    d->n_cores = 0;
    for (size_t c = 0; c < node->n_cores; c++) {
        if (fsdpi_mask_meets(&node->cores[c].threads, &d->region)) {
            d->cores[d->n_cores++] = c;
        }
    }
}

/* Where the j-th part begins: at an even division, or at the boundary of a cache within a quarter of a part from there. */
static size_t cut(division *d, size_t j)
{
    const size_t ideal = j * d->n_cores / d->n_members, reach = d->n_cores / d->n_members / 4;

    for (size_t away = 0; j > 0 && j < d->n_members && away <= reach; away++) {
        for (int side = -1; side <= 1; side += 2) {
            const size_t at = side < 0 ? ideal - away : ideal + away;

            if (at > 0 && at < d->n_cores &&
                d->plan->node->cores[d->cores[at]].cache != d->plan->node->cores[d->cores[at - 1]].cache) {
                d->snapped = d->snapped || away > 0;
                return at;
            }
        }
    }
    return ideal;
}

static fsdp_mask threads_of(const division *d, size_t begin, size_t end)
{
    fsdp_mask threads = {{0}};

    for (size_t c = begin; c < end; c++) {
        const fsdp_mask part = fsdpi_mask_both(&d->plan->node->cores[d->cores[c]].threads, &d->region);
        fsdpi_mask_include(&threads, &part);
    }
    return threads;
}

static void say_part(const division *d, size_t j)
{
    const int   numa  = numa_number(d->plan->node, &d->region);
    fsdp_place *place = &d->plan->places[d->members[j]];
    const char *near  = place->gpu >= 0 ? ", next to its GPU" : "";
    char        where[48];

    (void)snprintf(where, sizeof where, numa >= 0 ? "%zu core%s of NUMA node %d" : "%zu core%s", d->n_cores,
                   d->n_cores == 1 ? "" : "s", numa);
    if (d->n_members == 1) {
        say(place, "the %s%s", where, near);
    } else {
        say(place, "part %zu of %zu of the %s%s", j + 1, d->n_members, where, near);
    }
}

/* Cores that are left over by an even division stay free: equal work on unequal cores ends when the fewest are done. */
static void divide_evenly(division *d)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): the first member is always there */
    const size_t share = d->n_cores / d->n_members;

    for (size_t j = 0; j < d->n_members; j++) {
        (void)cut(d, j); /* whether any boundary moves a cut */
    }
    for (size_t j = 0; j < d->n_members; j++) {
        const size_t begin = cut(d, j), end = cut(d, j + 1);

        d->plan->places[d->members[j]].threads = threads_of(d, begin, d->snapped ? end : begin + share);
        say_part(d, j);
    }
}

static void divide_region(division *d, size_t first)
{
    const fsdpi_planning *plan = d->plan;

    d->region  = plan->regions[first];
    d->snapped = false;
    find_members(d, first);
    find_cores(d);
    for (size_t j = 0; j < d->n_members; j++) {
        if (fsdpi_mask_is_empty(&d->region)) {
            leave(plan, d->members[j], why_no_region(plan, d->members[j]));
        } else if (d->n_cores < d->n_members) {
            leave(plan, d->members[j], "there are more ranks than cores next to their GPUs");
        }
    }
    if (d->n_cores >= d->n_members && !fsdpi_mask_is_empty(&d->region)) {
        divide_evenly(d);
    }
}

bool fsdpi_plan_cores(const fsdpi_planning *plan)
{
    size_t  *numbers = malloc((plan->n + plan->node->n_cores) * sizeof *numbers);
    division d       = {.plan = plan, .members = numbers, .cores = numbers != NULL ? numbers + plan->n : NULL};

    if (numbers == NULL) {
        return false;
    }
    find_regions(plan);
    for (size_t r = 0; r < plan->n; r++) {
        plan->places[r].cores_reason[0] = '\0';
    }
    for (size_t r = 0; r < plan->n; r++) {
        if (plan->sharers[r] == 1) {
            keep_own(plan, r);
        } else if (fsdpi_count_cores(plan->node, &plan->masks[r]) < (size_t)plan->sharers[r]) {
            leave(plan, r, "there are more ranks than cores");
        } else if (plan->places[r].cores_reason[0] == '\0') {
            divide_region(&d, r);
        }
    }
    free(numbers);
    return true;
}
