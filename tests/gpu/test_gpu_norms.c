/** @file Norms of more than one segment, whose order of summation is part of their definition. */
#include <math.h>
#include <stdlib.h>

#include "kernels/gpu.h"
#include "tests/gpu/gpu_table.h"
#include "tests/support/unit_test.h"

#include <hip/hip_runtime_api.h>

enum { LANES = 16, SEGMENT = 4096, FAN_IN = 64 };

static const size_t COUNTS[] = {SEGMENT - 1,
                                SEGMENT,
                                SEGMENT + 1,
                                3 * SEGMENT + 17,
                                FAN_IN     *SEGMENT,
                                FAN_IN     *SEGMENT + 5,
                                5 * FAN_IN *SEGMENT + 4095};

static void *on_device(const void *host, size_t bytes)
{
    void *memory;

    assert_int_equal(hipSuccess, hipMalloc(&memory, bytes));
    if (host != NULL) {
        assert_int_equal(hipSuccess, hipMemcpy(memory, host, bytes, hipMemcpyDefault));
    }
    return memory;
}

/* The sum of what segment or group number `which` of a level has in one lane: level 0 is that of segments. */
static double lane_of(const float *x, size_t count, size_t level, size_t which, size_t lane)
{
    double sum = 0;

    if (level == 0) {
        for (size_t i = which * SEGMENT + lane; i < count && i < (which + 1) * SEGMENT; i += LANES) {
            sum += (double)x[i] * (double)x[i];
        }
        return sum;
    }
    size_t below = (count + SEGMENT - 1) / SEGMENT;
    for (size_t l = 1; l < level; l++) {
        below = (below + FAN_IN - 1) / FAN_IN;
    }
    for (size_t s = which * FAN_IN; s < below && s < (which + 1) * FAN_IN; s++) {
        sum += lane_of(x, count, level - 1, s, lane);
    }
    return sum;
}

static double expected_norm(const float *x, size_t count)
{
    double lanes[LANES];
    size_t level = 0;

    for (size_t n = (count + SEGMENT - 1) / SEGMENT; n > 1; n = (n + FAN_IN - 1) / FAN_IN) {
        level++;
    }
    for (size_t j = 0; j < LANES; j++) {
        lanes[j] = lane_of(x, count, level, 0, j);
    }
    for (size_t width = LANES / 2; width > 0; width /= 2) {
        for (size_t j = 0; j < width; j++) {
            lanes[j] += lanes[j + width];
        }
    }
    return lanes[0];
}

typedef int (*norm)(double *, const void *, size_t, fsdp_dtype, void *, fsdpi_gpu_stream);

/* With the array `offset` elements beyond the beginning of memory. */
static double norm_of(norm of, const float *x, size_t count, size_t offset)
{
    float  *memory  = on_device(NULL, (count + offset) * sizeof *x);
    void   *scratch = on_device(NULL, fsdpi_gpu_norm_scratch(count));
    double *result  = on_device(NULL, sizeof *result), found;

    assert_int_equal(hipSuccess, hipMemcpy(memory + offset, x, count * sizeof *x, hipMemcpyDefault));
    assert_int_equal(hipSuccess, of(result, memory + offset, count, FSDP_F32, scratch, NULL));
    assert_int_equal(hipSuccess, hipMemcpy(&found, result, sizeof found, hipMemcpyDefault));
    assert_int_equal(hipSuccess, hipFree(memory));
    assert_int_equal(hipSuccess, hipFree(scratch));
    assert_int_equal(hipSuccess, hipFree(result));
    return found;
}

static float *some_values(size_t count)
{
    float   *x     = malloc(count * sizeof *x);
    uint32_t state = 1;

    assert_non_null(x);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i]  = ldexpf((float)(int32_t)state, (int)(state >> 28) - 35);
    }
    return x;
}

static void segments_are_added_in_the_documented_order(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++) {
        float       *x        = some_values(COUNTS[c]);
        const double expected = expected_norm(x, COUNTS[c]);

        assert_true(expected == norm_of(fsdpi_gpu_squared_norm, x, COUNTS[c], 0));
        assert_true(expected == norm_of(fsdpi_gpu_squared_norm, x, COUNTS[c], 1));
        free(x);
    }
}

static void the_largest_is_found_in_any_segment(void **state)
{
    const size_t count = 3 * SEGMENT + 17;
    float       *x     = some_values(count);

    (void)state;
    for (size_t at = 0; at < count; at += 1013) {
        const float before = x[at];

        x[at] = -0x1p100F;
        assert_true(norm_of(fsdpi_gpu_absolute_maximum, x, count, 0) == 0x1p100);
        x[at] = NAN;
        assert_true(isnan(norm_of(fsdpi_gpu_absolute_maximum, x, count, 0)));
        x[at] = before;
    }
    free(x);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_added_in_the_documented_order),
        cmocka_unit_test(the_largest_is_found_in_any_segment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
