#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fsdp/hook.h"
#include "fsdp/layout.h"
#include "fsdp/loss_scaler.h"
#include "fsdp/optimizer.h"
#include "lib/context/context.h"
#include "lib/context/init.h"
#include "shard/state/model.h"
#include "tests/shard/failing_memory.h"
#include "tests/shard/small_model.h"

static void train_a_step(small_model *m, fsdp_optimizer_kind kind, fsdp_dtype moment_dtype)
{
    fsdp_optimizer_options     o;
    fsdp_optimizer            *optimizer;
    const fsdp_optimizer_group group = FSDP_OPTIMIZER_GROUP_DEFAULT;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    o.beta2        = 0.99;
    o.moment_dtype = moment_dtype;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    for (size_t t = 0; t < N_TENSORS; t++) {
        assert_int_equal(FSDP_OK, fsdp_optimizer_add_group(optimizer, TENSORS[t].name, &group));
    }
    run_pass(m, 0);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m->model, 1.0, NULL));
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
}

/* What the library counts, line by line; nothing more is ever taken, also not for a moment. */
static void expect_held(const small_model *m, const char *what, const fsdp_budget *budget)
{
    fsdp_memory memory;

    assert_int_equal(FSDP_OK, fsdp_memory_usage(m->ctx, &memory));
    for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
        if (budget->bytes[line] != memory.current[line]) {
            fail_msg("%s: %s: %zu bytes in the budget, %zu held", what, fsdp_memory_name((fsdp_memory_kind)line),
                     budget->bytes[line], memory.current[line]);
        }
    }
    assert_int_equal(budget->total, memory.current_total);
    assert_int_equal(budget->total, memory.peak_total);
}

static void check_budget_to_the_byte(fsdp_strategy strategy, fsdp_optimizer_kind kind, fsdp_dtype moment_dtype,
                                     int fixed_addresses)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model        m;
    fsdp_budget        budget;

    options.strategy        = strategy;
    options.moment_dtype    = moment_dtype;
    options.fixed_addresses = fixed_addresses;
    options.kept_units      = 2 * fixed_addresses;
    options.recorded_passes = 101 * (size_t)fixed_addresses;
    small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    train_a_step(&m, kind, moment_dtype);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, strategy, 0, kind, &budget));
    expect_held(&m, fsdp_strategy_name(strategy), &budget);
    small_model_close(&m);
}

static void the_budget_is_what_is_held_to_the_byte(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        for (int kind = 0; kind < FSDP_CUSTOM; kind++) {
            check_budget_to_the_byte((fsdp_strategy)strategy, (fsdp_optimizer_kind)kind, FSDP_F32, 0);
            check_budget_to_the_byte((fsdp_strategy)strategy, (fsdp_optimizer_kind)kind, FSDP_BF16, 1);
        }
    }
}

static void a_loss_scaler_is_in_the_budget(void **state)
{
    fsdp_loss_scaler_options options = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    fsdp_loss_scaler        *scaler;
    small_model              m;
    fsdp_budget              budget;

    (void)state;
    options.allow_any_dtype = 1;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(m.model, &options, &scaler));
    train_a_step(&m, FSDP_ADAMW, FSDP_F32);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_FULL_SHARD, 0, FSDP_ADAMW, &budget));
    expect_held(&m, "loss scaler", &budget);
    small_model_close(&m);
}

static fsdp_hook *make_hook(small_model *m, int which)
{
    static const fsdp_power_sgd_options rank_2 = {.size = sizeof rank_2, .rank = 2, .min_ratio = 1.0, .seed = 1};
    fsdp_hook                          *hook   = NULL;

    assert_int_equal(FSDP_OK, which == 0   ? fsdp_hook_half(m->ctx, FSDP_BF16, &hook)
                              : which == 1 ? fsdp_hook_int8(m->ctx, NULL, &hook)
                                           : fsdp_hook_power_sgd(m->ctx, &rank_2, &hook));
    return hook;
}

