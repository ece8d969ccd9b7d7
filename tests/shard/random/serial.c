#include "tests/shard/random/serial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/random.h"
#include "tests/shard/random/numbers.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static float *take(float **rest, size_t count)
{
    float *taken = *rest;

    *rest += count;
    return taken;
}

static void divide_memory(serial_model *s)
{
    float *rest = s->memory;

    for (size_t t = 0; t < s->m->n_tensors; t++) {
        const size_t   n      = s->m->tensors[t].count;
        serial_tensor *tensor = &s->tensors[t];

        tensor->master   = take(&rest, n);
        tensor->gradient = take(&rest, n);
        tensor->first    = take(&rest, n);
        tensor->second   = take(&rest, n);
        tensor->view     = take(&rest, n);
        tensor->means    = take(&rest, n);
        for (int r = 0; r < MOST_RANKS; r++) {
            tensor->local[r]  = take(&rest, n);
            tensor->buffer[r] = take(&rest, n);
            tensor->pass[r]   = take(&rest, n);

            tensor->partial[r] = take(&rest, n);
        }
    }
}

static float initial_value(const random_model *m, const planned_tensor *tensor, size_t i)
{
    const uint64_t stream = fsdp_random_stream(tensor->name);

    switch (tensor->fill) {
    case FSDP_FILL_NORMAL:
        return (float)(tensor->a + tensor->b * fsdp_random_normal(m->seed, stream, i));
    case FSDP_FILL_UNIFORM:
        return (float)(tensor->a + (tensor->b - tensor->a) * fsdp_random_uniform(m->seed, stream, i));
    case FSDP_FILL_CONSTANT:
    case FSDP_FILL_CALLBACK: /* which these models do not have */
        break;
    }
    return (float)tensor->a;
}

static void draw_initial_values(serial_model *s)
{
    for (size_t t = 0; t < s->m->n_tensors; t++) {
        for (size_t i = 0; i < s->m->tensors[t].count; i++) {
            s->tensors[t].master[i] = initial_value(s->m, &s->m->tensors[t], i);
            for (int r = 0; r < MOST_RANKS; r++) {
                s->tensors[t].buffer[r][i] = s->tensors[t].master[i];
            }
        }
    }
}

int serial_open(serial_model *s, const random_model *m)
{
    size_t n = 0;

    memset(s, 0, sizeof *s);
    s->m = m;
    for (size_t t = 0; t < m->n_tensors; t++) {
        n += m->tensors[t].count * (6 + 4 * MOST_RANKS);
    }
    s->memory = calloc(n, sizeof *s->memory);
    if (s->memory == NULL) {
        return -1;
    }
    divide_memory(s);
    draw_initial_values(s);
    s->scale = m->scaler.initial_scale;
    return 0;
}

void serial_close(serial_model *s)
{
    serial_forget_hook(s);
    free(s->memory);
    s->memory = NULL;
}

/* ---- configurations ---------------------------------------------------------------------------------------------- */

/* Rank 0's are saved, and every rank loads them. */
static void round_buffers(serial_model *s, bool first)
{
    for (size_t t = 0; t < s->m->n_tensors; t++) {
        const fsdp_dtype dtype = type_of_view(s->m, &s->segment->options, t);

        for (size_t i = 0; is_ignored(s->m, t) && i < s->m->tensors[t].count; i++) {
            const float saved = s->tensors[t].buffer[0][i];

            for (int r = 0; r < MOST_RANKS; r++) {
                s->tensors[t].buffer[r][i] = nearest_of(dtype, first ? s->tensors[t].buffer[r][i] : saved);
            }
        }
    }
}

