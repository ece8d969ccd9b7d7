/*
 * The planner on 1,000 random nodes. Held against what is computed here by other means: the most GPUs that can be in use at
 * once, by augmenting paths; and, where there are few ranks, all assignments there are.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"
#include "tests/lib/topology/nodes.h"
#include "tests/support/mpi_test.h"

enum { N_NODES = 1000, MANY = 16, MOST_GPUS = 16, MOST_CORES = 64, MOST_DOMAINS = 32, FEW = 4 };

typedef struct random_node {
    fsdp_node       node;
    fsdp_domain     packages[MOST_DOMAINS], numas[MOST_DOMAINS], caches[MOST_DOMAINS], cores[MOST_CORES];
    fsdp_gpu        gpus[MOST_GPUS];
    fsdp_link       links[MOST_GPUS * MOST_GPUS];
    fsdp_local_rank ranks[MOST_RANKS];
    size_t          n_ranks;
} random_node;

static uint64_t seed;

static unsigned draw(unsigned below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % below;
}

static void include(fsdp_mask *mask, const fsdp_mask *more)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        mask->word[w] |= more->word[w];
    }
}

static bool meet(const fsdp_mask *a, const fsdp_mask *b)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        if ((a->word[w] & b->word[w]) != 0) {
            return true;
        }
    }
    return false;
}

static bool is_within(const fsdp_mask *part, const fsdp_mask *whole)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        if ((part->word[w] & ~whole->word[w]) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void add_core(random_node *made, int package, int numa, int cache, int stride, int step)
{
    fsdp_node   *node = &made->node;
    const size_t c    = node->n_cores++;
    const int    pu   = (int)c * step;

    made->cores[c] = (fsdp_domain){.number = (int)c, .package = package, .numa = numa, .cache = cache};
    made->cores[c].threads.word[pu / 64] |= UINT64_C(1) << pu % 64;
    if (stride > 0) {
        const int second = pu + stride;
        made->cores[c].threads.word[second / 64] |= UINT64_C(1) << second % 64;
    }
    include(&made->caches[cache].threads, &made->cores[c].threads);
    include(&made->numas[numa].threads, &made->cores[c].threads);
    include(&made->packages[package].threads, &made->cores[c].threads);
    include(&node->threads, &made->cores[c].threads);
}

/* Packages, NUMA nodes in each, caches in each of these, cores: as many as there is room for. */
static void make_cores(random_node *made)
{
    fsdp_node     *node     = &made->node;
    const unsigned packages = 1 + draw(2), numas = 1 + draw(4), caches = 1 + draw(3), cores = 1 + draw(4);
    const int      step = 1 + (int)draw(2), stride = draw(2) == 0 ? 0 : step == 2 ? 1 : 100;

    for (unsigned p = 0; p < packages; p++) {
        made->packages[node->n_packages++] =
            (fsdp_domain){.number = (int)p, .package = (int)p, .numa = -1, .cache = -1};
        for (unsigned m = 0; m < numas; m++) {
            made->numas[node->n_numas] = (fsdp_domain){.number = (int)node->n_numas, .package = (int)p, .cache = -1};
            made->numas[node->n_numas].numa = (int)node->n_numas;
            node->n_numas++;
            for (unsigned k = 0; k < caches; k++) {
                made->caches[node->n_caches] = (fsdp_domain){.package = (int)p, .numa = (int)node->n_numas - 1};
                node->n_caches++;
                for (unsigned c = 0; c < cores && node->n_cores < MOST_CORES; c++) {
                    add_core(made, (int)p, (int)node->n_numas - 1, (int)node->n_caches - 1, stride, step);
                }
            }
        }
    }
}

static void make_gpu(random_node *made, size_t g)
{
    const fsdp_node *node = &made->node;
    fsdp_gpu        *gpu  = &made->gpus[g];
    const size_t     at   = draw((unsigned)node->n_caches);

    *gpu = (fsdp_gpu){.vendor = 0x1002, .package = -1, .numa = -1, .smi = -1};
    (void)snprintf(gpu->address, sizeof gpu->address, "0000:%02x:00.0", (unsigned)g + 16);
    switch (draw(6)) {
    case 0: /* nobody knows where it is */
        break;
    case 1: /* of a package */
        gpu->package = made->caches[at].package;
        gpu->threads = made->packages[gpu->package].threads;
        break;
    case 2:
    case 3: /* of a cache */
        gpu->threads = made->caches[at].threads;
        gpu->package = made->caches[at].package;
        gpu->numa    = made->caches[at].numa;
        break;
    default:
        gpu->package = made->caches[at].package;
        gpu->numa    = made->caches[at].numa;
        gpu->threads = made->numas[gpu->numa].threads;
        break;
    }
}

