/*
 * Several models in one checkpoint: each comes back with its optimizer, whatever ranks and strategies saved and load it; one is
 * loaded by its name; what is wrong with any of them is found before any changes. Training of these models gives the same bits
 * everywhere, so that what is read is held against models that were never saved.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/shard/checkpoint/saved_model.h"

enum { MOST_MODELS = 3, STEP = 6, MOST_BYTES = 1 << 18 };

static const int sizes[] = {1, 2, 3, 5, 8};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

/* What is trained, and how long. The first is the one without a name in some tests. */
static const struct member {
    const char         *name;
    fsdp_strategy       strategy;
    fsdp_optimizer_kind kind;
    uint64_t            seed;
    size_t              steps;
} MEMBERS[MOST_MODELS] = {
    {"actor", FSDP_FULL_SHARD, FSDP_ADAMW, 7, 3},
    {"critic", FSDP_NO_SHARD, FSDP_SGD_MOMENTUM, 8, 1},
    {"Target-net_2.x", FSDP_SHARD_GRAD_OP, FSDP_LION, 9, 2},
};

/* Their hashes after those steps, and after one more, which tells of the moments. */
static uint64_t saved_hash[MOST_MODELS], next_hash[MOST_MODELS];

/* ---- models of one context ------------------------------------------------------------------------------------------ */

typedef struct team {
    MPI_Comm         comm;
    fsdp_context    *ctx;
    int              rank, size;
    size_t           n;
    saved_model      members[MOST_MODELS];
    fsdp_checkpoint *checkpoint;
    int              first_is_unnamed;
} team;

static uint64_t hash_of(const saved_model *m)
{
    uint64_t hash;

    assert_int_equal(FSDP_OK, fsdp_model_hash(m->model, &hash));
    return hash;
}

static const char *path_of(const char *name)
{
    static char paths[4][400];
    static int  next;
    char       *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", saved_folder, name);
    return path;
}

/* `turn`: other strategies than those in the table. */
static fsdp_model_options options_of(size_t member, int size, int turn)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.seed       = MEMBERS[member].seed;
    options.strategy   = (fsdp_strategy)(((int)MEMBERS[member].strategy + turn) % FSDP_N_STRATEGIES);
    options.group_size = size % 2 == 0 ? 2 : 1;
    return options;
}

/* Models on the first `size` ranks; 0 on others. */
static int open_team(team *t, int size, size_t n, int turn)
{
    *t = (team){.rank = fsdp_test_rank(), .size = size, .n = n};
    MPI_Comm_split(MPI_COMM_WORLD, t->rank < size ? 0 : MPI_UNDEFINED, 0, &t->comm);
    if (t->rank >= size) {
        return 0;
    }
    assert_int_equal(FSDP_OK, fsdp_init(t->comm, NULL, &t->ctx));
    for (size_t i = 0; i < n; i++) {
        const fsdp_model_options options = options_of(i, size, turn);

        saved_model_make(&t->members[i], t->ctx, &options, MEMBERS[i].kind);
    }
    return 1;
}

static void close_team(team *t)
{
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t->checkpoint));
    for (size_t i = 0; i < t->n; i++) {
        fsdp_model_destroy(t->members[i].model);
    }
    assert_int_equal(FSDP_OK, fsdp_finalize(t->ctx));
    MPI_Comm_free(&t->comm);
}

/* A folder, which is opened with the first model, or with none; the others are not added yet. */
static void open_folder(team *t, const char *folder, int first_is_unnamed, const fsdp_checkpoint_options *options)
{
    t->first_is_unnamed = first_is_unnamed;
    if (first_is_unnamed) {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_open(t->members[0].model, t->members[0].optimizer, path_of(folder),
                                                       options, &t->checkpoint));
    } else {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(t->ctx, path_of(folder), options, &t->checkpoint));
    }
}

static void add(team *t, size_t i)
{
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_model(t->checkpoint, MEMBERS[i].name, t->members[i].model,
                                                        t->members[i].optimizer));
}

static void add_all(team *t)
{
    for (size_t i = t->first_is_unnamed ? 1 : 0; i < t->n; i++) {
        add(t, i);
    }
}

static void train_all(team *t)
{
    for (size_t i = 0; i < t->n; i++) {
        saved_model_train(&t->members[i], 0, MEMBERS[i].steps);
    }
}

static void train_further(team *t, size_t n)
{
    for (size_t i = 0; i < t->n; i++) {
        saved_model_train(&t->members[i], MEMBERS[i].steps, n);
    }
}

