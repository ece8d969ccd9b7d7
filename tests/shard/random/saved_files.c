#define _XOPEN_SOURCE 700
#include "tests/shard/random/saved_files.h"

#include <dirent.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/random/numbers.h"

int latest_checkpoint(const char *folder, char *path, size_t size)
{
    char  name[256];
    FILE *file;

    (void)snprintf(path, size, "%s/latest", folder);
    file = fopen(path, "r");
    if (file == NULL) {
        return -1;
    }
    const int read = fscanf(file, " %*[\"]%255[^\"\n]", name) == 1 || (rewind(file), fscanf(file, "%255s", name) == 1);
    (void)fclose(file);
    (void)snprintf(path, size, "%s/%s", folder, read ? name : "");
    return read ? 0 : -1;
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

/* What the header says of a tensor: {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}. */
typedef struct entry {
    fsdp_dtype dtype;
    size_t     begin, end; /* BYTES behind the header */
} entry;

/* Behind `"name":` where that is a key; NULL. */
static const char *find_key(const char *text, const char *name)
{
    char quoted[80];

    (void)snprintf(quoted, sizeof quoted, "\"%s\"", name);
    for (const char *at = strstr(text, quoted); at != NULL; at = strstr(at + 1, quoted)) {
        const char *behind = at + strlen(quoted);

        behind += strspn(behind, " ");
        if (*behind == ':') {
            return behind + 1;
        }
    }
    return NULL;
}

static int find_entry(const char *header, const char *name, entry *e)
{
    const char *at      = find_key(header, name);
    const char *dtype   = at != NULL ? find_key(at, "dtype") : NULL;
    const char *offsets = at != NULL ? find_key(at, "data_offsets") : NULL;
    char       *rest;

    if (dtype == NULL || offsets == NULL) {
        return 0;
    }
    dtype += strspn(dtype, " \"");
    e->dtype = strncmp(dtype, "BF16", 4) == 0 ? FSDP_BF16 : strncmp(dtype, "F16", 3) == 0 ? FSDP_F16 : FSDP_F32;
    e->begin = strtoul(offsets + strspn(offsets, " ["), &rest, 10);
    e->end   = strtoul(rest + strspn(rest, " ,"), NULL, 10);
    return 1;
}

/* The whole file, with a NUL behind its end; NULL. */
static unsigned char *read_file(const char *path)
{
    FILE          *file  = fopen(path, "rb");
    unsigned char *bytes = NULL;

    if (file == NULL) {
        return NULL;
    }
    (void)fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    bytes = size > 8 ? calloc((size_t)size + 1, 1) : NULL;
    if (bytes != NULL && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        free(bytes);
        bytes = NULL;
    }
    (void)fclose(file);
    return bytes;
}

static size_t read_from(const char *path, const char *name, float *values, size_t count, fsdp_dtype *dtype)
{
    unsigned char *bytes = read_file(path);
    size_t         n     = 0;
    entry          e;

    if (bytes == NULL) {
        return 0;
    }
    uint64_t length = 0;
    for (int i = 8; i-- > 0;) {
        length = length << 8 | bytes[i];
    }
    const unsigned char first = bytes[8 + length];
    bytes[8 + length]         = '\0';
    const int found           = find_entry((const char *)bytes + 8, name, &e);
    bytes[8 + length]         = first;
    if (found) {
        n      = (e.end - e.begin) / (e.dtype == FSDP_F32 ? 4 : 2);
        *dtype = e.dtype;
        for (size_t i = 0; i < n && i < count; i++) {
            values[i] = read_element(e.dtype, bytes + 8 + length + e.begin, i);
        }
    }
    free(bytes);
    return n;
}

/* ---- a folder ---------------------------------------------------------------------------------------------------- */

static int is_file_of(const char *name, const char *stem)
{
    const size_t n = strlen(name), end = strlen(".safetensors");

    return strncmp(name, stem, strlen(stem)) == 0 && n > end && strcmp(name + n - end, ".safetensors") == 0;
}

size_t read_saved_tensor(const char *checkpoint, const char *stem, const char *name, float *values, size_t count,
                         fsdp_dtype *dtype)
{
    DIR   *folder = opendir(checkpoint);
    size_t n      = 0;
    char   path[1300];

    if (folder == NULL) {
        return 0;
    }
    for (const struct dirent *file = readdir(folder); file != NULL && n == 0; file = readdir(folder)) {
        if (is_file_of(file->d_name, stem)) {
            (void)snprintf(path, sizeof path, "%.1000s/%.255s", checkpoint, file->d_name);
            n = read_from(path, name, values, count, dtype);
        }
    }
    (void)closedir(folder);
    return n;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

void remove_folder(const char *folder)
{
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
