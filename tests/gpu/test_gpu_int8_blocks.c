/** @file Packed int8 blocks on the device: the bits of the host's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hip/hip_runtime_api.h>

#include "fsdp/dtype.h"
#include "kernels/gpu.h"
#include "shard/state/int8_blocks.h"
#include "tests/support/unit_test.h"

enum { MOST = 5000 };

static const size_t SIZES[]  = {0, 1, 3, 4, 63, 64, 65, 255, 256, 257, 1031, 4099};
static const size_t BLOCKS[] = {1, 4, 6, 64, 100, 256, 4096};

/* All magnitudes, and now and then what is not finite, a subnormal number or the largest. */
static void fill(float *x, size_t n, uint32_t seed)
{
    static const float special[] = {INFINITY, -INFINITY, NAN, 0.0F, 0x1p-149F, 3.40282347e38F, -0x1p-126F};
    uint32_t           state     = seed;

    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i]  = ldexpf((float)(int32_t)state, (int)(state >> 25) - 64);
        if ((state >> 8) % 997 < 7) {
            x[i] = special[(state >> 8) % 997];
        }
    }
}

static int is_nan_of(const void *array, size_t i, fsdp_dtype dtype)
{
    float value;

    fsdpi_kernels_scalar.cast(&value, FSDP_F32, (const char *)array + i * fsdp_dtype_size(dtype), dtype, 1);
    return isnan(value);
}

/* Unpacks to `x`, which must be what the host makes of it. */
static void check_unpacked(const void *packed, size_t n, size_t block, void *x, fsdp_dtype dtype)
{
    static float f32[MOST], expected[MOST], found[MOST];
    static char  copy[8 * MOST];
    const size_t width = fsdp_dtype_size(dtype);

    assert_int_equal(hipSuccess, hipMemcpy(copy, packed, fsdpi_int8_blocks_bytes(n, block), hipMemcpyDefault));
    fsdpi_int8_blocks_unpack(copy, n, block, f32);
    fsdpi_kernels_scalar.cast(expected, dtype, f32, FSDP_F32, n);
    assert_int_equal(hipSuccess, fsdpi_gpu_int8_unpack(packed, n, block, x, dtype, NULL));
    assert_int_equal(hipSuccess, hipMemcpy(found, x, n * width, hipMemcpyDefault));
    for (size_t i = 0; i < n; i++) {
        assert_true(memcmp((char *)expected + i * width, (char *)found + i * width, width) == 0 ||
                    (is_nan_of(expected, i, dtype) && is_nan_of(found, i, dtype)));
    }
}

/* Packs in two pieces and unpacks `n` values, `offset` beyond the beginning of memory; both must be what the host makes of them. */
static void check(size_t n, size_t block, size_t offset, uint32_t seed)
{
    static float x[MOST];
    static char  expected_packed[8 * MOST], found_packed[8 * MOST];
    const size_t bytes = fsdpi_int8_blocks_bytes(n, block);
    const size_t first = n / 2 / block * block; /* values of the first of two pieces */
    float       *values;
    void        *packed;

    fill(x, n, seed);
    fsdpi_int8_blocks_pack(x, n, block, expected_packed);
    assert_int_equal(hipSuccess, hipMalloc((void **)&values, (n + offset + 1) * sizeof *values));
    assert_int_equal(hipSuccess, hipMalloc(&packed, bytes + 4));
    assert_int_equal(hipSuccess, hipMemcpy(values + offset, x, n * sizeof *x, hipMemcpyDefault));
    assert_int_equal(hipSuccess, fsdpi_gpu_int8_pack(values + offset, 0, first, n, block, packed, NULL));
    assert_int_equal(hipSuccess,
                     fsdpi_gpu_int8_pack(values + offset + first, first, n - first, n, block, packed, NULL));
    assert_int_equal(hipSuccess, hipMemcpy(found_packed, packed, bytes, hipMemcpyDefault));
    assert_memory_equal(expected_packed, found_packed, bytes);
    check_unpacked(packed, n, block, values + offset, FSDP_F32);
    check_unpacked(packed, n, block, values + offset, FSDP_BF16);
    check_unpacked(packed, n, block, (char *)(values + offset) + 2, FSDP_F16);
    assert_int_equal(hipSuccess, hipFree(values));
    assert_int_equal(hipSuccess, hipFree(packed));
}

static void packing_and_unpacking_give_the_bits_of_the_host(void **state)
{
    uint32_t seed = 0;

    (void)state;
    for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++) {
        for (size_t b = 0; b < sizeof BLOCKS / sizeof *BLOCKS; b++) {
            check(SIZES[s], BLOCKS[b], 0, ++seed);
            check(SIZES[s], BLOCKS[b], 1, ++seed);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(packing_and_unpacking_give_the_bits_of_the_host)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
