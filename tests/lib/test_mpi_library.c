/** @file Which MPI a process runs, from what MPI says of itself. */
#include <mpi.h>

#include "fsdp/status.h"
#include "lib/base/mpi_kind.h"
#include "lib/base/mpi_library.h"
#include "tests/support/unit_test.h"

static void relatives_count_as_one_kind(void **state)
{
    (void)state;
    assert_string_equal("Open MPI", fsdpi_mpi_kind("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"));
    assert_string_equal("Open MPI", fsdpi_mpi_kind("IBM Spectrum MPI v10.4.0.3"));
    assert_string_equal("MPICH", fsdpi_mpi_kind("MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7 2022"));
    assert_string_equal("MPICH", fsdpi_mpi_kind("MPI VERSION    : CRAY MPICH version 8.1.28.9 (ANL base 3.4a2)"));
    assert_string_equal("MPICH", fsdpi_mpi_kind("MVAPICH2 Version      :\t2.3.7"));
    assert_string_equal("MPICH", fsdpi_mpi_kind("Intel(R) MPI Library 2021.11 for Linux* OS"));
}

static void others_are_unknown(void **state)
{
    (void)state;
    assert_null(fsdpi_mpi_kind("HPE MPT 2.26"));
    assert_null(fsdpi_mpi_kind(""));
}

/* May be asked before MPI_Init(). */
static void the_mpi_of_this_build_is_right(void **state)
{
    (void)state;
    assert_int_equal(FSDP_OK, fsdpi_mpi_library_check());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relatives_count_as_one_kind),
        cmocka_unit_test(others_are_unknown),
        cmocka_unit_test(the_mpi_of_this_build_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
