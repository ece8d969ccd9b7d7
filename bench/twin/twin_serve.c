#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/compare/baseline.h"
#include "bench/compare/buffers.h"
#include "bench/twin/twin.h"
#include "bench/twin/twin_channel.h"

#define MOST_BLOCKS 25
#define N_ARGUMENTS 4 /* the program, BENCH_TWIN_ARGUMENT, the channel's name, thread level */

typedef struct server {
    bench_world   world;
    bench_buffers buffers;
    int           channel; /* on rank 0 */
    size_t        turn;    /* of the next iteration */
    int           reuse;
} server;

/* The library is used for memory only: its buffers have the same pages in both jobs. */
static int open_library(server *s, int node_size)
{
    fsdp_config config;

    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    config.node_size = node_size;
    if (fsdp_init(s->world.comm, &config, &s->world.ctx) != FSDP_OK) {
        s->world.ctx = NULL;
    }
    return s->world.ctx != NULL;
}

static int is_drop_in(struct dl_phdr_info *library, size_t bytes, void *unused)
{
    (void)bytes;
    (void)unused;
    return strstr(library->dlpi_name, "libfsdp_mpi.so") != NULL;
}

static double prepare(server *s, const bench_order *order)
{
    s->reuse = order->reuse;
    if (order->preloaded && !dl_iterate_phdr(is_drop_in, NULL)) {
        return BENCH_NOT_LOADED;
    }
    if (order->library && !open_library(s, order->node_size)) {
        return -1;
    }
    return bench_buffers_open(&s->buffers, &s->world, NULL, order->memory, 0, order->bytes) == FSDP_OK ? 0 : -1;
}

static double time_block(server *s, const bench_order *order)
{
    double begin;

    MPI_Barrier(s->world.comm);
    begin = bench_now();
    for (size_t i = 0; i < order->iterations; i++) {
        const bench_buffers b = bench_buffers_turn(&s->buffers, &order->what, s->reuse ? 0 : s->turn++);

        bench_baseline_run(&order->what, s->world.comm, b.in, b.out);
    }
    return bench_max(&s->world, bench_now() - begin) / (double)(order->iterations ? order->iterations : 1);
}

/* As OSU's benchmarks time a collective. */
static double time_apart(server *s, const bench_order *order)
{
    double seconds = 0;

    for (size_t i = 0; i < order->iterations; i++) {
        const bench_buffers b = bench_buffers_turn(&s->buffers, &order->what, s->reuse ? 0 : s->turn++);
        double              begin;

        MPI_Barrier(s->world.comm);
        begin = bench_now();
        bench_baseline_run(&order->what, s->world.comm, b.in, b.out);
        seconds += bench_now() - begin;
    }
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_SUM, s->world.comm);
    return seconds / s->world.size / (double)(order->iterations ? order->iterations : 1);
}

/* Of several blocks the median: what else the machine does meanwhile delays only a few of them. */
static double time_in_blocks(server *s, const bench_order *order)
{
    const size_t iterations = order->iterations, n = iterations < MOST_BLOCKS ? iterations : MOST_BLOCKS;
    bench_order  block = *order;
    double       seconds[MOST_BLOCKS];

    for (size_t i = 0; i < n; i++) {
        block.iterations = iterations * (i + 1) / n - iterations * i / n;
        seconds[i]       = order->apart ? time_apart(s, &block) : time_block(s, &block);
    }
    return n > 0 ? bench_median(seconds, n) : 0;
}

static double time_alone(const server *s, size_t iterations)
{
    double begin, value = 1;

    MPI_Barrier(s->world.comm);
    begin = bench_now();
    for (size_t i = 0; i < iterations; i++) {
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    }
    return bench_max(&s->world, bench_now() - begin) / (double)iterations;
}

static void end(server *s)
{
    (void)bench_buffers_close(&s->buffers);
    if (s->world.ctx) {
        (void)fsdp_finalize(s->world.ctx);
    }
}

/* The answer. */
static double carry_out(server *s, const bench_order *order)
{
    switch (order->kind) {
    case BENCH_ORDER_PREPARE:
        return -bench_max(&s->world, -prepare(s, order));
    case BENCH_ORDER_TIME:
        return order->in_blocks ? time_in_blocks(s, order) : time_block(s, order);
    case BENCH_ORDER_ALONE:
        return time_alone(s, order->iterations);
    case BENCH_ORDER_END:
        end(s);
        break;
    }
    return 0;
}

/* The next order, for all ranks. A job that is gone has none: END, which nobody waits to be answered. */
static bench_order next_order(const server *s)
{
    bench_order order = {.kind = BENCH_ORDER_END};

    if (s->world.rank == 0 && !bench_channel_receive(s->channel, &order, sizeof order)) {
        order = (bench_order){.kind = BENCH_ORDER_END};
    }
    bench_share_asleep(&s->world, &order, sizeof order);
    return order;
}

static void serve(server *s)
{
    bench_order order;

    do {
        double answer;

        order  = next_order(s);
        answer = carry_out(s, &order);
        if (s->world.rank == 0) {
            (void)bench_channel_send(s->channel, &answer, sizeof answer);
        }
    } while (order.kind != BENCH_ORDER_END);
}

int bench_twin_serve(int argc, char **argv)
{
    server    s      = {.channel = -1};
    const int wanted = argc > 3 && strcmp(argv[3], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int       level, there;

    MPI_Init_thread(&argc, &argv, wanted, &level);
    bench_world_open(&s.world, level);
    if (argc == N_ARGUMENTS && s.world.rank == 0) {
        s.channel = bench_channel_connect(argv[2]);
    }
    there = s.channel >= 0;
    MPI_Bcast(&there, 1, MPI_INT, 0, s.world.comm);
    if (there) {
        serve(&s);
    } else {
        (void)bench_fail(&s.world,
                         BENCH_TWIN_ARGUMENT " is for fsdp-bench itself, which does not listen; leave it out");
    }
    if (s.channel >= 0) {
        (void)close(s.channel);
    }
    bench_world_close(&s.world);
    MPI_Finalize();
    return there ? EXIT_SUCCESS : BENCH_EXIT_USAGE;
}
