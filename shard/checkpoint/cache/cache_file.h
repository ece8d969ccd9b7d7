/**
 * @file
 * A file of a cache: what one rank has of one state of a run, in the memory or on the disk of a node. Needs no context.
 *
 *     head      FSDPI_CACHE_HEAD_BYTES, a fsdpi_cache_head
 *     image     the bytes that the rank would write into the files of a checkpoint, up to the next multiple of that
 *     chunks    where they belong there, and their checksums
 *     meta      of rank 0 what the files have besides, see shard/checkpoint/cache/meta.h
 *
 * The sum in the head is over the head, the chunks and the meta, and is written last: with it the file is whole, and each chunk
 * can be checked. Words are those of the host; files of another byte order or version are none.
 */
#ifndef FSDPI_CACHE_FILE_H
#define FSDPI_CACHE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/folder/names.h"
#include "shard/checkpoint/format/folder.h"
#include "shard/checkpoint/format/problem.h"

enum { FSDPI_CACHE_HEAD_BYTES = 4096, FSDPI_CACHE_ID_BYTES = 24 };

_Static_assert(FSDPI_CACHE_ID_BYTES >= FSDPI_JOB_BYTES, "an identity has room");

/** `at` of a chunk that is not in the image: of what a file is made with. */
#define FSDPI_CACHE_NOWHERE UINT64_MAX

/** Consecutive bytes of one file. */
typedef struct fsdpi_cached_chunk {
    uint64_t file, begin, bytes; /* as in fsdpi_file_chunk */
    uint64_t at;                 /* BYTES from the beginning of the image */
    uint64_t sum;
} fsdpi_cached_chunk;

typedef struct fsdpi_cache_head {
    char     magic[8];
    uint64_t sum;                           /* 0: it is being written */
    char     run[FSDPI_CACHE_ID_BYTES];     /* which folder of checkpoints it belongs to */
    char     attempt[FSDPI_CACHE_ID_BYTES]; /* which program has written it: fsdpi_run_folder's `job` */
    uint64_t step, generation;
    uint64_t base;         /* the step that `latest` named then, and 1 more; 0: none */
    uint64_t ranks, owner; /* of how many, which one's it is */
    uint64_t image_bytes, n_chunks, meta_bytes;
} fsdpi_cache_head;

/** BYTES of a file with so much in it. */
size_t fsdpi_cache_file_bytes(size_t image_bytes, size_t n_chunks, size_t meta_bytes);

/* ---- to write ------------------------------------------------------------------------------------------------------ */

typedef struct fsdpi_cache_file {
    char           path[FSDPI_FOLDER_PATH_BYTES];
    unsigned char *base;  /* mapped; NULL: there is none */
    size_t         bytes; /* reserved */
} fsdpi_cache_file;

/**
 * Makes a file of at least `bytes`, or makes one longer, with room for all of it, so that writing to it is no signal. What is in it
 * stays. FSDP_ERR_IO: no room, or the folder cannot be used; the file is as before then.
 */
fsdp_status fsdpi_cache_file_reserve(fsdpi_cache_file *file, size_t bytes, fsdpi_problem *problem);

/** Releases the memory; the file stays where it is. Zeros are allowed. */
void fsdpi_cache_file_close(fsdpi_cache_file *file);

/** Where its parts are. */
fsdpi_cache_head   *fsdpi_cache_head_of(const fsdpi_cache_file *file);
unsigned char      *fsdpi_cache_image_of(const fsdpi_cache_file *file);
fsdpi_cached_chunk *fsdpi_cache_chunks_of(const fsdpi_cache_file *file);
unsigned char      *fsdpi_cache_meta_of(const fsdpi_cache_file *file);

/** From now on it is none, whatever it was. */
void fsdpi_cache_file_begin(const fsdpi_cache_file *file);

/** Sums up the chunks, and makes it whole. */
void fsdpi_cache_file_seal(const fsdpi_cache_file *file);

/** The same for one that has come with its sums and this head. */
void fsdpi_cache_file_take(const fsdpi_cache_file *file, const fsdpi_cache_head *head);

/* ---- to read ------------------------------------------------------------------------------------------------------- */

typedef struct fsdpi_cache_reader {
    char                path[FSDPI_FOLDER_PATH_BYTES];
    int                 fd; /* -1: closed */
    fsdpi_cache_head    head;
    fsdpi_cached_chunk *chunks; /* with what follows: one piece of memory */
    const char         *meta;
} fsdpi_cache_reader;

/**
 * Opens a file and checks its head, chunks and meta; none of what is in the image is read.
 * @return FSDP_OK; FSDP_ERR_FORMAT: it is no such file, was not finished, or is damaged; FSDP_ERR_IO, FSDP_ERR_MEMORY. Nothing is
 *         open then.
 */
fsdp_status fsdpi_cache_reader_open(const char *path, fsdpi_cache_reader *reader, fsdpi_problem *problem);
void        fsdpi_cache_reader_close(fsdpi_cache_reader *reader);

/** Reads what chunk `i` has in the image. `to`: FSDPI_CHUNK_MOST. FSDP_ERR_FORMAT where its sum is another; FSDP_ERR_IO. */
fsdp_status fsdpi_cache_reader_chunk(const fsdpi_cache_reader *reader, size_t i, void *to, fsdpi_problem *problem);

#endif
