#include "tools/run/blame.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tools/records/text.h"
#include "tools/records/verdict.h"
#include "tools/run/ask.h"

static const double AFTER_S = 5; /* as fsdp-why's --after */

/* ---- nodes that do not answer ------------------------------------------------------------------------------------------------- */

static size_t find_silent(const run_facts *f, bool *guilty, text_builder *text)
{
    size_t n = 0;

    for (size_t i = 0; f->answers != NULL && i < f->n; i++) {
        if (run_ask_is_silent(f->answers[i])) {
            text_add(text, "%s%s", n == 0 ? "No answer from " : ", ", f->nodes[i]->name);
            guilty[i] = true;
            n++;
        }
    }
    if (n > 0) {
        text_add(text, ".");
    }
    return n;
}

/* ---- records --------------------------------------------------------------------------------------------------------------- */

static void blame_host(const run_facts *f, const char *host, bool *guilty)
{
    for (size_t i = 0; i < f->n; i++) {
        guilty[i] = guilty[i] || run_nodes_same(f->nodes[i]->name, host);
    }
}

/* A node of which there is no record, where it is the only one. */
static void blame_missing(const run_facts *f, const records *all, bool *guilty)
{
    size_t missing = 0, last = 0;

    for (size_t i = 0; i < f->n; i++) {
        bool is_there = false;
        for (size_t k = 0; k < all->n; k++) {
            is_there = is_there || run_nodes_same(f->nodes[i]->name, all->ranks[k].head.host);
        }
        missing += !is_there;
        last = is_there ? last : i;
    }
    if (missing == 1 && f->n > 1) {
        guilty[last] = true;
    }
}

/* The status of a launcher whose rank was killed from outside; what a program ends with by itself is another. */
static bool is_of_kill(int status)
{
    return status == 128 + SIGKILL || status == SIGKILL;
}

static void judge(const run_facts *f, const records *all, const verdict *v, run_blame *blame, bool *guilty)
{
    const bool names_host = v->culprit != NULL;

    blame->word = verdict_word(v->kind);
    switch (v->kind) {
    case VERDICT_GONE:
        blame->is_own = !is_of_kill(f->status);
        break;
    case VERDICT_CRASHED:
    case VERDICT_MISMATCH:
        blame->is_own = true;
        return;
    case VERDICT_OOM:
    case VERDICT_AWAY:
        blame->is_own = true; /* if the next attempt ends in the same way; until then it may be the node */
        break;
    case VERDICT_STOPPED:
        break;
    case VERDICT_NODE_GONE:
        blame_missing(f, all, guilty);
        return;
    default:
        blame->is_own = f->status != 0;
        return;
    }
    if (names_host && (v->kind != VERDICT_GONE || !blame->is_own)) {
        blame_host(f, v->culprit->head.host, guilty);
    }
}

/* Whether the records have something to say beside that ranks were ended. */
static bool says_something(verdict_kind kind)
{
    return kind != VERDICT_FINE && kind != VERDICT_ENDED && kind != VERDICT_SLOW;
}

static bool ask_records(const run_facts *f, run_blame *blame, bool *guilty, text_builder *text)
{
    records     all = {0};
    verdict_job job;
    verdict     found;

    (void)records_read_folder(&all, f->records);
    if (!verdict_pick_job(&all, 0, &job)) {
        records_release(&all);
        return false;
    }
    blame->has_records = true;
    verdict_find(&job, AFTER_S, &found);
    const bool says = says_something(found.kind);
    if (says) {
        judge(f, &all, &found, blame, guilty);
        text_add(text, "%s%s", text->used > 0 ? " " : "", found.text);
    }
    verdict_release_job(&job);
    records_release(&all);
    return says;
}

/* ---- all together -------------------------------------------------------------------------------------------------------------- */

static void say_status(const run_facts *f, text_builder *text)
{
    if (f->status > 128 && f->status < 128 + 65) {
        text_add(text, "The launcher ended with status %d (128 + %s).", f->status, strsignal(f->status - 128));
    } else {
        text_add(text, "The launcher ended with status %d; the program's last lines say why.", f->status);
    }
}

void run_blame_find(const run_facts *f, run_blame *blame, bool *guilty)
{
    text_builder text = {blame->text, sizeof blame->text, 0};
    bool         ignored[f->n + 1];

    *blame = (run_blame){.word = "exit"};
    memset(guilty, 0, f->n * sizeof *guilty);
    memset(ignored, 0, sizeof ignored);
    if (find_silent(f, guilty, &text) > 0) { /* what others say of it is about the same */
        (void)ask_records(f, blame, ignored, &text);
        blame->word   = verdict_word(VERDICT_NODE_GONE);
        blame->is_own = false;
    } else if (f->launcher_was_killed) { /* and so were ranks */
        blame->word = "launcher";
        text_add(&text, "The launcher was killed by signal %d (%s).", f->status - 128, strsignal(f->status - 128));
    } else if (!ask_records(f, blame, guilty, &text)) {
        blame->is_own = !is_of_kill(f->status);
        say_status(f, &text);
    }
}

bool run_blame_is_lost(const char *folder)
{
    records all  = {0};
    bool    lost = false;

    (void)records_read_folder(&all, folder);
    for (size_t i = 0; i < all.n; i++) {
        const fsdpi_recorded_header *head = &all.ranks[i].head;
        lost                              = lost || head->cause == FSDPI_CAUSE_TIMEOUT ||
               (head->cause == FSDPI_CAUSE_SIGNAL && head->signal != SIGTERM);
    }
    records_release(&all);
    return lost;
}
