/**
 * @file
 * What every collective has to find out about its arguments before anything moves, and where each rank's part lies.
 */
#ifndef FSDPI_ARGUMENTS_H
#define FSDPI_ARGUMENTS_H

#include <stddef.h>

#include "lib/queue.h"

/** Where this rank's contribution lies. */
static inline const unsigned char *fsdpi_input_of(const fsdpi_call *call)
{
    return call->in != FSDP_IN_PLACE ? call->in : call->out;
}

/** A run of ELEMENTS of the full vector. */
typedef struct fsdpi_slice {
    size_t begin;
    size_t count;
} fsdpi_slice;

/** The part that the call's division gives to a rank. */
fsdpi_slice fsdpi_slice_of(const fsdp_request *request, int rank);

/** The largest part of any rank, in ELEMENTS. */
size_t fsdpi_largest_slice(const fsdp_request *request);

/** What the buffers of a call hold: the whole vector or one rank's part. */
typedef enum fsdpi_extent { FSDPI_NOTHING, FSDPI_PART, FSDPI_WHOLE } fsdpi_extent;

/**
 * Checks pointers, counts, types, root and overlap of a call and issues it: the common end of all nonblocking functions.
 * @param[in] in, out  how much of the vector the two buffers hold on this rank
 * @param[in] status  what this rank has found wrong already; then nothing is checked and the call only carries that
 */
fsdp_status fsdpi_issue_checked(fsdp_context *ctx, const fsdpi_call *call, const fsdpi_algorithm *algorithm,
                                fsdpi_extent in, fsdpi_extent out, fsdp_status status, fsdp_request **request);

#endif
