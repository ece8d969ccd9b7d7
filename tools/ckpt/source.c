#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "tools/ckpt/ckpt.h"

static const char *const stems[CKPT_MOST_PARTS] = {"model", "optimizer", "simulation"};

static bool is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Whether a folder holds the tensors of a stem. */
static bool holds(const char *folder, const char *stem)
{
    char name[64], path[FSDPI_FOLDER_PATH_BYTES];

    (void)snprintf(name, sizeof name, "%s.safetensors", stem);
    fsdpi_path_join(path, folder, name);
    if (access(path, F_OK) == 0) {
        return true;
    }
    (void)snprintf(name, sizeof name, "%s.safetensors" FSDPI_INDEX_SUFFIX, stem);
    fsdpi_path_join(path, folder, name);
    return access(path, F_OK) == 0;
}

/* A checkpoint, or a model from elsewhere. */
static bool holds_any(const char *folder)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, folder, FSDPI_STATE_FILE);
    return access(path, F_OK) == 0 || holds(folder, stems[0]);
}

static fsdp_status follow_latest(ckpt_source *source, fsdpi_problem *problem)
{
    char name[FSDPI_FOLDER_NAME_BYTES], path[FSDPI_FOLDER_PATH_BYTES];

    FSDP_TRY(fsdpi_folder_latest(source->path, name, problem));
    if (name[0] == 0) {
        return fsdpi_problem_set(problem, FSDP_ERR_IO,
                                 "%s: there is neither %s.safetensors nor `latest` in this folder", source->path,
                                 stems[0]);
    }
    fsdpi_path_join(path, source->path, name);
    memcpy(source->path, path, sizeof path);
    return FSDP_OK;
}

static fsdp_status read_state(ckpt_source *source, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES];

    fsdpi_path_join(path, source->path, FSDPI_STATE_FILE);
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return FSDP_OK; /* a model from elsewhere */
    }
    FSDP_TRY(fsdpi_state_read(path, &source->state, problem));
    source->has_state = true;
    return FSDP_OK;
}

size_t ckpt_part_find(const char *stem)
{
    size_t index = 0;

    while (index < CKPT_MOST_PARTS && strcmp(stems[index], stem) != 0) {
        index++;
    }
    return index;
}

fsdp_status ckpt_source_find(const char *path, ckpt_source *source, fsdpi_problem *problem)
{
    *source = (ckpt_source){.n_parts = 1};
    if (strlen(path) >= sizeof source->path - 2 * FSDPI_FOLDER_NAME_BYTES) {
        return fsdpi_problem_set(problem, FSDP_ERR_IO, "%.200s...: a path of %zu bytes is too long", path,
                                 strlen(path));
    }
    (void)snprintf(source->path, sizeof source->path, "%s", path);
    source->is_folder = is_folder(path);
    if (!source->is_folder) {
        return FSDP_OK;
    }
    if (!holds_any(source->path)) {
        FSDP_TRY(follow_latest(source, problem));
    }
    source->n_parts = CKPT_MOST_PARTS;
    return read_state(source, problem);
}

/* What a checkpoint was saved with has checksums; a folder from elsewhere is that of a model. */
static bool is_expected(const ckpt_source *source, size_t index)
{
    char name[64];

    if (!source->has_state) {
        return index == 0;
    }
    (void)snprintf(name, sizeof name, "%s.safetensors", stems[index]);
    if (fsdpi_checksums_find(&source->state.sums, name) != NULL) {
        return true;
    }
    (void)snprintf(name, sizeof name, "%s.safetensors" FSDPI_INDEX_SUFFIX, stems[index]);
    return fsdpi_checksums_find(&source->state.sums, name) != NULL;
}

fsdp_status ckpt_source_open_part(ckpt_source *source, size_t index, fsdpi_problem *problem)
{
    ckpt_part *const part = &source->parts[index];

    part->stem = source->is_folder ? stems[index] : NULL;
    if (source->is_folder && !holds(source->path, stems[index]) && !is_expected(source, index)) {
        return FSDP_OK;
    }
    return source->is_folder ? fsdpi_tensor_files_open_in(source->path, part->stem, &part->files, problem)
                             : fsdpi_tensor_files_open(source->path, &part->files, problem);
}

fsdp_status ckpt_source_open(const char *path, ckpt_source *source, fsdpi_problem *problem)
{
    FSDP_TRY(ckpt_source_find(path, source, problem));
    for (size_t i = 0; i < source->n_parts && i < CKPT_MOST_PARTS; i++) {
        FSDP_TRY(ckpt_source_open_part(source, i, problem));
    }
    return FSDP_OK;
}

void ckpt_source_close(ckpt_source *source)
{
    for (size_t i = 0; i < CKPT_MOST_PARTS; i++) {
        fsdpi_tensor_files_close(&source->parts[i].files);
    }
    fsdpi_checksums_free(&source->state.sums);
}

int ckpt_fail(const fsdpi_problem *problem)
{
    (void)fprintf(stderr, "fsdp-ckpt: %s\n", problem->text);
    return problem->status == FSDP_ERR_FORMAT ? CKPT_DIFFERENT : CKPT_FAILED;
}
