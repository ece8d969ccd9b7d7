#include "lib/base/mpi_library.h"

#include <mpi.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/mpi_kind.h"

/* MPICH writes so much, however little the MPI has room for that the library was built with. */
enum { VERSION_BYTES = 8192 > MPI_MAX_LIBRARY_VERSION_STRING ? 8192 : MPI_MAX_LIBRARY_VERSION_STRING };

#if defined(OPEN_MPI)
static const char *const BUILT_WITH = "Open MPI";
#elif defined(MPICH_VERSION)
static const char *const BUILT_WITH = "MPICH";
#else
static const char *const BUILT_WITH = NULL;
#endif

fsdp_status fsdpi_mpi_library_check(void)
{
    char version[VERSION_BYTES] = "";
    int  length;

    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS) {
        return FSDP_OK;
    }
    const char *running = fsdpi_mpi_kind(version);
    if (running == NULL || BUILT_WITH == NULL || strcmp(running, BUILT_WITH) == 0) {
        return FSDP_OK;
    }
    return fsdpi_fail(
        NULL, FSDP_ERR_UNSUPPORTED,
        "fsdp_init: libfsdp was built with %s, but this program runs %s; compile the program with mpicc of "
        "%s, or build libfsdp with %s",
        BUILT_WITH, running, BUILT_WITH, running);
}
