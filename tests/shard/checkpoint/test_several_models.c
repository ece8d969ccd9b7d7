/*
 * Several models in one checkpoint: each comes back with its optimizer, whatever ranks and strategies saved and load it, and one
 * is loaded by its name. A checkpoint of one model is what it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shard/checkpoint/model_team.h"

enum { MOST_BYTES = 1 << 18 };

static const int sizes[] = {1, 2, 3, 5, 8};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

/* ---- round trips ------------------------------------------------------------------------------------------------------ */

static size_t read_file(const char *folder, const char *file, unsigned char *bytes)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s/step-%09d/%s", saved_folder, folder, TEAM_STEP, file);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fail_msg("%s is not there", path);
    }
    const size_t n = fread(bytes, 1, MOST_BYTES, f);
    (void)fclose(f);
    return n;
}

static void assert_same_file(const char *a, const char *b, const char *file)
{
    static unsigned char x[MOST_BYTES], y[MOST_BYTES];
    const size_t         n = read_file(a, file, x);

    assert_true(n > 1000 && n < MOST_BYTES);
    assert_int_equal(n, read_file(b, file, y));
    assert_memory_equal(x, y, n);
}

/* As one rank writes them under other strategies. */
static void assert_same_files(const char *a, const char *b, size_t n, int first_is_unnamed)
{
    char file[128];

    for (size_t i = 0; i < n && fsdp_test_rank() == 0; i++) {
        const char *name = i == 0 && first_is_unnamed ? "" : TEAM[i].name;
        const char *dot  = name[0] != '\0' ? "." : "";

        (void)snprintf(file, sizeof file, "%s%smodel.safetensors", name, dot);
        assert_same_file(a, b, file);
        (void)snprintf(file, sizeof file, "%s%soptimizer.safetensors", name, dot);
        assert_same_file(a, b, file);
    }
}

/* With an array of the program between the models: ranks' chunks of all kinds come together. */
static void save_on(int size, const char *folder, size_t n, int first_is_unnamed, int asynchronous, int turn)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    const size_t            shape   = 3 * (size_t)size;
    const fsdp_box          box     = {.offset = {3 * (size_t)fsdp_test_rank()}, .extent = {3}};
    int32_t                 cells[3];
    team                    t;

    if (!team_open(&t, size, n, turn)) {
        return;
    }
    options.asynchronous = asynchronous;
    team_open_folder(&t, folder, first_is_unnamed, &options);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(t.checkpoint, "cells", FSDP_I32, 1, &shape, &box, cells));
    assert_int_equal(FSDP_OK, team_save(&t, 1)); /* before the others are there */
    team_add_all(&t);
    team_train(&t);
    for (int i = 0; i < 3; i++) {
        cells[i] = 3 * t.rank + i;
    }
    if (asynchronous) {
        assert_int_equal(FSDP_OK,
                         fsdp_checkpoint_save_async(t.checkpoint, &(fsdp_checkpoint_state){.step = TEAM_STEP}));
        team_train_further(&t, 1); /* a copy has been taken */
        memset(cells, 0, sizeof cells);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_wait(t.checkpoint));
    } else {
        assert_int_equal(FSDP_OK, team_save(&t, TEAM_STEP));
    }
    team_close(&t);
}

static void restore_on(int size, int from, const char *folder, size_t n, int first_is_unnamed, int turn)
{
    const size_t          shape = 3 * (size_t)from, all = shape;
    int32_t               cells[3 * 8];
    fsdp_checkpoint_state state;
    team                  t;

    if (!team_open(&t, size, n, turn)) {
        return;
    }
    team_train(&t);
    team_train_further(&t, 2);
    team_open_folder(&t, "other", first_is_unnamed, NULL);
    team_add_all(&t);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(t.checkpoint, "cells", FSDP_I32, 1, &shape, NULL, cells));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path(folder), NULL, &state));
    assert_true(state.step == TEAM_STEP && state.ranks == (uint64_t)from);
    for (size_t i = 0; i < all; i++) {
        assert_int_equal(i, cells[i]);
    }
    team_expect_resumed(&t);
    team_close(&t);
}

