#include "shard/checkpoint/common/stage_parts.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "shard/state/plane.h"
#include "shard/state/tensor.h"

/* ---- as bytes ---------------------------------------------------------------------------------------------------- */

typedef enum record_kind { OF_FLAT, OF_IGNORED, OF_HOOK, TIE } record_kind; /* in the order of files */

/* Its dimensions follow, and its name with a NUL; of a tie also the owner's. */
typedef struct record_head {
    uint64_t place; /* of its unit */
    uint32_t kind, dtype, n_dims, is_master;
} record_head;

/* One of them, as it is sorted. */
typedef struct record {
    record_head head;
    int         stage;
    size_t      index; /* in its stage */
    const char *dims, *name;
} record;

static void put(char *bytes, size_t *used, const void *data, size_t n)
{
    if (bytes != NULL && n > 0) {
        memcpy(bytes + *used, data, n);
    }
    *used += n;
}

static void put_part(const fsdpi_parts *parts, size_t p, char *bytes, size_t *used)
{
    const fsdpi_part        *part = &parts->parts[p];
    const fsdpi_tensor_info *info = &parts->infos[p];
    const bool               hook = part->kind == FSDPI_PART_HOOK;
    const record_head        head = {.place     = hook ? 0 : part->tensor->unit->place,
                                     .kind      = hook                 ? OF_HOOK
                                                  : part->flat != NULL ? OF_FLAT
                                                                       : OF_IGNORED,
                                     .dtype     = (uint32_t)info->dtype,
                                     .n_dims    = (uint32_t)info->n_dims,
                                     .is_master = part->kind == FSDPI_PART_MASTER};

    put(bytes, used, &head, sizeof head);
    put(bytes, used, info->dims, info->n_dims * sizeof *info->dims);
    put(bytes, used, info->name, strlen(info->name) + 1);
}

static void put_tie(const fsdp_model *model, const fsdpi_tie *tie, char *bytes, size_t *used)
{
    const record_head head = {.place = fsdpi_find_tensor(model, tie->name)->unit->place, .kind = TIE};

    put(bytes, used, &head, sizeof head);
    put(bytes, used, tie->name, strlen(tie->name) + 1);
    put(bytes, used, tie->owner, strlen(tie->owner) + 1);
}

/* What an earlier stage has too is listed there. Without `bytes` only counts them. */
static size_t describe(const fsdp_model *model, const fsdpi_parts *parts, char *bytes)
{
    size_t used = 0;

    for (size_t p = 0; p < parts->n; p++) {
        if (!parts->parts[p].tensor->elsewhere) {
            put_part(parts, p, bytes, &used);
        }
    }
    for (size_t t = 0; t < parts->n_ties; t++) {
        put_tie(model, &parts->ties[t], bytes, &used);
    }
    return used;
}

static const char *take(const char *at, record *r)
{
    memcpy(&r->head, at, sizeof r->head);
    r->dims         = at + sizeof r->head;
    r->name         = r->dims + r->head.n_dims * sizeof(uint64_t);
    const char *end = r->name + strlen(r->name) + 1;
    return r->head.kind == TIE ? end + strlen(end) + 1 : end;
}

/* ---- shared ------------------------------------------------------------------------------------------------------ */

bool fsdpi_stage_parts_matter(const fsdp_model *model)
{
    if (fsdpi_has_plane(model)) {
        return true;
    }
    for (const fsdp_unit *unit = model->first; unit != NULL; unit = unit->next) {
        if (unit->place != 0) {
            return true;
        }
    }
    return false;
}

static fsdp_status share(const fsdp_model *model, const char *function, size_t n, fsdp_status status,
                         fsdpi_stage_parts *shared, fsdpi_problem *problem)
{
    if (status != FSDP_OK) {
        (void)fsdpi_fail_together(model->ctx, status, "%s: %s", function, problem->text);
    }
    status = fsdpi_stages_gather(model, function, shared->own, n, status, &shared->all);
    return status == FSDP_OK || problem->status != FSDP_OK
               ? status
               : fsdpi_problem_set(problem, status, "%s", fsdpi_error_recorded(model->ctx));
}

fsdp_status fsdpi_stage_parts_share(const fsdp_model *model, const char *function, const fsdpi_parts *parts,
                                    fsdp_status status, fsdpi_stage_parts *shared, fsdpi_problem *problem)
{
    const bool asks = fsdpi_has_plane(model);

    *shared = (fsdpi_stage_parts){.own = NULL};
    if (!asks && (status != FSDP_OK || !fsdpi_stage_parts_matter(model))) {
        return status;
    }
    const size_t n = status == FSDP_OK ? describe(model, parts, NULL) : 0;
    if (status == FSDP_OK) {
        shared->own = malloc(n + 1);
        status      = shared->own != NULL ? FSDP_OK : fsdpi_problem_memory(problem, "the list of a stage's tensors", n);
    }
    if (status == FSDP_OK) {
        (void)describe(model, parts, shared->own);
    }
    if (asks) {
        return share(model, function, n, status, shared, problem);
    }
    shared->all.total = n;
    return status;
}

void fsdpi_stage_parts_free(const fsdp_model *model, fsdpi_stage_parts *shared)
{
    free(shared->own);
    if (shared->all.ends != NULL) {
        fsdpi_stages_free(model, &shared->all);
    }
    *shared = (fsdpi_stage_parts){.own = NULL};
}

/* ---- joined ------------------------------------------------------------------------------------------------------ */

/* All records of all stages; those of one stage, where nobody else was asked. */
typedef struct list {
    size_t  n, n_ties, n_dims, name_bytes;
    record *records;
} list;

