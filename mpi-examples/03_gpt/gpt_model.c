#include "gpt_model.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpt_attention.h"
#include "gpt_buffers.h"
#include "gpt_matmul.h"

/* Memory begins on a cache line. */
#define CACHE_LINE 64

/* No layer has more buffers, nor has the rest. */
#define MOST_BUFFERS 16

/* What a block's backward pass needs of its forward pass. R = batch x context rows, C = width. */
typedef struct layer_activations {
    real *in;            /* R x C: the residual stream as it arrives */
    real *ln_1;          /* R x C */
    real *ln_1_mean;     /* R */
    real *ln_1_scale;    /* R */
    real *qkv;           /* R x 3C: queries, keys, values */
    real *probabilities; /* per sequence and head: context x context */
    real *attention;     /* R x C: heads side by side */
    real *middle;        /* R x C: the residual stream between attention and MLP */
    real *ln_2;          /* R x C */
    real *ln_2_mean;     /* R */
    real *ln_2_scale;    /* R */
    real *fc;            /* R x 4C: before GELU */
    real *gelu;          /* R x 4C */
} layer_activations;

struct gpt_activations {
    gpt_config         config;
    gpt_profile        profile;
    layer_activations *layers;
    real              *storage;   /* all buffers, one after the other */
    real              *out;       /* R x C: the residual stream after the last block */
    real              *ln_f;      /* R x C */
    real              *ln_f_mean; /* R */
    real              *ln_f_scale;
    real              *logits;     /* R x GPT_VOCABULARY: then probabilities, then their gradients */
    real              *d_residual; /* R x C: the gradient of the residual stream, from the head to the embedding */
    real              *d_narrow;   /* R x C */
    real              *d_wide;     /* R x 4C: of fc, or of qkv */
    real              *d_scores;   /* GPT_ATTENTION_ROWS x context */
};

static void describe(gpt_tensor *tensor, size_t rows, size_t columns, double mean, double deviation)
{
    tensor->n_dims    = columns ? 2 : 1;
    tensor->shape[0]  = rows;
    tensor->shape[1]  = columns;
    tensor->elements  = rows * (columns ? columns : 1);
    tensor->mean      = mean;
    tensor->deviation = deviation;
    tensor->decays    = columns != 0;
}

static void append(char *name, size_t size, const char *text)
{
    const size_t used = strlen(name), more = strlen(text);

    if (used + more < size) {
        memcpy(name + used, text, more + 1);
    }
}

/* "h.12." */
static void name_block(char *name, size_t size, size_t layer)
{
    char   digits[24];
    size_t n = sizeof digits - 1;

    digits[n]   = '\0';
    digits[--n] = '.';
    do {
        digits[--n] = (char)('0' + layer % 10);
        layer /= 10;
    } while (layer);
    append(name, size, "h.");
    append(name, size, digits + n);
}

void gpt_embedding_tensor(const gpt_config *config, size_t i, gpt_tensor *tensor)
{
    static const char *const names[] = {"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"};

    memset(tensor, 0, sizeof *tensor);
    append(tensor->name, sizeof tensor->name, names[i]);
    switch (i) {
    case GPT_WTE:
        describe(tensor, GPT_VOCABULARY, config->width, 0, 0.02);
        break;
    case GPT_WPE:
        describe(tensor, config->context, config->width, 0, 0.02);
        break;
    case GPT_LN_F_WEIGHT:
        describe(tensor, config->width, 0, 1, 0);
        break;
    default:
        describe(tensor, config->width, 0, 0, 0);
        break;
    }
}

void gpt_block_tensor(const gpt_config *config, size_t layer, size_t i, gpt_tensor *tensor)
{
    static const char *const names[] = {
        "ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
        "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias"};
    const size_t c        = config->width;
    const double residual = 0.02 / sqrt(2.0 * (double)config->layers); /* two additions to it per block */

    memset(tensor, 0, sizeof *tensor);
    name_block(tensor->name, sizeof tensor->name, layer);
    append(tensor->name, sizeof tensor->name, names[i]);
    switch (i) {
    case GPT_LN_1_WEIGHT:
    case GPT_LN_2_WEIGHT:
        describe(tensor, c, 0, 1, 0);
        break;
    case GPT_ATTN_WEIGHT:
        describe(tensor, c, 3 * c, 0, 0.02);
        break;
    case GPT_ATTN_BIAS:
        describe(tensor, 3 * c, 0, 0, 0);
        break;
    case GPT_ATTN_PROJ_WEIGHT:
        describe(tensor, c, c, 0, residual);
        break;
    case GPT_FC_WEIGHT:
        describe(tensor, c, 4 * c, 0, 0.02);
        break;
    case GPT_FC_BIAS:
        describe(tensor, 4 * c, 0, 0, 0);
        break;
    case GPT_PROJ_WEIGHT:
        describe(tensor, 4 * c, c, 0, residual);
        break;
    default:
        describe(tensor, c, 0, 0, 0);
        break;
    }
}

