#include "tools/run/session.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/run/ask.h"
#include "tools/run/attempt.h"
#include "tools/run/blame.h"
#include "tools/run/decide.h"
#include "tools/run/fence.h"

typedef struct session {
    const run_options *o;
    run_command        command;
    run_nodes          nodes;
    run_reach          reach;
    run_fence          fence;
    char               id[40];
    char               records[PATH_MAX]; /* the folder of all attempts' */
    run_node         **chosen;            /* of the attempt under way */
    size_t            *ranks;             /* of each */
    size_t             n, sum;
    size_t             wanted;     /* nodes of the first attempt */
    size_t             sum_before; /* ranks of the attempt before; 0: none */
    unsigned           attempt;
    int                signals;
    run_end            ends[2]; /* of the last attempt, and the one before */
    size_t             n_ends;
} session;

/* ---- lines ------------------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fputs("fsdp-run: ", stdout);
    (void)vprintf(format, arguments);
    (void)putchar('\n');
    (void)fflush(stdout);
    va_end(arguments);
}

static int fail(int status, const char *what, const char *why)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "fsdp-run: %s: %s\n", what, why);
    return status;
}

/* "a,b,c": free it. */
static char *list_nodes(run_node *const *nodes, size_t n)
{
    char *text = malloc(n * (RUN_NAME_BYTES + 1) + 8), *at = text;

    for (size_t i = 0; text != NULL && i < n; i++) {
        at += sprintf(at, "%s%s", i > 0 ? "," : "", nodes[i]->name);
    }
    return text;
}

/* NULL: there are none. */
static char *list_spares(const session *s)
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
    char *text = n > 0 ? list_nodes(spares, n) : NULL;
    free(spares);
    return text;
}

static void say_start(const session *s, int64_t step)
{
    char *nodes = list_nodes(s->chosen, s->n), *spares = list_spares(s), change[64] = "", from[64] = "";

    if (s->sum_before != 0 && s->sum_before != s->sum) {
        (void)snprintf(change, sizeof change, "%zu -> ", s->sum_before);
    }
    if (step >= 0) {
        (void)snprintf(from, sizeof from, "; from step %" PRId64, step);
    }
    say("attempt %u: %s%zu rank%s on %zu node%s: %s%s%s%s", s->attempt, change, s->sum, s->sum == 1 ? "" : "s", s->n,
        s->n == 1 ? "" : "s", nodes != NULL ? nodes : "", spares != NULL ? "; spare: " : "",
        spares != NULL ? spares : "", from);
    free(nodes);
    free(spares);
}

/* ---- opening ------------------------------------------------------------------------------------------------------------------ */

static size_t slurm_per_node(void)
{
    const char *text = getenv("SLURM_NTASKS_PER_NODE");

    return text != NULL ? strtoul(text, NULL, 10) : 0;
}

/* How many ranks a node gets, where all get as many; 0: as many as it has slots. */
static int find_per_node(session *s, size_t *per_node)
{
    char why[RUN_MESSAGE_BYTES];

    *per_node = s->o->ranks_per_node > 0 ? s->o->ranks_per_node : s->command.per_node;
    if (*per_node > 0) {
        return 0;
    }
    if (s->command.ranks > 0) {
        *per_node = s->command.ranks / s->wanted;
        if (s->command.ranks % s->wanted != 0) {
            (void)snprintf(why, sizeof why,
                           "%zu ranks cannot be divided equally over %zu nodes; change -n, or give --ranks-per-node",
                           s->command.ranks, s->wanted);
            return fail(RUN_USAGE, "command", why);
        }
        return 0;
    }
    for (size_t i = 0; i < s->nodes.n; i++) {
        if (s->nodes.list[i].slots == 0) {
            *per_node = slurm_per_node();
            return *per_node > 0
                       ? 0
                       : fail(RUN_USAGE, "command", "how many ranks? give -n to the launcher, or --ranks-per-node");
        }
    }
    return 0;
}

static int set_slots(session *s)
{
    size_t    per_node;
    const int status = find_per_node(s, &per_node);

    for (size_t i = 0; status == 0 && per_node > 0 && i < s->nodes.n; i++) {
        s->nodes.list[i].slots = per_node;
    }
    return status;
}

static int open_nodes(session *s)
{
    char why[RUN_MESSAGE_BYTES];

    if (!run_nodes_find(s->o->hostfile, &s->nodes, why)) {
        return fail(RUN_USAGE, "nodes", why);
    }
    if (s->nodes.n < s->o->min_nodes) {
        (void)snprintf(why, sizeof why, "%s has %zu node%s, and --min-nodes is %zu", s->nodes.source, s->nodes.n,
                       s->nodes.n == 1 ? "" : "s", s->o->min_nodes);
        return fail(RUN_USAGE, "nodes", why);
    }
    if (s->nodes.n <= s->o->spares || s->nodes.n - s->o->spares < s->o->min_nodes) {
        (void)snprintf(why, sizeof why, "%s has %zu node%s: with --spares %zu fewer than --min-nodes %zu would begin",
                       s->nodes.source, s->nodes.n, s->nodes.n == 1 ? "" : "s", s->o->spares, s->o->min_nodes);
        return fail(RUN_USAGE, "nodes", why);
    }
    s->wanted = s->nodes.n - s->o->spares;
    s->chosen = calloc(s->nodes.n, sizeof(run_node *));
    s->ranks  = calloc(s->nodes.n, sizeof *s->ranks);
    return s->chosen != NULL && s->ranks != NULL ? set_slots(s) : fail(RUN_FAILED, "nodes", "no memory");
}

