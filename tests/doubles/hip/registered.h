/**
 * @file
 * What the double's library writes down of kernels.
 */
#ifndef FSDP_TESTS_DOUBLES_HIP_REGISTERED_H
#define FSDP_TESTS_DOUBLES_HIP_REGISTERED_H

/** "code NAME; function NAME; launch NAME; ", in order: the test gives texts for code and for kernels. */
const char *hip_double_written(void);

/* Of every library of HIP's; no header declares them. */
void **__hipRegisterFatBinary(const void *code);
void   __hipRegisterFunction(void **handle, const void *host, const char *device, const char *name,
                             unsigned int thread_limit, void *thread_id, void *block_id, void *threads, void *blocks,
                             const int *wavefront);

#endif
