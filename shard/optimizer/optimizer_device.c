/*
 * Steps on a GPU. Where masters and moments are there in f32, the kernels work on them as they are. Else elements pass
 * through pieces: moments in bf16 become f32 there and go back, and what is offloaded comes from pinned memory and goes
 * back. Offloaded, there are two pieces, which take turns, and three streams: while the model's own works on one piece, the
 * other is copied out of, in one stream, and then into, in another. Three events of each piece keep the order, and the host
 * waits for nothing.
 *
 * Cost, offloaded, of n elements with s moments in f32: 4 (1 + s) n bytes over the link each way, both at the same time.
 */
#include "shard/optimizer/optimizer_device.h"

#include "lib/device/memory.h"
#include "shard/optimizer/optimizer_custom.h"
#include "shard/optimizer/optimizer_runs.h"
#include "shard/state/optimizer_kind.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"
#include "shard/storage/compute.h"
#include "shard/storage/model_gpu.h"
#include "shard/storage/model_memory.h"
#include "shard/storage/quantized.h"

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static bool is_narrow(fsdp_dtype moment_dtype)
{
    return moment_dtype != FSDP_F32;
}

/* None where nothing is trained. */
static size_t count_pieces(const fsdp_model *model, const fsdpi_plan *plan, size_t states, fsdp_dtype moment_dtype)
{
    if (!fsdpi_is_on_device(model) || plan->longest == 0) {
        return 0;
    }
    return fsdpi_is_offloaded(model) ? FSDPI_PIECES : is_narrow(moment_dtype) && states > 0;
}

/* Of one piece: a quarter of FSDP_STAGING_BYTES in each of its arrays, or what the largest flat parameter has. */
static size_t piece_elements(const fsdp_model *model, const fsdpi_plan *plan)
{
    const size_t limit =
        (size_t)model->ctx->config.staging_bytes / (4 * sizeof(float)) / FSDPI_ALIGNMENT * FSDPI_ALIGNMENT;
    const size_t most = limit > FSDPI_ALIGNMENT ? limit : FSDPI_ALIGNMENT;

    return plan->longest < most ? plan->longest : most;
}

/* BYTES of a piece for each of its elements. */
static size_t element_bytes(const fsdp_model *model, size_t states, fsdp_dtype moment_dtype)
{
    const size_t narrow = fsdpi_is_offloaded(model) && is_narrow(moment_dtype) ? sizeof(uint16_t) : 0;

    return (fsdpi_is_offloaded(model) ? sizeof(float) : 0) + states * (sizeof(float) + narrow);
}

size_t fsdpi_optimizer_staging(const fsdp_model *model, const fsdpi_plan *plan, const fsdp_model_group *assumed)
{
    const size_t states = fsdpi_optimizer_states(assumed->optimizer, assumed->n_states);

    return count_pieces(model, plan, states, assumed->moment_dtype) * piece_elements(model, plan) *
           element_bytes(model, states, assumed->moment_dtype);
}

/* Takes `bytes` of what is left. */
static void *take(unsigned char **left, size_t bytes)
{
    void *taken = *left;

    *left += bytes;
    return taken;
}

static void lay_out(const fsdp_optimizer *optimizer, fsdpi_piece *piece, unsigned char **left)
{
    const size_t n         = optimizer->staging.elements;
    const size_t states    = fsdpi_states_of(&optimizer->options);
    const bool   offloaded = fsdpi_is_offloaded(optimizer->model);

    piece->weights = offloaded ? take(left, n * sizeof(float)) : NULL;
    for (size_t k = 0; k < states; k++) {
        piece->moments[k] = take(left, n * sizeof(float));
        if (offloaded && is_narrow(optimizer->options.moment_dtype)) {
            piece->narrow[k] = take(left, n * sizeof(uint16_t));
        }
    }
}

static fsdp_status open_events(fsdpi_gpu_device *gpu, fsdpi_piece *piece)
{
    FSDP_TRY(gpu->ops->event_open(gpu, false, &piece->arrived));
    FSDP_TRY(gpu->ops->event_open(gpu, false, &piece->updated));
    return gpu->ops->event_open(gpu, false, &piece->left);
}

