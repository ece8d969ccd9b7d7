/**
 * @file
 * Schedules of pipelines: those that are generated keep what is known of them, those that are spoiled are refused, and neither more nor
 * fewer than cannot be executed.
 */
#include <stdio.h>
#include <string.h>

#include "shard/pipeline/generate.h"
#include "shard/pipeline/lower.h"
#include "shard/pipeline/schedule_text.h"
#include "shard/pipeline/simulate.h"
#include "shard/pipeline/verify.h"
#include "tests/shard/pipeline/executor.h"
#include "tests/shard/pipeline/spoiled.h"
#include "tests/support/unit_test.h"

/* Whole numbers, whose sums are exact. */
static const fsdpi_pace PACE = {.forward = 1, .backward_input = 1, .backward_weight = 1, .buffers = 1};

static fsdpi_schedule generate(fsdpi_pipeline_kind kind, int ranks, int each, int micros)
{
    fsdpi_schedule schedule;
    fsdpi_flaw     flaw;

    if (!fsdpi_generate(&schedule, kind, ranks, each, micros, &flaw)) {
        fail_msg("%s", flaw.text);
    }
    return schedule;
}

static fsdpi_schedule lower(fsdpi_schedule *schedule)
{
    fsdpi_passes   passes;
    fsdpi_schedule lowered;
    fsdpi_flaw     flaw;

    if (!fsdpi_passes_open(&passes, schedule, &flaw) || !fsdpi_verify_passes(&passes, &flaw) ||
        !fsdpi_lower(&passes, &lowered, &flaw)) {
        fail_msg("%s", flaw.text);
    }
    fsdpi_passes_close(&passes);
    fsdpi_schedule_close(schedule);
    return lowered;
}

/* All that is proved of a lowered schedule. `run` is to be closed. */
static bool is_good(const fsdpi_schedule *lowered, const fsdpi_pace *pace, fsdpi_simulation *run, fsdpi_flaw *flaw)
{
    fsdpi_passes passes;

    *run = (fsdpi_simulation){0};
    if (!fsdpi_passes_open(&passes, lowered, flaw)) {
        return false;
    }
    const bool good = fsdpi_verify_passes(&passes, flaw) && fsdpi_verify_order(&passes, flaw) &&
                      fsdpi_simulate(&passes, pace, run, flaw);
    fsdpi_passes_close(&passes);
    return good;
}

/* ---- what is generated ----------------------------------------------------------------------------------------------- */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Micro-batches that a rank holds at once, by the papers. */
static int expected_held(fsdpi_pipeline_kind kind, int ranks, int each, int micros, int rank)
{
    switch (kind) {
    case FSDPI_GPIPE:
        return micros;
    case FSDPI_INTERLEAVED:
        return smaller(2 * (ranks - 1 - rank) + (each - 1) * ranks + 1, micros * each);
    default:
        return smaller(ranks - rank, micros);
    }
}

static void check_generated(fsdpi_pipeline_kind kind, int ranks, int each, int micros)
{
    fsdpi_schedule   schedule = generate(kind, ranks, each, micros), lowered = lower(&schedule);
    const double     computed = 3.0 * micros * each, bubble = fsdpi_bubble(kind, ranks, each, micros);
    fsdpi_simulation run;
    fsdpi_flaw       flaw;

    if (!is_good(&lowered, &PACE, &run, &flaw)) {
        fail_msg("%s, %d ranks of %d stages, %d micro-batches: %s", fsdpi_pipeline_kind_text(kind), ranks, each, micros,
                 flaw.text);
    }
    assert_int_equal((ranks * each - 1) * 2 * micros * (ranks > 1), run.messages);
    if (bubble >= 0 && run.seconds * (1 - bubble) - computed > 1e-9 * computed) {
        fail_msg("%s, %d ranks of %d stages, %d micro-batches: a step of %g, a bubble of %g",
                 fsdpi_pipeline_kind_text(kind), ranks, each, micros, run.seconds, bubble);
    }
    for (int r = 0; r < ranks; r++) {
        assert_true(run.ranks[r].busy == computed);
        assert_int_equal(expected_held(kind, ranks, each, micros, r), run.ranks[r].most_held);
        assert_in_range(run.ranks[r].most_owed, 0, kind == FSDPI_ZB_H1 ? r + 1 : 0);
    }
    fsdpi_simulation_close(&run);
    fsdpi_schedule_close(&lowered);
}

