/* FSDP_STALL_S: a wait without movement is warned about, with who is missing, and goes on. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/progress/request.h"
#include "tests/collectives/collective_test.h"

enum { MOST_LINES = 32, LINE_BYTES = 1200 };

/* What this rank has been told; by one thread at a time. */
typedef struct warnings {
    _Atomic int n;
    char        lines[MOST_LINES][LINE_BYTES];
} warnings;

static void keep(void *state, fsdp_log_level level, int rank, const char *text)
{
    warnings *seen = state;
    const int n    = atomic_load(&seen->n);

    (void)rank;
    if (level == FSDP_LOG_WARN && strstr(text, "has not moved for") != NULL && n < MOST_LINES) {
        (void)snprintf(seen->lines[n], LINE_BYTES, "%s", text);
        atomic_store(&seen->n, n + 1);
    }
}

static void nap(void)
{
    const struct timespec t = {.tv_nsec = 1000000};

    (void)nanosleep(&t, NULL);
}

/* Without using a core, which those need who look into it. */
static void wait_for_release(void)
{
    MPI_Request release;
    int         done = 0;

    MPI_Ibarrier(MPI_COMM_WORLD, &release);
    while (!done) {
        MPI_Test(&release, &done, MPI_STATUS_IGNORE);
        nap();
    }
}

static int sum_of(int value, MPI_Comm comm)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, comm);
    return value;
}

/* Until so many warnings have been given, on whatever rank. */
static void test_until(fsdp_request *request, const warnings *seen, int wanted, MPI_Comm waiting)
{
    int done = 0;

    while (sum_of(atomic_load(&seen->n), waiting) < wanted) {
        assert_int_equal(FSDP_OK, fsdp_test(request, &done));
        assert_false(done);
        nap();
    }
    wait_for_release();
}

/* How many lines of all ranks say so. */
static int lines_that_say(const warnings *seen, const char *text)
{
    int n = 0;

    for (int i = 0; i < atomic_load(&seen->n); i++) {
        n += strstr(seen->lines[i], text) != NULL;
    }
    return sum_of(n, MPI_COMM_WORLD);
}

/* The last rank stays away until two warnings have come. */
static void assert_warned(int timeout_s, const char *end)
{
    fsdp_config     config;
    fsdp_context   *ctx;
    fsdp_request   *request;
    static warnings seen;
    MPI_Comm        waiting;
    char            missing[64];

    atomic_store(&seen.n, 0);
    fsdp_config_init(&config);
    config.stall_s   = 1;
    config.timeout_s = timeout_s;
    config.log       = keep;
    config.log_state = &seen;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    const int  last   = fsdp_size(ctx) - 1;
    const bool leaves = fsdp_rank(ctx) == last;
    MPI_Comm_split(MPI_COMM_WORLD, leaves, 0, &waiting);
    if (leaves) {
        wait_for_release();
        assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &request));
    } else {
        assert_int_equal(FSDP_OK, fsdp_ibarrier(ctx, &request));
        test_until(request, &seen, 2, waiting);
    }
    assert_int_equal(FSDP_OK, fsdp_wait(request)); /* nothing has been given up */
    (void)snprintf(missing, sizeof missing, ": rank %d does not answer", last);
    const int all = sum_of(atomic_load(&seen.n), MPI_COMM_WORLD);
    assert_int_equal(all, lines_that_say(&seen, "fsdp_barrier (operation "));
    assert_int_equal(all, lines_that_say(&seen, missing));
    assert_int_equal(all, lines_that_say(&seen, end));
    if (fsdp_node_count(ctx) == 1) { /* one line each, after 1 s and after 2 s */
        assert_int_equal(1, lines_that_say(&seen, "has not moved for 1 second:"));
        assert_int_equal(1, lines_that_say(&seen, "has not moved for 2 seconds"));
    }
    MPI_Comm_free(&waiting);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_rank_that_is_missing_is_named_and_waited_for(void **state)
{
    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    assert_warned(600, "FSDP_TIMEOUT_S=600 ends the wait");
}

static void who_waits_for_ever_is_warned_too(void **state)
{
    (void)state;
    if (fsdp_test_size() == 1) {
        skip();
    }
    assert_warned(0, "with FSDP_TIMEOUT_S=0 that may go on for ever");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_is_missing_is_named_and_waited_for),
        cmocka_unit_test(who_waits_for_ever_is_warned_too),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
