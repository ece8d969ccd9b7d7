/**
 * @file
 * Sums of squares are exact: against integers of 640 bits, with a carry at each addition; whatever the magnitudes, the order and
 * the division.
 */
#include "kernel_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/host/element.h"
#include "kernels/host/half.h"

enum { X, LONGEST = 4500, N_TYPES = 3, REFERENCE_SCALE = 149 };

static const fsdp_dtype types[N_TYPES] = {FSDP_F32, FSDP_BF16, FSDP_F16};

/* ---- the reference ----------------------------------------------------------------------------------------------- */

static double value_at(const void *x, size_t i, fsdp_dtype dtype)
{
    if (dtype == FSDP_F32) {
        return (double)((const fsdpi_any_f32 *)x)[i];
    }
    return (double)(dtype == FSDP_BF16 ? fsdpi_bf16_to_f32 : fsdpi_f16_to_f32)(((const fsdpi_any_half *)x)[i]);
}

static void add_with_carry(fsdpi_exact_sum *sum, uint64_t value, int position)
{
    for (int bit = 0; bit < 64; bit++) {
        int at = position + bit;

        if ((value >> bit & 1) == 0) {
            continue;
        }
        while ((sum->digits[at / 32] >> at % 32 & 1) != 0) {
            sum->digits[at / 32] &= ~((int64_t)1 << at % 32);
            at++;
        }
        sum->digits[at / 32] |= (int64_t)1 << at % 32;
    }
}

/* By what C says a number is: a fraction and an exponent. */
static fsdpi_exact_sum expected_sum(const void *x, size_t count, fsdp_dtype dtype)
{
    fsdpi_exact_sum sum = {0};

    for (size_t i = 0; i < count; i++) {
        const double value = value_at(x, i, dtype);
        int          exponent;

        if (!isfinite(value)) {
            sum.infinities += isinf(value) != 0;
            sum.nans += isnan(value) != 0;
        } else if (value != 0) {
            const double fraction = frexp(fabs(value), &exponent);
            const int    shift    = exponent + REFERENCE_SCALE < 24 ? exponent + REFERENCE_SCALE : 24;
            const double mantissa = ldexp(fraction, shift);

            add_with_carry(&sum, (uint64_t)mantissa * (uint64_t)mantissa, 2 * (exponent - shift + REFERENCE_SCALE));
        }
    }
    return sum;
}

static void assert_same_sum(const fsdpi_exact_sum *expected, const fsdpi_exact_sum *found, const char *name,
                            size_t count, fsdp_dtype dtype)
{
    if (memcmp(expected, found, sizeof *expected) != 0) {
        fail_msg("%s, %zu elements of type %d: %a instead of %a, or other digits", name, count, (int)dtype,
                 fsdpi_exact_sum_value(found), fsdpi_exact_sum_value(expected));
    }
}

