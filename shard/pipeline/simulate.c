#include "shard/pipeline/simulate.h"

#include <stdio.h>
#include <stdlib.h>

/* The messages to one stage in one direction. */
typedef struct channel {
    double *arrival;  /* of each micro-batch's; below 0: it is not sent yet */
    double *received; /* when the i-th of all was */
    int     n_sent, n_received;
    double  free; /* when the last one has arrived */
} channel;

typedef struct machine {
    const fsdpi_passes *passes;
    const fsdpi_pace   *pace;
    channel            *channels; /* of F, then of B, by receiving stage */
    fsdpi_simulation   *run;
    fsdpi_flaw         *flaw;
} machine;

double fsdpi_duration(const fsdpi_pace *pace, fsdpi_work work)
{
    switch (work) {
    case FSDPI_RUN_FORWARD:
        return pace->forward;
    case FSDPI_RUN_BACKWARD:
        return pace->backward_input + pace->backward_weight;
    case FSDPI_RUN_BACKWARD_INPUT:
        return pace->backward_input;
    case FSDPI_RUN_BACKWARD_WEIGHT:
        return pace->backward_weight;
    default:
        return 0;
    }
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static channel *channel_of(const machine *m, const fsdpi_action *a)
{
    const size_t stages = (size_t)m->passes->schedule->stages, stage = (size_t)a->stage;

    switch (a->work) {
    case FSDPI_SEND_F:
        return &m->channels[stage + 1];
    case FSDPI_RECV_F:
        return &m->channels[stage];
    case FSDPI_SEND_B:
        return &m->channels[stages + stage - 1];
    default:
        return &m->channels[stages + stage];
    }
}

static bool send(const machine *m, fsdpi_rank_run *rank, const fsdpi_action *a)
{
    channel  *c     = channel_of(m, a);
    const int first = c->n_sent - m->pace->buffers; /* the receive that frees a buffer, counted from 0 */

    if (first >= c->n_received) {
        return false;
    }
    rank->end            = first >= 0 ? later(rank->end, c->received[first]) : rank->end;
    c->free              = later(c->free, rank->end) + m->pace->transfer;
    c->arrival[a->micro] = c->free;
    c->n_sent++;
    m->run->messages++;
    return true;
}

static bool receive(const machine *m, fsdpi_rank_run *rank, const fsdpi_action *a)
{
    channel *c = channel_of(m, a);

    if (c->arrival[a->micro] < 0) {
        return false;
    }
    rank->end                    = later(rank->end, c->arrival[a->micro]);
    c->received[c->n_received++] = rank->end;
    return true;
}

static void count_held(fsdpi_rank_run *rank, fsdpi_work work)
{
    rank->held += work == FSDPI_RUN_FORWARD                                        ? 1
                  : work == FSDPI_RUN_BACKWARD || work == FSDPI_RUN_BACKWARD_INPUT ? -1
                                                                                   : 0;
    rank->owed += work == FSDPI_RUN_BACKWARD_INPUT ? 1 : work == FSDPI_RUN_BACKWARD_WEIGHT ? -1 : 0;
    rank->most_held = rank->held > rank->most_held ? rank->held : rank->most_held;
    rank->most_owed = rank->owed > rank->most_owed ? rank->owed : rank->most_owed;
}

static bool is_possible(const machine *m, fsdpi_rank_run *rank, const fsdpi_action *a)
{
    switch (a->work) {
    case FSDPI_SEND_F:
    case FSDPI_SEND_B:
        return send(m, rank, a);
    case FSDPI_RECV_F:
    case FSDPI_RECV_B:
        return receive(m, rank, a);
    default:
        return true;
    }
}

/* As many actions of a rank as can be done. */
static bool advance(const machine *m, int r, bool *moved)
{
    const fsdpi_actions *row  = &m->passes->schedule->rows[r];
    fsdpi_rank_run      *rank = &m->run->ranks[r];

    for (; rank->n_done < row->n && is_possible(m, rank, &row->list[rank->n_done]); rank->n_done++) {
        const fsdpi_action *a = &row->list[rank->n_done];

        rank->begin[rank->n_done] = rank->end;
        rank->end += fsdpi_duration(m->pace, a->work);
        rank->busy += fsdpi_duration(m->pace, a->work);
        count_held(rank, a->work);
        if (m->pace->most_held > 0 && rank->held > m->pace->most_held) {
            return fsdpi_flaw_set(
                m->flaw, r, rank->n_done,
                "with %dF%d, rank %d holds the activations of %d micro-batches at once: the limit is %d", a->stage,
                a->micro, r, rank->held, m->pace->most_held);
        }
        *moved = true;
    }
    return true;
}

/* Whom a rank that cannot go on waits for. */
static int awaited_by(const machine *m, int r)
{
    const fsdpi_rank_run *rank   = &m->run->ranks[r];
    const fsdpi_action   *a      = &m->passes->schedule->rows[r].list[rank->n_done];
    const bool            behind = a->work == FSDPI_SEND_F || a->work == FSDPI_RECV_B;

    return behind ? fsdpi_behind(m->passes, a->stage) : fsdpi_before(m->passes, a->stage);
}

static bool is_over(const machine *m, int r)
{
    return m->run->ranks[r].n_done == m->passes->schedule->rows[r].n;
}

/* Follows who waits for whom until a rank comes again: from there on it is a circle. A rank that is done cannot be waited for. */
static bool report_deadlock(const machine *m, int r)
{
    char   text[FSDPI_ACTION_BYTES], chain[300] = "";
    size_t used = 0;

    for (int i = 0; i < m->run->n_ranks; i++) { /* so long is the way into the circle at most */
        r = awaited_by(m, r);
    }
    const int first = r;
    do {
        const fsdpi_action *a = &m->passes->schedule->rows[r].list[m->run->ranks[r].n_done];
        const int           n = snprintf(chain + used, sizeof chain - used, "%srank %d at %s", used > 0 ? ", " : "", r,
                                         fsdpi_action_print(a, text));
        used += (size_t)n < sizeof chain - used ? (size_t)n : 0;
        r = awaited_by(m, r);
    } while (r != first);
    return fsdpi_flaw_set(m->flaw, first, m->run->ranks[first].n_done,
                          "deadlock with %d buffer%s: each of these waits for the next, the last for the first: %s",
                          m->pace->buffers, m->pace->buffers == 1 ? "" : "s", chain);
}

static bool carry_out(const machine *m)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < m->run->n_ranks; r++) {
            if (!advance(m, r, &moved)) {
                return false;
            }
        }
    }
    for (int r = 0; r < m->run->n_ranks; r++) {
        if (!is_over(m, r)) {
            return report_deadlock(m, r);
        }
        m->run->seconds = later(m->run->seconds, m->run->ranks[r].end);
    }
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static bool open_channels(machine *m)
{
    const size_t micros = (size_t)m->passes->schedule->micros, n = 2 * (size_t)m->passes->schedule->stages;
    double      *times = malloc(n * 2 * micros * sizeof *times);

    m->channels = calloc(n, sizeof *m->channels);
    if (times == NULL || m->channels == NULL) {
        free(times);
        free(m->channels);
        m->channels = NULL;
        return false;
    }
    for (size_t c = 0; c < n; c++) {
        m->channels[c].arrival  = times + 2 * c * micros;
        m->channels[c].received = m->channels[c].arrival + micros;
        for (size_t i = 0; i < micros; i++) {
            m->channels[c].arrival[i] = -1;
        }
    }
    return true;
}

