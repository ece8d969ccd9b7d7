#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/utf8.h"

void fsdpi_json_writer_init(fsdpi_json_writer *writer, unsigned indent)
{
    *writer = (fsdpi_json_writer){.indent = indent, .first = true};
}

static void put_bytes(fsdpi_json_writer *writer, const char *bytes, size_t n)
{
    if (!writer->failed && writer->room - writer->bytes <= n) {
        const size_t room  = (writer->bytes + n + 64) * 2;
        char *const  grown = realloc(writer->text, room);

        writer->failed = grown == NULL;
        if (grown != NULL) {
            writer->text = grown;
            writer->room = room;
        }
    }
    if (!writer->failed) {
        memcpy(writer->text + writer->bytes, bytes, n);
        writer->bytes += n;
    }
}

static void put_text(fsdpi_json_writer *writer, const char *text)
{
    put_bytes(writer, text, strlen(text));
}

static void put_quoted(fsdpi_json_writer *writer, const char *text)
{
    put_text(writer, "\"");
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        char escape[8];

        length = fsdpi_utf8_length(text, left);
        if (length == 0) {
            put_text(writer, "\xef\xbf\xbd");
            length = 1;
        } else if (*text == '"' || *text == '\\') {
            (void)snprintf(escape, sizeof escape, "\\%c", *text);
            put_text(writer, escape);
        } else if ((unsigned char)*text < 0x20) {
            (void)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*text);
            put_text(writer, escape);
        } else {
            put_bytes(writer, text, length);
        }
    }
    put_text(writer, "\"");
}

static bool on_one_line(const fsdpi_json_writer *writer)
{
    return writer->indent == 0 || (writer->flat > 0 && writer->depth >= writer->flat);
}

static void new_line(fsdpi_json_writer *writer)
{
    put_text(writer, "\n");
    for (unsigned i = 0; i < writer->depth * writer->indent; i++) {
        put_text(writer, " ");
    }
}

/* What comes before a value. */
static void put_start(fsdpi_json_writer *writer, const char *name)
{
    if (!writer->first) {
        put_text(writer, on_one_line(writer) && writer->indent > 0 ? ", " : ",");
    }
    if (!on_one_line(writer) && writer->depth > 0) {
        new_line(writer);
    }
    writer->first = false;
    if (name != NULL) {
        put_quoted(writer, name);
        put_text(writer, writer->indent > 0 ? ": " : ":");
    }
}

static void put_open(fsdpi_json_writer *writer, const char *name, const char *bracket, bool flat)
{
    put_start(writer, name);
    put_text(writer, bracket);
    writer->depth++;
    writer->first = true;
    if (flat && writer->flat == 0) {
        writer->flat = writer->depth;
    }
}

static void put_close(fsdpi_json_writer *writer, const char *bracket)
{
    const bool one_line = on_one_line(writer) || writer->first;

    writer->flat = writer->flat == writer->depth ? 0 : writer->flat;
    writer->depth--;
    if (!one_line) {
        new_line(writer);
    }
    writer->first = false;
    put_text(writer, bracket);
}

void fsdpi_json_begin_object(fsdpi_json_writer *writer, const char *name, bool flat)
{
    put_open(writer, name, "{", flat);
}

void fsdpi_json_end_object(fsdpi_json_writer *writer)
{
    put_close(writer, "}");
}

void fsdpi_json_begin_array(fsdpi_json_writer *writer, const char *name, bool flat)
{
    put_open(writer, name, "[", flat);
}

void fsdpi_json_end_array(fsdpi_json_writer *writer)
{
    put_close(writer, "]");
}

void fsdpi_json_put_null(fsdpi_json_writer *writer, const char *name)
{
    put_start(writer, name);
    put_text(writer, "null");
}

void fsdpi_json_put_bool(fsdpi_json_writer *writer, const char *name, bool value)
{
    put_start(writer, name);
    put_text(writer, value ? "true" : "false");
}

void fsdpi_json_put_u64(fsdpi_json_writer *writer, const char *name, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    put_start(writer, name);
    put_text(writer, text);
}

void fsdpi_json_put_i64(fsdpi_json_writer *writer, const char *name, int64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIi64, value);
    put_start(writer, name);
    put_text(writer, text);
}

/* A number whose text is read back as the same; the locale's decimal point is of no interest here. */
static void print_double(double value, char *text, size_t bytes)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t usual = uselocale(plain);

    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, bytes, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    (void)uselocale(usual);
    freelocale(plain);
    if (strcmp(text, "-0") == 0) { /* a whole number has no sign of its zero */
        (void)snprintf(text, bytes, "-0.0");
    }
}

void fsdpi_json_put_double(fsdpi_json_writer *writer, const char *name, double value)
{
    char text[40];

    if (!isfinite(value)) {
        fsdpi_json_put_string(writer, name, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    print_double(value, text, sizeof text);
    put_start(writer, name);
    put_text(writer, text);
}

void fsdpi_json_put_string(fsdpi_json_writer *writer, const char *name, const char *value)
{
    put_start(writer, name);
    put_quoted(writer, value);
}

fsdp_status fsdpi_json_writer_end(fsdpi_json_writer *writer, char **text, size_t *bytes, fsdpi_problem *problem)
{
    if (writer->indent > 0) {
        put_text(writer, "\n");
    }
    put_bytes(writer, "", 0); /* room for the NUL even of nothing */
    if (writer->failed) {
        free(writer->text);
        *text  = NULL;
        *bytes = 0;
        return fsdpi_problem_set(problem, FSDP_ERR_MEMORY, "no memory for a JSON text of more than %zu bytes",
                                 writer->bytes);
    }
    writer->text[writer->bytes] = 0;
    *text                       = writer->text;
    *bytes                      = writer->bytes;
    return FSDP_OK;
}
