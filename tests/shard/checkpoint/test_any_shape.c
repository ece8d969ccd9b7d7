/*
 * One state, saved on one rank, is loaded by a model on a mesh of each shape and saved again: the files have the same bytes. Also in
 * several files, in bf16 with masters and behind the steps.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/checkpoint/saved_model.h"
#include "tests/shard/mesh_net.h"

static void ok(fsdp_status status)
{
    assert_int_equal(FSDP_OK, status);
}

static const char *path_of(const char *name)
{
    static char path[400];

    (void)snprintf(path, sizeof path, "%s/%s", saved_folder, name);
    return path;
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        fail_msg("%s is not there", path);
        return NULL;
    }
    assert_int_equal(0, fseek(file, 0, SEEK_END));
    *n         = (size_t)ftell(file);
    char *text = malloc(*n + 1);
    assert_non_null(text);
    rewind(file);
    assert_int_equal(*n, fread(text, 1, *n, file));
    (void)fclose(file);
    return text;
}

static void compare_files(const char *a, const char *b, const char *name, mesh_shape shape)
{
    char   path[FSDP_CHECKPOINT_PATH_BYTES + 300];
    size_t n_a, n_b;

    (void)snprintf(path, sizeof path, "%s/%s", a, name);
    char *bytes_a = read_file(path, &n_a);
    (void)snprintf(path, sizeof path, "%s/%s", b, name);
    char *bytes_b = read_file(path, &n_b);
    if (n_a != n_b || memcmp(bytes_a, bytes_b, n_a) != 0) {
        fail_msg("%s: %s is another one than that of one rank", mesh_shape_text(shape), path);
    }
    free(bytes_a);
    free(bytes_b);
}

/* All files of tensors, `n` of them, and their indices. */
static void compare_checkpoints(const char *a, const char *b, mesh_shape shape, int n)
{
    DIR           *folder = opendir(a);
    struct dirent *entry;
    int            found = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        if (strstr(entry->d_name, ".safetensors") != NULL) {
            compare_files(a, b, entry->d_name, shape);
            found++;
        }
    }
    (void)closedir(folder);
    assert_true(found >= n);
}

/* ---- saving and loading -------------------------------------------------------------------------------------------- */

typedef struct variant {
    const char *name;
    fsdp_dtype  dtype;
    size_t      file_bytes;
    bool        asynchronous;
} variant;

static const variant VARIANTS[] = {
    {"whole", FSDP_F32, 0, false}, {"split", FSDP_F32, 6000, true}, {"bf16", FSDP_BF16, 0, true}};
enum { N_VARIANTS = sizeof VARIANTS / sizeof *VARIANTS };

/* What the program changes itself, the same on any shape. */
static void change_ignored(const mesh_net *net)
{
    for (int u = 1; u < MESH_UNITS; u++) {
        float *stat = net->units[u].unit != NULL ? fsdp_unit_buffer(net->units[u].unit, 6) : NULL;

        if (stat != NULL) {
            stat[2] = 10.0F + (float)u;
        }
    }
}

static void save(mesh_net *net, const variant *v, const char *folder)
{
    const fsdp_checkpoint_state state   = {.step = 5, .text = "five"};
    fsdp_checkpoint_options     options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_checkpoint            *checkpoint;

    options.dtype        = v->dtype;
    options.file_bytes   = v->file_bytes;
    options.asynchronous = v->asynchronous;
    ok(fsdp_checkpoint_open(net->model, net->optimizer, folder, &options, &checkpoint));
    ok(v->asynchronous ? fsdp_checkpoint_save_async(checkpoint, &state) : fsdp_checkpoint_save(checkpoint, &state));
    ok(fsdp_checkpoint_close(checkpoint));
}

/* The path of the checkpoint that a folder has. */
static const char *saved_in(const char *folder)
{
    static char path[FSDP_CHECKPOINT_PATH_BYTES];
    char        name[FSDP_CHECKPOINT_PATH_BYTES];
    size_t      n;

    (void)snprintf(name, sizeof name, "%s/latest", folder);
    char *text                = read_file(name, &n);
    text[n]                   = '\0';
    text[strcspn(text, "\n")] = '\0';
    (void)snprintf(path, sizeof path, "%s/%s", folder, text);
    free(text);
    return path;
}

