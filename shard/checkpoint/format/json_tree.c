/*
 * All values of a text lie in one array, in the order of the text, and know their parent. Two more arrays hold the children of
 * each, one after the other: in their order, and by name.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/file_io.h"
#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/text.h"

#define LONGEST_TEXT ((size_t)1 << 30) /* BYTES; positions have 32 bits */

typedef struct json_tree {
    char             *file;
    char             *text;
    fsdpi_json_value *values;
    size_t            n_values;
    uint32_t         *children;
    uint32_t         *by_name; /* the children of objects in another order; nothing useful of arrays */
} json_tree;

struct fsdpi_json_value {
    json_tree *tree;
    char      *name;
    union {
        uint64_t    u64;
        int64_t     i64;
        double      real;
        const char *string;
    } is;
    uint32_t        at;
    uint32_t        parent;
    uint32_t        first; /* of its children, in the two arrays */
    uint32_t        count;
    fsdpi_json_kind kind;
};

static void free_tree(json_tree *tree)
{
    if (tree != NULL) {
        free(tree->file);
        free(tree->text);
        free(tree->values);
        free(tree->children);
        free(tree->by_name);
        free(tree);
    }
}

void fsdpi_json_free(fsdpi_json_value *root)
{
    free_tree(root != NULL ? root->tree : NULL);
}

/* ---- Reading ---- */

/* No text has more: each value but the root comes after one of these. */
static size_t most_values(const char *text, size_t bytes)
{
    size_t n = 1;

    for (size_t i = 0; i < bytes; i++) {
        n += text[i] == ',' || text[i] == '[' || text[i] == '{';
    }
    return n;
}

static json_tree *new_tree(const char *file, const char *text, size_t bytes)
{
    json_tree *const tree = calloc(1, sizeof *tree);
    const size_t     n    = most_values(text, bytes);

    if (tree == NULL) {
        return NULL;
    }
    tree->file     = strdup(file);
    tree->text     = malloc(bytes + 1);
    tree->values   = calloc(n, sizeof *tree->values);
    tree->children = malloc(n * sizeof *tree->children);
    tree->by_name  = malloc(n * sizeof *tree->by_name);
    if (tree->file == NULL || tree->text == NULL || tree->values == NULL || tree->children == NULL ||
        tree->by_name == NULL) {
        free_tree(tree);
        return NULL;
    }
    memcpy(tree->text, text, bytes);
    return tree;
}

static void add_value(json_tree *tree, const fsdpi_json_token *token, uint32_t parent)
{
    fsdpi_json_value *const value = &tree->values[tree->n_values++];

    *value = (fsdpi_json_value){
        .tree = tree, .name = (char *)token->name, .at = (uint32_t)token->at, .parent = parent, .kind = token->kind};
    switch (token->kind) {
    case FSDPI_JSON_UNSIGNED:
        value->is.u64 = token->u64;
        break;
    case FSDPI_JSON_NEGATIVE:
        value->is.i64 = token->i64;
        break;
    case FSDPI_JSON_DOUBLE:
        value->is.real = token->real;
        break;
    case FSDPI_JSON_STRING:
        value->is.string = token->string;
        break;
    default:
        break;
    }
    if (tree->n_values > 1) {
        tree->values[parent].count++;
    }
}

static fsdp_status read_values(json_tree *tree, fsdpi_json_reader *reader)
{
    uint32_t         open = 0; /* the innermost array or object */
    fsdpi_json_token token;

    for (;;) {
        FSDP_TRY(fsdpi_json_next(reader, &token));
        if (token.kind == FSDPI_JSON_END && reader->depth == 0 && token.at == reader->bytes) {
            return FSDP_OK;
        }
        if (token.kind == FSDPI_JSON_END) {
            open = tree->values[open].parent;
            continue;
        }
        add_value(tree, &token, open);
        if (token.kind == FSDPI_JSON_ARRAY || token.kind == FSDPI_JSON_OBJECT) {
            open = (uint32_t)tree->n_values - 1;
        }
    }
}

static void group_children(json_tree *tree)
{
    uint32_t place = 0;

    for (size_t i = 0; i < tree->n_values; i++) {
        tree->values[i].first = place;
        place += tree->values[i].count;
        tree->values[i].count = 0;
    }
    for (size_t i = 1; i < tree->n_values; i++) {
        fsdpi_json_value *const parent = &tree->values[tree->values[i].parent];

        place                 = parent->first + parent->count++;
        tree->children[place] = tree->by_name[place] = (uint32_t)i;
    }
}

static int compare_names(const void *a, const void *b, void *values)
{
    const fsdpi_json_value *const value = values;

    return strcmp(value[*(const uint32_t *)a].name, value[*(const uint32_t *)b].name);
}

