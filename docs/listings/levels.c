/*
 * Keeps a state in the nodes every 5 steps, and saves one for all of them every 20: mpirun -n 2 levels run3
 */
#include <string.h>

#include "listing.h"

enum { N = 1000, STEPS = 40, CACHE_EVERY = 5, SAVE_EVERY = 20 };

static int train_step(fsdp_unit *unit, fsdp_optimizer *optimizer)
{
    TRY(fsdp_unit_begin_backward(unit));
    const float *x  = fsdp_unit_param(unit, 0);
    float       *dx = fsdp_unit_grad(unit, 0);
    for (size_t i = 0; i < N; i++) {
        dx[i] = x[i] - 1.0F;
    }
    TRY(fsdp_unit_end_backward(unit));
    TRY(fsdp_optimizer_step(optimizer));
    return EXIT_SUCCESS;
}

/* begin levels */
static int open_in_levels(fsdp_model *model, fsdp_optimizer *optimizer, const char *folder,
                          fsdp_checkpoint **checkpoint)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;

    options.asynchronous = 1;
    options.cached       = 1; /* room in the nodes; and what an earlier attempt has left there becomes `latest` */
    TRY(fsdp_checkpoint_open(model, optimizer, folder, &options, checkpoint));
    return EXIT_SUCCESS;
}

/* Behind each step. */
static int keep(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state)
{
    TRY(fsdp_checkpoint_progress(checkpoint, NULL)); /* files and messages go on */
    if (state->step % SAVE_EVERY == 0) {
        TRY(fsdp_checkpoint_save_async(checkpoint, state)); /* flush: into the folder */
    } else if (state->step % CACHE_EVERY == 0) {
        TRY(fsdp_checkpoint_cache(checkpoint, state)); /* cache, and partner */
    }
    return EXIT_SUCCESS;
}
/* end levels */

static int run(fsdp_context *ctx, fsdp_model *model, fsdp_unit *unit, fsdp_optimizer *optimizer, const char *folder)
{
    char                  path[FSDP_CHECKPOINT_PATH_BYTES];
    fsdp_checkpoint_state state = {.step = 0};
    fsdp_checkpoint      *checkpoint;

    if (open_in_levels(model, optimizer, folder, &checkpoint) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    TRY(fsdp_checkpoint_latest(ctx, folder, path, sizeof path));
    if (path[0] != '\0') {
        TRY(fsdp_checkpoint_load(model, optimizer, path, NULL, &state));
    }
    while (state.step < STEPS) {
        if (train_step(unit, optimizer) != EXIT_SUCCESS) {
            return EXIT_FAILURE;
        }
        state.step++;
        if (keep(checkpoint, &state) != EXIT_SUCCESS) {
            return EXIT_FAILURE;
        }
    }
    TRY(fsdp_checkpoint_close(checkpoint));
    return EXIT_SUCCESS;
}

static int train(fsdp_context *ctx, int argc, char **argv)
{
    const fsdp_tensor      x = {.name = "x", .n_dims = 1, .shape = {N}, .dtype = FSDP_F32};
    fsdp_model            *model;
    fsdp_unit             *unit;
    fsdp_optimizer        *optimizer;
    fsdp_optimizer_options options;
    int                    result;

    if (argc != 2) {
        return EXIT_FAILURE;
    }
    TRY(fsdp_model_create(ctx, NULL, &model));
    TRY(fsdp_unit_add(model, "x", &x, 1, &unit));
    TRY(fsdp_model_commit(model));
    TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &options));
    TRY(fsdp_optimizer_create(model, &options, &optimizer));
    result = run(ctx, model, unit, optimizer, argv[1]);
    fsdp_model_destroy(model);
    return result;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
