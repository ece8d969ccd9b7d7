/*
 * Slice after slice, piece after piece: a broadcast from the rank that gives the piece, straight out of and into where it
 * belongs; ranks to which it does not belong receive it in a buffer of their own and forget it.
 * Cost for a tensor of S bytes: one broadcast of each piece, S bytes to every rank.
 */
#include "fsdp/tensor_io.h"

#include <stdio.h>
#include <string.h>

#include "fsdp/collectives.h"
#include "lib/base/hash.h"
#include "lib/device/memory.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"
#include "shard/state/groups.h"
#include "shard/state/tensor.h"
#include "shard/storage/compute.h"

typedef struct transfer {
    const char         *function;
    bool                imports, to_all; /* with `to_all`, every rank is as root is without */
    fsdp_model         *model;
    const fsdpi_tensor *tensor; /* the owner of the elements */
    int                 root;
    unsigned char      *values; /* on root; of the masters' type, as `piece` */
    unsigned char      *piece;  /* elsewhere */
    size_t              piece_elements;
} transfer;

/* The part of the tensor that is in slice `slice`; count is 0 where there is none. In ELEMENTS. */
typedef struct part {
    int    slice;
    size_t tensor_begin;
    size_t slice_begin;
    size_t count;
} part;

static part part_in_slice(const transfer *t, int slice)
{
    const fsdpi_flat *flat         = t->tensor->member->flat;
    const size_t      tensor_begin = t->tensor->offset;
    const size_t      tensor_end   = tensor_begin + t->tensor->count;
    const size_t      slice_begin  = fsdpi_slice_begin(flat, slice);
    const size_t      slice_end    = slice_begin + fsdpi_slice_count(flat, slice);
    const size_t      begin        = tensor_begin > slice_begin ? tensor_begin : slice_begin;
    const size_t      end          = tensor_end < slice_end ? tensor_end : slice_end;

    return begin < end ? (part){slice, begin - tensor_begin, begin - slice_begin, end - begin} : (part){.slice = slice};
}

/* Whether this rank has, or wants, all values. */
static bool is_root(const transfer *t)
{
    return t->to_all || t->model->ctx->rank == t->root;
}

/* Whether who asks for the slice has it, on all ranks that ask. */
static bool is_with_root(const transfer *t, int giver)
{
    return t->to_all ? fsdpi_is_whole(t->tensor->member->flat) : giver == t->root;
}

/* A rank that holds the slice: root where it can. */
static int holder_of_slice(const transfer *t, int slice)
{
    return fsdpi_is_whole(t->tensor->member->flat) ? t->root : fsdpi_holder_of_slice(t->model, slice);
}

/* Where the slice's own values are on this rank; NULL if it does not hold them. */
static unsigned char *held_values(const transfer *t, const part *p)
{
    const fsdpi_flat *flat = t->tensor->member->flat;
    const fsdpi_held  held = fsdpi_held_slices(flat);

    if (p->slice < held.first || p->slice >= held.first + held.n) {
        return NULL;
    }
    return fsdpi_at(t->model, fsdpi_slice_in(flat, flat->master, p->slice - held.first), p->slice_begin);
}

/* On a GPU the piece passes through memory of the host. */
static fsdp_status move_piece_of_device(const transfer *t, unsigned char *held, unsigned char *value, size_t n,
                                        int giver)
{
    const fsdp_dtype dtype  = t->model->master_dtype;
    unsigned char   *buffer = value != NULL ? value : t->piece;

    if (!t->imports && t->model->ctx->rank == giver) {
        fsdpi_compute_read(t->model, buffer, dtype, held, dtype, n);
    }
    FSDP_TRY(fsdp_broadcast(t->model->ctx, buffer, n, t->model->master_dtype, giver));
    if (t->imports && held != NULL) {
        fsdpi_compute_write(t->model, held, dtype, buffer, dtype, n);
    }
    return FSDP_OK;
}

static fsdp_status move_piece(const transfer *t, unsigned char *held, unsigned char *value, size_t n, int giver)
{
    unsigned char *whole  = t->imports ? value : held;
    unsigned char *target = t->imports ? held : value;
    unsigned char *buffer = t->model->ctx->rank == giver ? whole : target != NULL ? target : t->piece;

    if (fsdpi_is_on_device(t->model)) {
        return move_piece_of_device(t, held, value, n, giver);
    }
    FSDP_TRY(fsdp_broadcast(t->model->ctx, buffer, n, t->model->master_dtype, giver));
    if (target != NULL && target != buffer) {
        t->model->ctx->device->copy(target, buffer, n * fsdpi_master_width(t->model));
    }
    return FSDP_OK;
}

static fsdp_status move_part(const transfer *t, const part *p)
{
    const fsdp_dtype dtype = t->model->master_dtype;
    const size_t     width = fsdpi_master_width(t->model);
    unsigned char   *held  = held_values(t, p);
    unsigned char   *value = t->values != NULL ? t->values + p->tensor_begin * width : NULL;
    const int        giver = t->imports ? t->root : holder_of_slice(t, p->slice);

    if (!t->imports && is_with_root(t, giver)) { /* it holds what it asks for */
        if (value != NULL) {
            fsdpi_compute_read(t->model, value, dtype, held, dtype, p->count);
        }
        return FSDP_OK;
    }
    for (size_t at = 0; at < p->count; at += t->piece_elements) {
        const size_t left = p->count - at;

        FSDP_TRY(move_piece(t, held != NULL ? held + at * width : NULL, value != NULL ? value + at * width : NULL,
                            left < t->piece_elements ? left : t->piece_elements, giver));
    }
    return FSDP_OK;
}

