/** @file The squared norm, whose order of summation is part of its definition. */
#include "kernel_test.h"

#include <math.h>
#include <stdio.h>

#include "kernels/host/element.h"
#include "kernels/host/half.h"

enum { X, MAX_COUNT = 2053 };

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

/** The lane of the elements i with i mod 16 == lane. */
static double lane_sum(const void *x, size_t count, fsdp_dtype dtype, size_t lane)
{
    double sum = 0;

    for (size_t i = lane; i < count; i += 16) {
        double square = value_at(x, i, dtype) * value_at(x, i, dtype);

        sum = sum + square;
    }
    return sum;
}

/** What the tree makes of the lanes `lane`, `lane` + `distance` and so on below 16. */
static double subtree(const void *x, size_t count, fsdp_dtype dtype, size_t lane, size_t distance)
{
    if (distance == 16) {
        return lane_sum(x, count, dtype, lane);
    }
    return subtree(x, count, dtype, lane, 2 * distance) + subtree(x, count, dtype, lane + distance, 2 * distance);
}

static void fill_with_finite_values(void *x, size_t count, fsdp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        float value = (float)ldexp((double)(int64_t)random_bits(), (int)(random_bits() % 20) - 75);

        if (dtype == FSDP_F64) {
            ((fsdpi_any_f64 *)x)[i] = ldexp((double)(int64_t)random_bits(), (int)(random_bits() % 20) - 75);
        } else if (dtype == FSDP_F32) {
            ((fsdpi_any_f32 *)x)[i] = value;
        } else {
            ((fsdpi_any_half *)x)[i] = dtype == FSDP_BF16 ? fsdpi_f32_to_bf16(value) : fsdpi_f32_to_f16(value);
        }
    }
}

static void assert_norm(const fsdpi_kernels *kernels, const void *x, size_t count, fsdp_dtype dtype)
{
    char   what[80];
    double expected = subtree(x, count, dtype, 0, 1);
    double found    = kernels->squared_norm(x, count, dtype);

    snprintf(what, sizeof what, "%s, %zu elements of type %d", kernels->name, count, dtype);
    assert_same_or_both_nan(&expected, &found, 1, FSDP_F64, what);
}

/** On the reference and on every table. */
static void assert_norms(const void *x, size_t count, fsdp_dtype dtype)
{
    assert_norm(&fsdpi_kernels_scalar, x, count, dtype);
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        assert_norm(tables_under_test[t], x, count, dtype);
    }
}

static void a_tail_of_any_length_is_summed_in_the_documented_order(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_FLOATS; d++) {
        for (const size_t *count = tail_counts; *count != SIZE_MAX; count++) {
            void *x = fenced_array(X, *count * element_bytes(floats[d]), 0);

            fill_with_finite_values(x, *count, floats[d]);
            assert_norms(x, *count, floats[d]);
            fill_with_any_values(x, *count, floats[d]);
            assert_norms(x, *count, floats[d]);
        }
    }
}

static void any_alignment_gives_the_same(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_FLOATS; d++) {
        for (const size_t *unit = units_of(floats[d]); *unit != 0; unit++) {
            for (size_t offset = 0; offset <= 16; offset++) {
                void *x = fenced_array(X, 83 * element_bytes(floats[d]), (ptrdiff_t)(offset * *unit));

                fill_with_finite_values(x, 83, floats[d]);
                assert_norms(x, 83, floats[d]);
            }
        }
    }
}

static void nothing_behind_the_end_is_read(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_FLOATS; d++) {
        for (size_t count = 0; count <= 70; count++) {
            void *x = fenced_array(X, count * element_bytes(floats[d]), AT_END);

            fill_with_finite_values(x, count, floats[d]);
            assert_norms(x, count, floats[d]);
        }
    }
}

static void another_order_would_show(void **state)
{
    double x[MAX_COUNT], one_by_one = 0;

    (void)state;
    fill_with_finite_values(x, MAX_COUNT, FSDP_F64);
    for (size_t i = 0; i < MAX_COUNT; i++) {
        one_by_one += x[i] * x[i];
    }
    assert_false(one_by_one == fsdpi_kernels_scalar.squared_norm(x, MAX_COUNT, FSDP_F64));
}

static void squares_of_small_integers_are_summed_exactly(void **state)
{
    float  x[1000];
    double expected = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        x[i] = (float)(i - 500);
        expected += (double)((i - 500) * (i - 500));
    }
    assert_true(fsdpi_kernels_scalar.squared_norm(x, 1000, FSDP_F32) == expected);
    assert_true(fsdpi_kernels_scalar.squared_norm(x, 0, FSDP_F32) == 0);
}

static void squares_beyond_the_range_of_f32_do_not_overflow(void **state)
{
    const float x[2] = {1e30f, 1e30f};

    (void)state;
    assert_true(fsdpi_kernels_scalar.squared_norm(x, 2, FSDP_F32) == 2 * ((double)1e30f * (double)1e30f));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(squares_of_small_integers_are_summed_exactly),
        cmocka_unit_test(squares_beyond_the_range_of_f32_do_not_overflow),
        cmocka_unit_test(a_tail_of_any_length_is_summed_in_the_documented_order),
        cmocka_unit_test(another_order_would_show),
        cmocka_unit_test(any_alignment_gives_the_same),
        cmocka_unit_test(nothing_behind_the_end_is_read),
    };

    return kernel_test_main(argc, argv, tests);
}
