/* What 03_gpt would hold on a node of 4 ranks, by its budgets alone: FULL_SHARD beside NO_SHARD. */
#include <stdio.h>

#include "fsdp/model.h"
#include "mpi-examples/03_gpt/gpt_model.h"
#include "tests/support/mpi_test.h"

enum { RANKS_OF_NODE = 4 };

static fsdp_tensor described(const gpt_tensor *about)
{
    return (fsdp_tensor){
        .name = about->name, .n_dims = about->n_dims, .shape = {about->shape[0], about->shape[1]}, .dtype = FSDP_F32};
}

static void add_units(fsdp_model *model, const gpt_config *config)
{
    gpt_tensor  about[GPT_N_BLOCK_TENSORS];
    fsdp_tensor tensors[GPT_N_BLOCK_TENSORS];
    fsdp_unit  *unit;

    for (size_t i = 0; i < GPT_N_EMBEDDING_TENSORS; i++) {
        gpt_embedding_tensor(config, i, &about[i]);
        tensors[i] = described(&about[i]);
    }
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "embedding", tensors, GPT_N_EMBEDDING_TENSORS, &unit));
    for (size_t layer = 0; layer < config->layers; layer++) {
        char name[32];

        for (size_t i = 0; i < GPT_N_BLOCK_TENSORS; i++) {
            gpt_block_tensor(config, layer, i, &about[i]);
            tensors[i] = described(&about[i]);
        }
        (void)snprintf(name, sizeof name, "h.%zu", layer);
        assert_int_equal(FSDP_OK, fsdp_unit_add(model, name, tensors, GPT_N_BLOCK_TENSORS, &unit));
    }
}

/* BYTES of a node: model state and the views of parameters and gradients. */
static double budget_line(const fsdp_budget *b, fsdp_memory_kind kind)
{
    return (double)b->bytes[kind];
}

static double state_of_node(const fsdp_budget *b)
{
    return RANKS_OF_NODE * (budget_line(b, FSDP_MEMORY_PARAMETERS) + budget_line(b, FSDP_MEMORY_GRADIENTS) +
                            budget_line(b, FSDP_MEMORY_OPTIMIZER));
}

/* Gathered ones once, those of gradients of each rank. */
static double views_of_node(const fsdp_budget *b)
{
    return (double)b->shared + RANKS_OF_NODE * budget_line(b, FSDP_MEMORY_GRADIENT_VIEWS);
}

/* NO_SHARD's buckets, which are views of gradients, are left out: they only make its share look better. */
static double share_of_full_shard(fsdp_context *ctx, size_t layers)
{
    const gpt_config config = {.layers = layers, .heads = 6, .width = 384, .context = 256};
    fsdp_budget      full, none;
    fsdp_model      *model;

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    add_units(model, &config);
    assert_int_equal(FSDP_OK, fsdp_model_budget(model, FSDP_FULL_SHARD, RANKS_OF_NODE, FSDP_ADAMW, &full));
    assert_int_equal(FSDP_OK, fsdp_model_budget(model, FSDP_NO_SHARD, RANKS_OF_NODE, FSDP_ADAMW, &none));
    fsdp_model_destroy(model);
    const double share = (state_of_node(&full) + views_of_node(&full)) / state_of_node(&none);
    printf("%zu layers: FULL_SHARD %.1f + %.1f MB of views, NO_SHARD %.1f + %.1f MB: %.1f%% of its state\n", layers,
           1e-6 * state_of_node(&full), 1e-6 * views_of_node(&full), 1e-6 * state_of_node(&none),
           1e-6 * views_of_node(&none), 100 * share);
    return share;
}

static void a_node_holds_two_fifths_of_what_it_holds_without_sharding(void **state)
{
    assert_true(share_of_full_shard(*state, 6) < 0.41);
    assert_true(share_of_full_shard(*state, 8) < 0.37);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_holds_two_fifths_of_what_it_holds_without_sharding)};

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
