/* Cores where they do not come out even: more ranks than there are beside a GPU, or in all; masks that are not the same. */
#include <string.h>

#include "tests/lib/topology/planned.h"
#include "tests/support/unit_test.h"

static bool meet(const fsdp_mask *a, const fsdp_mask *b)
{
    for (int thread = 0; thread < 128; thread++) {
        if (fsdp_mask_has(a, thread) && fsdp_mask_has(b, thread)) {
            return true;
        }
    }
    return false;
}

static void assert_apart(size_t n)
{
    for (size_t r = 0; r < n; r++) {
        assert_int_equal(0, places[r].deviations & FSDP_OVERLAPPING_CORES);
        for (size_t q = 0; q < r; q++) {
            assert_false(meet(&places[r].threads, &places[q].threads));
        }
    }
}

/* All of them on one GPU. */
static void plan_on_gpu(const char *const *masks, size_t n, int gpu)
{
    make_ranks(node, masks, n, ranks);
    for (size_t r = 0; r < n; r++) {
        show_gpu(node, &ranks[r], gpu);
    }
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, n, places));
}

/* The node that is open, without its GPUs. */
static void plan_without_gpus(const char *const *masks, size_t n)
{
    static fsdp_node bare;

    bare        = *node;
    bare.n_gpus = 0;
    make_ranks(node, masks, n, ranks);
    assert_int_equal(FSDP_OK, fsdp_plan(&bare, ranks, n, places));
}

/* ---- more ranks than cores beside a GPU -------------------------------------------------------------------------- */

/* GPU 4 is next to NUMA node 0, which has 4 cores. */
static void one_rank_too_many_takes_idle_cores_of_the_package(void **state)
{
    static const char *const THREADS[] = {"0,16", "1,17", "2,18", "3,19", "4-7,20-23"};

    (void)state;
    open_on("eight_gpus.xml");
    plan_on_gpu(NULL, 5, 4);
    assert_apart(5);
    for (int r = 0; r < 5; r++) {
        assert_true(mask_is(&places[r].threads, THREADS[r]));
        assert_int_equal(r < 4 ? 0 : FSDP_REMOTE_GPU, places[r].deviations & ~(unsigned)FSDP_SHARED_GPU);
    }
    assert_string_equal("part 4 of 4 of the 4 cores of NUMA node 0, next to its GPU", places[3].cores_reason);
    assert_string_equal("the 4 cores of NUMA node 1; those next to its GPU are taken", places[4].cores_reason);
    assert_int_equal(1, places[4].numa);
}

/* The first of two packages has 4 NUMA nodes of 3 cores; GPU 0 is next to the second of these. */
static void the_package_comes_before_the_rest_of_the_node(void **state)
{
    (void)state;
    open_on("four_of_eight.xml");
    plan_on_gpu(NULL, 12, 0);
    assert_apart(12);
    for (int r = 0; r < 12; r++) {
        assert_int_equal(0, node->numas[places[r].numa].package);
        assert_int_equal(r < 3, places[r].numa == 1);
    }
    plan_on_gpu(NULL, 13, 0);
    assert_apart(13);
    assert_int_equal(1, node->numas[places[12].numa].package);
}

static void ranks_with_a_mask_far_from_their_gpu_divide_it(void **state)
{
    static const char *const MASKS[] = {"0-2,9-11", "0-2,9-11", "0-2,9-11"};

    (void)state;
    open_on("four_of_eight.xml");
    plan_on_gpu(MASKS, 3, 0);
    assert_apart(3);
    assert_true(mask_is(&places[0].threads, "0"));
    assert_true(mask_is(&places[1].threads, "1"));
    assert_true(mask_is(&places[2].threads, "9-11"));
    for (int r = 0; r < 3; r++) {
        assert_true((places[r].deviations & FSDP_MASKED_GPU) != 0);
        assert_non_null(strstr(places[r].cores_reason, "; no core next to its GPU is in its mask"));
    }
}

/* ---- more ranks than cores --------------------------------------------------------------------------------------- */

static void three_ranks_for_two_cores_share_the_numa_node(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    plan(NULL, 24);
    for (int r = 0; r < 24; r++) {
        assert_int_equal(8, fsdp_mask_count(&places[r].threads));
        assert_int_equal(node->gpus[places[r].gpu].numa, places[r].numa);
        assert_int_equal(FSDP_FEW_CORES | FSDP_OVERLAPPING_CORES | FSDP_SHARED_GPU,
                         places[r].deviations & ~(unsigned)FSDP_CROSSES_CACHE);
        assert_non_null(strstr(places[r].cores_reason, "shared by 6 ranks: there are more ranks than cores"));
        assert_int_equal(-1, places[r].spare);
    }
}

