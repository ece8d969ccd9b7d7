/*
 * What must not harm a checkpoint, a run, or a model: damaged files, other models, full disks, read-only folders, two programs
 * in one folder, saves that are interrupted or fail behind the program's back. After each failure the model has the bits it
 * had, every rank the same error, and the last good checkpoint loads.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shard/checkpoint/saved_model.h"

static fsdp_model_options model_options(void)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.seed = 7;
    return options;
}

static void open_model(saved_model *m)
{
    const fsdp_model_options options = model_options();

    assert_true(saved_model_open(m, fsdp_test_size(), &options, FSDP_ADAMW));
}

static const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", saved_folder, name);
    return path;
}

static fsdp_checkpoint *open_checkpoint(saved_model *m, const char *name, const fsdp_checkpoint_options *options)
{
    fsdp_checkpoint *checkpoint;

    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m->model, m->optimizer, path_of(name), options, &checkpoint));
    return checkpoint;
}

static fsdp_status save(fsdp_checkpoint *checkpoint, uint64_t step)
{
    const fsdp_checkpoint_state state = {.step = step};

    return fsdp_checkpoint_save(checkpoint, &state);
}

static void save_once(saved_model *m, const char *name, const fsdp_checkpoint_options *options, uint64_t step)
{
    fsdp_checkpoint *checkpoint = open_checkpoint(m, name, options);

    assert_int_equal(FSDP_OK, save(checkpoint, step));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
}

static uint64_t hash_of(saved_model *m)
{
    uint64_t hash;

    assert_int_equal(FSDP_OK, fsdp_model_hash(m->model, &hash));
    return hash;
}

static int exists(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

/* Entries of a folder that begin with `prefix`, as rank 0 sees them. */
static int count_entries(const char *name, const char *prefix)
{
    int  n   = 0;
    DIR *dir = opendir(path_of(name));

    MPI_Barrier(MPI_COMM_WORLD);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL; entry = readdir(dir)) {
        n += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return n;
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

/* Trains on, so that a load would be seen; the load has to fail and to leave all as it was. */
static void assert_load_fails(saved_model *m, const char *name)
{
    const uint64_t before = hash_of(m);
    const size_t   steps  = fsdp_optimizer_steps(m->optimizer);
    fsdp_status    status = fsdp_checkpoint_load(m->model, m->optimizer, path_of(name), NULL, NULL);

    if (status != FSDP_ERR_FORMAT && status != FSDP_ERR_IO) {
        fail_msg("%s was loaded, or failed as %s: %s", name, fsdp_status_name(status), fsdp_last_error(m->ctx));
    }
    assert_int_equal(FSDP_OK, fsdp_agree(m->ctx, FSDP_OK, NULL));
    assert_true(before == hash_of(m));
    assert_int_equal(steps, fsdp_optimizer_steps(m->optimizer));
}

static long file_bytes(const char *name)
{
    struct stat about;

    assert_int_equal(0, stat(path_of(name), &about));
    return (long)about.st_size;
}

/* Changes bit `bit` of byte `at`, the same again changes it back. */
static void flip(const char *name, long at, int bit)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        FILE *f = fopen(path_of(name), "r+b");

        assert_non_null(f);
        assert_int_equal(0, fseek(f, at, SEEK_SET));
        const int byte = fgetc(f);
        assert_int_equal(0, fseek(f, at, SEEK_SET));
        assert_true(fputc(byte ^ (1 << bit), f) != EOF);
        assert_int_equal(0, fclose(f));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void a_flipped_bit_anywhere_is_found_and_nothing_changes(void **state)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors", "checksums.bin", "state.json"};
    char                     name[128];
    saved_model              m;

    (void)state;
    open_model(&m);
    saved_model_train(&m, 0, 2);
    save_once(&m, "bits", NULL, 2);
    const uint64_t saved = hash_of(&m);
    saved_model_train(&m, 2, 1);
    for (size_t f = 0; f < 4; f++) {
        (void)snprintf(name, sizeof name, "bits/step-000000002/%s", files[f]);
        const long bytes = file_bytes(name);
        for (long i = 0; i < 24; i++) {
            const long at = i < 12 ? i * 7 % bytes : bytes - 1 - (i - 12) * (bytes / 13); /* the header, and all over */

            flip(name, at, (int)(i % 8));
            assert_load_fails(&m, "bits");
            flip(name, at, (int)(i % 8));
        }
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path_of("bits"), NULL, NULL));
    assert_true(saved == hash_of(&m));
    saved_model_close(&m);
}

