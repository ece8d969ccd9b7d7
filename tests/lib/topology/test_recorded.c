/* The placements that are right on machines recorded by others, which are read where they lie and not copied here. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/topology/planned.h"
#include "tests/support/mpi_test.h"

static const char *folder;

static void open_recorded(const char *name)
{
    char path[1024];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    open_on(path);
}

/* PCI buses, and the NUMA node that each GPU is on; -1: not known. */
static void assert_gpus(const unsigned *buses, const int *numas, size_t n)
{
    assert_int_equal(n, node->n_gpus);
    for (size_t g = 0; g < n; g++) {
        unsigned bus = 0;

        assert_int_equal(1, sscanf(node->gpus[g].address, "%*x:%x:", &bus));
        assert_int_equal(buses[g], bus);
        assert_int_equal(numas[g], node->gpus[g].numa >= 0 ? node->numas[node->gpus[g].numa].number : -1);
    }
}

/* As many ranks as GPUs, none remote, none shared. */
static void assert_all_local(void)
{
    plan(NULL, node->n_gpus);
    for (size_t r = 0; r < node->n_gpus; r++) {
        assert_int_equal(0, places[r].deviations & (FSDP_REMOTE_GPU | FSDP_SHARED_GPU | FSDP_OVERLAPPING_CORES));
        assert_int_equal(node->gpus[places[r].gpu].numa, places[r].numa);
    }
}

/* ---- the MI250X node --------------------------------------------------------------------------------------------- */

static const char *const L3_MASKS[] = {"0-7,64-71",    "8-15,72-79",    "16-23,80-87",   "24-31,88-95",
                                       "32-39,96-103", "40-47,104-111", "48-55,112-119", "56-63,120-127"};
static const char *const RESERVED[] = {"1-7,65-71",    "9-15,73-79",    "17-23,81-87",   "25-31,89-95",
                                       "33-39,97-103", "41-47,105-111", "49-55,113-119", "57-63,121-127"};

static void mi250x_gpus_are_next_to_the_documented_threads(void **state)
{
    static const unsigned BUSES[] = {0xc1, 0xc6, 0xc9, 0xce, 0xd1, 0xd6, 0xd9, 0xde};
    static const int      NUMAS[] = {3, 3, 1, 1, 0, 0, 2, 2};
    static const int      L3S[]   = {6, 7, 2, 3, 0, 1, 4, 5};

    (void)state;
    open_recorded("mpibind-eas-tioga.xml");
    assert_gpus(BUSES, NUMAS, 8);
    for (int g = 0; g < 8; g++) {
        assert_int_equal(g, node->gpus[g].smi);
        assert_true(mask_is(&node->gpus[g].threads, L3_MASKS[L3S[g]]));
    }
}

static void assert_mi250x_order(const char *const *given, const char *const *wanted)
{
    plan(given, 8);
    assert_string_equal("4 5 2 3 6 7 0 1", gpus_of(places, 8));
    for (int r = 0; r < 8; r++) {
        assert_int_equal(0, places[r].deviations);
        assert_true(mask_is(&places[r].threads, wanted[r]));
    }
}

static void mi250x_eight_ranks_get_the_gpus_beside_them(void **state)
{
    (void)state;
    open_recorded("mpibind-eas-tioga.xml");
    assert_mi250x_order(L3_MASKS, L3_MASKS);
    assert_mi250x_order(RESERVED, RESERVED);
    assert_mi250x_order(NULL, L3_MASKS);
}

/* As a system hands them out that keeps the first core of each cache for itself, to a job that binds nothing. */
static void mi250x_reserved_cores_are_divided_by_caches(void **state)
{
    static const char ALL[]   = "1-7,9-15,17-23,25-31,33-39,41-47,49-55,57-63,"
                                "65-71,73-79,81-87,89-95,97-103,105-111,113-119,121-127";
    const char *const masks[] = {ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL};

    (void)state;
    open_recorded("mpibind-eas-tioga.xml");
    assert_mi250x_order(masks, RESERVED);
}

static void mi250x_fewer_ranks_get_different_packages(void **state)
{
    (void)state;
    open_recorded("mpibind-eas-tioga.xml");
    for (size_t n = 1; n <= 4; n++) {
        unsigned packages = 0;

        plan(NULL, n);
        for (size_t r = 0; r < n; r++) {
            assert_int_equal(0, places[r].deviations);
            assert_int_equal(node->gpus[places[r].gpu].numa, places[r].numa);
            packages |= 1u << (places[r].gpu / 2); /* two GPUs are one package */
        }
        assert_int_equal(n, __builtin_popcount(packages));
    }
    assert_int_equal(0xf, 1u << (places[0].gpu / 2) | 1u << (places[1].gpu / 2) | 1u << (places[2].gpu / 2) |
                              1u << (places[3].gpu / 2));
}