/* They fill what is idle before they share. */
static void ranks_of_one_gpu_are_even_on_all_numa_nodes(void **state)
{
    int users[4] = {0};

    (void)state;
    open_on("eight_gpus.xml");
    plan_on_gpu(NULL, 24, 4);
    for (int r = 0; r < 24; r++) {
        assert_int_equal(8, fsdp_mask_count(&places[r].threads));
        users[places[r].numa]++;
    }
    for (int m = 0; m < 4; m++) {
        assert_int_equal(6, users[m]);
    }
}

static void a_laptop_is_shared_as_a_whole(void **state)
{
    (void)state;
    open_on("laptop.xml");
    plan(NULL, 5);
    for (int r = 0; r < 5; r++) {
        assert_true(mask_is(&places[r].threads, "0-3"));
        assert_int_equal(-1, places[r].spare);
        assert_int_equal(FSDP_FEW_CORES | FSDP_OVERLAPPING_CORES, places[r].deviations);
        assert_string_equal("the 4 cores of NUMA node 0, shared by 5 ranks: there are more ranks than cores",
                            places[r].cores_reason);
    }
}

/* ---- masks that are not the same --------------------------------------------------------------------------------- */

static void a_wider_mask_leaves_the_narrower_one_its_cores(void **state)
{
    static const char *const MASKS[] = {"0-3", "0-1"};

    (void)state;
    open_on("laptop.xml");
    plan(MASKS, 2);
    assert_true(mask_is(&places[0].threads, "2-3"));
    assert_true(mask_is(&places[1].threads, "0-1"));
    assert_string_equal("the part of its own mask that is left by ranks with other masks", places[0].cores_reason);
    assert_string_equal("its own mask, as launched", places[1].cores_reason);
}

/* Three with one mask need one of the two cores that the first may use. */
static void a_narrower_mask_leaves_a_wider_one_a_core_for_each(void **state)
{
    static const char *const MASKS[] = {"0-1", "0-3", "0-3", "0-3"};

    (void)state;
    open_on("laptop.xml");
    plan(MASKS, 4);
    assert_apart(4);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(1, fsdp_mask_count(&places[r].threads));
    }
}

/* Each may have two of three cores, so that none may take both. */
static void masks_in_a_ring_have_a_core_each(void **state)
{
    static const char *const MASKS[] = {"0-1", "1-2", "0,2"};

    (void)state;
    open_on("laptop.xml");
    plan(MASKS, 3);
    assert_apart(3);
}

/* ---- whole NUMA nodes and caches --------------------------------------------------------------------------------- */

/* Four NUMA nodes of 4 cores. */
static void three_ranks_have_a_numa_node_each(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    plan_without_gpus(NULL, 3);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(r, places[r].numa);
        assert_int_equal(8, fsdp_mask_count(&places[r].threads));
        assert_int_equal(0, places[r].deviations);
    }
    assert_string_equal("the 4 cores of NUMA node 2; 1 NUMA node stays idle, so that none is divided",
                        places[2].cores_reason);
}

static void two_ranks_have_two_numa_nodes_each(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    plan_without_gpus(NULL, 2);
    assert_true(mask_is(&places[0].threads, "0-7,16-23"));
    assert_true(mask_is(&places[1].threads, "8-15,24-31"));
    assert_int_equal(0, places[0].deviations | places[1].deviations);
    assert_string_equal("the 8 cores of 2 NUMA nodes", places[0].cores_reason);
}

/* Two packages of 4 NUMA nodes: two of them each are one package's. */
static void numa_nodes_of_one_rank_are_of_one_package(void **state)
{
    static const char *const THREADS[] = {"0-5", "6-11", "12-17"};

    (void)state;
    open_on("four_of_eight.xml");
    plan_without_gpus(NULL, 3);
    for (int r = 0; r < 3; r++) {
        assert_true(mask_is(&places[r].threads, THREADS[r]));
        assert_int_equal(0, places[r].deviations);
    }
}

static void six_ranks_on_four_numa_nodes_cut_none(void **state)
{
    static const char *const THREADS[] = {"0-1,16-17", "2-3,18-19",  "4-5,20-21",
                                          "6-7,22-23", "8-11,24-27", "12-15,28-31"};

    (void)state;
    open_on("eight_gpus.xml");
    plan_without_gpus(NULL, 6);
    for (int r = 0; r < 6; r++) {
        assert_true(mask_is(&places[r].threads, THREADS[r]));
        assert_int_equal(0, places[r].deviations);
    }
}

/* Caches of 2 cores each. */
static void caches_are_not_cut_where_that_costs_little(void **state)
{
    static const char *const MASKS[] = {"0-3,16-19", "0-3,16-19", "0-3,16-19"};

    (void)state;
    open_on("eight_gpus.xml");
    plan_without_gpus(MASKS, 3);
    assert_true(mask_is(&places[0].threads, "0,16"));
    assert_true(mask_is(&places[1].threads, "1,17"));
    assert_true(mask_is(&places[2].threads, "2-3,18-19"));
    assert_int_equal(0, places[0].deviations | places[1].deviations | places[2].deviations);
}

