/*
 * HIP's functions by HIP's names, for a library or program that does not link HIP and so starts on a node without it. The
 * first call of one loads libamdhip64 of the major version whose headers this was compiled with. Without it, there is no
 * device, and hipErrorSharedObjectInitFailed is what each call returns.
 *
 * Code that the compiler makes of kernels registers them before main(), which must not load anything either: that is noted
 * down, and done once the library is there.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/hip/runtime.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#define SONAME     "libamdhip64.so." TEXT(HIP_VERSION_MAJOR)

/* What kernels/hip/runtime.h lists, and what compiled kernels call: name, parameters, arguments. */
#define FUNCTIONS(X)                                                                                                   \
    X(hipGetLastError, (void), ())                                                                                     \
    X(hipGetDeviceCount, (int *count), (count))                                                                        \
    X(hipGetDevice, (int *device), (device))                                                                           \
    X(hipSetDevice, (int device), (device))                                                                            \
    X(hipDeviceGetPCIBusId, (char *address, int size, int device), (address, size, device))                            \
    X(hipDeviceCanAccessPeer, (int *can, int device, int peer), (can, device, peer))                                   \
    X(hipDeviceEnablePeerAccess, (int peer, unsigned int flags), (peer, flags))                                        \
    X(hipDeviceGetStreamPriorityRange, (int *least, int *greatest), (least, greatest))                                 \
    X(hipDeviceSynchronize, (void), ())                                                                                \
    X(hipMemGetInfo, (size_t * available, size_t * total), (available, total))                                         \
    X(hipMalloc, (void **memory, size_t bytes), (memory, bytes))                                                       \
    X(hipFree, (void *memory), (memory))                                                                               \
    X(hipHostMalloc, (void **memory, size_t bytes, unsigned int flags), (memory, bytes, flags))                        \
    X(hipHostFree, (void *memory), (memory))                                                                           \
    X(hipHostRegister, (void *host, size_t bytes, unsigned int flags), (host, bytes, flags))                           \
    X(hipHostUnregister, (void *host), (host))                                                                         \
    X(hipHostGetDevicePointer, (void **view, void *host, unsigned int flags), (view, host, flags))                     \
    X(hipPointerGetAttributes, (hipPointerAttribute_t * attributes, const void *address), (attributes, address))       \
    X(hipMemcpyAsync, (void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream),              \
      (to, from, bytes, kind, stream))                                                                                 \
    X(hipMemsetAsync, (void *memory, int value, size_t bytes, hipStream_t stream), (memory, value, bytes, stream))     \
    X(hipStreamCreateWithPriority, (hipStream_t * stream, unsigned int flags, int priority),                           \
      (stream, flags, priority))                                                                                       \
    X(hipStreamDestroy, (hipStream_t stream), (stream))                                                                \
    X(hipStreamSynchronize, (hipStream_t stream), (stream))                                                            \
    X(hipStreamQuery, (hipStream_t stream), (stream))                                                                  \
    X(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned int flags), (stream, event, flags))          \
    X(hipEventCreateWithFlags, (hipEvent_t * event, unsigned flags), (event, flags))                                   \
    X(hipEventDestroy, (hipEvent_t event), (event))                                                                    \
    X(hipEventRecord, (hipEvent_t event, hipStream_t stream), (event, stream))                                         \
    X(hipEventQuery, (hipEvent_t event), (event))                                                                      \
    X(hipEventSynchronize, (hipEvent_t event), (event))                                                                \
    X(hipIpcGetMemHandle, (hipIpcMemHandle_t * handle, void *address), (handle, address))                              \
    X(hipIpcOpenMemHandle, (void **address, hipIpcMemHandle_t handle, unsigned int flags), (address, handle, flags))   \
    X(hipIpcCloseMemHandle, (void *address), (address))                                                                \
    X(hipIpcGetEventHandle, (hipIpcEventHandle_t * handle, hipEvent_t event), (handle, event))                         \
    X(hipIpcOpenEventHandle, (hipEvent_t * event, hipIpcEventHandle_t handle), (event, handle))                        \
    X(hipLaunchKernel,                                                                                                 \
      (const void *kernel, dim3 blocks, dim3 threads, void **arguments, size_t shared, hipStream_t stream),            \
      (kernel, blocks, threads, arguments, shared, stream))                                                            \
    X(__hipPopCallConfiguration, (dim3 * blocks, dim3 * threads, size_t * shared, hipStream_t * stream),               \
      (blocks, threads, shared, stream))

/* ---- kernels that have been registered --------------------------------------------------------------------------- */

/* As clang calls it; what it has no use for here is `rest`. */
typedef struct function {
    struct function *next;
    const void      *host;
    const char      *device;
    const char      *name;
    unsigned int     thread_limit;
    const void      *rest[5];
} function;

typedef struct module {
    struct module *next;
    const void    *code;
    function      *functions;
} module;

