/**
 * @file
 * Pipelines whose callbacks only put kernels and copies into a stream, as programs on GPUs do, so that no host's wait stands in for a
 * missing order: the losses of the same pipeline on the host, by all schedules. Calls of the runtime that fail, each in turn, fail the
 * step on all ranks, which can be repeated; an order that the runtime refuses is made by the host. What cannot be on a GPU is refused.
 */
#include <hip/hip_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "lib/context/context.h"
#include "tests/doubles/hip/double.h"
#include "tests/doubles/hip/job.h"
#include "tests/gpu/device_mpi.h"
#include "tests/support/mpi_test.h"

enum { WIDTH = 1000, STEPS = 3, MOST_STAGES = 8, MOST_MICROS = 16, BYTES = WIDTH * sizeof(float) };

/* A network of stages y = x + w; the loss of a micro-batch is half the sum of squares. */
typedef struct chain {
    fsdp_placement  placement;
    fsdp_context   *ctx, *own; /* of the pipeline; of this rank's model */
    hipStream_t     stream;
    fsdp_model     *model;
    fsdp_optimizer *optimizer;
    fsdp_pipeline  *pipeline;
    fsdp_unit      *units[MOST_STAGES];
    float          *data; /* what the first stage gets, of each micro-batch */
    float           seen[WIDTH];
} chain;

static bool on_device(const chain *c)
{
    return c->placement == FSDP_ON_DEVICE;
}

/* ---- compute ---------------------------------------------------------------------------------------------------------------- */

static fsdp_status copy(const chain *c, void *to, const void *from)
{
    if (!on_device(c)) {
        memcpy(to, from, BYTES);
        return FSDP_OK;
    }
    return hipMemcpyAsync(to, from, BYTES, hipMemcpyDefault, c->stream) == hipSuccess ? FSDP_OK : FSDP_ERR_DEVICE;
}

static fsdp_status add(const chain *c, float *to, const float *a, const float *b)
{
    const void *const in[]  = {a, b};
    void *const       out[] = {to};

    if (on_device(c)) {
        fsdpi_gpu_device *gpu = c->ctx->gpu.device;
        return gpu->ops->reduce(gpu, out, 1, in, 2, WIDTH, FSDP_F32, FSDP_SUM, 1, c->stream);
    }
    for (int i = 0; i < WIDTH; i++) {
        to[i] = a[i] + b[i];
    }
    return FSDP_OK;
}

static fsdp_status forward(void *user, int stage, int micro, const void *in, void *out)
{
    const chain *c = user;

    return add(c, out, stage == 0 ? c->data + (size_t)micro * WIDTH : in, fsdp_unit_param(c->units[stage], 0));
}

/* The one callback that waits. */
static fsdp_status loss(void *user, int micro, const void *out, void *grad_out, double *value)
{
    chain *c = user;

    (void)micro;
    if (copy(c, grad_out, out) != FSDP_OK || copy(c, c->seen, out) != FSDP_OK) {
        return FSDP_ERR_DEVICE;
    }
    if (on_device(c) && hipStreamSynchronize(c->stream) != hipSuccess) {
        return FSDP_ERR_DEVICE;
    }
    *value = 0;
    for (int i = 0; i < WIDTH; i++) {
        *value += 0.5 * (double)c->seen[i] * (double)c->seen[i];
    }
    return FSDP_OK;
}

static fsdp_status backward_input(void *user, int stage, int micro, const void *in, const void *grad_out, void *grad_in)
{
    (void)micro;
    (void)in;
    return stage == 0 ? FSDP_OK : copy(user, grad_in, grad_out);
}

static fsdp_status backward_weight(void *user, int stage, int micro, const void *in, const void *grad_out)
{
    const chain *c = user;

    (void)micro;
    (void)in;
    return copy(c, fsdp_unit_grad(c->units[stage], 0), grad_out);
}

/* ---- a chain ---------------------------------------------------------------------------------------------------------------- */

static fsdp_context *open_context(const chain *c, MPI_Comm comm)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.device = on_device(c) ? FSDP_DEVICE_GPU : FSDP_DEVICE_HOST;
    assert_int_equal(FSDP_OK, fsdp_init(comm, &config, &ctx));
    if (on_device(c)) {
        assert_int_equal(FSDP_OK, fsdp_stream_set(ctx, c->stream));
    }
    return ctx;
}

