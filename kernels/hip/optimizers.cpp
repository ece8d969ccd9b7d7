/* Steps of optimizers over flat shards: each array is read once and written once. */
#include "kernels/hip/element.h"

namespace fsdpi
{

typedef packet<float, 4> four;

enum { DECOUPLED = 1, COUPLED = 0 };

FSDPI_DEVICE float square_root(float x)
{
#if FSDPI_GPU_CODE
    return sqrtf(x);
#else
    return __builtin_sqrtf(x);
#endif
}

/* AdamW if the decay is decoupled from the gradient, else Adam. */
template <int DECAY> struct adam_step {
    enum { WIDTH = 4 };

    float       *w;
    const float *g;
    float       *m, *v;
    fsdpi_adam   c;

    FSDPI_DEVICE void one(float &weight, float gradient, float &mean, float &square) const
    {
        if (DECAY == DECOUPLED) {
            weight = weight - c.lr * c.weight_decay * weight;
        } else {
            gradient = gradient + c.weight_decay * weight;
        }
        mean   = c.beta1 * mean + c.rest1 * gradient;
        square = c.beta2 * square + c.rest2 * (gradient * gradient);
        weight = weight - c.lr * (mean / c.correction1) / (square_root(square / c.correction2) + c.eps);
    }

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        packet<float, N>       weight = load<N>(static_cast<const float *>(w) + i);
        packet<float, N>       mean   = load<N>(static_cast<const float *>(m) + i);
        packet<float, N>       square = load<N>(static_cast<const float *>(v) + i);
        const packet<float, N> slope  = load<N>(g + i);

        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            one(weight.at[k], slope.at[k], mean.at[k], square.at[k]);
        }
        store<N>(w + i, weight);
        store<N>(m + i, mean);
        store<N>(v + i, square);
    }
};

struct lion_step {
    enum { WIDTH = 4 };

    float       *w;
    const float *g;
    float       *m;
    fsdpi_lion   c;

    static FSDPI_DEVICE float sign(float x)
    {
        return x > 0 ? 1.0F : x < 0 ? -1.0F : x;
    }

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        packet<float, N>       weight = load<N>(static_cast<const float *>(w) + i);
        packet<float, N>       moment = load<N>(static_cast<const float *>(m) + i);
        const packet<float, N> slope  = load<N>(g + i);

        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            const float direction = sign(c.beta1 * moment.at[k] + (1 - c.beta1) * slope.at[k]);

            moment.at[k] = c.beta2 * moment.at[k] + (1 - c.beta2) * slope.at[k];
            weight.at[k] = weight.at[k] - c.lr * c.weight_decay * weight.at[k] - c.lr * direction;
        }
        store<N>(w + i, weight);
        store<N>(m + i, moment);
    }
};

struct sgd_step {
    enum { WIDTH = 4 };

    float       *w;
    const float *g;
    fsdpi_sgd    c;

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        packet<float, N>       weight = load<N>(static_cast<const float *>(w) + i);
        const packet<float, N> slope  = load<N>(g + i);

        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            const float step = slope.at[k] + c.weight_decay * weight.at[k];

            weight.at[k] = weight.at[k] - c.lr * step;
        }
        store<N>(w + i, weight);
    }
};

struct sgd_momentum_step {
    enum { WIDTH = 4 };

    float       *w;
    const float *g;
    float       *b;
    fsdpi_sgd    c;

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        packet<float, N>       weight = load<N>(static_cast<const float *>(w) + i);
        packet<float, N>       buffer = {};
        const packet<float, N> slope  = load<N>(g + i);

        if (c.first_step == 0) {
            buffer = load<N>(static_cast<const float *>(b) + i);
        }
        FSDPI_UNROLL
        for (int k = 0; k < N; k++) {
            const float step = slope.at[k] + c.weight_decay * weight.at[k];

            buffer.at[k] = c.first_step != 0 ? step : c.momentum * buffer.at[k] + step;
            weight.at[k] = weight.at[k] - c.lr * (c.nesterov != 0 ? step + c.momentum * buffer.at[k] : buffer.at[k]);
        }
        store<N>(w + i, weight);
        store<N>(b + i, buffer);
    }
};

template <class Step>
int step(const Step &body, const void *w, const void *g, const void *m, const void *v, size_t count,
         fsdpi_gpu_stream stream)
{
    operand      operands[4] = {{w, sizeof(float)}, {g, sizeof(float)}, {m, sizeof(float)}, {v, sizeof(float)}};
    const size_t n           = v != nullptr ? 4 : m != nullptr ? 3 : 2;

    return launch_elementwise(body, operands, n, count, stream);
}

} // namespace fsdpi

int fsdpi_gpu_adam(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c,
                   fsdpi_gpu_stream stream)
{
    return fsdpi::step(fsdpi::adam_step<fsdpi::COUPLED>{w, g, m, v, *c}, w, g, m, v, count, stream);
}

int fsdpi_gpu_adamw(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c,
                    fsdpi_gpu_stream stream)
{
    return fsdpi::step(fsdpi::adam_step<fsdpi::DECOUPLED>{w, g, m, v, *c}, w, g, m, v, count, stream);
}

int fsdpi_gpu_lion(float *w, const float *g, float *m, size_t count, const fsdpi_lion *c, fsdpi_gpu_stream stream)
{
    return fsdpi::step(fsdpi::lion_step{w, g, m, *c}, w, g, m, nullptr, count, stream);
}

int fsdpi_gpu_sgd(float *w, const float *g, float *b, size_t count, const fsdpi_sgd *c, fsdpi_gpu_stream stream)
{
    if (c->momentum == 0) {
        return fsdpi::step(fsdpi::sgd_step{w, g, *c}, w, g, nullptr, nullptr, count, stream);
    }
    return fsdpi::step(fsdpi::sgd_momentum_step{w, g, b, *c}, w, g, b, nullptr, count, stream);
}
