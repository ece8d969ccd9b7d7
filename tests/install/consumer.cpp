#include <fsdp/collectives.h>
#include <fsdp/context.h>
#include <fsdp/version.h>
#include <mpi.h>

#include <cstdio>

int main(int argc, char **argv)
{
    fsdp_context *ctx = nullptr;
    double        one = 1, sum = 0;

    MPI_Init(&argc, &argv);
    if (fsdp_init(MPI_COMM_WORLD, nullptr, &ctx) == FSDP_OK) {
        fsdp_allreduce(ctx, &one, &sum, 1, FSDP_F64, FSDP_SUM);
        std::printf("libfsdp %s: rank %d has the sum %g\n", fsdp_version(), fsdp_rank(ctx), sum);
        fsdp_finalize(ctx);
    }
    MPI_Finalize();
    return sum == 0;
}