static void models_of_any_ranks_come_back_on_any_others(void **state)
{
    char folder[64];

    (void)state;
    save_on(1, "reference", TEAM_MOST, 1, 0, 0);
    save_on(1, "named-reference", 2, 0, 0, 0);
    for (int trial = 0; trial < 2 * (int)N_SIZES; trial++) {
        const int    from = sizes[trial % (int)N_SIZES], to = sizes[(trial * 2 + trial / (int)N_SIZES) % (int)N_SIZES];
        const int    unnamed = trial % 2 == 0;
        const size_t n       = unnamed ? TEAM_MOST : 2;

        if (from > fsdp_test_size() || to > fsdp_test_size()) {
            continue;
        }
        (void)snprintf(folder, sizeof folder, "trip-%d", trial);
        save_on(from, folder, n, unnamed, trial % 3 == 1, trial);
        MPI_Barrier(MPI_COMM_WORLD);
        assert_same_files(unnamed ? "reference" : "named-reference", folder, n, unnamed);
        restore_on(to, from, folder, n, unnamed, trial + 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Parts of a model's files are numbered as those of the one without a name. */
static void large_files_are_divided(void **state)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    team                    t;

    (void)state;
    options.file_bytes = 5000;
    options.dtype      = FSDP_BF16;
    team_save_once(&t, "parts", 2, &options);
    assert_int_equal(0, access(team_path("parts/step-000000006/critic.model-00001-of-00002.safetensors"), F_OK));
    assert_int_equal(0, access(team_path("parts/step-000000006/critic.model.safetensors.index.json"), F_OK));
    assert_int_equal(0, access(team_path("parts/step-000000006/critic.optimizer.safetensors.index.json"), F_OK));
    assert_int_equal(0, access(team_path("parts/step-000000006/model.safetensors.index.json"), F_OK));
    team_train_further(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("parts"), NULL, NULL));
    team_expect_resumed(&t);
    team_close(&t);
}

/* Masters in f64 beside others in f32, each as it is. */
static void each_model_has_its_own_precision(void **state)
{
    const fsdp_tensor       w       = {.name = "w", .n_dims = 1, .shape = {100}, .fill = FSDP_FILL_NORMAL, .b = 1.0};
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_model_options      f64     = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_model             *model, *again;
    fsdp_unit              *unit;
    uint64_t                a, b;
    team                    t;

    (void)state;
    options.dtype   = FSDP_F64;
    f64.param_dtype = f64.reduce_dtype = f64.moment_dtype = FSDP_F64;
    assert_true(team_open(&t, fsdp_test_size(), 1, 0));
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, &f64, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &w, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    f64.seed += 5;
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, &f64, &again));
    assert_int_equal(FSDP_OK, fsdp_unit_add(again, "u", &w, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(again));
    team_open_folder(&t, "precision", 0, &options);
    team_add_all(&t);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_model(t.checkpoint, "double", model, NULL));
    team_train(&t);
    assert_int_equal(FSDP_OK, team_save(&t, TEAM_STEP));
    assert_int_equal(FSDP_OK, fsdp_model_hash(model, &a));
    assert_int_equal(FSDP_OK, fsdp_model_hash(again, &b));
    assert_true(a != b);
    fsdp_checkpoint_load_options named = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    named.model                        = "double";
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(again, NULL, team_path("precision"), &named, NULL));
    assert_int_equal(FSDP_OK, fsdp_model_hash(again, &b));
    assert_true(a == b);
    team_train_further(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("precision"), NULL, NULL));
    team_expect_resumed(&t);
    fsdp_model_destroy(again);
    fsdp_model_destroy(model);
    team_close(&t);
}

static void each_model_has_its_own_loss_scaler(void **state)
{
    const fsdp_loss_scaler_state saved = {.scale = 512.0, .clean_steps = 4, .skipped_steps = 2}, other = {.scale = 8.0};
    fsdp_loss_scaler_options     any = FSDP_LOSS_SCALER_OPTIONS_DEFAULT;
    fsdp_loss_scaler_state       found;
    fsdp_loss_scaler            *scalers[2];
    team                         t;

    (void)state;
    any.allow_any_dtype = 1;
    assert_true(team_open(&t, fsdp_test_size(), 2, 0));
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(t.members[i].model, &any, &scalers[i]));
    }
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scalers[0], &other));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scalers[1], &saved));
    team_open_folder(&t, "scalers", 1, NULL);
    team_add_all(&t);
    team_train(&t);
    assert_int_equal(FSDP_OK, team_save(&t, TEAM_STEP));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scalers[0], &saved));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scalers[1], &other));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("scalers"), NULL, NULL));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_get_state(scalers[0], &found));
    assert_true(found.scale == other.scale && found.clean_steps == 0);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_get_state(scalers[1], &found));
    assert_true(found.scale == saved.scale && found.clean_steps == 4 && found.skipped_steps == 2);
    for (size_t i = 0; i < 2; i++) {
        fsdp_loss_scaler_destroy(scalers[i]);
    }
    team_close(&t);
}

