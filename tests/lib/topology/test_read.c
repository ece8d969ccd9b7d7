#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/topology/nodes.h"
#include "tests/support/unit_test.h"

/* ---- what is not to be printed ----------------------------------------------------------------------------------- */

static int   kept_stderr = -1;
static FILE *caught;

static int catch_stderr(void **state)
{
    (void)state;
    (void)fflush(stderr);
    caught      = tmpfile();
    kept_stderr = dup(STDERR_FILENO);
    (void)setenv("FSDP_LOG", "off", 1); /* what the library itself says is said on purpose */
    return caught != NULL && kept_stderr >= 0 && dup2(fileno(caught), STDERR_FILENO) >= 0 ? 0 : -1;
}

/* Fails the test if anything has come. */
static int release_stderr(void **state)
{
    char text[256];

    (void)state;
    (void)fflush(stderr);
    (void)dup2(kept_stderr, STDERR_FILENO);
    (void)close(kept_stderr);
    (void)unsetenv("FSDP_LOG");
    rewind(caught);
    const size_t n = fread(text, 1, sizeof text - 1, caught);
    text[n]        = '\0';
    (void)fclose(caught);
    if (n > 0) {
        print_error("on stderr: %s\n", text);
    }
    return n == 0 ? 0 : -1;
}

/* ---- files that are no topology ---------------------------------------------------------------------------------- */

static char made[64];

static const char *make_file(const char *text)
{
    (void)snprintf(made, sizeof made, "/tmp/fsdp_bad_topology.%d.xml", (int)getpid());
    FILE *file = fopen(made, "we");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(0, fclose(file));
    return made;
}

static void assert_refused(const char *file, const char *words)
{
    fsdp_topology *topology = (fsdp_topology *)(void *)made;

    assert_int_equal(FSDP_ERR_ARG, fsdp_topology_open(file, &topology));
    assert_null(topology);
    assert_non_null(strstr(fsdp_last_error(NULL), words));
    (void)remove(made);
}

static void a_file_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    assert_refused("/nowhere/at/all.xml", "/nowhere/at/all.xml: No such file or directory");
    assert_refused("/tmp", "/tmp");
}

static void a_file_that_holds_no_topology_is_an_error(void **state)
{
    (void)state;
    assert_refused(make_file(""), "holds no topology");
    assert_refused(make_file("hello"), "holds no topology");
    assert_refused(make_file("<?xml version=\"1.0\"?><topologyx version=\"2.0\"></topologyx>"), "holds no topology");
}

static void version_3_is_an_error_that_says_how_to_write_2(void **state)
{
    (void)state;
    assert_refused(make_file("<?xml version=\"1.0\"?>\n<topology version=\"3.0\">\n</topology>\n"),
                   "is version 3 of hwloc's XML, and version 2 is read here");
}

static void a_file_that_is_cut_off_is_an_error(void **state)
{
    (void)state;
    assert_refused(make_file("<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n  <object type=\"Machine\""),
                   "is cut off");
}

static void a_file_that_does_not_parse_is_an_error(void **state)
{
    (void)state;
    assert_refused(make_file("<topology version=\"2.0\"><object <<< </topology>"), "hwloc cannot read");
    assert_refused(make_file("<topology version=\"2.0\"></topology>"), "hwloc cannot read");
    assert_refused(make_file("<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1\"/></wrong></topology>"),
                   "hwloc cannot read");
}

/* One thread, which is number 4100: bit 4 of the word above 128 empty ones. */
static void a_thread_above_4095_is_unsupported(void **state)
{
    fsdp_topology *topology;
    char           commas[129], text[4096];

    (void)state;
    memset(commas, ',', 128);
    commas[128] = '\0';
    (void)snprintf(text, sizeof text,
                   "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x10%s\" complete_cpuset=\"0x10%s\" "
                   "allowed_cpuset=\"0x10%s\" nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\">"
                   "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x10%s\" complete_cpuset=\"0x10%s\" "
                   "nodeset=\"0x1\" complete_nodeset=\"0x1\"/>"
                   "<object type=\"PU\" os_index=\"4100\" cpuset=\"0x10%s\" complete_cpuset=\"0x10%s\" nodeset=\"0x1\" "
                   "complete_nodeset=\"0x1\"/></object></topology>\n",
                   commas, commas, commas, commas, commas, commas, commas);
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_topology_open(make_file(text), &topology));
    assert_non_null(strstr(fsdp_last_error(NULL), "number 4100; 0 to 4095 are supported"));
    (void)remove(made);
}

