#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/context/context.h"
#include "tests/shard/small_model.h"

static void build(small_model *m, fsdp_strategy strategy, int node_size, int group_size)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_config        config;

    fsdp_config_init(&config);
    config.log_level        = FSDP_LOG_OFF;
    config.node_size        = node_size;
    options.strategy        = strategy;
    options.group_size      = group_size;
    options.local_gradients = 1;
    small_model_build(m, MPI_COMM_WORLD, &config, &options);
}

/* From the printed lines: what each rank has for itself, and the views once for as many ranks as have them in common, in
 * equal parts. What context and staging hold is there before commit. All ranks of a test are on one machine. */
static size_t need_of_machine(const small_model *m, fsdp_strategy strategy, size_t sharers)
{
    const size_t ranks = (size_t)fsdp_test_size();
    fsdp_budget  budget;

    assert_int_equal(FSDP_OK, fsdp_model_budget(m->model, strategy, 0, FSDP_ADAMW, &budget));
    const size_t own = budget.total - budget.shared - budget.bytes[FSDP_MEMORY_STAGING];
    return ranks * (own + (budget.shared + sharers - 1) / sharers);
}

static void expect_words(const small_model *m, const char *format, size_t a, size_t b)
{
    char words[128];

    (void)snprintf(words, sizeof words, format, a, b);
    if (strstr(fsdp_last_error(m->ctx), words) == NULL) {
        fail_msg("'%s' does not say '%s'", fsdp_last_error(m->ctx), words);
    }
}

/* One byte too little is refused, on all ranks, with nothing taken; and the same model goes on when there is enough. */
static void check_boundary(fsdp_strategy strategy, int node_size, int group_size, size_t sharers)
{
    small_model m;
    fsdp_memory before, after;

    build(&m, strategy, node_size, group_size);
    const size_t need = need_of_machine(&m, strategy, sharers);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &before));
    m.ctx->config.node_memory = (int64_t)need - 1;
    assert_int_equal(FSDP_ERR_MEMORY, fsdp_model_commit(m.model));
    expect_words(&m, "the %zu ranks of this node need %zu bytes", (size_t)fsdp_test_size(), need);
    expect_words(&m, "and %zu (%zu.0 GB) are available", need - 1, 0);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &after));
    assert_memory_equal(before.current, after.current, sizeof before.current);
    m.ctx->config.node_memory = (int64_t)need;
    assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
    run_pass(&m, 0);
    small_model_close(&m);
}

static void a_byte_too_little_is_refused_under_every_strategy(void **state)
{
    const int size = fsdp_test_size();

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        const int group_size = strategy == FSDP_HYBRID_SHARD || strategy == FSDP_HYBRID_SHARD_ZERO2 ? size : 0;

        check_boundary((fsdp_strategy)strategy, 0, group_size, (size_t)size);
    }
}

/* Groups of one rank, and nodes that are pretended: each has views of its own, and all of them are in one machine. */
static void views_count_once_per_group_and_per_pretended_node(void **state)
{
    (void)state;
    check_boundary(FSDP_HYBRID_SHARD, 0, 1, 1);
    check_boundary(FSDP_FULL_SHARD, 1, 0, 1);
    if (fsdp_test_size() % 2 == 0) {
        check_boundary(FSDP_FULL_SHARD, 2, 0, 2);
        check_boundary(FSDP_HYBRID_SHARD_ZERO2, 0, 2, 2);
    }
}

static void a_refused_model_can_be_destroyed_at_once(void **state)
{
    small_model m;

    (void)state;
    build(&m, FSDP_FULL_SHARD, 0, 0);
    m.ctx->config.node_memory = 1;
    assert_int_equal(FSDP_ERR_MEMORY, fsdp_model_commit(m.model));
    small_model_close(&m);
}

/* The least that any rank finds is what its node has. */
static void a_limit_of_one_rank_is_that_of_all(void **state)
{
    small_model m;

    (void)state;
    build(&m, FSDP_NO_SHARD, 0, 0);
    if (fsdp_test_rank() == fsdp_test_size() - 1) {
        m.ctx->config.node_memory = 12345;
    }
    assert_int_equal(FSDP_ERR_MEMORY, fsdp_model_commit(m.model));
    expect_words(&m, "and %zu (%zu.0 GB) are available", 12345, 0);
    assert_non_null(strstr(fsdp_last_error(m.ctx), "use more nodes, FULL_SHARD or a higher FSDP_NODE_MEMORY"));
    small_model_close(&m);
}

/* 16 TB; refused before any of it is touched, by what the machine says of itself. */
static fsdp_status commit_huge(small_model *m, int64_t node_memory)
{
    const fsdp_tensor huge = {.name = "huge", .n_dims = 2, .shape = {1 << 20, 1 << 20}, .dtype = FSDP_F32};
    fsdp_unit        *unit;

    build(m, FSDP_FULL_SHARD, 0, 0);
    m->ctx->config.node_memory = node_memory;
    assert_int_equal(FSDP_OK, fsdp_unit_add(m->model, "huge", &huge, 1, &unit));
    return fsdp_model_commit(m->model);
}

static void more_than_the_machine_has_is_refused(void **state)
{
    small_model m;

    (void)state;
    assert_int_equal(FSDP_ERR_MEMORY, commit_huge(&m, 0));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "GB) are available"));
    small_model_close(&m);
}

static void more_than_the_shared_memory_has_is_refused(void **state)
{
    small_model m;

    (void)state;
    if (fsdp_test_size() == 1) {
        skip(); /* alone on its node a rank has no shared memory */
    }
    assert_int_equal(FSDP_ERR_MEMORY, commit_huge(&m, INT64_MAX));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "of shared memory, and "));
    assert_non_null(strstr(fsdp_last_error(m.ctx), "are free in /dev/shm; enlarge it, or set FSDP_SHM_DIR"));
    small_model_close(&m);
}

static void the_setting_reaches_the_check(void **state)
{
    fsdp_config config;
    small_model m;

    (void)state;
    fsdp_config_init(&config);
    config.log_level   = FSDP_LOG_OFF;
    config.node_memory = 777;
    small_model_build(&m, MPI_COMM_WORLD, &config, NULL);
    assert_int_equal(FSDP_ERR_MEMORY, fsdp_model_commit(m.model));
    expect_words(&m, "and %zu (%zu.0 GB) are available", 777, 0);
    small_model_close(&m);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_too_little_is_refused_under_every_strategy),
        cmocka_unit_test(views_count_once_per_group_and_per_pretended_node),
        cmocka_unit_test(a_refused_model_can_be_destroyed_at_once),
        cmocka_unit_test(a_limit_of_one_rank_is_that_of_all),
        cmocka_unit_test(more_than_the_machine_has_is_refused),
        cmocka_unit_test(more_than_the_shared_memory_has_is_refused),
        cmocka_unit_test(the_setting_reaches_the_check),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
