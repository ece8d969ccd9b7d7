#include "tools/run/attempt.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/record/layout.h"
#include "tools/run/blame.h"
#include "tools/run/keeper.h"
#include "tools/run/processes.h"

#define SAY(why, ...) ((void)snprintf(why, RUN_MESSAGE_BYTES, __VA_ARGS__), false)

enum { LOOK_MS = 500 };
static const double TOUCH_S = 10;

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- records ------------------------------------------------------------------------------------------------------------------ */

static bool is_record(const char *name)
{
    const size_t length = strlen(name), tail = strlen(FSDPI_RECORDED_SUFFIX);

    return (length > tail && strcmp(name + length - tail, FSDPI_RECORDED_SUFFIX) == 0) ||
           strstr(name, FSDPI_RECORDED_PART) != NULL;
}

/* Counts the records of a folder, or removes them. */
static size_t count_records(const char *folder, bool remove_them)
{
    DIR   *dir = opendir(folder);
    size_t n   = 0;

    for (const struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL; entry = readdir(dir)) {
        if (is_record(entry->d_name)) {
            n++;
            if (remove_them) {
                (void)unlinkat(dirfd(dir), entry->d_name, 0);
            }
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

static bool make_records(const char *folder, char *why)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return SAY(why, "%.300s: %s", folder, strerror(errno));
    }
    (void)count_records(folder, true);
    return true;
}

/* ---- what the program is told ---------------------------------------------------------------------------------------------------- */

static const char *const VARIABLES[] = {
    "FSDP_RUN_ATTEMPT", "FSDP_RUN_NODES",  "FSDP_RUN_RANKS",     "FSDP_RUN_FIRST_STEP",
    RUN_ID_VARIABLE,    "FSDP_RECORD_DIR", FSDPI_TOKEN_VARIABLE, NULL};

static void set_number(const char *name, int64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRId64, value);
    (void)setenv(name, text, 1);
}

static void set_variables(const run_attempt *a)
{
    const int64_t step = run_fence_step(a->fence);

    set_number("FSDP_RUN_ATTEMPT", a->number);
    set_number("FSDP_RUN_NODES", (int64_t)a->n);
    set_number("FSDP_RUN_RANKS", (int64_t)a->sum);
    set_number("FSDP_RUN_FIRST_STEP", step >= 0 ? step : 0);
    (void)setenv(RUN_ID_VARIABLE, a->id, 1);
    (void)setenv("FSDP_RECORD_DIR", a->records, 1);
    if (a->token[0] != '\0') {
        (void)setenv(FSDPI_TOKEN_VARIABLE, a->token, 1);
    } else {
        (void)unsetenv(FSDPI_TOKEN_VARIABLE);
    }
}

/* So that what is run between attempts is not taken for a part of one. */
static void unset_variables(void)
{
    for (const char *const *name = VARIABLES; *name != NULL; name++) {
        (void)unsetenv(*name);
    }
}

static const char *const *exported(const run_attempt *a)
{
    static const char *names[sizeof VARIABLES / sizeof *VARIABLES];
    size_t             n = 0;

    for (const char *const *name = VARIABLES; *name != NULL; name++) {
        if (a->token[0] != '\0' || strcmp(*name, FSDPI_TOKEN_VARIABLE) != 0) {
            names[n++] = *name;
        }
    }
    names[n] = NULL;
    return names;
}

/* ---- while it runs ------------------------------------------------------------------------------------------------------------ */

typedef struct watching {
    const run_attempt  *a;
    run_keeper          keeper;
    run_attempt_result *result;
    size_t              records; /* how many there were at the last look */
    double lost, touched;        /* when it was first seen to be lost, 0: it is not; when the folder was touched */
    bool   was_told;
} watching;

static void hand_on(watching *w)
{
    struct signalfd_siginfo info;

    while (read(w->a->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        const int signal  = (int)info.ssi_signo;
        w->result->signal = w->result->signal == 0 || w->result->signal == SIGUSR1 || w->result->signal == SIGUSR2
                                ? signal
                                : w->result->signal;
        run_keeper_signal(&w->keeper, signal);
    }
}

/* Ranks that have given up end, and with them the launcher; but some wait for ever for a host that is gone. */
static void look(watching *w)
{
    if (w->lost == 0) {
        const size_t n = count_records(w->a->records, false);
        if (n != w->records && run_blame_is_lost(w->a->records)) {
            w->lost = now();
        }
        w->records = n;
    } else if (!w->was_told && now() - w->lost > w->a->grace) {
        w->was_told = true;
        run_keeper_signal(&w->keeper, SIGTERM);
    }
    if (now() - w->touched > TOUCH_S) {
        run_fence_touch(w->a->fence);
        w->touched = now();
    }
}

static void watch(watching *w)
{
    struct pollfd files[] = {{.fd = w->keeper.report, .events = POLLIN}, {.fd = w->a->signals, .events = POLLIN}};

    do {
        (void)poll(files, 2, LOOK_MS);
        if ((files[1].revents & POLLIN) != 0) {
            hand_on(w);
        }
        look(w);
    } while (files[0].revents == 0);
}

/* ---- from start to end ------------------------------------------------------------------------------------------------------------ */

static void free_words(char **words, size_t n)
{
    for (size_t i = 0; words != NULL && i < n; i++) {
        free(words[i]);
    }
    free(words);
}

/* What the keeper runs if nobody else can. */
static char **make_sweeps(const run_attempt *a, size_t *n)
{
    char **commands = calloc(a->n + 1, sizeof *commands);

    *n = 0;
    for (size_t i = 0; commands != NULL && !a->reach->is_useless && i < a->n; i++) {
        commands[*n] = run_ask_command(a->reach, a->chosen[i]->name, a->id, 0, NULL);
        *n += commands[*n] != NULL;
    }
    return commands;
}

static bool run(const run_attempt *a, const run_keeper_plan *plan, run_attempt_result *result, char *why)
{
    watching          w = {.a = a, .result = result, .touched = now()};
    run_keeper_report report;
    const double      begun = now();

    set_variables(a);
    const bool started = run_keeper_start(plan, &w.keeper);
    unset_variables();
    if (!started) {
        return SAY(why, "it cannot be started: %s", strerror(errno));
    }
    watch(&w);
    run_keeper_end(&w.keeper, &report);
    result->status              = report.status;
    result->launcher_was_killed = !report.is_known || (report.was_killed && !w.was_told && result->signal == 0);
    result->family              = report.family;
    result->seconds             = now() - begun;
    if (result->status == 0 && w.lost != 0) {
        result->status = 1; /* a launcher that says nothing of a rank that is lost */
    }
    return true;
}

bool run_attempt_make(const run_attempt *a, run_attempt_result *result, char *why)
{
    run_keeper_plan plan = {.grace = a->grace, .patience = a->patience};
    char          **sweeps;

    *result = (run_attempt_result){0};
    if (!make_records(a->records, why)) {
        return false;
    }
    plan.argv     = run_command_make(a->command, a->chosen, a->ranks, a->n, exported(a));
    sweeps        = make_sweeps(a, &plan.n_commands);
    plan.commands = sweeps;
    const bool fine =
        plan.argv != NULL && sweeps != NULL ? run(a, &plan, result, why) : SAY(why, "no memory for the command");
    run_command_free(plan.argv);
    free_words(sweeps, plan.n_commands);
    return fine;
}
