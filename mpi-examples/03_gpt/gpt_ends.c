#include "gpt_ends.h"

#include <string.h>

#include "gpt_buffers.h"
#include "gpt_matmul.h"
#include "mpi-examples/common/example_error.h"

#define REAL_DTYPE (sizeof(real) == sizeof(double) ? FSDP_F64 : FSDP_F32)

size_t gpt_division_words(const gpt_division *d)
{
    return GPT_VOCABULARY / d->ranks;
}

size_t gpt_end_gradients_cut(gpt_end_gradients *grads, real *storage, const gpt_division *d, int first, int last)
{
    const size_t c    = d->config.width;
    size_t       used = 0;

    *grads             = (gpt_end_gradients){0};
    grads->of[GPT_WTE] = gpt_buffer_cut(storage, &used, gpt_division_words(d) * c);
    if (first) {
        grads->of[GPT_WPE] = gpt_buffer_cut(storage, &used, d->config.context * c);
    }
    if (last) {
        grads->of[GPT_LN_F_WEIGHT] = gpt_buffer_cut(storage, &used, c);
        grads->of[GPT_LN_F_BIAS]   = gpt_buffer_cut(storage, &used, c);
    }
    return used;
}

/* Numbers of another type take their place among reals. */
static void *cut_bytes(real *storage, size_t *used, size_t bytes)
{
    return gpt_buffer_cut(storage, used, (bytes + sizeof(real) - 1) / sizeof(real));
}

size_t gpt_head_cut(gpt_head *head, real *storage, const gpt_division *d, size_t batch)
{
    const size_t rows = gpt_division_rows(d, batch), own = gpt_division_own_rows(d, batch), c = d->config.width;
    size_t       used = 0;

    head->words   = gpt_division_words(d);
    head->ln_f    = gpt_buffer_cut(storage, &used, own * c);
    head->mean    = gpt_buffer_cut(storage, &used, own);
    head->scale   = gpt_buffer_cut(storage, &used, own);
    head->logits  = gpt_buffer_cut(storage, &used, rows * head->words);
    head->losses  = cut_bytes(storage, &used, rows * sizeof *head->losses);
    head->targets = cut_bytes(storage, &used, rows * sizeof *head->targets);
    head->norm    = gpt_buffer_cut(storage, &used, 2 * c);
    return used;
}

void gpt_words_of(const gpt_pass *pass, size_t ahead, int32_t *words)
{
    size_t b, t;

    for (b = 0; b < pass->batch; b++) {
        for (t = 0; t < pass->length; t++) {
            words[b * pass->length + t] = pass->text[b * pass->stride + t + ahead];
        }
    }
}

fsdp_status gpt_ends_embed(const gpt_division *d, gpt_workspace *work, size_t batch, const int32_t *words,
                           const real *table, const real *positions, real *out)
{
    const fsdp_tp_activations a   = gpt_division_activations(d, batch);
    const size_t              own = gpt_division_own_rows(d, batch), c = d->config.width;
    const size_t              first = d->sequence_parallel ? own * (size_t)fsdp_rank(d->tp) : 0;
    size_t                    r;

    EXAMPLE_TRY(fsdp_tp_embed(d->tp, &a, words, GPT_VOCABULARY, table, work->partial));
    EXAMPLE_TRY(fsdp_tp_end(d->tp, &a, work->partial, work->exchanged));
    for (r = 0; r < own; r++) {
        gpt_add_bias(1, c, work->exchanged + r * c, positions + (first + r) % d->config.context * c, out + r * c);
    }
    gpt_profile_lap(d->profile, GPT_PART_EMBEDDING);
    return FSDP_OK;
}

