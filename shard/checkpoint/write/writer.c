#include "shard/checkpoint/write/writer.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/device/memory.h"
#include "shard/checkpoint/format/file_io.h"
#include "shard/checkpoint/format/folder.h"
#include "shard/checkpoint/write/output_file.h"
#include "shard/state/dynamic_blocks.h"
#include "shard/state/tensor.h"
#include "shard/state/tp_part.h"
#include "shard/storage/compute.h"

/* ---- files by their number --------------------------------------------------------------------------------------- */

static const fsdpi_stem *stem_of(const fsdpi_stem *stems, size_t file)
{
    return file < stems[FSDPI_STEM_OPTIMIZER].first_file ? &stems[FSDPI_STEM_MODEL] : &stems[FSDPI_STEM_OPTIMIZER];
}

/* What it is made with: the text of an index, or what comes before the tensors. */
const char *fsdpi_writer_file_beginning(const fsdpi_stem *stems, size_t file, size_t *bytes)
{
    const fsdpi_stem *stem = stem_of(stems, file);
    const size_t      i    = file - stem->first_file;

    if (i == stem->plan.n_files) {
        *bytes = stem->plan.index_bytes;
        return stem->plan.index;
    }
    *bytes = stem->plan.files[i].header_bytes;
    return stem->plan.files[i].header;
}

const char *fsdpi_writer_file_name(const fsdpi_stem *stems, size_t file)
{
    const fsdpi_stem *stem = stem_of(stems, file);
    const size_t      i    = file - stem->first_file;

    return i == stem->plan.n_files ? stem->plan.index_name : stem->plan.files[i].name;
}

uint64_t fsdpi_writer_file_bytes(const fsdpi_stem *stems, size_t file)
{
    const fsdpi_stem *stem = stem_of(stems, file);
    const size_t      i    = file - stem->first_file;

    return i == stem->plan.n_files ? stem->plan.index_bytes : stem->plan.files[i].file_bytes;
}

static size_t count_files(const fsdpi_stem *stems)
{
    const fsdpi_stem *last = &stems[FSDPI_STEM_OPTIMIZER];

    return last->first_file + last->plan.n_files + (last->plan.index != NULL) - stems[FSDPI_STEM_MODEL].first_file;
}

/* ---- what to write ----------------------------------------------------------------------------------------------- */

/* The file of each part, of those of its stem. */
static size_t file_of_part(const fsdpi_stem *stem, size_t part)
{
    size_t i = 0;

    while (part >= stem->plan.files[i].first_tensor + stem->plan.files[i].n_tensors) {
        i++;
    }
    return i;
}

static void place_run(const fsdpi_stem *stem, size_t part, fsdpi_written_run *w)
{
    const fsdpi_tensor_info *info  = &stem->parts.infos[part];
    const size_t             file  = file_of_part(stem, part);
    const size_t             width = fsdp_dtype_size((fsdp_dtype)info->dtype);

    w->tensor    = stem->parts.parts[part].tensor;
    w->dtype     = (fsdp_dtype)info->dtype;
    w->bytes     = w->run.count * width;
    w->file      = stem->first_file + file;
    w->tensor_at = stem->plan.files[file].header_bytes + info->begin;
    w->offset    = w->tensor_at + fsdpi_tp_run_at(w->tensor, w->run.begin, 1).whole * width;
}

/* Returns how many runs there are; with `runs` NULL only counts. */
static size_t list_runs(const fsdp_model *model, const fsdpi_stem *stems, fsdpi_written_run *runs)
{
    size_t n = 0;

    for (size_t s = 0; s < FSDPI_N_STEMS; s++) {
        for (size_t p = 0; p < stems[s].parts.n; p++) {
            fsdpi_written_run w = {0};

            if (!fsdpi_part_written(model, &stems[s].parts.parts[p], &w.run)) {
                continue;
            }
            if (runs != NULL) {
                place_run(&stems[s], p, &w);
                runs[n] = w;
            }
            n++;
        }
    }
    return n;
}

