/**
 * @file
 * The arrays of the program in a checkpoint: which there are, where they lie in simulation.safetensors, and the writing of what
 * this rank has of them. What touches files knows no context and may run on any thread.
 *
 * Ranks write their own bytes only, row by row; rows that follow each other in the file go out as one. A chunk of checksums is
 * FSDPI_CHUNK_MOST of the file, and every rank that writes into it tells its part of a sum that adds up. So neither the sums nor
 * what a rank keeps grow with the number of rows.
 */
#ifndef FSDPI_ARRAYS_H
#define FSDPI_ARRAYS_H

#include "fsdp/checkpoint.h"
#include "shard/checkpoint/arrays/box.h"
#include "shard/checkpoint/format/checksums.h"
#include "shard/checkpoint/format/tensor_files.h"

#define FSDPI_SIMULATION_STEM "simulation"

struct fsdpi_keyed;

typedef struct fsdpi_array {
    struct fsdpi_array *next;
    fsdpi_tensor_info   info;       /* as it is written */
    bool                replicated; /* all ranks have all of it */
    fsdpi_box           held;       /* what this rank has */
    fsdpi_box           written;    /* what it writes of that */
    unsigned char      *memory;     /* the first element of `held` */
    unsigned char      *image;      /* what it writes, without gaps; NULL: none, or no room */
    size_t             *n_bytes;    /* of rank 0's bytes how many there are; NULL: it is an array */
    size_t              room;       /* for them, on all ranks */
    size_t              image_room; /* for them, where this rank writes them */
    struct fsdpi_keyed *keyed;      /* it is the numbers or a column of these; NULL: it is not */
    uint64_t            dims[FSDP_MAX_DIMS];
    const char         *name; /* behind it */
} fsdpi_array;

/** Those of a checkpoint. Zeros: none. */
typedef struct fsdpi_arrays {
    fsdp_context       *ctx;
    size_t              n;
    fsdpi_array        *first;   /* in the order in which they were added */
    struct fsdpi_keyed *keyed;   /* rows that are known by numbers */
    bool                changed; /* since the file was planned */
    fsdpi_file_plan     plan;
    fsdpi_array       **in_file; /* in the order of their bytes */
    size_t              n_in_file;
    size_t              n_parts; /* of chunks that this rank writes into */
    fsdpi_file_chunk   *parts;
} fsdpi_arrays;

/** The array of a name; NULL if there is none. */
fsdpi_array *fsdpi_arrays_find(const fsdpi_arrays *arrays, const char *name);

/** Takes an array, with memory for its image if it is to have one. FSDP_ERR_MEMORY, recorded and printed. */
fsdp_status fsdpi_arrays_take(fsdpi_arrays *arrays, const fsdpi_array *array, const char *name, bool with_image);

/** Frees the last one that was taken. */
void fsdpi_arrays_drop_last(fsdpi_arrays *arrays);

/** Frees everything. */
void fsdpi_arrays_free(fsdpi_arrays *arrays);

/**
 * Works out the file, and how many parts of chunks this rank writes; where nothing has changed does nothing. Local; the same file
 * on all ranks. FSDP_ERR_ARG: a name that is not allowed; FSDP_ERR_MEMORY.
 */
fsdp_status fsdpi_arrays_lay_out(fsdpi_arrays *arrays, fsdpi_problem *problem);

/** Sets how many bytes of rank 0 there are now, in a file that is planned again if that is another number. */
void fsdpi_bytes_set(fsdpi_arrays *arrays, fsdpi_array *bytes, size_t n);

/** Which of the bytes this rank holds, reads or writes. */
void fsdpi_bytes_divide(fsdpi_array *bytes, size_t n, bool writes);

/** BYTES of staging on this rank: images, and what a save takes; and of bookkeeping. */
size_t fsdpi_arrays_staging(const fsdpi_arrays *arrays);
size_t fsdpi_arrays_bookkeeping(const fsdpi_arrays *arrays);

/** Copies what this rank writes into the images. */
void fsdpi_arrays_snapshot(const fsdpi_arrays *arrays);

/**
 * Writes it, from the images or from memory, and syncs the file. Sets the parts, whose file is `number`.
 */
fsdp_status fsdpi_arrays_write(fsdpi_arrays *arrays, size_t number, bool from_image, const char *folder,
                               fsdpi_problem *problem);

/** A hash of all elements of a replicated array. */
uint64_t fsdpi_array_hash(const fsdpi_array *array);

/* ---- rows.c: the rows of this rank's boxes between memory and files ---- */

/** How many chunks of the file this rank writes into, in stretches: of the plan, which is made. With the header, on rank 0. */
size_t fsdpi_rows_count_parts(const fsdpi_arrays *arrays);

/** Copies what this rank writes of an array to where it lies without gaps. */
void fsdpi_rows_pack(const fsdpi_array *array, unsigned char *to);

/**
 * Reads what this rank holds of an array, from the tensor that has it. `scratch`: FSDPI_READ_BYTES. Where a good part of what lies
 * between rows is the rank's own, many rows are read at once.
 */
fsdp_status fsdpi_rows_read(const fsdpi_array *array, const fsdpi_placed_tensor *tensor, void *scratch,
                            fsdpi_problem *problem);

#endif
