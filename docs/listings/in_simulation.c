/*
 * A simulation of heat in a rod that learns, while it runs, what its own update rule is: mpirun -n 4 in_simulation
 *
 * The simulation owns MPI, its communicator and its messages. Training is a guest: it has a context on the simulation's
 * communicator, sees each rank's own cells, and the simulation goes on without it where it fails.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <fsdp/fsdp.h>

enum { CELLS = 200, INPUTS = 3, STEPS = 400 };

#define RATE 0.2F /* what the network has to find: next = RATE left + (1 - 2 RATE) middle + RATE right */

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const fsdp_status status_of_call = (call);                                                                     \
        if (status_of_call != FSDP_OK) {                                                                               \
            return status_of_call;                                                                                     \
        }                                                                                                              \
    } while (0)

/* begin learner */
typedef struct learner {
    fsdp_context   *ctx;
    fsdp_model     *model;
    fsdp_unit      *layer;
    fsdp_optimizer *optimizer;
} learner;

/* `sim` is the simulation's communicator. The library duplicates it and sends nothing on it. */
static fsdp_status learner_open(learner *l, MPI_Comm sim)
{
    const fsdp_tensor      weight  = {.name = "weight", .n_dims = 1, .shape = {INPUTS}, .dtype = FSDP_F32};
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options adam;
    fsdp_config            config;

    fsdp_config_init(&config);
    config.bind          = FSDP_BIND_NONE; /* the simulation has placed its threads itself */
    config.timeout_s     = 120;            /* the longest that one rank may be behind the others */
    options.optimizer    = FSDP_ADAM;
    options.memory_limit = 64U << 20; /* BYTES per rank that the simulation can spare: checked at commit */
    TRY(fsdp_init(sim, &config, &l->ctx));
    TRY(fsdp_model_create(l->ctx, &options, &l->model));
    TRY(fsdp_unit_add(l->model, "stencil", &weight, 1, &l->layer));
    TRY(fsdp_model_commit(l->model));
    TRY(fsdp_optimizer_options_init(FSDP_ADAM, &adam));
    adam.lr = 0.01;
    return fsdp_optimizer_create(l->model, &adam, &l->optimizer);
}

/* One step on what this rank has just computed. Collective: every rank calls it in every step. */
static fsdp_status learner_step(learner *l, const float *before, const float *after)
{
    const float *w;
    float       *dw;

    TRY(fsdp_unit_begin_backward(l->layer));
    w  = fsdp_unit_param(l->layer, 0);
    dw = fsdp_unit_grad(l->layer, 0);
    for (int i = 1; i <= CELLS; i++) {
        const float *x     = &before[i - 1];
        const float  error = w[0] * x[0] + w[1] * x[1] + w[2] * x[2] - after[i];

        for (int k = 0; k < INPUTS; k++) {
            dw[k] += 2.0F * error * x[k] / CELLS;
        }
    }
    TRY(fsdp_unit_end_backward(l->layer));
    return fsdp_optimizer_step(l->optimizer);
}
/* end learner */

/* The simulation: cells 1 to CELLS are this rank's, 0 and CELLS + 1 those of its neighbours. */
static void exchange_edges(MPI_Comm sim, float *cells)
{
    int rank, size, left, right;

    MPI_Comm_rank(sim, &rank);
    MPI_Comm_size(sim, &size);
    left  = (rank + size - 1) % size;
    right = (rank + 1) % size;
    MPI_Sendrecv(&cells[1], 1, MPI_FLOAT, left, 0, &cells[CELLS + 1], 1, MPI_FLOAT, right, 0, sim, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&cells[CELLS], 1, MPI_FLOAT, right, 1, &cells[0], 1, MPI_FLOAT, left, 1, sim, MPI_STATUS_IGNORE);
}

static void advance(const float *before, float *after)
{
    for (int i = 1; i <= CELLS; i++) {
        after[i] = RATE * before[i - 1] + (1.0F - 2.0F * RATE) * before[i] + RATE * before[i + 1];
    }
}

/* Heats a few cells now and then, so that there is something to learn from. */
static void heat(float *cells, int rank, int step)
{
    if (step % 10 == 0) {
        for (int i = 1; i <= CELLS; i++) {
            cells[i] = (float)fsdp_random_normal(1, (uint64_t)rank, (uint64_t)step * CELLS + (uint64_t)i);
        }
    }
}

/* begin loop */
static int simulate(MPI_Comm sim)
{
    static float cells[2][CELLS + 2];
    learner      l         = {.ctx = NULL};
    int          is_taught = learner_open(&l, sim) == FSDP_OK; /* the same on every rank */
    int          rank;

    MPI_Comm_rank(sim, &rank);
    for (int step = 0; step < STEPS; step++) {
        float *before = cells[step % 2], *after = cells[(step + 1) % 2];

        heat(before, rank, step);
        exchange_edges(sim, before);
        advance(before, after);
        if (is_taught && learner_step(&l, before, after) != FSDP_OK) {
            (void)fsdp_model_zero_grad(l.model); /* ends the failed step on every rank */
            is_taught = 0;                       /* and the simulation goes on without training */
        }
    }
    if (is_taught) {
        float w[INPUTS];
        is_taught = fsdp_tensor_export(l.model, "weight", 0, w, sizeof w) == FSDP_OK;
        if (is_taught && rank == 0) {
            printf("learned %.3f %.3f %.3f\n", (double)w[0], (double)w[1], (double)w[2]);
        }
    }
    fsdp_model_destroy(l.model);
    return fsdp_finalize(l.ctx) == FSDP_OK && is_taught ? EXIT_SUCCESS : EXIT_FAILURE;
}
/* end loop */

int main(int argc, char **argv)
{
    MPI_Comm sim;
    int      result, provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_dup(MPI_COMM_WORLD, &sim);
    result = simulate(sim);
    MPI_Comm_free(&sim);
    MPI_Finalize();
    return result;
}