enum { ROWS = 6, COLUMNS = 4 };

/* Two tensors with an optimizer each, of which one is that of a group. */
typedef struct grouped {
    fsdp_model     *model;
    fsdp_unit      *unit;
    fsdp_optimizer *plain, *of_group;
} grouped;

static void make_grouped(fsdp_context *ctx, fsdp_optimizer_kind kind, grouped *g)
{
    const fsdp_tensor      tensors[] = {{.name = "w.weight", .n_dims = 2, .shape = {ROWS, COLUMNS}, .dtype = FSDP_F32},
                                        {.name = "w.bias", .n_dims = 1, .shape = {COLUMNS}, .dtype = FSDP_F32}};
    fsdp_model_group       group     = FSDP_MODEL_GROUP_DEFAULT;
    fsdp_optimizer_options o;

    group.optimizer = kind;
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &g->model));
    assert_int_equal(FSDP_OK, fsdp_model_add_group(g->model, "*.weight", &group));
    assert_int_equal(FSDP_OK, fsdp_unit_add(g->model, "w", tensors, 2, &g->unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(g->model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(g->model, &o, &g->plain));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(kind, &o));
    o.group = "*.weight";
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(g->model, &o, &g->of_group));
}

static uint64_t step_grouped(const grouped *g, int steps)
{
    uint64_t hash;

    for (int s = 0; s < steps; s++) {
        assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(g->unit));
        for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) {
            ((float *)fsdp_unit_grad(g->unit, 0))[i] += (float)i / 16.0F;
            ((float *)fsdp_unit_grad(g->unit, 1))[i % COLUMNS] += 1.0F;
        }
        assert_int_equal(FSDP_OK, fsdp_unit_end_backward(g->unit));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(g->plain));
        assert_int_equal(FSDP_OK, fsdp_optimizer_step(g->of_group));
    }
    assert_int_equal(FSDP_OK, fsdp_model_hash(g->model, &hash));
    return hash;
}

static void each_model_has_its_own_groups(void **state)
{
    grouped one, other;
    team    t;

    (void)state;
    assert_true(team_open(&t, fsdp_test_size(), 0, 0));
    make_grouped(t.ctx, FSDP_LION, &one);
    make_grouped(t.ctx, FSDP_SGD_MOMENTUM, &other);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(one.model, one.plain, team_path("groups"), NULL, &t.checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_model(t.checkpoint, "other", other.model, other.of_group));
    (void)step_grouped(&one, 2);
    (void)step_grouped(&other, 3);
    assert_int_equal(FSDP_OK, team_save(&t, TEAM_STEP));
    const uint64_t one_next = step_grouped(&one, 1), other_next = step_grouped(&other, 1);
    (void)step_grouped(&one, 2);
    (void)step_grouped(&other, 2);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("groups"), NULL, NULL));
    assert_true(fsdp_optimizer_steps(one.of_group) == 2 && fsdp_optimizer_steps(other.of_group) == 3);
    assert_true(fsdp_optimizer_steps(one.plain) == 2 && fsdp_optimizer_steps(other.plain) == 3);
    assert_true(one_next == step_grouped(&one, 1) && other_next == step_grouped(&other, 1));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t.checkpoint));
    t.checkpoint = NULL;
    fsdp_model_destroy(other.model);
    fsdp_model_destroy(one.model);
    team_close(&t);
}

/* ---- one of them, by its name --------------------------------------------------------------------------------------- */

