/**
 * @file
 * Notes between ranks of which one may be gone: sent and received beside the operations, without ever waiting.
 *
 * A note to a rank that is gone may never leave. It then stays, as what MPI may still read, until the process ends.
 */
#ifndef FSDPI_NOTES_H
#define FSDPI_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/sync/messages.h"
#include "lib/sync/rank_list.h"

/** What a note says; its meaning is that of lib/progress/inquest.h. */
typedef enum fsdpi_note_kind {
    FSDPI_NOTE_QUESTION, /* whom do you wait for? */
    FSDPI_NOTE_ANSWER,   /* for these */
    FSDPI_NOTE_GIVEN_UP  /* an operation has been given up, for want of these */
} fsdpi_note_kind;

typedef struct fsdpi_note {
    uint32_t        kind;
    uint32_t        id;       /* of a question, and of its answer */
    uint64_t        sequence; /* of an operation */
    uint32_t        moves;    /* of an answer: its sender gets on */
    uint32_t        stuck;    /* of what has been given up: those named answer, but wait for nobody */
    fsdpi_rank_list ranks;
} fsdpi_note;

/** In the long lane: agreements, in the short one, receive whatever comes. */
typedef struct fsdpi_notes {
    const fsdpi_messages   *messages; /* of that lane; NULL: there are no notes */
    struct fsdpi_note_sent *sent;     /* and not yet gone */
} fsdpi_notes;

/** Where there is no memory for it, or MPI fails, it is not sent. */
void fsdpi_note_send(fsdpi_notes *notes, int to, const fsdpi_note *note);

/** False: none has come. */
bool fsdpi_note_receive(fsdpi_notes *notes, fsdpi_note *note, int *from);

/** Lets notes go for so many SECONDS at most. */
void fsdpi_notes_settle(fsdpi_notes *notes, double seconds);

/** Leaves what has not gone to MPI. */
void fsdpi_notes_close(fsdpi_notes *notes);

#endif
