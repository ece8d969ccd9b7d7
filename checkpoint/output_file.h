/**
 * @file
 * A file that several ranks write their parts of at the same time, at offsets.
 *
 * On the disk file systems of one host, ext4 and XFS, whole blocks go past the kernel's cache (O_DIRECT): through it, writes to
 * one file are done one after the other, each of them copied once more, and nothing reaches the disk before the sync. Elsewhere,
 * and for what is left at the ends, it is plain pwrite(2): what is best on a file system that hosts share is its own affair.
 */
#ifndef FSDPI_OUTPUT_FILE_H
#define FSDPI_OUTPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "checkpoint/problem.h"

/** Memory at an address that equals the offset modulo these BYTES can go past the cache; other memory never does. */
#define FSDPI_DIRECT_BYTES ((size_t)4096)

typedef struct fsdpi_output_file {
    int    fd;     /* -1: none is open */
    int    direct; /* the same file, past the cache; -1: not here */
    size_t block;  /* BYTES whose multiples are written there: no page of the cache has a part of one */
} fsdpi_output_file;

/** Opens a file that is there. FSDP_ERR_IO. */
fsdp_status fsdpi_output_open(const char *path, fsdpi_output_file *file, fsdpi_problem *problem);

/** As fsdpi_file_write(). */
fsdp_status fsdpi_output_write(fsdpi_output_file *file, const char *path, uint64_t offset, const void *bytes,
                               size_t n_bytes, fsdpi_problem *problem);

/** Syncs and closes; where none is open does nothing. FSDP_ERR_IO. */
fsdp_status fsdpi_output_close(fsdpi_output_file *file, const char *path, fsdpi_problem *problem);

#endif
