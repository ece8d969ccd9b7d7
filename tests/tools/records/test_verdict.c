/* What fsdp-why says of records that are made up: of several hosts, with other clocks, of other jobs, and of files that are damaged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_test.h"
#include "tools/records/pack.h"
#include "tools/records/verdict.h"
#include "tools/records/view.h"

enum { OPERATIONS = 40, SIZE = 4, PER_NODE = 2 };
static const uint64_t SECOND = 1000000000u;

/* One rank of a job of 4 on 2 hosts that has ended all of its operations, and does its own work for a second. */
static record_rank made_up_rank(int rank, record_entry *entries)
{
    record_rank r = {.entries = entries, .n = OPERATIONS};

    memcpy(r.head.magic, FSDPI_RECORDED_MAGIC, 8);
    r.head.version       = FSDPI_RECORDED_VERSION;
    r.head.node_ranks    = PER_NODE;
    r.head.size          = SIZE;
    r.head.nodes         = SIZE / PER_NODE;
    r.head.node          = (uint32_t)(rank / PER_NODE);
    r.head.id            = 77;
    r.head.opened        = (fsdpi_recorded_moment){SECOND, SECOND, 1700000000 * SECOND};
    r.head.written       = (fsdpi_recorded_moment){100 * SECOND, 100 * SECOND, 1700000099 * SECOND};
    r.head.cause         = FSDPI_CAUSE_TIMEOUT;
    r.head.process       = 'R';
    r.head.oom_kills     = 3;
    r.head.written_by    = rank;
    r.section.rank       = rank;
    r.section.shown_rank = rank;
    r.section.file_rank  = rank;
    r.section.pid        = 100 + rank;
    r.section.number     = 1;
    r.section.started    = 5;
    r.section.oom_kills  = 3;
    r.section.issued     = OPERATIONS;
    r.section.ended      = OPERATIONS;
    r.section.since      = 99 * SECOND;
    r.section.n_names    = 3;
    (void)snprintf(r.head.host, sizeof r.head.host, "node%d", rank / PER_NODE);
    (void)snprintf(r.head.boot, sizeof r.head.boot, "boot-%d", rank / PER_NODE);
    (void)snprintf(r.head.job, sizeof r.head.job, "test job 1");
    (void)snprintf(r.section.names[1], FSDPI_RECORDED_NAME_BYTES, "allgather");
    (void)snprintf(r.section.names[2], FSDPI_RECORDED_NAME_BYTES, "fsdp_unit_begin_backward");
    for (int i = 0; i < OPERATIONS; i++) {
        const uint64_t begun = (uint64_t)(10 + i) * SECOND;
        entries[i]           = (record_entry){.sequence   = (uint64_t)i,
                                              .issued     = begun,
                                              .begun      = begun,
                                              .ended      = begun + SECOND / 100,
                                              .count      = 16,
                                              .bytes      = 64,
                                              .state      = FSDPI_RECORDED_DONE,
                                              .dtype      = 1,
                                              .op         = -1,
                                              .root       = -1,
                                              .collective = 1,
                                              .call       = 2,
                                              .label      = "h.4"};
    }
    return r;
}

/* It waits in its last operation, for so many seconds. */
static void let_wait(record_rank *r, uint64_t seconds)
{
    record_entry *entry = &r->entries[OPERATIONS - 1];

    entry->state  = FSDPI_RECORDED_AGREEING;
    entry->issued = entry->begun = (100 - seconds) * SECOND;
    entry->ended                 = 0;
    r->section.ended             = OPERATIONS - 1;
    r->section.since             = entry->issued;
    r->section.doing             = (uint64_t)FSDPI_DOING_WAITING << FSDPI_DOING_SHIFT | (OPERATIONS - 1);
}

/* It never came to that. */
static void keep_away(record_rank *r)
{
    r->n--;
    r->section.issued = r->section.ended = OPERATIONS - 1;
    r->section.since                     = 62 * SECOND;
}

