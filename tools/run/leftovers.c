#include "tools/run/leftovers.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY "/dev/shm"

enum { NAME_BYTES = 256, MOST_OPEN = 16, FAMILY_SHIFT = 16 };

/* The folder of all its jobs here: /tmp/ompi.HOST.UID. */
static void session_folder(char path[PATH_MAX])
{
    static const char *const VARIABLES[]      = {"TMPDIR", "TEMP", "TMP"};
    char                     host[NAME_BYTES] = "";
    const char              *base             = NULL;

    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES && (base == NULL || base[0] == '\0'); i++) {
        base = getenv(VARIABLES[i]);
    }
    (void)gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    (void)snprintf(path, PATH_MAX, "%s/ompi.%s.%u", base != NULL && base[0] != '\0' ? base : "/tmp", host,
                   (unsigned)geteuid());
}

unsigned run_leftovers_family(pid_t mpirun)
{
    char          folder[PATH_MAX], path[PATH_MAX + 64];
    unsigned long job = 0;
    FILE *file = (session_folder(folder), snprintf(path, sizeof path, "%s/pid.%d/contact.txt", folder, (int)mpirun),
                  fopen(path, "re"));

    if (file == NULL) {
        return 0;
    }
    if (fscanf(file, "%lu", &job) != 1) {
        job = 0;
    }
    (void)fclose(file);
    return (unsigned)(job >> FAMILY_SHIFT);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *at)
{
    (void)about;
    (void)at;
    (void)(kind == FTW_DP ? rmdir(path) : unlink(path));
    return 0;
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* "pid.28", where its contact.txt is of that number; "jf.25000" */
static bool is_session(const char *name, unsigned family)
{
    if (strncmp(name, "pid.", 4) == 0) {
        return run_leftovers_family((pid_t)strtol(name + 4, NULL, 10)) == family;
    }
    return strncmp(name, "jf.", 3) == 0 && strtoul(name + 3, NULL, 10) == family;
}

static void remove_sessions(unsigned family)
{
    char folder[PATH_MAX], path[PATH_MAX + NAME_BYTES + 1];
    DIR *dir = (session_folder(folder), opendir(folder));

    for (const struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL; entry = readdir(dir)) {
        if (is_session(entry->d_name, family)) {
            (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            remove_tree(path);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
        (void)rmdir(folder); /* unless another job is there */
    }
}

/* "vader_segment.HOST.UID.61a60001.0": the job's number in hexadecimal between periods. */
static bool is_segment(const char *name, unsigned family)
{
    for (const char *at = strchr(name, '.'); at != NULL; at = strchr(at + 1, '.')) {
        char               *end;
        const unsigned long job = isxdigit((unsigned char)at[1]) ? strtoul(at + 1, &end, 16) : 0;
        if (job >> FAMILY_SHIFT == family && (*end == '.' || *end == '\0')) {
            return strstr(name, "_segment") != NULL || strncmp(name, "osc_", 4) == 0;
        }
    }
    return false;
}

static void remove_segments(unsigned family)
{
    DIR        *dir = opendir(MEMORY);
    struct stat about;

    for (const struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL; entry = readdir(dir)) {
        if (is_segment(entry->d_name, family) && fstatat(dirfd(dir), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            about.st_uid == geteuid()) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

void run_leftovers_remove(unsigned family)
{
    if (family != 0) {
        remove_sessions(family);
        remove_segments(family);
    }
}
