/*
 * Moments in 8 bits in the steps of a model: the same bits for any number of ranks and every strategy as on one rank, which is
 * held to the serial recomputation. Every rank adds the same gradient of few bits, so that its mean over any number of ranks is exact.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/checkpoint.h"
#include "fsdp/optimizer.h"
#include "fsdp/shard.h"
#include "shard/state/dynamic_blocks.h"
#include "tests/shard/serial_optimizer.h"

enum { STEPS = 5 };

typedef struct run {
    small_model            m;
    serial_model           s;
    fsdp_optimizer        *optimizer;
    fsdp_optimizer_options o;
} run;

static fsdp_optimizer_options options_of(fsdp_optimizer_kind kind, fsdp_dtype moment_dtype)
{
    fsdp_optimizer_options o;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    o.lr           = 0.01;
    o.weight_decay = 0.1;
    o.beta2        = 0.97;
    o.moment_dtype = moment_dtype;
    return o;
}

static void build(small_model *m, MPI_Comm comm, fsdp_strategy strategy, fsdp_dtype moment_dtype)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.strategy     = strategy;
    options.seed         = 1234;
    options.moment_dtype = moment_dtype;
    small_model_build(m, comm, NULL, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
}

static void open_run(run *r, MPI_Comm comm, fsdp_strategy strategy, fsdp_optimizer_kind kind)
{
    memset(&r->s, 0, sizeof r->s);
    r->o = options_of(kind, FSDP_U8);
    build(&r->m, comm, strategy, FSDP_U8);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(r->m.model, &r->o, &r->optimizer));
    copy_parameters(&r->m, r->s.w);
}

/* What is left of moments behind a step: those of each tensor, in blocks from its first element on. */
static void quantise(float *moments, bool is_signed, int step)
{
    static uint8_t codes[MOST_ELEMENTS];
    static float   scales[MOST_ELEMENTS / 256 + 1];

    for (size_t t = 0; t < N_TENSORS; moments += tensor_elements(t++)) {
        fsdpi_dynamic_pack_step(moments, tensor_elements(t), is_signed, (uint64_t)step, codes, scales);
        fsdpi_dynamic_unpack(codes, scales, 0, tensor_elements(t), is_signed, moments);
    }
}

static void step_both(run *r, int pass)
{
    run_exact_pass(&r->m, pass);
    serial_take_exact_gradient(&r->s, pass);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(r->optimizer));
    serial_step(&r->s, &r->o, NULL);
    quantise(r->s.first, true, pass);
    quantise(r->s.second, false, pass);
    assert_equal_parameters(&r->s, &r->m, pass);
}

static void every_kind_equals_the_serial_recomputation(void **state)
{
    static run r;

    (void)state;
    for (int kind = FSDP_SGD_MOMENTUM; kind < FSDP_CUSTOM; kind++) {
        for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
            open_run(&r, MPI_COMM_WORLD, (fsdp_strategy)strategy, (fsdp_optimizer_kind)kind);
            for (int step = 0; step < STEPS; step++) {
                step_both(&r, step);
            }
            small_model_close(&r.m);
        }
    }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static void load_alone(const run *saved, const char *folder, fsdp_strategy strategy)
{
    static run loaded;

    open_run(&loaded, MPI_COMM_SELF, strategy, FSDP_ADAMW);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(loaded.m.model, loaded.optimizer, folder, NULL, NULL));
    loaded.s = saved->s;
    assert_equal_parameters(&loaded.s, &loaded.m, 2);
    step_both(&loaded, 2);
    step_both(&loaded, 3);
    small_model_close(&loaded.m);
}

/* The values are what they were before a step: those of moments in f32 begin with them. */
static void load_as_f32(const run *saved, const char *folder)
{
    static serial_model    s;
    fsdp_optimizer_options o = options_of(FSDP_ADAMW, FSDP_F32);
    fsdp_optimizer        *optimizer;
    small_model            m;

    s = saved->s;
    build(&m, MPI_COMM_SELF, FSDP_FULL_SHARD, FSDP_F32);
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, optimizer, folder, NULL, NULL));
    run_exact_pass(&m, 2);
    serial_take_exact_gradient(&s, 2);
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
    serial_step(&s, &o, NULL);
    assert_equal_parameters(&s, &m, 2);
    small_model_close(&m);
}

