/*
 * What holds on any node, for any number of ranks: held against what is computed here from the places alone.
 *
 *   test_topology_every_node FOLDER   plans on each of its *.xml
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/topology/nodes.h"
#include "tests/support/mpi_test.h"

enum { MANY = 512 };

static const char      *folder;
static const fsdp_node *node;
static fsdp_local_rank  ranks[MANY];
static fsdp_place       places[MANY];
static size_t           n_ranks;

/* ---- masks ------------------------------------------------------------------------------------------------------- */

static bool meet(const fsdp_mask *a, const fsdp_mask *b)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        if ((a->word[w] & b->word[w]) != 0) {
            return true;
        }
    }
    return false;
}

/* Whether all of a domain that is in the mask is in `part`. */
static bool has_all(const fsdp_mask *part, const fsdp_mask *domain, const fsdp_mask *mask)
{
    for (int w = 0; w < FSDP_MASK_WORDS; w++) {
        if ((domain->word[w] & mask->word[w] & ~part->word[w]) != 0) {
            return false;
        }
    }
    return true;
}

static size_t count(const fsdp_domain *domains, size_t n, const fsdp_mask *threads)
{
    size_t touched = 0;

    for (size_t i = 0; i < n; i++) {
        touched += meet(&domains[i].threads, threads);
    }
    return touched;
}

/* ---- what is wrong with a place ---------------------------------------------------------------------------------- */

static bool meets_another(size_t rank, const fsdp_mask *threads)
{
    for (size_t q = 0; q < n_ranks; q++) {
        if (q != rank && meet(&places[q].threads, threads)) {
            return true;
        }
    }
    return false;
}

static bool is_cut(size_t rank, const fsdp_domain *domains, size_t n)
{
    bool cut = false;

    for (size_t i = 0; i < n; i++) {
        cut = cut || (meet(&domains[i].threads, &places[rank].threads) &&
                      (meets_another(rank, &domains[i].threads) ||
                       !has_all(&places[rank].threads, &domains[i].threads, &ranks[rank].threads)));
    }
    return cut && count(domains, n, &places[rank].threads) > 1;
}

static bool shares_gpu(size_t rank)
{
    for (size_t q = 0; q < n_ranks; q++) {
        if (q != rank && places[rank].gpu >= 0 && places[q].gpu == places[rank].gpu) {
            return true;
        }
    }
    return false;
}

static bool is_remote(size_t rank)
{
    const fsdp_gpu *gpu = places[rank].gpu >= 0 ? &node->gpus[places[rank].gpu] : NULL;

    return gpu != NULL && count(&(fsdp_domain){.threads = gpu->threads}, 1, &node->threads) > 0 &&
           !meet(gpu->numa >= 0 ? &node->numas[gpu->numa].threads : &gpu->threads, &places[rank].threads);
}

static int fastest_of(size_t rank, bool slowest)
{
    int kind = -1;

    for (size_t c = 0; c < node->n_cores; c++) {
        if (meet(&node->cores[c].threads, &places[rank].threads) &&
            (kind < 0 || (slowest ? node->cores[c].kind > kind : node->cores[c].kind < kind))) {
            kind = node->cores[c].kind;
        }
    }
    return kind;
}

static bool is_slower(size_t rank)
{
    bool slower = false;

    for (size_t q = 0; q < n_ranks; q++) {
        slower = slower || fastest_of(rank, true) > fastest_of(q, false);
    }
    return slower;
}

static void assert_told(size_t rank, unsigned deviation, bool is_so)
{
    if (((places[rank].deviations & deviation) != 0) != is_so) {
        print_error("rank %zu of %zu: '%s' is told %s: %s\n", rank, n_ranks,
                    fsdp_deviation_name((fsdp_deviation)deviation), is_so ? "not" : "falsely",
                    places[rank].cores_reason);
        fail();
    }
}