static void close_with_hook(small_model *m, fsdp_hook *hook)
{
    fsdp_model_destroy(m->model);
    fsdp_hook_destroy(hook);
    assert_int_equal(FSDP_OK, fsdp_finalize(m->ctx));
}

/* Asked before the hook has taken anything but its own place. */
static void check_budget_of_hook(fsdp_strategy strategy, int group_size, int which)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model        m;
    fsdp_budget        budget, plain;

    options.strategy   = strategy;
    options.group_size = group_size;
    small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
    fsdp_hook *hook = make_hook(&m, which);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, strategy, 0, FSDP_ADAMW, &plain));
    budget = plain;
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_OK, fsdp_hook_budget(hook, m.model, &budget));
    assert_true(budget.total > plain.total && budget.shared == plain.shared);
    assert_int_equal(FSDP_OK, fsdp_model_set_hook(m.model, hook));
    train_a_step(&m, FSDP_ADAMW, FSDP_F32);
    expect_held(&m, fsdp_strategy_name(strategy), &budget);
    close_with_hook(&m, hook);
}

static void a_hook_adds_to_the_budget_what_it_will_hold(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        check_budget_of_hook(FSDP_NO_SHARD, 0, which);
        check_budget_of_hook(FSDP_HYBRID_SHARD, 1, which);
        check_budget_of_hook(FSDP_HYBRID_SHARD, fsdp_test_size(), which); /* one group, in which no hook is called */
        if (fsdp_test_size() % 2 == 0) {
            check_budget_of_hook(FSDP_HYBRID_SHARD_ZERO2, fsdp_test_size() / 2, which);
        }
    }
}

/* From the formulas in fsdp/hook.h: 4 bytes per compressed element, and 4 x rank x columns, of the one matrix that pays. */
static void the_budget_of_power_sgd_is_what_its_header_says(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model        m;
    fsdp_budget        with, plain;

    (void)state;
    options.strategy = FSDP_NO_SHARD;
    small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
    fsdp_hook *hook = make_hook(&m, 2);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_NO_SHARD, 0, FSDP_ADAMW, &plain));
    with = plain;
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_OK, fsdp_hook_budget(hook, m.model, &with));
    const size_t state_bytes = fsdp_test_size() > 1 ? 4 * (31 * 67 + 2 * 67) : 0;
    assert_in_range(with.bytes[FSDP_MEMORY_GRADIENTS] - plain.bytes[FSDP_MEMORY_GRADIENTS], state_bytes,
                    state_bytes + 255);
    close_with_hook(&m, hook);
}

/* Of groups that the running ranks could not form. */
static void hybrid_strategies_have_a_budget_for_ranks_that_do_not_run(void **state)
{
    enum { RANKS = 64, GROUP = 16 };
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model        m;
    fsdp_budget        budget;
    size_t             padded = 0;

    (void)state;
    options.group_size = GROUP;
    small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
    for (size_t u = 0; u < N_UNITS; u++) {
        size_t      counts[N_TENSORS];
        fsdp_layout layout;

        for (size_t t = 0; t < m.units[u]->n_tensors; t++) {
            counts[t] = m.units[u]->tensors[t].count;
        }
        assert_int_equal(
            FSDP_OK, fsdp_layout_init(m.units[u]->n_tensors, counts, NULL, RANKS, 16, FSDP_GRANULARITY_FLAT, &layout));
        padded += layout.padded;
    }
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_HYBRID_SHARD, RANKS, FSDP_ADAMW, &budget));
    assert_int_equal(4 * padded / GROUP, budget.bytes[FSDP_MEMORY_PARAMETERS]);
    assert_int_equal(8 * padded / GROUP, budget.bytes[FSDP_MEMORY_OPTIMIZER]);
    small_model_close(&m);
}