static void make_data(chain *c)
{
    static float values[MOST_MICROS * WIDTH];

    for (int i = 0; i < MOST_MICROS * WIDTH; i++) {
        values[i] = 0.001F * (float)((i * 7919) % 997) - 0.4F; /* of each micro-batch its own */
    }
    if (!on_device(c)) {
        c->data = malloc(sizeof values);
        memcpy(c->data, values, sizeof values);
        return;
    }
    assert_int_equal(hipSuccess, hipMalloc((void **)&c->data, sizeof values));
    assert_int_equal(hipSuccess, hipMemcpyAsync(c->data, values, sizeof values, hipMemcpyDefault, c->stream));
    assert_int_equal(hipSuccess, hipStreamSynchronize(c->stream));
}

static void make_model(chain *c, int each)
{
    static const char *const NAMES[MOST_STAGES] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    fsdp_model_options       options            = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_optimizer_options   sgd;

    options.placement       = c->placement;
    options.local_gradients = 1;
    assert_int_equal(FSDP_OK, fsdp_model_create(c->own, &options, &c->model));
    for (int s = fsdp_test_rank(); s < fsdp_test_size() * each; s += fsdp_test_size()) {
        const fsdp_tensor w = {.name = NAMES[s], .n_dims = 1, .shape = {WIDTH}, .fill = FSDP_FILL_NORMAL, .b = 0.1};
        assert_int_equal(FSDP_OK, fsdp_unit_add(c->model, NAMES[s], &w, 1, &c->units[s]));
    }
    assert_int_equal(FSDP_OK, fsdp_model_commit(c->model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_SGD, &sgd));
    sgd.lr = 0.01;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(c->model, &sgd, &c->optimizer));
}

static fsdp_status make_pipeline(chain *c, const char *schedule, int each, int micros, int buffers)
{
    fsdp_pipeline_options         options   = FSDP_PIPELINE_OPTIONS_DEFAULT;
    const fsdp_pipeline_callbacks callbacks = {.size            = sizeof callbacks,
                                               .forward         = forward,
                                               .loss            = loss,
                                               .backward_input  = backward_input,
                                               .backward_weight = backward_weight,
                                               .user            = c};

    options.schedule        = schedule;
    options.stages_per_rank = each;
    options.micros          = micros;
    options.buffers         = buffers;
    options.bytes           = BYTES;
    options.output_bytes    = BYTES;
    options.placement       = c->placement;
    return fsdp_pipeline_create(c->ctx, &options, &callbacks, &c->pipeline);
}

static void open_contexts(chain *c, fsdp_placement placement)
{
    *c = (chain){.placement = placement};
    if (on_device(c)) {
        assert_int_equal(hipSuccess, hipStreamCreateWithPriority(&c->stream, hipStreamNonBlocking, 0));
    }
    c->ctx = open_context(c, MPI_COMM_WORLD);
    c->own = open_context(c, MPI_COMM_SELF);
}

static void open_chain(chain *c, fsdp_placement placement, const char *schedule, int each, int micros, int buffers)
{
    open_contexts(c, placement);
    make_data(c);
    make_model(c, each);
    assert_int_equal(FSDP_OK, make_pipeline(c, schedule, each, micros, buffers));
    for (int s = fsdp_test_rank(); s < fsdp_test_size() * each; s += fsdp_test_size()) {
        assert_int_equal(FSDP_OK, fsdp_pipeline_set_units(c->pipeline, s, &c->units[s], 1));
    }
}

static void close_chain(chain *c)
{
    fsdp_pipeline_destroy(c->pipeline);
    fsdp_model_destroy(c->model);
    assert_int_equal(FSDP_OK, fsdp_finalize(c->own));
    assert_int_equal(FSDP_OK, fsdp_finalize(c->ctx));
    if (on_device(c)) {
        assert_int_equal(hipSuccess, hipFree(c->data));
        assert_int_equal(hipSuccess, hipStreamDestroy(c->stream));
    } else {
        free(c->data);
    }
}

/* ---- the bits of the host --------------------------------------------------------------------------------------------------- */

