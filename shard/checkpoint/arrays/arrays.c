#include "shard/checkpoint/arrays/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/context/context.h"
#include "lib/device/memory.h"

/* ---- the list ------------------------------------------------------------------------------------------------------ */

fsdpi_array *fsdpi_arrays_find(const fsdpi_arrays *arrays, const char *name)
{
    for (fsdpi_array *array = arrays->first; array != NULL; array = array->next) {
        if (strcmp(array->name, name) == 0) {
            return array;
        }
    }
    return NULL;
}

static size_t struct_bytes(const char *name)
{
    return sizeof(fsdpi_array) + strlen(name) + 1;
}

static size_t image_bytes(const fsdpi_array *array)
{
    if (array->n_bytes != NULL) {
        return array->image_room;
    }
    return fsdpi_box_count(&array->written) * fsdp_dtype_size((fsdp_dtype)array->info.dtype);
}

static void free_array(fsdp_context *ctx, fsdpi_array *array)
{
    if (array->image != NULL) {
        fsdpi_free(ctx, FSDP_MEMORY_STAGING, array->image, image_bytes(array));
    }
    fsdpi_free(ctx, FSDP_MEMORY_BOOKKEEPING, array, struct_bytes(array->name));
}

fsdp_status fsdpi_arrays_take(fsdpi_arrays *arrays, const fsdpi_array *array, const char *name, bool with_image)
{
    fsdpi_array *taken = fsdpi_alloc(arrays->ctx, FSDP_MEMORY_BOOKKEEPING, struct_bytes(name));

    if (taken == NULL) {
        return FSDP_ERR_MEMORY;
    }
    *taken           = *array;
    taken->name      = memcpy(taken + 1, name, strlen(name) + 1);
    taken->info.name = taken->name;
    taken->info.dims = taken->dims;
    if (with_image && image_bytes(taken) > 0) {
        taken->image = fsdpi_alloc(arrays->ctx, FSDP_MEMORY_STAGING, image_bytes(taken));
        if (taken->image == NULL) {
            free_array(arrays->ctx, taken);
            return FSDP_ERR_MEMORY;
        }
    }
    fsdpi_array **end = &arrays->first;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end            = taken;
    arrays->changed = true;
    arrays->n++;
    return FSDP_OK;
}

void fsdpi_arrays_drop_last(fsdpi_arrays *arrays)
{
    fsdpi_array **end = &arrays->first;

    while ((*end)->next != NULL) {
        end = &(*end)->next;
    }
    free_array(arrays->ctx, *end);
    *end            = NULL;
    arrays->changed = true;
    arrays->n--;
}

static void free_layout(fsdpi_arrays *arrays)
{
    fsdpi_file_plan_free(&arrays->plan);
    fsdpi_free(arrays->ctx, FSDP_MEMORY_BOOKKEEPING, arrays->in_file, arrays->n_in_file * sizeof(fsdpi_array *));
    fsdpi_free(arrays->ctx, FSDP_MEMORY_BOOKKEEPING, arrays->parts, arrays->n_parts * sizeof *arrays->parts);
    arrays->in_file   = NULL;
    arrays->n_in_file = 0;
    arrays->parts     = NULL;
    arrays->n_parts   = 0;
}

void fsdpi_arrays_free(fsdpi_arrays *arrays)
{
    while (arrays->first != NULL) {
        fsdpi_array *array = arrays->first;

        arrays->first = array->next;
        free_array(arrays->ctx, array);
    }
    free_layout(arrays);
}

/* ---- bytes of rank 0 ----------------------------------------------------------------------------------------------- */

void fsdpi_bytes_divide(fsdpi_array *bytes, size_t n, bool writes)
{
    fsdpi_box_make_flat(n, 0, n, &bytes->held);
    fsdpi_box_make_flat(n, 0, writes ? n : 0, &bytes->written);
}

