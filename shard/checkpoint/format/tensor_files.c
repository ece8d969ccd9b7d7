#include "shard/checkpoint/format/tensor_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/text.h"

/* What an index says of one tensor. */
typedef struct mapped_tensor {
    const char *name;
    const char *file; /* in the index's folder */
} mapped_tensor;

/* An index: its text, into which names point, and its map. */
typedef struct tensor_index {
    const char    *path;
    char          *text;
    mapped_tensor *map;
    size_t         n, room;
} tensor_index;

/* ---- One file ---- */

static fsdp_status read_header(fsdpi_tensor_file *file, uint64_t file_bytes, fsdpi_problem *problem)
{
    unsigned char first8[8];
    size_t        header_bytes;
    char         *header;
    fsdp_status   status;

    if (file_bytes < sizeof first8) {
        return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: a file of %u bytes; a safetensors file begins with 8",
                                 file->path, (unsigned)file_bytes);
    }
    FSDP_TRY(fsdpi_file_read(file->fd, file->path, 0, first8, sizeof first8, problem));
    FSDP_TRY(fsdpi_safetensors_length(file->path, first8, file_bytes, &header_bytes, problem));
    header = malloc(header_bytes + 1);
    if (header == NULL) {
        return fsdpi_problem_memory(problem, file->path, header_bytes);
    }
    status = fsdpi_file_read(file->fd, file->path, sizeof first8, header, header_bytes, problem);
    if (status == FSDP_OK) {
        status = fsdpi_safetensors_parse(file->path, header, header_bytes, file_bytes, &file->header, problem);
    }
    free(header);
    return status;
}

/* Takes over `path`, also when it fails. */
static fsdp_status open_file(char *path, fsdpi_tensor_file *file, fsdpi_problem *problem)
{
    uint64_t file_bytes;

    *file = (fsdpi_tensor_file){.fd = -1, .path = path};
    FSDP_TRY(fsdpi_file_open(path, &file->fd, &file_bytes, problem));
    return read_header(file, file_bytes, problem);
}

/* ---- An index ---- */

static fsdp_status add_mapped(tensor_index *index, const fsdpi_json_reader *reader, const fsdpi_json_token *token)
{
    if (token->kind != FSDPI_JSON_STRING) {
        return fsdpi_json_refuse(reader, token->at, "the file of tensor '%.200s' is no string", token->name);
    }
    if (strchr(token->string, '/') != NULL || token->string[0] == 0 || strcmp(token->string, ".") == 0 ||
        strcmp(token->string, "..") == 0) {
        return fsdpi_json_refuse(reader, token->at,
                                 "tensor '%.200s' is said to be in '%.200s'; only files beside the index are read",
                                 token->name, token->string);
    }
    if (index->n == index->room) {
        const size_t         room = index->room + index->room / 2 + 64;
        mapped_tensor *const map  = realloc(index->map, room * sizeof *map);

        if (map == NULL) {
            return fsdpi_problem_memory(reader->problem, index->path, room * sizeof *map);
        }
        index->map  = map;
        index->room = room;
    }
    index->map[index->n++] = (mapped_tensor){token->name, token->string};
    return FSDP_OK;
}

/* Goes over a value whose first token has been read. */
static fsdp_status skip_value(fsdpi_json_reader *reader, const fsdpi_json_token *first)
{
    const bool       nests = first->kind == FSDPI_JSON_ARRAY || first->kind == FSDPI_JSON_OBJECT;
    const unsigned   depth = reader->depth;
    fsdpi_json_token token;

    while (nests && reader->depth >= depth) {
        FSDP_TRY(fsdpi_json_next(reader, &token));
    }
    return FSDP_OK;
}

