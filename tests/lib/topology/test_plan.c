#include <stdio.h>
#include <string.h>

#include "tests/lib/topology/planned.h"
#include "tests/support/unit_test.h"

/* The hardware threads under each cache of eight_gpus.xml, and the same where the first core of each is reserved. */
static const char *const CACHES[]       = {"0-1,16-17", "2-3,18-19",   "4-5,20-21",   "6-7,22-23",
                                           "8-9,24-25", "10-11,26-27", "12-13,28-29", "14-15,30-31"};
static const char *const SECOND_CORES[] = {"1,17", "3,19", "5,21", "7,23", "9,25", "11,27", "13,29", "15,31"};

static bool is_local(const fsdp_place *place)
{
    const fsdp_domain *numa = &node->numas[node->gpus[place->gpu].numa];

    for (int thread = 0; thread < 128; thread++) {
        if (fsdp_mask_has(&place->threads, thread) && !fsdp_mask_has(&numa->threads, thread)) {
            return false;
        }
    }
    return true;
}

/* ---- the node of eight GPUs -------------------------------------------------------------------------------------- */

static void ranks_on_caches_get_the_gpus_beside_them(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    plan(CACHES, 8);
    assert_string_equal("4 5 2 3 6 7 0 1", gpus_of(places, 8));
    for (int r = 0; r < 8; r++) {
        assert_int_equal(0, places[r].deviations);
        assert_true(mask_is(&places[r].threads, CACHES[r]));
        assert_int_equal(r / 2, places[r].numa);
        assert_int_equal(node->gpus[places[r].gpu].numa, node->nics[places[r].nic].numa);
        assert_int_equal(1, node->nics[places[r].nic].fabric);
    }
}

static void reserved_cores_do_not_change_that(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    plan(SECOND_CORES, 8);
    assert_string_equal("4 5 2 3 6 7 0 1", gpus_of(places, 8));
    for (int r = 0; r < 8; r++) {
        assert_int_equal(0, places[r].deviations);
        assert_true(mask_is(&places[r].threads, SECOND_CORES[r]));
    }
}

static void ranks_with_one_mask_divide_it_by_caches(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    plan(NULL, 8);
    assert_string_equal("4 5 2 3 6 7 0 1", gpus_of(places, 8));
    for (int r = 0; r < 8; r++) {
        assert_int_equal(0, places[r].deviations);
        assert_true(mask_is(&places[r].threads, CACHES[r]));
    }
}

/* A package here is two GPUs: those whose addresses are c1 and c6, and so on, in order. */
static void four_ranks_get_four_packages_and_numa_nodes(void **state)
{
    unsigned packages = 0, numas = 0;

    (void)state;
    open_on("eight_gpus.xml");
    plan(NULL, 4);
    for (int r = 0; r < 4; r++) {
        packages |= 1u << (places[r].gpu / 2);
        numas |= 1u << places[r].numa;
        assert_true(is_local(&places[r]));
        assert_int_equal(8, fsdp_mask_count(&places[r].threads));
        assert_int_equal(0, places[r].deviations);
    }
    assert_int_equal(15, packages);
    assert_int_equal(15, numas);
}

static void fewer_ranks_are_local_on_different_packages(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    for (size_t n = 1; n <= 3; n++) {
        plan(NULL, n);
        for (size_t r = 0; r < n; r++) {
            assert_true(is_local(&places[r]));
            assert_int_equal(0, places[r].deviations);
            for (size_t q = 0; q < r; q++) {
                assert_int_not_equal(places[q].gpu / 2, places[r].gpu / 2);
            }
        }
    }
}

/* Between the two GPUs of a package 200 GB/s, along a ring of packages 100, else 50. */
static void consecutive_ranks_are_neighbours_on_xgmi(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    plan(NULL, 8);
    for (int r = 0; r < 7; r++) {
        const fsdp_link *link = &node->links[places[r].gpu * 8 + places[r + 1].gpu];

        assert_int_equal(FSDP_LINK_XGMI, link->type);
        assert_int_equal(r % 2 == 0 ? 200000 : 100000, link->max_bandwidth);
    }
}

