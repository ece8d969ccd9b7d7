/**
 * @file
 * Tensors in one safetensors file, or in several that a `model.safetensors.index.json` binds together.
 *
 * Headers are read with pread() and data never mapped: what shrinks under a reader is an error, not a signal. Nothing here
 * communicates; every rank may open for itself. Problems are FSDP_ERR_IO, FSDP_ERR_FORMAT and FSDP_ERR_MEMORY.
 */
#ifndef FSDPI_TENSOR_FILES_H
#define FSDPI_TENSOR_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/file_io.h"
#include "shard/checkpoint/format/problem.h"
#include "shard/checkpoint/format/safetensors.h"

#define FSDPI_INDEX_SUFFIX ".index.json"

/** BYTES that an index may have; 16 million names of 64 bytes. */
#define FSDPI_INDEX_MOST ((size_t)1 << 30)

/** An open file. */
typedef struct fsdpi_tensor_file {
    int               fd;
    char             *path;
    fsdpi_safetensors header;
} fsdpi_tensor_file;

/** A tensor, and the file that holds it. */
typedef struct fsdpi_placed_tensor {
    const fsdpi_tensor_info *info;
    const fsdpi_tensor_file *file;
} fsdpi_placed_tensor;

/** Tensors of one or several files. */
typedef struct fsdpi_tensor_files {
    size_t               n_files;
    fsdpi_tensor_file   *files; /* by name */
    size_t               n_tensors;
    fsdpi_placed_tensor *tensors; /* file by file, each in the order of its bytes */
    size_t              *by_name; /* indices of tensors, by name */
} fsdpi_tensor_files;

/**
 * Opens `path`: a safetensors file, or an index, which ends in ".index.json". An index is one object with "weight_map", from
 * each tensor's name to the file in the same folder that holds it, and maybe "metadata". It is refused where a name of a file
 * leads out of the folder, or map and files do not name the same tensors.
 * @param[out] files  released with fsdpi_tensor_files_close(); zeros after an error
 */
fsdp_status fsdpi_tensor_files_open(const char *path, fsdpi_tensor_files *files, fsdpi_problem *problem);

/**
 * Opens what a checkpoint's folder holds under a name: FOLDER/STEM.safetensors, or, if that does not exist,
 * FOLDER/STEM.safetensors.index.json.
 */
fsdp_status fsdpi_tensor_files_open_in(const char *folder, const char *stem, fsdpi_tensor_files *files,
                                       fsdpi_problem *problem);

/** Whether a text is an index, as above, of `n_tensors`; files are not looked at. `path` is for texts of problems. */
fsdp_status fsdpi_tensor_index_check(const char *path, const char *text, size_t bytes, size_t *n_tensors,
                                     fsdpi_problem *problem);

void fsdpi_tensor_files_close(fsdpi_tensor_files *files);

/** The tensor of a name; NULL if there is none. O(log n). */
const fsdpi_placed_tensor *fsdpi_tensor_files_find(const fsdpi_tensor_files *files, const char *name);

/** Reads BYTES `begin` to `begin + bytes` of a tensor, which has them. Calls of several threads are fine. */
fsdp_status fsdpi_tensor_read(const fsdpi_placed_tensor *tensor, uint64_t begin, void *values, size_t bytes,
                              fsdpi_problem *problem);

/* ---- Which file a tensor will be written to ---- */

/** A file to be written: `header` at its start, then the tensors' bytes. */
typedef struct fsdpi_planned_file {
    char    *name; /* in the folder, as "model-00001-of-00003.safetensors" */
    char    *header;
    size_t   header_bytes; /* where data begins */
    uint64_t file_bytes;
    size_t   first_tensor; /* of the plan's tensors */
    size_t   n_tensors;
} fsdpi_planned_file;

typedef struct fsdpi_file_plan {
    size_t              n_files;
    fsdpi_planned_file *files;
    char               *index_name; /* "model.safetensors.index.json"; NULL for one file */
    char               *index;      /* its text; NULL for one file */
    size_t              index_bytes;
} fsdpi_file_plan;

/**
 * Divides tensors over files: a pure function, the same on every rank. A file takes tensors in the order given until the next
 * one would make it larger than `most_bytes`; a tensor is never divided, so a large one may exceed it alone.
 *
 * @param[in]     stem        "model"
 * @param[in,out] tensors     as for fsdpi_safetensors_lay_out(): begin and end are set, each for its file. File i holds
 *                            tensors first_tensor to first_tensor + n_tensors
 * @param[in]     most_bytes  data of a file; 0: all in one
 * @param[out]    plan        released with fsdpi_file_plan_free(); zeros after an error
 * @return as fsdpi_safetensors_lay_out()
 */
fsdp_status fsdpi_file_plan_make(const char *stem, fsdpi_tensor_info *tensors, size_t n_tensors,
                                 const fsdpi_text_pair *metadata, size_t n_metadata, uint64_t most_bytes,
                                 fsdpi_file_plan *plan, fsdpi_problem *problem);

void fsdpi_file_plan_free(fsdpi_file_plan *plan);

#endif