static fsdp_status read_map(tensor_index *index, fsdpi_json_reader *reader, const fsdpi_json_token *opening,
                            bool *found)
{
    fsdpi_json_token token;

    if (*found || opening->kind != FSDPI_JSON_OBJECT) {
        return fsdpi_json_refuse(reader, opening->name_at, "\"weight_map\" %s",
                                 *found ? "comes twice" : "is no object");
    }
    *found = true;
    for (;;) {
        FSDP_TRY(fsdpi_json_next(reader, &token));
        if (token.kind == FSDPI_JSON_END) {
            return FSDP_OK;
        }
        FSDP_TRY(add_mapped(index, reader, &token));
    }
}

/* All that the index says. Of other members only "metadata" is known. */
static fsdp_status read_index(tensor_index *index, fsdpi_json_reader *reader)
{
    bool             has_map = false, has_metadata = false;
    fsdpi_json_token token;

    FSDP_TRY(fsdpi_json_next(reader, &token));
    if (token.kind != FSDPI_JSON_OBJECT) {
        return fsdpi_json_refuse(reader, token.at, "an index is an object");
    }
    for (;;) {
        FSDP_TRY(fsdpi_json_next(reader, &token));
        if (token.kind == FSDPI_JSON_END) {
            break;
        }
        if (strcmp(token.name, "weight_map") == 0) {
            FSDP_TRY(read_map(index, reader, &token, &has_map));
            continue;
        }
        if (strcmp(token.name, "metadata") != 0 || has_metadata) {
            return fsdpi_json_refuse(reader, token.name_at, "member '%.40s' of an index %s", token.name,
                                     has_metadata ? "comes twice" : "is unknown");
        }
        has_metadata = true;
        FSDP_TRY(skip_value(reader, &token));
    }
    FSDP_TRY(fsdpi_json_next(reader, &token));
    return has_map ? FSDP_OK : fsdpi_json_refuse(reader, 0, "there is no \"weight_map\"");
}

static int compare_mapped_names(const void *a, const void *b)
{
    return strcmp(((const mapped_tensor *)a)->name, ((const mapped_tensor *)b)->name);
}

static int compare_mapped(const void *a, const void *b)
{
    const mapped_tensor *const x = a, *const y = b;
    const int order = strcmp(x->file, y->file);

    return order != 0 ? order : strcmp(x->name, y->name);
}

static fsdp_status parse_index(const char *path, char *text, size_t bytes, tensor_index *index, fsdpi_problem *problem)
{
    fsdpi_json_reader reader;

    *index = (tensor_index){.path = path, .text = text};
    fsdpi_json_reader_init(&reader, path, 0, text, bytes, problem);
    FSDP_TRY(read_index(index, &reader));
    if (index->n < 2) {
        return FSDP_OK;
    }
    qsort(index->map, index->n, sizeof *index->map, compare_mapped_names);
    for (size_t i = 1; i < index->n; i++) {
        if (compare_mapped_names(&index->map[i - 1], &index->map[i]) == 0) {
            return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: tensor '%.200s' comes twice", path,
                                     index->map[i].name);
        }
    }
    qsort(index->map, index->n, sizeof *index->map, compare_mapped);
    return FSDP_OK;
}

fsdp_status fsdpi_tensor_index_check(const char *path, const char *text, size_t bytes, size_t *n_tensors,
                                     fsdpi_problem *problem)
{
    char *const  copy = malloc(bytes + 1);
    tensor_index index;
    fsdp_status  status;

    if (copy == NULL) {
        return fsdpi_problem_memory(problem, path, bytes);
    }
    memcpy(copy, text, bytes);
    status     = parse_index(path, copy, bytes, &index, problem);
    *n_tensors = index.n;
    free(index.map);
    free(copy);
    return status;
}

/* ---- Several files ---- */

/* The path of a file beside another. */
static char *beside(const char *path, const char *name)
{
    const char *const slash  = strrchr(path, '/');
    const int         folder = slash != NULL ? (int)(slash - path + 1) : 0;

    return fsdpi_text("%.*s%s", folder, path, name);
}

