#include "tools/records/verdict.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tools/records/text.h"
#include "tools/records/view.h"

const char *verdict_word(verdict_kind kind)
{
#define VERDICT_CASE(name, status, word)                                                                               \
    case name:                                                                                                         \
        return word;
    switch (kind) {
        VERDICT_LIST(VERDICT_CASE)
    }
#undef VERDICT_CASE
    return "unknown";
}

/* ---- one rank ---------------------------------------------------------------------------------------------------------- */

static bool has_died_of_signal(const record_rank *rank)
{
    return rank->head.cause == FSDPI_CAUSE_SIGNAL && rank->head.signal != SIGTERM;
}

static bool has_finalized(const record_rank *rank)
{
    return view_doing(rank) == FSDPI_DOING_LEFT;
}

static bool is_gone(const record_rank *rank)
{
    return rank->head.process == 0 && !has_finalized(rank);
}

static bool is_stopped(const record_rank *rank)
{
    return rank->head.process == 'T' || rank->head.process == 't';
}

static bool was_killed_for_memory(const record_rank *rank)
{
    return is_gone(rank) && rank->section.oom_kills >= 0 && rank->head.oom_kills > rank->section.oom_kills;
}

/* ---- one context: what its ranks wait for ------------------------------------------------------------------------------ */

/* The operation that holds a context up: the first that a rank has issued and not ended. */
typedef struct holdup {
    const verdict_job     *job;
    const verdict_context *context;
    const record_rank     *witness; /* one that has come to it; NULL: no operation is under way */
    uint64_t               sequence;
    size_t                 waiting; /* ranks that have come to it */
    double                 longest; /* SECONDS that one of them has waited */
    bool                   given_up;
    bool                   ended; /* a signal has ended ranks */
} holdup;

/* How long it has not got on with an operation, by its own host's clock. */
static double waited_for(const record_rank *rank, const record_entry *entry)
{
    return view_doing(rank) == FSDPI_DOING_WAITING ? view_seconds_since(rank, rank->section.since)
                                                   : view_seconds_since(rank, entry->issued);
}

static holdup find_holdup(const verdict_job *job, const verdict_context *context)
{
    holdup h = {.job = job, .context = context};

    for (size_t i = 0; i < context->n; i++) {
        const record_entry *entry = view_first_pending(context->ranks[i]);
        h.given_up                = h.given_up || context->ranks[i]->head.cause == FSDPI_CAUSE_TIMEOUT;
        h.ended                   = h.ended || context->ranks[i]->head.cause == FSDPI_CAUSE_SIGNAL;
        if (entry != NULL && (h.witness == NULL || entry->sequence < h.sequence)) {
            h.witness  = context->ranks[i];
            h.sequence = entry->sequence;
        }
    }
    for (size_t i = 0; h.witness != NULL && i < context->n; i++) {
        const record_rank  *rank  = context->ranks[i];
        const record_entry *entry = view_entry(rank, h.sequence);
        if (entry != NULL && !view_has_ended(rank, h.sequence) && !is_gone(rank) && !is_stopped(rank)) {
            const double waited = waited_for(rank, entry);
            h.waiting++;
            h.longest = waited > h.longest ? waited : h.longest;
        }
    }
    return h;
}

static bool has_come(const record_rank *rank, uint64_t sequence)
{
    return rank->section.issued > sequence;
}

/* ---- who is to blame: the first kind of which there are any ------------------------------------------------------------- */

typedef bool suspect(const holdup *h, const record_rank *rank);

static bool suspect_memory(const holdup *h, const record_rank *rank)
{
    (void)h;
    return was_killed_for_memory(rank);
}

static bool suspect_crash(const holdup *h, const record_rank *rank)
{
    (void)h;
    return has_died_of_signal(rank);
}

static bool suspect_gone(const holdup *h, const record_rank *rank)
{
    (void)h;
    return is_gone(rank);
}

static bool suspect_stopped(const holdup *h, const record_rank *rank)
{
    (void)h;
    return is_stopped(rank);
}

static bool suspect_finalized(const holdup *h, const record_rank *rank)
{
    return has_finalized(rank) && !has_come(rank, h->sequence);
}

static bool suspect_away(const holdup *h, const record_rank *rank)
{
    return !has_come(rank, h->sequence) && verdict_waiting(h->job, rank) == NULL;
}

/* It has called it, but nobody carries it out there: its own thread does not come back, and there is no other. */
static bool suspect_idle(const holdup *h, const record_rank *rank)
{
    return has_come(rank, h->sequence) && !view_has_ended(rank, h->sequence) && view_doing(rank) == FSDPI_DOING_USER &&
           rank->section.thread == FSDPI_THREAD_NONE && verdict_waiting(h->job, rank) == NULL;
}

