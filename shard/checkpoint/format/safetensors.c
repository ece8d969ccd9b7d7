#include "shard/checkpoint/format/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/text.h"
#include "shard/checkpoint/format/utf8.h"

#define METADATA "__metadata__"

/* A header on its way into its parts. `room`: elements that the arrays have. */
typedef struct parse_state {
    fsdpi_json_reader  reader;
    fsdpi_safetensors *parsed;
    size_t             tensor_room;
    size_t             metadata_room;
    size_t             dims_room;
    size_t             n_dims;
    bool               has_metadata;
} parse_state;

/* What has been read of one tensor. */
typedef struct tensor_members {
    fsdpi_tensor_info info;
    size_t            first_dim;
    size_t            at; /* BYTE of the header */
    bool              has_dtype, has_shape, has_offsets;
} tensor_members;

static const struct {
    const char *name;
    size_t      bits;
} stored_types[] = {
#define STORED_ROW(enumerator, text, bits) [enumerator] = {text, bits},
    FSDPI_STORED_LIST(STORED_ROW)
#undef STORED_ROW
};

const char *fsdpi_stored_name(fsdpi_stored type)
{
    return stored_types[type].name;
}

size_t fsdpi_stored_bits(fsdpi_stored type)
{
    return stored_types[type].bits;
}

/* ---- Shapes ---- */

uint64_t fsdpi_tensor_elements(const fsdpi_tensor_info *tensor)
{
    uint64_t elements = 1;

    for (size_t i = 0; i < tensor->n_dims; i++) {
        elements *= tensor->dims[i];
    }
    return elements;
}

fsdp_status fsdpi_tensor_bytes(const fsdpi_tensor_info *tensor, uint64_t *bytes, fsdpi_problem *problem)
{
    uint64_t bits = fsdpi_stored_bits(tensor->dtype);

    /* A factor of 0 makes the product 0, however large the others are, but only those after it: as in the format's own
     * library, which multiplies from left to right. */
    bool     too_large = false;
    uint64_t elements  = 1;
    for (size_t i = 0; i < tensor->n_dims; i++) {
        too_large |= __builtin_mul_overflow(elements, tensor->dims[i], &elements);
    }
    too_large |= __builtin_mul_overflow(elements, bits, &bits);
    if (too_large || bits % 8 != 0) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "tensor '%.200s' has a shape of %s", tensor->name,
                                 too_large ? "2^64 bits or more" : "no whole number of bytes");
    }
    *bytes = bits / 8;
    return FSDP_OK;
}

/* ---- Reading ---- */

fsdp_status fsdpi_safetensors_length(const char *file, const unsigned char *first8, uint64_t file_bytes,
                                     size_t *header_bytes, fsdpi_problem *problem)
{
    uint64_t length = 0;

    for (int i = 8; i-- > 0;) {
        length = length << 8 | first8[i];
    }
    if (length > FSDPI_SAFETENSORS_HEADER_MOST) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                 "%s: byte 0: a header of %" PRIu64
                                 " bytes; the format allows %u. Is it a safetensors file?",
                                 file, length, FSDPI_SAFETENSORS_HEADER_MOST);
    }
    if (file_bytes < 8 || length > file_bytes - 8) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                 "%s: byte 0: a header of %" PRIu64 " bytes in a file of %" PRIu64, file, length,
                                 file_bytes);
    }
    *header_bytes = (size_t)length;
    return FSDP_OK;
}

/* The array with room for one more element, and NULL with a problem where there is no memory. */
static void *with_room(const parse_state *state, void *array, size_t *room, size_t used, size_t element_bytes)
{
    const size_t more = *room < 8 ? 8 : *room + *room / 2;
    void        *grown;

    if (used < *room) {
        return array;
    }
    grown = realloc(array, more * element_bytes);
    if (grown == NULL) {
        (void)fsdpi_problem_memory(state->reader.problem, state->reader.file, more * element_bytes);
        return NULL;
    }
    *room = more;
    return grown;
}

