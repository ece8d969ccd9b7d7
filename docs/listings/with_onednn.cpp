/*
 * Layers computed by oneDNN, versions 2 and 3, straight on gathered and gradient views: mpirun -n 3 with_onednn
 */
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "guide.h"

using dnnl::memory;
using tag = memory::format_tag;

/* begin product */
/* C = A B, made once for given sizes. `ba` says of an operand that it lies there transposed. */
struct product {
    memory       a, b, c; /* with no memory of their own */
    dnnl::matmul primitive;

    product(const dnnl::engine &engine, memory::dim m, memory::dim k, memory::dim n, tag a_tag, tag b_tag)
        : a({{m, k}, memory::data_type::f32, a_tag}, engine, DNNL_MEMORY_NONE),
          b({{k, n}, memory::data_type::f32, b_tag}, engine, DNNL_MEMORY_NONE),
          c({{m, n}, memory::data_type::f32, tag::ab}, engine, DNNL_MEMORY_NONE)
    {
#if DNNL_VERSION_MAJOR >= 3
        primitive = dnnl::matmul({engine, a.get_desc(), b.get_desc(), c.get_desc()});
#else
        primitive = dnnl::matmul({dnnl::matmul::desc(a.get_desc(), b.get_desc(), c.get_desc()), engine});
#endif
    }

    /* views may lie elsewhere in each pass, so that each call says where */
    void operator()(dnnl::stream &stream, const float *from_a, const float *from_b, float *to)
    {
        a.set_data_handle(const_cast<float *>(from_a)); /* only read */
        b.set_data_handle(const_cast<float *>(from_b));
        c.set_data_handle(to);
        primitive.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
        stream.wait(); /* before the pass ends */
    }
};
/* end product */

struct layer {
    memory::dim        inputs, outputs;
    bool               last;
    std::vector<float> x, y, dx, ones;
    product            forward, to_weight, to_bias, to_input;

    layer(const dnnl::engine &e, size_t i)
        : inputs(memory::dim(widths[i])), outputs(memory::dim(widths[i + 1])), last(i + 1 == LAYERS),
          y(SAMPLES * widths[i + 1]), dx(SAMPLES * widths[i]), ones(SAMPLES, 1.0F),
          forward(e, SAMPLES, inputs, outputs, tag::ab, tag::ba),   /* x W^T */
          to_weight(e, outputs, SAMPLES, inputs, tag::ba, tag::ab), /* dy^T x */
          to_bias(e, 1, SAMPLES, outputs, tag::ab, tag::ab), to_input(e, SAMPLES, outputs, inputs, tag::ab, tag::ab)
    {
    }
};

/* begin step */
static int train_step(guide *g, std::vector<layer> &layers, dnnl::stream &stream, float *loss)
{
    std::vector<float> x(g->x, g->x + SAMPLES * widths[0]), dy(SAMPLES);

    for (size_t i = 0; i < LAYERS; i++) {
        layer &l = layers[i];
        TRY(fsdp_unit_begin_forward(g->layers[i]));
        const auto *bias = static_cast<const float *>(fsdp_unit_param(g->layers[i], BIAS));
        l.x              = x;
        l.forward(stream, l.x.data(), static_cast<const float *>(fsdp_unit_param(g->layers[i], WEIGHT)), l.y.data());
        for (size_t at = 0; at < l.y.size(); at++) {
            const float sum = l.y[at] + bias[at % widths[i + 1]];
            l.y[at]         = l.last ? sum : tanhf(sum);
        }
        TRY(fsdp_unit_end_forward(g->layers[i]));
        x = l.y;
    }
    *loss = guide_compare(g, x.data(), dy.data());
    for (size_t i = LAYERS; i-- > 0;) {
        layer &l = layers[i];
        for (size_t at = 0; at < dy.size() && !l.last; at++) {
            dy[at] *= 1.0F - l.y[at] * l.y[at];
        }
        TRY(fsdp_unit_begin_backward(g->layers[i]));
        l.to_weight(stream, dy.data(), l.x.data(), static_cast<float *>(fsdp_unit_grad(g->layers[i], WEIGHT)));
        l.to_bias(stream, l.ones.data(), dy.data(), static_cast<float *>(fsdp_unit_grad(g->layers[i], BIAS)));
        l.to_input(stream, dy.data(), static_cast<const float *>(fsdp_unit_param(g->layers[i], WEIGHT)), l.dx.data());
        TRY(fsdp_unit_end_backward(g->layers[i]));
        dy = l.dx;
    }
    TRY(fsdp_optimizer_step(g->optimizer));
    return EXIT_SUCCESS;
}
/* end step */

static int train(fsdp_context *ctx, int, char **)
{
    dnnl::engine       engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream       stream(engine);
    std::vector<layer> layers;
    guide              g    = {};
    float              loss = 0.0F;

    for (size_t i = 0; i < LAYERS; i++) {
        layers.emplace_back(engine, i);
    }
    int result = guide_open(&g, ctx, 0);
    for (size_t step = 0; step < STEPS && result == EXIT_SUCCESS; step++) {
        guide_draw_batch(&g, step);
        result = train_step(&g, layers, stream, &loss) || guide_report(&g, step, loss);
    }
    fsdp_model_destroy(g.model);
    return result;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, train);
}
