/*
 * Cost: each rank reads heads and lists of its share of the files on its node; for each state that is looked at three allreduces of
 * 8 bytes, and one of 8 bytes per rank that had cached it; the bytes of the state that is chosen are read once.
 */
#include "shard/checkpoint/cache/find.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/collectives.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "shard/checkpoint/cache/cache_folder.h"
#include "shard/checkpoint/format/checksums.h"

typedef struct search {
    fsdp_context       *ctx;
    const fsdpi_nodes  *nodes;
    const char         *function, *folder, *run;
    uint64_t            latest;
    size_t              n;
    fsdpi_cache_reader *files; /* of this rank's share those that count; closed: no more */
    int64_t            *holders;
    void               *scratch;
} search;

/* ---- the files of this rank's share --------------------------------------------------------------------------------- */

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(names[i]);
    }
    free(names);
}

static bool is_mine(const fsdpi_nodes *nodes, size_t i)
{
    return i % (size_t)nodes->size == (size_t)nodes->position;
}

void fsdpi_cache_clear(const char *folder)
{
    fsdpi_problem problem;
    char        **names, path[FSDPI_FOLDER_PATH_BYTES];
    size_t        n;

    (void)fsdpi_cache_folder_list(folder, &names, &n, &problem);
    for (size_t i = 0; i < n; i++) {
        fsdpi_path_join(path, folder, names[i]);
        (void)unlink(path);
    }
    free_names(names, n);
    (void)rmdir(folder);
}

/* What does not count is told of at a level that fits: only damage is worth a warning. */
static const char *why_not(const search *s, const fsdpi_cache_head *head)
{
    if (strcmp(head->run, s->run) != 0) {
        return "it is of another run in a folder of this name";
    }
    if (head->base > s->latest) {
        return "`latest` has been set back since";
    }
    return head->step + 1 <= s->latest ? "`latest` is as new" : NULL;
}

static void look_at(search *s, const char *name)
{
    fsdpi_cache_reader *file    = &s->files[s->n];
    fsdpi_problem       problem = {0};
    char                path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, s->folder, name);
    if (fsdpi_cache_reader_open(path, file, &problem) != FSDP_OK) {
        const bool unfinished = strstr(problem.text, "was not finished") != NULL;

        fsdpi_log(s->ctx, unfinished ? FSDP_LOG_INFO : FSDP_LOG_WARN, "%s: %s; it is left out", s->function,
                  problem.text);
        return;
    }
    const char *why = why_not(s, &file->head);
    if (why != NULL) {
        fsdpi_log(s->ctx, FSDP_LOG_INFO, "%s: %s, of step %" PRIu64 ", is left out: %s", s->function, path,
                  file->head.step, why);
        fsdpi_cache_reader_close(file);
        return;
    }
    s->n++;
}

static fsdp_status scan(search *s)
{
    fsdpi_problem problem = {0};
    char        **names;
    size_t        n;

    fsdp_status status = fsdpi_cache_folder_list(s->folder, &names, &n, &problem);
    if (status == FSDP_OK) {
        s->files   = calloc(n + 1, sizeof *s->files);
        s->scratch = malloc(FSDPI_CHUNK_MOST);
        if (s->files == NULL || s->scratch == NULL) {
            status = fsdpi_problem_memory(&problem, s->folder, n * sizeof *s->files);
        }
    }
    for (size_t i = 0; i < n && status == FSDP_OK && s->files != NULL; i++) {
        if (is_mine(s->nodes, i)) {
            look_at(s, names[i]);
        }
    }
    free_names(names, n);
    return status == FSDP_OK ? FSDP_OK
                             : fsdpi_fail_together(s->ctx, problem.status, "%s: %s", s->function, problem.text);
}

/* ---- which state ----------------------------------------------------------------------------------------------------- */

/* What tells a state from others, the newer the larger. -1: of none. */
typedef struct identity {
    int64_t step, generation, attempt, ranks;
} identity;

