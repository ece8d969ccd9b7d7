/**
 * @file
 * Carries a lowered schedule out without doing anything: each rank its actions in order, a send as soon as there is a buffer for it, a
 * receive once its message is there. Since no rank ever chooses, what stops here stops everywhere, and what ends here ends whatever
 * the times are (Kahn, "The semantics of a simple language for parallel programming", 1974).
 */
#ifndef FSDPI_SIMULATE_H
#define FSDPI_SIMULATE_H

#include "shard/pipeline/passes.h"

typedef struct fsdpi_pace {
    double forward, backward_input, backward_weight; /* of one micro-batch in one stage; any unit. Both together: B */
    double transfer; /* of one message, of which one at a time is on its way to a stage */
    int buffers; /* messages that were sent to a stage and that it has not received yet, in one direction; at least 1 */
    int most_held; /* micro-batches whose activations a rank may hold at once; 0: any number */
} fsdpi_pace;

/** Of one rank. */
typedef struct fsdpi_rank_run {
    double *begin; /* of each action */
    double  busy, end;
    int     held, most_held; /* micro-batches between F and B, or F and I */
    int     owed, most_owed; /* and between I and W */
    size_t  n_done;
} fsdpi_rank_run;

typedef struct fsdpi_simulation {
    fsdpi_rank_run *ranks;
    int             n_ranks;
    double          seconds; /* until the last rank is done; in the unit of the times */
    size_t          messages;
} fsdpi_simulation;

/**
 * @param passes  of a schedule that fsdpi_verify_passes() and fsdpi_verify_order() have found good
 * @return false where it deadlocks, with the ranks that wait for each other, or holds too much, or memory is short. `run` says how
 *         far ranks came also then; fsdpi_simulation_close() it
 */
bool fsdpi_simulate(const fsdpi_passes *passes, const fsdpi_pace *pace, fsdpi_simulation *run, fsdpi_flaw *flaw);
void fsdpi_simulation_close(fsdpi_simulation *run);

/** SECONDS of an action of computing; 0 of others. */
double fsdpi_duration(const fsdpi_pace *pace, fsdpi_work work);

#endif