/* The same node wired along another ring than the order of its cores: packages 2, 3, 1, 0. */
static void neighbours_on_xgmi_come_before_the_order_of_cores(void **state)
{
    static const int RING[] = {3, 2, 0, 1}; /* of each package, its place on the ring */
    fsdp_link        links[64];
    fsdp_node        rewired;

    (void)state;
    open_on("eight_gpus.xml");
    for (int i = 0; i < 64; i++) {
        const int from = RING[i / 8 / 2], to = RING[i % 8 / 2], steps = (to - from + 4) % 4;

        links[i] = (fsdp_link){.type          = FSDP_LINK_XGMI,
                               .hops          = 1,
                               .max_bandwidth = steps == 0   ? 200000
                                                : steps == 2 ? 50000
                                                             : 100000};
    }
    rewired       = *node;
    rewired.links = links;
    make_ranks(node, NULL, 8, ranks);
    assert_int_equal(FSDP_OK, fsdp_plan(&rewired, ranks, 8, places));
    for (int r = 0; r < 7; r++) {
        assert_int_equal(r % 2 == 0 ? 200000 : 100000, links[places[r].gpu * 8 + places[r + 1].gpu].max_bandwidth);
        assert_true(is_local(&places[r]));
    }
}

static void sixteen_ranks_share_every_gpu_twice(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    plan(NULL, 16);
    for (int g = 0; g < 8; g++) {
        int users = 0;

        for (int r = 0; r < 16; r++) {
            users += places[r].gpu == g;
        }
        assert_int_equal(2, users);
    }
    for (int r = 0; r < 16; r++) {
        assert_int_equal(FSDP_SHARED_GPU, places[r].deviations);
        assert_true(is_local(&places[r]));
        assert_int_equal(2, fsdp_mask_count(&places[r].threads));
    }
}

/* ---- what ranks may use ------------------------------------------------------------------------------------------ */

static void the_one_gpu_that_a_rank_sees_is_its_own(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    make_ranks(node, CACHES, 8, ranks);
    show_gpu(node, &ranks[0], 7); /* remote: NUMA node 2 */
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, 8, places));
    assert_int_equal(7, places[0].gpu);
    assert_int_equal(0, places[0].device);
    assert_true((places[0].deviations & FSDP_REMOTE_GPU) != 0);
    assert_true((places[0].deviations & FSDP_MASKED_GPU) != 0);
    assert_true(mask_is(&places[0].threads, CACHES[0]));
    assert_non_null(strstr(places[0].gpu_reason, "the only one it sees"));
    assert_non_null(strstr(places[0].cores_reason, "left alone: no core next to its GPU is in its mask"));
    for (int r = 1; r < 8; r++) {
        assert_int_not_equal(7, places[r].gpu);
        assert_int_equal(0, places[r].deviations & FSDP_SHARED_GPU);
    }
}

static void ranks_that_all_see_one_gpu_share_it_and_are_told(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    make_ranks(node, CACHES, 4, ranks);
    for (int r = 0; r < 4; r++) {
        show_gpu(node, &ranks[r], 4);
    }
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, 4, places));
    assert_string_equal("4 4 4 4", gpus_of(places, 4));
    for (int r = 0; r < 4; r++) {
        assert_true((places[r].deviations & FSDP_SHARED_GPU) != 0);
        assert_non_null(strstr(places[r].gpu_reason, "shared by 4 ranks"));
    }
}

/* Rank 0 could take rank 1's only GPU, which is nearer to it. */
static void no_gpu_is_shared_while_another_is_idle(void **state)
{
    static const char *const MASKS[] = {"12-15,28-31", "12-15,28-31"};

    (void)state;
    open_on("eight_gpus.xml");
    make_ranks(node, MASKS, 2, ranks);
    show_gpu(node, &ranks[0], 0);
    ranks[0].n_visible  = 2;
    ranks[0].visible[1] = (fsdp_visible_gpu){.ordinal = 0};
    memcpy(ranks[0].visible[1].address, node->gpus[4].address, sizeof node->gpus[4].address);
    show_gpu(node, &ranks[1], 0);
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, 2, places));
    assert_string_equal("4 0", gpus_of(places, 2));
    assert_int_equal(1, places[0].device); /* its second */
    assert_true((places[0].deviations & FSDP_REMOTE_GPU) != 0);
}

