#include "bench/twin/launcher.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define MOST_UP    16  /* generations to look for the launcher in */
#define CORE_WORDS 128 /* 8192 cores, the most that Linux counts */

/* A file of /proc that holds strings: `text` is theirs, `items` points into it and ends with NULL. */
typedef struct strings {
    char  *text;
    char **items;
    size_t n;
} strings;

static void release(strings *s)
{
    free(s->text);
    free(s->items);
    *s = (strings){0};
}

static size_t read_whole(const char *path, char **text)
{
    FILE  *file = fopen(path, "re");
    size_t room = 1 << 20, bytes = 0; /* no command line or environment of this size was ever a launcher's */

    *text = file ? malloc(room + 1) : NULL;
    if (*text) {
        bytes          = fread(*text, 1, room, file);
        (*text)[bytes] = 0;
    }
    if (file) {
        (void)fclose(file);
    }
    return bytes;
}

/* With room for `more` items at the end. */
static int read_strings(pid_t process, const char *what, size_t more, strings *s)
{
    char   path[64];
    size_t bytes, n = 0;

    (void)snprintf(path, sizeof path, "/proc/%ld/%s", (long)process, what);
    bytes = read_whole(path, &s->text);
    for (size_t i = 0; i < bytes; i++) {
        n += s->text[i] == 0;
    }
    s->items = s->text ? calloc(n + more + 1, sizeof *s->items) : NULL;
    if (!s->items || n == 0) {
        release(s);
        return 0;
    }
    for (char *next = s->text; s->n < n; next += strlen(next) + 1) {
        s->items[s->n++] = next;
    }
    return 1;
}

static pid_t parent_of(pid_t process)
{
    char path[64], *text = NULL, *after;
    long parent = 0;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    if (read_whole(path, &text) > 0) {
        after = strrchr(text, ')'); /* the name before it may hold anything */
        if (after && strlen(after) > 4) {
            parent = strtol(after + 4, NULL, 10);
        }
    }
    free(text);
    return (pid_t)parent;
}

/* mpirun.openmpi and the like too; but prted, which starts ranks on other hosts, is no prte. */
static int is_launcher_name(const char *name)
{
    static const char *const known[] = {"mpirun", "mpiexec", "orterun", "prterun"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(name, known[i], strlen(known[i])) == 0) {
            return 1;
        }
    }
    return strcmp(name, "prte") == 0; /* of Open MPI 5, whose mpirun and prterun become this program */
}

static int is_launcher(pid_t process, char *path)
{
    char        link[64];
    const char *name;
    ssize_t     length;

    (void)snprintf(link, sizeof link, "/proc/%ld/exe", (long)process);
    length                        = readlink(link, path, PATH_BYTES - 1);
    path[length > 0 ? length : 0] = 0;
    name                          = strrchr(path, '/');
    return name && is_launcher_name(name + 1);
}

static pid_t find_launcher(char *path)
{
    pid_t process = parent_of(getpid());

    for (int i = 0; i < MOST_UP && process > 1; i++) {
        if (is_launcher(process, path)) {
            return process;
        }
        process = parent_of(process);
    }
    return -1;
}

/* The launcher's own part of its command line: up to this program, and for one program only. */
static int cut_at_program(strings *command, const char *program)
{
    size_t cut = command->n;

    for (size_t i = 1; i < command->n; i++) {
        if (strcmp(command->items[i], ":") == 0) {
            return 0;
        }
        if (cut == command->n && strcmp(command->items[i], program) == 0) {
            cut = i;
        }
    }
    if (cut == command->n) {
        return 0;
    }
    command->n = cut;
    return 1;
}

#define N_VARIABLES    3 /* of the ranks of a job with the drop-in */
#define VARIABLE_WORDS 3 /* of the launcher's command line for each, at most */

