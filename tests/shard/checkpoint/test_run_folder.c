/*
 * Who may save in a folder: by flock(2), by a file where that is not to be had, and by nobody's leave; and what of other programs'
 * saves is left alone. The working folder is empty at the start of the group.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "failing_calls.h"
#include "shard/checkpoint/folder/flock_reach.h"
#include "shard/checkpoint/folder/run_folder.h"
#include "test_files.h"
#include "tests/support/unit_test.h"

enum { KERNEL_ENOTSUPP = 524, ALWAYS = 1000000 };

static fsdpi_problem problem;

static fsdp_status try_open(fsdpi_run_folder *folder, const char *path, fsdp_checkpoint_lock wish)
{
    problem = (fsdpi_problem){0};
    assert_int_equal(FSDP_OK, fsdpi_run_folder_set(folder, path, &problem));
    return fsdpi_run_folder_open(folder, wish, &problem);
}

static void open_it(fsdpi_run_folder *folder, const char *path, fsdp_checkpoint_lock wish)
{
    if (try_open(folder, path, wish) != FSDP_OK) {
        fail_msg("%s", problem.text);
    }
}

static void assert_refused(const char *path, fsdp_checkpoint_lock wish, const char *words)
{
    fsdpi_run_folder folder;

    assert_int_equal(FSDP_ERR_STATE, try_open(&folder, path, wish));
    test_contains(problem.text, "another program saves checkpoints here (");
    test_contains(problem.text, words);
}

static void without_flock(int code)
{
    failing_calls_set(CALL_FLOCK, code, 0, ALWAYS);
}

static int is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static fsdp_status save(fsdpi_run_folder *folder, uint64_t step)
{
    fsdpi_run_folder_name_partial(folder, step);
    fsdp_status status = fsdpi_run_folder_begin(folder, &problem);
    status             = status == FSDP_OK ? fsdpi_run_folder_commit(folder, step, &problem) : status;
    if (status != FSDP_OK) {
        fsdpi_run_folder_abandon(folder);
    }
    return status;
}

/* ---- without flock ----------------------------------------------------------------------------------------------- */

static void a_file_holds_the_folder_where_flock_is_not_to_be_had(void **state)
{
    static const int codes[] = {ENOSYS, EOPNOTSUPP, ENOLCK, KERNEL_ENOTSUPP};
    char             me[64];
    fsdpi_run_folder folder;

    (void)state;
    (void)snprintf(me, sizeof me, ", process %ld, a sign of life ", (long)getpid());
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        without_flock(codes[i]);
        open_it(&folder, "none", FSDP_CHECKPOINT_LOCK_AUTO);
        assert_true(is_there("none/.owner"));
        assert_refused("none", FSDP_CHECKPOINT_LOCK_AUTO, me);
        failing_calls_clear();
        assert_refused("none", FSDP_CHECKPOINT_LOCK_AUTO,
                       "it counts as gone after 60 s"); /* from a host that has flock */
        assert_int_equal(FSDP_OK, save(&folder, i));
        fsdpi_run_folder_close(&folder);
        assert_false(is_there("none/.owner"));
    }
    without_flock(EIO);
    assert_int_equal(FSDP_ERR_IO, try_open(&folder, "none", FSDP_CHECKPOINT_LOCK_AUTO));
    test_contains(problem.text, "/.lock: cannot lock: ");
    test_contains(problem.text, "set FSDP_CHECKPOINT_LOCK to owner");
    failing_calls_clear();
}

