/**
 * @file
 * What fsdp_init() makes of the plan: this process on its cores, its memory and its GPU.
 */
#ifndef FSDPI_TOPOLOGY_BIND_H
#define FSDPI_TOPOLOGY_BIND_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fsdp/topology.h"
#include "lib/base/core.h"

enum { FSDPI_BINDING_BYTES = 320 };

/** What one rank is told to do. Travels from the rank that plans for its host. */
typedef struct fsdpi_bind_order {
    fsdp_mask threads; /* the rank's mask where it is to be left alone */
    int32_t   spare;   /* hardware thread for the progress thread; -1: none */
    int32_t   memory;  /* the system's number of a NUMA node; -1: left alone */
    int32_t   device;  /* as HIP counts; -1: left alone */
    int32_t   status;  /* not FSDP_OK: what fsdp_init() is to return, and `text` is the detail */
    char      text[FSDPI_BINDING_BYTES];
} fsdpi_bind_order;

/** What a context has bound, and how to undo it. */
typedef struct fsdpi_binding {
    char      text[FSDPI_BINDING_BYTES]; /* fsdp_binding() */
    int       spare;                     /* hardware thread that the progress thread is to have for itself; -1: none */
    double    share; /* of a core, that this rank has at least: less than 1 where ranks take turns */
    bool      set_threads, set_memory;
    int       thread; /* that was bound, by the system's number; 0: the calling one */
    fsdp_mask threads_before, threads_after;
    int       device_before; /* -1: not changed */
} fsdpi_binding;

/** The mask of the calling thread. False where the system does not say. */
bool fsdpi_mask_now(fsdp_mask *mask);

/** What the launcher has given this process, whose mask is `now`: contexts may have narrowed it since. */
fsdp_mask fsdpi_mask_launched(const fsdp_mask *now);

/** As FSDP_BIND and FSDP_PROGRESS_CPU say. Collective over the context, whose settings are agreed. The status is this rank's own. */
fsdp_status fsdpi_bind(const fsdpi_core *core, fsdpi_binding *binding);

/** Takes back what fsdpi_bind() has done, where the context does not come about after all. */
void fsdpi_bind_undo(fsdpi_binding *binding);

/**
 * Gives the thread that was bound its cores and, if it is the calling one, its memory policy back, where they still are what
 * fsdpi_bind() has made them.
 */
void fsdpi_bind_give_back(fsdpi_binding *binding);

/**
 * Whether the calling thread, whose mask is `now`, has been bound by the program: not by its launcher, and not by a context. What the
 * launcher has given is what the process had when the library was loaded.
 */
bool fsdpi_is_bound_by_program(const fsdp_mask *now);

/** Puts a thread of the context's own on the spare core. True where there is one, and the thread has it. */
bool fsdpi_bind_thread(const fsdpi_binding *binding, pthread_t thread);

/** Lets the calling thread run where the process's first thread does. */
void fsdpi_unbind_thread(void);

/**
 * Carries out an order on the calling thread: the GPU first, then cores, which only ever become fewer, then memory.
 * @param[in]  strict  memory comes from the NUMA node or not at all; otherwise preferably
 * @param[out] failed  size BYTES: what could not be done; "" if all could
 */
void fsdpi_bind_apply(const fsdpi_bind_order *order, bool strict, fsdpi_binding *binding, char *failed, size_t size);

/**
 * Whether nothing is nearer to anything than anything else: all of these threads share one last-level cache and one NUMA
 * node, and no driver of GPUs is loaded. A look at a few files, where hwloc takes tens of milliseconds.
 * @param[in] root  in front of /sys and /proc: "", or where a test has made them up
 */
bool fsdpi_is_flat(const char *root, const fsdp_mask *threads);

/** How many processes the launcher has started on this host, as it tells them; 0: it does not. */
int fsdpi_processes_on_host(void);

#endif
