#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/safetensors.h"

/* Wider types first, as each tensor is then aligned for its type, whatever the lengths of those before it. */
static int compare_places(const void *a, const void *b, void *tensors)
{
    const fsdpi_tensor_info *const tensor = tensors;

    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    const size_t x_bits = fsdpi_stored_bits(tensor[x].dtype), y_bits = fsdpi_stored_bits(tensor[y].dtype);

    if (x_bits != y_bits) {
        return x_bits > y_bits ? -1 : 1;
    }
    return x < y ? -1 : x > y;
}

/* Sets where each tensor begins and ends. */
static fsdp_status place(const char *file, fsdpi_tensor_info *tensors, const size_t *order, size_t n,
                         fsdpi_problem *problem)
{
    fsdpi_problem own;
    uint64_t      end = 0, bytes;

    for (size_t i = 0; i < n; i++) {
        fsdpi_tensor_info *const tensor = &tensors[order[i]];

        if (fsdpi_tensor_bytes(tensor, &bytes, &own) != FSDP_OK) {
            return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: %s", file, own.text);
        }
        tensor->begin = end;
        if (__builtin_add_overflow(end, bytes, &end) ||
            end > (uint64_t)INT64_MAX - 2 * (uint64_t)FSDPI_SAFETENSORS_HEADER_MOST) {
            return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: with tensor '%.200s' more than 2^63 bytes", file,
                                     tensor->name);
        }
        tensor->end = end;
    }
    return FSDP_OK;
}

static void put_tensor(fsdpi_json_writer *writer, const fsdpi_tensor_info *tensor)
{
    fsdpi_json_begin_object(writer, tensor->name, true);
    fsdpi_json_put_string(writer, "dtype", fsdpi_stored_name(tensor->dtype));
    fsdpi_json_begin_array(writer, "shape", true);
    for (size_t i = 0; i < tensor->n_dims; i++) {
        fsdpi_json_put_u64(writer, NULL, tensor->dims[i]);
    }
    fsdpi_json_end_array(writer);
    fsdpi_json_begin_array(writer, "data_offsets", true);
    fsdpi_json_put_u64(writer, NULL, tensor->begin);
    fsdpi_json_put_u64(writer, NULL, tensor->end);
    fsdpi_json_end_array(writer);
    fsdpi_json_end_object(writer);
}

static void put_header(fsdpi_json_writer *writer, const fsdpi_tensor_info *tensors, const size_t *order, size_t n,
                       const fsdpi_text_pair *metadata, size_t n_metadata)
{
    fsdpi_json_writer_init(writer, 0);
    fsdpi_json_begin_object(writer, NULL, false);
    if (n_metadata > 0) {
        fsdpi_json_begin_object(writer, "__metadata__", false);
        for (size_t i = 0; i < n_metadata; i++) {
            fsdpi_json_put_string(writer, metadata[i].name, metadata[i].value);
        }
        fsdpi_json_end_object(writer);
    }
    for (size_t i = 0; i < n; i++) {
        put_tensor(writer, &tensors[order[i]]);
    }
    fsdpi_json_end_object(writer);
}

/* The length, the text, and spaces. Frees `text`. */
static fsdp_status frame(const char *file, char *text, size_t text_bytes, char **header, size_t *header_bytes,
                         fsdpi_problem *problem)
{
    const size_t unit   = FSDPI_SAFETENSORS_ALIGNMENT;
    const size_t all    = (8 + text_bytes + unit - 1) / unit * unit;
    uint64_t     length = all - 8;

    if (length > FSDPI_SAFETENSORS_HEADER_MOST) {
        free(text);
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: a header of %" PRIu64 " bytes; the format allows %u",
                                 file, length, FSDPI_SAFETENSORS_HEADER_MOST);
    }
    *header = malloc(all);
    if (*header == NULL) {
        free(text);
        return fsdpi_problem_memory(problem, file, all);
    }
    for (size_t i = 0; i < 8; i++, length >>= 8) {
        (*header)[i] = (char)(unsigned char)(length & 0xff);
    }
    memcpy(*header + 8, text, text_bytes);
    memset(*header + 8 + text_bytes, ' ', all - 8 - text_bytes);
    *header_bytes = all;
    free(text);
    return FSDP_OK;
}

/* Names come from callers: the reader tells whether it would take them, and whether it would find each tensor again. */
static fsdp_status check(const char *file, const char *header, size_t header_bytes, uint64_t file_bytes,
                         const fsdpi_tensor_info *tensors, size_t n, fsdpi_problem *problem)
{
    fsdpi_safetensors parsed;
    fsdp_status status = fsdpi_safetensors_parse(file, header + 8, header_bytes - 8, file_bytes, &parsed, problem);

    if (status == FSDP_ERR_FORMAT) {
        return problem->status = FSDP_ERR_ARG;
    }
    for (size_t i = 0; status == FSDP_OK && i < n; i++) {
        const fsdpi_tensor_info *const found = fsdpi_safetensors_find(&parsed, tensors[i].name);

        if (found == NULL || tensors[i].name[0] == 0) {
            status = fsdpi_problem_set(problem, FSDP_ERR_ARG, "%s: tensor '%.200s' has a name that is %s", file,
                                       tensors[i].name, found == NULL ? "not UTF-8" : "empty");
        }
    }
    fsdpi_safetensors_free(&parsed);
    return status;
}

static fsdp_status write_header(const char *file, fsdpi_tensor_info *tensors, const size_t *order, size_t n,
                                const fsdpi_text_pair *metadata, size_t n_metadata, char **header, size_t *header_bytes,
                                fsdpi_problem *problem)
{
    fsdpi_json_writer writer;
    char             *text;
    size_t            text_bytes;

    FSDP_TRY(place(file, tensors, order, n, problem));
    put_header(&writer, tensors, order, n, metadata, n_metadata);
    FSDP_TRY(fsdpi_json_writer_end(&writer, &text, &text_bytes, problem));
    return frame(file, text, text_bytes, header, header_bytes, problem);
}

fsdp_status fsdpi_safetensors_lay_out(const char *file, fsdpi_tensor_info *tensors, size_t n_tensors,
                                      const fsdpi_text_pair *metadata, size_t n_metadata, char **header,
                                      size_t *header_bytes, uint64_t *file_bytes, fsdpi_problem *problem)
{
    size_t *const order = malloc((n_tensors + 1) * sizeof *order);
    fsdp_status   status;

    *header = NULL;
    if (order == NULL) {
        return fsdpi_problem_memory(problem, file, (n_tensors + 1) * sizeof *order);
    }
    for (size_t i = 0; i < n_tensors; i++) {
        order[i] = i;
    }
    qsort_r(order, n_tensors, sizeof *order, compare_places, tensors);
    status = write_header(file, tensors, order, n_tensors, metadata, n_metadata, header, header_bytes, problem);
    if (status == FSDP_OK) {
        *file_bytes = *header_bytes + (n_tensors > 0 ? tensors[order[n_tensors - 1]].end : 0);
        status      = check(file, *header, *header_bytes, *file_bytes, tensors, n_tensors, problem);
    }
    free(order);
    if (status != FSDP_OK) {
        free(*header);
        *header = NULL;
    }
    return status;
}
