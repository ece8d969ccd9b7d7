/**
 * @file
 * JSON (RFC 8259) for files that nobody vouches for.
 *
 * No library, for four reasons: the header of a safetensors file may have 100,000,000 bytes, of which a tree of values would
 * be gigabytes, so it is read as it goes by; integers are exact up to 2^64 - 1; every complaint names its byte; and each text
 * has one meaning only. Hence stricter than the RFC demands: a name comes once in an object, strings are valid UTF-8
 * without NUL, surrogates come in pairs, nesting ends at FSDPI_JSON_DEPTH, and a number beyond the doubles is refused.
 *
 * Problems are FSDP_ERR_FORMAT, or FSDP_ERR_MEMORY, with a text as "FILE: byte 17: expected ':' after a name". Nothing here is
 * recursive, and nothing depends on the locale.
 */
#ifndef FSDPI_JSON_H
#define FSDPI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/problem.h"

/** Arrays and objects inside each other. */
#define FSDPI_JSON_DEPTH 32

typedef enum fsdpi_json_kind {
    FSDPI_JSON_NULL,
    FSDPI_JSON_FALSE,
    FSDPI_JSON_TRUE,
    FSDPI_JSON_UNSIGNED, /* digits only, at most 2^64 - 1 */
    FSDPI_JSON_NEGATIVE, /* a minus and digits, at least -2^63 */
    FSDPI_JSON_DOUBLE,   /* any other number */
    FSDPI_JSON_STRING,
    FSDPI_JSON_ARRAY,
    FSDPI_JSON_OBJECT,
    FSDPI_JSON_END, /* of the array or object that is open, or of the text */
} fsdpi_json_kind;

/* ---- Reading as it goes by ---- */

/** The next thing in a text. In an object each value comes with its name. */
typedef struct fsdpi_json_token {
    fsdpi_json_kind kind;
    size_t          at;           /* where it begins: BYTES from the start of the text */
    size_t          name_at;      /* where its name begins, in an object */
    const char     *name;         /* in an object: as `string` */
    size_t          name_bytes;   /* without its NUL */
    const char     *string;       /* FSDPI_JSON_STRING: unescaped, NUL-terminated, within the text that is read */
    size_t          string_bytes; /* without its NUL */
    uint64_t        u64;          /* FSDPI_JSON_UNSIGNED */
    int64_t         i64;          /* FSDPI_JSON_NEGATIVE */
    double          real;         /* the nearest double, for all three kinds of numbers */
} fsdpi_json_token;

/**
 * A position in a text. Strings are unescaped where they stand, so the text is changed; it needs no NUL at its end. Names that
 * come twice are the business of whoever collects them.
 */
typedef struct fsdpi_json_reader {
    const char    *file; /* for texts of problems */
    char          *text;
    size_t         bytes;
    size_t         at;
    size_t         origin; /* what byte of the file the text begins at, for texts of problems */
    unsigned       depth;
    bool           first; /* nothing has come yet in what is open */
    bool           is_object[FSDPI_JSON_DEPTH];
    fsdpi_problem *problem;
} fsdpi_json_reader;

void fsdpi_json_reader_init(fsdpi_json_reader *reader, const char *file, size_t origin, char *text, size_t bytes,
                            fsdpi_problem *problem);

/**
 * The next token. After FSDPI_JSON_ARRAY and FSDPI_JSON_OBJECT come their values and then FSDPI_JSON_END. When the one value
 * of the text has ended, only white space may follow, and FSDPI_JSON_END comes.
 */
fsdp_status fsdpi_json_next(fsdpi_json_reader *reader, fsdpi_json_token *token);

