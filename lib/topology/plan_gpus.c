/*
 * Which rank gets which GPU. First every rank wishes for one, so that the ranks are spread over the node and neighbours
 * are linked; then an assignment (assign.c) makes of the wishes what shares no GPU while another is idle and has the
 * fewest ranks far from theirs.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/topology/mask.h"
#include "lib/topology/plan.h"

/*
 * What a distance costs, where one rank's wish is worth 1. Ranks are 4096 at most: all of them at one line cost less than
 * one of them at the next, and how many are remote comes before how far they are.
 */
static const int64_t COST_OF_DISTANCE[] = {
    [FSDPI_NEAREST]          = 0,
    [FSDPI_SAME_NUMA]        = INT64_C(1) << 13,
    [FSDPI_DISTANCE_UNKNOWN] = INT64_C(1) << 41,
    [FSDPI_SAME_PACKAGE]     = (INT64_C(1) << 41) + (INT64_C(1) << 26),
    [FSDPI_FAR]              = (INT64_C(1) << 41) + (INT64_C(1) << 27),
};

fsdp_mask fsdpi_numa_threads(const fsdp_node *node, const fsdp_gpu *gpu)
{
    return gpu->numa >= 0 ? node->numas[gpu->numa].threads : gpu->threads;
}

fsdpi_distance fsdpi_distance_to(const fsdp_node *node, const fsdp_mask *mask, const fsdp_gpu *gpu)
{
    const fsdp_mask numa = fsdpi_numa_threads(node, gpu);

    if (fsdpi_mask_is_empty(&gpu->threads)) {
        return FSDPI_DISTANCE_UNKNOWN;
    }
    if (fsdpi_mask_meets(mask, &gpu->threads)) {
        return FSDPI_NEAREST;
    }
    if (fsdpi_mask_meets(mask, &numa)) {
        return FSDPI_SAME_NUMA;
    }
    return gpu->package >= 0 && fsdpi_mask_meets(mask, &node->packages[gpu->package].threads) ? FSDPI_SAME_PACKAGE
                                                                                              : FSDPI_FAR;
}

/* How far two GPUs are from each other; equal where nothing is known. */
static int64_t link_cost(const fsdp_node *node, int from, int to)
{
    static const int64_t FAR = INT64_C(1) << 40;

    if (from == to || from < 0) {
        return 0;
    }
    const fsdp_link *link = &node->links[(size_t)from * node->n_gpus + (size_t)to];
    if (link->type != FSDP_LINK_XGMI && link->type != FSDP_LINK_NVLINK) {
        return FAR;
    }
    return FAR / 2 - (int64_t)(link->max_bandwidth < (1u << 30) ? link->max_bandwidth : (1u << 30)) * 256 +
           (int64_t)(link->weight + link->hops < 256 ? link->weight + link->hops : 255);
}

/* Less is better, and an earlier one decides before a later one. */
enum { N_KEYS = 7 };
typedef struct wish_key {
    int64_t key[N_KEYS];
} wish_key;

static bool is_better(const wish_key *a, const wish_key *b)
{
    for (int i = 0; i < N_KEYS; i++) {
        if (a->key[i] != b->key[i]) {
            return a->key[i] < b->key[i];
        }
    }
    return false;
}

/* What has been wished for so far. */
typedef struct wishes {
    const fsdpi_planning *plan;
    int                  *wish; /* of each rank; -1: none */
    int                   load[FSDP_MOST_GPUS];
} wishes;

/* How many wishes are for GPUs that share with this one what bounds their bandwidth. */
static void count_neighbours(const wishes *w, int gpu, wish_key *key)
{
    const fsdp_gpu *gpus = w->plan->node->gpus;

    key->key[2] = key->key[3] = key->key[4] = 0;
    for (size_t g = 0; g < w->plan->node->n_gpus; g++) {
        key->key[2] += strcmp(gpus[g].address, gpus[gpu].address) == 0 ? w->load[g] : 0;
        key->key[3] += gpus[g].numa == gpus[gpu].numa ? w->load[g] : 0;
        key->key[4] += gpus[g].package == gpus[gpu].package ? w->load[g] : 0;
    }
}

