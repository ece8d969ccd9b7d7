/*
 * Layers computed and differentiated by LibTorch, versions 1.13 and 2, on tensors that are gathered and gradient views:
 * mpirun -n 3 with_libtorch
 */
#include <torch/torch.h>

#include "guide.h"

using torch::Tensor;

/* begin wrap */
/* A layer's parameters as leaves, made in its first pass: fixed_addresses lets them stay for all others. */
struct layer {
    Tensor weight, bias;
    Tensor x, y; /* what goes in and what comes out; between them lies the part of the graph that backward follows */
};

static Tensor wrap(const void *view, const std::vector<int64_t> &shape)
{
    return torch::from_blob(const_cast<void *>(view), shape, torch::kFloat32); /* no copy, and nothing to release */
}

static void wrap_parameters(layer &l, fsdp_unit *unit, size_t i)
{
    const auto inputs = static_cast<int64_t>(widths[i]), outputs = static_cast<int64_t>(widths[i + 1]);

    if (!l.weight.defined()) {
        l.weight = wrap(fsdp_unit_param(unit, WEIGHT), {outputs, inputs}).requires_grad_();
        l.bias   = wrap(fsdp_unit_param(unit, BIAS), {outputs}).requires_grad_();
    }
}
/* end wrap */

/* begin forward */
static int forward(guide *g, layer &l, size_t i, const Tensor &x)
{
    TRY(fsdp_unit_begin_forward(g->layers[i]));
    wrap_parameters(l, g->layers[i], i);
    l.x = x.detach().requires_grad_(i > 0); /* each unit has a graph of its own */
    l.y = torch::linear(l.x, l.weight, l.bias);
    l.y = i + 1 < LAYERS ? l.y.tanh() : l.y;
    TRY(fsdp_unit_end_forward(g->layers[i]));
    return EXIT_SUCCESS;
}
/* end forward */

/* begin backward */
/* Autograd adds to a gradient that is there already, in place: to the unit's gradient views, which are zero. */
static int backward(guide *g, layer &l, size_t i, const Tensor &dy)
{
    TRY(fsdp_unit_begin_backward(g->layers[i])); /* the graph's pointers to parameters are good again */
    l.weight.mutable_grad() = wrap(fsdp_unit_grad(g->layers[i], WEIGHT), l.weight.sizes().vec());
    l.bias.mutable_grad()   = wrap(fsdp_unit_grad(g->layers[i], BIAS), l.bias.sizes().vec());
    l.y.backward(dy);
    l.weight.mutable_grad().reset();
    l.bias.mutable_grad().reset();
    l.y.reset();
    TRY(fsdp_unit_end_backward(g->layers[i]));
    return EXIT_SUCCESS;
}
/* end backward */

static int train_step(guide *g, std::vector<layer> &layers, float *loss)
{
    Tensor x = wrap(g->x, {SAMPLES, static_cast<int64_t>(widths[0])});

    for (size_t i = 0; i < LAYERS; i++) {
        TRY(forward(g, layers[i], i, x));
        x = layers[i].y;
    }
    const Tensor y     = x.detach().requires_grad_();
    const Tensor error = torch::mse_loss(y, wrap(g->target, {SAMPLES, 1}));
    error.backward();
    *loss     = error.item<float>();
    Tensor dy = y.grad();
    for (size_t i = LAYERS; i-- > 0;) {
        TRY(backward(g, layers[i], i, dy));
        dy = layers[i].x.grad(); /* of the first layer: none */
    }
    TRY(fsdp_optimizer_step(g->optimizer));
    return EXIT_SUCCESS;
}

static int train(fsdp_context *ctx, int, char **)
{
    std::vector<layer> layers(LAYERS);
    guide              g    = {};
    float              loss = 0.0F;

    torch::set_num_threads(1); /* a rank has few cores to itself; fsdp_binding() says which */
    int result = guide_open(&g, ctx, 1);
    for (size_t step = 0; step < STEPS && result == EXIT_SUCCESS; step++) {
        guide_draw_batch(&g, step);
        result = train_step(&g, layers, &loss) || guide_report(&g, step, loss);
    }
    fsdp_model_destroy(g.model);
    return result;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
