#include "gpt_stage.h"

#include <stdlib.h>
#include <string.h>

#include "gpt_buffers.h"
#include "mpi-examples/common/example_error.h"

/* Memory begins on a cache line. */
#define CACHE_LINE 64

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

void gpt_stages_plan(gpt_stages *s, const fsdp_pipeline_info *info, const gpt_schedule *schedule)
{
    s->splits  = schedule->splits;
    s->n_slots = (size_t)info->most_held + (size_t)info->most_owed;
    s->n_debts = schedule->splits ? (size_t)info->most_owed + (size_t)schedule->joins : 1;
}

/* Layers for which a debt has room. */
static size_t debt_layers(const gpt_stages *s)
{
    return s->splits ? (size_t)s->layers_each : 1;
}

/* Lays all memory out and returns its ELEMENTS; with no storage it only counts. */
static size_t cut_all(gpt_stages *s, real *storage)
{
    const gpt_division *d     = &s->division;
    const size_t        plane = gpt_division_own_rows(d, s->batch) * d->config.width, each = (size_t)s->layers_each;
    size_t              used = 0, i;

#define NEXT (storage ? storage + used : NULL)
    for (i = 0; i < s->n_slots * each; i++) {
        gpt_kept unused;

        used += gpt_kept_cut(storage ? &s->kept[i] : &unused, NEXT, d, s->batch, s->has_first || i % each > 0);
    }
    for (i = 0; i < s->n_debts * debt_layers(s); i++) {
        gpt_owed unused;

        used += gpt_owed_cut(storage ? &s->owed[i] : &unused, NEXT, d, s->batch);
    }
    used += gpt_workspace_cut(&s->work, NEXT, d, s->batch);
    if (s->has_first) {
        used += gpt_end_gradients_cut(&s->first, NEXT, d, 1, 0);
    }
    if (s->has_last) {
        used += gpt_end_gradients_cut(&s->last, NEXT, d, 0, 1);
        used += gpt_head_cut(&s->head, NEXT, d, s->batch);
    }
#undef NEXT
    if (s->has_first != s->has_last) {
        s->others = gpt_buffer_cut(storage, &used, gpt_division_words(d) * d->config.width);
    }
    s->gradient = gpt_buffer_cut(storage, &used, plane);
    s->hop[0]   = gpt_buffer_cut(storage, &used, plane);
    s->hop[1]   = gpt_buffer_cut(storage, &used, plane);
    s->words    = (int32_t *)(void *)gpt_buffer_cut(storage, &used, gpt_division_rows(d, s->batch));
    return used;
}

size_t gpt_stages_bytes(const gpt_stages *s)
{
    gpt_stages counted = *s;

    return cut_all(&counted, NULL) * sizeof(real);
}

static void set_free(gpt_stages *s)
{
    size_t i;

    for (i = 0; i < s->n_slots; i++) {
        s->slots[i] = (gpt_slot){-1, -1, s->kept + i * (size_t)s->layers_each};
    }
    for (i = 0; i < s->n_debts; i++) {
        s->debts[i] = (gpt_debt){-1, -1, s->owed + i * debt_layers(s)};
    }
}

int gpt_stages_allocate(gpt_stages *s)
{
    s->bytes   = gpt_stages_bytes(s);
    s->slots   = calloc(s->n_slots, sizeof *s->slots);
    s->debts   = calloc(s->n_debts, sizeof *s->debts);
    s->kept    = calloc(s->n_slots * (size_t)s->layers_each, sizeof *s->kept);
    s->owed    = calloc(s->n_debts * debt_layers(s), sizeof *s->owed);
    s->storage = aligned_alloc(CACHE_LINE, s->bytes);
    if (!s->slots || !s->debts || !s->kept || !s->owed || !s->storage) {
        return 0;
    }
    (void)cut_all(s, s->storage);
    set_free(s);
    return 1;
}

void gpt_stages_release(gpt_stages *s)
{
    free(s->slots);
    free(s->debts);
    free(s->kept);
    free(s->owed);
    free(s->storage);
}

/* The place of a micro-batch in a stage, or, with -1 and -1, a free one. There is always one: see gpt_stages_plan(). */
static gpt_slot *slot_of(gpt_stages *s, int stage, int micro)
{
    size_t i;

    for (i = 0; i + 1 < s->n_slots && (s->slots[i].stage != stage || s->slots[i].micro != micro); i++) {
    }
    return &s->slots[i];
}

static gpt_debt *debt_of(gpt_stages *s, int stage, int micro)
{
    size_t i;

    for (i = 0; i + 1 < s->n_debts && (s->debts[i].stage != stage || s->debts[i].micro != micro); i++) {
    }
    return &s->debts[i];
}

/* ---- what callbacks share ------------------------------------------------------------------------------------------------ */

