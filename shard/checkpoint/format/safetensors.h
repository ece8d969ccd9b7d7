/**
 * @file
 * Safetensors, Hugging Face's format: 8 bytes with the length of the header (little-endian), the header, one JSON object from
 * names to {"dtype", "shape", "data_offsets": [begin, end]}, and the tensors' bytes, row-major and little-endian. The member
 * "__metadata__" maps strings to strings.
 *
 * Reading trusts nothing. A header is refused, with its byte and tensor, unless: its length is at most 100,000,000 and within
 * the file; it begins with '{' and only spaces follow the object; no name comes twice; types are known; shape and offsets
 * are whole numbers below 2^64; begin <= end; end - begin is elements x bytes of the type, without overflow; the tensors fill
 * the data from its first byte to the file's last, without hole or overlap. JSON is read as shard/checkpoint/format/json.h
 * says. Members of a tensor other than those three are refused.
 *
 * Nothing here communicates, opens a file or needs a context. Memory: at most about 8 times the header's length.
 */
#ifndef FSDPI_SAFETENSORS_H
#define FSDPI_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/dtype.h"
#include "shard/checkpoint/format/problem.h"

/* Numbers go into files and come out of them as they are in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "checkpoints need a little-endian machine, as their files are");

#define FSDPI_SAFETENSORS_HEADER_MOST 100000000u /* BYTES */

/** The header's own bytes and the 8 before it fill a multiple of this, so that data begins at one. */
#define FSDPI_SAFETENSORS_ALIGNMENT 256u /* BYTES */

/** The one list of the format's types: enumerator, name in the file, BITS of an element. */
#define FSDPI_STORED_LIST(X)                                                                                           \
    X(FSDPI_STORED_F64, "F64", 64)                                                                                     \
    X(FSDPI_STORED_F32, "F32", 32)                                                                                     \
    X(FSDPI_STORED_BF16, "BF16", 16)                                                                                   \
    X(FSDPI_STORED_F16, "F16", 16)                                                                                     \
    X(FSDPI_STORED_I64, "I64", 64)                                                                                     \
    X(FSDPI_STORED_I32, "I32", 32)                                                                                     \
    X(FSDPI_STORED_U8, "U8", 8)                                                                                        \
    X(FSDPI_STORED_I8, "I8", 8)                                                                                        \
    X(FSDPI_STORED_BOOL, "BOOL", 8)                                                                                    \
    X(FSDPI_STORED_I16, "I16", 16)                                                                                     \
    X(FSDPI_STORED_U16, "U16", 16)                                                                                     \
    X(FSDPI_STORED_U32, "U32", 32)                                                                                     \
    X(FSDPI_STORED_U64, "U64", 64)                                                                                     \
    X(FSDPI_STORED_C64, "C64", 64)                                                                                     \
    X(FSDPI_STORED_F8_E4M3, "F8_E4M3", 8)                                                                              \
    X(FSDPI_STORED_F8_E5M2, "F8_E5M2", 8)                                                                              \
    X(FSDPI_STORED_F8_E8M0, "F8_E8M0", 8)                                                                              \
    X(FSDPI_STORED_F6_E2M3, "F6_E2M3", 6)                                                                              \
    X(FSDPI_STORED_F6_E3M2, "F6_E3M2", 6)                                                                              \
    X(FSDPI_STORED_F4, "F4", 4)

#define FSDPI_STORED_ENUMERATOR(name, text, bits) name,
/** An element type as stored. The first FSDP_N_DTYPES are the library's own, with the values of fsdp_dtype. */
typedef enum fsdpi_stored { FSDPI_STORED_LIST(FSDPI_STORED_ENUMERATOR) FSDPI_N_STORED } fsdpi_stored;
#undef FSDPI_STORED_ENUMERATOR

const char *fsdpi_stored_name(fsdpi_stored type);
size_t      fsdpi_stored_bits(fsdpi_stored type);

/** A tensor of a file. */
typedef struct fsdpi_tensor_info {
    const char     *name;
    fsdpi_stored    dtype;
    size_t          n_dims; /* 0: a scalar */
    const uint64_t *dims;
    uint64_t        begin; /* BYTES from the start of the data; the file's offset is data_offset + begin */
    uint64_t        end;
} fsdpi_tensor_info;

