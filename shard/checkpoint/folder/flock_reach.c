#include "shard/checkpoint/folder/flock_reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Whether a list of options, with commas between them, has this one. */
static bool has_option(const char *options, const char *option)
{
    const size_t length = strlen(option);

    for (const char *at = options; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, option, length) == 0 && (at[length] == ',' || at[length] == '\n' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* "36 35 98:0 / /mnt rw,noatime - nfs4 server:/home rw,local_lock=none": behind the hyphen are type, source and options. */
bool fsdpi_mount_locks_per_host(const char *line)
{
    char        type[64] = "";
    int         options  = 0;
    const char *at       = strstr(line, " - ");

    if (at == NULL || sscanf(at, " - %63s %*s %n", type, &options) < 1) {
        return false;
    }
    if (strcmp(type, "lustre") == 0) {
        return has_option(at + options, "localflock");
    }
    if (strncmp(type, "nfs", 3) == 0) {
        return has_option(at + options, "local_lock=all") || has_option(at + options, "local_lock=flock");
    }
    return strcmp(type, "beegfs") == 0 || strcmp(type, "fuse") == 0 || strncmp(type, "fuse.", 5) == 0;
}

static bool is_on(const char *line, dev_t device)
{
    unsigned major_number, minor_number;

    return sscanf(line, "%*d %*d %u:%u", &major_number, &minor_number) == 2 && major_number == major(device) &&
           minor_number == minor(device);
}

bool fsdpi_flock_is_per_host(const char *folder)
{
    struct stat about;
    char       *line = NULL;
    size_t      room = 0;
    bool        is   = false;
    FILE       *mounts;

    if (stat(folder, &about) != 0 || (mounts = fopen("/proc/self/mountinfo", "re")) == NULL) {
        return false;
    }
    while (!is && getline(&line, &room, mounts) > 0) {
        is = is_on(line, about.st_dev) && fsdpi_mount_locks_per_host(line);
    }
    free(line);
    (void)fclose(mounts);
    return is;
}
