#include <stdio.h>
#include <string.h>

#include "fsdp/dtype.h"
#include "fsdp/model.h"
#include "fsdp/status.h"
#include "fsdp/version.h"
#include "tests/support/unit_test.h"

static void every_code_has_a_name_and_a_text(void **state)
{
    (void)state;
    for (int code = FSDP_OK; code <= FSDP_ERR_DEVICE; code++) {
        assert_memory_equal("FSDP_", fsdp_status_name((fsdp_status)code), 5);
        assert_true(strlen(fsdp_status_text((fsdp_status)code)) > 5);
    }
    assert_string_equal("FSDP_OK", fsdp_status_name(FSDP_OK));
    assert_string_equal("FSDP_UNKNOWN", fsdp_status_name((fsdp_status)1234));
}

static void element_types_have_names_and_sizes(void **state)
{
    static const size_t sizes[FSDP_N_DTYPES] = {8, 4, 2, 2, 8, 4, 1};

    (void)state;
    for (int i = 0; i < FSDP_N_DTYPES; i++) {
        fsdp_dtype parsed;
        assert_int_equal(sizes[i], fsdp_dtype_size((fsdp_dtype)i));
        assert_int_equal(FSDP_OK, fsdp_dtype_parse(fsdp_dtype_name((fsdp_dtype)i), &parsed));
        assert_int_equal(i, parsed);
    }
    assert_int_equal(0, fsdp_dtype_size((fsdp_dtype)FSDP_N_DTYPES));
}

static void reductions_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < FSDP_N_REDOPS; i++) {
        fsdp_redop parsed;
        assert_int_equal(FSDP_OK, fsdp_redop_parse(fsdp_redop_name((fsdp_redop)i), &parsed));
        assert_int_equal(i, parsed);
    }
}

static void strategies_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < FSDP_N_STRATEGIES; i++) {
        fsdp_strategy parsed;
        assert_int_equal(FSDP_OK, fsdp_strategy_parse(fsdp_strategy_name((fsdp_strategy)i), &parsed));
        assert_int_equal(i, parsed);
    }
}

static void a_name_that_is_none_is_named_with_those_known(void **state)
{
    fsdp_dtype    dtype    = FSDP_I32;
    fsdp_redop    op       = FSDP_MAX;
    fsdp_strategy strategy = FSDP_NO_SHARD;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_dtype_parse("f33", &dtype));
    assert_non_null(strstr(fsdp_last_error(NULL), "'f33' is no element type; use one of f64 f32"));
    assert_int_equal(FSDP_I32, dtype);
    assert_int_equal(FSDP_ERR_ARG, fsdp_redop_parse("mean", &op));
    assert_non_null(strstr(fsdp_last_error(NULL), "'mean'"));
    assert_int_equal(FSDP_MAX, op);
    assert_int_equal(FSDP_ERR_ARG, fsdp_strategy_parse("full", &strategy));
    assert_non_null(strstr(fsdp_last_error(NULL),
                           "use FULL_SHARD, SHARD_GRAD_OP, SHARD_OPTIM, NO_SHARD, HYBRID_SHARD or HYBRID_SHARD_ZERO2"));
    assert_int_equal(FSDP_NO_SHARD, strategy);
}

static void the_version_is_that_of_the_headers(void **state)
{
    char expected[32];

    (void)state;
    (void)snprintf(expected, sizeof expected, "%d.%d.%d", FSDP_VERSION_MAJOR, FSDP_VERSION_MINOR, FSDP_VERSION_PATCH);
    assert_string_equal(expected, fsdp_version());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_and_a_text),
        cmocka_unit_test(element_types_have_names_and_sizes),
        cmocka_unit_test(reductions_have_names),
        cmocka_unit_test(strategies_have_names),
        cmocka_unit_test(a_name_that_is_none_is_named_with_those_known),
        cmocka_unit_test(the_version_is_that_of_the_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
