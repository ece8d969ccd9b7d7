#include "lib/topology/cpu_quota.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/control_groups.h"

static bool read_line(const char *folder, const char *name, char *line, int bytes)
{
    char path[FSDPI_GROUP_ROOM + 64];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE      *file = fopen(path, "re");
    const bool read = file != NULL && fgets(line, bytes, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    return read;
}

/* Version 2 has "QUOTA PERIOD" or "max PERIOD" in one file, version 1 a file each, and -1 for no limit. */
static double quota_of(const char *folder, bool is_version_2)
{
    char  line[64], period_line[64];
    char *end;

    if (!read_line(folder, is_version_2 ? "cpu.max" : "cpu.cfs_quota_us", line, sizeof line)) {
        return 0.0;
    }
    const double quota = strtod(line, &end);
    if (end == line || (!is_version_2 && !read_line(folder, "cpu.cfs_period_us", period_line, sizeof period_line))) {
        return 0.0;
    }
    const double period = strtod(is_version_2 ? end : period_line, NULL);
    return quota > 0.0 && period > 0.0 ? quota / period : 0.0;
}

static void look_at_group(const char *folder, bool is_version_2, void *context)
{
    double      *least = context;
    const double quota = quota_of(folder, is_version_2);

    *least = quota > 0.0 && (*least <= 0.0 || quota < *least) ? quota : *least;
}

double fsdpi_cpu_quota(const char *root)
{
    double least = 0.0;

    fsdpi_control_groups_walk(root, "cpu", look_at_group, &least);
    return least;
}
