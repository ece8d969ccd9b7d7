/**
 * @file
 * Where LAMMPS and libfsdp meet: the one file that knows both. Atoms are read where LAMMPS has them, and forces are written where
 * it takes them from: nothing is copied in between.
 *
 * All functions but md_coupling_frame() are collective. Those with a status return FSDP_OK, or the same one on all ranks: then
 * LAMMPS, the library or rank 0 has said why.
 */
#ifndef MD_COUPLING_H
#define MD_COUPLING_H

#include "md_lammps.h"
#include "md_learner.h"

/** A LAMMPS whose atoms a potential moves. */
typedef struct md_driver {
    void       *lammps; /* opened with MD_LEARNED */
    md_learner *learner;
    fsdp_status status; /* of the callback, which cannot return one */
} md_driver;

/** What LAMMPS, opened with MD_REFERENCE, has worked out at the end of a run; valid until it works again. Local. */
md_frame md_coupling_frame(void *lammps);

/** From now on the learner's `potential` moves the atoms. `driver` has to stay where it is. */
void md_coupling_drive(md_driver *driver);

/** Where atoms come from: a checkpoint that has been restored, whatever ranks saved it; or, if that is NULL, from a LAMMPS. */
typedef struct md_source {
    const fsdp_checkpoint *checkpoint;
    void                  *lammps;
} md_source;

/**
 * Puts all `atoms` atoms of a source into LAMMPS, in place of those there are. A LAMMPS that is its own source goes on as one
 * that was given the same atoms by a checkpoint: to the last bit.
 * @param[in] step  what its time steps are counted from
 */
fsdp_status md_coupling_seat(void *lammps, const md_source *source, fsdp_context *ctx, size_t atoms, uint64_t step);

#endif