static fsdp_status sort_names(json_tree *tree, fsdpi_problem *problem)
{
    for (size_t i = 0; i < tree->n_values; i++) {
        const fsdpi_json_value *const object = &tree->values[i];
        uint32_t *const               names  = tree->by_name + object->first;

        if (object->kind != FSDPI_JSON_OBJECT || object->count == 0) {
            continue;
        }
        qsort_r(names, object->count, sizeof *names, compare_names, tree->values);
        for (size_t k = 1; k < object->count; k++) {
            if (compare_names(&names[k - 1], &names[k], tree->values) == 0) {
                const uint32_t later = names[k] > names[k - 1] ? names[k] : names[k - 1];

                return fsdpi_json_refuse_value(&tree->values[later], problem, "this name comes twice in its object");
            }
        }
    }
    return FSDP_OK;
}

fsdp_status fsdpi_json_parse(const char *file, const char *text, size_t bytes, fsdpi_json_value **root,
                             fsdpi_problem *problem)
{
    fsdpi_json_reader reader;
    json_tree        *tree;
    fsdp_status       status;

    *root = NULL;
    if (bytes > LONGEST_TEXT) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: %zu bytes of JSON; at most %zu are read", file, bytes,
                                 LONGEST_TEXT);
    }
    tree = new_tree(file, text, bytes);
    if (tree == NULL) {
        return fsdpi_problem_memory(problem, file, bytes);
    }
    fsdpi_json_reader_init(&reader, file, 0, tree->text, bytes, problem);
    status = read_values(tree, &reader);
    if (status == FSDP_OK) {
        group_children(tree);
        status = sort_names(tree, problem);
    }
    if (status != FSDP_OK) {
        free_tree(tree);
        return status;
    }
    *root = tree->values; /* NOLINT(clang-analyzer-unix.Malloc): each value knows its tree */
    return FSDP_OK;
}

fsdp_status fsdpi_json_parse_file(const char *path, size_t most, fsdpi_json_value **root, fsdpi_problem *problem)
{
    char       *text;
    size_t      bytes;
    fsdp_status status;

    *root = NULL;
    FSDP_TRY(fsdpi_file_text(path, most, &text, &bytes, problem));
    status = fsdpi_json_parse(path, text, bytes, root, problem);
    free(text);
    return status;
}

/* ---- Looking ---- */

static bool has_children(const fsdpi_json_value *value)
{
    return value != NULL && (value->kind == FSDPI_JSON_ARRAY || value->kind == FSDPI_JSON_OBJECT);
}

fsdpi_json_kind fsdpi_json_kind_of(const fsdpi_json_value *value)
{
    return value->kind;
}

size_t fsdpi_json_count(const fsdpi_json_value *value)
{
    return has_children(value) ? value->count : 0;
}

const fsdpi_json_value *fsdpi_json_item(const fsdpi_json_value *value, size_t index)
{
    return &value->tree->values[value->tree->children[value->first + index]];
}

const char *fsdpi_json_name(const fsdpi_json_value *value)
{
    return value->name;
}

static const fsdpi_json_value *member_at(const fsdpi_json_value *object, size_t place)
{
    return &object->tree->values[object->tree->by_name[object->first + place]];
}

static const char *name_at(const void *object, size_t place)
{
    return member_at(object, place)->name;
}

const fsdpi_json_value *fsdpi_json_member(const fsdpi_json_value *value, const char *name)
{
    const size_t n     = value != NULL && value->kind == FSDPI_JSON_OBJECT ? value->count : 0;
    const size_t place = fsdpi_name_find(n, name_at, value, name);

    return place < n ? member_at(value, place) : NULL;
}

/* ---- Complaining ---- */

/* "sampler.position[3]: " */
static void print_path(const fsdpi_json_value *value, char *text, size_t bytes)
{
    const fsdpi_json_value *way[FSDPI_JSON_DEPTH + 1];
    const json_tree *const  tree = value->tree;
    size_t                  n = 0, used = 0;

    for (; value != tree->values; value = &tree->values[value->parent]) {
        way[n++] = value;
    }
    text[0] = 0;
    while (n-- > 0 && used < bytes) {
        const fsdpi_json_value *const parent = &tree->values[way[n]->parent];

        if (way[n]->name != NULL) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%.60s%s", used > 0 ? "." : "", way[n]->name,
                                     n > 0 ? "" : ": ");
            continue;
        }
        size_t index = 0;
        while (fsdpi_json_item(parent, index) != way[n]) {
            index++;
        }
        used += (size_t)snprintf(text + used, bytes - used, "[%zu]%s", index, n > 0 ? "" : ": ");
    }
}

fsdp_status fsdpi_json_refuse_value(const fsdpi_json_value *value, fsdpi_problem *problem, const char *format, ...)
{
    char    text[FSDPI_PROBLEM_BYTES], path[256];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_path(value, path, sizeof path);
    return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: byte %zu: %s%s", value->tree->file, (size_t)value->at, path,
                             text);
}

