#include "lib/context/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "lib/context/rows_by_cost.h"

enum {
    SYMMETRIC  = FSDPI_SYMMETRIC,
    USER       = FSDPI_USER,
    ONE        = FSDPI_ONE,
    MANY       = FSDPI_MANY,
    ANY        = FSDPI_ANY,
    PAIR       = FSDPI_PAIR,
    LINE_BYTES = 256
};

static const char *const COLLECTIVES[FSDPI_N_COLLECTIVES] = {
    "", "allgather", "reduce_scatter", "allreduce", "broadcast", "reduce", "alltoall", "barrier", "alltoallv"};
/* By value; NULL: none has that. */
static const char *const MEMORIES[FSDPI_ANY + 1] = {
    [FSDPI_SYMMETRIC] = "symmetric", [FSDPI_USER] = "user", [FSDPI_CACHED] = "cached", [FSDPI_ANY] = "any"};
static const char *const NODES[FSDPI_ANY + 1] = {
    [FSDPI_ONE] = "one", [FSDPI_MANY] = "many", [FSDPI_PAIR] = "pair", [FSDPI_ANY] = "any"};

#define FOR_ALL UINT64_MAX

/*
 * The built-in table. On one node: inline saves the second synchronisation at the price of copying the input once, so it
 * serves what is short; behind it direct moves the fewest bytes. In other memory inline serves for longer, and then blocks, which
 * are written once more but stay in the caches: process_vm_readv took 1.3 to 4 times as long for each collective and size, on
 * 2, 4 and 8 ranks, since the kernel works for each page. It won only where two ranks exchanged more than 256 KiB again and again
 * that the caches of cores far from each other held, by 1.7. In blocks, each line of two ranks' allreduce passes between the caches
 * once; inline, it is fetched to be read and again to be written: 16 KiB took 1.1 times as long between near cores, and 2.1 times
 * between far ones. (fsdp-bench --memory user, FSDP_ALGO_*, two cores of a virtual machine.) Rows for several nodes stand for
 * nodes that nothing is known of; a context of several nodes has rows of its own there: lib/context/rows_by_cost.h.
 */
static const fsdpi_row BUILT_IN[] = {
    {512, FSDPI_ALLGATHER, SYMMETRIC, ONE, FSDP_ALGO_INLINE},
    {262144, FSDPI_ALLGATHER, USER, ONE, FSDP_ALGO_INLINE},
    {8192, FSDPI_ALLGATHER, ANY, MANY, FSDP_ALGO_INLINE},
    {524288, FSDPI_ALLGATHER, ANY, MANY, FSDP_ALGO_RAILS},
    {512, FSDPI_REDUCE_SCATTER, SYMMETRIC, ONE, FSDP_ALGO_INLINE},
    {262144, FSDPI_REDUCE_SCATTER, USER, ONE, FSDP_ALGO_INLINE},
    {8192, FSDPI_REDUCE_SCATTER, ANY, MANY, FSDP_ALGO_INLINE},
    {512, FSDPI_ALLREDUCE, SYMMETRIC, ONE, FSDP_ALGO_INLINE},
    {4096, FSDPI_ALLREDUCE, USER, PAIR, FSDP_ALGO_INLINE},
    {FOR_ALL, FSDPI_ALLREDUCE, USER, PAIR, FSDP_ALGO_STAGED},
    {65536, FSDPI_ALLREDUCE, USER, ONE, FSDP_ALGO_INLINE},
    {8192, FSDPI_ALLREDUCE, ANY, MANY, FSDP_ALGO_INLINE},
    {262144, FSDPI_BROADCAST, USER, ONE, FSDP_ALGO_INLINE},
    {8192, FSDPI_BROADCAST, SYMMETRIC, ONE, FSDP_ALGO_INLINE},
    {8192, FSDPI_BROADCAST, ANY, MANY, FSDP_ALGO_INLINE},
    {262144, FSDPI_REDUCE, USER, ONE, FSDP_ALGO_INLINE},
    {8192, FSDPI_REDUCE, SYMMETRIC, ONE, FSDP_ALGO_INLINE},
    {8192, FSDPI_REDUCE, ANY, MANY, FSDP_ALGO_INLINE},
    {65536, FSDPI_ALLTOALL, USER, ONE, FSDP_ALGO_INLINE},
    {16384, FSDPI_ALLTOALL, SYMMETRIC, ONE, FSDP_ALGO_INLINE},
#define FOR_LONG_ONES(collective, across_nodes)                                                                        \
    {FOR_ALL, collective, SYMMETRIC, ONE, FSDP_ALGO_DIRECT}, {FOR_ALL, collective, ANY, ONE, FSDP_ALGO_STAGED},        \
    {                                                                                                                  \
        FOR_ALL, collective, ANY, MANY, across_nodes                                                                   \
    }
    FOR_LONG_ONES(FSDPI_ALLGATHER, FSDP_ALGO_RING),
    FOR_LONG_ONES(FSDPI_REDUCE_SCATTER, FSDP_ALGO_RAILS),
    FOR_LONG_ONES(FSDPI_ALLREDUCE, FSDP_ALGO_RAILS),
    FOR_LONG_ONES(FSDPI_BROADCAST, FSDP_ALGO_RING),
    FOR_LONG_ONES(FSDPI_REDUCE, FSDP_ALGO_RAILS),
    FOR_LONG_ONES(FSDPI_ALLTOALL, FSDP_ALGO_RAILS),
#undef FOR_LONG_ONES
};
enum { N_BUILT_IN = sizeof BUILT_IN / sizeof BUILT_IN[0] };

