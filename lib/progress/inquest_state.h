/**
 * @file
 * What an inquest consists of; see lib/progress/inquest.h.
 */
#ifndef FSDPI_INQUEST_STATE_H
#define FSDPI_INQUEST_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/sync/mailbox.h"
#include "lib/sync/notes.h"

/** Ranks that are asked, at most. */
enum { FSDPI_RANKS_ASKED = 128 };

/** A rank that is waited for, by this one or by one that is. */
typedef struct fsdpi_asked {
    int32_t rank;
    bool    answered;
    bool    moves; /* it gets on */
    bool    stuck; /* it does not, and waits for nobody */
    bool    aside; /* it is not waited for: only asked whether it waits too */
} fsdpi_asked;

typedef struct fsdpi_inquest {
    fsdpi_notes  notes;
    double       listened; /* when notes were last looked for; SECONDS of fsdpi_coarse_seconds() */
    uint64_t     ended;    /* TICKS of the recorder, when the last operation came to its end */
    bool         begun;
    uint32_t     id;
    double       looked;  /* when its time was last counted */
    double       elapsed; /* SECONDS since it was begun */
    double       quiet;   /* SECONDS since a rank was asked */
    int          n;
    fsdpi_asked  asked[FSDPI_RANKS_ASKED];
    bool         known; /* an operation has been given up, here or elsewhere */
    fsdpi_notice notice;
} fsdpi_inquest;

#endif
