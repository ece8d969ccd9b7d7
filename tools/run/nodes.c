#include "tools/run/nodes.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAY(message, ...) ((void)snprintf(message, RUN_MESSAGE_BYTES, __VA_ARGS__), false)

enum { MOST_DIGITS = 12 };

static run_node *find(const run_nodes *nodes, const char *name)
{
    for (size_t i = 0; i < nodes->n; i++) {
        if (strcmp(nodes->list[i].name, name) == 0) {
            return &nodes->list[i];
        }
    }
    return NULL;
}

static bool is_name(const char *name)
{
    bool is = name[0] != '\0' && name[0] != '-' && strlen(name) < RUN_NAME_BYTES;

    for (const char *at = name; is && *at != '\0'; at++) {
        is = isalnum((unsigned char)*at) || strchr("._-", *at) != NULL;
    }
    return is;
}

static bool add(run_nodes *nodes, const char *name, size_t slots, char *message)
{
    if (!is_name(name)) {
        return SAY(message, "'%.100s' is no name of a node: letters, digits, '.', '_' and '-'", name);
    }
    if (nodes->n == RUN_MOST_NODES) {
        return SAY(message, "more than %d nodes", RUN_MOST_NODES);
    }
    if ((nodes->n & (nodes->n - 1)) == 0) { /* room for twice as many */
        run_node *longer = realloc(nodes->list, (nodes->n == 0 ? 1 : 2 * nodes->n) * sizeof *longer);
        if (longer == NULL) {
            return SAY(message, "no memory for %zu nodes", nodes->n + 1);
        }
        nodes->list = longer;
    }
    run_node *node = &nodes->list[nodes->n++];
    *node          = (run_node){.slots = slots};
    memcpy(node->name, name, strlen(name) + 1);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_once(const run_nodes *nodes, char *message)
{
    const char **names = calloc(nodes->n + 1, sizeof *names);
    const char  *twice = NULL;

    for (size_t i = 0; names != NULL && i < nodes->n; i++) {
        names[i] = nodes->list[i].name;
    }
    if (names != NULL) {
        qsort(names, nodes->n, sizeof *names, by_name);
    }
    for (size_t i = 1; names != NULL && i < nodes->n; i++) {
        twice = strcmp(names[i - 1], names[i]) == 0 ? names[i] : twice;
    }
    const bool fine = names != NULL && twice == NULL;
    free(names);
    return fine || SAY(message, "the node '%.100s' is in it twice; name each node once, with its ranks as slots=N",
                       twice != NULL ? twice : "");
}

/* ---- lists with brackets ------------------------------------------------------------------------------------------------- */

typedef struct bracket {
    const char *inside, *behind; /* its first character; what follows the closing one */
} bracket;

static bool expand_one(const char *text, size_t length, run_nodes *nodes, char *message);

/* One number of a bracket in its place, with as many digits as the first one of its range has. */
static bool put_number(const char *text, size_t before, const bracket *b, size_t length, unsigned long number,
                       int width, run_nodes *nodes, char *message)
{
    char         whole[2 * RUN_NAME_BYTES];
    const size_t rest = (size_t)(text + length - b->behind);
    const int    n =
        snprintf(whole, sizeof whole, "%.*s%0*lu%.*s", (int)before, text, width, number, (int)rest, b->behind);

    if (n < 0 || (size_t)n >= sizeof whole) {
        return SAY(message, "'%.100s' makes names that are too long", text);
    }
    return expand_one(whole, (size_t)n, nodes, message);
}

/* "3", "03-17" */
static bool expand_range(const char *text, size_t before, const bracket *b, size_t length, const char *range,
                         size_t bytes, run_nodes *nodes, char *message)
{
    char        *end;
    const size_t digits = strspn(range, "0123456789");
    const size_t behind = range[digits] == '-' ? strspn(range + digits + 1, "0123456789") : 0;
    const size_t whole  = digits + (behind > 0 ? 1 + behind : 0);

    if (digits == 0 || digits > MOST_DIGITS || behind > MOST_DIGITS || whole != bytes) {
        return SAY(message, "'%.*s' in a bracket is no number and no range as 1-4", (int)bytes, range);
    }
    const unsigned long first = strtoul(range, &end, 10), last = behind > 0 ? strtoul(end + 1, NULL, 10) : first;
    if (last < first || last - first >= RUN_MOST_NODES) {
        return SAY(message, "the range '%.*s' in a bracket ends before it begins, or is longer than %d", (int)bytes,
                   range, RUN_MOST_NODES);
    }
    for (unsigned long i = first; i <= last; i++) {
        if (!put_number(text, before, b, length, i, (int)digits, nodes, message)) {
            return false;
        }
    }
    return true;
}

/* One item: its first bracket, and through put_number() those behind it. */
static bool expand_one(const char *text, size_t length, run_nodes *nodes, char *message)
{
    const char *open = memchr(text, '[', length);
    char        name[RUN_NAME_BYTES];

    if (open == NULL) {
        (void)snprintf(name, sizeof name, "%.*s", (int)length, text);
        return length < sizeof name ? add(nodes, name, 0, message) : SAY(message, "'%.100s' is too long a name", text);
    }
    const char *close = memchr(open, ']', (size_t)(text + length - open));
    if (close == NULL || close == open + 1) {
        return SAY(message, "'%.*s' has a bracket that is empty or does not end", (int)length, text);
    }
    const bracket b = {open + 1, close + 1};
    for (const char *at = b.inside; at < close;) {
        const char  *comma = memchr(at, ',', (size_t)(close - at));
        const size_t bytes = (size_t)((comma != NULL ? comma : close) - at);
        if (!expand_range(text, (size_t)(open - text), &b, length, at, bytes, nodes, message)) {
            return false;
        }
        at += bytes + 1;
    }
    return true;
}

/* How far the first item goes: to a comma that is in no bracket. */
static size_t item_length(const char *text)
{
    size_t n = 0;

    for (bool inside = false; text[n] != '\0' && (inside || text[n] != ','); n++) {
        inside = text[n] == '[' || (inside && text[n] != ']');
    }
    return n;
}

bool run_nodes_expand(const char *text, run_nodes *nodes, char *message)
{
    for (const char *at = text;;) {
        const size_t n = item_length(at);
        if (n == 0) {
            return SAY(message, "'%.100s' is no list of nodes as node[1-4],other", text);
        }
        if (!expand_one(at, n, nodes, message)) {
            return false;
        }
        if (at[n] == '\0') {
            return check_once(nodes, message);
        }
        at += n + 1;
    }
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static bool read_count(const char *text, size_t *count)
{
    char *end;

    errno                     = 0;
    const unsigned long value = strtoul(text, &end, 10);
    *count                    = value;
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && value > 0 && value <= 1000000;
}

/* "NAME", "NAME:4", "NAME slots=4 max_slots=8" */
static bool read_line(char *line, const char *path, size_t number, bool repeats, run_nodes *nodes, char *message)
{
    char  *rest, *name, *word, *colon;
    size_t slots = 0, ignored;

    line[strcspn(line, "#\r\n")] = '\0';
    name                         = strtok_r(line, " \t", &rest);
    if (name == NULL) {
        return true;
    }
    colon = strchr(name, ':');
    if (colon != NULL) {
        *colon = '\0';
        if (!read_count(colon + 1, &slots)) {
            return SAY(message, "%.200s, line %zu: '%.50s' is no number of slots", path, number, colon + 1);
        }
    }
    while ((word = strtok_r(NULL, " \t", &rest)) != NULL) {
        if (!(strncmp(word, "slots=", 6) == 0 && read_count(word + 6, &slots)) &&
            !((strncmp(word, "max_slots=", 10) == 0 || strncmp(word, "max-slots=", 10) == 0) &&
              read_count(word + 10, &ignored))) {
            return SAY(message, "%.200s, line %zu: '%.50s' is not understood; write NAME or NAME slots=N", path, number,
                       word);
        }
    }
    run_node *known = repeats ? find(nodes, name) : NULL;
    if (known != NULL) {
        known->slots += slots > 0 ? slots : 1;
        return true;
    }
    return add(nodes, name, slots > 0 || !repeats ? slots : 1, message);
}

bool run_nodes_read(const char *path, bool repeats, run_nodes *nodes, char *message)
{
    FILE  *file = fopen(path, "re");
    char  *line = NULL;
    size_t room = 0, number = 0;
    bool   fine = true;

    if (file == NULL) {
        return SAY(message, "%.200s: %s", path, strerror(errno));
    }
    while (fine && getline(&line, &room, file) > 0) {
        fine = read_line(line, path, ++number, repeats, nodes, message);
    }
    fine = fine && (!ferror(file) || SAY(message, "%.200s: %s", path, strerror(errno)));
    free(line);
    (void)fclose(file);
    if (fine && nodes->n == 0) {
        return SAY(message, "%.200s names no node", path);
    }
    return fine && check_once(nodes, message);
}

/* ---- where they come from --------------------------------------------------------------------------------------------------- */

static bool find_in(const char *hostfile, run_nodes *nodes, char *message)
{
    const char *slurm = getenv("SLURM_JOB_NODELIST"), *pbs = getenv("PBS_NODEFILE"), *lsf = getenv("LSB_DJOB_HOSTFILE");
    char        here[RUN_NAME_BYTES] = "";

    if (hostfile != NULL) {
        nodes->source = "--hostfile";
        return run_nodes_read(hostfile, false, nodes, message);
    }
    if (slurm != NULL && slurm[0] != '\0') {
        nodes->source = "SLURM_JOB_NODELIST";
        return run_nodes_expand(slurm, nodes, message);
    }
    if (pbs != NULL && pbs[0] != '\0') {
        nodes->source = "PBS_NODEFILE";
        return run_nodes_read(pbs, true, nodes, message);
    }
    if (lsf != NULL && lsf[0] != '\0') {
        nodes->source = "LSB_DJOB_HOSTFILE";
        return run_nodes_read(lsf, true, nodes, message);
    }
    nodes->source = "this machine";
    (void)gethostname(here, sizeof here - 1);
    return add(nodes, here, 0, message);
}

bool run_nodes_find(const char *hostfile, run_nodes *nodes, char *message)
{
    char why[RUN_MESSAGE_BYTES];

    *nodes = (run_nodes){0};
    if (find_in(hostfile, nodes, why)) {
        return true;
    }
    return SAY(message, "%s: %.400s", nodes->source, why);
}

void run_nodes_release(run_nodes *nodes)
{
    free(nodes->list);
    *nodes = (run_nodes){0};
}

bool run_nodes_same(const char *a, const char *b)
{
    const size_t n = strcspn(a, "."), m = strcspn(b, ".");

    return strcmp(a, b) == 0 || ((a[n] == '\0' || b[m] == '\0') && n == m && strncmp(a, b, n) == 0);
}

bool run_nodes_is_here(const char *name)
{
    char here[RUN_NAME_BYTES] = "";

    (void)gethostname(here, sizeof here - 1);
    return run_nodes_same(name, here) || strcmp(name, "localhost") == 0;
}
