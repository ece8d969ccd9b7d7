#include "lib/sync/notes.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "lib/base/clock.h"

typedef struct fsdpi_note_sent {
    struct fsdpi_note_sent *next;
    MPI_Request             message;
    fsdpi_note              note;
} fsdpi_note_sent;

static _Atomic(fsdpi_note_sent *) left_over;

/* The requests are tested until they are complete, or left to MPI, which the checker does not take for a wait. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

void fsdpi_note_send(fsdpi_notes *notes, int to, const fsdpi_note *note)
{
    fsdpi_note_sent *sent = malloc(sizeof *sent);

    if (sent == NULL) {
        return;
    }
    *sent = (fsdpi_note_sent){.next = notes->sent, .message = MPI_REQUEST_NULL, .note = *note};
    if (MPI_Isend(&sent->note, (int)sizeof sent->note, MPI_BYTE, to, FSDPI_TAG_NOTES, notes->messages->comm,
                  &sent->message) != MPI_SUCCESS) {
        free(sent);
        return;
    }
    notes->sent = sent;
}

bool fsdpi_note_receive(fsdpi_notes *notes, fsdpi_note *note, int *from)
{
    MPI_Status status;
    int        any = 0;

    if (MPI_Iprobe(MPI_ANY_SOURCE, FSDPI_TAG_NOTES, notes->messages->comm, &any, &status) != MPI_SUCCESS || !any) {
        return false;
    }
    *from = status.MPI_SOURCE;
    return MPI_Recv(note, (int)sizeof *note, MPI_BYTE, *from, FSDPI_TAG_NOTES, notes->messages->comm,
                    MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/* Forgets those that have gone. */
static void look(fsdpi_notes *notes)
{
    for (fsdpi_note_sent **link = &notes->sent; *link != NULL;) {
        fsdpi_note_sent *sent = *link;
        int              gone = 0;

        if (MPI_Test(&sent->message, &gone, MPI_STATUS_IGNORE) == MPI_SUCCESS && gone) {
            *link = sent->next;
            free(sent);
        } else {
            link = &sent->next;
        }
    }
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

void fsdpi_notes_settle(fsdpi_notes *notes, double seconds)
{
    static const double NAP = 100e-6;
    const double        end = fsdpi_seconds() + seconds;

    for (look(notes); notes->sent != NULL && fsdpi_seconds() < end; look(notes)) {
        fsdpi_nap(NAP);
    }
}

void fsdpi_notes_close(fsdpi_notes *notes)
{
    while (notes->sent != NULL) {
        fsdpi_note_sent *sent = notes->sent;

        notes->sent = sent->next;
        sent->next  = atomic_load(&left_over);
        while (!atomic_compare_exchange_weak(&left_over, &sent->next, sent)) {
        }
    }
}