static void null_is_an_error_or_nothing(void **state)
{
    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_topology_open(NULL, NULL));
    assert_null(fsdp_topology_node(NULL));
    fsdp_topology_close(NULL);
    assert_int_equal(FSDP_ERR_ARG, fsdp_gpu_health_read(NULL, 0, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_local_rank_look(NULL));
    assert_string_equal("", fsdp_binding(NULL));
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

static void a_console_is_no_gpu_and_links_are_found(void **state)
{
    fsdp_topology   *topology = open_node("two_sockets.xml");
    const fsdp_node *node     = fsdp_topology_node(topology);

    (void)state;
    assert_int_equal(3, node->n_gpus);
    assert_string_equal("0000:06:00.0", node->gpus[0].address);
    assert_string_equal("made-up V100", node->gpus[0].name);
    assert_int_equal(0x10de, node->gpus[0].vendor);
    assert_int_equal(FSDP_LINK_UNKNOWN, node->links[1].type);
    assert_int_equal(FSDP_LINK_NVLINK, node->links[1 * 3 + 2].type);
    assert_int_equal(50000, node->links[2 * 3 + 1].max_bandwidth);
    assert_int_equal(1, node->n_nics);
    assert_string_equal("mlx4_0", node->nics[0].name);
    assert_int_equal(1, node->nics[0].fabric);
    fsdp_topology_close(topology);
}

/* Writes one of the project's nodes anew, with `to` for the first `from`, into make_file()'s file. */
static const char *make_node(const char *name, const char *from, const char *to)
{
    static char text[1 << 15], changed[1 << 16];
    FILE       *file = fopen(node_file(name), "re");

    assert_non_null(file);
    const size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n]           = '\0';
    const char *place = strstr(text, from);
    assert_non_null(place);
    (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(place - text), text, to, place + strlen(from));
    return make_file(changed);
}

static void what_a_record_says_is_one_line_of_printable_text(void **state)
{
    fsdp_topology *topology = open_node(make_node("two_sockets.xml", "\"sockets\"", "\"so&#10;ck&#127;[2J\xc3\xa9\""));

    (void)state;
    assert_string_equal("so?ck?[2J??", fsdp_topology_node(topology)->name);
    fsdp_topology_close(topology);
    topology = open_node(make_node("two_sockets.xml", "made-up V100", "V&#9;100"));
    assert_string_equal("V?100", fsdp_topology_node(topology)->gpus[0].name);
    fsdp_topology_close(topology);
    (void)remove(made);
}

static void a_uuid_is_taken_only_if_it_is_one(void **state)
{
    static const char UUID[]   = "GPU-00000006-0000-4000-8000-000000000000";
    fsdp_topology    *topology = open_node("two_sockets.xml");

    (void)state;
    assert_string_equal(UUID, fsdp_topology_node(topology)->gpus[0].uuid);
    assert_string_equal("", fsdp_topology_node(topology)->gpus[1].uuid);
    fsdp_topology_close(topology);
    topology = open_node(make_node("two_sockets.xml", UUID, "GPU-6; reboot"));
    assert_string_equal("", fsdp_topology_node(topology)->gpus[0].uuid);
    fsdp_topology_close(topology);
    (void)remove(made);
}

static void the_node_of_eight_gpus_is_what_the_file_says(void **state)
{
    static const char *const THREADS[] = {"12-13,28-29", "14-15,30-31", "4-5,20-21", "6-7,22-23",
                                          "0-1,16-17",   "2-3,18-19",   "8-9,24-25", "10-11,26-27"};
    fsdp_topology           *topology  = open_node("eight_gpus.xml");
    const fsdp_node         *node      = fsdp_topology_node(topology);

    (void)state;
    assert_int_equal(1, node->n_packages);
    assert_int_equal(4, node->n_numas);
    assert_int_equal(8, node->n_caches);
    assert_int_equal(3, node->caches[0].level);
    assert_int_equal(0, node->cores[0].level);
    assert_int_equal(16, node->n_cores);
    assert_int_equal(8, node->n_gpus);
    assert_int_equal(5, node->n_nics);
    for (int g = 0; g < 8; g++) {
        assert_int_equal(g, node->gpus[g].smi);
        assert_int_equal(0x1f, node->gpus[g].hive);
        assert_true(node->gpus[g].bytes == (uint64_t)67092480 * 1024);
        assert_true(mask_is(&node->gpus[g].threads, THREADS[g]));
    }
    assert_int_equal(200000, node->links[1].max_bandwidth);
    assert_int_equal(0, node->is_here);
    fsdp_topology_close(topology);
}

