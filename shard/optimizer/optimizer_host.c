/*
 * Steps on the host: one kernel for each run of elements.
 */
#include "shard/optimizer/muon.h"
#include "shard/optimizer/optimizer_custom.h"
#include "shard/optimizer/optimizer_runs.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"

static void update_in_f32(const fsdp_optimizer *optimizer, float *w, const float *g, float *const *moments,
                          size_t count, const fsdpi_coefficients *c)
{
    const fsdpi_kernels *kernels = optimizer->model->ctx->kernels;

    switch (optimizer->options.kind) {
    case FSDP_SGD:
    case FSDP_SGD_MOMENTUM:
        kernels->sgd(w, g, moments[0], count, &c->sgd);
        break;
    case FSDP_LION:
        kernels->lion(w, g, moments[0], count, &c->lion);
        break;
    case FSDP_ADAM:
        kernels->adam(w, g, moments[0], moments[1], count, &c->adam);
        break;
    case FSDP_ADAMW:
        kernels->adamw(w, g, moments[0], moments[1], count, &c->adam);
        break;
    case FSDP_CUSTOM: /* is not for kernels */
    case FSDP_MUON:   /* nor is this */
        break;
    }
}

/* ELEMENTS of a run whose moments are in f32 at a time: with weights and gradient, 16 KiB in the first-level cache. */
enum { PIECE = 1024 };

static void update_in_bf16(const fsdp_optimizer *optimizer, float *w, const float *g, uint16_t *const *moments,
                           size_t count, const fsdpi_coefficients *c)
{
    const fsdpi_kernels *kernels = optimizer->model->ctx->kernels;
    const size_t         n       = fsdpi_states_of(&optimizer->options);
    float                widened[FSDPI_MOST_MOMENTS][PIECE];
    float *const         pieces[FSDPI_MOST_MOMENTS] = {widened[0], widened[1]};

    for (size_t i = 0; i < count; i += PIECE) {
        const size_t length = count - i < PIECE ? count - i : PIECE;

        for (size_t k = 0; k < n; k++) {
            kernels->cast(widened[k], FSDP_F32, moments[k] + i, FSDP_BF16, length);
        }
        update_in_f32(optimizer, w + i, g + i, pieces, length, c);
        for (size_t k = 0; k < n; k++) {
            kernels->cast(moments[k] + i, FSDP_BF16, widened[k], FSDP_F32, length);
        }
    }
}

/* `begin`: of what is held, and the first of a block. */
static void update_in_u8(const fsdp_optimizer *optimizer, const fsdpi_flat *flat, const fsdpi_flat_state *state,
                         size_t begin, size_t count, const fsdpi_coefficients *c)
{
    const size_t n = fsdpi_states_of(&optimizer->options), held = fsdpi_held_elements(flat);
    float        widened[FSDPI_MOST_MOMENTS][PIECE];
    float *const pieces[FSDPI_MOST_MOMENTS] = {widened[0], widened[1]};

    for (size_t i = 0; i < count; i += PIECE) {
        const size_t length = count - i < PIECE ? count - i : PIECE, at = begin + i;

        for (size_t k = 0; k < n; k++) {
            const uint8_t *codes = state->moments[k];

            fsdpi_dynamic_unpack(codes, (const float *)(const void *)(codes + held), at, length,
                                 fsdpi_is_signed_moment(k), widened[k]);
        }
        update_in_f32(optimizer, fsdpi_master_at(flat, at), fsdpi_gradient_at(flat, at), pieces, length, c);
        for (size_t k = 0; k < n; k++) {
            uint8_t *codes = state->moments[k];

            fsdpi_dynamic_pack_step(widened[k], length, fsdpi_is_signed_moment(k), optimizer->steps, codes + at,
                                    (float *)(void *)(codes + held) + at / FSDPI_DYNAMIC_BLOCK);
        }
    }
}

static void step_in_f64(fsdp_optimizer_kind kind, double *w, const double *g, double *const *moments, size_t count,
                        const fsdpi_update_f64 *c)
{
    switch (kind) {
    case FSDP_SGD:
    case FSDP_SGD_MOMENTUM:
        fsdpi_sgd_f64(w, g, moments[0], count, c);
        break;
    case FSDP_LION:
        fsdpi_lion_f64(w, g, moments[0], count, c);
        break;
    case FSDP_ADAM:
        fsdpi_adam_f64(w, g, moments[0], moments[1], count, c);
        break;
    case FSDP_ADAMW:
        fsdpi_adamw_f64(w, g, moments[0], moments[1], count, c);
        break;
    case FSDP_CUSTOM:
    case FSDP_MUON:
        break;
    }
}

