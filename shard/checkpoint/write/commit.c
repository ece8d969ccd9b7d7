/*
 * What rank 0 does when every rank has written its part.
 */
#include "shard/checkpoint/write/commit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "shard/checkpoint/format/checksums_file.h"
#include "shard/checkpoint/write/sums.h"

void fsdpi_checkpoint_partial_path(const fsdp_checkpoint *checkpoint, char *path)
{
    fsdpi_path_join(path, checkpoint->folder.path, checkpoint->folder.partial);
}

void fsdpi_checkpoint_tell_unsynced(fsdp_checkpoint *c)
{
    char text[128];

    if (c->folder.unsynced != 0 && !c->told_unsynced) {
        c->told_unsynced = true;
        fsdpi_log(
            c->ctx, FSDP_LOG_WARN,
            "%s: its file system does not sync folders (%s): files are on the disk, but after a crash of the host "
            "`latest` may name an older checkpoint",
            c->folder.path, strerror_r(c->folder.unsynced, text, sizeof text));
    }
}

/* ---- the checksums of all files ---------------------------------------------------------------------------------- */

/* Those of the program's arrays behind those of the models. */
size_t fsdpi_checkpoint_count_files(const fsdp_checkpoint *c)
{
    return fsdpi_saved_models_files(c->models) + (c->arrays.n > 0);
}

void fsdpi_checkpoint_list_files(const fsdp_checkpoint *c, fsdpi_cached_file *files)
{
    for (const fsdpi_saved_model *saved = c->models; saved != NULL; saved = saved->next) {
        for (size_t file = saved->writer.first_file; file < saved->writer.first_file + saved->writer.n_files; file++) {
            fsdpi_cached_file *it = &files[file];

            *it           = (fsdpi_cached_file){.name    = fsdpi_writer_file_name(saved->stems, file),
                                                .bytes   = fsdpi_writer_file_bytes(saved->stems, file),
                                                .adds_up = saved->writer.adds_up};
            it->beginning = fsdpi_writer_file_beginning(saved->stems, file, &it->beginning_bytes);
        }
    }
    if (c->arrays.n > 0) {
        const fsdpi_planned_file *file = &c->arrays.plan.files[0];

        files[fsdpi_saved_models_files(c->models)] = (fsdpi_cached_file){.name            = file->name,
                                                                         .bytes           = file->file_bytes,
                                                                         .beginning       = file->header,
                                                                         .beginning_bytes = file->header_bytes,
                                                                         .adds_up         = true};
    }
}

/* The chunks of one file, from the first in `sums` on. Returns how many. */
static size_t take_file(const fsdpi_cached_file *it, size_t file, const fsdpi_file_chunk *sums, size_t n,
                        fsdpi_chunk *chunks, fsdpi_file_sums *about)
{
    size_t i = 0;

    for (; i < n && sums[i].file == file; i++) {
        chunks[i] = (fsdpi_chunk){.begin = sums[i].begin, .bytes = sums[i].bytes, .sum = sums[i].sum};
    }
    *about = (fsdpi_file_sums){.name     = (char *)(uintptr_t)it->name,
                               .bytes    = it->bytes,
                               .adds_up  = it->adds_up,
                               .n_chunks = i,
                               .chunks   = chunks};
    return i;
}

static fsdp_status write_state(const fsdpi_commit *commit, fsdpi_problem *problem)
{
    char   path[FSDPI_FOLDER_PATH_BYTES], *text;
    size_t bytes;

    FSDP_TRY(fsdpi_state_write(commit->state, &text, &bytes, problem));
    fsdpi_path_join(path, commit->folder, FSDPI_STATE_FILE);
    const fsdp_status status = fsdpi_write_file(path, text, bytes, problem);
    free(text);
    return status;
}

static fsdp_status write_with(const fsdpi_commit *commit, const fsdpi_file_chunk *sums, size_t n, fsdpi_chunk *chunks,
                              fsdpi_file_sums *files, fsdpi_problem *problem)
{
    char   path[FSDPI_FOLDER_PATH_BYTES];
    size_t taken = 0;

    for (size_t file = 0; file < commit->n_files; file++) {
        taken += take_file(&commit->files[file], file, sums + taken, n - taken, chunks + taken, &files[file]);
    }
    commit->state->sums = (fsdpi_checksums){.n_files = commit->n_files, .files = files, .apart = true};
    fsdpi_path_join(path, commit->folder, FSDPI_CHECKSUMS_FILE);
    fsdp_status status  = fsdpi_checksums_file_write(path, &commit->state->sums, problem);
    status              = status == FSDP_OK ? write_state(commit, problem) : status;
    commit->state->sums = (fsdpi_checksums){0};
    return status;
}

fsdp_status fsdpi_commit_write(const fsdpi_commit *commit, fsdpi_problem *problem)
{
    fsdpi_chunk      *chunks = calloc(commit->n_sums + 1, sizeof *chunks);
    fsdpi_file_sums  *files  = calloc(commit->n_files + 1, sizeof *files);
    fsdpi_file_chunk *sums   = NULL;
    size_t            n      = 0;
    fsdp_status       status;

    if (chunks == NULL || files == NULL) {
        status = fsdpi_problem_memory(problem, commit->folder, commit->n_sums * sizeof *chunks);
    } else {
        status = fsdpi_sums_take(commit->folder, commit->n_sums, &sums, &n, problem);
        status = status == FSDP_OK ? write_with(commit, sums, n, chunks, files, problem) : status;
    }
    free(sums);
    free(chunks);
    free(files);
    return status;
}

static fsdp_status write_state_file(fsdp_checkpoint *c)
{
    const size_t       n     = fsdpi_checkpoint_count_files(c);
    fsdpi_cached_file *files = calloc(n + 1, sizeof *files);
    char               folder[FSDPI_FOLDER_PATH_BYTES];

    if (files == NULL) {
        return fsdpi_problem_memory(&c->problem, c->folder.path, n * sizeof *files);
    }
    fsdpi_checkpoint_partial_path(c, folder);
    fsdpi_checkpoint_list_files(c, files);
    const fsdpi_commit commit = {
        .folder = folder, .state = &c->state, .n_files = n, .files = files, .n_sums = c->n_sums};
    const fsdp_status status = fsdpi_commit_write(&commit, &c->problem);
    free(files);
    return status;
}

/* ---- the work ---------------------------------------------------------------------------------------------------- */

fsdp_status fsdpi_checkpoint_commit(fsdp_checkpoint *c)
{
    const fsdp_checkpoint_options *o = &c->options;

    FSDP_TRY(write_state_file(c));
    FSDP_TRY(fsdpi_run_folder_commit(&c->folder, c->state.program.step, &c->problem));
    fsdpi_run_folder_prune(&c->folder, o->keep_last, o->keep_every);
    return FSDP_OK;
}