static fsdp_status read_dtype(parse_state *state, const fsdpi_json_token *token, tensor_members *tensor)
{
    if (token->kind != FSDPI_JSON_STRING) {
        return fsdpi_json_refuse(&state->reader, token->at, "tensor '%.200s': the dtype is no string",
                                 tensor->info.name);
    }
    for (int i = 0; i < FSDPI_N_STORED; i++) {
        if (strcmp(token->string, stored_types[i].name) == 0) {
            tensor->info.dtype = (fsdpi_stored)i;
            return FSDP_OK;
        }
    }
    return fsdpi_json_refuse(&state->reader, token->at, "tensor '%.200s': the format has no dtype '%.40s'",
                             tensor->info.name, token->string);
}

static fsdp_status read_whole(parse_state *state, const fsdpi_json_token *token, const tensor_members *tensor,
                              const char *what)
{
    if (token->kind != FSDPI_JSON_UNSIGNED) {
        return fsdpi_json_refuse(&state->reader, token->at,
                                 "tensor '%.200s': %s is not a whole number from 0 to 2^64 - 1", tensor->info.name,
                                 what);
    }
    return FSDP_OK;
}

static fsdp_status read_shape(parse_state *state, const fsdpi_json_token *opening, tensor_members *tensor)
{
    fsdpi_json_token token;
    uint64_t        *dims;

    if (opening->kind != FSDPI_JSON_ARRAY) {
        return fsdpi_json_refuse(&state->reader, opening->at, "tensor '%.200s': the shape is no array",
                                 tensor->info.name);
    }
    tensor->first_dim = state->n_dims;
    for (;;) {
        FSDP_TRY(fsdpi_json_next(&state->reader, &token));
        if (token.kind == FSDPI_JSON_END) {
            tensor->info.n_dims = state->n_dims - tensor->first_dim;
            return FSDP_OK;
        }
        FSDP_TRY(read_whole(state, &token, tensor, "a dimension"));
        dims = with_room(state, state->parsed->dims, &state->dims_room, state->n_dims, sizeof *dims);
        if (dims == NULL) {
            return FSDP_ERR_MEMORY;
        }
        dims[state->n_dims++] = token.u64;
        state->parsed->dims   = dims;
    }
}

static fsdp_status read_offsets(parse_state *state, const fsdpi_json_token *opening, tensor_members *tensor)
{
    uint64_t         offsets[2];
    size_t           n     = 0;
    fsdpi_json_token token = *opening;

    if (opening->kind == FSDPI_JSON_ARRAY) {
        for (;; n++) {
            FSDP_TRY(fsdpi_json_next(&state->reader, &token));
            if (token.kind == FSDPI_JSON_END || n == 2) {
                break;
            }
            FSDP_TRY(read_whole(state, &token, tensor, "an offset"));
            offsets[n] = token.u64;
        }
    }
    if (opening->kind != FSDPI_JSON_ARRAY || n != 2 || token.kind != FSDPI_JSON_END) {
        return fsdpi_json_refuse(&state->reader, opening->at, "tensor '%.200s': data_offsets are no array of two",
                                 tensor->info.name);
    }
    tensor->info.begin = offsets[0];
    tensor->info.end   = offsets[1];
    return FSDP_OK;
}

/* One of a tensor's three members. */
static fsdp_status read_member(parse_state *state, const fsdpi_json_token *token, tensor_members *tensor)
{
    const struct {
        const char *name;
        bool       *has;
        fsdp_status (*read)(parse_state *, const fsdpi_json_token *, tensor_members *);
    } members[] = {{"dtype", &tensor->has_dtype, read_dtype},
                   {"shape", &tensor->has_shape, read_shape},
                   {"data_offsets", &tensor->has_offsets, read_offsets}};

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (strcmp(token->name, members[i].name) != 0) {
            continue;
        }
        if (*members[i].has) {
            return fsdpi_json_refuse(&state->reader, token->name_at, "tensor '%.200s' has two members '%s'",
                                     tensor->info.name, members[i].name);
        }
        *members[i].has = true;
        return members[i].read(state, token, tensor);
    }
    return fsdpi_json_refuse(&state->reader, token->name_at,
                             "tensor '%.200s' has a member '%.40s', which the format does not know", tensor->info.name,
                             token->name);
}

