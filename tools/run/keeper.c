#include "tools/run/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/run/ask.h"
#include "tools/run/leftovers.h"
#include "tools/run/processes.h"

/* SECONDS that ranks without a launcher have to write their records. */
static const double ORPHANS_S = 1;

/* For so long, and so often, it is looked for what Open MPI calls the job. */
static const double FAMILY_S = 60, LOOK_S = 0.5;

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the keeper's own process ---------------------------------------------------------------------------------------------------- */

typedef struct keeping {
    const run_keeper_plan *plan;
    int                    orders, report, signals;
    pid_t                  launcher;
    int                    wait_status;
    bool                   has_ended, was_ended, is_orphan;
    double                 deadline; /* for SIGKILL; infinite: there is none */
    double                 begun;
    unsigned               family; /* of Open MPI's files, as long as mpirun says it */
} keeping;

static bool ends(int signal)
{
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

static void become_launcher(const keeping *k)
{
    sigset_t  none;
    const int null = isatty(STDIN_FILENO) ? open("/dev/null", O_RDONLY) : -1;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    if (null >= 0) { /* a group of its own may not read from the terminal */
        (void)dup2(null, STDIN_FILENO);
        (void)close(null);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execvp(k->plan->argv[0], k->plan->argv);
    (void)fprintf(stderr, "fsdp-run: cannot start '%s': %s\n", k->plan->argv[0], strerror(errno));
    _exit(127);
}

static void reap(keeping *k)
{
    int   status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == k->launcher) {
            k->wait_status = status;
            k->has_ended   = true;
        }
    }
}

static void kill_now(keeping *k)
{
    k->was_ended = true;
    (void)kill(k->launcher, SIGKILL);
    (void)kill(-k->launcher, SIGKILL);
    (void)run_signal_descendants(SIGKILL);
    k->deadline = now() + 1; /* and again */
}

static void hand_on(keeping *k, int signal)
{
    if (ends(signal) && !isinf(k->deadline)) {
        kill_now(k); /* the second one */
        return;
    }
    (void)kill(k->launcher, signal);
    if (ends(signal)) {
        (void)kill(k->launcher, SIGCONT);
        k->deadline = now() + k->plan->grace;
    }
}

static void obey(keeping *k)
{
    unsigned char orders[64];
    const ssize_t n = read(k->orders, orders, sizeof orders);

    for (ssize_t i = 0; i < n; i++) {
        hand_on(k, orders[i]);
    }
    if (n == 0 && !k->is_orphan) { /* fsdp-run is gone */
        k->is_orphan = true;
        if (isinf(k->deadline)) {
            hand_on(k, SIGTERM);
        }
    }
}

/* MILLISECONDS to the next thing to do; -1: none. */
static int time_left(const keeping *k)
{
    const bool   looks = k->family == 0 && now() - k->begun < FAMILY_S;
    const double left  = k->deadline - now();
    const double most  = looks && LOOK_S < left ? LOOK_S : left;

    return isinf(most) ? -1 : most > 0 ? (int)(1000 * most) + 1 : 0;
}

static void watch(keeping *k)
{
    while (!k->has_ended) {
        struct pollfd files[] = {{.fd = k->is_orphan ? -1 : k->orders, .events = POLLIN},
                                 {.fd = k->signals, .events = POLLIN}};

        (void)poll(files, 2, time_left(k));
        if (k->family == 0) {
            k->family = run_leftovers_family(k->launcher);
        }
        if ((files[1].revents & POLLIN) != 0) {
            struct signalfd_siginfo ignored;
            (void)!read(k->signals, &ignored, sizeof ignored);
        }
        if (files[0].revents != 0) {
            obey(k);
        }
        reap(k);
        if (!k->has_ended && now() >= k->deadline) {
            kill_now(k);
        }
    }
}

/* Ranks whose launcher was killed, and what a program has started. */
static void end_orphans(void)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    const double          end   = now() + ORPHANS_S;

    if (run_signal_descendants(SIGTERM) > 0) {
        do {
            (void)nanosleep(&pause, NULL);
            while (waitpid(-1, NULL, WNOHANG) > 0) {
            }
        } while (run_signal_descendants(0) > 0 && now() < end);
    }
    run_kill_descendants();
}

static void end_others(const keeping *k, unsigned family)
{
    const size_t n = k->plan->n_commands;
    char        *commands[n + 1];
    int          statuses[n + 1];

    for (size_t i = 0; i < n; i++) { /* those of ssh's kind take further words */
        if (asprintf(&commands[i], "%s --job %u", k->plan->commands[i], family) < 0) {
            commands[i] = k->plan->commands[i];
        }
    }
    run_ask_all(commands, n, k->plan->patience, statuses);
}

static int status_of(int wait_status)
{
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

static void keep(const run_keeper_plan *plan, int orders, int report)
{
    keeping  k = {.plan = plan, .orders = orders, .report = report, .deadline = HUGE_VAL, .begun = now()};
    sigset_t all;

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)setpgid(0, 0); /* what a terminal sends to its group comes through fsdp-run */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)sigemptyset(&all);
    (void)sigaddset(&all, SIGCHLD);
    k.signals  = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    k.launcher = fork();
    if (k.launcher == 0) {
        become_launcher(&k);
    }
    k.has_ended   = k.launcher < 0;
    k.wait_status = k.launcher < 0 ? 127 << 8 : 0;
    watch(&k);
    end_orphans();
    run_leftovers_remove(k.family);
    if (k.is_orphan) {
        end_others(&k, k.family);
    }
    const run_keeper_report told = {.status     = status_of(k.wait_status),
                                    .was_ended  = k.was_ended,
                                    .was_killed = WIFSIGNALED(k.wait_status) && !k.was_ended,
                                    .family     = k.family,
                                    .is_known   = true};
    (void)!write(report, &told, sizeof told);
    _exit(0);
}

/* ---- on fsdp-run's side ----------------------------------------------------------------------------------------------------------- */

bool run_keeper_start(const run_keeper_plan *plan, run_keeper *keeper)
{
    int orders[2], report[2];

    if (pipe2(orders, O_CLOEXEC) != 0) {
        return false;
    }
    if (pipe2(report, O_CLOEXEC) != 0) {
        (void)close(orders[0]);
        (void)close(orders[1]);
        return false;
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(orders[1]);
        (void)close(report[0]);
        keep(plan, orders[0], report[1]);
    }
    (void)close(orders[0]);
    (void)close(report[1]);
    *keeper = (run_keeper){.pid = pid, .orders = orders[1], .report = report[0]};
    if (pid < 0) {
        (void)close(orders[1]);
        (void)close(report[0]);
    }
    return pid > 0;
}

void run_keeper_signal(const run_keeper *keeper, int signal)
{
    const unsigned char order = (unsigned char)signal;

    (void)!write(keeper->orders, &order, 1);
}

void run_keeper_end(run_keeper *keeper, run_keeper_report *report)
{
    *report          = (run_keeper_report){.status = 128 + SIGKILL};
    const ssize_t n  = read(keeper->report, report, sizeof *report);
    report->is_known = n == (ssize_t)sizeof *report;
    (void)close(keeper->orders);
    (void)close(keeper->report);
    while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    if (!report->is_known) {
        end_orphans(); /* they have fallen to this process */
    }
}
