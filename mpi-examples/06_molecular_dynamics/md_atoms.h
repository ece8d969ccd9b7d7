/**
 * @file
 * Atoms in a checkpoint, as rows that go by their tags. Knows nothing of LAMMPS. All functions are collective, and return FSDP_OK, or
 * the same status on all ranks: then rank 0 or the library has said why.
 */
#ifndef MD_ATOMS_H
#define MD_ATOMS_H

#include "md_learner.h"

/** Makes atoms a part of what a checkpoint consists of: rows of x and v. */
fsdp_status md_atoms_add(fsdp_checkpoint *checkpoint);

/** Before each save: which of them this rank has. @param[in,out] ids  memory for their numbers, or NULL; the caller frees it */
fsdp_status md_atoms_set(fsdp_context *ctx, fsdp_checkpoint *checkpoint, const md_frame *frame, int64_t **ids);

/** All `atoms` atoms of a checkpoint that has been restored, in the order of their tags, on every rank: [2][atoms][3], x and v. */
fsdp_status md_atoms_get(fsdp_context *ctx, const fsdp_checkpoint *checkpoint, size_t atoms, double *all);

#endif