static void list_stage(const char *begin, const char *end, int stage, bool masters, list *l)
{
    size_t index = 0;

    for (const char *at = begin; at < end; index++) {
        record r = {.stage = stage, .index = index};

        at = take(at, &r);
        if (r.head.is_master && !masters) {
            continue;
        }
        if (l->records != NULL) {
            l->records[l->n] = r;
        }
        l->n++;
        l->n_ties += r.head.kind == TIE;
        l->n_dims += r.head.n_dims;
        l->name_bytes += (size_t)(at - r.name);
    }
}

static void list_all(const fsdpi_stage_parts *shared, bool masters, list *l)
{
    const fsdpi_stage_bytes *all = &shared->all;

    l->n = l->n_ties = l->n_dims = l->name_bytes = 0;
    if (all->ends == NULL) {
        list_stage(shared->own, shared->own + all->total, 0, masters, l);
        return;
    }
    for (int s = 0; s < all->n_stages; s++) {
        list_stage(fsdpi_stage_begin(all, s), fsdpi_stage_end(all, s), s, masters, l);
    }
}

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_order(const void *a, const void *b)
{
    const record *x = a, *y = b;

    if (x->head.kind != y->head.kind) {
        return compare(x->head.kind, y->head.kind);
    }
    if (x->head.place != y->head.place) {
        return compare(x->head.place, y->head.place);
    }
    return x->stage != y->stage ? compare((uint64_t)x->stage, (uint64_t)y->stage) : compare(x->index, y->index);
}

typedef struct own_name {
    const char *name;
    size_t      part;
} own_name;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const own_name *)a)->name, ((const own_name *)b)->name);
}

static fsdp_status list_own(const fsdpi_parts *parts, own_name **names, fsdpi_problem *problem)
{
    *names = calloc(parts->n + 1, sizeof **names);
    if (*names == NULL) {
        return fsdpi_problem_memory(problem, "the names of a stage's tensors", parts->n * sizeof **names);
    }
    for (size_t p = 0; p < parts->n; p++) {
        (*names)[p] = (own_name){parts->infos[p].name, p};
    }
    qsort(*names, parts->n, sizeof **names, by_name);
    return FSDP_OK;
}

static const char *copy_text(char **room, const char *text)
{
    char *copy = *room;

    *room = stpcpy(copy, text) + 1;
    return copy;
}

/* What is this rank's own stays what it is, in another place. */
static void fill(const list *l, const fsdpi_parts *own, const own_name *names, fsdpi_parts *joined)
{
    uint64_t *dims = joined->dims;
    char     *name = joined->names;

    for (size_t i = 0; i < l->n; i++) {
        const record    *r    = &l->records[i];
        const char      *text = copy_text(&name, r->name);
        const own_name   key  = {.name = text};
        const own_name  *mine = own->n > 0 ? bsearch(&key, names, own->n, sizeof key, by_name) : NULL;
        const fsdpi_part none = {.tensor = NULL};

        if (r->head.kind == TIE) {
            joined->ties[joined->n_ties++] = (fsdpi_tie){text, copy_text(&name, r->name + strlen(r->name) + 1)};
            continue;
        }
        memcpy(dims, r->dims, r->head.n_dims * sizeof *dims);
        joined->parts[joined->n]   = mine != NULL ? own->parts[mine->part] : none;
        joined->infos[joined->n++] = (fsdpi_tensor_info){
            .name = text, .dtype = (fsdpi_stored)r->head.dtype, .n_dims = r->head.n_dims, .dims = dims};
        dims += r->head.n_dims;
    }
}

static fsdp_status allocate(const list *l, fsdpi_parts *joined, fsdpi_problem *problem)
{
    *joined = (fsdpi_parts){.parts = calloc(l->n + 1, sizeof *joined->parts),
                            .infos = calloc(l->n + 1, sizeof *joined->infos),
                            .names = malloc(l->name_bytes + 1),
                            .dims  = calloc(l->n_dims + 1, sizeof *joined->dims),
                            .ties  = calloc(l->n_ties + 1, sizeof *joined->ties)};
    return joined->parts != NULL && joined->infos != NULL && joined->names != NULL && joined->dims != NULL &&
                   joined->ties != NULL
               ? FSDP_OK
               : fsdpi_problem_memory(problem, "the list of all stages' tensors", l->n * sizeof *joined->parts);
}

static fsdp_status join(const list *l, fsdpi_parts *own, fsdpi_problem *problem)
{
    own_name   *names  = NULL;
    fsdpi_parts joined = {.n = 0};
    fsdp_status status = list_own(own, &names, problem);

    status = status == FSDP_OK ? allocate(l, &joined, problem) : status;
    if (status == FSDP_OK) {
        fill(l, own, names, &joined);
        joined.hook_tensors = own->hook_tensors;
        own->hook_tensors   = NULL;
        fsdpi_parts_free(own);
        *own = joined;
    } else {
        fsdpi_parts_free(&joined);
    }
    free(names);
    return status;
}

fsdp_status fsdpi_parts_join(const fsdp_model *model, const fsdpi_stage_parts *shared, bool masters, fsdpi_parts *parts,
                             fsdpi_problem *problem)
{
    list l = {.records = NULL};

    if (!fsdpi_has_plane(model) && shared->own == NULL) {
        return FSDP_OK;
    }
    list_all(shared, masters, &l);
    l.records = calloc(l.n + 1, sizeof *l.records);
    if (l.records == NULL) {
        return fsdpi_problem_memory(problem, "the list of all stages' tensors", l.n * sizeof *l.records);
    }
    list_all(shared, masters, &l);
    qsort(l.records, l.n, sizeof *l.records, by_order);
    const fsdp_status status = join(&l, parts, problem);
    free(l.records);
    return status;
}
