/**
 * @file
 * A layer divided over the ranks of tensor parallelism: each has some of the heads and some of the MLP's hidden units. Two
 * regions follow each other, attention and MLP, with an exchange at either end of each (fsdp/tensor_parallel.h):
 *
 *     x, normalised   --begin-->   queries, keys, values; heads; projection      --end-->   + x        attention
 *     x, normalised   --begin-->   first matrix; GELU; second matrix             --end-->   + x        MLP
 *
 * Between regions every rank has all rows of the activations, or, under sequence parallelism, a part of them. The sums of both
 * have the same order, so that results have the same bits. On one rank of tensor parallelism nothing is exchanged.
 *
 * What the backward pass needs of the forward pass is kept per layer and micro-batch, in a gpt_kept: all of it, all but the
 * probabilities of attention, or only the layer's input, whence all else is computed again, with the same bits.
 */
#ifndef GPT_LAYER_H
#define GPT_LAYER_H

#include <stddef.h>

#include <fsdp/fsdp.h>

#include "gpt_activation.h"
#include "gpt_math.h"
#include "gpt_model.h"
#include "gpt_options.h"
#include "gpt_profile.h"

/** How layers are divided. */
typedef struct gpt_division {
    gpt_config    config; /* of the whole model */
    size_t        ranks;  /* over which a layer is divided: those of `tp` */
    int           sequence_parallel;
    gpt_recompute recompute;
    fsdp_context *tp;
    gpt_profile  *profile;
} gpt_division;

/**
 * What one layer keeps of one micro-batch. R rows, of which S are outside of regions this rank's (all of them, but for sequence
 * parallelism), C the width, I = C / ranks what this rank's heads have together, F = 4 I of the MLP.
 */
typedef struct gpt_kept {
    real       *own;       /* S x C: memory for the input; NULL where that has its own, as what a pipeline hands over */
    const real *in;        /* S x C: the input */
    real       *ln_1;      /* S x C */
    real       *ln_1_mean; /* S */
    real       *ln_1_scale;    /* S */
    real       *qkv;           /* R x 3 I */
    real       *probabilities; /* per sequence and head of this rank: context x context; NULL: not kept */
    real       *attention;     /* R x I */
    real       *middle;        /* S x C: between attention and MLP */
    real       *ln_2;          /* S x C */
    real       *ln_2_mean;     /* S */
    real       *ln_2_scale;    /* S */
    real       *fc;            /* R x F: before GELU */
    real       *gelu;          /* R x F */
} gpt_kept;

/** Gradients from which those of a layer's parameters follow: from its gpt_layer_backward_input() to its backward_weight(). */
typedef struct gpt_owed {
    real *d_out;    /* R x C: of the layer's output */
    real *d_fc;     /* R x F */
    real *d_middle; /* R x C */
    real *d_qkv;    /* R x 3 I */
    real *fc_bias;  /* F: gradients themselves */
    real *norms;    /* GPT_N_NORMS x C: gradients of the two norms, of this rank's rows */
} gpt_owed;

/** The rows of gpt_owed::norms. */
enum { GPT_NORM_1_WEIGHT, GPT_NORM_1_BIAS, GPT_NORM_2_WEIGHT, GPT_NORM_2_BIAS, GPT_N_NORMS };

/** What all layers of a rank work in, one after the other. */
typedef struct gpt_workspace {
    real    *whole;         /* R x C: all rows of what this rank has a part of; NULL without sequence parallelism */
    real    *partial;       /* R x C: this rank's terms of a sum over the ranks */
    real    *exchanged;     /* S x C: that sum */
    real    *d_attention;   /* R x I */
    real    *d_scores;      /* of one block of rows */
    real    *probabilities; /* of one head, where they are not kept; else NULL */
    real    *norm;          /* 2 C: gradients of a norm, of a part of the rows */
    gpt_kept again;         /* of the layer that was computed last; only where inputs alone are kept */

    const gpt_kept *again_of; /* which one that is */
} gpt_workspace;

/** A layer as gpt_activation.h sees it, of `batch` sequences. Local. */
gpt_activation_shape gpt_division_shape(const gpt_division *d, size_t batch);

/** Of this rank: rows of `batch` sequences outside of regions, and in them. Local. */
size_t gpt_division_own_rows(const gpt_division *d, size_t batch);
size_t gpt_division_rows(const gpt_division *d, size_t batch);

/** What ranks exchange of these rows. Local. */
fsdp_tp_activations gpt_division_activations(const gpt_division *d, size_t batch);

/**
 * Lay out what has been described above for `batch` sequences, from `storage` on, and return how many ELEMENTS that takes; NULL
 * only counts. Local.
 */
size_t gpt_kept_cut(gpt_kept *kept, real *storage, const gpt_division *d, size_t batch, int with_input);
size_t gpt_owed_cut(gpt_owed *owed, real *storage, const gpt_division *d, size_t batch);
size_t gpt_workspace_cut(gpt_workspace *work, real *storage, const gpt_division *d, size_t batch);

/**
 * From kept->in to `out`, both of this rank's rows. Collective over `tp`, as the functions below.
 * @param[in] params  this rank's parts of a block's tensors, in the order of gpt_model.h
 */
fsdp_status gpt_layer_forward(const gpt_division *d, gpt_workspace *work, size_t batch, const real *const *params,
                              gpt_kept *kept, real *out);

/** @param[in,out] gradient  that of the output becomes that of the input, of this rank's rows */
fsdp_status gpt_layer_backward_input(const gpt_division *d, gpt_workspace *work, size_t batch,
                                     const real *const *params, gpt_kept *kept, gpt_owed *owed, real *gradient);

/** Adds the gradients of the parameters. */
fsdp_status gpt_layer_backward_weight(const gpt_division *d, gpt_workspace *work, size_t batch,
                                      const real *const *params, gpt_kept *kept, const gpt_owed *owed,
                                      real *const *grads);

/**
 * The backward pass of a norm of this rank's rows: adds to d_in, and puts the gradients of weight and bias into `d_norm` (2 C),
 * as the sum over blocks of rows that sequence parallelism would take. `scratch`: 2 C. Local.
 */
void gpt_norm_backward(const gpt_division *d, size_t batch, const real *d_out, const real *in, const real *mean,
                       const real *scale, const real *weight, real *d_in, real *d_norm, real *scratch);

/** Sums `count` gradients that are of this rank's rows: under sequence parallelism over `tp`, else they are whole. */
fsdp_status gpt_sum_of_rows(const gpt_division *d, real *gradients, size_t count);

#endif