/* The sequences of a micro-batch that this rank has: those of a step are the same whatever the shape. */
static const unsigned char *window_of(const gpt_stages *s, int micro, size_t i)
{
    const size_t ranks = (size_t)fsdp_size(s->mesh->dp), rank = (size_t)fsdp_rank(s->mesh->dp);
    const size_t first = ((s->step * s->micros + (size_t)micro) * ranks + rank) * s->batch;

    return gpt_data_train_window(s->data, first + i);
}

/* The words of a micro-batch, or those that follow them. */
static void load_words(const gpt_stages *s, int micro, size_t ahead, int32_t *words)
{
    const size_t context = s->division.config.context;
    size_t       i;

    for (i = 0; i < s->batch; i++) {
        const gpt_pass pass = {window_of(s, micro, i), context + 1, 1, 0, context};

        gpt_words_of(&pass, ahead, words + i * context);
    }
}

static void params_of(fsdp_unit *unit, const real **params)
{
    size_t i;

    for (i = 0; i < GPT_N_BLOCK_TENSORS; i++) {
        params[i] = fsdp_unit_param(unit, i);
    }
}

static void grads_of(fsdp_unit *unit, real **grads)
{
    size_t i;

    for (i = 0; i < GPT_N_BLOCK_TENSORS; i++) {
        grads[i] = fsdp_unit_grad(unit, i);
    }
}

static fsdp_unit *layer_of(const gpt_stages *s, int stage, int i)
{
    return s->layers[stage * s->layers_each + i];
}

/* The parameters of the ends that are here, in the order of gpt_model.h; NULL: elsewhere. */
static fsdp_status open_ends(const gpt_stages *s, const real **params)
{
    size_t i;

    EXAMPLE_TRY(fsdp_unit_begin_forward(s->embedding));
    for (i = 0; i < GPT_N_EMBEDDING_TENSORS; i++) {
        params[i] = s->tensors[i] == FSDP_NO_TENSOR ? NULL : fsdp_unit_param(s->embedding, s->tensors[i]);
    }
    gpt_profile_lap(s->division.profile, GPT_PART_SHARDING);
    return FSDP_OK;
}

static fsdp_status embed(gpt_stages *s, size_t batch, real *out)
{
    const real *params[GPT_N_EMBEDDING_TENSORS];

    EXAMPLE_TRY(open_ends(s, params));
    EXAMPLE_TRY(gpt_ends_embed(&s->division, &s->work, batch, s->words, params[GPT_WTE], params[GPT_WPE], out));
    return fsdp_unit_end_forward(s->embedding);
}

/* ---- callbacks ----------------------------------------------------------------------------------------------------------- */

static fsdp_status forward(void *user, int stage, int micro, const void *in, void *out)
{
    gpt_stages *s    = user;
    gpt_slot   *slot = slot_of(s, -1, -1);
    const real *params[GPT_N_BLOCK_TENSORS];
    int         i;

    gpt_profile_lap(s->division.profile, GPT_PART_SHARDING);
    *slot = (gpt_slot){stage, micro, slot->layers};
    if (in) {
        slot->layers[0].in = in;
    } else {
        slot->layers[0].in = slot->layers[0].own;
        load_words(s, micro, 0, s->words);
        EXAMPLE_TRY(embed(s, s->batch, slot->layers[0].own));
    }
    for (i = 0; i < s->layers_each; i++) {
        params_of(layer_of(s, stage, i), params);
        EXAMPLE_TRY(gpt_layer_forward(&s->division, &s->work, s->batch, params, &slot->layers[i],
                                      i + 1 < s->layers_each ? slot->layers[i + 1].own : out));
    }
    return FSDP_OK;
}

/* The head's backward pass follows at once, so that nothing of it is kept. */
static fsdp_status loss(void *user, int micro, const void *out, void *grad_out, double *value)
{
    gpt_stages  *s     = user;
    const double scale = 1 / ((double)gpt_division_rows(&s->division, s->batch) * (double)s->micros);
    const real  *params[GPT_N_EMBEDDING_TENSORS];

    load_words(s, micro, 1, s->head.targets);
    EXAMPLE_TRY(open_ends(s, params));
    EXAMPLE_TRY(gpt_ends_logits(&s->division, &s->work, &s->head, s->batch, params, out));
    EXAMPLE_TRY(gpt_ends_loss(&s->division, &s->head, s->batch, scale, value));
    EXAMPLE_TRY(gpt_ends_head_backward(&s->division, &s->work, &s->head, s->batch, params, out, &s->last, grad_out));
    return fsdp_unit_end_forward(s->embedding);
}

