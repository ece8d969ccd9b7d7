#define MODEL_ON_DEVICE_ITSELF
#include "tests/gpu/model_on_device.h"

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/context/context.h"
#include "lib/context/gpu_context.h"
#include "shard/state/tensor.h"
#include "tests/doubles/hip/job.h"

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

static CMFixtureFunction setup_of_test;

static int join_and_set_up(void **state)
{
    return hip_double_join_job(state) != 0 || (setup_of_test != NULL && setup_of_test(state) != 0) ? -1 : 0;
}

int on_device_test_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests,
                       CMFixtureFunction setup, CMFixtureFunction teardown)
{
    setup_of_test = setup;
    return fsdp_test_run(argc, argv, group, tests, n_tests, join_and_set_up, teardown);
}

/* In which tests and models compute: a stream that is ordered with no other by itself. */
static hipStream_t stream_of(const fsdp_context *ctx)
{
    return fsdpi_gpu_caller(&ctx->gpu);
}

static void finish(const fsdp_context *ctx)
{
    assert_int_equal(hipSuccess, hipStreamSynchronize(stream_of(ctx)));
}

static bool        shares_stream;
static hipStream_t shared; /* by so many contexts */
static int         n_sharing;

void on_device_share_stream(void)
{
    shares_stream = true;
}

static hipStream_t open_stream(void)
{
    hipStream_t stream = shared;

    if (!shares_stream || n_sharing++ == 0) {
        assert_int_equal(hipSuccess, hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, 0));
    }
    shared = shares_stream ? stream : NULL;
    return stream;
}

static void close_stream(hipStream_t stream)
{
    if (!shares_stream || --n_sharing == 0) {
        assert_int_equal(hipSuccess, hipStreamDestroy(stream));
    }
}

