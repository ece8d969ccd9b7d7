/*
 * Options structs of programs of other versions: shorter, longer, without a size. Every struct of include/fsdp is a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/fsdp.h"
#include "tests/shard/small_model.h"

enum { ROOM = 2048, MORE = 24 };

/* Where options are used: a committed model in an open context, with an optimizer for groups. */
typedef struct place {
    small_model     m;
    fsdp_optimizer *optimizer;
    char            folder[64];
} place;

static fsdp_status use_config(place *p, const void *options)
{
    fsdp_context     *ctx    = NULL;
    const fsdp_status status = fsdp_init(MPI_COMM_SELF, options, &ctx);

    (void)p;
    assert_true((ctx == NULL) == (status != FSDP_OK));
    if (ctx != NULL) {
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
    return status;
}

static fsdp_status use_model(place *p, const void *options)
{
    fsdp_model       *model  = NULL;
    const fsdp_status status = fsdp_model_create(p->m.ctx, options, &model);

    fsdp_model_destroy(model);
    return status;
}

static fsdp_status use_optimizer(place *p, const void *options)
{
    fsdp_optimizer   *optimizer = NULL;
    const fsdp_status status    = fsdp_optimizer_create(p->m.model, options, &optimizer);

    fsdp_optimizer_destroy(optimizer);
    return status;
}

static fsdp_status use_group(place *p, const void *options)
{
    fsdp_optimizer_options adam;

    fsdp_optimizer_destroy(p->optimizer);
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAM, &adam));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(p->m.model, &adam, &p->optimizer));
    return fsdp_optimizer_add_group(p->optimizer, "*", options);
}

static fsdp_status use_lbfgs(place *p, const void *options)
{
    fsdp_lbfgs *lbfgs = NULL;

    fsdp_optimizer_destroy(p->optimizer);
    p->optimizer             = NULL;
    const fsdp_status status = fsdp_lbfgs_create(p->m.model, options, &lbfgs);
    fsdp_lbfgs_destroy(lbfgs);
    return status;
}

/* What adding one has found, commit tells all ranks. */
static fsdp_status use_tensor_group(place *p, const void *options)
{
    const fsdp_tensor tensor = {.name = "w", .n_dims = 1, .shape = {4}, .dtype = FSDP_F32};
    fsdp_model       *model;
    fsdp_unit        *unit;

    assert_int_equal(FSDP_OK, fsdp_model_create(p->m.ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    (void)fsdp_model_add_group(model, "*", options);
    const fsdp_status status = fsdp_model_commit(model);
    fsdp_model_destroy(model);
    return status;
}

static fsdp_status use_scaler(place *p, const void *options)
{
    fsdp_loss_scaler_options any    = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    fsdp_loss_scaler        *scaler = NULL;
    fsdp_status              status;

    status = fsdp_loss_scaler_create(p->m.model, options, &scaler);
    if (status == FSDP_ERR_UNSUPPORTED && strstr(fsdp_last_error(p->m.ctx), "needs no loss scaling") != NULL) {
        any.allow_any_dtype =
            1; /* a shorter struct has the default, with which an f32 model is refused: it was understood */
        status = fsdp_loss_scaler_create(p->m.model, &any, &scaler);
    }
    fsdp_loss_scaler_destroy(scaler);
    return status;
}

static fsdp_status use_checkpoint(place *p, const void *options)
{
    fsdp_checkpoint  *checkpoint = NULL;
    const fsdp_status status     = fsdp_checkpoint_open(p->m.model, NULL, p->folder, options, &checkpoint);

    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    return status;
}

/* The path has no checkpoint: with options that are understood, that is what is wrong. */
static fsdp_status use_load(place *p, const void *options)
{
    const fsdp_status status = fsdp_checkpoint_load(p->m.model, NULL, "no-such-checkpoint", options, NULL);

    assert_int_not_equal(FSDP_OK, status);
    return status == FSDP_ERR_IO ? FSDP_OK : status;
}

static fsdp_status use_int8(place *p, const void *options)
{
    fsdp_hook        *hook   = NULL;
    const fsdp_status status = fsdp_hook_int8(p->m.ctx, options, &hook);

    fsdp_hook_destroy(hook);
    return status;
}

static fsdp_status use_power_sgd(place *p, const void *options)
{
    fsdp_hook        *hook   = NULL;
    const fsdp_status status = fsdp_hook_power_sgd(p->m.ctx, options, &hook);

    fsdp_hook_destroy(hook);
    return status;
}

static fsdp_status use_callbacks(place *p, const void *options)
{
    fsdp_hook        *hook   = NULL;
    const fsdp_status status = fsdp_hook_custom(p->m.ctx, options, &hook);

    fsdp_hook_destroy(hook);
    return status;
}

static fsdp_status use_batch_norm(place *p, const void *options)
{
    const fsdp_batch_norm_shape shape = {1, 1, 2};
    const float                 x[2] = {1.0F, 2.0F}, weight = 1.0F, bias = 0.0F;
    float                       y[2];
    double                      mean, scale;
    fsdp_batch_norm_saved       saved = {.mean = &mean, .scale = &scale};

    return fsdp_batch_norm_forward(p->m.ctx, &shape, options, x, &weight, &bias, NULL, y, &saved);
}

static fsdp_status do_nothing(void *state, const fsdp_gradient *gradient)
{
    (void)state;
    (void)gradient;
    return FSDP_OK;
}

/* As a program makes them: by the _init function, and by the macro where there is one. */
static void make_config(void *by_init, void *by_macro)
{
    fsdp_config_init(by_init);
    memcpy(by_macro, by_init, sizeof(fsdp_config));
}

static void make_optimizer(void *by_init, void *by_macro)
{
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_LION, by_init));
    memcpy(by_macro, by_init, sizeof(fsdp_optimizer_options));
}

