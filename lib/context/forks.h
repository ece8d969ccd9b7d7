/**
 * @file
 * A process that fork() makes has copies of its parent's contexts, which it must not use: their messages, their shared memory and
 * their files are the parent's. There, each copy becomes one whose every call is an error. Costs nothing but in fork().
 */
#ifndef FSDPI_FORKS_H
#define FSDPI_FORKS_H

#include "fsdp/context.h"

/** From now on, until it is forgotten. Local. */
void fsdpi_forks_watch(fsdp_context *ctx);
void fsdpi_forks_forget(fsdp_context *ctx);

#endif