/* What one tensor says must be true of itself; `at` is its byte in the header. */
static fsdp_status check_tensor(parse_state *state, const tensor_members *tensor)
{
    const char *const name       = tensor->info.name;
    const uint64_t    data_bytes = state->parsed->file_bytes - state->parsed->data_offset;
    uint64_t          bytes      = 0;
    fsdpi_problem     problem;

    if (!tensor->has_dtype || !tensor->has_shape || !tensor->has_offsets) {
        return fsdpi_json_refuse(&state->reader, tensor->at, "tensor '%.200s' has no %s", name,
                                 !tensor->has_dtype   ? "dtype"
                                 : !tensor->has_shape ? "shape"
                                                      : "data_offsets");
    }
    if (tensor->info.begin > tensor->info.end || tensor->info.end > data_bytes) {
        return fsdpi_json_refuse(&state->reader, tensor->at,
                                 "tensor '%.200s' lies from %" PRIu64 " to %" PRIu64 " in data of %" PRIu64 " bytes",
                                 name, tensor->info.begin, tensor->info.end, data_bytes);
    }
    fsdpi_tensor_info shape = tensor->info;
    shape.dims              = shape.n_dims > 0 ? state->parsed->dims + tensor->first_dim : NULL;
    if (fsdpi_tensor_bytes(&shape, &bytes, &problem) != FSDP_OK) {
        return fsdpi_json_refuse(&state->reader, tensor->at, "%s", problem.text);
    }
    if (bytes != tensor->info.end - tensor->info.begin) {
        return fsdpi_json_refuse(&state->reader, tensor->at,
                                 "tensor '%.200s' has %" PRIu64 " bytes of data, but its shape has %" PRIu64, name,
                                 tensor->info.end - tensor->info.begin, bytes);
    }
    return FSDP_OK;
}

static fsdp_status read_tensor(parse_state *state, const fsdpi_json_token *opening)
{
    fsdpi_safetensors *const parsed = state->parsed;
    tensor_members           tensor = {.info = {.name = opening->name}, .at = opening->name_at};
    fsdpi_json_token         token;
    fsdpi_tensor_info       *tensors;

    if (opening->kind != FSDPI_JSON_OBJECT) {
        return fsdpi_json_refuse(&state->reader, opening->at, "tensor '%.200s' is no object", opening->name);
    }
    for (;;) {
        FSDP_TRY(fsdpi_json_next(&state->reader, &token));
        if (token.kind == FSDPI_JSON_END) {
            break;
        }
        FSDP_TRY(read_member(state, &token, &tensor));
    }
    FSDP_TRY(check_tensor(state, &tensor));
    tensors = with_room(state, parsed->tensors, &state->tensor_room, parsed->n_tensors, sizeof *tensors);
    if (tensors == NULL) {
        return FSDP_ERR_MEMORY;
    }
    tensors[parsed->n_tensors++] = tensor.info;
    parsed->tensors              = tensors;
    return FSDP_OK;
}

static fsdp_status read_metadata(parse_state *state, const fsdpi_json_token *opening)
{
    fsdpi_safetensors *const parsed = state->parsed;
    fsdpi_json_token         token;
    fsdpi_text_pair         *pairs;

    if (state->has_metadata || opening->kind != FSDPI_JSON_OBJECT) {
        return fsdpi_json_refuse(&state->reader, opening->at, METADATA " %s",
                                 state->has_metadata ? "comes twice" : "is no object");
    }
    state->has_metadata = true;
    for (;;) {
        FSDP_TRY(fsdpi_json_next(&state->reader, &token));
        if (token.kind == FSDPI_JSON_END) {
            return FSDP_OK;
        }
        if (token.kind != FSDPI_JSON_STRING) {
            return fsdpi_json_refuse(&state->reader, token.at, METADATA ": '%.200s' is no string", token.name);
        }
        pairs = with_room(state, parsed->metadata, &state->metadata_room, parsed->n_metadata, sizeof *pairs);
        if (pairs == NULL) {
            return FSDP_ERR_MEMORY;
        }
        pairs[parsed->n_metadata++] = (fsdpi_text_pair){token.name, token.string};
        parsed->metadata            = pairs;
    }
}