static int open_records(session *s)
{
    const char *wish = s->o->records != NULL ? s->o->records : getenv("FSDP_RECORD_DIR");
    char        path[PATH_MAX];

    if (wish == NULL || wish[0] == '\0') {
        (void)snprintf(path, sizeof path, "%s%s", s->fence.path,
                       s->fence.path[0] != '\0' ? "/records" : "fsdp-run.records");
        wish = path;
    }
    if (mkdir(wish, 0777) != 0 && errno != EEXIST) {
        return fail(RUN_FAILED, wish, strerror(errno));
    }
    return realpath(wish, s->records) != NULL && strlen(s->records) < PATH_MAX - 64
               ? 0
               : fail(RUN_FAILED, wish, strerror(errno));
}

static void choose_id(session *s)
{
    uint64_t bits = 0;

    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        bits = (uint64_t)getpid();
    }
    (void)snprintf(s->id, sizeof s->id, "%016" PRIx64, bits);
}

static void take_signals(session *s)
{
    static const int HANDED_ON[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    sigset_t         set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof HANDED_ON / sizeof *HANDED_ON; i++) {
        (void)sigaddset(&set, HANDED_ON[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_session(session *s, char **command)
{
    char          why[RUN_MESSAGE_BYTES];
    fsdpi_problem problem = {0};
    int           status;

    if (!run_command_read(command, (run_launcher)s->o->launcher, &s->command, why)) {
        return fail(RUN_USAGE, "command", why);
    }
    if ((status = open_nodes(s)) != 0) {
        return status;
    }
    if (!run_fence_open(&s->fence, s->o->checkpoint, &problem)) {
        return fail(RUN_FAILED, "--checkpoint", problem.text);
    }
    s->reach = (run_reach){.rsh      = s->o->rsh != NULL ? s->o->rsh : run_reach_default(s->command.agent),
                           .patience = s->o->patience};
    choose_id(s);
    take_signals(s);
    return open_records(s);
}

static void close_session(session *s)
{
    run_fence_close(&s->fence);
    run_nodes_release(&s->nodes);
    run_command_release(&s->command);
    free(s->chosen);
    free(s->ranks);
}

/* ---- which nodes --------------------------------------------------------------------------------------------------------------- */

/* Asks nodes, ending what is left of attempts there. `statuses`: of each. */
static void ask(const session *s, run_node *const *nodes, size_t n, const char *file, int *statuses)
{
    char **commands = calloc(n + 1, sizeof *commands);
    bool   fine     = commands != NULL;

    for (size_t i = 0; fine && i < n; i++) {
        commands[i] = run_ask_command(&s->reach, nodes[i]->name, s->id, nodes[i]->family, file);
        fine        = commands[i] != NULL;
    }
    for (size_t i = 0; i < n; i++) {
        statuses[i] = RUN_ASK_FINE;
    }
    if (fine) {
        run_ask_all(commands, n, s->reach.patience, statuses);
    }
    for (size_t i = 0; commands != NULL && i < n; i++) {
        free(commands[i]);
    }
    free(commands);
}

/* None but this one answers, and it is the first time: it is the way to them that is missing. */
static bool is_way_missing(const session *s, run_node *const *nodes, const int *statuses, size_t n)
{
    size_t silent = 0, others = 0;

    for (size_t i = 0; i < n; i++) {
        const bool is_here = run_nodes_is_here(nodes[i]->name);
        others += !is_here;
        silent += !is_here && run_ask_is_silent(statuses[i]);
    }
    return s->attempt == 1 && others > 0 && silent == others;
}

static int refuse_folder(const session *s, const char *node)
{
    char why[RUN_NAME_BYTES + 256];

    (void)snprintf(why, sizeof why, "%s does not see this folder; choose one on a file system that all nodes share",
                   node);
    return fail(RUN_FAILED, s->fence.path, why);
}

/* Asks those chosen that have not answered since the last attempt. `*gone`: how many have not answered now. */
static int ask_chosen(session *s, size_t *gone)
{
    run_node *unsure[s->n + 1];
    int       statuses[s->n + 1];
    char      file[FSDPI_FOLDER_PATH_BYTES];
    size_t    n = 0;

    *gone = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->chosen[i]->has_answered) {
            unsure[n++] = s->chosen[i];
        }
    }
    if (n == 0 || s->reach.is_useless) {
        return 0;
    }
    fsdpi_path_join(file, s->fence.path, FSDPI_TOKEN_FILE);
    ask(s, unsure, n, s->fence.path[0] != '\0' ? file : NULL, statuses);
    if (is_way_missing(s, unsure, statuses, n)) {
        s->reach.is_useless = true;
        say("no other node answers through '%s': nodes are taken for good until ranks say otherwise; see --rsh",
            s->reach.rsh[0] != '\0' ? s->reach.rsh : "srun");
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (statuses[i] == RUN_ASK_NO_FILE) {
            return refuse_folder(s, unsure[i]->name);
        }
        unsure[i]->has_answered = !run_ask_is_silent(statuses[i]);
        if (!unsure[i]->has_answered) {
            unsure[i]->state = RUN_NODE_GONE;
            say("no answer from %s (status %d)", unsure[i]->name, statuses[i]);
            ++*gone;
        }
    }
    return 0;
}

/* Those that did not answer may do so again. */
static bool forgive_gone(session *s)
{
    bool any = false;

    for (size_t i = 0; i < s->nodes.n; i++) {
        run_node *node = &s->nodes.list[i];
        if (node->state == RUN_NODE_GONE) {
            node->state = RUN_NODE_SUSPECT;
            node->charges++;
            any = true;
        }
    }
    return any;
}

/* Sets chosen, ranks and their numbers. 0; or a status: *stop says whether there are too few nodes. */
static int choose_nodes(session *s, bool *too_few)
{
    bool has_forgiven = false;

    for (;;) {
        size_t gone;
        s->n     = run_choose(&s->nodes, s->wanted, s->o->min_nodes, s->chosen);
        *too_few = s->n < s->o->min_nodes;
        if (*too_few && (has_forgiven || s->reach.is_useless || !forgive_gone(s))) {
            return 0;
        }
        has_forgiven = has_forgiven || *too_few;
        if (*too_few) {
            continue;
        }
        const int status = ask_chosen(s, &gone);
        if (status != 0) {
            return status;
        }
        if (gone == 0) {
            break;
        }
    }
    s->sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->ranks[i] = s->chosen[i]->slots;
        s->sum += s->ranks[i];
    }
    return 0;
}

/* ---- one attempt ---------------------------------------------------------------------------------------------------------------- */

static run_attempt describe_attempt(session *s, const char *records, const char *token)
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
static void ask_after(session *s, int *statuses)
{
    ask(s, s->chosen, s->n, NULL, statuses);
    for (size_t i = 0; i < s->n; i++) {
        s->chosen[i]->has_answered = !run_ask_is_silent(statuses[i]);
    }
}

static void leave_out(session *s, const int *statuses, const bool *guilty)
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
        char *list = list_nodes(out, n);
        say("to blame: %s", list != NULL ? list : "");
        free(list);
    }
}

