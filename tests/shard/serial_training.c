#include "tests/shard/serial_training.h"

static int node_of_rank[64];

void note_nodes(const fsdp_context *ctx)
{
    const int mine = fsdp_node_index(ctx);

    MPI_Allgather(&mine, 1, MPI_INT, node_of_rank, 1, MPI_INT, MPI_COMM_WORLD);
}

/* Of the ranks of a node, in rank order; `nodes` are those of all ranks. */
static float gradient_of_node(const int *nodes, int node, int size, int pass, size_t t, size_t i, float w)
{
    float sum   = 0.0F;
    int   first = 1;

    for (int r = 0; r < size; r++) {
        if (nodes[r] == node) {
            const float g = gradient_element(r, pass, t, i, w);
            sum           = first ? g : sum + g;
            first         = 0;
        }
    }
    return sum;
}

/* The mean over ranks, in f32: in rank order within each node, then over these. */
static float mean_gradient(const fsdp_context *ctx, int pass, size_t t, size_t i, float w)
{
    const int size = fsdp_size(ctx);
    float     sum  = gradient_of_node(node_of_rank, 0, size, pass, t, i, w);

    for (int m = 1; m < fsdp_node_count(ctx); m++) {
        sum += gradient_of_node(node_of_rank, m, size, pass, t, i, w);
    }
    return sum / (float)size;
}

void serial_pass(serial_model *s, const fsdp_context *ctx, int pass)
{
    size_t k = 0;

    for (size_t t = 0; t < N_TENSORS; t++) {
        for (size_t i = 0; i < tensor_elements(t); i++, k++) {
            const float g = mean_gradient(ctx, pass, t, i, s->w[k]);
            s->g[k]       = s->fresh ? g : s->g[k] + g;
        }
    }
    s->fresh = 0;
}

void train_and_compare(fsdp_strategy strategy, const fsdp_optimizer_options *o, int steps, int accumulate)
{
    static serial_model s;
    small_model         m;
    fsdp_optimizer     *optimizer;
    int                 pass = 0;

    small_model_open(&m, NULL, strategy);
    note_nodes(m.ctx);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, o, &optimizer));
    s = (serial_model){.fresh = 1};
    copy_parameters(&m, s.w);
    for (int step = 0; step < steps; step++) {
        for (int k = 0; k < accumulate; k++, pass++) {
            run_pass(&m, pass);
            serial_pass(&s, m.ctx, pass);
        }
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        serial_step(&s, o, NULL);
        assert_equal_parameters(&s, &m, step);
    }
    assert_int_equal((size_t)steps, fsdp_optimizer_steps(optimizer));
    small_model_close(&m);
}