static void make_callbacks(void *by_init, void *by_macro)
{
    fsdp_hook_callbacks *callbacks = by_init;

    fsdp_hook_callbacks_init(callbacks);
    callbacks->before = do_nothing;
    memcpy(by_macro, by_init, sizeof *callbacks);
}

static void make_group(void *by_init, void *by_macro)
{
    fsdp_optimizer_group_init(by_init);
    *(fsdp_optimizer_group *)by_macro = (fsdp_optimizer_group)FSDP_OPTIMIZER_GROUP_DEFAULT;
}

#define MAKE(name, TYPE, INIT, MACRO)                                                                                  \
    static void name(void *by_init, void *by_macro)                                                                    \
    {                                                                                                                  \
        static const TYPE plain = MACRO;                                                                               \
                                                                                                                       \
        INIT(by_init);                                                                                                 \
        memcpy(by_macro, &plain, sizeof plain);                                                                        \
    }
MAKE(make_model, fsdp_model_options, fsdp_model_options_init, FSDP_MODEL_OPTIONS_DEFAULT)
MAKE(make_tensor_group, fsdp_model_group, fsdp_model_group_init, FSDP_MODEL_GROUP_DEFAULT)
MAKE(make_lbfgs, fsdp_lbfgs_options, fsdp_lbfgs_options_init, FSDP_LBFGS_OPTIONS_DEFAULT)
MAKE(make_plain_scaler, fsdp_loss_scaler_options, fsdp_loss_scaler_options_init, FSDP_LOSS_SCALER_OPTIONS_DEFAULT)
MAKE(make_checkpoint, fsdp_checkpoint_options, fsdp_checkpoint_options_init, FSDP_CHECKPOINT_OPTIONS_DEFAULT)
MAKE(make_load, fsdp_checkpoint_load_options, fsdp_checkpoint_load_options_init, FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT)
MAKE(make_int8, fsdp_int8_options, fsdp_int8_options_init, FSDP_INT8_OPTIONS_DEFAULT)
MAKE(make_power_sgd, fsdp_power_sgd_options, fsdp_power_sgd_options_init, FSDP_POWER_SGD_OPTIONS_DEFAULT)
MAKE(make_batch_norm, fsdp_batch_norm_options, fsdp_batch_norm_options_init, FSDP_BATCH_NORM_OPTIONS_DEFAULT)