static void expect_saved(team *t, size_t i)
{
    assert_true(saved_hash[i] == hash_of(&t->members[i]));
    assert_int_equal(MEMBERS[i].steps, fsdp_optimizer_steps(t->members[i].optimizer));
}

/* And that the next step gives what it would have given. */
static void expect_resumed(team *t)
{
    for (size_t i = 0; i < t->n; i++) {
        expect_saved(t, i);
    }
    train_further(t, 1);
    for (size_t i = 0; i < t->n; i++) {
        assert_true(next_hash[i] == hash_of(&t->members[i]));
    }
}

static fsdp_status save(const team *t, uint64_t step)
{
    return fsdp_checkpoint_save(t->checkpoint, &(fsdp_checkpoint_state){.step = step, .text = "of all"});
}

/* Trained models of all ranks, saved once; the first is the one without a name. */
static void save_team(team *t, const char *folder, size_t n, const fsdp_checkpoint_options *options)
{
    assert_true(open_team(t, fsdp_test_size(), n, 0));
    open_folder(t, folder, 1, options);
    add_all(t);
    train_all(t);
    assert_int_equal(FSDP_OK, save(t, STEP));
}

static int make_references(void **state)
{
    uint64_t hashes[2 * MOST_MODELS] = {0};

    (void)saved_folder_make(state);
    if (fsdp_test_rank() == 0) {
        for (size_t i = 0; i < MOST_MODELS; i++) {
            const fsdp_model_options options = options_of(i, 1, 0);
            saved_model              m       = {.comm = MPI_COMM_NULL};

            MPI_Comm_dup(MPI_COMM_SELF, &m.comm);
            saved_model_open_on(&m, &options, MEMBERS[i].kind);
            saved_model_train(&m, 0, MEMBERS[i].steps);
            hashes[2 * i] = hash_of(&m);
            saved_model_train(&m, MEMBERS[i].steps, 1);
            hashes[2 * i + 1] = hash_of(&m);
            saved_model_close(&m);
        }
    }
    MPI_Bcast(hashes, 2 * MOST_MODELS, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < MOST_MODELS; i++) {
        saved_hash[i] = hashes[2 * i];
        next_hash[i]  = hashes[2 * i + 1];
        assert_true(saved_hash[i] != next_hash[i] && (i == 0 || saved_hash[i] != saved_hash[i - 1]));
    }
    return 0;
}

/* ---- round trips ------------------------------------------------------------------------------------------------------ */

static size_t read_file(const char *folder, const char *file, unsigned char *bytes)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s/step-%09d/%s", saved_folder, folder, STEP, file);
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
        const char *name = i == 0 && first_is_unnamed ? "" : MEMBERS[i].name;
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

    if (!open_team(&t, size, n, turn)) {
        return;
    }
    options.asynchronous = asynchronous;
    open_folder(&t, folder, first_is_unnamed, &options);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(t.checkpoint, "cells", FSDP_I32, 1, &shape, &box, cells));
    assert_int_equal(FSDP_OK, save(&t, 1)); /* before the others are there */
    add_all(&t);
    train_all(&t);
    for (int i = 0; i < 3; i++) {
        cells[i] = 3 * t.rank + i;
    }
    if (asynchronous) {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(t.checkpoint, &(fsdp_checkpoint_state){.step = STEP}));
        train_further(&t, 1); /* a copy has been taken */
        memset(cells, 0, sizeof cells);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_wait(t.checkpoint));
    } else {
        assert_int_equal(FSDP_OK, save(&t, STEP));
    }
    close_team(&t);
}

static void restore_on(int size, int from, const char *folder, size_t n, int first_is_unnamed, int turn)
{
    const size_t          shape = 3 * (size_t)from, all = shape;
    int32_t               cells[3 * 8];
    fsdp_checkpoint_state state;
    team                  t;

    if (!open_team(&t, size, n, turn)) {
        return;
    }
    train_all(&t);
    train_further(&t, 2);
    open_folder(&t, "other", first_is_unnamed, NULL);
    add_all(&t);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(t.checkpoint, "cells", FSDP_I32, 1, &shape, NULL, cells));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of(folder), NULL, &state));
    assert_true(state.step == STEP && state.ranks == (uint64_t)from);
    for (size_t i = 0; i < all; i++) {
        assert_int_equal(i, cells[i]);
    }
    expect_resumed(&t);
    close_team(&t);
}