static void a_rank_that_sees_none_is_told(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    make_ranks(node, CACHES, 2, ranks);
    ranks[1].n_visible = 0;
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, 2, places));
    assert_string_equal("4 -1", gpus_of(places, 2));
    assert_int_equal(FSDP_NO_GPU, places[1].deviations);
    assert_non_null(strstr(places[1].gpu_reason, "none of the node's 8"));
}

static void variables_at_odds_are_told(void **state)
{
    (void)state;
    open_on("laptop.xml");
    make_ranks(node, NULL, 2, ranks);
    ranks[1].at_odds = 1;
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, 2, places));
    assert_int_equal(0, places[0].deviations);
    assert_int_equal(FSDP_VISIBLE_AT_ODDS, places[1].deviations);
}

/* Two parts of one GPU are two GPUs, of which one is as good as the other. */
static void parts_of_a_gpu_are_told_apart_by_ordinal(void **state)
{
    fsdp_node parted;
    fsdp_gpu  gpus[2];
    fsdp_link links[4] = {{.hops = 0}};

    (void)state;
    open_on("eight_gpus.xml");
    gpus[0]         = node->gpus[4];
    gpus[1]         = node->gpus[4];
    gpus[1].ordinal = 1;
    parted          = *node;
    parted.gpus     = gpus;
    parted.n_gpus   = 2;
    parted.links    = links;
    make_ranks(&parted, CACHES, 2, ranks);
    show_gpu(&parted, &ranks[0], 1);
    assert_int_equal(FSDP_OK, fsdp_plan(&parted, ranks, 2, places));
    assert_string_equal("1 0", gpus_of(places, 2));
    assert_int_equal(0, places[0].deviations & FSDP_SHARED_GPU);
}

/* 24 ranks on the parts of four GPUs, each on a core of its own next to its part. */
static void a_part_for_each_rank(void **state)
{
    (void)state;
    open_on("partitioned.xml");
    plan(NULL, 24);
    for (int r = 0; r < 24; r++) {
        assert_int_equal(0, places[r].deviations);
        assert_true(is_local(&places[r]));
        for (int q = 0; q < r; q++) {
            assert_int_not_equal(places[q].gpu, places[r].gpu);
        }
    }
    plan(NULL, 4);
    for (int r = 0; r < 4; r++) { /* parts of different GPUs */
        assert_int_equal(r, places[r].gpu / 6);
    }
}

static void memory_that_a_rank_may_not_use_is_left_alone(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    make_ranks(node, CACHES, 2, ranks);
    ranks[0].memory = mask_of("0-1");
    ranks[1].memory = mask_of("2-3");
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, 2, places));
    assert_int_equal(0, places[0].numa);
    assert_int_equal(-1, places[1].numa);
    assert_non_null(strstr(places[1].memory_reason, "may not allocate on NUMA node 0"));
}

/* ---- nodes that are otherwise ------------------------------------------------------------------------------------ */

static void an_unknown_locality_is_told_and_divides_the_cores(void **state)
{
    (void)state;
    open_on("unknown_locality.xml");
    plan(NULL, 2);
    assert_string_equal("0 1", gpus_of(places, 2));
    assert_true(mask_is(&places[0].threads, "0-1"));
    assert_true(mask_is(&places[1].threads, "2-3"));
    for (int r = 0; r < 2; r++) {
        assert_int_equal(FSDP_UNKNOWN_LOCALITY, places[r].deviations);
        assert_non_null(strstr(places[r].cores_reason, "which cores its GPU is next to is not known"));
    }
}

static void a_lone_rank_far_from_its_gpu_keeps_its_mask(void **state)
{
    (void)state;
    open_on("unknown_locality.xml");
    plan(NULL, 1);
    assert_true(mask_is(&places[0].threads, "0-3"));
    assert_non_null(strstr(places[0].cores_reason, "left alone: which cores its GPU is next to is not known"));
}

static void interleaved_numbers_are_no_matter(void **state)
{
    (void)state;
    open_on("two_sockets.xml");
    plan(NULL, 3);
    assert_int_equal(0, places[0].deviations);
    for (int r = 0; r < 3; r++) {
        assert_true(is_local(&places[r]));
        assert_int_equal(r, places[r].gpu);
    }
    assert_true(mask_is(&places[0].threads, "0,2,4,6,8,10,12,14"));
    assert_true(mask_is(&places[1].threads, "1,3,9,11"));
    assert_true(mask_is(&places[2].threads, "5,7,13,15"));
}

