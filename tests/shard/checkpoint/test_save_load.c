/*
 * What one layout saves, every other loads. Training of this model gives the same bits everywhere, so the files that any number
 * of ranks writes under any strategy must have the same bytes, and what is loaded must go on as if it had not been interrupted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/checkpoint/saved_model.h"

enum { STEPS = 3, MORE_STEPS = 2, MOST_BYTES = 1 << 20 };

static const int sizes[] = {1, 2, 3, 4, 5, 8};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

static fsdp_model_options options_of(fsdp_strategy strategy, int size)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.strategy   = strategy;
    options.seed       = 7;
    options.group_size = size % 2 == 0 ? 2 : 1;
    return options;
}

static void for_every_layout(void (*check)(fsdp_strategy strategy, int size))
{
    for (size_t s = 0; s < N_SIZES; s++) {
        for (int strategy = 0; strategy < FSDP_N_STRATEGIES && sizes[s] <= fsdp_test_size(); strategy++) {
            check((fsdp_strategy)strategy, sizes[s]);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

static void save(saved_model *m, const char *where, const fsdp_checkpoint_options *options, uint64_t step)
{
    const fsdp_checkpoint_state state = {
        .step = step, .epoch = 1, .sample = 77, .seed = 0xfedcba9876543210u, .text = "a \"line\"\n of text"};
    fsdp_checkpoint *checkpoint;

    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m->model, m->optimizer, where, options, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &state));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
}

/* Trains in one layout and saves after STEPS into FOLDER/NAME. */
static void train_and_save(const char *name, const fsdp_model_options *model, int size, fsdp_optimizer_kind kind,
                           const fsdp_checkpoint_options *options)
{
    char        where[512];
    saved_model m;

    (void)snprintf(where, sizeof where, "%s/%s", saved_folder, name);
    if (saved_model_open(&m, size, model, kind)) {
        saved_model_train(&m, 0, STEPS);
        save(&m, where, options, STEPS);
        saved_model_close(&m);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static size_t read_file(const char *name, const char *file, unsigned char *bytes)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s/step-%09d/%s", saved_folder, name, STEPS, file);
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

    if (fsdp_test_rank() == 0) {
        const size_t n = read_file(a, file, x);

        assert_true(n > 1000);
        assert_int_equal(n, read_file(b, file, y));
        assert_memory_equal(x, y, n);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void assert_same_files(const char *a, const char *b)
{
    assert_same_file(a, b, "model.safetensors");
    assert_same_file(a, b, "optimizer.safetensors");
}

/* The file's bytes of a tensor, read in another way than the library does: its entry is looked for as text. */
static const unsigned char *find_in_file(const unsigned char *file, const char *name, size_t bytes)
{
    unsigned long long header, begin, end;
    char               entry[128];

    memcpy(&header, file, 8);
    (void)snprintf(entry, sizeof entry, "\"%s\":{", name);
    const char *at = strstr((const char *)file + 8, entry);
    assert_non_null(at);
    assert_int_equal(2, sscanf(strstr(at, "\"data_offsets\":["), "\"data_offsets\":[%llu,%llu]", &begin, &end));
    assert_int_equal(bytes, end - begin);
    return file + 8 + header + begin;
}

/* A tied tensor is there once, and its other name is noted. */
static void the_file_holds_what_the_ranks_export(void **state)
{
    static unsigned char     file[MOST_BYTES];
    static float             values[31 * 67];
    const fsdp_model_options model = options_of(FSDP_FULL_SHARD, 1);
    saved_model              m;

    (void)state;
    train_and_save("independent", &model, fsdp_test_size(), FSDP_ADAMW, NULL);
    assert_true(read_file("independent", "model.safetensors", file) > 1000);
    assert_non_null(strstr((const char *)file + 8, "\"tied.c.tied\":\"a.weight\""));
    assert_null(strstr((const char *)file + 8, "\"c.tied\":{"));
    assert_true(saved_model_open(&m, fsdp_test_size(), &model, FSDP_ADAMW));
    saved_model_train(&m, 0, STEPS);
    for (size_t t = 0; t < N_SAVED_TENSORS; t++) {
        const char  *owner = SAVED_TENSORS[t].tied_to != NULL ? SAVED_TENSORS[t].tied_to : SAVED_TENSORS[t].name;
        const size_t bytes = saved_elements(t) * sizeof(float);

        assert_int_equal(FSDP_OK, fsdp_tensor_export(m.model, SAVED_TENSORS[t].name, 0, values, bytes));
        if (fsdp_test_rank() == 0) {
            assert_memory_equal(values, find_in_file(file, owner, bytes), bytes);
        }
    }
    saved_model_close(&m);
}

static void save_reference(void)
{
    const fsdp_model_options one = options_of(FSDP_FULL_SHARD, 1);

    train_and_save("reference", &one, 1, FSDP_ADAMW, NULL);
}

static void check_save(fsdp_strategy strategy, int size)
{
    const fsdp_model_options model = options_of(strategy, size);
    char                     name[64];

    (void)snprintf(name, sizeof name, "%d-%d", (int)strategy, size);
    train_and_save(name, &model, size, FSDP_ADAMW, NULL);
    assert_same_files("reference", name);
}

static void every_layout_writes_the_same_bytes(void **state)
{
    (void)state;
    save_reference();
    for_every_layout(check_save);
}

/* All tensors, ignored and tied ones too, as rank 0 of one rank that was never interrupted has them. */
static void assert_equal_tensors(saved_model *a, saved_model *b)
{
    static float x[31 * 67], y[31 * 67];

    for (size_t t = 0; t < N_SAVED_TENSORS; t++) {
        const size_t bytes = saved_elements(t) * sizeof(float);

        assert_int_equal(FSDP_OK, fsdp_tensor_export(b->model, SAVED_TENSORS[t].name, 0, y, bytes));
        if (fsdp_test_rank() == 0) {
            assert_int_equal(FSDP_OK, fsdp_tensor_export(a->model, SAVED_TENSORS[t].name, 0, x, bytes));
            assert_memory_equal(x, y, bytes);
        }
    }
}

/* The reference, on one rank alone, after `steps`. */
static void open_uninterrupted(saved_model *r, size_t steps)
{
    const fsdp_model_options one = options_of(FSDP_FULL_SHARD, 1);

    MPI_Comm_dup(MPI_COMM_SELF, &r->comm);
    saved_model_open_on(r, &one, FSDP_ADAMW);
    saved_model_train(r, 0, steps);
}

/* With the reference in the same process, on rank 0. */
static void compare_with_uninterrupted(saved_model *m, size_t steps)
{
    saved_model r = {.comm = MPI_COMM_NULL};

    if (fsdp_test_rank() == 0) {
        open_uninterrupted(&r, steps);
    }
    assert_equal_tensors(&r, m);
    if (fsdp_test_rank() == 0) {
        saved_model_close(&r);
    }
}

static void assert_state(const fsdp_checkpoint_state *state)
{
    assert_true(state->step == STEPS && state->epoch == 1 && state->sample == 77);
    assert_true(state->seed == 0xfedcba9876543210u);
    assert_string_equal("a \"line\"\n of text", state->text);
}

/* Ignored tensors are every rank's own. */
static void assert_table_everywhere(saved_model *m)
{
    float        expected[15], sum = 0;
    const float *table = fsdp_unit_buffer(m->units[1], 1);

    memcpy(expected, table, sizeof expected);
    assert_int_equal(FSDP_OK, fsdp_broadcast(m->ctx, expected, 15, FSDP_F32, 0));
    assert_memory_equal(expected, table, sizeof expected);
    for (size_t i = 0; i < 15; i++) {
        sum += table[i];
    }
    assert_true(sum > 0);
}

static void check_load(fsdp_strategy strategy, int size)
{
    fsdp_model_options    model = options_of(strategy, size);
    fsdp_checkpoint_state state;
    char                  path[512], name[64];
    saved_model           m;

    (void)snprintf(path, sizeof path, "%s/reference", saved_folder);
    (void)snprintf(name, sizeof name, "again-%d-%d", (int)strategy, size);
    model.seed = 99;
    if (saved_model_open(&m, size, &model, FSDP_ADAMW)) {
        saved_model_train(&m, 5, 1);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path, NULL, &state));
        assert_state(&state);
        assert_int_equal(STEPS, fsdp_optimizer_steps(m.optimizer));
        assert_table_everywhere(&m);
        compare_with_uninterrupted(&m, STEPS);
        (void)snprintf(path, sizeof path, "%s/%s", saved_folder, name);
        save(&m, path, NULL, STEPS);
        saved_model_train(&m, STEPS, MORE_STEPS);
        compare_with_uninterrupted(&m, STEPS + MORE_STEPS);
        saved_model_close(&m);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    assert_same_files("reference", name);
}

static void every_layout_loads_them_and_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    for_every_layout(check_load);
}

static void uninterrupted_hash(size_t steps, uint64_t *hash)
{
    saved_model r = {.comm = MPI_COMM_NULL};

    if (fsdp_test_rank() == 0) {
        open_uninterrupted(&r, steps);
        assert_int_equal(FSDP_OK, fsdp_model_hash(r.model, hash));
        saved_model_close(&r);
    }
    MPI_Bcast(hash, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
}

static uint64_t saved_hash, next_hash; /* after STEPS, and after one more, which tells of the moments */

/* Those of check_save() with every number of ranks, of which the strategies take turns. */
static void check_load_of_all(fsdp_strategy strategy, int size)
{
    const fsdp_model_options model = options_of(strategy, size);
    char                     path[512];
    uint64_t                 hash;
    saved_model              m;

    if (!saved_model_open(&m, size, &model, FSDP_ADAMW)) {
        return;
    }
    for (size_t s = 0; s < N_SIZES && sizes[s] <= fsdp_test_size(); s++) {
        (void)snprintf(path, sizeof path, "%s/%d-%d", saved_folder, ((int)strategy + size + (int)s) % FSDP_N_STRATEGIES,
                       sizes[s]);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path, NULL, NULL));
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &hash));
        assert_true(hash == saved_hash);
        saved_model_train(&m, STEPS, 1);
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &hash));
        assert_true(hash == next_hash);
    }
    saved_model_close(&m);
}