void fsdpi_bytes_set(fsdpi_arrays *arrays, fsdpi_array *bytes, size_t n)
{
    if (bytes->dims[0] != n) {
        bytes->dims[0]  = n;
        arrays->changed = true;
    }
    fsdpi_bytes_divide(bytes, n, arrays->ctx->rank == 0);
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const fsdpi_tensor_info *x = &(*(fsdpi_array *const *)a)->info, *y = &(*(fsdpi_array *const *)b)->info;

    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return x->end < y->end ? -1 : x->end > y->end;
}

static fsdp_status plan(fsdpi_arrays *arrays, fsdpi_tensor_info *infos, fsdpi_problem *problem)
{
    const fsdpi_text_pair format = {"format", "pt"};
    size_t                i      = 0;

    for (const fsdpi_array *array = arrays->first; array != NULL; array = array->next) {
        infos[i++] = array->info;
    }
    FSDP_TRY(fsdpi_file_plan_make(FSDPI_SIMULATION_STEM, infos, arrays->n, &format, 1, 0, &arrays->plan, problem));
    i = 0;
    for (fsdpi_array *array = arrays->first; array != NULL; array = array->next, i++) {
        array->info.begin  = infos[i].begin;
        array->info.end    = infos[i].end;
        arrays->in_file[i] = array;
    }
    qsort(arrays->in_file, arrays->n, sizeof(fsdpi_array *), by_place);
    return FSDP_OK;
}

static fsdp_status no_memory(const fsdpi_arrays *arrays, fsdpi_problem *problem)
{
    return fsdpi_problem_memory(problem, "the list of the program's arrays", arrays->n * sizeof(fsdpi_array *));
}

fsdp_status fsdpi_arrays_lay_out(fsdpi_arrays *arrays, fsdpi_problem *problem)
{
    fsdp_context *ctx = arrays->ctx;

    if (!arrays->changed) {
        return FSDP_OK;
    }
    free_layout(arrays);
    if (arrays->n == 0) { /* the only one was given up again */
        arrays->changed = false;
        return FSDP_OK;
    }
    fsdpi_tensor_info *infos = calloc(arrays->n + 1, sizeof *infos);
    arrays->in_file          = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, arrays->n * sizeof(fsdpi_array *));
    arrays->n_in_file        = arrays->in_file != NULL ? arrays->n : 0;
    fsdp_status status =
        infos != NULL && arrays->in_file != NULL ? plan(arrays, infos, problem) : no_memory(arrays, problem);
    free(infos);
    FSDP_TRY(status);
    const size_t n = fsdpi_rows_count_parts(arrays);
    arrays->parts  = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, n * sizeof *arrays->parts);
    if (arrays->parts == NULL && n > 0) {
        return no_memory(arrays, problem);
    }
    arrays->n_parts = n;
    arrays->changed = false;
    return FSDP_OK;
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

size_t fsdpi_arrays_staging(const fsdpi_arrays *arrays)
{
    size_t bytes = 0;

    for (const fsdpi_array *array = arrays->first; array != NULL; array = array->next) {
        bytes += array->image != NULL ? fsdpi_alloc_size(image_bytes(array)) : 0;
    }
    return bytes;
}

size_t fsdpi_arrays_bookkeeping(const fsdpi_arrays *arrays)
{
    size_t bytes = fsdpi_alloc_size(arrays->n_in_file * sizeof(fsdpi_array *)) +
                   fsdpi_alloc_size(arrays->n_parts * sizeof *arrays->parts);

    for (const fsdpi_array *array = arrays->first; array != NULL; array = array->next) {
        bytes += fsdpi_alloc_size(struct_bytes(array->name));
    }
    return bytes;
}

void fsdpi_arrays_snapshot(const fsdpi_arrays *arrays)
{
    for (const fsdpi_array *array = arrays->first; array != NULL; array = array->next) {
        if (array->image != NULL) {
            fsdpi_rows_pack(array, array->image);
        }
    }
}

uint64_t fsdpi_array_hash(const fsdpi_array *array)
{
    const size_t bytes = fsdpi_box_count(&array->held) * fsdp_dtype_size((fsdp_dtype)array->info.dtype);

    return bytes > 0 ? fsdpi_checksum(array->memory, bytes) : 0;
}