fsdp_status on_device_init(MPI_Comm comm, const fsdp_config *config, fsdp_context **ctx)
{
    const fsdp_status status = fsdp_init(comm, config, ctx);

    if (status == FSDP_OK) {
        assert_true(fsdp_device(*ctx) >= 0);
        assert_int_equal(FSDP_OK, fsdp_stream_set(*ctx, open_stream()));
    }
    return status;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

typedef enum view_kind { PARAMETER, GRADIENT, BUFFER, SHARD } view_kind;

/* What a test has asked for, and the copy that it has. */
typedef struct view {
    struct view *next;
    fsdp_unit   *unit;
    view_kind    kind;
    void        *there, *here;
    size_t       bytes;
} view;

static view *views;

static void copy(const view *v, void *to, const void *from)
{
    assert_int_equal(hipSuccess, hipMemcpyAsync(to, from, v->bytes, hipMemcpyDefault, stream_of(v->unit->model->ctx)));
}

/* Copies of gradients are not waited for: a test no longer writes to them. */
static void write_back(const fsdp_unit *unit, view_kind kind)
{
    for (const view *v = views; v != NULL; v = v->next) {
        if (v->kind == kind && (unit == NULL || v->unit == unit)) {
            copy(v, v->there, v->here);
            if (kind == BUFFER || kind == SHARD) {
                finish(v->unit->model->ctx);
            }
        }
    }
}

static void read_buffers_again(void)
{
    for (const view *v = views; v != NULL; v = v->next) {
        if (v->kind == BUFFER) {
            copy(v, v->here, v->there);
            finish(v->unit->model->ctx);
        }
    }
}

/* Those of a pass of one unit; or all that a model, or a context, has. */
static void forget(const fsdp_unit *unit, const fsdp_model *model, const fsdp_context *ctx)
{
    for (view **at = &views; *at != NULL;) {
        view *v = *at;

        if ((unit != NULL && v->unit == unit && v->kind != BUFFER) || (model != NULL && v->unit->model == model) ||
            (ctx != NULL && v->unit->model->ctx == ctx)) {
            finish(v->unit->model->ctx);
            *at = v->next;
            free(v->here);
            free(v);
        } else {
            at = &v->next;
        }
    }
}

static view *find_or_add(fsdp_unit *unit, view_kind kind, void *there, size_t bytes, bool *is_new)
{
    view *v = views;

    while (v != NULL && (v->unit != unit || v->kind != kind || v->there != there)) {
        v = v->next;
    }
    *is_new = v == NULL;
    if (v == NULL) {
        v = malloc(sizeof *v);
        assert_non_null(v);
        *v = (view){.next = views, .unit = unit, .kind = kind, .there = there, .here = malloc(bytes), .bytes = bytes};
        assert_non_null(v->here);
        views = v;
    }
    return v;
}

/* Parameters are read again each time that a test looks, gradients once in a pass. */
static void *look_at(fsdp_unit *unit, size_t i, view_kind kind, const void *there)
{
    bool is_new;

    if (there == NULL || !fsdpi_is_on_device(unit->model)) {
        return (void *)(uintptr_t)there;
    }
    const fsdpi_tensor *tensor = &unit->tensors[i];
    const fsdp_dtype    dtype =
        kind == GRADIENT ? unit->model->options.reduce_dtype : fsdpi_gathered_dtype(unit->model, tensor->owner);
    const view *v = find_or_add(unit, kind, (void *)(uintptr_t)there, tensor->count * fsdp_dtype_size(dtype), &is_new);
    if (is_new || kind == PARAMETER) {
        copy(v, v->here, v->there);
        finish(unit->model->ctx);
    }
    return v->here;
}

const void *on_device_param(fsdp_unit *unit, size_t i)
{
    return look_at(unit, i, PARAMETER, fsdp_unit_param(unit, i));
}

void *on_device_grad(fsdp_unit *unit, size_t i)
{
    return look_at(unit, i, GRADIENT, fsdp_unit_grad(unit, i));
}

void *on_device_buffer(fsdp_unit *unit, size_t i)
{
    return look_at(unit, i, BUFFER, fsdp_unit_buffer(unit, i));
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

static void *look_at_shard(fsdp_unit *unit, void *there, size_t bytes)
{
    bool is_new;

    if (there == NULL || bytes == 0) {
        return NULL;
    }
    const view *v = find_or_add(unit, SHARD, there, bytes, &is_new);
    if (is_new) {
        copy(v, v->here, v->there);
        finish(unit->model->ctx);
    }
    return v->here;
}

fsdp_status on_device_shard(fsdp_unit *unit, size_t i, fsdp_shard *shard)
{
    const fsdp_status status = fsdp_unit_shard(unit, i, shard);

    if (status == FSDP_OK && fsdpi_is_on_device(unit->model)) {
        const size_t bytes = shard->count * fsdp_dtype_size(shard->dtype);

        shard->master   = look_at_shard(unit, shard->master, bytes);
        shard->gradient = look_at_shard(unit, shard->gradient, bytes);
    }
    return status;
}

static void give_shards_back(void)
{
    write_back(NULL, SHARD);
    for (view **at = &views; *at != NULL;) {
        view *v = *at;

        if (v->kind == SHARD) {
            *at = v->next;
            free(v->here);
            free(v);
        } else {
            at = &v->next;
        }
    }
}

fsdp_status on_device_shards_changed(fsdp_model *model)
{
    give_shards_back();
    return fsdp_model_shards_changed(model);
}

fsdp_status on_device_scaler_step(fsdp_loss_scaler *scaler, fsdp_optimizer *optimizer, int *stepped)
{
    give_shards_back();
    return fsdp_loss_scaler_step(scaler, optimizer, stepped);
}

/* ---- callbacks of pipelines -------------------------------------------------------------------------------------- */

void on_device_begin_callback(void)
{
    while (views != NULL) {
        forget(NULL, views->unit->model, NULL);
    }
}

void on_device_end_callback(void)
{
    write_back(NULL, GRADIENT);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static void begin(const fsdp_unit *unit)
{
    if (unit != NULL && unit->pass == FSDPI_CLOSED) {
        forget(unit, NULL, NULL);
        write_back(NULL, BUFFER); /* those of other units too, which may be tied to this one's */
    }
}

fsdp_status on_device_begin_forward(fsdp_unit *unit)
{
    begin(unit);
    return fsdp_unit_begin_forward(unit);
}

fsdp_status on_device_begin_backward(fsdp_unit *unit)
{
    begin(unit);
    return fsdp_unit_begin_backward(unit);
}

fsdp_status on_device_end_forward(fsdp_unit *unit)
{
    if (unit != NULL && unit->pass == FSDPI_FORWARD && unit->model->ctx->config.verify == FSDP_VERIFY_FULL) {
        write_back(unit, PARAMETER);
    }
    return fsdp_unit_end_forward(unit);
}

fsdp_status on_device_end_backward(fsdp_unit *unit)
{
    if (unit != NULL && unit->pass == FSDPI_BACKWARD) {
        write_back(unit, GRADIENT);
    }
    return fsdp_unit_end_backward(unit);
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

fsdp_status on_device_model_create(fsdp_context *ctx, const fsdp_model_options *options, fsdp_model **model)
{
    fsdp_model_options placed = FSDP_MODEL_OPTIONS_DEFAULT;
    const char        *where = getenv("MODEL_ON_DEVICE"), *others = getenv("MODEL_WITHOUT_MESH");

    if (options != NULL) {
        placed = *options;
    }
    if (placed.mesh == NULL && others != NULL && strcmp(others, "host") == 0) {
        return fsdp_model_create(ctx, options, model);
    }
    placed.keep_on_node = 0; /* hosts alone have that */
    placed.placement    = where == NULL                     ? FSDP_ON_DEVICE
                          : strcmp(where, "offloaded") == 0 ? FSDP_ON_DEVICE_OFFLOADED
                                                            : FSDP_ON_HOST;
    return fsdp_model_create(ctx, &placed, model);
}

void on_device_model_destroy(fsdp_model *model)
{
    if (model != NULL) {
        forget(NULL, model, NULL);
    }
    fsdp_model_destroy(model);
}

fsdp_status on_device_finalize(fsdp_context *ctx)
{
    hipStream_t stream = stream_of(ctx);

    forget(NULL, NULL, ctx);
    const fsdp_status status = fsdp_finalize(ctx);
    close_stream(stream);
    return status;
}

int on_device_open_context(void **state)
{
    return on_device_init(MPI_COMM_WORLD, NULL, (fsdp_context **)state) == FSDP_OK ? 0 : -1;
}

int on_device_close_context(void **state)
{
    return on_device_finalize(*state) == FSDP_OK ? 0 : -1;
}

fsdp_status on_device_export(fsdp_model *model, const char *name, int root, void *values, size_t bytes)
{
    write_back(NULL, BUFFER);
    return fsdp_tensor_export(model, name, root, values, bytes);
}

fsdp_status on_device_import(fsdp_model *model, const char *name, int root, const void *values, size_t bytes)
{
    write_back(NULL, BUFFER);
    const fsdp_status status = fsdp_tensor_import(model, name, root, values, bytes);
    read_buffers_again();
    return status;
}

fsdp_status on_device_checkpoint_save(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state)
{
    write_back(NULL, BUFFER);
    return fsdp_checkpoint_save(checkpoint, state);
}

fsdp_status on_device_checkpoint_save_async(fsdp_checkpoint *checkpoint, const fsdp_checkpoint_state *state)
{
    write_back(NULL, BUFFER);
    return fsdp_checkpoint_save_async(checkpoint, state);
}

fsdp_status on_device_checkpoint_load(fsdp_model *model, fsdp_optimizer *optimizer, const char *path,
                                      const fsdp_checkpoint_load_options *options, fsdp_checkpoint_state *state)
{
    write_back(NULL, BUFFER);
    const fsdp_status status = fsdp_checkpoint_load(model, optimizer, path, options, state);
    read_buffers_again();
    return status;
}
