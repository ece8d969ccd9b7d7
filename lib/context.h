/**
 * @file
 * What a context consists of. Only lib/ and the parts above it see inside.
 */
#ifndef FSDPI_CONTEXT_H
#define FSDPI_CONTEXT_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "fsdp/context.h"
#include "kernels/kernels.h"
#include "lib/device/device.h"
#include "lib/error.h"
#include "lib/queue.h"

/** Something opened in a context that fsdp_finalize() releases if its owner has not. */
typedef struct fsdpi_owned {
    struct fsdpi_owned *next;
    const char         *kind; /* "model" */
    void               *object;
    void (*release)(void *object);
} fsdpi_owned;

struct fsdp_context {
    MPI_Comm             comm; /* the duplicate; nothing is ever sent on the caller's own */
    int                  rank;
    int                  size;
    fsdp_config          config; /* resolved: no field is unset */
    const fsdpi_kernels *kernels;
    const fsdpi_device  *device;
    int                  n_gpus; /* that this process may use; 0 in a build without HIP */
    pthread_mutex_t      lock;   /* over queue and wait_seconds */
    fsdpi_queue          queue;
    fsdp_status          broken;   /* FSDP_OK; or why the context can only be finalized */
    unsigned char       *staging;  /* config.staging_bytes, used by the operation at the head of the queue */
    const void         **operands; /* `size` pointers, likewise */
    fsdpi_owned         *owned;
    fsdp_memory          memory;
    double               wait_seconds;
    char                 error[FSDPI_ERROR_BYTES];
};

/** Puts an object on the list of what fsdp_finalize() releases; `entry` lives inside it. */
void fsdpi_own(fsdp_context *ctx, fsdpi_owned *entry, const char *kind, void *object, void (*release)(void *));

/** Takes it off again; does nothing if it is not there. */
void fsdpi_disown(fsdp_context *ctx, const fsdpi_owned *entry);

/** BYTES of bookkeeping that a context of `size` ranks holds from the beginning. For budgets. */
size_t fsdpi_context_bookkeeping(int size);

#endif