static void models_of_any_ranks_come_back_on_any_others(void **state)
{
    char folder[64];

    (void)state;
    save_on(1, "reference", MOST_MODELS, 1, 0, 0);
    save_on(1, "named-reference", 2, 0, 0, 0);
    for (int trial = 0; trial < 2 * (int)N_SIZES; trial++) {
        const int    from = sizes[trial % (int)N_SIZES], to = sizes[(trial * 3 + 1) % (int)N_SIZES];
        const int    unnamed = trial % 2 == 0;
        const size_t n       = unnamed ? MOST_MODELS : 2;

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
    save_team(&t, "parts", 2, &options);
    assert_int_equal(0, access(path_of("parts/step-000000006/critic.model-00001-of-00002.safetensors"), F_OK));
    assert_int_equal(0, access(path_of("parts/step-000000006/critic.model.safetensors.index.json"), F_OK));
    assert_int_equal(0, access(path_of("parts/step-000000006/critic.optimizer.safetensors.index.json"), F_OK));
    assert_int_equal(0, access(path_of("parts/step-000000006/model.safetensors.index.json"), F_OK));
    train_further(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("parts"), NULL, NULL));
    expect_resumed(&t);
    close_team(&t);
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
    assert_true(open_team(&t, fsdp_test_size(), 1, 0));
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, &f64, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &w, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    f64.seed += 5;
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, &f64, &again));
    assert_int_equal(FSDP_OK, fsdp_unit_add(again, "u", &w, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(again));
    open_folder(&t, "precision", 0, &options);
    add_all(&t);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_model(t.checkpoint, "double", model, NULL));
    train_all(&t);
    assert_int_equal(FSDP_OK, save(&t, STEP));
    assert_int_equal(FSDP_OK, fsdp_model_hash(model, &a));
    assert_int_equal(FSDP_OK, fsdp_model_hash(again, &b));
    assert_true(a != b);
    fsdp_checkpoint_load_options named = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    named.model                        = "double";
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(again, NULL, path_of("precision"), &named, NULL));
    assert_int_equal(FSDP_OK, fsdp_model_hash(again, &b));
    assert_true(a == b);
    train_further(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("precision"), NULL, NULL));
    expect_resumed(&t);
    fsdp_model_destroy(again);
    fsdp_model_destroy(model);
    close_team(&t);
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
    assert_true(open_team(&t, fsdp_test_size(), 2, 0));
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(FSDP_OK, fsdp_loss_scaler_create(t.members[i].model, &any, &scalers[i]));
    }
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scalers[0], &other));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scalers[1], &saved));
    open_folder(&t, "scalers", 1, NULL);
    add_all(&t);
    train_all(&t);
    assert_int_equal(FSDP_OK, save(&t, STEP));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scalers[0], &saved));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_set_state(scalers[1], &other));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("scalers"), NULL, NULL));
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_get_state(scalers[0], &found));
    assert_true(found.scale == other.scale && found.clean_steps == 0);
    assert_int_equal(FSDP_OK, fsdp_loss_scaler_get_state(scalers[1], &found));
    assert_true(found.scale == saved.scale && found.clean_steps == 4 && found.skipped_steps == 2);
    for (size_t i = 0; i < 2; i++) {
        fsdp_loss_scaler_destroy(scalers[i]);
    }
    close_team(&t);
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
    assert_true(open_team(&t, fsdp_test_size(), 0, 0));
    make_grouped(t.ctx, FSDP_LION, &one);
    make_grouped(t.ctx, FSDP_SGD_MOMENTUM, &other);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(one.model, one.plain, path_of("groups"), NULL, &t.checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_model(t.checkpoint, "other", other.model, other.of_group));
    (void)step_grouped(&one, 2);
    (void)step_grouped(&other, 3);
    assert_int_equal(FSDP_OK, save(&t, STEP));
    const uint64_t one_next = step_grouped(&one, 1), other_next = step_grouped(&other, 1);
    (void)step_grouped(&one, 2);
    (void)step_grouped(&other, 2);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("groups"), NULL, NULL));
    assert_true(fsdp_optimizer_steps(one.of_group) == 2 && fsdp_optimizer_steps(other.of_group) == 3);
    assert_true(fsdp_optimizer_steps(one.plain) == 2 && fsdp_optimizer_steps(other.plain) == 3);
    assert_true(one_next == step_grouped(&one, 1) && other_next == step_grouped(&other, 1));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t.checkpoint));
    t.checkpoint = NULL;
    fsdp_model_destroy(other.model);
    fsdp_model_destroy(one.model);
    close_team(&t);
}

