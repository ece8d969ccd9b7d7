/*
 * A rank that is always last where the others wait for one. Whoever comes last waits least: within an operation, all ranks end at about the same time, so that
 * by how much a rank was behind the others is by how much it took less time, by each host's own clock.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/records/text.h"
#include "tools/records/verdict.h"
#include "tools/records/view.h"

enum { FEWEST_OPERATIONS = 10 };
static const double OFTEN = 0.9, LEAST_SECONDS = 1e-3, LEAST_SHARE = 0.05;

typedef struct lateness {
    size_t operations; /* that all ranks have ended, and in which the others waited for one */
    size_t last;       /* in so many of these it was the last */
    double behind;     /* SECONDS in all, of the others' median */
} lateness;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* SECONDS that an operation took a rank; negative: it has not ended it well, or does not know. */
static double duration(const record_rank *rank, uint64_t sequence)
{
    const record_entry *entry = view_entry(rank, sequence);

    if (entry == NULL || entry->state != FSDPI_RECORDED_DONE || entry->begun == 0 || entry->ended < entry->begun) {
        return -1;
    }
    return view_seconds(rank, entry->begun, entry->ended);
}

/* False: some rank has not ended it. `durations` and `sorted` have room for one of each rank. */
static bool look_at(const verdict_context *context, uint64_t sequence, double *durations, double *sorted,
                    lateness *of_each)
{
    size_t last = 0;

    for (size_t i = 0; i < context->n; i++) {
        durations[i] = duration(context->ranks[i], sequence);
        if (durations[i] < 0) {
            return false;
        }
        last = durations[i] < durations[last] ? i : last;
    }
    memcpy(sorted, durations, context->n * sizeof *sorted);
    qsort(sorted, context->n, sizeof *sorted, by_value);
    const double behind = sorted[context->n / 2] - durations[last];
    for (size_t i = 0; i < context->n && behind >= LEAST_SECONDS; i++) {
        of_each[i].operations++;
    }
    of_each[last].last += behind >= LEAST_SECONDS;
    of_each[last].behind += behind >= LEAST_SECONDS ? behind : 0;
    return true;
}

static void say(const verdict_context *context, const lateness *of_each, size_t slow, verdict *found)
{
    text_builder       text = {found->text, sizeof found->text, 0}, advice = {found->advice, sizeof found->advice, 0};
    const lateness    *late   = &of_each[slow];
    const record_rank *rank   = context->ranks[slow];
    double             waited = 0, age = 0;
    char               name[VIEW_BYTES], behind[VIEW_BYTES];

    for (size_t i = 0; i < context->n; i++) {
        if (i != slow) {
            waited += view_waited(context->ranks[i]);
            age += view_age(context->ranks[i]);
        }
    }
    view_rank(rank, name);
    view_duration(late->behind / (double)late->last, behind);
    found->kind     = VERDICT_SLOW;
    found->culprit  = rank;
    found->culprits = 1;
    text_add(&text,
             "No rank has stopped, but %s (process %d) is always last: in %zu of the last %zu operations in "
             "which ranks waited for another, by %s on average. The others spend %.0f%% of their time waiting.",
             name, (int)rank->section.pid, late->last, late->operations, behind, age > 0 ? 100 * waited / age : 0);
    text_add(&advice,
             "Look whether %s is hotter, busier or bound to fewer cores than the others, or that rank has more work.",
             rank->head.host);
}

/* Whether the rank that is last most often is so nearly always, and by an amount that matters. */
static bool judge(const verdict_context *context, const lateness *of_each, verdict *found)
{
    size_t slow = 0;

    for (size_t i = 0; i < context->n; i++) {
        slow = of_each[i].last > of_each[slow].last ? i : slow;
    }
    const lateness    *late = &of_each[slow];
    const record_rank *rank = context->ranks[slow];
    if (late->operations < FEWEST_OPERATIONS || (double)late->last < OFTEN * (double)late->operations) {
        return false;
    }
    const double span = view_seconds(rank, rank->entries[0].issued, rank->entries[rank->n - 1].issued);
    if (late->behind < LEAST_SHARE * span) {
        return false;
    }
    say(context, of_each, slow, found);
    return true;
}

bool verdict_find_slow(const verdict_context *context, verdict *found)
{
    const size_t n       = context->n;
    double      *values  = calloc(2 * n, sizeof *values);
    lateness    *of_each = calloc(n, sizeof *of_each);
    bool         is_slow = false;

    if (values != NULL && of_each != NULL && n > 1) {
        const record_rank *first = context->ranks[0];
        for (size_t e = 0; e < first->n; e++) {
            (void)look_at(context, first->entries[e].sequence, values, values + n, of_each);
        }
        is_slow = judge(context, of_each, found);
    }
    free(values);
    free(of_each);
    return is_slow;
}
