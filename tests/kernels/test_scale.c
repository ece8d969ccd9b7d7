/** @file Multiplication in place by one factor. */
#include "kernel_test.h"

#include <math.h>
#include <string.h>

#include "kernels/host/half.h"

enum { X, EXPECTED };
enum { N_FLOATS = 4 };

static const fsdp_dtype floats[N_FLOATS] = {FSDP_F64, FSDP_F32, FSDP_BF16, FSDP_F16};
static const double     factors[]        = {0.1, -1, 0, 1, 3e-5, 0x1p-130, 1e300, INFINITY, NAN};

static void check(const fsdpi_kernels *kernels, fsdp_dtype dtype, size_t count, ptrdiff_t offset, double factor)
{
    size_t bytes    = count * element_bytes(dtype);
    void  *x        = fenced_array(X, bytes, offset);
    void  *expected = fenced_array(EXPECTED, bytes, 0);

    fill_with_any_values(x, count, dtype);
    if (bytes > 0) {
        memcpy(expected, x, bytes);
    }
    fsdpi_kernels_scalar.scale(expected, factor, count, dtype);
    kernels->scale(x, factor, count, dtype);
    assert_same_or_both_nan(expected, x, count, dtype, kernels->name);
    assert_fences_stand();
}

static void a_tail_of_any_length_equals_the_reference(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t d = 0; d < N_FLOATS; d++) {
            for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
                for (const size_t *count = tail_counts; *count != SIZE_MAX; count++) {
                    check(tables_under_test[t], floats[d], *count, 0, factors[f]);
                }
            }
        }
    }
}

static void any_alignment_equals_the_reference(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t d = 0; d < N_FLOATS; d++) {
            for (const size_t *unit = units_of(floats[d]); *unit != 0; unit++) {
                for (size_t offset = 0; offset <= 16; offset++) {
                    check(tables_under_test[t], floats[d], 83, (ptrdiff_t)(offset * *unit), 0.3);
                }
            }
        }
    }
}

static void nothing_behind_the_end_is_touched(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t d = 0; d < N_FLOATS; d++) {
            for (size_t count = 0; count <= 70; count++) {
                check(tables_under_test[t], floats[d], count, AT_END, 0.3);
            }
        }
    }
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
        cmocka_unit_test(any_alignment_equals_the_reference),
        cmocka_unit_test(nothing_behind_the_end_is_touched),
    };

    return kernel_test_main(argc, argv, tests);
}
