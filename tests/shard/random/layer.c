#include "tests/shard/random/layer.h"

#include "tests/shard/random/numbers.h"

enum { KEY_INPUT = 1, KEY_WEIGHT, KEY_GRADIENT, KEY_BUFFER, KEY_IMPORT, KEY_ROW, KEY_COLUMN };

void forget_activations(activations *a, uint64_t seed, int rank, size_t passes)
{
    *a = (activations){.x = (double)hashed_number(seed, KEY_INPUT, (uint64_t)rank, passes)};
}

double tensor_output(const random_model *m, size_t t, const float *w)
{
    double sum = 0.0;

    for (size_t i = 0; i < m->tensors[t].count; i++) {
        sum += (double)w[i] * (double)hashed_number(m->seed, KEY_WEIGHT, t, i % 61);
    }
    return sum / (double)m->tensors[t].count;
}

void forward_unit(activations *a, size_t unit, double output)
{
    a->into[unit] = a->x;
    a->x          = 0.5 * a->x + 0.3 * output;
}

/* Times a number of each rank and pass: a matrix of rank 1, for all names of its owner the same. */
static float rank_one_element(const random_model *m, size_t t, size_t i)
{
    const planned_tensor *tensor  = &m->tensors[t];
    const size_t          columns = tensor->n_dims > 1 ? tensor->count / tensor->shape[0] : 1;

    return hashed_number(m->seed, KEY_ROW, tensor->owner, i / columns) *
           hashed_number(m->seed, KEY_COLUMN, tensor->owner, i % columns);
}

float gradient_of(const random_model *m, const activations *a, size_t t, size_t i, float w, int rank, size_t pass,
                  double scale)
{
    const float own = hashed_number(m->seed + (uint64_t)rank, KEY_GRADIENT + 16 * t, i, pass);
    if (m->approximate) {
        const float size = hashed_number(m->seed + (uint64_t)rank, KEY_GRADIENT, m->tensors[t].unit, pass);

        return size * rank_one_element(m, t, i) + 0.1F * (float)a->into[m->tensors[t].unit];
    }
    const float pull = 0.25F * w, flow = 0.1F * (float)a->into[m->tensors[t].unit];
    const float sum = own + pull, all = sum + flow;

    return all * (float)scale;
}

bool is_early(size_t t, size_t pass)
{
    return (t + pass) % 2 == 0;
}

float next_buffer_value(uint64_t seed, size_t t, size_t i, float old, int rank)
{
    const float kept = 0.75F * old;

    return kept + hashed_number(seed, KEY_BUFFER + 16 * t, i, (uint64_t)rank);
}

float imported_value(uint64_t seed, size_t t, size_t i, size_t passes)
{
    return hashed_number(seed, KEY_IMPORT + 16 * t, i, passes);
}

float before_hook(float x, int rank)
{
    return x * (1.0F + 0.37F * (float)rank);
}

float after_hook(float x)
{
    return 0.81F * x;
}
