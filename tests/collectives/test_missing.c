/*
 * Who is missing when an operation does not end: each rank in turn, on nodes of all shapes, before an operation and in the
 * middle of one. Every other rank names it and nobody else; and when it comes at last it blames nobody, and fails too.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fsdp/collectives.h"
#include "tests/support/mpi_test.h"

enum { MOST_RANKS = 8, LARGE = 4 << 20 };

/* Patience in SECONDS. A machine at work may take longer to open a context: then with more. */
static int patience_s = 1;

/* One context for each rank, which is the one to be missed there. */
typedef struct contexts {
    fsdp_context *each[MOST_RANKS];
    int           n;
} contexts;

static bool open_all(int node_size, bool threads, contexts *all)
{
    fsdp_config config;
    int         failed = 0;

    fsdp_config_init(&config);
    config.timeout_s = patience_s;
    config.node_size = node_size;
    config.log_level = FSDP_LOG_OFF;
    config.progress  = threads ? FSDP_PROGRESS_AUTO : FSDP_PROGRESS_INLINE;
    for (all->n = 0; all->n < fsdp_test_size() && !failed; all->n++) {
        MPI_Barrier(MPI_COMM_WORLD);
        failed = fsdp_init(MPI_COMM_WORLD, &config, &all->each[all->n]) != FSDP_OK;
        MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    return !failed;
}

static void open_contexts_that_are_missed(int node_size, bool threads, contexts *all)
{
    while (!open_all(node_size, threads, all)) {
        patience_s *= 2;
        assert_true(patience_s < 256);
    }
}

/* Whether a text has "rank N" or "ranks N" for exactly this one. */
static void assert_names(const char *text, int rank)
{
    char words[48];

    (void)snprintf(words, sizeof words, ": rank %d does not answer;", rank);
    if (strstr(text, words) == NULL) {
        fail_msg("rank %d: '%s' does not name rank %d", fsdp_test_rank(), text, rank);
    }
}

static void assert_blames_nobody(const char *text)
{
    if (strstr(text, "this rank itself was stopped or late") == NULL || strstr(text, "does not answer") != NULL) {
        fail_msg("rank %d: '%s' blames others", fsdp_test_rank(), text);
    }
}

static void close_all(contexts *all)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int c = 0; c < all->n; c++) {
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_finalize(all->each[c]));
    }
}

/* The one that is missed comes when all others have given up. Of each context another one. */
static void stay_away(int node_size)
{
    static int32_t values[MOST_RANKS][16];
    contexts       all;
    fsdp_request  *requests[MOST_RANKS] = {NULL};
    const int      me                   = fsdp_test_rank();

    open_contexts_that_are_missed(node_size, true, &all);
    for (int c = 0; c < all.n; c++) {
        if (c != me) {
            assert_int_equal(
                FSDP_OK, fsdp_iallreduce(all.each[c], FSDP_IN_PLACE, values[c], 16, FSDP_I32, FSDP_SUM, &requests[c]));
        }
    }
    for (int c = 0; c < all.n; c++) {
        if (c != me) {
            assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_wait(requests[c]));
            assert_names(fsdp_last_error(all.each[c]), c);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_allreduce(all.each[me], FSDP_IN_PLACE, values[me], 16, FSDP_I32, FSDP_SUM));
    assert_blames_nobody(fsdp_last_error(all.each[me]));
    close_all(&all);
}

static void a_rank_that_stays_away_is_named_by_all_others(void **state)
{
    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    for (int node_size = 0; node_size < fsdp_test_size() && node_size < 4; node_size++) {
        stay_away(node_size);
    }
}

/*
 * In the middle of a large operation: without a thread nothing moves but in calls, and the one that is missed has made a few,
 * before any of the others, and then none. So all agree, and data is due. It goes on when all others have given up.
 */
