/**
 * @file
 * The names of cmocka's that the tests of the kernels use, for a processor that there is no libcmocka for. A failed
 * assertion says where it is and ends the program with status 1.
 */
#ifndef FSDP_TESTS_AARCH64_CMOCKA_H
#define FSDP_TESTS_AARCH64_CMOCKA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*function)(void **state);
};

/* clang-format off */
#define cmocka_unit_test(function) {#function, function}
/* clang-format on */
#define cmocka_run_group_tests(tests, setup, teardown)                                                                 \
    shim_run((tests), sizeof(tests) / sizeof((tests)[0]), (setup), (teardown))

#define print_message(...) ((void)printf(__VA_ARGS__))
#define fail_msg(...)                                                                                                  \
    do {                                                                                                               \
        (void)fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                          \
        (void)fprintf(stderr, __VA_ARGS__);                                                                            \
        (void)fputc('\n', stderr);                                                                                     \
        exit(1);                                                                                                       \
    } while (0)

#define shim_assert(condition, text)                                                                                   \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fail_msg("%s", text);                                                                                      \
        }                                                                                                              \
    } while (0)

#define assert_true(condition)           shim_assert(condition, "not true: " #condition)
#define assert_false(condition)          shim_assert(!(condition), "true: " #condition)
#define assert_null(pointer)             shim_assert((pointer) == NULL, "not NULL: " #pointer)
#define assert_non_null(pointer)         shim_assert((pointer) != NULL, "NULL: " #pointer)
#define assert_ptr_equal(a, b)           shim_assert((a) == (b), "different: " #a ", " #b)
#define assert_ptr_not_equal(a, b)       shim_assert((a) != (b), "the same: " #a ", " #b)
#define assert_memory_equal(a, b, bytes) shim_assert(memcmp(a, b, bytes) == 0, "different: " #a ", " #b)
#define assert_int_equal(a, b)           shim_assert((intmax_t)(a) == (intmax_t)(b), "different: " #a ", " #b)
#define assert_in_range(value, least, most)                                                                            \
    shim_assert((uintmax_t)(value) - (uintmax_t)(least) <= (uintmax_t)(most) - (uintmax_t)(least),                     \
                "out of range: " #value)

/** 0, for the program to end with, and a line per test; or the end of the program at the first failure. */
static inline int shim_run(const struct CMUnitTest *tests, size_t n, int (*setup)(void **), int (*teardown)(void **))
{
    void *state = NULL;

    shim_assert(n > 0 && setup == NULL && teardown == NULL, "a group without tests, or with a setup or teardown");
    for (size_t i = 0; i < n; i++) {
        tests[i].function(&state);
        (void)printf("passed: %s\n", tests[i].name);
        (void)fflush(stdout);
    }
    return 0;
}

#endif
