#include "shard/pipeline/lower.h"

#include <stdlib.h>

/* One rank's row while it is lowered. */
typedef struct lowering {
    const fsdpi_passes *passes;
    fsdpi_schedule     *to;
    int                 rank;
    size_t             *last; /* of each stage: the place of the last action that computes with it */
    bool               *gathered;
    bool                good;
} lowering;

static void add(lowering *l, fsdpi_work work, int stage, int micro)
{
    l->good =
        l->good && fsdpi_schedule_add(l->to, l->rank, (fsdpi_action){.work = work, .stage = stage, .micro = micro});
}

static bool makes_gradient(fsdpi_work work)
{
    return work == FSDPI_RUN_BACKWARD || work == FSDPI_RUN_BACKWARD_INPUT;
}

static void add_before(lowering *l, const fsdpi_action *a)
{
    if (!l->gathered[a->stage]) {
        add(l, FSDPI_UNSHARD, a->stage, 0);
        l->gathered[a->stage] = true;
    }
    if (a->work == FSDPI_RUN_FORWARD && fsdpi_before(l->passes, a->stage) >= 0) {
        add(l, FSDPI_RECV_F, a->stage, a->micro);
    }
    if (makes_gradient(a->work) && fsdpi_behind(l->passes, a->stage) >= 0) {
        add(l, FSDPI_RECV_B, a->stage, a->micro);
    }
}

static void add_behind(lowering *l, const fsdpi_action *a, size_t at)
{
    if (a->work == FSDPI_RUN_FORWARD && fsdpi_behind(l->passes, a->stage) >= 0) {
        add(l, FSDPI_SEND_F, a->stage, a->micro);
    }
    if (makes_gradient(a->work) && fsdpi_before(l->passes, a->stage) >= 0) {
        add(l, FSDPI_SEND_B, a->stage, a->micro);
    }
    if (l->last[a->stage] == at) {
        add(l, FSDPI_RESHARD, a->stage, 0);
        add(l, FSDPI_REDUCE_GRAD, a->stage, 0);
    }
}

static void lower_row(lowering *l)
{
    const fsdpi_actions *row = &l->passes->schedule->rows[l->rank];

    for (size_t i = 0; i < row->n; i++) {
        l->last[row->list[i].stage] = i;
    }
    for (size_t i = 0; i < row->n; i++) {
        add_before(l, &row->list[i]);
        add(l, row->list[i].work, row->list[i].stage, row->list[i].micro);
        add_behind(l, &row->list[i], i);
    }
}

bool fsdpi_lower(const fsdpi_passes *passes, fsdpi_schedule *lowered, fsdpi_flaw *flaw)
{
    const fsdpi_schedule *from   = passes->schedule;
    const size_t          stages = (size_t)from->stages;
    lowering              l      = {.passes   = passes,
                                    .to       = lowered,
                                    .last     = calloc(stages, sizeof *l.last),
                                    .gathered = calloc(stages, sizeof *l.gathered)};

    l.good = fsdpi_schedule_open(lowered, from->ranks) && l.last != NULL && l.gathered != NULL;
    for (l.rank = 0; l.good && l.rank < from->ranks; l.rank++) {
        lower_row(&l);
    }
    free(l.gathered);
    free(l.last);
    if (!l.good) {
        fsdpi_schedule_close(lowered);
        return fsdpi_flaw_set(flaw, -1, 0, "memory is short");
    }
    return true;
}
