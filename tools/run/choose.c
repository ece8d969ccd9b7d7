#include "tools/run/choose.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/run/lines.h"

void run_state_ask(const run_state *s, run_node *const *nodes, size_t n, const char *file, int *statuses)
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
static bool is_way_missing(const run_state *s, run_node *const *nodes, const int *statuses, size_t n)
{
    size_t silent = 0, others = 0;

    for (size_t i = 0; i < n; i++) {
        const bool is_here = run_nodes_is_here(nodes[i]->name);
        others += !is_here;
        silent += !is_here && run_ask_is_silent(statuses[i]);
    }
    return s->attempt == 1 && others > 0 && silent == others;
}

static int refuse_folder(const run_state *s, const char *node)
{
    char why[RUN_NAME_BYTES + 256];

    (void)snprintf(why, sizeof why, "%s does not see this folder; choose one on a file system that all nodes share",
                   node);
    return run_fail(RUN_FAILED, s->fence.path, why);
}

/* Asks those chosen that have not answered since the last attempt. `*gone`: how many have not answered now. */
static int ask_chosen(run_state *s, size_t *gone)
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
    run_state_ask(s, unsure, n, s->fence.path[0] != '\0' ? file : NULL, statuses);
    if (is_way_missing(s, unsure, statuses, n)) {
        s->reach.is_useless = true;
        run_say("no other node answers through '%s': nodes are taken for good until ranks say otherwise; see --rsh",
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
            run_say("no answer from %s (status %d)", unsure[i]->name, statuses[i]);
            ++*gone;
        }
    }
    return 0;
}

/* Those that did not answer may do so again. */
static bool forgive_gone(run_state *s)
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

int run_state_choose(run_state *s, bool *too_few)
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