/* Four GPUs of six parts each, of which the third lists its parts out of order. */
static void parts_of_a_gpu_are_devices_of_their_own(void **state)
{
    static const char *const ADDRESSES[] = {"0000:01:00.0", "0000:11:00.0", "0000:81:00.0", "0000:91:00.0"};
    fsdp_topology           *topology    = open_node("partitioned.xml");
    const fsdp_node         *node        = fsdp_topology_node(topology);

    (void)state;
    assert_int_equal(24, node->n_gpus);
    for (int g = 0; g < 24; g++) {
        assert_string_equal(ADDRESSES[g / 6], node->gpus[g].address);
        assert_int_equal(g % 6, node->gpus[g].ordinal);
        assert_int_equal(g, node->gpus[g].smi);
        assert_int_equal(g / 6, node->gpus[g].numa);
        assert_int_equal(0x1002, node->gpus[g].vendor);
        assert_string_equal("made-up MI300A", node->gpus[g].name);
        assert_true(node->gpus[g].bytes == (uint64_t)22369621 * 1024);
    }
    assert_int_equal(100000, node->links[0 * 24 + 1].max_bandwidth);
    assert_int_equal(50000, node->links[0 * 24 + 6].max_bandwidth);
    assert_int_equal(50000, node->links[13 * 24 + 1].max_bandwidth);
    assert_int_equal(FSDP_LINK_UNKNOWN, node->links[0 * 24 + 12].type);
    fsdp_topology_close(topology);
}

/* HBM beside each of two NUMA nodes, NVM and CXL memory beside both, and one that is next to no core. */
static void memory_beside_the_main_memory_is_told_apart(void **state)
{
    static const int         NUMBERS[] = {6, 4, 5, 2, 3}, NUMAS[] = {-1, -1, -1, 0, 1}, GIB[] = {128, 512, 256, 16, 16};
    static const char *const KINDS[]  = {"no cores", "NVM", "CXL", "HBM", "HBM"};
    fsdp_topology           *topology = open_node("memories.xml");
    const fsdp_node         *node     = fsdp_topology_node(topology);

    (void)state;
    assert_int_equal(2, node->n_numas);
    assert_int_equal(0, node->numas[0].number);
    assert_int_equal(1, node->numas[1].number);
    assert_int_equal(5, node->n_memories);
    for (int i = 0; i < 5; i++) {
        const fsdp_memory_node *memory = &node->memories[i];
        int                     at     = 0;

        while (at < 5 && NUMBERS[at] != memory->number) {
            at++;
        }
        assert_true(at < 5);
        assert_string_equal(KINDS[at], memory->kind);
        assert_int_equal(NUMAS[at], memory->numa);
        assert_int_equal(GIB[at], memory->bytes >> 30);
    }
    assert_int_equal(1, node->sources[FSDP_SOURCE_MEMORY].present);
    assert_non_null(
        strstr(node->sources[FSDP_SOURCE_MEMORY].text, "128.0 GiB of main memory; not planned onto: NUMA nodes"));
    assert_non_null(strstr(node->sources[FSDP_SOURCE_MEMORY].text, "2-3 (HBM)"));
    assert_non_null(strstr(node->sources[FSDP_SOURCE_MEMORY].text, "4 (NVM)"));
    assert_non_null(strstr(node->sources[FSDP_SOURCE_MEMORY].text, "5 (CXL)"));
    fsdp_topology_close(topology);
}

/* Where HBM is all there is, it is the main memory. */
static void memory_without_any_beside_it_is_the_main_memory(void **state)
{
    fsdp_topology *topology;
    const char    *file = make_file(
           "<topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
              "allowed_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\">"
              "<object type=\"NUMANode\" subtype=\"HBM\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
              "nodeset=\"0x1\" "
              "complete_nodeset=\"0x1\" local_memory=\"1073741824\"/>"
              "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
              "complete_nodeset=\"0x1\"/></object></topology>\n");

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_topology_open(file, &topology));
    assert_int_equal(1, fsdp_topology_node(topology)->n_numas);
    assert_int_equal(0, fsdp_topology_node(topology)->n_memories);
    assert_string_equal("1.0 GiB of main memory", fsdp_topology_node(topology)->sources[FSDP_SOURCE_MEMORY].text);
    fsdp_topology_close(topology);
    (void)remove(made);
}

/* hwloc tells three kinds of these, of which two differ by a step of the clock. */
static void kinds_of_cores_are_told_apart(void **state)
{
    fsdp_topology   *topology = open_node("two_kinds.xml");
    const fsdp_node *node     = fsdp_topology_node(topology);

    (void)state;
    assert_int_equal(2, node->n_kinds);
    assert_string_equal("IntelCore", node->kinds[0].name);
    assert_int_equal(4, node->kinds[0].n_cores);
    assert_string_equal("IntelAtom", node->kinds[1].name);
    assert_int_equal(8, node->kinds[1].n_cores);
    for (size_t c = 0; c < node->n_cores; c++) {
        assert_int_equal(c >= 4, node->cores[c].kind);
    }
    fsdp_topology_close(topology);
    topology = open_node("laptop.xml");
    assert_int_equal(0, fsdp_topology_node(topology)->n_kinds);
    fsdp_topology_close(topology);
}

