/*
 * 8-bit blocks against what the header says, worked out once more in f64: values by their formula, codes by trying all of them.
 */
#include "shard/state/dynamic_blocks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fsdp/random.h"

enum { MOST = 1024 };

/* All values of one sign, in order. Returns how many. */
static size_t list_values(bool is_signed, double values[256])
{
    size_t n = 0;

    values[n++] = 0.0;
    for (int i = 0; i < 7; i++) {
        const int parts = 1 << (is_signed ? i : i + 1);

        for (int j = 0; j < parts; j++) {
            values[n++] = (double)(float)(pow(10.0, i - 6) * (0.1 + 0.9 * (2 * j + 1) / (2.0 * parts)));
        }
    }
    if (is_signed) {
        values[n - 1] = 1.0;
    } else {
        values[n++] = 1.0;
    }
    return n;
}

/* What one value of a block of that scale is read back as. */
static float expected(float x, float scale, bool is_signed)
{
    double       values[256], best = 0.0;
    const size_t n    = list_values(is_signed, values);
    const float  part = x / scale;

    for (size_t i = 1; i < n; i++) {
        if (fabs((double)fabsf(part) - values[i]) < fabs((double)fabsf(part) - best)) {
            best = values[i];
        }
    }
    if (!is_signed && best == 0.0 && x > 0.0F) {
        best = values[1];
    }
    return (float)(x < 0.0F ? -best : best) * scale;
}

/* Over many magnitudes; of first moments of either sign. */
static void draw(float *x, size_t n, bool is_signed, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        const double size = pow(10.0, -9.0 * fsdp_random_uniform(seed, 1, i)) * (seed % 3 == 0 ? 1e-6 : 10.0);

        x[i] = (float)(is_signed && fsdp_random_uniform(seed, 2, i) < 0.5 ? -size : size);
        if (i % 29 == 7) {
            x[i] = 0.0F;
        }
    }
}

static void round_trip(const float *x, size_t n, bool is_signed, float *back, uint8_t *codes, float *scales)
{
    fsdpi_dynamic_pack(x, n, is_signed, codes, scales);
    fsdpi_dynamic_unpack(codes, scales, 0, n, is_signed, back);
}

static void values_become_the_nearest_code(void **state)
{
    static const size_t SIZES[] = {1, 2, 255, 256, 257, 1023};
    float               x[MOST], back[MOST], scales[4];
    uint8_t             codes[MOST];

    (void)state;
    for (size_t s = 0; s < sizeof SIZES / sizeof SIZES[0]; s++) {
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            draw(x, SIZES[s], is_signed != 0, s + 1);
            round_trip(x, SIZES[s], is_signed != 0, back, codes, scales);
            for (size_t i = 0; i < SIZES[s]; i++) {
                if (scales[i / 256] == 0.0F) {
                    assert_true(back[i] == 0.0F);
                } else {
                    assert_true(back[i] == expected(x[i], scales[i / 256], is_signed != 0));
                }
            }
        }
    }
}

static void the_scale_is_the_largest_magnitude_which_is_exact(void **state)
{
    float   x[4] = {0.5F, -3.0F, 2.0F, 0.0F}, back[4], scale;
    uint8_t codes[4];

    (void)state;
    round_trip(x, 4, true, back, codes, &scale);
    assert_true(scale == 3.0F && back[1] == -3.0F && back[3] == 0.0F);
}

static void what_was_read_back_becomes_the_same_codes_and_scales(void **state)
{
    float   x[MOST], back[MOST], scales[4], again_scales[4];
    uint8_t codes[MOST], again[MOST];

    (void)state;
    for (uint64_t seed = 1; seed < 200; seed++) {
        const bool is_signed = seed % 2 == 0;

        draw(x, MOST, is_signed, seed);
        round_trip(x, MOST, is_signed, back, codes, scales);
        fsdpi_dynamic_pack(back, MOST, is_signed, again, again_scales);
        assert_memory_equal(codes, again, MOST);
        assert_memory_equal(scales, again_scales, sizeof scales);
    }
}

static void a_second_moment_above_zero_stays_above_zero(void **state)
{
    float   x[3] = {1.0F, 1e-20F, 0.0F}, back[3], scale;
    uint8_t codes[3];

    (void)state;
    round_trip(x, 3, false, back, codes, &scale);
    assert_true(back[1] > 3e-7F && back[1] < 4e-7F && back[2] == 0.0F);
    round_trip(x, 3, true, back, codes, &scale);
    assert_true(back[1] == 0.0F);
}

/* ---- behind a step --------------------------------------------------------------------------------------------------- */

static float back_behind_step(float x, float scale, uint64_t step)
{
    float   block[2] = {x, scale}, back[2], scales[1];
    uint8_t codes[2];

    fsdpi_dynamic_pack_step(block, 2, false, step, codes, scales);
    fsdpi_dynamic_unpack(codes, scales, 0, 2, false, back);
    assert_true(scales[0] == scale);
    return back[0];
}

