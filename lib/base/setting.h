/**
 * @file
 * One setting: its row in the table, its value in an fsdp_config, and that as text.
 */
#ifndef FSDPI_SETTING_H
#define FSDPI_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/config.h"

typedef enum fsdpi_setting_kind { CHOICE, SECONDS, COUNT, CPU, BYTES, PATH } fsdpi_setting_kind;

typedef struct fsdpi_setting {
    const char *field;
    const char *variable;
    const char *fallback;
    const char *values; /* CHOICE: names between bars; CPU: "auto|none|N"; else "LOW to HIGH" or "LOW or more", perhaps
                           with a remark */
    const char *help;
    size_t      offset; /* of the field in fsdp_config */
    fsdpi_setting_kind kind;
    bool               agree;
} fsdpi_setting;

/** The rows of FSDP_SETTINGS, and how many they are. */
#define FSDPI_SETTING_NUMBER(field, kind, variable, fallback, agree, values, help) FSDPI_SETTING_##field,
enum { FSDP_SETTINGS(FSDPI_SETTING_NUMBER) FSDPI_N_SETTINGS };
#undef FSDPI_SETTING_NUMBER
extern const fsdpi_setting FSDPI_SETTINGS[FSDPI_N_SETTINGS];

/** The value in a config, and setting it: of a PATH, and of all others. */
const char *fsdpi_setting_path(const fsdpi_setting *row, const fsdp_config *config);
void        fsdpi_setting_set_path(const fsdpi_setting *row, fsdp_config *config, const char *path);
int64_t     fsdpi_setting_value(const fsdpi_setting *row, const fsdp_config *config);
void        fsdpi_setting_set_value(const fsdpi_setting *row, fsdp_config *config, int64_t value);

/** The default of all but a PATH; and setting it, whatever the kind. */
int64_t fsdpi_setting_fallback(const fsdpi_setting *row);
void    fsdpi_setting_set_fallback(const fsdpi_setting *row, fsdp_config *config);

/** From text; not for a PATH. False: it is no value of this kind, or does not fit. */
bool fsdpi_setting_parse(const fsdpi_setting *row, const char *text, int64_t *value);

/** Whether text that cannot be parsed is a number of BYTES all the same: more than 64 bits hold. */
bool fsdpi_setting_overflows(const fsdpi_setting *row, const char *text);

/** Whether the row allows a value; not for a PATH. */
bool fsdpi_setting_accepts(const fsdpi_setting *row, int64_t value);

/** BYTES for the text of most values; a longer path is cut. */
enum { FSDPI_SETTING_TEXT_BYTES = 64 };

/** The value in a config as text, cut after `size` BYTES. */
void fsdpi_setting_text(const fsdpi_setting *row, const fsdp_config *config, char *text, size_t size);

#endif
