/**
 * @file
 * Where the time of a step goes: a stopwatch that never stops, each lap of which counts for one part.
 */
#ifndef GPT_PROFILE_H
#define GPT_PROFILE_H

/** The parts: name, text. */
#define GPT_PART_LIST(X)                                                                                               \
    X(GPT_PART_MATMUL, "matrix products")                                                                              \
    X(GPT_PART_ATTENTION, "attention softmax")                                                                         \
    X(GPT_PART_LAYERNORM, "layer norm")                                                                                \
    X(GPT_PART_GELU, "GELU")                                                                                           \
    X(GPT_PART_BIAS, "bias and residual")                                                                              \
    X(GPT_PART_EMBEDDING, "embedding")                                                                                 \
    X(GPT_PART_LOSS, "softmax and loss")                                                                               \
    X(GPT_PART_SHARDING, "gather and reduce")                                                                          \
    X(GPT_PART_OPTIMIZER, "clip and optimizer")                                                                        \
    X(GPT_PART_OTHER, "data and reports")

#define GPT_PART_ENUMERATOR(name, text) name,
typedef enum gpt_part { GPT_PART_LIST(GPT_PART_ENUMERATOR) GPT_N_PARTS } gpt_part;
#undef GPT_PART_ENUMERATOR

typedef struct gpt_profile {
    double seconds[GPT_N_PARTS];
    double last; /* when the last lap ended */
} gpt_profile;

/** Forgets all laps; the first one begins now. */
void gpt_profile_start(gpt_profile *profile);

/** Counts the time since the last lap for `part`. */
void gpt_profile_lap(gpt_profile *profile, gpt_part part);

/** The text of a part. */
const char *gpt_part_name(gpt_part part);

#endif
