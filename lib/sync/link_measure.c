#include "lib/sync/link.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/yielding.h"

/* Of exchanges that are timed, at least one more than the first, which sets up the connections. */
enum { SERIES = 4, MANY_SERIES = 16 };

/* As large as the largest pieces. */
enum { BYTES = 256 << 10, LONG_EACH = 2 };

/* Short messages, alone and several at once: so short that MPI sends them without asking. */
enum { SHORT_BYTES = 64, SEVERAL = 8, SHORT_EACH = 6, BUSY_EACH = 16 };

/*
 * BYTES that some MPIs, UCX and Open MPI's vader, send without asking the receiver first, less a head of their own. A little more then
 * takes less time in two messages than in one: on an Ice Lake 0.6 to 0.9 of it over vader, 0.7 to 1.0 over UCX, the most where cores
 * are near; where nothing is asked 1.3 to 1.7, but hardly more than 1 over a slow link. So many exchanges use all buffers of MPI.
 */
enum { N_EAGER = 2 };
static const int    EAGER[N_EAGER] = {8 << 10, (4 << 10) - FSDPI_LINE}; /* longest first */
static const double NOTABLY = 0.92, HARDLY_MORE = 1.1;

/* Data of 2, 4, 8 and 16 times as many BYTES is sent whole and in so many pieces. */
enum { DOUBLINGS = 4, MOST_PIECES = 1 << DOUBLINGS };

/* Longer ones have met a process that did not run: that says nothing of the link. */
static const double LONGEST_ALPHA = 200e-6;

/* So many messages of `bytes` to one leader, and as many from another; `fresh`: which are written to just before. */
typedef struct trial {
    const fsdpi_core *core;
    unsigned char    *memory; /* for all of them, both ways */
    int               to, from;
    int               n;
    int               bytes;
    bool              fresh;
} trial;

/* fsdpi_mpi_wait() tests a request until it is complete, which the checker does not take for a wait. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

static fsdp_status exchange_once(const trial *t)
{
    enum { LOOKS = 32 };
    const fsdpi_core *core = t->core;
    MPI_Request       requests[2 * MOST_PIECES];
    int               all = 0;

    if (t->fresh) {
        memset(t->memory, 0, (size_t)t->n * (size_t)t->bytes);
    }
    for (int i = 0; i < t->n; i++) {
        FSDPI_TRY_MPI(core->ctx, MPI_Irecv(t->memory + (size_t)(t->n + i) * (size_t)t->bytes, t->bytes, MPI_BYTE,
                                           t->from, FSDPI_TAG_RECORDS, core->comm, &requests[i]));
    }
    for (int i = 0; i < t->n; i++) {
        FSDPI_TRY_MPI(core->ctx, MPI_Isend(t->memory + (size_t)i * (size_t)t->bytes, t->bytes, MPI_BYTE, t->to,
                                           FSDPI_TAG_RECORDS, core->comm, &requests[t->n + i]));
    }
    for (int i = 0; i < LOOKS && !all; i++) { /* together, as they are tested in an operation */
        FSDPI_TRY_MPI(core->ctx, MPI_Testall(2 * t->n, requests, &all, MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < 2 * t->n && !all; i++) {
        FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_wait(&requests[i], core->config.timeout_s));
    }
    return FSDP_OK;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/*
 * SECONDS of an exchange, by the fastest of some series: one alone may find that what it waits for has come before it asks, a
 * series cannot. The first series sets up the connections.
 */
static fsdp_status time_exchanges(const trial *t, int series, int each, double *best)
{
    for (int i = 0; i < series; i++) {
        const double begin = fsdpi_seconds();
        for (int k = 0; k < each; k++) {
            FSDP_TRY(exchange_once(t));
        }
        const double seconds = (fsdpi_seconds() - begin) / each;
        *best                = i == 0 || seconds < *best ? seconds : *best;
    }
    return FSDP_OK;
}

enum {
    LONG,
    FRESH,
    COLD,
    ONE,
    MORE,
    BUSY,
    LEFT,
    PAST,
    PAST_HALVES = PAST + N_EAGER,
    CHOSEN      = PAST_HALVES + N_EAGER, /* of EAGER */
    WHOLE,
    PIECES  = WHOLE + DOUBLINGS,
    N_TIMES = PIECES + DOUBLINGS
};

