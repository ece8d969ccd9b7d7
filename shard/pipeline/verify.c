#include "shard/pipeline/verify.h"

#include <stdlib.h>

/* ---- which passes there are ------------------------------------------------------------------------------------------ */

static bool verify_pass(const fsdpi_passes *passes, int stage, int micro, fsdpi_flaw *flaw)
{
    const int  rank    = passes->owner[stage];
    const bool forward = fsdpi_action_place(passes, FSDPI_RUN_FORWARD, stage, micro) > 0;
    const bool whole   = fsdpi_action_place(passes, FSDPI_RUN_BACKWARD, stage, micro) > 0;
    const bool input   = fsdpi_action_place(passes, FSDPI_RUN_BACKWARD_INPUT, stage, micro) > 0;
    const bool weight  = fsdpi_action_place(passes, FSDPI_RUN_BACKWARD_WEIGHT, stage, micro) > 0;

    if (!forward) {
        return fsdpi_flaw_set(flaw, -1, 0, "%dF%d is missing on rank %d: stage %d never runs micro-batch %d forward",
                              stage, micro, rank, stage, micro);
    }
    if (whole && (input || weight)) {
        return fsdpi_flaw_set(flaw, rank, fsdpi_action_place(passes, FSDPI_RUN_BACKWARD, stage, micro) - 1,
                              "%dB%d and %d%s%d: a backward pass is one action, B, or two, I and W", stage, micro,
                              stage, input ? "I" : "W", micro);
    }
    if (!whole && !(input && weight)) {
        return fsdpi_flaw_set(flaw, -1, 0, "%d%s%d is missing on rank %d: stage %d never ends micro-batch %d", stage,
                              input    ? "W"
                              : weight ? "I"
                                       : "B",
                              micro, rank, stage, micro);
    }
    return true;
}

