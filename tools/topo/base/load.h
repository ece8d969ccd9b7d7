/**
 * @file
 * What the cores and the memory of this machine are doing.
 */
#ifndef TOPO_LOAD_H
#define TOPO_LOAD_H

#include <fsdp/fsdp.h>

#define TOPO_LOAD_THREADS (FSDP_MASK_WORDS * 64)

/** What hardware threads have done between the last two looks, by /proc/stat. */
typedef struct topo_load {
    unsigned long long busy[TOPO_LOAD_THREADS], all[TOPO_LOAD_THREADS]; /* ticks at the last look */
    double             percent[TOPO_LOAD_THREADS];                      /* below 0: not known */
} topo_load;

typedef struct topo_memory {
    double used, total; /* BYTES; below 0: not known */
} topo_memory;

/** Looks. Local. The first one has nothing to compare with: percentages are since the machine started. */
void topo_load_look(topo_load *load);

/** The mean over some hardware threads; below 0: not known. Local. */
double topo_load_percent(const topo_load *load, const fsdp_mask *threads);

/** Of a NUMA node by the system's number, or of the machine below 0. Caches of files are not counted as used. Local. */
topo_memory topo_memory_look(int numa);

#endif