static void check_deviations(size_t rank)
{
    const size_t numas = count(node->numas, node->n_numas, &places[rank].threads);

    assert_told(rank, FSDP_OVERLAPPING_CORES, meets_another(rank, &places[rank].threads));
    assert_told(rank, FSDP_SHARED_GPU, shares_gpu(rank));
    assert_told(rank, FSDP_REMOTE_GPU, is_remote(rank));
    assert_told(rank, FSDP_CROSSES_CACHE, is_cut(rank, node->caches, node->n_caches));
    assert_told(rank, FSDP_CROSSES_NUMA,
                is_cut(rank, node->numas, node->n_numas) || (numas > 1 && n_ranks >= node->n_numas));
    assert_told(rank, FSDP_SLOWER_CORES, is_slower(rank));
}

/* ---- what must hold ---------------------------------------------------------------------------------------------- */

static bool is_idle(const fsdp_domain *core)
{
    for (size_t q = 0; q < n_ranks; q++) {
        if (meet(&core->threads, &places[q].threads)) {
            return false;
        }
    }
    return true;
}

/* Nobody shares cores while any that it may use is idle. */
static void check_idle_cores(size_t rank)
{
    for (size_t c = 0; c < node->n_cores && meets_another(rank, &places[rank].threads); c++) {
        assert_false(meet(&node->cores[c].threads, &ranks[rank].threads) && is_idle(&node->cores[c]));
    }
}

static void check_places(bool has_one_mask)
{
    for (size_t r = 0; r < n_ranks; r++) {
        const fsdp_mask *mask = &ranks[r].threads;

        assert_true(fsdp_mask_count(&places[r].threads) > 0);
        assert_true(has_all(mask, &places[r].threads, &node->threads));
        assert_false(has_one_mask && n_ranks <= count(node->cores, node->n_cores, mask) &&
                     meets_another(r, &places[r].threads));
        assert_true(!has_one_mask || places[r].numa >= 0 || n_ranks < node->n_numas);
        check_idle_cores(r);
        check_deviations(r);
    }
}

/* All cores for all; one NUMA node's; every other rank that; one GPU for all, with all cores. */
enum { ALL, ONE_NUMA, MIXED, ONE_GPU, N_WAYS };

static void check_plan(size_t n, int way)
{
    memset(ranks, 0, n * sizeof *ranks);
    n_ranks = n;
    for (size_t r = 0; r < n; r++) {
        ranks[r].rank      = (int)r;
        ranks[r].n_visible = ranks[r].device = -1;
        ranks[r].threads = way == ONE_NUMA || (way == MIXED && r % 2 == 1) ? node->numas[0].threads : node->threads;
        if (way == ONE_GPU && node->n_gpus > 0) {
            show_gpu(node, &ranks[r], 0);
        }
    }
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, n, places));
    check_places(way != MIXED);
}

static void check_node(void)
{
    const size_t cores   = node->n_cores;
    const size_t more[]  = {cores / 2, cores - 1, cores, cores + 1, cores * 3 / 2, 2 * cores};
    const size_t n_more  = sizeof more / sizeof more[0];
    const size_t at_most = 13;

    for (int way = 0; way < N_WAYS; way++) {
        for (size_t n = 1; n <= at_most; n++) {
            check_plan(n, way);
        }
        for (size_t i = 0; i < n_more; i++) {
            if (more[i] > at_most && more[i] <= MANY) {
                check_plan(more[i], way);
            }
        }
    }
}

static bool is_node(const char *name)
{
    return strlen(name) > 4 && strcmp(name + strlen(name) - 4, ".xml") == 0;
}

static void no_core_is_shared_while_another_is_idle_and_every_deviation_is_told(void **state)
{
    DIR *open    = opendir(folder);
    int  n_nodes = 0;

    (void)state;
    assert_non_null(open);
    for (struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        char           path[1024];
        fsdp_topology *topology;

        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (is_node(entry->d_name)) {
            print_message("%s\n", entry->d_name);
            assert_int_equal(FSDP_OK, fsdp_topology_open(path, &topology));
            node = fsdp_topology_node(topology);
            check_node();
            fsdp_topology_close(topology);
            n_nodes++;
        }
    }
    (void)closedir(open);
    assert_true(n_nodes >= 8);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_core_is_shared_while_another_is_idle_and_every_deviation_is_told),
    };
    DIR *found;

    folder = argc > 1 ? argv[1] : ".";
    found  = opendir(folder);
    if (found == NULL) {
        printf("skipped: there are no nodes in %s\n", folder);
        return FSDP_TEST_SKIPPED;
    }
    (void)closedir(found);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
