#include <malloc.h>
#include <math.h>
#include <string.h>

#include "fsdp/optimizer.h"
#include "lib/context.h"
#include "tests/shard/small_model.h"

static void train_a_step(small_model *m, fsdp_optimizer_kind kind)
{
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &o, &optimizer));
    run_pass(m, 0);
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(m->model, 1.0, NULL));
    assert_int_equal(FSDP_OK, fsdp_optimizer_step(optimizer));
}

/* What the library counts, line by line; nothing more is ever taken, also not for a moment. */
static void the_budget_is_what_is_held_to_the_byte(void **state)
{
    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        for (int kind = FSDP_SGD; kind <= FSDP_ADAMW; kind++) {
            small_model m;
            fsdp_budget budget;
            fsdp_memory memory;

            small_model_open(&m, NULL, (fsdp_strategy)strategy);
            train_a_step(&m, (fsdp_optimizer_kind)kind);
            assert_int_equal(
                FSDP_OK, fsdp_model_budget(m.model, (fsdp_strategy)strategy, 0, (fsdp_optimizer_kind)kind, &budget));
            assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &memory));
            for (int line = 0; line < FSDP_N_MEMORY_KINDS; line++) {
                assert_int_equal(budget.bytes[line], memory.current[line]);
            }
            assert_int_equal(budget.total, memory.current_total);
            assert_int_equal(budget.total, memory.peak_total);
            small_model_close(&m);
        }
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
    small_model_build(&alone, MPI_COMM_SELF, NULL, NULL); /* before commit */
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        assert_int_equal(
            FSDP_OK, fsdp_model_budget(alone.model, (fsdp_strategy)strategy, fsdp_size(all.ctx), FSDP_ADAMW, &asked));
        assert_int_equal(FSDP_OK, fsdp_model_budget(all.model, (fsdp_strategy)strategy, 0, FSDP_ADAMW, &real));
        assert_memory_equal(&asked, &real, sizeof asked);
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_budget(alone.model, FSDP_FULL_SHARD, -1, FSDP_ADAMW, &asked));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_budget(alone.model, (fsdp_strategy)5, 1, FSDP_ADAMW, &asked));
    assert_int_equal(FSDP_ERR_ARG, fsdp_model_budget(NULL, FSDP_FULL_SHARD, 1, FSDP_ADAMW, &asked));
    small_model_close(&alone);
    small_model_close(&all);
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

/* Bytes that the process has from malloc(), by the C library's own count. */
static size_t allocated_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* An independent count: on one rank MPI moves nothing, so that what malloc() hands out in between is the library's. */
static void the_c_library_counts_the_same_within_one_percent(void **state)
{
    fsdp_tensor tensor = {.name = "large", .n_dims = 1, .shape = {1000003}, .dtype = FSDP_F32};
    small_model m;
    fsdp_budget budget;

    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* the sanitizers bring an allocator that does not count this way */
#endif
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &m.ctx)); /* warms MPI up */
    assert_int_equal(FSDP_OK, fsdp_finalize(m.ctx));

    const size_t before = allocated_bytes();
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, NULL, &m.ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(m.ctx, NULL, &m.model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(m.model, "u", &tensor, 1, &m.units[0]));
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    fsdp_optimizer_options o;
    fsdp_optimizer        *optimizer;
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m.model, &o, &optimizer));
    const size_t taken = allocated_bytes() - before;
    assert_int_equal(FSDP_OK, fsdp_model_budget(m.model, FSDP_FULL_SHARD, 0, FSDP_ADAMW, &budget));
    assert_true(fabs((double)taken - (double)budget.total) <= 0.01 * (double)budget.total);
    small_model_close(&m);
}

static int allocations_left;

static void *failing_alloc(size_t bytes)
{
    return allocations_left-- > 0 ? fsdpi_device_host.alloc(bytes) : NULL;
}

/* Each allocation of commit and of the optimizer fails in turn, on the last rank: the same error on all, nothing lost. */
static void every_allocation_may_fail(void **state)
{
    fsdpi_device device = fsdpi_device_host;
    int          k      = 0;
    fsdp_status  status = FSDP_ERR_MEMORY;

    (void)state;
    for (device.alloc = failing_alloc; status != FSDP_OK; k++) {
        small_model            m;
        fsdp_memory            before, after;
        fsdp_optimizer_options o;
        fsdp_optimizer        *optimizer;

        small_model_build(&m, MPI_COMM_WORLD, NULL, NULL);
        assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
        assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &before));
        allocations_left = fsdp_test_rank() == fsdp_test_size() - 1 ? k : 1000000;
        m.ctx->device    = &device;
        status           = fsdp_model_commit(m.model);
        if (status != FSDP_OK) {
            assert_int_equal(FSDP_ERR_MEMORY, status);
            assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &after));
            assert_int_equal(before.current_total, after.current_total);
            allocations_left = 1000000;
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
        cmocka_unit_test(adamw_takes_16_bytes_per_parameter_divided_by_the_ranks),
        cmocka_unit_test(a_budget_can_be_asked_for_ranks_that_do_not_run),
        cmocka_unit_test(a_budget_above_the_limit_is_refused_with_both_numbers),
        cmocka_unit_test(the_c_library_counts_the_same_within_one_percent),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
