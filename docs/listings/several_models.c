/*
 * An actor that learns from a critic, both in one checkpoint, resumed if there is one; then the actor alone:
 * mpirun -n 2 several_models run1
 */
#include "listing.h"

enum { N = 1000, STEPS = 20 };

typedef struct network {
    fsdp_model     *model;
    fsdp_unit      *unit;
    fsdp_optimizer *optimizer;
} network;

/* begin models */
/* Both have names, so the folder is opened without a model. */
static int open_both(fsdp_context *ctx, const network *actor, const network *critic, const char *folder,
                     fsdp_checkpoint **checkpoint)
{
    TRY(fsdp_checkpoint_open_folder(ctx, folder, NULL, checkpoint));
    TRY(fsdp_checkpoint_add_model(*checkpoint, "actor", actor->model, actor->optimizer));
    TRY(fsdp_checkpoint_add_model(*checkpoint, "critic", critic->model, critic->optimizer));
    return EXIT_SUCCESS;
}

/* The state of both, or of none. */
static int resume(fsdp_context *ctx, fsdp_checkpoint *checkpoint, const char *folder, fsdp_checkpoint_state *state)
{
    char path[FSDP_CHECKPOINT_PATH_BYTES];

    TRY(fsdp_checkpoint_latest(ctx, folder, path, sizeof path));
    if (path[0] != '\0') {
        TRY(fsdp_checkpoint_restore(checkpoint, path, NULL, state));
    }
    return EXIT_SUCCESS;
}

/* One of them, without its optimizer: for a program that only acts. */
static int load_actor(fsdp_model *model, const char *folder)
{
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;

    options.model = "actor";
    TRY(fsdp_checkpoint_load(model, NULL, folder, &options, NULL));
    return EXIT_SUCCESS;
}
/* end models */

static int network_open(fsdp_context *ctx, fsdp_strategy strategy, fsdp_optimizer_kind kind, network *n)
{
    const fsdp_tensor      x       = {.name = "x", .n_dims = 1, .shape = {N}, .dtype = FSDP_F32};
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options optimizer;

    options.strategy = strategy;
    TRY(fsdp_model_create(ctx, &options, &n->model));
    TRY(fsdp_unit_add(n->model, "x", &x, 1, &n->unit));
    TRY(fsdp_model_commit(n->model));
    TRY(fsdp_optimizer_options_init(kind, &optimizer));
    optimizer.lr = 0.125;
    TRY(fsdp_optimizer_create(n->model, &optimizer, &n->optimizer));
    return EXIT_SUCCESS;
}

/* A step towards `target`; of the actor, that is what the critic says. */
static int step_towards(const network *n, float target)
{
    const float *x;
    float       *dx;

    TRY(fsdp_unit_begin_backward(n->unit));
    x  = fsdp_unit_param(n->unit, 0);
    dx = fsdp_unit_grad(n->unit, 0);
    for (size_t i = 0; i < N; i++) {
        dx[i] = x[i] - target;
    }
    TRY(fsdp_unit_end_backward(n->unit));
    TRY(fsdp_optimizer_step(n->optimizer));
    return EXIT_SUCCESS;
}

static int first_of(fsdp_model *model, float *value)
{
    static float x[N];

    TRY(fsdp_tensor_export_to_all(model, "x", x, sizeof x));
    *value = x[0];
    return EXIT_SUCCESS;
}

static int learn(const network *actor, const network *critic)
{
    float value;

    for (int s = 0; s < STEPS; s++) {
        TRY(step_towards(critic, 1.0F));
        TRY(first_of(critic->model, &value));
        TRY(step_towards(actor, value));
    }
    return EXIT_SUCCESS;
}

static int run(fsdp_context *ctx, int argc, char **argv)
{
    fsdp_checkpoint_state state = {.step = 0};
    fsdp_checkpoint      *checkpoint;
    network               actor, critic, alone;
    float                 trained, loaded;

    if (argc != 2) {
        return EXIT_FAILURE;
    }
    TRY(network_open(ctx, FSDP_FULL_SHARD, FSDP_ADAMW, &actor));
    TRY(network_open(ctx, FSDP_NO_SHARD, FSDP_SGD_MOMENTUM, &critic));
    TRY(network_open(ctx, FSDP_SHARD_OPTIM, FSDP_SGD, &alone));
    TRY(open_both(ctx, &actor, &critic, argv[1], &checkpoint));
    TRY(resume(ctx, checkpoint, argv[1], &state));
    TRY(learn(&actor, &critic));
    state.step += STEPS;
    TRY(fsdp_checkpoint_save(checkpoint, &state));
    TRY(fsdp_checkpoint_close(checkpoint));
    TRY(load_actor(alone.model, argv[1]));
    TRY(first_of(actor.model, &trained));
    TRY(first_of(alone.model, &loaded));
    if (fsdp_rank(ctx) == 0) {
        printf("step %d: the actor alone is at %.3f, as it was trained: %s\n", (int)state.step, (double)loaded,
               loaded == trained ? "yes" : "no");
    }
    fsdp_model_destroy(alone.model);
    fsdp_model_destroy(critic.model);
    fsdp_model_destroy(actor.model);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, run);
}
