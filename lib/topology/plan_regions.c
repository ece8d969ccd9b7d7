/* What each of the ranks with one mask divides, or has alone: the cores of its NUMA node, or of several whole ones. */
#include "lib/topology/mask.h"
#include "lib/topology/plan_pool.h"

static void add_region(const fsdpi_pool *pool, size_t numa, fsdp_mask *region)
{
    const fsdp_node *node = pool->plan->node;

    for (size_t c = 0; c < node->n_cores; c++) {
        if (fsdpi_pool_numa(node, c) == numa) {
            const fsdp_mask part = fsdpi_mask_both(&node->cores[c].threads, &pool->free);
            fsdpi_mask_include(region, &part);
        }
    }
}

static void give_numas(fsdpi_pool *pool)
{
    for (size_t i = 0; i < pool->n; i++) {
        fsdp_mask *region = &pool->plan->regions[pool->members[i]];
        size_t     same   = 0;

        while (same < i && pool->homes[same] != pool->homes[i]) {
            same++;
        }
        *region = same < i ? pool->plan->regions[pool->members[same]] : (fsdp_mask){{0}};
        if (same == i) {
            add_region(pool, (size_t)pool->homes[i], region);
        }
    }
}

/* Lists the NUMA nodes that ranks want as member `like` does, and nobody else is on; counts these ranks. 0: some of them are
   elsewhere. */
static size_t list_own(const fsdpi_pool *pool, size_t like, size_t *n_members)
{
    const size_t rank = pool->members[like];
    const int    best = fsdpi_pool_best_level(pool, rank);
    size_t       n = 0, inside = 0;

    *n_members = 0;
    for (size_t i = 0; i < pool->n; i++) {
        *n_members += pool->alike[i] == (int)like;
    }
    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        size_t users = 0;

        for (size_t i = 0; i < pool->n; i++) {
            users += pool->alike[i] == (int)like && pool->homes[i] == (int)m;
        }
        if (pool->room[m] > 0 && users == pool->users[m] && fsdpi_pool_level(pool, rank, m) == best) {
            pool->starts[n++] = m;
            inside += users;
        }
    }
    return inside == *n_members ? n : 0;
}

/* Where in the list `each` of them begin that are one package's, or are whole packages. */
static size_t find_slots(fsdpi_pool *pool, size_t n, size_t each)
{
    const fsdp_node *node  = pool->plan->node;
    size_t           slots = 0, at = 0;

    while (at + each <= n) {
        const int first   = fsdpi_pool_package(node, pool->starts[at]),
                  last    = fsdpi_pool_package(node, pool->starts[at + each - 1]);
        const bool begins = at == 0 || fsdpi_pool_package(node, pool->starts[at - 1]) != first;
        const bool ends   = at + each == n || fsdpi_pool_package(node, pool->starts[at + each]) != last;

        if (first == last || (begins && ends)) {
            pool->cores[slots++] = at;
            at += each;
        } else {
            at++;
        }
    }
    return slots;
}

/* Ranks that want the same NUMA nodes and are fewer than these have several each, all as many. */
static void give_whole_numas(fsdpi_pool *pool, size_t like)
{
    size_t       n_members, slots = 0;
    const size_t n    = list_own(pool, like, &n_members);
    size_t       each = n / n_members, j = 0;

    while (each > 1 && (slots = find_slots(pool, n, each)) < n_members) {
        each--;
    }
    for (size_t i = like; each > 1 && i < pool->n; i++) {
        if (pool->alike[i] == (int)like) {
            const size_t begin  = pool->cores[j++ * slots / n_members];
            fsdp_mask   *region = &pool->plan->regions[pool->members[i]];

            *region = (fsdp_mask){{0}};
            for (size_t m = begin; m < begin + each; m++) {
                add_region(pool, pool->starts[m], region);
                pool->users[pool->starts[m]] = 1;
            }
        }
    }
}

void fsdpi_pool_find_regions(fsdpi_pool *pool)
{
    give_numas(pool);
    for (size_t i = 0; i < pool->n; i++) {
        if (pool->alike[i] == (int)i) {
            give_whole_numas(pool, i);
        }
    }
}
