/*
 * What the system says is in memory, beside what a budget says: private pages summed over the ranks, pages of the library's
 * shared memory once. All ranks of a test are on one machine.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/hook.h"
#include "fsdp/loss_scaler.h"
#include "fsdp/optimizer.h"
#include "tests/support/mpi_test.h"

enum { LAYERS = 6, STEPS = 2, TENSORS_OF_LAYER = 2 };

/* BYTES, summed over the ranks. */
typedef struct resident {
    double anonymous; /* private pages that are no file's */
    double shared;    /* of the library's files in shared memory */
    double others;    /* of other files: MPI's shared memory, and programs */
} resident;

/* ---- what the system says ---------------------------------------------------------------------------------------- */

typedef enum mapping { ANONYMOUS, OF_THE_LIBRARY, OF_OTHERS } mapping;

/* Of a line "55d0...-55d1... rw-p 00000000 00:00 0    [heap]"; false for the lines below one. */
static bool begins_mapping(const char *line, mapping *kind)
{
    unsigned long begin, end;
    int           at = 0;

    if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &at) != 2) {
        return false;
    }
    const char *path = line + at;
    *kind            = strstr(path, "/fsdp-") != NULL ? OF_THE_LIBRARY : path[0] == '/' ? OF_OTHERS : ANONYMOUS;
    return true;
}

/* A page that n processes have mapped counts 1/n in each one's `Pss`, and so once in all. */
static void add_line(const char *line, mapping kind, resident *sum)
{
    double kibibytes;

    if (kind != ANONYMOUS && sscanf(line, "Pss: %lf", &kibibytes) == 1) {
        *(kind == OF_THE_LIBRARY ? &sum->shared : &sum->others) += 1024 * kibibytes;
    }
    if (kind == ANONYMOUS &&
        (sscanf(line, "Private_Clean: %lf", &kibibytes) == 1 || sscanf(line, "Private_Dirty: %lf", &kibibytes) == 1)) {
        sum->anonymous += 1024 * kibibytes;
    }
}

/* Collective: nothing is mapped or touched between the ranks' looks. */
static resident look(void)
{
    resident sum  = {0};
    mapping  kind = ANONYMOUS;
    char     line[1024];

    (void)malloc_trim(0); /* what is free, and still in memory, would be used again */
    (void)MPI_Barrier(MPI_COMM_WORLD);
    FILE *file = fopen("/proc/self/smaps", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (!begins_mapping(line, &kind)) {
            add_line(line, kind, &sum);
        }
    }
    (void)fclose(file);
    (void)MPI_Allreduce(MPI_IN_PLACE, &sum, sizeof sum / sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void keep_most(resident *most, resident now)
{
    *most = now.anonymous + now.shared > most->anonymous + most->shared ? now : *most;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* One way to train. */
typedef struct training {
    const char        *name;
    fsdp_model_options options;
    int                node_size;
    fsdp_hook *(*hook)(fsdp_context *ctx);
    bool scaled;
} training;

static training plain(fsdp_strategy strategy)
{
    const fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    training                 t       = {.name = fsdp_strategy_name(strategy), .options = options};

    t.options.strategy = strategy;
    return t;
}

typedef struct trainer {
    fsdp_context     *ctx;
    fsdp_model       *model;
    fsdp_unit        *units[LAYERS];
    fsdp_hook        *hook;
    fsdp_optimizer   *optimizer;
    fsdp_loss_scaler *scaler;
    fsdp_budget       budget;
} trainer;

static void add_layers(trainer *t, size_t width)
{
    for (size_t u = 0; u < LAYERS; u++) {
        char              unit[16], weight[16], bias[16];
        const fsdp_tensor tensors[TENSORS_OF_LAYER] = {
            {.name = weight, .n_dims = 2, .shape = {width, 2 * width + 1}, .dtype = FSDP_F32, .b = 1},
            {.name = bias, .n_dims = 1, .shape = {width}, .dtype = FSDP_F32}};

        (void)snprintf(unit, sizeof unit, "h.%zu", u);
        (void)snprintf(weight, sizeof weight, "h.%zu.weight", u);
        (void)snprintf(bias, sizeof bias, "h.%zu.bias", u);
        assert_int_equal(FSDP_OK, fsdp_unit_add(t->model, unit, tensors, TENSORS_OF_LAYER, &t->units[u]));
    }
}

static void open_trainer(trainer *t, const training *how, size_t width)
{
    fsdp_config config;

    *t = (trainer){0};
    fsdp_config_init(&config);
    config.node_size    = how->node_size;
    config.bucket_bytes = (int64_t)4 << 20;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &t->ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(t->ctx, &how->options, &t->model));
    add_layers(t, width);
    assert_int_equal(FSDP_OK, fsdp_model_budget(t->model, how->options.strategy, 0, FSDP_ADAMW, &t->budget));
    if (how->hook != NULL) {
        t->hook = how->hook(t->ctx);
    }
}

static void commit_trainer(trainer *t, const training *how)
{
    fsdp_optimizer_options o;

    assert_int_equal(FSDP_OK, fsdp_model_commit(t->model));
    if (t->hook != NULL) {
        assert_int_equal(FSDP_OK, fsdp_hook_budget(t->hook, t->model, &t->budget));
        assert_int_equal(FSDP_OK, fsdp_model_set_hook(t->model, t->hook));
    }
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    o.beta2        = 0.99;
    o.moment_dtype = how->options.moment_dtype;
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(t->model, &o, &t->optimizer));
    if (how->scaled) {
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(t->model, NULL, &t->scaler));
    }
}

