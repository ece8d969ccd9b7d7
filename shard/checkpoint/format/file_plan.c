#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/tensor_files.h"
#include "shard/checkpoint/format/text.h"

/* Sets which tensors a file takes, from `first` on, and returns their number. */
static fsdp_status fill_file(const fsdpi_tensor_info *tensors, size_t n_tensors, size_t first, uint64_t most_bytes,
                             size_t *n, fsdpi_problem *problem)
{
    uint64_t all = 0, bytes;

    for (*n = 0; first + *n < n_tensors; ++*n) {
        FSDP_TRY(fsdpi_tensor_bytes(&tensors[first + *n], &bytes, problem));
        if (most_bytes > 0 && *n > 0 && (bytes > most_bytes || all > most_bytes - bytes)) {
            break;
        }
        all = bytes > UINT64_MAX - all ? UINT64_MAX : all + bytes;
    }
    return FSDP_OK;
}

/* Divides the tensors; there is always one file. */
static fsdp_status divide(fsdpi_file_plan *plan, const char *stem, const fsdpi_tensor_info *tensors, size_t n_tensors,
                          uint64_t most_bytes, fsdpi_problem *problem)
{
    size_t first = 0, room = 0;

    do {
        if (plan->n_files == room) {
            fsdpi_planned_file *const grown = realloc(plan->files, (room * 2 + 1) * sizeof *grown);

            if (grown == NULL) {
                return fsdpi_problem_memory(problem, stem, (room * 2 + 1) * sizeof *grown);
            }
            plan->files = grown;
            room        = room * 2 + 1;
        }
        fsdpi_planned_file *const file = &plan->files[plan->n_files++];
        *file                          = (fsdpi_planned_file){.first_tensor = first};
        FSDP_TRY(fill_file(tensors, n_tensors, first, most_bytes, &file->n_tensors, problem));
        first += file->n_tensors;
    } while (first < n_tensors);
    return FSDP_OK;
}

static fsdp_status name_file(fsdpi_planned_file *file, const char *stem, size_t index, size_t n_files,
                             fsdpi_problem *problem)
{
    file->name = n_files == 1 ? fsdpi_text("%s.safetensors", stem)
                              : fsdpi_text("%s-%05zu-of-%05zu.safetensors", stem, index + 1, n_files);
    return file->name != NULL ? FSDP_OK : fsdpi_problem_memory(problem, stem, strlen(stem));
}

/* The index as Hugging Face's libraries write it. */
static fsdp_status write_index(fsdpi_file_plan *plan, const char *stem, const fsdpi_tensor_info *tensors,
                               fsdpi_problem *problem)
{
    fsdpi_json_writer writer;
    uint64_t          total = 0;

    plan->index_name = fsdpi_text("%s.safetensors" FSDPI_INDEX_SUFFIX, stem);
    if (plan->index_name == NULL) {
        return fsdpi_problem_memory(problem, stem, strlen(stem));
    }
    fsdpi_json_writer_init(&writer, 2);
    fsdpi_json_begin_object(&writer, NULL, false);
    fsdpi_json_begin_object(&writer, "metadata", false);
    for (size_t f = 0; f < plan->n_files; f++) {
        total += plan->files[f].file_bytes - plan->files[f].header_bytes;
    }
    fsdpi_json_put_u64(&writer, "total_size", total);
    fsdpi_json_end_object(&writer);
    fsdpi_json_begin_object(&writer, "weight_map", false);
    for (size_t f = 0; f < plan->n_files; f++) {
        for (size_t i = 0; i < plan->files[f].n_tensors; i++) {
            fsdpi_json_put_string(&writer, tensors[plan->files[f].first_tensor + i].name, plan->files[f].name);
        }
    }
    fsdpi_json_end_object(&writer);
    fsdpi_json_end_object(&writer);
    return fsdpi_json_writer_end(&writer, &plan->index, &plan->index_bytes, problem);
}

/* Names do not come twice in one file, as its header says; nor may they in two. */
static fsdp_status check_index(const fsdpi_file_plan *plan, fsdpi_problem *problem)
{
    size_t            n;
    const fsdp_status status = fsdpi_tensor_index_check(plan->index_name, plan->index, plan->index_bytes, &n, problem);

    return status == FSDP_ERR_FORMAT ? (problem->status = FSDP_ERR_ARG) : status;
}

static fsdp_status make(fsdpi_file_plan *plan, const char *stem, fsdpi_tensor_info *tensors, size_t n_tensors,
                        const fsdpi_text_pair *metadata, size_t n_metadata, uint64_t most_bytes, fsdpi_problem *problem)
{
    FSDP_TRY(divide(plan, stem, tensors, n_tensors, most_bytes, problem));
    for (size_t i = 0; i < plan->n_files; i++) {
        fsdpi_planned_file *const file = &plan->files[i];

        FSDP_TRY(name_file(file, stem, i, plan->n_files, problem));
        FSDP_TRY(fsdpi_safetensors_lay_out(file->name, n_tensors > 0 ? tensors + file->first_tensor : NULL,
                                           file->n_tensors, metadata, n_metadata, &file->header, &file->header_bytes,
                                           &file->file_bytes, problem));
    }
    if (plan->n_files == 1) {
        return FSDP_OK;
    }
    FSDP_TRY(write_index(plan, stem, tensors, problem));
    return check_index(plan, problem);
}

fsdp_status fsdpi_file_plan_make(const char *stem, fsdpi_tensor_info *tensors, size_t n_tensors,
                                 const fsdpi_text_pair *metadata, size_t n_metadata, uint64_t most_bytes,
                                 fsdpi_file_plan *plan, fsdpi_problem *problem)
{
    fsdp_status status;

    *plan  = (fsdpi_file_plan){0};
    status = make(plan, stem, tensors, n_tensors, metadata, n_metadata, most_bytes, problem);
    if (status != FSDP_OK) {
        fsdpi_file_plan_free(plan);
    }
    return status;
}

void fsdpi_file_plan_free(fsdpi_file_plan *plan)
{
    for (size_t i = 0; i < plan->n_files; i++) {
        free(plan->files[i].name);
        free(plan->files[i].header);
    }
    free(plan->files);
    free(plan->index_name);
    free(plan->index);
    *plan = (fsdpi_file_plan){0};
}