/* The launcher's option that sets a variable of the ranks; `assignment` is NAME=VALUE. */
static void append_variable(strings *command, char *assignment)
{
#ifdef OPEN_MPI
    command->items[command->n++] = "-x";
    command->items[command->n++] = assignment;
#else
    char *const equals = strchr(assignment, '=');

    *equals                      = 0;
    command->items[command->n++] = "-env";
    command->items[command->n++] = assignment;
    command->items[command->n++] = equals + 1;
#endif
}

/* The drop-in works from the first call on: how much a communicator moves before that is no matter where it moves much. */
static void append_preload(strings *command, const char *preload, char (*room)[PATH_BYTES])
{
    (void)snprintf(room[0], PATH_BYTES, "LD_PRELOAD=%s", preload);
    (void)snprintf(room[1], PATH_BYTES, "FSDP_MPI=on");
    (void)snprintf(room[2], PATH_BYTES, "FSDP_MPI_AFTER=0");
    for (int i = 0; i < N_VARIABLES; i++) {
        append_variable(command, room[i]);
    }
}

static pid_t spawn(const char *path, const strings *command, const strings *environment)
{
    posix_spawn_file_actions_t actions;
    pid_t                      process = -1;

    if (posix_spawn_file_actions_init(&actions) != 0) {
        return -1;
    }
    if (posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) != 0 ||
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawn(&process, path, &actions, NULL, command->items, environment->items) != 0) {
        process = -1;
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return process;
}

/* On the cores that the launcher may use: a process inherits them, and rank 0 is bound to its own. */
static pid_t start(pid_t launcher, const char *path, const strings *command, const strings *environment)
{
    unsigned long own[CORE_WORDS], wide[CORE_WORDS] = {0};
    const int     known = sched_getaffinity(0, sizeof own, (cpu_set_t *)(void *)own) == 0 &&
                      sched_getaffinity(launcher, sizeof wide, (cpu_set_t *)(void *)wide) == 0 &&
                      sched_setaffinity(0, sizeof wide, (const cpu_set_t *)(const void *)wide) == 0;
    const pid_t process = spawn(path, command, environment);

    if (known) {
        (void)sched_setaffinity(0, sizeof own, (const cpu_set_t *)(const void *)own);
    }
    return process;
}

static pid_t launch(pid_t launcher, const char *path, const char *program, const char *preload,
                    const char *const *arguments)
{
    char    self[PATH_BYTES], variables[N_VARIABLES][PATH_BYTES];
    strings command = {0}, environment = {0};
    size_t  more    = 1;
    ssize_t length  = readlink("/proc/self/exe", self, sizeof self - 1);
    pid_t   process = -1;

    self[length > 0 ? length : 0] = 0;
    while (arguments[more - 1]) {
        more++;
    }
    if (read_strings(launcher, "cmdline", more + 1 + N_VARIABLES * VARIABLE_WORDS, &command) &&
        read_strings(launcher, "environ", 0, &environment) && cut_at_program(&command, program)) {
        if (preload) {
            append_preload(&command, preload, variables);
        }
        command.items[command.n++] = self;
        for (size_t i = 0; i < more; i++) {
            command.items[command.n++] = (char *)arguments[i];
        }
        process = start(launcher, path, &command, &environment);
    }
    release(&command);
    release(&environment);
    return process;
}

pid_t bench_launch_alike(const char *program, const char *preload, const char *const *arguments, char *why_not,
                         size_t why_not_bytes)
{
    char        path[PATH_BYTES];
    const pid_t launcher = find_launcher(path);
    pid_t       process  = -1;

    if (launcher < 0) {
        (void)snprintf(why_not, why_not_bytes, "rank 0 was not started by mpirun or mpiexec on this machine");
        return -1;
    }
    process = launch(launcher, path, program, preload, arguments);
    if (process < 0) {
        (void)snprintf(why_not, why_not_bytes, "the command line of '%.60s' cannot be repeated", path);
    }
    return process;
}
