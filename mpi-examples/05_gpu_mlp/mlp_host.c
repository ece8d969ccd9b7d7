/* Plain loops. Each sum is in the order in which a thread of the GPU has it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mlp_device.h"

static void *allocate(mlp_device *device, size_t bytes)
{
    (void)device;
    return malloc(bytes);
}

static void release(mlp_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static void copy(mlp_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
}

/* Row `r` of the product, before anything else is done to it: step by step, so that the inner loop has no sum to wait for. */
static void multiply_row(const mlp_product *p, size_t r, float *out)
{
    memset(out, 0, p->columns * sizeof *out);
    for (size_t s = 0; s < p->steps; s++) {
        const float  a = p->a.data[r * p->a.row + s * p->a.column];
        const float *b = p->b.data + s * p->b.row;

        for (size_t c = 0; c < p->columns; c++) {
            out[c] += a * b[c * p->b.column];
        }
    }
}

static void multiply(mlp_device *device, const mlp_product *p)
{
    (void)device;
    for (size_t r = 0; r < p->rows; r++) {
        float *out = p->out + r * p->columns;

        multiply_row(p, r, out);
        for (size_t c = 0; c < p->columns; c++) {
            const float value = out[c] + (p->bias ? p->bias[c] : 0);
            const int   off   = (p->rectify && value < 0) || (p->gate && p->gate[r * p->columns + c] <= 0);

            out[c] = off ? 0 : value;
        }
    }
}

static void activate(mlp_device *device, const mlp_activation *a)
{
    (void)device;
    for (size_t i = 0; i < a->rows * a->columns; i++) {
        const float value = a->values[i] + a->bias[i % a->columns];

        a->values[i] = a->rectify && value < 0 ? 0 : value;
    }
}

static void sum(mlp_device *device, const mlp_sum *s)
{
    (void)device;
    memset(s->out, 0, s->columns * sizeof *s->out);
    for (size_t r = 0; r < s->rows; r++) {
        for (size_t c = 0; c < s->columns; c++) {
            s->out[c] += s->data[r * s->columns + c];
        }
    }
}

static size_t largest(const float *values, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++) {
        best = values[i] > values[best] ? i : best;
    }
    return best;
}

static void row_loss(const mlp_loss *l, size_t r)
{
    float       *logits = l->logits + r * l->columns, total = 0;
    const size_t label = l->labels[r], best = largest(logits, l->columns);
    const float  most = logits[best], own = logits[label] - most;

    for (size_t c = 0; c < l->columns; c++) {
        logits[c] = expf(logits[c] - most);
        total += logits[c];
    }
    for (size_t c = 0; c < l->columns; c++) {
        logits[c] = (logits[c] / total - (c == label ? 1.0F : 0.0F)) * l->scale;
    }
    l->losses[r] = logf(total) - own;
    l->found[r]  = best == label;
}

static void loss(mlp_device *device, const mlp_loss *l)
{
    (void)device;
    for (size_t r = 0; r < l->rows; r++) {
        row_loss(l, r);
    }
}

static void close_host(mlp_device *device)
{
    (void)device;
}

mlp_device mlp_host_open(void)
{
    return (mlp_device){.name     = "host",
                        .alloc    = allocate,
                        .release  = release,
                        .send     = copy,
                        .fetch    = copy,
                        .multiply = multiply,
                        .activate = activate,
                        .sum      = sum,
                        .loss     = loss,
                        .close    = close_host};
}
