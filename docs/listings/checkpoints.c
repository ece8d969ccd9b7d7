/*
 * A loop that saves every 10 steps, stops on a signal, and resumes where it stopped: mpirun -n 2 checkpoints run1
 */
#include <string.h>

#include "listing.h"

enum { N = 1000, STEPS = 40, EVERY = 10 };

static int train_step(fsdp_unit *unit, fsdp_optimizer *optimizer)
{
    const float *x;
    float       *dx;

    TRY(fsdp_unit_begin_backward(unit));
    x  = fsdp_unit_param(unit, 0);
    dx = fsdp_unit_grad(unit, 0);
    for (size_t i = 0; i < N; i++) {
        dx[i] = x[i] - 1.0F;
    }
    TRY(fsdp_unit_end_backward(unit));
    TRY(fsdp_optimizer_step(optimizer));
    return EXIT_SUCCESS;
}

/* begin loop */
static int resume_and_train(fsdp_context *ctx, fsdp_model *model, fsdp_unit *unit, fsdp_optimizer *optimizer,
                            const char *folder)
{
    char                    path[FSDP_CHECKPOINT_PATH_BYTES];
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_checkpoint_state   state   = {.step = 0};
    fsdp_checkpoint        *checkpoint;
    int                     signal = 0;

    options.asynchronous = 1;      /* room for a copy that is written behind the following steps */
    TRY(fsdp_stop_watch(NULL, 0)); /* SIGUSR1 and SIGTERM no longer end the process */
    TRY(fsdp_checkpoint_open(model, optimizer, folder, &options, &checkpoint));
    TRY(fsdp_checkpoint_latest(ctx, folder, path, sizeof path)); /* "" where there is none yet */
    if (path[0] != '\0') {
        TRY(fsdp_checkpoint_load(model, optimizer, path, NULL, &state)); /* whatever number of ranks saved it */
    }
    while (state.step < STEPS && signal == 0) {
        TRY(train_step(unit, optimizer));
        state.step++;
        if (state.step % EVERY == 0) {
            TRY(fsdp_checkpoint_save_async(checkpoint, &state));
        }
        TRY(fsdp_checkpoint_progress(checkpoint, NULL));
        TRY(fsdp_stop_agree(ctx, &signal)); /* the same on all ranks: they stop after the same step */
    }
    if (state.step % EVERY != 0) {
        TRY(fsdp_checkpoint_save(checkpoint, &state));
    }
    TRY(fsdp_checkpoint_close(checkpoint));
    return signal != 0 ? FSDP_STOP_EXIT_STATUS : EXIT_SUCCESS; /* 75: start me again */
}
/* end loop */

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
    result = resume_and_train(ctx, model, unit, optimizer, argv[1]);
    fsdp_model_destroy(model);
    return result;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
