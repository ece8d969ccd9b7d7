/*
 * Records of other hosts: each of them runs `fsdp-top --raw` once, through whatever reaches it, and nothing stays there.
 */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/records/records.h"

enum { MOST_HOSTS = 100000, COMMAND_BYTES = 2 * PATH_MAX };

/* In single quotes, for the shell. */
static void quote(const char *text, char quoted[COMMAND_BYTES])
{
    size_t n = 0;

    quoted[n++] = '\'';
    for (; *text != '\0' && n < COMMAND_BYTES - 8; text++) {
        if (*text == '\'') {
            memcpy(quoted + n, "'\\''", 4);
            n += 4;
        } else {
            quoted[n++] = *text;
        }
    }
    quoted[n++] = '\'';
    quoted[n]   = '\0';
}

/* fsdp-top as other hosts find it: installed beside this program, in a folder that they see too. */
static void name_remote(const char *remote, char command[COMMAND_BYTES])
{
    char          path[PATH_MAX + 16] = "";
    const ssize_t length              = readlink("/proc/self/exe", path, PATH_MAX);
    char         *slash               = length > 0 ? strrchr(path, '/') : NULL;

    if (remote != NULL) {
        (void)snprintf(command, COMMAND_BYTES, "%s", remote);
        return;
    }
    if (slash != NULL) {
        memcpy(slash, "/fsdp-top", sizeof "/fsdp-top");
    }
    if (slash != NULL && access(path, X_OK) == 0) {
        quote(path, command);
    } else {
        (void)snprintf(command, COMMAND_BYTES, "fsdp-top");
    }
}

static bool is_host(const char *name, size_t length)
{
    bool is = length > 0 && length < 256 && name[0] != '-';

    for (size_t i = 0; i < length; i++) {
        is = is && (isalnum((unsigned char)name[i]) || strchr("._-@:", name[i]) != NULL);
    }
    return is;
}

static size_t count_hosts(const char *hosts)
{
    size_t n = 0;

    for (const char *at = hosts;; at++) {
        const size_t length = strcspn(at, ",");
        if (!is_host(at, length) || n == MOST_HOSTS) {
            return 0;
        }
        n++;
        at += length;
        if (*at == '\0') {
            return n;
        }
    }
}

static char *command_for(const char *host, const char *rsh, const char *remote)
{
    const size_t bytes   = strlen(rsh) + 256 + strlen(remote) + 32;
    char        *command = malloc(bytes);

    if (command != NULL) {
        (void)snprintf(command, bytes, "%s %.*s %s --raw </dev/null", rsh, (int)strcspn(host, ","), host, remote);
    }
    return command;
}

long records_read_hosts(records *all, const char *hosts, const char *rsh, const char *remote)
{
    const size_t n        = count_hosts(hosts);
    char       **commands = n > 0 ? calloc(n, sizeof *commands) : NULL;
    char         program[COMMAND_BYTES];
    long         whole = -1;
    size_t       made  = 0;

    name_remote(remote, program);
    for (const char *at = hosts; commands != NULL && made < n; at += strcspn(at, ",") + 1) {
        commands[made] = command_for(at, rsh, program);
        if (commands[made] == NULL) {
            break;
        }
        made++;
    }
    if (made > 0 && made == n) {
        whole = records_read_commands(all, commands, n);
    }
    for (size_t i = 0; i < made; i++) {
        free(commands[i]);
    }
    free(commands);
    return whole;
}

long records_read_launcher(records *all, const char *launcher, const char *remote)
{
    char         program[COMMAND_BYTES];
    const size_t bytes   = strlen(launcher) + COMMAND_BYTES + 32;
    char        *command = malloc(bytes);
    long         whole   = 0;

    if (command == NULL) {
        return -1;
    }
    name_remote(remote, program);
    (void)snprintf(command, bytes, "%s %s --raw </dev/null", launcher, program);
    whole = records_read_commands(all, &command, 1);
    free(command);
    return whole;
}

/* A number, and what Slurm writes behind it for a part of an array or of a heterogeneous job. */
static bool is_slurm_job(const char *job)
{
    return isdigit((unsigned char)job[0]) && strspn(job, "0123456789_+") == strlen(job);
}

/*
 * Without --nodes a step of another's job is on its first node only, and without --overlap it waits for the job's other steps. Input
 * that comes when a short task has ended makes srun lose what the task has written last.
 */
long records_read_slurm(records *all, const char *job, const char *remote)
{
    enum { MOST_LETTERS = 40 };
    char launcher[512];

    if (!is_slurm_job(job) || strlen(job) > MOST_LETTERS) {
        return -1;
    }
    (void)snprintf(launcher, sizeof launcher,
                   "set -- $(squeue --noheader --states=RUNNING --jobs=%s --format='%%A %%D'); "
                   "[ $# -eq 2 ] || { echo \"Slurm has no job %s that is running\" >&2; exit 1; }; "
                   "srun --overlap --mpi=none --input=none --jobid=$1 --nodes=$2 --ntasks-per-node=1 --cpus-per-task=1",
                   job, job);
    return records_read_launcher(all, launcher, remote);
}
