/**
 * @file
 * Where and when a run was, for whoever reads its results later.
 */
#ifndef BENCH_HOST_H
#define BENCH_HOST_H

#include "bench/base/world.h"

typedef struct bench_host {
    char name[100]; /* of rank 0's machine */
    char cpu[100];  /* its model, as /proc/cpuinfo has it; else the name of the architecture */
    int  cores;     /* that the ranks on it may use between them */
    char mpi[100];  /* "Open MPI v4.1.4", "MPICH Version: 4.0.2" */
    char date[40];  /* when it began: "2026-11-24T11:02:24Z" */
} bench_host;

/** Collective. */
void bench_host_find(const bench_world *world, bench_host *host);

#endif
