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

/* The chunks of one file, from the first in `sums` on. Returns how many. */
static size_t take_file(const fsdp_checkpoint *c, size_t file, const fsdpi_file_chunk *sums, size_t n,
                        fsdpi_chunk *chunks, fsdpi_file_sums *about)
{
    size_t i = 0;

    for (; i < n && sums[i].file == file; i++) {
        chunks[i] = (fsdpi_chunk){.begin = sums[i].begin, .bytes = sums[i].bytes, .sum = sums[i].sum};
    }
    *about = (fsdpi_file_sums){.n_chunks = i, .chunks = chunks};
    if (file < fsdpi_saved_models_files(c->models)) {
        about->name = (char *)(uintptr_t)fsdpi_saved_models_file(c->models, file, &about->bytes);
    } else {
        about->name    = c->arrays.plan.files[0].name;
        about->bytes   = c->arrays.plan.files[0].file_bytes;
        about->adds_up = true;
    }
    return i;
}

static fsdp_status write_state(fsdp_checkpoint *c)
{
    char   path[FSDPI_FOLDER_PATH_BYTES], folder[FSDPI_FOLDER_PATH_BYTES], *text;
    size_t bytes;

    FSDP_TRY(fsdpi_state_write(&c->state, &text, &bytes, &c->problem));
    fsdpi_checkpoint_partial_path(c, folder);
    fsdpi_path_join(path, folder, FSDPI_STATE_FILE);
    const fsdp_status status = fsdpi_write_file(path, text, bytes, &c->problem);
    free(text);
    return status;
}

/* Those of the program's arrays behind those of the models. */
static size_t count_files(const fsdp_checkpoint *c)
{
    return fsdpi_saved_models_files(c->models) + (c->arrays.n > 0);
}

static fsdp_status write_state_with(fsdp_checkpoint *c, const fsdpi_file_chunk *sums, size_t n, fsdpi_chunk *chunks,
                                    fsdpi_file_sums *files)
{
    const size_t n_files = count_files(c);
    char         path[FSDPI_FOLDER_PATH_BYTES], folder[FSDPI_FOLDER_PATH_BYTES];
    size_t       taken = 0;

    for (size_t file = 0; file < n_files; file++) {
        taken += take_file(c, file, sums + taken, n - taken, chunks + taken, &files[file]);
    }
    c->state.sums = (fsdpi_checksums){.n_files = n_files, .files = files, .apart = true};
    fsdpi_checkpoint_partial_path(c, folder);
    fsdpi_path_join(path, folder, FSDPI_CHECKSUMS_FILE);
    fsdp_status status = fsdpi_checksums_file_write(path, &c->state.sums, &c->problem);
    status             = status == FSDP_OK ? write_state(c) : status;
    c->state.sums      = (fsdpi_checksums){0};
    return status;
}

static fsdp_status write_state_file(fsdp_checkpoint *c)
{
    fsdpi_chunk      *chunks = calloc(c->n_sums + 1, sizeof *chunks);
    fsdpi_file_sums  *files  = calloc(count_files(c) + 1, sizeof *files);
    fsdpi_file_chunk *sums   = NULL;
    size_t            n      = 0;
    fsdp_status       status;

    if (chunks == NULL || files == NULL) {
        status = fsdpi_problem_memory(&c->problem, c->folder.path, c->n_sums * sizeof *chunks);
    } else {
        status = fsdpi_sums_take(c, &sums, &n);
        status = status == FSDP_OK ? write_state_with(c, sums, n, chunks, files) : status;
    }
    free(sums);
    free(chunks);
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