/* A count for which every product below stays exact; 0 if it does not fit. */
static size_t whole(double count)
{
    return count < 9007199254740992.0 && count * sizeof(real) < (double)(SIZE_MAX / 2) ? (size_t)count : 0;
}

size_t gpt_parameters(const gpt_config *config)
{
    const double c = (double)config->width, per_block = 12 * c * c + 13 * c;

    return whole((double)config->layers * per_block + (GPT_VOCABULARY + (double)config->context + 2) * c);
}

/* Lays a layer's buffers out from `storage` on and returns how many elements they take. */
static size_t cut_layer(layer_activations *layer, real *storage, const gpt_config *config, size_t batch)
{
    const size_t rows = batch * config->context, c = config->width;
    size_t       used = 0;

    layer->in            = gpt_buffer_cut(storage, &used, rows * c);
    layer->ln_1          = gpt_buffer_cut(storage, &used, rows * c);
    layer->ln_1_mean     = gpt_buffer_cut(storage, &used, rows);
    layer->ln_1_scale    = gpt_buffer_cut(storage, &used, rows);
    layer->qkv           = gpt_buffer_cut(storage, &used, rows * 3 * c);
    layer->probabilities = gpt_buffer_cut(storage, &used, rows * config->heads * config->context);
    layer->attention     = gpt_buffer_cut(storage, &used, rows * c);
    layer->middle        = gpt_buffer_cut(storage, &used, rows * c);
    layer->ln_2          = gpt_buffer_cut(storage, &used, rows * c);
    layer->ln_2_mean     = gpt_buffer_cut(storage, &used, rows);
    layer->ln_2_scale    = gpt_buffer_cut(storage, &used, rows);
    layer->fc            = gpt_buffer_cut(storage, &used, rows * 4 * c);
    layer->gelu          = gpt_buffer_cut(storage, &used, rows * 4 * c);
    return used;
}

/* The same for the buffers that are not a layer's. */
static size_t cut_shared(gpt_activations *a, real *storage, const gpt_config *config, size_t batch)
{
    const size_t rows = batch * config->context, c = config->width;
    size_t       used = 0;

    a->out        = gpt_buffer_cut(storage, &used, rows * c);
    a->ln_f       = gpt_buffer_cut(storage, &used, rows * c);
    a->ln_f_mean  = gpt_buffer_cut(storage, &used, rows);
    a->ln_f_scale = gpt_buffer_cut(storage, &used, rows);
    a->logits     = gpt_buffer_cut(storage, &used, rows * GPT_VOCABULARY);
    a->d_residual = gpt_buffer_cut(storage, &used, rows * c);
    a->d_narrow   = gpt_buffer_cut(storage, &used, rows * c);
    a->d_wide     = gpt_buffer_cut(storage, &used, rows * 4 * c);
    a->d_scores   = gpt_buffer_cut(storage, &used, GPT_ATTENTION_ROWS * config->context);
    return used;
}

size_t gpt_activations_bytes(const gpt_config *config, size_t batch)
{
    const double rows = (double)batch * (double)config->context, c = (double)config->width;
    const double layers = (double)config->layers, attention = (double)config->heads * (double)config->context;
    const double bound = rows * (layers * (16 * c + attention + 4) + 8 * c + 2 + GPT_VOCABULARY) +
                         (layers + 1) * MOST_BUFFERS * GPT_BUFFER_MULTIPLE +
                         GPT_ATTENTION_ROWS * (double)config->context;
    layer_activations layer;
    gpt_activations   a;

    if (rows > INT_MAX || 4 * c > INT_MAX || !whole(bound)) {
        return 0;
    }
    return (config->layers * cut_layer(&layer, NULL, config, batch) + cut_shared(&a, NULL, config, batch)) *
           sizeof(real);
}

