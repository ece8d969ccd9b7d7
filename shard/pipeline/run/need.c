#include "shard/pipeline/run/need.h"

/* Counts while a row is gone through. */
typedef struct counts {
    const fsdpi_passes *passes;
    int                 stage, buffers;
    int                 now[FSDPI_N_FLOWS], sent[FSDPI_N_FLOWS];
    fsdpi_stage_need    need;
} counts;

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static void add(counts *c, int flow)
{
    c->now[flow]++;
    const int all        = c->now[flow] + smaller(c->sent[flow], c->buffers);
    c->need.places[flow] = all > c->need.places[flow] ? all : c->need.places[flow];
}

/* It has left this rank as far as the schedule knows; the last ones may still wait for their receives. */
static void leave(counts *c, int flow)
{
    c->now[flow]--;
    c->sent[flow]++;
}

static bool is_last(const counts *c)
{
    return c->stage + 1 == c->passes->schedule->stages;
}

static bool ends(fsdpi_work work)
{
    return work == FSDPI_RUN_BACKWARD || work == FSDPI_RUN_BACKWARD_WEIGHT;
}

static bool makes_gradient(fsdpi_work work)
{
    return work == FSDPI_RUN_BACKWARD || work == FSDPI_RUN_BACKWARD_INPUT;
}

static void count_own(counts *c, fsdpi_work work)
{
    if (work == FSDPI_RUN_FORWARD && is_last(c)) {
        add(c, FSDPI_OUTPUT_GRADIENTS);
    }
    if (work == FSDPI_RUN_FORWARD && fsdpi_behind(c->passes, c->stage) >= 0) {
        add(c, FSDPI_OUTPUTS);
    }
    if (makes_gradient(work) && fsdpi_before(c->passes, c->stage) >= 0) {
        add(c, FSDPI_INPUT_GRADIENTS);
    }
    if (work == FSDPI_RECV_F || work == FSDPI_RECV_B) {
        add(c, work == FSDPI_RECV_F ? FSDPI_INPUTS : FSDPI_OUTPUT_GRADIENTS);
    }
    if (work == FSDPI_SEND_F || work == FSDPI_SEND_B) {
        leave(c, work == FSDPI_SEND_F ? FSDPI_OUTPUTS : FSDPI_INPUT_GRADIENTS);
    }
    if (ends(work)) {
        c->now[FSDPI_INPUTS] -= c->stage > 0;
        c->now[FSDPI_OUTPUT_GRADIENTS]--;
    }
}

/* What a neighbour on the same rank puts there. */
static void count_neighbour(counts *c, const fsdpi_action *a)
{
    if (a->stage + 1 == c->stage && a->work == FSDPI_RUN_FORWARD) {
        add(c, FSDPI_INPUTS);
    }
    if (a->stage == c->stage + 1 && makes_gradient(a->work)) {
        add(c, FSDPI_OUTPUT_GRADIENTS);
    }
}

fsdpi_stage_need fsdpi_stage_needs(const fsdpi_passes *passes, int stage, int buffers)
{
    const fsdpi_actions *row = &passes->schedule->rows[passes->owner[stage]];
    counts               c   = {.passes = passes, .stage = stage, .buffers = buffers};

    for (size_t i = 0; i < row->n; i++) {
        if (row->list[i].stage == stage) {
            count_own(&c, row->list[i].work);
        } else {
            count_neighbour(&c, &row->list[i]);
        }
    }
    return c.need;
}
