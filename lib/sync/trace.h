/**
 * @file
 * FSDP_TRACE: when passes began and ended, and when each operation was issued, begun and done, in the JSON array of the
 * trace event format that Perfetto and chrome://tracing show. One file per rank, PREFIX.RANK.json; further contexts of a
 * process write PREFIX.RANK.1.json and so on. Times are those of the system's monotonic clock: ranks of one machine line up.
 *
 * Nothing here fails once the file is open: what cannot be written is warned about once, and the file ends there. Without
 * FSDP_TRACE all of it does nothing.
 */
#ifndef FSDPI_TRACE_H
#define FSDPI_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/core.h"

/** Rows of a trace: passes of models, operations of the context, and those of the groups of a hybrid model. */
typedef enum fsdpi_trace_row { FSDPI_ROW_PASSES, FSDPI_ROW_ALL, FSDPI_ROW_SHARDS, FSDPI_ROW_REPLICAS } fsdpi_trace_row;

typedef struct fsdpi_trace {
    FILE *file; /* NULL: none. Another thread may write at the same time: each event is one call of the C library. */
    int   rank; /* of the context whose file it is */
    fsdpi_trace_row   row;   /* of operations */
    const fsdpi_core *core;  /* of that context */
    atomic_bool      *whole; /* its `is_whole`: nothing is missing from the file so far */
    atomic_bool       is_whole;
} fsdpi_trace;

/** Local. FSDP_ERR_ARG, recorded, for the agreement to print, where the file cannot be written. */
fsdp_status fsdpi_trace_open(fsdpi_trace *trace, const fsdpi_core *core);
void        fsdpi_trace_close(fsdpi_trace *trace);

/** Without writing anything: in a process that fork() has made, where the file is the parent's. */
void fsdpi_trace_forget(fsdpi_trace *trace);

/** Lets the operations of a part of a context go into the same file. */
void fsdpi_trace_share(const fsdpi_trace *trace, fsdpi_trace *part, fsdpi_trace_row row);

/** Seconds, by the clock of the trace; 0 where there is none. */
double fsdpi_trace_now(const fsdpi_trace *trace);

/** Something called `name`, of `kind`, from `begin` until now. */
void fsdpi_trace_span(const fsdpi_trace *trace, const char *kind, const char *name, double begin);

/** An operation that is over. */
typedef struct fsdpi_trace_event {
    const char *name;    /* of the collective */
    const char *label;   /* what it was done for; or NULL */
    const char *purpose; /* the function that it was a step of */
    const char *algorithm;
    uint64_t    sequence;
    double      issued, begun; /* as fsdpi_trace_now() said */
    size_t      in_bytes, out_bytes;
    fsdp_status status;
} fsdpi_trace_event;

/** Only where there is a trace. */
void fsdpi_trace_operation(const fsdpi_trace *trace, const fsdpi_trace_event *event);

#endif