gpt_activations *gpt_activations_create(const gpt_config *config, size_t batch)
{
    const size_t     bytes = gpt_activations_bytes(config, batch);
    gpt_activations *a     = bytes ? calloc(1, sizeof *a) : NULL;
    real            *next;
    size_t           i;

    if (!a) {
        return NULL;
    }
    a->config  = *config;
    a->layers  = calloc(config->layers, sizeof *a->layers);
    a->storage = aligned_alloc(CACHE_LINE, bytes);
    if (!a->layers || !a->storage) {
        gpt_activations_destroy(a);
        return NULL;
    }
    next = a->storage + cut_shared(a, a->storage, config, batch);
    for (i = 0; i < config->layers; i++) {
        next += cut_layer(&a->layers[i], next, config, batch);
    }
    gpt_profile_start(&a->profile);
    return a;
}

void gpt_activations_destroy(gpt_activations *a)
{
    if (!a) {
        return;
    }
    free(a->layers);
    free(a->storage);
    free(a);
}

gpt_profile *gpt_activations_profile(gpt_activations *a)
{
    return &a->profile;
}

/* The rows that a pass computes: from pass->first up to, not including, the value returned. */
static size_t rows_end(const gpt_pass *pass)
{
    return pass->batch * pass->length;
}

/* out = base + in weight + bias, with weight of (inputs, outputs); `base` may be NULL. */
static void linear(gpt_activations *a, const gpt_pass *pass, size_t inputs, size_t outputs, const real *in,
                   const real *weight, const real *bias, const real *base, real *out)
{
    const size_t first = pass->first, rows = rows_end(pass) - first;

    gpt_add_bias(rows, outputs, base ? base + first * outputs : NULL, bias, out + first * outputs);
    gpt_profile_lap(&a->profile, GPT_PART_BIAS);
    gpt_matmul(&a->profile, rows, outputs, inputs, 1, gpt_rows(in + first * inputs, inputs), gpt_rows(weight, outputs),
               1, out + first * outputs, outputs);
}

/* Adds to d_weight and, unless the caller has, to d_bias; then d_in = d_out weight^T. */
static void linear_backward(gpt_activations *a, size_t rows, size_t inputs, size_t outputs, const real *in,
                            const real *weight, const real *d_out, real *d_weight, real *d_bias, real *d_in)
{
    if (d_bias) {
        gpt_add_columns(rows, outputs, d_out, d_bias);
        gpt_profile_lap(&a->profile, GPT_PART_BIAS);
    }
    gpt_matmul(&a->profile, inputs, outputs, rows, 1, gpt_transposed(in, inputs), gpt_rows(d_out, outputs), 1, d_weight,
               outputs);
    gpt_matmul(&a->profile, rows, inputs, outputs, 1, gpt_rows(d_out, outputs), gpt_transposed(weight, outputs), 0,
               d_in, inputs);
}

static void layernorm(gpt_activations *a, const gpt_pass *pass, const real *in, const real *weight, const real *bias,
                      real *out, real *mean, real *scale)
{
    const size_t first = pass->first, c = a->config.width;

    gpt_layernorm(rows_end(pass) - first, c, in + first * c, weight, bias, out + first * c, mean + first,
                  scale + first);
    gpt_profile_lap(&a->profile, GPT_PART_LAYERNORM);
}

static gpt_attention attention_of(gpt_activations *a, const layer_activations *layer)
{
    const gpt_config *config = &a->config;

    return (gpt_attention){.heads         = config->heads,
                           .size          = config->width / config->heads,
                           .context       = config->context,
                           .step          = config->context * config->context,
                           .probabilities = layer->probabilities,
                           .d_scores      = a->d_scores,
                           .profile       = &a->profile};
}

/* Where a block's result goes: the next block's input. */
static real *block_out(const gpt_activations *a, size_t layer)
{
    return layer + 1 < a->config.layers ? a->layers[layer + 1].in : a->out;
}

