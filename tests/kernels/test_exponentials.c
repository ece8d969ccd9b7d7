/** @file Exponentials against the C library's, in f64. */
#include <math.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "tests/support/unit_test.h"

static void f32_is_within_2_units_in_the_last_place(void **state)
{
    enum { N = 1 << 16 };
    float *values = malloc(N * sizeof *values);

    (void)state;
    assert_non_null(values);
    for (int i = 0; i < N; i++) {
        values[i] = -87.0F * (float)i / N;
    }
    (void)fsdpi_exponentials_f32(values, N, 0.0F);
    for (int i = 0; i < N; i++) {
        const double exact = exp((double)(-87.0F * (float)i / N));
        const double unit  = (double)(nextafterf((float)exact, INFINITY) - (float)exact);

        assert_true(fabs((double)values[i] - exact) <= 2.0 * unit);
    }
    free(values);
}

static void the_sum_is_that_of_the_elements(void **state)
{
    float  narrow[37];
    double wide[37];

    (void)state;
    for (size_t n = 0; n <= 37; n++) {
        double exact = 0.0;

        for (size_t i = 0; i < n; i++) {
            narrow[i] = 3.0F - (float)i;
            wide[i]   = 3.0 - (double)i;
            exact += exp(-(double)i);
        }
        assert_true(fabs(fsdpi_exponentials_f32(narrow, n, 3.0F) - exact) <= 1e-6);
        assert_true(fabs(fsdpi_exponentials_f64(wide, n, 3.0) - exact) <= 1e-14);
        for (size_t i = 0; i < n; i++) {
            assert_true(fabs((double)narrow[i] - wide[i]) <= 1e-6);
        }
    }
}

static void limits_are_exact_and_nan_stays(void **state)
{
    float values[] = {0.0F, -87.1F, -1e30F, -INFINITY, NAN};

    (void)state;
    assert_true(isnan(fsdpi_exponentials_f32(values, 5, 0.0F)));
    assert_true(values[0] == 1.0F && values[1] == 0.0F && values[2] == 0.0F && values[3] == 0.0F && isnan(values[4]));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_is_within_2_units_in_the_last_place),
        cmocka_unit_test(the_sum_is_that_of_the_elements),
        cmocka_unit_test(limits_are_exact_and_nan_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
