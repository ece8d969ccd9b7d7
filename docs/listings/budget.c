/*
 * What each strategy would hold per rank, for any number of ranks, before anything is allocated: mpirun -n 1 budget
 */
#include "listing.h"

enum { LAYERS = 24, WIDTH = 4096, MIB = 1 << 20 };

/* begin budget */
static int add_layers(fsdp_model *model)
{
    for (int layer = 0; layer < LAYERS; layer++) {
        char        name[16];
        fsdp_tensor weight = {.name = name, .n_dims = 2, .shape = {WIDTH, WIDTH}, .dtype = FSDP_F32};
        fsdp_unit  *unit;

        (void)snprintf(name, sizeof name, "h.%d.w", layer);
        TRY(fsdp_unit_add(model, name, &weight, 1, &unit));
    }
    return EXIT_SUCCESS;
}

static int show(fsdp_context *ctx, int argc, char **argv)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model        *model;

    (void)argc;
    (void)argv;
    options.group_size = 8; /* of the hybrid strategies: as many ranks as a node would have */
    TRY(fsdp_model_create(ctx, &options, &model));
    TRY(add_layers(model)); /* and no commit: nothing is allocated */
    printf("MiB per rank        ranks  masters  gradients  moments   total\n");
    for (int s = 0; s < FSDP_N_STRATEGIES; s++) {
        for (int ranks = 8; ranks <= 64; ranks *= 8) {
            fsdp_budget b;

            TRY(fsdp_model_budget(model, (fsdp_strategy)s, ranks, FSDP_ADAMW, &b));
            printf("%-18s %6d %8zu %10zu %8zu %7zu\n", fsdp_strategy_name((fsdp_strategy)s), ranks,
                   b.bytes[FSDP_MEMORY_PARAMETERS] / MIB, b.bytes[FSDP_MEMORY_GRADIENTS] / MIB,
                   b.bytes[FSDP_MEMORY_OPTIMIZER] / MIB, b.total / MIB);
        }
    }
    fsdp_model_destroy(model);
    return EXIT_SUCCESS;
}
/* end budget */

int main(int argc, char **argv)
{
    return listing_run(argc, argv, show);
}