static void generated_ones_are_good_and_as_fast_as_the_formulas_say(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 16; ranks++) {
        for (int micros = 1; micros <= 64; micros++) {
            check_generated(FSDPI_GPIPE, ranks, 1, micros);
            check_generated(FSDPI_1F1B, ranks, 1, micros);
            check_generated(FSDPI_ZB_H1, ranks, 1, micros);
            for (int each = 2; each <= 4 && micros % ranks == 0; each++) {
                check_generated(FSDPI_INTERLEAVED, ranks, each, micros);
            }
        }
    }
}

static void transfers_are_waited_for(void **state)
{
    fsdpi_schedule   schedule = generate(FSDPI_1F1B, 2, 1, 1), lowered = lower(&schedule);
    fsdpi_pace       pace = PACE;
    fsdpi_simulation run;
    fsdpi_flaw       flaw;

    (void)state;
    pace.transfer = 10;
    assert_true(is_good(&lowered, &pace, &run, &flaw));
    assert_true(run.seconds == 1 + 10 + 1 + 2 + 10 + 2); /* forward, there, forward, backward, back, backward */
    fsdpi_simulation_close(&run);
    fsdpi_schedule_close(&lowered);
}

static void numbers_that_make_no_schedule_are_refused(void **state)
{
    static const struct {
        fsdpi_pipeline_kind kind;
        int                 ranks, each, micros;
        const char         *text;
    } BAD[] = {
        {FSDPI_INTERLEAVED, 4, 2, 6, "6 is none; take 4 or 8"},
        {FSDPI_INTERLEAVED, 4, 2, 3, "3 is none; take 4 or 8"},
        {FSDPI_INTERLEAVED, 4, 1, 8, "with 1 it is 1f1b"},
        {FSDPI_1F1B, 4, 2, 8, "1f1b has one stage on a rank, not 2"},
        {FSDPI_GPIPE, 0, 1, 8, "0 ranks with 1 stages each and"},
        {FSDPI_ZB_H1, 4096, 1, 4096, "a product of at most 4194304"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        fsdpi_schedule schedule;
        fsdpi_flaw     flaw;

        assert_false(fsdpi_generate(&schedule, BAD[i].kind, BAD[i].ranks, BAD[i].each, BAD[i].micros, &flaw));
        assert_null(schedule.rows);
        if (strstr(flaw.text, BAD[i].text) == NULL) {
            fail_msg("'%s' is not in '%s'", BAD[i].text, flaw.text);
        }
    }
}

/* ---- text ------------------------------------------------------------------------------------------------------------ */

static bool read_text(fsdpi_schedule *schedule, const char *text, fsdpi_flaw *flaw)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    assert_non_null(file);
    const bool read = fsdpi_schedule_read(schedule, file, flaw);
    (void)fclose(file);
    return read;
}

static void what_is_written_is_read_again(void **state)
{
    static char    text[1 << 16], again[1 << 16];
    fsdpi_schedule schedule = generate(FSDPI_INTERLEAVED, 4, 2, 8), lowered = lower(&schedule), read;
    fsdpi_flaw     flaw;
    char          *texts[] = {text, again};

    (void)state;
    for (int i = 0; i < 2; i++) {
        FILE *file = fmemopen(texts[i], sizeof text, "w");
        assert_non_null(file);
        fsdpi_schedule_write(i == 0 ? &lowered : &read, file);
        (void)fclose(file);
        if (i == 0) {
            assert_true(read_text(&read, text, &flaw));
        }
    }
    assert_string_equal(text, again);
    assert_int_equal(8, read.stages);
    assert_int_equal(8, read.micros);
    fsdpi_schedule_close(&read);
    fsdpi_schedule_close(&lowered);
}