fsdp_status gpt_ends_embed_backward(const gpt_division *d, gpt_workspace *work, size_t batch, const int32_t *words,
                                    const real *gradient, const gpt_end_gradients *grads)
{
    const fsdp_tp_activations a = gpt_division_activations(d, batch);
    const size_t              c = d->config.width, rows = a.rows;
    size_t                    r;

    EXAMPLE_TRY(fsdp_tp_begin(d->tp, &a, gradient, work->partial));
    EXAMPLE_TRY(fsdp_tp_embed_backward(d->tp, &a, words, GPT_VOCABULARY, work->partial, grads->of[GPT_WTE]));
    for (r = 0; r < rows; r++) {
        gpt_add(c, work->partial + r * c, grads->of[GPT_WPE] + r % d->config.context * c);
    }
    gpt_profile_lap(d->profile, GPT_PART_EMBEDDING);
    return FSDP_OK;
}

/* All rows of the normalised activations. */
static fsdp_status whole_norm(const gpt_division *d, gpt_workspace *work, const gpt_head *head, size_t batch,
                              const real **whole)
{
    const fsdp_tp_activations a = gpt_division_activations(d, batch);

    *whole = head->ln_f;
    if (d->sequence_parallel) {
        EXAMPLE_TRY(fsdp_tp_begin(d->tp, &a, head->ln_f, work->whole));
        *whole = work->whole;
    }
    return FSDP_OK;
}

fsdp_status gpt_ends_logits(const gpt_division *d, gpt_workspace *work, gpt_head *head, size_t batch,
                            const real *const *params, const real *in)
{
    const size_t c = d->config.width;
    const real  *x;

    gpt_layernorm(gpt_division_own_rows(d, batch), c, in, params[GPT_LN_F_WEIGHT], params[GPT_LN_F_BIAS], head->ln_f,
                  head->mean, head->scale);
    gpt_profile_lap(d->profile, GPT_PART_LAYERNORM);
    EXAMPLE_TRY(whole_norm(d, work, head, batch, &x));
    gpt_matmul(d->profile, gpt_division_rows(d, batch), head->words, c, 1, gpt_rows(x, c),
               gpt_transposed(params[GPT_WTE], c), 0, head->logits, head->words);
    return FSDP_OK;
}

fsdp_status gpt_ends_loss(const gpt_division *d, gpt_head *head, size_t batch, double scale, double *loss)
{
    const size_t rows = gpt_division_rows(d, batch);
    size_t       r;

    EXAMPLE_TRY(fsdp_tp_cross_entropy(d->tp, rows, GPT_VOCABULARY, REAL_DTYPE, head->targets, scale, head->logits,
                                      head->losses));
    *loss = 0;
    for (r = 0; r < rows; r++) {
        *loss += head->losses[r];
    }
    gpt_profile_lap(d->profile, GPT_PART_LOSS);
    return FSDP_OK;
}

fsdp_status gpt_ends_head_backward(const gpt_division *d, gpt_workspace *work, gpt_head *head, size_t batch,
                                   const real *const *params, const real *in, const gpt_end_gradients *grads,
                                   real *gradient)
{
    const fsdp_tp_activations a = gpt_division_activations(d, batch);
    const size_t              c = d->config.width, v = head->words;
    const real               *x;

    EXAMPLE_TRY(whole_norm(d, work, head, batch, &x));
    gpt_matmul(d->profile, v, c, a.rows, 1, gpt_transposed(head->logits, v), gpt_rows(x, c), 1, grads->of[GPT_WTE], c);
    gpt_matmul(d->profile, a.rows, c, v, 1, gpt_rows(head->logits, v), gpt_rows(params[GPT_WTE], c), 0, work->partial,
               c);
    EXAMPLE_TRY(fsdp_tp_end(d->tp, &a, work->partial, work->exchanged));
    memset(gradient, 0, gpt_division_own_rows(d, batch) * c * sizeof(real));
    gpt_norm_backward(d, batch, work->exchanged, in, head->mean, head->scale, params[GPT_LN_F_WEIGHT], gradient,
                      head->norm, work->norm);
    EXAMPLE_TRY(gpt_sum_of_rows(d, head->norm, 2 * c));
    gpt_add(c, head->norm, grads->of[GPT_LN_F_WEIGHT]);
    gpt_add(c, head->norm + c, grads->of[GPT_LN_F_BIAS]);
    return FSDP_OK;
}
