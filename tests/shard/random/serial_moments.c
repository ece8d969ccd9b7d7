/*
 * Moments in 8 bits, from what fsdp/optimizer.h says of them and Dettmers et al. (2022): of every 256 elements of a tensor the largest
 * magnitude is the scale, and each becomes the nearest of 256 values times that. The values are 0, 1, and the middles of equal parts of
 * seven decades below 1, of which each has twice as many as the one before: of first moments 1 to 64 with a sign, of second ones 2 to
 * 128. A second moment becomes one of the two around it, by chance, so that the mean is kept. A block is left as zeros where it is below 2^-100, and becomes NaN where a value is not finite.
 */
#include <math.h>
#include <string.h>

#include "tests/shard/random/serial.h"

enum { BLOCK = 256, DECADES = 7 };

/* Rising, of one sign. Returns how many. */
static size_t list_values(bool is_signed, float values[BLOCK])
{
    size_t n = 0;

    values[n++] = 0.0F;
    for (int decade = 0; decade < DECADES; decade++) {
        const int parts = is_signed ? 1 << decade : 2 << decade;

        for (int part = 0; part < parts; part++) {
            const double middle = 0.1 + 0.9 * (part + 0.5) / parts;

            values[n++] = (float)(pow(10.0, decade + 1 - DECADES) * middle);
        }
    }
    n -= is_signed; /* whose last value gives way to 1 */
    values[n++] = 1.0F;
    return n;
}

/* Of two that are equally near the smaller one. */
static float nearest_value(const float *values, size_t n, float x)
{
    size_t above = 0;

    while (above < n && values[above] < x) {
        above++;
    }
    if (above == 0 || above == n) {
        return above == 0 ? values[0] : values[n - 1];
    }
    const double down = (double)x - (double)values[above - 1], up = (double)values[above] - (double)x;

    return up < down ? values[above] : values[above - 1];
}

/* What the library takes for chance: of 24 bits of SplitMix64, fed with the value, its place in the block and the steps before. */
static double chance_of(float value, uint64_t place, uint64_t steps_before)
{
    static const uint64_t FACTORS[] = {0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu};
    static const int      SHIFTS[]  = {30, 27, 31};
    uint32_t              pattern;
    uint64_t              mixed;

    memcpy(&pattern, &value, sizeof pattern);
    mixed = (256 * steps_before + place + 1) * 0x9E3779B97F4A7C15u;
    mixed ^= (uint64_t)pattern * (1u << 20);
    for (int i = 0; i < 3; i++) {
        mixed ^= mixed >> SHIFTS[i];
        mixed *= i < 2 ? FACTORS[i] : 1;
    }
    return (double)(mixed >> 40) / (double)(1 << 24);
}

static float value_by_chance(const float *values, size_t n, float x, double chance)
{
    size_t above = 1;

    while (above < n && values[above] <= x) {
        above++;
    }
    if (above == n) {
        return values[n - 1];
    }
    const float way = (x - values[above - 1]) / (values[above] - values[above - 1]);

    return chance < (double)way ? values[above] : values[above - 1];
}

static float scale_of(const float *x, size_t n)
{
    float most = 0.0F;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return NAN;
        }
        most = fmaxf(most, fabsf(x[i]));
    }
    return most < 0x1p-100F ? 0.0F : most;
}

static void round_block(const float *values, size_t n_values, float *x, size_t n, bool is_signed, size_t step)
{
    const float scale = scale_of(x, n);

    for (size_t i = 0; i < n; i++) {
        const float size = scale > 0.0F && (is_signed || x[i] > 0.0F) ? fabsf(x[i] / scale) : 0.0F;
        float       code = is_signed ? nearest_value(values, n_values, size)
                                     : value_by_chance(values, n_values, size, chance_of(size, i, step - 1));

        if (!is_signed && code == 0.0F && size > 0.0F) {
            code = values[1]; /* steps are divided by its root */
        }
        x[i] = (x[i] < 0.0F && is_signed && code > 0.0F ? -code : code) * scale;
    }
}

void serial_round_to_8_bits(float *moments, size_t n, bool is_signed, size_t step)
{
    float        values[BLOCK];
    const size_t n_values = list_values(is_signed, values);

    for (size_t begin = 0; begin < n; begin += BLOCK) {
        round_block(values, n_values, moments + begin, n - begin < BLOCK ? n - begin : BLOCK, is_signed, step);
    }
}
