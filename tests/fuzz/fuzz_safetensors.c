/* A safetensors file: what is taken keeps every rule, and is written again as it was read. */
#include <stdbool.h>
#include <string.h>

#include "shard/checkpoint/format/safetensors.h"
#include "tests/fuzz/fuzz.h"

static bool same_tensor(const fsdpi_tensor_info *a, const fsdpi_tensor_info *b)
{
    return a->dtype == b->dtype && a->n_dims == b->n_dims && a->end - a->begin == b->end - b->begin &&
           (a->n_dims == 0 || memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0);
}

static void keeps_the_rules(const fsdpi_safetensors *parsed)
{
    uint64_t      end = 0, bytes;
    fsdpi_problem problem;

    for (size_t i = 0; i < parsed->n_tensors; i++) {
        const fsdpi_tensor_info *const tensor = &parsed->tensors[i];

        MUST(tensor->begin == end && tensor->end >= end);
        MUST(fsdpi_tensor_bytes(tensor, &bytes, &problem) == FSDP_OK && bytes == tensor->end - tensor->begin);
        MUST(fsdpi_safetensors_find(parsed, tensor->name) == tensor);
        end = tensor->end;
    }
    MUST(parsed->data_offset + end == parsed->file_bytes);
}

static bool has_empty_name(const fsdpi_safetensors *parsed)
{
    return fsdpi_safetensors_find(parsed, "") != NULL;
}

static void is_written_again(const fsdpi_safetensors *parsed)
{
    const size_t       n    = parsed->n_tensors;
    fsdpi_tensor_info *copy = malloc((n + 1) * sizeof *copy);
    char              *header;
    size_t             header_bytes;
    uint64_t           file_bytes;
    fsdpi_safetensors  again;
    fsdpi_problem      problem;

    MUST(copy != NULL && (n == 0 || parsed->tensors != NULL));
    memcpy(copy, parsed->tensors != NULL ? parsed->tensors : copy, n * sizeof *copy);
    MUST(fsdpi_safetensors_lay_out("again", copy, n, parsed->metadata, parsed->n_metadata, &header, &header_bytes,
                                   &file_bytes, &problem) == FSDP_OK);
    MUST(fsdpi_safetensors_parse("again", header + 8, header_bytes - 8, file_bytes, &again, &problem) == FSDP_OK);
    keeps_the_rules(&again);
    MUST(again.n_tensors == n && again.n_metadata == parsed->n_metadata);
    for (size_t i = 0; i < n; i++) {
        const fsdpi_tensor_info *const found = fsdpi_safetensors_find(&again, copy[i].name);

        MUST(found != NULL && same_tensor(found, &parsed->tensors[i]));
    }
    for (size_t i = 0; i < parsed->n_metadata; i++) {
        MUST(strcmp(again.metadata[i].name, parsed->metadata[i].name) == 0);
        MUST(strcmp(again.metadata[i].value, parsed->metadata[i].value) == 0);
    }
    fsdpi_safetensors_free(&again);
    free(header);
    free(copy);
}

static void header_is_read(const uint8_t *header, size_t header_bytes, uint64_t file_bytes)
{
    fsdpi_safetensors parsed;
    fsdpi_problem     problem;

    if (fsdpi_safetensors_parse("input", (const char *)header, header_bytes, file_bytes, &parsed, &problem) ==
        FSDP_OK) {
        keeps_the_rules(&parsed);
        if (!has_empty_name(&parsed)) {
            is_written_again(&parsed);
        }
        fsdpi_safetensors_free(&parsed);
    }
}

/* As a file; and as a header behind two bytes with the length of its data, since few changes keep a file's own length right. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t        header_bytes;
    fsdpi_problem problem;

    if (bytes >= 8 && fsdpi_safetensors_length("input", data, bytes, &header_bytes, &problem) == FSDP_OK) {
        header_is_read(data + 8, header_bytes, bytes);
    }
    if (bytes >= 2) {
        header_is_read(data + 2, bytes - 2, 8 + (bytes - 2) + (data[0] | (uint64_t)data[1] << 8));
    }
    return 0;
}