static void mi250x_network_cards_are_those_of_the_gpus(void **state)
{
    (void)state;
    open_recorded("mpibind-eas-tioga.xml");
    plan(L3_MASKS, 8);
    for (int r = 0; r < 8; r++) {
        assert_int_equal(0, strncmp(node->nics[places[r].nic].name, "hsi", 3));
        assert_int_equal(node->gpus[places[r].gpu].numa, node->nics[places[r].nic].numa);
    }
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static void corona_p2_goes_by_pci_and_not_by_rocm_smi(void **state)
{
    static const unsigned BUSES[] = {0x03, 0x27, 0x43, 0x63, 0x83, 0xa3, 0xc3, 0xe3};
    static const int      NUMAS[] = {0, 0, 0, 0, 1, 1, 1, 1};
    static const int      SMI[]   = {2, 3, 1, 0, 6, 7, 5, 4};

    (void)state;
    open_recorded("mpibind-epyc-corona-p2.xml");
    assert_gpus(BUSES, NUMAS, 8);
    for (int g = 0; g < 8; g++) {
        assert_int_equal(SMI[g], node->gpus[g].smi);
    }
    assert_all_local();
}

static void corona_has_gpus_on_four_of_eight_numa_nodes(void **state)
{
    static const unsigned BUSES[] = {0x13, 0x23, 0x53, 0x73};
    static const int      NUMAS[] = {1, 2, 5, 7};

    (void)state;
    open_recorded("mpibind-epyc-corona.xml");
    assert_gpus(BUSES, NUMAS, 4);
    assert_all_local();
    assert_int_equal(-1, node->gpus[0].smi);
}

static void eight_t4_are_four_and_four(void **state)
{
    (void)state;
    open_recorded("mpibind-g4dnmetal.xml");
    assert_int_equal(8, node->n_gpus);
    for (int g = 0; g < 8; g++) {
        assert_int_equal(g / 4, node->gpus[g].numa);
    }
    assert_all_local();
}

static void pascal_has_both_gpus_on_one_socket(void **state)
{
    static const unsigned BUSES[] = {0x04, 0x07};
    static const int      NUMAS[] = {0, 0};

    (void)state;
    open_recorded("mpibind-cts1-pascal.xml");
    assert_gpus(BUSES, NUMAS, 2);
    assert_all_local();
}

static void power8_has_two_gpus_per_numa_node_and_links_inside(void **state)
{
    (void)state;
    open_recorded("hwloc293-power8gpudistances.xml");
    assert_int_equal(4, node->n_gpus);
    for (int g = 0; g < 4; g++) {
        assert_int_equal(g / 2, node->gpus[g].numa);
        assert_int_equal(FSDP_LINK_NVLINK, node->links[g * 4 + (g ^ 1)].type);
        assert_int_equal(FSDP_LINK_UNKNOWN, node->links[g * 4 + (g ^ 2)].type);
    }
    assert_all_local();
    assert_string_equal("0 1 2 3", gpus_of(places, 4));
}

static void an_empty_locality_is_told(void **state)
{
    (void)state;
    open_recorded("hwloc293-irregulargroups-pci.xml");
    assert_int_equal(2, node->n_gpus);
    plan(NULL, 2);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(-1, node->gpus[r].numa);
        assert_true((places[r].deviations & FSDP_UNKNOWN_LOCALITY) != 0);
        assert_int_equal(0, places[r].deviations & FSDP_OVERLAPPING_CORES);
        assert_non_null(strstr(places[r].cores_reason, "which cores its GPU is next to is not known"));
    }
    assert_int_not_equal(places[0].gpu, places[1].gpu);
}

static void a_console_of_amd_is_no_gpu(void **state)
{
    static const unsigned BUSES[] = {0x06, 0x11, 0x14};
    static const int      NUMAS[] = {0, 1, 1};

    (void)state;
    open_recorded("hwloc293-24em64t-2n6c2t-pci.xml");
    assert_gpus(BUSES, NUMAS, 3);
    assert_all_local();
    assert_true(mask_is(&places[0].threads, "0,2,4,6,8,10,12,14,16,18,20,22"));
}

int main(int argc, char **argv)
{
#define WITH_NODE(test) cmocka_unit_test_teardown(test, close_node)
    static const struct CMUnitTest tests[] = {
        WITH_NODE(mi250x_gpus_are_next_to_the_documented_threads),
        WITH_NODE(mi250x_eight_ranks_get_the_gpus_beside_them),
        WITH_NODE(mi250x_reserved_cores_are_divided_by_caches),
        WITH_NODE(mi250x_fewer_ranks_get_different_packages),
        WITH_NODE(mi250x_network_cards_are_those_of_the_gpus),
        WITH_NODE(corona_p2_goes_by_pci_and_not_by_rocm_smi),
        WITH_NODE(corona_has_gpus_on_four_of_eight_numa_nodes),
        WITH_NODE(eight_t4_are_four_and_four),
        WITH_NODE(pascal_has_both_gpus_on_one_socket),
        WITH_NODE(power8_has_two_gpus_per_numa_node_and_links_inside),
        WITH_NODE(an_empty_locality_is_told),
        WITH_NODE(a_console_of_amd_is_no_gpu),
    };

    folder = argc > 1 ? argv[1] : "../shared/topologies";
    if (access(folder, R_OK) != 0) {
        printf("skipped: there are no recorded machines in %s\n", folder);
        return FSDP_TEST_SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
