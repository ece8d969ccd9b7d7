/**
 * @file
 * Sums of products are exact, and rounded once: against integers of 4288 bits, with a carry at each addition, and against what
 * rounding to nearest means.
 */
#include "kernel_test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/host/exact_dot.h"

enum { LONGEST = 300, BITS = 32 * FSDPI_DOT_DIGITS };

/* ---- the reference ----------------------------------------------------------------------------------------------- */

static void add_bit(unsigned char *sum, int at)
{
    while (sum[at] != 0) {
        sum[at++] = 0;
    }
    sum[at] = 1;
}

/* By what C says a number is: an integer and an exponent. */
static uint64_t integer_of(double value, int *exponent)
{
    const double fraction = frexp(fabs(value), exponent);

    *exponent -= 53;
    return (uint64_t)ldexp(fraction, 53);
}

/* Bit after bit of one factor, which bit after bit of the other is added for. */
static void add_product(unsigned char *sum, double a, double b)
{
    int            d, e;
    const uint64_t m = integer_of(a, &d), n = integer_of(b, &e);

    for (int i = 0; i < 53; i++) {
        for (int j = 0; j < 53; j++) {
            if ((m >> i & 1) != 0 && (n >> j & 1) != 0) {
                add_bit(sum, i + j + d + e + 2154);
            }
        }
    }
}

static int64_t word_of(const unsigned char *bits)
{
    int64_t word = 0;

    for (int i = 0; i < 32; i++) {
        word |= (int64_t)bits[i] << i;
    }
    return word;
}

/* What is above 0 and what is below, each added up on its own. */
static fsdpi_exact_dot expected_dot(const double *a, const double *b, size_t count)
{
    static unsigned char sums[2][BITS];
    fsdpi_exact_dot      dot = {0};

    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < count; i++) {
        add_product(sums[(signbit(a[i]) != 0) != (signbit(b[i]) != 0)], a[i], b[i]);
    }
    for (int k = 0; k < FSDPI_DOT_DIGITS; k++) {
        dot.digits[k] = word_of(sums[0] + 32 * k) - word_of(sums[1] + 32 * k);
    }
    fsdpi_exact_dot_carry(&dot);
    return dot;
}

static fsdpi_exact_dot dot_of(const double *a, const double *b, size_t count)
{
    fsdpi_exact_dot dot = {0};

    fsdpi_exact_dot_add(&dot, a, b, count, FSDP_F64);
    return dot;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double random_double(int top, unsigned octaves)
{
    return ldexp((double)(int64_t)random_bits() * 0x1p-63, top - (int)(random_bits() % octaves));
}

static void fill(double *x, size_t count, int top, unsigned octaves)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = random_bits() % 9 == 0 ? 0.0 : random_double(top, octaves);
    }
}

/* From among these a range begins at, and has so many octaves. */
static const struct {
    int      top;
    unsigned octaves;
} RANGES[] = {{0, 1}, {0, 30}, {1023, 2040}, {-1000, 70}, {1023, 5}, {-500, 100}};
enum { N_RANGES = sizeof RANGES / sizeof RANGES[0] };

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void products_of_any_magnitude_are_added_exactly(void **state)
{
    static const size_t counts[] = {0, 1, 2, 3, 17, LONGEST};
    static double       a[LONGEST], b[LONGEST];

    (void)state;
    for (size_t r = 0; r < N_RANGES; r++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            fill(a, counts[c], RANGES[r].top, RANGES[r].octaves);
            fill(b, counts[c], RANGES[r].top, RANGES[r].octaves);
            const fsdpi_exact_dot expected = expected_dot(a, b, counts[c]), found = dot_of(a, b, counts[c]);

            assert_memory_equal(&expected, &found, sizeof found);
        }
    }
}

static void neither_the_order_nor_the_division_of_a_vector_shows(void **state)
{
    static double a[LONGEST], b[LONGEST];

    (void)state;
    fill(a, LONGEST, 600, 1500);
    fill(b, LONGEST, 400, 1300);
    const fsdpi_exact_dot whole = dot_of(a, b, LONGEST);
    for (size_t part = 1; part < LONGEST; part += 37) {
        fsdpi_exact_dot       parts = {0}, words = dot_of(a + part, b + part, LONGEST - part);
        const fsdpi_exact_dot first = dot_of(a, b, part);

        fsdpi_exact_dot_add(&parts, b + part, a + part, LONGEST - part, FSDP_F64);
        fsdpi_exact_dot_add(&parts, b, a, part, FSDP_F64);
        assert_memory_equal(&whole, &parts, sizeof whole);
        for (int k = 0; k < FSDPI_DOT_DIGITS; k++) { /* as ranks are joined: words, without a carry */
            words.digits[k] += first.digits[k];
        }
        assert_true(fsdpi_exact_dot_value(&words) == fsdpi_exact_dot_value(&whole));
    }
}