typedef struct fsdpi_text_pair {
    const char *name;
    const char *value;
} fsdpi_text_pair;

/** A header that has passed all checks. */
typedef struct fsdpi_safetensors {
    uint64_t           file_bytes;
    uint64_t           data_offset; /* BYTES from the start of the file */
    size_t             n_tensors;
    fsdpi_tensor_info *tensors; /* in the order of their bytes; those without bytes first where several begin */
    size_t             n_metadata;
    fsdpi_text_pair   *metadata; /* in the order of the file */
    size_t            *by_name;  /* indices of tensors, by name */
    char              *text;     /* the header, which names and values point into */
    uint64_t          *dims;     /* of all tensors */
} fsdpi_safetensors;

/** The length of a header from the first 8 bytes of a file of `file_bytes`. FSDP_ERR_FORMAT. */
fsdp_status fsdpi_safetensors_length(const char *file, const unsigned char *first8, uint64_t file_bytes,
                                     size_t *header_bytes, fsdpi_problem *problem);

/**
 * Checks and takes apart a header.
 *
 * @param[in]  file        its name, for texts of problems
 * @param[in]  header      `header_bytes`, without the 8 bytes before them; copied
 * @param[in]  file_bytes  BYTES of the whole file
 * @param[out] parsed      released with fsdpi_safetensors_free(); zeros after an error
 * @return FSDP_OK; FSDP_ERR_FORMAT, FSDP_ERR_MEMORY
 */
fsdp_status fsdpi_safetensors_parse(const char *file, const char *header, size_t header_bytes, uint64_t file_bytes,
                                    fsdpi_safetensors *parsed, fsdpi_problem *problem);

void fsdpi_safetensors_free(fsdpi_safetensors *parsed);

/** The tensor of a name; NULL if there is none. O(log n). */
const fsdpi_tensor_info *fsdpi_safetensors_find(const fsdpi_safetensors *parsed, const char *name);

/** The value of a name in "__metadata__"; NULL if there is none. */
const char *fsdpi_safetensors_metadata(const fsdpi_safetensors *parsed, const char *name);

/** The product of the dimensions. Only of tensors that have been parsed or laid out, which cannot overflow. */
uint64_t fsdpi_tensor_elements(const fsdpi_tensor_info *tensor);

/** BYTES of a shape; FSDP_ERR_FORMAT where they do not fit into 64 bits or are no whole number of bytes. */
fsdp_status fsdpi_tensor_bytes(const fsdpi_tensor_info *tensor, uint64_t *bytes, fsdpi_problem *problem);

/**
 * Lays tensors out in one file and makes what comes before their bytes: a pure function, the same bytes on every rank.
 * Tensors of wider types come first, so that each is aligned, and otherwise in the order given.
 *
 * @param[in,out] tensors       name, dtype, n_dims and dims are read; begin and end are set. Names differ and are valid
 *                              UTF-8, not "" and not "__metadata__"
 * @param[in]     metadata      `n_metadata` pairs, written in this order; NULL where there are none
 * @param[out]    header        the 8 bytes and the header, which the caller frees; spaces at its end fill it up to a multiple of
 *                              FSDPI_SAFETENSORS_ALIGNMENT
 * @param[out]    header_bytes  all of it: where data begins, the `data_offset` of the file
 * @param[out]    file_bytes    BYTES of the whole file
 * @return FSDP_OK; FSDP_ERR_ARG: a name twice or not allowed; FSDP_ERR_FORMAT: a size that does not fit, a header that would be
 *         too long; FSDP_ERR_MEMORY. Nothing is left to free then.
 */
fsdp_status fsdpi_safetensors_lay_out(const char *file, fsdpi_tensor_info *tensors, size_t n_tensors,
                                      const fsdpi_text_pair *metadata, size_t n_metadata, char **header,
                                      size_t *header_bytes, uint64_t *file_bytes, fsdpi_problem *problem);

#endif