/* NUMA node 0 has two caches, next to GPUs 4 and 5: whoever has the one that is not shared has all of its cache. */
static void ranks_of_a_gpu_share_the_cache_beside_it(void **state)
{
    static const int         GPUS[]    = {4, 5, 5};
    static const char *const THREADS[] = {"0-1,16-17", "2,18", "3,19"};

    (void)state;
    open_on("eight_gpus.xml");
    make_ranks(node, NULL, 3, ranks);
    for (int r = 0; r < 3; r++) {
        show_gpu(node, &ranks[r], GPUS[r]);
    }
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, 3, places));
    for (int r = 0; r < 3; r++) {
        assert_true(mask_is(&places[r].threads, THREADS[r]));
        assert_int_equal(0, places[r].deviations & ~(unsigned)FSDP_SHARED_GPU);
    }
}

/* Three caches of 2 cores: one each would leave a third of the cores idle. */
static void a_cut_cache_is_told(void **state)
{
    (void)state;
    open_on("three_caches.xml");
    plan(NULL, 2);
    assert_true(mask_is(&places[0].threads, "0-2"));
    assert_true(mask_is(&places[1].threads, "3-5"));
    assert_int_equal(FSDP_CROSSES_CACHE, places[0].deviations);
    assert_int_equal(FSDP_CROSSES_CACHE, places[1].deviations);
    plan(NULL, 3);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(2, fsdp_mask_count(&places[r].threads));
        assert_int_equal(0, places[r].deviations);
    }
}

/* ---- memory and kinds of cores ----------------------------------------------------------------------------------- */

static void nothing_is_planned_onto_memory_beside_the_main_one(void **state)
{
    (void)state;
    open_on("memories.xml");
    plan(NULL, 2);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(r, node->numas[places[r].numa].number);
        assert_int_equal(0, places[r].deviations);
        assert_int_equal(4, fsdp_mask_count(&places[r].threads));
    }
    assert_string_equal("NUMA node 1, as its cores; node 3 (HBM) beside it is left alone", places[1].memory_reason);
    plan(NULL, 4);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(r / 2, places[r].numa);
        assert_int_equal(0, places[r].deviations);
    }
}

/* 4 fast cores of two hardware threads and 8 slow ones of one. */
static void slow_cores_are_for_those_who_outnumber_the_fast_ones(void **state)
{
    (void)state;
    open_on("two_kinds.xml");
    plan(NULL, 2);
    assert_true(mask_is(&places[0].threads, "0-3"));
    assert_true(mask_is(&places[1].threads, "4-7"));
    assert_string_equal("part 1 of 2 of the 4 IntelCore cores of NUMA node 0", places[0].cores_reason);
    assert_int_equal(0, places[0].deviations | places[1].deviations);
    assert_int_equal(8, places[0].spare); /* for a progress thread */
    plan(NULL, 6);
    assert_apart(6);
    for (int r = 0; r < 6; r++) { /* 2 cores each, of one kind */
        assert_int_equal(r < 2 ? 4 : 2, fsdp_mask_count(&places[r].threads));
        assert_int_equal(r < 2 ? 0 : FSDP_SLOWER_CORES, places[r].deviations);
    }
    plan(NULL, 1);
    assert_true(mask_is(&places[0].threads, "0-15"));
    assert_int_equal(FSDP_SLOWER_CORES, places[0].deviations);
}

int main(void)
{
#define WITH_NODE(test) cmocka_unit_test_teardown(test, close_node)
    static const struct CMUnitTest tests[] = {
        WITH_NODE(one_rank_too_many_takes_idle_cores_of_the_package),
        WITH_NODE(the_package_comes_before_the_rest_of_the_node),
        WITH_NODE(ranks_with_a_mask_far_from_their_gpu_divide_it),
        WITH_NODE(three_ranks_for_two_cores_share_the_numa_node),
        WITH_NODE(ranks_of_one_gpu_are_even_on_all_numa_nodes),
        WITH_NODE(a_laptop_is_shared_as_a_whole),
        WITH_NODE(a_wider_mask_leaves_the_narrower_one_its_cores),
        WITH_NODE(a_narrower_mask_leaves_a_wider_one_a_core_for_each),
        WITH_NODE(masks_in_a_ring_have_a_core_each),
        WITH_NODE(three_ranks_have_a_numa_node_each),
        WITH_NODE(two_ranks_have_two_numa_nodes_each),
        WITH_NODE(numa_nodes_of_one_rank_are_of_one_package),
        WITH_NODE(six_ranks_on_four_numa_nodes_cut_none),
        WITH_NODE(caches_are_not_cut_where_that_costs_little),
        WITH_NODE(ranks_of_a_gpu_share_the_cache_beside_it),
        WITH_NODE(a_cut_cache_is_told),
        WITH_NODE(nothing_is_planned_onto_memory_beside_the_main_one),
        WITH_NODE(slow_cores_are_for_those_who_outnumber_the_fast_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