void gpt_embedding_forward(gpt_activations *a, const gpt_pass *pass, const real *const *params)
{
    const size_t c = a->config.width;
    real        *x = a->layers[0].in;
    size_t       b, t;

    for (b = 0; b < pass->batch; b++) {
        for (t = pass->first; t < pass->length; t++) {
            const size_t token = pass->text[b * pass->stride + t];

            gpt_add_bias(1, c, params[GPT_WTE] + token * c, params[GPT_WPE] + t * c, x + (b * pass->length + t) * c);
        }
    }
    gpt_profile_lap(&a->profile, GPT_PART_EMBEDDING);
}

void gpt_block_forward(gpt_activations *a, const gpt_pass *pass, size_t layer, const real *const *params)
{
    const size_t             c = a->config.width, first = pass->first;
    const layer_activations *l         = &a->layers[layer];
    const gpt_attention      attention = attention_of(a, l);

    layernorm(a, pass, l->in, params[GPT_LN_1_WEIGHT], params[GPT_LN_1_BIAS], l->ln_1, l->ln_1_mean, l->ln_1_scale);
    linear(a, pass, c, 3 * c, l->ln_1, params[GPT_ATTN_WEIGHT], params[GPT_ATTN_BIAS], NULL, l->qkv);
    gpt_attention_forward(&attention, pass->batch, first, pass->length, l->qkv, l->attention);
    linear(a, pass, c, c, l->attention, params[GPT_ATTN_PROJ_WEIGHT], params[GPT_ATTN_PROJ_BIAS], l->in, l->middle);

    layernorm(a, pass, l->middle, params[GPT_LN_2_WEIGHT], params[GPT_LN_2_BIAS], l->ln_2, l->ln_2_mean, l->ln_2_scale);
    linear(a, pass, c, 4 * c, l->ln_2, params[GPT_FC_WEIGHT], params[GPT_FC_BIAS], NULL, l->fc);
    gpt_gelu((rows_end(pass) - first) * 4 * c, l->fc + first * 4 * c, l->gelu + first * 4 * c);
    gpt_profile_lap(&a->profile, GPT_PART_GELU);
    linear(a, pass, 4 * c, c, l->gelu, params[GPT_PROJ_WEIGHT], params[GPT_PROJ_BIAS], l->middle, block_out(a, layer));
}

void gpt_head_forward(gpt_activations *a, const gpt_pass *pass, const real *const *params)
{
    const size_t c = a->config.width, first = pass->first, rows = rows_end(pass) - first;

    layernorm(a, pass, a->out, params[GPT_LN_F_WEIGHT], params[GPT_LN_F_BIAS], a->ln_f, a->ln_f_mean, a->ln_f_scale);
    gpt_matmul(&a->profile, rows, GPT_VOCABULARY, c, 1, gpt_rows(a->ln_f + first * c, c),
               gpt_transposed(params[GPT_WTE], c), 0, a->logits + first * GPT_VOCABULARY, GPT_VOCABULARY);
}

const real *gpt_last_logits(const gpt_activations *a, const gpt_pass *pass)
{
    return a->logits + (rows_end(pass) - 1) * GPT_VOCABULARY;
}

static size_t target_of(const gpt_pass *pass, size_t row)
{
    return pass->text[row / pass->length * pass->stride + row % pass->length + 1];
}

double gpt_loss(gpt_activations *a, const gpt_pass *pass)
{
    double loss = 0;
    size_t row;

    for (row = pass->first; row < rows_end(pass); row++) {
        real        *logits = a->logits + row * GPT_VOCABULARY;
        const double target = (double)logits[target_of(pass, row)];

        loss += gpt_softmax(GPT_VOCABULARY, logits) - target;
    }
    gpt_profile_lap(&a->profile, GPT_PART_LOSS);
    return loss;
}

/* The gradient of the weighted mean loss by the logits: (probability - [is the target]) weight / rows. */
static void loss_backward(gpt_activations *a, const gpt_pass *pass, double weight)
{
    const size_t rows  = rows_end(pass);
    const real   share = (real)weight / (real)rows;
    size_t       row;

    for (row = 0; row < rows; row++) {
        a->logits[row * GPT_VOCABULARY + target_of(pass, row)] -= 1;
    }
    gpt_scale(rows * GPT_VOCABULARY, share, a->logits);
    gpt_profile_lap(&a->profile, GPT_PART_LOSS);
}

