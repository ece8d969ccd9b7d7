/*
 * For check_small_shm.sh: what a rank does in a folder for shared memory that is small.
 *
 *   shm_probe init     expects fsdp_init() to fail for want of memory, and prints why
 *   shm_probe buffer   expects a buffer of 1 GiB to be refused, prints why, and goes on using the context
 *   shm_probe run      uses shared memory and ends well
 *   shm_probe wait     uses shared memory, says so, and waits to be killed
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fsdp/buffer.h"
#include "fsdp/collectives.h"

static int fails(const char *what, fsdp_status status, const fsdp_context *ctx)
{
    printf("unexpected: %s: %s: %s\n", what, fsdp_status_name(status), fsdp_last_error(ctx));
    return EXIT_FAILURE;
}

/* Touches all of the staging memory, and of a buffer. */
static int use(fsdp_context *ctx)
{
    enum { COUNT = 1 << 20 };
    void *memory;

    fsdp_status status = fsdp_buffer_alloc(ctx, FSDP_BUFFER_PER_RANK, COUNT, &memory);
    if (status != FSDP_OK) {
        return fails("fsdp_buffer_alloc", status, ctx);
    }
    memset(memory, fsdp_rank(ctx), COUNT);
    status = fsdp_allreduce(ctx, FSDP_IN_PLACE, memory, COUNT, FSDP_U8, FSDP_SUM);
    status = status == FSDP_OK ? fsdp_buffer_free(ctx, memory) : status;
    return status == FSDP_OK ? EXIT_SUCCESS : fails("use", status, ctx);
}

static int expect_no_context(void)
{
    fsdp_context     *ctx;
    const fsdp_status status = fsdp_init(MPI_COMM_WORLD, NULL, &ctx);

    if (status != FSDP_ERR_MEMORY || ctx != NULL) {
        return fails("fsdp_init", status, NULL);
    }
    printf("refused: %s\n", fsdp_last_error(NULL));
    return EXIT_SUCCESS;
}

static int expect_no_buffer(fsdp_context *ctx)
{
    static const fsdp_buffer_kind kinds[] = {FSDP_BUFFER_PER_RANK, FSDP_BUFFER_PER_NODE};

    for (int i = 0; i < 2; i++) {
        void             *memory;
        const fsdp_status status = fsdp_buffer_alloc(ctx, kinds[i], (size_t)1 << 30, &memory);

        if (status != FSDP_ERR_MEMORY) {
            return fails("fsdp_buffer_alloc", status, ctx);
        }
        printf("refused: %s\n", fsdp_last_error(ctx));
    }
    return use(ctx);
}

static int run(const char *task)
{
    fsdp_context *ctx;
    int           result;

    if (strcmp(task, "init") == 0) {
        return expect_no_context();
    }
    const fsdp_status status = fsdp_init(MPI_COMM_WORLD, NULL, &ctx);
    if (status != FSDP_OK) {
        return fails("fsdp_init", status, NULL);
    }
    result = strcmp(task, "buffer") == 0 ? expect_no_buffer(ctx) : use(ctx);
    if (strcmp(task, "wait") == 0) {
        printf("ready: process %ld\n", (long)getpid());
        (void)fflush(stdout);
        (void)pause();
    }
    return fsdp_finalize(ctx) == FSDP_OK ? result : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int result = argc == 2 ? run(argv[1]) : EXIT_FAILURE;
    if (result == EXIT_SUCCESS) {
        printf("ended well\n");
    }
    MPI_Finalize();
    return result;
}
