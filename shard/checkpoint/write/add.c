/*
 * fsdp_checkpoint_add(): an array becomes part of a checkpoint once all ranks know that it can.
 * Cost: two agreements, one allreduce of 32 bytes; only where boxes do not tile are they gathered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/collectives.h"
#include "lib/base/hash.h"
#include "lib/device/memory.h"
#include "shard/checkpoint/arrays/arrays.h"
#include "shard/checkpoint/common/checks.h"
#include "shard/checkpoint/format/utf8.h"
#include "shard/checkpoint/write/add.h"
#include "shard/checkpoint/write/caching.h"
#include "shard/checkpoint/write/checkpoint.h"

#define ADD "fsdp_checkpoint_add"

typedef struct addition {
    fsdp_checkpoint *checkpoint;
    fsdp_context    *ctx;
    const char      *name;
    fsdp_dtype       dtype;
    size_t           n_dims;
    const size_t    *shape;
    const fsdp_box  *box;
    void            *memory;
    fsdpi_array      array;
} addition;

/* ---- what is wrong on this rank ------------------------------------------------------------------------------------ */

static fsdp_status refuse(const addition *a, const char *why)
{
    return fsdpi_fail_together(a->ctx, FSDP_ERR_ARG, ADD ": array '%.200s': %s", a->name != NULL ? a->name : "", why);
}

static const char *what_is_wrong_with(const fsdpi_arrays *arrays, const char *name)
{
    if (name == NULL || name[0] == '\0' || strcmp(name, "__metadata__") == 0) {
        return "it needs a name, which is not __metadata__";
    }
    if (name[fsdpi_utf8_good(name)] != '\0') {
        return "its name is not UTF-8; rename it";
    }
    return fsdpi_arrays_find(arrays, name) == NULL ? NULL
                                                   : "there is an array of that name already; rename one of them";
}

fsdp_status fsdpi_array_check_name(fsdp_context *ctx, const fsdpi_arrays *arrays, const char *function,
                                   const char *name)
{
    const char *wrong = what_is_wrong_with(arrays, name);

    return wrong == NULL ? FSDP_OK
                         : fsdpi_fail_together(ctx, FSDP_ERR_ARG, "%s: array '%.200s': %s", function,
                                               name != NULL ? name : "", wrong);
}

static fsdp_status check_name(const addition *a)
{
    return fsdpi_array_check_name(a->ctx, &a->checkpoint->arrays, ADD, a->name);
}

static fsdp_status check_shape(addition *a)
{
    uint64_t bytes = fsdp_dtype_size(a->dtype);

    if (bytes == 0) {
        return refuse(a, "its type is none of fsdp_dtype");
    }
    if (a->n_dims > FSDP_MAX_DIMS || (a->n_dims > 0 && a->shape == NULL)) {
        return refuse(a, a->n_dims > FSDP_MAX_DIMS ? "it has more than FSDP_MAX_DIMS dimensions" : "its shape is NULL");
    }
    for (size_t d = 0; d < a->n_dims; d++) {
        a->array.dims[d] = a->shape[d];
        if (__builtin_mul_overflow(bytes, (uint64_t)a->shape[d], &bytes) || bytes > (uint64_t)INT64_MAX / 4) {
            return refuse(a, "it has more than 2^61 bytes");
        }
    }
    a->array.info = (fsdpi_tensor_info){.dtype = (fsdpi_stored)a->dtype, .n_dims = a->n_dims};
    return FSDP_OK;
}

enum { SHARE_BYTES = 64 << 10 }; /* of a replicated array: a rank writes a multiple of these */

