#include "gpt_parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-examples/common/example_error.h"

/* ---- the pipeline -------------------------------------------------------------------------------------------------------- */

static fsdp_status create_pipeline(gpt_parallel *p)
{
    const gpt_division     *d       = &p->stages.division;
    fsdp_pipeline_options   options = FSDP_PIPELINE_OPTIONS_DEFAULT;
    fsdp_pipeline_callbacks callbacks;
    int                     stage;

    gpt_stages_callbacks(&p->stages, &callbacks);
    options.schedule        = p->schedule.name;
    options.text            = p->schedule.text;
    options.stages_per_rank = p->schedule.text ? 1 : p->schedule.stages_per_rank;
    options.micros          = (int)p->stages.micros;
    options.bytes           = gpt_division_own_rows(d, p->stages.batch) * d->config.width * sizeof(real);
    options.output_bytes    = options.bytes;
    EXAMPLE_TRY(fsdp_pipeline_create(p->mesh.pp, &options, &callbacks, &p->pipeline));
    EXAMPLE_TRY(fsdp_pipeline_get_info(p->pipeline, &p->info));
    for (stage = 0; stage < p->info.stages; stage++) {
        p->ranks[stage] = fsdp_pipeline_rank_of_stage(p->pipeline, stage);
    }
    gpt_stages_plan(&p->stages, &p->info, &p->schedule);
    p->stages.first_rank = p->ranks[0];
    p->stages.last_rank  = p->ranks[p->info.stages - 1];
    p->stages.has_first  = p->stages.first_rank == fsdp_rank(p->mesh.pp);
    p->stages.has_last   = p->stages.last_rank == fsdp_rank(p->mesh.pp);
    return FSDP_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

static void describe_stages(gpt_parallel *p, const gpt_data *data)
{
    const gpt_options *o = p->options;

    p->stages.division    = (gpt_division){.config            = o->config,
                                           .ranks             = o->tp,
                                           .sequence_parallel = o->sequence_parallel && o->tp > 1,
                                           .recompute         = (gpt_recompute)o->recompute,
                                           .tp                = p->mesh.tp,
                                           .profile           = &p->profile};
    p->stages.mesh        = &p->mesh;
    p->stages.data        = data;
    p->stages.micros      = o->micro;
    p->stages.batch       = o->batch / (o->micro * o->dp);
    p->stages.n           = p->schedule.stages;
    p->stages.layers_each = (int)o->config.layers / p->schedule.stages;
    p->stages.splits      = p->schedule.splits;
    p->stages.ranks       = p->ranks;
}

fsdp_status gpt_parallel_open(fsdp_context *ctx, const gpt_options *options, const gpt_data *data, gpt_parallel *p)
{
    fsdp_memory there;

    *p = (gpt_parallel){.options = options};
    EXAMPLE_TRY(gpt_schedule_open(ctx, options, &p->schedule));
    p->ranks         = calloc((size_t)p->schedule.stages, sizeof *p->ranks);
    p->stages.layers = calloc(options->config.layers, sizeof(fsdp_unit *));
    EXAMPLE_TRY(
        example_agree(ctx, p->ranks && p->stages.layers ? "" : "no memory for the list of layers; use fewer --layers"));
    EXAMPLE_TRY(gpt_parallel_open_mesh(p, ctx));
    gpt_profile_start(&p->profile);
    describe_stages(p, data);
    EXAMPLE_TRY(create_pipeline(p));
    EXAMPLE_TRY(gpt_parallel_memory(p, &there));
    EXAMPLE_TRY(gpt_parallel_describe(p));
    return gpt_parallel_count_budget(p, &there);
}

/* ---- allocating ---------------------------------------------------------------------------------------------------------- */

static fsdp_status check_memory(const gpt_parallel *p, size_t limit)
{
    const size_t activations                    = gpt_stages_bytes(&p->stages);
    char         message[EXAMPLE_MESSAGE_BYTES] = "";

    if (activations > limit || p->budget.total > limit - activations) {
        (void)snprintf(
            message, sizeof message,
            "a rank would need %zu bytes of training state and %zu of activations, and its part of the node's "
            "memory is %zu; use more ranks, --recompute, or a smaller --width, --layers, --context or --batch",
            p->budget.total, activations, limit);
    }
    return example_agree(p->mesh.all, message);
}

static fsdp_status create_optimizer(gpt_parallel *p)
{
    fsdp_optimizer_options adamw;

    EXAMPLE_TRY(gpt_options_adamw(p->options, &adamw));
    return fsdp_optimizer_create(p->model, &adamw, &p->optimizer);
}

static fsdp_status name_units(gpt_parallel *p)
{
    const size_t each = (size_t)p->stages.layers_each;
    int          stage;

    for (stage = 0; stage < p->info.stages; stage++) {
        if (p->ranks[stage] == fsdp_rank(p->mesh.pp)) {
            EXAMPLE_TRY(fsdp_pipeline_set_units(p->pipeline, stage, p->stages.layers + (size_t)stage * each, each));
        }
    }
    return FSDP_OK;
}

/* What each rank of the pipeline takes, for the report. */
static fsdp_status gather_activations(gpt_parallel *p)
{
    const int64_t mine[GPT_PER_RANK] = {(int64_t)gpt_stages_bytes(&p->stages), (int64_t)p->stages.n_slots};

    p->by_rank = calloc(p->options->pp * GPT_PER_RANK, sizeof *p->by_rank);
    EXAMPLE_TRY(example_agree(p->mesh.all, p->by_rank ? "" : "no memory to list the ranks of a pipeline"));
    return fsdp_allgather(p->mesh.pp, mine, p->by_rank, GPT_PER_RANK, FSDP_I64);
}

fsdp_status gpt_parallel_commit(gpt_parallel *p, size_t memory_limit)
{
    int allocated;

    EXAMPLE_TRY(check_memory(p, memory_limit));
    EXAMPLE_TRY(gather_activations(p));
    p->windows = malloc(p->stages.batch * (p->options->config.context + 1));
    allocated  = gpt_stages_allocate(&p->stages) && p->windows;
    EXAMPLE_TRY(example_agree(p->mesh.all,
                              allocated ? "" : "no memory for the activations; use more ranks or a smaller --batch"));
    EXAMPLE_TRY(fsdp_model_commit(p->model));
    EXAMPLE_TRY(name_units(p));
    return create_optimizer(p);
}

void gpt_parallel_close(gpt_parallel *p)
{
    fsdp_pipeline_destroy(p->pipeline);
    fsdp_model_destroy(p->model);
    gpt_mesh_close(&p->mesh);
    gpt_stages_release(&p->stages);
    gpt_schedule_release(&p->schedule);
    free(p->stages.layers);
    free(p->windows);
    free(p->by_rank);
    free(p->ranks);
}

/* ---- training and validation --------------------------------------------------------------------------------------------- */

fsdp_status gpt_parallel_train(gpt_parallel *p, size_t step, double lr, gpt_parallel_step *result)
{
    double loss;

    *result = (gpt_parallel_step){0};
    gpt_stages_begin_step(&p->stages, step);
    EXAMPLE_TRY(fsdp_pipeline_step(p->pipeline, &loss));
    EXAMPLE_TRY(fsdp_pipeline_get_info(p->pipeline, &p->info));
    p->waited += p->info.wait_seconds;
    EXAMPLE_TRY(gpt_stages_end_step(&p->stages));
    EXAMPLE_TRY(fsdp_allreduce(p->mesh.dp, FSDP_IN_PLACE, &loss, 1, FSDP_F64, FSDP_SUM));
    result->loss = fsdp_rank(p->mesh.all) == 0 ? loss : 0;
    EXAMPLE_TRY(fsdp_clip_grad_norm(p->model, p->options->clip, &result->norm));
    EXAMPLE_TRY(fsdp_optimizer_set_lr(p->optimizer, lr));
    EXAMPLE_TRY(fsdp_optimizer_step(p->optimizer));
    gpt_profile_lap(&p->profile, GPT_PART_OPTIMIZER);
    return FSDP_OK;
}

/* Loads the windows of this rank among those from `first` on; the last ranks may get less, or none. */
static size_t load_val_batch(gpt_parallel *p, size_t first, size_t windows)
{
    const size_t bytes = p->options->config.context + 1;
    const size_t mine  = first + (size_t)fsdp_rank(p->mesh.dp) * p->stages.batch;
    size_t       i;

    for (i = 0; i < p->stages.batch && mine + i < windows; i++) {
        memcpy(p->windows + i * bytes, gpt_data_val_window(p->stages.data, mine + i), bytes);
    }
    return i;
}

/* Ranks of the last stage have the losses: those of all parts of a layer the same, of which one counts. */
static fsdp_status sum_losses(gpt_parallel *p, double *loss)
{
    if (!p->stages.has_last) {
        *loss = 0;
    }
    EXAMPLE_TRY(fsdp_allreduce(p->mesh.dp, FSDP_IN_PLACE, loss, 1, FSDP_F64, FSDP_SUM));
    return fsdp_allreduce(p->mesh.pp, FSDP_IN_PLACE, loss, 1, FSDP_F64, FSDP_SUM);
}

fsdp_status gpt_parallel_validate(gpt_parallel *p, size_t windows, double *loss)
{
    const size_t context = p->options->config.context, per_pass = p->stages.batch * p->options->dp;
    size_t       first;

    *loss = 0;
    for (first = 0; first < windows; first += per_pass) {
        const gpt_pass pass = {p->windows, context + 1, load_val_batch(p, first, windows), 0, context};
        double         more = 0;

        EXAMPLE_TRY(gpt_stages_forward(&p->stages, &pass));
        if (p->stages.has_last) {
            EXAMPLE_TRY(gpt_ends_loss(&p->stages.division, &p->stages.head, pass.batch, 1, &more));
        }
        *loss += more;
    }
    return sum_losses(p, loss);
}

/* The whole row, on all ranks, from the parts that the last stage's ranks have. */
static fsdp_status gather_row(gpt_parallel *p, size_t row, real *logits)
{
    const size_t words = gpt_division_words(&p->stages.division);

    if (p->stages.has_last) {
        EXAMPLE_TRY(fsdp_allgather(p->mesh.tp, p->stages.head.logits + row * words, logits, words, FSDP_F32));
    }
    return fsdp_broadcast(p->mesh.pp, logits, GPT_VOCABULARY, FSDP_F32, p->stages.last_rank);
}

/* What is behind the text does not matter: attention is causal. */
fsdp_status gpt_parallel_logits(gpt_parallel *p, const unsigned char *text, size_t length, real *logits)
{
    const size_t   context = p->options->config.context;
    const gpt_pass pass    = {p->windows, context + 1, 1, 0, context};

    memset(p->windows, 0, context + 1);
    memcpy(p->windows, text, length);
    EXAMPLE_TRY(gpt_stages_forward(&p->stages, &pass));
    return gather_row(p, length - 1, logits);
}