/* ---- one of them, by its name --------------------------------------------------------------------------------------- */

static fsdp_status load_named(const team *t, size_t into, const char *name, int with_optimizer, const char *path)
{
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;

    options.model = name;
    return fsdp_checkpoint_load(t->members[into].model, with_optimizer ? t->members[into].optimizer : NULL,
                                path_of(path), &options, NULL);
}

static void one_model_is_loaded_by_its_name(void **state)
{
    team t;

    (void)state;
    save_team(&t, "by-name", MOST_MODELS, NULL);
    train_further(&t, 1);
    assert_int_equal(FSDP_OK, load_named(&t, 1, "critic", 1, "by-name"));
    expect_saved(&t, 1);
    assert_true(next_hash[0] == hash_of(&t.members[0]) && next_hash[2] == hash_of(&t.members[2]));
    assert_int_equal(FSDP_OK, load_named(&t, 2, "critic", 0, "by-name")); /* its values in another model */
    assert_true(saved_hash[1] == hash_of(&t.members[2]));
    assert_int_equal(FSDP_OK, load_named(&t, 0, NULL, 1, "by-name"));
    expect_saved(&t, 0);
    assert_int_equal(FSDP_OK, load_named(&t, 2, MEMBERS[2].name, 1, "by-name/step-000000006"));
    expect_resumed(&t);
    assert_int_equal(FSDP_OK, load_named(&t, 2, NULL, 0, "by-name/step-000000006/critic.model.safetensors"));
    assert_true(saved_hash[1] == hash_of(&t.members[2])); /* the file of one is a model's as any other */
    close_team(&t);
}

static void a_name_that_is_not_there_is_told_with_those_that_are(void **state)
{
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    team                         t;

    (void)state;
    save_team(&t, "names", MOST_MODELS, NULL);
    train_further(&t, 1);
    options.allow_missing = options.allow_extra = options.allow_mis_shaped = 1;
    options.model                                                          = "actor";
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(t.members[0].model, NULL, path_of("names"), &options,
                                                        NULL)); /* all the same */
    assert_says(t.ctx, "has no model 'actor'; those with a name: 'critic', 'Target-net_2.x'");
    assert_int_equal(FSDP_ERR_ARG, load_named(&t, 0, "critic", 1, "names"));
    assert_says(t.ctx, "model 'critic' has the state of optimizer sgd_momentum, and this one is adamw");
    assert_int_equal(FSDP_ERR_ARG, load_named(&t, 0, "", 0, "names"));
    assert_says(t.ctx, "the name is missing");
    assert_int_equal(FSDP_ERR_ARG, load_named(&t, 0, "../critic", 0, "names"));
    assert_says(t.ctx, "'../critic'");
    assert_int_equal(FSDP_ERR_ARG, load_named(&t, 0, "critic", 0, "names/step-000000006/critic.model.safetensors"));
    assert_says(t.ctx, "is a file, of one model");
    options.model = "critic";
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(t.checkpoint, path_of("names"), &options, NULL));
    assert_says(t.ctx, "or call fsdp_checkpoint_load");
    assert_int_equal(t.size > 1 ? FSDP_ERR_MISMATCH : FSDP_ERR_ARG,
                     load_named(&t, 0, t.rank == t.size - 1 ? "nobody" : "critic", 0, "names"));
    for (size_t i = 0; i < MOST_MODELS; i++) {
        assert_true(next_hash[i] == hash_of(&t.members[i]));
    }
    close_team(&t);
}

static void where_all_have_names_one_is_asked_for(void **state)
{
    team t;

    (void)state;
    assert_true(open_team(&t, fsdp_test_size(), 2, 0));
    open_folder(&t, "all-named", 0, NULL);
    add_all(&t);
    train_all(&t);
    assert_int_equal(FSDP_OK, save(&t, STEP));
    assert_int_equal(FSDP_ERR_ARG, load_named(&t, 0, NULL, 0, "all-named"));
    assert_says(t.ctx, "all its models have names; give the options' `model` one of 'actor', 'critic'");
    train_further(&t, 1);
    assert_int_equal(FSDP_OK, load_named(&t, 0, "actor", 1, "all-named"));
    expect_saved(&t, 0);
    close_team(&t);
}

/* ---- what is wrong ------------------------------------------------------------------------------------------------- */

static fsdp_status add_as(const team *t, const char *name, size_t i)
{
    return fsdp_checkpoint_add_model(t->checkpoint, name, t->members[i].model, t->members[i].optimizer);
}

