#include "md_learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-examples/common/example_error.h"

/* Behind the parameters: what no optimizer changes, held whole by every rank, and saved with them. */
enum { SEEN_MEAN = MD_N_TENSORS, SEEN_DEVIATION, ENERGY_NORMAL, N_ALL };

static void describe_normal(fsdp_tensor *tensors)
{
    static const char *const names[]  = {"seen.mean", "seen.deviation", "energy.normal"};
    static const size_t      counts[] = {MD_FUNCTIONS, MD_FUNCTIONS, 2};
    size_t                   i;

    for (i = SEEN_MEAN; i < N_ALL; i++) {
        tensors[i] = (fsdp_tensor){.name   = names[i - SEEN_MEAN],
                                   .n_dims = 1,
                                   .shape  = {counts[i - SEEN_MEAN]},
                                   .dtype  = FSDP_F32,
                                   .flags  = FSDP_TENSOR_IGNORED};
    }
}

static void describe_weights(fsdp_tensor *tensors)
{
    size_t i;

    for (i = 0; i < MD_N_TENSORS; i++) {
        const md_tensor t = md_tensor_of(i);

        tensors[i] = (fsdp_tensor){.name   = t.name,
                                   .n_dims = t.shape[1] ? 2 : 1,
                                   .shape  = {t.shape[0], t.shape[1]},
                                   .dtype  = FSDP_F32,
                                   .fill   = t.deviation > 0 ? FSDP_FILL_NORMAL : FSDP_FILL_CONSTANT,
                                   .b      = t.deviation,
                                   .flags  = t.shape[1] ? 0 : FSDP_TENSOR_NO_WEIGHT_DECAY};
    }
}

size_t md_learner_parameters(void)
{
    return sizeof(md_weights) / sizeof(double);
}

fsdp_status md_learner_open(fsdp_context *ctx, const md_training *training, md_learner *learner)
{
    const size_t           updates = training->frames * training->updates;
    fsdp_model_options     model   = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_tensor            tensors[N_ALL];
    fsdp_optimizer_options adamw;

    *learner          = (md_learner){.ctx = ctx, .training = *training};
    learner->schedule = (fsdp_lr_schedule){.kind   = FSDP_LR_COSINE,
                                           .peak   = training->lr,
                                           .warmup = training->warmup,
                                           .total  = updates > training->warmup ? updates : training->warmup};
    model.strategy    = training->strategy;
    model.seed        = training->seed;
    describe_weights(tensors);
    describe_normal(tensors);
    EXAMPLE_TRY(fsdp_lr_schedule_check(&learner->schedule));
    EXAMPLE_TRY(fsdp_model_create(ctx, &model, &learner->model));
    EXAMPLE_TRY(fsdp_unit_add(learner->model, "potential", tensors, N_ALL, &learner->unit));
    EXAMPLE_TRY(fsdp_model_budget(learner->model, training->strategy, 0, FSDP_ADAMW, &learner->budget));
    EXAMPLE_TRY(fsdp_model_commit(learner->model));
    EXAMPLE_TRY(fsdp_optimizer_options_init(FSDP_ADAMW, &adamw));
    adamw.weight_decay = training->weight_decay;
    return fsdp_optimizer_create(learner->model, &adamw, &learner->optimizer);
}

void md_learner_close(md_learner *learner)
{
    fsdp_model_destroy(learner->model);
    md_workspace_release(&learner->work);
    free(learner->seen);
}

/* Mean and deviation of what the network sees, and is to say, over the atoms of all ranks. */
static fsdp_status normalize(md_learner *learner, const md_frame *frame)
{
    float *mean                             = fsdp_unit_buffer(learner->unit, SEEN_MEAN),
          *deviation                        = fsdp_unit_buffer(learner->unit, SEEN_DEVIATION),
          *energy                           = fsdp_unit_buffer(learner->unit, ENERGY_NORMAL);
    double sums[2 * (MD_FUNCTIONS + 1) + 1] = {0}, n;
    size_t i, m;

    for (i = 0; i < frame->own; i++) {
        for (m = 0; m <= MD_FUNCTIONS; m++) {
            const double value = m < MD_FUNCTIONS ? learner->seen[i][m] : frame->energies[i];

            sums[2 * m] += value;
            sums[2 * m + 1] += value * value;
        }
    }
    sums[2 * (MD_FUNCTIONS + 1)] = (double)frame->own;
    EXAMPLE_TRY(fsdp_allreduce(learner->ctx, FSDP_IN_PLACE, sums, sizeof sums / sizeof sums[0], FSDP_F64, FSDP_SUM));
    n = sums[2 * (MD_FUNCTIONS + 1)];
    for (m = 0; m <= MD_FUNCTIONS; m++) {
        const double middle = sums[2 * m] / n, variance = sums[2 * m + 1] / n - middle * middle;

        *(m < MD_FUNCTIONS ? &mean[m] : &energy[0])      = (float)middle;
        *(m < MD_FUNCTIONS ? &deviation[m] : &energy[1]) = (float)sqrt(fmax(variance, 1e-12));
    }
    return FSDP_OK;
}