static fsdp_status pipeline_forward(void *user, int stage, int micro, const void *in, void *out)
{
    (void)user, (void)stage, (void)micro, (void)in, (void)out;
    return FSDP_OK;
}

static fsdp_status pipeline_loss(void *user, int micro, const void *out, void *grad_out, double *value)
{
    (void)user, (void)micro, (void)out, (void)grad_out;
    *value = 0;
    return FSDP_OK;
}

static fsdp_status pipeline_backward(void *user, int stage, int micro, const void *in, const void *grad_out,
                                     void *grad_in)
{
    (void)user, (void)stage, (void)micro, (void)in, (void)grad_out, (void)grad_in;
    return FSDP_OK;
}

MAKE(make_plain_pipeline, fsdp_pipeline_options, fsdp_pipeline_options_init, FSDP_PIPELINE_OPTIONS_DEFAULT)

static void set_pipeline(fsdp_pipeline_options *options)
{
    options->micros = 2;
    options->bytes  = 8;
}

/* The schedule's name may be another string of the same text in the library. */
static void make_pipeline(void *by_init, void *by_macro)
{
    fsdp_pipeline_options *macro = by_macro;

    make_plain_pipeline(by_init, by_macro);
    set_pipeline(by_init);
    set_pipeline(macro);
    assert_string_equal(((fsdp_pipeline_options *)by_init)->schedule, macro->schedule);
    macro->schedule = ((fsdp_pipeline_options *)by_init)->schedule;
}

static void set_pipeline_callbacks(fsdp_pipeline_callbacks *callbacks)
{
    fsdp_pipeline_callbacks_init(callbacks);
    callbacks->forward        = pipeline_forward;
    callbacks->loss           = pipeline_loss;
    callbacks->backward_input = pipeline_backward;
}

static void make_pipeline_callbacks(void *by_init, void *by_macro)
{
    set_pipeline_callbacks(by_init);
    set_pipeline_callbacks(by_macro);
}

static fsdp_status create_pipeline(place *p, const void *options, const void *callbacks)
{
    fsdp_pipeline    *pipeline = NULL;
    const fsdp_status status   = fsdp_pipeline_create(p->m.ctx, options, callbacks, &pipeline);

    fsdp_pipeline_destroy(pipeline);
    return status;
}

static fsdp_status use_pipeline(place *p, const void *options)
{
    fsdp_pipeline_callbacks callbacks;

    set_pipeline_callbacks(&callbacks);
    return create_pipeline(p, options, &callbacks);
}

static fsdp_status use_pipeline_callbacks(place *p, const void *callbacks)
{
    fsdp_pipeline_options options = FSDP_PIPELINE_OPTIONS_DEFAULT;

    set_pipeline(&options);
    return create_pipeline(p, &options, callbacks);
}

static void make_scaler(void *by_init, void *by_macro)
{
    make_plain_scaler(by_init, by_macro);
    ((fsdp_loss_scaler_options *)by_init)->allow_any_dtype  = 1;
    ((fsdp_loss_scaler_options *)by_macro)->allow_any_dtype = 1;
}

