/**
 * @file
 * A machine of files in a folder, in front of /proc and /sys, for what reads these.
 */
#ifndef FSDP_TESTS_MADE_UP_ROOT_H
#define FSDP_TESTS_MADE_UP_ROOT_H

#include "tests/support/unit_test.h"

/** Setup and teardown of a test: an empty folder, and all of it gone. */
int make_up_root(void **state);
int remove_made_up_root(void **state);

/** The folder. */
const char *made_up_root(void);

/** Writes a file of the machine, as "/proc/meminfo", and makes the folders above it. */
void put_file(const char *path, const char *text);

#endif
