/*
 * Which of the ranks with one mask go to which NUMA node: to the one next to their GPU while it has a core for each, then to
 * idle cores, of the GPU's package first. Where ranks outnumber cores, NUMA nodes are shared evenly. Ranks that may be on any of
 * several NUMA nodes spread over these, and have several for themselves if there are as many for each.
 */
#include "lib/topology/plan_pool.h"

static size_t count_wanted(const fsdpi_pool *pool, size_t rank)
{
    const int best  = fsdpi_pool_best_level(pool, rank);
    size_t    count = 0;

    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        count += pool->room[m] > 0 && fsdpi_pool_level(pool, rank, m) == best;
    }
    return count;
}

static bool want_the_same(const fsdpi_pool *pool, size_t a, size_t b)
{
    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        if (pool->room[m] > 0 && fsdpi_pool_level(pool, a, m) != fsdpi_pool_level(pool, b, m)) {
            return false;
        }
    }
    return true;
}

static void find_alike(fsdpi_pool *pool)
{
    for (size_t i = 0; i < pool->n; i++) {
        size_t k = 0;

        while (k < i && (pool->alike[k] != (int)k || !want_the_same(pool, pool->members[k], pool->members[i]))) {
            k++;
        }
        pool->alike[i] = (int)k;
    }
}

/* ---- a NUMA node for each ---------------------------------------------------------------------------------------- */

typedef struct choice {
    int    level;
    size_t room, users, in_package; /* with this rank */
} choice;

static bool is_better(const choice *a, const choice *b)
{
    const size_t rooms = a->room * b->users, others = b->room * a->users;

    if (a->level != b->level) {
        return a->level < b->level;
    }
    return rooms != others ? rooms > others : a->in_package < b->in_package;
}

static size_t users_in_package(const fsdpi_pool *pool, size_t numa)
{
    const fsdp_node *node  = pool->plan->node;
    size_t           users = 0;

    for (size_t m = 0; m <= node->n_numas; m++) {
        users += fsdpi_pool_package(node, m) == fsdpi_pool_package(node, numa) ? pool->users[m] : 0;
    }
    return users;
}

/* How many ranks a NUMA node is for: one for each core, or as many per core as everywhere. */
static size_t limit_of(const fsdpi_pool *pool, size_t numa, bool crowded)
{
    size_t total = 0;

    for (size_t m = 0; crowded && m <= pool->plan->node->n_numas; m++) {
        total += pool->room[m];
    }
    return crowded ? (pool->n * pool->room[numa] + total - 1) / total : pool->room[numa];
}

/* The best NUMA node, no worse than `worst`, that is not full; -1: none. */
static int find_home(const fsdpi_pool *pool, size_t rank, int worst, bool crowded)
{
    choice best  = {.level = FSDPI_N_LEVELS};
    int    found = -1;

    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        const choice here = {.level      = fsdpi_pool_level(pool, rank, m),
                             .room       = pool->room[m],
                             .users      = pool->users[m] + 1,
                             .in_package = users_in_package(pool, m)};

        if (here.room > 0 && here.level <= worst && here.users <= limit_of(pool, m, crowded) &&
            (found < 0 || is_better(&here, &best))) {
            found = (int)m;
            best  = here;
        }
    }
    return found;
}

/* Who may only be on one NUMA node comes first, then who has a choice, then who finds what it wants full; the same again where
   ranks share cores. */
static void find_homes(fsdpi_pool *pool)
{
    enum { ONE, SEVERAL, ANY, CROWDED, CROWDED_ANY, N_TURNS };

    for (size_t i = 0; i < pool->n; i++) {
        pool->homes[i] = -1;
    }
    for (int turn = ONE; turn < N_TURNS; turn++) {
        for (size_t i = 0; i < pool->n; i++) {
            const size_t rank   = pool->members[i];
            const bool   is_any = turn == ANY || turn == CROWDED_ANY;

            if (pool->homes[i] >= 0 || (turn == ONE && count_wanted(pool, rank) > 1)) {
                continue;
            }
            pool->homes[i] =
                find_home(pool, rank, is_any ? FSDPI_ELSEWHERE : fsdpi_pool_best_level(pool, rank), turn >= CROWDED);
            if (pool->homes[i] >= 0) {
                pool->users[pool->homes[i]]++;
            }
        }
    }
}

/* Of ranks that want the same, neighbours are side by side and the last ones are those that are further away. */
static void order_homes(fsdpi_pool *pool)
{
    const size_t n_numas = pool->plan->node->n_numas + 1;
    size_t      *keys    = pool->parts;

    for (size_t i = 0; i < pool->n; i++) {
        const size_t home = (size_t)pool->homes[i];

        keys[i] = (size_t)fsdpi_pool_level(pool, pool->members[i], home) * n_numas + home;
        for (size_t j = i, before = i; before-- > 0;) {
            if (pool->alike[before] != pool->alike[i]) {
                continue;
            }
            if (keys[before] <= keys[j]) {
                break;
            }
            const size_t key = keys[j];
            keys[j]          = keys[before];
            keys[before]     = key;
            j                = before;
        }
    }
    for (size_t i = 0; i < pool->n; i++) {
        pool->homes[i] = (int)(keys[i] % n_numas);
    }
}

void fsdpi_pool_settle(fsdpi_pool *pool)
{
    fsdpi_pool_count_room(pool);
    find_alike(pool);
    find_homes(pool);
    order_homes(pool);
    fsdpi_pool_find_regions(pool);
}
