#include "tools/run/decide.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "fsdp/stop.h"

#define SAY(why, ...) ((void)snprintf(why, RUN_MESSAGE_BYTES, __VA_ARGS__))

const char *run_stop_word(run_stop stop)
{
#define RUN_STOP_WORD(name, word, status) word,
    static const char *const WORDS[] = {RUN_STOP_LIST(RUN_STOP_WORD)};
#undef RUN_STOP_WORD
    return WORDS[stop];
}

int run_stop_status(run_stop stop, int signal)
{
#define RUN_STOP_STATUS(name, word, status) status,
    static const int STATUSES[] = {RUN_STOP_LIST(RUN_STOP_STATUS)};
#undef RUN_STOP_STATUS
    return STATUSES[stop] + (stop == RUN_INTERRUPTED ? signal : 0);
}

static bool interrupts(int signal)
{
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

static bool has_moved(const run_end *end)
{
    return end->to > end->from;
}

run_stop run_decide(const run_end *before, const run_end *last, size_t restarts, size_t max_restarts, char *why)
{
    why[0] = '\0';
    if (interrupts(last->signal)) {
        SAY(why, "signal %d (%s)", last->signal, strsignal(last->signal));
        return RUN_INTERRUPTED;
    }
    if (last->status == 0) {
        return RUN_SUCCESS;
    }
    if (last->status == FSDP_STOP_EXIT_STATUS || last->signal != 0) {
        SAY(why, "the program has saved, or had the signal to; the same command resumes");
        return RUN_TIME_LIMIT;
    }
    if (before != NULL && before->is_own && last->is_own && before->to == last->to &&
        strcmp(before->word, last->word) == 0) {
        SAY(why, "%s, twice at the same step, so it is the program's own error", last->word);
        return RUN_APP_ERROR;
    }
    if (before != NULL && !has_moved(before) && !has_moved(last)) {
        SAY(why, "two attempts without a step");
        return RUN_NO_PROGRESS;
    }
    if (restarts >= max_restarts) {
        SAY(why, "--max-restarts %zu is used up", max_restarts);
        return RUN_NO_PROGRESS;
    }
    return RUN_GO_ON;
}

/* The good ones; and of the suspects those with this many charges. */
static size_t pick(run_nodes *nodes, size_t wanted, size_t charges, bool *picked)
{
    size_t n = 0;

    for (size_t i = 0; i < nodes->n; i++) {
        n += picked[i];
    }
    for (size_t i = 0; i < nodes->n && n < wanted; i++) {
        const run_node *node = &nodes->list[i];
        if (!picked[i] &&
            (node->state == RUN_NODE_GOOD || (node->state == RUN_NODE_SUSPECT && node->charges <= charges))) {
            picked[i] = true;
            n++;
        }
    }
    return n;
}

static size_t most_charges(const run_nodes *nodes)
{
    size_t most = 0;

    for (size_t i = 0; i < nodes->n; i++) {
        most = nodes->list[i].charges > most ? nodes->list[i].charges : most;
    }
    return most;
}

size_t run_choose(run_nodes *nodes, size_t wanted, size_t least, run_node **chosen)
{
    bool   picked[nodes->n + 1];
    size_t n = 0;

    memset(picked, 0, sizeof picked);
    n = pick(nodes, wanted, 0, picked);
    for (size_t charges = 1; n < least && charges <= most_charges(nodes); charges++) {
        n = pick(nodes, least, charges, picked);
    }
    n = 0;
    for (size_t i = 0; i < nodes->n; i++) {
        if (picked[i]) {
            chosen[n++] = &nodes->list[i];
        }
    }
    return n;
}
