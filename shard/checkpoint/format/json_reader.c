#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/utf8.h"

#define LONGEST_NUMBER 128 /* characters; 17 digits and an exponent say all that a double can hold */

void fsdpi_json_reader_init(fsdpi_json_reader *reader, const char *file, size_t origin, char *text, size_t bytes,
                            fsdpi_problem *problem)
{
    *reader = (fsdpi_json_reader){.file = file, .bytes = bytes, .origin = origin, .first = true, .problem = problem};
    reader->text = text;
}

fsdp_status fsdpi_json_refuse(const fsdpi_json_reader *reader, size_t at, const char *format, ...)
{
    char    text[FSDPI_PROBLEM_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fsdpi_problem_set(reader->problem, FSDP_ERR_FORMAT, "%s: byte %zu: %s", reader->file, reader->origin + at,
                             text);
}

/* `expected` is not what stands at the reader's position. */
static fsdp_status refuse_here(const fsdpi_json_reader *reader, const char *expected)
{
    const unsigned char found = reader->at < reader->bytes ? (unsigned char)reader->text[reader->at] : 0;

    if (reader->at == reader->bytes) {
        return fsdpi_json_refuse(reader, reader->at, "the text ends where %s should be", expected);
    }
    if (found > 0x20 && found < 0x7f) {
        return fsdpi_json_refuse(reader, reader->at, "'%c' where %s should be", found, expected);
    }
    return fsdpi_json_refuse(reader, reader->at, "a byte 0x%02x where %s should be", found, expected);
}

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_white_space(fsdpi_json_reader *reader)
{
    while (reader->at < reader->bytes && is_white(reader->text[reader->at])) {
        reader->at++;
    }
}

static bool stands(const fsdpi_json_reader *reader, char character)
{
    return reader->at < reader->bytes && reader->text[reader->at] == character;
}

static fsdp_status expect(fsdpi_json_reader *reader, char character, const char *expected)
{
    if (!stands(reader, character)) {
        return refuse_here(reader, expected);
    }
    reader->at++;
    return FSDP_OK;
}

/* ---- Strings ---- */

static fsdp_status read_hex4(fsdpi_json_reader *reader, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, reader->at++) {
        const char c = reader->at < reader->bytes ? reader->text[reader->at] : 0;

        if (c >= '0' && c <= '9') {
            *code = *code << 4 | (uint32_t)(c - '0');
        } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
            *code = *code << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
        } else {
            return refuse_here(reader, "a hexadecimal digit");
        }
    }
    return FSDP_OK;
}

/* What follows \u, with the second half of a pair of surrogates. */
static fsdp_status read_code(fsdpi_json_reader *reader, uint32_t *code)
{
    const size_t start = reader->at;
    uint32_t     low;

    FSDP_TRY(read_hex4(reader, code));
    if (*code == 0) {
        return fsdpi_json_refuse(reader, start, "a NUL in a string");
    }
    if (*code < 0xd800 || *code > 0xdfff) {
        return FSDP_OK;
    }
    if (*code > 0xdbff || reader->bytes - reader->at < 2 || memcmp(reader->text + reader->at, "\\u", 2) != 0) {
        return fsdpi_json_refuse(reader, start, "half of a pair of surrogates");
    }
    reader->at += 2;
    FSDP_TRY(read_hex4(reader, &low));
    if (low < 0xdc00 || low > 0xdfff) {
        return fsdpi_json_refuse(reader, start, "half of a pair of surrogates");
    }
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return FSDP_OK;
}

/* What follows a backslash, written to `*out`, which is behind the reader. */
static fsdp_status read_escape(fsdpi_json_reader *reader, size_t *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

    const char  c     = reader->at < reader->bytes ? reader->text[reader->at] : 0;
    const char *found = c != 0 ? strchr(from, c) : NULL;
    uint32_t    code;

    if (found != NULL) {
        reader->text[(*out)++] = to[found - from];
        reader->at++;
        return FSDP_OK;
    }
    FSDP_TRY(expect(reader, 'u', "an escape"));
    FSDP_TRY(read_code(reader, &code));
    *out += fsdpi_utf8_put(reader->text + *out, code);
    return FSDP_OK;
}

