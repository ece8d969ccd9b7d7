/** @file Casts: half.h and the reference against exact neighbours, and the tables against the reference. */
#include "kernel_test.h"

#include <math.h>
#include <string.h>

#include "kernels/host/half.h"

enum { IN, ALSO_IN, OUT, EXPECTED };
enum { CHUNK = 2048 };

/** A format of 16 bits, described anew so that nothing of half.h is needed to tell what is right. */
typedef struct format {
    int mantissa_bits;
    int bias;
    uint16_t (*from_f64)(double);
    uint16_t (*from_f32)(float);
    float (*to_f32)(uint16_t);
} format;

static const format formats[] = {
    {7, 127, fsdpi_f64_to_bf16, fsdpi_f32_to_bf16, fsdpi_bf16_to_f32},
    {10, 15, fsdpi_f64_to_f16, fsdpi_f32_to_f16, fsdpi_f16_to_f32},
};

static uint16_t infinity_bits(const format *f)
{
    return (uint16_t)((2 * f->bias + 1) << f->mantissa_bits);
}

/** The value of a magnitude, from IEEE 754's definition; of infinity, the power of two that rounding takes it for. */
static double value_of(const format *f, int magnitude)
{
    int    exponent = magnitude >> f->mantissa_bits;
    double fraction = ldexp(magnitude & ((1 << f->mantissa_bits) - 1), -f->mantissa_bits);

    return exponent == 0 ? ldexp(fraction, 1 - f->bias) : ldexp(1 + fraction, exponent - f->bias);
}

/** Fails unless `bits` is the nearest to `x`, and the even one of two: neighbours and the middles are exact in f64. */
static void assert_nearest_even(const format *f, double x, uint16_t bits)
{
    int    magnitude = bits & 0x7fff, even = (bits & 1) == 0;
    double size = fabs(x);
    int    fits = (bits >> 15 != 0) == (signbit(x) != 0) && magnitude <= infinity_bits(f);

    if (magnitude > 0) {
        double below = (value_of(f, magnitude - 1) + value_of(f, magnitude)) / 2;

        fits = fits && (size > below || (size == below && even));
    }
    if (magnitude < infinity_bits(f)) {
        double above = (value_of(f, magnitude) + value_of(f, magnitude + 1)) / 2;

        fits = fits && (size < above || (size == above && even));
    }
    if (!fits) {
        fail_msg("%a was rounded to 0x%04x with %d bits of mantissa", x, bits, f->mantissa_bits);
    }
}

static void every_16_bit_value_means_what_ieee_754_says(void **state)
{
    (void)state;
    for (const format *f = formats; f < formats + 2; f++) {
        for (int magnitude = 0; magnitude < infinity_bits(f); magnitude++) {
            assert_true((double)f->to_f32((uint16_t)magnitude) == value_of(f, magnitude));
            assert_true((double)f->to_f32((uint16_t)(magnitude | 0x8000)) == -value_of(f, magnitude));
            assert_true(signbit(f->to_f32((uint16_t)(magnitude | 0x8000))));
        }
    }
}

static void every_16_bit_value_survives_a_round_trip(void **state)
{
    (void)state;
    for (const format *f = formats; f < formats + 2; f++) {
        for (unsigned bits = 0; bits <= 0xffff; bits++) {
            int      is_nan = (bits & 0x7fff) > infinity_bits(f);
            uint16_t quiet  = (uint16_t)(bits | (is_nan ? 1u << (f->mantissa_bits - 1) : 0));
            float    wide   = f->to_f32((uint16_t)bits);

            assert_int_equal(is_nan, isnan(wide) != 0);
            assert_int_equal(quiet, f->from_f32(wide));
            assert_int_equal(quiet, f->from_f64((double)wide));
        }
    }
}

static void f32_rounds_to_the_nearest_even(void **state)
{
    (void)state;
    for (const format *f = formats; f < formats + 2; f++) {
        for (int i = 0; i < 1000000; i++) {
            float x = fsdpi_f32_from_bits((uint32_t)random_bits());

            if (!isnan(x)) {
                assert_nearest_even(f, (double)x, f->from_f32(x));
            }
        }
    }
}

/** The next number below x, x itself or the next one above, for `side` -1, 0 and 1. */
static double beside(double x, int side)
{
    return side == 0 ? x : nextafter(x, side < 0 ? -INFINITY : INFINITY);
}

static float beside_f32(double x, int side)
{
    return side == 0 ? (float)x : nextafterf((float)x, side < 0 ? -INFINITY : INFINITY);
}

/** Middles are where double rounding would show: from f64 by way of f32, the numbers beside one fall into it. */
static void every_middle_and_what_is_beside_it_rounds_to_the_nearest_even(void **state)
{
    (void)state;
    for (const format *f = formats; f < formats + 2; f++) {
        for (int magnitude = 0; magnitude < infinity_bits(f); magnitude++) {
            for (int sign = -1; sign <= 1; sign += 2) {
                double middle = sign * (value_of(f, magnitude) + value_of(f, magnitude + 1)) / 2;

                for (int side = -1; side <= 1; side++) {
                    double wide   = beside(middle, side);
                    float  narrow = beside_f32(middle, side);

                    assert_nearest_even(f, wide, f->from_f64(wide));
                    assert_nearest_even(f, (double)narrow, f->from_f32(narrow));
                }
            }
        }
    }
}

