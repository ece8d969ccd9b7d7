/** @file fsdp_cast() on values whose nearest ones are known; the kernels' own test is exhaustive. */
#include <math.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "tests/support/mpi_test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Exact ones, both ties, the last that rounds down to the largest f16, the first that does not, the least subnormal. */
static const float    values[]  = {0, 1, -2.5f, 0x1.01p0f, 0x1.03p0f, 0x1.002p0f, 65519, 65520, 0x1p-24f, -INFINITY};
static const uint16_t as_bf16[] = {0, 0x3f80, 0xc020, 0x3f80, 0x3f82, 0x3f80, 0x4780, 0x4780, 0x3380, 0xff80};
static const uint16_t as_f16[]  = {0, 0x3c00, 0xc100, 0x3c04, 0x3c0c, 0x3c00, 0x7bff, 0x7c00, 0x0001, 0xfc00};

static void values_are_rounded_to_the_nearest(void **state)
{
    uint16_t out[COUNT(values)];

    assert_int_equal(FSDP_OK, fsdp_cast(*state, out, FSDP_BF16, values, FSDP_F32, COUNT(values)));
    assert_memory_equal(as_bf16, out, sizeof out);
    assert_int_equal(FSDP_OK, fsdp_cast(*state, out, FSDP_F16, values, FSDP_F32, COUNT(values)));
    assert_memory_equal(as_f16, out, sizeof out);
}

static void what_has_been_rounded_widens_exactly(void **state)
{
    float  narrow[COUNT(values)];
    double wide[COUNT(values)];

    assert_int_equal(FSDP_OK, fsdp_cast(*state, narrow, FSDP_F32, as_f16, FSDP_F16, COUNT(values)));
    assert_true(narrow[2] == -2.5f && narrow[3] == 0x1.01p0f && narrow[6] == 65504 && narrow[8] == 0x1p-24f);
    assert_int_equal(FSDP_OK, fsdp_cast(*state, wide, FSDP_F64, as_bf16, FSDP_BF16, COUNT(values)));
    assert_true(wide[2] == -2.5 && wide[4] == 0x1.04p0 && wide[6] == 65536 && isinf(wide[9]));
}

static void nan_stays_nan_and_nothing_beyond_is_written(void **state)
{
    const float in[]  = {NAN, 3};
    uint16_t    out[] = {7, 7};
    float       back;

    assert_int_equal(FSDP_OK, fsdp_cast(*state, out, FSDP_F16, in, FSDP_F32, 1));
    assert_int_equal(7, out[1]);
    assert_int_equal(FSDP_OK, fsdp_cast(*state, &back, FSDP_F32, out, FSDP_F16, 1));
    assert_true(isnan(back));
}

static void bad_arguments_are_refused(void **state)
{
    const float in  = 1;
    float       out = 5;

    assert_int_equal(FSDP_ERR_ARG, fsdp_cast(NULL, &out, FSDP_F32, &in, FSDP_F32, 1));
    assert_int_equal(FSDP_ERR_ARG, fsdp_cast(*state, NULL, FSDP_F32, &in, FSDP_F32, 1));
    assert_int_equal(FSDP_ERR_ARG, fsdp_cast(*state, &out, FSDP_F32, NULL, FSDP_F32, 1));
    assert_int_equal(FSDP_ERR_ARG, fsdp_cast(*state, &out, FSDP_I32, &in, FSDP_F32, 1));
    assert_non_null(strstr(fsdp_last_error(*state), "from f32 to i32; both must be"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_cast(*state, &out, FSDP_F32, &in, (fsdp_dtype)99, 1));
    assert_true(out == 5);
    assert_int_equal(FSDP_OK, fsdp_cast(*state, NULL, FSDP_F32, NULL, FSDP_BF16, 0));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_rounded_to_the_nearest),
        cmocka_unit_test(what_has_been_rounded_widens_exactly),
        cmocka_unit_test(nan_stays_nan_and_nothing_beyond_is_written),
        cmocka_unit_test(bad_arguments_are_refused),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
