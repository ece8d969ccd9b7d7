/**
 * @file
 * The bytes that one rank writes of a model: where its runs lie in which file, and the writing of them. What touches files knows
 * no context and may run on any thread.
 *
 * Runs are written in the order of their place in the files. Neighbours go together, and pieces end where the file's offset is
 * a multiple of FSDPI_CHUNK_MOST: so writes are large and aligned, and each is one chunk with its checksum. In memory a piece begins
 * at an address that equals its offset modulo FSDPI_DIRECT_BYTES. Where tensors are divided over a tensor axis, runs consist of rows
 * between which other ranks have theirs: then chunks are stretches of FSDPI_CHUNK_MOST of the file, and each rank has a part of their
 * sums.
 */
#ifndef FSDPI_WRITER_H
#define FSDPI_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/cache/cache_file.h"
#include "shard/checkpoint/common/parts.h"
#include "shard/checkpoint/format/checksums.h"
#include "shard/checkpoint/format/tensor_files.h"

/** The tensors of one stem, and the files that they go to. */
typedef struct fsdpi_stem {
    fsdpi_parts     parts;
    fsdpi_file_plan plan;
    size_t          first_file; /* its number in the checkpoint; behind its last file comes its index, if it has one */
} fsdpi_stem;

enum { FSDPI_STEM_MODEL, FSDPI_STEM_OPTIMIZER, FSDPI_N_STEMS };

/** A run, and where it goes. */
typedef struct fsdpi_written_run {
    fsdpi_held_run      run;
    const fsdpi_tensor *tensor;
    fsdp_dtype          dtype; /* in the file */
    size_t              file;
    uint64_t            tensor_at; /* BYTES from the start of the file to the first element of the whole tensor, */
    uint64_t            offset; /* and to the first of the run; the others follow in rows: see shard/state/tp_part.h */
    size_t              bytes;  /* there */
    size_t              image_at; /* BYTES from the start of the image */
} fsdpi_written_run;

typedef struct fsdpi_writer {
    fsdp_context     *ctx;
    fsdp_model       *model;
    const fsdpi_stem *stems;      /* FSDPI_N_STEMS of them */
    size_t            first_file; /* the number of its first, as those that follow, in the checkpoint */
    size_t            n_files;
    bool              writes_headers; /* rank 0 */
    bool   adds_up; /* bytes of ranks interleave, and so their sums add up: see shard/checkpoint/format/checksums.h */
    size_t n_runs;
    fsdpi_written_run *runs;
    size_t             bytes;    /* of an image: all runs, and what aligns them */
    size_t             n_chunks; /* of the headers, if it writes them, and of runs: the same in every save */
    size_t             n_pieces; /* that fsdpi_writer_list() lists: as many, but where sums add up */
    fsdpi_file_chunk  *chunks;
    void              *image_room; /* NULL: without asynchronous saves */
    void              *ends;       /* FSDPI_ENDS_BYTES, while it writes */
    unsigned char     *image;      /* in it, aligned to FSDPI_DIRECT_BYTES */
    fsdp_status        copied;     /* FSDP_OK; or why it could not be copied, into the image or into the following */
    unsigned char     *scratch;    /* FSDPI_CHUNK_MOST and as aligned, while it writes from memory */
} fsdpi_writer;

/**
 * Lists what this rank writes. Local.
 * @param[in] stems    laid out; they outlive the writer
 * @param[in] with_image  whether there is room for fsdpi_writer_snapshot()
 * @return FSDP_OK; FSDP_ERR_MEMORY, recorded and printed. Close it all the same.
 */
fsdp_status fsdpi_writer_open(fsdp_model *model, const fsdpi_stem *stems, bool with_image, fsdpi_writer *writer);
void        fsdpi_writer_close(fsdpi_writer *writer);

/** BYTES of staging that it holds, and of bookkeeping. */
size_t fsdpi_writer_staging(const fsdpi_writer *writer);
size_t fsdpi_writer_bookkeeping(const fsdpi_writer *writer);

/** BYTES of staging that fsdpi_writer_write() takes from memory: writers work one after the other. */
size_t fsdpi_writer_scratch(void);

/** The name of a file by its number in the checkpoint. */
const char *fsdpi_writer_file_name(const fsdpi_stem *stems, size_t file);

/** How many BYTES it has in the end. */
uint64_t fsdpi_writer_file_bytes(const fsdpi_stem *stems, size_t file);

/** What it is made with: an index, or what comes before the tensors. */
const char *fsdpi_writer_file_beginning(const fsdpi_stem *stems, size_t file, size_t *bytes);

/** Makes all files in `folder`, with headers and their final length, and the indices. What is not synced here the writer of headers
 * syncs in fsdpi_writer_write(). */
fsdp_status fsdpi_writer_make_files(const fsdpi_writer *writer, const char *folder, fsdpi_problem *problem);

/** Copies all runs into the image, as they will be in the files. */
void fsdpi_writer_snapshot(fsdpi_writer *writer);

/** The same into memory of the caller's, of `writer->bytes`. Also while the image is being written. FSDP_OK; why it could not. */
fsdp_status fsdpi_writer_copy(const fsdpi_writer *writer, unsigned char *image);

/**
 * Lists what such a copy consists of, `writer->n_pieces`, without sums but those of headers, which are not listed where sums add up:
 * it begins at `image_begins`.
 */
void fsdpi_writer_list(const fsdpi_writer *writer, uint64_t image_begins, fsdpi_cached_chunk *chunks);

/** Writes all runs into the files in `folder`, from the image or from memory, and syncs them. Sets the chunks. */
fsdp_status fsdpi_writer_write(fsdpi_writer *writer, bool from_image, const char *folder, fsdpi_problem *problem);

#endif