/* With the ranks in the same position on the nodes next to this one. */
static trial trial_of(const fsdpi_nodes *nodes, const fsdpi_mailbox *box)
{
    return (trial){.core   = box->core,
                   .memory = fsdpi_rest_of(box, nodes->position),
                   .to     = fsdpi_rank_at(nodes, fsdpi_node_behind(nodes, 1), nodes->position),
                   .from   = fsdpi_rank_at(nodes, fsdpi_node_before(nodes, 1), nodes->position),
                   .n      = 1};
}

/* On a leader. What there is no room for stays 0. */
static fsdp_status time_all(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, double times[N_TIMES])
{
    trial t = trial_of(nodes, box);

    if (box->rest_bytes >= (size_t)2 * BYTES) {
        t.bytes = BYTES;
        FSDP_TRY(time_exchanges(&t, SERIES, LONG_EACH, &times[LONG]));
    }
    if (box->rest_bytes >= (size_t)2 * SEVERAL * SHORT_BYTES) {
        t.bytes = SHORT_BYTES;
        FSDP_TRY(time_exchanges(&t, SERIES, SHORT_EACH, &times[ONE]));
        t.n = SEVERAL;
        FSDP_TRY(time_exchanges(&t, SERIES, SHORT_EACH, &times[MORE]));
    }
    return FSDP_OK;
}

/* A long message, and one that has just been written. Their times are compared, so both take the best of many series. */
static fsdp_status time_fresh(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, double times[N_TIMES])
{
    trial t = trial_of(nodes, box);

    t.bytes = BYTES;
    FSDP_TRY(time_exchanges(&t, MANY_SERIES, LONG_EACH, &times[LONG]));
    t.fresh = true;
    return time_exchanges(&t, MANY_SERIES, LONG_EACH, &times[FRESH]);
}

/* Writes back what caches hold of some memory, and drops it there. @return whether this processor has that for programs */
static bool drop_from_caches(const unsigned char *memory, size_t bytes)
{
#ifdef __x86_64__
    for (size_t i = 0; i < bytes; i += FSDPI_LINE) {
        __builtin_ia32_clflush(memory + i);
    }
    __builtin_ia32_mfence();
    return true;
#else
    (void)memory;
    (void)bytes;
    return false;
#endif
}

/*
 * Adds what messages take that have to come from memory; a short one before them, so that both ranks have dropped theirs. Nothing where
 * this processor cannot do that.
 */
static fsdp_status add_cold(const trial *t, double *seconds)
{
    const size_t all   = 2 * (size_t)t->n * (size_t)t->bytes;
    trial        ready = *t;

    if (!drop_from_caches(t->memory, all)) {
        return FSDP_OK;
    }
    ready.n      = 1;
    ready.bytes  = SHORT_BYTES;
    ready.memory = t->memory + all - 2 * SHORT_BYTES;
    FSDP_TRY(exchange_once(&ready));
    const double begin = fsdpi_seconds();
    FSDP_TRY(exchange_once(t));
    *seconds += fsdpi_seconds() - begin;
    return FSDP_OK;
}

static fsdp_status time_cold(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, double times[N_TIMES])
{
    trial t = trial_of(nodes, box);

    t.bytes = BYTES;
    for (int i = 0; i < MANY_SERIES; i++) {
        double seconds = 0;

        FSDP_TRY(add_cold(&t, &seconds));
        times[COLD] = i == 0 || seconds < times[COLD] ? seconds : times[COLD];
    }
    return FSDP_OK;
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

/*
 * Asks for a long message when a short one that was sent after it has come. LEFT: 1 if it is not there when it has been asked for,
 * else 0.
 */
static fsdp_status ask_late(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, double times[N_TIMES])
{
    const trial       t    = trial_of(nodes, box);
    const fsdpi_core *core = t.core;
    unsigned char    *in   = t.memory + BYTES;
    int               done = 0;
    MPI_Request       after, sent[2], asked;

    FSDPI_TRY_MPI(core->ctx, MPI_Irecv(in, SHORT_BYTES, MPI_BYTE, t.from, FSDPI_TAG_NOTES, core->comm, &after));
    FSDPI_TRY_MPI(core->ctx, MPI_Isend(t.memory, BYTES, MPI_BYTE, t.to, FSDPI_TAG_RECORDS, core->comm, &sent[0]));
    FSDPI_TRY_MPI(core->ctx, MPI_Isend(t.memory, SHORT_BYTES, MPI_BYTE, t.to, FSDPI_TAG_NOTES, core->comm, &sent[1]));
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_wait(&after, core->config.timeout_s));
    FSDPI_TRY_MPI(core->ctx, MPI_Irecv(in, BYTES, MPI_BYTE, t.from, FSDPI_TAG_RECORDS, core->comm, &asked));
    FSDPI_TRY_MPI(core->ctx, MPI_Test(&asked, &done, MPI_STATUS_IGNORE));
    times[LEFT] = !done;
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_wait(&asked, core->config.timeout_s));
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_wait(&sent[0], core->config.timeout_s));
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_wait(&sent[1], core->config.timeout_s));
    return FSDP_OK;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

