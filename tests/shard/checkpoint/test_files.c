#include "test_files.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/unit_test.h"

static char folder[] = "/tmp/fsdp-files-XXXXXX";

int test_folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL && chdir(folder) == 0 ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about;
    (void)kind;
    (void)place;
    return remove(path);
}

int test_folder_remove(void **state)
{
    (void)state;
    return chdir("/") == 0 && nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : -1;
}

void test_file_write(const char *name, const void *bytes, size_t n_bytes)
{
    FILE *const file = fopen(name, "wbe");

    assert_non_null(file);
    assert_int_equal(n_bytes, fwrite(bytes, 1, n_bytes, file));
    assert_int_equal(0, fclose(file));
}

unsigned char *test_safetensors_make(const char *header, size_t data_bytes, size_t *file_bytes)
{
    const size_t         length = strlen(header);
    unsigned char *const file   = malloc(8 + length + data_bytes);

    assert_non_null(file);
    for (size_t i = 0; i < 8; i++) {
        file[i] = (unsigned char)(length >> (8 * i) & 0xff);
    }
    memcpy(file + 8, header, length); /* NOLINT(bugprone-not-null-terminated-result): the format has no NUL */
    for (size_t i = 0; i < data_bytes; i++) {
        file[8 + length + i] = (unsigned char)i;
    }
    *file_bytes = 8 + length + data_bytes;
    return file;
}

void test_safetensors_write(const char *name, const char *header, size_t data_bytes)
{
    size_t               bytes;
    unsigned char *const file = test_safetensors_make(header, data_bytes, &bytes);

    test_file_write(name, file, bytes);
    free(file);
}

void test_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, part);
    }
}