/** FSDP_ERR_FORMAT, and a problem at byte `at` of the text. */
fsdp_status fsdpi_json_refuse(const fsdpi_json_reader *reader, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- A whole text as a tree, for small files as state.json ---- */

typedef struct fsdpi_json_value fsdpi_json_value;

/**
 * Reads a text of one value. `text` is copied first. Memory: at most about 64 times `bytes`.
 * @param[out] root  released with fsdpi_json_free(); NULL after an error
 */
fsdp_status fsdpi_json_parse(const char *file, const char *text, size_t bytes, fsdpi_json_value **root,
                             fsdpi_problem *problem);

/** Reads a file of at most `most` BYTES in the same way. FSDP_ERR_IO too. */
fsdp_status fsdpi_json_parse_file(const char *path, size_t most, fsdpi_json_value **root, fsdpi_problem *problem);

/** NULL is allowed. */
void fsdpi_json_free(fsdpi_json_value *root);

fsdpi_json_kind fsdpi_json_kind_of(const fsdpi_json_value *value);

/** Values in an array or object; 0 for anything else. */
size_t fsdpi_json_count(const fsdpi_json_value *value);

/** Value `index` of an array or object, in the order of the text. */
const fsdpi_json_value *fsdpi_json_item(const fsdpi_json_value *value, size_t index);

/** Its name in the object that it is in; NULL in an array. */
const char *fsdpi_json_name(const fsdpi_json_value *value);

/** The value of a name; NULL if `value` is no object or has no such name. O(log n). */
const fsdpi_json_value *fsdpi_json_member(const fsdpi_json_value *value, const char *name);

/**
 * What a value holds, exactly. Each refuses, with a problem that names the file, the byte and the path of names to the value,
 * what is of another kind or does not fit. A `value` of NULL is refused too.
 */
fsdp_status fsdpi_json_get_bool(const fsdpi_json_value *value, bool *result, fsdpi_problem *problem);
fsdp_status fsdpi_json_get_u64(const fsdpi_json_value *value, uint64_t *result, fsdpi_problem *problem);
fsdp_status fsdpi_json_get_i64(const fsdpi_json_value *value, int64_t *result, fsdpi_problem *problem);
/** Also takes the strings "NaN", "Infinity" and "-Infinity", as fsdpi_json_put_double() writes them. */
fsdp_status fsdpi_json_get_double(const fsdpi_json_value *value, double *result, fsdpi_problem *problem);
/** The text belongs to the tree. */
fsdp_status fsdpi_json_get_string(const fsdpi_json_value *value, const char **result, fsdpi_problem *problem);

/** The member `name` of `object`, which must be there and of kind `kind` (any number for FSDPI_JSON_DOUBLE). */
fsdp_status fsdpi_json_require(const fsdpi_json_value *object, const char *name, fsdpi_json_kind kind,
                               const fsdpi_json_value **member, fsdpi_problem *problem);

/** FSDP_ERR_FORMAT, and a problem that names the file, the byte and the path of names to `value`. */
fsdp_status fsdpi_json_refuse_value(const fsdpi_json_value *value, fsdpi_problem *problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Writing ---- */

/** A text that grows. A failed allocation is remembered, and said by fsdpi_json_writer_end(). */
typedef struct fsdpi_json_writer {
    char    *text;
    size_t   bytes;
    size_t   room;
    unsigned depth;
    unsigned indent; /* SPACES per depth; 0: all on one line */
    bool     first;
    bool     failed;
    unsigned flat; /* the depth from which on nothing begins a line; 0: none */
} fsdpi_json_writer;

void fsdpi_json_writer_init(fsdpi_json_writer *writer, unsigned indent);

/** `name` is NULL in an array and for the one value of the text. `flat`: what is inside stays on one line. */
void fsdpi_json_begin_object(fsdpi_json_writer *writer, const char *name, bool flat);
void fsdpi_json_end_object(fsdpi_json_writer *writer);
void fsdpi_json_begin_array(fsdpi_json_writer *writer, const char *name, bool flat);
void fsdpi_json_end_array(fsdpi_json_writer *writer);

void fsdpi_json_put_null(fsdpi_json_writer *writer, const char *name);
void fsdpi_json_put_bool(fsdpi_json_writer *writer, const char *name, bool value);
void fsdpi_json_put_u64(fsdpi_json_writer *writer, const char *name, uint64_t value);
void fsdpi_json_put_i64(fsdpi_json_writer *writer, const char *name, int64_t value);
/** The shortest of 15 to 17 digits that is read back as the same double; "NaN", "Infinity" and "-Infinity" as strings. */
void fsdpi_json_put_double(fsdpi_json_writer *writer, const char *name, double value);
/** `value` is UTF-8; bytes that are none become U+FFFD. */
void fsdpi_json_put_string(fsdpi_json_writer *writer, const char *name, const char *value);

/**
 * The text, which the caller frees; it ends with a NUL that `bytes` does not count. Where memory was short: FSDP_ERR_MEMORY,
 * and nothing is left to free.
 */
fsdp_status fsdpi_json_writer_end(fsdpi_json_writer *writer, char **text, size_t *bytes, fsdpi_problem *problem);

#endif
