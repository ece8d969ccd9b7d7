#include "lib/base/available_memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/control_groups.h"

/* What a version of control groups calls its files. */
typedef struct control_groups {
    const char *limit, *use;
    const char *inactive; /* in memory.stat */
} control_groups;

static const control_groups version_1 = {
    .limit = "memory.limit_in_bytes", .use = "memory.usage_in_bytes", .inactive = "total_inactive_file "};
static const control_groups version_2 = {.limit = "memory.max", .use = "memory.current", .inactive = "inactive_file "};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The number behind `label`, which begins a line of the file; "" stands for the first line. False where there is none. */
static bool read_number(const char *folder, const char *name, const char *label, size_t *number)
{
    char path[FSDPI_GROUP_ROOM + 64], line[256];
    bool found = false;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *end;

        if (strncmp(line, label, strlen(label)) == 0) {
            *number = strtoull(line + strlen(label), &end, 10);
            found   = end != line + strlen(label);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

/* Of one group; a limit of "max" is none. */
static size_t left_in_group(const control_groups *groups, const char *folder)
{
    size_t limit, use, inactive = 0;

    if (!read_number(folder, groups->limit, "", &limit) || !read_number(folder, groups->use, "", &use)) {
        return SIZE_MAX;
    }
    (void)read_number(folder, "memory.stat", groups->inactive, &inactive);
    use -= least(inactive, use);
    return limit > use ? limit - use : 0;
}

static void look_at_group(const char *folder, bool is_version_2, void *context)
{
    size_t *left = context;

    *left = least(*left, left_in_group(is_version_2 ? &version_2 : &version_1, folder));
}

size_t fsdpi_available_memory(const char *root)
{
    char   path[FSDPI_GROUP_ROOM];
    size_t left = SIZE_MAX, kibibytes;

    (void)snprintf(path, sizeof path, "%s/proc", root);
    if (read_number(path, "meminfo", "MemAvailable:", &kibibytes)) {
        left = kibibytes * 1024;
    }
    fsdpi_control_groups_walk(root, "memory", look_at_group, &left);
    return left;
}
