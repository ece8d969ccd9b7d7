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

/** What a save reads. Begins as zeros; the caller frees `ids`. */
typedef struct md_rows {
    int64_t    *ids;
    const void *columns[2];
} md_rows;

/** Before each save: which of them this rank has. `rows` and the frame have to stay until it returns. */
fsdp_status md_atoms_set(fsdp_context *ctx, fsdp_checkpoint *checkpoint, const md_frame *frame, md_rows *rows);

/** All `atoms` atoms of a checkpoint that has been restored, in the order of their tags, on every rank: [2][atoms][3], x and v. */
fsdp_status md_atoms_get(fsdp_context *ctx, const fsdp_checkpoint *checkpoint, size_t atoms, double *all);

#endif
