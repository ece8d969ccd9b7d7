#include "tests/shard/pipeline/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { W = NET_WIDTH, ROWS = NET_ROWS };

/* ---- data ---------------------------------------------------------------------------------------------------------------- */

static float number(uint64_t key)
{
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u;
    key = (key ^ key >> 27) * 0x94d049bb133111ebu;
    return (float)((double)(key >> 40) / 8388608.0 - 1.0);
}

static void sample(const net *n, int micro, int what, float *x)
{
    for (int i = 0; i < ROWS * W; i++) {
        x[i] =
            number((uint64_t)i + 1 +
                   100 * ((uint64_t)what + 2 * ((uint64_t)micro + 64 * ((uint64_t)n->step + 64 * (uint64_t)n->data))));
    }
}

/* ---- layers -------------------------------------------------------------------------------------------------------------- */

static void layer(const float *weight, const float *bias, const float *x, float *y)
{
    for (int r = 0; r < ROWS; r++) {
        for (int o = 0; o < W; o++) {
            float sum = bias[o];

            for (int i = 0; i < W; i++) {
                sum += weight[o * W + i] * x[r * W + i];
            }
            y[r * W + o] = tanhf(sum);
        }
    }
}

/* The gradient of what goes into tanh. */
static void behind_tanh(const float *weight, const float *bias, const float *x, const float *dy, float *dz)
{
    float y[ROWS * W];

    layer(weight, bias, x, y);
    for (int i = 0; i < ROWS * W; i++) {
        dz[i] = dy[i] * (1.0F - y[i] * y[i]);
    }
}

static int fails_here(const net *n, net_callback callback, int stage, int micro)
{
    const int here = n->fails == callback && n->fails_stage == stage && n->fails_micro == micro;

    if (here && n->naps > 0) {
        const struct timespec nap = {.tv_sec = (time_t)n->naps};
        (void)nanosleep(&nap, NULL);
        return 0;
    }
    return here;
}

static fsdp_status forward(void *user, int stage, int micro, const void *in, void *out)
{
    net  *n = user;
    float first[ROWS * W];

    if (fails_here(n, NET_FORWARD, stage, micro)) {
        return FSDP_ERR_IO;
    }
    if (stage == 0) {
        assert_null(in);
        sample(n, micro, 0, first);
        in = first;
    }
    if (stage == n->bare) {
        for (int i = 0; i < ROWS * W; i++) {
            ((float *)out)[i] = 2.0F * ((const float *)in)[i];
        }
        return FSDP_OK;
    }
    layer(fsdp_unit_param(n->units[stage], 0), fsdp_unit_param(n->units[stage], 1), in, out);
    return FSDP_OK;
}

static fsdp_status loss(void *user, int micro, const void *out, void *grad_out, double *value)
{
    net         *n = user;
    const float *y = out;
    float        target[ROWS * W];

    if (fails_here(n, NET_LOSS, n->stages - 1, micro)) {
        return FSDP_ERR_IO;
    }
    sample(n, micro, 1, target);
    *value = 0;
    for (int i = 0; i < ROWS * W; i++) {
        ((float *)grad_out)[i] = (y[i] - target[i]) / (float)n->micros;
        *value += 0.5 * (double)(y[i] - target[i]) * (double)(y[i] - target[i]);
    }
    return FSDP_OK;
}

static fsdp_status backward_input(void *user, int stage, int micro, const void *in, const void *grad_out, void *grad_in)
{
    net  *n = user;
    float dz[ROWS * W];

    if (fails_here(n, NET_BACKWARD_INPUT, stage, micro)) {
        return FSDP_ERR_IO;
    }
    if (stage == 0) {
        assert_null(grad_in);
        return FSDP_OK;
    }
    if (stage == n->bare) {
        for (int i = 0; i < ROWS * W; i++) {
            ((float *)grad_in)[i] = 2.0F * ((const float *)grad_out)[i];
        }
        return FSDP_OK;
    }
    const float *weight = fsdp_unit_param(n->units[stage], 0);
    behind_tanh(weight, fsdp_unit_param(n->units[stage], 1), in, grad_out, dz);
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < W; i++) {
            float sum = 0;

            for (int o = 0; o < W; o++) {
                sum += weight[o * W + i] * dz[r * W + o];
            }
            ((float *)grad_in)[r * W + i] = sum;
        }
    }
    return FSDP_OK;
}

static fsdp_status backward_weight(void *user, int stage, int micro, const void *in, const void *grad_out)
{
    net  *n = user;
    float first[ROWS * W], dz[ROWS * W];

    if (fails_here(n, NET_BACKWARD_WEIGHT, stage, micro)) {
        return FSDP_ERR_IO;
    }
    if (stage == n->bare) {
        return FSDP_OK;
    }
    if (stage == 0) {
        sample(n, micro, 0, first);
        in = first;
    }
    float *weight = fsdp_unit_grad(n->units[stage], 0), *bias = fsdp_unit_grad(n->units[stage], 1);
    behind_tanh(fsdp_unit_param(n->units[stage], 0), fsdp_unit_param(n->units[stage], 1), in, grad_out, dz);
    for (int r = 0; r < ROWS; r++) {
        for (int o = 0; o < W; o++) {
            bias[o] += dz[r * W + o];
            for (int i = 0; i < W; i++) {
                weight[o * W + i] += dz[r * W + o] * ((const float *)in)[r * W + i];
            }
        }
    }
    return FSDP_OK;
}

