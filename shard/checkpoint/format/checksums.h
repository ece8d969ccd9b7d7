/**
 * @file
 * Checksums of files in chunks: XXH3 with 64 bits, of the xxHash library.
 *
 * A file is divided into consecutive chunks of any length, as its writers find it convenient, of at most
 * FSDPI_CHUNK_MOST: whoever needs a few bytes of it reads and checks the chunks that hold them. In state.json:
 *
 *     "checksums": {
 *       "algorithm": "XXH3_64",
 *       "files": [
 *         {"name": "model.safetensors", "bytes": 4352, "chunks": 2}
 *       ],
 *       "file": "checksums.bin",
 *       "sum": "2d06800538d394c2"
 *     }
 *
 * The chunks themselves, each its BYTES and its sum, are in that file, whose sum this is:
 * shard/checkpoint/format/checksums_file.h. Without "file", as version 1 of state.json has it, "chunks" is an array of them,
 * [[256, "2d06800538d394c2"], ...]. `xxhsum -H3` prints the same digits. Chunks add up to the file's bytes.
 */
#ifndef FSDPI_CHECKSUMS_H
#define FSDPI_CHECKSUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/problem.h"

/** The file that has the chunks of all others, in the same folder. */
#define FSDPI_CHECKSUMS_FILE "checksums.bin"

/** BYTES that are read of it: 16 million chunks, which are 64 TB where none is short. */
#define FSDPI_CHECKSUMS_FILE_MOST ((uint64_t)256 << 20)

/** BYTES of a chunk in it. */
enum { FSDPI_STORED_CHUNK_BYTES = 16 };

#define FSDPI_CHUNK_MOST ((size_t)4 << 20) /* BYTES */

/** BYTES that are read at once to be looked at: they stay in a core's cache, and the kernel reads ahead meanwhile. */
#define FSDPI_READ_BYTES ((size_t)256 << 10)

uint64_t fsdpi_checksum(const void *bytes, size_t n_bytes);

typedef struct fsdpi_chunk {
    uint64_t begin; /* BYTES from the start of the file */
    uint64_t bytes; /* 1 to FSDPI_CHUNK_MOST */
    uint64_t sum;
} fsdpi_chunk;

typedef struct fsdpi_file_sums {
    char    *name;
    uint64_t bytes; /* of the file */
    size_t   n_chunks;
    fsdpi_chunk
        *chunks; /* without hole or overlap, from 0 to `bytes`; NULL while they are apart and have not been read */
} fsdpi_file_sums;

typedef struct fsdpi_checksums {
    size_t           n_files;
    fsdpi_file_sums *files;
    bool             apart;         /* chunks are in a file of their own */
    uint64_t         sum_of_chunks; /* of that file */
} fsdpi_checksums;

/** Puts the member "checksums" into the object that is open; the chunks are apart, and have been written. */
void fsdpi_checksums_put(fsdpi_json_writer *writer, const fsdpi_checksums *sums);

/**
 * Takes it out of the object that has it, and checks all that the comment above says; names of files are plain names that
 * differ. An algorithm of another name is refused by name.
 * @param[out] sums  released with fsdpi_checksums_free(); zeros after an error
 */
fsdp_status fsdpi_checksums_get(const fsdpi_json_value *object, fsdpi_checksums *sums, fsdpi_problem *problem);

void fsdpi_checksums_free(fsdpi_checksums *sums);

/** Those of a file; NULL if there are none. */
const fsdpi_file_sums *fsdpi_checksums_find(const fsdpi_checksums *sums, const char *name);

/** The index of the chunk that holds byte `at`, which is below `sums->bytes`. O(log n). */
size_t fsdpi_chunk_of(const fsdpi_file_sums *sums, uint64_t at);

/**
 * Reads a chunk of an open file: FSDP_ERR_FORMAT where its bytes do not have its sum. `scratch`: FSDPI_READ_BYTES.
 */
fsdp_status fsdpi_chunk_verify(int fd, const char *path, const fsdpi_chunk *chunk, void *scratch,
                               fsdpi_problem *problem);

/** Reads all of an open file, and checks its length and every chunk. */
fsdp_status fsdpi_file_verify(int fd, const char *path, const fsdpi_file_sums *sums, fsdpi_problem *problem);

#endif
