#include "shard/checkpoint/read/arrays.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/context/context.h"
#include "shard/checkpoint/arrays/keyed.h"

#define FILE_NAME FSDPI_SIMULATION_STEM ".safetensors"

fsdp_status fsdpi_array_source_open(fsdpi_array_source *source, const fsdpi_checksums *sums, const char *folder,
                                    fsdpi_problem *problem)
{
    return source->arrays == NULL || fsdpi_checksums_find(sums, FILE_NAME) == NULL
               ? FSDP_OK
               : fsdpi_tensor_files_open_in(folder, FSDPI_SIMULATION_STEM, &source->files, problem);
}

void fsdpi_array_source_close(fsdpi_array_source *source)
{
    fsdpi_tensor_files_close(&source->files);
}

/* Of `n` things, the first of a rank's even share. */
static uint64_t share_begin(uint64_t n, uint64_t rank, uint64_t ranks)
{
    return n / ranks * rank + n % ranks * rank / ranks;
}

/* ---- matching ------------------------------------------------------------------------------------------------------ */

/* Names of files are printed as they are: problems replace what cannot be. */
static void report(const fsdpi_array_source *source, fsdpi_misfits *misfits, const char *name, const char *what)
{
    fsdpi_problem problem = {0};

    (void)fsdpi_problem_set(&problem, FSDP_ERR_ARG, "array '%s' %s", name, what);
    fsdpi_misfit_tell(source->arrays->ctx, "fsdp_checkpoint_restore", &problem, misfits);
}

static bool fits(const fsdpi_array *array, const fsdpi_tensor_info *b)
{
    const fsdpi_tensor_info *a     = &array->info;
    const size_t             first = array->keyed != NULL; /* of any number of rows */

    if (array->n_bytes != NULL) {
        return b->dtype == FSDPI_STORED_U8 && b->n_dims == 1 && b->dims[0] <= array->room;
    }
    return a->dtype == b->dtype && a->n_dims == b->n_dims &&
           (a->n_dims <= first || memcmp(a->dims + first, b->dims + first, (a->n_dims - first) * sizeof *a->dims) == 0);
}

/* How many rows the file has; none where it has not all columns, or these are not of one length. */
static bool count_rows(const fsdpi_array_source *source, const fsdpi_keyed *keyed, uint64_t *rows)
{
    for (size_t i = 0; i < keyed->n; i++) {
        const fsdpi_placed_tensor *tensor = fsdpi_tensor_files_find(&source->files, keyed->columns[i]->name);

        if (tensor == NULL || !fits(keyed->columns[i], tensor->info) || (i > 0 && tensor->info->dims[0] != *rows)) {
            *rows = 0;
            return false;
        }
        *rows = tensor->info->dims[0];
    }
    return true;
}

static void report_shape(const fsdpi_array_source *source, fsdpi_misfits *misfits, const fsdpi_array *array,
                         const fsdpi_tensor_info *theirs)
{
    const uint64_t    room = array->room;
    fsdpi_tensor_info ours = array->info;
    char              shape[160], needed[160], what[400];

    ours.dims = array->n_bytes != NULL ? &room : ours.dims;

    misfits->mis_shaped++;
    fsdpi_describe_shape(theirs, shape, sizeof shape);
    fsdpi_describe_shape(&ours, needed, sizeof needed);
    (void)snprintf(what, sizeof what, "is %s %s in the file, and was added as %s %s", fsdpi_stored_name(theirs->dtype),
                   shape, fsdpi_stored_name(ours.dtype), needed);
    report(source, misfits, ours.name, what);
}

/* What is missing, or of another type, has been told of each column. */
static void match_rows(const fsdpi_array_source *source, const fsdp_checkpoint_load_options *options,
                       fsdpi_misfits *misfits)
{
    const size_t told = misfits->missing + misfits->mis_shaped;
    uint64_t     rows = 0;

    for (const fsdpi_keyed *keyed = source->arrays->keyed; keyed != NULL; keyed = keyed->next) {
        if (!count_rows(source, keyed, &rows) && told == 0 && !options->allow_missing && !options->allow_mis_shaped) {
            misfits->mis_shaped++;
            report(source, misfits, keyed->columns[0]->name, "has another length than a column of these rows");
        }
    }
}

void fsdpi_array_source_match(const fsdpi_array_source *source, const fsdp_checkpoint_load_options *options,
                              fsdpi_misfits *misfits)
{
    if (source->arrays == NULL) {
        return;
    }
    for (const fsdpi_array *array = source->arrays->first; array != NULL; array = array->next) {
        const fsdpi_placed_tensor *tensor = fsdpi_tensor_files_find(&source->files, array->name);

        if (tensor == NULL && !options->allow_missing) {
            misfits->missing++;
            report(source, misfits, array->name, "is missing in the checkpoint");
        } else if (tensor != NULL && !fits(array, tensor->info) && !options->allow_mis_shaped) {
            report_shape(source, misfits, array, tensor->info);
        }
    }
    for (size_t i = 0; i < source->files.n_tensors && !options->allow_extra; i++) {
        const char *name = source->files.tensors[i].info->name;

        if (fsdpi_arrays_find(source->arrays, name) == NULL) {
            misfits->extra++;
            report(source, misfits, name, "is in the checkpoint and has not been added");
        }
    }
    match_rows(source, options, misfits);
}

