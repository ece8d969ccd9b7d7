/**
 * @file
 * Learning-rate schedules: pure functions of the step number.
 */
#ifndef FSDP_LR_SCHEDULE_H
#define FSDP_LR_SCHEDULE_H

#include <stddef.h>

#include "fsdp/export.h"
#include "fsdp/status.h"

/** With t = (step - warmup) / (total - warmup), between 0 and 1: */
typedef enum fsdp_lr_kind {
    FSDP_LR_CONSTANT = 0, /**< peak */
    FSDP_LR_LINEAR   = 1, /**< from peak to final along a line */
    FSDP_LR_COSINE   = 2, /**< from peak to final along half a cosine (Loshchilov and Hutter, SGDR, 2017) */
    FSDP_LR_WSD =
        3, /**< warm-up, stable, decay (Hu et al., MiniCPM, 2024): peak, then linear over the last `decay` steps */
    FSDP_LR_STEP = 4 /**< peak x gamma^floor((step - warmup) / every), never below final */
} fsdp_lr_kind;

typedef struct fsdp_lr_schedule {
    fsdp_lr_kind kind;
    double       peak;   /**< 0 or more */
    double       final;  /**< 0 to peak */
    size_t       warmup; /**< steps over which the rate rises linearly: peak x (step + 1) / warmup; 0: none */
    size_t total; /**< LINEAR, COSINE, WSD: steps in all, at least warmup; the rate stays at `final` from there on */
    size_t decay; /**< WSD: steps of decay at the end, at most total - warmup */
    size_t every; /**< STEP: at least 1 */
    double gamma; /**< STEP: above 0, at most 1 */
} fsdp_lr_schedule;

FSDP_EXTERN_C_BEGIN

/**
 * Checks the fields that the kind uses. Local.
 * @return FSDP_OK; FSDP_ERR_ARG with fsdp_last_error(NULL) naming the field and its value.
 */
FSDP_API fsdp_status fsdp_lr_schedule_check(const fsdp_lr_schedule *schedule);

/** The rate for `step`, counted from 0. Local. `schedule` has passed fsdp_lr_schedule_check(). */
FSDP_API double fsdp_lr_at(const fsdp_lr_schedule *schedule, size_t step);

FSDP_EXTERN_C_END

#endif
