/*
 * A model in the memory of the rank's GPU where there is one, else on the host: mpirun -n 2 on_gpu
 */
#include "listing.h"

/* begin on_gpu */
static int make(fsdp_context *ctx, fsdp_model **model, fsdp_unit **unit)
{
    const fsdp_tensor  weight  = {.name = "weight", .n_dims = 2, .shape = {256, 256}, .dtype = FSDP_F32};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.placement = fsdp_device(ctx) < 0 ? FSDP_ON_HOST : FSDP_ON_DEVICE; /* -1: the context uses no GPU */
    if (options.placement == FSDP_ON_DEVICE) {
        TRY(fsdp_stream_set(ctx, NULL)); /* your hipStream_t: kernels and the library's work are ordered on it */
    }
    TRY(fsdp_model_create(ctx, &options, model));
    TRY(fsdp_unit_add(*model, "layer", &weight, 1, unit));
    TRY(fsdp_model_commit(*model)); /* from here on fsdp_unit_param() and fsdp_unit_grad() are device pointers */
    return EXIT_SUCCESS;
}
/* end on_gpu */

static int show(fsdp_context *ctx, int argc, char **argv)
{
    fsdp_model *model;
    fsdp_unit  *unit;
    fsdp_memory memory;

    (void)argc;
    (void)argv;
    TRY(make(ctx, &model, &unit));
    TRY(fsdp_memory_usage(ctx, &memory));
    if (fsdp_rank(ctx) == 0) {
        printf("%s: %zu bytes, %zu of them on a GPU\n", fsdp_unit_name(unit), memory.current_total, memory.device);
    }
    fsdp_model_destroy(model);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, show);
}