static void what_any_number_of_ranks_saves_any_other_loads(void **state)
{
    (void)state;
    uninterrupted_hash(STEPS, &saved_hash);
    uninterrupted_hash(STEPS + 1, &next_hash);
    for_every_layout(check_load_of_all);
}

/* Tensor by tensor, where the order of tensors may differ. */
static void assert_same_tensor(const unsigned char *a, const unsigned char *b, const char *name, size_t bytes)
{
    assert_memory_equal(find_in_file(a, name, bytes), find_in_file(b, name, bytes), bytes);
}

static void compare_tensors(const char *a, const char *b)
{
    static unsigned char model[2][MOST_BYTES], optimizer[2][MOST_BYTES];
    const unsigned       none = FSDP_TENSOR_FROZEN | FSDP_TENSOR_IGNORED;
    char                 name[128];

    (void)read_file(a, "model.safetensors", model[0]);
    (void)read_file(b, "model.safetensors", model[1]);
    (void)read_file(a, "optimizer.safetensors", optimizer[0]);
    (void)read_file(b, "optimizer.safetensors", optimizer[1]);
    for (size_t t = 0; t < N_SAVED_TENSORS; t++) {
        const fsdp_tensor *tensor = &SAVED_TENSORS[t];
        const size_t       bytes  = saved_elements(t) * sizeof(float);

        if (tensor->tied_to == NULL) {
            assert_same_tensor(model[0], model[1], tensor->name, bytes);
        }
        if (tensor->tied_to == NULL && (tensor->flags & none) == 0) {
            (void)snprintf(name, sizeof name, "%s.exp_avg", tensor->name);
            assert_same_tensor(optimizer[0], optimizer[1], name, bytes);
            (void)snprintf(name, sizeof name, "%s.exp_avg_sq", tensor->name);
            assert_same_tensor(optimizer[0], optimizer[1], name, bytes);
        }
    }
}

