#include "fsdp/lr_schedule.h"

#include <math.h>

#include "lib/base/error.h"

static const double PI = 3.14159265358979323846;

static fsdp_status check_rates(const fsdp_lr_schedule *schedule)
{
    if (!isfinite(schedule->peak) || schedule->peak < 0.0) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_lr_schedule.peak is %g; it must be 0 or more", schedule->peak);
    }
    if (!(schedule->final >= 0.0 && schedule->final <= schedule->peak)) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_lr_schedule.final is %g; it must lie between 0 and peak, %g",
                          schedule->final, schedule->peak);
    }
    return FSDP_OK;
}

fsdp_status fsdp_lr_schedule_check(const fsdp_lr_schedule *schedule)
{
    if (schedule == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_lr_schedule_check: `schedule` is NULL");
    }
    FSDP_TRY(check_rates(schedule));
    switch (schedule->kind) {
    case FSDP_LR_CONSTANT:
        return FSDP_OK;
    case FSDP_LR_WSD:
        if (schedule->decay > schedule->total) {
            break;
        }
        if (schedule->warmup > schedule->total - schedule->decay) {
            break;
        }
        return FSDP_OK;
    case FSDP_LR_LINEAR:
    case FSDP_LR_COSINE:
        if (schedule->warmup > schedule->total) {
            break;
        }
        return FSDP_OK;
    case FSDP_LR_STEP:
        if (schedule->every < 1) {
            return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_lr_schedule.every is 0; it must be at least 1");
        }
        if (!(schedule->gamma > 0.0 && schedule->gamma <= 1.0)) {
            return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_lr_schedule.gamma is %g; it must be above 0 and at most 1",
                              schedule->gamma);
        }
        return FSDP_OK;
    default:
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_lr_schedule.kind is %d; use one of fsdp_lr_kind",
                          (int)schedule->kind);
    }
    return fsdpi_fail(NULL, FSDP_ERR_ARG,
                      "fsdp_lr_schedule.total is %zu; warmup (%zu) and decay (%zu) must fit into it", schedule->total,
                      schedule->warmup, schedule->kind == FSDP_LR_WSD ? schedule->decay : 0);
}

/* From 0 at `begin` to 1 at `end`, and 1 where there is nothing between. */
static double progress(size_t step, size_t begin, size_t end)
{
    if (step >= end) {
        return 1.0;
    }
    return step <= begin ? 0.0 : (double)(step - begin) / (double)(end - begin);
}

double fsdp_lr_at(const fsdp_lr_schedule *schedule, size_t step)
{
    const double range = schedule->peak - schedule->final;

    if (step < schedule->warmup) {
        return schedule->peak * (double)(step + 1) / (double)schedule->warmup;
    }
    switch (schedule->kind) {
    case FSDP_LR_CONSTANT:
        break;
    case FSDP_LR_LINEAR:
        return schedule->peak - range * progress(step, schedule->warmup, schedule->total);
    case FSDP_LR_COSINE:
        return schedule->final + range * 0.5 * (1.0 + cos(PI * progress(step, schedule->warmup, schedule->total)));
    case FSDP_LR_WSD:
        return schedule->peak - range * progress(step, schedule->total - schedule->decay, schedule->total);
    case FSDP_LR_STEP:
        return fmax(schedule->final, schedule->peak * pow(schedule->gamma, floor((double)(step - schedule->warmup) /
                                                                                 (double)schedule->every)));
    }
    return schedule->peak;
}
