#include "bench/compare/baseline.h"

#include <limits.h>

/* What only moves may be of any type of the same size. */
static MPI_Datatype type_of(fsdp_dtype dtype)
{
    switch (dtype) {
    case FSDP_F64:
        return MPI_DOUBLE;
    case FSDP_F32:
        return MPI_FLOAT;
    case FSDP_BF16:
    case FSDP_F16:
        return MPI_UINT16_T;
    case FSDP_I64:
        return MPI_INT64_T;
    case FSDP_I32:
        return MPI_INT32_T;
    case FSDP_U8:
        break;
    }
    return MPI_UINT8_T;
}

static MPI_Op op_of(fsdp_redop op)
{
    switch (op) {
    case FSDP_MIN:
        return MPI_MIN;
    case FSDP_MAX:
        return MPI_MAX;
    case FSDP_PROD:
        return MPI_PROD;
    case FSDP_SUM:
    case FSDP_AVG:
        break;
    }
    return MPI_SUM;
}

int bench_baseline_can(const bench_case *c)
{
    const int half = c->dtype == FSDP_BF16 || c->dtype == FSDP_F16;

    return c->count <= INT_MAX && !(half && bench_collective_reduces(c->collective));
}

void bench_baseline_run(const bench_case *c, MPI_Comm comm, void *in, void *out)
{
    const int    n    = (int)c->count;
    const void  *from = c->in_place ? MPI_IN_PLACE : in;
    MPI_Datatype type = type_of(c->dtype);
    MPI_Op       op   = op_of(c->op);
    int          rank;

    switch (c->collective) {
    case BENCH_ALLGATHER:
        MPI_Allgather(from, n, type, out, n, type, comm);
        break;
    case BENCH_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(from, out, n, type, op, comm);
        break;
    case BENCH_ALLREDUCE:
        MPI_Allreduce(from, out, n, type, op, comm);
        break;
    case BENCH_BROADCAST:
        MPI_Bcast(out, n, type, 0, comm);
        break;
    case BENCH_REDUCE:
        MPI_Comm_rank(comm, &rank);
        MPI_Reduce(rank == 0 ? from : bench_input(c, rank, in, out), rank == 0 ? out : NULL, n, type, op, 0, comm);
        break;
    case BENCH_ALLTOALL:
        MPI_Alltoall(from, n, type, out, n, type, comm);
        break;
    }
}

void bench_baseline_issue(const bench_case *c, MPI_Comm comm, void *in, void *out, MPI_Request *request)
{
    const int    n    = (int)c->count;
    const void  *from = c->in_place ? MPI_IN_PLACE : in;
    MPI_Datatype type = type_of(c->dtype);

    if (c->collective == BENCH_ALLGATHER) {
        MPI_Iallgather(from, n, type, out, n, type, comm, request);
    } else if (c->collective == BENCH_REDUCE_SCATTER) {
        MPI_Ireduce_scatter_block(from, out, n, type, op_of(c->op), comm, request);
    } else {
        MPI_Iallreduce(from, out, n, type, op_of(c->op), comm, request);
    }
}

void bench_baseline_wait(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}