static void make_gpus(random_node *made)
{
    fsdp_node *node = &made->node;

    node->n_gpus = draw(MOST_GPUS + 1);
    for (size_t g = 0; g < node->n_gpus; g++) {
        make_gpu(made, g);
    }
    for (size_t i = 0; i < node->n_gpus * node->n_gpus; i++) {
        made->links[i] = draw(2) == 0 ? (fsdp_link){.hops = 0}
                                      : (fsdp_link){.type = FSDP_LINK_XGMI, .hops = 1, .max_bandwidth = 1000 * draw(4)};
    }
}

/* All of the node, one domain, or any cores; now and then with numbers that the machine does not have. */
static fsdp_mask make_mask(const random_node *made)
{
    const fsdp_node *node = &made->node;
    fsdp_mask        mask = made->cores[draw((unsigned)node->n_cores)].threads;

    switch (draw(5)) {
    case 0:
        return node->threads;
    case 1:
        return made->numas[made->cores[draw((unsigned)node->n_cores)].numa].threads;
    case 2:
        return made->caches[made->cores[draw((unsigned)node->n_cores)].cache].threads;
    case 3:
        mask.word[FSDP_MASK_WORDS - 1] = 1;
        break;
    default:
        for (unsigned i = draw(8); i > 0; i--) {
            include(&mask, &made->cores[draw((unsigned)node->n_cores)].threads);
        }
    }
    return mask;
}

static void make_visible(random_node *made, fsdp_local_rank *rank)
{
    const fsdp_node *node = &made->node;

    rank->n_visible = 0;
    for (size_t g = 0; g < node->n_gpus; g++) {
        if (draw(2) == 0) {
            memcpy(rank->visible[rank->n_visible++].address, made->gpus[g].address, sizeof made->gpus[g].address);
        }
    }
}

static void make_ranks_of(random_node *made)
{
    const bool one_mask = draw(2) == 0, few_visible = draw(3) == 0;

    made->n_ranks = 1 + draw(draw(2) == 0 ? FEW : MANY);
    for (size_t r = 0; r < made->n_ranks; r++) {
        fsdp_local_rank *rank = &made->ranks[r];

        *rank         = (fsdp_local_rank){.rank = (int)r, .n_visible = -1};
        rank->threads = one_mask && r > 0 ? made->ranks[0].threads : make_mask(made);
        if (few_visible) {
            make_visible(made, rank);
        }
    }
}

static void make_node(random_node *made, unsigned number)
{
    memset(made, 0, sizeof *made);
    seed                = number;
    made->node.packages = made->packages;
    made->node.numas    = made->numas;
    made->node.caches   = made->caches;
    made->node.cores    = made->cores;
    made->node.gpus     = made->gpus;
    made->node.links    = made->links;
    made->node.is_here  = 1;
    make_cores(made);
    make_gpus(made);
    make_ranks_of(made);
}

/* ---- what has to hold -------------------------------------------------------------------------------------------- */

static bool may_use(const random_node *made, size_t rank, size_t gpu)
{
    const fsdp_local_rank *r = &made->ranks[rank];

    for (int d = 0; d < r->n_visible; d++) {
        if (strcmp(r->visible[d].address, made->gpus[gpu].address) == 0) {
            return true;
        }
    }
    return r->n_visible < 0;
}

static bool augment(const random_node *made, size_t rank, int *user, bool *seen)
{
    for (size_t g = 0; g < made->node.n_gpus; g++) {
        if (!seen[g] && may_use(made, rank, g)) {
            seen[g] = true;
            if (user[g] < 0 || augment(made, (size_t)user[g], user, seen)) {
                user[g] = (int)rank;
                return true;
            }
        }
    }
    return false;
}

/* How many GPUs can be in use at once. */
static int most_in_use(const random_node *made)
{
    int user[MOST_GPUS], count = 0;

    for (size_t g = 0; g < MOST_GPUS; g++) {
        user[g] = -1;
    }
    for (size_t r = 0; r < made->n_ranks; r++) {
        bool seen[MOST_GPUS] = {false};
        count += augment(made, r, user, seen);
    }
    return count;
}

