#include "tools/run/session.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/run/attempt.h"
#include "tools/run/blame.h"
#include "tools/run/choose.h"
#include "tools/run/lines.h"

/* ---- one attempt ---------------------------------------------------------------------------------------------------------------- */

/* NULL: there are none. */
static char *list_spares(const run_state *s)
{
    run_node **spares = calloc(s->nodes.n + 1, sizeof(run_node *));
    size_t     n      = 0;

    for (size_t i = 0; spares != NULL && i < s->nodes.n; i++) {
        bool is_chosen = s->nodes.list[i].state != RUN_NODE_GOOD;
        for (size_t k = 0; k < s->n; k++) {
            is_chosen = is_chosen || s->chosen[k] == &s->nodes.list[i];
        }
        if (!is_chosen) {
            spares[n++] = &s->nodes.list[i];
        }
    }
    char *text = n > 0 ? run_list_nodes(spares, n) : NULL;
    free(spares);
    return text;
}

static void say_start(const run_state *s, int64_t step)
{
    char *nodes = run_list_nodes(s->chosen, s->n), *spares = list_spares(s), change[64] = "", from[64] = "";

    if (s->sum_before != 0 && s->sum_before != s->sum) {
        (void)snprintf(change, sizeof change, "%zu -> ", s->sum_before);
    }
    if (step >= 0) {
        (void)snprintf(from, sizeof from, "; from step %" PRId64, step);
    }
    run_say("attempt %u: %s%zu rank%s on %zu node%s: %s%s%s%s", s->attempt, change, s->sum, s->sum == 1 ? "" : "s",
            s->n, s->n == 1 ? "" : "s", nodes != NULL ? nodes : "", spares != NULL ? "; spare: " : "",
            spares != NULL ? spares : "", from);
    free(nodes);
    free(spares);
}

static run_attempt describe_attempt(run_state *s, const char *records, const char *token)
{
    return (run_attempt){.command  = &s->command,
                         .chosen   = s->chosen,
                         .ranks    = s->ranks,
                         .n        = s->n,
                         .sum      = s->sum,
                         .number   = s->attempt,
                         .id       = s->id,
                         .records  = records,
                         .token    = token,
                         .reach    = &s->reach,
                         .fence    = &s->fence,
                         .grace    = s->o->grace,
                         .patience = s->o->patience,
                         .signals  = s->signals};
}

/* Also when it ended well: what it may have left. */
static void ask_after(run_state *s, int *statuses)
{
    run_state_ask(s, s->chosen, s->n, NULL, statuses);
    for (size_t i = 0; i < s->n; i++) {
        s->chosen[i]->has_answered = !run_ask_is_silent(statuses[i]);
    }
}

static void leave_out(run_state *s, const int *statuses, const bool *guilty)
{
    run_node *out[s->n + 1];
    size_t    n = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (guilty[i]) {
            const bool is_gone  = !s->reach.is_useless && run_ask_is_silent(statuses[i]);
            s->chosen[i]->state = is_gone ? RUN_NODE_GONE : RUN_NODE_SUSPECT;
            s->chosen[i]->charges++;
            out[n++] = s->chosen[i];
        }
    }
    if (n > 0) {
        char *list = run_list_nodes(out, n);
        run_say("to blame: %s", list != NULL ? list : "");
        free(list);
    }
}

static void say_end(const run_state *s, const run_end *end, const run_attempt_result *result, const char *text)
{
    char step[96] = "";

    if (end->to >= 0) {
        (void)snprintf(step, sizeof step, ", step %" PRId64 " -> %" PRId64, end->from >= 0 ? end->from : 0, end->to);
    }
    run_say("attempt %u ended after %.1f s%s: %s%s%s", s->attempt, result->seconds, step, end->word,
            text[0] != '\0' ? ": " : "", text);
}

static void judge(run_state *s, const run_attempt *a, const run_attempt_result *result, run_end *end)
{
    int       statuses[s->n + 1];
    bool      guilty[s->n + 1];
    run_blame blame;

    memset(statuses, 0, sizeof statuses);
    for (size_t i = 0; i < s->n; i++) {
        s->chosen[i]->family = result->family;
    }
    if (!s->reach.is_useless) {
        ask_after(s, statuses);
    }
    if (result->status == 0 || end->signal != 0 || result->status == 75) {
        end->word = result->status == 0 ? "success" : end->signal != 0 ? "ended by a signal" : "the program has saved";
        say_end(s, end, result, "");
        return;
    }
    run_blame_find(&(run_facts){.records             = a->records,
                                .nodes               = s->chosen,
                                .n                   = s->n,
                                .answers             = s->reach.is_useless ? NULL : statuses,
                                .status              = result->status,
                                .launcher_was_killed = result->launcher_was_killed},
                   &blame, guilty);
    end->word   = blame.word;
    end->is_own = blame.is_own;
    say_end(s, end, result, blame.text);
    if (blame.has_records) {
        run_say("records: %s", a->records);
    }
    leave_out(s, statuses, guilty);
}