typedef struct job {
    record_rank  ranks[SIZE];
    record_entry entries[SIZE][OPERATIONS];
    records      all;
    verdict      found;
} job;

/* All but one wait for it. */
static void make(job *j, int victim)
{
    *j = (job){.all = {0}};
    for (int r = 0; r < SIZE; r++) {
        j->ranks[r] = made_up_rank(r, j->entries[r]);
        if (r == victim) {
            keep_away(&j->ranks[r]);
        } else if (victim >= 0) {
            let_wait(&j->ranks[r], 38);
        }
    }
}

static void take(job *j, int rank)
{
    size_t         bytes;
    unsigned char *data = records_pack(&j->ranks[rank], SIZE_MAX, &bytes);

    assert_non_null(data);
    assert_true(records_take(&j->all, data, bytes, "a record"));
    free(data);
}

static int judge(job *j)
{
    verdict_job picked;

    assert_true(verdict_pick_job(&j->all, 0, &picked));
    verdict_find(&picked, 5, &j->found);
    const record_rank *culprit = j->found.culprit;
    const int          rank    = culprit != NULL ? culprit->section.shown_rank : -1;
    verdict_release_job(&picked);
    records_release(&j->all);
    return rank;
}

static int judge_all(job *j)
{
    for (int r = 0; r < SIZE; r++) {
        take(j, r);
    }
    return judge(j);
}

static void assert_text(const job *j, const char *words)
{
    if (strstr(j->found.text, words) == NULL) {
        (void)printf("'%s' is not in: %s\n", words, j->found.text);
    }
    assert_non_null(strstr(j->found.text, words));
}

static void a_rank_that_stays_away_is_named_with_its_operation(void **state)
{
    static job j;

    (void)state;
    make(&j, 3);
    assert_int_equal(3, judge_all(&j));
    assert_int_equal(VERDICT_AWAY, j.found.kind);
    assert_text(&j, "Rank 3 on node1 (process 103) is in its own code, since ");
    assert_text(
        &j, ", 38 s; it never came to operation 39, allgather of h.4 for the backward pass. 3 ranks wait there, the "
            "longest for 38 s.");
}

/* By minutes, on the host of the victim and on the other. */
static void clocks_of_hosts_may_differ(void **state)
{
    static job j;

    (void)state;
    for (int host = 0; host < 2; host++) {
        for (int64_t minutes = -600; minutes <= 600; minutes += 300) {
            make(&j, 1);
            for (int r = PER_NODE * host; r < PER_NODE * (host + 1); r++) {
                const uint64_t shift = (uint64_t)(minutes * 60 * (int64_t)SECOND);
                j.ranks[r].head.opened.real += shift;
                j.ranks[r].head.written.real += shift;
            }
            assert_int_equal(1, judge_all(&j));
            assert_int_equal(VERDICT_AWAY, j.found.kind);
            assert_text(&j, "3 ranks wait there, the longest for 38 s.");
        }
    }
}

static void what_became_of_the_process_says_more(void **state)
{
    static job j;

    (void)state;
    make(&j, 2);
    j.ranks[2].head.process = 'T';
    assert_int_equal(2, judge_all(&j));
    assert_int_equal(VERDICT_STOPPED, j.found.kind);

    make(&j, 2);
    j.ranks[2].head.process = 0;
    assert_int_equal(2, judge_all(&j));
    assert_int_equal(VERDICT_GONE, j.found.kind);

    make(&j, 2);
    j.ranks[2].head.process   = 0;
    j.ranks[2].head.oom_kills = 4; /* one more than at the start: 137 alone would not say so */
    assert_int_equal(2, judge_all(&j));
    assert_int_equal(VERDICT_OOM, j.found.kind);
    assert_text(&j, "for want of memory, 1 since the start");

    make(&j, 2);
    j.ranks[2].head.cause  = FSDPI_CAUSE_SIGNAL;
    j.ranks[2].head.signal = 11;
    assert_int_equal(2, judge_all(&j));
    assert_int_equal(VERDICT_CRASHED, j.found.kind);

    make(&j, 2);
    j.ranks[2].section.doing = (uint64_t)FSDPI_DOING_LEFT << FSDPI_DOING_SHIFT;
    assert_int_equal(2, judge_all(&j));
    assert_int_equal(VERDICT_GONE, j.found.kind);
    assert_text(&j, "has left: the context is finalized there");
}