/* ---- costs ------------------------------------------------------------------------------------------------------- */

/* Of one rank; HEADER explains the symbols. */
static const char *cost_inline(const fsdpi_row *row)
{
    return row->nodes == ONE || row->nodes == PAIR ? "alpha_s + 2 S gamma, and L S gamma where reduced"
           : row->collective == FSDPI_ALLGATHER    ? "2 alpha_s + log2(M) alpha_m + (M-1)/M S beta"
           : row->collective == FSDPI_REDUCE_SCATTER
               ? "2 alpha_s + log2(M) alpha_m + (M-1) S beta; in pairs alpha_m + (M-1)/M S beta"
           : row->collective == FSDPI_ALLTOALL
               ? "in pairs: 2 alpha_s + alpha_m + (M-1)/M L S beta"
               : "2 alpha_s + log2(M) alpha_m + (M-1) S beta; in pairs alpha_m + (M-1) S beta";
}

static const char *cost_direct(const fsdpi_row *row)
{
    switch (row->collective) {
    case FSDPI_ALLGATHER:
        return "2 alpha_s + 2 S gamma; one result per node: 2 alpha_s";
    case FSDPI_REDUCE_SCATTER:
        return "2 alpha_s + (S + S/L) gamma";
    case FSDPI_ALLREDUCE:
        return "2 alpha_s + 2 S gamma";
    default:
        return "2 alpha_s + 2 S gamma; reduce at the root: (L+1) S gamma";
    }
}

static const char *cost_cma(const fsdpi_row *row)
{
    switch (row->collective) {
    case FSDPI_REDUCE_SCATTER:
        return "2 alpha_s + (S + S/L) gamma, in pieces that stay in the cache, and the kernel's work for each page";
    case FSDPI_ALLREDUCE:
        return "3 alpha_s + (3 S - S/L) gamma";
    default:
        return "2 alpha_s + 2 S gamma, and the kernel's work for each page";
    }
}

/* What these collectives do instead across nodes is named with its cost. */
static const char *cost_rails(const fsdpi_row *row)
{
    switch ((fsdpi_collective_id)row->collective) {
    case FSDPI_ALLREDUCE:
        return "(2 (M-1) c + log2(M)) alpha_m + 2 (M-1)/M S/L beta";
    case FSDPI_ALLTOALL:
        return "pairwise: ((N-1) c + log2(M)) alpha_m + (N-1)/N S beta";
    case FSDPI_BROADCAST:
        return "mpi: as MPI_Ibcast";
    case FSDPI_REDUCE:
        return "((M-1) c + log2(M)) alpha_m + 2 (M-1)/M S beta at the root";
    default:
        return "((M-1) c + log2(M)) alpha_m + (M-1)/M S/L beta";
    }
}