/* All that the header says. */
static fsdp_status read_header(parse_state *state, size_t header_bytes)
{
    fsdpi_json_token token;
    size_t           end = header_bytes;

    while (end > 0 && state->parsed->text[end - 1] == ' ') {
        end--;
    }
    if (end == 0 || state->parsed->text[0] != '{') {
        return fsdpi_json_refuse(&state->reader, 0, "the header does not begin with '{'");
    }
    if (state->parsed->text[end - 1] != '}') {
        return fsdpi_json_refuse(&state->reader, end - 1, "the header does not end with '}' and spaces");
    }
    FSDP_TRY(fsdpi_json_next(&state->reader, &token));
    for (;;) {
        FSDP_TRY(fsdpi_json_next(&state->reader, &token));
        if (token.kind == FSDPI_JSON_END) {
            return fsdpi_json_next(&state->reader, &token); /* refuses whatever else there is */
        }
        FSDP_TRY(strcmp(token.name, METADATA) == 0 ? read_metadata(state, &token) : read_tensor(state, &token));
    }
}

static int compare_data(const void *a, const void *b)
{
    const fsdpi_tensor_info *const x = a, *const y = b;

    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b, void *tensors)
{
    const fsdpi_tensor_info *const tensor = tensors;

    return strcmp(tensor[*(const size_t *)a].name, tensor[*(const size_t *)b].name);
}

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const fsdpi_text_pair *)a)->name, ((const fsdpi_text_pair *)b)->name);
}

/* Tensors in a row, from the first byte of the data to the last. */
static fsdp_status check_data(const char *file, const fsdpi_safetensors *parsed, fsdpi_problem *problem)
{
    const uint64_t data_bytes = parsed->file_bytes - parsed->data_offset;
    uint64_t       end        = 0;

    for (size_t i = 0; i < parsed->n_tensors; end = parsed->tensors[i++].end) {
        if (parsed->tensors[i].begin != end) {
            return fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                     "%s: tensor '%.200s' begins at byte %" PRIu64 " of the data, %s byte %" PRIu64
                                     ", where the one before it ends",
                                     file, parsed->tensors[i].name, parsed->tensors[i].begin,
                                     parsed->tensors[i].begin < end ? "before" : "behind", end);
        }
    }
    if (end != data_bytes) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                 "%s: the tensors end at byte %" PRIu64 " of the data, which has %" PRIu64, file, end,
                                 data_bytes);
    }
    return FSDP_OK;
}

/* Sorts tensors by their data and their indices by name. */
static fsdp_status sort_tensors(const char *file, fsdpi_safetensors *parsed, fsdpi_problem *problem)
{
    const size_t n     = parsed->n_tensors;
    size_t      *names = malloc((n + 1) * sizeof *names);

    parsed->by_name = names;
    if (names == NULL) {
        return fsdpi_problem_memory(problem, file, (n + 1) * sizeof *names);
    }
    for (size_t i = 0; i < n; i++) {
        names[i] = i;
    }
    if (n > 1) {
        qsort(parsed->tensors, n, sizeof *parsed->tensors, compare_data);
        qsort_r(names, n, sizeof *names, compare_names, parsed->tensors);
    }
    for (size_t i = 1; i < n; i++) {
        if (compare_names(&names[i - 1], &names[i], parsed->tensors) == 0) {
            return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: tensor '%.200s' comes twice", file,
                                     parsed->tensors[names[i]].name);
        }
    }
    return FSDP_OK;
}