/* Each unit's size can be counted, and not that of them all. */
static void a_model_too_large_to_count_is_refused(void **state)
{
    const fsdp_tensor huge = {.name = "huge", .n_dims = 1, .shape = {(size_t)1 << 59}, .dtype = FSDP_F32};
    fsdp_config       config;
    small_model       m;
    fsdp_unit        *unit;
    fsdp_budget       budget;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    small_model_build(&m, MPI_COMM_WORLD, &config, NULL);
    assert_int_equal(FSDP_OK, fsdp_unit_add(m.model, "huge", &huge, 1, &unit));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_budget(m.model, FSDP_NO_SHARD, 0, FSDP_ADAMW, &budget));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "overflows at unit 'huge'"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(m.model));
    small_model_close(&m);
}

static void a_hook_that_does_not_fit_has_no_budget(void **state)
{
    fsdp_config config;
    small_model m;
    fsdp_budget budget, untouched;

    (void)state;
    fsdp_config_init(&config);
    config.log_level = FSDP_LOG_OFF;
    small_model_build(&m, MPI_COMM_WORLD, &config, NULL);
    fsdp_hook *hook = make_hook(&m, 0);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_FULL_SHARD, 0, FSDP_ADAMW, &budget));
    untouched = budget;
    assert_int_equal(FSDP_ERR_STATE, fsdp_hook_budget(hook, m.model, &budget));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    assert_int_equal(FSDP_ERR_UNSUPPORTED, fsdp_hook_budget(hook, m.model, &budget));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "fsdp_hook_budget: a hook serves NO_SHARD and HYBRID_SHARD"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_hook_budget(NULL, m.model, &budget));
    assert_int_equal(FSDP_ERR_ARG, fsdp_hook_budget(hook, NULL, &budget));
    assert_int_equal(FSDP_ERR_ARG, fsdp_hook_budget(hook, m.model, NULL));
    assert_memory_equal(&untouched, &budget, sizeof budget);
    close_with_hook(&m, hook);
}

/* Per parameter of the unsharded state: master and gradient, and the moments. */
static void moments_take_what_their_type_and_number_say(void **state)
{
    static const size_t moments[FSDP_CUSTOM] = {0, 1, 2, 2, 1};
    static const struct {
        fsdp_dtype dtype;
        size_t     bytes;
    } types[] = {{FSDP_F32, 4}, {FSDP_BF16, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
        small_model        m;
        fsdp_budget        budget;

        options.moment_dtype = types[i].dtype;
        small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
        for (int kind = 0; kind < FSDP_CUSTOM; kind++) {
            assert_int_equal(FSDP_OK,
                             fsdp_model_budget(m.model, FSDP_FULL_SHARD, 0, (fsdp_optimizer_kind)kind, &budget));
            assert_int_equal(moments[kind] * types[i].bytes * budget.bytes[FSDP_MEMORY_PARAMETERS],
                             4 * budget.bytes[FSDP_MEMORY_OPTIMIZER]);
            assert_int_equal((8 + moments[kind] * types[i].bytes) * budget.parameters, budget.unsharded);
        }
        small_model_close(&m);
    }
}

static void adamw_takes_16_bytes_per_parameter_divided_by_the_ranks(void **state)
{
    static const size_t elements[N_UNITS] = {31 * 67 + 67 + 1, 2, 1009};
    small_model         m;
    fsdp_budget         full, none;
    size_t              sum = 0, padded = 0;

    (void)state;
    small_model_open(&m, NULL, FSDP_FULL_SHARD);
    const size_t size = (size_t)fsdp_size(m.ctx);
    for (size_t u = 0; u < N_UNITS; u++) {
        const size_t grain = 256 * size;
        sum += elements[u];
        padded += (elements[u] + grain - 1) / grain * grain;
    }
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_FULL_SHARD, 0, FSDP_ADAMW, &full));
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_NO_SHARD, 0, FSDP_ADAMW, &none));
    assert_int_equal(sum, full.parameters);
    assert_int_equal(16 * sum, full.unsharded);
    assert_int_equal(16 * padded / size, full.bytes[FSDP_MEMORY_PARAMETERS] + full.bytes[FSDP_MEMORY_GRADIENTS] +
                                             full.bytes[FSDP_MEMORY_OPTIMIZER]);
    assert_int_equal(16 * padded, none.bytes[FSDP_MEMORY_PARAMETERS] + none.bytes[FSDP_MEMORY_GRADIENTS] +
                                      none.bytes[FSDP_MEMORY_OPTIMIZER]);
    assert_int_equal(0, none.bytes[FSDP_MEMORY_GATHERED]);
    small_model_close(&m);
}

