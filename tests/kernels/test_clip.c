/** @file The largest magnitude and clamping, with what they make of NaN, infinity and signed zeros. */
#include "kernel_test.h"

#include <math.h>

#include "kernels/host/element.h"
#include "kernels/host/half.h"

enum { X };

static const double limits[] = {0, 0.1, 1, 3e-5, 0x1p-140, 65504, 1e300, INFINITY};

static double value_at(const void *x, size_t i, fsdp_dtype dtype)
{
    if (dtype == FSDP_F64) {
        return ((const fsdpi_any_f64 *)x)[i];
    }
    if (dtype == FSDP_F32) {
        return (double)((const fsdpi_any_f32 *)x)[i];
    }
    return (double)(dtype == FSDP_BF16 ? fsdpi_bf16_to_f32 : fsdpi_f16_to_f32)(((const fsdpi_any_half *)x)[i]);
}

static void store(void *x, size_t i, fsdp_dtype dtype, double value)
{
    if (dtype == FSDP_F64) {
        ((fsdpi_any_f64 *)x)[i] = value;
    } else if (dtype == FSDP_F32) {
        ((fsdpi_any_f32 *)x)[i] = (float)value;
    } else {
        ((fsdpi_any_half *)x)[i] = dtype == FSDP_BF16 ? fsdpi_f64_to_bf16(value) : fsdpi_f64_to_f16(value);
    }
}

/** Of both signs, none beyond 1000. */
static void fill_with_finite_values(void *x, size_t count, fsdp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        store(x, i, dtype, ldexp((double)(int64_t)random_bits(), -54 - (int)(random_bits() % 30)));
    }
}

/** By fmax(), which passes over NaN, and a second look for it. */
static double expected_maximum(const void *x, size_t count, fsdp_dtype dtype)
{
    double most = 0;
    int    nan  = 0;

    for (size_t i = 0; i < count; i++) {
        nan  = nan || isnan(value_at(x, i, dtype));
        most = fmax(most, fabs(value_at(x, i, dtype)));
    }
    return nan ? (double)NAN : most;
}

static void assert_maximum(const fsdpi_kernels *kernels, const void *x, size_t count, fsdp_dtype dtype)
{
    double expected = expected_maximum(x, count, dtype), found = kernels->absolute_maximum(x, count, dtype);

    assert_same_or_both_nan(&expected, &found, 1, FSDP_F64, kernels->name);
}

static void assert_maxima(const void *x, size_t count, fsdp_dtype dtype)
{
    assert_maximum(&fsdpi_kernels_scalar, x, count, dtype);
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        assert_maximum(tables_under_test[t], x, count, dtype);
    }
}

static void the_largest_magnitude_is_found_in_a_tail_of_any_length(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_FLOATS; d++) {
        for (const size_t *count = tail_counts; *count != SIZE_MAX; count++) {
            void *x = fenced_array(X, *count * element_bytes(floats[d]), 0);

            fill_with_finite_values(x, *count, floats[d]);
            assert_maxima(x, *count, floats[d]);
            fill_with_any_values(x, *count, floats[d]);
            assert_maxima(x, *count, floats[d]);
        }
    }
}

/** One element stands out, at every place in turn, with either sign. */
static void the_largest_magnitude_is_found_wherever_it_is(void **state)
{
    static const double outstanding[] = {2000, -2000, -INFINITY, NAN};

    (void)state;
    for (size_t d = 0; d < N_FLOATS; d++) {
        for (const size_t *unit = units_of(floats[d]); *unit != 0; unit++) {
            void *x = fenced_array(X, 83 * element_bytes(floats[d]), (ptrdiff_t)*unit);

            for (size_t i = 0; i < 83 * 4; i++) {
                fill_with_finite_values(x, 83, floats[d]);
                store(x, i % 83, floats[d], outstanding[i / 83]);
                assert_maxima(x, 83, floats[d]);
            }
        }
    }
}

static void nan_makes_the_largest_magnitude_nan_beside_infinity_too(void **state)
{
    const float x[3] = {INFINITY, NAN, -INFINITY};

    (void)state;
    assert_true(isnan(fsdpi_kernels_scalar.absolute_maximum(x, 3, FSDP_F32)));
    assert_true(isinf(fsdpi_kernels_scalar.absolute_maximum(x, 1, FSDP_F32)));
    assert_true(fsdpi_kernels_scalar.absolute_maximum(x, 0, FSDP_F32) == 0);
}

static void nothing_behind_the_end_is_read(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_FLOATS; d++) {
        for (size_t count = 0; count <= 70; count++) {
            void *x = fenced_array(X, count * element_bytes(floats[d]), AT_END);

            fill_with_finite_values(x, count, floats[d]);
            assert_maxima(x, count, floats[d]);
        }
    }
}

static in_place_kernel clamp_of(const fsdpi_kernels *kernels)
{
    return kernels->clamp;
}

static void clamping_a_tail_of_any_length_equals_the_reference(void **state)
{
    (void)state;
    assert_in_place_for_tails(clamp_of, limits, sizeof limits / sizeof limits[0]);
}

static void clamping_at_any_alignment_equals_the_reference_and_touches_nothing_else(void **state)
{
    (void)state;
    assert_in_place_anywhere(clamp_of);
}

/* Every value of the two short types: inside the limit nothing changes, beyond it is the limit with the value's sign. */
static void the_reference_limits_the_magnitude_and_leaves_nan(void **state)
{
    (void)state;
    for (size_t d = 2; d < N_FLOATS; d++) {
        for (unsigned bits = 0; bits <= 0xffff; bits++) {
            uint16_t x[4]   = {(uint16_t)bits}; /* as long as any element type */
            double   before = value_at(x, 0, floats[d]), after;

            fsdpi_kernels_scalar.clamp(x, 0.75, 1, floats[d]);
            after = value_at(x, 0, floats[d]);
            if (isnan(before)) {
                assert_true(isnan(after));
            } else if (fabs(before) <= 0.75) {
                assert_int_equal(bits, x[0]);
            } else {
                assert_true(after == copysign(0.75, before));
            }
        }
    }
}

static void f32_is_clamped_to_the_limit_rounded_to_f32(void **state)
{
    float  x[4] = {1, -1, NAN, -0.0F};
    double y    = 1;

    (void)state;
    fsdpi_kernels_scalar.clamp(x, 0.1, 4, FSDP_F32);
    fsdpi_kernels_scalar.clamp(&y, 0.1, 1, FSDP_F64);
    assert_true(x[0] == 0.1F && x[1] == -0.1F && isnan(x[2]) && x[3] == 0 && signbit(x[3]));
    assert_true(y == 0.1);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_makes_the_largest_magnitude_nan_beside_infinity_too),
        cmocka_unit_test(the_largest_magnitude_is_found_in_a_tail_of_any_length),
        cmocka_unit_test(the_largest_magnitude_is_found_wherever_it_is),
        cmocka_unit_test(nothing_behind_the_end_is_read),
        cmocka_unit_test(the_reference_limits_the_magnitude_and_leaves_nan),
        cmocka_unit_test(f32_is_clamped_to_the_limit_rounded_to_f32),
        cmocka_unit_test(clamping_a_tail_of_any_length_equals_the_reference),
        cmocka_unit_test(clamping_at_any_alignment_equals_the_reference_and_touches_nothing_else),
    };

    return kernel_test_main(argc, argv, tests);
}