static size_t count_files(const tensor_index *index)
{
    size_t n = 0;

    for (size_t i = 0; i < index->n; i++) {
        n += i == 0 || strcmp(index->map[i - 1].file, index->map[i].file) != 0;
    }
    return n;
}

/* A file holds what the map says, from entry `first` on, and nothing else. */
static fsdp_status check_map(const tensor_index *index, size_t first, size_t *next, const fsdpi_tensor_file *file,
                             fsdpi_problem *problem)
{
    const char *const              name   = index->map[first].file;
    const fsdpi_safetensors *const header = &file->header;
    size_t                         i      = first;

    for (; i < index->n && strcmp(index->map[i].file, name) == 0; i++) {
        const char *const tensor = index->map[i].name;

        if (fsdpi_safetensors_find(header, tensor) == NULL) {
            return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: tensor '%.200s' is not in %s", index->path, tensor,
                                     name);
        }
    }
    *next = i;
    /* Both are sorted by name, and all of the map's are in the file. */
    for (size_t k = 0; k < header->n_tensors; k++) {
        const char *const tensor = header->tensors[header->by_name[k]].name;

        if (first + k == i || strcmp(index->map[first + k].name, tensor) != 0) {
            return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: tensor '%.200s' of %s is not in the map",
                                     index->path, tensor, name);
        }
    }
    return FSDP_OK;
}

static fsdp_status open_mapped(const tensor_index *index, fsdpi_tensor_files *files, fsdpi_problem *problem)
{
    const size_t n = count_files(index);

    files->files = calloc(n + 1, sizeof *files->files);
    if (files->files == NULL) {
        return fsdpi_problem_memory(problem, index->path, (n + 1) * sizeof *files->files);
    }
    for (size_t i = 0; i < index->n;) {
        fsdpi_tensor_file *const file = &files->files[files->n_files++];
        char *const              path = beside(index->path, index->map[i].file);

        *file = (fsdpi_tensor_file){.fd = -1};
        if (path == NULL) {
            return fsdpi_problem_memory(problem, index->path, strlen(index->path));
        }
        FSDP_TRY(open_file(path, file, problem));
        FSDP_TRY(check_map(index, i, &i, file, problem));
    }
    return FSDP_OK;
}

static fsdp_status open_index(const char *path, fsdpi_tensor_files *files, fsdpi_problem *problem)
{
    tensor_index index;
    char        *text;
    size_t       bytes;
    fsdp_status  status;

    FSDP_TRY(fsdpi_file_text(path, FSDPI_INDEX_MOST, &text, &bytes, problem));
    status = parse_index(path, text, bytes, &index, problem);
    if (status == FSDP_OK) {
        status = open_mapped(&index, files, problem);
    }
    free(index.map);
    free(text);
    return status;
}

static fsdp_status open_single(const char *path, fsdpi_tensor_files *files, fsdpi_problem *problem)
{
    char *const own = strdup(path);

    files->files = calloc(1, sizeof *files->files);
    if (own == NULL || files->files == NULL) {
        free(own);
        return fsdpi_problem_memory(problem, path, strlen(path));
    }
    files->n_files = 1;
    return open_file(own, files->files, problem);
}

static int compare_names(const void *a, const void *b, void *tensors)
{
    const fsdpi_placed_tensor *const tensor = tensors;

    return strcmp(tensor[*(const size_t *)a].info->name, tensor[*(const size_t *)b].info->name);
}

