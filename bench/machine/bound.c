#include "bench/machine/bound.h"

/* Reads and writes, where S is the full vector and L the ranks of the node. A rank that is in place does not move what
   it holds. What has to come from other nodes is written once here as well, and takes no less. */
double bench_traffic(const bench_case *c, const bench_limits *limits)
{
    const double s = (double)c->bytes, l = limits->node_size, others = (l - 1) / l;

    switch (c->collective) {
    case BENCH_ALLGATHER:
        return c->shared ? 0 : c->in_place ? 2 * s * others : 2 * s;
    case BENCH_BROADCAST:
        return 2 * s * others;
    case BENCH_REDUCE_SCATTER:
    case BENCH_REDUCE:
        return s + s / l;
    case BENCH_ALLREDUCE:
        return c->in_place && c->ranks == 1 ? 0 : 2 * s;
    case BENCH_ALLTOALL:
        break;
    }
    return c->in_place ? 2 * s * (c->ranks - 1) / c->ranks : 2 * s;
}

double bench_link_bytes(const bench_case *c, const bench_limits *limits)
{
    const double s = (double)c->bytes, m = limits->nodes, away = (m - 1) / m;

    if (limits->nodes < 2) {
        return 0;
    }
    switch (c->collective) {
    case BENCH_ALLREDUCE:
        return 2 * s * away;
    case BENCH_BROADCAST:
    case BENCH_REDUCE:
        return s;
    case BENCH_ALLTOALL:
        return s * away * limits->node_size;
    case BENCH_ALLGATHER:
    case BENCH_REDUCE_SCATTER:
        break;
    }
    return s * away;
}

double bench_bound(const bench_case *c, const bench_limits *limits)
{
    const double memory = bench_traffic(c, limits) * limits->node_size / limits->memory;
    const double link   = limits->link > 0 ? bench_link_bytes(c, limits) / limits->link : 0;

    return memory > link ? memory : link;
}
