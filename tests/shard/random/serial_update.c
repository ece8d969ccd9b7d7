/* From gradients to parameters: the loss scaler, clipping, and the optimizers as their papers write them. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "tests/shard/random/numbers.h"
#include "tests/shard/random/serial.h"

/* The next tensor from `t` on that has elements of its own, and a gradient since the last step. */
static size_t next_with_gradient(const serial_model *s, size_t t)
{
    while (t < s->m->n_tensors && (s->m->tensors[t].owner != t || !s->tensors[t].has_gradient)) {
        t++;
    }
    return t;
}

#define FOR_EACH_GRADIENT(s, t)                                                                                        \
    for (size_t t = next_with_gradient((s), 0); (t) < (s)->m->n_tensors; (t) = next_with_gradient((s), (t) + 1))

static void scale_gradients(serial_model *s, float factor)
{
    FOR_EACH_GRADIENT(s, t)
    {
        for (size_t i = 0; i < s->m->tensors[t].count; i++) {
            s->tensors[t].gradient[i] *= factor;
        }
    }
}

/* ---- the divisor of a step --------------------------------------------------------------------------------------- */

double serial_factor(const serial_model *s, double divisor)
{
    return divisor > 0.0 ? (double)s->segment->size / divisor : 1.0;
}

/* Gradients that it has not been applied to, once somebody looks at them. */
void serial_divide(serial_model *s)
{
    const double options = s->segment->options.gradient_divisor;
    const float  factor  = (float)(serial_factor(s, s->divisor) / serial_factor(s, options));

    FOR_EACH_GRADIENT(s, t)
    {
        for (size_t i = 0; i < s->m->tensors[t].count && s->divisor > 0.0 && !s->tensors[t].divided; i++) {
            s->tensors[t].gradient[i] *= factor;
        }
        s->tensors[t].divided = s->divisor > 0.0;
    }
}

/* ---- loss scaler ------------------------------------------------------------------------------------------------- */

static bool all_finite(const serial_model *s)
{
    FOR_EACH_GRADIENT(s, t)
    {
        for (size_t i = 0; i < s->m->tensors[t].count; i++) {
            if (!isfinite(s->tensors[t].gradient[i])) {
                return false;
            }
        }
    }
    return true;
}

void serial_unscale(serial_model *s)
{
    serial_divide(s);
    if (s->unscaled) {
        return;
    }
    s->finite   = all_finite(s);
    s->unscaled = true;
    if (s->finite) {
        scale_gradients(s, (float)(1.0 / s->scale));
    }
}

static void set_scale(serial_model *s, double scale)
{
    if (scale != s->scale) {
        serial_rescale_hook(s, scale / s->scale);
    }
    s->scale = scale;
}

static void update_scale(serial_model *s)
{
    const fsdp_loss_scaler_options *o = &s->m->scaler;

    if (!s->finite) {
        set_scale(s, fmax(s->scale * o->backoff_factor, o->min_scale));
        s->clean_steps = 0;
        s->skipped_steps++;
        return;
    }
    s->clean_steps++;
    if (s->clean_steps == o->growth_interval) {
        set_scale(s, fmin(s->scale * o->growth_factor, o->max_scale));
        s->clean_steps = 0;
    }
}

/* ---- clipping ---------------------------------------------------------------------------------------------------- */

static double norm_2(const serial_model *s)
{
    exact_squares sum = {{0}, false, false};

    FOR_EACH_GRADIENT(s, t)
    {
        for (size_t i = 0; i < s->m->tensors[t].count; i++) {
            add_square(&sum, s->tensors[t].gradient[i]);
        }
    }
    return root_of(sum);
}

static double norm_inf(const serial_model *s)
{
    double most = 0.0;

    FOR_EACH_GRADIENT(s, t)
    {
        for (size_t i = 0; i < s->m->tensors[t].count; i++) {
            const double size = fabs((double)s->tensors[t].gradient[i]);

            most = size > most || isnan(size) ? size : most;
            if (isnan(most)) {
                return most;
            }
        }
    }
    return most;
}

static void clamp_gradients(serial_model *s, float limit)
{
    FOR_EACH_GRADIENT(s, t)
    {
        for (size_t i = 0; i < s->m->tensors[t].count; i++) {
            float *g = &s->tensors[t].gradient[i];

            *g = *g > limit ? limit : *g < -limit ? -limit : *g;
        }
    }
}