/** Random bits of f64 are nearly all beyond the range of f16: exponents around its range, mantissas around middles. */
static double random_near_range(const format *f)
{
    uint64_t random   = random_bits();
    int      exponent = (int)(random % (unsigned)(2 * f->bias + 30)) - f->bias - 25;
    double   fraction = ldexp((double)(random_bits() >> 40), -24); /* 24 bits, then perhaps a last one far behind */

    return (random >> 63 != 0 ? -1 : 1) * ldexp(1 + fraction + (random >> 62 & 1 ? 0x1p-50 : 0), exponent);
}

static void f64_rounds_to_the_nearest_even(void **state)
{
    (void)state;
    for (const format *f = formats; f < formats + 2; f++) {
        for (int i = 0; i < 1000000; i++) {
            double x = random_near_range(f);

            assert_nearest_even(f, x, f->from_f64(x));
        }
    }
}

static void extremes_of_f64_round_to_infinity_or_zero(void **state)
{
    (void)state;
    for (const format *f = formats; f < formats + 2; f++) {
        assert_int_equal(infinity_bits(f), f->from_f64(INFINITY));
        assert_int_equal(infinity_bits(f) | 0x8000, f->from_f64(-1.7976931348623157e308));
        assert_int_equal(0, f->from_f64(4.9406564584124654e-324));
        assert_int_equal(0x8000, f->from_f64(-2.2250738585072014e-308));
        assert_int_equal(0x8000, f->from_f64(-0.0));
    }
}

static void the_reference_casts_between_f64_and_f32_as_c_does(void **state)
{
    (void)state;
    for (int i = 0; i < 1000000; i++) {
        double wide = ldexp((double)(int64_t)random_bits(), (int)(random_bits() % 300) - 220), wide_again;
        float  narrow;

        fsdpi_kernels_scalar.cast(&narrow, FSDP_F32, &wide, FSDP_F64, 1);
        assert_true(narrow == (float)wide);
        fsdpi_kernels_scalar.cast(&wide_again, FSDP_F64, &narrow, FSDP_F32, 1);
        assert_true(wide_again == (double)narrow);
    }
}

static void nans_keep_sign_and_leading_payload_and_become_quiet(void **state)
{
    const uint64_t signaling = 0xfff5555555555555;
    uint32_t       f32;
    uint16_t       bf16, f16;
    uint64_t       f64;

    (void)state;
    fsdpi_kernels_scalar.cast(&f32, FSDP_F32, &signaling, FSDP_F64, 1);
    fsdpi_kernels_scalar.cast(&bf16, FSDP_BF16, &signaling, FSDP_F64, 1);
    fsdpi_kernels_scalar.cast(&f16, FSDP_F16, &signaling, FSDP_F64, 1);
    assert_int_equal(0xffeaaaaa, f32);
    assert_int_equal(0xffea, bf16);
    assert_int_equal(0xff55, f16);
    fsdpi_kernels_scalar.cast(&f64, FSDP_F64, &f32, FSDP_F32, 1);
    assert_true(f64 == 0xfffd555540000000);
    bf16 = 0x7f81;
    fsdpi_kernels_scalar.cast(&f32, FSDP_F32, &bf16, FSDP_BF16, 1);
    assert_int_equal(0x7fc10000, f32);
}

/* The tables against the reference. */

static void check(const fsdpi_kernels *kernels, fsdp_dtype out_dtype, ptrdiff_t out_offset, const void *in,
                  fsdp_dtype in_dtype, size_t count)
{
    size_t bytes    = count * element_bytes(out_dtype);
    void  *expected = fenced_array(EXPECTED, bytes, 0);
    void  *out      = fenced_array(OUT, bytes, out_offset);

    fsdpi_kernels_scalar.cast(expected, out_dtype, in, in_dtype, count);
    kernels->cast(out, out_dtype, in, in_dtype, count);
    if (memcmp(expected, out, bytes) != 0) {
        fail_msg("%s: %zu elements from type %d to %d differ", kernels->name, count, in_dtype, out_dtype);
    }
    assert_fences_stand();
}

/** Calls `body` for each table and each two types, equal ones too. */
static void for_each_pair(void (*body)(const fsdpi_kernels *, fsdp_dtype, fsdp_dtype))
{
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t i = 0; i < N_FLOATS; i++) {
            for (size_t j = 0; j < N_FLOATS; j++) {
                body(tables_under_test[t], floats[i], floats[j]);
            }
        }
    }
}

static void check_tails(const fsdpi_kernels *kernels, fsdp_dtype out_dtype, fsdp_dtype in_dtype)
{
    for (const size_t *count = tail_counts; *count != SIZE_MAX; count++) {
        void *in = fenced_array(IN, *count * element_bytes(in_dtype), 0);

        fill_with_any_values(in, *count, in_dtype);
        check(kernels, out_dtype, 0, in, in_dtype, *count);
    }
}