static void a_checkpoint_restores_codes_and_scales_on_any_number_of_ranks(void **state)
{
    const fsdp_checkpoint_state at      = {.step = 2};
    fsdp_checkpoint_options     options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    static run                  r;
    fsdp_checkpoint            *checkpoint;
    char                        folder[] = "/tmp/fsdp-8bit-XXXXXX", path[64], command[128];

    (void)state;
    open_run(&r, MPI_COMM_WORLD, FSDP_FULL_SHARD, FSDP_ADAMW);
    assert_true(fsdp_rank(r.m.ctx) != 0 || mkdtemp(folder) != NULL);
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    step_both(&r, 0);
    step_both(&r, 1);
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        (void)snprintf(path, sizeof path, "%s/run%d", folder, asynchronous);
        options.asynchronous = asynchronous;
        assert_int_equal(FSDP_OK, fsdp_checkpoint_open(r.m.model, r.optimizer, path, &options, &checkpoint));
        assert_int_equal(FSDP_OK, asynchronous ? fsdp_checkpoint_save_async(checkpoint, &at)
                                               : fsdp_checkpoint_save(checkpoint, &at));
        assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
        load_alone(&r, path, FSDP_FULL_SHARD);
        load_alone(&r, path, FSDP_NO_SHARD);
        load_as_f32(&r, path);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_rank(r.m.ctx) == 0) {
        (void)snprintf(command, sizeof command, "rm -r %s", folder);
        assert_int_equal(0, system(command));
    }
    small_model_close(&r.m);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void a_budget_is_what_is_held(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        static run  r;
        fsdp_budget budget;
        fsdp_memory memory;

        open_run(&r, MPI_COMM_WORLD, (fsdp_strategy)strategy, FSDP_ADAMW);
        step_both(&r, 0);
        assert_int_equal(FSDP_OK, fsdp_model_budget(r.m.model, (fsdp_strategy)strategy, 0, FSDP_ADAMW, &budget));
        assert_int_equal(FSDP_OK, fsdp_memory_usage(r.m.ctx, &memory));
        for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
            assert_int_equal(memory.current[line], budget.bytes[line]);
        }
        small_model_close(&r.m);
    }
}

static size_t moments_of_a_large_tensor(fsdp_context *ctx, fsdp_dtype moment_dtype, int ranks)
{
    const fsdp_tensor  tensor  = {.name = "w", .n_dims = 2, .shape = {1024, 1024}, .dtype = FSDP_F32};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model        *model;
    fsdp_unit         *unit;
    fsdp_budget        budget;

    options.moment_dtype = moment_dtype;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_budget(model, FSDP_FULL_SHARD, ranks, FSDP_ADAMW, &budget));
    fsdp_model_destroy(model);
    return budget.bytes[FSDP_MEMORY_OPTIMIZER];
}

static void moments_take_at_most_26_hundredths_of_those_in_f32(void **state)
{
    static const int RANKS[] = {1, 2, 3, 5, 8, 64};

    for (size_t i = 0; i < sizeof RANKS / sizeof RANKS[0]; i++) {
        const size_t narrow = moments_of_a_large_tensor(*state, FSDP_U8, RANKS[i]);
        const size_t wide   = moments_of_a_large_tensor(*state, FSDP_F32, RANKS[i]);

        assert_true((double)narrow <= 0.26 * (double)wide);
    }
}

/* ---- what can be wrong ------------------------------------------------------------------------------------------- */

static void a_model_that_was_laid_out_for_another_type_is_refused(void **state)
{
    fsdp_optimizer_options o = options_of(FSDP_ADAMW, FSDP_U8);
    fsdp_optimizer        *optimizer;
    fsdp_model_group       group = FSDP_MODEL_GROUP_DEFAULT;
    small_model            m;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_ERR_ARG, fsdp_optimizer_create(m.model, &o, &optimizer));
    assert_says(m.ctx, "set fsdp_model_options.moment_dtype to FSDP_U8 too");
    small_model_close(&m);

    group.moment_dtype = FSDP_U8;
    group.granularity  = 100;
    small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_add_group(m.model, "*", &group));
    assert_says(m.ctx, "blocks of 256 elements, which a granularity of 100 does not keep together");
    small_model_close(&m);
}

static void codes_are_not_handed_out_as_values(void **state)
{
    static run r;

    (void)state;
    open_run(&r, MPI_COMM_WORLD, FSDP_FULL_SHARD, FSDP_ADAMW);
    assert_null(fsdp_optimizer_state(r.optimizer, r.m.units[0], 0, 0));
    assert_says(r.m.ctx, "moments in 8 bits are codes and scales");
    small_model_close(&r.m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_equals_the_serial_recomputation),
        cmocka_unit_test(a_checkpoint_restores_codes_and_scales_on_any_number_of_ranks),
        cmocka_unit_test(a_budget_is_what_is_held),
        cmocka_unit_test(moments_take_at_most_26_hundredths_of_those_in_f32),
        cmocka_unit_test(a_model_that_was_laid_out_for_another_type_is_refused),
        cmocka_unit_test(codes_are_not_handed_out_as_values),
    };

    return fsdp_test_main(argc, argv, tests, fsdp_test_open_context, fsdp_test_close_context);
}