static fsdp_status open_staging(fsdp_optimizer *optimizer)
{
    fsdp_model                   *model   = optimizer->model;
    const fsdp_optimizer_options *o       = &optimizer->options;
    fsdpi_staging                *staging = &optimizer->staging;
    const fsdp_model_group        as      = fsdpi_group_of_options(o);

    staging->n_pieces = count_pieces(model, &model->plan, fsdpi_states_of(o), o->moment_dtype);
    staging->elements = piece_elements(model, &model->plan);
    staging->bytes    = fsdpi_optimizer_staging(model, &model->plan, &as);
    if (staging->bytes == 0) {
        return fsdpi_compute_status(model);
    }
    staging->memory = fsdpi_home_alloc(model, FSDPI_AT_DEVICE, FSDP_MEMORY_OPTIMIZER, staging->bytes);
    if (staging->memory == NULL) {
        return FSDP_ERR_MEMORY;
    }
    unsigned char *left = staging->memory;
    for (size_t i = 0; i < staging->n_pieces; i++) {
        lay_out(optimizer, &staging->pieces[i], &left);
        FSDP_TRY(open_events(fsdpi_gpu_of(model), &staging->pieces[i]));
    }
    fsdpi_compute_finish(model); /* other streams write there next */
    return fsdpi_compute_status(model);
}

static void close_staging(fsdp_optimizer *optimizer)
{
    fsdpi_gpu_device *gpu     = fsdpi_gpu_of(optimizer->model);
    fsdpi_staging    *staging = &optimizer->staging;

    for (size_t i = 0; i < staging->n_pieces; i++) {
        (void)gpu->ops->event_close(gpu, staging->pieces[i].arrived);
        (void)gpu->ops->event_close(gpu, staging->pieces[i].updated);
        (void)gpu->ops->event_close(gpu, staging->pieces[i].left);
    }
    fsdpi_home_free(optimizer->model, FSDPI_AT_DEVICE, FSDP_MEMORY_OPTIMIZER, staging->memory, staging->bytes);
    *staging = (fsdpi_staging){0};
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* What comes into the stream `second` waits for what is in the stream `first`. */
static void order(fsdp_model *model, fsdpi_gpu_stream first, fsdpi_gpu_event event, fsdpi_gpu_stream second)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model, gpu->ops->event_record(gpu, event, first));
    fsdpi_compute_keep(model, gpu->ops->wait_for(gpu, second, event));
}

