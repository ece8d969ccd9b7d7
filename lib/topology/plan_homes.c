/*
 * Which of the ranks with one mask go to which NUMA node: to the one next to their GPU while it has a core for each, then to
 * idle cores, of the GPU's package first. Where ranks outnumber cores, NUMA nodes are shared evenly. Ranks that may be on any of
 * several NUMA nodes spread over these, and have several for themselves if there are as many for each.
 */
#include <stdlib.h>

#include "lib/topology/mask.h"
#include "lib/topology/plan_pool.h"

/* How good a NUMA node is for a rank. */
enum { WANTED, IN_PACKAGE, ELSEWHERE, N_LEVELS };

bool fsdpi_pool_open(const fsdpi_planning *plan, fsdpi_pool *pool)
{
    const size_t n = plan->n, n_numas = plan->node->n_numas + 1, n_cores = plan->node->n_cores + 1;
    size_t      *sizes = malloc((3 * n + 2 * n_numas + 3 * n_cores) * sizeof *sizes);
    int         *ints  = malloc(2 * n * sizeof *ints);

    *pool = (fsdpi_pool){.plan = plan, .members = sizes, .homes = ints};
    if (sizes == NULL || ints == NULL) {
        fsdpi_pool_close(pool);
        return false;
    }
    pool->parts  = sizes + n;
    pool->room   = pool->parts + 2 * n;
    pool->users  = pool->room + n_numas;
    pool->cores  = pool->users + n_numas;
    pool->starts = pool->cores + n_cores;
    pool->counts = pool->starts + n_cores;
    pool->kinds  = ints + n;
    return true;
}

void fsdpi_pool_close(fsdpi_pool *pool)
{
    free(pool->members);
    free(pool->homes);
}

/* ---- what is there ----------------------------------------------------------------------------------------------- */

/* Cores that are on no NUMA node, or on several, count as one more. */
static size_t numa_of(const fsdp_node *node, size_t core)
{
    return node->cores[core].numa >= 0 ? (size_t)node->cores[core].numa : node->n_numas;
}

static void count_room(fsdpi_pool *pool)
{
    const fsdp_node *node = pool->plan->node;

    for (size_t m = 0; m <= node->n_numas; m++) {
        pool->room[m] = pool->users[m] = 0;
    }
    for (size_t c = 0; c < node->n_cores; c++) {
        pool->room[numa_of(node, c)] += fsdpi_mask_meets(&node->cores[c].threads, &pool->free);
    }
}

static int package_of(const fsdp_node *node, size_t numa)
{
    return numa < node->n_numas ? node->numas[numa].package : -1;
}

static int level_of(const fsdpi_pool *pool, size_t rank, size_t numa)
{
    const fsdp_node *node = pool->plan->node;
    const int        g    = pool->plan->places[rank].gpu;
    const fsdp_gpu  *gpu  = g >= 0 && !fsdpi_mask_is_empty(&node->gpus[g].threads) ? &node->gpus[g] : NULL;

    if (gpu == NULL) {
        return WANTED;
    }
    const fsdp_mask near = fsdpi_numa_threads(node, gpu);
    if (numa < node->n_numas && fsdpi_mask_meets(&near, &node->numas[numa].threads)) {
        return WANTED;
    }
    return gpu->package >= 0 && package_of(node, numa) == gpu->package ? IN_PACKAGE : ELSEWHERE;
}

/* The level of the best NUMA node that has any core for this rank. */
static int best_level(const fsdpi_pool *pool, size_t rank)
{
    int best = ELSEWHERE;

    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        const int level = pool->room[m] > 0 ? level_of(pool, rank, m) : ELSEWHERE;

        best = level < best ? level : best;
    }
    return best;
}

static size_t count_wanted(const fsdpi_pool *pool, size_t rank)
{
    const int best  = best_level(pool, rank);
    size_t    count = 0;

    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        count += pool->room[m] > 0 && level_of(pool, rank, m) == best;
    }
    return count;
}