static size_t count(const holdup *h, suspect *is_suspect, const record_rank **first)
{
    size_t n = 0;

    for (size_t i = 0; i < h->context->n; i++) {
        const record_rank *rank = h->context->ranks[i];
        if (is_suspect(h, rank)) {
            *first = n == 0 || rank->section.issued < (*first)->section.issued ? rank : *first;
            n++;
        }
    }
    return n;
}

/* ---- ranks without a record -------------------------------------------------------------------------------------------- */

static int by_node(const void *a, const void *b)
{
    const fsdpi_recorded_header *x = *(const fsdpi_recorded_header *const *)a;
    const fsdpi_recorded_header *y = *(const fsdpi_recorded_header *const *)b;

    return x->node < y->node ? -1 : x->node > y->node;
}

/* Whether those of which there is a record are whole nodes, and fewer than there should be. */
static bool whole_nodes_are_missing(const verdict_context *context)
{
    const fsdpi_recorded_header **heads = calloc(context->n, sizeof(const fsdpi_recorded_header *));
    bool                          whole = heads != NULL;
    size_t                        nodes = 0;

    for (size_t i = 0; heads != NULL && i < context->n; i++) {
        heads[i] = &context->ranks[i]->head;
    }
    if (heads != NULL) {
        qsort(heads, context->n, sizeof(const fsdpi_recorded_header *), by_node);
    }
    for (size_t i = 0, end = 0; whole && i < context->n; i = end) {
        while (end < context->n && heads[end]->node == heads[i]->node) {
            end++;
        }
        whole = end - i >= heads[i]->node_ranks;
        nodes++;
    }
    free(heads);
    return whole && nodes < context->ranks[0]->head.nodes;
}

static void list_unknown(const verdict_context *context, text_builder *text)
{
    text_ranks    ranks = {.builder = text, .first = -1};
    const int64_t size  = context->ranks[0]->head.size;
    int64_t       next  = 0;

    for (size_t i = 0; i <= context->n; i++) {
        const int64_t end = i < context->n ? context->ranks[i]->section.rank : size;
        if (end > next) { /* a run of them, however long */
            text_ranks_add(&ranks, next);
            ranks.last = end - 1;
        }
        next = end + 1;
    }
    text_ranks_end(&ranks);
}

/* ---- words ------------------------------------------------------------------------------------------------------------- */

static void capitalize(char *text)
{
    text[0] = (char)(text[0] >= 'a' && text[0] <= 'z' ? text[0] - 'a' + 'A' : text[0]);
}

static void name_suspects(const holdup *h, suspect *is_suspect, const verdict *v, text_builder *text)
{
    char name[VIEW_BYTES];

    view_rank(v->culprit, name);
    if (v->culprits == 1) {
        text_add(text, "%s (process %d)", name, (int)v->culprit->section.pid);
        return;
    }
    text_ranks ranks = {.builder = text, .first = -1};
    text_add(text, "ranks ");
    for (size_t i = 0; i < h->context->n; i++) {
        if (is_suspect(h, h->context->ranks[i])) {
            text_ranks_add(&ranks, h->context->ranks[i]->section.shown_rank);
        }
    }
    text_ranks_end(&ranks);
    text_add(text, " (first %s, process %d)", name, (int)v->culprit->section.pid);
}

static void name_operation(const holdup *h, text_builder *text)
{
    char                what[VIEW_BYTES];
    const record_entry *entry = h->witness != NULL ? view_entry(h->witness, h->sequence) : NULL;

    if (entry != NULL) {
        view_operation(h->witness, entry, false, what);
        text_add(text, "operation %" PRIu64 ", %s", h->sequence, what);
    } else {
        text_add(text, "operation %" PRIu64, h->sequence);
    }
}

/* "never came to operation 7, allgather of h.4"; or how far it is within that. */
static void say_how_far(const holdup *h, const verdict *v, text_builder *text)
{
    if (h->witness == NULL) {
        text_add(text, "; no operation was under way");
    } else if (!has_come(v->culprit, h->sequence)) {
        text_add(text, "; %s never came to ", v->culprits > 1 ? "they" : "it");
        name_operation(h, text);
    } else if (view_has_ended(v->culprit, h->sequence)) {
        text_add(text, "; %s had ended ", v->culprits > 1 ? "they" : "it");
        name_operation(h, text);
    } else {
        text_add(text, "; %s had come to ", v->culprits > 1 ? "they" : "it");
        name_operation(h, text);
    }
}

