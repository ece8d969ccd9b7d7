#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "tools/ckpt/ckpt.h"

fsdp_status ckpt_piece_make(ckpt_piece *piece, fsdpi_problem *problem)
{
    piece->raw    = malloc(CKPT_PIECE * sizeof(double));
    piece->values = malloc(CKPT_PIECE * sizeof *piece->values);
    if (piece->raw == NULL || piece->values == NULL) {
        ckpt_piece_free(piece);
        return fsdpi_problem_memory(problem, "tensors", 2 * CKPT_PIECE * sizeof(double));
    }
    return FSDP_OK;
}

void ckpt_piece_free(ckpt_piece *piece)
{
    free(piece->raw);
    free(piece->values);
    *piece = (ckpt_piece){0};
}

bool ckpt_is_float(fsdpi_stored type)
{
    return type == FSDPI_STORED_F64 || type == FSDPI_STORED_F32 || type == FSDPI_STORED_BF16 ||
           type == FSDPI_STORED_F16;
}

bool ckpt_has_values(fsdpi_stored type)
{
    return type <= FSDPI_STORED_U64; /* the order of FSDPI_STORED_LIST */
}

size_t ckpt_piece_count(const fsdpi_tensor_info *tensor, uint64_t first)
{
    const uint64_t left = fsdpi_tensor_elements(tensor) - first;

    return left < CKPT_PIECE ? (size_t)left : CKPT_PIECE;
}

fsdp_status ckpt_read_raw(const fsdpi_placed_tensor *tensor, uint64_t first, size_t count, void *raw,
                          fsdpi_problem *problem)
{
    const size_t bits = fsdpi_stored_bits(tensor->info->dtype);

    return fsdpi_tensor_read(tensor, first * bits / 8, raw, count * bits / 8, problem);
}

#define WIDEN(type)                                                                                                    \
    for (size_t i = 0; i < count; i++) {                                                                               \
        values[i] = (double)((const type *)raw)[i];                                                                    \
    }                                                                                                                  \
    break

void ckpt_to_values(fsdpi_stored type, const void *raw, size_t count, double *values)
{
    if (ckpt_is_float(type)) {
        fsdpi_kernels_find("auto")->cast(values, FSDP_F64, raw, (fsdp_dtype)type, count);
        return;
    }
    switch (type) {
    case FSDPI_STORED_I64:
        WIDEN(int64_t);
    case FSDPI_STORED_I32:
        WIDEN(int32_t);
    case FSDPI_STORED_I16:
        WIDEN(int16_t);
    case FSDPI_STORED_I8:
        WIDEN(int8_t);
    case FSDPI_STORED_U64:
        WIDEN(uint64_t);
    case FSDPI_STORED_U32:
        WIDEN(uint32_t);
    case FSDPI_STORED_U16:
        WIDEN(uint16_t);
    default: /* U8 and BOOL */
        WIDEN(uint8_t);
    }
}

const char *ckpt_shape_text(const fsdpi_tensor_info *tensor, char *text, size_t bytes)
{
    size_t used = 0;

    (void)snprintf(text, bytes, "scalar");
    for (size_t i = 0; i < tensor->n_dims && used < bytes; i++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s%" PRIu64, i > 0 ? " x " : "", tensor->dims[i]);
    }
    return text;
}

void ckpt_put_tensor(fsdpi_json_writer *writer, const fsdpi_tensor_info *tensor)
{
    fsdpi_json_put_string(writer, "name", tensor->name);
    fsdpi_json_put_string(writer, "dtype", fsdpi_stored_name(tensor->dtype));
    fsdpi_json_begin_array(writer, "shape", true);
    for (size_t i = 0; i < tensor->n_dims; i++) {
        fsdpi_json_put_u64(writer, NULL, tensor->dims[i]);
    }
    fsdpi_json_end_array(writer);
    fsdpi_json_put_u64(writer, "bytes", tensor->end - tensor->begin);
}

int ckpt_print_json(fsdpi_json_writer *writer, int result)
{
    char         *text;
    size_t        bytes;
    fsdpi_problem problem;

    if (fsdpi_json_writer_end(writer, &text, &bytes, &problem) != FSDP_OK) {
        return ckpt_fail(&problem);
    }
    (void)fwrite(text, 1, bytes, stdout);
    free(text);
    return result;
}