static void cut(const char *name, long bytes)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        assert_int_equal(0, truncate(path_of(name), bytes));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void a_truncated_file_is_found_and_nothing_changes(void **state)
{
    static const char *const files[] = {"state.json", "checksums.bin", "optimizer.safetensors", "model.safetensors"};
    char                     name[128];
    saved_model              m;

    (void)state;
    open_model(&m);
    save_once(&m, "cut", NULL, 2);
    saved_model_train(&m, 0, 1);
    for (size_t f = 0; f < 4; f++) { /* from the end, shorter and shorter */
        (void)snprintf(name, sizeof name, "cut/step-000000002/%s", files[f]);
        for (long bytes = file_bytes(name) - 1; bytes > 0; bytes = bytes > 300 ? bytes * 2 / 3 : bytes / 5) {
            cut(name, bytes);
            assert_load_fails(&m, "cut");
        }
        cut(name, 0);
        assert_load_fails(&m, "cut");
    }
    saved_model_close(&m);
}

static void write_text(const char *name, const char *text)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        FILE *f = fopen(path_of(name), "wb");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(0, fclose(f));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void a_latest_that_points_nowhere_is_an_error_and_none_is_not(void **state)
{
    static const struct {
        const char *text;
        fsdp_status status;
    } cases[]                                    = {{"step-000000009\n", FSDP_ERR_IO},
                                                    {"", FSDP_ERR_FORMAT},
                                                    {"../nowhere/step-000000002\n", FSDP_ERR_FORMAT},
                                                    {".\n", FSDP_ERR_FORMAT},
                                                    {"one\ntwo\n", FSDP_ERR_FORMAT},
                                                    {"/etc", FSDP_ERR_FORMAT}};
    char        path[FSDP_CHECKPOINT_PATH_BYTES] = "unchanged";
    saved_model m;

    (void)state;
    open_model(&m);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_latest(m.ctx, path_of("nothing"), path, sizeof path));
    assert_string_equal("", path);
    assert_int_equal(FSDP_ERR_IO, fsdp_checkpoint_load(m.model, m.optimizer, path_of("nothing"), NULL, NULL));
    save_once(&m, "latest", NULL, 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text("latest/latest", cases[i].text);
        assert_int_equal(cases[i].status, fsdp_checkpoint_latest(m.ctx, path_of("latest"), path, sizeof path));
        assert_load_fails(&m, "latest");
    }
    write_text("latest/latest", "step-000000002"); /* by hand, without a line end */
    assert_int_equal(FSDP_OK, fsdp_checkpoint_latest(m.ctx, path_of("latest"), path, sizeof path));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path, NULL, NULL));
    saved_model_close(&m);
}

static void a_newer_version_is_refused_by_name(void **state)
{
    saved_model m;

    (void)state;
    open_model(&m);
    save_once(&m, "newer", NULL, 2);
    write_text("newer/step-000000002/state.json", "{\"format\": \"libfsdp checkpoint\", \"version\": 4}");
    assert_load_fails(&m, "newer");
    assert_says(m.ctx, "use a newer libfsdp");
    saved_model_close(&m);
}

/* ---- other models ------------------------------------------------------------------------------------------------ */

static fsdp_model *open_other(fsdp_context *ctx)
{
    const fsdp_tensor tensors[] = {
        {.name = "a.weight", .n_dims = 2, .shape = {67, 31}, .dtype = FSDP_F32, .a = 3.0},
        {.name = "a.bias", .n_dims = 1, .shape = {67}, .dtype = FSDP_F32, .a = 4.0},
        {.name = "new", .n_dims = 1, .shape = {3}, .dtype = FSDP_F32, .a = 5.0},
    };
    fsdp_model *model;
    fsdp_unit  *unit;

    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "other", tensors, 3, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    return model;
}

