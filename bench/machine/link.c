#include "bench/machine/link.h"

#include <stdlib.h>

#define MESSAGE_BYTES (1 << 20)
#define SHORTEST      0.1 /* SECONDS of a measurement */
#define REPEATS       3

typedef struct place {
    int node, position;
} place;

/* The rank at a place; -1 if there is none, or nobody could find out. */
static int rank_at(const place *places, int size, int node, int position)
{
    for (int rank = 0; rank < size; rank++) {
        if (places[rank].node == node && places[rank].position == position) {
            return rank;
        }
    }
    return MPI_PROC_NULL;
}

static void find_neighbours(const bench_world *world, const place *mine, const place *places, int *next, int *previous)
{
    const int nodes = fsdp_node_count(world->ctx);

    *next     = rank_at(places, world->size, (mine->node + 1) % nodes, mine->position);
    *previous = rank_at(places, world->size, (mine->node + nodes - 1) % nodes, mine->position);
}

static double stream(const bench_world *world, int next, int previous, char *buffer, int messages)
{
    double begin;

    MPI_Barrier(world->comm);
    begin = bench_now();
    for (int i = 0; i < messages; i++) {
        MPI_Sendrecv(buffer, MESSAGE_BYTES, MPI_BYTE, next, 0, buffer + MESSAGE_BYTES, MESSAGE_BYTES, MPI_BYTE,
                     previous, 0, world->comm, MPI_STATUS_IGNORE);
    }
    return bench_max(world, bench_now() - begin);
}

/* Only positions that every node has take part: the rates of the nodes must be alike. */
static double measure(const bench_world *world, place *places, char *buffer)
{
    place  mine  = {fsdp_node_index(world->ctx), fsdp_node_rank(world->ctx)};
    int    least = fsdp_node_size(world->ctx), messages = 4, next, previous;
    double seconds, best                                = 0;

    MPI_Allgather(&mine, 2, MPI_INT, places, 2, MPI_INT, world->comm);
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, world->comm);
    find_neighbours(world, &mine, places, &next, &previous);
    if (mine.position >= least) {
        next = previous = MPI_PROC_NULL;
    }
    for (seconds = stream(world, next, previous, buffer, messages); seconds < SHORTEST && messages < 1 << 16;
         seconds = stream(world, next, previous, buffer, messages)) {
        messages *= 2;
    }
    for (int i = 0; i < REPEATS; i++) {
        const double rate = (double)messages * MESSAGE_BYTES * least / seconds;

        best    = rate > best ? rate : best;
        seconds = stream(world, next, previous, buffer, messages);
    }
    return best;
}

double bench_link_measure(const bench_world *world)
{
    place *places;
    char  *buffer;
    double rate = 0;

    if (fsdp_node_count(world->ctx) < 2) {
        return 0;
    }
    places = calloc((size_t)world->size, sizeof *places);
    buffer = calloc(2, MESSAGE_BYTES);
    if (bench_agree(world, places && buffer, "no memory to measure the link; use --link-rate") == FSDP_OK) {
        rate = measure(world, places, buffer);
    }
    free(places);
    free(buffer);
    return rate;
}
