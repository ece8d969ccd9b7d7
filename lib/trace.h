/**
 * @file
 * FSDP_TRACE: when passes began and ended, and when each operation was issued, begun and done, in the JSON array of the
 * trace event format that Perfetto and chrome://tracing show. One file per rank, PREFIX.RANK.json; further contexts of a
 * process write PREFIX.RANK.1.json and so on. Times are those of the system's monotonic clock: ranks of one machine line up.
 *
 * Nothing here fails once the file is open; without FSDP_TRACE all of it does nothing.
 */
#ifndef FSDPI_TRACE_H
#define FSDPI_TRACE_H

#include <stdio.h>

#include "fsdp/collectives.h"
#include "fsdp/context.h"

/** Rows of a trace: passes of models, operations of the context, and those of the groups of a hybrid model. */
typedef enum fsdpi_lane { FSDPI_LANE_PASSES, FSDPI_LANE_ALL, FSDPI_LANE_SHARDS, FSDPI_LANE_REPLICAS } fsdpi_lane;

typedef struct fsdpi_trace {
    FILE *file; /* NULL: none. Another thread may write at the same time: each event is one call of the C library. */
    int   rank; /* of the context whose file it is */
    fsdpi_lane lane; /* of operations */
} fsdpi_trace;

/** Local. FSDP_ERR_ARG, recorded and printed, where the file cannot be written. */
fsdp_status fsdpi_trace_open(fsdp_context *ctx);
void        fsdpi_trace_close(fsdp_context *ctx);

/** Lets the operations of a part of a context go into the same file. */
void fsdpi_trace_share(const fsdp_context *ctx, fsdp_context *part, fsdpi_lane lane);

/** Seconds, by the clock of the trace; 0 where there is none. */
double fsdpi_trace_now(const fsdp_context *ctx);

/** Something called `name`, of `kind`, from `begin` until now. */
void fsdpi_trace_span(const fsdp_context *ctx, const char *kind, const char *name, double begin);

/** An operation that is over, of a context with a trace. */
void fsdpi_trace_operation(const fsdp_request *request);

#endif
