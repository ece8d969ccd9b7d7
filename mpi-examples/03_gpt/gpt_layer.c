#include "gpt_layer.h"

#include <string.h>

#include "gpt_attention.h"
#include "gpt_buffers.h"
#include "gpt_matmul.h"
#include "mpi-examples/common/example_error.h"

#define REAL_DTYPE (sizeof(real) == sizeof(double) ? FSDP_F64 : FSDP_F32)

/* ---- sizes --------------------------------------------------------------------------------------------------------------- */

size_t gpt_division_rows(const gpt_division *d, size_t batch)
{
    return batch * d->config.context;
}

size_t gpt_division_own_rows(const gpt_division *d, size_t batch)
{
    return gpt_division_rows(d, batch) / (d->sequence_parallel ? d->ranks : 1);
}

/* What this rank's heads have together. */
static size_t inner(const gpt_division *d)
{
    return d->config.width / d->ranks;
}

static size_t hidden(const gpt_division *d)
{
    return 4 * d->config.width / d->ranks;
}

static size_t head_probabilities(const gpt_division *d)
{
    return d->config.context * d->config.context;
}

fsdp_tp_activations gpt_division_activations(const gpt_division *d, size_t batch)
{
    return (fsdp_tp_activations){.rows    = gpt_division_rows(d, batch),
                                 .width   = d->config.width,
                                 .dtype   = REAL_DTYPE,
                                 .outside = d->sequence_parallel ? FSDP_TP_OWN_ROWS : FSDP_TP_ALL_ROWS};
}

