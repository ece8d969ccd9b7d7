/**
 * @file
 * What every collective has to find out about its arguments before anything moves, and where each rank's part lies.
 */
#ifndef FSDPI_ARGUMENTS_H
#define FSDPI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/queue.h"

/** A run of ELEMENTS of the full vector. */
typedef struct fsdpi_slice {
    size_t begin;
    size_t count;
} fsdpi_slice;

/** The part that the call's division gives to a rank. */
fsdpi_slice fsdpi_slice_of(const fsdp_request *request, int rank);

/** The largest part of any rank, in ELEMENTS. */
size_t fsdpi_largest_slice(const fsdp_request *request);

/** Whether any byte of one run of memory is in the other. */
bool fsdpi_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes);

/**
 * Where a rank's part of a reduction is computed: in the output; or, where that lies over parts of the input which others
 * still read, in its own part of the input, from where fsdpi_settle() moves it when all have left.
 */
unsigned char *fsdpi_own_result(const fsdp_request *request);
void           fsdpi_settle(fsdp_request *request);

/** What the buffers of a call hold: the whole vector or one rank's part. */
typedef enum fsdpi_extent { FSDPI_NOTHING, FSDPI_PART, FSDPI_WHOLE } fsdpi_extent;

/**
 * Checks pointers, counts, types, root and overlap of a call and issues it: the common end of all collectives.
 * @param[in]  in, out  how much of the vector the two buffers hold on this rank
 * @param[in]  status   what this rank has found wrong already; then nothing is checked and the call only carries that
 * @param[out] request  ends with fsdp_wait()
 */
fsdp_status fsdpi_issue_checked(fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent in, fsdpi_extent out,
                                fsdp_status status, fsdp_request **request);

/** The same, and waits for it. */
fsdp_status fsdpi_run_checked(fsdp_context *ctx, const fsdpi_call *call, fsdpi_extent in, fsdpi_extent out,
                              fsdp_status status);

#endif