static void other_units_load_them_tensor_by_tensor(void **state)
{
    static const size_t groupings[][N_SAVED_UNITS + 1] = {{0, 1, 5, 9}, {0, 2, 8, 9}, {0, 6, 7, 9}};
    char                path[512], name[64];

    (void)state;
    for (int g = 0; g < 3; g++) {
        const fsdp_model_options model = options_of((fsdp_strategy)(g * 2), fsdp_test_size());
        saved_model              m     = {.comm = MPI_COMM_NULL};

        (void)snprintf(path, sizeof path, "%s/reference", saved_folder);
        (void)snprintf(name, sizeof name, "regrouped-%d", g);
        MPI_Comm_dup(MPI_COMM_WORLD, &m.comm);
        saved_model_open_grouped(&m, &model, FSDP_ADAMW, groupings[g]);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path, NULL, NULL));
        (void)snprintf(path, sizeof path, "%s/%s", saved_folder, name);
        save(&m, path, NULL, STEPS);
        saved_model_close(&m);
        if (fsdp_test_rank() == 0) {
            compare_tensors("reference", name);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Moments in bf16, parameters gathered in bf16, a model file in bf16: masters come from the optimizer's files. */
static void what_is_rounded_in_the_model_file_is_exact_with_the_optimizer(void **state)
{
    const fsdp_checkpoint_options options = {
        .size = sizeof options, .dtype = FSDP_BF16, .file_bytes = 5000, .keep_last = 1};
    fsdp_model_options model = options_of(FSDP_FULL_SHARD, 1);
    const int          size  = fsdp_test_size();
    char               path[512];
    uint64_t           exact, loaded, rounded;
    saved_model        m;

    (void)state;
    model.moment_dtype = FSDP_BF16;
    model.param_dtype  = FSDP_BF16;
    train_and_save("halved", &model, size, FSDP_LION, &options);
    (void)snprintf(path, sizeof path, "%s/halved", saved_folder);
    assert_true(saved_model_open(&m, size, &model, FSDP_LION));
    saved_model_train(&m, 0, STEPS);
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &exact));
    saved_model_train(&m, STEPS, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, NULL, path, NULL, NULL));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &rounded));
    assert_int_equal(STEPS + 1, fsdp_optimizer_steps(m.optimizer));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path, NULL, NULL));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &loaded));
    assert_true(rounded != exact && loaded == exact);
    assert_int_equal(STEPS, fsdp_optimizer_steps(m.optimizer));
    saved_model_train(&m, STEPS, MORE_STEPS);
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &loaded));
    saved_model_close(&m);
    assert_true(saved_model_open(&m, size, &model, FSDP_LION));
    saved_model_train(&m, 0, STEPS + MORE_STEPS);
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &exact));
    assert_true(loaded == exact);
    saved_model_close(&m);
}