/* Steps without anything between them, of which each begins before the GPU is done with the last. */
static void train(fsdp_placement placement, const char *schedule, int each, int buffers, double *losses)
{
    chain c;

    open_chain(&c, placement, schedule, each, 2 * fsdp_test_size(), buffers);
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(FSDP_OK, fsdp_pipeline_step(c.pipeline, &losses[step]));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(c.optimizer));
    }
    assert_int_equal(FSDP_OK, fsdp_pipeline_evaluate(c.pipeline, &losses[STEPS]));
    close_chain(&c);
}

static void no_schedule_needs_a_wait_of_a_host(void **state)
{
    static const char *const SCHEDULES[] = {"gpipe", "1f1b", "interleaved", "zb-h1"};

    (void)state;
    for (int k = 0; k < 4; k++) {
        double there[STEPS + 1], here[STEPS + 1];

        train(FSDP_ON_DEVICE, SCHEDULES[k], k == 2 ? 2 : 1, 1 + k % 2, there);
        train(FSDP_ON_HOST, SCHEDULES[k], k == 2 ? 2 : 1, 1 + k % 2, here);
        assert_memory_equal(here, there, sizeof here);
        assert_true(here[0] > here[STEPS]);
    }
}

/* GPU memory is given to MPI only where that says it takes it: else device_mpi.c ends the program. */
static void mpi_is_given_gpu_memory_where_it_takes_it(void **state)
{
    const size_t before = device_mpi_messages();
    chain        c;
    double       loss;

    (void)state;
    open_chain(&c, FSDP_ON_DEVICE, "1f1b", 1, 2, 1);
    assert_int_equal(FSDP_OK, fsdp_pipeline_step(c.pipeline, &loss));
    const bool has_far = fsdp_test_size() > 1 && (!c.ctx->gpu.shares || fsdp_node_size(c.ctx) == 1);
    if (has_far && fsdp_has_gpu_aware_mpi(c.ctx)) {
        assert_true(device_mpi_messages() > before);
    } else if (!fsdp_has_gpu_aware_mpi(c.ctx)) {
        assert_int_equal(before, device_mpi_messages());
    }
    close_chain(&c);
}

/* ---- calls that fail ----------------------------------------------------------------------------------------------------------- */

/* The `n`th call of a function from here fails on one rank, if there are as many in a step. */
static fsdp_status step_with_a_failure(chain *c, const char *function, int n, double *loss)
{
    if (fsdp_test_rank() == n % fsdp_test_size()) {
        hip_double_fail(function, n, hipErrorUnknown);
    }
    const fsdp_status status = fsdp_pipeline_step(c->pipeline, loss);
    hip_double_fail(function, 0, hipSuccess);
    return status;
}

static bool fail_in_turn(chain *c, const char *function, int n, double expected)
{
    double            loss   = 0;
    const fsdp_status status = step_with_a_failure(c, function, n, &loss);

    assert_true(status == FSDP_OK || status == FSDP_ERR_DEVICE);
    (void)fsdp_model_zero_grad(c->model);
    assert_int_equal(FSDP_OK, fsdp_pipeline_step(c->pipeline, &loss));
    assert_memory_equal(&expected, &loss, sizeof loss);
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(c->model));
    return status != FSDP_OK;
}

static void a_call_that_fails_fails_the_step_on_all_ranks(void **state)
{
    static const char *const FUNCTIONS[] = {"hipMemcpyAsync", "hipEventQuery"};
    char                     text[64];
    double                   expected;
    int                      failed = 0;
    chain                    c;

    (void)state;
    open_chain(&c, FSDP_ON_DEVICE, "1f1b", 1, 3, 1);
    assert_int_equal(FSDP_OK, fsdp_pipeline_step(c.pipeline, &expected));
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(c.model));
    fsdp_test_capture_stderr();
    for (int f = 0; f < 2; f++) {
        for (int n = 1; fail_in_turn(&c, FUNCTIONS[f], n, expected); n++) {
            failed++;
        }
    }
    fsdp_test_captured_stderr(text, sizeof text);
    assert_true(failed > (fsdp_test_size() > 1 ? 3 : 0));
    close_chain(&c);
}