static void say_who_waits(const holdup *h, text_builder *text)
{
    char longest[VIEW_BYTES];

    if (h->waiting > 0) {
        view_duration(h->longest, longest);
        text_add(text, ". %zu rank%s wait%s there, the longest for %s", h->waiting, h->waiting == 1 ? "" : "s",
                 h->waiting == 1 ? "s" : "", longest);
    }
    text_add(text, ".");
}

static void say_since(const record_rank *rank, text_builder *text)
{
    char since[VIEW_BYTES], seconds[VIEW_BYTES];

    view_clock_time(rank, rank->section.since, since);
    view_duration(view_seconds_since(rank, rank->section.since), seconds);
    text_add(text, "since %s, %s", since, seconds);
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------------- */

typedef struct charge {
    suspect     *is_suspect;
    verdict_kind kind;
    bool         needs_holdup; /* it is one only where others wait */
} charge;

static const charge CHARGES[] = {
    {suspect_memory, VERDICT_OOM, false},    {suspect_crash, VERDICT_CRASHED, false},
    {suspect_gone, VERDICT_GONE, false},     {suspect_stopped, VERDICT_STOPPED, false},
    {suspect_finalized, VERDICT_GONE, true}, {suspect_away, VERDICT_AWAY, true},
    {suspect_idle, VERDICT_AWAY, true},
};

static void say_charge(const holdup *h, const charge *c, verdict *v)
{
    text_builder       text = {v->text, sizeof v->text, 0}, advice = {v->advice, sizeof v->advice, 0};
    const record_rank *rank   = v->culprit;
    const char        *plural = v->culprits > 1 ? "are" : "is", *have = v->culprits > 1 ? "have" : "has";
    const char        *host = rank->head.host;

    name_suspects(h, c->is_suspect, v, &text);
    switch (c->kind) {
    case VERDICT_OOM:
        text_add(&text,
                 " %s gone: the kernel has killed processes of the control group for want of memory, %" PRId64
                 " since the start",
                 plural, rank->head.oom_kills - rank->section.oom_kills);
        text_add(&advice, "Give the job more memory, or each rank less work; `%s` counts the kills.",
                 rank->section.group);
        break;
    case VERDICT_CRASHED:
        text_add(&text, " %s died of signal %d (%s)", have, rank->head.signal, strsignal(rank->head.signal));
        text_add(&advice, "Look for its core file or its stack trace in the job's output.");
        break;
    case VERDICT_GONE:
        text_add(&text,
                 has_finalized(rank) ? " %s left: the context is finalized there"
                                     : " %s gone: the process has ended, or something has killed it",
                 has_finalized(rank) ? have : plural);
        text_add(&advice, "Look for its last lines in the job's output, and for its exit status in the launcher's.");
        break;
    case VERDICT_STOPPED:
        text_add(&text, " %s stopped, as by SIGSTOP or a debugger", plural);
        text_add(&advice, "On %s, `kill -CONT %d` lets it go on.", host, (int)rank->section.pid);
        break;
    default:
        text_add(&text,
                 c->is_suspect == suspect_idle ? " %s in its own code and carries nothing out, "
                                               : " %s in its own code, ",
                 plural);
        say_since(rank, &text);
        text_add(&advice, "On %s, `gdb -p %d -batch -ex bt` says where.", host, (int)rank->section.pid);
        break;
    }
    say_how_far(h, v, &text);
    say_who_waits(h, &text);
    capitalize(v->text);
}

static bool accuse(const holdup *h, bool is_held_up, verdict *v)
{
    for (size_t i = 0; i < sizeof CHARGES / sizeof *CHARGES; i++) {
        const charge *c = &CHARGES[i];
        if (c->needs_holdup && !is_held_up) {
            continue;
        }
        v->culprits = count(h, c->is_suspect, &v->culprit);
        if (v->culprits > 0) {
            v->kind = c->kind;
            say_charge(h, c, v);
            return true;
        }
    }
    v->culprit = NULL;
    return false;
}

/* Of a context that is held up, with ranks of which nothing is known. */
static void say_unknown(const holdup *h, verdict *v)
{
    text_builder text = {v->text, sizeof v->text, 0}, advice = {v->advice, sizeof v->advice, 0};
    const bool   nodes = whole_nodes_are_missing(h->context);

    v->kind = h->job->is_partial || !nodes ? VERDICT_UNKNOWN : VERDICT_NODE_GONE;
    if (h->job->is_partial) {
        text_add(&text, "Ranks of other hosts are waited for, which were not asked: ");
    } else {
        text_add(&text, "There is no record of %srank%s ", nodes ? "a whole node: of " : "",
                 v->size - v->known == 1 ? "" : "s");
    }
    list_unknown(h->context, &text);
    if (h->witness != NULL) {
        text_add(&text, ". The others were in ");
        name_operation(h, &text);
    }
    say_who_waits(h, &text);
    if (h->job->is_partial) {
        text_add(&advice, "Name all hosts of the job: `fsdp-why HOST,HOST`.");
    } else if (nodes) {
        text_add(&advice, "Look whether that host is up and can be reached. A rank that is alone on its node leaves "
                          "none either where "
                          "it is stopped or was killed.");
    } else {
        text_add(&advice, "Their processes ended before anybody noticed, or write to another folder.");
    }
}

static void say_stuck(const holdup *h, verdict *v)
{
    text_builder text = {v->text, sizeof v->text, 0}, advice = {v->advice, sizeof v->advice, 0};

    v->kind = VERDICT_STUCK;
    text_add(&text, "All ranks have come to ");
    name_operation(h, &text);
    text_add(&text, ", and nothing moves");
    say_who_waits(h, &text);
    text_add(&advice,
             "Look at the network between the hosts; with several threads, whether each rank makes its calls in "
             "the same order.");
}

static void begin(const holdup *h, verdict *v)
{
    *v         = (verdict){.kind = VERDICT_FINE, .witness = h->witness, .sequence = h->sequence};
    v->waiting = h->waiting;
    v->longest = h->longest;
    v->size    = h->context->ranks[0]->head.size;
    v->known   = h->context->n;
}

static bool find_in_context(const verdict_job *job, const verdict_context *context, double after, verdict *v)
{
    const holdup h          = find_holdup(job, context);
    const bool   is_held_up = h.witness != NULL && (h.given_up || h.longest >= after);

    begin(&h, v);
    if (accuse(&h, is_held_up, v)) {
        return true;
    }
    if (verdict_find_mismatch(context, v)) {
        return true;
    }
    if (!is_held_up && !(h.ended && context->n < v->size)) {
        return false;
    }
    if (context->n < v->size) {
        say_unknown(&h, v);
        return true;
    }
    for (size_t i = 0; i < context->n; i++) {
        if (view_doing(context->ranks[i]) == FSDPI_DOING_USER && !has_come(context->ranks[i], h.sequence) &&
            verdict_waiting(job, context->ranks[i]) != NULL) {
            return false; /* another context holds this one up */
        }
    }
    say_stuck(&h, v);
    return true;
}

/* Whether a verdict says more than another: those that name a rank come first. */
static bool says_more(const verdict *a, const verdict *b)
{
    const bool names_a = a->culprit != NULL || a->kind == VERDICT_MISMATCH;
    const bool names_b = b->culprit != NULL || b->kind == VERDICT_MISMATCH;

    return b->kind == VERDICT_FINE || (names_a && !names_b) || (names_a == names_b && a->waiting > b->waiting);
}

static void say_ended(const verdict_context *context, verdict *v)
{
    text_builder       text  = {v->text, sizeof v->text, 0};
    const record_rank *first = NULL;

    for (size_t i = 0; i < context->n && first == NULL; i++) {
        const record_rank *rank = context->ranks[i];
        first = rank->head.cause == FSDPI_CAUSE_SIGNAL || rank->head.cause == FSDPI_CAUSE_FAILED ? rank : NULL;
    }
    if (first == NULL) {
        text_add(&text, "Nothing is wrong: all ranks of which there is a record get on.");
        return;
    }
    v->kind = VERDICT_ENDED;
    if (first->head.cause == FSDPI_CAUSE_SIGNAL) {
        text_add(&text, "Ended from outside, by %s; until then ranks got on.", strsignal(first->head.signal));
    } else {
        text_add(&text, "The context has failed: %.900s.", first->head.reason);
    }
}

void verdict_find(const verdict_job *job, double after, verdict *found)
{
    verdict                next;
    const verdict_context *largest = &job->contexts[0];

    *found = (verdict){.kind = VERDICT_FINE};
    for (size_t i = 0; i < job->n_contexts; i++) {
        const verdict_context *context = &job->contexts[i];
        largest                        = context->n > largest->n ? context : largest;
        if (find_in_context(job, context, after, &next) && says_more(&next, found)) {
            *found = next;
        }
    }
    if (found->kind != VERDICT_FINE) {
        return;
    }
    const holdup h = find_holdup(job, largest);
    begin(&h, found);
    if (!verdict_find_slow(largest, found)) {
        say_ended(largest, found);
    }
}
