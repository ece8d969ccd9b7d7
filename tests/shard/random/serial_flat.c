#include "tests/shard/random/serial_flat.h"

#include <float.h>
#include <math.h>

static bool is_shared(const random_model *m, size_t owner)
{
    for (size_t t = 0; t < m->n_tensors; t++) {
        if (m->tensors[t].owner == owner && m->tensors[t].unit != m->tensors[owner].unit) {
            return true;
        }
    }
    return false;
}

/* Of the tensors of one unit; one that units share is alone. */
static bool go_together(const serial_model *s, size_t a, size_t b)
{
    const random_model       *m = s->m;
    const fsdp_model_options *o = &s->segment->options;

    a = m->tensors[a].owner;
    b = m->tensors[b].owner;
    return a == b || (!is_ignored(m, a) && !is_ignored(m, b) && !is_shared(m, a) && !is_shared(m, b) &&
                      type_of_view(m, o, a) == type_of_view(m, o, b) && is_quantized(s, a) == is_quantized(s, b) &&
                      has_gradient(m, a) == has_gradient(m, b) &&
                      (!has_gradient(m, a) || optimizer_of(m, a) == optimizer_of(m, b)));
}

static size_t narrower(fsdp_dtype a, fsdp_dtype b)
{
    const size_t wide = fsdp_dtype_size(a), narrow = fsdp_dtype_size(b);

    return wide < narrow ? wide : narrow;
}

/* Moments in 8 bits come in blocks; frozen tensors are in no group. */
static size_t granularity_of(const serial_model *s, size_t name)
{
    const bool       trains = has_gradient(s->m, name);
    const size_t     k      = trains ? optimizer_of(s->m, name) : 0;
    const size_t     own    = trains ? s->segment->granularities[k] : FSDP_GRANULARITY_FLAT;
    const fsdp_dtype dtype  = trains ? s->m->optimizers[k].options.moment_dtype : s->segment->options.moment_dtype;

    return own == FSDP_GRANULARITY_FLAT && dtype == FSDP_U8 ? 256 : own;
}

/* ELEMENTS that stay together; of whole tensors 1, where the order of tensors makes no difference. */
static size_t block_of(const serial_model *s, size_t name)
{
    const size_t n = granularity_of(s, name);

    return n == FSDP_GRANULARITY_FLAT || n == FSDP_GRANULARITY_TENSOR ? 1 : n;
}

/* Tensors begin at 64 bytes in each view, and in what it is unpacked from. */
static size_t next_begin(const serial_model *s, size_t name, size_t end)
{
    const random_model       *m = s->m;
    const fsdp_model_options *o = &s->segment->options;

    name                     = m->tensors[name].owner;
    const fsdp_dtype view    = type_of_view(m, o, name);
    const size_t     narrow  = has_gradient(m, name) ? narrower(view, o->reduce_dtype) : fsdp_dtype_size(view);
    const size_t     packed  = granularity_of(s, name) == FSDP_GRANULARITY_FLAT ? 64 : 256; /* which share a scale */
    const size_t     aligned = is_quantized(s, name) ? packed : 64 / narrow;
    size_t           begin   = (end + aligned - 1) / aligned * aligned;

    while (begin % block_of(s, name) != 0) {
        begin += aligned;
    }
    return begin;
}

/* How many slices: one where every rank holds all of it. */
static size_t slices_of(const serial_model *s, size_t name, size_t elements)
{
    const size_t bytes = elements * fsdp_dtype_size(type_of_view(s->m, &s->segment->options, name));

    return (int64_t)bytes < s->segment->config.small_bytes ? 1 : (size_t)s->segment->size;
}

/* Of each of `n`: where slices end anywhere a multiple of 256, else of what tensors begin at. */
static size_t slice_of(const serial_model *s, size_t name, size_t elements, size_t n)
{
    const size_t shard = (elements + n - 1) / n;

    return granularity_of(s, name) == FSDP_GRANULARITY_FLAT ? (shard + 255) / 256 * 256 : next_begin(s, name, shard);
}

serial_flat serial_flat_of(const serial_model *s, size_t name)
{
    const planned_unit *unit = &s->m->units[s->m->tensors[name].unit];
    serial_flat         flat = {.n = 0};
    size_t              end = 0, elements = 0;

    for (size_t t = unit->first; t < unit->end; t++) {
        if (s->m->tensors[t].first != t || !go_together(s, name, t)) {
            continue;
        }
        if (flat.n == 0 && t != name) {
            return flat;
        }
        end                    = next_begin(s, name, end);
        flat.names[flat.n]     = t;
        flat.offsets[flat.n++] = end;
        end += s->m->tensors[t].count;
        elements += s->m->tensors[t].count;
    }
    const size_t slices = slices_of(s, name, elements);

    flat.slice  = slice_of(s, name, end, slices);
    flat.padded = flat.slice * slices;
    return flat;
}

void round_to_int8(float *values, size_t n)
{
    float most = 0.0F;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            most = NAN;
        }
        most = isnan(most) ? most : fmaxf(most, fabsf(values[i]));
    }
    const float scale = isnan(most) ? NAN : fmaxf(most / 127.0F, FLT_MIN), inverse = 1.0F / scale;
    for (size_t i = 0; i < n; i++) {
        const int code = isnan(scale) ? 0 : (int)nearbyintf(values[i] * inverse);

        values[i] = scale * (float)code;
    }
}
