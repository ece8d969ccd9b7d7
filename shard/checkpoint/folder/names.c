#include "shard/checkpoint/folder/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX  "step-"
#define PARTIAL ".partial"

void fsdpi_checkpoint_name_make(uint64_t step, unsigned attempt, char *name)
{
    if (attempt < 2) {
        (void)snprintf(name, FSDPI_FOLDER_NAME_BYTES, PREFIX "%09" PRIu64, step);
    } else {
        (void)snprintf(name, FSDPI_FOLDER_NAME_BYTES, PREFIX "%09" PRIu64 "-%u", step, attempt);
    }
}

bool fsdpi_checkpoint_name_parse(const char *name, fsdpi_checkpoint_name *found)
{
    found->attempt = 1;
    if (strlen(name) >= sizeof found->name ||
        sscanf(name, PREFIX "%" SCNu64 "-%u", &found->step, &found->attempt) < 1) {
        return false;
    }
    fsdpi_checkpoint_name_make(found->step, found->attempt, found->name);
    return strcmp(name, found->name) == 0;
}

void fsdpi_partial_name_make(const char *name, const char *job, char *partial)
{
    (void)snprintf(partial, FSDPI_FOLDER_NAME_BYTES, ".%s.%s" PARTIAL, name, job);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* What else is in the folder is none of ours. */
static bool begins_as_ours(const char *name)
{
    static const char *const begins[] = {"." PREFIX, "." FSDPI_LATEST_FILE ".", "." FSDPI_OWNER_FILE ".",
                                         "." FSDPI_MARK_FILE "."};

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool fsdpi_is_partial_name(const char *name, const char *job)
{
    char end[FSDPI_FOLDER_NAME_BYTES];

    (void)snprintf(end, sizeof end, "%s%s" PARTIAL, job != NULL ? "." : "", job != NULL ? job : "");
    return begins_as_ours(name) && ends_with(name, end);
}
