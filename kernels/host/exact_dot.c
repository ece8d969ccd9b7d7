/*
 * Exact sums of products on the host, one product after the other, and what such a sum is in f64. Cost: about 20 integer
 * operations for each product, whatever its magnitude, and 137 for each sum.
 */
#include "kernels/host/exact_dot.h"

#include <math.h>
#include <stdbool.h>

#include "kernels/host/element.h"

/* Each product adds less than 2^33 to a digit, which has 63 bits: after this many and a carry there is room for more. */
enum { MOST_PRODUCTS = 1 << 28 };

/* ---- adding ------------------------------------------------------------------------------------------------------ */

static uint64_t f64_bits_of(const void *x, size_t i, fsdp_dtype dtype)
{
    switch (dtype) {
    case FSDP_F64:
        return fsdpi_f64_bits(((const fsdpi_any_f64 *)x)[i]);
    case FSDP_BF16:
        return fsdpi_f64_bits_of_f32(fsdpi_f32_bits(fsdpi_bf16_to_f32(((const fsdpi_any_half *)x)[i])));
    case FSDP_F16:
        return fsdpi_f64_bits_of_f32(fsdpi_f32_bits(fsdpi_f16_to_f32(((const fsdpi_any_half *)x)[i])));
    default:
        return fsdpi_f64_bits_of_f32(fsdpi_f32_bits(((const fsdpi_any_f32 *)x)[i]));
    }
}

static inline __attribute__((always_inline)) void add_products(fsdpi_exact_dot *dot, const void *a, const void *b,
                                                               size_t count, fsdp_dtype dtype)
{
    for (size_t i = 0; i < count; i++) {
        fsdpi_exact_dot_add_product(dot, f64_bits_of(a, i, dtype), f64_bits_of(b, i, dtype));
        if (i % MOST_PRODUCTS == MOST_PRODUCTS - 1) {
            fsdpi_exact_dot_carry(dot);
        }
    }
    fsdpi_exact_dot_carry(dot);
}

void fsdpi_exact_dot_add(fsdpi_exact_dot *dot, const void *a, const void *b, size_t count, fsdp_dtype dtype)
{
    if (dtype == FSDP_F64) {
        add_products(dot, a, b, count, FSDP_F64);
    } else if (dtype == FSDP_F32) {
        add_products(dot, a, b, count, FSDP_F32);
    } else {
        add_products(dot, a, b, count, dtype);
    }
}

void fsdpi_exact_dot_add_sum(fsdpi_exact_dot *dot, const fsdpi_exact_sum *sum)
{
    for (int k = 0; k < FSDPI_SUM_DIGITS; k++) {
        dot->digits[FSDPI_DOT_OF_SUM + k] += sum->digits[k];
    }
    dot->infinities += sum->infinities;
    dot->nans += sum->nans;
    fsdpi_exact_dot_carry(dot);
}

/* ---- rounding ---------------------------------------------------------------------------------------------------- */

/* The magnitude of a sum: (first 2^64 + second) 2^exponent, and something smaller than 2^exponent if `more`. `first` has its
 * leading bit set, or is 0. */
typedef struct magnitude {
    uint64_t first, second;
    bool     more, negative;
    int      exponent;
} magnitude;

/* 64 bits of the digits, the last of them bit number `position`, which may be negative. */
static uint64_t bits_from(const fsdpi_exact_dot *dot, int position)
{
    uint64_t bits = 0;

    for (int k = 0; k < FSDPI_DOT_DIGITS; k++) {
        const int shift = 32 * k - position;

        if (shift > -64 && shift < 64) {
            bits |= shift >= 0 ? (uint64_t)dot->digits[k] << shift : (uint64_t)dot->digits[k] >> -shift;
        }
    }
    return bits;
}

static bool has_bits_below(const fsdpi_exact_dot *dot, int position)
{
    for (int k = 0; k < FSDPI_DOT_DIGITS && 32 * k < position; k++) {
        const int      n    = position - 32 * k;
        const uint64_t mask = n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;

        if (((uint64_t)dot->digits[k] & mask) != 0) {
            return true;
        }
    }
    return false;
}