static fsdp_status layer_weight(gpt_stages *s, int stage, int i, gpt_kept *kept, const gpt_owed *owed)
{
    const real *params[GPT_N_BLOCK_TENSORS];
    real       *grads[GPT_N_BLOCK_TENSORS];

    params_of(layer_of(s, stage, i), params);
    grads_of(layer_of(s, stage, i), grads);
    return gpt_layer_backward_weight(&s->division, &s->work, s->batch, params, kept, owed, grads);
}

/* Without a second action the gradients of a layer's parameters follow at once, so that one layer at a time owes them. */
static fsdp_status backward_layers(gpt_stages *s, int stage, gpt_slot *slot, const gpt_debt *debt)
{
    int i;

    for (i = s->layers_each - 1; i >= 0; i--) {
        gpt_owed   *owed = &debt->layers[s->splits ? i : 0];
        const real *params[GPT_N_BLOCK_TENSORS];

        params_of(layer_of(s, stage, i), params);
        EXAMPLE_TRY(
            gpt_layer_backward_input(&s->division, &s->work, s->batch, params, &slot->layers[i], owed, s->gradient));
        if (!s->splits) {
            EXAMPLE_TRY(layer_weight(s, stage, i, &slot->layers[i], owed));
        }
    }
    return FSDP_OK;
}

static fsdp_status backward_input(void *user, int stage, int micro, const void *in, const void *grad_out, void *grad_in)
{
    gpt_stages  *s     = user;
    gpt_slot    *slot  = slot_of(s, stage, micro);
    gpt_debt    *debt  = debt_of(s, -1, -1);
    const size_t bytes = gpt_division_own_rows(&s->division, s->batch) * s->division.config.width * sizeof(real);

    (void)in;
    gpt_profile_lap(s->division.profile, GPT_PART_SHARDING);
    memcpy(s->gradient, grad_out, bytes);
    EXAMPLE_TRY(backward_layers(s, stage, slot, debt));
    if (s->splits) {
        *debt = (gpt_debt){stage, micro, debt->layers};
    } else {
        *slot = (gpt_slot){-1, -1, slot->layers};
    }
    if (grad_in) {
        memcpy(grad_in, s->gradient, bytes);
        return FSDP_OK;
    }
    load_words(s, micro, 0, s->words);
    return gpt_ends_embed_backward(&s->division, &s->work, s->batch, s->words, s->gradient, &s->first);
}

static fsdp_status backward_weight(void *user, int stage, int micro, const void *in, const void *grad_out)
{
    gpt_stages *s    = user;
    gpt_slot   *slot = slot_of(s, stage, micro);
    gpt_debt   *debt = debt_of(s, stage, micro);
    int         i;

    (void)in;
    (void)grad_out;
    for (i = s->layers_each - 1; i >= 0; i--) {
        EXAMPLE_TRY(layer_weight(s, stage, i, &slot->layers[i], &debt->layers[i]));
    }
    *slot = (gpt_slot){-1, -1, slot->layers};
    *debt = (gpt_debt){-1, -1, debt->layers};
    return FSDP_OK;
}

void gpt_stages_callbacks(gpt_stages *s, fsdp_pipeline_callbacks *callbacks)
{
    fsdp_pipeline_callbacks_init(callbacks);
    callbacks->forward         = forward;
    callbacks->loss            = loss;
    callbacks->backward_input  = backward_input;
    callbacks->backward_weight = s->splits ? backward_weight : NULL;
    callbacks->user            = s;
}

/* ---- the ends ------------------------------------------------------------------------------------------------------------ */

static size_t end_elements(const gpt_stages *s, size_t tensor)
{
    const size_t c = s->division.config.width;

    return tensor == GPT_WTE   ? gpt_division_words(&s->division) * c
           : tensor == GPT_WPE ? s->division.config.context * c
                               : c;
}

static void forget(const gpt_stages *s, const gpt_end_gradients *grads)
{
    size_t i;

    for (i = 0; i < GPT_N_EMBEDDING_TENSORS; i++) {
        if (grads->of[i]) {
            memset(grads->of[i], 0, end_elements(s, i) * sizeof(real));
        }
    }
}

void gpt_stages_begin_step(gpt_stages *s, size_t step)
{
    s->step          = step;
    s->work.again_of = NULL;
    set_free(s);
    forget(s, &s->first);
    forget(s, &s->last);
}

