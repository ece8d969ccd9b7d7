#include <math.h>
#include <string.h>

#include "fsdp/lr_schedule.h"
#include "tests/support/unit_test.h"

static void assert_rate(double expected, const fsdp_lr_schedule *schedule, size_t step)
{
    const double found = fsdp_lr_at(schedule, step);

    if (fabs(found - expected) > 1e-12) {
        fail_msg("step %zu: %.15g instead of %.15g", step, found, expected);
    }
}

static void warm_up_rises_in_a_line_to_the_peak(void **state)
{
    const fsdp_lr_schedule s = {.kind = FSDP_LR_CONSTANT, .peak = 2.0, .warmup = 4};

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_lr_schedule_check(&s));
    assert_rate(0.5, &s, 0);
    assert_rate(1.5, &s, 2);
    assert_rate(2.0, &s, 3);
    assert_rate(2.0, &s, 1000000);
}

static void linear_and_cosine_go_from_peak_to_final(void **state)
{
    fsdp_lr_schedule s = {.kind = FSDP_LR_LINEAR, .peak = 3.0, .final = 1.0, .warmup = 10, .total = 110};

    (void)state;
    for (int kind = FSDP_LR_LINEAR; kind <= FSDP_LR_COSINE; kind++) {
        s.kind = (fsdp_lr_kind)kind;
        assert_int_equal(FSDP_OK, fsdp_lr_schedule_check(&s));
        assert_rate(3.0, &s, 10);
        assert_rate(2.0, &s, 60);
        assert_rate(1.0, &s, 110);
        assert_rate(1.0, &s, 5000);
    }
    s.kind = FSDP_LR_LINEAR;
    assert_rate(2.5, &s, 35);
    s.kind = FSDP_LR_COSINE;
    assert_rate(2.0 + sqrt(0.5), &s, 35);
}

static void wsd_stays_at_the_peak_until_the_decay(void **state)
{
    const fsdp_lr_schedule s = {.kind = FSDP_LR_WSD, .peak = 1.0, .warmup = 5, .total = 100, .decay = 20};

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_lr_schedule_check(&s));
    assert_rate(0.2, &s, 0);
    assert_rate(1.0, &s, 5);
    assert_rate(1.0, &s, 80);
    assert_rate(0.5, &s, 90);
    assert_rate(0.0, &s, 100);
}

static void step_multiplies_by_gamma_and_stops_at_final(void **state)
{
    const fsdp_lr_schedule s = {.kind = FSDP_LR_STEP, .peak = 1.0, .final = 0.2, .every = 30, .gamma = 0.5};

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_lr_schedule_check(&s));
    assert_rate(1.0, &s, 29);
    assert_rate(0.5, &s, 30);
    assert_rate(0.25, &s, 60);
    assert_rate(0.2, &s, 90);
}

static void without_room_for_a_decay_the_rate_is_final_at_once(void **state)
{
    const fsdp_lr_schedule s = {.kind = FSDP_LR_COSINE, .peak = 1.0, .warmup = 5, .total = 5};

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_lr_schedule_check(&s));
    assert_rate(1.0, &s, 4);
    assert_rate(0.0, &s, 5);
}

static void fields_that_make_no_sense_are_named(void **state)
{
    static const struct {
        fsdp_lr_schedule schedule;
        const char      *word;
    } bad[] = {
        {{.kind = FSDP_LR_CONSTANT, .peak = -1.0}, "peak is -1"},
        {{.kind = FSDP_LR_CONSTANT, .peak = INFINITY}, "peak is inf"},
        {{.kind = FSDP_LR_COSINE, .peak = 1.0, .final = 2.0, .total = 1}, "final is 2"},
        {{.kind = FSDP_LR_COSINE, .peak = 1.0, .warmup = 11, .total = 10}, "total is 10"},
        {{.kind = FSDP_LR_WSD, .peak = 1.0, .warmup = 6, .total = 10, .decay = 5}, "total is 10"},
        {{.kind = FSDP_LR_WSD, .peak = 1.0, .total = 10, .decay = 11}, "decay (11)"},
        {{.kind = FSDP_LR_STEP, .peak = 1.0, .gamma = 0.5}, "every is 0"},
        {{.kind = FSDP_LR_STEP, .peak = 1.0, .every = 1, .gamma = 1.5}, "gamma is 1.5"},
        {{.kind = (fsdp_lr_kind)17, .peak = 1.0}, "kind is 17"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(FSDP_ERR_ARG, fsdp_lr_schedule_check(&bad[i].schedule));
        if (strstr(fsdp_last_error(NULL), bad[i].word) == NULL) {
            fail_msg("'%s' does not say '%s'", fsdp_last_error(NULL), bad[i].word);
        }
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_lr_schedule_check(NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_up_rises_in_a_line_to_the_peak),
        cmocka_unit_test(linear_and_cosine_go_from_peak_to_final),
        cmocka_unit_test(wsd_stays_at_the_peak_until_the_decay),
        cmocka_unit_test(step_multiplies_by_gamma_and_stops_at_final),
        cmocka_unit_test(without_room_for_a_decay_the_rate_is_final_at_once),
        cmocka_unit_test(fields_that_make_no_sense_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