const fsdp_pipeline_callbacks NET_CALLBACKS = {.size            = sizeof NET_CALLBACKS,
                                               .forward         = forward,
                                               .loss            = loss,
                                               .backward_input  = backward_input,
                                               .backward_weight = backward_weight};

/* ---- training ------------------------------------------------------------------------------------------------------------ */

static void add_stage(net *n, int stage)
{
    char              name[16], weight[32], bias[32];
    const fsdp_tensor tensors[] = {
        {.name = weight, .n_dims = 2, .shape = {W, W}, .dtype = FSDP_F32, .fill = FSDP_FILL_NORMAL, .b = 0.7},
        {.name = bias, .n_dims = 1, .shape = {W}, .dtype = FSDP_F32, .fill = FSDP_FILL_UNIFORM, .a = -0.5, .b = 0.5}};

    (void)snprintf(name, sizeof name, "%d", stage);
    (void)snprintf(weight, sizeof weight, "%d.weight", stage);
    (void)snprintf(bias, sizeof bias, "%d.bias", stage);
    assert_int_equal(FSDP_OK, fsdp_unit_add(n->model, name, tensors, 2, &n->units[stage]));
}

void net_open(net *n, MPI_Comm comm, int stages, int micros, int bare, const int *here, int local_gradients)
{
    fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options adam;
    int                    any = 0;

    *n                      = (net){.stages = stages, .micros = micros, .bare = bare, .local = local_gradients};
    options.seed            = 7;
    options.local_gradients = local_gradients;
    options.kept_units      = local_gradients ? 1 : 0;
    assert_int_equal(FSDP_OK, fsdp_init(comm, NULL, &n->ctx));
    for (int s = 0; s < stages; s++) {
        any = any || (here[s] && s != bare);
    }
    if (!any) {
        return;
    }
    assert_int_equal(FSDP_OK, fsdp_model_create(n->ctx, &options, &n->model));
    for (int s = 0; s < stages; s++) {
        if (here[s] && s != bare) {
            add_stage(n, s);
        }
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(n->model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &adam));
    adam.lr = 0.02;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(n->model, &adam, &n->optimizer));
}

void net_close(net *n)
{
    fsdp_model_destroy(n->model);
    assert_int_equal(FSDP_OK, fsdp_finalize(n->ctx));
}

void net_update(net *n)
{
    if (n->model != NULL) {
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(n->optimizer));
    }
    n->step++;
}

static void open_pass(net *n, int stage, int backward)
{
    if (n->units[stage] != NULL) {
        assert_int_equal(FSDP_OK, backward ? fsdp_unit_begin_backward(n->units[stage])
                                           : fsdp_unit_begin_forward(n->units[stage]));
    }
}

static void close_pass(net *n, int stage, int backward)
{
    if (n->units[stage] != NULL) {
        assert_int_equal(FSDP_OK,
                         backward ? fsdp_unit_end_backward(n->units[stage]) : fsdp_unit_end_forward(n->units[stage]));
    }
}

static double serial_micro(net *n, int micro)
{
    float  x[NET_STAGES + 1][ROWS * W], d[NET_STAGES + 1][ROWS * W];
    double value;

    for (int s = 0; s < n->stages; s++) {
        open_pass(n, s, 0);
        assert_int_equal(FSDP_OK, forward(n, s, micro, s > 0 ? x[s] : NULL, x[s + 1]));
        close_pass(n, s, 0);
    }
    assert_int_equal(FSDP_OK, loss(n, micro, x[n->stages], d[n->stages], &value));
    for (int s = n->stages - 1; s >= 0; s--) {
        open_pass(n, s, 1);
        assert_int_equal(FSDP_OK, backward_input(n, s, micro, s > 0 ? x[s] : NULL, d[s + 1], s > 0 ? d[s] : NULL));
        assert_int_equal(FSDP_OK, backward_weight(n, s, micro, s > 0 ? x[s] : NULL, d[s + 1]));
        close_pass(n, s, 1);
    }
    return value;
}

double net_serial_step(net *n)
{
    double sum = 0;

    for (int m = 0; m < n->micros; m++) {
        if (n->local) {
            assert_int_equal(FSDP_OK,
                             fsdp_model_set_sync(n->model, m + 1 < n->micros ? FSDP_SYNC_NONE : FSDP_SYNC_ALL));
        }
        sum += serial_micro(n, m);
    }
    return sum;
}

void net_parameters(net *n, int stage, float *values)
{
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(n->units[stage]));
    memcpy(values, fsdp_unit_param(n->units[stage], 0), W * W * sizeof *values);
    memcpy(values + W * W, fsdp_unit_param(n->units[stage], 1), W * sizeof *values);
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(n->units[stage]));
}