static void what_cancels_leaves_what_is_beneath_it(void **state)
{
    const double    a[] = {1e300, 1e-300, -1e300, 3.0, 0x1p-1074}, b[] = {1e300, 1e-300, 1e300, -7.0, 0x1p-1074};
    fsdpi_exact_dot dot = dot_of(a, b, 3);

    (void)state;
    assert_true(fsdpi_exact_dot_value(&dot) == 0.0); /* 1e-600 is below f64 */
    dot = dot_of(a, b, 4);
    assert_true(fsdpi_exact_dot_value(&dot) == -21.0 + 1e-300); /* which is -21 */
    const double c[] = {-3.0, -1e-300}, d[] = {-7.0, 1e-300};
    fsdpi_exact_dot_add(&dot, c, d, 2, FSDP_F64);
    assert_true(fsdpi_exact_dot_value(&dot) == 0.0 && signbit(fsdpi_exact_dot_value(&dot)) == 0);
    for (int k = 0; k < FSDPI_DOT_DIGITS; k++) {
        assert_int_equal(0, dot.digits[k]);
    }
}

/* The sign of sum - (value + half)^power, which f64 products make up. */
static double beyond(const fsdpi_exact_dot *sum, double value, double half, int power)
{
    const double a[] = {-value, -half, -2.0 * value}, b[] = {power == 2 ? value : 1.0, power == 2 ? half : 1.0, half};
    fsdpi_exact_dot rest = *sum;

    fsdpi_exact_dot_add(&rest, a, b, power == 2 ? 3 : 2, FSDP_F64);
    return fsdpi_exact_dot_value(&rest);
}

/* No other number of f64 is nearer. Half a unit of the last place has to be in f64. */
static void assert_nearest(const fsdpi_exact_dot *sum, double found, int power)
{
    const double    size = fabs(found), above = (nextafter(size, DBL_MAX) - size) / 2;
    const double    below    = (size - nextafter(size, 0.0)) / 2;
    fsdpi_exact_dot positive = *sum;

    for (int k = 0; k < FSDPI_DOT_DIGITS && found < 0; k++) {
        positive.digits[k] = -positive.digits[k];
    }
    assert_true(beyond(&positive, size, above, power) <= 0);
    assert_true(beyond(&positive, size, -below, power) >= 0);
}

static void a_sum_and_its_root_are_the_nearest_numbers(void **state)
{
    static double a[8], b[8];

    (void)state;
    for (int i = 0; i < 4000; i++) {
        const size_t n = 1 + random_bits() % 8;

        fill(a, n, 200, 1 + (unsigned)(random_bits() % 90));
        fill(b, n, -100, 1 + (unsigned)(random_bits() % 90));
        a[0]                = 1.0 + a[0];
        fsdpi_exact_dot dot = dot_of(a, b, n), squares = dot_of(a, a, n);

        if (fsdpi_exact_dot_value(&dot) != 0) {
            assert_nearest(&dot, fsdpi_exact_dot_value(&dot), 1);
        }
        assert_nearest(&squares, fsdpi_exact_dot_root(&squares), 2);
    }
}

static void a_tie_goes_to_the_even_number(void **state)
{
    const double    one[] = {1.0, 1.0, 1.0}, up[] = {1.0 + DBL_EPSILON, DBL_EPSILON / 2, 0x1p-1000};
    fsdpi_exact_dot dot = dot_of(one, up, 2);

    (void)state;
    assert_true(fsdpi_exact_dot_value(&dot) == 1.0 + 2 * DBL_EPSILON);
    const double down[] = {1.0, DBL_EPSILON / 2, 0x1p-1000};
    dot                 = dot_of(one, down, 2);
    assert_true(fsdpi_exact_dot_value(&dot) == 1.0);
    dot = dot_of(one, down, 3);
    assert_true(fsdpi_exact_dot_value(&dot) == 1.0 + DBL_EPSILON);
}

static void subnormal_sums_are_rounded_once(void **state)
{
    const double    one[] = {1.0, 0x1p-1074, 0x1p-1074}, least[] = {0x1p-1074, 0.5, 0x1p-900};
    fsdpi_exact_dot dot = dot_of(one, least, 2); /* one and a half of the smallest number: a tie */

    (void)state;
    assert_true(fsdpi_exact_dot_value(&dot) == 2 * 0x1p-1074);
    dot = dot_of(one + 1, least + 1, 1); /* half of it */
    assert_true(fsdpi_exact_dot_value(&dot) == 0.0);
    dot = dot_of(one + 1, least + 1, 2); /* more than half of it */
    assert_true(fsdpi_exact_dot_value(&dot) == 0x1p-1074);
    dot = dot_of(one + 2, least + 2, 1);
    assert_true(fsdpi_exact_dot_value(&dot) == 0.0);
    const double small[] = {3 * 0x1p-1074, 4 * 0x1p-1074};
    dot                  = dot_of(small, small, 2);
    assert_true(fsdpi_exact_dot_root(&dot) == 5 * 0x1p-1074);
    dot = dot_of(one + 1, one + 1, 2); /* the root of 2 */
    assert_true(fsdpi_exact_dot_root(&dot) == 0x1p-1074);
}

