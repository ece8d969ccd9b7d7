/**
 * @file
 * Schedules that are called good are carried out by MPI's own messages, each rank its line, without a deadlock and with the right data:
 * spoiled ones too, where what was spoiled does no harm. CTest ends those that never come back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard/pipeline/simulate.h"
#include "shard/pipeline/verify.h"
#include "tests/shard/pipeline/spoiled.h"
#include "tests/support/mpi_test.h"

enum { MOST_STAGES = 12, MOST_MICROS = 8, MOST_BUFFERS = 2, SCHEDULES = 150 };

/* A message counts as received once its receive has begun: MPI_Issend. */
typedef struct channel {
    MPI_Request under_way[MOST_BUFFERS];
    int         n;
} channel;

typedef struct rank_state {
    const fsdpi_passes *passes;
    int                 buffers;
    uint64_t            output[MOST_STAGES][MOST_MICROS], gradient[MOST_STAGES][MOST_MICROS]; /* of the input */
    channel             channels[2][MOST_STAGES]; /* by the stage that sends */
} rank_state;

/* What a stage makes of its input, and of the gradient of its output. */
static uint64_t forward(int stage, int micro, uint64_t input)
{
    return input * 31 + (uint64_t)(stage * 7 + micro);
}

static uint64_t backward(uint64_t output, uint64_t gradient)
{
    return gradient * 17 + output;
}

static int tag_of(bool back, int stage, int micro)
{
    return ((int)back * MOST_STAGES + stage) * MOST_MICROS + micro;
}

static void send(rank_state *s, const fsdpi_action *a, bool back)
{
    channel *c  = &s->channels[back][a->stage];
    int      at = c->n;

    if (c->n == s->buffers) {
        MPI_Waitany(c->n, c->under_way, &at, MPI_STATUS_IGNORE);
    } else {
        c->n++;
    }
    MPI_Issend(back ? &s->gradient[a->stage][a->micro] : &s->output[a->stage][a->micro], 1, MPI_UINT64_T,
               back ? fsdpi_before(s->passes, a->stage) : fsdpi_behind(s->passes, a->stage),
               tag_of(back, a->stage, a->micro), MPI_COMM_WORLD, &c->under_way[at]);
}

/* Into where a stage of this rank would have left it. */
static void receive(rank_state *s, const fsdpi_action *a, bool back)
{
    const int from = back ? a->stage + 1 : a->stage - 1;

    MPI_Recv(back ? &s->gradient[from][a->micro] : &s->output[from][a->micro], 1, MPI_UINT64_T, s->passes->owner[from],
             tag_of(back, from, a->micro), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void carry_out(rank_state *s, const fsdpi_action *a)
{
    const bool is_last = a->stage + 1 == s->passes->schedule->stages;

    switch (a->work) {
    case FSDPI_RUN_FORWARD:
        s->output[a->stage][a->micro] =
            forward(a->stage, a->micro, a->stage > 0 ? s->output[a->stage - 1][a->micro] : 0);
        break;
    case FSDPI_RUN_BACKWARD:
    case FSDPI_RUN_BACKWARD_INPUT:
        s->gradient[a->stage][a->micro] =
            backward(s->output[a->stage][a->micro], is_last ? 0 : s->gradient[a->stage + 1][a->micro]);
        break;
    case FSDPI_SEND_F:
    case FSDPI_SEND_B:
        send(s, a, a->work == FSDPI_SEND_B);
        break;
    case FSDPI_RECV_F:
    case FSDPI_RECV_B:
        receive(s, a, a->work == FSDPI_RECV_B);
        break;
    default:
        break;
    }
}

static void check_gradients(const rank_state *s)
{
    const int stages = s->passes->schedule->stages;

    for (int m = 0; m < s->passes->schedule->micros && s->passes->owner[0] == fsdp_test_rank(); m++) {
        uint64_t outputs[MOST_STAGES], gradient = 0;

        for (int stage = 0; stage < stages; stage++) {
            outputs[stage] = forward(stage, m, stage > 0 ? outputs[stage - 1] : 0);
        }
        for (int stage = stages - 1; stage >= 0; stage--) {
            gradient = backward(outputs[stage], gradient);
        }
        assert_true(gradient == s->gradient[0][m]);
    }
}

static void run_by_mpi(const fsdpi_passes *passes, int buffers)
{
    const fsdpi_actions *row = &passes->schedule->rows[fsdp_test_rank()];
    rank_state          *s   = calloc(1, sizeof *s);

    assert_non_null(s);
    s->passes  = passes;
    s->buffers = buffers;
    for (size_t i = 0; i < row->n; i++) {
        carry_out(s, &row->list[i]);
    }
    for (int i = 0; i < 2 * MOST_STAGES; i++) {
        channel *c = &s->channels[i / MOST_STAGES][i % MOST_STAGES];
        MPI_Waitall(c->n, c->under_way, MPI_STATUSES_IGNORE);
    }
    check_gradients(s);
    free(s);
    MPI_Barrier(MPI_COMM_WORLD); /* no message of the next schedule comes into this one */
}

static void what_is_called_good_is_carried_out(void **state)
{
    uint64_t chance = 98765;
    int      good = 0, spoiled = 0;

    (void)state;
    while (good < SCHEDULES || spoiled < SCHEDULES) {
        fsdpi_schedule   schedule = any_schedule(&chance, fsdp_test_size());
        const fsdpi_pace pace     = {
                .forward = 1, .backward_input = 1, .backward_weight = 1, .buffers = 1 + (int)draw(&chance, 2)};
        const bool       is_spoiled = draw(&chance, 8) > 0; /* most of these are refused */
        fsdpi_passes     passes;
        fsdpi_simulation run = {0};
        fsdpi_flaw       flaw;

        if (is_spoiled) {
            spoil(&chance, &schedule);
        }
        if (fsdpi_passes_open(&passes, &schedule, &flaw)) {
            if (fsdpi_verify_passes(&passes, &flaw) && fsdpi_verify_order(&passes, &flaw) &&
                fsdpi_simulate(&passes, &pace, &run, &flaw)) {
                run_by_mpi(&passes, pace.buffers);
                good += !is_spoiled;
                spoiled += is_spoiled;
            }
            fsdpi_simulation_close(&run);
            fsdpi_passes_close(&passes);
        }
        fsdpi_schedule_close(&schedule);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_called_good_is_carried_out)};

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
