/**
 * @file
 * Reading and writing files at offsets, with every return checked. Nothing is mapped: what shrinks under a reader is an error,
 * not a signal. `path` is for texts of problems where there is an open file. Calls of several threads are fine.
 */
#ifndef FSDPI_FILE_IO_H
#define FSDPI_FILE_IO_H

#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/problem.h"

/** Reads `n_bytes` from `offset` on; interruptions and short counts are continued. FSDP_ERR_IO; FSDP_ERR_FORMAT at an early end. */
fsdp_status fsdpi_file_read(int fd, const char *path, uint64_t offset, void *bytes, size_t n_bytes,
                            fsdpi_problem *problem);

/** Writes `n_bytes` from `offset` on, in the same way. FSDP_ERR_IO. */
fsdp_status fsdpi_file_write(int fd, const char *path, uint64_t offset, const void *bytes, size_t n_bytes,
                             fsdpi_problem *problem);

/** Opens a regular file to read, and tells its BYTES. The caller closes it. FSDP_ERR_IO; FSDP_ERR_FORMAT for no regular file. */
fsdp_status fsdpi_file_open(const char *path, int *fd, uint64_t *bytes, fsdpi_problem *problem);

/** All of a file of at most `most` BYTES, which the caller frees; a NUL follows them. FSDP_ERR_IO, FSDP_ERR_FORMAT, FSDP_ERR_MEMORY. */
fsdp_status fsdpi_file_text(const char *path, size_t most, char **text, size_t *bytes, fsdpi_problem *problem);

#endif
