#include "tools/top/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/records/view.h"

/* Of a rank in a context, then. */
typedef struct top_waited {
    uint64_t id;
    int32_t  rank;
    double   waited, age;
} top_waited;

/* ---- shares ------------------------------------------------------------------------------------------------------------ */

static int by_rank(const void *a, const void *b)
{
    const top_waited *x = a, *y = b;

    if (x->id != y->id) {
        return x->id < y->id ? -1 : 1;
    }
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static top_waited waited_now(const record_rank *rank)
{
    return (top_waited){
        .id = rank->head.id, .rank = rank->section.rank, .waited = view_waited(rank), .age = view_age(rank)};
}

/* Of its time since the last picture; or, in the first, since its context was opened. */
static double share_of_waiting(const record_rank *rank, const top_before *before)
{
    const top_waited  now    = waited_now(rank);
    const top_waited *last   = before->n > 0 ? bsearch(&now, before->ranks, before->n, sizeof now, by_rank) : NULL;
    const double      waited = now.waited - (last != NULL ? last->waited : 0);
    const double      time   = now.age - (last != NULL ? last->age : 0);
    const double      share  = time > 0 ? waited / time : 0;

    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static void remember(const verdict_job *job, top_before *before)
{
    top_waited *ranks = calloc(job->n, sizeof *ranks);

    top_forget(before);
    for (size_t i = 0; ranks != NULL && i < job->n; i++) {
        ranks[i] = waited_now(job->all[i]);
    }
    if (ranks != NULL) {
        qsort(ranks, job->n, sizeof *ranks, by_rank);
        *before = (top_before){ranks, job->n};
    }
}

void top_forget(top_before *before)
{
    free(before->ranks);
    *before = (top_before){NULL, 0};
}

/* ---- rows --------------------------------------------------------------------------------------------------------------- */

static void describe_doing(const record_rank *rank, char text[2 * VIEW_BYTES])
{
    char                what[VIEW_BYTES];
    const bool          waits = view_doing(rank) == FSDPI_DOING_WAITING;
    const record_entry *entry = waits ? view_entry(rank, view_doing_sequence(rank)) : NULL;
    const char         *state = rank->head.process == 'T' || rank->head.process == 't' ? "stopped; " : "";

    if (rank->head.process == 0 && view_doing(rank) != FSDPI_DOING_LEFT) {
        state = "gone; ";
    }
    if (entry != NULL) {
        view_operation(rank, entry, false, what);
        (void)snprintf(text, 2 * VIEW_BYTES, "%swaits: %s", state, what);
    } else {
        (void)snprintf(text, 2 * VIEW_BYTES, "%s%s", state, view_doing_text(rank));
    }
}

/* The last operation that it has called, or the one that it waits for. */
static uint64_t operation_of(const record_rank *rank)
{
    const uint64_t issued = rank->section.issued;

    return view_doing(rank) == FSDPI_DOING_WAITING ? view_doing_sequence(rank) : issued > 0 ? issued - 1 : 0;
}

static bool is_named(const verdict *found, const record_rank *rank)
{
    return found->culprit != NULL && found->culprit->section.pid == rank->section.pid &&
           strcmp(found->culprit->head.host, rank->head.host) == 0;
}

/* In the context in which it waits; where it waits in none, in the one that all ranks have. */
static void print_row(const verdict_job *job, const record_rank *rank, const verdict *found, const top_before *before,
                      FILE *file)
{
    const record_rank *waits = verdict_waiting(job, rank), *shown = waits != NULL ? waits : rank;
    char               doing[2 * VIEW_BYTES], since[VIEW_BYTES];

    describe_doing(shown, doing);
    view_duration(view_seconds_since(shown, shown->section.since), since);
    (void)fprintf(file, "%6d  %-12.20s %9d %10" PRIu64 "  %-12s %5.1f%%  %s%s\n", (int)rank->section.shown_rank,
                  rank->head.host, (int)rank->section.pid, operation_of(shown), since,
                  100 * share_of_waiting(shown, before), doing, is_named(found, rank) ? "  <--" : "");
}

static const verdict_context *largest_context(const verdict_job *job)
{
    const verdict_context *largest = &job->contexts[0];

    for (size_t i = 0; i < job->n_contexts; i++) {
        const verdict_context *context = &job->contexts[i];
        largest = context->ranks[0]->head.size > largest->ranks[0]->head.size ? context : largest;
    }
    return largest;
}

static void print_head(const verdict_context *context, FILE *file)
{
    const record_rank *first = context->ranks[0];
    char               now[VIEW_BYTES];

    view_clock_time(first, first->head.written.ticks, now);
    (void)fprintf(file, "%s%s%s, %s: %u rank%s on %u node%s, records of %zu\n", first->section.program,
                  first->head.job[0] != '\0' ? ", " : "", first->head.job, now, (unsigned)first->head.size,
                  first->head.size == 1 ? "" : "s", (unsigned)first->head.nodes, first->head.nodes == 1 ? "" : "s",
                  context->n);
    (void)fprintf(file, "%6s  %-12s %9s %10s  %-12s %6s  %s\n", "rank", "host", "process", "operation", "since",
                  "waits", "doing");
}

void top_print(const verdict_job *job, const records *all, double after, size_t rows, top_before *before, FILE *file)
{
    const verdict_context *context = largest_context(job);
    verdict                found;

    verdict_find(job, after, &found);
    print_head(context, file);
    for (size_t i = 0; i < context->n && (rows == 0 || i < rows); i++) {
        print_row(job, context->ranks[i], &found, before, file);
    }
    if (rows > 0 && context->n > rows) {
        (void)fprintf(file, "   ... and %zu more\n", context->n - rows);
    }
    if (found.kind != VERDICT_FINE) {
        (void)fprintf(file, "%s\n", found.text);
    }
    for (size_t i = 0; i < all->n_notes; i++) {
        (void)fprintf(file, "note: %s\n", all->notes[i]);
    }
    remember(job, before);
}