static void a_tail_of_any_length_equals_the_reference(void **state)
{
    (void)state;
    for_each_pair(check_tails);
}

static void check_offsets(const fsdpi_kernels *kernels, fsdp_dtype out_dtype, fsdp_dtype in_dtype)
{
    for (size_t u = 0; units_of(in_dtype)[u] != 0; u++) {
        const size_t in_unit = units_of(in_dtype)[u], out_unit = units_of(out_dtype)[u];

        for (size_t i = 0; i <= 16; i++) {
            for (size_t j = 0; j <= 16; j++) {
                void *in = fenced_array(IN, 83 * element_bytes(in_dtype), (ptrdiff_t)(i * in_unit));

                fill_with_any_values(in, 83, in_dtype);
                check(kernels, out_dtype, (ptrdiff_t)(j * out_unit), in, in_dtype, 83);
            }
        }
    }
}

static void any_alignment_equals_the_reference(void **state)
{
    (void)state;
    for_each_pair(check_offsets);
}

static void check_ends(const fsdpi_kernels *kernels, fsdp_dtype out_dtype, fsdp_dtype in_dtype)
{
    for (size_t count = 0; count <= 70; count++) {
        void *in = fenced_array(IN, count * element_bytes(in_dtype), AT_END);

        fill_with_any_values(in, count, in_dtype);
        check(kernels, out_dtype, AT_END, in, in_dtype, count);
    }
}

static void nothing_behind_the_end_is_touched(void **state)
{
    (void)state;
    for_each_pair(check_ends);
}

static void every_16_bit_value_equals_the_reference(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (size_t j = 0; j < N_FLOATS; j++) {
            for (size_t first = 0; first < 65536; first += CHUNK) {
                uint16_t *in = fenced_array(IN, CHUNK * sizeof *in, 0);

                for (size_t i = 0; i < CHUNK; i++) {
                    in[i] = (uint16_t)(first + i);
                }
                check(tables_under_test[t], floats[j], 0, in, FSDP_BF16, CHUNK);
                check(tables_under_test[t], floats[j], 0, in, FSDP_F16, CHUNK);
            }
        }
    }
}

/** The middles from number `first` on, or the numbers beside them, in f64 and f32 to every type. */
static void check_middles(const fsdpi_kernels *kernels, const format *f, int first, int side)
{
    double *wide   = fenced_array(IN, CHUNK * sizeof *wide, 0);
    float  *narrow = fenced_array(ALSO_IN, CHUNK * sizeof *narrow, 0);

    for (int i = 0; i < CHUNK; i++) {
        double middle = (value_of(f, first + i) + value_of(f, first + i + 1)) / 2;

        wide[i]   = beside(i % 2 == 0 ? middle : -middle, side);
        narrow[i] = beside_f32(i % 2 == 0 ? middle : -middle, side);
    }
    for (size_t j = 0; j < N_FLOATS; j++) {
        check(kernels, floats[j], 0, wide, FSDP_F64, CHUNK);
        check(kernels, floats[j], 0, narrow, FSDP_F32, CHUNK);
    }
}

static void every_middle_equals_the_reference(void **state)
{
    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (const format *f = formats; f < formats + 2; f++) {
            for (int first = 0; first < infinity_bits(f); first += CHUNK) {
                for (int side = -1; side <= 1; side++) {
                    check_middles(tables_under_test[t], f, first, side);
                }
            }
        }
    }
}

static void values_near_the_range_equal_the_reference(void **state)
{
    enum { ROUNDS = 100 };

    (void)state;
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        for (int round = 0; round < ROUNDS; round++) {
            double *wide = fenced_array(IN, CHUNK * sizeof *wide, 0);

            for (size_t i = 0; i < CHUNK; i++) {
                wide[i] = random_near_range(&formats[i % 2]);
            }
            for (size_t j = 0; j < N_FLOATS; j++) {
                check(tables_under_test[t], floats[j], 0, wide, FSDP_F64, CHUNK);
            }
        }
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_16_bit_value_means_what_ieee_754_says),
        cmocka_unit_test(every_16_bit_value_survives_a_round_trip),
        cmocka_unit_test(f32_rounds_to_the_nearest_even),
        cmocka_unit_test(every_middle_and_what_is_beside_it_rounds_to_the_nearest_even),
        cmocka_unit_test(f64_rounds_to_the_nearest_even),
        cmocka_unit_test(extremes_of_f64_round_to_infinity_or_zero),
        cmocka_unit_test(the_reference_casts_between_f64_and_f32_as_c_does),
        cmocka_unit_test(nans_keep_sign_and_leading_payload_and_become_quiet),
        cmocka_unit_test(a_tail_of_any_length_equals_the_reference),
        cmocka_unit_test(any_alignment_equals_the_reference),
        cmocka_unit_test(nothing_behind_the_end_is_touched),
        cmocka_unit_test(every_16_bit_value_equals_the_reference),
        cmocka_unit_test(every_middle_equals_the_reference),
        cmocka_unit_test(values_near_the_range_equal_the_reference),
    };

    return kernel_test_main(argc, argv, tests);
}
