#include "gpt_attention.h"

#include <math.h>

#include "gpt_matmul.h"

/* One head of one sequence: its slices of queries, keys and values, and its probabilities. */
typedef struct head {
    const real *q, *k, *v;
    real       *probabilities;
    size_t      stride; /* of q, k and v */
} head;

static size_t width_of(const gpt_attention *a)
{
    return a->heads * a->size;
}

static head head_of(const gpt_attention *a, const real *qkv, size_t length, size_t sequence, size_t number)
{
    const size_t c = width_of(a);
    const real  *q = qkv + sequence * length * 3 * c + number * a->size;

    return (head){.q             = q,
                  .k             = q + c,
                  .v             = q + 2 * c,
                  .probabilities = a->probabilities + (sequence * a->heads + number) * a->step,
                  .stride        = 3 * c};
}

static void compute_probabilities(const gpt_attention *a, const head *h, size_t begin, size_t end)
{
    const real   scale   = 1 / (real)sqrt((double)a->size);
    const size_t context = a->context;
    real        *p       = h->probabilities + begin * context;

    gpt_matmul(a->profile, end - begin, end, a->size, scale, gpt_rows(h->q + begin * h->stride, h->stride),
               gpt_transposed(h->k, h->stride), 0, p, context);
    gpt_softmax_causal(end - begin, begin, end, context, p);
    gpt_profile_lap(a->profile, GPT_PART_ATTENTION);
}

static void head_forward(const gpt_attention *a, const head *h, size_t first, size_t length, real *out)
{
    const size_t c = width_of(a);
    size_t       begin, end;

    for (begin = first; begin < length; begin = end) {
        end = begin + GPT_ATTENTION_ROWS < length ? begin + GPT_ATTENTION_ROWS : length;
        compute_probabilities(a, h, begin, end);
        gpt_matmul(a->profile, end - begin, a->size, end, 1,
                   gpt_rows(h->probabilities + begin * a->context, a->context), gpt_rows(h->v, h->stride), 0,
                   out + begin * c, c);
    }
}

/* From the last rows to the first: the last ones reach all keys and values, so theirs is the first value of d_k and d_v. */
static void head_backward(const gpt_attention *a, const head *h, size_t length, const real *d_out, real *d_q)
{
    const size_t c = width_of(a), size = a->size, context = a->context;
    const real   scale = 1 / (real)sqrt((double)size);
    real        *d = a->d_scores, *d_k = d_q + c, *d_v = d_q + 2 * c, beta = 0;
    size_t       begin, end;

    for (end = length; end > 0; end = begin, beta = 1) {
        const real *p, *d_rows;
        size_t      rows;

        begin  = (end - 1) / GPT_ATTENTION_ROWS * GPT_ATTENTION_ROWS;
        rows   = end - begin;
        p      = h->probabilities + begin * context;
        d_rows = d_out + begin * c;
        if (!a->step) {
            compute_probabilities(a, h, begin, end);
        }
        gpt_matmul(a->profile, end, size, rows, 1, gpt_transposed(p, context), gpt_rows(d_rows, c), beta, d_v, 3 * c);
        gpt_matmul(a->profile, rows, end, size, 1, gpt_rows(d_rows, c), gpt_transposed(h->v, 3 * c), 0, d, end);
        gpt_softmax_backward(rows, end, context, p, scale, d);
        gpt_profile_lap(a->profile, GPT_PART_ATTENTION);
        gpt_matmul(a->profile, rows, size, end, 1, gpt_rows(d, end), gpt_rows(h->k, 3 * c), 0, d_q + begin * 3 * c,
                   3 * c);
        gpt_matmul(a->profile, end, size, rows, 1, gpt_transposed(d, end), gpt_rows(h->q + begin * 3 * c, 3 * c), beta,
                   d_k, 3 * c);
    }
}

void gpt_attention_forward(const gpt_attention *a, size_t batch, size_t first, size_t length, const real *qkv,
                           real *out)
{
    size_t sequence, number;

    for (sequence = 0; sequence < batch; sequence++) {
        for (number = 0; number < a->heads; number++) {
            const head h = head_of(a, qkv, length, sequence, number);

            head_forward(a, &h, first, length, out + sequence * length * width_of(a) + number * a->size);
        }
    }
}

void gpt_attention_backward(const gpt_attention *a, size_t batch, size_t length, const real *qkv, const real *d_out,
                            real *d_qkv)
{
    const size_t c = width_of(a);
    size_t       sequence, number;

    for (sequence = 0; sequence < batch; sequence++) {
        for (number = 0; number < a->heads; number++) {
            const head   h   = head_of(a, qkv, length, sequence, number);
            const size_t row = sequence * length;

            head_backward(a, &h, length, d_out + row * c + number * a->size, d_qkv + row * 3 * c + number * a->size);
        }
    }
}