static fsdp_status move_divided(const transfer *t)
{
    for (int slice = 0; slice < t->tensor->member->flat->layout.size; slice++) {
        const part p = part_in_slice(t, slice);

        FSDP_TRY(move_part(t, &p));
    }
    return FSDP_OK;
}

/* An ignored tensor, which every rank has whole: root's is exported, and all are set. */
static fsdp_status move_whole(const transfer *t)
{
    const fsdp_dtype dtype = fsdpi_gathered_dtype(t->model, t->tensor), given = t->model->master_dtype;

    for (size_t at = 0; at < t->tensor->count && (t->imports || t->values != NULL); at += t->piece_elements) {
        const size_t   left   = t->tensor->count - at;
        const size_t   n      = left < t->piece_elements ? left : t->piece_elements;
        unsigned char *values = t->values != NULL ? fsdpi_at(t->model, t->values, at) : t->piece;
        unsigned char *whole  = fsdpi_element_of(t->tensor->whole, at, dtype);

        if (t->imports) {
            FSDP_TRY(fsdp_broadcast(t->model->ctx, values, n, given, t->root));
            fsdpi_compute_write(t->model, whole, dtype, values, given, n);
        } else {
            fsdpi_compute_read(t->model, values, given, whole, dtype, n);
        }
    }
    return FSDP_OK;
}

/* ---- what can be wrong ------------------------------------------------------------------------------------------- */

static fsdp_status check_root(const transfer *t, const char *name, size_t bytes)
{
    fsdp_context *ctx    = t->model->ctx;
    const size_t  needed = t->tensor->count * fsdpi_master_width(t->model);

    if (t->values == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the values of tensor '%s' are NULL on rank %d%s", t->function, name,
                          ctx->rank, t->to_all ? "" : ", its root");
    }
    if (bytes != needed) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: %zu bytes for tensor '%s'; it has %zu", t->function, bytes, name,
                          needed);
    }
    return FSDP_OK;
}

static fsdp_status check_transfer(transfer *t, const char *name, size_t bytes)
{
    fsdp_context *ctx = t->model->ctx;

    FSDP_TRY(fsdpi_between_passes(t->model, t->function));
    const fsdpi_tensor *named = name != NULL ? fsdpi_find_tensor(t->model, name) : NULL;
    if (named == NULL) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the model has no tensor '%.255s'; use a name given to fsdp_unit_add",
                          t->function, name != NULL ? name : "(NULL)");
    }
    t->tensor = named->owner;
    if (t->root < 0 || t->root >= ctx->size) {
        return fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the root is %d; ranks are 0 to %d", t->function, t->root,
                          ctx->size - 1);
    }
    return is_root(t) ? check_root(t, name, bytes) : FSDP_OK;
}

/* Root has the pieces where they belong. */
static fsdp_status allocate_piece(transfer *t)
{
    const size_t most = (size_t)t->model->ctx->config.staging_bytes / fsdpi_master_width(t->model);
    const size_t all  = t->tensor->count;

    t->piece_elements = all < most ? all : most;
    if (is_root(t)) {
        return FSDP_OK;
    }
    t->piece = fsdpi_alloc(t->model->ctx, FSDP_MEMORY_STAGING, t->piece_elements * fsdpi_master_width(t->model));
    return t->piece != NULL ? FSDP_OK : FSDP_ERR_MEMORY;
}

static fsdp_status move(const transfer *t)
{
    if (t->imports) {
        fsdpi_gather_drop(t->model);
    }
    FSDP_TRY(t->tensor->whole != NULL ? move_whole(t) : move_divided(t));
    return fsdpi_step_fail(t->model, fsdpi_compute_status(t->model));
}

static fsdp_status run(transfer *t, const char *name, size_t bytes)
{
    char label[FSDPI_DETAIL_BYTES];

    if (t->model == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the model is NULL; pass one from fsdp_model_create", t->function);
    }
    fsdp_status status = check_transfer(t, name, bytes);
    if (status == FSDP_OK && t->tensor != NULL) {
        status = allocate_piece(t);
    }
    if (!is_root(t)) {
        t->values = NULL;
    }
    name = name != NULL ? name : "";
    (void)snprintf(label, sizeof label, "tensor '%.150s', root %d", name, t->root);
    status = fsdpi_step_agree(t->model, t->function, label, fsdpi_hash_text(FSDPI_HASH_START, name), status, true);
    if (status == FSDP_OK && t->tensor != NULL) {
        status = move(t);
    }
    fsdpi_free(t->model->ctx, FSDP_MEMORY_STAGING, t->piece, t->piece_elements * fsdpi_master_width(t->model));
    return status == FSDP_OK && t->imports ? fsdpi_gather_refresh(t->model, true) : status;
}

fsdp_status fsdp_tensor_export(fsdp_model *model, const char *name, int root, void *values, size_t bytes)
{
    transfer t = {.function = "fsdp_tensor_export", .model = model, .root = root, .values = values};

    return run(&t, name, bytes);
}

fsdp_status fsdp_tensor_export_to_all(fsdp_model *model, const char *name, void *values, size_t bytes)
{
    transfer t = {.function = "fsdp_tensor_export_to_all", .to_all = true, .model = model, .values = values};

    return run(&t, name, bytes);
}

fsdp_status fsdp_tensor_import(fsdp_model *model, const char *name, int root, const void *values, size_t bytes)
{
    transfer t = {.function = "fsdp_tensor_import",
                  .imports  = true,
                  .model    = model,
                  .root     = root,
                  .values   = (unsigned char *)(uintptr_t)values}; /* which are only read */

    return run(&t, name, bytes);
}
