#include "shard/pipeline/passes.h"

#include <stdlib.h>

enum { N_ONCE = FSDPI_RECV_B + 2 }; /* works that may be there once: those with a micro-batch, and REDUCE_GRAD */

static uint32_t *slot_of(const fsdpi_passes *passes, fsdpi_work work, int stage, int micro)
{
    const size_t kind = work == FSDPI_REDUCE_GRAD ? N_ONCE - 1 : (size_t)work;

    return &passes->places[((size_t)stage * (size_t)passes->schedule->micros + (size_t)micro) * N_ONCE + kind];
}

uint32_t fsdpi_action_place(const fsdpi_passes *passes, fsdpi_work work, int stage, int micro)
{
    return work == FSDPI_UNSHARD || work == FSDPI_RESHARD ? 0 : *slot_of(passes, work, stage, micro);
}

uint32_t fsdpi_gradient_place(const fsdpi_passes *passes, int stage, int micro)
{
    const uint32_t whole = fsdpi_action_place(passes, FSDPI_RUN_BACKWARD, stage, micro);

    return whole > 0 ? whole : fsdpi_action_place(passes, FSDPI_RUN_BACKWARD_INPUT, stage, micro);
}

int fsdpi_before(const fsdpi_passes *passes, int stage)
{
    const int rank = stage > 0 ? passes->owner[stage - 1] : -1;

    return rank == passes->owner[stage] ? -1 : rank;
}

int fsdpi_behind(const fsdpi_passes *passes, int stage)
{
    const int rank = stage + 1 < passes->schedule->stages ? passes->owner[stage + 1] : -1;

    return rank == passes->owner[stage] ? -1 : rank;
}

static bool note(fsdpi_passes *passes, int rank, size_t at, fsdpi_flaw *flaw)
{
    const fsdpi_action *action = &passes->schedule->rows[rank].list[at];
    char                text[FSDPI_ACTION_BYTES];

    (void)fsdpi_action_print(action, text);
    if (passes->owner[action->stage] >= 0 && passes->owner[action->stage] != rank) {
        return fsdpi_flaw_set(flaw, rank, at, "%s is on rank %d, but stage %d is on rank %d; a stage is on one rank",
                              text, rank, action->stage, passes->owner[action->stage]);
    }
    passes->owner[action->stage] = rank;
    if (action->work == FSDPI_UNSHARD || action->work == FSDPI_RESHARD) {
        return true;
    }
    uint32_t *slot = slot_of(passes, action->work, action->stage, action->micro);
    if (*slot > 0) {
        return fsdpi_flaw_set(flaw, rank, at, "%s is there twice on rank %d, as action %u and %zu", text, rank, *slot,
                              at + 1);
    }
    *slot = (uint32_t)at + 1;
    return true;
}

static bool note_all(fsdpi_passes *passes, fsdpi_flaw *flaw)
{
    const fsdpi_schedule *schedule = passes->schedule;

    for (int r = 0; r < schedule->ranks; r++) {
        for (size_t i = 0; i < schedule->rows[r].n; i++) {
            if (!note(passes, r, i, flaw)) {
                return false;
            }
        }
    }
    return true;
}

bool fsdpi_passes_open(fsdpi_passes *passes, const fsdpi_schedule *schedule, fsdpi_flaw *flaw)
{
    const size_t stages = (size_t)schedule->stages, micros = (size_t)schedule->micros;

    *passes = (fsdpi_passes){.schedule = schedule};
    if (stages == 0 || micros == 0) {
        return fsdpi_flaw_set(flaw, -1, 0, "the schedule has no forward or backward pass");
    }
    if (stages * micros > FSDPI_MOST_PASSES) {
        return fsdpi_flaw_set(flaw, -1, 0, "%zu stages and %zu micro-batches: their product may be %d at most", stages,
                              micros, FSDPI_MOST_PASSES);
    }
    passes->owner  = malloc(stages * sizeof *passes->owner);
    passes->places = calloc(stages * micros * N_ONCE, sizeof *passes->places);
    for (size_t s = 0; passes->owner != NULL && s < stages; s++) {
        passes->owner[s] = -1;
    }
    const bool good = passes->owner != NULL && passes->places != NULL ? note_all(passes, flaw)
                                                                      : fsdpi_flaw_set(flaw, -1, 0, "memory is short");
    if (!good) {
        fsdpi_passes_close(passes);
    }
    return good;
}

void fsdpi_passes_close(fsdpi_passes *passes)
{
    free(passes->owner);
    free(passes->places);
    *passes = (fsdpi_passes){0};
}