/* Every optimizer's state, and none. */
enum { W_ELEMENTS = 1000, NEW_ELEMENTS = 5 };

/* With `grown`, a unit comes before the one that both have. */
static fsdp_model *open_grown(fsdp_context *ctx, int grown, fsdp_optimizer **optimizer)
{
    const fsdp_tensor added = {
        .name = "new", .n_dims = 1, .shape = {NEW_ELEMENTS}, .dtype = FSDP_F32, .fill = FSDP_FILL_CONSTANT, .a = 3.0};
    const fsdp_tensor      w = {.name   = "w",
                                .n_dims = 1,
                                .shape  = {W_ELEMENTS},
                                .dtype  = FSDP_F32,
                                .fill   = grown ? FSDP_FILL_CONSTANT : FSDP_FILL_NORMAL,
                                .b      = 0.5};
    fsdp_model            *model;
    fsdp_unit             *unit;
    fsdp_optimizer_options o;

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    if (grown) {
        assert_int_equal(FSDP_OK, fsdp_unit_add(model, "first", &added, 1, &unit));
    }
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &w, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    assert_int_equal(FSDP_OK, fsdp_optimizer_options_init(FSDP_ADAMW, &o));
    assert_int_equal(FSDP_OK, fsdp_optimizer_create(model, &o, optimizer));
    return model;
}

/* What rank 0 is told of a tensor; on others nothing. */
static void export_tensor(fsdp_model *model, const char *name, float *values, size_t elements)
{
    memset(values, 0, elements * sizeof *values);
    assert_int_equal(FSDP_OK, fsdp_tensor_export(model, name, 0, values, elements * sizeof *values));
}

