/**
 * @file
 * A folder on the file system that is measured, and what `dd` makes of the same file system.
 */
#ifndef BENCH_DISK_H
#define BENCH_DISK_H

#include <stddef.h>

#include "bench/base/world.h"

/** BYTES of a path in that folder, with its NUL. */
#define BENCH_PATH_BYTES 768

typedef struct bench_disk {
    const bench_world *world;
    char               folder[BENCH_PATH_BYTES / 2]; /* made by bench_disk_open() */
    int                leads;                        /* whether this rank does what a machine needs once */
    int                drops; /* whether the kernel's caches can be dropped: on all machines, as root */
} bench_disk;

/** FSDP_ERR_ARG on all ranks where `parent`, which may be NULL, is not a folder that rank 0 may write to. Collective. */
fsdp_status bench_disk_possible(const bench_world *world, const char *parent);

/** Makes a folder of its own in `parent`. Collective: FSDP_ERR_ARG on all ranks where that is not possible. */
fsdp_status bench_disk_open(bench_disk *disk, const bench_world *world, const char *parent);

/** Removes the folder with all in it. Collective. */
void bench_disk_close(const bench_disk *disk);

/** Removes what the folder holds. Collective. */
void bench_disk_clear(const bench_disk *disk);

/**
 * Waits until nothing is left to write, and makes the next reads come from the disk: drops the kernel's caches, or without the right to do so has it forget the files in
 * the folder, which it may refuse. Collective.
 */
void bench_disk_forget(const bench_disk *disk);

/**
 * SECONDS that one `dd` per rank takes for `bytes` each, files of their own: to write and sync them, or to read them. On the
 * slowest rank. Collective; below 0 on all ranks where one has failed.
 */
double bench_disk_dd(const bench_disk *disk, size_t bytes, int reads);

#endif
