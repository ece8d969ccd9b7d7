/*
 * Parameters that are gathered as 8-bit integers: 256 elements of a flat parameter share a scale. Tensors of a unit that are
 * gathered in one type, all frozen or none, follow each other in a flat parameter; one that units share is its own.
 */
#include <float.h>
#include <math.h>

#include "tests/shard/random/numbers.h"
#include "tests/shard/random/serial.h"

enum { BLOCK = 256 };

bool is_quantized(const serial_model *s, size_t t)
{
    const planned_tensor *owner = &s->m->tensors[s->m->tensors[t].owner];

    return s->segment->options.quantized_params && owner->dtype == FSDP_F32 &&
           (owner->flags & (FSDP_TENSOR_KEEP_DTYPE | FSDP_TENSOR_IGNORED)) == 0;
}

static bool is_shared(const random_model *m, size_t owner)
{
    for (size_t t = 0; t < m->n_tensors; t++) {
        if (m->tensors[t].owner == owner && m->tensors[t].unit != m->tensors[owner].unit) {
            return true;
        }
    }
    return false;
}

static bool go_together(const serial_model *s, size_t a, size_t b)
{
    const random_model       *m = s->m;
    const fsdp_model_options *o = &s->segment->options;

    return a == b || (m->tensors[a].unit == m->tensors[b].unit && m->tensors[b].owner == b && is_quantized(s, b) &&
                      !is_shared(m, a) && !is_shared(m, b) && type_of_view(m, o, a) == type_of_view(m, o, b) &&
                      has_gradient(m, a) == has_gradient(m, b));
}

/* Elements of a flat parameter, up to a block of them. */
typedef struct block {
    const float *from[BLOCK];
    float       *to[BLOCK];
    size_t       n;
} block;

static void gather_block(block *b, fsdp_dtype dtype)
{
    float most = 0.0F;

    for (size_t i = 0; i < b->n; i++) {
        most = fmaxf(most, fabsf(*b->from[i]));
    }
    const float scale = fmaxf(most / 127.0F, FLT_MIN), inverse = 1.0F / scale;
    for (size_t i = 0; i < b->n; i++) {
        const int code = (int)nearbyintf(*b->from[i] * inverse);

        *b->to[i] = nearest_of(dtype, scale * (float)code);
    }
    b->n = 0;
}

/* The flat parameter that an owner belongs to. */
static void gather_flat(serial_model *s, size_t owner)
{
    const planned_unit *unit  = &s->m->units[s->m->tensors[owner].unit];
    const fsdp_dtype    dtype = type_of_view(s->m, &s->segment->options, owner);
    block               b     = {.n = 0};

    for (size_t t = unit->first; t < unit->end; t++) {
        for (size_t i = 0; go_together(s, owner, t) && i < s->m->tensors[t].count; i++) {
            b.from[b.n] = &s->tensors[t].master[i];
            b.to[b.n++] = &s->tensors[t].view[i];
            if (b.n == BLOCK) {
                gather_block(&b, dtype);
            }
        }
    }
    if (b.n > 0) {
        gather_block(&b, dtype);
    }
}

void serial_gather_quantized(serial_model *s, size_t unit)
{
    for (size_t t = s->m->units[unit].first; t < s->m->units[unit].end; t++) {
        if (is_quantized(s, t)) {
            gather_flat(s, s->m->tensors[t].owner);
        }
    }
}
