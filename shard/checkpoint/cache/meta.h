/**
 * @file
 * What the files of a checkpoint have beside the bytes that ranks hold: names, lengths, what comes before the tensors, and
 * state.json without its checksums. Rank 0's cache has it.
 */
#ifndef FSDPI_CACHE_META_H
#define FSDPI_CACHE_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/problem.h"

typedef struct fsdpi_cached_file {
    const char *name;
    uint64_t    bytes;
    const char *beginning;
    size_t      beginning_bytes;
    bool        adds_up; /* its checksums: see shard/checkpoint/format/checksums.h */
} fsdpi_cached_file;

typedef struct fsdpi_cache_meta {
    size_t             n_files;
    fsdpi_cached_file *files;
    const char        *state;
    size_t             state_bytes; /* without the NUL that is behind them */
} fsdpi_cache_meta;

/** BYTES that it takes. */
size_t fsdpi_cache_meta_bytes(const fsdpi_cache_meta *meta);

void fsdpi_cache_meta_write(const fsdpi_cache_meta *meta, unsigned char *to);

/**
 * Takes it apart; `path` is for the problem. The text stays where it is, and is changed by nobody.
 * @param[out] meta  whose `files` the caller frees, also after an error
 */
fsdp_status fsdpi_cache_meta_read(const char *path, const char *bytes, size_t n_bytes, fsdpi_cache_meta *meta,
                                  fsdpi_problem *problem);

#endif