/* Asked on one rank for the number that runs, the answer is that which the running ranks give. */
static void a_budget_can_be_asked_for_ranks_that_do_not_run(void **state)
{
    small_model alone, all;
    fsdp_budget asked, real;

    (void)state;
    small_model_open(&all, NULL, FSDP_FULL_SHARD);
    small_model_build(&alone, MPI_COMM_SELF, NULL, NULL);              /* before commit */
    for (int strategy = 0; strategy < FSDP_HYBRID_SHARD; strategy++) { /* groups would be the nodes, which differ */
        assert_int_equal(
            FSDP_OK, fsdp_model_budget(alone.model, (fsdp_strategy)strategy, fsdp_size(all.ctx), FSDP_ADAMW, &asked));
        assert_int_equal(FSDP_OK, fsdp_model_budget(all.model, (fsdp_strategy)strategy, 0, FSDP_ADAMW, &real));
        assert_memory_equal(&asked, &real, sizeof asked);
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_budget(alone.model, FSDP_FULL_SHARD, -1, FSDP_ADAMW, &asked));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_budget(alone.model, (fsdp_strategy)9, 1, FSDP_ADAMW, &asked));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_budget(NULL, FSDP_FULL_SHARD, 1, FSDP_ADAMW, &asked));
    small_model_close(&alone);
    small_model_close(&all);
}

/* Beside its context, which has its own test in tests/scale. */
static size_t model_bookkeeping(const small_model *m, int size)
{
    fsdp_budget budget;

    assert_int_equal(FSDP_OK, fsdp_model_budget(m->model, FSDP_FULL_SHARD, size, FSDP_ADAMW, &budget));
    return budget.bytes[FSDP_MEMORY_BOOKKEEPING] - fsdpi_context_bookkeeping(size, 1024);
}

static void the_bookkeeping_of_a_model_does_not_grow_with_the_ranks(void **state)
{
    const fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model              m;

    (void)state;
    small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
    for (int size = 10; size <= 1000000; size *= 10) {
        assert_int_equal(model_bookkeeping(&m, 1), model_bookkeeping(&m, size));
    }
    small_model_close(&m);
}

static void a_budget_above_the_limit_is_refused_with_both_numbers(void **state)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    small_model        m;
    fsdp_budget        budget;
    char               words[64];

    (void)state;
    options.memory_limit = 1000;
    small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_FULL_SHARD, 0, FSDP_ADAMW, &budget));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_commit(m.model));
    (void)snprintf(words, sizeof words, "needs %zu bytes per rank, and the limit is 1000", budget.total);
    assert_non_null(strstr(fsdp_last_error(m.ctx), words));
    small_model_close(&m);
}