static void the_setting_chooses(void **state)
{
    fsdpi_run_folder folder;

    (void)state;
    without_flock(ENOSYS);
    assert_int_equal(FSDP_ERR_IO, try_open(&folder, "chosen", FSDP_CHECKPOINT_LOCK_FLOCK));
    test_contains(problem.text, "set FSDP_CHECKPOINT_LOCK to auto or owner");
    without_flock(EIO);
    open_it(&folder, "chosen", FSDP_CHECKPOINT_LOCK_OWNER);
    fsdpi_run_folder_close(&folder);
    failing_calls_clear();
    open_it(&folder, "chosen", FSDP_CHECKPOINT_LOCK_FLOCK);
    assert_false(is_there("chosen/.owner"));
    assert_refused("chosen", FSDP_CHECKPOINT_LOCK_OWNER, ", process ");
    fsdpi_run_folder_close(&folder);
    open_it(&folder, "chosen", FSDP_CHECKPOINT_LOCK_OWNER);
    assert_true(is_there("chosen/.owner"));
    without_flock(ENOSYS);
    assert_refused("chosen", FSDP_CHECKPOINT_LOCK_OWNER, ", process ");
    failing_calls_clear();
    fsdpi_run_folder_close(&folder);
}

static void two_that_take_no_lock_do_not_touch_each_others_saves(void **state)
{
    fsdpi_run_folder a, b;

    (void)state;
    open_it(&a, "free", FSDP_CHECKPOINT_LOCK_NONE);
    open_it(&b, "free", FSDP_CHECKPOINT_LOCK_NONE);
    fsdpi_run_folder_name_partial(&a, 1);
    assert_int_equal(FSDP_OK, fsdpi_run_folder_begin(&a, &problem));
    assert_int_equal(FSDP_OK, save(&b, 1));
    fsdpi_run_folder_name_partial(&b, 1);
    fsdpi_run_folder_abandon(&b); /* as after an error of which nothing came */
    assert_int_equal(FSDP_OK, fsdpi_run_folder_commit(&a, 1, &problem));
    assert_true(is_there("free/step-000000001") && is_there("free/step-000000001-2"));
    assert_false(is_there("free/.lock"));
    fsdpi_run_folder_close(&a);
    fsdpi_run_folder_close(&b);
}

/* ---- programs that are gone -------------------------------------------------------------------------------------- */