static module *modules; /* complete before main(): constructors of one library run one after the other */

void **__hipRegisterFatBinary(const void *code);
void   __hipRegisterFunction(void **handle, const void *host, const char *device, const char *name,
                             unsigned int thread_limit, void *thread_id, void *block_id, void *threads, void *blocks,
                             const int *wavefront);
void   __hipUnregisterFatBinary(void **handle);

void **__hipRegisterFatBinary(const void *code)
{
    module *made = calloc(1, sizeof *made);

    if (made != NULL) { /* else launches of its kernels fail */
        *made   = (module){.next = modules, .code = code};
        modules = made;
    }
    return (void **)made;
}

void __hipRegisterFunction(void **handle, const void *host, const char *device, const char *name,
                           unsigned int thread_limit, void *thread_id, void *block_id, void *threads, void *blocks,
                           const int *wavefront)
{
    module   *of   = (module *)handle;
    function *made = of != NULL ? calloc(1, sizeof *made) : NULL;

    if (made != NULL) {
        *made         = (function){of->functions, host,         device,
                                   name,          thread_limit, {thread_id, block_id, threads, blocks, wavefront}};
        of->functions = made;
    }
}

/* Comes at the end of the process, when HIP may have ended already: what it knows has to stay until then. */
void __hipUnregisterFatBinary(void **handle)
{
    (void)handle;
}

/* ---- the library ------------------------------------------------------------------------------------------------- */

#define MEMBER(name, parameters, arguments) hipError_t(*name) parameters; /* NOLINT(bugprone-macro-parentheses) */
static struct runtime {
    void *library; /* NULL: there is none */
    char  why[200];
    const char *(*hipGetErrorName)(hipError_t);
    const char *(*hipGetErrorString)(hipError_t);
    FUNCTIONS(MEMBER)
} runtime;
#undef MEMBER

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ISO C has no conversion from void * to a pointer to function; POSIX has one by way of memory. */
static void find(const char *name, void *place)
{
    *(void **)place = dlsym(runtime.library, name);
}

static void register_module(const module *m)
{
    void **(*add_code)(const void *)                               = NULL;
    void (*add_function)(void **, const void *, const char *, const char *, unsigned int, const void *, const void *,
                         const void *, const void *, const void *) = NULL;

    find("__hipRegisterFatBinary", &add_code);
    find("__hipRegisterFunction", &add_function);
    if (add_code == NULL || add_function == NULL) {
        return;
    }
    void **handle = add_code(m->code);
    for (const function *f = m->functions; f != NULL; f = f->next) {
        add_function(handle, f->host, f->device, f->name, f->thread_limit, f->rest[0], f->rest[1], f->rest[2],
                     f->rest[3], f->rest[4]);
    }
}

/* What is registered with HIP is part of this library, which therefore is not unloaded any more. */
static void stay(void)
{
    Dl_info here;

    if (modules != NULL && dladdr(&runtime, &here) != 0) {
        (void)dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

static void load(void)
{
    runtime.library = dlopen(SONAME, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
#ifdef FSDPI_HIP_FOLDER /* where it was when this was built: ROCm's folder is seldom one that is searched */
    if (runtime.library == NULL) {
        runtime.library = dlopen(FSDPI_HIP_FOLDER "/" SONAME, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    }
#endif
    if (runtime.library == NULL) {
        const char *why = dlerror();

        (void)snprintf(runtime.why, sizeof runtime.why, "the GPU runtime cannot be loaded: %s",
                       why != NULL ? why : SONAME);
        return;
    }
    find("hipGetErrorName", &runtime.hipGetErrorName);
    find("hipGetErrorString", &runtime.hipGetErrorString);
#define FIND(name, parameters, arguments) find(#name, &runtime.name);
    FUNCTIONS(FIND)
#undef FIND
    for (const module *m = modules; m != NULL; m = m->next) {
        register_module(m);
    }
    stay();
}

static const struct runtime *loaded(void)
{
    (void)pthread_once(&once, load);
    return &runtime;
}

static hipError_t missing(const struct runtime *r)
{
    return r->library == NULL ? hipErrorSharedObjectInitFailed : hipErrorSharedObjectSymbolNotFound;
}

#define DEFINE(name, parameters, arguments)                                                                            \
    hipError_t name parameters                                                                                         \
    {                                                                                                                  \
        const struct runtime *r = loaded();                                                                            \
                                                                                                                       \
        return r->name != NULL ? r->name arguments : missing(r);                                                       \
    }
FUNCTIONS(DEFINE)
#undef DEFINE

const char *hipGetErrorName(hipError_t error)
{
    const struct runtime *r = loaded();

    return r->hipGetErrorName != NULL ? r->hipGetErrorName(error) : "no GPU runtime";
}

const char *hipGetErrorString(hipError_t error)
{
    const struct runtime *r = loaded();

    return r->hipGetErrorString != NULL ? r->hipGetErrorString(error) : r->why;
}
