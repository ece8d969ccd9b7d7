/*
 * What the tests of the virtual hosts need to see from within.
 *
 *     cluster_probe nodes        per rank: its host, the lowest rank that MPI sees on the same node, and two variables
 *     cluster_probe ring BYTES   the time of a ring allgather with MPI_Sendrecv alone, after which each rank has BYTES
 *     cluster_probe fail         the last rank exits with status 3 after MPI_Finalize
 *     cluster_probe hang         says "ready" and never ends
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

enum { LINE = 256, REPEATS = 5 };

static int rank, size;

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL ? value : "unset";
}

static int show_nodes(void)
{
    char     host[LINE / 2] = "";
    char     line[LINE];
    char    *all;
    int      lowest = rank;
    MPI_Comm node;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, node);
    MPI_Comm_free(&node);
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(line, sizeof line, "rank %d on %s, node of rank %d, FSDP_TIMEOUT_S=%s OMPI_COLOUR=%s", rank, host,
                   lowest, variable("FSDP_TIMEOUT_S"), variable("OMPI_COLOUR"));

    all = calloc((size_t)size, sizeof line);
    if (all == NULL) {
        return EXIT_FAILURE;
    }
    MPI_Gather(line, LINE, MPI_CHAR, all, LINE, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int r = 0; r < size && rank == 0; r++) {
        printf("%s\n", all + (size_t)r * LINE);
    }
    free(all);
    return EXIT_SUCCESS;
}

/* Per step each rank sends to the next what it received last: (size - 1) / size of all bytes leave each rank. */
static double ring_allgather(char *all, int slot)
{
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;

    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int step = 0; step < size - 1; step++) {
        const int sent = (rank + size - step) % size, received = (rank + 2 * size - step - 1) % size;
        MPI_Sendrecv(all + (size_t)sent * (size_t)slot, slot, MPI_CHAR, next, 0, all + (size_t)received * (size_t)slot,
                     slot, MPI_CHAR, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

static int time_ring(int bytes)
{
    const int slot = bytes / size;
    char     *all  = malloc((size_t)bytes + 1);

    if (bytes <= 0 || all == NULL) {
        free(all);
        return EXIT_FAILURE;
    }
    memset(all, rank, (size_t)bytes);
    for (int i = 0; i <= REPEATS; i++) {
        const double seconds = ring_allgather(all, slot);
        if (rank == 0 && i > 0) { /* the first one makes the connections */
            printf("ring %d bytes %.4f s\n", bytes, seconds);
        }
    }
    int wrong = 0;
    for (int r = 0; r < size; r++) {
        wrong |= all[(size_t)r * (size_t)slot] != (char)r;
    }
    free(all);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int hang(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ready\n");
        (void)fflush(stdout);
    }
    for (;;) {
        (void)pause();
    }
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const char *what   = argc > 1 ? argv[1] : "";
    int         status = 2;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "nodes") == 0) {
        status = show_nodes();
    } else if (strcmp(what, "ring") == 0 && argc > 2) {
        status = time_ring((int)strtol(argv[2], NULL, 10));
    } else if (strcmp(what, "fail") == 0) {
        status = rank == size - 1 ? 3 : EXIT_SUCCESS;
    } else if (strcmp(what, "hang") == 0) {
        status = hang();
    } else {
        fprintf(stderr, "usage: cluster_probe nodes | ring BYTES | fail | hang\n");
    }
    MPI_Finalize();
    return status;
}