/* From f32, as gathered, to f64, as computed with. */
static void read_weights(md_learner *learner)
{
    double      *weights   = (double *)&learner->potential.weights;
    md_normal   *normal    = &learner->potential.normal;
    const float *mean      = fsdp_unit_buffer(learner->unit, SEEN_MEAN),
                *deviation = fsdp_unit_buffer(learner->unit, SEEN_DEVIATION),
                *energy    = fsdp_unit_buffer(learner->unit, ENERGY_NORMAL);
    size_t i, e;

    for (i = 0; i < MD_N_TENSORS; i++) {
        const md_tensor t    = md_tensor_of(i);
        const float    *view = fsdp_unit_param(learner->unit, i);

        for (e = 0; e < t.elements; e++) {
            weights[t.offset + e] = (double)view[e];
        }
    }
    for (i = 0; i < MD_FUNCTIONS; i++) {
        normal->mean[i]      = (double)mean[i];
        normal->deviation[i] = (double)deviation[i];
    }
    normal->energy_mean      = (double)energy[0];
    normal->energy_deviation = (double)energy[1];
}

static void write_gradient(md_learner *learner)
{
    const double *gradient = (const double *)&learner->gradient;
    size_t        i, e;

    for (i = 0; i < MD_N_TENSORS; i++) {
        const md_tensor t    = md_tensor_of(i);
        float          *view = fsdp_unit_grad(learner->unit, i);

        for (e = 0; e < t.elements; e++) {
            view[e] = (float)gradient[t.offset + e];
        }
    }
}

/* One step on the atoms of one part, which go by their tags: the same for any number of ranks. @param[out] loss  this rank's
 * share of the mean square of the errors before it */
static fsdp_status update(md_learner *learner, const md_frame *frame, size_t number, double *loss)
{
    const size_t batches = learner->training.batches;
    double       sum = 0, atoms = 0, all, error;
    size_t       i;

    EXAMPLE_TRY(fsdp_unit_begin_backward(learner->unit));
    read_weights(learner);
    memset(&learner->gradient, 0, sizeof learner->gradient);
    for (i = 0; i < frame->own; i++) {
        if ((size_t)frame->tags[i] % batches == number % batches) {
            error = md_learn(&learner->potential, learner->seen[i], frame->energies[i], &learner->gradient);
            sum += error * error;
            atoms += 1;
        }
    }
    write_gradient(learner);
    EXAMPLE_TRY(fsdp_unit_end_backward(learner->unit));
    EXAMPLE_TRY(
        fsdp_model_sum_gradient_divisor(learner->model, atoms, &all)); /* the mean over the atoms of all ranks */
    EXAMPLE_TRY(fsdp_optimizer_set_lr(learner->optimizer, fsdp_lr_at(&learner->schedule, number)));
    EXAMPLE_TRY(fsdp_optimizer_step(learner->optimizer));
    *loss = sum / all;
    return FSDP_OK;
}

/* What the network sees of this rank's atoms. */
static fsdp_status describe(md_learner *learner, const md_frame *frame)
{
    int failed = 0;

    if (frame->own > learner->room) {
        free(learner->seen);
        learner->seen = malloc(frame->own * sizeof *learner->seen);
        learner->room = learner->seen ? frame->own : 0;
        failed        = !learner->seen;
    }
    failed = failed || md_describe_atoms(&learner->work, frame->own, frame->n, frame->x, learner->seen) != 0;
    return example_agree(learner->ctx, failed ? "no memory for the neighbours of a rank's atoms; use more ranks" : "");
}

fsdp_status md_learner_train(md_learner *learner, const md_frame *frame, size_t number, double *loss)
{
    const size_t updates = learner->training.updates;
    double       mean    = 0, part;
    size_t       u;

    EXAMPLE_TRY(describe(learner, frame));
    if (number == 0) {
        EXAMPLE_TRY(normalize(learner, frame));
    }
    for (u = 0; u < updates; u++) {
        EXAMPLE_TRY(update(learner, frame, number * updates + u, &part));
        mean += part / (double)updates;
    }
    EXAMPLE_TRY(fsdp_allreduce(learner->ctx, FSDP_IN_PLACE, &mean, 1, FSDP_F64, FSDP_SUM));
    *loss = mean;
    return FSDP_OK;
}

fsdp_status md_learner_compare(md_learner *learner, const md_frame *frame, double sums[2])
{
    double    these[2] = {0};
    const int failed =
        md_force_errors(&learner->work, &learner->potential, frame->own, frame->n, frame->x, frame->force, these) != 0;

    EXAMPLE_TRY(
        example_agree(learner->ctx, failed ? "no memory for the forces on a rank's atoms; use more ranks" : ""));
    EXAMPLE_TRY(fsdp_allreduce(learner->ctx, FSDP_IN_PLACE, these, 2, FSDP_F64, FSDP_SUM));
    sums[0] += these[0];
    sums[1] += these[1];
    return FSDP_OK;
}

fsdp_status md_learner_fetch(md_learner *learner)
{
    EXAMPLE_TRY(fsdp_unit_begin_forward(learner->unit));
    read_weights(learner);
    return fsdp_unit_end_forward(learner->unit);
}
