/* What takes C's handles of MPI, for Fortran's: one of MPI's own conversions may be a macro. */
#include <mpi.h>

#include "fsdp/topology.h"

FSDP_API fsdp_status fsdpi_comm_order_by_node_f(MPI_Fint comm, MPI_Fint *ordered);

fsdp_status fsdpi_comm_order_by_node_f(MPI_Fint comm, MPI_Fint *ordered)
{
    MPI_Comm          made   = MPI_COMM_NULL;
    const fsdp_status status = fsdp_comm_order_by_node(MPI_Comm_f2c(comm), &made);

    *ordered = MPI_Comm_c2f(made);
    return status;
}
