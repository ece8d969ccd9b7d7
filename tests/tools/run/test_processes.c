/* Processes are found by a word in their environment, and by whose descendants they are. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/unit_test.h"
#include "tools/run/processes.h"

/* A process with this environment, which does nothing. */
static pid_t start(char *const *environment)
{
    int   ready[2];
    char  nothing;
    char  program[] = "/bin/sleep", seconds[] = "1000";
    char *argv[] = {program, seconds, NULL};

    assert_int_equal(0, pipe(ready));
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(ready[0]); /* the other end closes with the program's start, or with its failure */
        (void)fcntl(ready[1], F_SETFD, FD_CLOEXEC);
        (void)execve(program, argv, environment);
        _exit(127);
    }
    (void)close(ready[1]);
    assert_int_equal(0, read(ready[0], &nothing, 1));
    (void)close(ready[0]);
    return pid;
}

static int signal_of(pid_t pid)
{
    int status = 0;

    assert_int_equal(pid, waitpid(pid, &status, 0));
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void those_of_a_run_are_killed_and_no_others(void **state)
{
    char ours[] = "FSDP_RUN_ID=0123456789abcdef", longer[] = "FSDP_RUN_ID=0123456789abcdef0",
         hidden[] = "X=FSDP_RUN_ID=0123456789abcdef", first[] = "A=1", empty[] = "";
    char *environments[][4] = {{first, ours, NULL}, {ours, NULL},  {longer, NULL},
                               {hidden, NULL},      {empty, NULL}, {empty, ours, NULL}};
    enum { N = sizeof environments / sizeof *environments };
    const int killed[N] = {1, 1, 0, 0, 0, 1};
    pid_t     pids[N];

    (void)state;
    for (size_t i = 0; i < N; i++) {
        pids[i] = start(environments[i]);
    }
    assert_int_equal(3, run_sweep("0123456789abcdef"));
    for (size_t i = 0; i < N; i++) {
        if (!killed[i]) {
            assert_int_equal(0, kill(pids[i], SIGTERM)); /* it is there */
        }
    }
    for (size_t i = 0; i < N; i++) {
        int status = SIGKILL;
        if (killed[i]) {
            (void)waitpid(pids[i], &status, 0); /* unless the sweep has reaped it */
            assert_int_equal(SIGKILL, WTERMSIG(status));
        } else {
            assert_int_equal(SIGTERM, signal_of(pids[i]));
        }
    }
    assert_int_equal(0, run_sweep("0123456789abcdef"));
}

static void orphans_are_descendants(void **state)
{
    int   told[2];
    pid_t orphan = 0;

    (void)state;
    assert_int_equal(0, prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
    assert_int_equal(0, pipe(told));
    const pid_t child = fork();
    if (child == 0) {
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            (void)setsid();
            for (;;) {
                (void)pause();
            }
        }
        (void)!write(told[1], &grandchild, sizeof grandchild);
        _exit(0);
    }
    assert_int_equal(sizeof orphan, read(told[0], &orphan, sizeof orphan));
    assert_int_equal(0, signal_of(child));
    run_kill_descendants();
    assert_int_equal(-1, kill(orphan, 0));
    (void)close(told[0]);
    (void)close(told[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_a_run_are_killed_and_no_others),
        cmocka_unit_test(orphans_are_descendants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
