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
 *
 * Of a file in which the ranks' bytes interleave, as those of boxes of one array do, no rank has a chunk to itself. Its sums add
 * up: each rank tells the sum of its own bytes, and the chunk's is the sum of these. Such a file has "algorithm": "SUM61" beside
 * its name. Let w(i) be word number i of the file, 4 bytes little-endian, as they are in the chunk and zeros elsewhere, and
 * k(i) the upper 61 bits of splitmix64(i), the output for the state i of Steele, Lea and Flood's generator (OOPSLA 2014): then
 * the sum is that of w(i) k(i) modulo 2^61 - 1, a multilinear hash as Carter and Wegman's (1979): a change of any number of
 * words stays unseen with a chance of 2^-61.
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

/** Adds to a sum that adds up `n_bytes` that lie in their file from byte `at` on. Starts from 0. */
uint64_t fsdpi_checksum_add(uint64_t sum, uint64_t at, const void *bytes, size_t n_bytes);

/** The sum of two sets of bytes of one chunk. */
uint64_t fsdpi_checksum_join(uint64_t a, uint64_t b);

typedef struct fsdpi_chunk {
    uint64_t begin; /* BYTES from the start of the file */
    uint64_t bytes; /* 1 to FSDPI_CHUNK_MOST */
    uint64_t sum;
} fsdpi_chunk;

/** As ranks tell it to each other; `file` is its number. All of it 64 bits wide. */
typedef struct fsdpi_file_chunk {
    uint64_t file, begin, bytes, sum;
} fsdpi_file_chunk;

typedef struct fsdpi_file_sums {
    char    *name;
    uint64_t bytes;   /* of the file */
    bool     adds_up; /* SUM61 */
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
 * Reads chunk `i` of an open file: FSDP_ERR_FORMAT where its bytes do not have its sum. `scratch`: FSDPI_READ_BYTES.
 */
fsdp_status fsdpi_chunk_verify(int fd, const char *path, const fsdpi_file_sums *sums, size_t i, void *scratch,
                               fsdpi_problem *problem);

/** Reads all of an open file, and checks its length and every chunk. */
fsdp_status fsdpi_file_verify(int fd, const char *path, const fsdpi_file_sums *sums, fsdpi_problem *problem);

#endif