static void close_channels(machine *m)
{
    if (m->channels != NULL) {
        free(m->channels[0].arrival);
        free(m->channels);
    }
}

static bool open_run(fsdpi_simulation *run, const fsdpi_schedule *schedule)
{
    *run = (fsdpi_simulation){.n_ranks = schedule->ranks, .ranks = calloc((size_t)schedule->ranks, sizeof *run->ranks)};
    bool good = run->ranks != NULL;

    for (int r = 0; good && r < schedule->ranks; r++) {
        run->ranks[r].begin = malloc((schedule->rows[r].n + 1) * sizeof *run->ranks[r].begin);
        good                = run->ranks[r].begin != NULL;
    }
    return good;
}

bool fsdpi_simulate(const fsdpi_passes *passes, const fsdpi_pace *pace, fsdpi_simulation *run, fsdpi_flaw *flaw)
{
    machine    m    = {.passes = passes, .pace = pace, .run = run, .flaw = flaw};
    const bool room = open_run(run, passes->schedule) && open_channels(&m);
    const bool good = room ? carry_out(&m) : fsdpi_flaw_set(flaw, -1, 0, "memory is short");

    close_channels(&m);
    return good;
}

void fsdpi_simulation_close(fsdpi_simulation *run)
{
    for (int r = 0; run->ranks != NULL && r < run->n_ranks; r++) {
        free(run->ranks[r].begin);
    }
    free(run->ranks);
    *run = (fsdpi_simulation){0};
}
