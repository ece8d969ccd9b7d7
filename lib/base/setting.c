#include "lib/base/setting.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/topology.h" /* how many hardware threads a mask can name */

#define SETTING_ROW(field, kind, variable, fallback, agree, values, help)                                              \
    {#field, variable, fallback, values, help, offsetof(fsdp_config, field), kind, (agree) != 0},
const fsdpi_setting FSDPI_SETTINGS[FSDPI_N_SETTINGS] = {FSDP_SETTINGS(SETTING_ROW)};
#undef SETTING_ROW

const char *fsdpi_setting_path(const fsdpi_setting *row, const fsdp_config *config)
{
    const char *path;

    memcpy(&path, (const char *)config + row->offset, sizeof path);
    return path;
}

void fsdpi_setting_set_path(const fsdpi_setting *row, fsdp_config *config, const char *path)
{
    memcpy((char *)config + row->offset, &path, sizeof path);
}

int64_t fsdpi_setting_value(const fsdpi_setting *row, const fsdp_config *config)
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

void fsdpi_setting_set_value(const fsdpi_setting *row, fsdp_config *config, int64_t value)
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
static bool parse_number(const char *text, fsdpi_setting_kind kind, int64_t *value)
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

bool fsdpi_setting_overflows(const fsdpi_setting *row, const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    const char  *unit   = text + digits;
    int64_t      value;

    return row->kind == BYTES && digits > 0 && (*unit == '\0' || (strchr("KMG", *unit) != NULL && unit[1] == '\0')) &&
           !parse_number(text, row->kind, &value);
}

/* A hardware thread, or one of two words for what is no number of one. */
static bool parse_cpu(const char *text, int64_t *value)
{
    if (strcmp(text, "auto") == 0 || strcmp(text, "none") == 0) {
        *value = text[0] == 'a' ? FSDP_CPU_AUTO : FSDP_CPU_NONE;
        return true;
    }
    return parse_number(text, CPU, value) && *value >= 0;
}

bool fsdpi_setting_parse(const fsdpi_setting *row, const char *text, int64_t *value)
{
    if (row->kind == CPU) {
        return parse_cpu(text, value);
    }
    if (row->kind != CHOICE) {
        return parse_number(text, row->kind, value);
    }
    *value = choice_number(row->values, text);
    return *value >= 0;
}

bool fsdpi_setting_accepts(const fsdpi_setting *row, int64_t value)
{
    int64_t low  = 0;
    int64_t high = row->kind == BYTES ? INT64_MAX : INT_MAX;

    if (row->kind == CHOICE) {
        return value >= 0 && value < choice_count(row->values);
    }
    if (row->kind == CPU) {
        return value == FSDP_CPU_AUTO || value == FSDP_CPU_NONE || (value >= 0 && value < 64 * FSDP_MASK_WORDS);
    }
    (void)sscanf(row->values, "%" SCNd64 " to %" SCNd64, &low, &high);
    return value >= low && value <= high;
}

void fsdpi_setting_text(const fsdpi_setting *row, const fsdp_config *config, char *text, size_t size)
{
    if (row->kind == PATH) {
        const char *path = fsdpi_setting_path(row, config);
        (void)snprintf(text, size, "%s", path != NULL && path[0] != '\0' ? path : "-");
    } else if (row->kind == CHOICE) {
        choice_name(row->values, fsdpi_setting_value(row, config), text, size);
    } else if (row->kind == CPU && fsdpi_setting_value(row, config) < 0) {
        (void)snprintf(text, size, "%s", fsdpi_setting_value(row, config) == FSDP_CPU_AUTO ? "auto" : "none");
    } else {
        (void)snprintf(text, size, "%" PRId64, fsdpi_setting_value(row, config));
    }
}

int64_t fsdpi_setting_fallback(const fsdpi_setting *row)
{
    int64_t value = 0;

    (void)fsdpi_setting_parse(row, row->fallback, &value);
    return value;
}

void fsdpi_setting_set_fallback(const fsdpi_setting *row, fsdp_config *config)
{
    if (row->kind == PATH) {
        fsdpi_setting_set_path(row, config, row->fallback);
    } else {
        fsdpi_setting_set_value(row, config, fsdpi_setting_fallback(row));
    }
}