static void scale_to(serial_model *s, double most)
{
    const double factor = most / (s->norm + 1e-6);

    if (isfinite(s->norm) && factor < 1.0) {
        scale_gradients(s, (float)factor);
    }
}

void serial_norms(serial_model *s, const planned_op *op)
{
    serial_divide(s);
    for (size_t t = 0; t < s->m->n_tensors; t++) {
        exact_squares sum = {{0}, false, false};

        for (size_t i = 0; i < s->m->tensors[t].count && s->tensors[t].has_gradient; i++) {
            add_square(&sum, s->tensors[t].gradient[i]);
        }
        s->tensors[t].norm = root_of(sum);
    }
    s->norm = norm_2(s);
    scale_to(s, op->value);
}

void serial_scale(serial_model *s, double factor)
{
    serial_divide(s);
    scale_gradients(s, (float)factor);
}

void serial_clip(serial_model *s, const planned_op *op)
{
    serial_divide(s);
    if (op->kind == OP_CLIP_VALUE) {
        clamp_gradients(s, (float)op->value);
        return;
    }
    s->norm = op->kind == OP_CLIP_NORM ? norm_2(s) : norm_inf(s);
    scale_to(s, op->value);
}

/* ---- optimizers -------------------------------------------------------------------------------------------------- */

static void adam(const fsdp_optimizer_options *o, const serial_element *e, double t)
{
    const float beta1 = (float)o->beta1, beta2 = (float)o->beta2;
    const float rest1 = (float)(1.0 - o->beta1), rest2 = (float)(1.0 - o->beta2);
    const float correction1 = (float)(1.0 - pow(o->beta1, t)), correction2 = (float)(1.0 - pow(o->beta2, t));
    float       g = e->g;

    if (o->kind == FSDP_ADAM) {
        g += e->decay * *e->w;
    } else {
        *e->w -= e->lr * e->decay * *e->w;
    }
    *e->m = beta1 * *e->m + rest1 * g;
    *e->v = beta2 * *e->v + rest2 * (g * g);
    *e->w -= e->lr * (*e->m / correction1) / (sqrtf(*e->v / correction2) + (float)o->eps);
}

static void lion(const fsdp_optimizer_options *o, const serial_element *e)
{
    const float beta1 = (float)o->beta1, beta2 = (float)o->beta2;
    const float way = beta1 * *e->m + (1.0F - beta1) * e->g;

    *e->w -= e->lr * e->decay * *e->w;
    *e->w -= way > 0.0F ? e->lr : way < 0.0F ? -e->lr : 0.0F;
    *e->m = beta2 * *e->m + (1.0F - beta2) * e->g;
}

static void sgd(const fsdp_optimizer_options *o, const serial_element *e, bool first_step)
{
    const float momentum = (float)o->momentum;
    float       way      = e->g + e->decay * *e->w;

    if (o->kind == FSDP_SGD_MOMENTUM) {
        *e->m = first_step ? way : momentum * *e->m + way;
        way   = o->nesterov ? way + momentum * *e->m : *e->m;
    }
    *e->w -= e->lr * way;
}

void serial_update_element(const fsdp_optimizer_options *o, const serial_element *e, size_t step)
{
    if (o->kind == FSDP_ADAM || o->kind == FSDP_ADAMW) {
        adam(o, e, (double)step);
    } else if (o->kind == FSDP_LION) {
        lion(o, e);
    } else {
        sgd(o, e, step == 1);
    }
}

/* `step`: its number, from 1 on. */
static void round_moments(fsdp_dtype dtype, const serial_tensor *tensor, size_t n, size_t step)
{
    if (dtype == FSDP_U8) {
        serial_round_to_8_bits(tensor->first, n, true, step);
        serial_round_to_8_bits(tensor->second, n, false, step);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        tensor->first[i]  = nearest_of(dtype, tensor->first[i]);
        tensor->second[i] = nearest_of(dtype, tensor->second[i]);
    }
}

