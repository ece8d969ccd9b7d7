/*
 * fsdp_model_options.fixed_addresses: the same pointer in every pass under every strategy, what is seen there is bitwise what a
 * model without the option sees, nothing is seen between passes, and budgets hold. Whether memory can be read or written is asked
 * of the system, which answers EFAULT where the program would be stopped.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fsdp/optimizer.h"
#include "tests/shard/small_model.h"
#include "tests/shard/trace_file.h"

enum { STEPS = 4 };

typedef struct pair {
    small_model     fixed, plain;
    fsdp_optimizer *of_fixed, *of_plain;
    const void     *seen[N_TENSORS];
    size_t          moved; /* pointers of the plain model that were not those of the pass before */
    const void     *before[N_TENSORS];
} pair;

static fsdp_optimizer *make_optimizer(small_model *m)
{
    fsdp_optimizer_options options;
    fsdp_optimizer        *optimizer;

    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &options));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(m->model, &options, &optimizer));
    return optimizer;
}

static void open_fixed(small_model *m, fsdp_context *ctx, fsdp_strategy strategy, fsdp_dtype dtype, int fixed)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.strategy        = strategy;
    options.seed            = 1234;
    options.param_dtype     = dtype;
    options.fixed_addresses = fixed;
    small_model_create(m, ctx, &options);
    assert_int_equal(FSDP_OK, fsdp_model_commit(m->model));
}

/* Fewer slots than units, so that these move unless something holds them. */
static fsdp_context *open_context(int prefetch, fsdp_verify verify)
{
    fsdp_config   config;
    fsdp_context *ctx;

    fsdp_config_init(&config);
    config.prefetch        = prefetch;
    config.views_in_flight = 1;
    config.verify          = verify;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    return ctx;
}

static void open_pair(pair *p, fsdp_context *ctx, fsdp_strategy strategy, fsdp_dtype dtype)
{
    *p = (pair){0};
    open_fixed(&p->fixed, ctx, strategy, dtype, 1);
    open_fixed(&p->plain, ctx, strategy, dtype, 0);
    p->of_fixed = make_optimizer(&p->fixed);
    p->of_plain = make_optimizer(&p->plain);
}

static void close_pair(pair *p)
{
    fsdp_model_destroy(p->fixed.model);
    fsdp_model_destroy(p->plain.model);
}

/* Of unit u, while it is in a pass in both models. */
static void compare(pair *p, size_t u, fsdp_dtype dtype)
{
    for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
        const size_t i     = t - FIRST_TENSOR[u];
        const void  *fixed = fsdp_unit_param(p->fixed.units[u], i), *plain = fsdp_unit_param(p->plain.units[u], i);

        assert_non_null(fixed);
        assert_memory_equal(plain, fixed, tensor_elements(t) * fsdp_dtype_size(dtype));
        assert_true(p->seen[t] == NULL || p->seen[t] == fixed);
        p->moved += p->before[t] != NULL && p->before[t] != plain;
        p->seen[t]   = fixed;
        p->before[t] = plain;
    }
}

static void fill_gradients(small_model *m, size_t u, int pass)
{
    for (size_t t = FIRST_TENSOR[u]; t < FIRST_TENSOR[u + 1]; t++) {
        float *g = fsdp_unit_grad(m->units[u], t - FIRST_TENSOR[u]);

        for (size_t i = 0; i < tensor_elements(t); i++) {
            g[i] += gradient_element(fsdp_rank(m->ctx), pass, t, i, 0.5F);
        }
    }
}

