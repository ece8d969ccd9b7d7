/* Where the engine begins and ends: fsdpi_engine_start() is what the entries look for in it. */
#include <mpi.h>
#include <stdlib.h>

#include "tools/preload/engine/arguments.h"
#include "tools/preload/engine/carry_out.h"
#include "tools/preload/engine/communicators.h"
#include "tools/preload/engine/heap.h"
#include "tools/preload/engine/muster.h"
#include "tools/preload/engine/report.h"
#include "tools/preload/engine/settings.h"
#include "tools/preload/engine/types.h"

extern fsdpi_engine_start_function fsdpi_engine_start __attribute__((visibility("default")));

enum { KEPT_BYTES = 192 << 10 };

static int world_size, world_rank;

/* Contexts stay as they are: nobody calls them any more, and what they hold goes with the process. */
static void finish(void)
{
    const char *path = getenv("FSDP_MPI_REPORT");

    fsdpi_communicators_close();
    if (fsdpi_preload.reports && world_rank == 0) {
        fsdpi_report_write(path != NULL && *path != '\0' ? path : "-", world_size);
    }
}

static bool mpi_runs(void)
{
    int begun = 0, ended = 0;

    return PMPI_Initialized(&begun) == MPI_SUCCESS && PMPI_Finalized(&ended) == MPI_SUCCESS && begun && !ended;
}

/* Settings of rank 0 for all. */
static bool share_settings(void)
{
    if (world_rank == 0) {
        fsdpi_preload_settings_read();
    }
    return PMPI_Bcast(&fsdpi_preload, (int)sizeof fsdpi_preload, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
}

static bool open_parts(void)
{
    fsdpi_heap_keep(KEPT_BYTES);
    fsdpi_arguments_open();
    fsdpi_report_open();
    return fsdpi_types_open() == MPI_SUCCESS && fsdpi_communicators_open() == MPI_SUCCESS &&
           fsdpi_carry_out_open() == MPI_SUCCESS;
}

/* Most calls of most programs: they take no longer than without the drop-in. */
static void find_never(fsdpi_engine_table *table)
{
    for (int i = 0; i < FSDPI_N_COVERED; i++) {
        table->never[i] = !fsdpi_preload.reports && !fsdpi_worth_ever(&fsdpi_preload.worth, (fsdpi_collective)i);
    }
}

const fsdpi_engine_table *fsdpi_engine_start(void)
{
    static fsdpi_engine_table table = {.call = fsdpi_carry_out, .passed = fsdpi_count_passed, .finish = finish};

    if (!mpi_runs() || PMPI_Comm_size(MPI_COMM_WORLD, &world_size) != MPI_SUCCESS ||
        PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank) != MPI_SUCCESS) {
        return NULL;
    }
    if (!fsdpi_muster(world_rank, world_size) || !share_settings()) {
        return NULL;
    }
    find_never(&table);
    return open_parts() ? &table : NULL; /* fails where nothing can be made any more, on all ranks */
}