static void a_tensor_that_is_new_to_rounded_files_leaves_the_others_exact(void **state)
{
    const fsdp_checkpoint_options      bf16 = {.size = sizeof bf16, .dtype = FSDP_BF16, .keep_last = 1};
    const fsdp_checkpoint_state        at   = {.step = 1};
    const fsdp_checkpoint_load_options some = {.size = sizeof some, .allow_missing = 1};
    static float                       saved[W_ELEMENTS], loaded[W_ELEMENTS];
    float                              added[NEW_ELEMENTS];
    char                               where[512];
    fsdp_checkpoint                   *checkpoint;
    fsdp_optimizer                    *optimizer, *grown_optimizer;
    fsdp_context                      *ctx;

    (void)state;
    (void)snprintf(where, sizeof where, "%s/grown", saved_folder);
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    fsdp_model *model = open_grown(ctx, 0, &optimizer), *grown = open_grown(ctx, 1, &grown_optimizer);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(model, optimizer, where, &bf16, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &at));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(grown, grown_optimizer, where, NULL, NULL));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(grown, grown_optimizer, where, &some, NULL));
    export_tensor(model, "w", saved, W_ELEMENTS);
    export_tensor(grown, "w", loaded, W_ELEMENTS);
    export_tensor(grown, "new", added, NEW_ELEMENTS);
    assert_memory_equal(saved, loaded, sizeof saved);
    assert_true(fsdp_test_rank() != 0 || (added[0] == 3.0F && saved[0] != 0.0F));
    fsdp_model_destroy(grown);
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void every_optimizer_is_restored_and_another_kind_is_refused(void **state)
{
    const fsdp_model_options model = options_of(FSDP_SHARD_GRAD_OP, 1);
    char                     path[512], name[64];

    (void)state;
    for (int kind = 0; kind < FSDP_CUSTOM; kind++) {
        uint64_t    expected, found;
        saved_model m;

        (void)snprintf(name, sizeof name, "kind-%d", kind);
        (void)snprintf(path, sizeof path, "%s/%s", saved_folder, name);
        train_and_save(name, &model, fsdp_test_size(), (fsdp_optimizer_kind)kind, NULL);
        assert_true(saved_model_open(&m, fsdp_test_size(), &model, (fsdp_optimizer_kind)kind));
        saved_model_train(&m, 0, STEPS + MORE_STEPS);
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &expected));
        assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path, NULL, NULL));
        saved_model_train(&m, STEPS, MORE_STEPS);
        assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &found));
        assert_true(found == expected);
        saved_model_close(&m);
        assert_true(saved_model_open(&m, fsdp_test_size(), &model, (fsdp_optimizer_kind)((kind + 1) % 5)));
        assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(m.model, m.optimizer, path, NULL, NULL));
        assert_says(m.ctx, "the state of optimizer");
        assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, NULL, path, NULL, NULL));
        saved_model_close(&m);
    }
}

/* The memory of an open checkpoint and of a save is what the budget says, and all of it is given back. */
static void budgets_are_kept(void **state)
{
    const fsdp_checkpoint_options options = {
        .size = sizeof options, .dtype = FSDP_F32, .keep_last = 1, .asynchronous = 1};
    const fsdp_model_options    model  = options_of(FSDP_FULL_SHARD, 1);
    const fsdp_checkpoint_state step   = {.step = 1};
    fsdp_budget                 budget = {0};
    fsdp_memory                 before, open, after;
    fsdp_checkpoint            *checkpoint;
    char                        path[512];
    saved_model                 m;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/budget", saved_folder);
    assert_true(saved_model_open(&m, fsdp_test_size(), &model, FSDP_ADAMW));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &before));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m.model, m.optimizer, path, &options, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &open));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_budget(checkpoint, &budget));
    assert_int_equal(open.current_total - before.current_total + FSDP_CHECKPOINT_SCRATCH_BYTES, budget.total);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &step));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &after));
    assert_true(after.peak_total <= before.current_total + budget.total || after.peak_total == before.peak_total);
    assert_int_equal(after.current_total, open.current_total);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(m.ctx, &after));
    assert_int_equal(after.current_total, before.current_total);
    saved_model_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_file_holds_what_the_ranks_export),
    cmocka_unit_test(every_layout_writes_the_same_bytes),
    cmocka_unit_test(every_layout_loads_them_and_goes_on_with_the_same_bits),
    cmocka_unit_test(what_any_number_of_ranks_saves_any_other_loads),
    cmocka_unit_test(other_units_load_them_tensor_by_tensor),
    cmocka_unit_test(what_is_rounded_in_the_model_file_is_exact_with_the_optimizer),
    cmocka_unit_test(a_tensor_that_is_new_to_rounded_files_leaves_the_others_exact),
    cmocka_unit_test(every_optimizer_is_restored_and_another_kind_is_refused),
    cmocka_unit_test(budgets_are_kept),
};

int main(int argc, char **argv)
{
    return fsdp_test_main(argc, argv, tests, saved_folder_make, saved_folder_remove);
}
