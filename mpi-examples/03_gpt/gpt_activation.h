/**
 * @file
 * What a transformer layer keeps of a micro-batch until its backward pass, by formula: a list of activations, each with its size
 * and with what divides it. It knows nothing of buffers: tests hold it against those that gpt_layer.c cuts, to the byte, and
 * against what Korthikanti et al. (2022) have published of theirs.
 */
#ifndef GPT_ACTIVATION_H
#define GPT_ACTIVATION_H

#include <stddef.h>

/** What an activation has one number for, in each of the rows. */
typedef enum gpt_activation_extent {
    GPT_PER_ROW,    /* a row */
    GPT_PER_WIDTH,  /* a row and element of the residual stream */
    GPT_PER_SCORES, /* a row, head and position that it attends to */
} gpt_activation_extent;

/** What divides it. */
typedef enum gpt_activation_divided {
    GPT_DIVIDED_BY_ROWS, /* outside of regions: by sequence parallelism only */
    GPT_DIVIDED_BY_PARTS /* within: each rank of tensor parallelism has its part */
} gpt_activation_divided;

typedef struct gpt_activation {
    const char            *name;
    gpt_activation_extent  extent;
    size_t                 times; /* so many of it: 4 for the MLP's hidden layer, which is 4 widths */
    size_t                 bytes; /* of a number */
    gpt_activation_divided divided;
    int                    is_input; /* the layer's, which is kept in any case */
} gpt_activation;

/** A layer and how it is divided and kept. */
typedef struct gpt_activation_shape {
    size_t rows; /* samples x positions */
    size_t width, heads, context;
    size_t ranks; /* of tensor parallelism */
    int    sequence_parallel;
    int    without_scores; /* these are computed again: selective recomputation */
    int    input_only;     /* everything is: full recomputation */
    size_t multiple;       /* each activation takes a multiple of so many numbers; 1: what it has */
} gpt_activation_shape;

/** BYTES of one activation, and of all on a list, of one layer on one rank. Local. */
size_t gpt_activation_bytes(const gpt_activation *activation, const gpt_activation_shape *shape);
size_t gpt_activations_sum(const gpt_activation *list, size_t n, const gpt_activation_shape *shape);

/** Those of 03_gpt. */
extern const gpt_activation gpt_activation_list[];
extern const size_t         gpt_activation_list_length;

#endif
