/**
 * @file
 * Tells the double of the HIP runtime which processes belong together.
 */
#ifndef FSDP_TESTS_DOUBLES_HIP_JOB_H
#define FSDP_TESTS_DOUBLES_HIP_JOB_H

/** Those of MPI_COMM_WORLD do. Collective; before the first call of the runtime. A group setup for cmocka. */
int hip_double_join_job(void **state);

#endif
