#include <math.h>
#include <stdlib.h>

#include "fsdp/random.h"
#include "tests/support/unit_test.h"

/* Known answers of the authors' own implementation (Random123, kat_vectors, philox4x32 with 10 rounds), first two words. */
static void it_is_philox_to_the_bit(void **state)
{
    (void)state;
    assert_true(fsdp_random_bits(0, 0, 0) == 0xe169c58d6627e8d5u);
    assert_true(fsdp_random_bits(UINT64_MAX, UINT64_MAX, UINT64_MAX) == 0x41c83b0e408f276du);
    assert_true(fsdp_random_bits(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u) == 0x94fdccebd16cfe09u);
}

static void uniform_numbers_fill_the_unit_interval_evenly(void **state)
{
    enum { N = 100000, BINS = 10 };
    int bins[BINS] = {0};

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        const double u = fsdp_random_uniform(1, 2, i);
        assert_true(u >= 0.0 && u < 1.0);
        bins[(int)(u * BINS)]++;
    }
    for (int i = 0; i < BINS; i++) { /* the standard deviation of a bin is 95 */
        assert_true(abs(bins[i] - N / BINS) < 500);
    }
}

static void normal_numbers_have_the_moments_of_the_normal_distribution(void **state)
{
    enum { N = 100000 };
    double sum = 0.0, squares = 0.0, fourth = 0.0;

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        const double x = fsdp_random_normal(3, 4, i);
        assert_true(isfinite(x));
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
    }
    assert_true(fabs(sum / N) < 0.02);
    assert_true(fabs(squares / N - 1.0) < 0.03);
    assert_true(fabs(fourth / N - 3.0) < 0.3);
}

static void seed_stream_and_index_each_change_the_number(void **state)
{
    const uint64_t x = fsdp_random_bits(5, 6, 7);

    (void)state;
    assert_true(x == fsdp_random_bits(5, 6, 7));
    assert_true(x != fsdp_random_bits(4, 6, 7));
    assert_true(x != fsdp_random_bits(5, 5, 7));
    assert_true(x != fsdp_random_bits(5, 6, 8));
    assert_true(x != fsdp_random_bits(5, 6, 7 + ((uint64_t)1 << 32)));
    assert_true(x != fsdp_random_bits(5 + ((uint64_t)1 << 32), 6, 7));
}

static void streams_follow_names(void **state)
{
    (void)state;
    assert_true(fsdp_random_stream("") == 0xcbf29ce484222325u); /* the offset basis of FNV-1a */
    assert_true(fsdp_random_stream("a") == 0xaf63dc4c8601ec8cu);
    assert_true(fsdp_random_stream("h.0.ln_1.weight") != fsdp_random_stream("h.1.ln_1.weight"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_philox_to_the_bit),
        cmocka_unit_test(uniform_numbers_fill_the_unit_interval_evenly),
        cmocka_unit_test(normal_numbers_have_the_moments_of_the_normal_distribution),
        cmocka_unit_test(seed_stream_and_index_each_change_the_number),
        cmocka_unit_test(streams_follow_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
