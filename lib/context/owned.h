/**
 * @file
 * Something opened in a context that fsdp_finalize() releases if its owner has not.
 */
#ifndef FSDPI_OWNED_H
#define FSDPI_OWNED_H

#include "fsdp/context.h"

typedef struct fsdpi_owned {
    struct fsdpi_owned *next;
    const char         *kind; /* "model" */
    void               *object;
    void (*release)(void *object);
} fsdpi_owned;

/** Puts an object on the list of what fsdp_finalize() releases; `entry` lives inside it. From any thread, as the next. */
void fsdpi_own(fsdp_context *ctx, fsdpi_owned *entry, const char *kind, void *object, void (*release)(void *));

/** Takes it off again; does nothing if it is not there. */
void fsdpi_disown(fsdp_context *ctx, const fsdpi_owned *entry);

#endif
