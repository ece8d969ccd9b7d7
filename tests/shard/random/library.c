#include "tests/shard/random/library.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/random/numbers.h"
#include "tests/shard/random/own_optimizer.h"
#include "tests/shard/random/saved_files.h"

typedef struct library_run {
    const random_model    *m;
    const planned_segment *segment;
    serial_model           serial;
    const char            *folder, *repeat;
    int                    rank;
    size_t                 number, op; /* of the segment, and in it */
    MPI_Comm               comm;
    fsdp_context          *ctx;
    fsdp_model            *model;
    fsdp_unit             *units[MOST_UNITS];
    fsdp_optimizer        *optimizers[MOST_OPTIMIZERS];
    own_optimizer          own[MOST_OPTIMIZERS];
    fsdp_loss_scaler      *scaler;
    fsdp_hook             *hook;
    int                    hook_rank; /* among those that the hook averages over */
    bool                   absent;
    activations            a;
    size_t                 passes, pass_of[MOST_UNITS];
    uint64_t               hash; /* of what was saved last */
    size_t                 differences;
    char                  *finding;
    float                 *scratch;
} library_run;

/* ---- findings ---------------------------------------------------------------------------------------------------- */

static void say_where(const library_run *r, char *text, size_t size)
{
    char op[160] = "at its end";

    if (r->op < r->segment->n_ops) {
        describe_op(r->m, &r->segment->ops[r->op], op, sizeof op);
    }
    (void)snprintf(text, size, "rank %d, configuration %zu, op %zu (%s)", r->rank, r->number, r->op, op);
}

/* Counts a difference; says what the first one is. */
static void __attribute__((format(printf, 2, 3))) differ(library_run *r, const char *format, ...)
{
    char    where[256], what[200];
    va_list values;

    if (r->differences++ > 0) {
        return;
    }
    va_start(values, format);
    (void)vsnprintf(what, sizeof what, format, values);
    va_end(values);
    say_where(r, where, sizeof where);
    (void)snprintf(r->finding, FINDING_BYTES, "%s: %s", where, what);
}

