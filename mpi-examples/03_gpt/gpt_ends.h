/**
 * @file
 * The two ends of the network, divided over the ranks of tensor parallelism by words of the vocabulary: the embedding before the
 * first layer, and the head with its loss behind the last one, which are tied by the table of words.
 *
 * Gradients of their parameters are added up here, over the micro-batches of a step, and not in the views of a unit: those of the
 * table come from both ends, which may be on two ranks, and are summed when the step has both.
 */
#ifndef GPT_ENDS_H
#define GPT_ENDS_H

#include <stdint.h>

#include "gpt_layer.h"

/** Gradients of the embedding unit's tensors, in the order of gpt_model.h; NULL: not of this end. */
typedef struct gpt_end_gradients {
    real *of[GPT_N_EMBEDDING_TENSORS];
} gpt_end_gradients;

/** What the head works in. V: this rank's part of the vocabulary. */
typedef struct gpt_head {
    real    *ln_f;    /* S x C */
    real    *mean;    /* S */
    real    *scale;   /* S */
    real    *logits;  /* R x V: then their gradients */
    double  *losses;  /* R */
    int32_t *targets; /* R */
    real    *norm;    /* 2 C: gradients of the norm, of one micro-batch */
    size_t   words;   /* V */
} gpt_head;

/** Of this rank. Local. */
size_t gpt_division_words(const gpt_division *d);

/** As those of gpt_layer.h. `first` and `last`: whether the embedding, or the head, is on this rank. */
size_t gpt_end_gradients_cut(gpt_end_gradients *grads, real *storage, const gpt_division *d, int first, int last);
size_t gpt_head_cut(gpt_head *head, real *storage, const gpt_division *d, size_t batch);

/** The words of a batch, and those that follow them: a row of them for each position. Local. */
void gpt_words_of(const gpt_pass *pass, size_t ahead, int32_t *words);

/** `out`: this rank's rows. Collective over `tp`, as the functions below. */
fsdp_status gpt_ends_embed(const gpt_division *d, gpt_workspace *work, size_t batch, const int32_t *words,
                           const real *table, const real *positions, real *out);

/** Adds to the gradients of table and positions. */
fsdp_status gpt_ends_embed_backward(const gpt_division *d, gpt_workspace *work, size_t batch, const int32_t *words,
                                    const real *gradient, const gpt_end_gradients *grads);

/** From the last layer's output to this rank's logits of every position. `params`: of the embedding unit. */
fsdp_status gpt_ends_logits(const gpt_division *d, gpt_workspace *work, gpt_head *head, size_t batch,
                            const real *const *params, const real *in);

/**
 * The sum of the losses of head->targets, in the order of rows, the same on all ranks. Logits become their gradients times `scale`.
 */
fsdp_status gpt_ends_loss(const gpt_division *d, gpt_head *head, size_t batch, double scale, double *loss);

/** From these to `gradient`, of `in`; adds to those of table and norm. */
fsdp_status gpt_ends_head_backward(const gpt_division *d, gpt_workspace *work, gpt_head *head, size_t batch,
                                   const real *const *params, const real *in, const gpt_end_gradients *grads,
                                   real *gradient);

#endif
