/**
 * @file
 * GPT-2 on bytes, forward and backward: pre-norm blocks, learned positions, tanh GELU, an output head tied to the token
 * embedding. Pure computation on parameters and gradients that the caller provides, one block at a time: nothing here
 * knows about MPI, or where parameters come from.
 *
 * The architecture is Radford et al., "Language models are unsupervised multitask learners" (2019). Tensor names, shapes
 * and the order of dimensions (inputs, outputs) are those of Hugging Face's GPT2LMHeadModel.
 */
#ifndef GPT_MODEL_H
#define GPT_MODEL_H

#include <stddef.h>

#include "gpt_math.h"
#include "gpt_profile.h"

/** Tokens are bytes. */
#define GPT_VOCABULARY 256

typedef struct gpt_config {
    size_t layers, heads, width;
    size_t context; /* most positions of a sequence */
} gpt_config;

/** The tensors of the embedding unit, which holds all that is not in a block. */
enum { GPT_WTE, GPT_WPE, GPT_LN_F_WEIGHT, GPT_LN_F_BIAS, GPT_N_EMBEDDING_TENSORS };

/** The tensors of a block. */
enum {
    GPT_LN_1_WEIGHT,
    GPT_LN_1_BIAS,
    GPT_ATTN_WEIGHT,
    GPT_ATTN_BIAS,
    GPT_ATTN_PROJ_WEIGHT,
    GPT_ATTN_PROJ_BIAS,
    GPT_LN_2_WEIGHT,
    GPT_LN_2_BIAS,
    GPT_FC_WEIGHT,
    GPT_FC_BIAS,
    GPT_PROJ_WEIGHT,
    GPT_PROJ_BIAS,
    GPT_N_BLOCK_TENSORS
};

/** What the program needs to know of a tensor. Initial values are drawn with mean `mean` and deviation `deviation`. */
typedef struct gpt_tensor {
    char   name[64];
    size_t n_dims, shape[2], elements;
    double mean, deviation;
    int    decays; /* whether weight decay applies: matrices only */
} gpt_tensor;

/** Describes tensor `i` of the embedding unit, or of block `layer`. */
void gpt_embedding_tensor(const gpt_config *config, size_t i, gpt_tensor *tensor);
void gpt_block_tensor(const gpt_config *config, size_t layer, size_t i, gpt_tensor *tensor);

/** How many parameters the model has; 0 if more than memory can address. */
size_t gpt_parameters(const gpt_config *config);

/** What a forward pass leaves for the backward pass, and the space that both work in. */
typedef struct gpt_activations gpt_activations;

/** BYTES that gpt_activations_create() takes; 0 if more than memory can address or than CBLAS can index. */
size_t gpt_activations_bytes(const gpt_config *config, size_t batch);

/** Space for `batch` sequences of a whole context. @return NULL: out of memory. */
gpt_activations *gpt_activations_create(const gpt_config *config, size_t batch);
void             gpt_activations_destroy(gpt_activations *a);

/** The stopwatch that all functions below report to. */
gpt_profile *gpt_activations_profile(gpt_activations *a);

/**
 * What one pass works on: `batch` sequences, sequence b at text + b * stride, positions 0 to length - 1. The token that
 * follows position t, its target, is at t + 1.
 *
 * With `first` above 0, which is for batch 1 and forward only, positions before `first` are taken from the pass before:
 * that is how a text is continued without computing all of it anew.
 */
typedef struct gpt_pass {
    const unsigned char *text;
    size_t               stride, batch, first, length;
} gpt_pass;

/*
 * Forward: embedding, block 0 to layers - 1, head, loss. Backward: head, block layers - 1 to 0, embedding.
 * `params` and `grads` are a unit's tensors in the order of the enumerations. Gradients are added to.
 */

void gpt_embedding_forward(gpt_activations *a, const gpt_pass *pass, const real *const *params);
void gpt_block_forward(gpt_activations *a, const gpt_pass *pass, size_t layer, const real *const *params);

/** Ends with the logits of every position. */
void gpt_head_forward(gpt_activations *a, const gpt_pass *pass, const real *const *params);

/** The logits of the last position of the last sequence, until gpt_loss(). */
const real *gpt_last_logits(const gpt_activations *a, const gpt_pass *pass);

/** The sum of -ln(probability of the target) over all positions. Logits become probabilities. */
double gpt_loss(gpt_activations *a, const gpt_pass *pass);

/** The gradients are those of `weight` times the mean loss over the positions of this pass; the head follows gpt_loss(). */
void gpt_head_backward(gpt_activations *a, const gpt_pass *pass, double weight, const real *const *params,
                       real *const *grads);
void gpt_block_backward(gpt_activations *a, const gpt_pass *pass, size_t layer, const real *const *params,
                        real *const *grads);
void gpt_embedding_backward(gpt_activations *a, const gpt_pass *pass, real *const *grads);

#endif
