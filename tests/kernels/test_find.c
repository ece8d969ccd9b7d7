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

static void tables_of_another_processor_are_not_found(void **state)
{
    (void)state;
#ifdef __aarch64__
    assert_null(fsdpi_kernels_find("avx2"));
    assert_null(fsdpi_kernels_find("avx512"));
    assert_ptr_equal(fsdpi_kernels_find("auto"), fsdpi_kernels_find("neon"));
#else
    assert_null(fsdpi_kernels_find("neon"));
#endif
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_known_by_name),
        cmocka_unit_test(tables_of_another_processor_are_not_found),
    };

    return kernel_test_main(argc, argv, tests);
}
