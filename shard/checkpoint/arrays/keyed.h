/**
 * @file
 * Rows that are known by a number of their own, wherever they are: an array of numbers and one for each column. What is written or
 * has been read of them is in memory of the checkpoint, in the order of the numbers.
 */
#ifndef FSDPI_KEYED_H
#define FSDPI_KEYED_H

#include "shard/checkpoint/arrays/arrays.h"

#define FSDPI_KEYED_IDS "id"

typedef struct fsdpi_keyed {
    struct fsdpi_keyed *next;
    const char         *name;    /* behind it */
    size_t              n;       /* columns, the numbers included */
    fsdpi_array       **columns; /* the numbers first; behind it */
    size_t              rows;    /* of which there is memory */
    bool                read;    /* it holds what has been read */

    /* What the program has said for the next save. */
    bool               is_set;
    size_t             n_given;
    const int64_t     *ids;
    const void *const *given; /* of all columns but the numbers */
} fsdpi_keyed;

/** Those of a name; NULL if there are none. */
fsdpi_keyed *fsdpi_keyed_find(const fsdpi_arrays *arrays, const char *name);

/**
 * Takes rows, whose arrays have their types and widths, with their names. All or nothing. FSDP_ERR_MEMORY, recorded and printed.
 * @param[in] columns  the numbers first
 */
fsdp_status fsdpi_keyed_take(fsdpi_arrays *arrays, const char *name, size_t n, const fsdpi_array *columns,
                             const char *const *names);

/** Frees the last ones that were taken, and their arrays, which are the last too. */
void fsdpi_keyed_drop_last(fsdpi_arrays *arrays);

/** Frees the list, and all memory of rows. The arrays are freed apart. */
void fsdpi_keyed_free(fsdpi_arrays *arrays);

/** BYTES of bookkeeping. */
size_t fsdpi_keyed_bookkeeping(const fsdpi_arrays *arrays);

/** BYTES of a row in a column. */
size_t fsdpi_keyed_width(const fsdpi_array *column);

/** Gives all columns memory for `rows`, none of which are the program's. FSDP_ERR_MEMORY, recorded and printed; then there are none. */
fsdp_status fsdpi_keyed_allocate(fsdp_context *ctx, fsdpi_keyed *keyed, size_t rows);

/** Frees it. */
void fsdpi_keyed_release(fsdp_context *ctx, fsdpi_keyed *keyed);

/** Says where the rows in memory lie in the file: from row `first` on, of `all`. */
void fsdpi_keyed_place(fsdpi_keyed *keyed, uint64_t first, uint64_t all);

#endif
