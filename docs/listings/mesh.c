/*
 * A network of two layers that are divided over the ranks of an axis, and trained by data-parallel replicas of it:
 * mpirun -n 4 mesh
 */
#include "listing.h"

enum { ROWS = 8, WIDTH = 16, HIDDEN = 32, STEPS = 300 };

/* What each rank knows: the mesh, its contexts, and how much of the hidden layer and of the batch is this rank's. */
typedef struct part {
    fsdp_mesh    *mesh;
    fsdp_context *dp, *tp;
    size_t        hidden, rows, first_row;
} part;

/* begin mesh */
static int lay_out(fsdp_context *ctx, part *p)
{
    const fsdp_axis axes[] = {{"dp", 0}, {"tp", fsdp_size(ctx) % 2 == 0 ? 2 : 1}}; /* 0: what is left */

    TRY(fsdp_mesh_create(ctx, axes, 2, NULL, &p->mesh));
    TRY(fsdp_mesh_context(p->mesh, "dp", &p->dp)); /* ranks with the same part of the layers, and other samples */
    TRY(fsdp_mesh_context(p->mesh, "tp", &p->tp)); /* ranks with the other parts, and the same samples */
    p->hidden    = HIDDEN / (size_t)fsdp_size(p->tp);
    p->rows      = ROWS / (size_t)fsdp_size(p->dp);
    p->first_row = p->rows * (size_t)fsdp_rank(p->dp);
    if (fsdp_rank(ctx) == 0) {
        TRY(fsdp_mesh_print(p->mesh, stdout));
    }
    return EXIT_SUCCESS;
}
/* end mesh */

/* Some numbers between -1 and 1, the same on every machine. */
static float draw(size_t i)
{
    return (float)((i + 1) * 7919 % 2003) / 1001.5F - 1.0F;
}

/* begin layers */
/* The first matrix is divided by columns and the second by rows, so that each rank computes its part of the hidden layer alone. */
static int make(part *p, fsdp_model **model, fsdp_unit **unit)
{
    const fsdp_tensor  tensors[] = {{.name   = "first",
                                     .n_dims = 2,
                                     .shape  = {WIDTH, HIDDEN},
                                     .fill   = FSDP_FILL_NORMAL,
                                     .b      = 0.2,
                                     .flags  = FSDP_TENSOR_TP,
                                     .tp_dim = 1},
                                    {.name   = "second",
                                     .n_dims = 2,
                                     .shape  = {HIDDEN, WIDTH},
                                     .fill   = FSDP_FILL_NORMAL,
                                     .b      = 0.2,
                                     .flags  = FSDP_TENSOR_TP,
                                     .tp_dim = 0}};
    fsdp_model_options options   = FSDP_MODEL_OPTIONS_DEFAULT;

    options.mesh        = p->mesh;
    options.tensor_axis = "tp";
    TRY(fsdp_model_create(p->dp, &options, model)); /* each part is sharded over dp */
    TRY(fsdp_unit_add(*model, "layers", tensors, 2, unit));
    TRY(fsdp_model_commit(*model));
    return EXIT_SUCCESS;
}
/* end layers */