/* `begin`: of what is held. Moments of a narrower type are widened, and rounded again behind the step. */
static void update_in_f64(const fsdp_optimizer *optimizer, const fsdpi_flat *flat, const fsdpi_flat_state *state,
                          size_t begin, size_t count, const fsdpi_update_f64 *c)
{
    const fsdpi_kernels *kernels = optimizer->model->ctx->kernels;
    const size_t         n       = fsdpi_states_of(&optimizer->options);
    const fsdp_dtype     dtype   = optimizer->options.moment_dtype;
    double               widened[FSDPI_MOST_MOMENTS][PIECE];
    double              *moments[FSDPI_MOST_MOMENTS] = {0};

    for (size_t i = 0; i < count; i += PIECE) {
        const size_t length = count - i < PIECE ? count - i : PIECE, at = begin + i;

        for (size_t k = 0; k < n; k++) {
            void *held = fsdpi_element_of(state->moments[k], at, dtype);

            moments[k] = dtype == FSDP_F64 ? held : widened[k];
            if (dtype != FSDP_F64) {
                kernels->cast(widened[k], FSDP_F64, held, dtype, length);
            }
        }
        step_in_f64(optimizer->options.kind, fsdpi_master_at(flat, at), fsdpi_gradient_at(flat, at), moments, length,
                    c);
        for (size_t k = 0; k < n && dtype != FSDP_F64; k++) {
            kernels->cast(fsdpi_element_of(state->moments[k], at, dtype), dtype, widened[k], FSDP_F64, length);
        }
    }
}

/* A flat parameter of an optimizer. */
typedef struct target {
    const fsdp_optimizer   *optimizer;
    const fsdpi_flat       *flat;
    const fsdpi_flat_state *state;
} target;

static void update_run(const void *what, size_t begin, size_t count, const fsdpi_coefficients *c)
{
    const target           *t         = what;
    const fsdp_optimizer   *optimizer = t->optimizer;
    const fsdpi_flat_state *state     = t->state;
    const size_t            n         = fsdpi_states_of(&optimizer->options);
    void                   *w         = fsdpi_master_at(t->flat, begin);
    const void             *g         = fsdpi_gradient_at(t->flat, begin);

    if (optimizer->model->master_dtype == FSDP_F64) {
        update_in_f64(optimizer, t->flat, state, begin, count, &c->wide);
    } else if (optimizer->options.moment_dtype == FSDP_U8) {
        update_in_u8(optimizer, t->flat, state, begin, count, c);
    } else if (optimizer->options.moment_dtype == FSDP_BF16) {
        uint16_t *moments[FSDPI_MOST_MOMENTS] = {0};

        for (size_t k = 0; k < n; k++) {
            moments[k] = (uint16_t *)state->moments[k] + begin;
        }
        update_in_bf16(optimizer, w, g, moments, count, c);
    } else {
        float *moments[FSDPI_MOST_MOMENTS] = {0};

        for (size_t k = 0; k < n; k++) {
            moments[k] = (float *)state->moments[k] + begin;
        }
        update_in_f32(optimizer, w, g, moments, count, c);
    }
}

static fsdp_status update(fsdp_optimizer *optimizer)
{
    size_t u = 0;

    if (optimizer->options.kind == FSDP_CUSTOM) {
        return fsdpi_custom_update_all(optimizer);
    }
    if (optimizer->options.kind == FSDP_MUON) {
        fsdpi_muon_update(optimizer);
        return FSDP_OK;
    }
    for (fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        const target t = {.optimizer = optimizer, .flat = flat, .state = &optimizer->flats[u]};

        if (flat->has_gradient && fsdpi_updates(optimizer, flat)) {
            fsdpi_optimizer_runs(optimizer, flat, t.state, 0, fsdpi_held_elements(flat), update_run, &t);
        }
    }
    return FSDP_OK;
}

/* All is where the kernels work on it. */
static fsdp_status open_nothing(fsdp_optimizer *optimizer)
{
    (void)optimizer;
    return FSDP_OK;
}

static void close_nothing(fsdp_optimizer *optimizer)
{
    (void)optimizer;
}

const fsdpi_optimizer_steps fsdpi_optimizer_host = {.open = open_nothing, .close = close_nothing, .update = update};