/* One list of the tensors of all files. */
static fsdp_status list_tensors(const char *path, fsdpi_tensor_files *files, fsdpi_problem *problem)
{
    size_t n = 0;

    for (size_t i = 0; i < files->n_files; i++) {
        n += files->files[i].header.n_tensors;
    }
    files->tensors = malloc((n + 1) * sizeof *files->tensors);
    files->by_name = malloc((n + 1) * sizeof *files->by_name);
    if (files->tensors == NULL || files->by_name == NULL) {
        return fsdpi_problem_memory(problem, path, (n + 1) * sizeof *files->tensors);
    }
    for (size_t i = 0; i < files->n_files; i++) {
        for (size_t k = 0; k < files->files[i].header.n_tensors; k++) {
            files->by_name[files->n_tensors] = files->n_tensors;
            files->tensors[files->n_tensors++] =
                (fsdpi_placed_tensor){&files->files[i].header.tensors[k], &files->files[i]};
        }
    }
    qsort_r(files->by_name, n, sizeof *files->by_name, compare_names, files->tensors);
    for (size_t i = 1; i < n; i++) {
        if (compare_names(&files->by_name[i - 1], &files->by_name[i], files->tensors) == 0) {
            return fsdpi_problem_set(problem, FSDP_ERR_FORMAT, "%s: tensor '%.200s' is in two files", path,
                                     files->tensors[files->by_name[i]].info->name);
        }
    }
    return FSDP_OK;
}

static bool is_index(const char *path)
{
    const size_t length = strlen(path), suffix = strlen(FSDPI_INDEX_SUFFIX);

    return length >= suffix && strcmp(path + length - suffix, FSDPI_INDEX_SUFFIX) == 0;
}

fsdp_status fsdpi_tensor_files_open(const char *path, fsdpi_tensor_files *files, fsdpi_problem *problem)
{
    fsdp_status status;

    *files = (fsdpi_tensor_files){0};
    status = is_index(path) ? open_index(path, files, problem) : open_single(path, files, problem);
    if (status == FSDP_OK) {
        status = list_tensors(path, files, problem);
    }
    if (status != FSDP_OK) {
        fsdpi_tensor_files_close(files);
    }
    return status;
}

fsdp_status fsdpi_tensor_files_open_in(const char *folder, const char *stem, fsdpi_tensor_files *files,
                                       fsdpi_problem *problem)
{
    char *const path = fsdpi_text("%s/%s.safetensors" FSDPI_INDEX_SUFFIX, folder, stem);
    fsdp_status status;

    *files = (fsdpi_tensor_files){0};
    if (path == NULL) {
        return fsdpi_problem_memory(problem, folder, strlen(folder));
    }
    char *const suffix = path + strlen(path) - strlen(FSDPI_INDEX_SUFFIX);
    const char  dot    = *suffix;

    *suffix = 0;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        *suffix = dot;
        if (access(path, F_OK) != 0) {
            *suffix = 0; /* it is the single file that is missing */
        }
    }
    status = fsdpi_tensor_files_open(path, files, problem);
    free(path);
    return status;
}

void fsdpi_tensor_files_close(fsdpi_tensor_files *files)
{
    for (size_t i = 0; i < files->n_files; i++) {
        if (files->files[i].fd >= 0) {
            (void)close(files->files[i].fd);
        }
        free(files->files[i].path);
        fsdpi_safetensors_free(&files->files[i].header);
    }
    free(files->files);
    free(files->tensors);
    free(files->by_name);
    *files = (fsdpi_tensor_files){0};
}

static const char *name_at(const void *of, size_t place)
{
    const fsdpi_tensor_files *const files = of;

    return files->tensors[files->by_name[place]].info->name;
}

const fsdpi_placed_tensor *fsdpi_tensor_files_find(const fsdpi_tensor_files *files, const char *name)
{
    const size_t place = fsdpi_name_find(files->n_tensors, name_at, files, name);

    return place < files->n_tensors ? &files->tensors[files->by_name[place]] : NULL;
}

fsdp_status fsdpi_tensor_read(const fsdpi_placed_tensor *tensor, uint64_t begin, void *values, size_t bytes,
                              fsdpi_problem *problem)
{
    return fsdpi_file_read(tensor->file->fd, tensor->file->path,
                           tensor->file->header.data_offset + tensor->info->begin + begin, values, bytes, problem);
}
