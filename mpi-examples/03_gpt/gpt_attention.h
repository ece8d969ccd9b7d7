/**
 * @file
 * Causal attention, forward and backward, head after head: of all heads of a layer, or of a rank's part of them.
 */
#ifndef GPT_ATTENTION_H
#define GPT_ATTENTION_H

#include <stddef.h>

#include "gpt_math.h"
#include "gpt_profile.h"

/** Rows of a causal attention matrix are worked on in blocks of this many, each up to its last column on the diagonal. */
#define GPT_ATTENTION_ROWS 64

typedef struct gpt_attention {
    size_t heads, size; /* size: of a head */
    size_t context;     /* most positions, and the distance of rows of probabilities */

    /**
     * ELEMENTS from the probabilities of one head of one sequence to those of the next: context x context; or 0, where all
     * have the same place: none outlive their head, and the backward pass computes them again.
     */
    size_t       step;
    real        *probabilities;
    real        *d_scores; /* GPT_ATTENTION_ROWS x context to work in, backward */
    gpt_profile *profile;
} gpt_attention;

/**
 * Positions `first` to `length` - 1 of each sequence.
 * @param[in]  qkv  per row queries, keys and values, each of heads x size
 * @param[out] out  per row heads x size
 */
void gpt_attention_forward(const gpt_attention *a, size_t batch, size_t first, size_t length, const real *qkv,
                           real *out);

/** @param[out] d_qkv  whatever it was before */
void gpt_attention_backward(const gpt_attention *a, size_t batch, size_t length, const real *qkv, const real *d_out,
                            real *d_qkv);

#endif
