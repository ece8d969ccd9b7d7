/** @file Packed int8 blocks: how far what is read back is off, and what becomes of extreme values. */
#include "shard/state/int8_blocks.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/random.h"
#include "tests/support/unit_test.h"

enum { MOST = 1031, GUARD = 64, GUARD_BYTE = 0x5a };

static const size_t SIZES[] = {0, 1, 2, 3, 255, 256, 257, 512, MOST};

/* Reads `n` values back through memory with guards behind it. */
static void round_trip(const float *x, size_t n, size_t block, float *y)
{
    const size_t   bytes  = fsdpi_int8_blocks_bytes(n, block);
    unsigned char *packed = malloc(bytes + GUARD);

    assert_non_null(packed);
    memset(packed, GUARD_BYTE, bytes + GUARD);
    y[n] = 77.0F;
    fsdpi_int8_blocks_pack(x, n, block, packed);
    fsdpi_int8_blocks_unpack(packed, n, block, y);
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(GUARD_BYTE, packed[bytes + i]);
    }
    assert_true(y[n] == 77.0F);
    free(packed);
}

static double largest_of_block(const float *x, size_t n, size_t block, size_t i)
{
    double largest = 0.0;

    for (size_t j = i / block * block; j < n && j < i / block * block + block; j++) {
        largest = fmax(largest, fabs((double)x[j]));
    }
    return largest;
}

static void values_come_back_within_half_a_step(void **state)
{
    static const size_t blocks[] = {1, 7, 256, 4096};
    static const double sizes[]  = {1.0, 1e-30, 1e30, 3e38};
    float               x[MOST], y[MOST + 1];

    (void)state;
    for (size_t c = 0; c < 4 * 4 * sizeof SIZES / sizeof *SIZES; c++) {
        const size_t n = SIZES[c / 16], block = blocks[c % 4];

        for (size_t i = 0; i < n; i++) {
            x[i] = (float)(sizes[c / 4 % 4] * (2.0 * fsdp_random_uniform(1, c, i) - 1.0));
        }
        round_trip(x, n, block, y);
        for (size_t i = 0; i < n; i++) {
            const double step = largest_of_block(x, n, block, i) / 127.0;
            assert_true(fabs((double)y[i] - (double)x[i]) <= 0.50002 * step);
        }
    }
}

static void a_scale_serves_one_block_only(void **state)
{
    float x[300], y[301];

    (void)state;
    for (size_t i = 0; i < 300; i++) {
        x[i] = i == 256 ? 1000.0F : i < 256 ? 1e-3F : -1.0F;
    }
    round_trip(x, 300, FSDPI_INT8_BLOCK, y);
    assert_true(fabsf(y[255] - 1e-3F) < 1e-9F); /* the largest of its block */
    assert_true(fabsf(y[256] - 1000.0F) < 1e-3F);
    assert_true(y[257] == 0.0F); /* -1 of 1000 is no step */
}

static void zeros_and_integers_are_exact(void **state)
{
    float x[300] = {0.0F}, y[301];

    (void)state;
    x[17] = -0.0F;
    round_trip(x, 300, FSDPI_INT8_BLOCK, y);
    for (size_t i = 0; i < 300; i++) {
        assert_true(y[i] == 0.0F);
    }
    for (size_t i = 0; i < 255; i++) {
        x[i] = (float)i - 127.0F; /* each code once */
    }
    round_trip(x, 255, FSDPI_INT8_BLOCK, y);
    assert_memory_equal(x, y, 255 * sizeof *x);
}

static void the_largest_and_smallest_numbers_stay_finite(void **state)
{
    const float x[4] = {FLT_MAX, -FLT_MAX, FLT_MAX / 2, 0.0F}, tiny[4] = {0x1p-149F, -0x1p-124F, 0x1p-130F, 0.0F};
    float       y[5];

    (void)state;
    round_trip(x, 4, FSDPI_INT8_BLOCK, y);
    for (size_t i = 0; i < 4; i++) {
        assert_true(fabs((double)y[i] - (double)x[i]) <= 0.50002 * (double)FLT_MAX / 127.0);
    }
    round_trip(tiny, 4, FSDPI_INT8_BLOCK, y);
    for (size_t i = 0; i < 4; i++) {
        assert_true(fabs((double)y[i] - (double)tiny[i]) <= 0x1p-127);
    }
}