static void gpus_on_half_of_the_numa_nodes_draw_the_ranks_there(void **state)
{
    (void)state;
    open_on("four_of_eight.xml");
    plan(NULL, 4);
    assert_string_equal("0 1 2 3", gpus_of(places, 4));
    assert_int_equal(1, places[0].numa);
    assert_int_equal(2, places[1].numa);
    assert_int_equal(5, places[2].numa);
    assert_int_equal(7, places[3].numa);
}

static void a_gpu_in_a_numa_node_that_is_masked_off_is_remote(void **state)
{
    static const char *const MASKS[] = {"0-2", "9-11"}; /* NUMA nodes 0 and 3 have no GPU */

    (void)state;
    open_on("four_of_eight.xml");
    plan(MASKS, 2);
    for (int r = 0; r < 2; r++) {
        assert_true(mask_is(&places[r].threads, MASKS[r]));
        assert_int_equal(FSDP_REMOTE_GPU | FSDP_MASKED_GPU, places[r].deviations);
        assert_int_equal(0, node->gpus[places[r].gpu].package);
    }
}

static void ranks_without_gpus_divide_their_cores(void **state)
{
    (void)state;
    open_on("laptop.xml");
    plan(NULL, 3);
    assert_true(mask_is(&places[0].threads, "0"));
    assert_true(mask_is(&places[1].threads, "1"));
    assert_true(mask_is(&places[2].threads, "2"));
    assert_int_equal(3, places[0].spare); /* for the progress thread of one */
    assert_int_equal(-1, places[1].spare);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(-1, places[r].gpu);
        assert_int_equal(0, places[r].deviations);
        assert_non_null(strstr(places[r].gpu_reason, "the node has none"));
    }
}

static void a_mask_partly_outside_the_machine_keeps_the_part_inside(void **state)
{
    static const char *const MASKS[] = {"2-9", "0"};

    (void)state;
    open_on("laptop.xml");
    plan(MASKS, 2);
    assert_true(mask_is(&places[0].threads, "2-3"));
    assert_int_equal(FSDP_OUTSIDE_MACHINE, places[0].deviations);
    assert_int_equal(0, places[1].deviations);
}

static void a_mask_outside_the_machine_is_an_error_that_names_the_rank(void **state)
{
    static const char *const MASKS[] = {"0-1", "64-71"};

    (void)state;
    open_on("laptop.xml");
    make_ranks(node, MASKS, 2, ranks);
    ranks[1].rank = 17;
    assert_int_equal(FSDP_ERR_ARG, fsdp_plan(node, ranks, 2, places));
    assert_non_null(strstr(fsdp_last_error(NULL), "rank 17's mask is 64-71"));
}