fsdp_status fsdpi_array_source_make_room(const fsdpi_array_source *source, fsdpi_problem *problem)
{
    const fsdp_context *ctx   = source->arrays != NULL ? source->arrays->ctx : NULL;
    fsdpi_keyed        *keyed = source->arrays != NULL ? source->arrays->keyed : NULL;

    for (; keyed != NULL; keyed = keyed->next) {
        const uint64_t ranks = (uint64_t)ctx->size, rank = (uint64_t)ctx->rank;
        uint64_t       rows = 0;

        (void)count_rows(source, keyed, &rows);
        const uint64_t first = share_begin(rows, rank, ranks), end = share_begin(rows, rank + 1, ranks);
        if (fsdpi_keyed_allocate(source->arrays->ctx, keyed, (size_t)(end - first)) != FSDP_OK) {
            return fsdpi_problem_memory(problem, keyed->name, (size_t)(end - first));
        }
        fsdpi_keyed_place(keyed, first, rows);
    }
    return FSDP_OK;
}

uint64_t fsdpi_array_source_fingerprint(const fsdpi_array_source *source, uint64_t hash)
{
    for (size_t i = 0; i < source->files.n_tensors; i++) {
        const fsdpi_tensor_info *info = source->files.tensors[i].info;

        hash = fsdpi_hash_text(hash, info->name);
        hash = fsdpi_hash_u64(fsdpi_hash_u64(hash, info->begin), (uint64_t)info->dtype);
    }
    return hash;
}

/* ---- checking ------------------------------------------------------------------------------------------------------ */

/* Chunks `first` to `end`. */
static fsdp_status check_chunks(const fsdpi_array_source *source, const fsdpi_file_sums *sums, size_t first, size_t end,
                                void *scratch, fsdpi_problem *problem)
{
    const fsdpi_tensor_file *file = &source->files.files[0];

    for (size_t i = first; i < end; i++) {
        FSDP_TRY(fsdpi_chunk_verify(file->fd, file->path, sums, i, scratch, problem));
    }
    return FSDP_OK;
}

/* Those of the file that is open; NULL where none is. */
static fsdp_status find_sums(const fsdpi_array_source *source, const fsdpi_checksums *sums,
                             const fsdpi_file_sums **found, fsdpi_problem *problem)
{
    *found = NULL;
    if (source->files.n_files == 0) {
        return FSDP_OK;
    }
    *found = fsdpi_checksums_find(sums, FILE_NAME);
    return *found != NULL && (*found)->bytes == source->files.files[0].header.file_bytes
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: is not the file that state.json has checksums of",
                                   source->files.files[0].path);
}

fsdp_status fsdpi_array_source_verify_header(const fsdpi_array_source *source, const fsdpi_checksums *sums,
                                             void *scratch, fsdpi_problem *problem)
{
    const fsdpi_file_sums *found;

    FSDP_TRY(find_sums(source, sums, &found, problem));
    return found == NULL ? FSDP_OK
                         : check_chunks(source, found, 0,
                                        fsdpi_chunk_of(found, source->files.files[0].header.data_offset - 1) + 1,
                                        scratch, problem);
}

fsdp_status fsdpi_array_source_verify(const fsdpi_array_source *source, const fsdpi_checksums *sums, void *scratch,
                                      fsdpi_problem *problem)
{
    const fsdpi_file_sums *found;

    FSDP_TRY(find_sums(source, sums, &found, problem));
    if (found == NULL) {
        return FSDP_OK;
    }
    const fsdp_context *ctx = source->arrays->ctx;
    const uint64_t      n = found->n_chunks, ranks = (uint64_t)ctx->size, rank = (uint64_t)ctx->rank;
    return check_chunks(source, found, (size_t)share_begin(n, rank, ranks), (size_t)share_begin(n, rank + 1, ranks),
                        scratch, problem);
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_array_source_read(const fsdpi_array_source *source, void *scratch, fsdpi_problem *problem)
{
    if (source->arrays == NULL) {
        return FSDP_OK;
    }
    for (fsdpi_array *array = source->arrays->first; array != NULL; array = array->next) {
        const fsdpi_placed_tensor *tensor = fsdpi_tensor_files_find(&source->files, array->name);

        if (tensor != NULL && fits(array, tensor->info) && !(array->keyed != NULL && array->keyed->rows == 0)) {
            if (array->n_bytes != NULL) {
                fsdpi_bytes_divide(array, (size_t)tensor->info->dims[0], false);
                *array->n_bytes = (size_t)tensor->info->dims[0];
            }
            FSDP_TRY(fsdpi_rows_read(array, tensor, scratch, problem));
        }
    }
    for (fsdpi_keyed *keyed = source->arrays->keyed; keyed != NULL; keyed = keyed->next) {
        keyed->read = true;
    }
    return FSDP_OK;
}
