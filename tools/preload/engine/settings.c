#include "tools/preload/engine/settings.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/nearest.h"
#include "tools/preload/engine/text.h"

#define MEBIBYTE ((uint64_t)1 << 20)

fsdpi_preload_settings fsdpi_preload;

static const char *const VARIABLES[] = {
#define NAME_OF(variable, fallback, values, help) variable,
    FSDPI_PRELOAD_SETTINGS(NAME_OF)
#undef NAME_OF
};
enum { N_VARIABLES = sizeof VARIABLES / sizeof VARIABLES[0] };

extern char **environ;

/* The value of a variable, or of its default where it cannot be read. */
static uint64_t number_of(const char *variable, uint64_t fallback, uint64_t most)
{
    const char *text = getenv(variable);
    uint64_t    value;

    if (text == NULL) {
        return fallback;
    }
    if (!fsdpi_preload_bytes(text, &value) || value > most) {
        fsdpi_preload_say("%s is '%s'; give a number from 0 to %llu. It counts as %llu", variable, text,
                          (unsigned long long)most, (unsigned long long)fallback);
        return fallback;
    }
    return value;
}

static const char *nearest(const char *name)
{
    const char *best = VARIABLES[0];

    for (size_t i = 1; i < N_VARIABLES; i++) {
        if (fsdpi_name_distance(name, VARIABLES[i]) < fsdpi_name_distance(name, best)) {
            best = VARIABLES[i];
        }
    }
    return best;
}

static void warn_of_unknown(void)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        char         name[64];
        const size_t length = strcspn(*entry, "=");

        if (strncmp(*entry, "FSDP_MPI_", 9) != 0 || length >= sizeof name) {
            continue;
        }
        memcpy(name, *entry, length);
        name[length] = '\0';
        if (strcmp(nearest(name), name) != 0) {
            fsdpi_preload_say("%s is no setting and is ignored; the nearest that is: %s", name, nearest(name));
        }
    }
}

void fsdpi_preload_settings_read(void)
{
    const char *table = getenv("FSDP_MPI_TABLE"), *wanted = getenv("FSDP_MPI");

    if (wanted != NULL && strcmp(wanted, "on") != 0) {
        fsdpi_preload_say("FSDP_MPI is '%s'; use on or off. It counts as on", wanted);
    }
    fsdpi_preload         = (fsdpi_preload_settings){.reports  = getenv("FSDP_MPI_REPORT") != NULL,
                                                     .compares = number_of("FSDP_MPI_COMPARE", 0, 1) == 1,
                                                     .contexts = (int)number_of("FSDP_MPI_CONTEXTS", 16, 1000000),
                                                     .after    = number_of("FSDP_MPI_AFTER", 8 * MEBIBYTE, UINT64_MAX)};
    fsdpi_preload.reports = fsdpi_preload.reports || fsdpi_preload.compares;
    fsdpi_worth_fill(&fsdpi_preload.worth);
    if (table != NULL) {
        fsdpi_worth_read(&fsdpi_preload.worth, table);
    }
    warn_of_unknown();
}
