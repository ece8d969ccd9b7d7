/*
 * Heat in a plate, and a surrogate that learns the solver's update rule while it runs; both in one checkpoint, from which any
 * number of ranks goes on: mpirun -n 4 heat run1 40
 *
 * The third argument, for the test, is a step behind which the last rank is killed.
 */
#include <signal.h>
#include <string.h>

#include "listing.h"

enum { ROWS = 60, COLUMNS = 48, POINTS = 5, EVERY = 10, WARM_UP = 100 };

#define RATE 0.15

/* begin state */
/* This rank's rows of the plate, with a ghost row above and below; and the clock, which all ranks have alike. */
typedef struct plate {
    size_t first, rows;
    double cells[2][(ROWS + 2) * COLUMNS];
    double seconds;
} plate;

static int add_state(fsdp_checkpoint *checkpoint, plate *p)
{
    const size_t   shape[2] = {ROWS, COLUMNS};
    const fsdp_box box      = {.offset = {p->first}, .extent = {p->rows, COLUMNS}, .stride = {COLUMNS, 1}};

    TRY(fsdp_checkpoint_add(checkpoint, "temperature", FSDP_F64, 2, shape, &box, &p->cells[0][COLUMNS]));
    TRY(fsdp_checkpoint_add(checkpoint, "seconds", FSDP_F64, 0, NULL, NULL, &p->seconds)); /* a scalar */
    return EXIT_SUCCESS;
}
/* end state */

/* ---- the simulation ------------------------------------------------------------------------------------------------ */

static void heat(plate *p)
{
    for (size_t i = 0; i < p->rows * COLUMNS; i++) {
        p->cells[0][COLUMNS + i] = fsdp_random_normal(1, 0, p->first * COLUMNS + i);
    }
}

static void exchange(MPI_Comm sim, plate *p, int rank, int size)
{
    const int above = (rank + size - 1) % size, below = (rank + 1) % size;
    double   *top = p->cells[0], *bottom = &p->cells[0][(p->rows + 1) * COLUMNS];

    MPI_Sendrecv(top + COLUMNS, COLUMNS, MPI_DOUBLE, above, 0, bottom, COLUMNS, MPI_DOUBLE, below, 0, sim,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(bottom - COLUMNS, COLUMNS, MPI_DOUBLE, below, 1, top, COLUMNS, MPI_DOUBLE, above, 1, sim,
                 MPI_STATUS_IGNORE);
}

/* A cell and its four neighbours. */
static void look_around(const double *cells, size_t row, size_t column, double around[POINTS])
{
    const double *middle = &cells[(row + 1) * COLUMNS];

    around[0] = middle[column];
    around[1] = middle[column - COLUMNS];
    around[2] = middle[column + COLUMNS];
    around[3] = middle[(column + COLUMNS - 1) % COLUMNS];
    around[4] = middle[(column + 1) % COLUMNS];
}

static void advance(plate *p)
{
    for (size_t row = 0; row < p->rows; row++) {
        for (size_t column = 0; column < COLUMNS; column++) {
            double a[POINTS];

            look_around(p->cells[0], row, column, a);
            p->cells[1][(row + 1) * COLUMNS + column] = a[0] + RATE * (a[1] + a[2] + a[3] + a[4] - 4 * a[0]);
        }
    }
    p->seconds += 0.5;
}

/* ---- the surrogate ------------------------------------------------------------------------------------------------- */

typedef struct learner {
    fsdp_model     *model;
    fsdp_unit      *unit;
    fsdp_optimizer *optimizer;
} learner;

static int learner_open(fsdp_context *ctx, learner *l)
{
    const fsdp_tensor      weight = {.name = "weight", .n_dims = 1, .shape = {POINTS}, .dtype = FSDP_F32};
    fsdp_optimizer_options options;

    TRY(fsdp_model_create(ctx, NULL, &l->model));
    TRY(fsdp_unit_add(l->model, "stencil", &weight, 1, &l->unit));
    TRY(fsdp_model_commit(l->model));
    TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &options));
    TRY(fsdp_optimizer_create(l->model, &options, &l->optimizer));
    return EXIT_SUCCESS;
}

