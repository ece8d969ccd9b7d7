#include "lib/base/settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/core.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/nearest.h"
#include "lib/base/options.h"
#include "lib/base/setting.h"

extern char **environ;

/* Any text is a path; whether something is there turns out where it is used. */
static void resolve_path(const fsdpi_setting *row, const fsdp_config *given, fsdp_config *resolved)
{
    const char *text = getenv(row->variable);
    const char *path = fsdpi_setting_path(row, given);

    path = path == NULL && text != NULL && text[0] != '\0' ? text : path;
    fsdpi_setting_set_path(row, resolved, path != NULL ? path : row->fallback);
}

/* `before`: what has been found wrong with other settings. */
static fsdp_status resolve_one(const fsdpi_setting *row, const fsdp_config *given, fsdp_config *resolved,
                               const char *before)
{
    if (row->kind == PATH) {
        resolve_path(row, given, resolved);
        return FSDP_OK;
    }
    const char *text  = getenv(row->variable);
    int64_t     value = fsdpi_setting_value(row, given);

    fsdpi_setting_set_value(row, resolved, fsdpi_setting_fallback(row));
    if (value != FSDP_UNSET) {
        if (!fsdpi_setting_accepts(row, value)) {
            return fsdpi_fail_together(NULL, FSDP_ERR_ARG, "%sfsdp_config.%s is %" PRId64 "; it accepts %s", before,
                                       row->field, value, row->values);
        }
    } else if (text == NULL || text[0] == '\0') {
        return FSDP_OK;
    } else if (fsdpi_setting_overflows(row, text)) {
        return fsdpi_fail_together(NULL, FSDP_ERR_ARG,
                                   "%s%s is '%s', which is too large; it accepts %s, at most %" PRId64, before,
                                   row->variable, text, row->values, INT64_MAX);
    } else if (!fsdpi_setting_parse(row, text, &value) || !fsdpi_setting_accepts(row, value)) {
        return fsdpi_fail_together(NULL, FSDP_ERR_ARG, "%s%s is '%s'; it accepts %s", before, row->variable, text,
                                   row->values);
    }
    fsdpi_setting_set_value(row, resolved, value);
    return FSDP_OK;
}

static void unset_all(fsdp_config *config)
{
    memset(config, 0, sizeof *config);
    config->size = sizeof *config;
    for (size_t i = 0; i < FSDPI_N_SETTINGS; i++) {
        if (FSDPI_SETTINGS[i].kind == PATH) {
            fsdpi_setting_set_path(&FSDPI_SETTINGS[i], config, NULL);
        } else {
            fsdpi_setting_set_value(&FSDPI_SETTINGS[i], config, FSDP_UNSET);
        }
    }
}

fsdp_status fsdpi_settings_resolve(const fsdp_config *given, fsdp_config *resolved)
{
    fsdp_config own;

    unset_all(&own);
    memset(resolved, 0, sizeof *resolved);
    fsdp_status status  = fsdpi_options_take(NULL, "fsdp_config", given, &own, sizeof own);
    resolved->size      = sizeof *resolved;
    resolved->log       = own.log;
    resolved->log_state = own.log_state;
    for (size_t i = 0; i < FSDPI_N_SETTINGS; i++) {
        char before[FSDPI_ERROR_BYTES] = "";

        if (status != FSDP_OK) {
            (void)snprintf(before, sizeof before, "%s; ", fsdp_last_error(NULL));
        }
        const fsdp_status one = resolve_one(&FSDPI_SETTINGS[i], &own, resolved, before);
        status                = status == FSDP_OK ? one : status;
    }
    return status;
}

static const fsdpi_setting *nearest_setting(const char *name)
{
    const fsdpi_setting *best = &FSDPI_SETTINGS[0];

    for (size_t i = 1; i < FSDPI_N_SETTINGS; i++) {
        if (fsdpi_name_distance(name, FSDPI_SETTINGS[i].variable) < fsdpi_name_distance(name, best->variable)) {
            best = &FSDPI_SETTINGS[i];
        }
    }
    return best;
}

/* FSDP_MPI and FSDP_MPI_*: tools/preload looks after these. FSDP_RUN_*: fsdp-run tells programs with them what it does. */
static bool is_of_a_tool(const char *name, size_t length)
{
    return (strncmp(name, "FSDP_MPI", 8) == 0 && (length == 8 || name[8] == '_')) || strncmp(name, "FSDP_RUN_", 9) == 0;
}

void fsdpi_settings_warn_unknown(const fsdp_context *ctx)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        char         name[64];
        const size_t length = strcspn(*entry, "=");

        if (strncmp(*entry, "FSDP_", 5) != 0 || length >= sizeof name || is_of_a_tool(*entry, length)) {
            continue;
        }
        memcpy(name, *entry, length);
        name[length]                 = '\0';
        const fsdpi_setting *nearest = nearest_setting(name);
        if (strcmp(name, nearest->variable) != 0) {
            fsdpi_log(ctx, FSDP_LOG_WARN, "%s is no setting and is ignored; the nearest that is: %s", name,
                      nearest->variable);
        }
    }
}

void fsdp_config_init_size(fsdp_config *config, size_t size)
{
    fsdp_config defaults;

    unset_all(&defaults);
    fsdpi_options_give(&defaults, sizeof defaults, config, size);
}

fsdp_status fsdp_settings_print(const fsdp_context *ctx, FILE *file)
{
    fsdp_config defaults;

    if (file == NULL) {
        return fsdpi_fail((fsdp_context *)(uintptr_t)ctx, FSDP_ERR_ARG, "fsdp_settings_print: the stream is NULL");
    }
    for (size_t i = 0; i < FSDPI_N_SETTINGS; i++) {
        fsdpi_setting_set_fallback(&FSDPI_SETTINGS[i], &defaults);
    }
    for (size_t i = 0; i < FSDPI_N_SETTINGS; i++) {
        char value[FSDPI_SETTING_TEXT_BYTES];

        fsdpi_setting_text(&FSDPI_SETTINGS[i], ctx != NULL ? &fsdpi_const_core_of(ctx)->config : &defaults, value,
                           sizeof value);
        (void)fprintf(file, "%-24s %-12s %s (%s)%s\n", FSDPI_SETTINGS[i].variable, value, FSDPI_SETTINGS[i].help,
                      FSDPI_SETTINGS[i].values, FSDPI_SETTINGS[i].agree ? ", the same on all ranks" : "");
    }
    return FSDP_OK;
}
