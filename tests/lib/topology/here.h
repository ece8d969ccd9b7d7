/**
 * @file
 * This process as it was launched, and this machine on record as two NUMA nodes of one thread each: for tests under MPI of
 * what fsdp_init() binds.
 */
#ifndef FSDP_TESTS_TOPOLOGY_HERE_H
#define FSDP_TESTS_TOPOLOGY_HERE_H

#include "fsdp/config.h"
#include "lib/topology/bind.h"
#include "lib/topology/mask.h"
#include "tests/lib/topology/nodes.h"
#include "tests/support/mpi_test.h"

/** Group setup and teardown: remember the mask and write the record. */
int here_open(void **state);
int here_close(void **state);

/** Teardown of a test: mask, memory policy and device 0 as at launch. */
int here_restore(void **state);

/** The mask at launch, and now. */
const fsdp_mask *here_mask_before(void);
fsdp_mask        here_mask_now(void);

/** The file of the record. */
const char *here_record(void);

/** Whether all ranks may use threads 0 and 1. Collective. */
bool here_has_both_threads(void);

/** Settings with these two, topology as for fsdp_config. */
fsdp_config here_config(int bind, const char *topology);

/** Fails the test unless `words` are in the context's binding. */
void assert_binding_says(const fsdp_context *ctx, const char *words);

#endif