/* Metadata keeps the order of the file, so a copy is sorted. */
static fsdp_status check_metadata(const char *file, const fsdpi_safetensors *parsed, fsdpi_problem *problem)
{
    const size_t     n      = parsed->n_metadata;
    fsdpi_text_pair *pairs  = NULL;
    fsdp_status      status = FSDP_OK;

    if (n < 2) {
        return FSDP_OK;
    }
    pairs = malloc(n * sizeof *pairs);
    if (pairs == NULL) {
        return fsdpi_problem_memory(problem, file, n * sizeof *pairs);
    }
    memcpy(pairs, parsed->metadata, n * sizeof *pairs);
    qsort(pairs, n, sizeof *pairs, compare_pairs);
    for (size_t i = 1; i < n && status == FSDP_OK; i++) {
        if (compare_pairs(&pairs[i - 1], &pairs[i]) == 0) {
            status = fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: '%.200s' comes twice in " METADATA, file,
                                       pairs[i].name);
        }
    }
    free(pairs);
    return status;
}

/* Shapes may have moved while they came; they lie one after the other, in the order of the tensors. */
static void place_dims(fsdpi_safetensors *parsed)
{
    size_t first = 0;

    for (size_t i = 0; i < parsed->n_tensors; first += parsed->tensors[i++].n_dims) {
        parsed->tensors[i].dims = parsed->tensors[i].n_dims > 0 ? parsed->dims + first : NULL;
    }
}

fsdp_status fsdpi_safetensors_parse(const char *file, const char *header, size_t header_bytes, uint64_t file_bytes,
                                    fsdpi_safetensors *parsed, fsdpi_problem *problem)
{
    parse_state state = {.parsed = parsed};
    fsdp_status status;

    *parsed = (fsdpi_safetensors){.file_bytes = file_bytes, .data_offset = 8 + header_bytes};
    if (header_bytes > FSDPI_SAFETENSORS_HEADER_MOST || file_bytes < parsed->data_offset) {
        *parsed = (fsdpi_safetensors){0};
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: a header of %zu bytes in a file of %" PRIu64, file,
                                 header_bytes, file_bytes);
    }
    parsed->text = malloc(header_bytes + 1);
    if (parsed->text == NULL) {
        return fsdpi_problem_memory(problem, file, header_bytes + 1);
    }
    memcpy(parsed->text, header, header_bytes);
    fsdpi_json_reader_init(&state.reader, file, 8, parsed->text, header_bytes, problem);

    status = read_header(&state, header_bytes);
    if (status == FSDP_OK) {
        place_dims(parsed);
    }
    status = status == FSDP_OK ? sort_tensors(file, parsed, problem) : status;
    status = status == FSDP_OK ? check_metadata(file, parsed, problem) : status;
    status = status == FSDP_OK ? check_data(file, parsed, problem) : status;
    if (status != FSDP_OK) {
        fsdpi_safetensors_free(parsed);
    }
    return status;
}

void fsdpi_safetensors_free(fsdpi_safetensors *parsed)
{
    free(parsed->tensors);
    free(parsed->metadata);
    free(parsed->by_name);
    free(parsed->text);
    free(parsed->dims);
    *parsed = (fsdpi_safetensors){0};
}

static const char *name_at(const void *of, size_t place)
{
    const fsdpi_safetensors *const parsed = of;

    return parsed->tensors[parsed->by_name[place]].name;
}

const fsdpi_tensor_info *fsdpi_safetensors_find(const fsdpi_safetensors *parsed, const char *name)
{
    const size_t place = fsdpi_name_find(parsed->n_tensors, name_at, parsed, name);

    return place < parsed->n_tensors ? &parsed->tensors[parsed->by_name[place]] : NULL;
}

const char *fsdpi_safetensors_metadata(const fsdpi_safetensors *parsed, const char *name)
{
    for (size_t i = 0; i < parsed->n_metadata; i++) {
        if (strcmp(parsed->metadata[i].name, name) == 0) {
            return parsed->metadata[i].value;
        }
    }
    return NULL;
}