static void a_second_moment_becomes_either_neighbour_and_is_kept_in_the_mean(void **state)
{
    enum { STEPS = 4000 };
    double       values[256];
    const size_t n = list_values(false, values);

    (void)state;
    for (size_t i = 2; i + 1 < n; i += 5) {
        for (int quarter = 1; quarter < 4; quarter++) {
            const double way = quarter / 4.0, low = values[i] * 2.0, high = values[i + 1] * 2.0;
            const float  x   = (float)(low + way * (high - low));
            double       sum = 0.0;

            for (uint64_t step = 0; step < STEPS; step++) {
                const double back = (double)back_behind_step(x, 2.0F, step);

                assert_true(back == (double)(float)low || back == (double)(float)high);
                sum += back;
            }
            assert_true(fabs(sum / STEPS - (double)x) < 5.0 * sqrt(way * (1 - way) / STEPS) * (high - low));
        }
    }
}

static void values_that_are_codes_stay(void **state)
{
    double       values[256];
    const size_t n = list_values(false, values);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        for (uint64_t step = 0; step < 20; step++) {
            assert_true((double)back_behind_step((float)values[i], 1.0F, step) == values[i]);
        }
    }
    assert_true(back_behind_step(1e-20F, 1.0F, 3) > 0.0F);
}

/* Which to the nearest code would be stuck for ever. */
static void second_moments_fade(void **state)
{
    enum { STEPS = 300 };
    static float x[MOST];
    float        scales[4];
    uint8_t      codes[MOST];
    double       sum = 0.0;

    (void)state;
    for (size_t i = 0; i < MOST; i++) {
        x[i] = i % 256 == 0 ? 1.0F : 0.2F;
    }
    for (uint64_t step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < MOST; i++) {
            x[i] *= i % 256 == 0 ? 1.0F : 0.99F;
        }
        fsdpi_dynamic_pack_step(x, MOST, false, step, codes, scales);
        fsdpi_dynamic_unpack(codes, scales, 0, MOST, false, x);
    }
    for (size_t i = 0; i < MOST; i++) {
        sum += i % 256 == 0 ? 0.0 : (double)x[i] / (MOST - 4);
    }
    assert_true(fabs(sum / (0.2 * pow(0.99, STEPS)) - 1.0) < 0.05);
}

static void the_same_value_at_the_same_place_becomes_the_same_code(void **state)
{
    float   x[MOST], scales[4], part_scales[1];
    uint8_t codes[MOST], part[256];

    (void)state;
    draw(x, MOST, false, 4);
    fsdpi_dynamic_pack_step(x, MOST, false, 17, codes, scales);
    for (size_t b = 0; b < 4; b++) { /* wherever the block is */
        fsdpi_dynamic_pack_step(x + 256 * b, 256, false, 17, part, part_scales);
        assert_memory_equal(codes + 256 * b, part, 256);
    }
}

static void a_block_that_is_not_finite_is_read_back_as_nan(void **state)
{
    const float BAD[] = {INFINITY, -INFINITY, NAN};
    float       x[512], back[512], scales[2];
    uint8_t     codes[512];

    (void)state;
    for (size_t b = 0; b < 3; b++) {
        draw(x, 512, true, 5);
        x[300] = BAD[b];
        round_trip(x, 512, true, back, codes, scales);
        for (size_t i = 0; i < 512; i++) {
            assert_true((i < 256) == (isnan(back[i]) == 0));
        }
    }
}

static void tiny_blocks_are_zeros(void **state)
{
    float   x[2] = {0x1p-101F, -0x1p-140F}, back[2], scale;
    uint8_t codes[2];

    (void)state;
    round_trip(x, 2, true, back, codes, &scale);
    assert_true(back[0] == 0.0F && back[1] == 0.0F && scale == 0.0F);
}

static void a_part_may_be_read_from_anywhere(void **state)
{
    float   x[MOST], back[MOST], part[MOST], scales[4];
    uint8_t codes[MOST];

    (void)state;
    draw(x, MOST, true, 8);
    round_trip(x, MOST, true, back, codes, scales);
    for (size_t begin = 0; begin < MOST; begin += 97) {
        fsdpi_dynamic_unpack(codes, scales, begin, MOST - begin, true, part);
        assert_memory_equal(back + begin, part, (MOST - begin) * sizeof(float));
    }
}

static void it_takes_260_bytes_for_256_values(void **state)
{
    (void)state;
    assert_int_equal(0, fsdpi_dynamic_bytes(0));
    assert_int_equal(5, fsdpi_dynamic_bytes(1));
    assert_int_equal(260, fsdpi_dynamic_bytes(256));
    assert_int_equal(520, fsdpi_dynamic_bytes(512));
    assert_true((double)fsdpi_dynamic_bytes(1 << 20) <= 0.26 * 4.0 * (1 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_become_the_nearest_code),
        cmocka_unit_test(the_scale_is_the_largest_magnitude_which_is_exact),
        cmocka_unit_test(what_was_read_back_becomes_the_same_codes_and_scales),
        cmocka_unit_test(a_second_moment_above_zero_stays_above_zero),
        cmocka_unit_test(a_second_moment_becomes_either_neighbour_and_is_kept_in_the_mean),
        cmocka_unit_test(values_that_are_codes_stay),
        cmocka_unit_test(second_moments_fade),
        cmocka_unit_test(the_same_value_at_the_same_place_becomes_the_same_code),
        cmocka_unit_test(a_block_that_is_not_finite_is_read_back_as_nan),
        cmocka_unit_test(tiny_blocks_are_zeros),
        cmocka_unit_test(a_part_may_be_read_from_anywhere),
        cmocka_unit_test(it_takes_260_bytes_for_256_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
