#include "tools/run/ask.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/run/leftovers.h"
#include "tools/run/processes.h"

enum { PAUSE_NS = 20 * 1000 * 1000 };

const char *run_reach_default(const char *agent)
{
    const char *slurm = getenv("SLURM_JOB_ID"), *openmpi = getenv("OMPI_MCA_plm_rsh_agent"),
               *hydra = getenv("HYDRA_LAUNCHER_EXEC");

    if (agent != NULL) {
        return agent;
    }
    if (openmpi != NULL && openmpi[0] != '\0') {
        return openmpi;
    }
    if (slurm != NULL && slurm[0] != '\0') {
        return "";
    }
    return hydra != NULL && hydra[0] != '\0' ? hydra : "ssh -o BatchMode=yes";
}

bool run_ask_is_silent(int status)
{
    return status != RUN_ASK_FINE && status != RUN_ASK_NO_FILE && status != RUN_ASK_NOT_EXECUTABLE &&
           status != RUN_ASK_NOT_FOUND;
}

/* In single quotes, for a shell. */
static char *quote(const char *text)
{
    char *quoted = malloc(4 * strlen(text) + 3), *at = quoted;

    if (quoted == NULL) {
        return NULL;
    }
    *at++ = '\'';
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            memcpy(at, "'\\''", 4);
            at += 4;
        } else {
            *at++ = *text;
        }
    }
    *at++ = '\'';
    *at   = '\0';
    return quoted;
}

/* This program, as the shell there takes it: it is looked for at the same place. */
static char *here_as_command(const char *id, unsigned family, const char *file)
{
    char          path[PATH_MAX + 1] = "fsdp-run";
    const ssize_t n                  = readlink("/proc/self/exe", path, PATH_MAX);
    char         *program, *look, *whole = NULL;

    path[n > 0 ? n : (ssize_t)strlen("fsdp-run")] = '\0';
    program                                       = quote(path);
    look                                          = quote(file != NULL ? file : "");
    if (program == NULL || look == NULL ||
        asprintf(&whole, "%s --sweep '%s' --job %u%s%s", program, id, family, file != NULL ? " --look " : "",
                 file != NULL ? look : "") < 0) {
        whole = NULL;
    }
    free(program);
    free(look);
    return whole;
}

char *run_ask_command(const run_reach *reach, const char *host, const char *id, unsigned family, const char *file)
{
    char *remote = here_as_command(id, family, file), *command = NULL;
    int   n = -1;

    if (remote == NULL) {
        return NULL;
    }
    if (run_nodes_is_here(host)) {
        n = asprintf(&command, "exec %s", remote);
    } else if (reach->rsh[0] == '\0') {
        n = asprintf(&command, "exec srun --overlap --mpi=none --nodelist=%s --nodes=1 --ntasks=1 --cpus-per-task=1 %s",
                     host, remote);
    } else {
        char *quoted = quote(remote);
        n            = quoted != NULL ? asprintf(&command, "exec %s %s %s", reach->rsh, host, quoted) : -1;
        free(quoted);
    }
    free(remote);
    return n >= 0 ? command : NULL;
}

static pid_t start(const char *command)
{
    const pid_t pid = fork();

    if (pid == 0) {
        sigset_t  none;
        const int null = open("/dev/null", O_RDWR);

        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)setpgid(0, 0);
        for (int i = 0; i < 3 && null >= 0; i++) {
            (void)dup2(null, i);
        }
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(RUN_ASK_NOT_FOUND);
    }
    return pid;
}

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int status_of(int wait_status)
{
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/* Takes what has ended; returns how many have not. */
static size_t take_ended(const pid_t *pids, size_t n, bool *ended, int *statuses)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        int status;
        if (!ended[i] && pids[i] > 0 && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
            statuses[i] = status_of(status);
            ended[i]    = true;
        }
        left += !ended[i] && pids[i] > 0;
    }
    return left;
}

void run_ask_all(char *const *commands, size_t n, double patience, int *statuses)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const double          end   = now() + patience;
    pid_t                *pids  = calloc(n + 1, sizeof *pids);
    bool                 *ended = calloc(n + 1, sizeof *ended);

    for (size_t i = 0; i < n; i++) {
        statuses[i] = RUN_ASK_TOO_LATE;
        if (pids != NULL && ended != NULL) {
            pids[i] = start(commands[i]);
        }
    }
    while (pids != NULL && ended != NULL && take_ended(pids, n, ended, statuses) > 0) {
        if (now() > end) {
            for (size_t i = 0; i < n; i++) {
                if (!ended[i] && pids[i] > 0) {
                    (void)kill(-pids[i], SIGKILL);
                    (void)waitpid(pids[i], NULL, 0);
                    ended[i] = true;
                }
            }
        }
        (void)nanosleep(&pause, NULL);
    }
    free(pids);
    free(ended);
}

int run_answer(const char *id, unsigned family, const char *file)
{
    (void)run_sweep(id);
    run_leftovers_remove(family);
    return file == NULL || access(file, F_OK) == 0 ? RUN_ASK_FINE : RUN_ASK_NO_FILE;
}
