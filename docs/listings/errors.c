/*
 * A wrong argument on one rank is the same error on every rank, and the context is still good: mpirun -n 3 errors
 */
#include "listing.h"

/* begin errors */
static int go_wrong(fsdp_context *ctx, int argc, char **argv)
{
    const int   last  = fsdp_size(ctx) - 1;
    float       value = 1.0F;
    fsdp_status status;

    (void)argc;
    (void)argv;
    status = fsdp_allreduce(ctx, FSDP_IN_PLACE, fsdp_rank(ctx) == last ? NULL : &value, 1, FSDP_F32, FSDP_SUM);
    if (status == FSDP_OK) {
        return EXIT_FAILURE; /* it was wrong on one rank: no rank may miss that */
    }
    if (fsdp_rank(ctx) == 0) {
        printf("%s: %s\n", fsdp_status_name(status), fsdp_last_error(ctx));
    }
    TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, &value, 1, FSDP_F32, FSDP_SUM)); /* nothing had moved: go on */
    return EXIT_SUCCESS;
}
/* end errors */

/* begin agree */
/* Whether `n` bytes can be had on every rank: all of them learn it together, and all return the same. */
static int room_on_all(fsdp_context *ctx, size_t n, void **memory)
{
    *memory = malloc(n);
    if (fsdp_agree(ctx, *memory == NULL ? FSDP_ERR_MEMORY : FSDP_OK, "no room for the activations") != FSDP_OK) {
        free(*memory);
        *memory = NULL;
        return 0; /* and fsdp_last_error(ctx) names each rank that failed */
    }
    return 1;
}
/* end agree */

static int show(fsdp_context *ctx, int argc, char **argv)
{
    void *memory;

    TRY(go_wrong(ctx, argc, argv));
    if (!room_on_all(ctx, 1000, &memory)) {
        return EXIT_FAILURE;
    }
    free(memory);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, show);
}
