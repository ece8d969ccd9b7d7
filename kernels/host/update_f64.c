/*
 * Steps and sums in f64, in plain C, which compilers turn into vector instructions of what every processor has: no operation is
 * fused with another, so that what they give does not depend on which those are.
 */
#include <math.h>

#include "kernels/kernels.h"

void fsdpi_accumulate_f64(double *restrict sum, bool fresh, const double *restrict x, double factor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double term = factor * x[i];

        sum[i] = fresh ? term : sum[i] + term;
    }
}

static inline double adam_step(double *m, double *v, double g, const fsdpi_update_f64 *c)
{
    *m = c->beta1 * *m + c->rest1 * g;
    *v = c->beta2 * *v + c->rest2 * (g * g);
    return c->lr * (*m / c->correction1) / (sqrt(*v / c->correction2) + c->eps);
}

void fsdpi_adam_f64(double *restrict w, const double *restrict g, double *restrict m, double *restrict v, size_t count,
                    const fsdpi_update_f64 *c)
{
    for (size_t i = 0; i < count; i++) {
        w[i] = w[i] - adam_step(&m[i], &v[i], g[i] + c->weight_decay * w[i], c);
    }
}

void fsdpi_adamw_f64(double *restrict w, const double *restrict g, double *restrict m, double *restrict v, size_t count,
                     const fsdpi_update_f64 *c)
{
    const double decay = c->lr * c->weight_decay;

    for (size_t i = 0; i < count; i++) {
        w[i] = (w[i] - decay * w[i]) - adam_step(&m[i], &v[i], g[i], c);
    }
}

/* NaN and zeros are their own. */
static inline double sign_of(double x)
{
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}

void fsdpi_lion_f64(double *restrict w, const double *restrict g, double *restrict m, size_t count,
                    const fsdpi_update_f64 *c)
{
    const double decay = c->lr * c->weight_decay;

    for (size_t i = 0; i < count; i++) {
        const double direction = c->beta1 * m[i] + c->rest1 * g[i];

        m[i] = c->beta2 * m[i] + c->rest2 * g[i];
        w[i] = (w[i] - decay * w[i]) - c->lr * sign_of(direction);
    }
}

static void sgd_with_momentum(double *restrict w, const double *restrict g, double *restrict b, size_t count,
                              const fsdpi_update_f64 *c)
{
    for (size_t i = 0; i < count; i++) {
        const double d = g[i] + c->weight_decay * w[i];

        b[i] = c->first_step ? d : c->momentum * b[i] + d;
        w[i] = w[i] - c->lr * (c->nesterov ? d + c->momentum * b[i] : b[i]);
    }
}

void fsdpi_sgd_f64(double *restrict w, const double *restrict g, double *restrict b, size_t count,
                   const fsdpi_update_f64 *c)
{
    if (c->momentum != 0.0) {
        sgd_with_momentum(w, g, b, count, c);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        w[i] = w[i] - c->lr * (g[i] + c->weight_decay * w[i]);
    }
}
