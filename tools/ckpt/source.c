#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "tools/ckpt/ckpt.h"

#define SIMULATION_STEM "simulation" /* of the program's own arrays */

static bool is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Whether a folder holds the tensors of a stem. */
static bool holds(const char *folder, const char *stem)
{
    char name[FSDPI_STEM_BYTES + 64], path[FSDPI_FOLDER_PATH_BYTES];

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
    return access(path, F_OK) == 0 || holds(folder, FSDPI_MODEL_STEM);
}

static fsdp_status follow_latest(ckpt_source *source, fsdpi_problem *problem)
{
    char name[FSDPI_FOLDER_NAME_BYTES], path[FSDPI_FOLDER_PATH_BYTES];

    FSDP_TRY(fsdpi_folder_latest(source->path, name, problem));
    if (name[0] == 0) {
        return fsdpi_problem_set(problem, FSDP_ERR_IO,
                                 "%s: there is neither " FSDPI_MODEL_STEM ".safetensors nor `latest` in this folder",
                                 source->path);
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

size_t ckpt_part_find(const ckpt_source *source, const char *stem)
{
    size_t index = 0;

    while (index < source->n_parts && strcmp(source->parts[index].stem, stem) != 0) {
        index++;
    }
    return index;
}

static void add_part(ckpt_source *source, const char *stem)
{
    (void)snprintf(source->parts[source->n_parts++].stem, FSDPI_STEM_BYTES, "%s", stem);
}

static void add_model(ckpt_source *source, const char *name)
{
    char stem[FSDPI_STEM_BYTES];

    add_part(source, fsdpi_model_stem(name, FSDPI_MODEL_STEM, stem));
    add_part(source, fsdpi_model_stem(name, FSDPI_OPTIMIZER_STEM, stem));
}

/* In the order of state.json. The model without a name has a place also where it is not there. */
static fsdp_status list_parts(ckpt_source *source, fsdpi_problem *problem)
{
    const fsdpi_model_state *first = source->state.models != NULL ? source->state.models->next : NULL;
    size_t                   most  = 3;

    for (const fsdpi_model_state *model = first; model != NULL; model = model->next) {
        most += 2;
    }
    source->parts = calloc(most, sizeof *source->parts);
    if (source->parts == NULL) {
        (void)fsdpi_problem_memory(problem, source->path, most * sizeof *source->parts);
        return FSDP_ERR_MEMORY;
    }
    if (!source->is_folder) {
        add_part(source, "");
        return FSDP_OK;
    }
    add_model(source, "");
    for (const fsdpi_model_state *model = first; model != NULL; model = model->next) {
        add_model(source, model->name);
    }
    add_part(source, SIMULATION_STEM);
    return FSDP_OK;
}

fsdp_status ckpt_source_find(const char *path, ckpt_source *source, fsdpi_problem *problem)
{
    fsdpi_problem unlisted;

    *source = (ckpt_source){.n_parts = 0};
    if (strlen(path) >= sizeof source->path - 2 * FSDPI_FOLDER_NAME_BYTES) {
        return fsdpi_problem_set(problem, FSDP_ERR_IO, "%.200s...: a path of %zu bytes is too long", path,
                                 strlen(path));
    }
    (void)snprintf(source->path, sizeof source->path, "%s", path);
    source->is_folder = is_folder(path);
    if (!source->is_folder) {
        return list_parts(source, problem);
    }
    if (!holds_any(source->path)) {
        FSDP_TRY(follow_latest(source, problem));
    }
    const fsdp_status status = read_state(source, problem);
    const fsdp_status listed = list_parts(source, status == FSDP_OK ? problem : &unlisted);
    return status != FSDP_OK ? status : listed;
}

/* What a checkpoint was saved with has checksums; a folder from elsewhere is that of a model. */
static bool is_expected(const ckpt_source *source, const char *stem)
{
    return source->has_state ? fsdpi_state_has_files(&source->state, stem) : strcmp(stem, FSDPI_MODEL_STEM) == 0;
}

fsdp_status ckpt_source_open_part(ckpt_source *source, size_t index, fsdpi_problem *problem)
{
    ckpt_part *const part = &source->parts[index];

    if (!source->is_folder) {
        return fsdpi_tensor_files_open(source->path, &part->files, problem);
    }
    if (!holds(source->path, part->stem) && !is_expected(source, part->stem)) {
        return FSDP_OK;
    }
    return fsdpi_tensor_files_open_in(source->path, part->stem, &part->files, problem);
}

fsdp_status ckpt_source_open(const char *path, ckpt_source *source, fsdpi_problem *problem)
{
    FSDP_TRY(ckpt_source_find(path, source, problem));
    for (size_t i = 0; i < source->n_parts; i++) {
        FSDP_TRY(ckpt_source_open_part(source, i, problem));
    }
    return FSDP_OK;
}

void ckpt_source_close(ckpt_source *source)
{
    for (size_t i = 0; i < source->n_parts; i++) {
        fsdpi_tensor_files_close(&source->parts[i].files);
    }
    free(source->parts);
    fsdpi_state_free(&source->state);
}

int ckpt_fail(const fsdpi_problem *problem)
{
    (void)fprintf(stderr, "fsdp-ckpt: %s\n", problem->text);
    return problem->status == FSDP_ERR_FORMAT ? CKPT_DIFFERENT : CKPT_FAILED;
}
