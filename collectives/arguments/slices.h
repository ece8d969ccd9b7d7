/**
 * @file
 * Where each rank's part of the full vector lies.
 */
#ifndef FSDPI_SLICES_H
#define FSDPI_SLICES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/progress/queue.h"

/** A run of ELEMENTS of the full vector. */
typedef struct fsdpi_slice {
    size_t begin;
    size_t count;
} fsdpi_slice;

/** Of FSDPI_DIVISION_COUNTS: how long the part of a rank is. */
static inline size_t fsdpi_given_count(const fsdpi_call *call, int rank)
{
    return call->counts != NULL ? call->counts[rank]
                                : call->begins(call->divided, rank + 1) - call->begins(call->divided, rank);
}

/** The part that a division other than FSDPI_DIVISION_EQUAL gives to a rank; see fsdpi_slice_of(). */
fsdpi_slice fsdpi_uneven_slice_of(const fsdp_request *request, int rank);

/** The part that the call's division gives to a rank. The shortest operations ask for it many times. */
static inline fsdpi_slice fsdpi_slice_of(const fsdp_request *request, int rank)
{
    const fsdpi_call *call = &request->call;

    return call->division == FSDPI_DIVISION_EQUAL ? (fsdpi_slice){call->count * (size_t)rank, call->count}
                                                  : fsdpi_uneven_slice_of(request, rank);
}

/** The part of a rank of `count` ELEMENTS that are split over `size` ranks as evenly as cache lines allow. */
fsdpi_slice fsdpi_even_slice(size_t count, int size, int rank);

/** Its ELEMENTS alone, and the part of the rank behind one whose part is known: at once, however many ranks there are. */
size_t      fsdpi_count_of(const fsdp_request *request, int rank);
fsdpi_slice fsdpi_next_slice(const fsdp_request *request, fsdpi_slice before, int rank);

/** The largest part of any rank, in ELEMENTS; likewise. */
size_t               fsdpi_largest_uneven_slice(const fsdp_request *request);
static inline size_t fsdpi_largest_slice(const fsdp_request *request)
{
    return request->call.division == FSDPI_DIVISION_EQUAL ? request->call.count : fsdpi_largest_uneven_slice(request);
}

/** Whether any byte of one run of memory is in the other. */
bool fsdpi_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes);

/**
 * Where a rank's part of a reduction is computed: in the output; or, where that lies over parts of the input which others
 * still read, in its own part of the input, from where fsdpi_settle() (collectives/reach/pieces.h) moves it when all have left.
 */
unsigned char *fsdpi_own_result(const fsdp_request *request);

#endif