static void check_gpus(const random_node *made, const fsdp_place *places)
{
    int users[MOST_GPUS] = {0}, in_use = 0;

    for (size_t r = 0; r < made->n_ranks; r++) {
        bool can = false;

        for (size_t g = 0; g < made->node.n_gpus; g++) {
            can = can || may_use(made, r, g);
        }
        assert_int_equal(can, places[r].gpu >= 0);
        if (can) {
            assert_true(may_use(made, r, (size_t)places[r].gpu));
            users[places[r].gpu]++;
        }
    }
    for (size_t r = 0; r < made->n_ranks; r++) { /* never two on one while one of them could have an idle one */
        for (size_t g = 0; g < made->node.n_gpus; g++) {
            assert_false(places[r].gpu >= 0 && users[places[r].gpu] > 1 && users[g] == 0 && may_use(made, r, g));
        }
    }
    for (size_t g = 0; g < made->node.n_gpus; g++) {
        in_use += users[g] > 0;
    }
    assert_int_equal(most_in_use(made), in_use);
}

static void check_threads(const random_node *made, const fsdp_place *places)
{
    for (size_t r = 0; r < made->n_ranks; r++) {
        assert_true(fsdp_mask_count(&places[r].threads) > 0);
        assert_true(is_within(&places[r].threads, &made->ranks[r].threads));
        assert_true(is_within(&places[r].threads, &made->node.threads));
        if (places[r].spare >= 0) {
            assert_true(fsdp_mask_has(&made->ranks[r].threads, places[r].spare));
            assert_true(fsdp_mask_has(&made->numas[places[r].numa].threads, places[r].spare));
        }
        for (size_t q = 0; q < made->n_ranks; q++) {
            assert_false(places[r].spare >= 0 && fsdp_mask_has(&places[q].threads, places[r].spare));
            assert_false(q != r && places[r].spare >= 0 && places[r].spare == places[q].spare);
        }
    }
}

/* As a rank sees it: 0 where its mask reaches the GPU's NUMA node. */
static int is_remote(const random_node *made, size_t rank, size_t gpu)
{
    const fsdp_gpu *g = &made->gpus[gpu];

    return !meet(&made->ranks[rank].threads, g->numa >= 0 ? &made->numas[g->numa].threads : &g->threads);
}

/* Sharing first, then how many are not local: of one assignment. */
static long worth(const random_node *made, const int *gpu)
{
    long load[MOST_GPUS] = {0}, sharing = 0, remote = 0;

    for (size_t r = 0; r < made->n_ranks; r++) {
        if (gpu[r] >= 0) {
            sharing += 2 * load[gpu[r]]++;
            remote += is_remote(made, r, (size_t)gpu[r]);
        }
    }
    return sharing * 1000 + remote;
}

static long best_of_all(const random_node *made, int *gpu, size_t rank)
{
    long best = -1;

    if (rank == made->n_ranks) {
        return worth(made, gpu);
    }
    gpu[rank] = -1;
    for (size_t g = 0; g < made->node.n_gpus; g++) {
        if (may_use(made, rank, g)) {
            gpu[rank]       = (int)g;
            const long here = best_of_all(made, gpu, rank + 1);
            best            = best < 0 || here < best ? here : best;
        }
    }
    return gpu[rank] >= 0 ? best : best_of_all(made, gpu, rank + 1);
}

static void check_against_all_assignments(const random_node *made, const fsdp_place *places)
{
    int gpu[MOST_RANKS] = {0}, planned[MOST_RANKS] = {0};

    for (size_t r = 0; r < made->n_ranks; r++) {
        planned[r] = places[r].gpu;
    }
    assert_int_equal(best_of_all(made, gpu, 0), worth(made, planned));
}

/* ---- cores of their own ------------------------------------------------------------------------------------------ */

static bool find_core(const random_node *made, size_t rank, int *user, bool *seen)
{
    for (size_t c = 0; c < made->node.n_cores; c++) {
        if (!seen[c] && meet(&made->cores[c].threads, &made->ranks[rank].threads)) {
            seen[c] = true;
            if (user[c] < 0 || find_core(made, (size_t)user[c], user, seen)) {
                user[c] = (int)rank;
                return true;
            }
        }
    }
    return false;
}

/* Whether each rank could have a core of its own. */
static bool has_core_for_each(const random_node *made)
{
    int  user[MOST_CORES];
    bool has = true;

    for (size_t c = 0; c < MOST_CORES; c++) {
        user[c] = -1;
    }
    for (size_t r = 0; r < made->n_ranks && has; r++) {
        bool seen[MOST_CORES] = {false};
        has                   = find_core(made, r, user, seen);
    }
    return has;
}

static bool overlaps(const random_node *made, const fsdp_place *places, size_t rank)
{
    bool found = false;

    for (size_t q = 0; q < made->n_ranks; q++) {
        found = found || (q != rank && meet(&places[rank].threads, &places[q].threads));
    }
    return found;
}