static fsdp_status read_string(fsdpi_json_reader *reader, const char **string, size_t *bytes)
{
    const size_t start = reader->at + 1;
    size_t       out   = start;

    for (reader->at = start; reader->at < reader->bytes;) {
        char *const  here   = reader->text + reader->at;
        const size_t length = fsdpi_utf8_length(here, reader->bytes - reader->at);

        if (*here == '"') {
            reader->text[out] = 0;
            reader->at++;
            *string = reader->text + start;
            *bytes  = out - start;
            return FSDP_OK;
        }
        if (length == 0) {
            return fsdpi_json_refuse(reader, reader->at, "a string is not UTF-8");
        }
        if ((unsigned char)*here < 0x20) {
            return fsdpi_json_refuse(reader, reader->at, "a control character 0x%02x in a string", (unsigned)*here);
        }
        if (*here == '\\') {
            reader->at++;
            FSDP_TRY(read_escape(reader, &out));
            continue;
        }
        memmove(reader->text + out, here, length);
        reader->at += length;
        out += length;
    }
    return fsdpi_json_refuse(reader, start - 1, "a string without end");
}

/* ---- Numbers ---- */

static size_t skip_digits(fsdpi_json_reader *reader)
{
    const size_t start = reader->at;

    while (reader->at < reader->bytes && reader->text[reader->at] >= '0' && reader->text[reader->at] <= '9') {
        reader->at++;
    }
    return reader->at - start;
}

/* Goes over a number as RFC 8259 writes it. */
static fsdp_status skip_number(fsdpi_json_reader *reader, bool *whole)
{
    size_t start;

    *whole = true;
    reader->at += stands(reader, '-');
    start = reader->at;
    if (skip_digits(reader) == 0) {
        return refuse_here(reader, "a digit");
    }
    if (reader->text[start] == '0' && reader->at - start > 1) {
        return fsdpi_json_refuse(reader, start, "a number with a leading zero");
    }
    if (stands(reader, '.')) {
        *whole = false;
        reader->at++;
        if (skip_digits(reader) == 0) {
            return refuse_here(reader, "a digit");
        }
    }
    if (stands(reader, 'e') || stands(reader, 'E')) {
        *whole = false;
        reader->at++;
        reader->at += stands(reader, '+') || stands(reader, '-');
        if (skip_digits(reader) == 0) {
            return refuse_here(reader, "a digit");
        }
    }
    return FSDP_OK;
}

/* Whether digits are at most 2^64 - 1. */
static bool to_u64(const char *digits, uint64_t *value)
{
    *value = 0;
    for (; *digits != 0; digits++) {
        const unsigned digit = (unsigned)(*digits - '0');

        if (*value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        *value = *value * 10 + digit;
    }
    return true;
}

static double to_double(const char *text)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double   value = strtod_l(text, NULL, plain);

    freelocale(plain);
    return value;
}

static fsdp_status read_number(fsdpi_json_reader *reader, fsdpi_json_token *token)
{
    const uint64_t most_negative = (uint64_t)1 << 63;

    char     number[LONGEST_NUMBER + 1];
    uint64_t magnitude = 0;
    bool     whole;

    FSDP_TRY(skip_number(reader, &whole));
    const size_t length = reader->at - token->at;
    if (length > LONGEST_NUMBER) {
        return fsdpi_json_refuse(reader, token->at, "a number of more than %d characters", LONGEST_NUMBER);
    }
    memcpy(number, reader->text + token->at, length);
    number[length] = 0;

    const bool minus = number[0] == '-';
    if (whole && to_u64(number + minus, &magnitude) && (!minus || magnitude <= most_negative)) {
        token->kind = minus ? FSDPI_JSON_NEGATIVE : FSDPI_JSON_UNSIGNED;
        token->u64  = magnitude;
        token->i64  = minus ? (int64_t)(0 - magnitude) : 0;
        token->real = minus ? -(double)magnitude : (double)magnitude;
        return FSDP_OK;
    }
    token->kind = FSDPI_JSON_DOUBLE;
    token->real = to_double(number);
    return isfinite(token->real) ? FSDP_OK : fsdpi_json_refuse(reader, token->at, "a number too large for a double");
}

