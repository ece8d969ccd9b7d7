/** @file What a failure leaves behind: in its thread, in its context, and where there is no memory for it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/dtype.h"
#include "lib/base/core.h"
#include "lib/base/error.h"
#include "tests/support/unit_test.h"

/* The linker gives calls of calloc() in the library to this one. */
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_calloc(size_t count, size_t bytes);

static _Thread_local int no_memory;

void *__wrap_calloc(size_t count, size_t bytes)
{
    return no_memory ? NULL : __real_calloc(count, bytes);
}

static uint64_t contexts;

/* All of a context that failures concern. */
static fsdp_context *make_context(fsdpi_core *core)
{
    memset(core, 0, sizeof *core);
    core->number = ++contexts;
    return (fsdp_context *)(void *)core;
}

static void *run(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    void     *result;

    assert_int_equal(0, pthread_create(&thread, NULL, body, argument));
    assert_int_equal(0, pthread_join(thread, &result));
    return result;
}

static void *fail_without_context(void *argument)
{
    const bool was_empty = fsdp_last_error(NULL)[0] == '\0';

    (void)argument;
    (void)fsdpi_fail(NULL, FSDP_ERR_ARG, "in another thread");
    return was_empty && strcmp(fsdp_last_error(NULL), "in another thread") == 0 ? NULL : (void *)fsdp_last_error(NULL);
}

static void a_failure_without_a_context_is_that_of_its_thread(void **state)
{
    (void)state;
    (void)fsdpi_fail(NULL, FSDP_ERR_ARG, "here");
    assert_null(run(fail_without_context, NULL));
    assert_string_equal("here", fsdp_last_error(NULL));
}

static void *fail_without_memory(void *argument)
{
    no_memory = 1;
    assert_int_equal(FSDP_ERR_ARG, fsdpi_fail(NULL, FSDP_ERR_ARG, "a detail"));
    assert_non_null(strstr(fsdp_last_error(NULL), "no memory"));
    assert_int_equal(FSDP_ERR_STATE, fsdpi_fail(argument, FSDP_ERR_STATE, "of a context"));
    assert_string_equal("of a context", fsdp_last_error(argument));
    no_memory = 0;
    (void)fsdpi_fail(NULL, FSDP_ERR_ARG, "another detail");
    assert_string_equal("another detail", fsdp_last_error(NULL));
    return NULL;
}

static void without_memory_a_failure_keeps_its_status(void **state)
{
    fsdpi_core core;

    (void)state;
    assert_null(run(fail_without_memory, make_context(&core)));
}

static void a_context_at_the_address_of_another_has_no_failure(void **state)
{
    fsdpi_core core;

    (void)state;
    (void)fsdpi_fail(make_context(&core), FSDP_ERR_ARG, "of the first");
    assert_string_equal("", fsdp_last_error(make_context(&core)));
}

static void *fail_in_context(void *argument)
{
    (void)fsdpi_fail(argument, FSDP_ERR_ARG, "in another thread");
    return NULL;
}

static void a_thread_that_has_not_failed_sees_what_others_have(void **state)
{
    fsdpi_core    core, next;
    fsdp_context *ctx = make_context(&core), *other = make_context(&next);

    (void)state;
    assert_null(run(fail_in_context, ctx));
    assert_string_equal("in another thread", fsdp_last_error(ctx));
    (void)fsdpi_fail(ctx, FSDP_ERR_ARG, "here");
    assert_null(run(fail_in_context, ctx));
    assert_string_equal("here", fsdp_last_error(ctx));
    (void)fsdpi_fail(other, FSDP_ERR_ARG, "elsewhere");
    assert_string_equal("in another thread", fsdp_last_error(ctx));
}

static void what_was_recorded_may_be_part_of_the_next(void **state)
{
    fsdpi_core    core, next;
    fsdp_context *ctx = make_context(&core), *other = make_context(&next);

    (void)state;
    (void)fsdpi_record(ctx, FSDP_ERR_ARG, "inside");
    (void)fsdpi_record(ctx, FSDP_ERR_ARG, "around: %s", fsdpi_error_recorded(ctx));
    fsdpi_error_hand_on(ctx, other, FSDP_ERR_ARG);
    assert_string_equal("around: inside", fsdp_last_error(other));
}

static void what_is_recorded_elsewhere_leaves_the_context_alone(void **state)
{
    fsdpi_core    core;
    char          place[FSDPI_ERROR_BYTES] = "";
    fsdp_context *ctx                      = make_context(&core);

    (void)state;
    fsdpi_record_into(place);
    (void)fsdpi_fail(ctx, FSDP_ERR_ARG, "of an operation");
    assert_string_equal("of an operation", fsdpi_error_recorded(ctx));
    fsdpi_record_into(NULL);
    assert_string_equal("of an operation", place);
    assert_string_equal("", fsdp_last_error(ctx));
}

enum { THREADS = 4, ROUNDS = 1000 };

typedef struct failing {
    fsdp_context *ctx;
    int           number;
    int           wrong;
} failing;

static void *fail_again_and_again(void *argument)
{
    failing *mine = argument;
    char     expected[FSDPI_ERROR_BYTES];

    for (int i = 0; i < ROUNDS; i++) {
        (void)snprintf(expected, sizeof expected, "%*d", 900, THREADS * i + mine->number);
        (void)fsdpi_fail(mine->ctx, FSDP_ERR_ARG, "%s", expected);
        mine->wrong += strcmp(fsdp_last_error(mine->ctx), expected) != 0;
    }
    return NULL;
}

static void threads_that_fail_at_once_each_see_their_own(void **state)
{
    fsdpi_core    core;
    fsdp_context *ctx = make_context(&core);
    pthread_t     threads[THREADS];
    failing       all[THREADS];

    (void)state;
    for (int t = 0; t < THREADS; t++) {
        all[t] = (failing){.ctx = ctx, .number = t};
        assert_int_equal(0, pthread_create(&threads[t], NULL, fail_again_and_again, &all[t]));
    }
    for (int t = 0; t < THREADS; t++) {
        assert_int_equal(0, pthread_join(threads[t], NULL));
        assert_int_equal(0, all[t].wrong);
    }
    assert_int_equal(900, strlen(fsdp_last_error(ctx)));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_without_a_context_is_that_of_its_thread),
        cmocka_unit_test(without_memory_a_failure_keeps_its_status),
        cmocka_unit_test(a_context_at_the_address_of_another_has_no_failure),
        cmocka_unit_test(a_thread_that_has_not_failed_sees_what_others_have),
        cmocka_unit_test(what_was_recorded_may_be_part_of_the_next),
        cmocka_unit_test(what_is_recorded_elsewhere_leaves_the_context_alone),
        cmocka_unit_test(threads_that_fail_at_once_each_see_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
