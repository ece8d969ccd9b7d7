#include "tools/run/state.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/run/lines.h"

static size_t slurm_per_node(void)
{
    const char *text = getenv("SLURM_NTASKS_PER_NODE");

    return text != NULL ? strtoul(text, NULL, 10) : 0;
}

/* How many ranks a node gets, where all get as many; 0: as many as it has slots. */
static int find_per_node(run_state *s, size_t *per_node)
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
            return run_fail(RUN_USAGE, "command", why);
        }
        return 0;
    }
    for (size_t i = 0; i < s->nodes.n; i++) {
        if (s->nodes.list[i].slots == 0) {
            *per_node = slurm_per_node();
            return *per_node > 0
                       ? 0
                       : run_fail(RUN_USAGE, "command", "how many ranks? give -n to the launcher, or --ranks-per-node");
        }
    }
    return 0;
}

static int set_slots(run_state *s)
{
    size_t    per_node;
    const int status = find_per_node(s, &per_node);

    for (size_t i = 0; status == 0 && per_node > 0 && i < s->nodes.n; i++) {
        s->nodes.list[i].slots = per_node;
    }
    return status;
}

static int open_nodes(run_state *s)
{
    char why[RUN_MESSAGE_BYTES];

    if (!run_nodes_find(s->o->hostfile, &s->nodes, why)) {
        return run_fail(RUN_USAGE, "nodes", why);
    }
    if (s->nodes.n < s->o->min_nodes) {
        (void)snprintf(why, sizeof why, "%s has %zu node%s, and --min-nodes is %zu", s->nodes.source, s->nodes.n,
                       s->nodes.n == 1 ? "" : "s", s->o->min_nodes);
        return run_fail(RUN_USAGE, "nodes", why);
    }
    if (s->nodes.n <= s->o->spares || s->nodes.n - s->o->spares < s->o->min_nodes) {
        (void)snprintf(why, sizeof why, "%s has %zu node%s: with --spares %zu fewer than --min-nodes %zu would begin",
                       s->nodes.source, s->nodes.n, s->nodes.n == 1 ? "" : "s", s->o->spares, s->o->min_nodes);
        return run_fail(RUN_USAGE, "nodes", why);
    }
    s->wanted = s->nodes.n - s->o->spares;
    s->chosen = calloc(s->nodes.n, sizeof(run_node *));
    s->ranks  = calloc(s->nodes.n, sizeof *s->ranks);
    return s->chosen != NULL && s->ranks != NULL ? set_slots(s) : run_fail(RUN_FAILED, "nodes", "no memory");
}

static int open_records(run_state *s)
{
    const char *wish = s->o->records != NULL ? s->o->records : getenv("FSDP_RECORD_DIR");
    char        path[PATH_MAX];

    if (wish == NULL || wish[0] == '\0') {
        (void)snprintf(path, sizeof path, "%s%s", s->fence.path,
                       s->fence.path[0] != '\0' ? "/records" : "fsdp-run.records");
        wish = path;
    }
    if (mkdir(wish, 0777) != 0 && errno != EEXIST) {
        return run_fail(RUN_FAILED, wish, strerror(errno));
    }
    return realpath(wish, s->records) != NULL && strlen(s->records) < PATH_MAX - 64
               ? 0
               : run_fail(RUN_FAILED, wish, strerror(errno));
}

static void choose_id(run_state *s)
{
    uint64_t bits = 0;

    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        bits = (uint64_t)getpid();
    }
    (void)snprintf(s->id, sizeof s->id, "%016" PRIx64, bits);
}

static void take_signals(run_state *s)
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

int run_state_open(run_state *s, char **command)
{
    char          why[RUN_MESSAGE_BYTES];
    fsdpi_problem problem = {0};
    int           status;

    if (!run_command_read(command, (run_launcher)s->o->launcher, &s->command, why)) {
        return run_fail(RUN_USAGE, "command", why);
    }
    if ((status = open_nodes(s)) != 0) {
        return status;
    }
    if (!run_fence_open(&s->fence, s->o->checkpoint, &problem)) {
        return run_fail(RUN_FAILED, "--checkpoint", problem.text);
    }
    s->reach = (run_reach){.rsh      = s->o->rsh != NULL ? s->o->rsh : run_reach_default(s->command.agent),
                           .patience = s->o->patience};
    choose_id(s);
    take_signals(s);
    return open_records(s);
}

void run_state_close(run_state *s)
{
    run_fence_close(&s->fence);
    run_nodes_release(&s->nodes);
    run_command_release(&s->command);
    free(s->chosen);
    free(s->ranks);
}