static int by_place(const void *a, const void *b)
{
    const fsdpi_written_run *x = a, *y = b;

    if (x->file != y->file) {
        return x->file < y->file ? -1 : 1;
    }
    return x->offset < y->offset ? -1 : x->offset > y->offset ? 1 : 0;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* Consecutive bytes of one file, which become one chunk. */
typedef struct piece {
    size_t   file;
    uint64_t begin;
    size_t   bytes;
    size_t   image_at;
} piece;

typedef struct pieces {
    fsdpi_writer *writer;
    bool          from_image;
    bool          counts_only;
    const char   *folder;
    size_t        n;        /* chunks, or parts of them */
    size_t        n_pieces; /* that are listed */

    /* Where sums add up: the stretch of a file that the last part is of. */
    size_t   last_file;
    uint64_t last_begin;

    /* What is listed in place of being written; NULL: nothing. */
    fsdpi_cached_chunk *listed;
    uint64_t            image_begins;

    /* The file that the last piece went to. */
    fsdpi_output_file output;
    size_t            open_file;
    char              path[FSDPI_FOLDER_PATH_BYTES];
    piece             pending; /* `bytes` 0: none */
    fsdpi_problem    *problem;
} pieces;

/* Where a piece begins in scratch: memory and file are aligned alike. */
static unsigned char *scratch_of(const pieces *p, const piece *at)
{
    return p->writer->scratch + at->begin % FSDPI_DIRECT_BYTES;
}

/* BYTES up to where the piece that holds `offset` must end. */
static size_t room_at(uint64_t offset)
{
    return FSDPI_CHUNK_MOST - (size_t)(offset % FSDPI_CHUNK_MOST);
}

static fsdp_status open_file(pieces *p, size_t file)
{
    if (p->output.fd >= 0 && p->open_file == file) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_output_close(&p->output, p->path, p->problem));
    fsdpi_path_join(p->path, p->folder, fsdpi_writer_file_name(p->writer->stems, file));
    p->open_file = file;
    return fsdpi_output_open(p->path, p->writer->ends, &p->output, p->problem);
}

static void add_chunk(fsdpi_file_chunk *chunk, const piece *at, const void *bytes)
{
    *chunk = (fsdpi_file_chunk){
        .file = at->file, .begin = at->begin, .bytes = at->bytes, .sum = fsdpi_checksum(bytes, at->bytes)};
}

/* Adds bytes, none behind the end of a stretch, to the sum of that which they are in. They come in the order of the files. */
static void add_part(pieces *p, const piece *at, const void *bytes)
{
    const uint64_t begin = at->begin / FSDPI_CHUNK_MOST * FSDPI_CHUNK_MOST;

    if (p->n == 0 || p->last_file != at->file || p->last_begin != begin) {
        p->last_file  = at->file;
        p->last_begin = begin;
        if (!p->counts_only) {
            const uint64_t left = fsdpi_writer_file_bytes(p->writer->stems, at->file) - begin;

            p->writer->chunks[p->n] = (fsdpi_file_chunk){
                .file = at->file, .begin = begin, .bytes = left < FSDPI_CHUNK_MOST ? left : FSDPI_CHUNK_MOST};
        }
        p->n++;
    }
    if (!p->counts_only) {
        uint64_t *sum = &p->writer->chunks[p->n - 1].sum;

        *sum = fsdpi_checksum_add(*sum, at->begin, bytes, at->bytes);
    }
}

static void list_piece(pieces *p, const piece *at)
{
    if (p->listed != NULL) {
        p->listed[p->n_pieces] = (fsdpi_cached_chunk){
            .file = at->file, .begin = at->begin, .bytes = at->bytes, .at = p->image_begins + at->image_at};
    }
    p->n_pieces++;
}

static fsdp_status flush(pieces *p)
{
    const piece          whole = p->pending;
    const unsigned char *bytes = p->from_image ? p->writer->image + whole.image_at : scratch_of(p, &whole);

    p->pending.bytes = 0;
    if (whole.bytes == 0) {
        return FSDP_OK;
    }
    list_piece(p, &whole);
    if (p->writer->adds_up) {
        add_part(p, &whole, bytes);
    } else if (!p->counts_only) {
        add_chunk(&p->writer->chunks[p->n++], &whole, bytes);
    } else {
        p->n++;
    }
    if (p->counts_only) {
        return FSDP_OK;
    }
    FSDP_TRY(open_file(p, whole.file));
    return fsdpi_output_write(&p->output, p->path, whole.begin, bytes, whole.bytes, p->problem);
}

