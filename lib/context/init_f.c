#include <mpi.h>

#include "fsdp/context.h"
#include "lib/base/error.h"
#include "lib/base/mpi_library.h"
#include "lib/base/mpi_world.h"

/* MPI may end a program that converts a handle while MPI is not running, of which fsdp_init() makes an error. */
static MPI_Comm communicator_of(MPI_Fint comm)
{
    return fsdpi_mpi_has_world() || MPI_VERSION >= 4 ? MPI_Comm_f2c(comm) : MPI_COMM_NULL;
}

fsdp_status fsdp_init_f(MPI_Fint comm, const fsdp_config *config, fsdp_context **ctx)
{
    if (ctx != NULL) {
        *ctx = NULL;
    }
    FSDP_TRY(fsdpi_mpi_library_check());
    MPI_Comm converted = communicator_of(comm);
    if (converted == (MPI_Comm)0) {
        return fsdpi_fail(
            NULL, FSDP_ERR_ARG,
            "fsdp_init_f: %lld is not the handle of a communicator; pass the integer that MPI has given, as "
            "MPI_COMM_WORLD, or with mpi_f08 its MPI_VAL",
            (long long)comm);
    }
    return fsdp_init(converted, config, ctx);
}
