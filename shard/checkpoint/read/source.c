#include "shard/checkpoint/read/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "shard/checkpoint/common/hook_parts.h"
#include "shard/state/dynamic_blocks.h"
#include "shard/state/groups.h"
#include "shard/state/tensor.h"
#include "shard/state/tp_part.h"
#include "shard/storage/compute.h"

void fsdpi_source_close(fsdpi_source *source)
{
    free(source->placed);
    fsdpi_tensor_files_close(&source->files);
    fsdpi_parts_free(&source->parts);
    *source = (fsdpi_source){0};
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A name by which a part may be found. */
typedef struct alias {
    const char *name;
    size_t      part;
    bool        tied; /* not its own */
} alias;

typedef struct aliases {
    size_t n;
    alias *list; /* by name */
} aliases;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const alias *)a)->name, ((const alias *)b)->name);
}

static const alias *find(const aliases *names, const char *name)
{
    const alias key = {.name = name};

    return names->n > 0 ? bsearch(&key, names->list, names->n, sizeof key, by_name) : NULL;
}

static void add_tied_names(const fsdpi_source *source, aliases *names)
{
    const aliases own = *names;

    for (size_t t = 0; t < source->parts.n_ties; t++) {
        const fsdpi_tie *tie   = &source->parts.ties[t];
        const alias     *owner = find(&own, tie->owner);

        if (owner != NULL) {
            names->list[names->n++] = (alias){tie->name, owner->part, true};
        }
    }
}

static fsdp_status list_names(const fsdpi_source *source, bool values, aliases *names, fsdpi_problem *problem)
{
    const size_t most = source->parts.n + source->parts.n_ties;

    *names = (aliases){.list = calloc(most + 1, sizeof(alias))};
    if (names->list == NULL) {
        return fsdpi_problem_memory(problem, "the names of a model's tensors", most * sizeof(alias));
    }
    for (size_t p = 0; p < source->parts.n; p++) {
        names->list[names->n++] = (alias){source->parts.infos[p].name, p, false};
    }
    qsort(names->list, names->n, sizeof(alias), by_name);
    if (values) {
        add_tied_names(source, names);
        qsort(names->list, names->n, sizeof(alias), by_name);
    }
    return FSDP_OK;
}

/* How a tensor of a file is called in the model; NULL: it is left out. */
static const char *renamed(const fsdp_checkpoint_load_options *options, const char *name, char *room, size_t bytes)
{
    for (size_t i = 0; i < options->n_renames; i++) {
        const fsdp_checkpoint_rename *rename = &options->renames[i];
        const size_t                  n      = strlen(rename->from);

        if (strncmp(name, rename->from, n) == 0) {
            if (rename->to == NULL) {
                return NULL;
            }
            (void)snprintf(room, bytes, "%s%s", rename->to, name + n);
            return room;
        }
    }
    return name;
}