static void a_node_without_records_is_gone_and_a_rank_is_unknown(void **state)
{
    static job j;

    (void)state;
    make(&j, 3);
    take(&j, 0);
    take(&j, 1);
    assert_int_equal(-1, judge(&j));
    assert_int_equal(VERDICT_NODE_GONE, j.found.kind);
    assert_text(&j, "There is no record of a whole node: of ranks 2, 3.");

    make(&j, 3);
    for (int r = 0; r < 3; r++) {
        take(&j, r);
    }
    assert_int_equal(-1, judge(&j));
    assert_int_equal(VERDICT_UNKNOWN, j.found.kind);
    assert_text(&j, "There is no record of rank 3.");
}

static void ranks_that_only_wait_for_each_other_are_stuck(void **state)
{
    static job j;

    (void)state;
    make(&j, -1);
    for (int r = 0; r < SIZE; r++) {
        let_wait(&j.ranks[r], 38);
    }
    assert_int_equal(-1, judge_all(&j));
    assert_int_equal(VERDICT_STUCK, j.found.kind);
    assert_text(&j, "All ranks have come to operation 39");
}

static void a_short_wait_is_not_worth_a_word(void **state)
{
    static job j;

    (void)state;
    make(&j, -1);
    for (int r = 0; r < SIZE; r++) {
        j.ranks[r].head.cause = FSDPI_CAUSE_NONE;
        if (r != 1) {
            let_wait(&j.ranks[r], 1);
        }
    }
    keep_away(&j.ranks[1]);
    assert_int_equal(-1, judge_all(&j));
    assert_int_equal(VERDICT_FINE, j.found.kind);
}

static void different_calls_are_told_with_who_made_them(void **state)
{
    static job j;

    (void)state;
    make(&j, -1);
    for (int r = 0; r < SIZE; r++) {
        record_entry *entry   = &j.ranks[r].entries[OPERATIONS - 1];
        entry->state          = FSDPI_RECORDED_FAILED;
        entry->status         = 3;
        entry->count          = r == 2 ? 17 : 16;
        j.ranks[r].head.cause = FSDPI_CAUSE_FAILED;
    }
    assert_int_equal(2, judge_all(&j));
    assert_int_equal(VERDICT_MISMATCH, j.found.kind);
    assert_text(
        &j, "operation 39: ranks 0, 1, 3 called allgather of h.4 for the backward pass, 16 f32 elements, and rank 2 "
            "called allgather of h.4 for the backward pass, 17 f32 elements.");
}

/* Its operations take 2 ms, those of the others 12 ms. */
static void a_rank_that_is_always_last_is_slow(void **state)
{
    static job j;

    (void)state;
    make(&j, -1);
    for (int r = 0; r < SIZE; r++) {
        j.ranks[r].head.cause = FSDPI_CAUSE_ASKED;
        for (int i = 0; i < OPERATIONS; i++) {
            record_entry *entry = &j.ranks[r].entries[i];
            entry->issued = entry->begun = SECOND + (uint64_t)i * 20 * SECOND / 1000;
            entry->ended                 = entry->begun + (r == 3 ? 2 : 12) * SECOND / 1000;
        }
    }
    assert_int_equal(3, judge_all(&j));
    assert_int_equal(VERDICT_SLOW, j.found.kind);
    assert_text(&j, "in 40 of the last 40 operations in which ranks waited for another, by 10 ms on average");
}

static bool has_note(const records *all, const char *words)
{
    for (size_t i = 0; i < all->n_notes; i++) {
        if (strstr(all->notes[i], words) != NULL) {
            return true;
        }
    }
    return false;
}