static void train_both(pair *p, fsdp_dtype dtype)
{
    for (int step = 0; step < STEPS; step++) {
        for (size_t u = 0; u < N_UNITS; u++) {
            assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(p->fixed.units[u]));
            assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(p->plain.units[u]));
            compare(p, u, dtype);
            assert_int_equal(FSDP_OK, fsdp_unit_end_forward(p->fixed.units[u]));
            assert_int_equal(FSDP_OK, fsdp_unit_end_forward(p->plain.units[u]));
        }
        for (size_t u = N_UNITS; u-- > 0;) {
            assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(p->fixed.units[u]));
            assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(p->plain.units[u]));
            compare(p, u, dtype);
            fill_gradients(&p->fixed, u, step);
            fill_gradients(&p->plain, u, step);
            assert_int_equal(FSDP_OK, fsdp_unit_end_backward(p->fixed.units[u]));
            assert_int_equal(FSDP_OK, fsdp_unit_end_backward(p->plain.units[u]));
        }
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(p->of_fixed));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(p->of_plain));
    }
}

static void check_training(fsdp_context *ctx, fsdp_dtype dtype)
{
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        pair     p;
        uint64_t fixed, plain;

        open_pair(&p, ctx, (fsdp_strategy)strategy, dtype);
        train_both(&p, dtype);
        assert_int_equal(FSDP_OK, fsdp_model_hash(p.fixed.model, &fixed));
        assert_int_equal(FSDP_OK, fsdp_model_hash(p.plain.model, &plain));
        assert_true(fixed == plain);
        if (strategy == FSDP_FULL_SHARD && ctx != NULL) {
            assert_true(p.moved > 0); /* there is something to hold */
        }
        close_pair(&p);
    }
}

static void pointers_stay_and_contents_are_bitwise_the_same(void **state)
{
    (void)state;
    for (int prefetch = 0; prefetch < 3; prefetch++) {
        fsdp_context *ctx = open_context(prefetch, FSDP_VERIFY_ARGS);

        if (prefetch == 1) {
            check_training(ctx, FSDP_F32);
            check_training(ctx, FSDP_BF16);
        } else {
            pair p;
            open_pair(&p, ctx, FSDP_FULL_SHARD, FSDP_F32);
            train_both(&p, FSDP_F32);
            close_pair(&p);
        }
        assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    }
}

static void views_are_verified_as_ever(void **state)
{
    fsdp_context *ctx = open_context(1, FSDP_VERIFY_FULL);
    pair          p;

    (void)state;
    open_pair(&p, ctx, FSDP_FULL_SHARD, FSDP_F32);
    train_both(&p, FSDP_F32);
    close_pair(&p);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- what can be seen when --------------------------------------------------------------------------------------- */

static int can_read(const void *memory)
{
    int ends[2];

    assert_int_equal(0, pipe(ends));
    const ssize_t n = write(ends[1], memory, 1);
    assert_true(n == 1 || errno == EFAULT);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return n == 1;
}

/* Writes what is there already. */
static int can_write(void *memory)
{
    int ends[2];

    assert_int_equal(0, pipe(ends));
    assert_int_equal(1, write(ends[1], memory, 1));
    const ssize_t n = read(ends[0], memory, 1);
    assert_true(n == 1 || errno == EFAULT);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return n == 1;
}

static void *last_byte(const void *view, size_t tensor)
{
    union {
        const void *seen;
        char       *bytes;
    } both = {.seen = view};

    return both.bytes + tensor_elements(tensor) * sizeof(float) - 1;
}

static void check_what_is_seen(fsdp_context *ctx, fsdp_strategy strategy)
{
    small_model m;

    open_fixed(&m, ctx, strategy, FSDP_F32, 1);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t u = 0; u < N_UNITS; u++) {
            const size_t last = FIRST_TENSOR[u + 1] - 1;

            assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[u]));
            const char *first = fsdp_unit_param(m.units[u], 0);
            void       *end   = last_byte(fsdp_unit_param(m.units[u], last - FIRST_TENSOR[u]), last);
            assert_true(can_read(first) && can_read(end) && !can_write(end));
            assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[u]));
            assert_true(!can_read(first) && !can_read(end));
        }
    }
    fsdp_model_destroy(m.model);
}

