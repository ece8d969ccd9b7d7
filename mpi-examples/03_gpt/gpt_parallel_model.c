/* The model of a rank on a mesh: the tensors of its stages, and how each is divided over tensor parallelism. */
#include <stdio.h>

#include "gpt_parallel.h"
#include "mpi-examples/common/example_error.h"

/* How a tensor is divided over tensor parallelism. */
typedef struct part {
    unsigned flags;
    uint32_t dimension, blocks;
} part;

#define WHOLE                                                                                                          \
    {                                                                                                                  \
        0, 0, 0                                                                                                        \
    }
#define ALONG(dimension)                                                                                               \
    {                                                                                                                  \
        FSDP_TENSOR_TP, dimension, 1                                                                                   \
    }

/* Columns of queries, keys and values: each rank has those of its heads. */
#define HEADS(dimension)                                                                                               \
    {                                                                                                                  \
        FSDP_TENSOR_TP, dimension, 3                                                                                   \
    }

static const part layer_parts[GPT_N_BLOCK_TENSORS] = {
    [GPT_LN_1_WEIGHT] = WHOLE,  [GPT_LN_1_BIAS] = WHOLE,           [GPT_ATTN_WEIGHT] = HEADS(1),
    [GPT_ATTN_BIAS] = HEADS(0), [GPT_ATTN_PROJ_WEIGHT] = ALONG(0), [GPT_ATTN_PROJ_BIAS] = WHOLE,
    [GPT_LN_2_WEIGHT] = WHOLE,  [GPT_LN_2_BIAS] = WHOLE,           [GPT_FC_WEIGHT] = ALONG(1),
    [GPT_FC_BIAS] = ALONG(0),   [GPT_PROJ_WEIGHT] = ALONG(0),      [GPT_PROJ_BIAS] = WHOLE};
static const part end_parts[GPT_N_EMBEDDING_TENSORS] = {
    [GPT_WTE] = ALONG(0), [GPT_WPE] = WHOLE, [GPT_LN_F_WEIGHT] = WHOLE, [GPT_LN_F_BIAS] = WHOLE};

fsdp_tensor gpt_whole_tensor(const gpt_tensor *t)
{
    return (fsdp_tensor){.name   = t->name,
                         .n_dims = t->n_dims,
                         .shape  = {t->shape[0], t->shape[1]},
                         .dtype  = FSDP_F32,
                         .fill   = t->deviation > 0 ? FSDP_FILL_NORMAL : FSDP_FILL_CONSTANT,
                         .a      = t->mean,
                         .b      = t->deviation,
                         .flags  = t->decays ? 0 : FSDP_TENSOR_NO_WEIGHT_DECAY};
}

static fsdp_tensor divided(const gpt_tensor *t, const part *how)
{
    fsdp_tensor tensor = gpt_whole_tensor(t);

    tensor.flags |= how->flags;
    tensor.tp_dim    = how->dimension;
    tensor.tp_blocks = how->blocks;
    return tensor;
}

/* The table of words is at both ends; positions belong to the first, the last norm to the last. */
static int end_has(const gpt_stages *s, size_t tensor)
{
    return tensor == GPT_WTE ? s->has_first || s->has_last : tensor == GPT_WPE ? s->has_first : s->has_last;
}

/* Units have their place in files, whatever stages they are on: the ends come first. */
static fsdp_status add_ends(gpt_parallel *p)
{
    gpt_stages *s = &p->stages;
    gpt_tensor  about[GPT_N_EMBEDDING_TENSORS];
    fsdp_tensor tensors[GPT_N_EMBEDDING_TENSORS];
    size_t      n = 0, i;

    for (i = 0; i < GPT_N_EMBEDDING_TENSORS; i++) {
        s->tensors[i] = FSDP_NO_TENSOR;
        if (end_has(s, i)) {
            gpt_embedding_tensor(&p->options->config, i, &about[i]);
            tensors[n]    = divided(&about[i], &end_parts[i]);
            s->tensors[i] = n++;
        }
    }
    if (n == 0) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(fsdp_unit_add(p->model, "embedding", tensors, n, &s->embedding));
    return fsdp_unit_set_place(s->embedding, 0);
}

static fsdp_status add_layer(gpt_parallel *p, size_t layer)
{
    gpt_tensor  about[GPT_N_BLOCK_TENSORS];
    fsdp_tensor tensors[GPT_N_BLOCK_TENSORS];
    char        name[32];
    size_t      i;

    for (i = 0; i < GPT_N_BLOCK_TENSORS; i++) {
        gpt_block_tensor(&p->options->config, layer, i, &about[i]);
        tensors[i] = divided(&about[i], &layer_parts[i]);
    }
    (void)snprintf(name, sizeof name, "h.%zu", layer);
    EXAMPLE_TRY(fsdp_unit_add(p->model, name, tensors, GPT_N_BLOCK_TENSORS, &p->stages.layers[layer]));
    return fsdp_unit_set_place(p->stages.layers[layer], layer + 1);
}

fsdp_status gpt_parallel_describe(gpt_parallel *p)
{
    const gpt_options *o       = p->options;
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    char               strategies[GPT_STRATEGIES_BYTES];
    size_t             layer;

    options.strategy        = o->strategy;
    options.group_size      = o->group_size;
    options.seed            = o->seed;
    options.moment_dtype    = o->moment_dtype;
    options.local_gradients = p->stages.micros > 1;
    options.mesh            = p->mesh.mesh;
    options.tensor_axis     = "tp";
    options.stage_axis      = "pp";
    options.axis_strategies = gpt_mesh_strategies(o, strategies);
    EXAMPLE_TRY(fsdp_model_create(p->mesh.dp, &options, &p->model));
    EXAMPLE_TRY(fsdp_model_strategy(p->model, &p->strategy, &p->group_size));
    EXAMPLE_TRY(add_ends(p));
    for (layer = 0; layer < o->config.layers; layer++) {
        if (p->ranks[layer / (size_t)p->stages.layers_each] == fsdp_rank(p->mesh.pp)) {
            EXAMPLE_TRY(add_layer(p, layer));
        }
    }
    return FSDP_OK;
}
