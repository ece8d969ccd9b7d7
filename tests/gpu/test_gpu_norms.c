/** @file Norms of so many elements that their shares are joined in several rounds, and each share has several chunks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gpu.h"
#include "kernels/host/exact_sum.h"
#include "tests/gpu/gpu_table.h"
#include "tests/support/unit_test.h"

#include <hip/hip_runtime_api.h>

enum { CHUNK = 64, SHARE = 256, FAN_IN = 64, MOST_SHARES = 1 << 16 };

static const size_t COUNTS[] = {
    SHARE - 1, SHARE + 1, FAN_IN *SHARE, FAN_IN *SHARE + 5, FAN_IN *FAN_IN *SHARE + 17, MOST_SHARES *SHARE + 4095};

static void *on_device(const void *host, size_t bytes)
{
    void *memory;

    assert_int_equal(hipSuccess, hipMalloc(&memory, bytes));
    if (host != NULL) {
        assert_int_equal(hipSuccess, hipMemcpy(memory, host, bytes, hipMemcpyDefault));
    }
    return memory;
}

/* What the call leaves of a sum or a maximum, `value`; with the array `offset` elements beyond the beginning of memory. */
static void call_on_device(bool squares, fsdpi_exact_sum *value, const float *x, size_t count, size_t offset)
{
    float *memory  = on_device(NULL, (count + offset) * sizeof *x);
    void  *scratch = on_device(NULL, fsdpi_gpu_norm_scratch(count));
    void  *result  = on_device(value, sizeof *value);

    assert_int_equal(hipSuccess, hipMemcpy(memory + offset, x, count * sizeof *x, hipMemcpyDefault));
    assert_int_equal(hipSuccess,
                     squares ? fsdpi_gpu_sum_squares(result, memory + offset, count, FSDP_F32, scratch, NULL)
                             : fsdpi_gpu_absolute_maximum(result, memory + offset, count, FSDP_F32, scratch, NULL));
    assert_int_equal(hipSuccess, hipMemcpy(value, result, sizeof *value, hipMemcpyDefault));
    assert_int_equal(hipSuccess, hipFree(memory));
    assert_int_equal(hipSuccess, hipFree(scratch));
    assert_int_equal(hipSuccess, hipFree(result));
}

static double largest_of(const float *x, size_t count, double before)
{
    fsdpi_exact_sum value = {0};
    double          found;

    memcpy(&value, &before, sizeof before);
    call_on_device(false, &value, x, count, 0);
    memcpy(&found, &value, sizeof found);
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

static void sums_are_exact_and_added_to_what_is_there(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++) {
        float *x = some_values(COUNTS[c]);

        for (size_t offset = 0; offset < 2; offset++) {
            fsdpi_exact_sum expected = {.digits = {5, 7}, .nans = 3}, found = expected;

            fsdpi_kernels_scalar.sum_squares(&expected, x, COUNTS[c], FSDP_F32);
            call_on_device(true, &found, x, COUNTS[c], offset);
            fsdpi_exact_sum_carry(&found);
            assert_memory_equal(&expected, &found, sizeof found);
        }
        free(x);
    }
}

/* Chunks of one thread that differ from each other: its bins have to follow them. */
static void bins_follow_the_magnitudes(void **state)
{
    const size_t    shares = FAN_IN, count = shares * SHARE;
    float          *x        = some_values(count);
    fsdpi_exact_sum expected = {0}, found = {0};

    (void)state;
    for (size_t i = 0; i < count; i++) {
        x[i] = ldexpf(x[i], (int)(i / (shares * CHUNK) * 37 % 101) - 50);
    }
    fsdpi_kernels_scalar.sum_squares(&expected, x, count, FSDP_F32);
    call_on_device(true, &found, x, count, 0);
    fsdpi_exact_sum_carry(&found);
    assert_memory_equal(&expected, &found, sizeof found);
    free(x);
}

static void the_largest_is_found_anywhere(void **state)
{
    const size_t count = FAN_IN * FAN_IN * SHARE + 17;
    float       *x     = some_values(count);

    (void)state;
    for (size_t at = 0; at < count; at += 120011) {
        const float before = x[at];

        x[at] = -0x1p100F;
        assert_true(largest_of(x, count, 1.0) == 0x1p100);
        assert_true(largest_of(x, count, 0x1p101) == 0x1p101);
        assert_true(isnan(largest_of(x, count, (double)NAN)));
        x[at] = NAN;
        assert_true(isnan(largest_of(x, count, INFINITY)));
        x[at] = before;
    }
    free(x);
}

static void squares_of_f64_are_refused(void **state)
{
    fsdpi_exact_sum sum  = {0};
    double          x[2] = {0}, scratch[64];

    (void)state;
    assert_int_equal(hipErrorInvalidValue, fsdpi_gpu_sum_squares(&sum, x, 2, FSDP_F64, scratch, NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_and_added_to_what_is_there),
        cmocka_unit_test(bins_follow_the_magnitudes),
        cmocka_unit_test(the_largest_is_found_anywhere),
        cmocka_unit_test(squares_of_f64_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
