/* What rocm-smi and HIP add to a node, told by a double of both (node_double.c) on a record of this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/topology/nodes.h"
#include "tests/support/unit_test.h"

static fsdp_topology   *topology;
static const fsdp_node *node;
static char             record[64];

static int open_here(void **state)
{
    (void)state;
    (void)snprintf(record, sizeof record, "%s", record_here());
    topology = open_node(record);
    node     = fsdp_topology_node(topology);
    assert_int_equal(1, node->is_here);
    return 0;
}

static int close_here(void **state)
{
    (void)state;
    fsdp_topology_close(topology);
    return remove(record);
}

static bool is_near(double value, double wanted)
{
    return value >= wanted - 1e-6 && value <= wanted + 1e-6;
}

/* ---- two_gpus.node ----------------------------------------------------------------------------------------------- */

static void devices_are_matched_by_address(void **state)
{
    fsdp_local_rank mine;

    (void)state;
    assert_int_equal(2, node->n_gpus);
    assert_string_equal("0000:11:00.0", node->gpus[0].address);
    assert_int_equal(1, node->gpus[0].smi); /* by address, then; rocm-smi counts the other way round */
    assert_int_equal(0, node->gpus[1].smi);
    assert_int_equal(0x1f, node->gpus[0].hive);
    assert_int_equal(1, node->gpus[0].numa);
    assert_true(node->gpus[1].bytes == UINT64_C(68719476736));
    assert_int_equal(FSDP_OK, fsdp_local_rank_look(&mine));
    assert_int_equal(2, mine.n_visible);
    assert_string_equal("0000:11:00.0", mine.visible[0].address);
    assert_int_equal(0, mine.device);
}

static void links_are_rocm_smis(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(FSDP_LINK_XGMI, node->links[i].type);
        assert_int_equal(1, node->links[i].hops);
        assert_int_equal(15, node->links[i].weight);
        assert_int_equal(50000, node->links[i].min_bandwidth);
        assert_int_equal(100000, node->links[i].max_bandwidth);
    }
    assert_int_equal(1, node->sources[FSDP_SOURCE_SMI].present);
    assert_string_equal("version 5, 2 devices", node->sources[FSDP_SOURCE_SMI].text);
    assert_string_equal("2 devices that this process may use", node->sources[FSDP_SOURCE_HIP].text);
}

static void health_is_read_and_unknown_where_nobody_tells(void **state)
{
    fsdp_gpu_health health;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_gpu_health_read(topology, 1, &health));
    assert_true(is_near(health.used_bytes, 1073741824.0));
    assert_true(is_near(health.total_bytes, 68719476736.0));
    assert_true(is_near(health.busy_percent, 37.0));
    assert_true(is_near(health.clock_mhz, 1700.0));
    assert_true(is_near(health.power_watts, 312.5));
    assert_true(is_near(health.temperature_celsius, 54.0)); /* of the junction: this double has no sensor at the edge */
    assert_int_equal(FSDP_OK, fsdp_gpu_health_read(topology, 0, &health));
    assert_true(health.used_bytes < 0.0 && health.total_bytes < 0.0 && health.busy_percent < 0.0 &&
                health.clock_mhz < 0.0 && health.power_watts < 0.0 && health.temperature_celsius < 0.0);
}

static void look_with(const char *rocr, const char *hip, fsdp_local_rank *mine)
{
    (void)setenv("ROCR_VISIBLE_DEVICES", rocr, 1);
    (void)setenv("HIP_VISIBLE_DEVICES", hip, 1);
    assert_int_equal(FSDP_OK, fsdp_local_rank_look(mine));
    (void)unsetenv("ROCR_VISIBLE_DEVICES");
    (void)unsetenv("HIP_VISIBLE_DEVICES");
}

/* HIP counts within what ROCR_VISIBLE_DEVICES leaves. */
static void variables_at_odds_are_noticed(void **state)
{
    fsdp_local_rank mine;

    (void)state;
    look_with("1", "1", &mine);
    assert_int_equal(1, mine.at_odds);
    look_with("0,1", "1", &mine);
    assert_int_equal(0, mine.at_odds);
    look_with("2,3", "0,2", &mine);
    assert_int_equal(1, mine.at_odds);
    look_with("", "5", &mine);
    assert_int_equal(0, mine.at_odds);
}

/* ---- two_gpus.node, with ROCR_VISIBLE_DEVICES=1 ------------------------------------------------------------------ */