/** On the reference and on every table. */
static void assert_sums(const void *x, size_t count, fsdp_dtype dtype)
{
    const fsdpi_exact_sum expected = expected_sum(x, count, dtype);

    for (size_t t = 0; t == 0 || tables_under_test[t - 1] != NULL; t++) {
        const fsdpi_kernels *kernels = t == 0 ? &fsdpi_kernels_scalar : tables_under_test[t - 1];
        fsdpi_exact_sum      found   = {0};

        kernels->sum_squares(&found, x, count, dtype);
        assert_same_sum(&expected, &found, kernels->name, count, dtype);
    }
    assert_fences_stand();
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void store_value(void *x, size_t i, fsdp_dtype dtype, double value)
{
    if (dtype == FSDP_F32) {
        ((fsdpi_any_f32 *)x)[i] = (float)value;
    } else {
        ((fsdpi_any_half *)x)[i] = dtype == FSDP_BF16 ? fsdpi_f64_to_bf16(value) : fsdpi_f64_to_f16(value);
    }
}

/* Some of all magnitudes within `octaves` below 2^top; one in `zeros` is zero. */
static void fill_with_octaves(void *x, size_t count, fsdp_dtype dtype, int top, unsigned octaves, unsigned zeros)
{
    for (size_t i = 0; i < count; i++) {
        const double mantissa = (double)(int64_t)random_bits() * 0x1p-63;
        const int    exponent = top - (int)(random_bits() % octaves);

        store_value(x, i, dtype, random_bits() % zeros == 0 ? 0.0 : ldexp(mantissa, exponent));
    }
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void tails_of_any_length_and_any_values_are_summed_exactly(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_TYPES; d++) {
        for (const size_t *count = tail_counts; *count != SIZE_MAX; count++) {
            void *x = fenced_array(X, *count * element_bytes(types[d]), 0);

            fill_with_octaves(x, *count, types[d], 3, 14, 50);
            assert_sums(x, *count, types[d]);
            fill_with_any_values(x, *count, types[d]);
            assert_sums(x, *count, types[d]);
        }
    }
}

/* So many octaves that each number of bins is needed, and that none is enough; at both ends of the range too. */
static void any_spread_of_magnitudes_is_summed_exactly(void **state)
{
    static const int tops[] = {128, 100, 16, 1, -40, -100, -125, -140};

    (void)state;
    for (size_t d = 0; d < N_TYPES; d++) {
        void *x = fenced_array(X, LONGEST * element_bytes(types[d]), 0);

        for (unsigned octaves = 1; octaves <= 160; octaves += octaves < 80 ? 1 : 20) {
            for (size_t t = 0; t < sizeof tops / sizeof *tops; t++) {
                fill_with_octaves(x, LONGEST, types[d], tops[t], octaves, octaves % 5 + 2);
                assert_sums(x, LONGEST, types[d]);
            }
        }
    }
}

/* One block like its neighbours, except for one element. */
static void one_element_unlike_the_others_is_summed_exactly(void **state)
{
    static const double odd[] = {0x1p127, 0x1.fffffep-20, 0x1.000002p-60, 0x1.000002p-126, 0x1p-149,
                                 0.0,     -0.0,           65504.0};

    (void)state;
    for (size_t d = 0; d < N_TYPES; d++) {
        void *x = fenced_array(X, LONGEST * element_bytes(types[d]), 0);

        for (size_t at = 0; at < LONGEST; at += 97) {
            for (size_t o = 0; o < sizeof odd / sizeof *odd; o++) {
                fill_with_octaves(x, LONGEST, types[d], 1, 3, 1000);
                store_value(x, at, types[d], odd[o]);
                assert_sums(x, LONGEST, types[d]);
            }
        }
    }
}

/* Each bin receives the most that it is made for: all bits set, all at the top, or all a little below it. */
static void the_fullest_bins_do_not_overflow(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_TYPES; d++) {
        void *x = fenced_array(X, LONGEST * element_bytes(types[d]), 0);

        for (int below = 0; below < 70; below++) {
            for (size_t i = 0; i < LONGEST; i++) {
                const double whole = types[d] == FSDP_F32 ? 0x1.fffffep0 : types[d] == FSDP_BF16 ? 0x1.fep0 : 0x1.ffcp0;

                store_value(x, i, types[d], ldexp(whole, i % 1024 == 0 ? -below : 0));
            }
            assert_sums(x, LONGEST, types[d]);
        }
    }
}

static void any_alignment_gives_the_same(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_TYPES; d++) {
        for (const size_t *unit = units_of(types[d]); *unit != 0; unit++) {
            for (size_t offset = 0; offset <= 16; offset++) {
                void *x = fenced_array(X, 1183 * element_bytes(types[d]), (ptrdiff_t)(offset * *unit));

                fill_with_octaves(x, 1183, types[d], 3, 14, 50);
                assert_sums(x, 1183, types[d]);
            }
        }
    }
}

static void nothing_behind_the_end_is_read(void **state)
{
    (void)state;
    for (size_t d = 0; d < N_TYPES; d++) {
        for (size_t count = 0; count <= 1100; count += count < 70 ? 1 : 103) {
            void *x = fenced_array(X, count * element_bytes(types[d]), AT_END);

            fill_with_octaves(x, count, types[d], 3, 14, 50);
            assert_sums(x, count, types[d]);
        }
    }
}

static fsdpi_exact_sum sum_of(const float *x, size_t count)
{
    fsdpi_exact_sum sum = {0};

    fsdpi_kernels_scalar.sum_squares(&sum, x, count, FSDP_F32);
    return sum;
}

static void parts_in_any_order_have_the_same_sum(void **state)
{
    float          *x = fenced_array(X, LONGEST * sizeof *x, 0);
    fsdpi_exact_sum whole, parts, words = {0};

    (void)state;
    fill_with_octaves(x, LONGEST, FSDP_F32, 60, 120, 9);
    whole = sum_of(x, LONGEST);
    for (size_t t = 0; t == 0 || tables_under_test[t - 1] != NULL; t++) {
        const fsdpi_kernels *kernels = t == 0 ? &fsdpi_kernels_scalar : tables_under_test[t - 1];

        parts = (fsdpi_exact_sum){0};
        for (size_t end = LONGEST, n; end > 0; end -= n) {
            n = random_bits() % 700 + 1;
            n = n < end ? n : end;
            kernels->sum_squares(&parts, x + end - n, n, FSDP_F32);
        }
        assert_same_sum(&whole, &parts, kernels->name, LONGEST, FSDP_F32);
    }
    for (size_t i = 0; i < LONGEST; i += 450) {
        const fsdpi_exact_sum part = sum_of(x + i, 450);

        for (int k = 0; k < FSDPI_SUM_DIGITS; k++) { /* as ranks are joined: words, without a carry */
            words.digits[k] += part.digits[k];
        }
    }
    assert_true(fsdpi_exact_sum_value(&words) == fsdpi_exact_sum_value(&whole));
}