static void an_order_that_is_refused_is_made_by_the_host(void **state)
{
    static const char *const FUNCTIONS[] = {"hipEventRecord", "hipStreamWaitEvent"};
    char                     text[64];
    double                   expected, loss;
    chain                    c;

    (void)state;
    open_chain(&c, FSDP_ON_DEVICE, "1f1b", 1, 3, 1);
    assert_int_equal(FSDP_OK, fsdp_pipeline_step(c.pipeline, &expected));
    fsdp_test_capture_stderr();
    for (int n = 1; n <= 40; n++) {
        assert_int_equal(FSDP_OK, fsdp_model_zero_grad(c.model));
        assert_int_equal(FSDP_OK, step_with_a_failure(&c, FUNCTIONS[n % 2], 1 + n / 2, &loss));
        assert_memory_equal(&expected, &loss, sizeof loss);
    }
    fsdp_test_captured_stderr(text, sizeof text);
    close_chain(&c);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------------------ */

static void what_cannot_be_on_a_gpu_is_refused(void **state)
{
    chain c;

    (void)state;
    open_contexts(&c, FSDP_ON_HOST);
    c.placement = FSDP_ON_DEVICE;
    assert_int_equal(FSDP_ERR_UNSUPPORTED, make_pipeline(&c, "1f1b", 1, 2, 1));
    assert_says(c.ctx, "activations on the GPU, and this context uses none (FSDP_DEVICE is 'host'); use FSDP_ON_HOST");
    c.placement = FSDP_ON_DEVICE_OFFLOADED;
    assert_int_equal(FSDP_ERR_UNSUPPORTED, make_pipeline(&c, "1f1b", 1, 2, 1));
    assert_says(c.ctx, "use FSDP_ON_DEVICE, with models of any placement");
    c.placement = (fsdp_placement)7;
    assert_int_equal(FSDP_ERR_ARG, make_pipeline(&c, "1f1b", 1, 2, 1));
    assert_says(c.ctx, "7 is no placement");
    assert_int_equal(FSDP_OK, fsdp_finalize(c.own));
    assert_int_equal(FSDP_OK, fsdp_finalize(c.ctx));
}

static void one_rank_on_the_host_is_a_mismatch(void **state)
{
    chain c;

    (void)state;
    open_contexts(&c, FSDP_ON_DEVICE);
    c.placement = fsdp_test_rank() == 1 ? FSDP_ON_HOST : FSDP_ON_DEVICE;
    if (fsdp_test_size() > 1) {
        assert_int_equal(FSDP_ERR_MISMATCH, make_pipeline(&c, "1f1b", 1, 2, 1));
        assert_says(c.ctx, "on the host");
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(c.own));
    assert_int_equal(FSDP_OK, fsdp_finalize(c.ctx));
    assert_int_equal(hipSuccess, hipStreamDestroy(c.stream));
}

/* Before the first step, and after one: on one rank alone. */
static void models_in_another_stream_are_an_error_on_all_ranks(void **state)
{
    double loss;
    chain  c;

    (void)state;
    open_chain(&c, FSDP_ON_DEVICE, "1f1b", 1, 2, 1);
    for (int step = 0; step < 2; step++) {
        if (fsdp_test_rank() == 0) {
            assert_int_equal(FSDP_OK, fsdp_stream_set(c.own, NULL));
        }
        assert_int_equal(FSDP_ERR_STATE, fsdp_pipeline_step(c.pipeline, &loss));
        assert_says(c.ctx,
                    "the model of unit '0' computes in another stream than the pipeline; call fsdp_stream_set()");
        assert_int_equal(FSDP_OK, fsdp_stream_set(c.own, c.stream));
        (void)fsdp_model_zero_grad(c.model);
        assert_int_equal(FSDP_OK, fsdp_pipeline_step(c.pipeline, &loss));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(c.optimizer));
    }
    close_chain(&c);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_schedule_needs_a_wait_of_a_host),
        cmocka_unit_test(mpi_is_given_gpu_memory_where_it_takes_it),
        cmocka_unit_test(a_call_that_fails_fails_the_step_on_all_ranks),
        cmocka_unit_test(an_order_that_is_refused_is_made_by_the_host),
        cmocka_unit_test(what_cannot_be_on_a_gpu_is_refused),
        cmocka_unit_test(one_rank_on_the_host_is_a_mismatch),
        cmocka_unit_test(models_in_another_stream_are_an_error_on_all_ranks),
    };

    return fsdp_test_main(argc, argv, tests, hip_double_join_job, NULL);
}