static const char *kind_text(fsdpi_json_kind kind)
{
    static const char *const texts[] = {[FSDPI_JSON_NULL]     = "null",
                                        [FSDPI_JSON_FALSE]    = "false",
                                        [FSDPI_JSON_TRUE]     = "true",
                                        [FSDPI_JSON_UNSIGNED] = "a whole number",
                                        [FSDPI_JSON_NEGATIVE] = "a negative whole number",
                                        [FSDPI_JSON_DOUBLE]   = "a number",
                                        [FSDPI_JSON_STRING]   = "a string",
                                        [FSDPI_JSON_ARRAY]    = "an array",
                                        [FSDPI_JSON_OBJECT]   = "an object",
                                        [FSDPI_JSON_END]      = "nothing"};

    return texts[kind];
}

static bool is_number(fsdpi_json_kind kind)
{
    return kind == FSDPI_JSON_UNSIGNED || kind == FSDPI_JSON_NEGATIVE || kind == FSDPI_JSON_DOUBLE;
}

static fsdp_status refuse_kind(const fsdpi_json_value *value, const char *expected, fsdpi_problem *problem)
{
    if (value == NULL) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s is missing", expected);
    }
    return fsdpi_json_refuse_value(value, problem, "%s where %s should be", kind_text(value->kind), expected);
}

/* ---- Taking values ---- */

fsdp_status fsdpi_json_get_bool(const fsdpi_json_value *value, bool *result, fsdpi_problem *problem)
{
    if (value == NULL || (value->kind != FSDPI_JSON_TRUE && value->kind != FSDPI_JSON_FALSE)) {
        return refuse_kind(value, "true or false", problem);
    }
    *result = value->kind == FSDPI_JSON_TRUE;
    return FSDP_OK;
}

fsdp_status fsdpi_json_get_u64(const fsdpi_json_value *value, uint64_t *result, fsdpi_problem *problem)
{
    if (value == NULL || value->kind != FSDPI_JSON_UNSIGNED) {
        return refuse_kind(value, "a whole number from 0 to 2^64 - 1", problem);
    }
    *result = value->is.u64;
    return FSDP_OK;
}

fsdp_status fsdpi_json_get_i64(const fsdpi_json_value *value, int64_t *result, fsdpi_problem *problem)
{
    if (value != NULL && value->kind == FSDPI_JSON_NEGATIVE) {
        *result = value->is.i64;
        return FSDP_OK;
    }
    if (value == NULL || value->kind != FSDPI_JSON_UNSIGNED || value->is.u64 > INT64_MAX) {
        return refuse_kind(value, "a whole number from -2^63 to 2^63 - 1", problem);
    }
    *result = (int64_t)value->is.u64;
    return FSDP_OK;
}

fsdp_status fsdpi_json_get_double(const fsdpi_json_value *value, double *result, fsdpi_problem *problem)
{
    static const struct {
        const char *text;
        double      value;
    } words[] = {{"NaN", (double)NAN}, {"Infinity", (double)INFINITY}, {"-Infinity", -(double)INFINITY}};

    if (value != NULL && is_number(value->kind)) {
        *result = value->kind == FSDPI_JSON_UNSIGNED   ? (double)value->is.u64
                  : value->kind == FSDPI_JSON_NEGATIVE ? (double)value->is.i64
                                                       : value->is.real;
        return FSDP_OK;
    }
    for (size_t i = 0; value != NULL && value->kind == FSDPI_JSON_STRING && i < sizeof words / sizeof *words; i++) {
        if (strcmp(value->is.string, words[i].text) == 0) {
            *result = words[i].value;
            return FSDP_OK;
        }
    }
    return refuse_kind(value, "a number", problem);
}

fsdp_status fsdpi_json_get_string(const fsdpi_json_value *value, const char **result, fsdpi_problem *problem)
{
    if (value == NULL || value->kind != FSDPI_JSON_STRING) {
        return refuse_kind(value, "a string", problem);
    }
    *result = value->is.string;
    return FSDP_OK;
}

fsdp_status fsdpi_json_require(const fsdpi_json_value *object, const char *name, fsdpi_json_kind kind,
                               const fsdpi_json_value **member, fsdpi_problem *problem)
{
    *member = fsdpi_json_member(object, name);
    if (object->kind != FSDPI_JSON_OBJECT) {
        return refuse_kind(object, "an object", problem);
    }
    if (*member == NULL) {
        return fsdpi_json_refuse_value(object, problem, "there is no \"%s\"", name);
    }
    if ((*member)->kind != kind && !(kind == FSDPI_JSON_DOUBLE && is_number((*member)->kind))) {
        return refuse_kind(*member, kind_text(kind), problem);
    }
    return FSDP_OK;
}
