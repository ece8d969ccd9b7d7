#include "tests/shard/pipeline/executor.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STAGES = 16, MOST_MICROS = 16, MOST_RANKS = 8 };

/* What one stage of one rank has of one micro-batch. */
typedef struct pass {
    bool input, output, gradient_in, gradient_out, weights; /* gradient_in: of the output */
} pass;

typedef struct machine {
    const fsdpi_schedule *schedule;
    int                   buffers, most_held;
    size_t                at[MOST_RANKS];
    int                   held[MOST_RANKS];
    pass                  passes[MOST_STAGES][MOST_MICROS];
    int                   rank_of[MOST_STAGES];
    bool                  gathered[MOST_STAGES], reduced[MOST_STAGES];
    bool                  forward[MOST_STAGES][MOST_MICROS], backward[MOST_STAGES][MOST_MICROS]; /* on their way */
    bool                  gathers, reduces;
} machine;

static bool is_near(const machine *m, int stage, int other)
{
    return other >= 0 && other < m->schedule->stages && m->rank_of[other] == m->rank_of[stage];
}

static int on_their_way(const bool *messages)
{
    int n = 0;

    for (int i = 0; i < MOST_MICROS; i++) {
        n += messages[i];
    }
    return n;
}

/* One attempt: 1 done, 0 it waits, -1 something is missing, -2 too much is held. */
static int forward(machine *m, int rank, const fsdpi_action *a)
{
    pass *p = &m->passes[a->stage][a->micro];

    if (a->stage > 0 && is_near(m, a->stage, a->stage - 1)) {
        p->input = m->passes[a->stage - 1][a->micro].output;
    }
    if ((a->stage > 0 && !p->input) || p->output) {
        return -1;
    }
    p->output = true;
    m->held[rank]++;
    return m->most_held > 0 && m->held[rank] > m->most_held ? -2 : 1;
}

static int backward(machine *m, int rank, const fsdpi_action *a)
{
    pass *p = &m->passes[a->stage][a->micro];

    if (is_near(m, a->stage, a->stage + 1)) {
        p->gradient_in = m->passes[a->stage + 1][a->micro].gradient_out;
    }
    if (!p->output || (a->stage + 1 < m->schedule->stages && !p->gradient_in) || p->gradient_out) {
        return -1;
    }
    p->gradient_out = true;
    if (a->work == FSDPI_RUN_BACKWARD) {
        if (p->weights) {
            return -1;
        }
        p->weights = true;
    }
    m->held[rank]--;
    return 1;
}

static int backward_weight(machine *m, const fsdpi_action *a)
{
    pass *p = &m->passes[a->stage][a->micro];

    if (!p->gradient_out || p->weights) {
        return -1;
    }
    p->weights = true;
    return 1;
}

static int send(machine *m, const fsdpi_action *a, int to, bool have, bool (*channel)[MOST_MICROS])
{
    if (!have || to < 0 || to >= m->schedule->stages || is_near(m, a->stage, to) || channel[to][a->micro]) {
        return -1;
    }
    if (on_their_way(channel[to]) == m->buffers) {
        return 0;
    }
    channel[to][a->micro] = true;
    return 1;
}

static int receive(const fsdpi_action *a, bool *have, bool (*channel)[MOST_MICROS])
{
    if (*have) {
        return -1;
    }
    if (!channel[a->stage][a->micro]) {
        return 0;
    }
    channel[a->stage][a->micro] = false;
    *have                       = true;
    return 1;
}

static int reduce(machine *m, const fsdpi_action *a)
{
    for (int i = 0; i < m->schedule->micros; i++) {
        if (!m->passes[a->stage][i].weights) {
            return -1;
        }
    }
    if (m->reduced[a->stage]) {
        return -1;
    }
    m->reduced[a->stage] = true;
    return 1;
}

static int set_gathered(machine *m, const fsdpi_action *a)
{
    const bool gathered = a->work == FSDPI_UNSHARD;

    if (m->gathered[a->stage] == gathered) {
        return -1;
    }
    m->gathered[a->stage] = gathered;
    return 1;
}

static int attempt(machine *m, int rank, const fsdpi_action *a)
{
    pass *p = &m->passes[a->stage][a->micro];

    if (fsdpi_is_compute(a->work) && m->gathers && !m->gathered[a->stage]) {
        return -1;
    }
    switch (a->work) {
    case FSDPI_RUN_FORWARD:
        return forward(m, rank, a);
    case FSDPI_RUN_BACKWARD:
    case FSDPI_RUN_BACKWARD_INPUT:
        return backward(m, rank, a);
    case FSDPI_RUN_BACKWARD_WEIGHT:
        return backward_weight(m, a);
    case FSDPI_SEND_F:
        return send(m, a, a->stage + 1, p->output, m->forward);
    case FSDPI_RECV_F:
        return receive(a, &p->input, m->forward);
    case FSDPI_SEND_B:
        return send(m, a, a->stage - 1, p->gradient_out, m->backward);
    case FSDPI_RECV_B:
        return receive(a, &p->gradient_in, m->backward);
    case FSDPI_REDUCE_GRAD:
        return reduce(m, a);
    default:
        return set_gathered(m, a);
    }
}

/* Whether all has been done, and no message is left that nobody has asked for. */
static bool is_whole(const machine *m)
{
    for (int s = 0; s < m->schedule->stages; s++) {
        for (int i = 0; i < m->schedule->micros; i++) {
            if (!m->passes[s][i].weights || m->forward[s][i] || m->backward[s][i]) {
                return false;
            }
        }
        if (m->reduces && !m->reduced[s]) {
            return false;
        }
    }
    return true;
}

static bool look_at(machine *m)
{
    memset(m->rank_of, -1, sizeof m->rank_of);
    for (int r = 0; r < m->schedule->ranks; r++) {
        for (size_t i = 0; i < m->schedule->rows[r].n; i++) {
            const fsdpi_action *a = &m->schedule->rows[r].list[i];

            if (m->rank_of[a->stage] >= 0 && m->rank_of[a->stage] != r) {
                return false;
            }
            m->rank_of[a->stage] = r;
            m->gathers           = m->gathers || a->work == FSDPI_UNSHARD || a->work == FSDPI_RESHARD;
            m->reduces           = m->reduces || a->work == FSDPI_REDUCE_GRAD;
        }
    }
    return true;
}

static bool all_are_done(const machine *m)
{
    for (int r = 0; r < m->schedule->ranks; r++) {
        if (m->at[r] < m->schedule->rows[r].n) {
            return false;
        }
    }
    return true;
}

executed execute(const fsdpi_schedule *schedule, int buffers, int most_held, uint64_t seed)
{
    machine m    = {.schedule = schedule, .buffers = buffers, .most_held = most_held};
    int     idle = 0;

    if (!look_at(&m)) {
        return MISSED;
    }
    while (!all_are_done(&m)) {
        seed           = seed * 6364136223846793005U + 1442695040888963407U;
        const int rank = (int)((seed >> 33) % (uint64_t)schedule->ranks);
        const int result =
            m.at[rank] < schedule->rows[rank].n ? attempt(&m, rank, &schedule->rows[rank].list[m.at[rank]]) : 0;

        if (result < 0) {
            return result == -1 ? MISSED : HELD_TOO_MUCH;
        }
        m.at[rank] += (size_t)result;
        idle = result > 0 ? 0 : idle + 1;
        if (idle > 200 * schedule->ranks) { /* no rank was passed over so often */
            return STUCK;
        }
    }
    return is_whole(&m) ? EXECUTED : MISSED;
}