static void bad_names_are_refused_on_every_rank(void **state)
{
    static const struct {
        const char *name, *says;
    } BAD[] = {
        {NULL, "the name is missing"},
        {"", "the name is missing"},
        {".critic", "'.critic': the name does not begin with a letter or a digit"},
        {"-critic", "'-critic': the name does not begin"},
        {"..", "'..': the name does not begin"},
        {"a/b", "'a/b': the name has another character"},
        {"a b", "'a b': the name has another character than letters, digits, '_', '-' and '.'"},
        {"caf\xc3\xa9", "the name has another character"},
        {"model", "'model': the name is that of a checkpoint's own files; choose another"},
        {"optimizer", "'optimizer': the name is that of"},
        {"simulation", "'simulation': the name is that of"},
        {"state", "'state': the name is that of"},
        {"checksums", "'checksums': the name is that of"},
    };
    char longest[FSDP_CHECKPOINT_NAME_BYTES + 1];
    team t;

    (void)state;
    assert_true(open_team(&t, fsdp_test_size(), 2, 0));
    open_folder(&t, "bad-names", 1, NULL);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        const int one = t.rank == (int)i % t.size; /* which finds it; the others are told */

        assert_int_equal(FSDP_ERR_ARG, add_as(&t, one ? BAD[i].name : "critic", 1));
        assert_says(t.ctx, one ? BAD[i].says : "fsdp_checkpoint_add_model");
    }
    memset(longest, 'x', sizeof longest);
    longest[FSDP_CHECKPOINT_NAME_BYTES] = '\0';
    assert_int_equal(FSDP_ERR_ARG, add_as(&t, longest, 1));
    assert_says(t.ctx, "the name is too long; at most FSDP_CHECKPOINT_NAME_BYTES - 1 = 63");
    longest[FSDP_CHECKPOINT_NAME_BYTES - 1] = '\0';
    assert_int_equal(FSDP_OK, add_as(&t, longest, 1)); /* nothing has been added before */
    train_all(&t);
    assert_int_equal(FSDP_OK, save(&t, STEP));
    train_further(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("bad-names"), NULL, NULL));
    expect_resumed(&t);
    close_team(&t);
}

static void bad_models_are_refused_on_every_rank(void **state)
{
    const fsdp_tensor bad_name = {.name = "w\xff", .n_dims = 1, .shape = {3}, .dtype = FSDP_F32};
    fsdp_context     *other_ctx;
    fsdp_model       *raw, *elsewhere;
    fsdp_unit        *unit;
    team              t;

    (void)state;
    assert_true(open_team(&t, fsdp_test_size(), MOST_MODELS, 0));
    open_folder(&t, "bad-models", 1, NULL);
    fsdp_checkpoint *c  = t.checkpoint;
    const int        me = t.rank == t.size - 1; /* the one that is wrong */

    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_model(NULL, "x", t.members[1].model, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_model(c, "x", me ? NULL : t.members[1].model, NULL));
    assert_says(t.ctx, me ? "the model is NULL" : "fsdp_checkpoint_add_model");
    assert_int_equal(FSDP_ERR_ARG,
                     fsdp_checkpoint_add_model(c, "x", t.members[1].model, t.members[me ? 2 : 1].optimizer));
    assert_says(t.ctx, me ? "model 'x': the optimizer belongs to another model" : "fsdp_checkpoint_add_model");
    assert_int_equal(FSDP_ERR_ARG, add_as(&t, "x", 0));
    assert_says(t.ctx, "model 'x': the checkpoint was opened with this model");
    add(&t, 1);
    assert_int_equal(FSDP_ERR_ARG, add_as(&t, "x", 1));
    assert_says(t.ctx, "this model has been added as 'critic'; add each once");
    assert_int_equal(FSDP_ERR_ARG, add_as(&t, "critic", 2));
    assert_says(t.ctx, "model 'critic': there is a model of that name already; rename one of them");

    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, NULL, &raw));
    assert_int_equal(FSDP_OK, fsdp_unit_add(raw, "u", &bad_name, 1, &unit));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_add_model(c, "raw", raw, NULL));
    assert_says(t.ctx, "model 'raw': the model is not committed; call fsdp_model_commit first");
    assert_int_equal(FSDP_OK, fsdp_model_commit(raw));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_model(c, "raw", raw, NULL));
    assert_says(t.ctx, "the name is not UTF-8: byte 1 is 0xff");
    fsdp_model_destroy(raw);

    assert_int_equal(FSDP_OK, fsdp_init(t.comm, NULL, &other_ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(other_ctx, NULL, &elsewhere));
    assert_int_equal(FSDP_OK, fsdp_unit_add(elsewhere, "u", &SAVED_TENSORS[0], 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(elsewhere));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_model(c, "elsewhere", elsewhere, NULL));
    assert_says(t.ctx, "model 'elsewhere': the model is in another context than the checkpoint");
    fsdp_model_destroy(elsewhere);
    assert_int_equal(FSDP_OK, fsdp_finalize(other_ctx));

    add(&t, 2); /* and all is as it was */
    train_all(&t);
    assert_int_equal(FSDP_OK, save(&t, STEP));
    train_further(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(c, path_of("bad-models"), NULL, NULL));
    expect_resumed(&t);
    close_team(&t);
}

