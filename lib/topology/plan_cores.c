/*
 * Which rank gets which cores. A rank with a mask of its own keeps what of it is on its GPU's NUMA node. Ranks that have one
 * mask together divide it. Where different masks share cores, those who can be nowhere else come first, and each leaves the
 * others a core.
 */
#include <stdio.h>

#include "lib/topology/mask.h"
#include "lib/topology/plan_pool.h"
#include "lib/topology/plan_seats.h"

/* ---- a mask of its own ------------------------------------------------------------------------------------------- */

static const char *why_left(const fsdp_gpu *gpu)
{
    return fsdpi_mask_is_empty(&gpu->threads) ? "left alone: which cores its GPU is next to is not known"
                                              : "left alone: no core next to its GPU is in its mask";
}

/* `left` is what of its mask no other rank has. */
static void keep_own(const fsdpi_planning *plan, size_t rank, const fsdp_mask *left)
{
    fsdp_place     *place = &plan->places[rank];
    const fsdp_gpu *gpu   = place->gpu >= 0 ? &plan->node->gpus[place->gpu] : NULL;
    const fsdp_mask near  = gpu != NULL ? fsdpi_numa_threads(plan->node, gpu) : *left;
    const fsdp_mask part  = fsdpi_mask_both(&near, left);
    const bool      alone = fsdpi_mask_equal(left, &plan->masks[rank]);
    const char     *why;

    place->threads = fsdpi_mask_is_empty(&part) ? *left : part;
    if (fsdpi_mask_equal(&place->threads, &plan->masks[rank]) && !fsdpi_mask_is_empty(&part)) {
        why = gpu != NULL ? "its own mask, all of it next to its GPU" : "its own mask, as launched";
    } else if (!fsdpi_mask_is_empty(&part) && alone) {
        why = "the part of its own mask that is next to its GPU";
    } else if (!alone) {
        why = "the part of its own mask that is left by ranks with other masks";
    } else {
        why = why_left(gpu);
    }
    (void)snprintf(place->cores_reason, sizeof place->cores_reason, "%s", why);
}

/* ---- one for several --------------------------------------------------------------------------------------------- */

static int position_of(const fsdpi_planning *plan, size_t rank)
{
    return plan->places[rank].gpu >= 0 ? plan->position[plan->places[rank].gpu] : 0;
}

/* All that have the mask of `first`; insertion keeps them in the order of GPUs, then ranks. */
static void find_members(fsdpi_pool *pool, size_t first)
{
    const fsdpi_planning *plan = pool->plan;

    pool->n = 0;
    for (size_t r = first; r < plan->n; r++) {
        size_t at = pool->n;

        if (plan->first[r] != (int)first) {
            continue;
        }
        while (at > 0 && position_of(plan, pool->members[at - 1]) > position_of(plan, r)) {
            pool->members[at] = pool->members[at - 1];
            at--;
        }
        pool->members[at] = r;
        pool->n++;
    }
}

/* Slower cores are for ranks that outnumber the faster ones. */
static void leave_slow_cores(fsdpi_pool *pool)
{
    const fsdp_node *node = pool->plan->node;
    fsdp_mask        fast = {{0}};

    for (size_t k = 0; k < node->n_kinds && fsdpi_count_cores(node, &fast) < pool->n; k++) {
        for (size_t c = 0; c < node->n_cores; c++) {
            const fsdp_mask part = fsdpi_mask_both(&node->cores[c].threads, &pool->free);

            if (node->cores[c].kind == (int)k) {
                fsdpi_mask_include(&fast, &part);
            }
        }
    }
    pool->free = node->n_kinds > 0 ? fast : pool->free;
}

/* The mask has a core for each of these ranks, but other masks share it: with theirs, ranks outnumber cores. All of it
   is kept, so that none of it is idle. */
static void leave_alone(const fsdpi_pool *pool)
{
    for (size_t i = 0; i < pool->n; i++) {
        fsdp_place *place = &pool->plan->places[pool->members[i]];

        place->threads = pool->free;
        (void)snprintf(place->cores_reason, sizeof place->cores_reason,
                       "left alone: ranks with this mask and with others that share it outnumber its cores");
    }
}

static void plan_group(fsdpi_pool *pool, const fsdpi_seats *seats, int group, fsdp_mask *taken)
{
    const fsdpi_planning *plan    = pool->plan;
    const bool            has_own = fsdpi_seats_left(seats, group, taken, &pool->free);

    if (!has_own) {
        pool->free = plan->masks[group];
    }
    find_members(pool, (size_t)group);
    if (!has_own && fsdpi_count_cores(plan->node, &pool->free) >= pool->n) {
        leave_alone(pool);
    } else if (pool->n == 1) {
        keep_own(plan, (size_t)group, &pool->free);
    } else {
        leave_slow_cores(pool);
        fsdpi_pool_settle(pool);
        fsdpi_pool_divide(pool);
    }
    for (size_t i = 0; i < pool->n; i++) {
        fsdpi_mask_include(taken, &plan->places[pool->members[i]].threads);
    }
}

bool fsdpi_plan_cores(const fsdpi_planning *plan)
{
    fsdp_mask   taken = {{0}};
    fsdpi_seats seats;
    fsdpi_pool  pool;

    if (!fsdpi_seats_open(plan, &seats)) {
        return false;
    }
    const bool ok = fsdpi_pool_open(plan, &pool);
    for (size_t g = 0; ok && g < seats.n_groups; g++) {
        plan_group(&pool, &seats, seats.groups[g], &taken);
    }
    if (ok) {
        fsdpi_pool_close(&pool);
    }
    fsdpi_seats_close(&seats);
    return ok;
}