static bool has_idle_core(const random_node *made, const fsdp_place *places, size_t rank)
{
    for (size_t c = 0; c < made->node.n_cores; c++) {
        bool idle = meet(&made->cores[c].threads, &made->ranks[rank].threads);

        for (size_t q = 0; q < made->n_ranks && idle; q++) {
            idle = !meet(&made->cores[c].threads, &places[q].threads);
        }
        if (idle) {
            return true;
        }
    }
    return false;
}

static random_node made;
static fsdp_place  places[MOST_RANKS];

static void plans_keep_within_masks_and_leave_no_gpu_idle(void **state)
{
    int n_small = 0;

    (void)state;
    for (unsigned number = 0; number < N_NODES; number++) {
        make_node(&made, number);
        assert_int_equal(FSDP_OK, fsdp_plan(&made.node, made.ranks, made.n_ranks, places));
        check_gpus(&made, places);
        check_threads(&made, places);
        if (made.n_ranks <= 3) {
            check_against_all_assignments(&made, places);
            n_small++;
        }
    }
    assert_true(n_small > N_NODES / 10);
}

static void no_core_is_shared_while_each_rank_could_have_one(void **state)
{
    int n_enough = 0, n_few = 0;

    (void)state;
    for (unsigned number = 0; number < N_NODES; number++) {
        make_node(&made, number);
        assert_int_equal(FSDP_OK, fsdp_plan(&made.node, made.ranks, made.n_ranks, places));
        const bool enough = has_core_for_each(&made);
        for (size_t r = 0; r < made.n_ranks; r++) {
            assert_false(enough && overlaps(&made, places, r));
            assert_false(overlaps(&made, places, r) && has_idle_core(&made, places, r));
            assert_int_equal(overlaps(&made, places, r), (places[r].deviations & FSDP_OVERLAPPING_CORES) != 0);
        }
        n_enough += enough;
        n_few += !enough;
    }
    assert_true(n_enough > N_NODES / 10 && n_few > N_NODES / 10);
}

/* Where ranks with one mask outnumber its cores, each is on one NUMA node, none of the cores is idle, and it is told. */
static void more_ranks_than_cores_share_numa_nodes(void **state)
{
    int n_few = 0;

    (void)state;
    for (unsigned number = 0; number < N_NODES; number++) {
        fsdp_mask used = {{0}};

        make_node(&made, number);
        for (size_t r = 1; r < made.n_ranks; r++) {
            made.ranks[r].threads = made.ranks[0].threads;
        }
        if (has_core_for_each(&made)) {
            continue;
        }
        assert_int_equal(FSDP_OK, fsdp_plan(&made.node, made.ranks, made.n_ranks, places));
        for (size_t r = 0; r < made.n_ranks; r++) {
            assert_true(places[r].numa >= 0);
            assert_true((places[r].deviations & FSDP_FEW_CORES) != 0);
            include(&used, &places[r].threads);
        }
        for (int w = 0; w < FSDP_MASK_WORDS; w++) {
            assert_true(used.word[w] == (made.ranks[0].threads.word[w] & made.node.threads.word[w]));
        }
        n_few++;
    }
    assert_true(n_few > N_NODES / 10);
}

static uint64_t hash_place(uint64_t hash, const fsdp_place *place)
{
    const int numbers[] = {place->gpu, place->device, place->numa, place->nic, place->spare, (int)place->deviations};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        hash = fsdpi_hash_u64(hash, (uint64_t)numbers[i]);
    }
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        hash = fsdpi_hash_u64(hash, place->threads.word[w]);
    }
    return fsdpi_hash_text(fsdpi_hash_text(hash, place->gpu_reason), place->cores_reason);
}

/* Whatever has been in their memory before. */
static void every_rank_plans_the_same(void **state)
{
    static uint64_t mine[N_NODES], of_rank_0[N_NODES];

    (void)state;
    for (unsigned number = 0; number < N_NODES; number++) {
        make_node(&made, number);
        memset(places, fsdp_test_rank() + 1, sizeof places);
        assert_int_equal(FSDP_OK, fsdp_plan(&made.node, made.ranks, made.n_ranks, places));
        mine[number] = FSDPI_HASH_START;
        for (size_t r = 0; r < made.n_ranks; r++) {
            mine[number] = hash_place(mine[number], &places[r]);
        }
    }
    memcpy(of_rank_0, mine, sizeof mine);
    MPI_Bcast(of_rank_0, N_NODES, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (unsigned number = 0; number < N_NODES; number++) {
        assert_true(of_rank_0[number] == mine[number]);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_keep_within_masks_and_leave_no_gpu_idle),
        cmocka_unit_test(no_core_is_shared_while_each_rank_could_have_one),
        cmocka_unit_test(more_ranks_than_cores_share_numa_nodes),
        cmocka_unit_test(every_rank_plans_the_same),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
