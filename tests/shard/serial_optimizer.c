#include "tests/shard/serial_optimizer.h"

#include <math.h>
#include <string.h>

/* Of the two neighbours in bf16 the nearer one, of equally near ones that with an even last bit. Finite numbers only. */
static float nearest_bf16(float x)
{
    float    down, up;
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffff0000U;
    memcpy(&down, &bits, sizeof down);
    const int odd = (bits & 0x10000U) != 0;
    bits += 0x10000U; /* away from zero */
    memcpy(&up, &bits, sizeof up);
    const double to_down = fabs((double)x - (double)down), to_up = fabs((double)up - (double)x);
    return to_up < to_down || (to_up == to_down && odd) ? up : down;
}

static void adam_element(serial_model *s, const fsdp_optimizer_options *o, size_t k, float lr, float wd)
{
    const float b1 = (float)o->beta1, b2 = (float)o->beta2, eps = (float)o->eps;
    const float r1 = (float)(1.0 - o->beta1), r2 = (float)(1.0 - o->beta2);
    const float c1 = (float)(1.0 - pow(o->beta1, (double)s->steps));
    const float c2 = (float)(1.0 - pow(o->beta2, (double)s->steps));

    const float pull = (o->kind == FSDP_ADAM ? wd : 0.0F) * s->w[k];
    const float g    = s->g[k] + pull;
    const float lrwd = lr * (o->kind == FSDP_ADAMW ? wd : 0.0F);

    const float m_old = b1 * s->first[k], m_new = r1 * g;
    const float v_old = b2 * s->second[k], square = g * g, v_new = r2 * square;
    s->first[k]  = m_old + m_new;
    s->second[k] = v_old + v_new;

    const float shrink  = lrwd * s->w[k];
    const float decayed = s->w[k] - shrink;
    const float root    = sqrtf(s->second[k] / c2);
    const float ratio   = s->first[k] / c1;
    const float scaled  = lr * ratio;
    s->w[k]             = decayed - scaled / (root + eps);
}

static void lion_element(serial_model *s, const fsdp_optimizer_options *o, size_t k, float lr, float wd)
{
    const float b1 = (float)o->beta1, b2 = (float)o->beta2;
    const float c_old = b1 * s->first[k], c_new = (1.0F - b1) * s->g[k], c = c_old + c_new;
    const float m_old = b2 * s->first[k], m_new = (1.0F - b2) * s->g[k];
    const float lrwd = lr * wd, shrink = lrwd * s->w[k];

    s->first[k] = m_old + m_new;
    s->w[k] -= shrink;
    if (c > 0.0F) {
        s->w[k] -= lr;
    } else if (c < 0.0F) {
        s->w[k] += lr;
    }
}

static void sgd_element(serial_model *s, const fsdp_optimizer_options *o, size_t k, float lr, float wd)
{
    const float mu   = (float)o->momentum;
    const float pull = wd * s->w[k];
    float       d    = s->g[k] + pull;

    if (o->kind == FSDP_SGD_MOMENTUM) {
        const float kept = mu * s->first[k];
        s->first[k]      = s->steps == 1 ? d : kept + d;
        const float more = mu * s->first[k];
        d                = o->nesterov ? d + more : s->first[k];
    }
    const float moved = lr * d;
    s->w[k] -= moved;
}

static void update_element(serial_model *s, const fsdp_optimizer_options *o, size_t k, float lr, float wd)
{
    switch (o->kind) {
    case FSDP_ADAM:
    case FSDP_ADAMW:
        adam_element(s, o, k, lr, wd);
        break;
    case FSDP_LION:
        lion_element(s, o, k, lr, wd);
        break;
    case FSDP_SGD:
    case FSDP_SGD_MOMENTUM:
        sgd_element(s, o, k, lr, wd);
        break;
    case FSDP_CUSTOM:
    case FSDP_MUON:
        fail_msg("what an optimizer of the program's own, or of matrices, does is not known here");
    }
    if (o->moment_dtype == FSDP_BF16) {
        s->first[k]  = nearest_bf16(s->first[k]);
        s->second[k] = nearest_bf16(s->second[k]);
    }
}

void serial_take_exact_gradient(serial_model *s, int pass)
{
    for (size_t k = 0; k < all_elements(); k++) {
        s->g[k] = exact_gradient(pass, k);
    }
}

void serial_step(serial_model *s, const fsdp_optimizer_options *o, const serial_rates rates[N_TENSORS])
{
    size_t k = 0;

    s->steps++;
    for (size_t t = 0; t < N_TENSORS; t++) {
        const serial_rates own    = rates != NULL ? rates[t] : (serial_rates){o->lr, o->weight_decay};
        const int          decays = (TENSORS[t].flags & FSDP_TENSOR_NO_WEIGHT_DECAY) == 0;

        for (size_t i = 0; i < tensor_elements(t); i++, k++) {
            update_element(s, o, k, (float)own.lr, decays ? (float)own.weight_decay : 0.0F);
        }
    }
    s->fresh = 1;
}

void assert_equal_parameters(const serial_model *s, small_model *m, int step)
{
    float all[MOST_ELEMENTS];

    copy_parameters(m, all);
    for (size_t k = 0; k < all_elements(); k++) {
        if (memcmp(&all[k], &s->w[k], sizeof all[k]) != 0) {
            fail_msg("step %d, element %zu: %a instead of %a", step, k, (double)all[k], (double)s->w[k]);
        }
    }
}