static void the_one_device_that_is_left_is_that_device(void **state)
{
    fsdp_local_rank mine;
    fsdp_place      place;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_local_rank_look(&mine));
    assert_int_equal(1, mine.n_visible);
    assert_string_equal("0000:22:00.0", mine.visible[0].address);
    mine.threads = mask_of("0-1");
    assert_int_equal(FSDP_OK, fsdp_plan(node, &mine, 1, &place));
    assert_int_equal(1, place.gpu);
    assert_int_equal(0, place.device);
    assert_true(mask_is(&place.threads, "0"));
    assert_int_equal(2, node->n_gpus); /* the node has two all the same */
}

/* ---- parts.node -------------------------------------------------------------------------------------------------- */

static void parts_share_an_address_and_are_two(void **state)
{
    fsdp_local_rank mine;
    fsdp_gpu_health health;

    (void)state;
    assert_int_equal(5, node->n_gpus); /* two of hwloc's, and these */
    assert_string_equal("0000:33:00.0", node->gpus[2].address);
    assert_string_equal("0000:33:00.0", node->gpus[3].address);
    assert_string_equal("0000:44:00.0", node->gpus[4].address);
    assert_int_equal(0, node->gpus[2].ordinal);
    assert_int_equal(1, node->gpus[3].ordinal);
    assert_int_equal(1, node->gpus[3].numa);
    assert_int_equal(-1, node->gpus[4].numa);
    assert_int_equal(FSDP_LINK_UNKNOWN, node->links[2 * 5 + 3].type);
    assert_int_equal(FSDP_OK, fsdp_local_rank_look(&mine));
    assert_int_equal(3, mine.n_visible);
    assert_int_equal(0, mine.visible[0].ordinal);
    assert_int_equal(1, mine.visible[1].ordinal);
    assert_int_equal(FSDP_OK, fsdp_gpu_health_read(topology, 2, &health)); /* in the layout of version 6 */
    assert_true(is_near(health.clock_mhz, 2100.0));
}

static void ranks_on_parts_do_not_share(void **state)
{
    fsdp_local_rank ranks[3];
    fsdp_place      places[3];

    (void)state;
    for (int r = 0; r < 3; r++) {
        assert_int_equal(FSDP_OK, fsdp_local_rank_look(&ranks[r]));
        ranks[r].rank    = r;
        ranks[r].threads = mask_of("0-1");
    }
    assert_int_equal(FSDP_OK, fsdp_plan(node, ranks, 3, places));
    for (int r = 0; r < 3; r++) {
        assert_int_equal(0, places[r].deviations & FSDP_SHARED_GPU);
        assert_true(places[r].gpu >= 2);
        assert_int_equal(places[r].gpu - 2, places[r].device);
    }
}

/* ---- no_driver.node ---------------------------------------------------------------------------------------------- */

/* The double's rsmi_init() prints and fails: the words in `sources` say that it was not called. */
static void without_a_driver_rocm_smi_is_left_alone(void **state)
{
    fsdp_local_rank mine;

    (void)state;
    assert_int_equal(0, node->sources[FSDP_SOURCE_SMI].present);
    assert_string_equal("installed, but there is no driver (/sys/class/kfd)", node->sources[FSDP_SOURCE_SMI].text);
    assert_int_equal(0, node->sources[FSDP_SOURCE_HIP].present);
    assert_int_equal(FSDP_OK, fsdp_local_rank_look(&mine));
    assert_int_equal(-1, mine.n_visible);
}

int main(int argc, char **argv)
{
#define HERE(test) cmocka_unit_test_setup_teardown(test, open_here, close_here)
    static const struct CMUnitTest two_gpus[] = {
        HERE(devices_are_matched_by_address),
        HERE(links_are_rocm_smis),
        HERE(health_is_read_and_unknown_where_nobody_tells),
        HERE(variables_at_odds_are_noticed),
    };
    static const struct CMUnitTest one_left[] = {HERE(the_one_device_that_is_left_is_that_device)};
    static const struct CMUnitTest parts[]    = {
           HERE(parts_share_an_address_and_are_two),
           HERE(ranks_on_parts_do_not_share),
    };
    static const struct CMUnitTest no_driver[] = {HERE(without_a_driver_rocm_smi_is_left_alone)};
    const char                    *which       = argc > 1 ? argv[1] : "";

    if (strcmp(which, "two_gpus") == 0) {
        return cmocka_run_group_tests(two_gpus, NULL, NULL);
    }
    if (strcmp(which, "one_left") == 0) {
        return cmocka_run_group_tests(one_left, NULL, NULL);
    }
    if (strcmp(which, "parts") == 0) {
        return cmocka_run_group_tests(parts, NULL, NULL);
    }
    return strcmp(which, "no_driver") == 0 ? cmocka_run_group_tests(no_driver, NULL, NULL) : 2;
}