static void close_trainer(trainer *t)
{
    fsdp_model_destroy(t->model);
    fsdp_hook_destroy(t->hook);
    assert_int_equal(FSDP_OK, fsdp_finalize(t->ctx));
}

static void run_backward(trainer *t, const training *how, resident *most)
{
    for (size_t u = LAYERS; u-- > 0;) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(t->units[u]));
        for (size_t i = 0; i < TENSORS_OF_LAYER; i++) {
            unsigned char *first = fsdp_unit_grad(t->units[u], i);

            memset(first, 0, fsdp_dtype_size(how->options.reduce_dtype)); /* the view is zero; writable it must be */
        }
        if (u == LAYERS / 2) {
            keep_most(most, look());
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(t->units[u]));
    }
}

static void run_step(trainer *t, const training *how, resident *most)
{
    for (size_t pass = 0; pass <= (size_t)how->options.local_gradients; pass++) {
        if (how->options.local_gradients) {
            assert_int_equal(FSDP_OK, fsdp_model_set_sync(t->model, pass > 0));
        }
        for (size_t u = 0; u < LAYERS; u++) {
            assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(t->units[u]));
            assert_int_equal(FSDP_OK, fsdp_unit_end_forward(t->units[u]));
        }
        run_backward(t, how, most);
    }
    if (t->scaler != NULL) {
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_unscale(t->scaler, NULL));
    }
    assert_int_equal(FSDP_OK, fsdp_clip_grad_norm(t->model, 1.0, NULL));
    assert_int_equal(FSDP_OK, t->scaler != NULL ? fsdp_loss_scaler_step(t->scaler, t->optimizer, NULL)
                                                : fsdp_optimizer_step(t->optimizer));
    keep_most(most, look());
}

/* ---- the comparison ---------------------------------------------------------------------------------------------- */

/* Every rank's own, and the views once for each group of ranks that have them in common. */
static double budget_of_all(const trainer *t, const training *how)
{
    const fsdp_strategy strategy = how->options.strategy;
    const bool          grouped  = strategy == FSDP_HYBRID_SHARD || strategy == FSDP_HYBRID_SHARD_ZERO2;
    const int           ranks    = fsdp_test_size();
    const int           sharers  = grouped ? how->options.group_size : how->node_size > 0 ? how->node_size : ranks;

    return (double)ranks * (double)(t->budget.total - t->budget.shared) +
           (double)ranks / sharers * (double)t->budget.shared;
}

/* MPI takes what it needs for a collective with the first one, and keeps it. */
static resident warm_up(const training *how)
{
    trainer  t;
    resident most = {0};

    open_trainer(&t, how, 16);
    commit_trainer(&t, how);
    run_step(&t, how, &most);
    close_trainer(&t);
    return look();
}

static double in_memory(const resident *r)
{
    return r->anonymous + r->shared;
}

