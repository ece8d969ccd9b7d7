/*
 * Vectors of L-BFGS, as long as this rank's shards: arithmetic on them is local, but for dot products, which are exact.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collectives/collectives.h"
#include "lib/base/hash.h"
#include "shard/optimizer/lbfgs.h"
#include "shard/schedule/between_passes.h"
#include "shard/schedule/divisor.h"
#include "shard/schedule/failed_step.h"
#include "shard/schedule/gather.h"
#include "shard/schedule/reduction.h"
#include "shard/schedule/replay.h"
#include "shard/schedule/shard_dot.h"
#include "shard/state/slices.h"
#include "shard/storage/compute.h"

static const char step_name[] = "fsdp_lbfgs_step";

size_t fsdpi_lbfgs_elements(const fsdp_model *model)
{
    size_t n = 0;

    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        n += flat->frozen ? 0 : fsdpi_held_elements(flat);
    }
    return n;
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

/* Of a flat parameter, the part of a vector, which begins with element `at`. */
static void *part_of(const fsdp_lbfgs *lbfgs, const fsdpi_flat *flat, int vector, size_t at)
{
    if (vector == FSDPI_LBFGS_MASTER) {
        return flat->master;
    }
    return vector == FSDPI_LBFGS_GRADIENT
               ? flat->gradient
               : fsdpi_at(lbfgs->model, lbfgs->vectors, (size_t)vector * lbfgs->elements + at);
}

static void combine(void *out, double a, const void *x, const void *b, size_t n, fsdp_dtype dtype)
{
    for (size_t i = 0; i < n; i++) {
        if (dtype == FSDP_F64) {
            ((double *)out)[i] = fma(a, ((const double *)x)[i], ((const double *)b)[i]);
        } else {
            ((float *)out)[i] = (float)fma(a, (double)((const float *)x)[i], (double)((const float *)b)[i]);
        }
    }
}

void fsdpi_lbfgs_combine(fsdp_lbfgs *lbfgs, int out, double a, int x, int b)
{
    size_t at = 0;

    for (const fsdpi_flat *flat = lbfgs->model->flats; flat != NULL; flat = flat->next) {
        const size_t n = flat->frozen ? 0 : fsdpi_held_elements(flat);

        if (n > 0) {
            combine(part_of(lbfgs, flat, out, at), a, part_of(lbfgs, flat, x, at), part_of(lbfgs, flat, b, at), n,
                    lbfgs->model->master_dtype);
        }
        at += n;
    }
}

static void scale(void *out, double a, const void *x, size_t n, fsdp_dtype dtype)
{
    for (size_t i = 0; i < n; i++) {
        if (dtype == FSDP_F64) {
            ((double *)out)[i] = a * ((const double *)x)[i];
        } else {
            ((float *)out)[i] = (float)(a * (double)((const float *)x)[i]);
        }
    }
}

void fsdpi_lbfgs_scale(fsdp_lbfgs *lbfgs, int out, double a, int x)
{
    size_t at = 0;

    for (const fsdpi_flat *flat = lbfgs->model->flats; flat != NULL; flat = flat->next) {
        const size_t n = flat->frozen ? 0 : fsdpi_held_elements(flat);

        if (n > 0) {
            scale(part_of(lbfgs, flat, out, at), a, part_of(lbfgs, flat, x, at), n, lbfgs->model->master_dtype);
        }
        at += n;
    }
}

void fsdpi_lbfgs_copy(fsdp_lbfgs *lbfgs, int out, int x)
{
    size_t at = 0;

    for (const fsdpi_flat *flat = lbfgs->model->flats; flat != NULL; flat = flat->next) {
        const size_t n = flat->frozen ? 0 : fsdpi_held_elements(flat);

        if (n > 0) {
            memcpy(part_of(lbfgs, flat, out, at), part_of(lbfgs, flat, x, at), n * fsdpi_master_width(lbfgs->model));
        }
        at += n;
    }
}

