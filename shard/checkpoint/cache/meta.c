#include "shard/checkpoint/cache/meta.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"

/* As it is written: a count and a length, then for each file these, its name and its beginning, then the state. */
typedef struct about {
    uint64_t bytes, name_bytes, beginning_bytes, adds_up;
} about;

typedef struct counts {
    uint64_t n_files, state_bytes;
} counts;

size_t fsdpi_cache_meta_bytes(const fsdpi_cache_meta *meta)
{
    size_t bytes = sizeof(counts) + meta->state_bytes + 1;

    for (size_t f = 0; f < meta->n_files; f++) {
        bytes += sizeof(about) + strlen(meta->files[f].name) + 1 + meta->files[f].beginning_bytes;
    }
    return bytes;
}

static unsigned char *put(unsigned char *to, const void *bytes, size_t n_bytes)
{
    if (n_bytes > 0) {
        memcpy(to, bytes, n_bytes);
    }
    return to + n_bytes;
}

void fsdpi_cache_meta_write(const fsdpi_cache_meta *meta, unsigned char *to)
{
    const counts n = {.n_files = meta->n_files, .state_bytes = meta->state_bytes};

    to = put(to, &n, sizeof n);
    for (size_t f = 0; f < meta->n_files; f++) {
        const fsdpi_cached_file *file = &meta->files[f];
        const about              it   = {.bytes           = file->bytes,
                                         .name_bytes      = strlen(file->name) + 1,
                                         .beginning_bytes = file->beginning_bytes,
                                         .adds_up         = file->adds_up};

        to = put(to, &it, sizeof it);
        to = put(to, file->name, it.name_bytes);
        to = put(to, file->beginning, it.beginning_bytes);
    }
    to = put(to, meta->state, meta->state_bytes);
    (void)put(to, "", 1);
}

typedef struct rest {
    const char *at;
    size_t      left;
} rest;

/* NULL where there is less. */
static const char *take(rest *r, uint64_t n_bytes)
{
    const char *taken = r->at;

    if (n_bytes > r->left) {
        return NULL;
    }
    r->at += n_bytes;
    r->left -= (size_t)n_bytes;
    return taken;
}

static bool is_plain(const char *name, uint64_t n_bytes)
{
    return name != NULL && n_bytes > 1 && name[n_bytes - 1] == '\0' && strlen(name) == n_bytes - 1 && name[0] != '.' &&
           strchr(name, '/') == NULL;
}

static bool take_file(rest *r, fsdpi_cached_file *file)
{
    const char *bytes = take(r, sizeof(about));
    about       it;

    if (bytes == NULL) {
        return false;
    }
    memcpy(&it, bytes, sizeof it);
    file->name            = take(r, it.name_bytes);
    file->beginning       = take(r, it.beginning_bytes);
    file->beginning_bytes = (size_t)it.beginning_bytes;
    file->bytes           = it.bytes;
    file->adds_up         = it.adds_up != 0;
    return is_plain(file->name, it.name_bytes) && file->beginning != NULL && it.beginning_bytes <= it.bytes;
}

static bool take_all(rest *r, fsdpi_cache_meta *meta, const counts *n)
{
    for (; meta->n_files < n->n_files; meta->n_files++) {
        if (!take_file(r, &meta->files[meta->n_files])) {
            return false;
        }
    }
    meta->state       = take(r, n->state_bytes);
    meta->state_bytes = (size_t)n->state_bytes;
    return meta->state != NULL && r->left == 1 && r->at[0] == '\0';
}

fsdp_status fsdpi_cache_meta_read(const char *path, const char *bytes, size_t n_bytes, fsdpi_cache_meta *meta,
                                  fsdpi_problem *problem)
{
    rest        r    = {.at = bytes, .left = n_bytes};
    const char *head = take(&r, sizeof(counts));
    counts      n    = {.n_files = 0};

    *meta = (fsdpi_cache_meta){.n_files = 0};
    if (head != NULL) {
        memcpy(&n, head, sizeof n);
    }
    if (head == NULL || n.n_files > n_bytes / sizeof(about)) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: is damaged: what it says of files is cut off", path);
    }
    meta->files = calloc(n.n_files + 1, sizeof *meta->files);
    if (meta->files == NULL) {
        return fsdpi_problem_memory(problem, path, n.n_files * sizeof *meta->files);
    }
    return take_all(&r, meta, &n)
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: is damaged: what it says of files is none", path);
}