static const struct options_struct {
    const char *type;
    size_t      size;
    size_t      shortest; /* that makes sense: with the fields that have no default */
    void (*make)(void *by_init, void *by_macro);
    fsdp_status (*use)(place *p, const void *options);
} STRUCTS[] = {
    {"fsdp_config", sizeof(fsdp_config), 16, make_config, use_config},
    {"fsdp_model_options", sizeof(fsdp_model_options), 16, make_model, use_model},
    {"fsdp_model_group", sizeof(fsdp_model_group), 16, make_tensor_group, use_tensor_group},
    {"fsdp_optimizer_options", sizeof(fsdp_optimizer_options), 16, make_optimizer, use_optimizer},
    {"fsdp_optimizer_group", sizeof(fsdp_optimizer_group), 16, make_group, use_group},
    {"fsdp_lbfgs_options", sizeof(fsdp_lbfgs_options), 16, make_lbfgs, use_lbfgs},
    {"fsdp_loss_scaler_options", sizeof(fsdp_loss_scaler_options), 16, make_scaler, use_scaler},
    {"fsdp_checkpoint_options", sizeof(fsdp_checkpoint_options), 16, make_checkpoint, use_checkpoint},
    {"fsdp_checkpoint_load_options", sizeof(fsdp_checkpoint_load_options), 16, make_load, use_load},
    {"fsdp_int8_options", sizeof(fsdp_int8_options), 16, make_int8, use_int8},
    {"fsdp_power_sgd_options", sizeof(fsdp_power_sgd_options), 16, make_power_sgd, use_power_sgd},
    {"fsdp_hook_callbacks", sizeof(fsdp_hook_callbacks), 16, make_callbacks, use_callbacks},
    {"fsdp_pipeline_options", sizeof(fsdp_pipeline_options), offsetof(fsdp_pipeline_options, bytes_of), make_pipeline,
     use_pipeline},
    {"fsdp_pipeline_callbacks", sizeof(fsdp_pipeline_callbacks), offsetof(fsdp_pipeline_callbacks, backward_weight),
     make_pipeline_callbacks, use_pipeline_callbacks},
    {"fsdp_batch_norm_options", sizeof(fsdp_batch_norm_options), 16, make_batch_norm, use_batch_norm},
};
enum { N_STRUCTS = sizeof STRUCTS / sizeof STRUCTS[0] };

typedef union room {
    unsigned char bytes[ROOM];
    size_t        size;
} room;

/* What one rank says; the others may have only been told. */
static void assert_text(const place *p, const struct options_struct *s, const char *text)
{
    const char *error = s->use == use_config ? fsdp_last_error(NULL) : fsdp_last_error(p->m.ctx);

    if (strstr(error, text) == NULL) {
        fail_msg("%s: '%s' is not in '%s'", s->type, text, error);
    }
}

static void check_refused(place *p, const struct options_struct *s, const room *options, fsdp_status status,
                          const char *text)
{
    assert_int_equal(status, s->use(p, options));
    assert_text(p, s, text);
    assert_text(p, s, s->type);
}

static void check_struct(place *p, const struct options_struct *s)
{
    static const size_t nonsense[] = {0, 1, sizeof(size_t), sizeof(size_t) + 3, 65544, SIZE_MAX};
    room                good, macro, other;
    char                text[96];

    memset(&good, 0x5a, sizeof good); /* behind the struct, what must not be read */
    memset(&macro, 0x5a, sizeof macro);
    s->make(&good, &macro);
    assert_memory_equal(&good, &macro, sizeof good); /* both ways to begin with; and nothing was written behind */
    assert_int_equal(s->size, good.size);
    assert_int_equal(FSDP_OK, s->use(p, &good));
    for (size_t size = s->shortest; size < s->size; size += sizeof(size_t)) { /* an older program's */
        other = good;
        memset(other.bytes + size, 0xee, sizeof other - size);
        other.size = size;
        assert_int_equal(FSDP_OK, s->use(p, &other));
    }
    other = good; /* a newer program's, which sets nothing that this version lacks */
    memset(other.bytes + s->size, 0, MORE);
    other.size = s->size + MORE;
    assert_int_equal(FSDP_OK, s->use(p, &other));
    other.bytes[s->size + MORE - 1] = 1; /* and one which does */
    (void)snprintf(text, sizeof text, "the field at byte %zu is set", s->size + MORE - 4);
    check_refused(p, s, &other, FSDP_ERR_UNSUPPORTED, text);
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        other      = good;
        other.size = nonsense[i];
        check_refused(p, s, &other, FSDP_ERR_ARG, "_init on it before");
    }
}