static void records_of_another_job_are_left_out(void **state)
{
    static job j, other;

    (void)state;
    make(&j, 3);
    make(&other, 0);
    for (int r = 0; r < SIZE; r++) {
        other.ranks[r].head.id = 78;
        other.ranks[r].section.pid += 1000;
        other.ranks[r].head.opened.real -= 3600 * SECOND; /* an older one */
        (void)snprintf(other.ranks[r].head.job, FSDPI_RECORDED_JOB_BYTES, "test job 0");
        take(&j, r);
        other.all = j.all;
        take(&other, r);
        j.all = other.all;
    }
    verdict_job picked;
    assert_true(verdict_pick_job(&j.all, 0, &picked));
    assert_true(has_note(&j.all, "4 records of other jobs are left out"));
    verdict_release_job(&picked);
    assert_int_equal(3, judge(&j));
}

/* Cut anywhere, of another version, or of something else: noted, and left out. */
static void what_is_no_whole_record_is_noted(void **state)
{
    static job j;
    size_t     bytes;
    records    all = {0};

    (void)state;
    make(&j, 3);
    unsigned char *data = records_pack(&j.ranks[0], SIZE_MAX, &bytes);
    assert_non_null(data);
    for (size_t cut = 0; cut < bytes; cut += 97) {
        assert_false(records_take(&all, data, cut, "cut"));
    }
    assert_true(has_note(&all, "only a part of it was written"));
    data[8]++; /* the version */
    records_release(&all);
    assert_false(records_take(&all, data, bytes, "newer"));
    assert_true(has_note(&all, "newer was written by another version of libfsdp"));
    data[0] = 'X';
    assert_false(records_take(&all, data, bytes, "other"));
    assert_true(has_note(&all, "other is not a record"));
    free(data);
    records_release(&all);
}

/* As a launcher passes them on: mixed, with other lines in between, and some of them lost. */
static void lines_are_put_together_again(void **state)
{
    static job     j;
    char          *text;
    size_t         size;
    FILE          *stream = open_memstream(&text, &size);
    records        back   = {0};
    records_lines *lines  = records_lines_begin();
    int            n      = 0;

    (void)state;
    make(&j, 3);
    for (int r = 0; r < SIZE; r++) {
        take(&j, r);
    }
    records_write_lines(&j.all, stream);
    (void)fclose(stream);
    records_lines_take(lines, "Welcome to node1\n");
    for (int odd = 0; odd < 2; odd++) { /* first every other line, then the rest; the last record loses one */
        n = 0;
        for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1, n++) {
            assert_true(strcspn(line, "\n") < 1024); /* longer ones Slurm cuts */
            if (n % 2 == odd && strncmp(line + strlen("fsdp-record 1 "), "node1.103.1 3/", 14) != 0) {
                records_lines_take(lines, line);
            }
        }
    }
    assert_int_equal(3, records_lines_end(lines, &back));
    assert_true(has_note(&back, "lines have come"));
    assert_int_equal(38, (int)view_seconds_since(&back.ranks[0], back.ranks[0].section.since));
    records_release(&back);
    records_release(&j.all);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_stays_away_is_named_with_its_operation),
        cmocka_unit_test(clocks_of_hosts_may_differ),
        cmocka_unit_test(what_became_of_the_process_says_more),
        cmocka_unit_test(a_node_without_records_is_gone_and_a_rank_is_unknown),
        cmocka_unit_test(ranks_that_only_wait_for_each_other_are_stuck),
        cmocka_unit_test(a_short_wait_is_not_worth_a_word),
        cmocka_unit_test(different_calls_are_told_with_who_made_them),
        cmocka_unit_test(a_rank_that_is_always_last_is_slow),
        cmocka_unit_test(records_of_another_job_are_left_out),
        cmocka_unit_test(what_is_no_whole_record_is_noted),
        cmocka_unit_test(lines_are_put_together_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
