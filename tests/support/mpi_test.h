/**
 * @file
 * cmocka under MPI: every rank runs the same tests, rank 0 speaks, and a failure on any rank fails the program.
 *
 *     static const struct CMUnitTest tests[] = {cmocka_unit_test(gathers_in_rank_order)};
 *
 *     int main(int argc, char **argv)
 *     {
 *         return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
 *     }
 *
 * With the two context functions `*state` of each test is an fsdp_context on MPI_COMM_WORLD, shared by the group.
 * Tests of one process without MPI use cmocka_run_group_tests() instead.
 */
#ifndef FSDP_TESTS_MPI_TEST_H
#define FSDP_TESTS_MPI_TEST_H

/* cmocka.h wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mpi.h>

#include "fsdp/context.h"

/** The exit status by which CTest knows that a test was skipped. */
#define FSDP_TEST_SKIPPED 77

/**
 * Initialises MPI with MPI_THREAD_MULTIPLE, runs the tests of an array on every rank and finalizes MPI.
 * @return what main() returns: 0 if all tests passed on all ranks
 */
#define fsdp_test_main(argc, argv, tests, setup, teardown)                                                             \
    fsdp_test_run(argc, argv, #tests, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

int fsdp_test_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests,
                  CMFixtureFunction setup, CMFixtureFunction teardown);

/** Group setup and teardown: `*state` is a context on MPI_COMM_WORLD with default settings. */
int fsdp_test_open_context(void **state);
int fsdp_test_close_context(void **state);

/** This rank in, and the size of, MPI_COMM_WORLD. */
int fsdp_test_rank(void);
int fsdp_test_size(void);

/** Fails the test unless `words` are in the last error of a context. */
void assert_says(const fsdp_context *ctx, const char *words);

/**
 * What this rank writes to stderr from now on goes to a file; and back, with what was written, cut after `size` BYTES. Local.
 * Between the two no assertion may fail, since that would not be seen.
 */
void fsdp_test_capture_stderr(void);
void fsdp_test_captured_stderr(char *text, size_t size);

/** Instead of the latter, on all ranks: how many lines with these words they have written together. No others may be there. */
int fsdp_test_times_printed(const char *words);

/** For main(), on all ranks instead of fsdp_test_main(): rank 0 prints the reason. Returns FSDP_TEST_SKIPPED. */
int fsdp_test_skip(int argc, char **argv, const char *reason);

#endif
