/* What follows from how attempts ended, and which nodes are taken. */
#include <signal.h>
#include <string.h>

#include "fsdp/stop.h"
#include "tests/support/unit_test.h"
#include "tools/run/decide.h"

static run_end ended(int status, const char *word, bool is_own, int64_t from, int64_t to)
{
    return (run_end){.status = status, .word = word, .is_own = is_own, .from = from, .to = to};
}

static run_stop decide(const run_end *before, run_end last)
{
    char why[RUN_MESSAGE_BYTES];

    return run_decide(before, &last, 1, 10, why);
}

static void a_program_that_ends_well_is_a_success(void **state)
{
    (void)state;
    assert_int_equal(RUN_SUCCESS, decide(NULL, ended(0, "", false, -1, 40)));
}

static void one_that_was_lost_goes_on(void **state)
{
    const run_end before = ended(137, "gone", false, -1, 20);

    (void)state;
    assert_int_equal(RUN_GO_ON, decide(NULL, ended(137, "gone", false, -1, -1)));
    assert_int_equal(RUN_GO_ON, decide(&before, ended(137, "gone", false, 20, 40)));
    assert_int_equal(RUN_GO_ON, decide(&before, ended(137, "gone", false, 20, 20))); /* the one before made steps */
}

static void two_attempts_without_a_step_are_enough(void **state)
{
    const run_end never = ended(137, "gone", false, -1, -1), stuck = ended(137, "gone", false, 20, 20);

    (void)state;
    assert_int_equal(RUN_NO_PROGRESS, decide(&never, ended(137, "stopped", false, -1, -1)));
    assert_int_equal(RUN_NO_PROGRESS, decide(&stuck, ended(137, "gone", false, 20, 20)));
}

static void the_same_error_of_its_own_at_the_same_step_is_the_programs(void **state)
{
    const run_end before = ended(1, "exit", true, 0, 20), crash = ended(139, "crashed", true, 0, 20);

    (void)state;
    assert_int_equal(RUN_GO_ON, decide(NULL, before));
    assert_int_equal(RUN_APP_ERROR, decide(&before, ended(1, "exit", true, 20, 20)));
    assert_int_equal(RUN_APP_ERROR, decide(&crash, ended(139, "crashed", true, 20, 20)));
    assert_int_equal(RUN_GO_ON, decide(&before, ended(1, "exit", true, 20, 40)));
    assert_int_equal(RUN_GO_ON, decide(&before, ended(139, "crashed", true, 20, 20)));
}

static void signals_end_a_run(void **state)
{
    run_end last = ended(143, "", false, 0, 20);

    (void)state;
    last.signal = SIGTERM;
    assert_int_equal(RUN_INTERRUPTED, decide(NULL, last));
    last.status = 0;
    assert_int_equal(RUN_INTERRUPTED, decide(NULL, last));
    last.signal = SIGUSR1;
    assert_int_equal(RUN_SUCCESS, decide(NULL, last));
    last.status = FSDP_STOP_EXIT_STATUS;
    assert_int_equal(RUN_TIME_LIMIT, decide(NULL, last));
    last.signal = 0;
    assert_int_equal(RUN_TIME_LIMIT, decide(NULL, last));
}

static void restarts_are_counted(void **state)
{
    const run_end last = ended(137, "gone", false, 0, 20);
    char          why[RUN_MESSAGE_BYTES];

    (void)state;
    assert_int_equal(RUN_GO_ON, run_decide(NULL, &last, 1, 2, why));
    assert_int_equal(RUN_NO_PROGRESS, run_decide(NULL, &last, 2, 2, why));
    assert_non_null(strstr(why, "--max-restarts 2"));
}

static void statuses_match_words(void **state)
{
    (void)state;
    assert_string_equal("no-nodes", run_stop_word(RUN_NO_NODES));
    assert_int_equal(0, run_stop_status(RUN_SUCCESS, SIGUSR1));
    assert_int_equal(128 + SIGINT, run_stop_status(RUN_INTERRUPTED, SIGINT));
    assert_int_equal(FSDP_STOP_EXIT_STATUS, run_stop_status(RUN_TIME_LIMIT, SIGUSR1));
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------------- */

enum { NODES = 5 };

static void choose(run_nodes *nodes, size_t wanted, size_t least, const char *expected)
{
    run_node *chosen[NODES];
    char      names[NODES + 1];
    size_t    n = run_choose(nodes, wanted, least, chosen);

    for (size_t i = 0; i < n; i++) {
        names[i] = chosen[i]->name[0];
    }
    names[n] = '\0';
    assert_string_equal(expected, names);
}

static void spares_come_in_then_there_are_fewer_then_suspects(void **state)
{
    run_node  list[NODES] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}, {.name = "e"}};
    run_nodes nodes       = {.list = list, .n = NODES};

    (void)state;
    choose(&nodes, 3, 2, "abc");
    list[1].state   = RUN_NODE_SUSPECT;
    list[1].charges = 2;
    choose(&nodes, 3, 2, "acd");
    list[0].state = RUN_NODE_GONE;
    choose(&nodes, 3, 2, "cde");
    list[2].state   = RUN_NODE_SUSPECT;
    list[2].charges = 1;
    choose(&nodes, 3, 2, "de");
    list[3].state = RUN_NODE_GONE;
    choose(&nodes, 3, 2, "ce"); /* c, which has less against it than b */
    list[4].state = RUN_NODE_GONE;
    choose(&nodes, 3, 2, "bc");
    list[2].state = RUN_NODE_GONE;
    choose(&nodes, 3, 2, "b"); /* too few */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_ends_well_is_a_success),
        cmocka_unit_test(one_that_was_lost_goes_on),
        cmocka_unit_test(two_attempts_without_a_step_are_enough),
        cmocka_unit_test(the_same_error_of_its_own_at_the_same_step_is_the_programs),
        cmocka_unit_test(signals_end_a_run),
        cmocka_unit_test(restarts_are_counted),
        cmocka_unit_test(statuses_match_words),
        cmocka_unit_test(spares_come_in_then_there_are_fewer_then_suspects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