static void empty_cells_and_spaces_count_for_nothing(void **state)
{
    fsdpi_schedule schedule;
    fsdpi_flaw     flaw;

    (void)state;
    assert_true(read_text(&schedule, "0F0, ,0B0,\r\n,1F0,\t1B0 ", &flaw));
    assert_int_equal(2, schedule.ranks);
    assert_int_equal(2, schedule.rows[0].n);
    assert_int_equal(2, schedule.rows[1].n);
    fsdpi_schedule_close(&schedule);
}

static void other_text_is_refused_with_its_place(void **state)
{
    static const char *const BAD[] = {"0F", "F0", "0X1", "0F0 1", "0UNSHARD1", "-1F0", "0F1234567", "0SEND0", "0F0x"};

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char           text[64];
        fsdpi_schedule schedule;
        fsdpi_flaw     flaw;

        (void)snprintf(text, sizeof text, "0F0,0B0\n1F0,%s,1B0\n", BAD[i]);
        assert_false(read_text(&schedule, text, &flaw));
        assert_int_equal(1, flaw.rank);
        assert_int_equal(1, flaw.at);
        assert_non_null(strstr(flaw.text, BAD[i]));
    }
}

/* ---- what is refused ------------------------------------------------------------------------------------------------- */

static void flaws_are_named(void **state)
{
    static const struct {
        const char *text, *flaw;
    } BAD[] = {
        {"0F0,0B0\n1F0,1B0,1F0\n", "1F0 is there twice on rank 1, as action 1 and 3"},
        {"0F0,0B0\n1F0,0B1\n", "0B1 is on rank 1, but stage 0 is on rank 0"},
        {"0F0,0B0\n2F0,2B0\n", "stage 1 is on no rank"},
        {"0F0,0B0,0F1\n1F0,1B0,1F1,1B1\n", "0B1 is missing on rank 0"},
        {"0F0,0B0\n1B0\n", "1F0 is missing on rank 1"},
        {"0F0,0I0\n1F0,1B0\n", "0W0 is missing on rank 0"},
        {"0F0,0B0,0W0\n1F0,1B0\n", "0B0 and 0W0: a backward pass is one action, B, or two"},
        {"0B0,0F0\n1F0,1B0\n", "0B0 on rank 0 must come behind 0F0"},
        {"0F0,1B0,1F0,0B0\n", "1B0 on rank 0 must come behind 1F0"},
        {"0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n",
         "0SEND_F0 on rank 0 has nothing at its other end: there is no 1RECV_F0"},
        {"0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n", "1F0 on rank 1 must come behind 1RECV_F0"},
        {"0F0,0B0\n1F0,1B0,1SEND_B0\n", "needs, and there is no 0RECV_B0"},
        {"0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
         "1RECV_F0 on rank 1 has nothing at its other end: there is no 0SEND_F0"},
        {"0F0,0SEND_F0,0SEND_B0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "0SEND_B0 on rank 0 must come behind 0B0"},
        {"0F0,0SEND_F0,0RECV_B0,0B0,0SEND_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "0SEND_B0 on rank 0 has no other rank"},
        {"0UNSHARD,0F0,0RESHARD,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
         "0B0 on rank 0 comes without a 0UNSHARD"},
        {"0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0\n", "1REDUCE_GRAD is missing on rank 1"},
        {"0F0,0SEND_F0,0REDUCE_GRAD,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\n",
         "0REDUCE_GRAD on rank 0 must come behind 0B0"},
        {"0RECV_B0,0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
         "deadlock with 1 buffer: each of these waits for the next, the last for the first: rank 0 at 0RECV_B0, rank 1 "
         "at 1RECV_F0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        fsdpi_schedule   schedule;
        fsdpi_flaw       flaw;
        fsdpi_simulation run;

        assert_true(read_text(&schedule, BAD[i].text, &flaw));
        assert_false(is_good(&schedule, &PACE, &run, &flaw));
        if (strstr(flaw.text, BAD[i].flaw) == NULL) {
            fail_msg("'%s' is not in '%s'", BAD[i].flaw, flaw.text);
        }
        fsdpi_simulation_close(&run);
        fsdpi_schedule_close(&schedule);
    }
}

/* Stage 0 sends two micro-batches before stage 1 takes the first, as it waits for the second. */
static void buffers_decide_whether_it_deadlocks(void **state)
{
    static const char TEXT[] = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0B1,0RECV_B0,0B0\n"
                               "1RECV_F1,1F1,1B1,1SEND_B1,1RECV_F0,1F0,1B0,1SEND_B0\n";
    fsdpi_pace        pace   = PACE;
    fsdpi_schedule    schedule;
    fsdpi_flaw        flaw;
    fsdpi_simulation  run;

    (void)state;
    assert_true(read_text(&schedule, TEXT, &flaw));
    assert_false(is_good(&schedule, &pace, &run, &flaw));
    assert_non_null(strstr(flaw.text, "deadlock with 1 buffer"));
    fsdpi_simulation_close(&run);
    pace.buffers = 2;
    assert_true(is_good(&schedule, &pace, &run, &flaw));
    fsdpi_simulation_close(&run);
    pace.most_held = 1;
    assert_false(is_good(&schedule, &pace, &run, &flaw));
    assert_string_equal("with 0F1, rank 0 holds the activations of 2 micro-batches at once: the limit is 1", flaw.text);
    fsdpi_simulation_close(&run);
    fsdpi_schedule_close(&schedule);
}

/* ---- spoiled by chance ----------------------------------------------------------------------------------------------- */

static void neither_more_nor_fewer_are_refused_than_cannot_be_executed(void **state)
{
    enum { MUTATIONS = 3000 };
    uint64_t chance                   = 12345;
    int      found[HELD_TOO_MUCH + 1] = {0};

    (void)state;
    for (int i = 0; i < MUTATIONS; i++) {
        fsdpi_schedule   schedule = any_schedule(&chance, 2 + i % 3);
        fsdpi_pace       pace     = PACE;
        fsdpi_simulation run;
        fsdpi_flaw       flaw;

        pace.buffers = 1 + (int)draw(&chance, 2);
        if (draw(&chance, 2) == 0) { /* as much as it holds unspoiled */
            assert_true(is_good(&schedule, &pace, &run, &flaw));
            pace.most_held = run.ranks[0].most_held;
            fsdpi_simulation_close(&run);
        }
        spoil(&chance, &schedule);
        const bool     good = is_good(&schedule, &pace, &run, &flaw);
        const executed done = execute(&schedule, pace.buffers, pace.most_held, chance);
        if (good != (done == EXECUTED)) {
            fsdpi_schedule_write(&schedule, stdout);
            fail_msg("mutation %d is %s, but the executor ends with %d", i, good ? "good" : flaw.text, (int)done);
        }
        found[done]++;
        fsdpi_simulation_close(&run);
        fsdpi_schedule_close(&schedule);
    }
    (void)printf("  executed %d, stuck %d, missed %d, held too much %d\n", found[EXECUTED], found[STUCK], found[MISSED],
                 found[HELD_TOO_MUCH]);
    for (int e = 0; e <= HELD_TOO_MUCH; e++) {
        assert_true(found[e] >= 5);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_ones_are_good_and_as_fast_as_the_formulas_say),
        cmocka_unit_test(transfers_are_waited_for),
        cmocka_unit_test(numbers_that_make_no_schedule_are_refused),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(empty_cells_and_spaces_count_for_nothing),
        cmocka_unit_test(other_text_is_refused_with_its_place),
        cmocka_unit_test(flaws_are_named),
        cmocka_unit_test(buffers_decide_whether_it_deadlocks),
        cmocka_unit_test(neither_more_nor_fewer_are_refused_than_cannot_be_executed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
