/*
 * File systems that lack something, and calls that fail: on them a save works, or names what has failed. Whatever happens, `latest`
 * names a whole checkpoint that loads, and nothing that has the name of a checkpoint is less than one.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_calls.h"
#include "tests/shard/checkpoint/saved_model.h"

enum { KERNEL_ENOTSUPP = 524, ALWAYS = 1000000, MANY_CALLS = 40 };

static const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", saved_folder, name);
    return path;
}

static void open_model(saved_model *m)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.seed = 7;
    assert_true(saved_model_open(m, fsdp_test_size(), &options, FSDP_ADAMW));
}

static fsdp_status save(fsdp_checkpoint *checkpoint, uint64_t step, int asynchronous)
{
    const fsdp_checkpoint_state state = {.step = step};
    const fsdp_status           status =
        asynchronous ? fsdp_checkpoint_save_async(checkpoint, &state) : fsdp_checkpoint_save(checkpoint, &state);

    return status == FSDP_OK ? fsdp_checkpoint_wait(checkpoint) : status;
}

/* Opens a folder, saves a step there, and closes it: the first error. */
static fsdp_status save_in(saved_model *m, const char *name, uint64_t step, size_t keep_last, int asynchronous)
{
    const fsdp_checkpoint_options options = {
        .size = sizeof options, .dtype = FSDP_F32, .keep_last = keep_last, .asynchronous = asynchronous};
    fsdp_checkpoint  *checkpoint;
    const fsdp_status opened = fsdp_checkpoint_open(m->model, m->optimizer, path_of(name), &options, &checkpoint);

    if (opened != FSDP_OK) {
        return opened;
    }
    const fsdp_status saved = save(checkpoint, step, asynchronous);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    return saved;
}

/* The step of a checkpoint, all of which is good, in a folder of them or by its own path. */
static uint64_t load(saved_model *m, const char *path)
{
    fsdp_checkpoint_state state  = {.step = 0};
    const fsdp_status     status = fsdp_checkpoint_load(m->model, m->optimizer, path, NULL, &state);

    if (status != FSDP_OK) {
        fail_msg("%s: %s", path, fsdp_last_error(m->ctx));
    }
    return state.step;
}

/* Loads all that has the name of a checkpoint. Returns how many entries there are that begin with a period, but for the lock. */
static int check_all(saved_model *m, const char *name)
{
    char names[64][64], inside[128];
    int  n = 0, hidden = 0;
    DIR *dir = opendir(path_of(name));

    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strncmp(entry->d_name, "step-", 5) == 0) {
            assert_true(n < 64);
            (void)snprintf(names[n++], sizeof names[0], "%.60s", entry->d_name);
        }
        hidden += entry->d_name[0] == '.' && strlen(entry->d_name) > 2 && strcmp(entry->d_name, ".lock") != 0;
    }
    (void)closedir(dir);
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(names, (int)sizeof names, MPI_CHAR, 0, MPI_COMM_WORLD); /* in rank 0's order */
    for (int i = 0; i < n; i++) {
        (void)snprintf(inside, sizeof inside, "%.60s/%.60s", name, names[i]);
        (void)load(m, path_of(inside));
    }
    return hidden;
}

/* ---- what a file system lacks, or fails at ----------------------------------------------------------------------- */

typedef struct fault {
    failing_call call;
    int          code;
    const char  *error; /* what the error says; NULL: it works all the same */
} fault;

static const fault FAULTS[] = {
    {CALL_FLOCK, ENOSYS, NULL},
    {CALL_FLOCK, EOPNOTSUPP, NULL},
    {CALL_FLOCK, ENOLCK, NULL},
    {CALL_FLOCK, KERNEL_ENOTSUPP, NULL},
    {CALL_FLOCK, EIO, "/.lock: cannot lock: "},
    {CALL_OPEN_DIRECT, EINVAL, NULL},
    {CALL_WRITE_DIRECT, EINVAL, NULL},
    {CALL_WRITE_DIRECT, EIO, NULL},
    {CALL_FALLOCATE, EOPNOTSUPP, NULL},
    {CALL_FALLOCATE, ENOSYS, NULL},
    {CALL_FALLOCATE, ENOSPC, ".safetensors: cannot reserve room on the disk: "},
    {CALL_SYNC_FOLDER, EINVAL, NULL},
    {CALL_SYNC_FOLDER, ENOTSUP, NULL},
    {CALL_SYNC_FOLDER, KERNEL_ENOTSUPP, NULL},
    {CALL_SYNC_FOLDER, EIO, ".partial: cannot sync the folder: "},
};
enum { N_FAULTS = sizeof FAULTS / sizeof FAULTS[0] };

