/**
 * @file
 * Trains a random model with the library, op by op beside the reference, and compares all that can be seen: gathered and
 * gradient views, losses, norms, what the loss scaler does, exported tensors, and the files of checkpoints.
 */
#ifndef FSDP_TESTS_RANDOM_LIBRARY_H
#define FSDP_TESTS_RANDOM_LIBRARY_H

#include <mpi.h>

#include "tests/shard/random/serial.h"

enum { FINDING_BYTES = 512 };

/**
 * Trains it on MPI_COMM_WORLD, with checkpoints in `folder`, which all ranks share. Collective.
 *
 * @param[in]  repeat   a command that does the same again, for a call that fails: the job ends then
 * @param[out] finding  "" or the first difference on this rank
 * @return how many differences this rank has found
 */
size_t train_and_compare(const random_model *m, const char *folder, const char *repeat, char finding[FINDING_BYTES]);

#endif