gpt_activation_shape gpt_division_shape(const gpt_division *d, size_t batch)
{
    return (gpt_activation_shape){.rows              = gpt_division_rows(d, batch),
                                  .width             = d->config.width,
                                  .heads             = d->config.heads,
                                  .context           = d->config.context,
                                  .ranks             = d->ranks,
                                  .sequence_parallel = d->sequence_parallel,
                                  .without_scores    = d->recompute == GPT_RECOMPUTE_SELECTIVE,
                                  .input_only        = d->recompute == GPT_RECOMPUTE_FULL,
                                  .multiple          = GPT_BUFFER_MULTIPLE};
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

/* All but the input. */
static size_t cut_computed(gpt_kept *k, real *storage, const gpt_division *d, size_t batch)
{
    const size_t rows = gpt_division_rows(d, batch), own = gpt_division_own_rows(d, batch), c = d->config.width;
    size_t       used = 0;

    k->ln_1       = gpt_buffer_cut(storage, &used, own * c);
    k->ln_1_mean  = gpt_buffer_cut(storage, &used, own);
    k->ln_1_scale = gpt_buffer_cut(storage, &used, own);
    k->qkv        = gpt_buffer_cut(storage, &used, rows * 3 * inner(d));
    if (d->recompute != GPT_RECOMPUTE_SELECTIVE) {
        k->probabilities = gpt_buffer_cut(storage, &used, batch * d->config.heads / d->ranks * head_probabilities(d));
    }
    k->attention  = gpt_buffer_cut(storage, &used, rows * inner(d));
    k->middle     = gpt_buffer_cut(storage, &used, own * c);
    k->ln_2       = gpt_buffer_cut(storage, &used, own * c);
    k->ln_2_mean  = gpt_buffer_cut(storage, &used, own);
    k->ln_2_scale = gpt_buffer_cut(storage, &used, own);
    k->fc         = gpt_buffer_cut(storage, &used, rows * hidden(d));
    k->gelu       = gpt_buffer_cut(storage, &used, rows * hidden(d));
    return used;
}

size_t gpt_kept_cut(gpt_kept *kept, real *storage, const gpt_division *d, size_t batch, int with_input)
{
    size_t used = 0;

    *kept = (gpt_kept){0};
    if (with_input) {
        kept->own = gpt_buffer_cut(storage, &used, gpt_division_own_rows(d, batch) * d->config.width);
        kept->in  = kept->own;
    }
    if (d->recompute != GPT_RECOMPUTE_FULL) {
        used += cut_computed(kept, storage ? storage + used : NULL, d, batch);
    }
    return used;
}

size_t gpt_owed_cut(gpt_owed *owed, real *storage, const gpt_division *d, size_t batch)
{
    const size_t rows = gpt_division_rows(d, batch), c = d->config.width;
    size_t       used = 0;

    owed->d_out    = gpt_buffer_cut(storage, &used, rows * c);
    owed->d_fc     = gpt_buffer_cut(storage, &used, rows * hidden(d));
    owed->d_middle = gpt_buffer_cut(storage, &used, rows * c);
    owed->d_qkv    = gpt_buffer_cut(storage, &used, rows * 3 * inner(d));
    owed->fc_bias  = gpt_buffer_cut(storage, &used, hidden(d));
    owed->norms    = gpt_buffer_cut(storage, &used, GPT_N_NORMS * c);
    return used;
}

size_t gpt_workspace_cut(gpt_workspace *work, real *storage, const gpt_division *d, size_t batch)
{
    const size_t rows = gpt_division_rows(d, batch), own = gpt_division_own_rows(d, batch), c = d->config.width;
    size_t       used = 0;

    *work             = (gpt_workspace){0};
    work->partial     = gpt_buffer_cut(storage, &used, rows * c);
    work->exchanged   = gpt_buffer_cut(storage, &used, own * c);
    work->d_attention = gpt_buffer_cut(storage, &used, rows * inner(d));
    work->d_scores    = gpt_buffer_cut(storage, &used, GPT_ATTENTION_ROWS * d->config.context);
    work->norm        = gpt_buffer_cut(storage, &used, 2 * c);
    if (d->sequence_parallel) {
        work->whole = gpt_buffer_cut(storage, &used, rows * c);
    }
    if (d->recompute == GPT_RECOMPUTE_SELECTIVE) {
        work->probabilities = gpt_buffer_cut(storage, &used, head_probabilities(d));
    }
    if (d->recompute == GPT_RECOMPUTE_FULL) {
        used += cut_computed(&work->again, storage ? storage + used : NULL, d, batch);
    }
    return used;
}

/* ---- exchanges ----------------------------------------------------------------------------------------------------------- */

static void lap(const gpt_division *d, gpt_part part)
{
    gpt_profile_lap(d->profile, part);
}

/* All rows of what this rank has `own` of: `own` itself, but for sequence parallelism. */
static fsdp_status enter(const gpt_division *d, gpt_workspace *work, size_t batch, const real *own, const real **whole)
{
    const fsdp_tp_activations a = gpt_division_activations(d, batch);

    *whole = own;
    if (d->sequence_parallel) {
        EXAMPLE_TRY(fsdp_tp_begin(d->tp, &a, own, work->whole));
        *whole = work->whole;
        lap(d, GPT_PART_SHARDING);
    }
    return FSDP_OK;
}

/* The sum over the ranks of work->partial goes into work->exchanged. */
static fsdp_status leave(const gpt_division *d, gpt_workspace *work, size_t batch)
{
    const fsdp_tp_activations a = gpt_division_activations(d, batch);

    EXAMPLE_TRY(fsdp_tp_end(d->tp, &a, work->partial, work->exchanged));
    lap(d, GPT_PART_SHARDING);
    return FSDP_OK;
}

fsdp_status gpt_sum_of_rows(const gpt_division *d, real *gradients, size_t count)
{
    return d->sequence_parallel ? fsdp_allreduce(d->tp, FSDP_IN_PLACE, gradients, count, REAL_DTYPE, FSDP_SUM)
                                : FSDP_OK;
}

/* ---- forward ------------------------------------------------------------------------------------------------------------- */

static gpt_attention attention_of(const gpt_division *d, const gpt_workspace *work, const gpt_kept *kept)
{
    return (gpt_attention){.heads         = d->config.heads / d->ranks,
                           .size          = d->config.width / d->config.heads,
                           .context       = d->config.context,
                           .step          = kept->probabilities ? head_probabilities(d) : 0,
                           .probabilities = kept->probabilities ? kept->probabilities : work->probabilities,
                           .d_scores      = work->d_scores,
                           .profile       = d->profile};
}

/* out = in weight + bias; `bias` may be NULL. */
static void linear(const gpt_division *d, size_t rows, size_t inputs, size_t outputs, const real *in,
                   const real *weight, const real *bias, real *out)
{
    if (bias) {
        gpt_add_bias(rows, outputs, NULL, bias, out);
        lap(d, GPT_PART_BIAS);
    }
    gpt_matmul(d->profile, rows, outputs, inputs, 1, gpt_rows(in, inputs), gpt_rows(weight, outputs), bias ? 1 : 0, out,
               outputs);
}

/* out = base + bias + what the ranks have summed: the same on one rank or several, with all rows or some. */
static void add_residual(const gpt_division *d, const gpt_workspace *work, size_t own, const real *base,
                         const real *bias, real *out)
{
    const size_t c = d->config.width;

    gpt_add_bias(own, c, base, bias, out);
    gpt_add(own * c, work->exchanged, out);
    lap(d, GPT_PART_BIAS);
}

static void normalise(const gpt_division *d, size_t own, const real *in, const real *weight, const real *bias,
                      real *out, real *mean, real *scale)
{
    gpt_layernorm(own, d->config.width, in, weight, bias, out, mean, scale);
    lap(d, GPT_PART_LAYERNORM);
}

/* From `in` to kept->middle. */
static fsdp_status attention_region(const gpt_division *d, gpt_workspace *work, size_t batch, const real *const *params,
                                    const real *in, gpt_kept *k)
{
    const size_t        rows = gpt_division_rows(d, batch), own = gpt_division_own_rows(d, batch), c = d->config.width;
    const gpt_attention attention = attention_of(d, work, k);
    const real         *x;

    normalise(d, own, in, params[GPT_LN_1_WEIGHT], params[GPT_LN_1_BIAS], k->ln_1, k->ln_1_mean, k->ln_1_scale);
    EXAMPLE_TRY(enter(d, work, batch, k->ln_1, &x));
    linear(d, rows, c, 3 * inner(d), x, params[GPT_ATTN_WEIGHT], params[GPT_ATTN_BIAS], k->qkv);
    gpt_attention_forward(&attention, batch, 0, d->config.context, k->qkv, k->attention);
    linear(d, rows, inner(d), c, k->attention, params[GPT_ATTN_PROJ_WEIGHT], NULL, work->partial);
    EXAMPLE_TRY(leave(d, work, batch));
    add_residual(d, work, own, in, params[GPT_ATTN_PROJ_BIAS], k->middle);
    return FSDP_OK;
}

/* From kept->middle to kept->gelu: as far as the backward pass needs it. */
static fsdp_status hidden_layer(const gpt_division *d, gpt_workspace *work, size_t batch, const real *const *params,
                                gpt_kept *k)
{
    const size_t rows = gpt_division_rows(d, batch), own = gpt_division_own_rows(d, batch), f = hidden(d);
    const real  *x;

    normalise(d, own, k->middle, params[GPT_LN_2_WEIGHT], params[GPT_LN_2_BIAS], k->ln_2, k->ln_2_mean, k->ln_2_scale);
    EXAMPLE_TRY(enter(d, work, batch, k->ln_2, &x));
    linear(d, rows, d->config.width, f, x, params[GPT_FC_WEIGHT], params[GPT_FC_BIAS], k->fc);
    gpt_gelu(rows * f, k->fc, k->gelu);
    lap(d, GPT_PART_GELU);
    return FSDP_OK;
}

/* Where what is computed of a layer goes: with full recomputation, where the next layer's will. */
static gpt_kept *begin_layer(const gpt_division *d, gpt_workspace *work, gpt_kept *kept)
{
    if (d->recompute != GPT_RECOMPUTE_FULL) {
        return kept;
    }
    work->again_of = kept;
    return &work->again;
}

fsdp_status gpt_layer_forward(const gpt_division *d, gpt_workspace *work, size_t batch, const real *const *params,
                              gpt_kept *kept, real *out)
{
    gpt_kept *k = begin_layer(d, work, kept);

    EXAMPLE_TRY(attention_region(d, work, batch, params, kept->in, k));
    EXAMPLE_TRY(hidden_layer(d, work, batch, params, k));
    linear(d, gpt_division_rows(d, batch), hidden(d), d->config.width, k->gelu, params[GPT_PROJ_WEIGHT], NULL,
           work->partial);
    EXAMPLE_TRY(leave(d, work, batch));
    add_residual(d, work, gpt_division_own_rows(d, batch), k->middle, params[GPT_PROJ_BIAS], out);
    return FSDP_OK;
}

/* What is kept of a layer; with full recomputation it is computed again from the input, unless it is the last that was. */
static fsdp_status recall(const gpt_division *d, gpt_workspace *work, size_t batch, const real *const *params,
                          gpt_kept *kept, gpt_kept **k)
{
    if (d->recompute == GPT_RECOMPUTE_FULL && work->again_of == kept) {
        *k = &work->again;
        return FSDP_OK;
    }
    *k = begin_layer(d, work, kept);
    if (*k == kept) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(attention_region(d, work, batch, params, kept->in, *k));
    return hidden_layer(d, work, batch, params, *k);
}

/* ---- backward ------------------------------------------------------------------------------------------------------------ */

/* d_in = d_out weight^T */
static void linear_backward(const gpt_division *d, size_t rows, size_t inputs, size_t outputs, const real *d_out,
                            const real *weight, real *d_in)
{
    gpt_matmul(d->profile, rows, inputs, outputs, 1, gpt_rows(d_out, outputs), gpt_transposed(weight, outputs), 0, d_in,
               inputs);
}

/* Adds to d_weight and, unless it is NULL, to d_bias. */
static void linear_weight(const gpt_division *d, size_t rows, size_t inputs, size_t outputs, const real *in,
                          const real *d_out, real *d_weight, real *d_bias)
{
    gpt_matmul(d->profile, inputs, outputs, rows, 1, gpt_transposed(in, inputs), gpt_rows(d_out, outputs), 1, d_weight,
               outputs);
    if (d_bias) {
        gpt_add_columns(rows, outputs, d_out, d_bias);
        lap(d, GPT_PART_BIAS);
    }
}

void gpt_norm_backward(const gpt_division *d, size_t batch, const real *d_out, const real *in, const real *mean,
                       const real *scale, const real *weight, real *d_in, real *d_norm, real *scratch)
{
    const size_t own = gpt_division_own_rows(d, batch), c = d->config.width;
    const size_t blocks = !d->sequence_parallel && own % d->ranks == 0 ? d->ranks : 1, rows = own / blocks;
    size_t       i;

    memset(d_norm, 0, 2 * c * sizeof(real));
    for (i = 0; i < blocks; i++) {
        const size_t row = i * rows, at = row * c;

        memset(scratch, 0, 2 * c * sizeof(real));
        gpt_layernorm_backward(rows, c, d_out + at, in + at, mean + row, scale + row, weight, d_in + at, scratch,
                               scratch + c);
        gpt_add(2 * c, scratch, d_norm);
    }
    lap(d, GPT_PART_LAYERNORM);
}

/* All rows of a gradient that this rank has `own` of, to stay. */
static fsdp_status keep_whole(const gpt_division *d, size_t batch, const real *own, real *whole)
{
    const fsdp_tp_activations a = gpt_division_activations(d, batch);

    EXAMPLE_TRY(fsdp_tp_begin(d->tp, &a, own, whole));
    lap(d, GPT_PART_SHARDING);
    return FSDP_OK;
}

/* The gradient of kept->middle takes the place of the output's. */
static fsdp_status mlp_backward(const gpt_division *d, gpt_workspace *work, size_t batch, const real *const *params,
                                const gpt_kept *k, gpt_owed *owed, real *gradient)
{
    const size_t rows = gpt_division_rows(d, batch), c = d->config.width, f = hidden(d);

    EXAMPLE_TRY(keep_whole(d, batch, gradient, owed->d_out));
    linear_backward(d, rows, f, c, owed->d_out, params[GPT_PROJ_WEIGHT], owed->d_fc);
    memset(owed->fc_bias, 0, f * sizeof(real));
    gpt_gelu_backward(rows, f, k->fc, owed->d_fc, owed->fc_bias);
    lap(d, GPT_PART_GELU);
    linear_backward(d, rows, c, f, owed->d_fc, params[GPT_FC_WEIGHT], work->partial);
    EXAMPLE_TRY(leave(d, work, batch));
    gpt_norm_backward(d, batch, work->exchanged, k->middle, k->ln_2_mean, k->ln_2_scale, params[GPT_LN_2_WEIGHT],
                      gradient, owed->norms + GPT_NORM_2_WEIGHT * c, work->norm);
    return FSDP_OK;
}

fsdp_status gpt_layer_backward_input(const gpt_division *d, gpt_workspace *work, size_t batch,
                                     const real *const *params, gpt_kept *kept, gpt_owed *owed, real *gradient)
{
    const size_t  rows = gpt_division_rows(d, batch), c = d->config.width;
    gpt_kept     *k;
    gpt_attention attention;

    EXAMPLE_TRY(recall(d, work, batch, params, kept, &k));
    EXAMPLE_TRY(mlp_backward(d, work, batch, params, k, owed, gradient));
    EXAMPLE_TRY(keep_whole(d, batch, gradient, owed->d_middle));
    linear_backward(d, rows, inner(d), c, owed->d_middle, params[GPT_ATTN_PROJ_WEIGHT], work->d_attention);
    attention = attention_of(d, work, k);
    gpt_attention_backward(&attention, batch, d->config.context, k->qkv, work->d_attention, owed->d_qkv);
    linear_backward(d, rows, c, 3 * inner(d), owed->d_qkv, params[GPT_ATTN_WEIGHT], work->partial);
    EXAMPLE_TRY(leave(d, work, batch));
    gpt_norm_backward(d, batch, work->exchanged, kept->in, k->ln_1_mean, k->ln_1_scale, params[GPT_LN_1_WEIGHT],
                      gradient, owed->norms + GPT_NORM_1_WEIGHT * c, work->norm);
    return gpt_sum_of_rows(d, owed->norms, GPT_N_NORMS * c);
}

static void add_norms(const gpt_owed *owed, size_t c, real *const *grads)
{
    gpt_add(c, owed->norms + GPT_NORM_1_WEIGHT * c, grads[GPT_LN_1_WEIGHT]);
    gpt_add(c, owed->norms + GPT_NORM_1_BIAS * c, grads[GPT_LN_1_BIAS]);
    gpt_add(c, owed->norms + GPT_NORM_2_WEIGHT * c, grads[GPT_LN_2_WEIGHT]);
    gpt_add(c, owed->norms + GPT_NORM_2_BIAS * c, grads[GPT_LN_2_BIAS]);
}

fsdp_status gpt_layer_backward_weight(const gpt_division *d, gpt_workspace *work, size_t batch,
                                      const real *const *params, gpt_kept *kept, const gpt_owed *owed,
                                      real *const *grads)
{
    const size_t rows = gpt_division_rows(d, batch), c = d->config.width, f = hidden(d), i = inner(d);
    const real  *x;
    gpt_kept    *k;

    EXAMPLE_TRY(recall(d, work, batch, params, kept, &k));
    linear_weight(d, rows, f, c, k->gelu, owed->d_out, grads[GPT_PROJ_WEIGHT], grads[GPT_PROJ_BIAS]);
    EXAMPLE_TRY(enter(d, work, batch, k->ln_2, &x));
    linear_weight(d, rows, c, f, x, owed->d_fc, grads[GPT_FC_WEIGHT], NULL);
    gpt_add(f, owed->fc_bias, grads[GPT_FC_BIAS]);
    linear_weight(d, rows, i, c, k->attention, owed->d_middle, grads[GPT_ATTN_PROJ_WEIGHT], grads[GPT_ATTN_PROJ_BIAS]);
    EXAMPLE_TRY(enter(d, work, batch, k->ln_1, &x));
    linear_weight(d, rows, c, 3 * i, x, owed->d_qkv, grads[GPT_ATTN_WEIGHT], grads[GPT_ATTN_BIAS]);
    add_norms(owed, c, grads);
    return FSDP_OK;
}