/* A disk that is full may have room again. */
static bool raise_fence(run_state *s, fsdpi_token *token, fsdpi_problem *problem)
{
    const struct timespec pause = {.tv_nsec = 500 * 1000 * 1000};
    double                left  = s->attempt > 1 ? s->o->grace : 0;

    while (!run_fence_raise(&s->fence, token, problem)) {
        if (left <= 0) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
        left -= 0.5;
    }
    return true;
}

/* One attempt, from the choice of its nodes to the verdict. */
static int make_attempt(run_state *s, bool *too_few)
{
    char               records[PATH_MAX], token_text[FSDPI_TOKEN_TEXT_BYTES] = "", why[RUN_MESSAGE_BYTES];
    fsdpi_token        token;
    fsdpi_problem      problem = {0};
    run_attempt_result result;

    s->attempt++;
    if (!raise_fence(s, &token, &problem)) {
        return run_fail(RUN_FAILED, "--checkpoint", problem.text);
    }
    const int status = run_state_choose(s, too_few);
    if (status != 0 || *too_few) {
        return status;
    }
    if (token.number != 0) {
        fsdpi_token_text(&token, token_text);
    }
    (void)snprintf(records, sizeof records, "%.*s/attempt-%" PRIu64, PATH_MAX - 64, s->records,
                   token.number != 0 ? token.number : (uint64_t)s->attempt);
    run_attempt a   = describe_attempt(s, records, token_text);
    run_end     end = {.from = run_fence_step(&s->fence)};
    say_start(s, end.from);
    if (!run_attempt_make(&a, &result, why)) {
        return run_fail(RUN_FAILED, "launcher", why);
    }
    end.to     = run_fence_step(&s->fence);
    end.status = result.status;
    end.signal = result.signal;
    judge(s, &a, &result, &end);
    s->sum_before = s->sum;
    s->ends[1]    = s->ends[0];
    s->ends[0]    = end;
    s->n_ends++;
    return 0;
}

/* ---- all of them ---------------------------------------------------------------------------------------------------------------- */

/* What could not be ended on nodes that did not answer. */
static void sweep_gone(run_state *s)
{
    run_node *gone[s->nodes.n + 1];
    int       statuses[s->nodes.n + 1];
    size_t    n = 0;

    for (size_t i = 0; i < s->nodes.n; i++) {
        if (s->nodes.list[i].state == RUN_NODE_GONE) {
            gone[n++] = &s->nodes.list[i];
        }
    }
    if (n > 0) {
        run_state_ask(s, gone, n, NULL, statuses);
    }
}

static int stop_with(const run_state *s, run_stop stop, const char *why)
{
    const int signal = s->n_ends > 0 ? s->ends[0].signal : 0;

    if (why[0] != '\0') {
        run_say("%s", why);
    }
    run_say("stop: %s", run_stop_word(stop));
    return run_stop_status(stop, signal);
}

static int run_all(run_state *s)
{
    char why[RUN_MESSAGE_BYTES];

    for (;;) {
        bool      too_few = false;
        const int status  = make_attempt(s, &too_few);
        if (status != 0) {
            return s->n_ends == 0 ? status : stop_with(s, RUN_NO_PROGRESS, "");
        }
        if (too_few) {
            (void)snprintf(why, sizeof why, "%zu node%s left, and --min-nodes is %zu", s->n,
                           s->n == 1 ? " is" : "s are", s->o->min_nodes);
            return stop_with(s, RUN_NO_NODES, why);
        }
        const run_stop stop =
            run_decide(s->n_ends > 1 ? &s->ends[1] : NULL, &s->ends[0], s->n_ends - 1, s->o->max_restarts, why);
        if (stop != RUN_GO_ON) {
            sweep_gone(s);
            return stop_with(s, stop, why);
        }
    }
}

int run_session(const run_options *options, char **command)
{
    run_state s      = {.o = options, .fence = {.lock = -1}, .signals = -1};
    const int opened = run_state_open(&s, command);
    const int status = opened == 0 ? run_all(&s) : opened;

    run_state_close(&s);
    return status;
}
