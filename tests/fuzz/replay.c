/*
 * Runs a fuzzer's function without libFuzzer: on each file of a folder, on each of its beginnings, and with each of its bytes
 * changed in a few ways.
 *
 *     replay_safetensors FOLDER
 */
#include <dirent.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define MOST_BYTES 65536

/* In memory of exactly these bytes, so that a sanitizer sees any read beyond them. */
static void run(const uint8_t *data, size_t bytes)
{
    uint8_t *const exact = malloc(bytes > 0 ? bytes : 1);

    MUST(exact != NULL);
    memcpy(exact, data, bytes);
    (void)LLVMFuzzerTestOneInput(exact, bytes);
    free(exact);
}

static void run_changed(uint8_t *data, size_t bytes)
{
    static const uint8_t changes[] = {0x01, 0x10, 0x20, 0x80, 0xff};

    run(data, bytes);
    for (size_t i = 0; i < bytes; i++) {
        run(data, i);
        for (size_t k = 0; k < sizeof changes; k++) {
            data[i] ^= changes[k];
            run(data, bytes);
            data[i] ^= changes[k];
        }
    }
}

static size_t read_file(const char *folder, const char *name, uint8_t *data)
{
    char   path[4096];
    FILE  *file;
    size_t bytes;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rbe");
    MUST(file != NULL);
    bytes = fread(data, 1, MOST_BYTES, file);
    MUST(ferror(file) == 0);
    (void)fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    static uint8_t data[MOST_BYTES];

    DIR *const           folder = argc == 2 ? opendir(argv[1]) : NULL;
    const struct dirent *entry;
    int                  n = 0;

    if (folder == NULL) {
        (void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            run_changed(data, read_file(argv[1], entry->d_name, data));
            n++;
        }
    }
    (void)closedir(folder);
    (void)printf("%d files\n", n);
    return n > 0 ? 0 : 1;
}
