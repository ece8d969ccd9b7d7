/*
 * The hook of 8-bit integers, as fsdp/hook.h says: of n ranks each sums a part of the gradient, of whole blocks. Each rank rounds
 * its gradient, with what was left of its last one; the parts are averaged in rank order, and the means, with what was left of the
 * last ones, rounded again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/random/serial_flat.h"

void serial_forget_hook(serial_model *s)
{
    for (size_t t = 0; t < MOST_TENSORS; t++) {
        free(s->left[t]);
        s->left[t] = NULL;
    }
}

void serial_rescale_hook(serial_model *s, double factor)
{
    for (size_t t = 0; t < MOST_TENSORS; t++) {
        for (size_t i = 0; s->left[t] != NULL && i < s->n_left[t]; i++) {
            s->left[t][i] *= (float)factor;
        }
    }
}

/* What the hook averages at a time: `count` elements of each of `n` ranks, with what is left of each, and of the mean. */
typedef struct part {
    float *values[MOST_RANKS], *left[MOST_RANKS], *mean, *mean_left;
    size_t count, n, block;
} part;

/* ELEMENTS that each rank sums. */
static size_t share_of(const part *p)
{
    const size_t even = (p->count + p->n - 1) / p->n;

    return (even + p->block - 1) / p->block * p->block;
}

/* Where more than f32 would be sent, gradients are sent as they are. */
static bool pays(const part *p)
{
    const size_t share = share_of(p), packed = share / p->block * 4 + (share + 3) / 4 * 4;

    return p->n > 1 && packed * p->n < p->count * sizeof(float);
}

static float plain_mean(const serial_model *s, const part *p, size_t i)
{
    float terms[MOST_RANKS];

    for (size_t r = 0; r < p->n; r++) {
        terms[r] = p->values[r][i];
    }
    return serial_mean_of_groups(s->segment, terms, FSDP_F32);
}

/* Blocks begin anew with each rank's share. */
static void round_all(const part *p, float *values)
{
    for (size_t begin = 0; begin < p->count; begin += share_of(p)) {
        const size_t end = begin + share_of(p) < p->count ? begin + share_of(p) : p->count;

        for (size_t i = begin; i < end; i += p->block) {
            round_to_int8(values + i, end - i < p->block ? end - i : p->block);
        }
    }
}

static bool is_finite(const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

static void average(const part *p, float *exact, float *rounded)
{
    for (size_t r = 0; r < p->n; r++) {
        for (size_t i = 0; i < p->count; i++) {
            p->values[r][i] += p->left[r][i];
            rounded[r * p->count + i] = p->values[r][i];
        }
        round_all(p, rounded + r * p->count);
    }
    for (size_t i = 0; i < p->count; i++) {
        float sum = rounded[i];

        for (size_t r = 1; r < p->n; r++) {
            sum += rounded[r * p->count + i];
        }
        exact[i] = p->mean[i] = sum / (float)p->n + p->mean_left[i];
    }
    round_all(p, p->mean);
    const bool keep = is_finite(p->mean, p->count);
    for (size_t i = 0; keep && i < p->count; i++) {
        p->mean_left[i] = exact[i] - p->mean[i];
    }
    for (size_t r = 0; keep && r < p->n; r++) {
        for (size_t i = 0; i < p->count; i++) {
            p->left[r][i] = p->values[r][i] - rounded[r * p->count + i];
        }
    }
}

static void average_part(const serial_model *s, const part *p)
{
    float *memory = calloc((p->n + 1) * p->count, sizeof *memory);

    if (!pays(p)) {
        for (size_t i = 0; i < p->count; i++) {
            p->mean[i] = plain_mean(s, p, i);
        }
    } else if (memory != NULL) {
        average(p, memory, memory + p->count);
    }
    free(memory);
}

/* ---- a flat parameter -------------------------------------------------------------------------------------------- */

/* What each of those between whom the hook averages has of it: `terms` are of all ranks, `count` elements each. */
static void average_in_groups(const serial_model *s, const float *terms, size_t count, float *means)
{
    const size_t group = (size_t)serial_hook_group(s->segment), n = (size_t)s->segment->size / group;

    for (size_t g = 0; g < n; g++) {
        for (size_t i = 0; i < count; i++) {
            float of_group[MOST_RANKS];

            for (size_t r = 0; r < group; r++) {
                of_group[r] = terms[(g * group + r) * count + i];
            }
            means[g * count + i] = serial_mean_of_group(s->segment, of_group);
        }
    }
}

static void average_flat(serial_model *s, const serial_flat *flat, float *terms, float *means, float *result)
{
    const size_t group = (size_t)serial_hook_group(s->segment), n = (size_t)s->segment->size / group;
    const size_t held = flat->padded / group, key = s->m->tensors[flat->names[0]].owner;

    s->n_left[key] = (n + 1) * flat->padded;
    if (s->left[key] == NULL) {
        s->left[key] = calloc(s->n_left[key], sizeof(float));
    }
    average_in_groups(s, terms, flat->padded, means);
    for (size_t at = 0; s->left[key] != NULL && at < flat->padded; at += held) {
        part p = {.count = held, .n = n, .block = INT8_BLOCK};

        for (size_t g = 0; g < n; g++) {
            p.values[g] = means + g * flat->padded + at;
            p.left[g]   = s->left[key] + g * flat->padded + at;
        }
        p.mean      = result + at;
        p.mean_left = s->left[key] + n * flat->padded + at;
        average_part(s, &p);
    }
}

static void collect_terms(const serial_model *s, const serial_flat *flat, float *terms)
{
    for (size_t k = 0; k < flat->n; k++) {
        for (int r = 0; r < s->segment->size; r++) {
            for (size_t i = 0; i < s->m->tensors[flat->names[k]].count; i++) {
                terms[(size_t)r * flat->padded + flat->offsets[k] + i] = serial_term(s, flat->names[k], r, i);
            }
        }
    }
}

static void reduce_flat(serial_model *s, const serial_flat *flat)
{
    const size_t size  = (size_t)s->segment->size;
    float       *terms = calloc((2 * size + 1) * flat->padded, sizeof *terms);

    if (terms == NULL) {
        return;
    }
    float *means = terms + size * flat->padded, *result = means + size * flat->padded;
    collect_terms(s, flat, terms);
    average_flat(s, flat, terms, means, result);
    for (size_t k = 0; k < flat->n; k++) {
        serial_add_means(s, flat->names[k], result + flat->offsets[k]);
    }
    free(terms);
}

void serial_reduce_by_int8(serial_model *s, size_t unit)
{
    for (size_t t = s->m->units[unit].first; t < s->m->units[unit].end; t++) {
        if (has_gradient(s->m, t) && s->m->tensors[t].first == t) {
            const serial_flat flat = serial_flat_of(s, t);

            if (flat.n > 0) {
                reduce_flat(s, &flat);
            }
        }
    }
}
