/** @file Adding up in f32, with one factor. */
#include "kernel_test.h"

#include <math.h>
#include <string.h>

enum { SUM, X, EXPECTED };
enum { N_INPUTS = 3 };

static const fsdp_dtype inputs[N_INPUTS] = {FSDP_F32, FSDP_BF16, FSDP_F16};
static const double     factors[]        = {1, 0.1, -1, 0, 3e-5, 1e300, NAN};

/* `unit`: BYTES that the offset of `x` counts. */
static void check(const fsdpi_kernels *kernels, fsdp_dtype dtype, size_t count, ptrdiff_t offset, size_t unit,
                  double factor)
{
    const ptrdiff_t at_sum   = offset == AT_END ? AT_END : offset * (ptrdiff_t)sizeof(float);
    const ptrdiff_t at_x     = offset == AT_END ? AT_END : offset * (ptrdiff_t)unit;
    void           *x        = fenced_array(X, count * element_bytes(dtype), at_x);
    float          *sum      = fenced_array(SUM, count * sizeof(float), at_sum);
    float          *expected = fenced_array(EXPECTED, count * sizeof(float), 0);

    fill_with_any_values(x, count, dtype);
    for (int fresh = 0; fresh < 2; fresh++) {
        fill_with_any_values(sum, count, FSDP_F32);
        if (count > 0) {
            memcpy(expected, sum, count * sizeof(float));
        }
        fsdpi_kernels_scalar.accumulate(expected, fresh != 0, x, dtype, factor, count);
        kernels->accumulate(sum, fresh != 0, x, dtype, factor, count);
        assert_same_or_both_nan(expected, sum, count, FSDP_F32, kernels->name);
        assert_fences_stand();
    }
}

static void check_all(size_t count, ptrdiff_t offset, double factor)
{
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t d = 0; d < N_INPUTS; d++) {
            for (const size_t *unit = units_of(inputs[d]); *unit != 0; unit++) {
                check(tables_under_test[t], inputs[d], count, offset, *unit, factor);
            }
        }
    }
}

static void a_tail_of_any_length_equals_the_reference(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
        for (const size_t *count = tail_counts; *count != SIZE_MAX; count++) {
            check_all(*count, 0, factors[f]);
        }
    }
}

static void any_alignment_equals_the_reference(void **state)
{
    (void)state;
    for (ptrdiff_t offset = 0; offset <= 16; offset++) {
        check_all(83, offset, 0.3);
    }
}

static void nothing_behind_the_end_is_touched(void **state)
{
    (void)state;
    for (size_t count = 0; count <= 70; count++) {
        check_all(count, AT_END, 0.3);
    }
}

static void the_product_is_rounded_before_it_is_added(void **state)
{
    float       sum  = 1.0F;
    const float x    = 9.0F;
    const float term = x * 0.1F;

    (void)state;
    fsdpi_kernels_scalar.accumulate(&sum, false, &x, FSDP_F32, 0.1, 1);
    assert_true(sum == 1.0F + term);
    fsdpi_kernels_scalar.accumulate(&sum, true, &x, FSDP_F32, 0.1, 1);
    assert_true(sum == term);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_product_is_rounded_before_it_is_added),
        cmocka_unit_test(a_tail_of_any_length_equals_the_reference),
        cmocka_unit_test(any_alignment_equals_the_reference),
        cmocka_unit_test(nothing_behind_the_end_is_touched),
    };

    return kernel_test_main(argc, argv, tests);
}