static void one_model_is_loaded_by_its_name(void **state)
{
    team t;

    (void)state;
    team_save_once(&t, "by-name", TEAM_MOST, NULL);
    team_train_further(&t, 1);
    assert_int_equal(FSDP_OK, team_load(&t, 1, "critic", 1, "by-name"));
    team_expect_saved(&t, 1);
    assert_true(team_next_hash[0] == team_hash(&t.members[0]) && team_next_hash[2] == team_hash(&t.members[2]));
    assert_int_equal(FSDP_OK, team_load(&t, 2, "critic", 0, "by-name")); /* its values in another model */
    assert_true(team_saved_hash[1] == team_hash(&t.members[2]));
    assert_int_equal(FSDP_OK, team_load(&t, 0, NULL, 1, "by-name"));
    team_expect_saved(&t, 0);
    assert_int_equal(FSDP_OK, team_load(&t, 2, TEAM[2].name, 1, "by-name/step-000000006"));
    team_expect_resumed(&t);
    assert_int_equal(FSDP_OK, team_load(&t, 2, NULL, 0, "by-name/step-000000006/critic.model.safetensors"));
    assert_true(team_saved_hash[1] == team_hash(&t.members[2])); /* the file of one is a model's as any other */
    team_close(&t);
}

static void a_name_that_is_not_there_is_told_with_those_that_are(void **state)
{
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    team                         t;

    (void)state;
    team_save_once(&t, "names", TEAM_MOST, NULL);
    team_train_further(&t, 1);
    options.allow_missing = options.allow_extra = options.allow_mis_shaped = 1;
    options.model                                                          = "actor";
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(t.members[0].model, NULL, team_path("names"), &options,
                                                        NULL)); /* all the same */
    assert_says(t.ctx, "has no model 'actor'; those with a name: 'critic', 'Target-net_2.x'");
    assert_int_equal(FSDP_ERR_ARG, team_load(&t, 0, "critic", 1, "names"));
    assert_says(t.ctx, "model 'critic' has the state of optimizer sgd_momentum, and this one is adamw");
    assert_int_equal(FSDP_ERR_ARG, team_load(&t, 0, "", 0, "names"));
    assert_says(t.ctx, "the name is missing");
    assert_int_equal(FSDP_ERR_ARG, team_load(&t, 0, "../critic", 0, "names"));
    assert_says(t.ctx, "'../critic'");
    assert_int_equal(FSDP_ERR_ARG, team_load(&t, 0, "critic", 0, "names/step-000000006/critic.model.safetensors"));
    assert_says(t.ctx, "is a file, of one model");
    options.model = "critic";
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(t.checkpoint, team_path("names"), &options, NULL));
    assert_says(t.ctx, "or call fsdp_checkpoint_load");
    assert_int_equal(t.size > 1 ? FSDP_ERR_MISMATCH : FSDP_ERR_ARG,
                     team_load(&t, 0, t.rank == t.size - 1 ? "nobody" : "critic", 0, "names"));
    for (size_t i = 0; i < TEAM_MOST; i++) {
        assert_true(team_next_hash[i] == team_hash(&t.members[i]));
    }
    team_close(&t);
}

static void where_all_have_names_one_is_asked_for(void **state)
{
    team t;

    (void)state;
    assert_true(team_open(&t, fsdp_test_size(), 2, 0));
    team_open_folder(&t, "all-named", 0, NULL);
    team_add_all(&t);
    team_train(&t);
    assert_int_equal(FSDP_OK, team_save(&t, TEAM_STEP));
    assert_int_equal(FSDP_ERR_ARG, team_load(&t, 0, NULL, 0, "all-named"));
    assert_says(t.ctx, "all its models have names; give the options' `model` one of 'actor', 'critic'");
    team_train_further(&t, 1);
    assert_int_equal(FSDP_OK, team_load(&t, 0, "actor", 1, "all-named"));
    team_expect_saved(&t, 0);
    team_close(&t);
}

/* ---- what stays as it was --------------------------------------------------------------------------------------------- */

/*
 * What the version before several models has written of this model and array on one rank: with the sums in it, the bytes of every
 * file are told.
 */