/* One fault, or two of them; the error may be of either. */
static void save_with(saved_model *m, const fault *a, const fault *b, uint64_t step, uint64_t *latest)
{
    const char *first = a->error != NULL ? a->error : b->error, *second = b->error != NULL ? b->error : a->error;

    failing_calls_set(a->call, a->code, 0, ALWAYS);
    failing_calls_set(b->call, b->code, 0, ALWAYS);
    const fsdp_status status = save_in(m, "odd", step, 1, step % 2 == 0);
    failing_calls_clear();
    if (first == NULL) {
        assert_int_equal(FSDP_OK, status);
        *latest = step;
    } else {
        assert_int_equal(FSDP_ERR_IO, status);
        if (strstr(fsdp_last_error(m->ctx), first) == NULL) {
            assert_says(m->ctx, second);
        }
    }
    assert_int_equal(*latest, load(m, path_of("odd")));
    assert_int_equal(0, check_all(m, "odd"));
}

static void a_save_works_or_names_what_failed_and_latest_is_good(void **state)
{
    uint64_t    step = 1, latest = 1;
    saved_model m;

    (void)state;
    open_model(&m);
    assert_int_equal(FSDP_OK, save_in(&m, "odd", step, 1, 0));
    for (int i = 0; i < N_FAULTS; i++) {
        for (int k = i; k < N_FAULTS; k++) { /* with itself: alone */
            if (k == i || FAULTS[k].call != FAULTS[i].call) {
                save_with(&m, &FAULTS[i], &FAULTS[k], ++step, &latest);
            }
        }
    }
    saved_model_close(&m);
}

static void the_setting_says_which_lock_is_wanted(void **state)
{
    saved_model m;

    (void)state;
    assert_int_equal(0, setenv("FSDP_CHECKPOINT_LOCK", "flock", 1));
    open_model(&m);
    assert_int_equal(0, unsetenv("FSDP_CHECKPOINT_LOCK"));
    failing_calls_set(CALL_FLOCK, ENOSYS, 0, ALWAYS);
    assert_int_equal(FSDP_ERR_IO, save_in(&m, "wanted", 1, 1, 0));
    failing_calls_clear();
    assert_says(m.ctx, "/.lock: cannot lock: ");
    assert_says(m.ctx, "set FSDP_CHECKPOINT_LOCK to auto or owner");
    assert_int_equal(FSDP_OK, save_in(&m, "wanted", 1, 1, 0));
    saved_model_close(&m);
}

/* ---- one call that fails ----------------------------------------------------------------------------------------- */

/* Lets one call after the other fail, in one save each of a fresh folder, until a save makes fewer calls. */
static int try_each(saved_model *m, failing_call call, int code, const char *name,
                    void (*check)(saved_model *m, const char *name, fsdp_status status))
{
    char folder[64];
    int  after = 0;

    for (int failed = 1; failed; after++) {
        assert_true(after < MANY_CALLS);
        (void)snprintf(folder, sizeof folder, "%s-%d", name, after);
        assert_int_equal(FSDP_OK, save_in(m, folder, 1, 1, 0));
        failing_calls_set(call, code, after, 1);
        const fsdp_status status = save_in(m, folder, 2, 1, after % 2);
        failed                   = failing_calls_count(call);
        failing_calls_clear();
        MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!failed) {
            assert_int_equal(FSDP_OK, status);
        }
        check(m, folder, status);
        assert_int_equal(FSDP_OK, save_in(m, folder, 3, 1, 0));
        assert_int_equal(3, load(m, path_of(folder)));
        assert_int_equal(0, check_all(m, folder));
    }
    return after - 1;
}

/* An error says so where `latest` has moved, and then that checkpoint stays. */
static void is_as_it_says(saved_model *m, const char *name, fsdp_status status)
{
    const int moved = status == FSDP_OK || strstr(fsdp_last_error(m->ctx), "`latest` names step-000000002") != NULL;

    assert_true(status == FSDP_OK || status == FSDP_ERR_IO);
    assert_int_equal(moved ? 2 : 1, load(m, path_of(name)));
    assert_int_equal(0, check_all(m, name));
}

static void an_error_behind_the_move_of_latest_says_that_it_has_moved(void **state)
{
    saved_model m;

    (void)state;
    open_model(&m);
    assert_int_equal(3, try_each(&m, CALL_SYNC_FOLDER, EIO, "sync", is_as_it_says));
    saved_model_close(&m);
}