static void report(const training *how, double budget, const resident *cold, const resident *warm, const resident *most)
{
    const double taken = in_memory(most) - in_memory(warm);

    printf(
        "%-26s budget %8.3f MB, in memory %8.3f MB (%+.2f%%): %.3f private, %.3f shared; MPI: %+.3f before, %+.3f in "
        "files meanwhile\n",
        how->name, 1e-6 * budget, 1e-6 * taken, 100 * (taken / budget - 1), 1e-6 * (most->anonymous - warm->anonymous),
        1e-6 * (most->shared - warm->shared), 1e-6 * (in_memory(warm) + warm->others - in_memory(cold) - cold->others),
        1e-6 * (most->others - warm->others));
}

static void check(const training *how)
{
    const resident cold = look(), warm = warm_up(how);
    resident       most = warm;
    trainer        t;

    open_trainer(&t, how, 500);
    commit_trainer(&t, how);
    for (int step = 0; step < STEPS; step++) {
        run_step(&t, how, &most);
    }
    const double taken = in_memory(&most) - in_memory(&warm), budget = budget_of_all(&t, how);
    const double allowed = 0.03 * budget > 4 << 20 ? 0.03 * budget : 4 << 20;
    if (fsdp_test_rank() == 0) {
        report(how, budget, &cold, &warm, &most);
    }
    if (taken < budget - allowed || taken > budget + allowed) {
        fail_msg("%s on %d ranks: %.0f bytes in memory, and the budget is %.0f", how->name, fsdp_test_size(), taken,
                 budget);
    }
    close_trainer(&t);
}

static void skip_under_sanitizers(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* they have memory of their own for each byte */
#endif
}

static void every_strategy_takes_its_budget(void **state)
{
    (void)state;
    skip_under_sanitizers();
    for (int strategy = 0; strategy < FSDP_HYBRID_SHARD; strategy++) {
        const training how = plain((fsdp_strategy)strategy);

        check(&how);
    }
}

static void groups_take_their_budget(void **state)
{
    const int size = fsdp_test_size(), half = size > 1 ? size / 2 : 1;

    (void)state;
    skip_under_sanitizers();
    for (int strategy = FSDP_HYBRID_SHARD; strategy <= FSDP_HYBRID_SHARD_ZERO2; strategy++) {
        training how = plain((fsdp_strategy)strategy);

        how.options.group_size = half;
        check(&how);
    }
    training how           = plain(FSDP_HYBRID_SHARD);
    how.name               = "HYBRID_SHARD in one group";
    how.options.group_size = size;
    check(&how);
}

static void pretended_nodes_take_their_budget(void **state)
{
    training how = plain(FSDP_FULL_SHARD);

    (void)state;
    skip_under_sanitizers();
    how.name      = "FULL_SHARD, nodes of 1";
    how.node_size = 1;
    check(&how);
    how           = plain(FSDP_NO_SHARD);
    how.name      = "NO_SHARD, nodes of 1";
    how.node_size = 1;
    check(&how);
}

static void low_precision_and_accumulation_take_their_budget(void **state)
{
    training how = plain(FSDP_FULL_SHARD);

    (void)state;
    skip_under_sanitizers();
    how.name                    = "FULL_SHARD in bf16 and f16";
    how.options.param_dtype     = FSDP_BF16;
    how.options.reduce_dtype    = FSDP_F16;
    how.options.moment_dtype    = FSDP_BF16;
    how.options.local_gradients = 1;
    how.scaled                  = true;
    check(&how);
}

static fsdp_hook *power_sgd(fsdp_context *ctx)
{
    fsdp_hook *hook = NULL;

    assert_int_equal(FSDP_OK, fsdp_hook_power_sgd(ctx, NULL, &hook));
    return hook;
}

static fsdp_hook *int8(fsdp_context *ctx)
{
    fsdp_hook *hook = NULL;

    assert_int_equal(FSDP_OK, fsdp_hook_int8(ctx, NULL, &hook));
    return hook;
}

static void hooks_take_their_budget(void **state)
{
    training how = plain(FSDP_NO_SHARD);

    (void)state;
    skip_under_sanitizers();
    how.name = "NO_SHARD with PowerSGD";
    how.hook = power_sgd;
    check(&how);
    how.name = "NO_SHARD with int8";
    how.hook = int8;
    check(&how);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_takes_its_budget),
        cmocka_unit_test(groups_take_their_budget),
        cmocka_unit_test(pretended_nodes_take_their_budget),
        cmocka_unit_test(low_precision_and_accumulation_take_their_budget),
        cmocka_unit_test(hooks_take_their_budget),
    };

    (void)mallopt(M_MMAP_THRESHOLD, 1 << 18); /* what is freed goes back to the system */
    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