/* ---- in f64 ------------------------------------------------------------------------------------------------------ */

/* Of which the exact sums and their nearest f64 were computed with Python's fractions. */
static void known_sums_are_rounded_once(void **state)
{
    const float thirds[3]  = {1.0F / 3, 2.0F / 3, -1e-20F};
    const float large[4]   = {3.4e38F, 1e-45F, -3.4e38F, 1e38F};
    const float small[3]   = {1e-45F, 1e-45F, 3e-45F};
    const float integer[2] = {16777215.0F, 1.0F}; /* 2^48 - 2^25 + 2 */

    (void)state;
    fsdpi_exact_sum sum = sum_of(thirds, 3);
    assert_true(fsdpi_exact_sum_value(&sum) == 0x1.1c71c838e38e8p-1);
    sum = sum_of(large, 4);
    assert_true(fsdpi_exact_sum_value(&sum) == 0x1.0aa12dd52a722p+257);
    sum = sum_of(small, 3);
    assert_true(fsdpi_exact_sum_value(&sum) == 0x1.8p-296); /* 1 + 1 + 4 times 2^-298 */
    sum = sum_of(integer, 2);
    assert_true(fsdpi_exact_sum_value(&sum) == 0x1p48 - 0x1p25 + 2);
    sum = sum_of(integer, 0);
    assert_true(fsdpi_exact_sum_value(&sum) == 0);
}

/* 2^53 and `units` times 2^-32, all of it times 2^(32 k - 266), rounded and brought back. `last`: the last digit. */
static double rounded(int k, uint64_t units, int64_t last)
{
    fsdpi_exact_sum sum = {.digits = {last}};

    sum.digits[k]     = (int64_t)(units & 0xffffffffU);
    sum.digits[k + 1] = (int64_t)(units >> 32);
    sum.digits[k + 2] = 1 << 21; /* with the above in units of 2^(32 k): 2^85 */
    return ldexp(fsdpi_exact_sum_value(&sum), 298 - 32 * k - 32);
}

static void halves_are_rounded_to_even_unless_anything_is_behind_them(void **state)
{
    const uint64_t half = (uint64_t)1 << 32;

    (void)state;
    for (int k = 1; k < 17; k++) {
        assert_true(rounded(k, half, 0) == 0x1p53);
        assert_true(rounded(k, half - 1, 0) == 0x1p53);
        assert_true(rounded(k, half + 1, 0) == 0x1p53 + 2);
        assert_true(rounded(k, half, 1) == 0x1p53 + 2);
        assert_true(rounded(k, 3 * half, 0) == 0x1p53 + 4);
        assert_true(rounded(k, 3 * half - 1, 0xffffffff) == 0x1p53 + 2);
    }
}

static void what_is_not_finite_is_carried_and_nan_wins(void **state)
{
    const float x[4] = {1, INFINITY, -INFINITY, NAN};

    (void)state;
    fsdpi_exact_sum sum = sum_of(x, 3);
    assert_int_equal(2, sum.infinities);
    assert_true(fsdpi_exact_sum_value(&sum) == (double)INFINITY);
    sum = sum_of(x, 4);
    assert_int_equal(1, sum.nans);
    assert_true(isnan(fsdpi_exact_sum_value(&sum)));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tails_of_any_length_and_any_values_are_summed_exactly),
        cmocka_unit_test(any_spread_of_magnitudes_is_summed_exactly),
        cmocka_unit_test(one_element_unlike_the_others_is_summed_exactly),
        cmocka_unit_test(the_fullest_bins_do_not_overflow),
        cmocka_unit_test(any_alignment_gives_the_same),
        cmocka_unit_test(nothing_behind_the_end_is_read),
        cmocka_unit_test(parts_in_any_order_have_the_same_sum),
        cmocka_unit_test(known_sums_are_rounded_once),
        cmocka_unit_test(halves_are_rounded_to_even_unless_anything_is_behind_them),
        cmocka_unit_test(what_is_not_finite_is_carried_and_nan_wins),
    };

    return kernel_test_main(argc, argv, tests);
}
