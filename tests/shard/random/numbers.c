#include "tests/shard/random/numbers.h"

#include <math.h>
#include <string.h>

/* ---- random draws ------------------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

uint64_t draw_bits(random_draws *draws)
{
    draws->state += 0x9e3779b97f4a7c15U;
    return mix(draws->state);
}

random_draws random_draws_of(uint64_t seed, uint64_t part)
{
    return (random_draws){mix(mix(seed + 0x9e3779b97f4a7c15U) + part * 0xd1342543de82ef95U)};
}

size_t draw_below(random_draws *draws, size_t n)
{
    return (size_t)(draw_bits(draws) % n);
}

bool draw_chance(random_draws *draws, unsigned percent)
{
    return draw_below(draws, 100) < percent;
}

double draw_uniform(random_draws *draws, double from, double to)
{
    return from + (to - from) * ((double)(draw_bits(draws) >> 11) * 0x1p-53);
}

float hashed_number(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t bits = mix(mix(mix(mix(a + 1) + b) + c) + d * 0x9e3779b97f4a7c15U);

    return (float)((int32_t)(bits >> 39) - (1 << 24)) * 0x1p-24F;
}

/* ---- 16-bit types ------------------------------------------------------------------------------------------------ */

/* Bits of the significand, the exponent of the smallest normal number, and the largest number. */
typedef struct float_type {
    int   digits, least;
    float largest;
} float_type;

static float_type type_of(fsdp_dtype dtype)
{
    return dtype == FSDP_BF16 ? (float_type){8, -126, 0x1.fep127F} : (float_type){11, -14, 65504.0F};
}

float nearest_of(fsdp_dtype dtype, float x)
{
    const float_type type = type_of(dtype);

    if (dtype == FSDP_F32 || !isfinite(x) || x == 0.0F) {
        return x;
    }
    const int    exponent = ilogb((double)x) > type.least ? ilogb((double)x) : type.least;
    const double step     = ldexp(1.0, exponent - type.digits + 1);
    const double rounded  = nearbyint((double)x / step) * step; /* ties to even, and exact in f64 */
    return fabs(rounded) > (double)type.largest ? copysignf(INFINITY, x) : copysignf((float)fabs(rounded), x);
}

static float f16_value(uint16_t bits)
{
    const int   exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const float size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                       : exponent == 0 ? ldexpf((float)fraction, -24)
                                       : ldexpf((float)(fraction + 1024), exponent - 25);

    return (bits & 0x8000U) != 0 ? -size : size;
}

static uint16_t f16_bits(float x)
{
    const unsigned sign = signbit(x) ? 0x8000U : 0;
    const double   size = fabs((double)x);

    if (isnan(x)) {
        return (uint16_t)(sign | 0x7e00U);
    }
    if (isinf(x)) {
        return (uint16_t)(sign | 0x7c00U);
    }
    if (size < 0x1p-14) {
        return (uint16_t)(sign | (unsigned)ldexp(size, 24));
    }
    const int exponent = ilogb(size);
    return (uint16_t)(sign + ((unsigned)(exponent + 14) << 10) + (unsigned)ldexp(size, 10 - exponent));
}

float read_element(fsdp_dtype dtype, const void *array, size_t i)
{
    const unsigned char *at = (const unsigned char *)array + i * (dtype == FSDP_F32 ? 4 : 2);
    uint32_t             bits;
    uint16_t             half;
    float                x;

    if (dtype == FSDP_F32) {
        memcpy(&x, at, sizeof x);
        return x;
    }
    memcpy(&half, at, sizeof half);
    if (dtype == FSDP_F16) {
        return f16_value(half);
    }
    bits = (uint32_t)half << 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void write_element(fsdp_dtype dtype, void *array, size_t i, float x)
{
    const float rounded = nearest_of(dtype, x);
    uint32_t    bits;
    uint16_t    half;

    if (dtype == FSDP_F32) {
        memcpy((unsigned char *)array + i * sizeof x, &rounded, sizeof rounded);
        return;
    }
    memcpy(&bits, &rounded, sizeof bits);
    half = dtype == FSDP_F16 ? f16_bits(rounded) : (uint16_t)(bits >> 16);
    memcpy((unsigned char *)array + i * sizeof half, &half, sizeof half);
}

bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

enum { LEAST_EXPONENT = -300 };

static void carry(exact_squares *sum)
{
    for (size_t k = 0; k + 1 < EXACT_LIMBS; k++) {
        sum->limbs[k + 1] += sum->limbs[k] >> 32;
        sum->limbs[k] &= 0xffffffffU;
    }
}

void add_square(exact_squares *sum, float x)
{
    int exponent;

    if (!isfinite(x)) {
        sum->nan      = sum->nan || isnan(x);
        sum->infinite = true;
        return;
    }
    const double square = (double)x * (double)x; /* exact: 48 bits, 2^-298 or more */
    uint64_t     whole  = (uint64_t)ldexp(frexp(square, &exponent), 53);
    if (whole == 0) {
        return;
    }
    for (; exponent - 53 < LEAST_EXPONENT; exponent++) {
        whole >>= 1; /* zeros */
    }
    const size_t   at    = (size_t)(exponent - 53 - LEAST_EXPONENT);
    const unsigned shift = at % 32;
    sum->limbs[at / 32] += (whole << shift) & 0xffffffffU;
    sum->limbs[at / 32 + 1] += (whole >> (32 - shift)) & 0xffffffffU;
    sum->limbs[at / 32 + 2] += shift == 0 ? 0 : whole >> (64 - shift);
    carry(sum);
}

static bool bit_of(const exact_squares *sum, size_t i)
{
    return (sum->limbs[i / 32] >> (i % 32) & 1) != 0;
}

double root_of(exact_squares sum)
{
    size_t   top   = EXACT_LIMBS * 32;
    uint64_t whole = 0;

    if (sum.nan || sum.infinite) {
        return sum.nan ? NAN : INFINITY;
    }
    while (top > 0 && !bit_of(&sum, top - 1)) {
        top--;
    }
    const size_t bottom = top > 53 ? top - 53 : 0; /* of the 53 highest bits */
    bool         rest   = false;
    for (size_t i = top; i > bottom; i--) {
        whole = whole * 2 + bit_of(&sum, i - 1);
    }
    for (size_t i = 0; i + 1 < bottom; i++) {
        rest = rest || bit_of(&sum, i);
    }
    if (bottom > 0 && bit_of(&sum, bottom - 1) && (rest || whole % 2 == 1)) {
        whole++;
    }
    return sqrt(ldexp((double)whole, (int)bottom + LEAST_EXPONENT));
}