static void nothing_is_seen_between_passes_nor_written_at_any_time(void **state)
{
    fsdp_context *ctx = open_context(1, FSDP_VERIFY_ARGS);

    (void)state;
    check_what_is_seen(ctx, FSDP_FULL_SHARD);
    check_what_is_seen(ctx, FSDP_HYBRID_SHARD);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* Also where the step fails: what was open is closed. */
static void a_failed_step_hides_its_views(void **state)
{
    fsdp_context *ctx = open_context(1, FSDP_VERIFY_ARGS);
    small_model   m;

    (void)state;
    open_fixed(&m, ctx, FSDP_FULL_SHARD, FSDP_F32, 1);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    const void *view = fsdp_unit_param(m.units[0], 0);
    assert_true(can_read(view));
    assert_int_equal(FSDP_ERR_STATE, fsdp_unit_begin_forward(m.units[1])); /* views_in_flight is 1 */
    (void)fsdp_model_zero_grad(m.model);
    assert_false(can_read(view));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_ptr_equal(view, fsdp_unit_param(m.units[0], 0));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* One unit inside another: both are seen, each at addresses of its own. */
static void nested_units_are_seen_together(void **state)
{
    fsdp_context *ctx;
    small_model   m;
    const char   *outer = NULL, *inner = NULL;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    open_fixed(&m, ctx, FSDP_FULL_SHARD, FSDP_F32, 1);
    for (int pass = 0; pass < 3; pass++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[2]));
        const float *a = fsdp_unit_param(m.units[2], 0);
        const float  x = a[1008];
        assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[pass % 2]));
        const float *b = fsdp_unit_param(m.units[pass % 2], 0);
        assert_true(a != b && a[1008] == x && (pass % 2 == 0 || b[1] == 2.0F));
        assert_true(outer == NULL || outer == (const char *)a);
        assert_true(pass < 2 || inner == (const char *)b);
        outer = (const char *)a;
        inner = pass == 0 ? (const char *)b : inner;
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[pass % 2]));
        assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[2]));
    }
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* What it costs is in the trace, at each end of each pass. */
static void a_trace_tells_what_it_costs(void **state)
{
    char          name[64], prefix[32];
    static traced t;
    fsdp_config   config;
    fsdp_context *ctx;
    small_model   m;

    (void)state;
    fsdp_config_init(&config);
    (void)snprintf(prefix, sizeof prefix, "fixed-addresses-%d", fsdp_test_size()); /* other tests run beside this one */
    config.trace = prefix;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    open_fixed(&m, ctx, FSDP_FULL_SHARD, FSDP_F32, 1);
    run_pass(&m, 0);
    run_pass(&m, 1);
    fsdp_model_destroy(m.model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    (void)snprintf(name, sizeof name, "%s.%d.json", prefix, fsdp_test_rank());
    read_trace(name, &t);
    assert_int_equal(0, unlink(name));
    assert_int_equal(4, count_of(&t, "map a"));
    assert_int_equal(4, count_of(&t, "unmap a"));
    assert_int_equal(4, count_of(&t, "map c"));
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t pages_of(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

/* A unit of 16 MiB each, of which a view or two is in memory at a time, has addresses for all. */
static fsdp_model *make_large(fsdp_context *ctx)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model        *model;
    fsdp_unit         *unit;

    options.fixed_addresses = 1;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, &options, &model));
    for (int i = 0; i < 8; i++) {
        char              name[16];
        const fsdp_tensor tensor = {.name = name, .n_dims = 1, .shape = {(size_t)1 << 22}, .dtype = FSDP_F32};

        (void)snprintf(name, sizeof name, "u%d", i);
        assert_int_equal(FSDP_OK, fsdp_unit_add(model, name, &tensor, 1, &unit));
    }
    return model;
}