void fsdpi_describe_shape(const fsdpi_tensor_info *info, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");

    for (size_t d = 0; d < info->n_dims && used < size; d++) {
        used +=
            (size_t)snprintf(text + used, size - used, "%s%llu", d > 0 ? ", " : "", (unsigned long long)info->dims[d]);
    }
    if (used < size) {
        (void)snprintf(text + used, size - used, "]");
    }
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

typedef struct match {
    fsdpi_source                       *source;
    const fsdp_checkpoint_load_options *options;
    fsdpi_misfits                      *misfits;
    bool                               *tied;   /* of each part: found under another name */
    bool                                values; /* what is matched is a model's values */
} match;

void fsdpi_misfit_tell(const fsdp_context *ctx, const char *function, const fsdpi_problem *problem,
                       fsdpi_misfits *misfits)
{
    if (ctx->rank == 0) {
        fsdpi_log(ctx, FSDP_LOG_ERROR, "%s: %s", function, problem->text);
    }
    if (misfits->first[0] == '\0') {
        (void)snprintf(misfits->first, sizeof misfits->first, "%.440s", problem->text);
    }
}

/* Names of files are printed as they are: problems replace what cannot be. */
static void report(const match *m, const char *name, const char *what)
{
    const char   *model   = m->source->name;
    const bool    named   = model[0] != '\0';
    fsdpi_problem problem = {0};

    (void)fsdpi_problem_set(&problem, FSDP_ERR_ARG, "%s%s%stensor '%s' %s", named ? "model '" : "", model,
                            named ? "': " : "", name, what);
    fsdpi_misfit_tell(m->source->model->plane.ctx, "fsdp_checkpoint_load", &problem, m->misfits);
}

static void report_extra(const match *m, const char *name, const char *why)
{
    if (!m->options->allow_extra) {
        m->misfits->extra++;
        report(m, name, why);
    }
}

/* A part's own name comes before those of tensors that are tied to it, which hold the same. */
static void place(const match *m, const aliases *names, const fsdpi_placed_tensor *tensor)
{
    char         room[2 * FSDPI_NAME_BYTES];
    const char  *file_name = tensor->info->name;
    const char  *name      = renamed(m->options, file_name, room, sizeof room);
    const alias *found     = name != NULL ? find(names, name) : NULL;

    if (name == NULL) {
        return;
    }
    if (found == NULL && !m->values && fsdpi_is_hook_part_name(file_name)) {
        return; /* of another hook, or number of ranks */
    }
    if (found == NULL) {
        report_extra(m, file_name, "is in the file but not in the model");
        return;
    }
    const fsdpi_placed_tensor **placed = &m->source->placed[found->part];
    if (*placed == NULL || (m->tied[found->part] && !found->tied)) {
        *placed              = tensor;
        m->tied[found->part] = found->tied;
    } else if (!found->tied) {
        report_extra(m, file_name, "has, renamed, the name of another one");
    }
}

static bool is_floating(fsdpi_stored type)
{
    return type == FSDPI_STORED_F64 || type == FSDPI_STORED_F32 || type == FSDPI_STORED_BF16 ||
           type == FSDPI_STORED_F16;
}

static bool has_shape(const fsdpi_tensor_info *a, const fsdpi_tensor_info *b)
{
    return a->n_dims == b->n_dims && (a->n_dims == 0 || memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0);
}

static void check_shape(const match *m, size_t part)
{
    const fsdpi_tensor_info *ours = &m->source->parts.infos[part], *theirs = m->source->placed[part]->info;
    char                     shape[160], needed[160], what[400];

    if (has_shape(ours, theirs) && is_floating(theirs->dtype)) {
        return;
    }
    m->source->placed[part] = NULL;
    if (m->options->allow_mis_shaped) {
        return;
    }
    m->misfits->mis_shaped++;
    fsdpi_describe_shape(theirs, shape, sizeof shape);
    fsdpi_describe_shape(ours, needed, sizeof needed);
    (void)snprintf(what, sizeof what, "is %s %s in the file, and %s in the model%s", fsdpi_stored_name(theirs->dtype),
                   shape, needed, is_floating(theirs->dtype) ? "" : ", of a floating type");
    report(m, ours->name, what);
}

/* What a hook has kept is of use as it is, or not at all. */
static void check_hook_part(const match *m, size_t part)
{
    const fsdpi_placed_tensor **placed = &m->source->placed[part];

    if (*placed != NULL &&
        ((*placed)->info->dtype != FSDPI_STORED_F32 || !has_shape(&m->source->parts.infos[part], (*placed)->info))) {
        *placed = NULL;
    }
}

static void check_parts(const match *m)
{
    for (size_t p = 0; p < m->source->parts.n; p++) {
        if (m->source->parts.parts[p].kind == FSDPI_PART_HOOK) {
            check_hook_part(m, p);
        } else if (m->source->placed[p] != NULL) {
            check_shape(m, p);
        } else if (!m->options->allow_missing) {
            m->misfits->missing++;
            report(m, m->source->parts.infos[p].name, "is missing in the file");
        }
    }
}

static void match_all(const match *m, const aliases *names)
{
    for (size_t i = 0; i < m->source->files.n_tensors; i++) {
        place(m, names, &m->source->files.tensors[i]);
    }
    check_parts(m);
}

fsdp_status fsdpi_source_match(fsdpi_source *source, bool values, const fsdp_checkpoint_load_options *options,
                               fsdpi_misfits *misfits, fsdpi_problem *problem)
{
    match   m = {.source = source, .options = options, .misfits = misfits, .values = values};
    aliases names;

    FSDP_TRY(list_names(source, values, &names, problem));
    m.tied             = calloc(source->parts.n + 1, sizeof *m.tied);
    source->placed     = calloc(source->parts.n + 1, sizeof(void *));
    fsdp_status status = FSDP_OK;
    if (m.tied == NULL || source->placed == NULL) {
        status = fsdpi_problem_memory(problem, "the list of a file's tensors", source->parts.n * sizeof(void *));
    } else {
        match_all(&m, &names);
    }
    free(m.tied);
    free(names.list);
    return status;
}

uint64_t fsdpi_source_fingerprint(const fsdpi_source *source, uint64_t hash)
{
    for (size_t f = 0; f < source->files.n_files; f++) {
        hash = fsdpi_hash_u64(hash, source->files.files[f].header.file_bytes);
    }
    for (size_t i = 0; i < source->files.n_tensors; i++) {
        const fsdpi_tensor_info *info = source->files.tensors[i].info;

        hash = fsdpi_hash_text(hash, info->name);
        hash = fsdpi_hash_u64(hash, info->begin);
        hash = fsdpi_hash_u64(hash, (uint64_t)info->dtype);
    }
    return hash;
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

/* The chunks of one file, and which of them matter here. */
typedef struct needed {
    const fsdpi_tensor_file *file;
    const fsdpi_file_sums   *sums;
    bool                    *chunks;
} needed;

static fsdp_dtype dtype_of(const fsdpi_placed_tensor *tensor)
{
    return (fsdp_dtype)tensor->info->dtype; /* a floating one: the library's own, with the same number */
}

/* BYTES `begin` to `end` of the file. */
static void need(const needed *n, uint64_t begin, uint64_t end)
{
    for (size_t i = fsdpi_chunk_of(n->sums, begin); i < n->sums->n_chunks && n->sums->chunks[i].begin < end; i++) {
        n->chunks[i] = true;
    }
}

static void need_row(const needed *n, const fsdpi_placed_tensor *tensor, size_t first, size_t count)
{
    const size_t   width = fsdp_dtype_size(dtype_of(tensor));
    const uint64_t begin = tensor->file->header.data_offset + tensor->info->begin + first * width;

    need(n, begin, begin + count * width);
}

static void need_elements(const needed *n, const fsdpi_part *part, const fsdpi_placed_tensor *tensor, size_t first,
                          size_t count)
{
    for (size_t at = 0; at < count;) {
        const fsdpi_tp_run row = fsdpi_tp_run_at(part->tensor, first + at, count - at);

        need_row(n, tensor, row.whole, row.count);
        at += row.count;
    }
}

/* What the ranks of this node will read. */
static void need_hook_part(const needed *n, const fsdpi_part *part, const fsdpi_placed_tensor *tensor)
{
    const fsdpi_nodes *nodes = &part->flat->model->ctx->nodes;

    for (int position = 0; position < nodes->size; position++) {
        size_t begin, count;

        fsdpi_hook_part_range(part->flat, fsdpi_rank_at(nodes, nodes->mine, position), &begin, &count);
        need_elements(n, part, tensor, begin, count);
    }
}

/* `held`: of each slice of what is divided, whether a rank of this node has it. */
static void need_part(const needed *n, const fsdpi_part *part, const fsdpi_placed_tensor *tensor, const bool *held)
{
    size_t begin, count;

    if (part->kind == FSDPI_PART_HOOK) {
        need_hook_part(n, part, tensor);
        return;
    }
    if (part->flat == NULL) {
        need_elements(n, part, tensor, 0, part->tensor->count);
        return;
    }
    for (int slice = 0; slice < part->flat->layout.size; slice++) {
        if ((fsdpi_is_whole(part->flat) || held[slice]) && fsdpi_part_in_slice(part, slice, &begin, &count)) {
            need_elements(n, part, tensor, begin, count);
        }
    }
}

static void list_held(const fsdp_model *model, bool *held)
{
    const fsdpi_nodes *nodes = &model->ctx->nodes;

    for (int position = 0; position < nodes->size; position++) {
        const fsdpi_held slices = fsdpi_slices_of_rank(model, fsdpi_rank_at(nodes, nodes->mine, position));

        for (int i = 0; i < slices.n; i++) {
            held[slices.first + i] = true;
        }
    }
}

static fsdp_status need_tensors(const fsdpi_source *source, const needed *n, fsdpi_problem *problem)
{
    const size_t slices = (size_t)source->model->ctx->size;
    bool *const  held   = calloc(slices, sizeof *held);

    if (held == NULL) {
        return fsdpi_problem_memory(problem, n->file->path, slices);
    }
    list_held(source->model, held);
    for (size_t p = 0; p < source->parts.n; p++) {
        const fsdpi_placed_tensor *tensor = source->placed[p];

        if (tensor != NULL && tensor->file == n->file && source->parts.parts[p].tensor != NULL) {
            need_part(n, &source->parts.parts[p], tensor, held);
        }
    }
    free(held);
    return FSDP_OK;
}

/* Leaves those chunks that begin in this rank's share of their bytes. */
static void take_share(const fsdpi_nodes *nodes, const needed *n)
{
    const uint64_t ranks = (uint64_t)nodes->size, position = (uint64_t)nodes->position;
    uint64_t       all = 0, at = 0;

    for (size_t i = 0; i < n->sums->n_chunks; i++) {
        all += n->chunks[i] ? n->sums->chunks[i].bytes : 0;
    }
    for (size_t i = 0; i < n->sums->n_chunks; i++) {
        const uint64_t share = all / ranks + 1;

        if (n->chunks[i]) {
            n->chunks[i] = at / share == position;
            at += n->sums->chunks[i].bytes;
        }
    }
}

static fsdp_status check_chunks(const needed *n, void *scratch, fsdpi_problem *problem)
{
    for (size_t i = 0; i < n->sums->n_chunks; i++) {
        if (n->chunks[i]) {
            FSDP_TRY(fsdpi_chunk_verify(n->file->fd, n->file->path, n->sums, i, scratch, problem));
        }
    }
    return FSDP_OK;
}

static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* With tensors, or of the header alone. */
static fsdp_status verify_file(const fsdpi_source *source, bool tensors, const fsdpi_tensor_file *file,
                               const fsdpi_checksums *sums, void *scratch, fsdpi_problem *problem)
{
    needed      n      = {.file = file, .sums = fsdpi_checksums_find(sums, last_of(file->path))};
    fsdp_status status = FSDP_OK;

    if (n.sums == NULL || n.sums->bytes != file->header.file_bytes) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: is not the file that state.json has checksums of",
                                 file->path);
    }
    n.chunks = calloc(n.sums->n_chunks, sizeof *n.chunks);
    if (n.chunks == NULL) {
        return fsdpi_problem_memory(problem, file->path, n.sums->n_chunks);
    }
    if (tensors) {
        status = need_tensors(source, &n, problem);
        take_share(&source->model->ctx->nodes, &n);
    } else {
        need(&n, 0, file->header.data_offset);
    }
    status = status == FSDP_OK ? check_chunks(&n, scratch, problem) : status;
    free(n.chunks);
    return status;
}