static float first_of(fsdp_model *model, const char *name, size_t elements)
{
    float values[31 * 67] = {0};

    assert_int_equal(FSDP_OK, fsdp_tensor_export(model, name, 0, values, elements * sizeof(float)));
    return values[0];
}

static void what_does_not_fit_is_counted_refused_and_can_be_allowed(void **state)
{
    fsdp_checkpoint_load_options some = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    saved_model                  m;
    uint64_t                     before, after;

    (void)state;
    open_model(&m);
    save_once(&m, "fits", NULL, 2);
    fsdp_model *other = open_other(m.ctx);
    assert_int_equal(FSDP_OK, fsdp_model_hash(other, &before));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(other, NULL, path_of("fits"), NULL, NULL));
    assert_says(m.ctx, "1 missing, 6 extra, 1 of another shape");
    some.allow_extra = some.allow_missing = 1;
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(other, NULL, path_of("fits"), &some, NULL));
    assert_says(m.ctx, "0 missing, 0 extra, 1 of another shape");
    assert_says(m.ctx, "is F32 [31, 67] in the file, and [67, 31] in the model");
    assert_int_equal(FSDP_OK, fsdp_model_hash(other, &after));
    assert_true(before == after);
    some.allow_mis_shaped = 1;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(other, NULL, path_of("fits"), &some, NULL));
    assert_true(first_of(other, "a.bias", 67) == (fsdp_test_rank() == 0 ? 0.25F : 0.0F));
    assert_true(first_of(other, "a.weight", 31 * 67) == (fsdp_test_rank() == 0 ? 3.0F : 0.0F));
    assert_true(first_of(other, "new", 3) == (fsdp_test_rank() == 0 ? 5.0F : 0.0F));
    fsdp_model_destroy(other);
    saved_model_close(&m);
}

/* A file as another program might write it, in f64 and f16, with names of its own. */
static void write_foreign(const char *name)
{
    static const char header[] = "{\"x.a.bias\":{\"dtype\":\"F64\",\"shape\":[67],\"data_offsets\":[0,536]},"
                                 "\"x.new\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[536,542]},"
                                 "\"mask\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[542,544]}}";
    const uint64_t    bytes    = sizeof header - 1;
    const double      half     = 0.5;
    const uint16_t    two[]    = {0x4000, 0x4000, 0x4000, 0};

    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        FILE *f = fopen(path_of(name), "wb");

        assert_non_null(f);
        assert_int_equal(1, fwrite(&bytes, sizeof bytes, 1, f));
        assert_int_equal(1, fwrite(header, bytes, 1, f));
        for (int i = 0; i < 67; i++) {
            assert_int_equal(1, fwrite(&half, sizeof half, 1, f));
        }
        assert_int_equal(1, fwrite(two, sizeof two, 1, f));
        assert_int_equal(0, fclose(f));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void a_file_from_elsewhere_loads_under_other_names(void **state)
{
    const fsdp_checkpoint_rename renames[] = {{"mask", NULL}, {"x.", ""}};
    fsdp_checkpoint_load_options options   = {
          .size = sizeof options, .allow_missing = 1, .renames = renames, .n_renames = 2};
    fsdp_checkpoint_state found = {.step = 5};
    fsdp_context         *ctx;

    (void)state;
    write_foreign("foreign.safetensors");
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    fsdp_model *model = open_other(ctx);
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(model, NULL, path_of("foreign.safetensors"), NULL, NULL));
    assert_says(ctx, "3 missing, 3 extra");
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(model, NULL, path_of("foreign.safetensors"), &options, &found));
    assert_int_equal(0, found.step);
    assert_true(first_of(model, "a.bias", 67) == (fsdp_test_rank() == 0 ? 0.5F : 0.0F));
    assert_true(first_of(model, "new", 3) == (fsdp_test_rank() == 0 ? 2.0F : 0.0F));
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static void two_programs_in_one_folder_are_told(void **state)
{
    fsdp_checkpoint *second;
    saved_model      m;

    (void)state;
    open_model(&m);
    fsdp_checkpoint *first = open_checkpoint(&m, "shared", NULL);
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_open(m.model, m.optimizer, path_of("shared"), NULL, &second));
    assert_says(m.ctx, "another program saves checkpoints here (host ");
    assert_int_equal(FSDP_OK, save(first, 1));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(first));
    save_once(&m, "shared", NULL, 2);
    saved_model_close(&m);
}