void serial_begin_segment(serial_model *s, const planned_segment *segment)
{
    const bool first = s->segment == NULL;

    s->segment  = segment;
    s->syncs    = true;
    s->in_group = false;
    s->absent   = -1;
    for (size_t k = 0; k < s->m->n_optimizers; k++) {
        s->lr[k] = s->m->optimizers[k].options.lr;
    }
    for (size_t g = 0; g < s->m->n_groups; g++) {
        s->group_lr[g] = s->m->groups[g].options.lr;
    }
    serial_forget_gradients(s);
    serial_forget_hook(s);
    round_buffers(s, first);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static void gather(serial_model *s, size_t unit)
{
    for (size_t t = s->m->units[unit].first; t < s->m->units[unit].end; t++) {
        const serial_tensor *owner = &s->tensors[s->m->tensors[t].owner];
        const fsdp_dtype     dtype = type_of_view(s->m, &s->segment->options, t);

        for (size_t i = 0; !is_quantized(s, t) && !is_ignored(s->m, t) && i < s->m->tensors[t].count; i++) {
            owner->view[i] = nearest_of(dtype, owner->master[i]);
        }
    }
    serial_gather_quantized(s, unit);
}

static const float *values_on(const serial_model *s, size_t t, int rank)
{
    const serial_tensor *owner = &s->tensors[s->m->tensors[t].owner];

    return is_ignored(s->m, t) ? owner->buffer[rank] : owner->view;
}

static void run_forward(serial_model *s, size_t unit)
{
    double shared = 0.0;

    for (size_t t = s->m->units[unit].first; t < s->m->units[unit].end; t++) {
        shared += is_ignored(s->m, t) ? 0.0 : tensor_output(s->m, t, values_on(s, t, 0));
    }
    for (int r = 0; r < s->segment->size; r++) {
        double own = 0.0;

        for (size_t t = s->m->units[unit].first; t < s->m->units[unit].end; t++) {
            own += is_ignored(s->m, t) ? tensor_output(s->m, t, values_on(s, t, r)) : 0.0;
        }
        forward_unit(&s->ranks[r], unit, shared + own);
    }
}

/* Adds to the views of all ranks what the program adds to them: of its early tensors, or of the others. */
static void add_gradients(serial_model *s, size_t unit, bool early)
{
    const random_model *m     = s->m;
    const fsdp_dtype    dtype = s->segment->options.reduce_dtype;
    const size_t        pass  = s->pass_of[unit];

    for (size_t t = m->units[unit].first; t < m->units[unit].end; t++) {
        if (!has_gradient(m, t) || is_early(t, pass) != early) {
            continue;
        }
        for (int r = 0; r < s->segment->size; r++) {
            float       *view = s->tensors[m->tensors[t].first].pass[r];
            const float *w    = values_on(s, t, r);

            for (size_t i = 0; i < m->tensors[t].count && r != s->absent; i++) {
                const float more = gradient_of(m, &s->ranks[r], t, i, w[i], r, pass, m->scales ? s->scale : 1.0);

                view[i] = nearest_of(dtype, view[i] + more);
            }
        }
    }
}

/* The first element of the unit's first gradient, on one rank. */
static void overflow_on(serial_model *s, size_t unit, int rank)
{
    for (size_t t = s->m->units[unit].first; t < s->m->units[unit].end; t++) {
        if (has_gradient(s->m, t)) {
            s->tensors[s->m->tensors[t].first].pass[rank][0] = INFINITY;
            return;
        }
    }
}

static void begin_backward(serial_model *s, const planned_op *op)
{
    for (size_t t = s->m->units[op->unit].first; t < s->m->units[op->unit].end; t++) {
        for (int r = 0; r < MOST_RANKS; r++) {
            memset(s->tensors[t].pass[r], 0, s->m->tensors[t].count * sizeof(float));
        }
    }
    s->pass_of[op->unit] = s->passes++;
    add_gradients(s, op->unit, true);
    if (op->n > 0) {
        overflow_on(s, op->unit, (int)op->n - 1);
    }
}

float serial_term(const serial_model *s, size_t name, int rank, size_t i)
{
    const serial_tensor *owner = &s->tensors[s->m->tensors[name].owner];
    const float          own   = s->tensors[name].pass[rank][i];

    return owner->has_local ? nearest_of(s->segment->options.reduce_dtype, owner->local[rank][i] + own) : own;
}

/* Multiplied in f32 by ranks / divisor. */
void serial_add_means(serial_model *s, size_t name, const float *means)
{
    serial_tensor *owner   = &s->tensors[s->m->tensors[name].owner];
    const double   divisor = owner->divided ? s->divisor : s->segment->options.gradient_divisor;
    const float    factor  = (float)serial_factor(s, divisor);

    for (size_t i = 0; i < s->m->tensors[name].count; i++) {
        const float term = means[i] * factor;

        owner->gradient[i] = owner->has_gradient ? owner->gradient[i] + term : term;
    }
    owner->has_local    = false;
    owner->has_gradient = true;
}

/* What the groups have, with what passes within them have left. */
static void add_partials(const serial_model *s, const serial_tensor *owner, size_t i, float *sums)
{
    const int n = s->segment->size / serial_group_size(s->segment);

    for (int g = 0; g < n && owner->has_partial; g++) {
        const float sum = owner->partial[g][i] + sums[g];

        sums[g] = s->in_group ? sum : nearest_of(s->segment->options.reduce_dtype, sum);
    }
}

/* Within the groups, and, unless the present pass ends there, over them. */
static void reduce_by_groups(serial_model *s, size_t name)
{
    serial_tensor   *owner = &s->tensors[s->m->tensors[name].owner];
    const fsdp_dtype dtype = s->segment->options.reduce_dtype;
    float           *means = s->tensors[name].means;

    for (size_t i = 0; i < s->m->tensors[name].count; i++) {
        float terms[MOST_RANKS], sums[MOST_RANKS];

        for (int r = 0; r < s->segment->size; r++) {
            terms[r] = serial_term(s, name, r, i);
        }
        serial_sums_of_groups(s->segment, terms, dtype, sums);
        add_partials(s, owner, i, sums);
        for (int g = 0; g < s->segment->size / serial_group_size(s->segment); g++) {
            owner->partial[g][i] = sums[g];
        }
        means[i] = serial_mean_of_sums(s->segment, sums, dtype);
    }
    owner->has_partial = s->in_group;
    if (s->in_group) {
        owner->has_local = false;
    } else {
        serial_add_means(s, name, means);
    }
}

static void reduce_tensor(serial_model *s, size_t name)
{
    float *means = s->tensors[name].means;

    if (serial_has_groups(s->segment)) {
        reduce_by_groups(s, name);
        return;
    }
    for (size_t i = 0; i < s->m->tensors[name].count; i++) {
        float terms[MOST_RANKS];

        for (int r = 0; r < s->segment->size; r++) {
            terms[r] = serial_term(s, name, r, i);
        }
        means[i] = serial_mean(s->segment, terms, s->segment->options.reduce_dtype);
    }
    serial_add_means(s, name, means);
}

static void keep_local(serial_model *s, size_t name)
{
    serial_tensor *owner = &s->tensors[s->m->tensors[name].owner];

    for (int r = 0; r < s->segment->size; r++) {
        for (size_t i = 0; i < s->m->tensors[name].count; i++) {
            const float own = s->tensors[name].pass[r][i];

            owner->local[r][i] = owner->has_local ? owner->local[r][i] + own : own;
        }
    }
    owner->has_local = true;
}

static void reduce_unit(serial_model *s, size_t unit)
{
    for (size_t t = s->m->units[unit].first; t < s->m->units[unit].end; t++) {
        if (has_gradient(s->m, t) && s->m->tensors[t].first == t) {
            if (s->syncs) {
                reduce_tensor(s, t);
            } else {
                keep_local(s, t);
            }
        }
    }
}

static void end_backward(serial_model *s, size_t unit)
{
    add_gradients(s, unit, false);
    if (s->syncs && serial_uses_int8(s->segment)) {
        serial_reduce_by_int8(s, unit);
    } else {
        reduce_unit(s, unit);
    }
}

/* ---- between passes ---------------------------------------------------------------------------------------------- */

static void set_buffers(serial_model *s)
{
    for (size_t t = 0; t < s->m->n_tensors; t++) {
        const fsdp_dtype dtype = type_of_view(s->m, &s->segment->options, t);

        for (int r = 0; is_ignored(s->m, t) && s->m->tensors[t].owner == t && r < s->segment->size; r++) {
            for (size_t i = 0; i < s->m->tensors[t].count; i++) {
                float *x = &s->tensors[t].buffer[r][i];

                *x = nearest_of(dtype, next_buffer_value(s->m->seed, t, i, *x, r));
            }
        }
    }
}

static void import(serial_model *s, const planned_op *op)
{
    const size_t     t     = s->m->tensors[op->n].owner;
    const fsdp_dtype dtype = type_of_view(s->m, &s->segment->options, t);

    for (size_t i = 0; i < s->m->tensors[t].count; i++) {
        const float x = imported_value(s->m->seed, t, i, s->passes);

        s->tensors[t].master[i] = x;
        for (int r = 0; r < MOST_RANKS; r++) {
            s->tensors[t].buffer[r][i] = nearest_of(dtype, x);
        }
    }
}

static void set_rate(serial_model *s, const planned_op *op)
{
    if (op->n == 0) {
        s->lr[op->unit] = op->value;
    } else {
        s->group_lr[op->n - 1] = op->value;
    }
}

static void forget_all_activations(serial_model *s)
{
    for (int r = 0; r < s->segment->size; r++) {
        forget_activations(&s->ranks[r], s->m->seed, r, s->passes);
    }
}

static void do_pass(serial_model *s, const planned_op *op)
{
    if (op->kind == OP_BEGIN_FORWARD || op->kind == OP_BEGIN_BACKWARD) {
        gather(s, op->unit);
        s->open[op->unit] = true;
    }
    if (op->kind == OP_BEGIN_FORWARD) {
        run_forward(s, op->unit);
    } else if (op->kind == OP_BEGIN_BACKWARD) {
        begin_backward(s, op);
    } else if (op->kind == OP_END_BACKWARD) {
        end_backward(s, op->unit);
    }
    if (op->kind == OP_END_FORWARD || op->kind == OP_END_BACKWARD) {
        s->open[op->unit] = false;
    }
}

void serial_do(serial_model *s, const planned_op *op)
{
    switch (op->kind) {
    case OP_FORGET:
        forget_all_activations(s);
        break;
    case OP_BEGIN_FORWARD:
    case OP_END_FORWARD:
    case OP_BEGIN_BACKWARD:
    case OP_END_BACKWARD:
        do_pass(s, op);
        break;
    case OP_SYNC:
        s->syncs    = op->n != FSDP_SYNC_NONE;
        s->in_group = op->n == FSDP_SYNC_GROUP;
        break;
    case OP_BEGIN_ABSENT:
        s->absent = op->root;
        break;
    case OP_END_ABSENT:
        s->absent = -1;
        break;
    case OP_DIVISOR:
        s->divisor = op->value;
        break;
    case OP_NORM:
        serial_norms(s, op);
        break;
    case OP_SCALE:
        serial_scale(s, op->value);
        break;
    case OP_ZERO_GRAD:
    case OP_RECOVER:
        memset(s->open, 0, sizeof s->open);
        serial_forget_gradients(s);
        break;
    case OP_UNSCALE:
        serial_unscale(s);
        break;
    case OP_CLIP_NORM:
    case OP_CLIP_NORM_INF:
    case OP_CLIP_VALUE:
        serial_clip(s, op);
        break;
    case OP_STEP:
        serial_step(s, op->n);
        break;
    case OP_SET_RATE:
        set_rate(s, op);
        break;
    case OP_SET_BUFFERS:
        set_buffers(s);
        break;
    case OP_IMPORT:
        import(s, op);
        break;
    case OP_KEEP:
    case OP_EXPORT:
    case OP_FAIL:
        break;
    }
}
