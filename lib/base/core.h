/**
 * @file
 * What every room of lib/ needs of a context: which rank this is, the settings, and where failures and memory are counted.
 *
 * A context begins with its core. Rooms below lib/context see the core and their own state; a fsdp_context is to them only
 * what error.h and memory.h take.
 */
#ifndef FSDPI_CORE_H
#define FSDPI_CORE_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fsdp/config.h"
#include "fsdp/context.h"
#include "kernels/kernels.h"
#include "lib/base/lock.h"

struct fsdpi_device;

/** BYTES of the longest detail of a failure, with its NUL. */
#define FSDPI_ERROR_BYTES 1024

/** The members of a core. Those of a context begin with the same ones: what is above lib/ says ctx->rank. */
#define FSDPI_CORE_MEMBERS                                                                                             \
    fsdp_context        *ctx;  /* the context that this is the core of */                                              \
    MPI_Comm             comm; /* the duplicate; nothing is ever sent on the caller's own */                           \
    MPI_Comm             node_comm;                                                                                    \
    int                  rank;                                                                                         \
    int                  size;                                                                                         \
    int                  shown_rank; /* what errors call this rank: of a part of another context its number there */   \
    _Atomic fsdp_status  broken;     /* FSDP_OK; or why the context can only be finalized */                           \
    int                  copy_of;    /* 0; or, in a process that fork() has made, the one whose context this is */     \
    const fsdpi_kernels *kernels;                                                                                      \
    const struct fsdpi_device *device; /* that memory is had from */                                                   \
    fsdp_config                config; /* resolved: no field is unset */                                               \
    pthread_mutex_t            memory_lock;                                                                            \
    fsdp_memory                memory;                                                                                 \
    uint64_t                   number;     /* from 1, of contexts of this process: addresses are used again */         \
    fsdpi_lock                 error_lock; /* over the next */                                                         \
    char                       error[FSDPI_ERROR_BYTES]; /* the detail of the last failure, of any thread */

typedef struct fsdpi_core {
    FSDPI_CORE_MEMBERS
} fsdpi_core;

/**
 * Whether nothing may still write to memory of the context: no operation has been left unfinished. FSDP_ERR_STATE is what
 * ends a context whose operations were completed when MPI ended.
 */
static inline bool fsdpi_is_at_rest(const fsdpi_core *core)
{
    return core->broken == FSDP_OK || core->broken == FSDP_ERR_STATE;
}

/** The core of a context. Nowhere else is one converted to the other; lib/context/context.h asserts that it comes first. */
static inline fsdpi_core *fsdpi_core_of(fsdp_context *ctx)
{
    return (fsdpi_core *)(void *)ctx;
}

static inline const fsdpi_core *fsdpi_const_core_of(const fsdp_context *ctx)
{
    return (const fsdpi_core *)(const void *)ctx;
}

#endif