static void what_is_kept_is_the_last_ones_and_every_nth(void **state)
{
    const fsdp_checkpoint_options options = {
        .size = sizeof options, .dtype = FSDP_F32, .keep_last = 2, .keep_every = 4};
    saved_model m;

    (void)state;
    open_model(&m);
    fsdp_checkpoint *checkpoint = open_checkpoint(&m, "kept", &options);
    for (uint64_t step = 1; step <= 7; step++) {
        assert_int_equal(FSDP_OK, save(checkpoint, step));
    }
    assert_int_equal(3, count_entries("kept", "step-"));
    assert_true(exists("kept/step-000000004") && exists("kept/step-000000006") && exists("kept/step-000000007"));
    assert_int_equal(FSDP_OK, save(checkpoint, 7));
    assert_true(exists("kept/step-000000007-2"));
    MPI_Barrier(MPI_COMM_WORLD);
    assert_int_equal(FSDP_OK, save(checkpoint, 5)); /* gone back: what is ahead is another run's */
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_true(exists("kept/step-000000006") && exists("kept/step-000000007-2") && exists("kept/step-000000005"));
    assert_true(exists("kept/step-000000004") && !exists("kept/step-000000007"));
    saved_model_close(&m);
}

static void what_an_interrupted_save_has_left_is_removed(void **state)
{
    saved_model m;

    (void)state;
    open_model(&m);
    save_once(&m, "left", NULL, 1);
    if (fsdp_test_rank() == 0) {
        assert_int_equal(0, mkdir(path_of("left/.step-000000009.partial"), 0777));
    }
    write_text("left/.step-000000009.partial/model.safetensors", "half");
    save_once(&m, "left", NULL, 2);
    assert_int_equal(0, count_entries("left", ".step-"));
    saved_model_close(&m);
}

static void a_folder_that_cannot_be_made_is_an_error(void **state)
{
    fsdp_checkpoint *checkpoint;
    saved_model      m;

    (void)state;
    open_model(&m);
    assert_int_equal(FSDP_ERR_IO, fsdp_checkpoint_open(m.model, m.optimizer, "/proc/fsdp", NULL, &checkpoint));
    fsdp_test_capture_stderr();
    const fsdp_status status = fsdp_checkpoint_open(m.model, m.optimizer, path_of("no/such"), NULL, &checkpoint);
    assert_int_equal(1, fsdp_test_times_printed("no/such")); /* by all ranks together */
    assert_int_equal(FSDP_ERR_IO, status);
    assert_says(m.ctx, "no/such");
    saved_model_close(&m);
}

/* ---- disks that are full ----------------------------------------------------------------------------------------- */

/* A limit on the size of files: writes beyond it fail, as on a full disk. */
static void limit_files(int limited, rlim_t bytes)
{
    struct rlimit limit;

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = limited ? bytes : limit.rlim_max;
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &limit));
}

/* A rank, not 0 where there are more, that writes something beyond 3000 bytes; the last ones may hold padding only. */
static int one_that_writes(void)
{
    return fsdp_test_size() > 1 ? 1 : 0;
}

static void assert_nothing_left(saved_model *m, const char *name, uint64_t good)
{
    char path[FSDP_CHECKPOINT_PATH_BYTES];

    assert_int_equal(0, count_entries(name, ".step-"));
    assert_int_equal(1, count_entries(name, "step-"));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_latest(m->ctx, path_of(name), path, sizeof path));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m->model, m->optimizer, path, NULL, NULL));
    assert_true(good == hash_of(m));
}

