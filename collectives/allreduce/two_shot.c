#include "collectives/allreduce/two_shot.h"

#include "collectives/allgather/direct.h"
#include "collectives/arguments.h"
#include "collectives/reduce_scatter/direct.h"
#include "lib/context.h"

static fsdp_status prepare(fsdp_request *request)
{
    FSDP_TRY(fsdpi_reduce_scatter_direct_prepare(request));
    request->rounds++;
    return FSDP_OK;
}

static bool is_allgather(const fsdp_request *request, size_t round)
{
    return round + 1 == request->rounds;
}

static fsdp_status post(fsdp_request *request, size_t round)
{
    return is_allgather(request, round) ? fsdpi_allgather_direct_exchange(request)
                                        : fsdpi_reduce_scatter_direct_post(request, round);
}

/* In place this is safe as well: a rank's own slice is sent to nobody before the allgather. */
static void finish(fsdp_request *request, size_t round)
{
    const fsdpi_slice mine = fsdpi_slice_of(request, request->ctx->rank);

    if (!is_allgather(request, round) && mine.count > 0) {
        fsdpi_reduce_scatter_direct_finish(
            request, round, (unsigned char *)request->call.out + mine.begin * fsdp_dtype_size(request->call.dtype));
    }
}

const fsdpi_algorithm fsdpi_allreduce_two_shot = {
    .name = "two_shot", .prepare = prepare, .post = post, .finish = finish};