static const char *cost_of(const fsdpi_row *row)
{
    switch ((fsdp_algorithm)row->algorithm) {
    case FSDP_ALGO_INLINE:
        return cost_inline(row);
    case FSDP_ALGO_DIRECT:
        return cost_direct(row);
    case FSDP_ALGO_CMA:
        return cost_cma(row);
    case FSDP_ALGO_RAILS:
        return cost_rails(row);
    case FSDP_ALGO_RING:
        return row->collective == FSDPI_BROADCAST
                   ? "(M-1 + log2(M)) alpha_m + S beta, and (M-2) chunks beta until the last node has all"
                   : "((M-1) c + log2(M)) alpha_m + (M-1)/M S/L beta, each part through every node";
    case FSDP_ALGO_HALVES:
        return "4 alpha_s + (1 + log2(M)) alpha_m + 2 (M-1)/M S beta";
    case FSDP_ALGO_STAGED:
        return row->collective == FSDPI_ALLREDUCE && (row->nodes == ONE || row->nodes == PAIR)
                   ? "2 alpha_s per block + 2 S gamma"
                   : "as inline, for each block";
    case FSDP_ALGO_AUTO:
        break;
    }
    return "";
}

/* ---- reading a file ---------------------------------------------------------------------------------------------- */

static bool find_name(const char *const *names, size_t n, const char *text, uint8_t *value)
{
    for (size_t i = 1; i < n; i++) {
        if (names[i] != NULL && strcmp(names[i], text) == 0) {
            *value = (uint8_t)i;
            return true;
        }
    }
    return false;
}