/* Of what all hold alike each rank writes a part, in one piece. */
static void divide(addition *a)
{
    size_t elements = 1;

    for (size_t d = 0; d < a->n_dims; d++) {
        elements *= a->shape[d];
    }
    const size_t unit = SHARE_BYTES / fsdp_dtype_size(a->dtype), ranks = (size_t)a->ctx->size;
    const size_t share = ((elements + ranks - 1) / ranks + unit - 1) / unit * unit;
    const size_t first = share * (size_t)a->ctx->rank < elements ? share * (size_t)a->ctx->rank : elements;

    a->array.replicated = true;
    fsdpi_box_make_flat(elements, 0, elements, &a->array.held);
    fsdpi_box_make_flat(elements, first, elements - first < share ? elements - first : share, &a->array.written);
}

static fsdp_status take_box(addition *a)
{
    fsdpi_problem problem;

    if (a->box == NULL) {
        divide(a);
        return FSDP_OK;
    }
    if (a->n_dims == 0) {
        return refuse(a, "a scalar has no box; pass NULL, and the same value on all ranks");
    }
    if (fsdpi_box_make(a->box, a->n_dims, a->shape, &a->array.held, &problem) != FSDP_OK) {
        return refuse(a, problem.text);
    }
    a->array.written = a->array.held;
    return FSDP_OK;
}

static fsdp_status check(addition *a)
{
    FSDP_TRY(check_name(a));
    FSDP_TRY(check_shape(a));
    FSDP_TRY(take_box(a));
    a->array.memory = a->memory;
    return a->memory != NULL || fsdpi_box_count(&a->array.held) == 0 ? FSDP_OK : refuse(a, "its memory is NULL");
}

/* ---- what is wrong between ranks ----------------------------------------------------------------------------------- */

static void describe(const addition *a, char *label, size_t size)
{
    size_t used = (size_t)snprintf(label, size, "array '%.100s', %s [", a->name != NULL ? a->name : "",
                                   fsdp_dtype_name(a->dtype));

    for (size_t d = 0; d < a->n_dims && a->shape != NULL && d < FSDP_MAX_DIMS && used < size; d++) {
        used += (size_t)snprintf(label + used, size - used, "%s%zu", d > 0 ? ", " : "", a->shape[d]);
    }
    if (used < size) {
        (void)snprintf(label + used, size - used, "], %s", a->box != NULL ? "a box" : "the whole of it");
    }
}

static fsdp_status agree(addition *a, fsdp_status status)
{
    char label[FSDPI_DETAIL_BYTES];

    describe(a, label, sizeof label);
    return fsdpi_agree(a->ctx, ADD, label, status == FSDP_OK ? fsdpi_hash_text(FSDPI_HASH_START, a->name) : 0, status,
                       true);
}

/* Gathers all boxes to say what is wrong with them: the same words on every rank. */
static fsdp_status explain(const addition *a)
{
    const size_t  n = 2 * a->n_dims, ranks = (size_t)a->ctx->size, bytes = n * ranks * sizeof(int64_t);
    fsdpi_problem problem = {0};
    int64_t      *boxes   = fsdpi_alloc(a->ctx, FSDP_MEMORY_BOOKKEEPING, bytes);
    fsdp_status   status  = fsdpi_agree(a->ctx, ADD, "memory", 0, boxes != NULL ? FSDP_OK : FSDP_ERR_MEMORY, true);

    if (status == FSDP_OK && boxes != NULL) {
        int64_t *mine = boxes + n * (size_t)a->ctx->rank;

        for (size_t d = 0; d < a->n_dims; d++) {
            mine[d]             = (int64_t)a->box->offset[d];
            mine[a->n_dims + d] = (int64_t)a->box->extent[d];
        }
        status = fsdp_allgather(a->ctx, FSDP_IN_PLACE, boxes, n, FSDP_I64);
        if (status == FSDP_OK) {
            (void)fsdpi_tiling_explain(a->name, boxes, ranks, a->shape, a->n_dims, &problem);
            status = fsdpi_fail_problem(a->ctx, ADD, &problem);
            status = fsdpi_agree(a->ctx, ADD, "boxes", 0, status, true);
        }
    }
    fsdpi_free(a->ctx, FSDP_MEMORY_BOOKKEEPING, boxes, bytes);
    return status;
}

