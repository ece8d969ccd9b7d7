/*
 * fsdp-ckpt convert: the tensors of the model, or of another part, into new files. Each is written beside its place, synced, and only then given its name,
 * the index last; what is there already is never replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "lib/base/error.h"
#include "lib/base/plural.h"
#include "tools/ckpt/ckpt.h"

#define SUFFIX ".safetensors"

typedef struct conversion {
    const ckpt_options *options;
    ckpt_source         source;
    ckpt_piece          piece;
    fsdpi_tensor_info  *tensors; /* as they will be */
    fsdpi_file_plan     plan;
    char                folder[FSDPI_FOLDER_PATH_BYTES];
    char                stem[FSDPI_FOLDER_PATH_BYTES];
    size_t              n_named; /* files that have their names */
    size_t              part;
} conversion;

/* Where a file of the plan will be, or is while it is written. */
static void path_of(const conversion *c, const char *name, bool partial, char *path)
{
    char file[FSDPI_FOLDER_PATH_BYTES];

    (void)snprintf(file, sizeof file, partial ? ".%s.partial" : "%s", name);
    fsdpi_path_join(path, c->folder, file);
}

static fsdp_status split_target(conversion *c, fsdpi_problem *problem)
{
    const char *const path  = c->options->paths[1];
    const char *const slash = strrchr(path, '/'), *const name = slash != NULL ? slash + 1 : path;
    const size_t length = strlen(name), suffix = strlen(SUFFIX);

    if (strlen(path) >= sizeof c->folder - 2 * FSDPI_FOLDER_NAME_BYTES || length <= suffix ||
        strcmp(name + length - suffix, SUFFIX) != 0) {
        return fsdpi_problem_set(problem, FSDP_ERR_ARG, "%.200s: the new file's name must end in " SUFFIX, path);
    }
    (void)snprintf(c->folder, sizeof c->folder, "%.*s",
                   slash == path   ? 1
                   : slash != NULL ? (int)(slash - path)
                                   : 1,
                   slash != NULL ? path : ".");
    (void)snprintf(c->stem, sizeof c->stem, "%.*s", (int)(length - suffix), name);
    return FSDP_OK;
}

/* Metadata is that of the first file: several files of one model repeat it. */
static fsdp_status plan_files(conversion *c, fsdpi_problem *problem)
{
    const fsdpi_tensor_files *const files = &c->source.parts[c->part].files;
    const fsdpi_safetensors *const  first = files->n_files > 0 ? &files->files[0].header : NULL;

    c->tensors = malloc((files->n_tensors + 1) * sizeof *c->tensors);
    if (c->tensors == NULL) {
        return fsdpi_problem_memory(problem, c->stem, (files->n_tensors + 1) * sizeof *c->tensors);
    }
    for (size_t i = 0; i < files->n_tensors; i++) {
        c->tensors[i] = *files->tensors[i].info;
        if (c->options->dtype != NULL && ckpt_is_float(c->tensors[i].dtype)) {
            c->tensors[i].dtype = *c->options->dtype;
        }
    }
    return fsdpi_file_plan_make(c->stem, c->tensors, files->n_tensors, first != NULL ? first->metadata : NULL,
                                first != NULL ? first->n_metadata : 0, c->options->max_file_bytes, &c->plan, problem);
}

static fsdp_status write_tensor(conversion *c, int fd, const char *path, uint64_t data_offset, size_t index,
                                fsdpi_problem *problem)
{
    const fsdpi_placed_tensor *const from = &c->source.parts[c->part].files.tensors[index];
    const fsdpi_tensor_info *const   to   = &c->tensors[index];
    const uint64_t                   bits = fsdpi_stored_bits(to->dtype);

    for (uint64_t first = 0, count; (count = ckpt_piece_count(to, first)) > 0; first += count) {
        const void *written = c->piece.raw;

        FSDP_TRY(ckpt_read_raw(from, first, (size_t)count, c->piece.raw, problem));
        if (from->info->dtype != to->dtype) {
            fsdpi_kernels_find("auto")->cast(c->piece.values, (fsdp_dtype)to->dtype, c->piece.raw,
                                             (fsdp_dtype)from->info->dtype, (size_t)count);
            written = c->piece.values;
        }
        FSDP_TRY(fsdpi_file_write(fd, path, data_offset + to->begin + first * bits / 8, written,
                                  (size_t)(count * bits / 8), problem));
    }
    return FSDP_OK;
}

static fsdp_status write_open_file(conversion *c, int fd, const char *path, const fsdpi_planned_file *file,
                                   fsdpi_problem *problem)
{
    FSDP_TRY(fsdpi_file_write(fd, path, 0, file->header, file->header_bytes, problem));
    for (size_t i = 0; i < file->n_tensors; i++) {
        FSDP_TRY(write_tensor(c, fd, path, file->header_bytes, file->first_tensor + i, problem));
    }
    return fsync(fd) == 0 ? FSDP_OK : fsdpi_problem_errno(problem, path, "sync");
}

static fsdp_status write_file(conversion *c, const fsdpi_planned_file *file, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    path_of(c, file->name, true, path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fsdpi_problem_errno(problem, path, "create");
    }
    fsdp_status status = write_open_file(c, fd, path, file, problem);
    if (close(fd) != 0 && status == FSDP_OK) {
        status = fsdpi_problem_errno(problem, path, "close");
    }
    return status;
}

