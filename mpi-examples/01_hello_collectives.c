/*
 * Step 1: a context over MPI_COMM_WORLD, and the three collectives that sharded training consists of.
 *
 *     mpirun -n 4 01_hello_collectives              what each rank holds before and after
 *     mpirun -n 4 01_hello_collectives --settings   the settings in force instead
 *
 * Every function returns a status. What went wrong has been printed by the library, once, where it was detected: a program
 * only has to stop. When not to do it this way: inside an MPI simulation, pass the simulation's own communicator.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fsdp/fsdp.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != FSDP_OK) {                                                                                       \
            return EXIT_FAILURE;                                                                                       \
        }                                                                                                              \
    } while (0)

/* What every rank holds, gathered and printed by rank 0: lines printed by several ranks would come in any order. */
static int print_rows(fsdp_context *ctx, const char *what, const float *values, size_t n)
{
    const size_t size = (size_t)fsdp_size(ctx);
    float       *all  = calloc(size * n, sizeof *all);

    if (all == NULL) {
        return EXIT_FAILURE;
    }
    TRY(fsdp_allgather(ctx, values, all, n, FSDP_F32));
    for (size_t rank = 0; rank < size && fsdp_rank(ctx) == 0; rank++) {
        printf("%-15s rank %zu:", what, rank);
        for (size_t i = 0; i < n; i++) {
            printf(" %6.1f", (double)all[rank * n + i]);
        }
        printf("\n");
    }
    free(all);
    return EXIT_SUCCESS;
}

static int show_collectives(fsdp_context *ctx)
{
    const size_t  size  = (size_t)fsdp_size(ctx);
    float         shard = (float)(10 * (fsdp_rank(ctx) + 1));
    float        *full  = calloc(size, sizeof *full);
    float         mean  = shard;
    fsdp_request *request;

    if (full == NULL) {
        return EXIT_FAILURE;
    }
    (void)print_rows(ctx, "shard", &shard, 1);

    /* before a layer runs: its parameters, of which each rank holds a slice, come together on every rank */
    TRY(fsdp_allgather(ctx, &shard, full, 1, FSDP_F32));
    (void)print_rows(ctx, "allgather", full, size);

    /* after it ran backward: every rank's gradient of the whole is summed, and each rank keeps its slice of the sum */
    TRY(fsdp_reduce_scatter(ctx, full, &shard, 1, FSDP_F32, FSDP_SUM));
    (void)print_rows(ctx, "reduce_scatter", &shard, 1);

    /* the nonblocking form of any of them: compute between issue and wait */
    TRY(fsdp_iallreduce(ctx, FSDP_IN_PLACE, &mean, 1, FSDP_F32, FSDP_AVG, &request));
    TRY(fsdp_wait(request));
    (void)print_rows(ctx, "allreduce (avg)", &mean, 1);
    free(full);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    fsdp_context *ctx;
    int           result = EXIT_FAILURE;

    MPI_Init(&argc, &argv);
    if (fsdp_init(MPI_COMM_WORLD, NULL, &ctx) == FSDP_OK) {
        if (argc == 1) {
            result = show_collectives(ctx);
        } else if (argc == 2 && strcmp(argv[1], "--settings") == 0) {
            result = fsdp_rank(ctx) > 0 || fsdp_settings_print(ctx, stdout) == FSDP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
        } else if (fsdp_rank(ctx) == 0) {
            fprintf(stderr, "unknown argument '%s'; there is only --settings\n", argv[1]);
        }
        if (fsdp_finalize(ctx) != FSDP_OK) {
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
        }
    }
    MPI_Finalize();
    return result;
}