static size_t addresses_in_use(void)
{
    unsigned long pages = 0;
    FILE         *file  = fopen("/proc/self/statm", "re");

    assert_non_null(file);
    assert_int_equal(1, fscanf(file, "%lu", &pages));
    (void)fclose(file);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void no_addresses_left_on_one_rank_is_an_error_on_all(void **state)
{
    fsdp_context *ctx   = open_context(1, FSDP_VERIFY_ARGS);
    fsdp_model   *model = make_large(ctx);
    struct rlimit was, low;

    (void)state;
    assert_int_equal(0, getrlimit(RLIMIT_AS, &was));
    low          = was;
    low.rlim_cur = addresses_in_use() + ((size_t)64 << 20); /* 128 MiB are wanted */
    if (fsdp_test_rank() == fsdp_test_size() - 1) {
        assert_int_equal(0, setrlimit(RLIMIT_AS, &low));
    }
    const fsdp_status status = fsdp_model_commit(model);
    assert_int_equal(0, setrlimit(RLIMIT_AS, &was));
    assert_int_equal(FSDP_ERR_MEMORY, status);
    assert_says(ctx, "bytes of addresses for fixed_addresses");
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void ranks_that_disagree_are_told(void **state)
{
    fsdp_context      *ctx     = open_context(1, FSDP_VERIFY_ARGS);
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model        *model;

    (void)state;
    options.fixed_addresses = fsdp_test_rank() == 0;
    assert_int_equal(fsdp_test_size() > 1 ? FSDP_ERR_MISMATCH : FSDP_OK, fsdp_model_create(ctx, &options, &model));
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* Only whole pages for slots are added, and what is held is the budget. */
static void the_budget_differs_by_whole_pages_alone(void **state)
{
    fsdp_context *ctx = open_context(1, FSDP_VERIFY_ARGS);

    (void)state;
    for (int strategy = 0; strategy < FSDP_N_STRATEGIES; strategy++) {
        pair        p;
        fsdp_budget fixed, plain;
        fsdp_memory without, with;

        p = (pair){0};
        assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &without));
        open_fixed(&p.fixed, ctx, (fsdp_strategy)strategy, FSDP_F32, 1);
        assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &with));
        open_fixed(&p.plain, ctx, (fsdp_strategy)strategy, FSDP_F32, 0);
        assert_int_equal(FSDP_OK, fsdp_model_budget(p.fixed.model, (fsdp_strategy)strategy, 0, FSDP_ADAMW, &fixed));
        assert_int_equal(FSDP_OK, fsdp_model_budget(p.plain.model, (fsdp_strategy)strategy, 0, FSDP_ADAMW, &plain));
        const size_t more = fixed.bytes[FSDP_MEMORY_GATHERED] - plain.bytes[FSDP_MEMORY_GATHERED];
        assert_int_equal(more, fixed.total - plain.total);
        if (strategy == FSDP_FULL_SHARD || strategy == FSDP_HYBRID_SHARD) { /* slots: of the largest unit, the next */
            assert_true(fixed.bytes[FSDP_MEMORY_GATHERED] == pages_of(fixed.bytes[FSDP_MEMORY_GATHERED]));
            assert_true(more < 2 * pages_of(1));
        } else {
            assert_int_equal(0, more);
        }
        assert_int_equal(fixed.bytes[FSDP_MEMORY_GATHERED],
                         with.current[FSDP_MEMORY_GATHERED] - without.current[FSDP_MEMORY_GATHERED]);
        close_pair(&p);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static const struct CMUnitTest fixed_addresses[] = {
    cmocka_unit_test(pointers_stay_and_contents_are_bitwise_the_same),
    cmocka_unit_test(views_are_verified_as_ever),
    cmocka_unit_test(nothing_is_seen_between_passes_nor_written_at_any_time),
    cmocka_unit_test(a_failed_step_hides_its_views),
    cmocka_unit_test(nested_units_are_seen_together),
    cmocka_unit_test(a_trace_tells_what_it_costs),
    cmocka_unit_test(no_addresses_left_on_one_rank_is_an_error_on_all),
    cmocka_unit_test(ranks_that_disagree_are_told),
    cmocka_unit_test(the_budget_differs_by_whole_pages_alone),
};

int main(int argc, char **argv)
{
    return fsdp_test_main(argc, argv, fixed_addresses, NULL, NULL);
}