/* A link fails where the name is taken, which a rename would not. */
static fsdp_status give_name(conversion *c, const char *name, fsdpi_problem *problem)
{
    char partial[FSDPI_FOLDER_PATH_BYTES], path[FSDPI_FOLDER_PATH_BYTES];

    path_of(c, name, true, partial);
    path_of(c, name, false, path);
    if (link(partial, path) != 0) {
        return fsdpi_problem_errno(problem, path, "create");
    }
    (void)unlink(partial);
    c->n_named++;
    return FSDP_OK;
}

static fsdp_status write_all(conversion *c, fsdpi_problem *problem)
{
    char partial[FSDPI_FOLDER_PATH_BYTES];

    for (size_t i = 0; i < c->plan.n_files; i++) {
        FSDP_TRY(write_file(c, &c->plan.files[i], problem));
    }
    if (c->plan.index_name != NULL) {
        path_of(c, c->plan.index_name, true, partial);
        FSDP_TRY(fsdpi_write_file(partial, c->plan.index, c->plan.index_bytes, problem));
    }
    for (size_t i = 0; i < c->plan.n_files; i++) {
        FSDP_TRY(give_name(c, c->plan.files[i].name, problem));
    }
    if (c->plan.index_name != NULL) {
        FSDP_TRY(give_name(c, c->plan.index_name, problem));
    }
    int unsupported = 0; /* then it is as durable as files get there */

    return fsdpi_sync_folder(c->folder, &unsupported, problem);
}

/* What has been begun, when something has failed. */
static void remove_all(const conversion *c)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    for (size_t i = 0; i < c->plan.n_files; i++) {
        path_of(c, c->plan.files[i].name, i >= c->n_named, path);
        (void)unlink(path);
    }
    if (c->plan.index_name != NULL) {
        path_of(c, c->plan.index_name, c->n_named <= c->plan.n_files, path);
        (void)unlink(path);
    }
}

/* Before anything is written. */
static fsdp_status check_absent(const conversion *c, const char *name, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    path_of(c, name, false, path);
    if (access(path, F_OK) == 0) {
        errno = EEXIST;
        return fsdpi_problem_errno(problem, path, "create");
    }
    return FSDP_OK;
}

/* "model, optimizer, critic.model": those that the checkpoint has, as far as there is room. */
static const char *name_parts(const ckpt_source *source, char *text, size_t size)
{
    size_t used = 0;

    text[0] = 0;
    for (size_t i = 0; i < source->n_parts && used < size; i++) {
        const char *const stem = source->parts[i].stem;

        if (!source->has_state || fsdpi_state_has_files(&source->state, stem)) {
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", stem);
        }
    }
    return text;
}

/* A file has one part only, whatever it is. */
static fsdp_status open_part(conversion *c, fsdpi_problem *problem)
{
    const char *const part = c->options->part != NULL && c->source.is_folder ? c->options->part : FSDPI_MODEL_STEM;
    char              parts[FSDPI_PROBLEM_BYTES / 2];

    c->part = c->source.is_folder ? ckpt_part_find(&c->source, part) : 0;
    if (c->part == c->source.n_parts) {
        return fsdpi_problem_set(problem, FSDP_ERR_ARG, "%s: --part is '%.100s'; use one of %s", c->source.path, part,
                                 name_parts(&c->source, parts, sizeof parts));
    }
    FSDP_TRY(ckpt_source_open_part(&c->source, c->part, problem));
    return c->source.parts[c->part].files.n_files > 0
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_IO, "%s: has no %s; --part chooses another of %s", c->source.path,
                                   part, name_parts(&c->source, parts, sizeof parts));
}

static fsdp_status convert(conversion *c, fsdpi_problem *problem)
{
    fsdp_status status;

    FSDP_TRY(split_target(c, problem));
    FSDP_TRY(ckpt_piece_make(&c->piece, problem));
    FSDP_TRY(ckpt_source_find(c->options->paths[0], &c->source, problem));
    FSDP_TRY(open_part(c, problem));
    FSDP_TRY(plan_files(c, problem));
    for (size_t i = 0; i < c->plan.n_files; i++) {
        FSDP_TRY(check_absent(c, c->plan.files[i].name, problem));
    }
    if (c->plan.index_name != NULL) {
        FSDP_TRY(check_absent(c, c->plan.index_name, problem));
    }
    status = write_all(c, problem);
    if (status != FSDP_OK) {
        remove_all(c);
    }
    return status;
}

static void print_files(const conversion *c)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    for (size_t i = 0; i < c->plan.n_files; i++) {
        path_of(c, c->plan.files[i].name, false, path);
        (void)printf("%s: %zu tensor%s, %" PRIu64 " bytes\n", path, c->plan.files[i].n_tensors,
                     fsdpi_s(c->plan.files[i].n_tensors), c->plan.files[i].file_bytes);
    }
    if (c->plan.index_name != NULL) {
        path_of(c, c->plan.index_name, false, path);
        (void)printf("%s\n", path);
    }
}

int ckpt_convert(const ckpt_options *options)
{
    conversion    c = {.options = options};
    fsdpi_problem problem;
    fsdp_status   status = convert(&c, &problem);

    if (status == FSDP_OK) {
        print_files(&c);
    }
    fsdpi_file_plan_free(&c.plan);
    free(c.tensors);
    ckpt_piece_free(&c.piece);
    ckpt_source_close(&c.source);
    if (status != FSDP_OK) {
        const int result = ckpt_fail(&problem);

        return status == FSDP_ERR_ARG ? CKPT_USAGE : result;
    }
    return CKPT_GOOD;
}
