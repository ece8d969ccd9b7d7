/*
 * Ranks that made different calls of one operation, which is an error on all of them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/records/text.h"
#include "tools/records/verdict.h"
#include "tools/records/view.h"

enum { MISMATCHED = 3 /* FSDP_ERR_MISMATCH */, SOON = 16, MOST_CALLS = 4 };

/* The last operation that failed so; a program that has made many since has not stopped over it. */
static const record_entry *find_failed(const verdict_context *context, const record_rank **witness)
{
    const record_entry *found = NULL;

    for (size_t i = 0; i < context->n; i++) {
        const record_rank *rank = context->ranks[i];
        for (size_t e = rank->n; e > 0; e--) {
            const record_entry *entry = &rank->entries[e - 1];
            if (rank->section.issued - entry->sequence > SOON) {
                break;
            }
            if (entry->state == FSDPI_RECORDED_FAILED && entry->status == MISMATCHED &&
                (found == NULL || entry->sequence > found->sequence)) {
                found    = entry;
                *witness = rank;
            }
        }
    }
    return found;
}

/* What a rank called, as it is compared. */
static bool describe(const record_rank *rank, uint64_t sequence, char text[VIEW_BYTES])
{
    const record_entry *entry = view_entry(rank, sequence);

    if (entry != NULL) {
        view_operation(rank, entry, true, text);
    }
    return entry != NULL;
}

static void say_group(const verdict_context *context, uint64_t sequence, const char *call, size_t n, text_builder *text)
{
    text_ranks ranks = {.builder = text, .first = -1};
    char       other[VIEW_BYTES];

    text_add(text, n > 1 ? "ranks " : "rank ");
    for (size_t i = 0; i < context->n; i++) {
        if (describe(context->ranks[i], sequence, other) && strcmp(call, other) == 0) {
            text_ranks_add(&ranks, context->ranks[i]->section.shown_rank);
        }
    }
    text_ranks_end(&ranks);
    text_add(text, " called %s", call);
}

typedef struct group {
    char               call[VIEW_BYTES];
    size_t             n;
    const record_rank *first;
} group;

static size_t find_groups(const verdict_context *context, uint64_t sequence, group groups[MOST_CALLS])
{
    size_t n = 0;

    for (size_t i = 0; i < context->n; i++) {
        char   call[VIEW_BYTES];
        size_t g = 0;
        if (!describe(context->ranks[i], sequence, call)) {
            continue;
        }
        while (g < n && strcmp(groups[g].call, call) != 0) {
            g++;
        }
        if (g == n && n < MOST_CALLS) {
            groups[n++] = (group){.first = context->ranks[i]};
            memcpy(groups[g].call, call, sizeof call);
        }
        if (g < n) {
            groups[g].n++;
        }
    }
    return n;
}

static int fewest_last(const void *a, const void *b)
{
    const group *x = a, *y = b;

    return x->n > y->n ? -1 : x->n < y->n;
}

bool verdict_find_mismatch(const verdict_context *context, verdict *found)
{
    const record_rank  *witness = NULL;
    const record_entry *failed  = find_failed(context, &witness);
    group               groups[MOST_CALLS];
    text_builder        text = {found->text, sizeof found->text, 0}, advice = {found->advice, sizeof found->advice, 0};

    if (failed == NULL) {
        return false;
    }
    const size_t n  = find_groups(context, failed->sequence, groups);
    found->kind     = VERDICT_MISMATCH;
    found->witness  = witness;
    found->sequence = failed->sequence;
    text_add(&text, "Ranks made different calls of operation %" PRIu64 ": ", failed->sequence);
    if (n < 2) {
        text_add(&text, "%.900s.",
                 witness->head.reason[0] != '\0' ? witness->head.reason : "which ones is not in the records");
        return true;
    }
    qsort(groups, n, sizeof *groups, fewest_last);
    found->culprit  = groups[n - 1].n < groups[0].n ? groups[n - 1].first : NULL;
    found->culprits = found->culprit != NULL ? groups[n - 1].n : 0;
    for (size_t g = 0; g < n; g++) {
        text_add(&text, g == 0 ? "" : g + 1 < n ? ", " : ", and ");
        say_group(context, failed->sequence, groups[g].call, groups[g].n, &text);
    }
    text_add(&text, ".");
    text_add(&advice, "Look for a branch of the program that not all ranks take.");
    return true;
}