/* ---- Values ---- */

static fsdp_status read_word(fsdpi_json_reader *reader, fsdpi_json_token *token)
{
    static const struct {
        const char     *word;
        fsdpi_json_kind kind;
    } words[] = {{"true", FSDPI_JSON_TRUE}, {"false", FSDPI_JSON_FALSE}, {"null", FSDPI_JSON_NULL}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i].word);

        if (reader->bytes - reader->at >= length && memcmp(reader->text + reader->at, words[i].word, length) == 0) {
            reader->at += length;
            token->kind = words[i].kind;
            return FSDP_OK;
        }
    }
    return refuse_here(reader, "a value");
}

static fsdp_status open_container(fsdpi_json_reader *reader, fsdpi_json_token *token, bool is_object)
{
    if (reader->depth == FSDPI_JSON_DEPTH) {
        return fsdpi_json_refuse(reader, reader->at, "arrays and objects more than %d deep", FSDPI_JSON_DEPTH);
    }
    reader->is_object[reader->depth++] = is_object;
    reader->first                      = true;
    reader->at++;
    token->kind = is_object ? FSDPI_JSON_OBJECT : FSDPI_JSON_ARRAY;
    return FSDP_OK;
}

static fsdp_status read_value(fsdpi_json_reader *reader, fsdpi_json_token *token)
{
    const char c = reader->at < reader->bytes ? reader->text[reader->at] : 0;

    token->at     = reader->at;
    reader->first = false;
    if (c == '{' || c == '[') {
        return open_container(reader, token, c == '{');
    }
    if (c == '"') {
        token->kind = FSDPI_JSON_STRING;
        return read_string(reader, &token->string, &token->string_bytes);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        return read_number(reader, token);
    }
    return read_word(reader, token);
}

static fsdp_status read_name(fsdpi_json_reader *reader, fsdpi_json_token *token)
{
    token->name_at = reader->at;
    if (!stands(reader, '"')) {
        return refuse_here(reader, "a name in quotes");
    }
    FSDP_TRY(read_string(reader, &token->name, &token->name_bytes));
    skip_white_space(reader);
    FSDP_TRY(expect(reader, ':', "':'"));
    skip_white_space(reader);
    return FSDP_OK;
}

static fsdp_status close_container(fsdpi_json_reader *reader, fsdpi_json_token *token)
{
    token->kind = FSDPI_JSON_END;
    token->at   = reader->at++;
    reader->depth--;
    reader->first = false;
    return FSDP_OK;
}

fsdp_status fsdpi_json_next(fsdpi_json_reader *reader, fsdpi_json_token *token)
{
    *token = (fsdpi_json_token){.kind = FSDPI_JSON_END};
    skip_white_space(reader);
    token->at = reader->at;
    if (reader->depth == 0) {
        if (reader->first) {
            return read_value(reader, token);
        }
        return reader->at == reader->bytes ? FSDP_OK : refuse_here(reader, "the end of the text");
    }

    const bool is_object = reader->is_object[reader->depth - 1];
    if (stands(reader, is_object ? '}' : ']')) {
        return close_container(reader, token);
    }
    if (!reader->first) {
        FSDP_TRY(expect(reader, ',', is_object ? "',' or '}'" : "',' or ']'"));
        skip_white_space(reader);
    }
    if (is_object) {
        FSDP_TRY(read_name(reader, token));
    }
    return read_value(reader, token);
}