/* y = a b, of m x k and k x n, added to what is in y */
static void multiply(const float *a, const float *b, float *y, size_t m, size_t k, size_t n)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t l = 0; l < k; l++) {
            for (size_t j = 0; j < n; j++) {
                y[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
}

/* begin forward */
/* Of this rank's samples: `h` is its part of the hidden layer, `y` the whole output, on each rank of tp. */
static int forward(const part *p, fsdp_unit *unit, const float *x, float *h, float *y)
{
    const fsdp_tp_activations outputs = {p->rows, WIDTH, FSDP_F32, FSDP_TP_ALL_ROWS};

    multiply(x, fsdp_unit_param(unit, 0), h, p->rows, WIDTH, p->hidden);
    for (size_t i = 0; i < p->rows * p->hidden; i++) {
        h[i] = h[i] > 0.0F ? h[i] : 0.0F;
    }
    multiply(h, fsdp_unit_param(unit, 1), y, p->rows, p->hidden, WIDTH);
    TRY(fsdp_tp_end(p->tp, &outputs, y, y)); /* the sum over the parts of the hidden layer */
    return EXIT_SUCCESS;
}
/* end forward */

/* begin backward */
/* `dy` is whole on each rank of tp, and the gradients are of this rank's parts alone: nothing is exchanged. Were there a layer
 * before, its gradient, `dh` times the transposed first matrix, would be summed by fsdp_tp_end() as `y` is above. */
static void backward(const part *p, fsdp_unit *unit, const float *x, const float *h, const float *dy)
{
    const float *second  = fsdp_unit_param(unit, 1);
    float       *d_first = fsdp_unit_grad(unit, 0), *d_second = fsdp_unit_grad(unit, 1);

    for (size_t r = 0; r < p->rows; r++) {
        for (size_t k = 0; k < p->hidden; k++) {
            float dh = 0.0F;

            for (size_t j = 0; j < WIDTH; j++) {
                d_second[k * WIDTH + j] += h[r * p->hidden + k] * dy[r * WIDTH + j];
                dh += dy[r * WIDTH + j] * second[k * WIDTH + j];
            }
            for (size_t i = 0; i < WIDTH && h[r * p->hidden + k] > 0.0F; i++) {
                d_first[i * p->hidden + k] += x[r * WIDTH + i] * dh;
            }
        }
    }
}
/* end backward */

/* The network learns to turn its input round. */
static int step(const part *p, fsdp_unit *unit, double *loss)
{
    float x[ROWS * WIDTH] = {0}, h[ROWS * HIDDEN] = {0}, y[ROWS * WIDTH] = {0}, dy[ROWS * WIDTH] = {0};

    for (size_t i = 0; i < p->rows * WIDTH; i++) {
        x[i] = draw(p->first_row * WIDTH + i);
    }
    TRY(fsdp_unit_begin_backward(unit));
    if (forward(p, unit, x, h, y) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    *loss = 0.0;
    for (size_t i = 0; i < p->rows * WIDTH; i++) {
        const float off = y[i] - x[i - i % WIDTH + WIDTH - 1 - i % WIDTH];

        *loss += (double)off * (double)off / (double)(p->rows * WIDTH);
        dy[i] = 2.0F * off / (float)(p->rows * WIDTH);
    }
    backward(p, unit, x, h, dy);
    TRY(fsdp_unit_end_backward(unit));
    TRY(fsdp_allreduce(p->dp, FSDP_IN_PLACE, loss, 1, FSDP_F64, FSDP_AVG));
    return EXIT_SUCCESS;
}

static int train(fsdp_context *ctx, int argc, char **argv)
{
    part                   p;
    fsdp_model            *model;
    fsdp_unit             *unit;
    fsdp_optimizer_options options;
    fsdp_optimizer        *optimizer;
    double                 loss, norm, first = 0.0;

    (void)argc;
    (void)argv;
    if (lay_out(ctx, &p) != EXIT_SUCCESS || make(&p, &model, &unit) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &options));
    options.lr = 0.01;
    TRY(fsdp_optimizer_create(model, &options, &optimizer));
    for (int s = 0; s < STEPS; s++) {
        if (step(&p, unit, &loss) != EXIT_SUCCESS) {
            return EXIT_FAILURE;
        }
        first = s == 0 ? loss : first;
        TRY(fsdp_clip_grad_norm(model, 1.0, &norm)); /* of all parts */
        TRY(fsdp_optimizer_step(optimizer));
    }
    if (fsdp_rank(ctx) == 0) {
        printf("loss %.4f, after %d steps %.4f\n", first, STEPS, loss);
    }
    fsdp_model_destroy(model);
    fsdp_mesh_destroy(p.mesh);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