/* Another name, no optimizer, or other tensors on one rank. */
static void ranks_that_add_different_models_are_told(void **state)
{
    fsdp_model *one, *more;
    fsdp_unit  *unit;
    team        t;

    (void)state;
    assert_true(open_team(&t, fsdp_test_size(), 2, 0));
    open_folder(&t, "mismatch", 1, NULL);
    const int         me      = t.rank == t.size - 1;
    const fsdp_status differs = t.size > 1 ? FSDP_ERR_MISMATCH : FSDP_OK;
    if (t.size > 1) {
        assert_int_equal(differs, add_as(&t, me ? "critic" : "Critic", 1));
        assert_int_equal(differs, fsdp_checkpoint_add_model(t.checkpoint, "critic", t.members[1].model,
                                                            me ? NULL : t.members[1].optimizer));
    }
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, NULL, &one));
    assert_int_equal(FSDP_OK, fsdp_unit_add(one, "u", &SAVED_TENSORS[0], 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(one));
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, NULL, &more));
    assert_int_equal(FSDP_OK, fsdp_unit_add(more, "u", &SAVED_TENSORS[0], 2, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(more));
    assert_int_equal(differs, fsdp_checkpoint_add_model(t.checkpoint, "z", me ? more : one, NULL));
    if (t.size > 1) {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_add_model(t.checkpoint, "z", one, NULL));
    }
    add(&t, 1);
    assert_int_equal(FSDP_OK, save(&t, STEP));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("mismatch"), NULL, NULL));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t.checkpoint));
    t.checkpoint = NULL;
    fsdp_model_destroy(more);
    fsdp_model_destroy(one);
    close_team(&t);
}

static void a_model_that_cannot_be_saved_now_is_named(void **state)
{
    team t;

    (void)state;
    assert_true(open_team(&t, fsdp_test_size(), 2, 0));
    open_folder(&t, "not-now", 1, NULL);
    add_all(&t);
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(t.members[1].units[0]));
    assert_int_equal(FSDP_ERR_STATE, save(&t, 1));
    assert_says(t.ctx, "model 'critic'");
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_restore(t.checkpoint, path_of("not-now"), NULL, NULL));
    assert_says(t.ctx, "model 'critic'");
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(t.members[1].units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(t.members[1].units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(t.members[1].units[0]));
    assert_int_equal(FSDP_ERR_STATE, save(&t, 1));
    assert_says(t.ctx, "model 'critic': there are gradients that no step has used");
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(t.members[1].model));
    assert_int_equal(FSDP_OK, save(&t, 1));
    close_team(&t);
}

static void models_that_are_missing_or_extra_are_named_and_nothing_changes(void **state)
{
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    team                         t;

    (void)state;
    save_team(&t, "fits", 2, NULL); /* one without a name, and the critic */
    close_team(&t);

    assert_true(open_team(&t, fsdp_test_size(), MOST_MODELS, 0));
    open_folder(&t, "fits-again", 1, NULL);
    train_all(&t);
    train_further(&t, 1);
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(t.checkpoint, path_of("fits"), NULL, NULL));
    assert_says(t.ctx,
                "1 extra, 0 of another shape or type; the first: model 'critic' is in the checkpoint and has not");
    assert_says(t.ctx, "allow_extra");
    add(&t, 2);
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(t.checkpoint, path_of("fits"), NULL, NULL));
    assert_says(t.ctx, "1 missing, 1 extra");
    assert_says(t.ctx, "model 'Target-net_2.x' is missing in the checkpoint");
    assert_true(next_hash[0] == hash_of(&t.members[0]));
    options.allow_missing = options.allow_extra = 1;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("fits"), &options, NULL));
    expect_saved(&t, 0);
    assert_true(next_hash[1] == hash_of(&t.members[1]) && next_hash[2] == hash_of(&t.members[2]));
    assert_int_equal(MEMBERS[2].steps + 1, fsdp_optimizer_steps(t.members[2].optimizer));
    close_team(&t);
}

