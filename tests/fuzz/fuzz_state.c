/* state.json: any JSON that is taken is written and read again as it was; the state and its checksums are taken out of it. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "shard/checkpoint/format/checksums.h"
#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/model_name.h"
#include "shard/checkpoint/format/state.h"
#include "tests/fuzz/fuzz.h"

static void put(fsdpi_json_writer *writer, const fsdpi_json_value *value);

static void put_children(fsdpi_json_writer *writer, const fsdpi_json_value *value)
{
    for (size_t i = 0; i < fsdpi_json_count(value); i++) {
        put(writer, fsdpi_json_item(value, i));
    }
}

static void put_number(fsdpi_json_writer *writer, const fsdpi_json_value *value)
{
    uint64_t      u64;
    int64_t       i64;
    double        real;
    fsdpi_problem problem;

    switch (fsdpi_json_kind_of(value)) {
    case FSDPI_JSON_UNSIGNED:
        MUST(fsdpi_json_get_u64(value, &u64, &problem) == FSDP_OK);
        fsdpi_json_put_u64(writer, fsdpi_json_name(value), u64);
        break;
    case FSDPI_JSON_NEGATIVE:
        MUST(fsdpi_json_get_i64(value, &i64, &problem) == FSDP_OK);
        fsdpi_json_put_i64(writer, fsdpi_json_name(value), i64);
        break;
    default:
        MUST(fsdpi_json_get_double(value, &real, &problem) == FSDP_OK);
        fsdpi_json_put_double(writer, fsdpi_json_name(value), real);
    }
}

static void put(fsdpi_json_writer *writer, const fsdpi_json_value *value)
{
    const char *const name = fsdpi_json_name(value);
    const char       *string;
    bool              yes;
    fsdpi_problem     problem;

    switch (fsdpi_json_kind_of(value)) {
    case FSDPI_JSON_OBJECT:
        fsdpi_json_begin_object(writer, name, false);
        put_children(writer, value);
        fsdpi_json_end_object(writer);
        break;
    case FSDPI_JSON_ARRAY:
        fsdpi_json_begin_array(writer, name, true);
        put_children(writer, value);
        fsdpi_json_end_array(writer);
        break;
    case FSDPI_JSON_STRING:
        MUST(fsdpi_json_get_string(value, &string, &problem) == FSDP_OK);
        fsdpi_json_put_string(writer, name, string);
        break;
    case FSDPI_JSON_TRUE:
    case FSDPI_JSON_FALSE:
        MUST(fsdpi_json_get_bool(value, &yes, &problem) == FSDP_OK);
        fsdpi_json_put_bool(writer, name, yes);
        break;
    case FSDPI_JSON_NULL:
        fsdpi_json_put_null(writer, name);
        break;
    default:
        put_number(writer, value);
    }
}

/* The text of a value; the caller frees it. */
static char *write_text(const fsdpi_json_value *root, size_t *bytes)
{
    fsdpi_json_writer writer;
    char             *text;
    fsdpi_problem     problem;

    fsdpi_json_writer_init(&writer, 2);
    put(&writer, root);
    MUST(fsdpi_json_writer_end(&writer, &text, bytes, &problem) == FSDP_OK);
    return text;
}

/* A text that was written is read, and written as the same text: kinds, names and numbers are all kept. */
static void comes_back(const fsdpi_json_value *root)
{
    size_t            bytes, bytes_again;
    char             *text = write_text(root, &bytes), *text_again;
    fsdpi_json_value *again;
    fsdpi_problem     problem;

    MUST(fsdpi_json_parse("again", text, bytes, &again, &problem) == FSDP_OK);
    text_again = write_text(again, &bytes_again);
    MUST(bytes == bytes_again && memcmp(text, text_again, bytes) == 0);
    fsdpi_json_free(again);
    free(text);
    free(text_again);
}

static void checksums_cover_their_files(const fsdpi_checksums *sums)
{
    for (size_t i = 0; i < sums->n_files && !sums->apart; i++) {
        const fsdpi_file_sums *const file = &sums->files[i];
        uint64_t                     end  = 0;

        for (size_t k = 0; k < file->n_chunks; k++) {
            MUST(file->chunks[k].begin == end && file->chunks[k].bytes > 0);
            MUST(fsdpi_chunk_of(file, end) == k);
            end += file->chunks[k].bytes;
        }
        MUST(end == file->bytes);
    }
}

/* Most changes break the sum that a state.json has of itself, so it is mended: behind it lie the other rules. */
static void mend_sum(char *text, size_t bytes)
{
    char *at = strstr(text, "\"sum\"");
    char  digits[17];

    at = at != NULL ? strchr(at, ':') : NULL;
    at = at != NULL ? strchr(at, '"') : NULL;
    if (at == NULL || strcspn(at + 1, "\"") != 16) {
        return;
    }
    memset(at + 1, '0', 16);
    (void)snprintf(digits, sizeof digits, "%016" PRIx64, fsdpi_checksum(text, bytes));
    memcpy(at + 1, digits, 16);
}

/* Files are named after models: nothing else may be in their names. */
static void names_differ_and_are_good(const fsdpi_state *state)
{
    MUST(state->models != NULL && state->models->name[0] == 0);
    for (const fsdpi_model_state *model = state->models->next; model != NULL; model = model->next) {
        MUST(fsdpi_model_name_wrong(model->name) == NULL && strchr(model->name, '/') == NULL);
        MUST(fsdpi_state_model(state, model->name) == model);
        MUST(model->n_group_optimizers <= FSDPI_MOST_GROUP_OPTIMIZERS);
    }
}

static void state_is_read(const uint8_t *data, size_t bytes)
{
    char *const   text = malloc(bytes + 1);
    fsdpi_state   state;
    fsdpi_problem problem;

    MUST(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = 0;
    mend_sum(text, bytes);
    if (fsdpi_state_parse("input", text, bytes, &state, &problem) == FSDP_OK) {
        checksums_cover_their_files(&state.sums);
        MUST(strlen(state.program.text) < sizeof state.program.text);
        names_differ_and_are_good(&state);
        fsdpi_state_free(&state);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fsdpi_json_value *root;
    fsdpi_checksums   sums;
    fsdpi_problem     problem;

    if (fsdpi_json_parse("input", (const char *)data, bytes, &root, &problem) != FSDP_OK) {
        return 0;
    }
    comes_back(root);
    if (fsdpi_checksums_get(root, &sums, &problem) == FSDP_OK) {
        checksums_cover_their_files(&sums);
        fsdpi_checksums_free(&sums);
    }
    fsdpi_json_free(root);
    state_is_read(data, bytes);
    return 0;
}