static void say_end(const session *s, const run_end *end, const run_attempt_result *result, const char *text)
{
    char step[96] = "";

    if (end->to >= 0) {
        (void)snprintf(step, sizeof step, ", step %" PRId64 " -> %" PRId64, end->from >= 0 ? end->from : 0, end->to);
    }
    say("attempt %u ended after %.1f s%s: %s%s%s", s->attempt, result->seconds, step, end->word,
        text[0] != '\0' ? ": " : "", text);
}

static void judge(session *s, const run_attempt *a, const run_attempt_result *result, run_end *end)
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
        say("records: %s", a->records);
    }
    leave_out(s, statuses, guilty);
}

/* A disk that is full may have room again. */
static bool raise_fence(session *s, fsdpi_token *token, fsdpi_problem *problem)
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
static int make_attempt(session *s, bool *too_few)
{
    char               records[PATH_MAX], token_text[FSDPI_TOKEN_TEXT_BYTES] = "", why[RUN_MESSAGE_BYTES];
    fsdpi_token        token;
    fsdpi_problem      problem = {0};
    run_attempt_result result;

    s->attempt++;
    if (!raise_fence(s, &token, &problem)) {
        return fail(RUN_FAILED, "--checkpoint", problem.text);
    }
    const int status = choose_nodes(s, too_few);
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
        return fail(RUN_FAILED, "launcher", why);
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
static void sweep_gone(session *s)
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
        ask(s, gone, n, NULL, statuses);
    }
}

static int stop_with(const session *s, run_stop stop, const char *why)
{
    const int signal = s->n_ends > 0 ? s->ends[0].signal : 0;

    if (why[0] != '\0') {
        say("%s", why);
    }
    say("stop: %s", run_stop_word(stop));
    return run_stop_status(stop, signal);
}

static int run_all(session *s)
{
    char why[RUN_MESSAGE_BYTES];

    for (;;) {
        bool      too_few;
        const int status = make_attempt(s, &too_few);
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
    session   s      = {.o = options, .fence = {.lock = -1}, .signals = -1};
    const int opened = open_session(&s, command);
    const int status = opened == 0 ? run_all(&s) : opened;

    close_session(&s);
    return status;
}
