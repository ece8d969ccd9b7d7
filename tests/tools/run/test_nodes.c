/* Lists of nodes as Slurm writes them, and files of nodes as PBS, LSF, Open MPI and MPICH have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/unit_test.h"
#include "tools/run/nodes.h"

static void join(const run_nodes *nodes, char *text)
{
    text[0] = '\0';
    for (size_t i = 0; i < nodes->n; i++) {
        (void)sprintf(text + strlen(text), "%s%s", i > 0 ? " " : "", nodes->list[i].name);
    }
}

static void expect_list(const char *list, const char *names)
{
    run_nodes nodes                      = {0};
    char      message[RUN_MESSAGE_BYTES] = "", text[4096];

    assert_true(run_nodes_expand(list, &nodes, message));
    join(&nodes, text);
    assert_string_equal(names, text);
    run_nodes_release(&nodes);
}

static void expect_refused(const char *list, const char *words)
{
    run_nodes nodes                      = {0};
    char      message[RUN_MESSAGE_BYTES] = "";

    assert_false(run_nodes_expand(list, &nodes, message));
    assert_non_null(strstr(message, words));
    run_nodes_release(&nodes);
}

static void brackets_are_expanded(void **state)
{
    (void)state;
    expect_list("a", "a");
    expect_list("a,b.site.org,c-1", "a b.site.org c-1");
    expect_list("n[1-3]", "n1 n2 n3");
    expect_list("n[08-11,20],m", "n08 n09 n10 n11 n20 m");
    expect_list("r[1-2]n[01-02]-ib", "r1n01-ib r1n02-ib r2n01-ib r2n02-ib");
}

static void lists_that_are_none_are_refused(void **state)
{
    (void)state;
    expect_refused("", "no list of nodes");
    expect_refused("a,", "no list of nodes");
    expect_refused("n[1-3", "does not end");
    expect_refused("n[]", "empty");
    expect_refused("n[3-1]", "ends before it begins");
    expect_refused("n[1-999999]", "longer than");
    expect_refused("n[1-1000][1-1000]", "more than 100000 nodes");
    expect_refused("n[x]", "no number");
    expect_refused("n[1,,2]", "no number");
    expect_refused("n[1-99999999999999999999]", "no number");
    expect_refused("-oProxyCommand=x", "no name of a node");
    expect_refused("a;b", "no name of a node");
}

static void a_node_twice_is_named(void **state)
{
    (void)state;
    expect_refused("a,b,n[1-3],n2", "'n2' is in it twice");
}

static void in_file(const char *text, bool repeats, bool is_fine, const char *words)
{
    char      path[] = "/tmp/fsdp-nodes-XXXXXX", message[RUN_MESSAGE_BYTES] = "", found[4096] = "";
    run_nodes nodes = {0};
    const int file  = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(strlen(text), write(file, text, strlen(text)));
    (void)close(file);
    assert_int_equal(is_fine, run_nodes_read(path, repeats, &nodes, message));
    for (size_t i = 0; is_fine && i < nodes.n; i++) {
        (void)sprintf(found + strlen(found), "%s%s:%zu", i > 0 ? " " : "", nodes.list[i].name, nodes.list[i].slots);
    }
    if (is_fine) {
        assert_string_equal(words, found);
    } else {
        assert_non_null(strstr(message, words));
    }
    run_nodes_release(&nodes);
    (void)unlink(path);
}

static void host_files_are_read(void **state)
{
    (void)state;
    in_file("# a comment\n\na slots=2\nb slots=4 max_slots=8 # more\nc\nd:3\n", false, true, "a:2 b:4 c:0 d:3");
    in_file("a\na\n", false, false, "'a' is in it twice");
    in_file("a slots=none\n", false, false, "line 1: 'slots=none' is not understood");
    in_file("a\nb:0\n", false, false, "line 2: '0' is no number of slots");
    in_file("# nothing\n", false, false, "names no node");
}

static void names_in_files_of_batch_systems_are_slots(void **state)
{
    (void)state;
    in_file("a\na\nb\na\n", true, true, "a:3 b:1");
}

static void batch_systems_come_in_their_order(void **state)
{
    run_nodes nodes;
    char      message[RUN_MESSAGE_BYTES] = "";

    (void)state;
    (void)unsetenv("PBS_NODEFILE");
    (void)unsetenv("LSB_DJOB_HOSTFILE");
    (void)setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
    assert_true(run_nodes_find(NULL, &nodes, message));
    assert_int_equal(2, nodes.n);
    run_nodes_release(&nodes);
    (void)setenv("SLURM_JOB_NODELIST", "n[1-", 1);
    assert_false(run_nodes_find(NULL, &nodes, message));
    assert_non_null(strstr(message, "SLURM_JOB_NODELIST: "));
    run_nodes_release(&nodes);
    (void)unsetenv("SLURM_JOB_NODELIST");
    (void)setenv("PBS_NODEFILE", "/nonexistent/file", 1);
    assert_false(run_nodes_find(NULL, &nodes, message));
    assert_non_null(strstr(message, "PBS_NODEFILE: /nonexistent/file: No such file"));
    run_nodes_release(&nodes);
    (void)unsetenv("PBS_NODEFILE");
    assert_true(run_nodes_find(NULL, &nodes, message));
    assert_int_equal(1, nodes.n);
    assert_true(run_nodes_is_here(nodes.list[0].name));
    run_nodes_release(&nodes);
}

static void a_domain_may_be_missing(void **state)
{
    (void)state;
    assert_true(run_nodes_same("n1", "n1.site.org"));
    assert_true(run_nodes_same("n1.site.org", "n1.site.org"));
    assert_false(run_nodes_same("n1.site.org", "n1.other.org"));
    assert_false(run_nodes_same("n1", "n11"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brackets_are_expanded),
        cmocka_unit_test(lists_that_are_none_are_refused),
        cmocka_unit_test(a_node_twice_is_named),
        cmocka_unit_test(host_files_are_read),
        cmocka_unit_test(names_in_files_of_batch_systems_are_slots),
        cmocka_unit_test(batch_systems_come_in_their_order),
        cmocka_unit_test(a_domain_may_be_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
