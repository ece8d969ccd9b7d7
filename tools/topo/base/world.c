#include "tools/topo/base/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int topo_was_launched(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK",   "PMI_RANK",       "PMI_SIZE",
                                            "MPI_LOCALNRANKS",      "PALS_RANKID", "FLUX_TASK_RANK", "PMI_ID"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        if (getenv(variables[i])) {
            return 1;
        }
    }
    return 0;
}

void topo_world_open(topo_world *world, int with_mpi)
{
    *world =
        (topo_world){.has_mpi = with_mpi, .size = 1, .node_size = 1, .node = MPI_COMM_NULL, .leaders = MPI_COMM_NULL};
    if (!with_mpi) {
        return;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world->size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &world->node);
    MPI_Comm_rank(world->node, &world->node_rank);
    MPI_Comm_size(world->node, &world->node_size);
    MPI_Comm_split(MPI_COMM_WORLD, topo_leads(world) ? 0 : MPI_UNDEFINED, world->rank, &world->leaders);
}

void topo_world_close(topo_world *world)
{
    if (!world->has_mpi) {
        return;
    }
    if (world->leaders != MPI_COMM_NULL) {
        MPI_Comm_free(&world->leaders);
    }
    MPI_Comm_free(&world->node);
}

fsdp_status topo_fail(const topo_world *world, const char *format, ...)
{
    va_list arguments;

    if (world->rank == 0) {
        char line[2048];

        va_start(arguments, format);
        (void)vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        (void)fprintf(stderr, "fsdp-topo: %s\n", line);
    }
    return FSDP_ERR_ARG;
}

fsdp_status topo_agree(const topo_world *world, fsdp_status status)
{
    int all = (int)status;

    if (world->has_mpi) {
        MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    return (fsdp_status)all;
}
