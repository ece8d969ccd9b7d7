/*
 * fsdp_checkpoint_add_rows(): rows that are known by numbers become part of a checkpoint, as an array of the numbers and one for each
 * column; and what the program says before a save, and is told behind a load.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/collectives.h"
#include "lib/base/hash.h"
#include "lib/device/memory.h"
#include "shard/checkpoint/arrays/keyed.h"
#include "shard/checkpoint/write/add.h"
#include "shard/checkpoint/write/checkpoint.h"

#define ADD "fsdp_checkpoint_add_rows"
#define SET "fsdp_checkpoint_set_rows"
#define GET "fsdp_checkpoint_get_rows"

typedef struct addition {
    fsdp_checkpoint   *checkpoint;
    fsdp_context      *ctx;
    const char        *name;
    size_t             n_columns;
    const fsdp_column *columns;
    fsdpi_array       *arrays; /* the numbers first */
    char             **names;  /* of their tensors */
} addition;

/* ---- adding ------------------------------------------------------------------------------------------------------------ */

static fsdp_status refuse(const addition *a, const char *why)
{
    return fsdpi_fail_together(a->ctx, FSDP_ERR_ARG, ADD ": rows '%.200s': %s", a->name != NULL ? a->name : "", why);
}

static fsdp_status set_column(addition *a, size_t i, const fsdp_column *column)
{
    const size_t size = strlen(a->name) + strlen(column->name) + 2;

    a->names[i] = malloc(size);
    if (a->names[i] == NULL) {
        return fsdpi_fail_together(a->ctx, FSDP_ERR_MEMORY, ADD ": no memory for the name of a column");
    }
    (void)snprintf(a->names[i], size, "%s.%s", a->name, column->name);
    FSDP_TRY(fsdpi_array_check_name(a->ctx, &a->checkpoint->arrays, ADD, a->names[i]));
    for (size_t other = 0; other < i; other++) {
        if (strcmp(a->names[other], a->names[i]) == 0) {
            return refuse(a, "two of its columns have one name, or one is called id, as the numbers are; rename it");
        }
    }
    if (fsdp_dtype_size(column->dtype) == 0 || column->width == 0 || column->width > (size_t)INT32_MAX) {
        return refuse(a, "a column's type is none of fsdp_dtype, or its width is 0 or above 2^31 - 1");
    }
    a->arrays[i].info = (fsdpi_tensor_info){.dtype = (fsdpi_stored)column->dtype, .n_dims = column->width > 1 ? 2 : 1};
    a->arrays[i].dims[1] = column->width;
    return FSDP_OK;
}

static fsdp_status check(addition *a)
{
    const fsdp_column ids = {FSDPI_KEYED_IDS, FSDP_I64, 1};

    if (a->name == NULL || a->name[0] == '\0') {
        return refuse(a, "they need a name");
    }
    if (a->n_columns == 0 || a->columns == NULL) {
        return refuse(a, "there are no columns, or their pointer is NULL");
    }
    a->arrays = calloc(a->n_columns + 1, sizeof *a->arrays);
    a->names  = calloc(a->n_columns + 1, sizeof *a->names);
    if (a->arrays == NULL || a->names == NULL) {
        return fsdpi_fail_together(a->ctx, FSDP_ERR_MEMORY, ADD ": no memory for the list of columns");
    }
    FSDP_TRY(set_column(a, 0, &ids));
    for (size_t i = 0; i < a->n_columns; i++) {
        if (a->columns[i].name == NULL || a->columns[i].name[0] == '\0') {
            return refuse(a, "a column has no name");
        }
        FSDP_TRY(set_column(a, i + 1, &a->columns[i]));
    }
    return FSDP_OK;
}

static uint64_t hash(const addition *a)
{
    uint64_t h = fsdpi_hash_text(FSDPI_HASH_START, a->name);

    for (size_t i = 0; i < a->n_columns; i++) {
        h = fsdpi_hash_text(h, a->columns[i].name);
        h = fsdpi_hash_u64(fsdpi_hash_u64(h, (uint64_t)a->columns[i].dtype), a->columns[i].width);
    }
    return h;
}

static fsdp_status agree(const addition *a, fsdp_status status)
{
    char label[FSDPI_DETAIL_BYTES];

    (void)snprintf(label, sizeof label, "rows '%.100s' of %zu columns", a->name != NULL ? a->name : "", a->n_columns);
    return fsdpi_agree(a->ctx, ADD, label, status == FSDP_OK ? hash(a) : 0, status, true);
}