static void fail_to_save(const char *name, int rank, rlim_t bytes)
{
    const fsdp_checkpoint_options options = {.size = sizeof options, .dtype = FSDP_F32, .keep_last = 1};
    const int                     mine    = rank < 0 || fsdp_test_rank() == rank;
    saved_model                   m;

    open_model(&m);
    fsdp_checkpoint *checkpoint = open_checkpoint(&m, name, &options);
    assert_int_equal(FSDP_OK, save(checkpoint, 1));
    const uint64_t good = hash_of(&m);
    saved_model_train(&m, 0, 1);
    limit_files(mine, bytes);
    assert_int_equal(FSDP_ERR_IO, save(checkpoint, 2));
    limit_files(0, 0);
    assert_says(m.ctx, ".safetensors");
    assert_nothing_left(&m, name, good);
    assert_int_equal(FSDP_OK, save(checkpoint, 2)); /* with room again */
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    saved_model_close(&m);
}

static void a_disk_that_is_full_for_one_rank_or_all_leaves_the_last_checkpoint(void **state)
{
    (void)state;
    fail_to_save("full", -1, 3000);
    fail_to_save("full-for-one", one_that_writes(), 3000);
}

/* ---- behind the program's back ----------------------------------------------------------------------------------- */

static const fsdp_checkpoint_options asynchronous = {
    .size = sizeof asynchronous, .dtype = FSDP_F32, .keep_last = 1, .asynchronous = 1};

static void an_asynchronous_save_goes_on_with_the_steps_and_the_next_one_waits(void **state)
{
    const fsdp_checkpoint_state at   = {.step = 2};
    int                         done = 0;
    saved_model                 m;

    (void)state;
    open_model(&m);
    fsdp_checkpoint *checkpoint = open_checkpoint(&m, "async", &asynchronous);
    saved_model_train(&m, 0, 2);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(checkpoint, &at));
    for (size_t step = 2; !done; step++) {
        saved_model_train(&m, step, 1);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_progress(checkpoint, &done));
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_progress(checkpoint, &done));
    assert_int_equal(1, done);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(checkpoint, &(fsdp_checkpoint_state){.step = 9}));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(checkpoint, &at)); /* waits for that */
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_true(exists("async/step-000000009") && exists("async/step-000000002"));
    saved_model_close(&m);
}

/* In the process that fork() has made: whatever it does to the checkpoint, it ends, and nothing is taken away. */
static void close_in_child(fsdp_checkpoint *checkpoint)
{
    enum { SECONDS = 60 };

    (void)alarm(SECONDS); /* where a call waits after all */
    const bool refused = fsdp_checkpoint_wait(checkpoint) == FSDP_ERR_STATE;
    (void)fsdp_checkpoint_close(checkpoint);
    _exit(refused ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void a_fork_does_not_harm_a_save_that_is_under_way(void **state)
{
    const fsdp_checkpoint_state at = {.step = 2};
    int                         status;
    saved_model                 m;

    (void)state;
    open_model(&m);
    fsdp_checkpoint *checkpoint = open_checkpoint(&m, "forked", &asynchronous);
    saved_model_train(&m, 0, 2);
    const uint64_t saved = hash_of(&m);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(checkpoint, &at));
    const pid_t child = fork();
    if (child == 0) {
        close_in_child(checkpoint);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_wait(checkpoint));
    saved_model_train(&m, 2, 2);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path_of("forked"), NULL, NULL));
    assert_true(saved == hash_of(&m));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    saved_model_close(&m);
}

static void what_is_loaded_is_what_was_copied(void **state)
{
    const fsdp_checkpoint_state at = {.step = 2};
    saved_model                 m;

    (void)state;
    open_model(&m);
    fsdp_checkpoint *checkpoint = open_checkpoint(&m, "copied", &asynchronous);
    saved_model_train(&m, 0, 2);
    const uint64_t saved = hash_of(&m);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(checkpoint, &at));
    saved_model_train(&m, 2, 2);
    const uint64_t later = hash_of(&m);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_wait(checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path_of("copied"), NULL, NULL));
    assert_true(saved == hash_of(&m) && saved != later);
    saved_model_train(&m, 2, 2);
    assert_true(later == hash_of(&m));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    saved_model_close(&m);
}