/* Each GPU has two links of 53125 MB/s to a switch. */
static void gpus_behind_a_switch_are_linked(void **state)
{
    fsdp_topology   *topology = open_node("switched.xml");
    const fsdp_node *node     = fsdp_topology_node(topology);

    (void)state;
    assert_int_equal(4, node->n_gpus);
    for (int from = 0; from < 4; from++) {
        for (int to = 0; to < 4; to++) {
            const fsdp_link *link = &node->links[from * 4 + to];

            assert_int_equal(from == to ? FSDP_LINK_UNKNOWN : FSDP_LINK_NVLINK, link->type);
            assert_int_equal(from == to ? 0 : 106250, link->max_bandwidth);
        }
    }
    fsdp_topology_close(topology);
}

static void a_record_says_that_nothing_else_was_asked(void **state)
{
    fsdp_topology   *topology = open_node("eight_gpus.xml");
    const fsdp_node *node     = fsdp_topology_node(topology);
    fsdp_gpu_health  health;

    (void)state;
    assert_int_equal(1, node->sources[FSDP_SOURCE_HWLOC].present);
    assert_int_equal(0, node->sources[FSDP_SOURCE_SMI].present);
    assert_int_equal(0, node->sources[FSDP_SOURCE_HIP].present);
    assert_non_null(strstr(node->sources[FSDP_SOURCE_SMI].text, "recorded"));
    assert_string_equal("rocm-smi", fsdp_source_name(FSDP_SOURCE_SMI));
    assert_int_equal(FSDP_OK, fsdp_gpu_health_read(topology, 0, &health));
    assert_true(health.used_bytes < 0.0 && health.busy_percent < 0.0 && health.temperature_celsius < 0.0);
    assert_int_equal(FSDP_ERR_ARG, fsdp_gpu_health_read(topology, 8, &health));
    fsdp_topology_close(topology);
}

static void a_variable_names_the_file(void **state)
{
    fsdp_topology *topology;

    (void)state;
    (void)setenv("FSDP_TOPOLOGY", node_file("laptop.xml"), 1);
    const fsdp_status status = fsdp_topology_open(NULL, &topology);
    (void)unsetenv("FSDP_TOPOLOGY");
    assert_int_equal(FSDP_OK, status);
    assert_int_equal(4, fsdp_topology_node(topology)->n_cores);
    fsdp_topology_close(topology);
}

/* Whatever machine this is. */
static void this_machine_is_read_in_silence(void **state)
{
    fsdp_topology  *topology;
    fsdp_local_rank mine;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_topology_open(NULL, &topology));
    const fsdp_node *node = fsdp_topology_node(topology);
    assert_int_equal(1, node->is_here);
    assert_true(node->n_cores >= 1);
    assert_int_equal(FSDP_OK, fsdp_local_rank_look(&mine));
    for (int thread = 0; thread < 64 * FSDP_MASK_WORDS; thread++) {
        assert_true(!fsdp_mask_has(&mine.threads, thread) || fsdp_mask_has(&node->threads, thread));
    }
    for (int s = 0; s < FSDP_N_SOURCES; s++) {
        assert_true(node->sources[s].text[0] != '\0');
    }
    fsdp_topology_close(topology);
}

int main(void)
{
#define SILENT(test) cmocka_unit_test_setup_teardown(test, catch_stderr, release_stderr)
    static const struct CMUnitTest tests[] = {
        SILENT(a_file_that_is_not_there_is_an_error),
        SILENT(a_file_that_holds_no_topology_is_an_error),
        SILENT(version_3_is_an_error_that_says_how_to_write_2),
        SILENT(a_file_that_is_cut_off_is_an_error),
        SILENT(a_file_that_does_not_parse_is_an_error),
        SILENT(a_thread_above_4095_is_unsupported),
        SILENT(null_is_an_error_or_nothing),
        SILENT(a_console_is_no_gpu_and_links_are_found),
        SILENT(what_a_record_says_is_one_line_of_printable_text),
        SILENT(a_uuid_is_taken_only_if_it_is_one),
        SILENT(the_node_of_eight_gpus_is_what_the_file_says),
        SILENT(parts_of_a_gpu_are_devices_of_their_own),
        SILENT(memory_beside_the_main_memory_is_told_apart),
        SILENT(memory_without_any_beside_it_is_the_main_memory),
        SILENT(kinds_of_cores_are_told_apart),
        SILENT(gpus_behind_a_switch_are_linked),
        SILENT(a_record_says_that_nothing_else_was_asked),
        SILENT(a_variable_names_the_file),
        SILENT(this_machine_is_read_in_silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