fsdp_status fsdpi_lbfgs_dots(fsdp_lbfgs *lbfgs, size_t n, const int (*vectors)[2], double *products)
{
    fsdpi_exact_dot dots[3] = {{.nans = 0}};
    size_t          at      = 0;

    for (fsdpi_flat *flat = lbfgs->model->flats; flat != NULL; flat = flat->next) {
        const size_t count = flat->frozen ? 0 : fsdpi_held_elements(flat);

        for (size_t i = 0; i < n && count > 0; i++) {
            fsdpi_shard_dot_add(flat, part_of(lbfgs, flat, vectors[i][0], at), part_of(lbfgs, flat, vectors[i][1], at),
                                &dots[i]);
        }
        at += count;
    }
    FSDP_TRY(fsdpi_shard_dots_join(lbfgs->model, step_name, FSDP_OK, n, dots));
    for (size_t i = 0; i < n; i++) {
        products[i] = fsdpi_exact_dot_value(&dots[i]);
    }
    return FSDP_OK;
}

fsdp_status fsdpi_lbfgs_moved(fsdp_lbfgs *lbfgs)
{
    fsdpi_gather_drop(lbfgs->model);
    return fsdpi_gather_refresh(lbfgs->model, true);
}

/* ---- the loss ---------------------------------------------------------------------------------------------------- */

/* As a step would. Gradients keep their memory, and are read until the next pass. */
static void forget_gradients(fsdp_model *model)
{
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        fsdpi_gradient_forget(flat);
    }
    fsdpi_order_forget(model);
    fsdpi_replay_step(model);
}

/* Where it has failed on this rank alone, behind its passes, the others complete their reductions, and so does this one. */
static fsdp_status run_closure(fsdp_lbfgs *lbfgs, double *loss)
{
    fsdp_context     *ctx    = lbfgs->model->ctx;
    const fsdp_status status = lbfgs->closure(lbfgs->state, loss);

    lbfgs->evaluations++;
    if (status != FSDP_OK && lbfgs->model->failed) {
        return status;
    }
    FSDP_TRY(fsdpi_gradients_settle(lbfgs->model, step_name));
    if (status == FSDP_OK) {
        return FSDP_OK;
    }
    const bool is_code = strcmp(fsdp_status_name(status), "FSDP_UNKNOWN") != 0;
    return fsdpi_fail_together(ctx, is_code ? status : FSDP_ERR_ARG, "%s: the closure has returned %d on rank %d (%s)",
                               step_name, (int)status, ctx->rank,
                               is_code ? fsdp_status_text(status) : "which is no fsdp_status");
}

static fsdp_status check_gradients(fsdp_model *model)
{
    FSDP_TRY(fsdpi_between_passes(model, step_name));
    FSDP_TRY(fsdpi_check_none_local(model, step_name));
    for (const fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (!flat->frozen && !flat->has_gradient && model->options.unused == FSDP_UNUSED_ERROR) {
            return fsdpi_fail_together(
                model->ctx, FSDP_ERR_STATE,
                "%s: the closure has left unit '%s' without a gradient; run its backward pass, or "
                "say with fsdp_model_options.unused what becomes of its parameters",
                step_name, flat->name);
        }
    }
    return FSDP_OK;
}

static void clear_unused(fsdp_model *model)
{
    for (fsdpi_flat *flat = model->flats; flat != NULL; flat = flat->next) {
        if (!flat->frozen && !flat->has_gradient) {
            fsdpi_compute_clear(model, flat->gradient, fsdpi_held_elements(flat) * fsdpi_master_width(model));
        }
    }
}

fsdp_status fsdpi_lbfgs_evaluate(fsdp_lbfgs *lbfgs, double *loss)
{
    fsdp_model *model = lbfgs->model;
    char        label[96];
    double      mine = 0.0;

    fsdp_status status = run_closure(lbfgs, &mine);
    status             = status == FSDP_OK ? check_gradients(model) : status;
    if (fsdpi_has_undivided(model)) {
        FSDP_TRY(fsdpi_gradients_divide(model, step_name, status));
    }
    mine = isnan(mine) ? (double)NAN : mine; /* one of them */
    (void)snprintf(label, sizeof label, "loss %.17g, units in order %08" PRIx32, mine, (uint32_t)model->order);
    FSDP_TRY(fsdpi_step_agree(model, step_name, label, fsdpi_hash_bytes(FSDPI_HASH_START, &mine, sizeof mine), status,
                              true));
    clear_unused(model);
    forget_gradients(model);
    *loss = mine;
    return FSDP_OK;
}