static identity identity_of(const fsdpi_cache_reader *file)
{
    return (identity){.step       = (int64_t)(file->head.step & INT64_MAX),
                      .generation = (int64_t)(file->head.generation & INT64_MAX),
                      .attempt    = (int64_t)(fsdpi_hash_text(FSDPI_HASH_START, file->head.attempt) & INT64_MAX),
                      .ranks      = (int64_t)file->head.ranks};
}

static bool is_of(const fsdpi_cache_reader *file, const identity *state)
{
    const identity own = identity_of(file);

    return file->fd >= 0 && own.step == state->step && own.generation == state->generation &&
           own.attempt == state->attempt && own.ranks == state->ranks;
}

/* The largest over all ranks' files of the one field, where those before it are what has been found. */
static fsdp_status largest(const search *s, identity *state, size_t field)
{
    int64_t *const all  = (int64_t *)state;
    int64_t        most = -1;

    for (size_t i = 0; i < s->n; i++) {
        const identity       own  = identity_of(&s->files[i]);
        const int64_t *const mine = (const int64_t *)&own;

        if (s->files[i].fd >= 0 && memcmp(mine, all, field * sizeof *mine) == 0 && mine[field] > most) {
            most = mine[field];
        }
    }
    FSDP_TRY(fsdp_allreduce(s->ctx, FSDP_IN_PLACE, &most, 1, FSDP_I64, FSDP_MAX));
    all[field] = most;
    return FSDP_OK;
}

static fsdp_status newest(const search *s, identity *state)
{
    *state = (identity){-1, -1, -1, -1};
    for (size_t field = 0; field < sizeof *state / sizeof(int64_t); field++) {
        FSDP_TRY(largest(s, state, field));
        if (state->step < 0) {
            return FSDP_OK;
        }
    }
    return FSDP_OK;
}

/* ---- whether it is whole --------------------------------------------------------------------------------------------- */

/* Of each rank that has cached it, the lowest one of the ranks now that has it; ours where there is none: `size`. */
static fsdp_status find_holders(const search *s, const identity *state)
{
    for (int64_t r = 0; r < state->ranks; r++) {
        s->holders[r] = s->ctx->size;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (is_of(&s->files[i], state)) {
            s->holders[s->files[i].head.owner] = s->ctx->rank;
        }
    }
    return fsdp_allreduce(s->ctx, FSDP_IN_PLACE, s->holders, (size_t)state->ranks, FSDP_I64, FSDP_MIN);
}

/* Of several files with the same in them the first stays open. */
static bool is_chosen(search *s, size_t i, const identity *state)
{
    const fsdpi_cache_reader *file = &s->files[i];

    if (!is_of(file, state) || s->holders[file->head.owner] != s->ctx->rank) {
        return false;
    }
    for (size_t before = 0; before < i; before++) {
        if (is_of(&s->files[before], state) && s->files[before].head.owner == file->head.owner) {
            return false;
        }
    }
    return true;
}

static bool is_good(const search *s, const fsdpi_cache_reader *file)
{
    fsdpi_problem problem = {0};

    for (size_t i = 0; i < file->head.n_chunks; i++) {
        if (file->chunks[i].at != FSDPI_CACHE_NOWHERE &&
            fsdpi_cache_reader_chunk(file, i, s->scratch, &problem) != FSDP_OK) {
            fsdpi_log(s->ctx, FSDP_LOG_WARN, "%s: %s; it is left out", s->function, problem.text);
            return false;
        }
    }
    return true;
}

/* Closes those that are damaged. @param[out] good  whether there were none on any rank */
static fsdp_status check_chosen(search *s, const identity *state, bool *good)
{
    int32_t all = 1;

    for (size_t i = 0; i < s->n; i++) {
        if (is_chosen(s, i, state) && !is_good(s, &s->files[i])) {
            fsdpi_cache_reader_close(&s->files[i]);
            all = 0;
        }
    }
    FSDP_TRY(fsdp_allreduce(s->ctx, FSDP_IN_PLACE, &all, 1, FSDP_I32, FSDP_MIN));
    *good = all != 0;
    return FSDP_OK;
}