static void negate(fsdpi_exact_dot *dot)
{
    for (int k = 0; k < FSDPI_DOT_DIGITS; k++) {
        dot->digits[k] = -dot->digits[k];
    }
    fsdpi_exact_dot_carry(dot);
}

static magnitude magnitude_of(const fsdpi_exact_dot *dot)
{
    fsdpi_exact_dot carried = *dot;
    magnitude       m       = {0};
    int             top     = FSDPI_DOT_DIGITS - 1;

    fsdpi_exact_dot_carry(&carried);
    if (carried.digits[top] < 0) {
        negate(&carried);
        m.negative = true;
    }
    while (top > 0 && carried.digits[top] == 0) {
        top--;
    }
    if (carried.digits[top] == 0) {
        return m;
    }
    const int leading = 32 * top + 63 - __builtin_clzll((uint64_t)carried.digits[top]);

    m.first    = bits_from(&carried, leading - 63);
    m.second   = bits_from(&carried, leading - 127);
    m.more     = has_bits_below(&carried, leading - 127);
    m.exponent = leading - 127 + FSDPI_DOT_EXPONENT;
    return m;
}

/* bits 2^exponent, where the leading bit is set, and the last one if anything smaller follows: rounded once, where the result is
 * subnormal too. */
static double rounded(uint64_t bits, int exponent)
{
    const int excess = -1074 - exponent; /* bits below the last one of a subnormal number */

    if (excess < 12) {
        return ldexp((double)bits, exponent);
    }
    if (excess > 64) {
        return 0.0;
    }
    const uint64_t half = (uint64_t)1 << (excess - 1), rest = bits & (half | (half - 1));
    const uint64_t whole = bits >> 1 >> (excess - 1);

    return ldexp((double)(whole + (rest > half || (rest == half && (whole & 1) != 0))), -1074);
}

/* What infinities and NaN make of a sum. */
static bool is_special(const fsdpi_exact_dot *dot, double *value)
{
    const bool is_nan = dot->nans > 0 || (dot->infinities > 0 && dot->minus_infinities > 0);

    *value = is_nan ? (double)NAN : dot->infinities > 0 ? (double)INFINITY : -(double)INFINITY;
    return is_nan || dot->infinities > 0 || dot->minus_infinities > 0;
}

double fsdpi_exact_dot_value(const fsdpi_exact_dot *dot)
{
    double special;

    if (is_special(dot, &special)) {
        return special;
    }
    const magnitude m     = magnitude_of(dot);
    const double    value = m.first == 0 ? 0.0 : rounded(m.first | (m.second != 0 || m.more), m.exponent + 64);

    return m.negative ? -value : value;
}

/* The root of first 2^64 + second, rounded down; *exact: that is the root. One bit after the other, as on paper. */
static uint64_t whole_root(uint64_t first, uint64_t second, bool *exact)
{
    uint64_t root = 0, rest_high = 0, rest = 0; /* of 65 bits at most */

    for (int i = 0; i < 64; i++) {
        const uint64_t next = first >> 62;

        first     = first << 2 | second >> 62;
        second    = second << 2;
        rest_high = rest_high << 2 | rest >> 62;
        rest      = rest << 2 | next;
        /* root 2^2 + 1 is to be taken off where it can be */
        const uint64_t high = root >> 62, low = root << 2 | 1;
        const bool     fits = rest_high > high || (rest_high == high && rest >= low);

        if (fits) {
            rest_high -= high + (rest < low);
            rest -= low;
        }
        root = root << 1 | fits;
    }
    *exact = rest == 0 && rest_high == 0;
    return root;
}

double fsdpi_exact_dot_root(const fsdpi_exact_dot *dot)
{
    double special;
    bool   exact;

    if (is_special(dot, &special)) {
        return special;
    }
    magnitude m = magnitude_of(dot);
    if (m.first == 0) {
        return 0.0;
    }
    if (m.exponent % 2 != 0) { /* half of an even exponent is the root's */
        m.more   = m.more || (m.second & 1) != 0;
        m.second = m.second >> 1 | m.first << 63;
        m.first  = m.first >> 1;
        m.exponent++;
    }
    const uint64_t root = whole_root(m.first, m.second, &exact); /* from 2^63 on: it is of 2^126 at least */

    return rounded(root | (!exact || m.more), m.exponent / 2);
}
