/** @file The tables of kernels by name. */
#include "kernel_test.h"

static void tables_are_known_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(&fsdpi_kernels_scalar, fsdpi_kernels_find("scalar"));
    assert_null(fsdpi_kernels_find("no such table"));
    assert_non_null(fsdpi_kernels_find("auto"));
    for (size_t t = 0; tables_under_test[t] != NULL; t++) {
        assert_ptr_equal(tables_under_test[t], fsdpi_kernels_find(tables_under_test[t]->name));
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(tables_are_known_by_name)};

    return kernel_test_main(argc, argv, tests);
}