/* The first of an optimizer's groups whose pattern a tensor's name matches; or MOST_GROUPS. */
static size_t group_of(const random_model *m, size_t optimizer, size_t t)
{
    for (size_t g = 0; g < m->n_groups; g++) {
        if (m->groups[g].optimizer == optimizer && fnmatch(m->groups[g].pattern, m->tensors[t].name, 0) == 0) {
            return g;
        }
    }
    return MOST_GROUPS;
}

static void update_by(const serial_model *s, size_t optimizer, size_t t, double lr, double decay)
{
    const fsdp_optimizer_options *o      = &s->m->optimizers[optimizer].options;
    const serial_tensor          *tensor = &s->tensors[t];

    if (o->kind == FSDP_MUON) {
        serial_update_matrix(o, &s->m->tensors[t], tensor, lr, decay);
        return;
    }
    for (size_t i = 0; i < s->m->tensors[t].count; i++) {
        const serial_element e = {&tensor->master[i],  &tensor->first[i], &tensor->second[i],
                                  tensor->gradient[i], (float)lr,         (float)decay};

        serial_update_element(o, &e, s->steps[optimizer]);
    }
    round_moments(o->moment_dtype, tensor, s->m->tensors[t].count, s->steps[optimizer]);
}

static void update_tensor(const serial_model *s, size_t optimizer, size_t t)
{
    const random_model *m  = s->m;
    const size_t        g  = group_of(m, optimizer, t);
    double              lr = s->lr[optimizer], decay = m->optimizers[optimizer].options.weight_decay;

    if (g < MOST_GROUPS) {
        const fsdp_optimizer_group *own = &m->groups[g].options;

        lr    = own->lr_scale * (s->group_lr[g] < 0.0 ? lr : s->group_lr[g]);
        decay = own->weight_decay < 0.0 ? decay : own->weight_decay;
    }
    if ((m->tensors[t].flags & FSDP_TENSOR_NO_WEIGHT_DECAY) != 0) {
        decay = 0.0;
    }
    update_by(s, optimizer, t, lr, decay);
}

/* What no pass has used has a gradient of zero, where the options say so. */
static void clear_unused(serial_model *s, size_t optimizer)
{
    for (size_t t = 0; t < s->m->n_tensors && s->segment->options.unused == FSDP_UNUSED_ZERO; t++) {
        serial_tensor *tensor = &s->tensors[t];

        if (s->m->tensors[t].owner == t && has_gradient(s->m, t) && !tensor->has_gradient &&
            optimizer_of(s->m, t) == optimizer) {
            memset(tensor->gradient, 0, s->m->tensors[t].count * sizeof *tensor->gradient);
            tensor->has_gradient = true;
        }
    }
}

static void forget_gradient(serial_tensor *tensor)
{
    tensor->has_gradient = false;
    tensor->has_local    = false;
    tensor->has_partial  = false;
    tensor->divided      = false;
}

/* Those of one optimizer. Divisor and unscaling are over when no other has gradients. Returns whether that is so. */
static bool forget_gradients_of(serial_model *s, size_t optimizer)
{
    bool any = false;

    for (size_t t = 0; t < s->m->n_tensors; t++) {
        if (has_gradient(s->m, t) && optimizer_of(s->m, t) == optimizer) {
            forget_gradient(&s->tensors[t]);
        }
        any = any || s->tensors[t].has_gradient || s->tensors[t].has_local || s->tensors[t].has_partial;
    }
    s->divisor  = any ? s->divisor : 0.0;
    s->unscaled = any && s->unscaled;
    return !any;
}

void serial_step(serial_model *s, size_t optimizer)
{
    serial_divide(s);
    if (s->m->scales) {
        serial_unscale(s);
    }
    s->stepped = !s->m->scales || s->finite;
    if (s->stepped) {
        s->steps[optimizer]++;
        clear_unused(s, optimizer);
        FOR_EACH_GRADIENT(s, t)
        {
            if (optimizer_of(s->m, t) == optimizer) {
                update_tensor(s, optimizer, t);
            }
        }
    }
    if (forget_gradients_of(s, optimizer) && s->m->scales) {
        update_scale(s);
    }
}

void serial_forget_gradients(serial_model *s)
{
    for (size_t t = 0; t < s->m->n_tensors; t++) {
        forget_gradient(&s->tensors[t]);
    }
    s->divisor  = 0.0;
    s->unscaled = false;
}
