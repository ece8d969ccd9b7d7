#include "shard/checkpoint/format/model_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A checkpoint's own files: as models they would be taken for these. */
static const char *const RESERVED[] = {FSDPI_MODEL_STEM, FSDPI_OPTIMIZER_STEM, "simulation", "state", "checksums"};

/* Whatever the locale says letters are. */
static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

const char *fsdpi_model_name_wrong(const char *name)
{
    if (name == NULL || name[0] == '\0') {
        return "is missing; give one";
    }
    if (strnlen(name, FSDP_CHECKPOINT_NAME_BYTES) == FSDP_CHECKPOINT_NAME_BYTES) {
        return "is too long; at most FSDP_CHECKPOINT_NAME_BYTES - 1 = 63 characters are possible";
    }
    if (!is_plain(name[0])) {
        return "does not begin with a letter or a digit; let it";
    }
    for (const char *c = name; *c != '\0'; c++) {
        if (!is_plain(*c) && *c != '_' && *c != '-' && *c != '.') {
            return "has another character than letters, digits, '_', '-' and '.'; use these";
        }
    }
    for (size_t i = 0; i < sizeof RESERVED / sizeof RESERVED[0]; i++) {
        if (strcmp(name, RESERVED[i]) == 0) {
            return "is that of a checkpoint's own files; choose another";
        }
    }
    return NULL;
}

const char *fsdpi_model_stem(const char *name, const char *kind, char *stem)
{
    (void)snprintf(stem, FSDPI_STEM_BYTES, "%s%s%s", name, name[0] != '\0' ? "." : "", kind);
    return stem;
}