static fsdp_status verify(const fsdpi_source *source, bool tensors, const fsdpi_checksums *sums, void *scratch,
                          fsdpi_problem *problem)
{
    for (size_t f = 0; f < source->files.n_files; f++) {
        FSDP_TRY(verify_file(source, tensors, &source->files.files[f], sums, scratch, problem));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_source_verify_headers(const fsdpi_source *source, const fsdpi_checksums *sums, void *scratch,
                                        fsdpi_problem *problem)
{
    return verify(source, false, sums, scratch, problem);
}

fsdp_status fsdpi_source_verify(const fsdpi_source *source, const fsdpi_checksums *sums, void *scratch,
                                fsdpi_problem *problem)
{
    return verify(source, true, sums, scratch, problem);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct reading {
    fsdp_model    *model;
    void          *scratch;
    fsdpi_problem *problem;
} reading;

/* Moments in 8 bits: `at` is the first element of a block of the run. */
static void pack(const reading *r, const fsdpi_held_run *run, size_t at, const void *values, fsdp_dtype dtype,
                 size_t count)
{
    float    block[FSDPI_DYNAMIC_BLOCK];
    uint8_t *codes = run->memory;

    for (size_t i = 0; i < count; i += FSDPI_DYNAMIC_BLOCK) {
        const size_t n    = count - i < FSDPI_DYNAMIC_BLOCK ? count - i : FSDPI_DYNAMIC_BLOCK;
        const void  *from = (const unsigned char *)values + i * fsdp_dtype_size(dtype);

        r->model->ctx->kernels->cast(block, FSDP_F32, from, dtype, n);
        fsdpi_dynamic_pack(block, n, run->is_signed, codes + at + i, run->scales + (at + i) / FSDPI_DYNAMIC_BLOCK);
    }
}

/* BYTES of a row from which on it is read by itself; shorter ones come with what other positions have between them. */
enum { LONG_ROW = 4096 };

/* Bytes of a file's tensor that are in memory. */
typedef struct window {
    unsigned char *bytes;
    size_t         room;
    uint64_t       begin, end;
} window;

/* `whole`: to the end of what will be read of the tensor. */
static fsdp_status look_at(const reading *r, const fsdpi_placed_tensor *tensor, uint64_t begin, size_t n,
                           uint64_t whole, window *w)
{
    if (begin >= w->begin && begin + n <= w->end) {
        return FSDP_OK;
    }
    const uint64_t left = whole - begin;

    w->begin = begin;
    w->end   = begin + (left < w->room ? left : w->room);
    return fsdpi_tensor_read(tensor, w->begin, w->bytes, (size_t)(w->end - w->begin), r->problem);
}

/* Elements `first` to `first + count` of this position's part, one behind the other. */
static fsdp_status read_rows(const reading *r, const fsdpi_placed_tensor *tensor, const fsdpi_tensor *part,
                             size_t first, size_t count, unsigned char *to, window *w)
{
    const size_t   width = fsdp_dtype_size(dtype_of(tensor));
    const uint64_t end   = (fsdpi_tp_run_at(part, first + count - 1, 1).whole + 1) * width;

    for (size_t at = 0; at < count;) {
        const fsdpi_tp_run row   = fsdpi_tp_run_at(part, first + at, count - at);
        const uint64_t     begin = row.whole * width;
        const size_t       bytes = row.count * width;

        if (bytes >= LONG_ROW || part->tp_parts == 1) {
            FSDP_TRY(fsdpi_tensor_read(tensor, begin, to + at * width, bytes, r->problem));
        } else {
            FSDP_TRY(look_at(r, tensor, begin, bytes, end, w));
            memcpy(to + at * width, w->bytes + (begin - w->begin), bytes);
        }
        at += row.count;
    }
    return FSDP_OK;
}

/*
 * Of the type in which it is held on the host it goes straight to its place. Half of the scratch is for what is to be converted, the
 * other for what rows are read with.
 */
static fsdp_status read_run(const reading *r, const fsdpi_placed_tensor *tensor, const fsdpi_tensor *part,
                            const fsdpi_held_run *run)
{
    const fsdp_dtype dtype = dtype_of(tensor);
    const size_t     width = fsdp_dtype_size(dtype), half = FSDPI_READ_BYTES / 2;
    const size_t     most  = (part->tp_parts == 1 ? FSDPI_READ_BYTES : half) / width;
    const bool       there = dtype == run->dtype && !fsdpi_is_on_device(r->model);
    window           w     = {.bytes = (unsigned char *)r->scratch + half, .room = half};

    for (size_t at = 0; at < run->count; at += most) {
        const size_t count  = run->count - at < most ? run->count - at : most;
        void        *to     = fsdpi_element_of(run->memory, at, run->dtype);
        void        *landed = there ? to : r->scratch;

        FSDP_TRY(read_rows(r, tensor, part, run->begin + at, count, landed, &w));
        if (run->scales != NULL) {
            pack(r, run, at, landed, dtype, count);
        } else if (landed != to) {
            fsdpi_compute_write(r->model, to, run->dtype, landed, dtype, count);
        }
    }
    return FSDP_OK;
}

static fsdp_status read_part(const fsdpi_source *source, const reading *r, size_t p)
{
    const fsdpi_part *part = &source->parts.parts[p];
    const int         n    = fsdpi_part_runs(part);

    for (int i = 0; i < n; i++) {
        fsdpi_held_run run = {0};

        if (fsdpi_part_run(source->model, part, i, &run)) {
            FSDP_TRY(read_run(r, source->placed[p], part->tensor, &run));
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_source_read(const fsdpi_source *source, void *scratch, fsdpi_problem *problem)
{
    const reading r = {.model = source->model, .scratch = scratch, .problem = problem};

    for (size_t p = 0; p < source->parts.n; p++) {
        if (source->placed[p] != NULL) {
            FSDP_TRY(read_part(source, &r, p));
        }
    }
    return FSDP_OK;
}
