#include "lib/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/context.h"
#include "lib/error.h"
#include "lib/hash.h"
#include "lib/log.h"

extern char **environ;

typedef enum setting_kind { CHOICE, SECONDS, COUNT, BYTES, PATH } setting_kind;

typedef struct setting {
    const char  *field;
    const char  *variable;
    const char  *fallback;
    const char  *values; /* CHOICE: names between bars; else "LOW to HIGH" or "LOW or more", perhaps with a remark */
    const char  *help;
    size_t       offset; /* of the field in fsdp_config */
    setting_kind kind;
    bool         agree;
} setting;

#define SETTING_ROW(field, kind, variable, fallback, agree, values, help)                                              \
    {#field, variable, fallback, values, help, offsetof(fsdp_config, field), kind, (agree) != 0},
static const setting SETTINGS[] = {FSDP_SETTINGS(SETTING_ROW)};
#undef SETTING_ROW
#define N_SETTINGS (sizeof SETTINGS / sizeof SETTINGS[0])

enum { VALUE_TEXT_BYTES = 64 };

static const char *path_of(const setting *row, const fsdp_config *config)
{
    const char *path;

    memcpy(&path, (const char *)config + row->offset, sizeof path);
    return path;
}

static void set_path(const setting *row, fsdp_config *config, const char *path)
{
    memcpy((char *)config + row->offset, &path, sizeof path);
}

static int64_t field_value(const setting *row, const fsdp_config *config)
{
    const char *field = (const char *)config + row->offset;

    if (row->kind == BYTES) {
        int64_t bytes;
        memcpy(&bytes, field, sizeof bytes);
        return bytes;
    }
    int value;
    memcpy(&value, field, sizeof value);
    return value;
}

static void set_field(const setting *row, fsdp_config *config, int64_t value)
{
    char *field = (char *)config + row->offset;

    if (row->kind == BYTES) {
        memcpy(field, &value, sizeof value);
    } else {
        const int narrow = (int)value;
        memcpy(field, &narrow, sizeof narrow);
    }
}

/* The number of `text` among the names in "off|args|full"; -1 if it is none of them. */
static int64_t choice_number(const char *values, const char *text)
{
    const size_t length = strlen(text);
    int64_t      number = 0;

    for (const char *name = values; name != NULL; number++) {
        const char  *bar      = strchr(name, '|');
        const size_t name_len = bar != NULL ? (size_t)(bar - name) : strlen(name);

        if (name_len == length && memcmp(name, text, length) == 0) {
            return number;
        }
        name = bar != NULL ? bar + 1 : NULL;
    }
    return -1;
}

static void choice_name(const char *values, int64_t number, char *text, size_t size)
{
    const char *name = values;

    while (number-- > 0 && name != NULL) {
        name = strchr(name, '|');
        name = name != NULL ? name + 1 : NULL;
    }
    (void)snprintf(text, size, "%.*s", name != NULL ? (int)strcspn(name, "|") : 0, name != NULL ? name : "");
}

static int64_t choice_count(const char *values)
{
    int64_t count = 1;

    for (; *values != '\0'; values++) {
        count += *values == '|';
    }
    return count;
}

/* Whole numbers; bytes may end in K, M or G. False where the text is anything else, or does not fit. */
static bool parse_number(const char *text, setting_kind kind, int64_t *value)
{
    char   *end;
    int64_t unit = 1;

    errno             = 0;
    const long long n = strtoll(text, &end, 10);
    if (end == text || errno != 0) {
        return false;
    }
    if (kind == BYTES && *end != '\0') {
        unit = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : *end == 'G' ? 1 << 30 : 0;
        end++;
    }
    if (*end != '\0' || unit == 0 || n > INT64_MAX / unit || n < INT64_MIN / unit) {
        return false;
    }
    *value = (int64_t)n * unit;
    return true;
}

static bool parse_value(const setting *row, const char *text, int64_t *value)
{
    if (row->kind != CHOICE) {
        return parse_number(text, row->kind, value);
    }
    *value = choice_number(row->values, text);
    return *value >= 0;
}

static bool in_range(const setting *row, int64_t value)
{
    int64_t low  = 0;
    int64_t high = row->kind == BYTES ? INT64_MAX : INT_MAX;

    if (row->kind == CHOICE) {
        return value >= 0 && value < choice_count(row->values);
    }
    (void)sscanf(row->values, "%" SCNd64 " to %" SCNd64, &low, &high);
    return value >= low && value <= high;
}

static void value_text(const setting *row, const fsdp_config *config, char *text, size_t size)
{
    if (row->kind == PATH) {
        const char *path = path_of(row, config);
        (void)snprintf(text, size, "%s", path != NULL && path[0] != '\0' ? path : "-");
    } else if (row->kind == CHOICE) {
        choice_name(row->values, field_value(row, config), text, size);
    } else {
        (void)snprintf(text, size, "%" PRId64, field_value(row, config));
    }
}

static int64_t fallback_value(const setting *row)
{
    int64_t value = 0;

    (void)parse_value(row, row->fallback, &value);
    return value;
}

/* Any text is a path; whether something is there turns out where it is used. */
static void resolve_path(const setting *row, const fsdp_config *given, fsdp_config *resolved)
{
    const char *text = getenv(row->variable);
    const char *path = given != NULL ? path_of(row, given) : NULL;

    path = path == NULL && text != NULL && text[0] != '\0' ? text : path;
    set_path(row, resolved, path != NULL ? path : row->fallback);
}

static fsdp_status resolve_one(const setting *row, const fsdp_config *given, fsdp_config *resolved)
{
    if (row->kind == PATH) {
        resolve_path(row, given, resolved);
        return FSDP_OK;
    }
    const char *text  = getenv(row->variable);
    int64_t     value = given != NULL ? field_value(row, given) : FSDP_UNSET;

    set_field(row, resolved, fallback_value(row));
    if (value != FSDP_UNSET) {
        if (!in_range(row, value)) {
            return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_config.%s is %" PRId64 "; it accepts %s", row->field, value,
                              row->values);
        }
    } else if (text == NULL || text[0] == '\0') {
        return FSDP_OK;
    } else if (!parse_value(row, text, &value) || !in_range(row, value)) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s is '%s'; it accepts %s", row->variable, text, row->values);
    }
    set_field(row, resolved, value);
    return FSDP_OK;
}

