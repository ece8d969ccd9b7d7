#include "shard/checkpoint/arrays/keyed.h"

#include <string.h>

#include "lib/base/error.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

fsdpi_keyed *fsdpi_keyed_find(const fsdpi_arrays *arrays, const char *name)
{
    for (fsdpi_keyed *keyed = arrays->keyed; keyed != NULL; keyed = keyed->next) {
        if (strcmp(keyed->name, name) == 0) {
            return keyed;
        }
    }
    return NULL;
}

static size_t struct_bytes(size_t n, const char *name)
{
    return sizeof(fsdpi_keyed) + n * sizeof(fsdpi_array *) + strlen(name) + 1;
}

/* The last array that was taken. */
static fsdpi_array *last_array(const fsdpi_arrays *arrays)
{
    fsdpi_array *last = arrays->first;

    while (last->next != NULL) {
        last = last->next;
    }
    return last;
}

static fsdp_status take_columns(fsdpi_arrays *arrays, fsdpi_keyed *keyed, const fsdpi_array *columns,
                                const char *const *names)
{
    for (size_t i = 0; i < keyed->n; i++) {
        const fsdp_status status = fsdpi_arrays_take(arrays, &columns[i], names[i], false);

        if (status != FSDP_OK) {
            for (; i > 0; i--) {
                fsdpi_arrays_drop_last(arrays);
            }
            return status;
        }
        keyed->columns[i]        = last_array(arrays);
        keyed->columns[i]->keyed = keyed;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_keyed_take(fsdpi_arrays *arrays, const char *name, size_t n, const fsdpi_array *columns,
                             const char *const *names)
{
    const size_t bytes = struct_bytes(n, name);
    fsdpi_keyed *keyed = fsdpi_alloc(arrays->ctx, FSDP_MEMORY_BOOKKEEPING, bytes);

    if (keyed == NULL) {
        return FSDP_ERR_MEMORY;
    }
    keyed->n                 = n;
    keyed->columns           = (fsdpi_array **)(keyed + 1);
    keyed->name              = memcpy(keyed->columns + n, name, strlen(name) + 1);
    const fsdp_status status = take_columns(arrays, keyed, columns, names);
    if (status != FSDP_OK) {
        fsdpi_free(arrays->ctx, FSDP_MEMORY_BOOKKEEPING, keyed, bytes);
        return status;
    }
    fsdpi_keyed_place(keyed, 0, 0);
    keyed->next   = arrays->keyed;
    arrays->keyed = keyed;
    return FSDP_OK;
}

void fsdpi_keyed_drop_last(fsdpi_arrays *arrays)
{
    fsdpi_keyed *last = arrays->keyed;

    for (size_t i = 0; i < last->n; i++) {
        fsdpi_arrays_drop_last(arrays);
    }
    arrays->keyed = last->next;
    fsdpi_free(arrays->ctx, FSDP_MEMORY_BOOKKEEPING, last, struct_bytes(last->n, last->name));
}

void fsdpi_keyed_free(fsdpi_arrays *arrays)
{
    while (arrays->keyed != NULL) {
        fsdpi_keyed *keyed = arrays->keyed;

        arrays->keyed = keyed->next;
        fsdpi_keyed_release(arrays->ctx, keyed);
        fsdpi_free(arrays->ctx, FSDP_MEMORY_BOOKKEEPING, keyed, struct_bytes(keyed->n, keyed->name));
    }
}

size_t fsdpi_keyed_bookkeeping(const fsdpi_arrays *arrays)
{
    size_t bytes = 0;

    for (const fsdpi_keyed *keyed = arrays->keyed; keyed != NULL; keyed = keyed->next) {
        bytes += fsdpi_alloc_size(struct_bytes(keyed->n, keyed->name));
    }
    return bytes;
}

/* ---- memory of rows ------------------------------------------------------------------------------------------------- */

/* A column of one value per row has one dimension. */
static size_t elements_of_row(const fsdpi_array *column)
{
    return column->info.n_dims > 1 ? (size_t)column->dims[1] : 1;
}

size_t fsdpi_keyed_width(const fsdpi_array *column)
{
    return elements_of_row(column) * fsdp_dtype_size((fsdp_dtype)column->info.dtype);
}

fsdp_status fsdpi_keyed_allocate(fsdp_context *ctx, fsdpi_keyed *keyed, size_t rows)
{
    fsdpi_keyed_release(ctx, keyed);
    keyed->rows = rows;
    for (size_t i = 0; i < keyed->n && rows > 0; i++) {
        fsdpi_array *column = keyed->columns[i];

        column->memory = fsdpi_alloc(ctx, FSDP_MEMORY_STAGING, rows * fsdpi_keyed_width(column));
        if (column->memory == NULL) {
            fsdpi_keyed_release(ctx, keyed);
            return FSDP_ERR_MEMORY;
        }
    }
    return FSDP_OK;
}

void fsdpi_keyed_release(fsdp_context *ctx, fsdpi_keyed *keyed)
{
    for (size_t i = 0; i < keyed->n; i++) {
        fsdpi_array *column = keyed->columns[i];

        fsdpi_free(ctx, FSDP_MEMORY_STAGING, column->memory, keyed->rows * fsdpi_keyed_width(column));
        column->memory = NULL;
    }
    keyed->rows = 0;
    keyed->read = false;
}

void fsdpi_keyed_place(fsdpi_keyed *keyed, uint64_t first, uint64_t all)
{
    for (size_t i = 0; i < keyed->n; i++) {
        fsdpi_array *column = keyed->columns[i];
        const size_t n      = elements_of_row(column);

        column->dims[0] = all;
        fsdpi_box_make_flat((size_t)all * n, (size_t)first * n, keyed->rows * n, &column->held);
        column->written = column->held;
    }
}
