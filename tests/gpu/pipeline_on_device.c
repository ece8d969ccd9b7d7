#define MODEL_ON_DEVICE_ITSELF
#include "tests/gpu/pipeline_on_device.h"

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/context/context.h"

enum { MOST_COPIES = 4 };

/* What stands between a pipeline and the callbacks of a test. */
typedef struct shim {
    struct shim            *next;
    fsdp_pipeline          *pipeline;
    fsdp_context           *ctx;
    fsdp_pipeline_callbacks given;
    size_t                  bytes;             /* of whatever passes */
    void                   *mine[MOST_COPIES]; /* the last callback's copies, which the stream may still read */
} shim;

static shim *shims;

int on_device_pipeline_test_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests,
                                size_t n_tests, CMFixtureFunction setup, CMFixtureFunction teardown)
{
    on_device_share_stream();
    return on_device_test_run(argc, argv, group, tests, n_tests, setup, teardown);
}

static bool is_on_device(void)
{
    const char *where = getenv("PIPELINE_ON_DEVICE");

    return where == NULL || strcmp(where, "host") != 0;
}

/* ---- copies ---------------------------------------------------------------------------------------------------------------- */

static void finish(const shim *s)
{
    assert_int_equal(hipSuccess, hipStreamSynchronize(fsdpi_gpu_caller(&s->ctx->gpu)));
}

static void copy(const shim *s, void *to, const void *from)
{
    assert_int_equal(hipSuccess, hipMemcpyAsync(to, from, s->bytes, hipMemcpyDefault, fsdpi_gpu_caller(&s->ctx->gpu)));
}

static void drop_copies(shim *s)
{
    finish(s);
    for (int i = 0; i < MOST_COPIES; i++) {
        free(s->mine[i]);
        s->mine[i] = NULL;
    }
}

static void *room(shim *s)
{
    int i = 0;

    while (s->mine[i] != NULL) {
        i++;
    }
    s->mine[i] = malloc(s->bytes);
    assert_non_null(s->mine[i]);
    return s->mine[i];
}

/* What a callback reads, and where it writes. Those that are NULL stay so. */
static const void *read_from(shim *s, const void *there)
{
    if (there == NULL || !is_on_device()) {
        return there;
    }
    void *here = room(s);
    copy(s, here, there);
    finish(s);
    return here;
}

static void *write_to(shim *s, void *there)
{
    return there == NULL || !is_on_device() ? there : room(s);
}

static fsdp_status put(const shim *s, void *there, const void *here, fsdp_status status)
{
    if (there != here && status == FSDP_OK) {
        copy(s, there, here);
    }
    on_device_end_callback();
    return status;
}

static void begin(shim *s)
{
    drop_copies(s);
    on_device_begin_callback();
}

/* ---- callbacks --------------------------------------------------------------------------------------------------------------- */

static fsdp_status forward(void *user, int stage, int micro, const void *in, void *out)
{
    shim *s = user;

    begin(s);
    const void *x = read_from(s, in);
    void       *y = write_to(s, out);
    return put(s, out, y, s->given.forward(s->given.user, stage, micro, x, y));
}

static fsdp_status loss(void *user, int micro, const void *out, void *grad_out, double *value)
{
    shim *s = user;

    begin(s);
    const void *y = read_from(s, out);
    void       *d = write_to(s, grad_out);
    return put(s, grad_out, d, s->given.loss(s->given.user, micro, y, d, value));
}

static fsdp_status backward_input(void *user, int stage, int micro, const void *in, const void *grad_out, void *grad_in)
{
    shim *s = user;

    begin(s);
    const void *x = read_from(s, in), *dy = read_from(s, grad_out);
    void       *dx = write_to(s, grad_in);
    return put(s, grad_in, dx, s->given.backward_input(s->given.user, stage, micro, x, dy, dx));
}

static fsdp_status backward_weight(void *user, int stage, int micro, const void *in, const void *grad_out)
{
    shim *s = user;

    begin(s);
    const void *x = read_from(s, in), *dy = read_from(s, grad_out);
    return put(s, NULL, NULL, s->given.backward_weight(s->given.user, stage, micro, x, dy));
}

/* ---- pipelines --------------------------------------------------------------------------------------------------------------- */

static void forget(shim *s)
{
    drop_copies(s);
    for (shim **at = &shims; *at != NULL; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    free(s);
}

static fsdp_status create_with(shim *s, const fsdp_pipeline_options *options, fsdp_pipeline **pipeline)
{
    fsdp_pipeline_options   placed    = *options;
    fsdp_pipeline_callbacks callbacks = s->given;

    assert_null(options->bytes_of);
    s->bytes                  = options->bytes;
    placed.placement          = is_on_device() ? FSDP_ON_DEVICE : FSDP_ON_HOST;
    callbacks.forward         = s->given.forward != NULL ? forward : NULL;
    callbacks.loss            = s->given.loss != NULL ? loss : NULL;
    callbacks.backward_input  = s->given.backward_input != NULL ? backward_input : NULL;
    callbacks.backward_weight = s->given.backward_weight != NULL ? backward_weight : NULL;
    callbacks.user            = s;
    return fsdp_pipeline_create(s->ctx, &placed, &callbacks, pipeline);
}

fsdp_status on_device_pipeline_create(fsdp_context *ctx, const fsdp_pipeline_options *options,
                                      const fsdp_pipeline_callbacks *callbacks, fsdp_pipeline **pipeline)
{
    if (callbacks == NULL) {
        return fsdp_pipeline_create(ctx, options, NULL, pipeline);
    }
    shim *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->ctx                   = ctx;
    s->given                 = *callbacks;
    s->next                  = shims;
    shims                    = s;
    const fsdp_status status = create_with(s, options, pipeline);
    if (status != FSDP_OK) {
        forget(s);
        return status;
    }
    s->pipeline = *pipeline;
    return status;
}

void on_device_pipeline_destroy(fsdp_pipeline *pipeline)
{
    shim *s = shims;

    while (s != NULL && s->pipeline != pipeline) {
        s = s->next;
    }
    fsdp_pipeline_destroy(pipeline);
    if (s != NULL) {
        forget(s);
    }
}