static bool want_the_same(const fsdpi_pool *pool, size_t a, size_t b)
{
    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        if (pool->room[m] > 0 && level_of(pool, a, m) != level_of(pool, b, m)) {
            return false;
        }
    }
    return true;
}

static void find_kinds(fsdpi_pool *pool)
{
    for (size_t i = 0; i < pool->n; i++) {
        size_t k = 0;

        while (k < i && (pool->kinds[k] != (int)k || !want_the_same(pool, pool->members[k], pool->members[i]))) {
            k++;
        }
        pool->kinds[i] = (int)k;
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
        users += package_of(node, m) == package_of(node, numa) ? pool->users[m] : 0;
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
    choice best  = {.level = N_LEVELS};
    int    found = -1;

    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        const choice here = {.level      = level_of(pool, rank, m),
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
            pool->homes[i] = find_home(pool, rank, is_any ? ELSEWHERE : best_level(pool, rank), turn >= CROWDED);
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

        keys[i] = (size_t)level_of(pool, pool->members[i], home) * n_numas + home;
        for (size_t j = i, before = i; before-- > 0;) {
            if (pool->kinds[before] != pool->kinds[i]) {
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

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static void add_region(const fsdpi_pool *pool, size_t numa, fsdp_mask *region)
{
    const fsdp_node *node = pool->plan->node;

    for (size_t c = 0; c < node->n_cores; c++) {
        if (numa_of(node, c) == numa) {
            const fsdp_mask part = fsdpi_mask_both(&node->cores[c].threads, &pool->free);
            fsdpi_mask_include(region, &part);
        }
    }
}

static void find_regions(fsdpi_pool *pool)
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

/* The NUMA nodes that only ranks of this kind are on, or nobody is, and how many ranks those are; 0: others are in between. */
static size_t list_own(const fsdpi_pool *pool, size_t kind, size_t *n_members)
{
    const size_t rank = pool->members[kind];
    const int    best = best_level(pool, rank);
    size_t       n = 0, inside = 0;

    *n_members = 0;
    for (size_t i = 0; i < pool->n; i++) {
        *n_members += pool->kinds[i] == (int)kind;
    }
    for (size_t m = 0; m <= pool->plan->node->n_numas; m++) {
        size_t users = 0;

        for (size_t i = 0; i < pool->n; i++) {
            users += pool->kinds[i] == (int)kind && pool->homes[i] == (int)m;
        }
        if (pool->room[m] > 0 && users == pool->users[m] && level_of(pool, rank, m) == best) {
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
        const int  first = package_of(node, pool->starts[at]), last = package_of(node, pool->starts[at + each - 1]);
        const bool begins = at == 0 || package_of(node, pool->starts[at - 1]) != first;
        const bool ends   = at + each == n || package_of(node, pool->starts[at + each]) != last;

        if (first == last || (begins && ends)) {
            pool->cores[slots++] = at;
            at += each;
        } else {
            at++;
        }
    }
    return slots;
}

/* Ranks of one kind that are fewer than their NUMA nodes have several of them each, as many as all others. */
static void give_whole_numas(fsdpi_pool *pool, size_t kind)
{
    size_t       n_members, slots = 0;
    const size_t n    = list_own(pool, kind, &n_members);
    size_t       each = n / n_members, j = 0;

    while (each > 1 && (slots = find_slots(pool, n, each)) < n_members) {
        each--;
    }
    for (size_t i = kind; each > 1 && i < pool->n; i++) {
        if (pool->kinds[i] == (int)kind) {
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

void fsdpi_pool_settle(fsdpi_pool *pool)
{
    count_room(pool);
    find_kinds(pool);
    find_homes(pool);
    order_homes(pool);
    find_regions(pool);
    for (size_t i = 0; i < pool->n; i++) {
        if (pool->kinds[i] == (int)i) {
            give_whole_numas(pool, i);
        }
    }
}