typedef fsdp_status timing(const trial *t, double *seconds);

/*
 * A message, and `n` that together have as many bytes, by turns: of the two times, those that took least together. The best of each may be
 * from times in which cores were nearer to each other than in the other's, as on virtual ones.
 */
static fsdp_status time_cut(trial *t, int n, int bytes, timing *time_them, double *whole, double *pieces)
{
    enum { TURNS = 8 };
    double one = 0, all = 0;

    for (int i = 0; i < TURNS; i++) {
        t->n     = 1;
        t->bytes = n * bytes;
        FSDP_TRY(time_them(t, &one));
        t->n     = n;
        t->bytes = bytes;
        FSDP_TRY(time_them(t, &all));
        if (i == 0 || one + all < *whole + *pieces) {
            *whole  = one;
            *pieces = all;
        }
    }
    return FSDP_OK;
}

static fsdp_status time_hot(const trial *t, double *seconds)
{
    enum { EACH = 16 };

    return time_exchanges(t, 1, EACH, seconds);
}

static fsdp_status time_eager(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, double times[N_TIMES])
{
    trial t = trial_of(nodes, box);

    for (int i = 0; i < N_EAGER; i++) {
        FSDP_TRY(time_cut(&t, 2, EAGER[i] / 2 + FSDPI_LINE, time_hot, &times[PAST + i], &times[PAST_HALVES + i]));
    }
    return FSDP_OK;
}

/* From memory where that can be had: a program has used much else since it last used what it sends. */
static fsdp_status time_from_memory(const trial *t, double *seconds)
{
    enum { EACH = 4 };
    double cold = 0;

    for (int i = 0; i < EACH; i++) {
        FSDP_TRY(add_cold(t, &cold));
    }
    *seconds = cold;
    return cold > 0 ? FSDP_OK : time_hot(t, seconds);
}

static fsdp_status time_pieces(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, double times[N_TIMES])
{
    trial     t     = trial_of(nodes, box);
    const int piece = EAGER[(int)times[CHOSEN]];

    for (int d = 0; d < DOUBLINGS; d++) {
        FSDP_TRY(time_cut(&t, 2 << d, piece, time_from_memory, &times[WHOLE + d], &times[PIECES + d]));
    }
    return FSDP_OK;
}

/* Between what was measured, as if it rose evenly. */
size_t fsdpi_link_cut_until(size_t piece, int n, const double *whole, const double *pieces)
{
    enum { MOST_BYTES = 64 << 10 };
    static const double QUARTER = 1.25;
    double              most = QUARTER, before = 0;

    for (int d = 0; d < n; d++) {
        const double many = 2 << d, ratio = pieces[d] / whole[d];

        if (ratio >= 1) {
            most = d > 0 ? floor(many / 2 * (1 + (1 - before) / (ratio - before))) : QUARTER;
            break;
        }
        most   = many;
        before = ratio;
    }
    const size_t until = (size_t)((double)piece * most);
    return until < MOST_BYTES ? until : MOST_BYTES;
}

static void find_eager(fsdpi_link *link, double times[N_TIMES])
{
    const double less = fsdpi_link_is_fast(link) ? HARDLY_MORE : NOTABLY;

    for (int i = 0; i < N_EAGER && link->eager == 0; i++) {
        if (times[PAST_HALVES + i] < less * times[PAST + i]) {
            link->eager   = (size_t)EAGER[i];
            times[CHOSEN] = i;
        }
    }
}

