/** @file Many runs of bytes in one call: each arrives, and nothing else changes. */
#include <stdlib.h>
#include <string.h>

#include <hip/hip_runtime_api.h>

#include "kernels/gpu.h"
#include "tests/support/unit_test.h"

enum { RUNS = 200, BYTES = 1 << 16 };

/* Runs of up to 300 bytes, some of them empty, each beginning where a multiple of `unit` allows it. */
static void check(size_t unit)
{
    static unsigned char source[BYTES], expected[BYTES], found[BYTES];
    fsdpi_gpu_run        runs[RUNS];
    unsigned char       *from, *to;
    size_t               at    = 0;
    uint32_t             state = (uint32_t)unit;

    for (size_t i = 0; i < BYTES; i++) {
        source[i]   = (unsigned char)(i * 7 + i / 256);
        expected[i] = 0xee;
    }
    assert_int_equal(hipSuccess, hipMalloc((void **)&from, BYTES));
    assert_int_equal(hipSuccess, hipMalloc((void **)&to, BYTES));
    assert_int_equal(hipSuccess, hipMemcpy(from, source, BYTES, hipMemcpyDefault));
    assert_int_equal(hipSuccess, hipMemcpy(to, expected, BYTES, hipMemcpyDefault));
    for (size_t r = 0; r < RUNS; r++) {
        state                = state * 1664525u + 1013904223u;
        const size_t bytes   = (state >> 16) % (300 / unit) * unit;
        const size_t from_at = (state >> 8) % ((BYTES - 300) / unit) * unit;

        runs[r] = (fsdpi_gpu_run){.to = to + at, .from = from + from_at, .bytes = bytes};
        memcpy(expected + at, source + from_at, bytes);
        at += bytes + unit;
    }
    assert_int_equal(hipSuccess, fsdpi_gpu_copy_runs(runs, RUNS, NULL));
    assert_int_equal(hipSuccess, hipMemcpy(found, to, BYTES, hipMemcpyDefault));
    assert_memory_equal(expected, found, BYTES);
    assert_int_equal(hipSuccess, hipFree(from));
    assert_int_equal(hipSuccess, hipFree(to));
}

static void runs_of_any_alignment_arrive(void **state)
{
    (void)state;
    check(1);
    check(4);
    check(16);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(runs_of_any_alignment_arrive)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
