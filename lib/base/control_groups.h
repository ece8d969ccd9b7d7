/**
 * @file
 * The control groups of this process, of version 1 or 2, and those above them.
 */
#ifndef FSDPI_CONTROL_GROUPS_H
#define FSDPI_CONTROL_GROUPS_H

#include <stdbool.h>

/** BYTES for the name of a group's folder. */
enum { FSDPI_GROUP_ROOM = 4352 };

/** Told of a group: its folder, and whether its files are those of version 2. */
typedef void (*fsdpi_group_look)(const char *folder, bool is_version_2, void *context);

/**
 * Goes from the group that this process is in, as far as a controller is concerned, up to the one that is mounted.
 * @param[in] root        in front of /proc and /sys: "", or where a test has made them up
 * @param[in] controller  "memory", "cpu"
 */
void fsdpi_control_groups_walk(const char *root, const char *controller, fsdpi_group_look look, void *context);

#endif