/* Rank 0's, in a folder of the variant's name; all others wait. */
static void save_alone(mesh_net *alone, const variant *v)
{
    if (fsdp_test_rank() == 0) {
        save(alone, v, path_of(v->name));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* `mark`: in the name of the folder. */
static void check_shape(mesh_net *net, mesh_net *alone, const variant *v, const char *mark)
{
    fsdp_checkpoint_state state;
    char                  original[FSDP_CHECKPOINT_PATH_BYTES], again[FSDP_CHECKPOINT_PATH_BYTES], folder[600];

    (void)snprintf(original, sizeof original, "%s", saved_in(path_of(v->name)));
    (void)snprintf(folder, sizeof folder, "%s-dp%d-tp%d-pp%d%s", path_of(v->name), net->shape.dp, net->shape.tp,
                   net->shape.pp, mark);
    ok(fsdp_checkpoint_load(net->model, net->optimizer, original, NULL, &state));
    assert_int_equal(5, state.step);
    assert_int_equal(3, fsdp_optimizer_steps(net->optimizer));
    if (v->dtype == FSDP_F32) {
        mesh_net_check(net, alone);
    }
    save(net, v, folder);
    if (fsdp_rank(net->ctx) == 0) {
        (void)snprintf(again, sizeof again, "%s", saved_in(folder));
        compare_checkpoints(original, again, net->shape, v->file_bytes > 0 ? 8 : 2);
    }
    ok(fsdp_checkpoint_load(net->model, net->optimizer, folder, NULL,
                            &state)); /* what it has written, checksums and all */
}

static void any_shape_loads_and_saves_what_one_rank_has_saved(void **state)
{
    size_t            n;
    const mesh_shape *shapes = mesh_shapes(fsdp_test_size(), &n);
    mesh_net          net, alone;

    (void)state;
    mesh_net_open_alone(&alone, NULL);
    for (int step = 0; step < 3; step++) {
        (void)mesh_net_train(&alone, step);
    }
    change_ignored(&alone);
    for (size_t v = 0; v < N_VARIANTS; v++) {
        save_alone(&alone, &VARIANTS[v]);
    }
    for (size_t i = 0; i < n; i++) {
        if (mesh_net_open(&net, shapes[i], NULL)) {
            check_shape(&net, &alone, &VARIANTS[0], "");
            check_shape(&net, &alone, &VARIANTS[1 + i % (N_VARIANTS - 1)], "");
            mesh_net_close(&net);
        }
    }
    mesh_net_close(&alone);
}

/* From one shape to another, and on: the same bits as without a break. */
static void training_goes_on_at_another_shape(void **state)
{
    size_t            n;
    const mesh_shape *shapes = mesh_shapes(fsdp_test_size(), &n);
    const mesh_shape  first = shapes[0], second = shapes[n - 1];
    mesh_net          net, alone;
    char              folder[512];

    (void)state;
    (void)snprintf(folder, sizeof folder, "%s", path_of("on"));
    mesh_net_open_alone(&alone, NULL);
    for (int step = 0; step < 4; step++) {
        (void)mesh_net_train(&alone, step);
    }
    if (mesh_net_open(&net, first, NULL)) {
        (void)mesh_net_train(&net, 0);
        (void)mesh_net_train(&net, 1);
        save(&net, &VARIANTS[0], folder);
        mesh_net_close(&net);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mesh_net_open(&net, second, NULL)) {
        ok(fsdp_checkpoint_load(net.model, net.optimizer, folder, NULL, NULL));
        (void)mesh_net_train(&net, 2);
        (void)mesh_net_train(&net, 3);
        mesh_net_check(&net, &alone);
        mesh_net_close(&net);
    }
    mesh_net_close(&alone);
}

/* ---- strategies of axes --------------------------------------------------------------------------------------------- */

/* On nodes of 2 data ranks. */
typedef struct combination {
    int         rack, node, gpu, tp, pp;
    const char *text;
} combination;

static const combination FOUR[]  = {{1, 2, 2, 1, 1, "node=NO_SHARD,gpu=FULL_SHARD"},
                                    {1, 2, 2, 1, 1, "node=SHARD_GRAD_OP,gpu=FULL_SHARD"},
                                    {1, 2, 2, 1, 1, "node=NO_SHARD,gpu=SHARD_GRAD_OP"}};
static const combination EIGHT[] = {{1, 2, 2, 2, 1, "node=SHARD_GRAD_OP,gpu=FULL_SHARD"},
                                    {2, 2, 2, 1, 1, "rack=NO_SHARD,node=SHARD_GRAD_OP,gpu=FULL_SHARD"},
                                    {1, 2, 2, 1, 2, "node=NO_SHARD,gpu=FULL_SHARD"}};
enum { N_COMBINATIONS = sizeof FOUR / sizeof *FOUR };

static void open_combination(mesh_net *net, const combination *c)
{
    const mesh_shape   shape   = {c->rack * c->node * c->gpu, c->tp, c->pp, false};
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    fsdp_config        config;
    const mesh_data    data = {c->rack, c->node, c->gpu, NULL, &config};

    fsdp_config_init(&config);
    config.node_size        = 2;
    options.axis_strategies = c->text;
    assert_true(mesh_net_open_over(net, shape, &data, &options));
}

/* What one rank has saved, loaded and saved again; and on from what the combination before has saved. */
static void any_strategies_of_axes_load_and_save_it_and_go_on(void **state)
{
    const combination *combinations = fsdp_test_size() == 8 ? EIGHT : FOUR;
    char               mark[8], folder[512];
    mesh_net           net, alone;

    (void)state;
    if (fsdp_test_size() % 4 != 0) {
        return;
    }
    mesh_net_open_alone(&alone, NULL);
    for (int step = 0; step < 3; step++) {
        (void)mesh_net_train(&alone, step);
    }
    change_ignored(&alone);
    for (size_t i = 0; i < N_COMBINATIONS; i++) {
        open_combination(&net, &combinations[i]);
        (void)snprintf(mark, sizeof mark, "-%zu", i);
        check_shape(&net, &alone, &VARIANTS[i % N_VARIANTS], mark);
        mesh_net_close(&net);
    }
    for (int step = 3; step < 3 + N_COMBINATIONS; step++) {
        open_combination(&net, &combinations[step - 3]);
        ok(fsdp_checkpoint_load(net.model, net.optimizer, step == 3 ? path_of("whole") : folder, NULL, NULL));
        (void)mesh_net_train(&net, step);
        (void)mesh_net_train(&alone, step);
        mesh_net_check(&net, &alone);
        (void)snprintf(folder, sizeof folder, "%s-%d", path_of("strategies"), step);
        save(&net, &VARIANTS[0], folder);
        mesh_net_close(&net);
    }
    mesh_net_close(&alone);
}

/* ---- what does not fit --------------------------------------------------------------------------------------------- */

/* A tensor that the file has and no stage, and one that a stage has and the file not: the same words on every rank. */
static void misfits_are_those_of_the_whole_model(void **state)
{
    size_t                       n;
    const mesh_shape            *shapes  = mesh_shapes(fsdp_test_size(), &n);
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    const fsdp_checkpoint_rename rename  = {"u4.qkv", "u4.other"};
    mesh_net                     net;

    (void)state;
    if (mesh_net_open(&net, shapes[n - 1], NULL)) {
        char path[FSDP_CHECKPOINT_PATH_BYTES];

        (void)snprintf(path, sizeof path, "%s", saved_in(path_of("whole")));
        options.renames   = &rename;
        options.n_renames = 1;
        assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(net.model, NULL, path, &options, NULL));
        assert_says(net.dp, "1 missing, 1 extra");
        ok(fsdp_checkpoint_load(net.model, NULL, path, NULL, NULL));
        mesh_net_close(&net);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_shape_loads_and_saves_what_one_rank_has_saved),
        cmocka_unit_test(training_goes_on_at_another_shape),
        cmocka_unit_test(any_strategies_of_axes_load_and_save_it_and_go_on),
        cmocka_unit_test(misfits_are_those_of_the_whole_model),
    };

    return fsdp_test_main(argc, argv, tests, saved_folder_make, saved_folder_remove);
}
