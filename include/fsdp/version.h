/**
 * @file
 * The version of the headers and of the library in use. Versions follow semver.org; the soname carries the major
 * number, before 1.0 the minor number too.
 */
#ifndef FSDP_VERSION_H
#define FSDP_VERSION_H

#include "fsdp/export.h"

#define FSDP_VERSION_MAJOR 0
#define FSDP_VERSION_MINOR 1
#define FSDP_VERSION_PATCH 0

FSDP_EXTERN_C_BEGIN

/**
 * The version of the library that is linked, as "0.1.0". Local; never fails; the text is static.
 */
FSDP_API const char *fsdp_version(void);

FSDP_EXTERN_C_END

#endif