void gpt_head_backward(gpt_activations *a, const gpt_pass *pass, double weight, const real *const *params,
                       real *const *grads)
{
    const size_t c = a->config.width, rows = rows_end(pass), v = GPT_VOCABULARY;

    loss_backward(a, pass, weight);
    gpt_matmul(&a->profile, v, c, rows, 1, gpt_transposed(a->logits, v), gpt_rows(a->ln_f, c), 1, grads[GPT_WTE], c);
    gpt_matmul(&a->profile, rows, c, v, 1, gpt_rows(a->logits, v), gpt_rows(params[GPT_WTE], c), 0, a->d_narrow, c);
    memset(a->d_residual, 0, rows * c * sizeof(real));
    gpt_layernorm_backward(rows, c, a->d_narrow, a->out, a->ln_f_mean, a->ln_f_scale, params[GPT_LN_F_WEIGHT],
                           a->d_residual, grads[GPT_LN_F_WEIGHT], grads[GPT_LN_F_BIAS]);
    gpt_profile_lap(&a->profile, GPT_PART_LAYERNORM);
}

/* From the gradient of the residual stream after the MLP to that before it. */
static void mlp_backward(gpt_activations *a, size_t rows, const layer_activations *l, const real *const *params,
                         real *const *grads)
{
    const size_t c = a->config.width;

    linear_backward(a, rows, 4 * c, c, l->gelu, params[GPT_PROJ_WEIGHT], a->d_residual, grads[GPT_PROJ_WEIGHT],
                    grads[GPT_PROJ_BIAS], a->d_wide);
    gpt_gelu_backward(rows, 4 * c, l->fc, a->d_wide, grads[GPT_FC_BIAS]);
    gpt_profile_lap(&a->profile, GPT_PART_GELU);
    linear_backward(a, rows, c, 4 * c, l->ln_2, params[GPT_FC_WEIGHT], a->d_wide, grads[GPT_FC_WEIGHT], NULL,
                    a->d_narrow);
    gpt_layernorm_backward(rows, c, a->d_narrow, l->middle, l->ln_2_mean, l->ln_2_scale, params[GPT_LN_2_WEIGHT],
                           a->d_residual, grads[GPT_LN_2_WEIGHT], grads[GPT_LN_2_BIAS]);
    gpt_profile_lap(&a->profile, GPT_PART_LAYERNORM);
}

void gpt_block_backward(gpt_activations *a, const gpt_pass *pass, size_t layer, const real *const *params,
                        real *const *grads)
{
    const size_t             c = a->config.width, rows = rows_end(pass);
    const layer_activations *l         = &a->layers[layer];
    const gpt_attention      attention = attention_of(a, l);

    mlp_backward(a, rows, l, params, grads);
    linear_backward(a, rows, c, c, l->attention, params[GPT_ATTN_PROJ_WEIGHT], a->d_residual,
                    grads[GPT_ATTN_PROJ_WEIGHT], grads[GPT_ATTN_PROJ_BIAS], a->d_narrow);
    gpt_attention_backward(&attention, pass->batch, pass->length, l->qkv, a->d_narrow, a->d_wide);
    linear_backward(a, rows, c, 3 * c, l->ln_1, params[GPT_ATTN_WEIGHT], a->d_wide, grads[GPT_ATTN_WEIGHT],
                    grads[GPT_ATTN_BIAS], a->d_narrow);
    gpt_layernorm_backward(rows, c, a->d_narrow, l->in, l->ln_1_mean, l->ln_1_scale, params[GPT_LN_1_WEIGHT],
                           a->d_residual, grads[GPT_LN_1_WEIGHT], grads[GPT_LN_1_BIAS]);
    gpt_profile_lap(&a->profile, GPT_PART_LAYERNORM);
}

void gpt_embedding_backward(gpt_activations *a, const gpt_pass *pass, real *const *grads)
{
    const size_t c = a->config.width;
    size_t       b, t;

    for (b = 0; b < pass->batch; b++) {
        for (t = 0; t < pass->length; t++) {
            const size_t token = pass->text[b * pass->stride + t];
            const real  *d     = a->d_residual + (b * pass->length + t) * c;

            gpt_add(c, d, grads[GPT_WTE] + token * c);
            gpt_add(c, d, grads[GPT_WPE] + t * c);
        }
    }
    gpt_profile_lap(&a->profile, GPT_PART_EMBEDDING);
}
