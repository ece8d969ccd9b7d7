/** @file Multiplication in place by one factor. */
#include "kernel_test.h"

#include <math.h>
#include <string.h>

#include "kernels/host/half.h"

static const double factors[] = {0.1, -1, 0, 1, 3e-5, 0x1p-130, 1e300, INFINITY, NAN};

static in_place_kernel scale_of(const fsdpi_kernels *kernels)
{
    return kernels->scale;
}

static void a_tail_of_any_length_equals_the_reference(void **state)
{
    (void)state;
    assert_in_place_for_tails(scale_of, factors, sizeof factors / sizeof factors[0]);
}

static void any_alignment_equals_the_reference_and_nothing_else_is_touched(void **state)
{
    (void)state;
    assert_in_place_anywhere(scale_of);
}

static void f64_multiplies_by_the_whole_factor(void **state)
{
    double x = 3;

    (void)state;
    fsdpi_kernels_scalar.scale(&x, 0.1, 1, FSDP_F64);
    assert_true(x == 3 * 0.1);
}

static void f32_multiplies_by_the_factor_rounded_to_f32(void **state)
{
    float x = 9;

    (void)state;
    fsdpi_kernels_scalar.scale(&x, 0.1, 1, FSDP_F32);
    assert_true(x == 9 * 0.1f);
    assert_false(x == (float)(9 * 0.1));
}

static void halves_multiply_in_f32_and_then_round(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits <= 0xffff; bits++) {
        uint16_t bf16 = (uint16_t)bits, f16 = (uint16_t)bits;

        fsdpi_kernels_scalar.scale(&bf16, 0.1, 1, FSDP_BF16);
        fsdpi_kernels_scalar.scale(&f16, 0.1, 1, FSDP_F16);
        assert_int_equal(fsdpi_f32_to_bf16(fsdpi_bf16_to_f32((uint16_t)bits) * 0.1f), bf16);
        assert_int_equal(fsdpi_f32_to_f16(fsdpi_f16_to_f32((uint16_t)bits) * 0.1f), f16);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(f64_multiplies_by_the_whole_factor),
        cmocka_unit_test(f32_multiplies_by_the_factor_rounded_to_f32),
        cmocka_unit_test(halves_multiply_in_f32_and_then_round),
        cmocka_unit_test(a_tail_of_any_length_equals_the_reference),
        cmocka_unit_test(any_alignment_equals_the_reference_and_nothing_else_is_touched),
    };

    return kernel_test_main(argc, argv, tests);
}
