/**
 * @file
 * Settings: each row of one table is a field of fsdp_config and an FSDP_* environment variable.
 *
 * The struct wins over the environment, the environment over the default. A variable that begins with FSDP_ and is none
 * of these is warned about, with the nearest known name.
 */
#ifndef FSDP_CONFIG_H
#define FSDP_CONFIG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fsdp/export.h"
#include "fsdp/status.h"

/** A field that holds this value is unset: the environment or the default decides. */
#define FSDP_UNSET (-1)

/** Values of fsdp_config::log_level. */
typedef enum fsdp_log_level {
    FSDP_LOG_OFF   = 0,
    FSDP_LOG_ERROR = 1,
    FSDP_LOG_WARN  = 2,
    FSDP_LOG_INFO  = 3,
    FSDP_LOG_DEBUG = 4
} fsdp_log_level;

/** Values of fsdp_config::verify. */
typedef enum fsdp_verify {
    FSDP_VERIFY_OFF  = 0, /**< no agreement: wrong or differing arguments on one rank are undefined behaviour */
    FSDP_VERIFY_ARGS = 1, /**< ranks agree on each operation and its arguments before anything moves */
    FSDP_VERIFY_FULL = 2  /**< and gathered views are checked: equal on all ranks, and not written to by the caller */
} fsdp_verify;

/** Values of fsdp_config::isa. */
typedef enum fsdp_isa { FSDP_ISA_AUTO = 0, FSDP_ISA_SCALAR = 1, FSDP_ISA_AVX2 = 2, FSDP_ISA_AVX512 = 3 } fsdp_isa;

/**
 * The one table of settings. Columns: field; kind (CHOICE: an int, one of `values` in the order of its enum; SECONDS: an
 * int; BYTES: 64 bits, written with an optional K, M or G; COUNT: an int); variable; default; whether all ranks must
 * hold the same value; what it accepts; help.
 */
#define FSDP_SETTINGS(X)                                                                                               \
    X(log_level, CHOICE, "FSDP_LOG", "warn", 0, "off|error|warn|info|debug", "what is printed to stderr")              \
    X(verify, CHOICE, "FSDP_VERIFY", "args", 1, "off|args|full", "how much ranks check of each other")                 \
    X(timeout_s, SECONDS, "FSDP_TIMEOUT_S", "600", 1, "0 to 86400, 0 waits for ever",                                  \
      "a wait this long becomes an error that names the operation")                                                    \
    X(isa, CHOICE, "FSDP_ISA", "auto", 0, "auto|scalar|avx2|avx512", "instruction set of the host kernels")            \
    X(message_bytes, BYTES, "FSDP_MESSAGE_BYTES", "1G", 1, "16 to 2147483632", "the largest single MPI message")       \
    X(staging_bytes, BYTES, "FSDP_STAGING_BYTES", "4M", 1, "4096 or more", "memory in which peers' data is staged")    \
    X(views_in_flight, COUNT, "FSDP_VIEWS_IN_FLIGHT", "2", 1, "1 to 1024",                                             \
      "units of a sharded model that may be open at once")

#define FSDP_CONFIG_TYPE_CHOICE  int
#define FSDP_CONFIG_TYPE_SECONDS int
#define FSDP_CONFIG_TYPE_COUNT   int
#define FSDP_CONFIG_TYPE_BYTES   int64_t

#define FSDP_CONFIG_FIELD(field, kind, variable, fallback, agree, values, help) FSDP_CONFIG_TYPE_##kind field;
/** One field per row of FSDP_SETTINGS. Start from fsdp_config_init(), then set what you want to decide yourself. */
typedef struct fsdp_config {
    FSDP_SETTINGS(FSDP_CONFIG_FIELD)
} fsdp_config;
#undef FSDP_CONFIG_FIELD

FSDP_EXTERN_C_BEGIN

/** Sets every field to FSDP_UNSET. Local; `config` must not be NULL. */
FSDP_API void fsdp_config_init(fsdp_config *config);

/**
 * Prints the table of settings: variable, value, accepted values, help. Local.
 *
 * @param[in] ctx   the context whose settings in force are printed; or NULL for the defaults
 * @param[in] file  an open stream
 * @return FSDP_OK; FSDP_ERR_ARG if `file` is NULL.
 */
FSDP_API fsdp_status fsdp_settings_print(const fsdp_context *ctx, FILE *file);

FSDP_EXTERN_C_END

#endif