/* From where the model has it. A failure is kept until fsdpi_writer_write() ends. */
static void copy(fsdpi_writer *writer, void *to, const fsdpi_written_run *w, size_t begin, size_t count)
{
    const void *from = fsdpi_element_of(w->run.memory, begin, w->run.dtype);

    if (w->run.scales != NULL) {
        fsdpi_dynamic_unpack(w->run.memory, w->run.scales, begin, count, w->run.is_signed, to);
        return;
    }
    fsdpi_compute_read(writer->model, to, w->dtype, from, w->run.dtype, count);
    if (writer->copied == FSDP_OK) {
        writer->copied = fsdpi_compute_status(writer->model);
    }
}

/* Whether bytes of a run belong to the piece that is pending. In an image they may follow others than in the file. */
static bool follows(const pieces *p, const fsdpi_written_run *w, uint64_t offset, size_t at)
{
    const piece *before = &p->pending;

    return before->file == w->file && before->begin + before->bytes == offset &&
           before->image_at + before->bytes == w->image_at + at;
}

/*
 * Bytes `begin` to `end` of a run, which follow each other in the file from `to` on. Data begins at multiples of a chunk's alignment
 * and elements are powers of two: none is cut.
 */
static fsdp_status add_row(pieces *p, const fsdpi_written_run *w, size_t begin, size_t end, uint64_t to)
{
    const size_t width = fsdp_dtype_size(w->dtype);
    size_t       bytes;

    for (size_t at = begin; at < end; at += bytes) {
        const uint64_t offset = to + (at - begin);
        const size_t   room   = room_at(offset);

        if (p->pending.bytes > 0 && !follows(p, w, offset, at)) {
            FSDP_TRY(flush(p));
        }
        if (p->pending.bytes == 0) {
            p->pending = (piece){.file = w->file, .begin = offset, .image_at = w->image_at + at};
        }
        bytes = end - at < room ? end - at : room;
        if (!p->counts_only && !p->from_image) {
            copy(p->writer, scratch_of(p, &p->pending) + p->pending.bytes, w, at / width, bytes / width);
        }
        p->pending.bytes += bytes;
        if (bytes == room) {
            FSDP_TRY(flush(p));
        }
    }
    return FSDP_OK;
}

static fsdp_status add_run(pieces *p, const fsdpi_written_run *w)
{
    const size_t width = fsdp_dtype_size(w->dtype);

    for (size_t at = 0; at < w->run.count;) {
        const fsdpi_tp_run row = fsdpi_tp_run_at(w->tensor, w->run.begin + at, w->run.count - at);

        FSDP_TRY(add_row(p, w, at * width, (at + row.count) * width, w->tensor_at + row.whole * width));
        at += row.count;
    }
    return FSDP_OK;
}

static fsdp_status add_runs(pieces *p)
{
    for (size_t r = 0; r < p->writer->n_runs; r++) {
        FSDP_TRY(add_run(p, &p->writer->runs[r]));
    }
    return flush(p);
}

/* The chunks of the headers come first, in either list, or as parts of sums. Returns how many; without any of these only counts. */
static size_t list_beginnings(const fsdpi_writer *writer, fsdpi_file_chunk *chunks, fsdpi_cached_chunk *cached,
                              pieces *parts)
{
    size_t n = 0;

    for (size_t file = writer->first_file; file < writer->first_file + writer->n_files; file++) {
        size_t      bytes;
        const char *text = fsdpi_writer_file_beginning(writer->stems, file, &bytes);

        for (size_t at = 0; at < bytes; at += FSDPI_CHUNK_MOST) {
            const size_t left = bytes - at;
            const piece chunk = {.file = file, .begin = at, .bytes = left < FSDPI_CHUNK_MOST ? left : FSDPI_CHUNK_MOST};

            if (chunks != NULL) {
                add_chunk(&chunks[n], &chunk, text + at);
            }
            if (cached != NULL) {
                cached[n] = (fsdpi_cached_chunk){.file  = file,
                                                 .begin = at,
                                                 .bytes = chunk.bytes,
                                                 .at    = FSDPI_CACHE_NOWHERE,
                                                 .sum   = fsdpi_checksum(text + at, chunk.bytes)};
            }
            if (parts != NULL) {
                add_part(parts, &chunk, text + at);
            }
            n++;
        }
    }
    return n;
}

/* What comes before runs. `listed` is for what is cached, which has no beginnings where sums add up. */
static void begin(pieces *p)
{
    fsdpi_writer *writer = p->writer;

    if (!writer->writes_headers) {
        return;
    }
    if (writer->adds_up) {
        if (p->listed == NULL) {
            (void)list_beginnings(writer, NULL, NULL, p);
        }
        return;
    }
    p->n        = list_beginnings(writer, p->counts_only ? NULL : writer->chunks, p->listed, NULL);
    p->n_pieces = p->n;
}

