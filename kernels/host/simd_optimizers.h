/**
 * @file
 * The steps of Adam, AdamW, Lion and SGD. Included once per instruction set.
 */
#ifndef FSDPI_KERNELS_HOST_SIMD_OPTIMIZERS_H
#define FSDPI_KERNELS_HOST_SIMD_OPTIMIZERS_H

#include "kernels/host/simd.h"
#include "kernels/kernels.h"

enum { F32_LANES = SIMD_BYTES / 4 };

SIMD_INLINE simd_f32 load(const float *p)
{
    return (simd_f32)simd_load(p, FSDP_F32);
}

SIMD_INLINE void store(float *p, simd_f32 x)
{
    simd_store(p, (simd)x, FSDP_F32);
}

/* AdamW's decay is decoupled, Adam's is added to the gradient. */
typedef enum adam_decay { DECAY_IN_GRADIENT, DECAY_DECOUPLED } adam_decay;

SIMD_INLINE void adam_vector(float *w, const float *g, float *m, float *v, const fsdpi_adam *c, adam_decay decay)
{
    simd_f32 weight   = load(w);
    simd_f32 gradient = load(g);

    if (decay == DECAY_IN_GRADIENT) {
        gradient = gradient + simd_f32_splat(c->weight_decay) * weight;
    } else {
        weight = weight - simd_f32_splat(c->lr * c->weight_decay) * weight;
    }
    simd_f32 mean    = simd_f32_splat(c->beta1) * load(m) + simd_f32_splat(c->rest1) * gradient;
    simd_f32 square  = simd_f32_splat(c->beta2) * load(v) + simd_f32_splat(c->rest2) * (gradient * gradient);
    simd_f32 divisor = simd_f32_sqrt(square / simd_f32_splat(c->correction2)) + simd_f32_splat(c->eps);
    simd_f32 step    = simd_f32_splat(c->lr) * (mean / simd_f32_splat(c->correction1)) / divisor;

    store(m, mean);
    store(v, square);
    store(w, weight - step);
}

SIMD_INLINE void update_adam(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *coefficients,
                             adam_decay decay)
{
    const fsdpi_adam c = *coefficients; /* which no store can change: the vectors of them stay in registers */
    float            tail[4][F32_LANES] = {0};
    size_t           i                  = 0, bytes;

    for (; count - i >= F32_LANES; i += F32_LANES) {
        adam_vector(w + i, g + i, m + i, v + i, &c, decay);
    }
    if (i == count) {
        return;
    }
    bytes = (count - i) * sizeof *w;
    simd_copy_tail(tail[0], w + i, bytes);
    simd_copy_tail(tail[1], g + i, bytes);
    simd_copy_tail(tail[2], m + i, bytes);
    simd_copy_tail(tail[3], v + i, bytes);
    adam_vector(tail[0], tail[1], tail[2], tail[3], &c, decay);
    simd_copy_tail(w + i, tail[0], bytes);
    simd_copy_tail(m + i, tail[2], bytes);
    simd_copy_tail(v + i, tail[3], bytes);
}

static void adam(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c)
{
    update_adam(w, g, m, v, count, c, DECAY_IN_GRADIENT);
}

static void adamw(float *w, const float *g, float *m, float *v, size_t count, const fsdpi_adam *c)
{
    update_adam(w, g, m, v, count, c, DECAY_DECOUPLED);
}

SIMD_INLINE void lion_vector(float *w, const float *g, float *m, const fsdpi_lion *c)
{
    simd_f32 gradient  = load(g);
    simd_f32 moment    = load(m);
    simd_f32 weight    = load(w);
    simd_f32 direction = simd_f32_splat(c->beta1) * moment + simd_f32_splat(1 - c->beta1) * gradient;

    store(m, simd_f32_splat(c->beta2) * moment + simd_f32_splat(1 - c->beta2) * gradient);
    store(w,
          weight - simd_f32_splat(c->lr * c->weight_decay) * weight - simd_f32_splat(c->lr) * simd_f32_sign(direction));
}

static void lion(float *w, const float *g, float *m, size_t count, const fsdpi_lion *coefficients)
{
    const fsdpi_lion c                  = *coefficients;
    float            tail[3][F32_LANES] = {0};
    size_t           i                  = 0, bytes;

    for (; count - i >= F32_LANES; i += F32_LANES) {
        lion_vector(w + i, g + i, m + i, &c);
    }
    if (i == count) {
        return;
    }
    bytes = (count - i) * sizeof *w;
    simd_copy_tail(tail[0], w + i, bytes);
    simd_copy_tail(tail[1], g + i, bytes);
    simd_copy_tail(tail[2], m + i, bytes);
    lion_vector(tail[0], tail[1], tail[2], &c);
    simd_copy_tail(w + i, tail[0], bytes);
    simd_copy_tail(m + i, tail[2], bytes);
}

SIMD_INLINE void sgd_vector(float *w, const float *g, float *b, const fsdpi_sgd *c)
{
    simd_f32 weight = load(w);
    simd_f32 d      = load(g) + simd_f32_splat(c->weight_decay) * weight;

    if (c->momentum != 0) {
        simd_f32 momentum = simd_f32_splat(c->momentum);
        simd_f32 buffer   = d;

        if (!c->first_step) {
            buffer = momentum * load(b) + d;
        }
        store(b, buffer);
        if (c->nesterov) {
            d = d + momentum * buffer;
        } else {
            d = buffer;
        }
    }
    store(w, weight - simd_f32_splat(c->lr) * d);
}

static void sgd(float *w, const float *g, float *b, size_t count, const fsdpi_sgd *coefficients)
{
    const fsdpi_sgd c                  = *coefficients;
    bool            buffered           = c.momentum != 0;
    float           tail[3][F32_LANES] = {0};
    size_t          i                  = 0, bytes;

    for (; count - i >= F32_LANES; i += F32_LANES) {
        sgd_vector(w + i, g + i, buffered ? b + i : NULL, &c);
    }
    if (i == count) {
        return;
    }
    bytes = (count - i) * sizeof *w;
    simd_copy_tail(tail[0], w + i, bytes);
    simd_copy_tail(tail[1], g + i, bytes);
    if (buffered) {
        simd_copy_tail(tail[2], b + i, bytes);
    }
    sgd_vector(tail[0], tail[1], tail[2], &c);
    simd_copy_tail(w + i, tail[0], bytes);
    if (buffered) {
        simd_copy_tail(b + i, tail[2], bytes);
    }
}

#endif