static void copy_in(fsdp_model *model, fsdpi_gpu_stream stream, void *to, const void *from, size_t bytes)
{
    fsdpi_gpu_device *gpu = fsdpi_gpu_of(model);

    fsdpi_compute_keep(model, gpu->ops->copy(gpu, to, from, bytes, stream));
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Elements `begin` up to `end` of what is held of a flat parameter, in a piece where there is one. */
typedef struct stretch {
    fsdp_optimizer         *optimizer;
    fsdpi_flat             *flat;
    const fsdpi_flat_state *state;
    fsdpi_piece            *piece; /* NULL: all is where the kernels work on it */
    size_t                  begin, end;
    size_t                  states;
} stretch;

/* Moment `k` as it is held. */
static void *held_moment(const stretch *s, size_t k)
{
    return fsdpi_element_of(s->state->moments[k], s->begin, s->optimizer->options.moment_dtype);
}

/* Where offloaded moments of the type that they are held in come to. */
static void *landing(const stretch *s, size_t k)
{
    return is_narrow(s->optimizer->options.moment_dtype) ? (void *)s->piece->narrow[k] : s->piece->moments[k];
}

/* Where bf16 moments are on the GPU. */
static void *narrow_moment(const stretch *s, size_t k)
{
    return s->piece->narrow[k] != NULL ? (void *)s->piece->narrow[k] : held_moment(s, k);
}

static void bring_offloaded(const stretch *s)
{
    fsdp_model       *model = s->flat->model;
    fsdpi_gpu_device *gpu   = fsdpi_gpu_of(model);
    fsdpi_gpu_stream  in    = model->offload.in;
    const size_t      n     = s->end - s->begin;

    fsdpi_compute_keep(model, gpu->ops->wait_for(gpu, in, s->piece->left));
    copy_in(model, in, s->piece->weights, fsdpi_master_at(s->flat, s->begin), n * fsdpi_master_width(model));
    for (size_t k = 0; k < s->states; k++) {
        copy_in(model, in, landing(s, k), held_moment(s, k), n * fsdp_dtype_size(s->optimizer->options.moment_dtype));
    }
    order(model, in, s->piece->arrived, fsdpi_stream_of(model));
}

static void take_back_offloaded(const stretch *s)
{
    fsdp_model       *model = s->flat->model;
    fsdpi_gpu_device *gpu   = fsdpi_gpu_of(model);
    fsdpi_gpu_stream  out   = model->offload.out;
    const size_t      n     = s->end - s->begin;

    if (s->flat->quantized) {
        fsdpi_quantize_run(s->flat, s->piece->weights, s->begin, n);
    } else {
        fsdpi_compute_cast(model, fsdpi_element_of(s->flat->low, s->begin, s->flat->dtype), s->flat->dtype,
                           s->piece->weights, FSDP_F32, n);
    }
    order(model, fsdpi_stream_of(model), s->piece->updated, out);
    copy_in(model, out, fsdpi_master_at(s->flat, s->begin), s->piece->weights, n * fsdpi_master_width(model));
    for (size_t k = 0; k < s->states; k++) {
        copy_in(model, out, held_moment(s, k), landing(s, k), n * fsdp_dtype_size(s->optimizer->options.moment_dtype));
    }
    fsdpi_compute_keep(model, gpu->ops->event_record(gpu, s->piece->left, out));
}

/* Then there is a piece in which they are wide. */
static bool has_narrow_moments(const stretch *s)
{
    return s->piece != NULL && is_narrow(s->optimizer->options.moment_dtype);
}

static void widen_moments(const stretch *s)
{
    for (size_t k = 0; k < s->states && has_narrow_moments(s); k++) {
        fsdpi_compute_cast(s->flat->model, s->piece->moments[k], FSDP_F32, narrow_moment(s, k), FSDP_BF16,
                           s->end - s->begin);
    }
}

static void narrow_moments(const stretch *s)
{
    for (size_t k = 0; k < s->states && has_narrow_moments(s); k++) {
        fsdpi_compute_cast(s->flat->model, narrow_moment(s, k), FSDP_BF16, s->piece->moments[k], FSDP_F32,
                           s->end - s->begin);
    }
}

/* Moment `k` of element `at` as the kernels work on it; NULL where the optimizer has none. */
static float *working_moment(const stretch *s, size_t k, size_t at)
{
    if (k >= s->states) {
        return NULL;
    }
    if (s->piece != NULL) {
        return s->piece->moments[k] + (at - s->begin);
    }
    return (float *)s->state->moments[k] + at;
}

static void update_run(const void *what, size_t at, size_t count, const fsdpi_coefficients *c)
{
    const stretch           *s      = what;
    fsdp_model              *model  = s->flat->model;
    fsdpi_gpu_device        *gpu    = fsdpi_gpu_of(model);
    const fsdpi_gpu_compute *by     = gpu->ops->compute;
    fsdpi_gpu_stream         stream = fsdpi_stream_of(model);
    const bool               apart  = s->piece != NULL && s->piece->weights != NULL;
    void                    *w      = apart ? s->piece->weights + (at - s->begin) : fsdpi_master_at(s->flat, at);
    const void              *g      = fsdpi_gradient_at(s->flat, at);
    float                   *m = working_moment(s, 0, at), *v = working_moment(s, 1, at);

    switch (s->optimizer->options.kind) {
    case FSDP_SGD:
    case FSDP_SGD_MOMENTUM:
        fsdpi_compute_keep(model, by->sgd(gpu, w, g, m, count, &c->sgd, stream));
        break;
    case FSDP_LION:
        fsdpi_compute_keep(model, by->lion(gpu, w, g, m, count, &c->lion, stream));
        break;
    case FSDP_ADAM:
        fsdpi_compute_keep(model, by->adam(gpu, w, g, m, v, count, &c->adam, stream));
        break;
    case FSDP_ADAMW:
        fsdpi_compute_keep(model, by->adamw(gpu, w, g, m, v, count, &c->adam, stream));
        break;
    case FSDP_CUSTOM: /* is not for kernels */
    case FSDP_MUON:   /* is not on GPUs */
        break;
    }
}

/* By a function of the program's, in a piece. */
static fsdp_status update_piece(const stretch *s, size_t flat_index)
{
    fsdpi_custom_stretch custom = {.optimizer  = s->optimizer,
                                   .flat       = s->flat,
                                   .flat_index = flat_index,
                                   .begin      = s->begin,
                                   .end        = s->end,
                                   .weights    = s->piece->weights,
                                   .apart      = true};

    for (size_t k = 0; k < s->states; k++) {
        custom.states[k] = s->piece->moments[k];
    }
    return fsdpi_custom_update(&custom);
}

static fsdp_status update_stretch(const stretch *s, size_t flat_index)
{
    const bool offloaded = s->piece != NULL && s->piece->weights != NULL;

    if (offloaded) {
        bring_offloaded(s);
    }
    if (s->piece != NULL && s->optimizer->options.kind == FSDP_CUSTOM) {
        FSDP_TRY(update_piece(s, flat_index));
    } else {
        widen_moments(s);
        fsdpi_optimizer_runs(s->optimizer, s->flat, s->state, s->begin, s->end, update_run, s);
        narrow_moments(s);
    }
    if (offloaded) {
        take_back_offloaded(s);
    }
    return FSDP_OK;
}

static fsdp_status update_flat(fsdp_optimizer *optimizer, fsdpi_flat *flat, size_t flat_index)
{
    fsdpi_staging *staging = &optimizer->staging;
    const size_t   held = fsdpi_held_elements(flat), most = staging->n_pieces > 0 ? staging->elements : held;
    stretch        s = {.optimizer = optimizer,
                        .flat      = flat,
                        .state     = &optimizer->flats[flat_index],
                        .states    = fsdpi_states_of(&optimizer->options)};

    for (s.begin = 0; s.begin < held; s.begin = s.end) {
        s.end   = held - s.begin < most ? held : s.begin + most;
        s.piece = staging->n_pieces > 0 ? &staging->pieces[staging->used++ % staging->n_pieces] : NULL;
        FSDP_TRY(update_stretch(&s, flat_index));
    }
    return FSDP_OK;
}

/* What is copied in has been copied out by the step before, this optimizer's or another's. */
static void begin_step(fsdp_optimizer *optimizer)
{
    fsdp_model *model = optimizer->model;

    if (fsdpi_is_offloaded(model) && optimizer->staging.n_pieces > 0) {
        order(model, model->offload.out, optimizer->staging.pieces[0].left, model->offload.in);
    }
}

static fsdp_status update(fsdp_optimizer *optimizer)
{
    size_t u = 0;

    if (optimizer->options.kind == FSDP_CUSTOM && !fsdpi_is_offloaded(optimizer->model)) {
        return fsdpi_custom_update_all(optimizer);
    }
    begin_step(optimizer);
    for (fsdpi_flat *flat = optimizer->model->flats; flat != NULL; flat = flat->next, u++) {
        if (flat->has_gradient && fsdpi_updates(optimizer, flat)) {
            FSDP_TRY(update_flat(optimizer, flat, u));
        }
    }
    return FSDP_OK;
}

const fsdpi_optimizer_steps fsdpi_optimizer_device = {.open = open_staging, .close = close_staging, .update = update};