/* BYTES of this process that are in memory, by the system's own count. */
static size_t resident_bytes(void)
{
    FILE         *file = fopen("/proc/self/statm", "re");
    unsigned long all, resident;

    assert_non_null(file);
    assert_int_equal(2, fscanf(file, "%lu %lu", &all, &resident));
    (void)fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* An independent count: what a rank alone has in memory more than before it opened a model and used all of it. */
static void the_system_counts_the_same_within_three_percent(void **state)
{
    fsdp_tensor tensor = {.name = "large", .n_dims = 1, .shape = {3000017}, .dtype = FSDP_F32};
    small_model m;
    fsdp_budget budget;

    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* the sanitizers have memory of their own for each byte */
#endif
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20); /* what is freed goes back to the system */
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        fsdp_model_options     options = FSDP_MODEL_OPTIONS_DEFAULT;
        fsdp_optimizer_options o;
        fsdp_optimizer        *optimizer;

        options.strategy = (fsdp_strategy)strategy;
        assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &m.ctx)); /* warms MPI up */
        assert_int_equal(FSDP_OK, fsdp_finalize(m.ctx));
        (void)malloc_trim(0); /* what is free, and still in memory, would be used again */
        const size_t before = resident_bytes();
        assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &m.ctx));
        assert_int_equal(FSDP_OK, fsdp_model_create(m.ctx, &options, &m.model));
        assert_int_equal(FSDP_OK, fsdp_unit_add(m.model, "u", &tensor, 1, &m.units[0]));
        assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
        assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[0]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[0]));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
        const size_t taken = resident_bytes() - before;
        assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, options.strategy, 0, FSDP_ADAMW, &budget));
        /* Staging memory, which a rank alone does not use, may or may not have been there before. */
        const double least = 0.97 * (double)(budget.total - budget.bytes[FSDP_MEMORY_STAGING]);
        if ((double)taken < least || (double)taken > 1.03 * (double)budget.total) {
            fail_msg("%s: %zu bytes in memory, and the budget is %zu", fsdp_strategy_name(options.strategy), taken,
                     budget.total);
        }
        small_model_close(&m);
    }
}

/* Each allocation of commit and of the optimizer fails in turn, on the last rank: the same error on all, nothing lost. */
static void every_allocation_may_fail(void **state)
{
    fsdpi_device device = failing_device();
    int          k      = 0;
    fsdp_status  status = FSDP_ERR_MEMORY;

    (void)state;
    for (; status != FSDP_OK; k++) {
        small_model            m;
        fsdp_memory            before, after;
        fsdp_optimizer_options o;
        fsdp_optimizer        *optimizer;

        small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
        assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &before));
        allocations_left = fsdp_test_rank() == fsdp_test_size() - 1 ? k : ENOUGH_ALLOCATIONS;
        m.ctx->device    = &device;
        status           = fsdp_model_commit(m.model);
        if (status != FSDP_OK) {
            assert_int_equal(FSDP_ERR_MEMORY, status);
            assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &after));
            assert_int_equal(before.current_total, after.current_total);
            allocations_left = ENOUGH_ALLOCATIONS;
            assert_int_equal(FSDP_OK, fsdp_model_commit(m.model)); /* memory is there again */
        } else {
            status = fsdp_optimizer_create(m.model, &o, &optimizer);
        }
        run_pass(&m, 0);
        m.ctx->device = &fsdpi_device_host;
        small_model_close(&m);
    }
    assert_true(k > 10);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_budget_is_what_is_held_to_the_byte),
        cmocka_unit_test(a_loss_scaler_is_in_the_budget),
        cmocka_unit_test(a_hook_adds_to_the_budget_what_it_will_hold),
        cmocka_unit_test(the_budget_of_power_sgd_is_what_its_header_says),
        cmocka_unit_test(hybrid_strategies_have_a_budget_for_ranks_that_do_not_run),
        cmocka_unit_test(a_model_too_large_to_count_is_refused),
        cmocka_unit_test(a_hook_that_does_not_fit_has_no_budget),
        cmocka_unit_test(moments_take_what_their_type_and_number_say),
        cmocka_unit_test(adamw_takes_16_bytes_per_parameter_divided_by_the_ranks),
        cmocka_unit_test(a_budget_can_be_asked_for_ranks_that_do_not_run),
        cmocka_unit_test(the_bookkeeping_of_a_model_does_not_grow_with_the_ranks),
        cmocka_unit_test(a_budget_above_the_limit_is_refused_with_both_numbers),
        cmocka_unit_test(the_system_counts_the_same_within_three_percent),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
