#include "tools/preload/engine/carry_out.h"

#include <stdio.h>

#include "tools/preload/engine/arguments.h"
#include "tools/preload/engine/communicators.h"
#include "tools/preload/engine/heap.h"
#include "tools/preload/engine/report.h"
#include "tools/preload/engine/settings.h"
#include "tools/preload/engine/take.h"
#include "tools/preload/engine/text.h"

enum { LONGEST_PAUSE = 1 << 16, UNKNOWN_BYTES = 1 << 14 }; /* an alltoallv counts as so much */

static int error_class = MPI_ERR_OTHER;

int fsdpi_carry_out_open(void)
{
    return PMPI_Add_error_class(&error_class);
}

static uint64_t moved_by(const fsdpi_arguments *a, const fsdpi_volume *volume)
{
    return a->call->collective == FSDPI_ALLTOALLV ? UNKNOWN_BYTES : volume->bytes;
}

/* All ranks have found that one of them cannot: they do not ask again so soon, and each time later. */
static void begin_pause(fsdpi_communicator *of, fsdpi_collective which)
{
    of->pauses[which] = of->pauses[which] == 0              ? 1
                        : of->pauses[which] < LONGEST_PAUSE ? 2 * of->pauses[which]
                                                            : LONGEST_PAUSE;
    of->pause[which]  = of->pauses[which];
}

/* What becomes of a call, as all ranks decide without asking each other. Opens the context where it is time. */
static fsdpi_fate decide(const fsdpi_arguments *a, fsdpi_communicator *of, fsdpi_volume *volume)
{
    const fsdpi_collective which = a->call->collective;

    if (of == NULL) {
        return FSDPI_UNKNOWN_COMM;
    }
    if (of->fate != FSDPI_TAKEN && of->fate != FSDPI_TOO_NEW) {
        if (fsdpi_preload.reports && of->fate != FSDPI_INTER) {
            (void)fsdpi_measure(a, of, volume);
        }
        return of->fate;
    }
    const fsdpi_fate fate = fsdpi_measure(a, of, volume);
    if (fate != FSDPI_TAKEN) {
        return fate;
    }
    if (of->fate == FSDPI_TOO_NEW) {
        if (!fsdpi_worth_considering(&fsdpi_preload.worth, which, volume->bytes)) {
            return FSDPI_NOT_WORTH;
        }
        fsdpi_communicator_moves(of, moved_by(a, volume));
        if (of->fate != FSDPI_TAKEN) {
            return of->fate;
        }
    }
    if (!fsdpi_worth_taking(&fsdpi_preload.worth, which, of->span, volume->bytes)) {
        return FSDPI_NOT_WORTH;
    }
    if (of->pause[which] > 0) {
        of->pause[which]--;
        return FSDPI_SOME_RANK;
    }
    return FSDPI_TAKEN;
}

/* Every other call is MPI's turn, in an order that no period of the program's matches (Thue and Morse). */
static bool is_turn_of_library(fsdpi_communicator *of, fsdpi_collective which)
{
    return __builtin_parity(of->turns[which]++) != 0;
}

static bool nothing_moved(fsdp_status status)
{
    return status == FSDP_ERR_ARG || status == FSDP_ERR_MISMATCH || status == FSDP_ERR_UNSUPPORTED ||
           status == FSDP_ERR_MEMORY;
}

/* As MPI raises an error of its own: by the communicator's error handler. */
static int raise_error(const fsdpi_arguments *a, const fsdpi_communicator *of)
{
    char text[MPI_MAX_ERROR_STRING];
    int  code = MPI_ERR_OTHER;

    (void)snprintf(text, sizeof text, "libfsdp_mpi: %s", fsdp_last_error(of->ctx));
    fsdpi_preload_say("rank %d of a communicator of %d: %s", of->rank, of->size, fsdp_last_error(of->ctx));
    if (PMPI_Add_error_code(error_class, &code) == MPI_SUCCESS) {
        (void)PMPI_Add_error_string(code, text);
    }
    (void)PMPI_Comm_call_errhandler(a->comm, code);
    return code;
}

static int carry_out(const fsdpi_arguments *a, fsdpi_event *event)
{
    fsdpi_communicator *of     = fsdpi_communicator_of(a->comm);
    fsdpi_volume        volume = {.bytes = 0};

    event->fate  = decide(a, of, &volume);
    event->bytes = volume.bytes;
    if (event->fate != FSDPI_TAKEN) {
        return fsdpi_pass(a);
    }
    if (fsdpi_preload.compares) {
        event->fate       = FSDPI_COMPARED;
        event->by_library = is_turn_of_library(of, event->collective);
        if (!event->by_library) {
            return fsdpi_pass(a);
        }
    }
    const fsdp_status status = fsdpi_preload_take(a, of, &volume);
    if (status == FSDP_OK) {
        of->pauses[event->collective] = 0;
        if (fsdpi_is_reduction(event->collective)) {
            fsdpi_heap_keep(volume.bytes); /* which MPI would have allocated and freed */
        }
        return MPI_SUCCESS;
    }
    if (!nothing_moved(status)) {
        return raise_error(a, of);
    }
    event->fate = FSDPI_SOME_RANK;
    begin_pause(of, event->collective);
    return fsdpi_pass(a);
}

int fsdpi_carry_out(fsdpi_call *call)
{
    fsdpi_arguments arguments;
    fsdpi_event     event = {.collective = call->collective};

    fsdpi_arguments_of(call, &arguments);
    if (!fsdpi_preload.reports) {
        return carry_out(&arguments, &event);
    }
    const double before = fsdpi_report_now();
    const int    code   = carry_out(&arguments, &event);
    event.seconds       = fsdpi_report_now() - before;
    fsdpi_report_note(&event);
    return code;
}

void fsdpi_count_passed(fsdpi_collective which)
{
    if (fsdpi_preload.reports) {
        fsdpi_report_note(&(fsdpi_event){.collective = which, .fate = FSDPI_NONBLOCKING});
    }
}