static fsdp_status take(const addition *a)
{
    fsdpi_arrays *arrays = &a->checkpoint->arrays;
    fsdp_status status = fsdpi_keyed_take(arrays, a->name, a->n_columns + 1, a->arrays, (const char *const *)a->names);
    const bool  taken  = status == FSDP_OK;

    status = fsdpi_agree(a->ctx, ADD, "memory", 0, status, true);
    if (status != FSDP_OK && taken) {
        fsdpi_keyed_drop_last(arrays);
    }
    return status;
}

static void release(const addition *a)
{
    for (size_t i = 0; a->names != NULL && i <= a->n_columns; i++) {
        free(a->names[i]);
    }
    free(a->names);
    free(a->arrays);
}

fsdp_status fsdp_checkpoint_add_rows(fsdp_checkpoint *checkpoint, const char *name, size_t n_columns,
                                     const fsdp_column *columns)
{
    if (checkpoint == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, ADD ": the checkpoint is NULL; pass one from fsdp_checkpoint_open");
    }
    addition a = {
        .checkpoint = checkpoint, .ctx = checkpoint->ctx, .name = name, .n_columns = n_columns, .columns = columns};

    FSDP_TRY(fsdp_checkpoint_wait(checkpoint)); /* it still reads the list */
    fsdp_status status = agree(&a, check(&a));
    if (status == FSDP_OK) {
        status = take(&a);
    }
    release(&a);
    return status;
}

/* ---- before a save, and behind a load --------------------------------------------------------------------------------- */

/* NULL: FSDP_ERR_ARG, recorded and printed. */
static fsdpi_keyed *find(const fsdp_checkpoint *checkpoint, const char *function, const char *name)
{
    if (checkpoint == NULL || name == NULL) {
        (void)fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the checkpoint or the name is NULL", function);
        return NULL;
    }
    fsdpi_keyed *found = fsdpi_keyed_find(&checkpoint->arrays, name);
    if (found == NULL) {
        (void)fsdpi_fail(checkpoint->ctx, FSDP_ERR_ARG,
                         "%s: there are no rows '%.200s'; add them with fsdp_checkpoint_add_rows", function, name);
    }
    return found;
}

static bool are_there(const fsdpi_keyed *keyed, const int64_t *ids, const void *const *columns)
{
    if (ids == NULL || columns == NULL) {
        return false;
    }
    for (size_t i = 0; i + 1 < keyed->n; i++) {
        if (columns[i] == NULL) {
            return false;
        }
    }
    return true;
}

fsdp_status fsdp_checkpoint_set_rows(fsdp_checkpoint *checkpoint, const char *name, size_t n_rows, const int64_t *ids,
                                     const void *const *columns)
{
    fsdpi_keyed *keyed = find(checkpoint, SET, name);

    if (keyed == NULL) {
        return FSDP_ERR_ARG;
    }
    if (n_rows > 0 && !are_there(keyed, ids, columns)) {
        return fsdpi_fail(checkpoint->ctx, FSDP_ERR_ARG, SET ": the numbers or a column of %zu rows '%.200s' is NULL",
                          n_rows, name);
    }
    keyed->is_set  = true;
    keyed->n_given = n_rows;
    keyed->ids     = ids;
    keyed->given   = columns;
    return FSDP_OK;
}

fsdp_status fsdp_checkpoint_get_rows(const fsdp_checkpoint *checkpoint, const char *name, size_t *n_rows,
                                     const int64_t **ids, const void **columns)
{
    const fsdpi_keyed *keyed = find(checkpoint, GET, name);

    if (keyed == NULL) {
        return FSDP_ERR_ARG;
    }
    if (n_rows == NULL || columns == NULL) {
        return fsdpi_fail(checkpoint->ctx, FSDP_ERR_ARG, GET ": `n_rows` or `columns` is NULL");
    }
    if (!keyed->read) {
        return fsdpi_fail(checkpoint->ctx, FSDP_ERR_STATE,
                          GET ": no rows '%.200s' have been read since the last save; call fsdp_checkpoint_restore",
                          name);
    }
    *n_rows = keyed->rows;
    if (ids != NULL) {
        *ids = (const int64_t *)(const void *)keyed->columns[0]->memory;
    }
    for (size_t i = 0; i + 1 < keyed->n; i++) {
        columns[i] = keyed->columns[i + 1]->memory;
    }
    return FSDP_OK;
}