/* Both ends of a pipeline give each other what they have of the table's gradient; ranks between them pass by. */
static fsdp_status exchange_table(gpt_stages *s)
{
    fsdp_context *pp    = s->mesh->pp;
    const size_t  ranks = (size_t)fsdp_size(pp);
    size_t       *lists = calloc(2 * ranks, sizeof *lists);
    const real   *mine  = s->has_first ? s->first.of[GPT_WTE] : s->has_last ? s->last.of[GPT_WTE] : s->gradient;
    real         *their = s->others ? s->others : s->hop[0];
    fsdp_status   status;

    status = example_agree(pp, lists ? "" : "no memory to list the ranks of a pipeline");
    if (status == FSDP_OK && lists) {
        if (s->has_first != s->has_last) {
            lists[s->has_first ? s->last_rank : s->first_rank] = end_elements(s, GPT_WTE);
        }
        status = fsdp_alltoallv(pp, mine, lists, lists + ranks, their, lists, lists + ranks, FSDP_F32);
    }
    free(lists);
    return status;
}

/* Two numbers have the same sum in either order, so that the table stays the same at both ends, bit by bit. */
static fsdp_status give_ends(gpt_stages *s)
{
    const real *other = s->others ? s->others : s->last.of[GPT_WTE];
    size_t      i;

    gpt_add(end_elements(s, GPT_WTE), other, s->has_first ? s->first.of[GPT_WTE] : s->last.of[GPT_WTE]);
    EXAMPLE_TRY(fsdp_unit_begin_backward(s->embedding));
    for (i = 0; i < GPT_N_EMBEDDING_TENSORS; i++) {
        const real *from = s->first.of[i] ? s->first.of[i] : s->last.of[i];

        if (from) {
            memcpy(fsdp_unit_grad(s->embedding, s->tensors[i]), from, end_elements(s, i) * sizeof(real));
        }
    }
    return fsdp_unit_end_backward(s->embedding);
}

fsdp_status gpt_stages_end_step(gpt_stages *s)
{
    if (s->first_rank != s->last_rank) {
        EXAMPLE_TRY(exchange_table(s));
    }
    return s->embedding ? give_ends(s) : FSDP_OK;
}

/* ---- passes without gradients -------------------------------------------------------------------------------------------- */

/* Through the layers of a stage of this rank, from hop[0] to hop[1]; what layers keep goes into a slot, which is free. */
static fsdp_status pass_stage(gpt_stages *s, int stage, size_t batch)
{
    gpt_kept   *layers = s->slots[0].layers;
    const real *params[GPT_N_BLOCK_TENSORS];
    int         i;

    layers[0].in = s->hop[0];
    for (i = 0; i < s->layers_each; i++) {
        EXAMPLE_TRY(fsdp_unit_begin_forward(layer_of(s, stage, i)));
        params_of(layer_of(s, stage, i), params);
        EXAMPLE_TRY(gpt_layer_forward(&s->division, &s->work, batch, params, &layers[i],
                                      i + 1 < s->layers_each ? layers[i + 1].own : s->hop[1]));
        EXAMPLE_TRY(fsdp_unit_end_forward(layer_of(s, stage, i)));
    }
    return FSDP_OK;
}

/* What a stage has put out goes to the next one's input. All ranks meet in the order of stages. */
static void hand_on(gpt_stages *s, int stage, size_t batch)
{
    const int bytes = (int)(gpt_division_own_rows(&s->division, batch) * s->division.config.width * sizeof(real));
    const int me = fsdp_rank(s->mesh->pp), from = s->ranks[stage], to = s->ranks[stage + 1];

    if (from == to) {
        if (me == from) {
            memcpy(s->hop[0], s->hop[1], (size_t)bytes);
        }
    } else if (me == from) {
        MPI_Send(s->hop[1], bytes, MPI_BYTE, gpt_mesh_peer(s->mesh, to), stage, MPI_COMM_WORLD);
    } else if (me == to) {
        MPI_Recv(s->hop[0], bytes, MPI_BYTE, gpt_mesh_peer(s->mesh, from), stage, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static fsdp_status pass_head(gpt_stages *s, const gpt_pass *pass)
{
    const real *params[GPT_N_EMBEDDING_TENSORS];

    gpt_words_of(pass, 1, s->head.targets);
    EXAMPLE_TRY(open_ends(s, params));
    EXAMPLE_TRY(gpt_ends_logits(&s->division, &s->work, &s->head, pass->batch, params, s->hop[1]));
    return fsdp_unit_end_forward(s->embedding);
}

fsdp_status gpt_stages_forward(gpt_stages *s, const gpt_pass *pass)
{
    const int me = fsdp_rank(s->mesh->pp);
    int       stage;

    s->work.again_of = NULL;
    if (s->has_first) {
        gpt_words_of(pass, 0, s->words);
        EXAMPLE_TRY(embed(s, pass->batch, s->hop[0]));
    }
    for (stage = 0; stage < s->n; stage++) {
        if (s->ranks[stage] == me) {
            EXAMPLE_TRY(pass_stage(s, stage, pass->batch));
        }
        if (stage + 1 < s->n) {
            hand_on(s, stage, pass->batch);
        }
    }
    return s->has_last ? pass_head(s, pass) : FSDP_OK;
}