/* The best GPU for a rank, if `last` has gone to the one before it; -1: it may have none. */
static int best_gpu(const wishes *w, size_t rank, int last)
{
    const fsdpi_planning *plan  = w->plan;
    const fsdp_node      *node  = plan->node;
    wish_key              best  = {{0}};
    int                   found = -1;

    for (int g = 0; g < (int)node->n_gpus; g++) {
        wish_key key = {{w->load[g], (int64_t)fsdpi_distance_to(node, &plan->masks[rank], &node->gpus[g]), 0, 0, 0,
                         link_cost(node, last, g), plan->position[g]}};

        if (!plan->may_use[rank * node->n_gpus + (size_t)g]) {
            continue;
        }
        count_neighbours(w, g, &key);
        if (found < 0 || is_better(&key, &best)) {
            found = g;
            best  = key;
        }
    }
    return found;
}

static bool may_swap(const wishes *w, size_t a, size_t b)
{
    const size_t n = w->plan->node->n_gpus;

    return w->plan->may_use[a * n + (size_t)w->wish[b]] && w->plan->may_use[b * n + (size_t)w->wish[a]];
}

/* Ranks with one mask may have each other's GPUs: the first gets the first in the order of cores, the others what is
   nearest to the one before. */
static void order_wishes(wishes *w, size_t first)
{
    const fsdpi_planning *plan = w->plan;
    int                   last = -1;

    for (size_t r = first; r < plan->n; r++) {
        size_t best = r;

        if (plan->first[r] != (int)first || w->wish[r] < 0) {
            continue;
        }
        for (size_t q = r + 1; q < plan->n; q++) {
            if (plan->first[q] != (int)first || w->wish[q] < 0 || !may_swap(w, r, q)) {
                continue;
            }
            const int64_t mine = link_cost(plan->node, last, w->wish[best]);
            const int64_t its  = link_cost(plan->node, last, w->wish[q]);
            if (its < mine || (its == mine && plan->position[w->wish[q]] < plan->position[w->wish[best]])) {
                best = q;
            }
        }
        const int chosen = w->wish[best];
        w->wish[best]    = w->wish[r];
        w->wish[r]       = chosen;
        last             = chosen;
    }
}

static void wish_of(wishes *w, size_t rank)
{
    w->wish[rank] = best_gpu(w, rank, rank > 0 ? w->wish[rank - 1] : -1);
    if (w->wish[rank] >= 0) {
        w->load[w->wish[rank]]++;
    }
}

/* Ranks that can be nowhere else first. */
static void make_wishes(wishes *w)
{
    const fsdpi_planning *plan = w->plan;

    for (size_t r = 0; r < plan->n; r++) {
        w->wish[r] = -1;
    }
    for (size_t r = 0; r < plan->n; r++) {
        if (plan->sharers[r] == 1) {
            wish_of(w, r);
        }
    }
    for (size_t r = 0; r < plan->n; r++) {
        if (plan->sharers[r] > 1) {
            wish_of(w, r);
        }
    }
    for (size_t r = 0; r < plan->n; r++) {
        if (plan->sharers[r] > 1 && plan->first[r] == (int)r) {
            order_wishes(w, r);
        }
    }
}

bool fsdpi_plan_gpus(const fsdpi_planning *plan)
{
    const fsdp_node *node     = plan->node;
    int64_t         *costs    = malloc((plan->n * node->n_gpus + 1) * sizeof *costs);
    int             *wish     = malloc(2 * plan->n * sizeof *wish);
    int             *assigned = wish != NULL ? wish + plan->n : NULL;
    wishes           w        = {.plan = plan, .wish = wish};
    bool             ok       = costs != NULL && wish != NULL;

    if (ok) {
        make_wishes(&w);
        for (size_t r = 0; r < plan->n; r++) {
            for (size_t g = 0; g < node->n_gpus; g++) {
                const fsdpi_distance distance = fsdpi_distance_to(node, &plan->masks[r], &node->gpus[g]);

                costs[r * node->n_gpus + g] =
                    plan->may_use[r * node->n_gpus + g] ? COST_OF_DISTANCE[distance] + (wish[r] != (int)g) : -1;
            }
        }
        ok = fsdpi_assign(costs, plan->n, node->n_gpus, assigned);
    }
    for (size_t r = 0; ok && r < plan->n; r++) {
        plan->places[r].gpu = assigned[r];
    }
    free(costs);
    free(wish);
    return ok;
}
