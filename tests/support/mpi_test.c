#include "tests/support/mpi_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fsdp_test_rank(void)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int fsdp_test_size(void)
{
    int size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

static void start_mpi(int argc, char **argv)
{
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE && fsdp_test_rank() == 0) {
        printf("note: this MPI provides thread level %d, less than MPI_THREAD_MULTIPLE\n", provided);
    }
}

int fsdp_test_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests,
                  CMFixtureFunction setup, CMFixtureFunction teardown)
{
    int failed;

    start_mpi(argc, argv);
    /* cmocka reports on stdout what passed and on stderr what failed: the former is the same on all ranks */
    if (fsdp_test_rank() != 0 && freopen("/dev/null", "w", stdout) == NULL) {
        perror("/dev/null");
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }

    failed = _cmocka_run_group_tests(group, tests, n_tests, setup, teardown);
    if (failed != 0) {
        fprintf(stderr, "rank %d: %d of %zu tests failed\n", fsdp_test_rank(), failed, n_tests);
    }

    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int fsdp_test_open_context(void **state)
{
    fsdp_context *ctx;

    if (fsdp_init(MPI_COMM_WORLD, NULL, &ctx) != FSDP_OK) {
        fprintf(stderr, "rank %d: fsdp_init: %s\n", fsdp_test_rank(), fsdp_last_error(NULL));
        return -1;
    }
    *state = ctx;
    return 0;
}

int fsdp_test_close_context(void **state)
{
    fsdp_status status = fsdp_finalize(*state);

    if (status != FSDP_OK) {
        fprintf(stderr, "rank %d: fsdp_finalize: %s\n", fsdp_test_rank(), fsdp_status_name(status));
        return -1;
    }
    return 0;
}

void assert_says(const fsdp_context *ctx, const char *words)
{
    if (strstr(fsdp_last_error(ctx), words) == NULL) {
        fail_msg("'%s' does not say '%s'", fsdp_last_error(ctx), words);
    }
}

static int   stderr_before = -1;
static FILE *captured;

void fsdp_test_capture_stderr(void)
{
    captured      = tmpfile();
    stderr_before = dup(STDERR_FILENO);
    if (captured == NULL || stderr_before < 0 || dup2(fileno(captured), STDERR_FILENO) < 0) {
        fail_msg("stderr cannot be captured");
    }
}

void fsdp_test_captured_stderr(char *text, size_t size)
{
    (void)fflush(stderr);
    assert_int_equal(STDERR_FILENO, dup2(stderr_before, STDERR_FILENO));
    (void)close(stderr_before);
    rewind(captured);
    text[fread(text, 1, size - 1, captured)] = '\0';
    (void)fclose(captured);
}

int fsdp_test_times_printed(const char *words)
{
    char text[8192], first_other[160] = "", *rest = text;
    int  n = 0;

    fsdp_test_captured_stderr(text, sizeof text);
    for (const char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (strstr(line, words) != NULL) {
            n++;
        } else if (first_other[0] == '\0') {
            (void)snprintf(first_other, sizeof first_other, "%s", line);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    assert_string_equal("", first_other);
    return n;
}

int fsdp_test_skip(int argc, char **argv, const char *reason)
{
    start_mpi(argc, argv);
    if (fsdp_test_rank() == 0) {
        printf("skipped: %s\n", reason);
    }
    MPI_Finalize();
    return FSDP_TEST_SKIPPED;
}