static void a_write_that_fails_later_is_reported_once_by_the_next_call(void **state)
{
    const fsdp_checkpoint_state two = {.step = 2}, three = {.step = 3};
    saved_model                 m;

    (void)state;
    open_model(&m);
    fsdp_checkpoint *checkpoint = open_checkpoint(&m, "later", &asynchronous);
    assert_int_equal(FSDP_OK, save(checkpoint, 1));
    const uint64_t good = hash_of(&m);
    limit_files(fsdp_test_rank() == one_that_writes(), 3000);
    if (fsdp_test_size() == 1) { /* whose rank 0 makes the files at once */
        assert_int_equal(FSDP_ERR_IO, fsdp_checkpoint_save_async(checkpoint, &two));
    } else {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(checkpoint, &two));
        saved_model_train(&m, 0, 1);
        assert_int_equal(FSDP_ERR_IO, fsdp_checkpoint_save_async(checkpoint, &three));
    }
    limit_files(0, 0);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_wait(checkpoint));
    assert_nothing_left(&m, "later", good);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(checkpoint, &three));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_true(exists("later/step-000000003"));
    saved_model_close(&m);
}

/* ---- arguments, states, signals ---------------------------------------------------------------------------------- */

static void wrong_calls_are_the_same_error_on_every_rank(void **state)
{
    const int             odd  = fsdp_test_rank() == fsdp_test_size() - 1;
    fsdp_checkpoint_state at   = {.step = 1};
    fsdp_checkpoint      *none = NULL;
    saved_model           m;

    (void)state;
    open_model(&m);
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_open(NULL, NULL, "x", NULL, &none));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_open(m.model, NULL, odd ? NULL : path_of("calls"), NULL, &none));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_load(m.model, NULL, odd ? "" : path_of("calls"), NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_save(NULL, &at));
    fsdp_checkpoint *checkpoint = open_checkpoint(&m, "calls", NULL);
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_save(checkpoint, odd ? NULL : &at));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_save_async(checkpoint, &at));
    assert_says(m.ctx, "asynchronous");
    at.sample = odd ? 5 : 6;
    assert_int_equal(fsdp_test_size() > 1 ? FSDP_ERR_MISMATCH : FSDP_OK, fsdp_checkpoint_save(checkpoint, &at));
    at.sample = 0;
    assert_int_equal(FSDP_OK, fsdp_unit_begin_forward(m.units[0]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_save(checkpoint, &at));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_load(m.model, NULL, path_of("calls"), NULL, NULL));
    assert_int_equal(FSDP_OK, fsdp_unit_end_forward(m.units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_begin_backward(m.units[0]));
    assert_int_equal(FSDP_OK, fsdp_unit_end_backward(m.units[0]));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_save(checkpoint, &at));
    assert_says(m.ctx, "gradients that no step has used");
    assert_int_equal(FSDP_OK, fsdp_model_zero_grad(m.model));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &at));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(NULL));
    saved_model_close(&m);
}

static void text_that_is_not_utf8_is_refused_by_the_save(void **state)
{
    fsdp_checkpoint_state at = {.step = 2}, back;
    saved_model           m;

    (void)state;
    open_model(&m);
    fsdp_checkpoint *checkpoint = open_checkpoint(&m, "text", NULL);
    assert_int_equal(FSDP_OK, save(checkpoint, 1));
    memcpy(at.text, "caf\xe9", 5); /* Latin-1 */
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_save(checkpoint, &at));
    assert_says(m.ctx, "not UTF-8: byte 3 is 0xe9");
    assert_int_equal(1, count_entries("text", "step-"));
    memset(at.text, 1, sizeof at.text - 1); /* each takes six bytes in the file */
    memcpy(at.text, "caf\xc3\xa9\"\\", 7);
    at.text[sizeof at.text - 1] = '\0';
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &at));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path_of("text"), NULL, &back));
    assert_string_equal(at.text, back.text);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    saved_model_close(&m);
}

