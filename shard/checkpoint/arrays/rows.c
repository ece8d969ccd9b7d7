#include "shard/checkpoint/arrays/arrays.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/context/context.h"
#include "shard/checkpoint/format/file_io.h"
#include "shard/checkpoint/format/folder.h"

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static size_t width_of(const fsdpi_array *array)
{
    return fsdp_dtype_size((fsdp_dtype)array->info.dtype);
}

/* `n` elements of `width` bytes, `from_stride` and `to_stride` elements apart. */
static void copy(unsigned char *to, size_t to_stride, const unsigned char *from, size_t from_stride, size_t n,
                 size_t width)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, n * width);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(to + i * to_stride * width, from + i * from_stride * width, width);
    }
}

/* What is replicated is held whole, whatever part of it this rank writes. */
static const unsigned char *source_of(const fsdpi_array *array, const fsdpi_box_row *row)
{
    return array->memory + (array->replicated ? (size_t)row->first : row->at) * width_of(array);
}

void fsdpi_rows_pack(const fsdpi_array *array, unsigned char *to)
{
    const size_t   width = width_of(array);
    fsdpi_box_walk walk  = {.done = false};
    fsdpi_box_row  row;

    while (fsdpi_box_next(&array->written, &walk, &row)) {
        copy(to, 1, source_of(array, &row), row.stride, row.count, width);
        to += row.count * width;
    }
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

/* BYTES in a row from which on it is written from where it is. */
#define LONG_ROW ((size_t)64 << 10)

typedef struct output {
    fsdpi_arrays  *arrays;
    bool           counts_only;
    uint64_t       number; /* of the file */
    size_t         n;      /* parts */
    uint64_t       chunk;  /* that the last of them is in */
    int            fd;
    char           path[FSDPI_FOLDER_PATH_BYTES];
    unsigned char *kept; /* FSDPI_READ_BYTES, of which `n_kept` go to `kept_at` */
    uint64_t       kept_at;
    size_t         n_kept;
    fsdpi_problem *problem;
} output;

/* Adds bytes of the file to the sums of the chunks that they are in. They come in the order of the file. */
static void sum_up(output *o, uint64_t at, const unsigned char *bytes, uint64_t n_bytes)
{
    size_t n;

    for (; n_bytes > 0; n_bytes -= n, at += n) {
        const size_t room = FSDPI_CHUNK_MOST - (size_t)(at % FSDPI_CHUNK_MOST);

        n = n_bytes < room ? (size_t)n_bytes : room;
        if (o->n == 0 || o->chunk != at / FSDPI_CHUNK_MOST) {
            o->chunk = at / FSDPI_CHUNK_MOST;
            if (!o->counts_only) {
                const uint64_t begin = o->chunk * FSDPI_CHUNK_MOST;
                const uint64_t left  = o->arrays->plan.files[0].file_bytes - begin;

                o->arrays->parts[o->n] = (fsdpi_file_chunk){
                    .file = o->number, .begin = begin, .bytes = left < FSDPI_CHUNK_MOST ? left : FSDPI_CHUNK_MOST};
            }
            o->n++;
        }
        if (!o->counts_only) {
            uint64_t *sum = &o->arrays->parts[o->n - 1].sum;

            *sum = fsdpi_checksum_add(*sum, at, bytes, n);
            bytes += n;
        }
    }
}

static fsdp_status write_bytes(output *o, uint64_t at, const unsigned char *bytes, size_t n_bytes)
{
    sum_up(o, at, bytes, n_bytes);
    return fsdpi_file_write(o->fd, o->path, at, bytes, n_bytes, o->problem);
}

static fsdp_status flush(output *o)
{
    const size_t n = o->n_kept;

    o->n_kept = 0;
    return n > 0 ? write_bytes(o, o->kept_at, o->kept, n) : FSDP_OK;
}

/* Keeps elements until those behind them are known not to follow. */
static fsdp_status keep(output *o, uint64_t at, const unsigned char *from, size_t stride, size_t count, size_t width)
{
    size_t n;

    for (; count > 0; count -= n, at += n * width, from += n * stride * width) {
        if (o->n_kept > 0 && (o->kept_at + o->n_kept != at || o->n_kept + width > FSDPI_READ_BYTES)) {
            FSDP_TRY(flush(o));
        }
        if (o->n_kept == 0) {
            o->kept_at = at;
        }
        const size_t room = (FSDPI_READ_BYTES - o->n_kept) / width;

        n = count < room ? count : room;
        copy(o->kept + o->n_kept, 1, from, stride, n, width);
        o->n_kept += n * width;
    }
    return FSDP_OK;
}

static fsdp_status write_row(output *o, uint64_t at, const unsigned char *from, size_t stride, size_t count,
                             size_t width)
{
    if (o->counts_only) {
        sum_up(o, at, NULL, (uint64_t)count * width);
        return FSDP_OK;
    }
    if (stride == 1 && count * width >= LONG_ROW) {
        FSDP_TRY(flush(o));
        return write_bytes(o, at, from, count * width);
    }
    return keep(o, at, from, stride, count, width);
}

/* Rows known by numbers are in memory of the checkpoint already, and stay as they are until they are written. */
static fsdp_status write_array(output *o, const fsdpi_array *array, bool from_images)
{
    const bool           from_image = from_images && array->keyed == NULL;
    const uint64_t       begin      = o->arrays->plan.files[0].header_bytes + array->info.begin;
    const size_t         width      = width_of(array);
    const unsigned char *image      = array->image;
    fsdpi_box_walk       walk       = {.done = false};
    fsdpi_box_row        row;

    while (fsdpi_box_next(&array->written, &walk, &row)) {
        const unsigned char *from = o->counts_only ? NULL : from_image ? image : source_of(array, &row);

        FSDP_TRY(write_row(o, begin + row.first * width, from, from_image ? 1 : row.stride, row.count, width));
        if (from_image) {
            image += row.count * width;
        }
    }
    return FSDP_OK;
}

/* The header is in the file already, and rank 0's. */
static fsdp_status write_all(output *o, bool from_image)
{
    const fsdpi_planned_file *file = &o->arrays->plan.files[0];

    if (o->arrays->ctx->rank == 0) {
        sum_up(o, 0, (const unsigned char *)file->header, file->header_bytes);
    }
    for (size_t i = 0; i < o->arrays->n; i++) {
        FSDP_TRY(write_array(o, o->arrays->in_file[i], from_image));
    }
    return flush(o);
}

size_t fsdpi_rows_count_parts(const fsdpi_arrays *arrays)
{
    fsdpi_arrays as_it_is = *arrays;
    output       o        = {.arrays = &as_it_is, .counts_only = true};

    (void)write_all(&o, false);
    return o.n;
}

static fsdp_status write_and_sync(output *o, bool from_image)
{
    FSDP_TRY(write_all(o, from_image));
    return fsync(o->fd) == 0 ? FSDP_OK : fsdpi_problem_errno(o->problem, o->path, "sync");
}

static fsdp_status write_file(output *o, bool from_image)
{
    o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
    if (o->fd < 0) {
        return fsdpi_problem_errno(o->problem, o->path, "open");
    }
    fsdp_status status = write_and_sync(o, from_image);
    if (close(o->fd) != 0 && status == FSDP_OK) {
        status = fsdpi_problem_errno(o->problem, o->path, "close");
    }
    return status;
}

fsdp_status fsdpi_arrays_write(fsdpi_arrays *arrays, size_t number, bool from_image, const char *folder,
                               fsdpi_problem *problem)
{
    output o = {.arrays = arrays, .number = number, .fd = -1, .problem = problem};

    if (arrays->n == 0 || arrays->n_parts == 0) {
        return FSDP_OK;
    }
    fsdpi_path_join(o.path, folder, arrays->plan.files[0].name);
    o.kept = malloc(FSDPI_READ_BYTES);
    if (o.kept == NULL) {
        return fsdpi_problem_memory(problem, o.path, FSDPI_READ_BYTES);
    }
    const fsdp_status status = write_file(&o, from_image);
    free(o.kept);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

/* Bytes of the tensor that are in memory. */
typedef struct window {
    const fsdpi_placed_tensor *tensor;
    unsigned char             *bytes; /* FSDPI_READ_BYTES */
    uint64_t                   begin, end;
    uint64_t                   ahead; /* BYTES of the tensor that are read at once; 0: rows alone */
    fsdpi_problem             *problem;
} window;

/* Element `at / width` of the tensor, and how many from it on are there. */
static fsdp_status look_at(window *w, uint64_t at, size_t row_bytes, const unsigned char **bytes, size_t *n_bytes)
{
    if (at < w->begin || at >= w->end) {
        const uint64_t left = w->tensor->info->end - w->tensor->info->begin - at;
        uint64_t       n    = w->ahead > 0 ? w->ahead : row_bytes;

        n        = n < FSDPI_READ_BYTES ? n : FSDPI_READ_BYTES;
        n        = n < left ? n : left;
        w->begin = at;
        w->end   = at + n;
        FSDP_TRY(fsdpi_tensor_read(w->tensor, at, w->bytes, (size_t)n, w->problem));
    }
    *bytes   = w->bytes + (at - w->begin);
    *n_bytes = w->end - at < row_bytes ? (size_t)(w->end - at) : row_bytes;
    return FSDP_OK;
}

static fsdp_status read_row(window *w, uint64_t at, unsigned char *to, size_t stride, size_t count, size_t width)
{
    if (stride == 1 && count * width >= LONG_ROW) {
        return fsdpi_tensor_read(w->tensor, at, to, count * width, w->problem);
    }
    while (count > 0) {
        const unsigned char *bytes;
        size_t               n_bytes;

        FSDP_TRY(look_at(w, at, count * width, &bytes, &n_bytes));
        const size_t n = n_bytes / width;
        copy(to, stride, bytes, 1, n, width);
        at += n * width;
        to += n * stride * width;
        count -= n;
    }
    return FSDP_OK;
}

enum { SPARSE = 4 }; /* rows are read one by one where their own bytes are fewer than one in as many */

fsdp_status fsdpi_rows_read(const fsdpi_array *array, const fsdpi_placed_tensor *tensor, void *scratch,
                            fsdpi_problem *problem)
{
    const fsdpi_box *box  = &array->held;
    const size_t     last = box->n_dims - 1, width = width_of(array);
    window           w    = {.tensor = tensor, .bytes = scratch, .problem = problem};
    fsdpi_box_walk   walk = {.done = false};
    fsdpi_box_row    row;

    if (box->shape[last] / SPARSE <= box->extent[last]) {
        w.ahead = FSDPI_READ_BYTES;
    }
    while (fsdpi_box_next(box, &walk, &row)) {
        unsigned char *to = array->memory + row.at * width;

        FSDP_TRY(read_row(&w, row.first * width, to, row.stride, row.count, width));
    }
    return FSDP_OK;
}