static void open_place(place *p)
{
    int rank;

    *p = (place){.optimizer = NULL};
    small_model_open(&p->m, NULL, FSDP_FULL_SHARD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)snprintf(p->folder, sizeof p->folder, "/tmp/fsdp-options-XXXXXX");
    assert_true(rank != 0 || mkdtemp(p->folder) != NULL);
    MPI_Bcast(p->folder, sizeof p->folder, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void close_place(place *p)
{
    char path[96];

    (void)snprintf(path, sizeof path, "%s/.lock", p->folder);
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_rank(p->m.ctx) == 0) {
        (void)remove(path);
        (void)remove(p->folder);
    }
    fsdp_optimizer_destroy(p->optimizer);
    small_model_close(&p->m);
}

static void structs_of_other_versions_are_taken_or_refused(void **state)
{
    place p;

    (void)state;
    open_place(&p);
    for (size_t i = 0; i < N_STRUCTS; i++) {
        check_struct(&p, &STRUCTS[i]);
    }
    close_place(&p);
}

/* On the last rank alone, and every rank is told. */
static void a_struct_without_a_size_on_one_rank_fails_on_all(void **state)
{
    place p;

    (void)state;
    open_place(&p);
    for (size_t i = 0; i < N_STRUCTS; i++) {
        room options, macro;

        STRUCTS[i].make(&options, &macro);
        options.size = fsdp_rank(p.m.ctx) == fsdp_size(p.m.ctx) - 1 ? 0 : options.size;
        if (STRUCTS[i].use != use_config) { /* that one opens a context of each rank's own */
            check_refused(&p, &STRUCTS[i], &options, FSDP_ERR_ARG, "_init on it before");
        }
    }
    close_place(&p);
}

/* A library that is newer than the program fills no more than the program has room for. */
static void init_functions_write_as_much_as_they_are_told(void **state)
{
    room options;

    (void)state;
    memset(&options, 0x5a, sizeof options);
    fsdp_model_options_init_size((fsdp_model_options *)(void *)&options, 24);
    assert_int_equal(24, options.size);
    assert_int_equal(0x5a, options.bytes[24]);
    fsdp_config_init_size((fsdp_config *)(void *)&options, sizeof(fsdp_config) + 16);
    assert_int_equal(sizeof(fsdp_config) + 16, options.size);
    assert_int_equal(0, options.bytes[sizeof(fsdp_config)]);
    assert_int_equal(0x5a, options.bytes[sizeof(fsdp_config) + 16]);
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_optimizer_options_init_size(FSDP_ADAM, (fsdp_optimizer_options *)(void *)&options, 8));
}

/* A newer setting that is unset is -1. */
static void settings_of_a_newer_version_may_be_unset(void **state)
{
    room     options;
    uint32_t unset = UINT32_MAX;

    (void)state;
    memset(&options, 0, sizeof options);
    fsdp_config_init((fsdp_config *)(void *)&options);
    memcpy(options.bytes + sizeof(fsdp_config), &unset, sizeof unset);
    options.size += MORE;
    assert_int_equal(FSDP_OK, use_config(NULL, &options));
}

static void a_tensor_with_words_that_this_version_lacks_is_refused(void **state)
{
    fsdp_tensor  tensor = {.name = "w", .n_dims = 1, .shape = {4}, .dtype = FSDP_F32};
    const size_t words  = sizeof tensor.reserved / sizeof tensor.reserved[0];
    small_model  m;
    fsdp_unit   *unit;

    (void)state;
    tensor.reserved[words - 1] = 1;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    fsdp_model *model;
    assert_int_equal(FSDP_OK, fsdp_model_create(m.ctx, NULL, &model));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "of `reserved` is not zero"));
    fsdp_model_destroy(model);
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_of_other_versions_are_taken_or_refused),
        cmocka_unit_test(a_struct_without_a_size_on_one_rank_fails_on_all),
        cmocka_unit_test(init_functions_write_as_much_as_they_are_told),
        cmocka_unit_test(settings_of_a_newer_version_may_be_unset),
        cmocka_unit_test(a_tensor_with_words_that_this_version_lacks_is_refused),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