/* By every rank that has one in its position on each node; in long series, since cores that are shared are shared in turns. */
static fsdp_status time_busy(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, double times[N_TIMES])
{
    trial t = trial_of(nodes, box);

    if (box->rest_bytes < (size_t)2 * SHORT_BYTES) {
        return FSDP_OK;
    }
    t.bytes = SHORT_BYTES;
    return time_exchanges(&t, 2, BUSY_EACH, &times[BUSY]);
}

typedef fsdp_status measurement(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, double times[N_TIMES]);

/* By the first `ranks` of each node at once; the slowest one counts. Collective. */
static fsdp_status measure(measurement *times_of, int ranks, const fsdpi_nodes *nodes, const fsdpi_mailbox *box,
                           double times[N_TIMES])
{
    const fsdpi_core *core = box->core;

    if (nodes->position < ranks) {
        FSDP_TRY(times_of(nodes, box, times));
    }
    FSDPI_TRY_MPI(core->ctx,
                  fsdpi_mpi_allreduce(times, N_TIMES, MPI_DOUBLE, MPI_MAX, core->comm, core->config.timeout_s));
    return FSDP_OK;
}

/*
 * What short messages take, and long ones. Where short ones are faster than over TCP and long ones are not, others had the cores in
 * between, as the host of virtual ones has: once more.
 */
static fsdp_status measure_speed(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, fsdpi_link *link)
{
    enum { TRIES = 3 };
    static const double SHORTEST_BY_TCP = 5e-6;

    for (int i = 0; i < TRIES && !fsdpi_link_is_fast(link) && (i == 0 || link->alpha < SHORTEST_BY_TCP); i++) {
        double times[N_TIMES] = {0};

        FSDP_TRY(measure(time_all, 1, nodes, box, times));
        const double gap = times[MORE] > times[ONE] ? (times[MORE] - times[ONE]) / (SEVERAL - 1) : 0;
        link->rate       = times[LONG] > 0 ? BYTES / times[LONG] : 0;
        link->alpha      = times[ONE] < LONGEST_ALPHA ? times[ONE] : LONGEST_ALPHA;
        link->gap        = gap < link->alpha ? gap : link->alpha;
    }
    return FSDP_OK;
}

/* What else counts where the core and not the link bounds what messages take. */
static fsdp_status measure_core(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, fsdpi_link *link)
{
    double times[N_TIMES] = {0};

    FSDP_TRY(measure(time_fresh, 1, nodes, box, times));
    link->rate  = fmax(link->rate, BYTES / times[LONG]);
    link->fresh = BYTES / times[FRESH];
    FSDP_TRY(measure(time_cold, 1, nodes, box, times));
    link->cold = times[COLD] > 0 ? BYTES / times[COLD] : 0;
    FSDP_TRY(measure(ask_late, 1, nodes, box, times));
    link->pulls = times[LEFT] == 0;
    FSDP_TRY(measure(time_eager, 1, nodes, box, times));
    find_eager(link, times);
    if (link->eager > 0) {
        FSDP_TRY(measure(time_pieces, 1, nodes, box, times));
        link->cut = fsdpi_link_cut_until(link->eager, DOUBLINGS, &times[WHOLE], &times[PIECES]);
    }
    return FSDP_OK;
}

static fsdp_status measure_busy(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, fsdpi_link *link)
{
    double times[N_TIMES] = {0};

    FSDP_TRY(measure(time_busy, nodes->smallest, nodes, box, times));
    link->busy = times[BUSY] < LONGEST_ALPHA ? times[BUSY] : LONGEST_ALPHA;
    return FSDP_OK;
}

fsdp_status fsdpi_link_measure(const fsdpi_nodes *nodes, const fsdpi_mailbox *box, fsdpi_link *link)
{
    if (nodes->count == 1) {
        return FSDP_OK;
    }
    FSDP_TRY(measure_speed(nodes, box, link));
    if (fsdpi_link_is_fast(link)) {
        FSDP_TRY(measure_core(nodes, box, link));
    }
    return nodes->largest > 1 ? measure_busy(nodes, box, link) : FSDP_OK;
}
