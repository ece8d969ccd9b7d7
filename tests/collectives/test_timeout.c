#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/collective_test.h"

enum { MOST_PATIENCE_S = 256 };

/* Whether all ranks could open a context of so little patience: a machine at work may take longer than that. */
static int open_on_all(int patience_s, fsdp_context **ctx)
{
    fsdp_config config;
    int         failed;

    fsdp_config_init(&config);
    config.timeout_s = patience_s;
    config.log_level = FSDP_LOG_OFF;
    MPI_Barrier(MPI_COMM_WORLD);
    failed = fsdp_init(MPI_COMM_WORLD, &config, ctx) != FSDP_OK;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return !failed;
}

/* A context that waits for the shortest time in which it can be opened. */
static fsdp_context *impatient_context(int *patience_s)
{
    fsdp_context *ctx;

    for (*patience_s = 1; !open_on_all(*patience_s, &ctx); *patience_s *= 2) {
        assert_true(*patience_s < MOST_PATIENCE_S);
        if (ctx != NULL) {
            (void)fsdp_finalize(ctx);
        }
    }
    return ctx;
}

/* Rank 0 stays away until all others have given up, which the caller's own communicator tells it. */
static void a_rank_that_stays_away_ends_the_wait_of_the_others(void **state)
{
    int           patience_s;
    fsdp_context *ctx   = impatient_context(&patience_s);
    int32_t       value = 1;
    char          setting[40];

    (void)state;
    (void)snprintf(setting, sizeof setting, "FSDP_TIMEOUT_S=%d", patience_s);
    if (fsdp_size(ctx) > 1 && fsdp_rank(ctx) > 0) {
        fsdp_request *second;
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_allreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_I32, FSDP_SUM));
        assert_non_null(strstr(fsdp_last_error(ctx), "fsdp_allreduce of 1 i32 elements, sum"));
        assert_non_null(strstr(fsdp_last_error(ctx), setting));
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_ibarrier(ctx, &second));
        assert_non_null(strstr(fsdp_last_error(ctx), "finalize"));
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_finalize(ctx));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_size() > 1 && fsdp_test_rank() == 0) {
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_barrier(ctx));
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_finalize(ctx));
    } else if (fsdp_test_size() == 1) {
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

/* `words`: with the number of ranks */
static void assert_says_who_waits(const char *words)
{
    char text[120], whole[240];

    (void)snprintf(text, sizeof text, words, fsdp_test_size());
    (void)snprintf(whole, sizeof whole, "rank %d %s within FSDP_TIMEOUT_S=1 seconds; look for a rank", fsdp_test_rank(),
                   text);
    assert_says(NULL, whole);
}

/* Rank 0 comes when the others have given up, and then waits for them in vain. */
static void a_rank_that_stays_away_from_init_ends_the_wait_of_the_others(void **state)
{
    fsdp_config   config;
    fsdp_context *ctx;
    MPI_Comm      comm;

    (void)state;
    fsdp_config_init(&config);
    config.timeout_s = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (fsdp_test_rank() > 0) {
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_init(comm, &config, &ctx));
        assert_says_who_waits("waits in fsdp_init, which not all %d ranks of the communicator have called");
        assert_null(ctx);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_size() > 1 && fsdp_test_rank() == 0) {
        assert_int_equal(FSDP_ERR_TIMEOUT, fsdp_init(comm, &config, &ctx));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What the context had is kept for what MPI may still write: see tests/support/lsan.supp. */
static fsdp_status open_half(MPI_Comm comm)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.timeout_s = 1;
    return fsdp_init(comm, &config, &ctx);
}

/* With MPICH, rank 0 does not come out of its second MPI_Comm_idup() after the others have given up once. */
#ifdef OPEN_MPI
enum { MOST_STEPS = 1 };
#else
enum { MOST_STEPS = 0 };
#endif

/* As all ranks do in fsdp_init(), up to where they find the nodes. */
static void take_part_in_init(bool nodes)
{
    uint64_t    none[3] = {0};
    MPI_Comm    copy, second;
    MPI_Request request;
    int         all = 1;

    MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iallreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (nodes) {
        MPI_Iallreduce(MPI_IN_PLACE, none, 3, MPI_UINT64_T, MPI_MAX, copy, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_idup(copy, &second, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Iallreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, copy, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static int n_lines(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

/* Rank 0 takes part in the first steps of fsdp_init() only. Each of the others says so, once. */
static void a_rank_that_leaves_init_half_way_ends_the_wait_of_the_others(void **state)
{
    char printed[2048];

    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    for (int nodes = 0; nodes <= MOST_STEPS; nodes++) {
        if (fsdp_test_rank() > 0) {
            fsdp_test_capture_stderr();
            const fsdp_status status = open_half(MPI_COMM_WORLD);
            fsdp_test_captured_stderr(printed, sizeof printed);
            assert_int_equal(FSDP_ERR_TIMEOUT, status);
            assert_says_who_waits("waits in fsdp_init, to which not all %d ranks have come");
            assert_non_null(strstr(printed, fsdp_last_error(NULL)));
            assert_int_equal(1, n_lines(printed));
        } else {
            take_part_in_init(nodes != 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void sleep_for(int seconds)
{
    struct timespec left = {.tv_sec = seconds};

    while (nanosleep(&left, &left) != 0) {
    }
}

/* A child that stops this process for a while, as a batch system suspends a job. */
static pid_t suspend(int seconds)
{
    const pid_t parent = getpid(), child = fork();

    if (child == 0) {
        (void)kill(parent, SIGSTOP);
        sleep_for(seconds);
        (void)kill(parent, SIGCONT);
        _exit(0);
    }
    return child;
}

/* All are stopped for longer than their patience, the last rank before it calls and the others while they wait for it. */
static void a_job_that_was_suspended_goes_on(void **state)
{
    int           patience_s;
    fsdp_context *ctx     = impatient_context(&patience_s);
    const bool    is_last = fsdp_rank(ctx) == fsdp_size(ctx) - 1;
    int32_t       sum     = 1;
    fsdp_request *request = NULL;

    (void)state;
    patience_s = patience_s < 5 ? 5 : patience_s; /* of which a second passes while all are stopped */
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    assert_true(open_on_all(patience_s, &ctx));
    MPI_Barrier(MPI_COMM_WORLD);
    if (!is_last) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, &sum, 1, FSDP_I32, FSDP_SUM, &request));
    }
    const pid_t child = suspend(patience_s + 2);
    assert_true(child > 0);
    if (is_last) {
        assert_int_equal(FSDP_OK, fsdp_iallreduce(ctx, FSDP_IN_PLACE, &sum, 1, FSDP_I32, FSDP_SUM, &request));
    }
    assert_int_equal(FSDP_OK, fsdp_wait(request));
    assert_int_equal(fsdp_size(ctx), sum);
    assert_int_equal(child, waitpid(child, NULL, 0));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void other_contexts_go_on_working(void **state)
{
    fsdp_context *ctx;
    int32_t       sum = 1;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_OK, fsdp_allreduce(ctx, FSDP_IN_PLACE, &sum, 1, FSDP_I32, FSDP_SUM));
    assert_int_equal(fsdp_size(ctx), sum);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_stays_away_ends_the_wait_of_the_others),
        cmocka_unit_test(a_rank_that_stays_away_from_init_ends_the_wait_of_the_others),
        cmocka_unit_test(a_rank_that_leaves_init_half_way_ends_the_wait_of_the_others),
        cmocka_unit_test(a_job_that_was_suspended_goes_on),
        cmocka_unit_test(other_contexts_go_on_working),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