static void tell_missing(const search *s, const identity *state)
{
    int64_t n = 0, first = -1;

    for (int64_t r = state->ranks; r-- > 0;) {
        if (s->holders[r] == s->ctx->size) {
            first = r;
            n++;
        }
    }
    if (s->ctx->rank == 0) {
        fsdpi_log(s->ctx, FSDP_LOG_WARN,
                  "%s: step %" PRId64 " is cached, but not whole: of %" PRId64 " ranks' states %" PRId64
                  " are on no node or damaged, that of rank %" PRId64 " first; it is left out",
                  s->function, state->step, state->ranks, n, first);
    }
}

static bool is_whole(const search *s, const identity *state)
{
    for (int64_t r = 0; r < state->ranks; r++) {
        if (s->holders[r] == s->ctx->size) {
            return false;
        }
    }
    return true;
}

static void leave_out(search *s, const identity *state)
{
    for (size_t i = 0; i < s->n; i++) {
        if (is_of(&s->files[i], state)) {
            fsdpi_cache_reader_close(&s->files[i]);
        }
    }
}

/* Until a damaged file has no other in its place. */
static fsdp_status try_state(search *s, const identity *state, bool *whole)
{
    bool good = false;

    do {
        FSDP_TRY(find_holders(s, state));
        *whole = is_whole(s, state);
        if (*whole) {
            FSDP_TRY(check_chosen(s, state, &good));
        }
    } while (*whole && !good);
    return FSDP_OK;
}

static fsdp_status make_holders(search *s, int64_t ranks)
{
    free(s->holders);
    s->holders = malloc((size_t)ranks * sizeof *s->holders);
    return fsdpi_agree(s->ctx, s->function, "memory", 0,
                       s->holders != NULL
                           ? FSDP_OK
                           : fsdpi_fail_together(s->ctx, FSDP_ERR_MEMORY,
                                                 "%s: no memory for a list of %" PRId64 " ranks", s->function, ranks),
                       true);
}

/* Those that are chosen come first, and stay open. */
static void take_chosen(search *s, const identity *state, fsdpi_cache_found *found)
{
    for (size_t i = 0; i < s->n; i++) {
        if (is_chosen(s, i, state)) {
            const fsdpi_cache_reader taken = s->files[i];

            s->files[i]          = s->files[found->n];
            s->files[found->n++] = taken;
        }
    }
    found->step  = (uint64_t)state->step;
    found->ranks = (uint64_t)state->ranks;
    found->first = (int)s->holders[0];
}

static fsdp_status search_all(search *s, fsdpi_cache_found *found)
{
    identity state;
    bool     whole = false;

    for (;;) {
        FSDP_TRY(newest(s, &state));
        if (state.step < 0) {
            return FSDP_OK;
        }
        FSDP_TRY(make_holders(s, state.ranks));
        FSDP_TRY(try_state(s, &state, &whole));
        if (whole) {
            take_chosen(s, &state, found);
            return FSDP_OK;
        }
        tell_missing(s, &state);
        leave_out(s, &state);
    }
}

fsdp_status fsdpi_cache_find(fsdp_context *ctx, const fsdpi_nodes *nodes, const char *function, const char *folder,
                             const char *run, uint64_t latest, fsdpi_cache_found *found)
{
    search s = {.ctx = ctx, .nodes = nodes, .function = function, .folder = folder, .run = run, .latest = latest};

    *found             = (fsdpi_cache_found){.ranks = 0};
    fsdp_status status = fsdpi_agree(ctx, function, "looking for caches", 0, scan(&s), true);
    if (status == FSDP_OK) {
        status = search_all(&s, found);
    }
    found->readers     = s.files;
    found->n_looked_at = s.n;
    free(s.holders);
    free(s.scratch);
    return status;
}

void fsdpi_cache_found_close(fsdpi_cache_found *found)
{
    for (size_t i = 0; i < found->n_looked_at; i++) {
        fsdpi_cache_reader_close(&found->readers[i]);
    }
    free(found->readers);
    *found = (fsdpi_cache_found){.ranks = 0};
}