/* In a checkpoint of one model, as it has always been written, there are none with names. */
static void a_checkpoint_of_one_model_restores_into_several(void **state)
{
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    team                         t;

    (void)state;
    save_team(&t, "one", 1, NULL);
    close_team(&t);
    assert_true(open_team(&t, fsdp_test_size(), 2, 1));
    open_folder(&t, "one-again", 1, NULL);
    add_all(&t);
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(t.checkpoint, path_of("one"), NULL, NULL));
    assert_says(t.ctx, "1 missing, 0 extra");
    options.allow_missing = 1;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("one"), &options, NULL));
    expect_saved(&t, 0);
    close_team(&t);

    save_team(&t, "both", 2, NULL); /* a model without a name that nobody wants is left out, as before */
    close_team(&t);
    assert_true(open_team(&t, fsdp_test_size(), 2, 1));
    open_folder(&t, "only-the-critic", 0, NULL);
    add(&t, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("both"), NULL, NULL));
    expect_saved(&t, 1);
    close_team(&t);
}

/* ---- damage and full disks ------------------------------------------------------------------------------------------ */

static void flip(const char *path, long at)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        FILE *f = fopen(path, "r+b");

        assert_non_null(f);
        assert_int_equal(0, fseek(f, at, at < 0 ? SEEK_END : SEEK_SET));
        const int byte = fgetc(f);
        assert_int_equal(0, fseek(f, -1, SEEK_CUR));
        assert_true(fputc(byte ^ 4, f) != EOF);
        assert_int_equal(0, fclose(f));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void damage_in_any_model_is_named_and_none_changes(void **state)
{
    static const char *const files[]  = {"critic.model.safetensors", "critic.optimizer.safetensors",
                                         "Target-net_2.x.model.safetensors", "Target-net_2.x.optimizer.safetensors"};
    static const long        places[] = {20, 5000, -3};
    char                     path[512];
    team                     t;

    (void)state;
    save_team(&t, "damage", MOST_MODELS, NULL);
    train_further(&t, 1);
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            (void)snprintf(path, sizeof path, "%s/step-%09d/%s", path_of("damage"), STEP, files[f]);
            flip(path, places[i]);
            assert_int_equal(FSDP_ERR_FORMAT, fsdp_checkpoint_restore(t.checkpoint, path_of("damage"), NULL, NULL));
            assert_int_equal(FSDP_ERR_FORMAT, load_named(&t, f / 2 + 1, MEMBERS[f / 2 + 1].name, 1, "damage"));
            if (t.size == 1) { /* else another rank may have found it */
                assert_says(t.ctx, files[f]);
            }
            assert_int_equal(FSDP_OK, load_named(&t, 0, NULL, 0, "damage")); /* of which nothing is damaged */
            assert_true(saved_hash[0] == hash_of(&t.members[0]));
            flip(path, places[i]);
        }
    }
    assert_true(next_hash[1] == hash_of(&t.members[1]) && next_hash[2] == hash_of(&t.members[2]));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("damage"), NULL, NULL));
    expect_resumed(&t);
    close_team(&t);
}

static void a_file_that_is_gone_is_named(void **state)
{
    char path[512];
    team t;

    (void)state;
    save_team(&t, "gone", 2, NULL);
    (void)snprintf(path, sizeof path, "%s/step-%09d/critic.optimizer.safetensors", path_of("gone"), STEP);
    MPI_Barrier(MPI_COMM_WORLD);
    if (t.rank == 0) {
        assert_int_equal(0, remove(path));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    assert_int_equal(FSDP_ERR_IO, fsdp_checkpoint_restore(t.checkpoint, path_of("gone"), NULL, NULL));
    assert_says(t.ctx, "critic.optimizer.safetensors");
    assert_int_equal(FSDP_OK, load_named(&t, 0, NULL, 1, "gone"));
    close_team(&t);
}

/* A limit on the size of files, as on a full disk, which the model without a name does not reach. */
static void limit_files(int limited)
{
    struct rlimit limit;

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = limited ? 3000 : limit.rlim_max;
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &limit));
}