static void count_chunks(fsdpi_writer *writer)
{
    pieces p = {.writer = writer, .counts_only = true};

    begin(&p);
    (void)add_runs(&p);
    writer->n_chunks = p.n;
    writer->n_pieces = p.n_pieces;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* For that many aligned bytes, and the ends of pieces in front of them. */
static size_t room_for(size_t bytes)
{
    return FSDPI_ENDS_BYTES + bytes + FSDPI_DIRECT_BYTES;
}

/* Where in such room the bytes are. */
static unsigned char *aligned(void *room)
{
    unsigned char *behind_ends = (unsigned char *)room + FSDPI_ENDS_BYTES;
    const size_t   beyond      = (uintptr_t)behind_ends % FSDPI_DIRECT_BYTES;

    return behind_ends + (FSDPI_DIRECT_BYTES - beyond) % FSDPI_DIRECT_BYTES;
}

static fsdp_status allocate(fsdpi_writer *writer, bool with_image)
{
    count_chunks(writer);
    writer->chunks = fsdpi_alloc(writer->ctx, FSDP_MEMORY_BOOKKEEPING, writer->n_chunks * sizeof(fsdpi_file_chunk));
    if (writer->chunks == NULL && writer->n_chunks > 0) {
        return FSDP_ERR_MEMORY;
    }
    if (with_image && writer->bytes > 0) {
        writer->image_room = fsdpi_alloc(writer->ctx, FSDP_MEMORY_STAGING, room_for(writer->bytes));
        if (writer->image_room == NULL) {
            return FSDP_ERR_MEMORY;
        }
        writer->image = aligned(writer->image_room);
    }
    return FSDP_OK;
}

/* Neighbours in a file are neighbours there, and others begin where memory and file are aligned alike. */
static void place_in_image(fsdpi_writer *writer)
{
    for (size_t r = 0; r < writer->n_runs; r++) {
        fsdpi_written_run       *w      = &writer->runs[r];
        const fsdpi_written_run *before = r > 0 ? w - 1 : NULL;

        if (before == NULL || before->file != w->file || before->offset + before->bytes != w->offset) {
            writer->bytes += (size_t)(w->offset - writer->bytes) % FSDPI_DIRECT_BYTES;
        }
        w->image_at = writer->bytes;
        writer->bytes += w->bytes;
    }
}

fsdp_status fsdpi_writer_open(fsdp_model *model, const fsdpi_stem *stems, bool with_image, fsdpi_writer *writer)
{
    fsdp_context *ctx = model->plane.ctx;

    *writer        = (fsdpi_writer){.ctx            = ctx,
                                    .model          = model,
                                    .stems          = stems,
                                    .writes_headers = ctx->rank == 0,
                                    .adds_up        = model->plane.tp_size > 1};
    writer->n_runs = list_runs(model, stems, NULL);
    writer->runs   = fsdpi_alloc(ctx, FSDP_MEMORY_BOOKKEEPING, writer->n_runs * sizeof(fsdpi_written_run));
    if (writer->runs == NULL && writer->n_runs > 0) {
        return FSDP_ERR_MEMORY;
    }
    writer->first_file = stems[FSDPI_STEM_MODEL].first_file;
    writer->n_files    = count_files(stems);
    (void)list_runs(model, stems, writer->runs);
    if (writer->n_runs > 0) {
        qsort(writer->runs, writer->n_runs, sizeof *writer->runs, by_place);
    }
    place_in_image(writer);
    return allocate(writer, with_image);
}

void fsdpi_writer_close(fsdpi_writer *writer)
{
    if (writer->ctx == NULL) {
        return;
    }
    fsdpi_free(writer->ctx, FSDP_MEMORY_BOOKKEEPING, writer->runs, writer->n_runs * sizeof *writer->runs);
    fsdpi_free(writer->ctx, FSDP_MEMORY_BOOKKEEPING, writer->chunks, writer->n_chunks * sizeof *writer->chunks);
    fsdpi_free(writer->ctx, FSDP_MEMORY_STAGING, writer->image_room, room_for(writer->bytes));
}

size_t fsdpi_writer_staging(const fsdpi_writer *writer)
{
    return writer->image_room != NULL ? fsdpi_alloc_size(room_for(writer->bytes)) : 0;
}

size_t fsdpi_writer_scratch(void)
{
    return fsdpi_alloc_size(room_for(FSDPI_CHUNK_MOST));
}

size_t fsdpi_writer_bookkeeping(const fsdpi_writer *writer)
{
    return fsdpi_alloc_size(writer->n_runs * sizeof *writer->runs) +
           fsdpi_alloc_size(writer->n_chunks * sizeof *writer->chunks);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_writer_make_files(const fsdpi_writer *writer, const char *folder, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    for (size_t file = writer->first_file; file < writer->first_file + writer->n_files; file++) {
        size_t      bytes;
        const char *beginning = fsdpi_writer_file_beginning(writer->stems, file, &bytes);

        fsdpi_path_join(path, folder, fsdpi_writer_file_name(writer->stems, file));
        FSDP_TRY(fsdpi_output_make(path, beginning, bytes, fsdpi_writer_file_bytes(writer->stems, file), problem));
    }
    return FSDP_OK;
}

void fsdpi_writer_snapshot(fsdpi_writer *writer)
{
    writer->copied = FSDP_OK;
    for (size_t r = 0; r < writer->n_runs; r++) {
        const fsdpi_written_run *w  = &writer->runs[r];
        void                    *to = writer->image + w->image_at;

        if (w->dtype == w->run.dtype && !fsdpi_is_on_device(writer->model)) {
            writer->ctx->kernels->stream(to, w->run.memory, w->bytes); /* it is read when the disk is ready for it */
        } else {
            copy(writer, to, w, 0, w->run.count);
        }
    }
}

fsdp_status fsdpi_writer_copy(const fsdpi_writer *writer, unsigned char *image)
{
    fsdpi_writer into = *writer; /* what is written behind the steps has its own image */

    into.image = image;
    fsdpi_writer_snapshot(&into);
    return into.copied;
}

void fsdpi_writer_list(const fsdpi_writer *writer, uint64_t image_begins, fsdpi_cached_chunk *chunks)
{
    fsdpi_writer same = *writer;
    pieces       p    = {.writer = &same, .counts_only = true, .listed = chunks, .image_begins = image_begins};

    begin(&p);
    (void)add_runs(&p);
}

/* Also those of whose tensors this rank holds nothing. */
static fsdp_status sync_all(const pieces *p)
{
    const fsdpi_writer *writer = p->writer;
    char                path[FSDPI_FOLDER_PATH_BYTES];

    for (size_t file = writer->first_file; file < writer->first_file + writer->n_files; file++) {
        fsdpi_path_join(path, p->folder, fsdpi_writer_file_name(writer->stems, file));
        FSDP_TRY(fsdpi_sync_path(path, p->problem));
    }
    return FSDP_OK;
}

static fsdp_status write_all(pieces *p)
{
    fsdp_status       status = add_runs(p);
    const fsdp_status closed = fsdpi_output_close(&p->output, p->path, p->problem);

    status = status != FSDP_OK ? status : closed;
    if (status == FSDP_OK && p->writer->copied != FSDP_OK) {
        return fsdpi_problem_set(p->problem, p->writer->copied, "%s: the model's memory on the GPU could not be read",
                                 p->folder);
    }
    return status == FSDP_OK && p->writer->writes_headers ? sync_all(p) : status;
}

static fsdp_status write_from_memory(pieces *p)
{
    fsdp_context *ctx  = p->writer->ctx;
    void         *room = fsdpi_alloc(ctx, FSDP_MEMORY_STAGING, room_for(FSDPI_CHUNK_MOST));

    if (room == NULL) {
        return fsdpi_problem_memory(p->problem, p->folder, room_for(FSDPI_CHUNK_MOST));
    }
    p->writer->copied        = FSDP_OK;
    p->writer->ends          = room;
    p->writer->scratch       = aligned(room);
    const fsdp_status status = write_all(p);
    p->writer->scratch       = NULL;
    fsdpi_free(ctx, FSDP_MEMORY_STAGING, room, room_for(FSDPI_CHUNK_MOST));
    return status;
}

fsdp_status fsdpi_writer_write(fsdpi_writer *writer, bool from_image, const char *folder, fsdpi_problem *problem)
{
    pieces p = {.writer = writer, .from_image = from_image, .folder = folder, .output = {.fd = -1}, .problem = problem};

    begin(&p);
    writer->ends = writer->image_room;
    return from_image ? write_all(&p) : write_from_memory(&p);
}