static void so_is_a_name_by_open(void **state)
{
    const fsdp_tensor tensor = {.name = "w\xff", .n_dims = 1, .shape = {3}, .dtype = FSDP_F32};
    fsdp_checkpoint  *none   = NULL;
    fsdp_context     *ctx;
    fsdp_model       *model;
    fsdp_unit        *unit;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_OK, fsdp_model_create(ctx, NULL, &model));
    assert_int_equal(FSDP_OK, fsdp_unit_add(model, "u", &tensor, 1, &unit));
    assert_int_equal(FSDP_OK, fsdp_model_commit(model));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_open(model, NULL, path_of("name"), NULL, &none));
    assert_says(ctx, "unit 'u', tensor 0, 'w...': the name is not UTF-8: byte 1 is 0xff");
    assert_null(none);
    fsdp_model_destroy(model);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void a_checkpoint_that_is_not_closed_is_released(void **state)
{
    saved_model m;

    (void)state;
    open_model(&m);
    (void)open_checkpoint(&m, "leaked", &asynchronous);
    assert_int_equal(FSDP_ERR_LEAK, fsdp_finalize(m.ctx));
    MPI_Comm_free(&m.comm);
    open_model(&m);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(open_checkpoint(&m, "leaked", NULL))); /* the lock is free again */
    saved_model_close(&m);
}

static void a_signal_on_one_rank_is_known_to_all(void **state)
{
    const int     bad[]         = {SIGUSR2, SIGKILL};
    int           signal_number = -1;
    fsdp_context *ctx;

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_ERR_ARG, fsdp_stop_watch(bad, 2));
    assert_int_equal(FSDP_OK, fsdp_stop_watch(NULL, 0));
    assert_int_equal(FSDP_ERR_STATE, fsdp_stop_watch(NULL, 0));
    assert_int_equal(FSDP_OK, fsdp_stop_agree(ctx, &signal_number));
    assert_int_equal(0, signal_number);
    if (fsdp_test_rank() == fsdp_test_size() / 2) {
        assert_int_equal(0, raise(SIGTERM));
        assert_int_equal(SIGTERM, fsdp_stop_signal());
    }
    assert_int_equal(FSDP_OK, fsdp_stop_agree(ctx, &signal_number));
    assert_int_equal(SIGTERM, signal_number);
    assert_int_equal(FSDP_ERR_ARG, fsdp_stop_agree(ctx, fsdp_test_rank() == 0 ? NULL : &signal_number));
    fsdp_stop_unwatch();
    assert_int_equal(0, fsdp_stop_signal());
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_flipped_bit_anywhere_is_found_and_nothing_changes),
    cmocka_unit_test(a_truncated_file_is_found_and_nothing_changes),
    cmocka_unit_test(a_latest_that_points_nowhere_is_an_error_and_none_is_not),
    cmocka_unit_test(a_newer_version_is_refused_by_name),
    cmocka_unit_test(what_does_not_fit_is_counted_refused_and_can_be_allowed),
    cmocka_unit_test(a_file_from_elsewhere_loads_under_other_names),
    cmocka_unit_test(two_programs_in_one_folder_are_told),
    cmocka_unit_test(what_is_kept_is_the_last_ones_and_every_nth),
    cmocka_unit_test(what_an_interrupted_save_has_left_is_removed),
    cmocka_unit_test(a_folder_that_cannot_be_made_is_an_error),
    cmocka_unit_test(a_disk_that_is_full_for_one_rank_or_all_leaves_the_last_checkpoint),
    cmocka_unit_test(an_asynchronous_save_goes_on_with_the_steps_and_the_next_one_waits),
    cmocka_unit_test(a_fork_does_not_harm_a_save_that_is_under_way),
    cmocka_unit_test(what_is_loaded_is_what_was_copied),
    cmocka_unit_test(a_write_that_fails_later_is_reported_once_by_the_next_call),
    cmocka_unit_test(wrong_calls_are_the_same_error_on_every_rank),
    cmocka_unit_test(text_that_is_not_utf8_is_refused_by_the_save),
    cmocka_unit_test(so_is_a_name_by_open),
    cmocka_unit_test(a_checkpoint_that_is_not_closed_is_released),
    cmocka_unit_test(a_signal_on_one_rank_is_known_to_all),
};

int main(int argc, char **argv)
{
    return fsdp_test_main(argc, argv, tests, saved_folder_make, saved_folder_remove);
}
