/**
 * @file
 * Where the progress thread runs, and how much of a core each rank of a host can count on.
 */
#ifndef FSDPI_TOPOLOGY_PROGRESS_CPU_H
#define FSDPI_TOPOLOGY_PROGRESS_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fsdp/topology.h"

/** What one rank of a host says of itself, and what the others have to know to stay out of its way. */
typedef struct fsdpi_cpu_claim {
    fsdp_mask launched; /* hardware threads that the launcher has given it */
    fsdp_mask threads;  /* where it computes: the same, or fewer */
    int32_t   rank;
    int32_t   wanted; /* FSDP_PROGRESS_CPU */
    int32_t   spare;  /* of a core that the plan has left over; -1: none */
    int32_t   idle;   /* of a core of `threads` that its compute leaves over; -1: none */
} fsdpi_cpu_claim;

/**
 * The hardware thread of a core that compute leaves over: of the last core of `threads`, if there are more cores than threads
 * that compute.
 *
 * @param[in] root       in front of /sys: "", or where a test has made it up
 * @param[in] computing  what OMP_NUM_THREADS says, or NULL: then nothing is known
 * @return -1: none, or not known
 */
int fsdpi_idle_cpu(const char *root, const fsdp_mask *threads, const char *computing);

/**
 * The hardware thread that a rank's progress thread has for itself. Pure.
 *
 * @param[in]  claims  of all `n` ranks of the host, `mine` being the caller's
 * @param[in]  shared  other processes may be on these cores, or the time of all cores is not to be had: only an order counts
 * @param[out] why     size BYTES: why FSDP_PROGRESS_CPU cannot be followed; "" if it can
 * @return -1: none
 */
int fsdpi_progress_cpu(const fsdpi_cpu_claim *claims, size_t n, size_t mine, bool shared, char *why, size_t size);

/** How many hardware threads these ranks compute on between them. Pure. */
int fsdpi_claimed(const fsdpi_cpu_claim *claims, size_t n);

/**
 * How much of a core each of these ranks has: 1 where there are as many cores as ranks, and the control group allows their
 * time; less where they take turns. Pure.
 *
 * @param[in] quota  cores' worth of time that the control group allows; 0: no limit
 */
double fsdpi_share_of_core(const fsdpi_cpu_claim *claims, size_t n, double quota);

#endif