static const char STATE_OF_ONE[] =
    "{\n"
    "  \"format\": \"libfsdp checkpoint\",\n"
    "  \"version\": 3,\n"
    "  \"sum\": \"6f047d0da9b52b6c\",\n"
    "  \"step\": 4,\n"
    "  \"epoch\": 1,\n"
    "  \"sample\": 2,\n"
    "  \"seed\": 3,\n"
    "  \"text\": \"text\",\n"
    "  \"world\": {\"ranks\": 1, \"strategy\": \"FULL_SHARD\"},\n"
    "  \"optimizer\": {\"kind\": \"adamw\", \"steps\": 0},\n"
    "  \"loss_scaler\": null,\n"
    "  \"checksums\": {\n"
    "    \"algorithm\": \"XXH3_64\",\n"
    "    \"files\": [\n"
    "      {\"name\": \"model.safetensors\", \"bytes\": 404, \"chunks\": 2},\n"
    "      {\"name\": \"optimizer.safetensors\", \"bytes\": 808, \"chunks\": 2},\n"
    "      {\"name\": \"simulation.safetensors\", \"algorithm\": \"SUM61\", \"bytes\": 268, "
    "\"chunks\": 1}\n"
    "    ],\n"
    "    \"file\": \"checksums.bin\",\n"
    "    \"sum\": \"a011c73f4d368cb7\"\n"
    "  }\n"
    "}\n";

static void save_one_of_old(fsdp_context *ctx)
{
    const fsdp_tensor tensors[] = {
        {.name = "w", .n_dims = 2, .shape = {6, 5}, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT, .a = 0.5},
        {.name = "b", .n_dims = 1, .shape = {7}, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT, .a = -2.0}};
    const fsdp_checkpoint_state at       = {.step = 4, .epoch = 1, .sample = 2, .seed = 3, .text = "text"};
    const size_t                three    = 3;
    int32_t                     cells[3] = {1, 2, 3};
    fsdp_optimizer_options      adamw;
    fsdp_optimizer             *optimizer;
    fsdp_checkpoint            *checkpoint;
    fsdp_model                 *model;
    fsdp_unit                  *unit;

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", tensors, 2, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &adamw));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(model, &adamw, &optimizer));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(model, optimizer, team_path("old"), NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(checkpoint, "cells", FSDP_I32, 1, &three, NULL, cells));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &at));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    fsdp_model_destroy(model);
}

static void a_checkpoint_of_one_model_has_the_bytes_it_had(void **state)
{
    char text[sizeof STATE_OF_ONE + 16] = "";
    team t;

    (void)state;
    if (!team_open(&t, 1, 0, 0)) {
        return;
    }
    save_one_of_old(t.ctx);
    FILE *f = fopen(team_path("old/step-000000004/state.json"), "rb");
    assert_non_null(f);
    (void)fread(text, 1, sizeof text - 1, f);
    assert_int_equal(0, fclose(f));
    assert_string_equal(STATE_OF_ONE, text);
    team_close(&t);
}

static void the_budget_is_what_is_held(void **state)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_memory             before, open, after;
    fsdp_budget             budget = {.total = 0};
    team                    t;

    (void)state;
    options.asynchronous = 1;
    assert_true(team_open(&t, fsdp_test_size(), TEAM_MOST, 0));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(t.ctx, &before));
    team_open_folder(&t, "budget", 1, &options);
    team_add_all(&t);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(t.ctx, &open));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_budget(t.checkpoint, &budget));
    assert_int_equal(open.current_total - before.current_total + FSDP_CHECKPOINT_SCRATCH_BYTES, budget.total);
    assert_int_equal(FSDP_OK, team_save(&t, 1));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, team_path("budget"), NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_model(t.checkpoint, "twice", t.members[1].model, NULL));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(t.ctx, &after));
    assert_true(after.peak_total <= before.current_total + budget.total || after.peak_total == before.peak_total);
    assert_int_equal(open.current_total, after.current_total);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t.checkpoint));
    t.checkpoint = NULL;
    assert_int_equal(FSDP_OK, fsdp_memory_usage(t.ctx, &after));
    assert_int_equal(before.current_total, after.current_total);
    team_close(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_of_any_ranks_come_back_on_any_others),
        cmocka_unit_test(large_files_are_divided),
        cmocka_unit_test(each_model_has_its_own_precision),
        cmocka_unit_test(each_model_has_its_own_loss_scaler),
        cmocka_unit_test(each_model_has_its_own_groups),
        cmocka_unit_test(one_model_is_loaded_by_its_name),
        cmocka_unit_test(a_name_that_is_not_there_is_told_with_those_that_are),
        cmocka_unit_test(where_all_have_names_one_is_asked_for),
        cmocka_unit_test(a_checkpoint_of_one_model_has_the_bytes_it_had),
        cmocka_unit_test(the_budget_is_what_is_held),
    };

    return fsdp_test_main(argc, argv, tests, team_references_make, saved_folder_remove);
}
