#include "bench/base/collective.h"

static const struct collective {
    const char *name;
    int         reduces, per_rank;
} collectives[BENCH_N_COLLECTIVES] = {
    [BENCH_ALLGATHER] = {"allgather", 0, 1}, [BENCH_REDUCE_SCATTER] = {"reduce_scatter", 1, 1},
    [BENCH_ALLREDUCE] = {"allreduce", 1, 0}, [BENCH_BROADCAST] = {"broadcast", 0, 0},
    [BENCH_REDUCE] = {"reduce", 1, 0},       [BENCH_ALLTOALL] = {"alltoall", 0, 1},
};

const char *bench_collective_name(bench_collective collective)
{
    return collectives[collective].name;
}

int bench_collective_reduces(bench_collective collective)
{
    return collectives[collective].reduces;
}

const char *bench_case_op(const bench_case *c)
{
    return bench_collective_reduces(c->collective) ? fsdp_redop_name(c->op) : "none";
}

void bench_case_size(bench_case *c, size_t bytes)
{
    const size_t parts   = collectives[c->collective].per_rank ? (size_t)c->ranks : 1;
    const size_t element = fsdp_dtype_size(c->dtype);

    c->count = bytes / element / parts;
    if (c->count == 0) {
        c->count = 1;
    }
    c->bytes = c->count * element * parts;
}

static double busbw_factor(const bench_case *c)
{
    const double n = c->ranks;

    switch (c->collective) {
    case BENCH_ALLREDUCE:
        return 2 * (n - 1) / n;
    case BENCH_BROADCAST:
    case BENCH_REDUCE:
        return 1;
    case BENCH_ALLGATHER:
    case BENCH_REDUCE_SCATTER:
    case BENCH_ALLTOALL:
        break;
    }
    return (n - 1) / n;
}

double bench_algbw(const bench_case *c, double seconds)
{
    return (double)c->bytes / seconds / 1e9;
}

double bench_busbw(const bench_case *c, double seconds)
{
    return bench_algbw(c, seconds) * busbw_factor(c);
}

size_t bench_in_count(const bench_case *c, int rank)
{
    switch (c->collective) {
    case BENCH_REDUCE_SCATTER:
    case BENCH_ALLTOALL:
        return c->count * (size_t)c->ranks;
    case BENCH_BROADCAST:
        return rank == 0 ? c->count : 0;
    case BENCH_ALLGATHER:
    case BENCH_ALLREDUCE:
    case BENCH_REDUCE:
        break;
    }
    return c->count;
}

size_t bench_out_count(const bench_case *c, int rank)
{
    switch (c->collective) {
    case BENCH_ALLGATHER:
    case BENCH_ALLTOALL:
        return c->count * (size_t)c->ranks;
    case BENCH_REDUCE:
        return rank == 0 ? c->count : 0;
    case BENCH_REDUCE_SCATTER:
    case BENCH_ALLREDUCE:
    case BENCH_BROADCAST:
        break;
    }
    return c->count;
}

void *bench_input(const bench_case *c, int rank, void *in, void *out)
{
    if (c->collective == BENCH_BROADCAST) {
        return out;
    }
    if (!c->in_place) {
        return in;
    }
    if (c->collective == BENCH_ALLGATHER) {
        return (char *)out + (size_t)rank * c->count * fsdp_dtype_size(c->dtype);
    }
    return out;
}

fsdp_status bench_issue(const bench_case *c, fsdp_context *ctx, void *in, void *out, fsdp_request **request)
{
    const void *from = c->in_place ? FSDP_IN_PLACE : in;

    switch (c->collective) {
    case BENCH_ALLGATHER:
        return fsdp_iallgather(ctx, from, out, c->count, c->dtype, request);
    case BENCH_REDUCE_SCATTER:
        return fsdp_ireduce_scatter(ctx, from, out, c->count, c->dtype, c->op, request);
    case BENCH_ALLREDUCE:
        return fsdp_iallreduce(ctx, from, out, c->count, c->dtype, c->op, request);
    case BENCH_BROADCAST:
        return fsdp_ibroadcast(ctx, out, c->count, c->dtype, 0, request);
    case BENCH_REDUCE:
        if (fsdp_rank(ctx) != 0) {
            return fsdp_ireduce(ctx, bench_input(c, 1, in, out), NULL, c->count, c->dtype, c->op, 0, request);
        }
        return fsdp_ireduce(ctx, from, out, c->count, c->dtype, c->op, 0, request);
    case BENCH_ALLTOALL:
        break;
    }
    return fsdp_ialltoall(ctx, from, out, c->count, c->dtype, request);
}

fsdp_status bench_run(const bench_case *c, fsdp_context *ctx, void *in, void *out)
{
    const void *from = c->in_place ? FSDP_IN_PLACE : in;

    switch (c->collective) {
    case BENCH_ALLGATHER:
        return fsdp_allgather(ctx, from, out, c->count, c->dtype);
    case BENCH_REDUCE_SCATTER:
        return fsdp_reduce_scatter(ctx, from, out, c->count, c->dtype, c->op);
    case BENCH_ALLREDUCE:
        return fsdp_allreduce(ctx, from, out, c->count, c->dtype, c->op);
    case BENCH_BROADCAST:
        return fsdp_broadcast(ctx, out, c->count, c->dtype, 0);
    case BENCH_REDUCE:
        if (fsdp_rank(ctx) != 0) {
            return fsdp_reduce(ctx, bench_input(c, 1, in, out), NULL, c->count, c->dtype, c->op, 0);
        }
        return fsdp_reduce(ctx, from, out, c->count, c->dtype, c->op, 0);
    case BENCH_ALLTOALL:
        break;
    }
    return fsdp_alltoall(ctx, from, out, c->count, c->dtype);
}
