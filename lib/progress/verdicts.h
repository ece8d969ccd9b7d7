/**
 * @file
 * What ranks tell each other when they do not agree: a line of text each. An error names a few of these, and those few are what
 * a reduction over all ranks keeps: no rank ever holds more of them, however many there are.
 */
#ifndef FSDPI_VERDICTS_H
#define FSDPI_VERDICTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "fsdp/context.h"
#include "fsdp/status.h"

enum { FSDPI_DETAIL_BYTES = 240, FSDPI_RANKS_NAMED = 4 };

/** What a rank tells the others when an operation cannot be carried out. */
typedef struct fsdpi_verdict {
    int32_t status;
    int32_t place; /* rank in the context */
    int32_t rank;  /* as texts call it: see lib/base/core.h */
    char    text[FSDPI_DETAIL_BYTES];
} fsdpi_verdict;

/** What is kept of the verdicts of some ranks. */
typedef struct fsdpi_summary {
    int32_t       failed;                 /* ranks whose status is not FSDP_OK */
    int32_t       differ;                 /* whether `other` is one */
    int32_t       alike;                  /* whether those that failed all say the same */
    fsdpi_verdict first, other;           /* of the lowest rank, and of the lowest whose text is another */
    fsdpi_verdict bad[FSDPI_RANKS_NAMED]; /* of those that failed, the lowest, in their order */
} fsdpi_summary;

/** The summary of one rank; and of two sets of ranks, into `all`. */
void fsdpi_summarize(const fsdpi_verdict *one, fsdpi_summary *all);
void fsdpi_summary_join(fsdpi_summary *all, const fsdpi_summary *others);

/** A summary, with what MPI reduces it by. */
typedef struct fsdpi_verdicts {
    fsdpi_summary all;
    MPI_Datatype  type;
    MPI_Op        op;
} fsdpi_verdicts;

/** Local. */
fsdp_status fsdpi_verdicts_open(fsdpi_verdicts *verdicts, fsdp_context *ctx);
void        fsdpi_verdicts_close(fsdpi_verdicts *verdicts);

/** Whether nobody before `mine`, which has failed, says the same: so that several ranks print it once. */
bool fsdpi_verdict_is_first(const fsdpi_summary *all, const fsdpi_verdict *mine);

/** The error of all ranks from the summary of all of them, recorded in `ctx`. */
fsdp_status fsdpi_verdicts_error(const fsdpi_summary *all, fsdp_context *ctx);

#endif
