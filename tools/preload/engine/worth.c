#include "tools/preload/engine/worth.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/preload/engine/text.h"

#define KIBIBYTE ((uint64_t)1 << 10)
#define NEVER                                                                                                          \
    {                                                                                                                  \
        UINT64_MAX, 0                                                                                                  \
    }
#define FROM(b)                                                                                                        \
    {                                                                                                                  \
        (b), UINT64_MAX                                                                                                \
    }

/*
 * On one node, all that MPI does not send in one piece without asking: there it too waits for the others, and reads their memory
 * page by page. Over a fast network MPI takes as long or less for what is only moved, or reduced to one rank. Over a slow one it
 * sends more bytes than it has to, or one node waits for another. (fsdp-bench --drop-in, FSDP_MPI_TABLE=all, on 2 ranks; and
 * fsdp-bench --thread-level single on 2 and 4 hosts of 1 and 2 ranks at 1 and 10 Gbit/s.)
 */
/* clang-format off */
static const fsdpi_worth BUILT_IN = {.ranges = {
    /*                               one node            fast network            slow network */
    [FSDPI_ALLGATHER]            = {FROM(8 * KIBIBYTE), NEVER,                  FROM(256 * KIBIBYTE)},
    [FSDPI_ALLGATHERV]           = {FROM(8 * KIBIBYTE), NEVER,                  FROM(256 * KIBIBYTE)},
    [FSDPI_ALLREDUCE]            = {FROM(8 * KIBIBYTE), FROM(16384 * KIBIBYTE), FROM(64 * KIBIBYTE)},
    [FSDPI_REDUCE_SCATTER]       = {FROM(8 * KIBIBYTE), FROM(256 * KIBIBYTE),   FROM(256 * KIBIBYTE)},
    [FSDPI_REDUCE_SCATTER_BLOCK] = {FROM(8 * KIBIBYTE), FROM(256 * KIBIBYTE),   FROM(256 * KIBIBYTE)},
    [FSDPI_BCAST]                = {FROM(8 * KIBIBYTE), NEVER,                  FROM(256 * KIBIBYTE)},
    [FSDPI_REDUCE]               = {FROM(8 * KIBIBYTE), NEVER,                  FROM(4096 * KIBIBYTE)},
    [FSDPI_ALLTOALL]             = {FROM(8 * KIBIBYTE), NEVER,                  NEVER},
    [FSDPI_ALLTOALLV]            = {NEVER,              NEVER,                  NEVER},
    [FSDPI_BARRIER]              = {NEVER,              NEVER,                  NEVER},
}};
/* clang-format on */

/* The words of a file, and the spans that each stands for: a bit each. */
static const struct {
    const char *word;
    unsigned    spans;
} NODES[] = {
    {"one", 1U << FSDPI_ONE_NODE},
    {"several", 1U << FSDPI_FAST_NETWORK | 1U << FSDPI_SLOW_NETWORK},
    {"fast", 1U << FSDPI_FAST_NETWORK},
    {"slow", 1U << FSDPI_SLOW_NETWORK},
};
enum { N_NODES = sizeof NODES / sizeof NODES[0] };

const char *fsdpi_collective_name(fsdpi_collective which)
{
    static const char *const NAMES[] = {
#define NAME_OF(name, text, covered) text,
        FSDPI_PRELOAD_COLLECTIVES(NAME_OF)
#undef NAME_OF
    };

    return NAMES[which];
}

bool fsdpi_worth_ever(const fsdpi_worth *worth, fsdpi_collective which)
{
    bool ever = false;

    for (int span = 0; span < FSDPI_SPANS; span++) {
        ever = ever || worth->ranges[which][span].from <= worth->ranges[which][span].to;
    }
    return ever;
}

void fsdpi_worth_fill(fsdpi_worth *worth)
{
    *worth = BUILT_IN;
}

static void take_all(fsdpi_worth *worth)
{
    for (int i = 0; i < FSDPI_N_COVERED; i++) {
        for (int span = 0; span < FSDPI_SPANS; span++) {
            worth->ranges[i][span] = (fsdpi_worth_range)FROM(0);
        }
    }
}

static bool find_collective(const char *name, int *which)
{
    for (int i = 0; i < FSDPI_N_COVERED; i++) {
        if (strcmp(name, fsdpi_collective_name((fsdpi_collective)i)) == 0) {
            *which = i;
            return true;
        }
    }
    return false;
}

/* 0: the word is none. */
static unsigned find_spans(const char *word)
{
    for (int i = 0; i < N_NODES; i++) {
        if (strcmp(NODES[i].word, word) == 0) {
            return NODES[i].spans;
        }
    }
    return 0;
}

/* NULL, or what is wrong with a line that is neither empty nor a comment. */
static const char *read_line(fsdpi_worth *worth, const char *line)
{
    char name[32], nodes[16], from[32], to[32] = "";
    int  which;

    const int fields = sscanf(line, "%31s %15s %31s %31s", name, nodes, from, to);
    if (fields < 3) {
        return "has fewer than three words; write COLLECTIVE one|several|fast|slow FROM TO";
    }
    if (!find_collective(name, &which)) {
        return "begins with no collective; use names such as allreduce";
    }
    const unsigned spans = find_spans(nodes);
    if (spans == 0) {
        return "has a second word that is none of one, several, fast, slow";
    }
    fsdpi_worth_range range = NEVER;
    if (strcmp(from, "never") != 0) {
        if (fields < 4 || !fsdpi_preload_bytes(from, &range.from)) {
            return "has no range of bytes; write FROM TO, or never";
        }
        range.to = UINT64_MAX;
        if (strcmp(to, "max") != 0 && !fsdpi_preload_bytes(to, &range.to)) {
            return "ends with neither bytes nor max";
        }
    }
    for (int span = 0; span < FSDPI_SPANS; span++) {
        worth->ranges[which][span] = (spans >> span & 1) != 0 ? range : worth->ranges[which][span];
    }
    return NULL;
}

void fsdpi_worth_read(fsdpi_worth *worth, const char *path)
{
    if (strcmp(path, "all") == 0) {
        take_all(worth);
        return;
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fsdpi_preload_say("FSDP_MPI_TABLE: %s cannot be opened: %s; the built-in table is used", path, strerror(errno));
        return;
    }
    fsdpi_worth changed = *worth;
    const char *wrong   = NULL;
    char        line[256];
    int         number = 0;
    while (wrong == NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "#\n")] = '\0';
        number++;
        if (line[strspn(line, " \t\r")] != '\0') {
            wrong = read_line(&changed, line);
        }
    }
    (void)fclose(file);
    if (wrong != NULL) {
        fsdpi_preload_say("FSDP_MPI_TABLE: line %d of %s %s; the built-in table is used", number, path, wrong);
        return;
    }
    *worth = changed;
}
