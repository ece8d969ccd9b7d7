#include "shard/pipeline/generate.h"

enum { MOST_RANKS = 65536, MOST_PER_RANK = 64, MOST_MICROS = 65536 };

const char *fsdpi_pipeline_kind_text(fsdpi_pipeline_kind kind)
{
    static const char *const NAMES[FSDPI_N_PIPELINE_KINDS] = {"gpipe", "1f1b", "interleaved", "zb-h1"};

    return NAMES[kind];
}

/* One rank of a schedule that is being written; `good` until memory is short. */
typedef struct writer {
    fsdpi_schedule *schedule;
    int             rank, ranks, each, micros;
    bool            good;
} writer;

static void add(writer *w, fsdpi_work work, int stage, int micro)
{
    w->good = w->good &&
              fsdpi_schedule_add(w->schedule, w->rank, (fsdpi_action){.work = work, .stage = stage, .micro = micro});
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static void write_gpipe(writer *w)
{
    for (int m = 0; m < w->micros; m++) {
        add(w, FSDPI_RUN_FORWARD, w->rank, m);
    }
    for (int m = 0; m < w->micros; m++) {
        add(w, FSDPI_RUN_BACKWARD, w->rank, m);
    }
}

static void write_1f1b(writer *w)
{
    const int ahead = smaller(w->ranks - 1 - w->rank, w->micros);

    for (int m = 0; m < ahead; m++) {
        add(w, FSDPI_RUN_FORWARD, w->rank, m);
    }
    for (int m = 0; m < w->micros; m++) {
        if (ahead + m < w->micros) {
            add(w, FSDPI_RUN_FORWARD, w->rank, ahead + m);
        }
        add(w, FSDPI_RUN_BACKWARD, w->rank, m);
    }
}

/* The k-th pass of a rank: p micro-batches through one of its stages, then the same through the next. */
static void add_in_groups(writer *w, fsdpi_work work, int k)
{
    const int turn  = k / w->ranks % w->each;
    const int chunk = work == FSDPI_RUN_FORWARD ? turn : w->each - 1 - turn;

    add(w, work, chunk * w->ranks + w->rank, k / (w->ranks * w->each) * w->ranks + k % w->ranks);
}

static void write_interleaved(writer *w)
{
    const int all   = w->micros * w->each;
    const int ahead = smaller(2 * (w->ranks - 1 - w->rank) + (w->each - 1) * w->ranks, all);

    for (int k = 0; k < ahead; k++) {
        add_in_groups(w, FSDPI_RUN_FORWARD, k);
    }
    for (int k = 0; k < all; k++) {
        if (ahead + k < all) {
            add_in_groups(w, FSDPI_RUN_FORWARD, ahead + k);
        }
        add_in_groups(w, FSDPI_RUN_BACKWARD, k);
    }
}

/* Rank r owes the gradients of parameters of up to r micro-batches, which it makes up for at the end, where 1f1b would wait. */
static void write_zb_h1(writer *w)
{
    const int ahead = smaller(w->ranks - 1 - w->rank, w->micros);
    int       paid  = 0;

    for (int m = 0; m < ahead; m++) {
        add(w, FSDPI_RUN_FORWARD, w->rank, m);
    }
    for (int m = 0; m < w->micros; m++) {
        if (ahead + m < w->micros) {
            add(w, FSDPI_RUN_FORWARD, w->rank, ahead + m);
        }
        add(w, FSDPI_RUN_BACKWARD_INPUT, w->rank, m);
        if (m + 1 - paid > w->rank) {
            add(w, FSDPI_RUN_BACKWARD_WEIGHT, w->rank, paid++);
        }
    }
    while (paid < w->micros) {
        add(w, FSDPI_RUN_BACKWARD_WEIGHT, w->rank, paid++);
    }
}

static bool check_numbers(fsdpi_pipeline_kind kind, int ranks, int each, int micros, fsdpi_flaw *flaw)
{
    if (ranks < 1 || ranks > MOST_RANKS || each < 1 || each > MOST_PER_RANK || micros < 1 || micros > MOST_MICROS ||
        (long long)ranks * each * micros > FSDPI_MOST_PASSES) {
        return fsdpi_flaw_set(flaw, -1, 0,
                              "%d ranks with %d stages each and %d micro-batches: there must be 1 to %d, 1 to %d and 1 "
                              "to %d, with a product of at most %d",
                              ranks, each, micros, MOST_RANKS, MOST_PER_RANK, MOST_MICROS, FSDPI_MOST_PASSES);
    }
    if (kind != FSDPI_INTERLEAVED && each > 1) {
        return fsdpi_flaw_set(flaw, -1, 0, "%s has one stage on a rank, not %d; for several use interleaved",
                              fsdpi_pipeline_kind_text(kind), each);
    }
    if (kind == FSDPI_INTERLEAVED && each == 1) {
        return fsdpi_flaw_set(flaw, -1, 0, "interleaved needs 2 or more stages on each rank; with 1 it is 1f1b");
    }
    if (kind == FSDPI_INTERLEAVED && micros % ranks != 0) {
        return fsdpi_flaw_set(
            flaw, -1, 0, "interleaved needs a multiple of the %d ranks as micro-batches: %d is none; take %d or %d",
            ranks, micros, micros / ranks * ranks + (micros < ranks ? ranks : 0),
            (micros / ranks + 1 + (micros < ranks)) * ranks);
    }
    return true;
}

bool fsdpi_generate(fsdpi_schedule *schedule, fsdpi_pipeline_kind kind, int ranks, int stages_per_rank, int micros,
                    fsdpi_flaw *flaw)
{
    static void (*const WRITE[FSDPI_N_PIPELINE_KINDS])(writer *) = {write_gpipe, write_1f1b, write_interleaved,
                                                                    write_zb_h1};
    writer w = {.schedule = schedule, .ranks = ranks, .each = stages_per_rank, .micros = micros};

    *schedule = (fsdpi_schedule){0};
    if (!check_numbers(kind, ranks, stages_per_rank, micros, flaw)) {
        return false;
    }
    w.good = fsdpi_schedule_open(schedule, ranks);
    for (w.rank = 0; w.good && w.rank < ranks; w.rank++) {
        WRITE[kind](&w);
    }
    if (!w.good) {
        fsdpi_schedule_close(schedule);
        return fsdpi_flaw_set(flaw, -1, 0, "memory is short");
    }
    return true;
}

double fsdpi_bubble(fsdpi_pipeline_kind kind, int ranks, int stages_per_rank, int micros)
{
    const double others = ranks - 1;
    const double passes = kind == FSDPI_INTERLEAVED ? (double)micros * stages_per_rank
                          : kind == FSDPI_ZB_H1     ? 3.0 * micros
                                                    : micros;

    return micros >= ranks ? others / (passes + others) : -1;
}
