/**
 * @file
 * How ranks find that they all call the same, with arguments that are good: each one's letter says what it calls; leaders
 * join what their nodes say; and if the ranks do not agree, a reduction finds those that the error names.
 */
#ifndef FSDPI_AGREEMENT_H
#define FSDPI_AGREEMENT_H

#include "lib/progress/request.h"

/** Posts this rank's letter for an operation. */
void fsdpi_agreement_post(fsdp_request *request);

/**
 * Instead, of the shortest operations, where each rank is a node: all of the agreement in one step, whose end is left to
 * fsdpi_agreement_advance() where the others have not come within a moment, or call something else.
 */
bool        fsdpi_agreement_is_brief(const fsdp_request *request);
fsdp_status fsdpi_agreement_brief(fsdp_request *request, bool *agreed);

/** One step; `agreed` is set once it is known that all do. Else the request goes on to FSDPI_REQUEST_EXCHANGING_DETAILS. */
fsdp_status fsdpi_agreement_advance(fsdp_request *request, fsdpi_progress *progress, bool *agreed);

/** One step of that reduction; its end is an error: the same on all ranks, recorded. */
fsdp_status fsdpi_details_advance(fsdp_request *request, fsdpi_progress *progress);

/** The letter of a peer for the operation at the head, after the agreement. */
const fsdpi_letter *fsdpi_letter_from(const fsdp_request *request, int position);

/**
 * For the time before there is a mailbox, by MPI alone and blocking: whether all ranks have come with the same `salt`, and none
 * with an error.
 */
fsdp_status fsdpi_compare_by_mpi(const fsdpi_engine *engine, fsdp_status status, uint64_t salt, bool *agreed);

/**
 * If not: collects in engine->verdicts->all what each rank has to say: its error, where `status` is one, else `text`. Prints what
 * this rank has found and has not printed yet.
 */
fsdp_status fsdpi_tell_by_mpi(const fsdpi_engine *engine, fsdp_status status, const char *text);

/** Both, and the error that follows. */
fsdp_status fsdpi_agree_by_mpi(const fsdpi_engine *engine, fsdp_status status, const char *text, uint64_t salt);

#endif