static void a_root_does_not_overflow_and_a_sum_is_infinite_only_then(void **state)
{
    const double    large[] = {3 * 0x1p1020, -4 * 0x1p1020}, most[] = {DBL_MAX, DBL_MAX};
    fsdpi_exact_dot dot = dot_of(large, large, 2);

    (void)state;
    assert_true(fsdpi_exact_dot_root(&dot) == 5 * 0x1p1020);
    assert_true(isinf(fsdpi_exact_dot_value(&dot)));
    dot = dot_of(most, most, 1);
    assert_true(fsdpi_exact_dot_root(&dot) == DBL_MAX);
    dot = dot_of(most, most, 2);
    assert_true(isinf(fsdpi_exact_dot_root(&dot)));
    dot = dot_of(most, large, 0);
    assert_true(fsdpi_exact_dot_root(&dot) == 0.0);
}

static double value_of(double a, double b, double c, double d)
{
    const double          x[] = {a, c, 1.0}, y[] = {b, d, 1.0};
    const fsdpi_exact_dot dot = dot_of(x, y, 3);

    return fsdpi_exact_dot_value(&dot);
}

static void infinities_and_nans_are_as_in_f64(void **state)
{
    const double inf = (double)INFINITY;

    (void)state;
    assert_true(value_of(inf, 1.0, 2.0, inf) == inf);
    assert_true(value_of(inf, -1.0, 2.0, 3.0) == -inf);
    assert_true(isnan(value_of(inf, 1.0, -inf, 1.0)));
    assert_true(isnan(value_of(inf, 0.0, 1.0, 1.0)));
    assert_true(isnan(value_of((double)NAN, 0.0, 1.0, 1.0)));
    assert_true(isnan(value_of(-0.0, -inf, 1.0, 1.0)));
}

static void narrower_types_give_what_their_values_give_in_f64(void **state)
{
    enum { N = 512 };
    static unsigned char a[4 * N], b[4 * N];
    static double        wide_a[N], wide_b[N];

    (void)state;
    for (size_t t = 0; t < N_FLOATS; t++) {
        fsdpi_exact_dot found = {0}, expected = {0};

        if (floats[t] == FSDP_F64) {
            continue;
        }
        fill_with_any_values(a, N, floats[t]);
        fill_with_any_values(b, N, floats[t]);
        fsdpi_kernels_scalar.cast(wide_a, FSDP_F64, a, floats[t], N);
        fsdpi_kernels_scalar.cast(wide_b, FSDP_F64, b, floats[t], N);
        fsdpi_exact_dot_add(&found, a, b, N, floats[t]);
        fsdpi_exact_dot_add(&expected, wide_a, wide_b, N, FSDP_F64);
        assert_memory_equal(&expected, &found, sizeof found);
    }
}

static void a_sum_of_squares_is_a_sum_of_products(void **state)
{
    enum { N = 700 };
    static float    x[N];
    fsdpi_exact_sum sum   = {0};
    fsdpi_exact_dot found = {0}, expected = {0};

    (void)state;
    fill_with_any_values(x, N, FSDP_F32);
    fsdpi_kernels_scalar.sum_squares(&sum, x, N, FSDP_F32);
    fsdpi_exact_dot_add_sum(&found, &sum);
    fsdpi_exact_dot_add(&expected, x, x, N, FSDP_F32);
    assert_memory_equal(&expected, &found, sizeof found);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_any_magnitude_are_added_exactly),
        cmocka_unit_test(neither_the_order_nor_the_division_of_a_vector_shows),
        cmocka_unit_test(what_cancels_leaves_what_is_beneath_it),
        cmocka_unit_test(a_sum_and_its_root_are_the_nearest_numbers),
        cmocka_unit_test(a_tie_goes_to_the_even_number),
        cmocka_unit_test(subnormal_sums_are_rounded_once),
        cmocka_unit_test(a_root_does_not_overflow_and_a_sum_is_infinite_only_then),
        cmocka_unit_test(infinities_and_nans_are_as_in_f64),
        cmocka_unit_test(narrower_types_give_what_their_values_give_in_f64),
        cmocka_unit_test(a_sum_of_squares_is_a_sum_of_products),
    };

    return kernel_test_main(argc, argv, tests);
}
