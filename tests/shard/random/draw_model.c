/*
 * What a random model consists of, and the configurations that it is trained under. Each part has draws of its own, so that
 * leaving a feature out changes the rest as little as possible.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/random/numbers.h"
#include "tests/shard/random/random_model.h"

enum {
    PART_MODEL         = 1,
    PART_OPTIMIZER     = 2,
    PART_SEGMENTS      = 3,
    PART_APPROXIMATION = 4,
    PART_RATES         = 5,
    PART_SCALER        = 6,
    PART_GRANULARITY   = 50,
    PART_OPTIMIZERS    = 70,
    PART_UNITS         = 100
};

#define CHOOSE(draws, array) ((array)[draw_below((draws), sizeof(array) / sizeof((array)[0]))])

/* Draws in any case. */
static bool wants(const random_model *m, random_draws *d, feature which, unsigned percent)
{
    return draw_chance(d, percent) && (m->features >> which & 1) != 0;
}

static fsdp_dtype draw_type(random_draws *d)
{
    static const fsdp_dtype types[] = {FSDP_F32, FSDP_F32, FSDP_BF16, FSDP_F16};

    return CHOOSE(d, types);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static size_t draw_extent(random_draws *d)
{
    static const size_t extents[] = {1, 2, 3, 5, 7, 13, 16, 31, 64, 97};

    return CHOOSE(d, extents);
}

static void draw_shape(const random_model *m, random_draws *d, planned_tensor *tensor)
{
    tensor->n_dims = draw_below(d, 4); /* 0: a scalar */
    tensor->count  = 1;
    for (size_t k = 0; k < tensor->n_dims; k++) {
        tensor->shape[k] = draw_extent(d);
        if (tensor->count * tensor->shape[k] > 1500) {
            tensor->shape[k] = 1;
        }
        tensor->count *= tensor->shape[k];
    }
    const size_t more = 1000 + draw_below(d, 6000);
    if (wants(m, d, WITH_LARGE, 6)) {
        tensor->n_dims   = 1;
        tensor->shape[0] = tensor->count = more;
    }
}

static void draw_flags(const random_model *m, random_draws *d, planned_tensor *tensor)
{
    const bool frozen = wants(m, d, WITH_FROZEN, 12), ignored = wants(m, d, WITH_IGNORED, 8);

    tensor->flags = (draw_chance(d, 30) ? FSDP_TENSOR_NO_WEIGHT_DECAY : 0) | (frozen ? FSDP_TENSOR_FROZEN : 0) |
                    (ignored ? FSDP_TENSOR_IGNORED : 0);
    const fsdp_dtype dtype = draw_type(d);
    const bool       keep  = draw_chance(d, 15);
    tensor->dtype          = wants(m, d, WITH_TYPES, 20) ? dtype : FSDP_F32;
    tensor->flags |= keep && wants(m, d, WITH_TYPES, 100) ? FSDP_TENSOR_KEEP_DTYPE : 0;
}

static void draw_fill(random_draws *d, planned_tensor *tensor)
{
    tensor->fill = (fsdp_fill)draw_below(d, 3);
    tensor->a    = draw_uniform(d, -0.5, 0.5);
    tensor->b    = draw_uniform(d, 0.5, 1.5);
}

/* To any of the tensors before, which then have one owner. */
static void tie(random_model *m, planned_tensor *tensor, size_t to)
{
    const planned_tensor *owner = &m->tensors[m->tensors[to].owner];

    tensor->n_dims = owner->n_dims;
    tensor->count  = owner->count;
    memcpy(tensor->shape, owner->shape, sizeof tensor->shape);
    tensor->owner = m->tensors[to].owner;
}

static void draw_tensor(random_model *m, random_draws *d, size_t unit)
{
    const size_t    t      = m->n_tensors++;
    planned_tensor *tensor = &m->tensors[t];

    *tensor = (planned_tensor){.unit = unit, .owner = t, .first = t};
    (void)snprintf(tensor->name, sizeof tensor->name, "u%zu.w%zu", unit, t - m->units[unit].first);
    draw_shape(m, d, tensor);
    draw_flags(m, d, tensor);
    draw_fill(d, tensor);
    const size_t other = draw_below(d, 1000);
    if (wants(m, d, WITH_TIES, 25) && t > 0) {
        tie(m, tensor, other % t);
    }
    for (size_t k = t; k-- > m->units[unit].first;) {
        tensor->first = m->tensors[k].owner == tensor->owner ? k : tensor->first;
    }
}

static void draw_unit(random_model *m, size_t u)
{
    random_draws  d    = random_draws_of(m->seed, PART_UNITS + u);
    planned_unit *unit = &m->units[u];
    const size_t  n    = 1 + draw_below(&d, 6);
    const size_t  used = wants(m, &d, WITH_MANY_TENSORS, 100) ? n : 1;

    (void)snprintf(unit->name, sizeof unit->name, "u%zu", u);
    unit->first = m->n_tensors;
    for (size_t i = 0; i < used; i++) {
        draw_tensor(m, &d, u);
    }
    unit->end = m->n_tensors;
    for (size_t t = unit->first; t < unit->end; t++) {
        unit->trainable = unit->trainable || has_gradient(m, t);
    }
}

static bool has_trainable_unit(const random_model *m)
{
    for (size_t u = 0; u < m->n_units; u++) {
        if (m->units[u].trainable) {
            return true;
        }
    }
    return false;
}

static void draw_units(random_model *m)
{
    random_draws d = random_draws_of(m->seed, PART_MODEL);
    const size_t n = 1 + draw_below(&d, MOST_UNITS);

    m->n_units = wants(m, &d, WITH_MANY_UNITS, 100) ? n : 1;
    for (size_t u = 0; u < m->n_units; u++) {
        draw_unit(m, u);
    }
    if (!has_trainable_unit(m)) {
        m->tensors[0].flags &= ~(FSDP_TENSOR_FROZEN | FSDP_TENSOR_IGNORED);
        for (size_t u = 0; u < m->n_units; u++) {
            for (size_t t = m->units[u].first; t < m->units[u].end; t++) {
                m->units[u].trainable = m->units[u].trainable || has_gradient(m, t);
            }
        }
    }
}

/* ---- optimizers -------------------------------------------------------------------------------------------------- */

/* Whether a pattern takes a trainable tensor that no optimizer so far has. */
static bool is_left(const random_model *m, const char *pattern)
{
    for (size_t t = 0; t < m->n_tensors; t++) {
        if (m->tensors[t].owner == t && has_gradient(m, t) && optimizer_of(m, t) == m->n_optimizers &&
            fnmatch(pattern, m->tensors[t].name, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a pattern takes a tensor of an optimizer that no group before it has taken. */
static bool takes_a_tensor(const random_model *m, size_t optimizer, const char *pattern)
{
    for (size_t t = 0; t < m->n_tensors; t++) {
        bool taken = m->tensors[t].owner != t || !has_gradient(m, t) || optimizer_of(m, t) != optimizer ||
                     fnmatch(pattern, m->tensors[t].name, 0) != 0;

        for (size_t g = 0; g < m->n_groups; g++) {
            taken = taken ||
                    (m->groups[g].optimizer == optimizer && fnmatch(m->groups[g].pattern, m->tensors[t].name, 0) == 0);
        }
        if (!taken) {
            return true;
        }
    }
    return false;
}

static void draw_groups(random_model *m)
{
    static const char *const patterns[] = {"u0.*", "*.w0", "u[1-3].*", "*.w[12]", "u?.w?", "u2.w*", "*"};
    random_draws             d          = random_draws_of(m->seed, PART_RATES);
    const size_t             n          = draw_below(&d, MOST_GROUPS + 1);

    for (size_t k = 0; k < n; k++) {
        fsdp_optimizer_group group     = FSDP_OPTIMIZER_GROUP_DEFAULT;
        const char          *pattern   = CHOOSE(&d, patterns);
        const size_t         optimizer = draw_below(&d, m->n_optimizers);

        group.lr           = draw_chance(&d, 50) ? FSDP_INHERIT : draw_uniform(&d, 0, 0.01);
        group.lr_scale     = draw_uniform(&d, 0, 2);
        group.weight_decay = draw_chance(&d, 50) ? FSDP_INHERIT : draw_uniform(&d, 0, 0.2);

        if (wants(m, &d, WITH_GROUPS, 70) && takes_a_tensor(m, optimizer, pattern)) {
            m->groups[m->n_groups++] = (planned_group){optimizer, pattern, group};
        }
    }
}

static bool has_moments(fsdp_optimizer_kind kind)
{
    return kind != FSDP_SGD && kind < FSDP_CUSTOM;
}

/* One that a function of the program's can be: see own_optimizer.h. */
static bool can_be_custom(fsdp_optimizer_kind kind)
{
    return kind == FSDP_SGD || kind == FSDP_SGD_MOMENTUM || kind == FSDP_ADAMW;
}

static fsdp_dtype draw_moment_type(const random_model *m, random_draws *d, const planned_optimizer *planned)
{
    const bool bf16 = wants(m, d, WITH_MOMENTS, 25), u8 = wants(m, d, WITH_MOMENTS_8_BIT, 25);

    if (planned->custom || planned->options.kind == FSDP_MUON) {
        return FSDP_F32;
    }
    return u8 && has_moments(planned->options.kind) ? FSDP_U8 : bf16 ? FSDP_BF16 : FSDP_F32;
}

/* Of its group: NULL for the rest. */
static void add_optimizer(random_model *m, random_draws *d, fsdp_optimizer_kind kind, const char *pattern)
{
    planned_optimizer      *planned = &m->optimizers[m->n_optimizers++];
    fsdp_optimizer_options *o       = &planned->options;

    (void)fsdp_optimizer_options_init(kind, o);
    planned->pattern = pattern;
    o->lr            = draw_uniform(d, 0.001, 0.02);
    o->weight_decay  = draw_chance(d, 40) ? 0.0 : draw_uniform(d, 0, 0.3);
    o->beta1         = draw_uniform(d, 0.5, 0.95);
    o->beta2         = draw_uniform(d, 0.7, 0.99);
    o->eps           = draw_uniform(d, 1e-8, 1e-4);
    o->momentum      = draw_uniform(d, 0.1, 0.95);
    o->nesterov      = draw_chance(d, 50) && (o->kind == FSDP_SGD_MOMENTUM || o->kind == FSDP_MUON);
    o->muon_scale    = draw_chance(d, 50) && o->kind == FSDP_MUON ? 0.2 : 0.0;
    planned->custom  = wants(m, d, WITH_CUSTOM, 30) && can_be_custom(kind);
    o->moment_dtype  = draw_moment_type(m, d, planned);
}

static fsdp_optimizer_kind draw_kind(const random_model *m, random_draws *d)
{
    const fsdp_optimizer_kind kind = (fsdp_optimizer_kind)draw_below(d, FSDP_CUSTOM);

    return wants(m, d, WITH_OPTIMIZERS, 90) ? kind : FSDP_SGD;
}

/* Matrices that are trained get names of their own, by which they can be chosen. */
static void name_matrices(random_model *m)
{
    for (size_t t = 0; t < m->n_tensors; t++) {
        planned_tensor *tensor = &m->tensors[t];

        if (tensor->owner == t && tensor->n_dims >= 2 && has_gradient(m, t)) {
            (void)snprintf(tensor->name, sizeof tensor->name, "u%zu.m%zu", tensor->unit,
                           t - m->units[tensor->unit].first);
        }
    }
}

/* Those of groups, Muon first. */
static void draw_own_optimizers(random_model *m)
{
    static const char *const patterns[] = {"u0.*", "*.w0", "u[1-3].*", "*.w[12]", "*.m*", "u2.w*"};
    random_draws             d          = random_draws_of(m->seed, PART_OPTIMIZERS);
    const size_t             n          = draw_below(&d, MOST_OPTIMIZERS - 1);

    if (wants(m, &d, WITH_MUON, 30)) {
        name_matrices(m);
        if (is_left(m, "*.m*")) {
            add_optimizer(m, &d, FSDP_MUON, "*.m*");
        }
    }
    const bool several = wants(m, &d, WITH_SEVERAL_OPTIMIZERS, 60);
    for (size_t k = 0; k < n && several; k++) {
        random_draws own     = random_draws_of(m->seed, PART_OPTIMIZERS + 1 + k);
        const char  *pattern = CHOOSE(&own, patterns);

        if (is_left(m, pattern)) {
            add_optimizer(m, &own, draw_kind(m, &own), pattern);
        }
    }
}

/* Of what is left: in a group of a granularity, or in none. */
static void draw_last_optimizer(random_model *m)
{
    random_draws              d       = random_draws_of(m->seed, PART_OPTIMIZER);
    const fsdp_optimizer_kind kind    = draw_kind(m, &d);
    const bool                grouped = wants(m, &d, WITH_GRANULARITY, 50);

    if (is_left(m, "*")) {
        add_optimizer(m, &d, kind, grouped ? "*" : NULL);
    }
}

static void draw_scaler(random_model *m)
{
    random_draws d = random_draws_of(m->seed, PART_SCALER);

    m->scaler                 = (fsdp_loss_scaler_options)FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    m->scales                 = wants(m, &d, WITH_SCALER, 30) && !m->approximate;
    m->scaler.initial_scale   = draw_chance(&d, 50) ? 64.0 : 1024.0;
    m->scaler.growth_factor   = draw_chance(&d, 50) ? 2.0 : 1.7;
    m->scaler.backoff_factor  = draw_chance(&d, 50) ? 0.5 : 0.3;
    m->scaler.growth_interval = 1 + draw_below(&d, 3);
    m->scaler.allow_any_dtype = 1;
}

/* What turns rounding into more than that is left out. */
static void draw_approximation(random_model *m)
{
    static const feature exact[] = {WITH_TYPES, WITH_REDUCE_TYPES, WITH_QUANTIZED,
                                    WITH_MUON,  WITH_MOMENTS,      WITH_MOMENTS_8_BIT};
    random_draws         d       = random_draws_of(m->seed, PART_APPROXIMATION);

    m->approximate = wants(m, &d, WITH_POWER_SGD, 10);
    for (size_t f = 0; f < sizeof exact / sizeof exact[0] && m->approximate; f++) {
        m->features &= ~(UINT64_C(1) << exact[f]);
    }
    for (size_t t = 0; t < m->n_tensors && m->approximate; t++) {
        m->tensors[t].dtype = FSDP_F32;
        m->tensors[t].flags &= ~FSDP_TENSOR_KEEP_DTYPE;
    }
}

/* Steps of SGD are no larger than rounding makes them. */
static void make_linear(random_model *m)
{
    for (size_t k = 0; k < m->n_optimizers && m->approximate; k++) {
        fsdp_optimizer_options *o = &m->optimizers[k].options;

        o->kind     = o->kind == FSDP_SGD ? FSDP_SGD : FSDP_SGD_MOMENTUM;
        o->nesterov = o->nesterov && o->kind == FSDP_SGD_MOMENTUM;
    }
}

static void draw_optimizers(random_model *m)
{
    draw_approximation(m);
    draw_own_optimizers(m);
    draw_last_optimizer(m);
    make_linear(m);
    draw_groups(m);
    draw_scaler(m);
}

/* What budgets assume of the tensors that are in no group. */
static void give_optimizer(const random_model *m, fsdp_model_options *o)
{
    const planned_optimizer *last = &m->optimizers[m->n_optimizers - 1];

    if (last->pattern == NULL) {
        o->optimizer    = last->custom ? FSDP_CUSTOM : last->options.kind;
        o->n_states     = !last->custom ? 0 : last->options.kind == FSDP_ADAMW ? 2 : last->options.kind != FSDP_SGD;
        o->moment_dtype = last->options.moment_dtype;
    }
}

/* ---- configurations ---------------------------------------------------------------------------------------------- */

static void draw_config(const random_model *m, random_draws *d, fsdp_config *c)
{
    static const int     prefetches[] = {0, 1, 1, 2, 3}, views[] = {1, 2, 2, 3};
    static const int64_t buckets[] = {1, 1000, 20000, 25 << 20}, staging[] = {4096, 65536, 4 << 20};
    static const int64_t messages[] = {64, 4096, 1 << 30}, chunks[] = {0, 64, 4096};
    fsdp_config          drawn;

    fsdp_config_init(c);
    c->log_level          = FSDP_LOG_OFF; /* of failures on purpose; others are printed by the test */
    drawn                 = *c;
    drawn.prefetch        = CHOOSE(d, prefetches);
    drawn.views_in_flight = CHOOSE(d, views);
    drawn.bucket_bytes    = CHOOSE(d, buckets);
    drawn.staging_bytes   = CHOOSE(d, staging);
    drawn.message_bytes   = CHOOSE(d, messages);
    drawn.chunk_bytes     = CHOOSE(d, chunks);
    drawn.verify          = (int)draw_below(d, 3);
    drawn.isa             = draw_chance(d, 50) ? FSDP_ISA_AUTO : FSDP_ISA_SCALAR;
    drawn.progress        = draw_chance(d, 70) ? FSDP_PROGRESS_AUTO : FSDP_PROGRESS_INLINE;
    drawn.cma             = draw_chance(d, 70) ? FSDP_CMA_AUTO : FSDP_CMA_OFF;
    *c                    = wants(m, d, WITH_SETTINGS, 100) ? drawn : *c;
    const int node_size   = (int)draw_below(d, 3);
    c->node_size          = wants(m, d, WITH_NODES, 100) ? node_size : 0;
}

static bool is_hybrid(fsdp_strategy strategy)
{
    return strategy == FSDP_HYBRID_SHARD || strategy == FSDP_HYBRID_SHARD_ZERO2;
}

/* A divisor of all ranks; 0, for a group per node, where nodes are equally large. */
static int draw_group_size(random_draws *d, int size, int node_size)
{
    const size_t first = draw_below(d, 100);

    if (draw_chance(d, 30) && (node_size == 0 || size % node_size == 0)) {
        return 0;
    }
    for (int g = 1 + (int)(first % (size_t)size);; g = g % size + 1) {
        if (size % g == 0) {
            return g;
        }
    }
}

static void draw_options(const random_model *m, random_draws *d, planned_segment *segment)
{
    fsdp_model_options *o        = &segment->options;
    const fsdp_strategy strategy = (fsdp_strategy)draw_below(d, FSDP_N_STRATEGIES);
    const fsdp_dtype    param = draw_type(d), reduce = draw_type(d);
    const double        divisor = draw_uniform(d, 0.5, 40);

    *o      = (fsdp_model_options)FSDP_MODEL_OPTIONS_DEFAULT;
    o->seed = m->seed;
    give_optimizer(m, o);
    o->strategy     = wants(m, d, WITH_STRATEGIES, 100) ? strategy : FSDP_FULL_SHARD;
    o->group_size   = draw_group_size(d, segment->size, segment->config.node_size);
    o->group_size   = is_hybrid(o->strategy) ? o->group_size : 0;
    o->param_dtype  = wants(m, d, WITH_TYPES, 100) ? param : FSDP_F32;
    o->reduce_dtype = wants(m, d, WITH_REDUCE_TYPES, 100) ? reduce : FSDP_F32;

    o->gradient_divisor = wants(m, d, WITH_DIVISOR, 30) ? divisor : 0.0;
    o->local_gradients  = wants(m, d, WITH_LOCAL, 50);
    o->quantized_params = wants(m, d, WITH_QUANTIZED, 25) && o->strategy == FSDP_FULL_SHARD && !has_muon(m);

    const int  kept     = 1 + (int)draw_below(d, MOST_UNITS);
    const int  unused   = 1 + (int)draw_below(d, 2);
    const bool sees_all = m->scales && m->n_optimizers > 1; /* a loss scaler refuses a step without any gradient */

    o->kept_units      = wants(m, d, WITH_KEPT, 40) ? kept : 0;
    o->unused          = wants(m, d, WITH_IDLE, 50) && !sees_all ? (fsdp_unused)unused : FSDP_UNUSED_ERROR;
    o->recorded_passes = wants(m, d, WITH_ABSENT, 60) ? MOST_OPS : 0;

    const hook_kind hook = (hook_kind)(1 + draw_below(d, 4));
    if ((m->approximate || wants(m, d, WITH_HOOKS, 50)) && (o->strategy == FSDP_NO_SHARD || is_hybrid(o->strategy))) {
        segment->hook   = m->approximate ? HOOK_POWER_SGD : hook == HOOK_INT8 && has_muon(m) ? HOOK_BF16 : hook;
        o->reduce_dtype = FSDP_F32;
    }
}

/* What every rank holds whole is averaged as the rest, but for what an int8 hook sees of it at a time. */
static void draw_own_strategies(const random_model *m, random_draws *d, planned_segment *segment)
{
    static const int64_t      thresholds[] = {1, 500, 6000, (int64_t)1 << 40};
    const fsdp_model_options *o            = &segment->options;
    const bool                whole        = segment->hook != HOOK_INT8 || o->strategy == FSDP_NO_SHARD;
    const bool own = !o->quantized_params && (segment->hook == HOOK_NONE || (whole && is_hybrid(o->strategy)));

    if (wants(m, d, WITH_SMALL, 40) && whole) {
        segment->config.small_bytes = CHOOSE(d, thresholds);
    }
    const bool wanted = wants(m, d, WITH_UNIT_STRATEGIES, 40) && own;
    for (size_t u = 0; u < MOST_UNITS; u++) {
        const fsdp_strategy drawn = (fsdp_strategy)draw_below(d, FSDP_N_STRATEGIES);
        const bool          fits  = drawn == FSDP_NO_SHARD || is_hybrid(drawn) == is_hybrid(o->strategy);

        segment->strategies[u] = wanted && fits && draw_chance(d, 70) ? (int)drawn : -1;
    }
    segment->options.keep_on_node = wants(m, d, WITH_KEPT_ON_NODE, 60) && o->strategy == FSDP_FULL_SHARD;
}

static void draw_checkpoint(random_draws *d, fsdp_checkpoint_options *o)
{
    *o              = (fsdp_checkpoint_options)FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    o->dtype        = draw_chance(d, 30) ? FSDP_BF16 : FSDP_F32;
    o->file_bytes   = draw_chance(d, 30) ? 1 + draw_below(d, 8000) : 0;
    o->asynchronous = draw_chance(d, 30);
}

/* Blocks of 8-bit integers run over tensors in their order, of which the reference knows only the unit's. */
static size_t draw_granularity(const random_model *m, random_draws *d, const planned_optimizer *planned, bool in_order)
{
    static const size_t choices[] = {
        FSDP_GRANULARITY_FLAT,  1, 7, 64, 100, FSDP_GRANULARITY_TENSOR, FSDP_GRANULARITY_TENSOR,
        FSDP_GRANULARITY_TENSOR};
    static const size_t blocks[] = {FSDP_GRANULARITY_FLAT, 256, 512};
    const size_t        any = choices[draw_below(d, in_order ? 5 : 8)], of_blocks = CHOOSE(d, blocks);
    const bool          flat = planned->pattern == NULL ||
                      (planned->custom && (m->features >> WITH_CUSTOM_GRANULARITY & 1) == 0) ||
                      (m->features >> WITH_GRANULARITY & 1) == 0;

    return planned->options.kind == FSDP_MUON         ? FSDP_GRANULARITY_TENSOR
           : flat                                     ? FSDP_GRANULARITY_FLAT
           : planned->options.moment_dtype == FSDP_U8 ? of_blocks
                                                      : any;
}

static void draw_granularities(const random_model *m, size_t s, planned_segment *segment)
{
    const bool in_order = segment->options.quantized_params || segment->hook == HOOK_INT8;

    for (size_t k = 0; k < m->n_optimizers; k++) {
        random_draws d = random_draws_of(m->seed, PART_GRANULARITY + s * MOST_OPTIMIZERS + k);

        segment->granularities[k] = draw_granularity(m, &d, &m->optimizers[k], in_order);
    }
}

static void draw_segments(random_model *m, int size)
{
    random_draws     d      = random_draws_of(m->seed, PART_SEGMENTS);
    const size_t     n      = 1 + draw_below(&d, MOST_SEGMENTS);
    const fsdp_dtype buffer = draw_type(&d);

    m->n_segments = wants(m, &d, WITH_SEGMENTS, 80) ? n : 1;
    for (size_t s = 0; s < m->n_segments; s++) {
        planned_segment *segment = &m->segments[s];
        random_draws     own     = random_draws_of(m->seed, PART_SEGMENTS + 10 + s);
        const int        other   = 1 + (int)draw_below(&own, (size_t)size);

        segment->size = s == 0 ? size : other;
        draw_config(m, &own, &segment->config);
        draw_options(m, &own, segment);
        draw_granularities(m, s, segment);
        draw_checkpoint(&own, &segment->checkpoint);
        draw_own_strategies(m, &own, segment);
        segment->checkpoint.dtype     = m->approximate ? FSDP_F32 : segment->checkpoint.dtype;
        segment->options.buffer_dtype = (m->features >> WITH_TYPES & 1) != 0 ? buffer : FSDP_F32;
        draw_program(m, s);
    }
}

void draw_random_model(random_model *m, uint64_t seed, int size, uint64_t features)
{
    memset(m, 0, sizeof *m);
    m->seed     = seed;
    m->features = features;
    draw_units(m);
    draw_optimizers(m);
    draw_segments(m, size);
}

/* ---- what follows from it ---------------------------------------------------------------------------------------- */

bool is_ignored(const random_model *m, size_t t)
{
    return (m->tensors[m->tensors[t].owner].flags & FSDP_TENSOR_IGNORED) != 0;
}

bool has_gradient(const random_model *m, size_t t)
{
    return (m->tensors[m->tensors[t].owner].flags & (FSDP_TENSOR_IGNORED | FSDP_TENSOR_FROZEN)) == 0;
}

size_t optimizer_of(const random_model *m, size_t t)
{
    const char *name = m->tensors[m->tensors[t].owner].name;
    size_t      k    = 0;

    while (k < m->n_optimizers && m->optimizers[k].pattern != NULL && fnmatch(m->optimizers[k].pattern, name, 0) != 0) {
        k++;
    }
    return k;
}

bool has_muon(const random_model *m)
{
    return m->optimizers[0].options.kind == FSDP_MUON;
}

fsdp_dtype type_of_view(const random_model *m, const fsdp_model_options *options, size_t t)
{
    const planned_tensor *owner = &m->tensors[m->tensors[t].owner];

    if (owner->dtype != FSDP_F32 || (owner->flags & FSDP_TENSOR_KEEP_DTYPE) != 0) {
        return owner->dtype;
    }
    return (owner->flags & FSDP_TENSOR_IGNORED) != 0 ? options->buffer_dtype : options->param_dtype;
}