static void bad_arguments_are_errors(void **state)
{
    (void)state;
    open_on("laptop.xml");
    make_ranks(node, NULL, 1, ranks);
    assert_int_equal(FSDP_ERR_ARG, fsdp_plan(NULL, ranks, 1, places));
    assert_int_equal(FSDP_ERR_ARG, fsdp_plan(node, NULL, 1, places));
    assert_int_equal(FSDP_ERR_ARG, fsdp_plan(node, ranks, 1, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_plan(node, ranks, 0, places));
    assert_int_equal(FSDP_ERR_ARG, fsdp_plan(node, ranks, 4097, places));
    assert_int_equal(FSDP_ERR_ARG, fsdp_plan_none(node, ranks, 0, places));
}

/* ---- what is, without a plan ------------------------------------------------------------------------------------- */

static void without_a_plan_every_rank_has_the_gpu_that_it_uses(void **state)
{
    (void)state;
    open_on("eight_gpus.xml");
    make_ranks(node, CACHES, 8, ranks);
    for (int r = 0; r < 8; r++) {
        show_gpu(node, &ranks[r], 0); /* the first that HIP counts, where nobody has chosen */
    }
    show_gpu(node, &ranks[5], 5);
    ranks[5].visible[1] = ranks[4].visible[0];
    ranks[5].n_visible  = 2;
    ranks[5].device     = 1;
    show_gpu(node, &ranks[4], 6);
    ranks[3].n_visible = ranks[3].device = -1;
    assert_int_equal(FSDP_OK, fsdp_plan_none(node, ranks, 8, places));
    assert_string_equal("0 0 0 -1 6 0 0 0", gpus_of(places, 8));
    assert_int_equal(0, places[3].deviations); /* nobody knows */
    assert_int_equal(0, places[4].deviations);
    for (int r = 0; r < 8; r++) {
        assert_int_equal(r != 3 && r != 4, (places[r].deviations & FSDP_SHARED_GPU) != 0);
        assert_int_equal(r != 3 && r != 4 && r < 6, (places[r].deviations & FSDP_REMOTE_GPU) != 0);
        assert_string_equal("", places[r].gpu_reason);
        assert_string_equal("", places[r].cores_reason);
        assert_string_equal("", places[r].memory_reason);
    }
}

static void ranks_across_a_cache_boundary_are_told(void **state)
{
    static const char *const MASKS[] = {"0,16", "1-2,17-18", "3,19"};

    (void)state;
    open_on("eight_gpus.xml");
    make_ranks(node, MASKS, 3, ranks);
    assert_int_equal(FSDP_OK, fsdp_plan_none(node, ranks, 3, places));
    assert_int_equal(0, places[0].deviations & FSDP_CROSSES_CACHE);
    assert_int_equal(FSDP_CROSSES_CACHE, places[1].deviations & FSDP_CROSSES_CACHE);
    assert_int_equal(0, places[2].deviations & FSDP_CROSSES_CACHE);
}

static void deviations_have_names_and_texts(void **state)
{
    (void)state;
    assert_string_equal("shared-gpu", fsdp_deviation_name(FSDP_SHARED_GPU));
    assert_string_equal("there are more ranks than cores", fsdp_deviation_text(FSDP_FEW_CORES));
    assert_string_equal("unknown", fsdp_deviation_name((fsdp_deviation)3));
    assert_string_equal("unknown", fsdp_deviation_text((fsdp_deviation)(1 << 30)));
}

int main(void)
{
#define WITH_NODE(test) cmocka_unit_test_teardown(test, close_node)
    static const struct CMUnitTest tests[] = {
        WITH_NODE(ranks_on_caches_get_the_gpus_beside_them),
        WITH_NODE(reserved_cores_do_not_change_that),
        WITH_NODE(ranks_with_one_mask_divide_it_by_caches),
        WITH_NODE(four_ranks_get_four_packages_and_numa_nodes),
        WITH_NODE(fewer_ranks_are_local_on_different_packages),
        WITH_NODE(consecutive_ranks_are_neighbours_on_xgmi),
        WITH_NODE(neighbours_on_xgmi_come_before_the_order_of_cores),
        WITH_NODE(sixteen_ranks_share_every_gpu_twice),
        WITH_NODE(the_one_gpu_that_a_rank_sees_is_its_own),
        WITH_NODE(ranks_that_all_see_one_gpu_share_it_and_are_told),
        WITH_NODE(no_gpu_is_shared_while_another_is_idle),
        WITH_NODE(a_rank_that_sees_none_is_told),
        WITH_NODE(variables_at_odds_are_told),
        WITH_NODE(parts_of_a_gpu_are_told_apart_by_ordinal),
        WITH_NODE(a_part_for_each_rank),
        WITH_NODE(memory_that_a_rank_may_not_use_is_left_alone),
        WITH_NODE(an_unknown_locality_is_told_and_divides_the_cores),
        WITH_NODE(a_lone_rank_far_from_its_gpu_keeps_its_mask),
        WITH_NODE(interleaved_numbers_are_no_matter),
        WITH_NODE(gpus_on_half_of_the_numa_nodes_draw_the_ranks_there),
        WITH_NODE(a_gpu_in_a_numa_node_that_is_masked_off_is_remote),
        WITH_NODE(ranks_without_gpus_divide_their_cores),
        WITH_NODE(a_mask_partly_outside_the_machine_keeps_the_part_inside),
        WITH_NODE(a_mask_outside_the_machine_is_an_error_that_names_the_rank),
        WITH_NODE(bad_arguments_are_errors),
        WITH_NODE(without_a_plan_every_rank_has_the_gpu_that_it_uses),
        WITH_NODE(ranks_across_a_cache_boundary_are_told),
        cmocka_unit_test(deviations_have_names_and_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