static void stop_in_the_middle(int node_size, int missed)
{
    enum { LOOKS = 4 };
    static float  in[LARGE], out[LARGE];
    contexts      all;
    fsdp_request *request;
    int           done = 0;
    fsdp_status   status;

    open_contexts_that_are_missed(node_size, false, &all);
    fsdp_context *ctx = all.each[0];
    if (fsdp_test_rank() == missed) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, in, out, LARGE, FSDP_F32, FSDP_SUM, &request));
        for (int i = 0; i < LOOKS; i++) {
            assert_int_equal(FSDP_OK, fsdp_test(request, &done));
            assert_false(done);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() != missed) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, in, out, LARGE, FSDP_F32, FSDP_SUM, &request));
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_wait(request));
        assert_names(fsdp_last_error(ctx), missed);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        status = fsdp_wait(request);
        assert_int_equal(FSDP_ERR_TIMEOUT, status);
        assert_blames_nobody(fsdp_last_error(ctx));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_finalize(ctx));
    for (int c = 1; c < all.n; c++) {
        assert_int_equal(FSDP_OK, fsdp_finalize(all.each[c]));
    }
}

static void a_rank_that_stops_while_data_moves_is_named_by_all_others(void **state)
{
    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    stop_in_the_middle(1, 0);
    stop_in_the_middle(2, fsdp_test_size() - 1);
}

/* A child that stops this process until all others have had enough, and longer. */
static pid_t stop_for(int seconds)
{
    const pid_t parent = getpid(), child = fork();

    if (child == 0) {
        struct timespec left = {.tv_sec = seconds};
        (void)kill(parent, SIGSTOP);
        while (nanosleep(&left, &left) != 0) {
        }
        (void)kill(parent, SIGCONT);
        _exit(0);
    }
    return child;
}

/* Whichever operation it is stopped in, and whether it had ended that one or not: all fail, and none names another. */
static void a_rank_that_is_stopped_blames_nobody_when_it_wakes(void **state)
{
    fsdp_context *ctx;
    contexts      all;
    int32_t       value  = 1;
    const int     missed = fsdp_test_size() / 2;
    fsdp_status   status = FSDP_OK;

    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    open_contexts_that_are_missed(2, true, &all);
    ctx         = all.each[0];
    pid_t child = -1;
    if (fsdp_test_rank() == missed) {
        child = stop_for(3 * patience_s + 5);
    }
    while (status == FSDP_OK) {
        status = fsdp_allreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_MAX);
    }
    assert_int_equal(FSDP_ERR_TIMEOUT, status);
    if (fsdp_test_rank() == missed) {
        assert_blames_nobody(fsdp_last_error(ctx));
        assert_int_equal(child, waitpid(child, NULL, 0));
    } else {
        assert_names(fsdp_last_error(ctx), missed);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_finalize(ctx));
    for (int c = 1; c < all.n; c++) {
        assert_int_equal(FSDP_OK, fsdp_finalize(all.each[c]));
    }
}

/* Of two nodes: rank 0 has sent all it has to when it gives up, and the other one finds all that it needs. */
static void a_rank_that_finds_all_it_needs_too_late_fails_too(void **state)
{
    static const int NODE_SIZES[] = {0, 1, 2};

    (void)state;
    for (size_t i = 0; i < sizeof NODE_SIZES / sizeof NODE_SIZES[0] && fsdp_test_size() > 1; i++) {
        contexts  all;
        const int last = fsdp_test_size() - 1;

        open_contexts_that_are_missed(NODE_SIZES[i], true, &all);
        if (fsdp_test_rank() == last) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_barrier(all.each[0]));
        if (fsdp_test_rank() != last) {
            assert_names(fsdp_last_error(all.each[0]), last);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_barrier(all.each[0])); /* and so do later calls, at once */
        MPI_Barrier(MPI_COMM_WORLD);
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_finalize(all.each[0]));
        for (int c = 1; c < all.n; c++) {
            assert_int_equal(FSDP_OK, fsdp_finalize(all.each[c]));
        }
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_stays_away_is_named_by_all_others),
        cmocka_unit_test(a_rank_that_stops_while_data_moves_is_named_by_all_others),
        cmocka_unit_test(a_rank_that_is_stopped_blames_nobody_when_it_wakes),
        cmocka_unit_test(a_rank_that_finds_all_it_needs_too_late_fails_too),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
