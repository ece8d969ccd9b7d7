/**
 * @file
 * A file that several ranks write their parts of at the same time, at offsets.
 *
 * On the disk file systems of one host, ext4 and XFS, whole blocks go past the kernel's cache (O_DIRECT): through it, writes to
 * one file are done one after the other, each of them copied once more, and nothing reaches the disk before the sync. What is left
 * at the ends of pieces is kept, and goes through the cache last: such a write waits until all that others have under way in the
 * file is on the disk. Elsewhere it is plain pwrite(2): what is best on a file system that hosts share is its own affair.
 */
#ifndef FSDPI_OUTPUT_FILE_H
#define FSDPI_OUTPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/problem.h"

/** Memory at an address that equals the offset modulo these BYTES can go past the cache; other memory never does. */
#define FSDPI_DIRECT_BYTES ((size_t)4096)

/** BYTES in which ends are kept; when they are full, all are written. */
#define FSDPI_ENDS_BYTES ((size_t)256 << 10)

typedef struct fsdpi_output_file {
    int    fd;     /* -1: none is open */
    int    direct; /* the same file, past the cache; -1: not here */
    size_t block;  /* BYTES whose multiples are written there: no page of the cache has a part of one */
    char  *ends;   /* of each end its place, see output_file.c, and its bytes */
    size_t n_ends; /* BYTES in use there */
} fsdpi_output_file;

/**
 * Makes a file of `file_bytes`, which begins with `n_bytes`. On ext4 and XFS room on the disk is taken for all of it: ranks that
 * write at once into what has none yet wait for each other, and leave it in fragments; and a full disk is known before anything
 * else is written. FSDP_ERR_IO.
 */
fsdp_status fsdpi_output_make(const char *path, const void *bytes, size_t n_bytes, uint64_t file_bytes,
                              fsdpi_problem *problem);

/** Opens a file that is there. `ends` has FSDPI_ENDS_BYTES, and is the file's until it is closed. FSDP_ERR_IO. */
fsdp_status fsdpi_output_open(const char *path, void *ends, fsdpi_output_file *file, fsdpi_problem *problem);

/** As fsdpi_file_write(), but that some of the bytes may be in the file only when it is closed: each is to be written once. */
fsdp_status fsdpi_output_write(fsdpi_output_file *file, const char *path, uint64_t offset, const void *bytes,
                               size_t n_bytes, fsdpi_problem *problem);

/** Writes what was kept, syncs and closes; where none is open does nothing. FSDP_ERR_IO. */
fsdp_status fsdpi_output_close(fsdpi_output_file *file, const char *path, fsdpi_problem *problem);

#endif
