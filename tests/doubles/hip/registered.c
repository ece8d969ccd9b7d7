/*
 * What compiled kernels ask of the runtime. Nothing is launched: what was registered and launched is written down, for tests
 * of how the library is looked up.
 */
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "tests/doubles/hip/registered.h"

static char written[1000];

static void write_down(const char *what, const char *name)
{
    const size_t length = strlen(written);

    (void)snprintf(written + length, sizeof written - length, "%s %s; ", what, name);
}

const char *hip_double_written(void)
{
    return written;
}

void **__hipRegisterFatBinary(const void *code)
{
    write_down("code", code);
    return (void **)(void *)written;
}

void __hipRegisterFunction(void **handle, const void *host, const char *device, const char *name,
                           unsigned int thread_limit, void *thread_id, void *block_id, void *threads, void *blocks,
                           const int *wavefront)
{
    const int as_expected = handle == (void **)(void *)written && host != NULL && device != NULL && thread_limit == 7 &&
                            thread_id == NULL && block_id == NULL && threads == NULL && blocks == NULL &&
                            wavefront == NULL;

    write_down(as_expected ? "function" : "WRONG ARGUMENTS", name);
}

hipError_t hipLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **arguments, size_t shared,
                           hipStream_t stream)
{
    const int as_expected = blocks.x == 2 && threads.y == 3 && arguments == NULL && shared == 5 && stream == NULL;

    write_down(as_expected ? "launch" : "WRONG ARGUMENTS", kernel);
    return hipSuccess;
}