fsdp_status fsdpi_settings_resolve(const fsdp_config *given, fsdp_config *resolved)
{
    fsdp_status status = FSDP_OK;

    for (size_t i = 0; i < N_SETTINGS; i++) {
        const fsdp_status one = resolve_one(&SETTINGS[i], given, resolved);
        status                = status == FSDP_OK ? one : status;
    }
    return status;
}

int fsdpi_log_level_of_environment(void)
{
    const setting *row  = &SETTINGS[0];
    const char    *text = getenv(row->variable);
    int64_t        value;

    if (text != NULL && parse_value(row, text, &value)) {
        return (int)value;
    }
    return (int)fallback_value(row);
}

/* Edit distance of Levenshtein, one row at a time; names longer than the row are as far as can be. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    size_t       row[LONGEST + 1];
    const size_t n = strlen(b);

    if (n > LONGEST) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0]          = i + 1;
        for (size_t j = 0; j < n; j++) {
            const size_t change = diagonal + (a[i] != b[j]);
            const size_t gap    = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal            = row[j + 1];
            row[j + 1]          = change < gap ? change : gap;
        }
    }
    return row[n];
}

static const setting *nearest_setting(const char *name)
{
    const setting *best = &SETTINGS[0];

    for (size_t i = 1; i < N_SETTINGS; i++) {
        if (distance(name, SETTINGS[i].variable) < distance(name, best->variable)) {
            best = &SETTINGS[i];
        }
    }
    return best;
}

void fsdpi_settings_warn_unknown(const fsdp_context *ctx)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        char         name[64];
        const size_t length = strcspn(*entry, "=");

        if (strncmp(*entry, "FSDP_", 5) != 0 || length >= sizeof name) {
            continue;
        }
        memcpy(name, *entry, length);
        name[length]           = '\0';
        const setting *nearest = nearest_setting(name);
        if (strcmp(name, nearest->variable) != 0) {
            fsdpi_log(ctx, FSDP_LOG_WARN, "%s is no setting and is ignored; the nearest that is: %s", name,
                      nearest->variable);
        }
    }
}

uint64_t fsdpi_settings_fingerprint(const fsdp_config *config)
{
    uint64_t hash = FSDPI_HASH_START;

    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (SETTINGS[i].agree) {
            hash = fsdpi_hash_u64(hash, (uint64_t)field_value(&SETTINGS[i], config));
        }
    }
    return hash;
}

void fsdpi_settings_describe(const fsdp_config *config, char *text, size_t size)
{
    size_t used = 0;

    (void)snprintf(text, size, "the default settings");
    for (size_t i = 0; i < N_SETTINGS && used < size; i++) {
        char value[VALUE_TEXT_BYTES];

        if (SETTINGS[i].agree && field_value(&SETTINGS[i], config) != fallback_value(&SETTINGS[i])) {
            value_text(&SETTINGS[i], config, value, sizeof value);
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s=%s", used > 0 ? " " : "", SETTINGS[i].variable, value);
        }
    }
}

void fsdp_config_init(fsdp_config *config)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (SETTINGS[i].kind == PATH) {
            set_path(&SETTINGS[i], config, NULL);
        } else {
            set_field(&SETTINGS[i], config, FSDP_UNSET);
        }
    }
}

static void set_fallback(const setting *row, fsdp_config *config)
{
    if (row->kind == PATH) {
        set_path(row, config, row->fallback);
    } else {
        set_field(row, config, fallback_value(row));
    }
}

fsdp_status fsdp_settings_print(const fsdp_context *ctx, FILE *file)
{
    fsdp_config defaults;

    if (file == NULL) {
        return fsdpi_fail((fsdp_context *)(uintptr_t)ctx, FSDP_ERR_ARG, "fsdp_settings_print: the stream is NULL");
    }
    for (size_t i = 0; i < N_SETTINGS; i++) {
        set_fallback(&SETTINGS[i], &defaults);
    }
    for (size_t i = 0; i < N_SETTINGS; i++) {
        char value[VALUE_TEXT_BYTES];

        value_text(&SETTINGS[i], ctx != NULL ? &ctx->config : &defaults, value, sizeof value);
        (void)fprintf(file, "%-24s %-12s %s (%s)%s\n", SETTINGS[i].variable, value, SETTINGS[i].help,
                      SETTINGS[i].values, SETTINGS[i].agree ? ", the same on all ranks" : "");
    }
    return FSDP_OK;
}
