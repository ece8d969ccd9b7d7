#include "tools/preload/engine/arguments.h"

#include <dlfcn.h>
#include <stddef.h>

/* Open MPI's Fortran passes the addresses of these; which of the names there are depends on the compiler. */
static const char *const IN_PLACE_NAMES[] = {"mpi_fortran_in_place", "mpi_fortran_in_place_", "mpi_fortran_in_place__",
                                             "MPI_FORTRAN_IN_PLACE"};
static const char *const BOTTOM_NAMES[]   = {"mpi_fortran_bottom", "mpi_fortran_bottom_", "mpi_fortran_bottom__",
                                             "MPI_FORTRAN_BOTTOM"};
enum { NAMES = 4 };
static const void *in_place[NAMES], *bottom[NAMES];

_Static_assert(sizeof(MPI_Fint) == sizeof(int), /* NOLINT(misc-redundant-expression) */
               "lists of Fortran are taken for lists of int");

void fsdpi_arguments_open(void)
{
    for (int i = 0; i < NAMES; i++) {
        in_place[i] = dlsym(RTLD_DEFAULT, IN_PLACE_NAMES[i]);
        bottom[i]   = dlsym(RTLD_DEFAULT, BOTTOM_NAMES[i]);
    }
}

static bool is_one_of(const void *address, const void *const *marks)
{
    for (int i = 0; i < NAMES; i++) {
        if (address != NULL && address == marks[i]) {
            return true;
        }
    }
    return false;
}

static void *address_of(const void *address)
{
    return is_one_of(address, in_place) ? MPI_IN_PLACE
           : is_one_of(address, bottom) ? MPI_BOTTOM
                                        : (void *)(uintptr_t)address;
}

static void convert_fortran(const fsdpi_call *call, fsdpi_arguments *arguments)
{
    arguments->in   = address_of(call->in);
    arguments->out  = address_of(call->out);
    arguments->comm = PMPI_Comm_f2c((MPI_Fint)call->comm);
    if (call->collective != FSDPI_BARRIER) {
        arguments->in_type  = PMPI_Type_f2c((MPI_Fint)call->in_type);
        arguments->out_type = PMPI_Type_f2c((MPI_Fint)call->out_type);
        arguments->op       = PMPI_Op_f2c((MPI_Fint)call->op);
    }
}

void fsdpi_arguments_of(const fsdpi_call *call, fsdpi_arguments *arguments)
{
    arguments->call = call;
    if (call->fortran) {
        convert_fortran(call, arguments);
        return;
    }
    arguments->in       = call->in;
    arguments->out      = call->out;
    arguments->in_type  = (MPI_Datatype)call->in_type;
    arguments->out_type = (MPI_Datatype)call->out_type;
    arguments->op       = (MPI_Op)call->op;
    arguments->comm     = (MPI_Comm)call->comm;
}

#if MPI_VERSION >= 4
static int pass_wide(const fsdpi_arguments *a)
{
    const fsdpi_call *c = a->call;
    const MPI_Count   n = c->in_count, m = c->out_count;
    const void *const in  = a->in;
    void *const       out = a->out;

    switch (c->collective) {
    case FSDPI_ALLGATHER:
        return PMPI_Allgather_c(in, n, a->in_type, out, m, a->out_type, a->comm);
    case FSDPI_ALLGATHERV:
        return PMPI_Allgatherv_c(in, n, a->in_type, out, c->out_counts, c->out_displacements, a->out_type, a->comm);
    case FSDPI_ALLREDUCE:
        return PMPI_Allreduce_c(in, out, m, a->out_type, a->op, a->comm);
    case FSDPI_REDUCE_SCATTER:
        return PMPI_Reduce_scatter_c(in, out, c->out_counts, a->out_type, a->op, a->comm);
    case FSDPI_REDUCE_SCATTER_BLOCK:
        return PMPI_Reduce_scatter_block_c(in, out, m, a->out_type, a->op, a->comm);
    case FSDPI_BCAST:
        return PMPI_Bcast_c(out, m, a->out_type, c->root, a->comm);
    case FSDPI_REDUCE:
        return PMPI_Reduce_c(in, out, m, a->out_type, a->op, c->root, a->comm);
    case FSDPI_ALLTOALL:
        return PMPI_Alltoall_c(in, n, a->in_type, out, m, a->out_type, a->comm);
    case FSDPI_ALLTOALLV:
        return PMPI_Alltoallv_c(in, c->in_counts, c->in_displacements, a->in_type, out, c->out_counts,
                                c->out_displacements, a->out_type, a->comm);
    default:
        return PMPI_Barrier(a->comm);
    }
}
#else
/* Only an MPI that has calls that end in _c can have been called so, and this one has none. */
static int pass_wide(const fsdpi_arguments *a)
{
    return PMPI_Comm_call_errhandler(a->comm, MPI_ERR_INTERN);
}
#endif

static int pass_narrow(const fsdpi_arguments *a)
{
    const fsdpi_call *c = a->call;
    const int         n = (int)c->in_count, m = (int)c->out_count;
    const void *const in  = a->in;
    void *const       out = a->out;

    switch (c->collective) {
    case FSDPI_ALLGATHER:
        return PMPI_Allgather(in, n, a->in_type, out, m, a->out_type, a->comm);
    case FSDPI_ALLGATHERV:
        return PMPI_Allgatherv(in, n, a->in_type, out, c->out_counts, c->out_displacements, a->out_type, a->comm);
    case FSDPI_ALLREDUCE:
        return PMPI_Allreduce(in, out, m, a->out_type, a->op, a->comm);
    case FSDPI_REDUCE_SCATTER:
        return PMPI_Reduce_scatter(in, out, c->out_counts, a->out_type, a->op, a->comm);
    case FSDPI_REDUCE_SCATTER_BLOCK:
        return PMPI_Reduce_scatter_block(in, out, m, a->out_type, a->op, a->comm);
    case FSDPI_BCAST:
        return PMPI_Bcast(out, m, a->out_type, c->root, a->comm);
    case FSDPI_REDUCE:
        return PMPI_Reduce(in, out, m, a->out_type, a->op, c->root, a->comm);
    case FSDPI_ALLTOALL:
        return PMPI_Alltoall(in, n, a->in_type, out, m, a->out_type, a->comm);
    case FSDPI_ALLTOALLV:
        return PMPI_Alltoallv(in, c->in_counts, c->in_displacements, a->in_type, out, c->out_counts,
                              c->out_displacements, a->out_type, a->comm);
    default:
        return PMPI_Barrier(a->comm);
    }
}

int fsdpi_pass(const fsdpi_arguments *arguments)
{
    return arguments->call->wide ? pass_wide(arguments) : pass_narrow(arguments);
}