bool fsdpi_verify_passes(const fsdpi_passes *passes, fsdpi_flaw *flaw)
{
    for (int s = 0; s < passes->schedule->stages; s++) {
        if (passes->owner[s] < 0) {
            return fsdpi_flaw_set(flaw, -1, 0, "stage %d is on no rank, though there are %d stages", s,
                                  passes->schedule->stages);
        }
        for (int m = 0; m < passes->schedule->micros; m++) {
            if (!verify_pass(passes, s, m, flaw)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- what an action needs -------------------------------------------------------------------------------------------- */

typedef struct step {
    const fsdpi_passes *passes;
    const fsdpi_action *action;
    int                 rank;
    size_t              at;
    fsdpi_flaw         *flaw;
} step;

static bool wrong(const step *s, const char *what, const fsdpi_action *other)
{
    char mine[FSDPI_ACTION_BYTES], theirs[FSDPI_ACTION_BYTES];

    return fsdpi_flaw_set(s->flaw, s->rank, s->at, "%s on rank %d %s %s", fsdpi_action_print(s->action, mine), s->rank,
                          what, fsdpi_action_print(other, theirs));
}

/* An action of the same rank, at a place that begins with 1. */
static bool comes_behind(const step *s, uint32_t place, fsdpi_work work, int stage)
{
    const fsdpi_action other = {.work = work, .stage = stage, .micro = fsdpi_has_micro(work) ? s->action->micro : 0};

    if (place == 0) {
        return wrong(s, "needs, and there is no", &other);
    }
    return place - 1 < s->at || wrong(s, "must come behind", &other);
}

static bool comes_behind_its(const step *s, fsdpi_work work)
{
    return comes_behind(s, fsdpi_action_place(s->passes, work, s->action->stage, s->action->micro), work,
                        s->action->stage);
}

static bool comes_behind_gradient(const step *s, int stage)
{
    const int  micro = s->action->micro;
    const bool whole = fsdpi_action_place(s->passes, FSDPI_RUN_BACKWARD, stage, micro) > 0;

    return comes_behind(s, fsdpi_gradient_place(s->passes, stage, micro),
                        whole ? FSDPI_RUN_BACKWARD : FSDPI_RUN_BACKWARD_INPUT, stage);
}

static bool verify_forward(const step *s)
{
    const int stage = s->action->stage;

    if (stage == 0) {
        return true;
    }
    return fsdpi_before(s->passes, stage) >= 0
               ? comes_behind_its(s, FSDPI_RECV_F)
               : comes_behind(s, fsdpi_action_place(s->passes, FSDPI_RUN_FORWARD, stage - 1, s->action->micro),
                              FSDPI_RUN_FORWARD, stage - 1);
}

static bool verify_backward(const step *s)
{
    const int stage = s->action->stage;

    if (!comes_behind_its(s, FSDPI_RUN_FORWARD)) {
        return false;
    }
    if (stage + 1 == s->passes->schedule->stages) {
        return true;
    }
    return fsdpi_behind(s->passes, stage) >= 0 ? comes_behind_its(s, FSDPI_RECV_B)
                                               : comes_behind_gradient(s, stage + 1);
}

/* The other end of a message: the same micro-batch, at a neighbouring stage of another rank. */
static bool has_other_end(const step *s, fsdpi_work work, int step_to)
{
    const int peer =
        step_to > 0 ? fsdpi_behind(s->passes, s->action->stage) : fsdpi_before(s->passes, s->action->stage);
    const fsdpi_action other = {.work = work, .stage = s->action->stage + step_to, .micro = s->action->micro};

    if (peer < 0) {
        char text[FSDPI_ACTION_BYTES];
        return fsdpi_flaw_set(s->flaw, s->rank, s->at, "%s on rank %d has no other rank at its other end",
                              fsdpi_action_print(s->action, text), s->rank);
    }
    return fsdpi_action_place(s->passes, work, other.stage, other.micro) > 0 ||
           wrong(s, "has nothing at its other end: there is no", &other);
}

static bool verify_reduction(const step *s)
{
    for (int m = 0; m < s->passes->schedule->micros; m++) {
        const bool     whole = fsdpi_action_place(s->passes, FSDPI_RUN_BACKWARD, s->action->stage, m) > 0;
        const uint32_t place =
            fsdpi_action_place(s->passes, whole ? FSDPI_RUN_BACKWARD : FSDPI_RUN_BACKWARD_WEIGHT, s->action->stage, m);

        if (place == 0 || place - 1 > s->at) {
            const fsdpi_action other = {
                .work = whole ? FSDPI_RUN_BACKWARD : FSDPI_RUN_BACKWARD_WEIGHT, .stage = s->action->stage, .micro = m};
            return wrong(s, "must come behind", &other);
        }
    }
    return true;
}

static bool verify_needs(const step *s)
{
    switch (s->action->work) {
    case FSDPI_RUN_FORWARD:
        return verify_forward(s);
    case FSDPI_RUN_BACKWARD:
    case FSDPI_RUN_BACKWARD_INPUT:
        return verify_backward(s);
    case FSDPI_RUN_BACKWARD_WEIGHT:
        return comes_behind_its(s, FSDPI_RUN_BACKWARD_INPUT);
    case FSDPI_SEND_F:
        return comes_behind_its(s, FSDPI_RUN_FORWARD) && has_other_end(s, FSDPI_RECV_F, 1);
    case FSDPI_RECV_F:
        return has_other_end(s, FSDPI_SEND_F, -1);
    case FSDPI_SEND_B:
        return comes_behind_gradient(s, s->action->stage) && has_other_end(s, FSDPI_RECV_B, -1);
    case FSDPI_RECV_B:
        return has_other_end(s, FSDPI_SEND_B, 1);
    case FSDPI_REDUCE_GRAD:
        return verify_reduction(s);
    default:
        return true;
    }
}

/* ---- parameters ------------------------------------------------------------------------------------------------------ */

/* Of a schedule that gathers at all: `gathered` says of each stage whether its parameters are there. */
static bool verify_parameters(const step *s, bool *gathered)
{
    const int          stage   = s->action->stage;
    const fsdpi_action unshard = {.work = FSDPI_UNSHARD, .stage = stage},
                       reshard = {.work = FSDPI_RESHARD, .stage = stage};

    switch (s->action->work) {
    case FSDPI_UNSHARD:
        if (gathered[stage]) {
            return wrong(s, "comes twice without a", &reshard);
        }
        gathered[stage] = true;
        return true;
    case FSDPI_RESHARD:
        if (!gathered[stage]) {
            return wrong(s, "comes without a", &unshard);
        }
        gathered[stage] = false;
        return true;
    default:
        return !fsdpi_is_compute(s->action->work) || gathered[stage] || wrong(s, "comes without a", &unshard);
    }
}

static bool has(const fsdpi_schedule *schedule, fsdpi_work work)
{
    for (int r = 0; r < schedule->ranks; r++) {
        for (size_t i = 0; i < schedule->rows[r].n; i++) {
            if (schedule->rows[r].list[i].work == work) {
                return true;
            }
        }
    }
    return false;
}

/* Those that reduce at all do so for every stage. */
static bool verify_reductions(const fsdpi_passes *passes, fsdpi_flaw *flaw)
{
    for (int s = 0; s < passes->schedule->stages; s++) {
        if (fsdpi_action_place(passes, FSDPI_REDUCE_GRAD, s, 0) == 0) {
            return fsdpi_flaw_set(flaw, -1, 0, "%dREDUCE_GRAD is missing on rank %d, though other stages have theirs",
                                  s, passes->owner[s]);
        }
    }
    return true;
}

static bool verify_rows(const fsdpi_passes *passes, bool *gathered, fsdpi_flaw *flaw)
{
    const fsdpi_schedule *schedule = passes->schedule;

    for (int r = 0; r < schedule->ranks; r++) {
        for (size_t i = 0; i < schedule->rows[r].n; i++) {
            const step s = {.passes = passes, .action = &schedule->rows[r].list[i], .rank = r, .at = i, .flaw = flaw};

            if (!verify_needs(&s) || (gathered != NULL && !verify_parameters(&s, gathered))) {
                return false;
            }
        }
    }
    return true;
}

bool fsdpi_verify_order(const fsdpi_passes *passes, fsdpi_flaw *flaw)
{
    const fsdpi_schedule *schedule = passes->schedule;
    const bool            gathers  = has(schedule, FSDPI_UNSHARD) || has(schedule, FSDPI_RESHARD);
    bool                 *gathered = gathers ? calloc((size_t)schedule->stages, sizeof *gathered) : NULL;

    if (gathers && gathered == NULL) {
        return fsdpi_flaw_set(flaw, -1, 0, "memory is short");
    }
    const bool good =
        verify_rows(passes, gathered, flaw) && (!has(schedule, FSDPI_REDUCE_GRAD) || verify_reductions(passes, flaw));
    free(gathered);
    return good;
}