static int run_owner(const int ready, const int end)
{
    fsdpi_run_folder folder;
    char             byte = 0;

    if (try_open(&folder, "gone", FSDP_CHECKPOINT_LOCK_AUTO) != FSDP_OK || write(ready, &byte, 1) != 1) {
        return EXIT_FAILURE;
    }
    return read(end, &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE; /* without closing */
}

static void one_that_has_ended_on_this_host_is_gone_at_once(void **state)
{
    int              ready[2], end[2], status;
    char             byte = 0;
    fsdpi_run_folder folder;

    (void)state;
    without_flock(ENOSYS);
    assert_int_equal(0, pipe(ready));
    assert_int_equal(0, pipe(end));
    const pid_t child = fork();
    if (child == 0) {
        _exit(run_owner(ready[1], end[0]));
    }
    assert_true(child > 0);
    assert_int_equal(1, read(ready[0], &byte, 1));
    assert_refused("gone", FSDP_CHECKPOINT_LOCK_AUTO, ", process ");
    assert_int_equal(1, write(end[1], &byte, 1));
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
    assert_true(is_there("gone/.owner"));
    open_it(&folder, "gone", FSDP_CHECKPOINT_LOCK_AUTO);
    fsdpi_run_folder_close(&folder);
    failing_calls_clear();
    for (int i = 0; i < 2; i++) {
        (void)close(ready[i]);
        (void)close(end[i]);
    }
}

/* A process that was made meanwhile, and knows nothing of it. */
static void what_is_given_back_is_free_whoever_was_forked(void **state)
{
    int              end[2], status;
    char             byte = 0;
    fsdpi_run_folder folder;

    (void)state;
    assert_int_equal(0, pipe(end));
    open_it(&folder, "forked", FSDP_CHECKPOINT_LOCK_FLOCK);
    const pid_t child = fork();
    if (child == 0) {
        _exit(read(end[0], &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    assert_true(child > 0);
    fsdpi_run_folder_close(&folder);
    open_it(&folder, "forked", FSDP_CHECKPOINT_LOCK_FLOCK);
    fsdpi_run_folder_close(&folder);
    assert_int_equal(1, write(end[1], &byte, 1));
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
    (void)close(end[0]);
    (void)close(end[1]);
}

static const char ELSEWHERE[] =
    "host elsewhere, process 7, started 8, machine 0000000000000009, job 0123456789abcdef\n";

static void write_owner(const char *path, const char *line, time_t age)
{
    struct timespec times[2];
    FILE           *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(line, file) >= 0);
    assert_int_equal(0, fclose(file));
    assert_int_equal(0, clock_gettime(CLOCK_REALTIME, &times[0]));
    times[0].tv_sec -= age;
    times[1] = times[0];
    assert_int_equal(0, utimensat(AT_FDCWD, path, times, 0));
}

static void one_of_another_host_is_gone_after_a_minute(void **state)
{
    static const fsdp_checkpoint_lock wishes[] = {FSDP_CHECKPOINT_LOCK_OWNER, FSDP_CHECKPOINT_LOCK_FLOCK};
    fsdpi_run_folder                  folder;

    (void)state;
    assert_int_equal(0, mkdir("far", 0777));
    for (size_t i = 0; i < 2; i++) {
        write_owner("far/.owner", ELSEWHERE, 30);
        assert_refused("far", wishes[i], "(host elsewhere, process 7, a sign of life 3");
        write_owner("far/.owner", "", 0); /* it is about to say who it is */
        assert_refused("far", wishes[i], "(it has not said which, a sign of life ");
        write_owner("far/.owner", ELSEWHERE, 61);
        open_it(&folder, "far", wishes[i]);
        fsdpi_run_folder_close(&folder);
        assert_false(is_there("far/.owner"));
    }
}

static void who_has_been_taken_for_gone_finds_that_at_its_next_save(void **state)
{
    fsdpi_run_folder folder;

    (void)state;
    open_it(&folder, "lost", FSDP_CHECKPOINT_LOCK_OWNER);
    assert_int_equal(FSDP_OK, save(&folder, 1));
    fsdpi_run_folder_name_partial(&folder, 2);
    assert_int_equal(FSDP_OK, fsdpi_run_folder_begin(&folder, &problem));
    write_owner("lost/.owner", ELSEWHERE, 0); /* while it writes */
    assert_int_equal(FSDP_ERR_STATE, fsdpi_run_folder_commit(&folder, 2, &problem));
    test_contains(problem.text, "/.owner: removed or replaced by another program");
    fsdpi_run_folder_abandon(&folder);
    assert_int_equal(FSDP_ERR_STATE, save(&folder, 3));
    assert_false(is_there("lost/step-000000002") || is_there("lost/step-000000003"));
    fsdpi_run_folder_close(&folder);
    assert_true(is_there("lost/.owner")); /* the other one's */
}

static time_t time_of(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 ? about.st_mtime : 0;
}

static void it_is_touched_again_and_again(void **state)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    fsdpi_owner           owner;

    (void)state;
    assert_int_equal(0, mkdir("touched", 0777));
    const int clock = open("touched/clock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(FSDP_OK, fsdpi_owner_take(&owner, "touched", "0123456789abcdef", clock, 1, &problem));
    for (int i = 0; i < 2; i++) {
        const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

        assert_int_equal(0, utimensat(AT_FDCWD, "touched/.owner", old, 0));
        for (int looks = 0; time_of("touched/.owner") <= 1000; looks++) {
            assert_true(looks < 60000);
            (void)nanosleep(&moment, NULL);
        }
    }
    assert_int_equal(FSDP_OK, fsdpi_owner_check(&owner, &problem));
    fsdpi_owner_release(&owner);
    fsdpi_owner_release(&owner);
    assert_false(is_there("touched/.owner"));
    (void)close(clock);
}

/* ---- flock that other hosts do not hear of ----------------------------------------------------------------------- */

static void mounts_whose_locks_stay_on_this_host_are_known(void **state)
{
    static const char *const per_host[] = {
        "98 32 0:52 / /lus rw,relatime shared:1 - lustre 10.0.0.1@tcp:/lus rw,checksum,localflock,nouser_xattr\n",
        "98 32 0:52 / /home rw - nfs4 server:/home rw,vers=4.2,local_lock=all,addr=10.0.0.1\n",
        "98 32 0:52 / /home rw - nfs server:/home rw,local_lock=flock\n",
        "98 32 0:52 / /beegfs rw - beegfs beegfs_nodev rw,cfgFile=/etc/beegfs/beegfs-client.conf\n",
        "98 32 0:52 / /mnt rw - fuse.sshfs host: rw,user_id=0\n",
    };
    static const char *const others[] = {
        "98 32 0:52 / /lus rw,relatime - lustre 10.0.0.1@tcp:/lus rw,checksum,flock,nouser_xattr\n",
        "98 32 0:52 / /home rw - nfs4 server:/home rw,vers=4.2,local_lock=none\n",
        "98 32 0:52 / /localflock rw,localflock - ext4 /dev/sda1 rw\n",
        "98 32 8:1 / /mnt rw - fuseblk /dev/sda1 rw\n",
        "damaged\n",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof per_host / sizeof per_host[0]; i++) {
        assert_true(fsdpi_mount_locks_per_host(per_host[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(fsdpi_mount_locks_per_host(others[i]));
    }
    assert_false(fsdpi_flock_is_per_host("not/there"));
    assert_false(fsdpi_flock_is_per_host("/proc"));
}

/* ---- the token of fsdp-run ----------------------------------------------------------------------------------------- */

static void give_token(const char *folder, fsdpi_token *token)
{
    char text[FSDPI_TOKEN_TEXT_BYTES];

    problem = (fsdpi_problem){0};
    assert_int_equal(FSDP_OK, fsdpi_token_take(folder, token, &problem));
    fsdpi_token_text(token, text);
    (void)setenv(FSDPI_TOKEN_VARIABLE, text, 1);
}

static void assert_latest(const char *folder, const char *expected)
{
    char name[FSDPI_FOLDER_NAME_BYTES];

    assert_int_equal(FSDP_OK, fsdpi_folder_latest(folder, name, &problem));
    assert_string_equal(expected, name);
}

/* Its host may be lost: it keeps the lock, and is not asked. */
static void an_attempt_that_was_given_up_renames_nothing(void **state)
{
    static fsdpi_run_folder old, next; /* they stay where they are */
    fsdpi_token             token;

    (void)state;
    assert_int_equal(0, mkdir("fenced", 0777));
    give_token("fenced", &token);
    assert_int_equal(1, token.number);
    open_it(&old, "fenced", FSDP_CHECKPOINT_LOCK_AUTO);
    assert_int_equal(FSDP_OK, save(&old, 1));
    fsdpi_run_folder_name_partial(&old, 2);
    assert_int_equal(FSDP_OK, fsdpi_run_folder_begin(&old, &problem)); /* in the middle of a save */

    give_token("fenced", &token);
    assert_int_equal(2, token.number);
    open_it(&next, "fenced", FSDP_CHECKPOINT_LOCK_AUTO); /* in spite of the lock */
    assert_int_not_equal(FSDP_OK, fsdpi_run_folder_commit(&old, 2, &problem));
    assert_latest("fenced", "step-000000001");
    assert_int_equal(FSDP_OK, save(&next, 3));
    assert_int_equal(FSDP_ERR_STATE, save(&old, 4));
    test_contains(problem.text, "fsdp-run has given this attempt up (its token is 1, and 2 holds the folder)");
    fsdpi_run_folder_prune(&old, 1, 0);
    assert_latest("fenced", "step-000000003");
    assert_true(is_there("fenced/step-000000001"));
    assert_false(is_there("fenced/step-000000002"));
    fsdpi_run_folder_close(&next);
    fsdpi_run_folder_close(&old);
    (void)unsetenv(FSDPI_TOKEN_VARIABLE);
}

/* It has looked at the token, and is about to rename: what it renames is gone. */
static void one_that_has_looked_already_finds_nothing_to_rename(void **state)
{
    static fsdpi_run_folder old;
    fsdpi_token             token;
    char                    partial[FSDPI_FOLDER_PATH_BYTES];

    (void)state;
    assert_int_equal(0, mkdir("raced", 0777));
    give_token("raced", &token);
    open_it(&old, "raced", FSDP_CHECKPOINT_LOCK_AUTO);
    fsdpi_run_folder_name_partial(&old, 2);
    assert_int_equal(FSDP_OK, fsdpi_run_folder_begin(&old, &problem));
    fsdpi_path_join(partial, "raced", old.partial);
    assert_int_equal(FSDP_OK, fsdpi_token_check("raced", &old.token, &problem));
    give_token("raced", &token);
    assert_int_equal(-1, rename(partial, "raced/step-000000002"));
    assert_int_equal(ENOENT, errno);
    fsdpi_run_folder_close(&old);
    (void)unsetenv(FSDPI_TOKEN_VARIABLE);
}

static void a_token_of_another_series_fences_nobody(void **state)
{
    static fsdpi_run_folder folder;
    fsdpi_token             token;

    (void)state;
    assert_int_equal(0, mkdir("series", 0777));
    give_token("series", &token);
    give_token("series", &token);
    (void)setenv(FSDPI_TOKEN_VARIABLE, "1.00000000deadbeef", 1);
    open_it(&folder, "series", FSDP_CHECKPOINT_LOCK_AUTO);
    assert_int_equal(FSDP_OK, save(&folder, 1));
    fsdpi_run_folder_close(&folder);
    (void)unsetenv(FSDPI_TOKEN_VARIABLE);
}

static void a_token_that_is_none_is_named(void **state)
{
    fsdpi_token token;

    (void)state;
    assert_int_equal(0, mkdir("damaged", 0777));
    test_file_write("damaged/.token", "nonsense\n", 9);
    assert_int_equal(FSDP_ERR_FORMAT, fsdpi_token_take("damaged", &token, &problem));
    test_contains(problem.text, "this is no token of fsdp-run");
    (void)setenv(FSDPI_TOKEN_VARIABLE, "seven", 1);
    assert_int_equal(0, fsdpi_token_mine().number);
    (void)unsetenv(FSDPI_TOKEN_VARIABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_holds_the_folder_where_flock_is_not_to_be_had),
        cmocka_unit_test(the_setting_chooses),
        cmocka_unit_test(two_that_take_no_lock_do_not_touch_each_others_saves),
        cmocka_unit_test(one_that_has_ended_on_this_host_is_gone_at_once),
        cmocka_unit_test(what_is_given_back_is_free_whoever_was_forked),
        cmocka_unit_test(one_of_another_host_is_gone_after_a_minute),
        cmocka_unit_test(who_has_been_taken_for_gone_finds_that_at_its_next_save),
        cmocka_unit_test(it_is_touched_again_and_again),
        cmocka_unit_test(mounts_whose_locks_stay_on_this_host_are_known),
        cmocka_unit_test(an_attempt_that_was_given_up_renames_nothing),
        cmocka_unit_test(one_that_has_looked_already_finds_nothing_to_rename),
        cmocka_unit_test(a_token_of_another_series_fences_nobody),
        cmocka_unit_test(a_token_that_is_none_is_named),
    };

    return cmocka_run_group_tests(tests, test_folder_make, test_folder_remove);
}