/* A call that must succeed: the other ranks would wait for this one. */
static void must(library_run *r, fsdp_status status, const char *call)
{
    char where[256];

    if (status == FSDP_OK) {
        return;
    }
    say_where(r, where, sizeof where);
    (void)fprintf(stderr, "%s: %s returned %s: %s\nrepeat with %s\n", where, call, fsdp_status_name(status),
                  fsdp_last_error(r->ctx), r->repeat);
    describe_random_model(stderr, r->m);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

#define MUST(r, call) must((r), (call), #call)

/* Bitwise, unless the model's results are not exact. */
static int agrees(const library_run *r, double found, double expected)
{
    return same_double(found, expected) ||
           (r->m->approximate && fabs(found - expected) <= TOLERANCE * (1.0 + fabs(expected)));
}

static void compare(library_run *r, size_t t, const char *what, const float *found, const float *expected)
{
    for (size_t i = 0; i < r->m->tensors[t].count; i++) {
        if (!agrees(r, (double)found[i], (double)expected[i])) {
            differ(r, "%s %s[%zu] is %a instead of %a", what, r->m->tensors[t].name, i, (double)found[i],
                   (double)expected[i]);
            return;
        }
    }
}

static void compare_number(library_run *r, const char *what, double found, double expected)
{
    if (!agrees(r, found, expected)) {
        differ(r, "%s is %a instead of %a", what, found, expected);
    }
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static size_t place_of(const library_run *r, size_t t)
{
    return t - r->m->units[r->m->tensors[t].unit].first;
}

static fsdp_unit *unit_of(const library_run *r, size_t t)
{
    return r->units[r->m->tensors[t].unit];
}

/* Into `scratch`. */
static const float *read_view(library_run *r, size_t t, fsdp_dtype dtype, const void *view)
{
    if (view == NULL) {
        must(r, FSDP_ERR_STATE, "fsdp_unit_param, fsdp_unit_grad or fsdp_unit_buffer");
        return r->scratch;
    }
    for (size_t i = 0; i < r->m->tensors[t].count; i++) {
        r->scratch[i] = read_element(dtype, view, i);
    }
    return r->scratch;
}

static const float *read_parameter(library_run *r, size_t t)
{
    return read_view(r, t, type_of_view(r->m, &r->segment->options, t), fsdp_unit_param(unit_of(r, t), place_of(r, t)));
}

static void compare_parameters(library_run *r, size_t unit)
{
    for (size_t t = r->m->units[unit].first; t < r->m->units[unit].end; t++) {
        const serial_tensor *owner = &r->serial.tensors[r->m->tensors[t].owner];

        compare(r, t, "parameter", read_parameter(r, t), is_ignored(r->m, t) ? owner->buffer[r->rank] : owner->view);
    }
}

static void compare_gradients(library_run *r, size_t unit)
{
    for (size_t t = r->m->units[unit].first; t < r->m->units[unit].end; t++) {
        if (has_gradient(r->m, t)) {
            const fsdp_dtype dtype = r->segment->options.reduce_dtype;
            const float     *found = read_view(r, t, dtype, fsdp_unit_grad(unit_of(r, t), place_of(r, t)));

            compare(r, t, "gradient view of", found, r->serial.tensors[r->m->tensors[t].first].pass[r->rank]);
        }
    }
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static void add_gradients(library_run *r, size_t unit, bool early)
{
    const random_model *m     = r->m;
    const fsdp_dtype    dtype = r->segment->options.reduce_dtype;
    const size_t        pass  = r->pass_of[unit];
    const double        scale = m->scales ? fsdp_loss_scaler_scale(r->scaler) : 1.0;

    for (size_t t = m->units[unit].first; t < m->units[unit].end; t++) {
        if (!has_gradient(m, t) || is_early(t, pass) != early) {
            continue;
        }
        const float *w    = read_parameter(r, t);
        void        *view = fsdp_unit_grad(unit_of(r, t), place_of(r, t));
        for (size_t i = 0; i < m->tensors[t].count; i++) {
            const float more = gradient_of(m, &r->a, t, i, w[i], r->rank, pass, scale);

            write_element(dtype, view, i, read_element(dtype, view, i) + more);
        }
    }
}

static void overflow(const library_run *r, size_t unit)
{
    for (size_t t = r->m->units[unit].first; t < r->m->units[unit].end; t++) {
        if (has_gradient(r->m, t)) {
            write_element(r->segment->options.reduce_dtype, fsdp_unit_grad(unit_of(r, t), place_of(r, t)), 0, INFINITY);
            return;
        }
    }
}

static void begin_forward(library_run *r, size_t unit)
{
    double shared = 0.0, own = 0.0;

    MUST(r, fsdp_unit_begin_forward(r->units[unit]));
    compare_parameters(r, unit);
    for (size_t t = r->m->units[unit].first; t < r->m->units[unit].end; t++) {
        *(is_ignored(r->m, t) ? &own : &shared) += tensor_output(r->m, t, read_parameter(r, t));
    }
    forward_unit(&r->a, unit, shared + own);
    compare_number(r, "the loss", r->a.x, r->serial.ranks[r->rank].x);
}

static void end_forward(library_run *r, size_t unit)
{
    compare_parameters(r, unit);
    MUST(r, fsdp_unit_end_forward(r->units[unit]));
}

static void begin_backward(library_run *r, const planned_op *op)
{
    MUST(r, fsdp_unit_begin_backward(r->units[op->unit]));
    compare_parameters(r, op->unit);
    r->pass_of[op->unit] = r->passes++;
    add_gradients(r, op->unit, true);
    if (op->n == (size_t)r->rank + 1) {
        overflow(r, op->unit);
    }
    compare_gradients(r, op->unit);
}

static void end_backward(library_run *r, size_t unit)
{
    add_gradients(r, unit, false);
    compare_parameters(r, unit);
    compare_gradients(r, unit);
    MUST(r, fsdp_unit_end_backward(r->units[unit]));
}

/* ---- between passes ---------------------------------------------------------------------------------------------- */

static void unscale(library_run *r)
{
    int finite = -1;

    MUST(r, fsdp_loss_scaler_unscale(r->scaler, &finite));
    compare_number(r, "whether all gradients are finite", finite, r->serial.finite);
}

static void clip(library_run *r, const planned_op *op)
{
    double norm = -1.0;

    if (op->kind == OP_CLIP_VALUE) {
        MUST(r, fsdp_clip_grad_value(r->model, op->value));
        return;
    }
    if (op->kind == OP_CLIP_NORM) {
        MUST(r, fsdp_clip_grad_norm(r->model, op->value, &norm));
    } else {
        MUST(r, fsdp_clip_grad_norm_inf(r->model, op->value, &norm));
    }
    compare_number(r, "the norm", norm, r->serial.norm);
}

static void take_norms(library_run *r, const planned_op *op)
{
    fsdp_tensor_norm norms[MOST_TENSORS];
    size_t           n, at = 0;
    double           norm = -1.0;

    MUST(r, fsdp_grad_norm(&r->model, 1, &norm));
    compare_number(r, "the norm", norm, r->serial.norm);
    MUST(r, fsdp_grad_norm_per_tensor(r->model, norms, MOST_TENSORS, &n));
    for (size_t t = 0; t < r->m->n_tensors && r->differences == 0; t++) {
        if (r->m->tensors[t].owner == t && has_gradient(r->m, t)) {
            compare_number(r, norms[at].name, norms[at].norm, r->serial.tensors[t].norm);
            at++;
        }
    }
    compare_number(r, "the number of norms", (double)n, (double)at);
    MUST(r, fsdp_clip_grad_with_norm(r->model, op->value, norm));
}

static void step(library_run *r, size_t k)
{
    int stepped = 1;

    if (r->m->scales) {
        MUST(r, fsdp_loss_scaler_step(r->scaler, r->optimizers[k], &stepped));
        compare_number(r, "the scale", fsdp_loss_scaler_scale(r->scaler), r->serial.scale);
    } else {
        MUST(r, fsdp_optimizer_step(r->optimizers[k]));
    }
    compare_number(r, "whether the step was taken", stepped, r->serial.stepped);
    compare_number(r, "the number of steps", (double)fsdp_optimizer_steps(r->optimizers[k]),
                   (double)r->serial.steps[k]);
}

static void set_buffers(library_run *r)
{
    for (size_t t = 0; t < r->m->n_tensors; t++) {
        const fsdp_dtype dtype = type_of_view(r->m, &r->segment->options, t);
        void            *buffer =
            is_ignored(r->m, t) && r->m->tensors[t].owner == t ? fsdp_unit_buffer(unit_of(r, t), place_of(r, t)) : NULL;

        for (size_t i = 0; buffer != NULL && i < r->m->tensors[t].count; i++) {
            write_element(dtype, buffer, i,
                          next_buffer_value(r->m->seed, t, i, read_element(dtype, buffer, i), r->rank));
        }
    }
}

static void export_tensor(library_run *r, const planned_op *op)
{
    const planned_tensor *tensor = &r->m->tensors[op->n];
    const serial_tensor  *owner  = &r->serial.tensors[tensor->owner];

    MUST(r, fsdp_tensor_export(r->model, tensor->name, op->root, r->rank == op->root ? r->scratch : NULL,
                               tensor->count * sizeof(float)));
    if (r->rank == op->root) {
        compare(r, op->n, "export of", r->scratch, is_ignored(r->m, op->n) ? owner->buffer[r->rank] : owner->master);
    }
}

static void import_tensor(library_run *r, const planned_op *op)
{
    const planned_tensor *tensor = &r->m->tensors[op->n];

    for (size_t i = 0; i < tensor->count; i++) {
        r->scratch[i] = imported_value(r->m->seed, tensor->owner, i, r->passes);
    }
    MUST(r, fsdp_tensor_import(r->model, tensor->name, op->root, r->rank == op->root ? r->scratch : NULL,
                               tensor->count * sizeof(float)));
}

static void set_rate(library_run *r, const planned_op *op)
{
    if (op->n == 0) {
        MUST(r, fsdp_optimizer_set_lr(r->optimizers[op->unit], op->value));
    } else {
        MUST(r, fsdp_optimizer_set_group_lr(r->optimizers[op->unit], r->m->groups[op->n - 1].pattern, op->value));
    }
}

/* Whatever it returns: the next call of all is fsdp_model_zero_grad(). */
static void fail_on_purpose(library_run *r, const planned_op *op)
{
    if (op->n == 0 && r->rank == op->root) {
        (void)(r->serial.open[op->unit] ? fsdp_unit_end_forward(r->units[op->unit])
                                        : fsdp_unit_end_backward(r->units[op->unit]));
    } else if (op->n == 1) {
        (void)(r->rank == op->root ? fsdp_unit_begin_backward(r->units[op->unit])
                                   : fsdp_unit_begin_forward(r->units[op->unit]));
    }
}

static void do_op(library_run *r, const planned_op *op)
{
    if (r->absent && op->kind != OP_END_ABSENT) {
        r->passes += op->kind == OP_BEGIN_BACKWARD; /* nothing else of what the others do */
        return;
    }
    switch (op->kind) {
    case OP_FORGET:
        forget_activations(&r->a, r->m->seed, r->rank, r->passes);
        break;
    case OP_BEGIN_FORWARD:
        begin_forward(r, op->unit);
        break;
    case OP_END_FORWARD:
        end_forward(r, op->unit);
        break;
    case OP_BEGIN_BACKWARD:
        begin_backward(r, op);
        break;
    case OP_END_BACKWARD:
        end_backward(r, op->unit);
        break;
    case OP_SYNC:
        MUST(r, fsdp_model_set_sync(r->model, (int)op->n));
        break;
    case OP_KEEP:
        MUST(r, fsdp_model_keep_gathered(r->model, op->n != 0));
        break;
    case OP_BEGIN_ABSENT:
        r->absent = r->rank == op->root;
        if (r->absent) {
            MUST(r, fsdp_model_replay(r->model));
        }
        break;
    case OP_END_ABSENT:
        r->absent = false;
        break;
    case OP_DIVISOR:
        MUST(r, fsdp_model_set_gradient_divisor(r->model, op->value));
        break;
    case OP_NORM:
        take_norms(r, op);
        break;
    case OP_SCALE:
        MUST(r, fsdp_scale_grad(r->model, op->value));
        break;
    case OP_ZERO_GRAD:
        MUST(r, fsdp_model_zero_grad(r->model));
        break;
    case OP_UNSCALE:
        unscale(r);
        break;
    case OP_CLIP_NORM:
    case OP_CLIP_NORM_INF:
    case OP_CLIP_VALUE:
        clip(r, op);
        break;
    case OP_STEP:
        step(r, op->n);
        break;
    case OP_SET_RATE:
        set_rate(r, op);
        break;
    case OP_SET_BUFFERS:
        set_buffers(r);
        break;
    case OP_EXPORT:
        export_tensor(r, op);
        break;
    case OP_IMPORT:
        import_tensor(r, op);
        break;
    case OP_FAIL:
        fail_on_purpose(r, op);
        break;
    case OP_RECOVER:
        (void)fsdp_model_zero_grad(r->model);
        break;
    }
}

/* ---- a configuration --------------------------------------------------------------------------------------------- */

static void add_unit(library_run *r, size_t u)
{
    const planned_unit *unit = &r->m->units[u];
    fsdp_tensor         tensors[MOST_TENSORS];

    memset(tensors, 0, sizeof tensors);
    for (size_t t = unit->first; t < unit->end; t++) {
        const planned_tensor *from = &r->m->tensors[t];
        fsdp_tensor          *to   = &tensors[t - unit->first];

        to->name   = from->name;
        to->n_dims = from->n_dims;
        to->dtype  = from->dtype;
        to->fill   = from->fill;
        to->a      = from->a;
        to->b      = from->b;
        to->flags  = from->flags;
        memcpy(to->shape, from->shape, sizeof to->shape);
        to->tied_to = from->owner != t ? r->m->tensors[from->owner].name : NULL;
    }
    MUST(r, fsdp_unit_add(r->model, unit->name, tensors, unit->end - unit->first, &r->units[u]));
    if (r->segment->strategies[u] >= 0) {
        MUST(r, fsdp_unit_set_strategy(r->units[u], (fsdp_strategy)r->segment->strategies[u]));
    }
}

/* The group of tensors of an optimizer that has one. */
static void add_group(library_run *r, size_t k)
{
    const planned_optimizer *planned = &r->m->optimizers[k];
    fsdp_model_group         group   = FSDP_MODEL_GROUP_DEFAULT;

    if (planned->pattern == NULL) {
        return;
    }
    group.granularity  = r->segment->granularities[k];
    group.optimizer    = planned->custom ? FSDP_CUSTOM : planned->options.kind;
    group.n_states     = planned->custom ? own_states(planned->options.kind) : 0;
    group.moment_dtype = planned->options.moment_dtype;
    MUST(r, fsdp_model_add_group(r->model, planned->pattern, &group));
}

static void make_optimizer(library_run *r, size_t k)
{
    const planned_optimizer *planned = &r->m->optimizers[k];
    fsdp_optimizer_options   options = planned->options;

    if (planned->custom) {
        own_optimizer_init(&r->own[k], r->ctx, &planned->options, &options);
    }
    options.group = planned->pattern;
    MUST(r, fsdp_optimizer_create(r->model, &options, &r->optimizers[k]));
}

static fsdp_status call_before(void *state, const fsdp_gradient *gradient)
{
    for (size_t i = 0; i < gradient->count; i++) {
        gradient->values[i] = before_hook(gradient->values[i], *(const int *)state);
    }
    return FSDP_OK;
}

static fsdp_status call_after(void *state, const fsdp_gradient *gradient)
{
    (void)state;
    for (size_t i = 0; i < gradient->count; i++) {
        gradient->values[i] = after_hook(gradient->values[i]);
    }
    return FSDP_OK;
}

static void set_hook(library_run *r)
{
    const int              group = serial_group_size(r->segment);
    fsdp_hook_callbacks    callbacks;
    fsdp_int8_options      int8;
    fsdp_power_sgd_options power_sgd;

    r->hook = NULL;
    if (r->segment->hook == HOOK_NONE) {
        return;
    }
    r->hook_rank = r->segment->options.strategy == FSDP_NO_SHARD ? r->rank : r->rank / group;
    fsdp_hook_callbacks_init(&callbacks);
    fsdp_int8_options_init(&int8);
    fsdp_power_sgd_options_init(&power_sgd);
    power_sgd.rank      = 2;
    power_sgd.min_ratio = 1.0;
    int8.block          = INT8_BLOCK;
    callbacks.before    = call_before;
    callbacks.after     = call_after;
    callbacks.state     = &r->hook_rank;
    if (r->segment->hook == HOOK_CUSTOM) {
        MUST(r, fsdp_hook_custom(r->ctx, &callbacks, &r->hook));
    } else if (r->segment->hook == HOOK_POWER_SGD) {
        MUST(r, fsdp_hook_power_sgd(r->ctx, &power_sgd, &r->hook));
    } else if (r->segment->hook == HOOK_INT8) {
        MUST(r, fsdp_hook_int8(r->ctx, &int8, &r->hook));
    } else {
        MUST(r, fsdp_hook_half(r->ctx, r->segment->hook == HOOK_BF16 ? FSDP_BF16 : FSDP_F16, &r->hook));
    }
    MUST(r, fsdp_model_set_hook(r->model, r->hook));
}

static void open_segment(library_run *r)
{
    const random_model *m = r->m;

    MUST(r, fsdp_init(r->comm, &r->segment->config, &r->ctx));
    MUST(r, fsdp_model_create(r->ctx, &r->segment->options, &r->model));
    for (size_t u = 0; u < m->n_units; u++) {
        add_unit(r, u);
    }
    for (size_t k = 0; k < m->n_optimizers; k++) {
        add_group(r, k);
    }
    MUST(r, fsdp_model_commit(r->model));
    for (size_t k = 0; k < m->n_optimizers; k++) {
        make_optimizer(r, k);
    }
    for (size_t g = 0; g < m->n_groups; g++) {
        MUST(r, fsdp_optimizer_add_group(r->optimizers[m->groups[g].optimizer], m->groups[g].pattern,
                                         &m->groups[g].options));
    }
    if (m->scales) {
        MUST(r, fsdp_loss_scaler_create(r->model, &m->scaler, &r->scaler));
    }
    set_hook(r);
}

static void load(library_run *r)
{
    fsdp_checkpoint_state state;
    uint64_t              hash;

    MUST(r, fsdp_checkpoint_load(r->model, r->optimizers[0], r->folder, NULL, &state));
    compare_number(r, "the step that was saved", (double)state.step, (double)r->number);
    MUST(r, fsdp_model_hash(r->model, &hash));
    if (hash != r->hash) {
        differ(r, "the hash of what was loaded is not that of what was saved");
    }
}

static void save(library_run *r)
{
    fsdp_checkpoint_state state = {.step = r->number + 1};
    fsdp_checkpoint      *checkpoint;

    MUST(r, fsdp_model_hash(r->model, &r->hash));
    MUST(r, fsdp_checkpoint_open(r->model, r->optimizers[0], r->folder, &r->segment->checkpoint, &checkpoint));
    if (r->segment->checkpoint.asynchronous) {
        MUST(r, fsdp_checkpoint_save_async(checkpoint, &state));
        MUST(r, fsdp_checkpoint_wait(checkpoint));
    } else {
        MUST(r, fsdp_checkpoint_save(checkpoint, &state));
    }
    MUST(r, fsdp_checkpoint_close(checkpoint));
}

static void close_segment(library_run *r)
{
    fsdp_model_destroy(r->model);
    fsdp_hook_destroy(r->hook);
    MUST(r, fsdp_finalize(r->ctx));
    r->ctx = NULL;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* `suffix`: NULL, or that of an array of the optimizer's. */
static void compare_saved(library_run *r, const char *checkpoint, size_t t, const char *suffix, const float *expected)
{
    const size_t n = r->m->tensors[t].count;
    fsdp_dtype   dtype;
    char         name[64];

    (void)snprintf(name, sizeof name, "%s%s", r->m->tensors[t].name, suffix != NULL ? suffix : "");
    const size_t found =
        read_saved_tensor(checkpoint, suffix != NULL ? "optimizer" : "model", name, r->scratch, n, &dtype);
    if (found != n) {
        differ(r, "%s has %zu elements in the files instead of %zu", name, found, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const float rounded = suffix == NULL ? nearest_of(dtype, expected[i]) : expected[i];

        if (!agrees(r, (double)r->scratch[i], (double)rounded)) {
            differ(r, "%s[%zu] is %a in the files instead of %a", name, i, (double)r->scratch[i], (double)rounded);
            return;
        }
    }
}

/* What a state of an optimizer is called in files; NULL if it has none of that number. */
static const char *name_of_state(const planned_optimizer *planned, size_t k)
{
    const fsdp_optimizer_kind kind = planned->options.kind;

    if (k >= own_states(kind)) {
        return NULL;
    }
    if (planned->custom) {
        return k == 0 ? "." OWN_FIRST : "." OWN_SECOND;
    }
    return kind == FSDP_SGD_MOMENTUM || kind == FSDP_MUON ? ".momentum_buffer" : k == 0 ? ".exp_avg" : ".exp_avg_sq";
}

static void compare_moments(library_run *r, const char *checkpoint, size_t t)
{
    const planned_optimizer *planned = &r->m->optimizers[optimizer_of(r->m, t)];
    const serial_tensor     *tensor  = &r->serial.tensors[t];

    for (size_t k = 0; k < 2 && name_of_state(planned, k) != NULL; k++) {
        compare_saved(r, checkpoint, t, name_of_state(planned, k), k == 0 ? tensor->first : tensor->second);
    }
}

/* What the last save has written; on one rank. */
static void compare_files(library_run *r)
{
    char checkpoint[1024];

    if (latest_checkpoint(r->folder, checkpoint, sizeof checkpoint) != 0) {
        differ(r, "%s has no checkpoint", r->folder);
        return;
    }
    for (size_t t = 0; t < r->m->n_tensors; t++) {
        const serial_tensor *tensor = &r->serial.tensors[t];

        if (r->m->tensors[t].owner != t) {
            continue;
        }
        compare_saved(r, checkpoint, t, NULL, is_ignored(r->m, t) ? tensor->buffer[0] : tensor->master);
        if (has_gradient(r->m, t)) {
            compare_moments(r, checkpoint, t);
        }
        if (!is_ignored(r->m, t) && r->segment->checkpoint.dtype == FSDP_BF16) {
            compare_saved(r, checkpoint, t, ".master", tensor->master);
        }
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void run_inside(library_run *r)
{
    open_segment(r);
    if (r->number > 0) {
        load(r);
    }
    for (r->op = 0; r->op < r->segment->n_ops; r->op++) {
        serial_do(&r->serial, &r->segment->ops[r->op]);
        do_op(r, &r->segment->ops[r->op]);
    }
    save(r);
    close_segment(r);
    if (r->rank == 0) {
        compare_files(r);
    }
}

/* Ranks that the configuration leaves out follow with the reference alone. */
static void run_outside(library_run *r)
{
    for (size_t i = 0; i < r->segment->n_ops; i++) {
        serial_do(&r->serial, &r->segment->ops[i]);
        r->passes += r->segment->ops[i].kind == OP_BEGIN_BACKWARD;
    }
}

static void run_segment(library_run *r)
{
    const int inside = r->rank < r->segment->size;

    serial_begin_segment(&r->serial, r->segment);
    r->op = r->segment->n_ops;
    MPI_Comm_split(MPI_COMM_WORLD, inside ? 0 : MPI_UNDEFINED, 0, &r->comm);
    if (inside) {
        run_inside(r);
        MPI_Comm_free(&r->comm);
    } else {
        run_outside(r);
    }
    MPI_Bcast(&r->hash, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
}

static float *make_scratch(const random_model *m)
{
    size_t most = 1;

    for (size_t t = 0; t < m->n_tensors; t++) {
        most = m->tensors[t].count > most ? m->tensors[t].count : most;
    }
    return malloc(most * sizeof(float));
}

size_t train_and_compare(const random_model *m, const char *folder, const char *repeat, char finding[FINDING_BYTES])
{
    library_run *r = calloc(1, sizeof *r);
    size_t       differences;

    finding[0] = '\0';
    if (r == NULL || serial_open(&r->serial, m) != 0 || (r->scratch = make_scratch(m)) == NULL) {
        (void)fprintf(stderr, "no memory for the reference\n");
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        exit(EXIT_FAILURE);
    }
    r->m       = m;
    r->folder  = folder;
    r->repeat  = repeat;
    r->finding = finding;
    MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
    for (size_t s = 0; s < m->n_segments; s++) {
        r->segment = &m->segments[s];
        r->number  = s;
        run_segment(r);
    }
    differences = r->differences;
    serial_close(&r->serial);
    free(r->scratch);
    free(r);
    return differences;
}
