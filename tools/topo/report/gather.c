#include "tools/topo/report/gather.h"

#include <stdio.h>

static fsdp_status look(topo_rank *mine, int rank)
{
    fsdp_config   config;
    fsdp_context *ctx = NULL;
    fsdp_status   status, closed;

    TOPO_TRY(fsdp_local_rank_look(&mine->before));
    fsdp_config_init(&config);
    config.device = FSDP_DEVICE_HOST; /* what is to be described is not used */
    status        = fsdp_init(MPI_COMM_WORLD, &config, &ctx);
    (void)snprintf(mine->binding, sizeof mine->binding, "%s", status == FSDP_OK ? fsdp_binding(ctx) : "");
    TOPO_TRY(fsdp_local_rank_look(&mine->after));
    mine->before.rank = rank;
    mine->after.rank  = rank;
    closed            = status == FSDP_OK ? fsdp_finalize(ctx) : FSDP_OK;
    if (closed != FSDP_OK) {
        MPI_Abort(MPI_COMM_WORLD, 1); /* a rank is gone: nothing collective would end */
    }
    return status;
}

static fsdp_status place(topo_report *report)
{
    const fsdp_mask all = topo_report_threads(report);

    TOPO_TRY(topo_report_place(report, 0, NULL, fsdp_plan, report->plan));
    TOPO_TRY(topo_report_place(report, 1, NULL, fsdp_plan_none, report->real));
    return topo_report_place(report, 0, &all, fsdp_plan, report->freed);
}

fsdp_status topo_report_gather(const topo_world *world, topo_report *report)
{
    topo_rank   mine   = {.binding = ""};
    fsdp_status status = look(&mine, world->rank);

    *report = (topo_report){0};
    TOPO_TRY(topo_agree(world, status));
    if (topo_leads(world)) {
        status = topo_report_open(NULL, report);
        status = status == FSDP_OK ? topo_report_allocate(report, (size_t)world->node_size, 1) : status;
    }
    TOPO_TRY(topo_agree(world, status));
    MPI_Gather(&mine, (int)sizeof mine, MPI_BYTE, report->ranks, (int)sizeof mine, MPI_BYTE, 0, world->node);
    return topo_agree(world, topo_leads(world) ? place(report) : FSDP_OK);
}
