/*
 * Makes a folder with one checkpoint, as fsdp_checkpoint_save() leaves it, for the tests of fsdp-ckpt: checksums are not in
 * Python's standard library.
 *
 *     make_checkpoint FOLDER        FOLDER/latest, FOLDER/step-000000005/{model,optimizer}.safetensors and state.json
 *     make_checkpoint FOLDER actor  and actor.{model,optimizer}.safetensors, of a model with a name
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard/checkpoint/folder/run_folder.h"
#include "shard/checkpoint/format/checksums_file.h"
#include "shard/checkpoint/format/state.h"
#include "shard/checkpoint/format/tensor_files.h"

#define CHUNK 1000 /* BYTES, so that there are several */

enum { N_FILES = 4 };

static fsdpi_problem problem;

static void must(fsdp_status status)
{
    if (status != FSDP_OK) {
        (void)fprintf(stderr, "%s\n", problem.text);
        exit(EXIT_FAILURE);
    }
}

static void *must_have(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void add_sums(fsdpi_file_sums *sums, const char *bytes, size_t n_bytes)
{
    const size_t n = (n_bytes + CHUNK - 1) / CHUNK;

    sums->bytes    = n_bytes;
    sums->chunks   = must_have(calloc(n, sizeof *sums->chunks));
    sums->n_chunks = n;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = i * CHUNK, count = n_bytes - begin < CHUNK ? n_bytes - begin : CHUNK;

        sums->chunks[i] = (fsdpi_chunk){begin, count, fsdpi_checksum(bytes + begin, count)};
    }
}

/* One file of two tensors, whose values count up. */
static void make_file(const char *folder, const char *stem, fsdpi_file_sums *sums)
{
    static const uint64_t dims[]    = {30, 20};
    fsdpi_tensor_info     tensors[] = {{.name = "w", .dtype = FSDPI_STORED_F32, .n_dims = 2, .dims = dims},
                                       {.name = "b", .dtype = FSDPI_STORED_F32, .n_dims = 1, .dims = dims}};
    char                  path[FSDPI_FOLDER_PATH_BYTES];
    fsdpi_file_plan       plan;

    must(fsdpi_file_plan_make(stem, tensors, 2, NULL, 0, 0, &plan, &problem));
    const fsdpi_planned_file *const file   = &plan.files[0];
    char *const                     bytes  = must_have(calloc(1, (size_t)file->file_bytes));
    const size_t                    n_data = ((size_t)file->file_bytes - file->header_bytes) / sizeof(float);

    memcpy(bytes, file->header, file->header_bytes);
    for (size_t i = 0; i < n_data; i++) {
        const float value = (float)i;

        memcpy(bytes + file->header_bytes + i * sizeof value, &value, sizeof value);
    }
    fsdpi_path_join(path, folder, file->name);
    must(fsdpi_write_file(path, bytes, (size_t)file->file_bytes, &problem));
    sums->name = must_have(strdup(file->name));
    add_sums(sums, bytes, (size_t)file->file_bytes);
    free(bytes);
    fsdpi_file_plan_free(&plan);
}

static void make_state(const char *folder, bool with_actor, const fsdpi_checksums *sums)
{
    fsdpi_model_state actor = {
        .name = "actor", .strategy = "NO_SHARD", .has_optimizer = true, .optimizer = "sgd", .optimizer_steps = 1};
    fsdpi_model_state model = {.next            = with_actor ? &actor : NULL,
                               .strategy        = "FULL_SHARD",
                               .has_optimizer   = true,
                               .optimizer       = "adamw",
                               .optimizer_steps = 5};
    fsdpi_state       state = {
              .program = {.step = 5, .epoch = 1, .sample = 7, .seed = UINT64_MAX, .ranks = 3, .text = "\"notes\""},
              .models  = &model,
              .sums    = *sums};
    char   path[FSDPI_FOLDER_PATH_BYTES], *text;
    size_t bytes;

    state.sums.apart = true;
    fsdpi_path_join(path, folder, FSDPI_CHECKSUMS_FILE);
    must(fsdpi_checksums_file_write(path, &state.sums, &problem));
    must(fsdpi_state_write(&state, &text, &bytes, &problem));
    fsdpi_path_join(path, folder, FSDPI_STATE_FILE);
    must(fsdpi_write_file(path, text, bytes, &problem));
    free(text);
}

int main(int argc, char **argv)
{
    static const char *const stems[N_FILES] = {"model", "optimizer", "actor.model", "actor.optimizer"};
    const bool               with_actor     = argc == 3;
    char                     path[FSDPI_FOLDER_PATH_BYTES];
    fsdpi_file_sums          files[N_FILES] = {{.name = NULL}};
    fsdpi_checksums          sums           = {.n_files = with_actor ? N_FILES : N_FILES / 2, .files = files};
    fsdpi_run_folder         folder;

    if (argc != 2 && argc != 3) {
        return EXIT_FAILURE;
    }
    must(fsdpi_run_folder_set(&folder, argv[1], &problem));
    must(fsdpi_run_folder_open(&folder, FSDP_CHECKPOINT_LOCK_AUTO, &problem));
    fsdpi_run_folder_name_partial(&folder, 5);
    must(fsdpi_run_folder_begin(&folder, &problem));
    fsdpi_path_join(path, folder.path, folder.partial);
    for (size_t i = 0; i < sums.n_files; i++) {
        make_file(path, stems[i], &files[i]);
    }
    make_state(path, with_actor, &sums);
    must(fsdpi_run_folder_commit(&folder, 5, &problem));
    fsdpi_run_folder_close(&folder);
    for (size_t i = 0; i < sums.n_files; i++) {
        free(files[i].name);
        free(files[i].chunks);
    }
    return EXIT_SUCCESS;
}
