#include "gpt_activation.h"

#include "gpt_math.h"

#define REAL sizeof(real)

const gpt_activation gpt_activation_list[] = {
    {"input", GPT_PER_WIDTH, 1, REAL, GPT_DIVIDED_BY_ROWS, 1},
    {"first norm", GPT_PER_WIDTH, 1, REAL, GPT_DIVIDED_BY_ROWS, 0},
    {"its mean", GPT_PER_ROW, 1, REAL, GPT_DIVIDED_BY_ROWS, 0},
    {"its scale", GPT_PER_ROW, 1, REAL, GPT_DIVIDED_BY_ROWS, 0},
    {"queries, keys, values", GPT_PER_WIDTH, 3, REAL, GPT_DIVIDED_BY_PARTS, 0},
    {"probabilities", GPT_PER_SCORES, 1, REAL, GPT_DIVIDED_BY_PARTS, 0},
    {"heads", GPT_PER_WIDTH, 1, REAL, GPT_DIVIDED_BY_PARTS, 0},
    {"between attention and MLP", GPT_PER_WIDTH, 1, REAL, GPT_DIVIDED_BY_ROWS, 0},
    {"second norm", GPT_PER_WIDTH, 1, REAL, GPT_DIVIDED_BY_ROWS, 0},
    {"its mean", GPT_PER_ROW, 1, REAL, GPT_DIVIDED_BY_ROWS, 0},
    {"its scale", GPT_PER_ROW, 1, REAL, GPT_DIVIDED_BY_ROWS, 0},
    {"before GELU", GPT_PER_WIDTH, 4, REAL, GPT_DIVIDED_BY_PARTS, 0},
    {"behind GELU", GPT_PER_WIDTH, 4, REAL, GPT_DIVIDED_BY_PARTS, 0},
};
const size_t gpt_activation_list_length = sizeof gpt_activation_list / sizeof gpt_activation_list[0];

static size_t numbers_of(const gpt_activation *a, const gpt_activation_shape *s)
{
    const size_t all = a->times * s->rows;

    switch (a->extent) {
    case GPT_PER_ROW:
        break;
    case GPT_PER_WIDTH:
        return all * s->width;
    case GPT_PER_SCORES:
        return all * s->heads * s->context;
    }
    return all;
}

size_t gpt_activation_bytes(const gpt_activation *activation, const gpt_activation_shape *shape)
{
    const int    is_divided = activation->divided == GPT_DIVIDED_BY_PARTS || shape->sequence_parallel;
    const size_t numbers    = numbers_of(activation, shape) / (is_divided ? shape->ranks : 1);

    if ((shape->input_only && !activation->is_input) ||
        (shape->without_scores && activation->extent == GPT_PER_SCORES)) {
        return 0;
    }
    return (numbers + shape->multiple - 1) / shape->multiple * shape->multiple * activation->bytes;
}

size_t gpt_activations_sum(const gpt_activation *list, size_t n, const gpt_activation_shape *shape)
{
    size_t sum = 0, i;

    for (i = 0; i < n; i++) {
        sum += gpt_activation_bytes(&list[i], shape);
    }
    return sum;
}
