/* Ranks with one mask: what they have room for, and how good each NUMA node is for each of them. */
#include "lib/topology/plan_pool.h"

#include <stdlib.h>

#include "lib/topology/mask.h"

bool fsdpi_pool_open(const fsdpi_planning *plan, fsdpi_pool *pool)
{
    const size_t n = plan->n, n_numas = plan->node->n_numas + 1, n_cores = plan->node->n_cores + 1;
    size_t      *sizes = malloc((2 * n + 2 * n_numas + 3 * n_cores) * sizeof *sizes);
    int         *ints  = malloc(2 * n * sizeof *ints);

    *pool = (fsdpi_pool){.plan = plan, .members = sizes, .homes = ints};
    if (sizes == NULL || ints == NULL) {
        fsdpi_pool_close(pool);
        return false;
    }
    pool->parts  = sizes + n;
    pool->room   = pool->parts + n;
    pool->users  = pool->room + n_numas;
    pool->cores  = pool->users + n_numas;
    pool->starts = pool->cores + n_cores;
    pool->counts = pool->starts + n_cores;
    pool->alike  = ints + n;
    return true;
}

void fsdpi_pool_close(fsdpi_pool *pool)
{
    free(pool->members);
    free(pool->homes);
}

size_t fsdpi_pool_numa(const fsdp_node *node, size_t core)
{
    return node->cores[core].numa >= 0 ? (size_t)node->cores[core].numa : node->n_numas;
}

void fsdpi_pool_count_room(fsdpi_pool *pool)
{
    const fsdp_node *node = pool->plan->node;

    for (size_t m = 0; m <= node->n_numas; m++) {
        pool->room[m] = pool->users[m] = 0;
    }
    for (size_t c = 0; c < node->n_cores; c++) {
        pool->room[fsdpi_pool_numa(node, c)] += fsdpi_mask_meets(&node->cores[c].threads, &pool->free);
    }
}

int fsdpi_pool_package(const fsdp_node *node, size_t numa)
{
    return numa < node->n_numas ? node->numas[numa].package : -1;
}

int fsdpi_pool_level(const fsdpi_pool *pool, size_t rank, size_t numa)
{
    const fsdp_node *node = pool->plan->node;
    const int        g    = pool->plan->places[rank].gpu;
    const fsdp_gpu  *gpu  = g >= 0 && !fsdpi_mask_is_empty(&node->gpus[g].threads) ? &node->gpus[g] : NULL;

    if (gpu == NULL) {
        return FSDPI_WANTED;
    }
    const fsdp_mask near = fsdpi_numa_threads(node, gpu);
    if (numa < node->n_numas && fsdpi_mask_meets(&near, &node->numas[numa].threads)) {
        return FSDPI_WANTED;
    }
    return gpu->package >= 0 && fsdpi_pool_package(node, numa) == gpu->package ? FSDPI_IN_PACKAGE : FSDPI_ELSEWHERE;
}

int fsdpi_pool_best_level(const fsdpi_pool *pool, size_t rank)
{
    int best = FSDPI_ELSEWHERE;

    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        const int level = pool->room[m] > 0 ? fsdpi_pool_level(pool, rank, m) : FSDPI_ELSEWHERE;

        best = level < best ? level : best;
    }
    return best;
}
