/** @file What a failed assertion comes to: a program that must not pass. */
#include "tests/kernels/kernel_test.h"

static void one_is_two(void **state)
{
    (void)state;
    assert_int_equal(1, 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(one_is_two)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