/* One step on this rank's rows; the ranks' gradients are averaged, so each counts its share of the plate. */
static int learn(fsdp_context *ctx, learner *l, const plate *p, size_t step, double *loss)
{
    const float *w;
    float       *dw;
    double       sums[POINTS] = {0};
    const double share        = (double)fsdp_size(ctx) / (ROWS * COLUMNS),
                 rate         = step < WARM_UP ? (double)(step + 1) / WARM_UP : 1;

    TRY(fsdp_optimizer_set_lr(l->optimizer, 0.001 * rate));
    TRY(fsdp_unit_begin_backward(l->unit));
    w     = fsdp_unit_param(l->unit, 0);
    dw    = fsdp_unit_grad(l->unit, 0);
    *loss = 0;
    for (size_t row = 0; row < p->rows; row++) {
        for (size_t column = 0; column < COLUMNS; column++) {
            double around[POINTS], error = -p->cells[1][(row + 1) * COLUMNS + column];

            look_around(p->cells[0], row, column, around);
            for (int k = 0; k < POINTS; k++) {
                error += (double)w[k] * around[k];
            }
            for (int k = 0; k < POINTS; k++) {
                sums[k] += 2 * error * around[k] * share;
            }
            *loss += error * error / (ROWS * COLUMNS);
        }
    }
    for (int k = 0; k < POINTS; k++) {
        dw[k] += (float)sums[k];
    }
    TRY(fsdp_unit_end_backward(l->unit));
    TRY(fsdp_optimizer_step(l->optimizer));
    TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, loss, 1, FSDP_F64, FSDP_SUM));
    return EXIT_SUCCESS;
}

/* ---- both ---------------------------------------------------------------------------------------------------------- */

static int time_step(fsdp_context *ctx, learner *l, plate *p, size_t step)
{
    double loss;

    exchange(MPI_COMM_WORLD, p, fsdp_rank(ctx), fsdp_size(ctx));
    advance(p);
    if (learn(ctx, l, p, step, &loss) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    memcpy(&p->cells[0][COLUMNS], &p->cells[1][COLUMNS], p->rows * COLUMNS * sizeof(double));
    if (fsdp_rank(ctx) == 0) {
        printf("step %zu after %.1f s | loss %.9f\n", step + 1, p->seconds, loss);
        (void)fflush(stdout);
    }
    return EXIT_SUCCESS;
}

static void die_behind(fsdp_context *ctx, size_t step, const char *last)
{
    if (last != NULL && step == strtoull(last, NULL, 10) && fsdp_rank(ctx) == fsdp_size(ctx) - 1) {
        (void)raise(SIGKILL);
    }
}

/* begin loop */
static int simulate(fsdp_context *ctx, learner *l, plate *p, char **argv)
{
    char                    path[FSDP_CHECKPOINT_PATH_BYTES];
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_checkpoint_state   state   = {.step = 0};
    fsdp_checkpoint        *checkpoint;

    options.asynchronous = 1;
    TRY(fsdp_checkpoint_open(l->model, l->optimizer, argv[1], &options, &checkpoint));
    if (add_state(checkpoint, p) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    TRY(fsdp_checkpoint_latest(ctx, argv[1], path, sizeof path));
    if (path[0] != '\0') {
        TRY(fsdp_checkpoint_restore(checkpoint, path, NULL,
                                    &state)); /* plate, clock, weights, moments: all or nothing */
    } else {
        heat(p);
    }
    while (state.step < strtoull(argv[2], NULL, 10)) {
        if (time_step(ctx, l, p, state.step) != EXIT_SUCCESS) {
            return EXIT_FAILURE;
        }
        if (++state.step % EVERY == 0) {
            TRY(fsdp_checkpoint_save_async(checkpoint, &state));
        }
        TRY(fsdp_checkpoint_progress(checkpoint, NULL));
        die_behind(ctx, state.step, argv[3]);
    }
    TRY(fsdp_checkpoint_close(checkpoint));
    return EXIT_SUCCESS;
}
/* end loop */

static int run(fsdp_context *ctx, int argc, char **argv)
{
    static plate p;
    const size_t rank = (size_t)fsdp_rank(ctx), size = (size_t)fsdp_size(ctx);
    learner      l;

    if (argc < 3) {
        return EXIT_FAILURE;
    }
    p.first = ROWS * rank / size;
    p.rows  = ROWS * (rank + 1) / size - p.first;
    if (learner_open(ctx, &l) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    const int result = simulate(ctx, &l, &p, argv);
    fsdp_model_destroy(l.model);
    return result;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, run);
}