static void a_save_that_fails_in_one_model_leaves_the_last_checkpoint(void **state)
{
    const fsdp_tensor       w       = {.name = "w", .n_dims = 1, .shape = {10}, .dtype = FSDP_F32, .a = 2.0};
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    char                    path[FSDP_CHECKPOINT_PATH_BYTES];
    fsdp_model             *small;
    fsdp_unit              *unit;
    team                    t;

    (void)state;
    options.asynchronous = 1;
    assert_true(open_team(&t, fsdp_test_size(), 2, 0));
    assert_int_equal(FSDP_OK, fsdp_model_create(t.ctx, NULL, &small));
    assert_int_equal(FSDP_OK, fsdp_unit_add(small, "u", &w, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(small));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(small, NULL, path_of("full"), &options, &t.checkpoint));
    add_all(&t);
    train_all(&t);
    assert_int_equal(FSDP_OK, save(&t, STEP));
    train_further(&t, 1);
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        limit_files(t.rank == (t.size > 1 ? 1 : 0));
        fsdp_status status =
            asynchronous ? fsdp_checkpoint_save_async(t.checkpoint, &(fsdp_checkpoint_state){.step = 7}) : save(&t, 7);
        if (asynchronous && status == FSDP_OK) { /* the one rank that makes files finds it at once */
            status = fsdp_checkpoint_wait(t.checkpoint);
        }
        limit_files(0);
        assert_int_equal(FSDP_ERR_IO, status);
        assert_says(t.ctx, ".model.safetensors");
        assert_int_equal(FSDP_OK, fsdp_checkpoint_latest(t.ctx, path_of("full"), path, sizeof path));
        assert_string_equal("step-000000006", strrchr(path, '/') + 1);
        assert_true(next_hash[0] == hash_of(&t.members[0]) && next_hash[1] == hash_of(&t.members[1]));
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("full"), NULL, NULL));
    expect_resumed(&t);
    assert_int_equal(FSDP_OK, save(&t, 8));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t.checkpoint));
    t.checkpoint = NULL;
    fsdp_model_destroy(small);
    close_team(&t);
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
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(model, optimizer, path_of("old"), NULL, &checkpoint));
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
    if (!open_team(&t, 1, 0, 0)) {
        return;
    }
    save_one_of_old(t.ctx);
    FILE *f = fopen(path_of("old/step-000000004/state.json"), "rb");
    assert_non_null(f);
    (void)fread(text, 1, sizeof text - 1, f);
    assert_int_equal(0, fclose(f));
    assert_string_equal(STATE_OF_ONE, text);
    close_team(&t);
}

static void the_budget_is_what_is_held(void **state)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_memory             before, open, after;
    fsdp_budget             budget = {.total = 0};
    team                    t;

    (void)state;
    options.asynchronous = 1;
    assert_true(open_team(&t, fsdp_test_size(), MOST_MODELS, 0));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(t.ctx, &before));
    open_folder(&t, "budget", 1, &options);
    add_all(&t);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(t.ctx, &open));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_budget(t.checkpoint, &budget));
    assert_int_equal(open.current_total - before.current_total + FSDP_CHECKPOINT_SCRATCH_BYTES, budget.total);
    assert_int_equal(FSDP_OK, save(&t, 1));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(t.checkpoint, path_of("budget"), NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, add_as(&t, "twice", 1));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(t.ctx, &after));
    assert_true(after.peak_total <= before.current_total + budget.total || after.peak_total == before.peak_total);
    assert_int_equal(open.current_total, after.current_total);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(t.checkpoint));
    t.checkpoint = NULL;
    assert_int_equal(FSDP_OK, fsdp_memory_usage(t.ctx, &after));
    assert_int_equal(before.current_total, after.current_total);
    close_team(&t);
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
        cmocka_unit_test(bad_names_are_refused_on_every_rank),
        cmocka_unit_test(bad_models_are_refused_on_every_rank),
        cmocka_unit_test(ranks_that_add_different_models_are_told),
        cmocka_unit_test(a_model_that_cannot_be_saved_now_is_named),
        cmocka_unit_test(models_that_are_missing_or_extra_are_named_and_nothing_changes),
        cmocka_unit_test(a_checkpoint_of_one_model_restores_into_several),
        cmocka_unit_test(damage_in_any_model_is_named_and_none_changes),
        cmocka_unit_test(a_file_that_is_gone_is_named),
        cmocka_unit_test(a_save_that_fails_in_one_model_leaves_the_last_checkpoint),
        cmocka_unit_test(a_checkpoint_of_one_model_has_the_bytes_it_had),
        cmocka_unit_test(the_budget_is_what_is_held),
    };

    return fsdp_test_main(argc, argv, tests, make_references, saved_folder_remove);
}
