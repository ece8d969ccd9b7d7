#include "lib/context/gpu_aware.h"

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "fsdp/device.h"
#include "lib/base/error.h"
#include "lib/base/yielding.h"
#include "lib/context/context.h"

/* By the extensions that the MPI of this build has; false where it has none for such GPUs. */
static bool by_extension(bool cuda)
{
#if defined(MPIX_ROCM_AWARE_SUPPORT)
    if (!cuda) {
        return MPIX_Query_rocm_support() == 1;
    }
#endif
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    if (cuda) {
        return MPIX_Query_cuda_support() == 1;
    }
#endif
#if defined(MPIX_GPU_SUPPORT_CUDA) && defined(MPIX_GPU_SUPPORT_HIP)
    int yes = 0;
    return MPIX_GPU_query_support(cuda ? MPIX_GPU_SUPPORT_CUDA : MPIX_GPU_SUPPORT_HIP, &yes) == MPI_SUCCESS && yes != 0;
#else
    return false;
#endif
}

/* Whether a kind is in "system,mpi,rocm:device:host", alone or with `device` among what restricts it. */
static bool names_kind(const char *kinds, const char *kind)
{
    const size_t length = strlen(kind);

    for (const char *at = kinds; *at != '\0';) {
        const size_t n = strcspn(at, ",");

        if (n >= length && strncmp(at, kind, length) == 0) {
            const char *device = strstr(at + length, ":device");
            if (n == length || (at[length] == ':' && device != NULL && device < at + n)) {
                return true;
            }
        }
        at += n + (at[n] == ',');
    }
    return false;
}

/* By the kinds of memory that MPI 4.1 lists for a communicator. */
static bool by_kinds(MPI_Comm comm, bool cuda)
{
    char     kinds[MPI_MAX_INFO_VAL + 1] = "";
    MPI_Info info;
    int      there = 0;

    if (MPI_Comm_get_info(comm, &info) != MPI_SUCCESS) {
        return false;
    }
    const int code = MPI_Info_get(info, "mpi_memory_alloc_kinds", MPI_MAX_INFO_VAL, kinds, &there);
    (void)MPI_Info_free(&info);
    return code == MPI_SUCCESS && there != 0 && names_kind(kinds, cuda ? "cuda" : "rocm");
}

/* Cray's MPI takes GPU memory where the environment says so, and stops a program without its GPU library otherwise. */
static bool by_cray(void)
{
    char        version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int         length;
    const char *enabled = getenv("MPICH_GPU_SUPPORT_ENABLED");

    return enabled != NULL && strcmp(enabled, "1") == 0 && MPI_Get_library_version(version, &length) == MPI_SUCCESS &&
           strstr(version, "CRAY MPICH") != NULL;
}

static bool is_aware(const fsdp_context *ctx)
{
    const bool cuda = strcmp(ctx->gpu.device->ops->name, "cuda") == 0;

    if (ctx->config.gpu_aware_mpi != FSDP_GPU_AWARE_AUTO) {
        return ctx->config.gpu_aware_mpi == FSDP_GPU_AWARE_ON;
    }
    return by_extension(cuda) || by_kinds(ctx->comm, cuda) || by_cray();
}

fsdp_status fsdpi_gpu_ask_mpi(fsdp_context *ctx)
{
    int aware = is_aware(ctx);

    FSDPI_TRY_MPI(ctx, fsdpi_mpi_allreduce(&aware, 1, MPI_INT, MPI_MIN, ctx->comm, ctx->config.timeout_s));
    ctx->gpu.aware = aware != 0;
    return FSDP_OK;
}

int fsdp_has_gpu_aware_mpi(const fsdp_context *ctx)
{
    return ctx != NULL && ctx->gpu.device != NULL && ctx->gpu.aware;
}