static void works(saved_model *m, const char *name, fsdp_status status)
{
    assert_int_equal(FSDP_OK, status);
    assert_int_equal(2, load(m, path_of(name)));
    assert_int_equal(0, check_all(m, name));
}

static void a_rename_that_fails_leaves_the_last_one_and_one_that_was_done_counts(void **state)
{
    saved_model m;

    (void)state;
    open_model(&m);
    assert_int_equal(3, try_each(&m, CALL_RENAME, EIO, "rename", is_as_it_says));
    (void)try_each(&m, CALL_RENAME_DONE, ENOENT, "renamed", works);
    saved_model_close(&m);
}

/* A removal that has come to its end half way: what is left has not the name of a checkpoint, and goes with the next save. */
static void a_prune_that_ends_half_way_leaves_no_broken_checkpoint(void **state)
{
    saved_model m;

    (void)state;
    open_model(&m);
    for (int after = 0; after < 3; after++) {
        char name[32];

        (void)snprintf(name, sizeof name, "prune-%d", after);
        assert_int_equal(FSDP_OK, save_in(&m, name, 1, 1, 0));
        failing_calls_set(CALL_UNLINK, EIO, after, ALWAYS);
        assert_int_equal(FSDP_OK, save_in(&m, name, 2, 1, 0));
        failing_calls_clear();
        assert_int_equal(1, check_all(&m, name));
        assert_int_equal(FSDP_OK, save_in(&m, name, 3, 1, 0));
        assert_int_equal(0, check_all(&m, name));
    }
    saved_model_close(&m);
}

/* ---- where the folder is ----------------------------------------------------------------------------------------- */

static void go_to(const char *folder)
{
    assert_int_equal(0, chdir(folder));
}

/* Ranks with working folders of their own, as on disks that they do not share. */
static void a_folder_that_ranks_do_not_share_is_found_at_open(void **state)
{
    const fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_checkpoint              *checkpoint;
    char                          own[32], before[1024];
    saved_model                   m;

    (void)state;
    open_model(&m);
    assert_non_null(getcwd(before, sizeof before));
    (void)snprintf(own, sizeof own, "of-%d", fsdp_test_rank());
    (void)mkdir(path_of(own), 0777);
    go_to(path_of(own));
    const fsdp_status status = fsdp_checkpoint_open(m.model, m.optimizer, "run", &options, &checkpoint);
    if (fsdp_test_size() > 1) {
        assert_int_equal(FSDP_ERR_IO, status);
        assert_says(m.ctx, "/run: on host ");
        assert_says(m.ctx, "this is not the folder that rank 0 has");
    } else {
        assert_int_equal(FSDP_OK, status);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    }
    MPI_Barrier(MPI_COMM_WORLD); /* rank 0 has removed its mark */
    assert_int_equal(0, check_all(&m, "of-0/run"));
    go_to(before);
    saved_model_close(&m);
}

static void a_relative_path_is_where_it_was_at_open(void **state)
{
    const fsdp_checkpoint_options options = {
        .size = sizeof options, .dtype = FSDP_F32, .keep_last = 3, .asynchronous = 1};
    fsdp_checkpoint *checkpoint;
    char             before[1024];
    saved_model      m;

    (void)state;
    open_model(&m);
    assert_non_null(getcwd(before, sizeof before));
    go_to(saved_folder);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m.model, m.optimizer, "relative", &options, &checkpoint));
    go_to("/");
    assert_int_equal(FSDP_OK, save(checkpoint, 1, 0));
    assert_int_equal(FSDP_OK, save(checkpoint, 2, 1));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    go_to(before);
    assert_int_equal(2, load(&m, path_of("relative")));
    assert_int_equal(0, check_all(&m, "relative"));
    saved_model_close(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_save_works_or_names_what_failed_and_latest_is_good),
    cmocka_unit_test(the_setting_says_which_lock_is_wanted),
    cmocka_unit_test(an_error_behind_the_move_of_latest_says_that_it_has_moved),
    cmocka_unit_test(a_rename_that_fails_leaves_the_last_one_and_one_that_was_done_counts),
    cmocka_unit_test(a_prune_that_ends_half_way_leaves_no_broken_checkpoint),
    cmocka_unit_test(a_folder_that_ranks_do_not_share_is_found_at_open),
    cmocka_unit_test(a_relative_path_is_where_it_was_at_open),
};

int main(int argc, char **argv)
{
    return fsdp_test_main(argc, argv, tests, saved_folder_make, saved_folder_remove);
}