static fsdp_status check_tiling(const addition *a)
{
    int64_t sum[FSDPI_TILING_WORDS] = {0};

    if (a->box == NULL) {
        return FSDP_OK;
    }
    fsdpi_tiling_add(a->box->offset, a->box->extent, a->n_dims, sum);
    FSDP_TRY(fsdp_allreduce(a->ctx, FSDP_IN_PLACE, sum, FSDPI_TILING_WORDS, FSDP_I64, FSDP_SUM));
    return fsdpi_tiling_holds(sum, a->shape, a->n_dims) ? FSDP_OK : explain(a);
}

/* ---- the public functions ------------------------------------------------------------------------------------------- */

static fsdp_status take(addition *a)
{
    fsdp_checkpoint *c      = a->checkpoint;
    fsdp_status      status = fsdpi_arrays_take(&c->arrays, &a->array, a->name, c->options.asynchronous != 0);
    const bool       taken  = status == FSDP_OK;

    status = fsdpi_agree(a->ctx, ADD, "memory", 0, status, true);
    if (status != FSDP_OK && taken) {
        fsdpi_arrays_drop_last(&c->arrays);
    }
    return status == FSDP_OK ? fsdpi_caching_reserve(c, ADD) : status;
}

static fsdp_status check_bytes(addition *a, size_t *n_bytes)
{
    FSDP_TRY(check_name(a));
    if (n_bytes == NULL || a->memory == NULL || a->array.room == 0) {
        return refuse(a, "the pointer to its bytes, or to how many there are, is NULL, or there is room for none");
    }
    if (a->array.room > (size_t)INT64_MAX / 4) {
        return refuse(a, "it has more than 2^61 bytes");
    }
    a->array.info       = (fsdpi_tensor_info){.dtype = FSDPI_STORED_U8, .n_dims = 1};
    a->array.memory     = a->memory;
    a->array.n_bytes    = n_bytes;
    a->array.image_room = a->ctx->rank == 0 ? a->array.room : 0;
    fsdpi_bytes_divide(&a->array, 0, false);
    return FSDP_OK;
}

fsdp_status fsdp_checkpoint_add_bytes(fsdp_checkpoint *checkpoint, const char *name, void *bytes, size_t room,
                                      size_t *n_bytes)
{
    if (checkpoint == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, ADD "_bytes: the checkpoint is NULL; pass one from fsdp_checkpoint_open");
    }
    addition a = {.checkpoint = checkpoint,
                  .ctx        = checkpoint->ctx,
                  .name       = name,
                  .dtype      = FSDP_U8,
                  .n_dims     = 1,
                  .shape      = &room,
                  .memory     = bytes,
                  .array      = {.room = room}};

    FSDP_TRY(fsdp_checkpoint_wait(checkpoint));
    FSDP_TRY(agree(&a, check_bytes(&a, n_bytes)));
    return take(&a);
}

fsdp_status fsdp_checkpoint_add(fsdp_checkpoint *checkpoint, const char *name, fsdp_dtype dtype, size_t n_dims,
                                const size_t *shape, const fsdp_box *box, void *memory)
{
    if (checkpoint == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, ADD ": the checkpoint is NULL; pass one from fsdp_checkpoint_open");
    }
    addition a = {.checkpoint = checkpoint,
                  .ctx        = checkpoint->ctx,
                  .name       = name,
                  .dtype      = dtype,
                  .n_dims     = n_dims,
                  .shape      = shape,
                  .box        = box,
                  .memory     = memory};

    FSDP_TRY(fsdp_checkpoint_wait(checkpoint)); /* it still reads the list */
    FSDP_TRY(agree(&a, check(&a)));
    FSDP_TRY(check_tiling(&a));
    return take(&a);
}
