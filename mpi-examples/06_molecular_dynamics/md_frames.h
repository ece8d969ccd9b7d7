/**
 * @file
 * Frames that are LAMMPS's no more, for what the example is compared with: kept in memory, or read from a file that LAMMPS's `dump`
 * has written.
 */
#ifndef MD_FRAMES_H
#define MD_FRAMES_H

#include <stdio.h>

#include "md_learner.h"

/** Copies of frames. Begins as zeros. */
typedef struct md_kept {
    md_frame *frames;
    size_t    n;
} md_kept;

/** Keeps what training needs of a frame. Local. @return 0; -1: no memory */
int md_kept_add(md_kept *kept, const md_frame *frame);

void md_kept_release(md_kept *kept);

/** Frames from a file, of whose atoms each rank takes a share. */
typedef struct md_dump {
    fsdp_context *ctx;
    FILE         *file;
    const char   *path;
    size_t        atoms, own, first; /* in the file; of this rank; before this rank's */
    double        edge;
    double (*all)[3], *energies; /* of all atoms */
    int *tags;
    double (*around)[3]; /* this rank's atoms and what is near the box, images included */
} md_dump;

/** Opens a file with frames of so many atoms. Collective. @return FSDP_OK; else rank 0 has said why. Close it all the same. */
fsdp_status md_dump_open(fsdp_context *ctx, const char *path, size_t atoms, double edge, md_dump *dump);

/** Reads the next frame, which is valid until the next call. Collective. @return as above; also at the end of the file */
fsdp_status md_dump_read(md_dump *dump, md_frame *frame);

void md_dump_close(md_dump *dump);

#endif