static void a_value_that_is_not_finite_shows_in_its_whole_block_and_in_no_other(void **state)
{
    const float bad[] = {NAN, INFINITY, -INFINITY, -NAN};
    float       x[600], y[601];
    char        packed[1024];

    (void)state;
    assert_true(fsdpi_int8_packed_bytes(600) <= sizeof packed);
    for (size_t b = 0; b < 4; b++) {
        for (size_t i = 0; i < 600; i++) {
            x[i] = i == 300 ? bad[b] : (float)i;
        }
        fsdpi_int8_pack(x, 600, packed);
        assert_false(fsdpi_int8_blocks_finite(packed, 600, FSDPI_INT8_BLOCK));
        round_trip(x, 600, FSDPI_INT8_BLOCK, y);
        for (size_t i = 0; i < 600; i++) {
            assert_int_equal(i >= 256 && i < 512, isnan(y[i]) != 0);
        }
    }
    x[300] = 1.0F;
    fsdpi_int8_pack(x, 600, packed);
    assert_true(fsdpi_int8_blocks_finite(packed, 600, FSDPI_INT8_BLOCK));
}

static void adding_and_subtracting_are_the_same_as_reading_back(void **state)
{
    float x[MOST], y[MOST], sum[MOST], rest[MOST];
    char  packed[2 * MOST];

    (void)state;
    for (size_t i = 0; i < MOST; i++) {
        x[i]   = (float)fsdp_random_normal(3, 0, i);
        sum[i] = rest[i] = (float)fsdp_random_normal(3, 1, i);
    }
    fsdpi_int8_blocks_pack(x, MOST, 100, packed);
    fsdpi_int8_blocks_unpack(packed, MOST, 100, y);
    fsdpi_int8_blocks_add(packed, MOST, 100, sum);
    fsdpi_int8_blocks_subtract(packed, MOST, 100, rest);
    for (size_t i = 0; i < MOST; i++) {
        const float term = (float)fsdp_random_normal(3, 1, i);
        assert_true(sum[i] == term + y[i]);
        assert_true(rest[i] == term - y[i]);
    }
}

/* The layout that the header promises: scales first, then a byte each, up to a multiple of 4. */
static void packed_sizes_are_as_documented(void **state)
{
    (void)state;
    assert_int_equal(0, fsdpi_int8_packed_bytes(0));
    assert_int_equal(8, fsdpi_int8_packed_bytes(1));
    assert_int_equal(4 + 256, fsdpi_int8_packed_bytes(255));
    assert_int_equal(4 + 256, fsdpi_int8_packed_bytes(256));
    assert_int_equal(8 + 260, fsdpi_int8_packed_bytes(257));
    assert_int_equal(4 * 5 + 12, fsdpi_int8_blocks_bytes(9, 2));

    const float x[3] = {127.0F, -2.0F, 0.0F};
    union {
        float  scale;
        int8_t bytes[8];
    } packed;
    memset(&packed, GUARD_BYTE, sizeof packed);
    fsdpi_int8_pack(x, 3, &packed);
    assert_true(packed.scale == 1.0F);
    assert_int_equal(127, packed.bytes[4]);
    assert_int_equal(-2, packed.bytes[5]);
    assert_int_equal(0, packed.bytes[6]);
    assert_int_equal(0, packed.bytes[7]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back_within_half_a_step),
        cmocka_unit_test(a_scale_serves_one_block_only),
        cmocka_unit_test(zeros_and_integers_are_exact),
        cmocka_unit_test(the_largest_and_smallest_numbers_stay_finite),
        cmocka_unit_test(a_value_that_is_not_finite_shows_in_its_whole_block_and_in_no_other),
        cmocka_unit_test(adding_and_subtracting_are_the_same_as_reading_back),
        cmocka_unit_test(packed_sizes_are_as_documented),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