static bool parse_up_to(const char *text, uint64_t *up_to)
{
    char *end;

    if (strcmp(text, "any") == 0) {
        *up_to = FOR_ALL;
        return true;
    }
    errno  = 0;
    *up_to = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool parse_algorithm(const char *text, uint8_t *algorithm)
{
    for (int a = FSDP_ALGO_INLINE; a < FSDP_N_ALGORITHMS; a++) {
        if (strcmp(fsdp_algorithm_text((fsdp_algorithm)a), text) == 0) {
            *algorithm = (uint8_t)a;
            return true;
        }
    }
    return false;
}

/* Another version of the library may have had the algorithm: the row is left out. */
static void warn_of_algorithm(const fsdpi_core *core, int number, const char *name)
{
    if (core->rank == 0) {
        fsdpi_log(
            core->ctx, FSDP_LOG_WARN,
            "tuning file %s, line %d: there is no algorithm '%s' in this version; the line is passed over, so write "
            "the file anew with fsdp-bench --tune",
            core->config.tuning_file, number, name);
    }
}

/* Returns what is wrong with the line of a number, or NULL. Rows that are none leave row->collective 0. */
static const char *parse_row(const fsdpi_core *core, int number, char *line, fsdpi_row *row)
{
    char  words[5][24];
    char  more;
    char *comment = strchr(line, '#');

    *row = (fsdpi_row){0};
    if (comment != NULL) {
        *comment = '\0';
    }
    if (line[strspn(line, " \t\r\n")] == '\0') {
        return NULL;
    }
    if (sscanf(line, " %23s %23s %23s %23s %23s %c", words[0], words[1], words[2], words[3], words[4], &more) != 5) {
        return "has not five words: collective, memory, nodes, up to how many bytes, algorithm";
    }
    if (!find_name(COLLECTIVES, FSDPI_N_COLLECTIVES, words[0], &row->collective)) {
        return "begins with no collective";
    }
    if (!find_name(MEMORIES, FSDPI_ANY + 1, words[1], &row->memory)) {
        return "has a memory that is none of symmetric, user, cached, any";
    }
    if (!find_name(NODES, FSDPI_ANY + 1, words[2], &row->nodes)) {
        return "has nodes that are none of one, pair, many, any";
    }
    if (!parse_up_to(words[3], &row->up_to)) {
        return "has a number of bytes that is neither a number nor 'any'";
    }
    if (!parse_algorithm(words[4], &row->algorithm)) {
        warn_of_algorithm(core, number, words[4]);
        row->collective = 0;
    }
    return NULL;
}

static fsdp_status bad_line(const fsdpi_core *core, int number, const char *what)
{
    return fsdpi_fail_together(
        core->ctx, FSDP_ERR_ARG,
        "tuning file %s, line %d %s; write it anew with fsdp-bench --tune, or unset FSDP_TUNING_FILE",
        core->config.tuning_file, number, what);
}

static fsdp_status read_rows(fsdpi_table *table, FILE *file)
{
    char line[LINE_BYTES];
    int  number = 1;

    if (fgets(line, sizeof line, file) == NULL || strncmp(line, "# fsdp-tuning 1", 15) != 0 ||
        line[15 + strspn(line + 15, " \t\r\n")] != '\0') {
        return bad_line(table->core, 1, "is not '# fsdp-tuning 1'");
    }
    while (fgets(line, sizeof line, file) != NULL) {
        fsdpi_row row;

        number++;
        const char *wrong =
            strchr(line, '\n') == NULL && !feof(file) ? "is too long" : parse_row(table->core, number, line, &row);
        if (wrong != NULL) {
            return bad_line(table->core, number, wrong);
        }
        if (row.collective != 0 && table->n == FSDPI_MOST_ROWS) {
            return bad_line(table->core, number, "is one row too many");
        }
        if (row.collective != 0) {
            table->rows[table->n++] = row;
        }
    }
    return ferror(file) ? bad_line(table->core, number, "cannot be read") : FSDP_OK;
}

static fsdp_status read_file(fsdpi_table *table)
{
    FILE *file = fopen(table->core->config.tuning_file, "r");

    if (file == NULL) {
        return fsdpi_fail_together(table->core->ctx, FSDP_ERR_ARG,
                                   "the tuning file %s cannot be opened: %s; unset FSDP_TUNING_FILE, or write "
                                   "one with fsdp-bench --tune",
                                   table->core->config.tuning_file, strerror(errno));
    }
    const fsdp_status status = read_rows(table, file);
    (void)fclose(file);
    return status;
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

static int override_of(const fsdp_config *config, fsdpi_collective_id collective)
{
    switch (collective) {
    case FSDPI_ALLGATHER:
        return config->algo_allgather;
    case FSDPI_REDUCE_SCATTER:
        return config->algo_reduce_scatter;
    case FSDPI_ALLREDUCE:
        return config->algo_allreduce;
    case FSDPI_BROADCAST:
        return config->algo_broadcast;
    case FSDPI_REDUCE:
        return config->algo_reduce;
    case FSDPI_ALLTOALL:
        return config->algo_alltoall;
    default:
        return FSDP_ALGO_AUTO;
    }
}

static const fsdpi_row *first_match(const fsdpi_table *table, fsdpi_collective_id collective, fsdpi_origin origin,
                                    size_t bytes, unsigned able)
{
    const int nodes = table->nodes->count > 1 ? MANY : table->core->size == 2 ? ONE | PAIR : ONE;

    for (size_t i = 0; i < table->n; i++) {
        const fsdpi_row *row = &table->rows[i];

        if (row->collective == collective && (row->memory & origin) != 0 && (row->nodes & nodes) != 0 &&
            bytes <= row->up_to && (able >> row->algorithm & 1) != 0) {
            return row;
        }
    }
    return NULL;
}

fsdp_algorithm fsdpi_table_find(const fsdpi_table *table, fsdpi_collective_id collective, fsdpi_origin origin,
                                size_t bytes, unsigned able)
{
    const int        override = override_of(&table->core->config, collective);
    const fsdpi_row *row;

    if (override != FSDP_ALGO_AUTO && (override == FSDP_ALGO_STAGED || (able >> override & 1) != 0)) {
        return (fsdp_algorithm) override;
    }
    row = first_match(table, collective, origin, bytes, able | 1U << FSDP_ALGO_STAGED);
    return row != NULL ? (fsdp_algorithm)row->algorithm : FSDP_ALGO_STAGED;
}

static const fsdpi_origin ORIGINS[] = {FSDPI_FROM_SYMMETRIC, FSDPI_FROM_USER, FSDPI_FROM_CACHES};
enum { N_ORIGINS = sizeof ORIGINS / sizeof ORIGINS[0] };

bool fsdpi_table_in_halves(const fsdpi_table *table, size_t bytes)
{
    const int override   = override_of(&table->core->config, FSDPI_ALLREDUCE);
    bool      everywhere = true;

    if (override != FSDP_ALGO_AUTO) {
        return override == FSDP_ALGO_HALVES;
    }
    for (int s = 0; s < N_ORIGINS; s++) {
        const fsdpi_row *row = first_match(table, FSDPI_ALLREDUCE, ORIGINS[s], bytes, UINT32_MAX);

        everywhere = everywhere && row != NULL && row->algorithm == FSDP_ALGO_HALVES;
    }
    return everywhere;
}

/* BYTES up to which calls are inline wherever their inputs come from. */
static uint64_t always_inline_up_to(const fsdpi_table *table, fsdpi_collective_id collective)
{
    uint64_t up_to = UINT64_MAX;

    for (int s = 0; s < N_ORIGINS; s++) {
        const fsdpi_row *row = first_match(table, collective, ORIGINS[s], 0, UINT32_MAX);

        if (row == NULL || row->algorithm != FSDP_ALGO_INLINE) {
            return 0;
        }
        up_to = row->up_to < up_to ? row->up_to : up_to;
    }
    return up_to;
}

static void find_limits(fsdpi_table *table)
{
    for (int c = FSDPI_ALLGATHER; c < FSDPI_N_COLLECTIVES; c++) {
        const fsdpi_collective_id id = (fsdpi_collective_id)c;

        table->inline_up_to[c] =
            override_of(&table->core->config, id) == FSDP_ALGO_AUTO ? always_inline_up_to(table, id) : 0;
    }
}

/* Those for several nodes give way. */
static void choose_by_cost(fsdpi_table *table)
{
    size_t kept = 0;

    for (size_t i = 0; i < table->n; i++) {
        if (table->rows[i].nodes != MANY) {
            table->rows[kept++] = table->rows[i];
        }
    }
    table->n = kept + fsdpi_rows_by_cost(&table->costs, &table->world, table->rows + kept, FSDPI_MOST_ROWS - kept);
    table->by_cost = true;
}

/*
 * On one node each rank of an inline allreduce reads the inputs of all ranks, which should fit into a cache. With 64 KiB each, 8
 * ranks on two cores took 0.94 (near) to 2.0 times (far) as long as in blocks, which need twice as many synchronisations.
 */
static void limit_by_ranks(fsdpi_table *table)
{
    enum { READ_BYTES = 256 << 10 };
    const uint64_t most = READ_BYTES / (uint64_t)table->world.each;

    for (size_t i = 0; i < table->n; i++) {
        fsdpi_row *row = &table->rows[i];

        if (row->collective == FSDPI_ALLREDUCE && row->memory == USER && row->nodes == ONE &&
            row->algorithm == FSDP_ALGO_INLINE && row->up_to > most) {
            row->up_to = most;
        }
    }
}

static void take_built_in(fsdpi_table *table)
{
    memcpy(table->rows, BUILT_IN, sizeof BUILT_IN);
    table->n = N_BUILT_IN;
}

void fsdpi_table_settle(fsdpi_table *table, const fsdpi_nodes *nodes, const fsdpi_link *link)
{
    table->nodes = nodes;
    table->world = (fsdpi_world){
        .nodes = nodes->count, .each = nodes->largest, .staging_bytes = (size_t)table->core->config.staging_bytes};
    table->costs = fsdpi_costs_of(link, &table->world);
    if (table->core->config.tuning_file[0] == '\0') {
        limit_by_ranks(table);
        if (nodes->count > 1) {
            choose_by_cost(table);
        }
    }
    find_limits(table);
}

fsdp_status fsdpi_table_open(fsdpi_table *table, const fsdpi_core *core)
{
    fsdp_status status = FSDP_OK;

    table->core    = core;
    table->n       = 0;
    table->by_cost = false;
    if (table->core->config.tuning_file[0] != '\0') {
        status = read_file(table);
    } else {
        take_built_in(table);
    }
    return status;
}

uint64_t fsdpi_table_fingerprint(const fsdpi_table *table)
{
    uint64_t hash = FSDPI_HASH_START;

    for (size_t i = 0; i < table->n; i++) {
        const fsdpi_row *row = &table->rows[i];

        hash = fsdpi_hash_word(hash, row->up_to);
        hash = fsdpi_hash_word(hash, (uint64_t)row->collective << 24 | (uint64_t)row->memory << 16 |
                                         (uint64_t)row->nodes << 8 | row->algorithm);
    }
    return hash;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

const char *fsdp_algorithm_text(fsdp_algorithm algorithm)
{
    static const char *const NAMES[] = {"auto", "inline", "staged", "direct", "cma", "rails", "ring", "halves"};

    return (int)algorithm >= 0 && (int)algorithm < FSDP_N_ALGORITHMS ? NAMES[algorithm] : "unknown";
}

static const char HEADER[] =
    "# fsdp-tuning 1\n"
    "# S: bytes of the full vector, which `up to` counts; N ranks, L on each of M nodes; a pair: one node with L = 2;\n"
    "# c: chunks that the part of a rank travels in, log2: rounded up, for the leader of a node; 0 for its other "
    "ranks\n"
    "# alpha_s: a synchronisation of the node, alpha_m: the latency of a message, of which several are under way at "
    "once,\n"
    "# beta: a byte over the link of a node, gamma: a byte of memory traffic, all in seconds\n";

static void print_row(FILE *file, const char *collective, const char *memory, const char *nodes, const char *up_to,
                      const char *algorithm, const char *cost)
{
    (void)fprintf(file, "%-14s %-9s %-5s %8s %-9s # %s\n", collective, memory, nodes, up_to, algorithm, cost);
}

void fsdpi_table_print(const fsdpi_table *table, FILE *file)
{
    const fsdpi_row *rows = table != NULL ? table->rows : BUILT_IN;
    const size_t     n    = table != NULL ? table->n : N_BUILT_IN;

    (void)fputs(HEADER, file);
    print_row(file, "# collective", "memory", "nodes", "up to", "algorithm", "cost for a rank");
    for (size_t i = 0; i < n; i++) {
        char up_to[24] = "any";

        if (rows[i].up_to != FOR_ALL) {
            (void)snprintf(up_to, sizeof up_to, "%" PRIu64, rows[i].up_to);
        }
        print_row(file, COLLECTIVES[rows[i].collective], MEMORIES[rows[i].memory], NODES[rows[i].nodes], up_to,
                  fsdp_algorithm_text((fsdp_algorithm)rows[i].algorithm), cost_of(&rows[i]));
    }
    if (table != NULL && table->by_cost) {
        fsdpi_costs_print(&table->costs, &table->world, file);
    }
}

void fsdpi_table_print_for(const fsdpi_world *world, const fsdpi_link *link, FILE *file)
{
    fsdpi_table table = {.world = *world, .costs = fsdpi_costs_of(link, world)};

    take_built_in(&table);
    limit_by_ranks(&table);
    choose_by_cost(&table);
    fsdpi_table_print(&table, file);
}
