#include "gpt_report.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "mpi-examples/common/example_clock.h"
#include "mpi-examples/common/example_report.h"

void gpt_report_open(gpt_report *report, const fsdp_context *ctx, const gpt_options *options)
{
    report->speaks  = fsdp_rank(ctx) == 0;
    report->options = options;
    example_bar_open(&report->bar, ctx, (example_progress)options->progress);
}

static void print_ranks(const gpt_options *o, fsdp_strategy strategy, int ranks)
{
    printf("ranks       %d, %s, %s", ranks, fsdp_strategy_name(strategy), fsdp_dtype_name(o->dtype));
    if (o->param_dtype != o->dtype || o->reduce_dtype != o->dtype) {
        printf(", parameters in %s, gradients in %s", fsdp_dtype_name(o->param_dtype),
               fsdp_dtype_name(o->reduce_dtype));
    }
    if (o->quantized_params) {
        printf(", parameters gathered as int8");
    }
    if (o->optimizer == GPT_OPTIMIZER_MUON) {
        printf(", Muon for matrices");
    }
    if (o->hook != GPT_HOOK_NONE) {
        printf(", hook %s", gpt_hook_names[o->hook]);
    }
}

/* Where ranks cannot share a micro-batch equally: "8 ranks of 10, 48 of 9". */
static void print_shares(const gpt_options *o, size_t ranks)
{
    const size_t micro = o->batch / o->accumulate, more = micro % ranks;

    if (more > 0 && !gpt_options_mesh(o)) {
        printf("shares      batch %zu: %zu rank%s of %zu, %zu of %zu\n", micro, more, more == 1 ? "" : "s",
               micro / ranks + 1, ranks - more, micro / ranks);
    }
}

static void print_training(const gpt_options *o, size_t bytes)
{
    const double epochs = (double)o->steps * (double)o->batch * (double)o->config.context / (double)bytes;

    printf("training    %zu steps of %zu x %zu bytes, %.2f epochs; learning rate %g to %g, warm-up %zu, seed %zu\n",
           o->steps, o->batch, o->config.context, epochs, o->lr, o->min_lr, o->warmup, o->seed);
    if (o->accumulate > 1) {
        printf("accumulate  %zu micro-batches per step, gradients reduced %s\n", o->accumulate,
               o->accumulate_sync ? "after each" : "after the last");
    }
}

/* What a layer keeps of a micro-batch, by formula, and what it would without sequence parallelism and recomputation. */
static void print_kept(const gpt_division *d, size_t batch)
{
    gpt_activation_shape shape = gpt_division_shape(d, batch);
    const size_t         kept  = gpt_activations_sum(gpt_activation_list, gpt_activation_list_length, &shape);

    shape.sequence_parallel = 0;
    shape.without_scores    = 0;
    shape.input_only        = 0;
    printf("kept        %zu bytes per layer and micro-batch, %.2f%% of what it is without --recompute and "
           "--sequence-parallel\n",
           kept,
           100 * (double)kept / (double)gpt_activations_sum(gpt_activation_list, gpt_activation_list_length, &shape));
}

/* Axes, pipeline, and what each rank of it holds: "1f1b: 4 micro-batches of 3, 2 stages of 4 layers, held at once 2 1". */
static void print_mesh(const gpt_parallel *p)
{
    const gpt_options *o = p->options;
    size_t             r;

    printf("pipeline    %s: %zu micro-batch%s of %zu, %d stage%s of %d layer%s; held at once by rank:", o->schedule,
           o->micro, o->micro == 1 ? "" : "es", p->stages.batch, p->stages.n, p->stages.n == 1 ? "" : "s",
           p->stages.layers_each, p->stages.layers_each == 1 ? "" : "s");
    for (r = 0; r < o->pp; r++) {
        printf(" %" PRId64, p->by_rank[r * GPT_PER_RANK + GPT_HELD_AT_ONCE]);
    }
    printf("\nrecompute   %s%s\n", gpt_recompute_names[o->recompute],
           p->stages.division.sequence_parallel ? ", sequence parallel" : "");
    print_kept(&p->stages.division, p->stages.batch);
    printf("activations in bytes, with what passes work in, beside the budget; by rank of a pipeline:");
    for (r = 0; r < o->pp; r++) {
        printf(" %" PRId64, p->by_rank[r * GPT_PER_RANK + GPT_ACTIVATION_BYTES]);
    }
    putchar('\n');
    if (o->axis_strategies) {
        printf("axes        %s: %s, one copy on %d rank%s\n", o->axis_strategies, fsdp_strategy_name(p->strategy),
               p->group_size, p->group_size == 1 ? "" : "s");
    }
    (void)fsdp_mesh_print(p->mesh.mesh, stdout);
}

void gpt_report_header(const gpt_report *report, const gpt_trainer *trainer, const gpt_data *data,
                       const example_node *node, size_t blas_threads)
{
    const gpt_options *o      = report->options;
    const size_t       copies = gpt_trainer_copy_bytes(trainer);

    if (!report->speaks) {
        return;
    }
    printf("model       %zu parameters: %zu layer%s, %zu head%s, width %zu, context %zu bytes\n",
           gpt_parameters(&o->config), o->config.layers, o->config.layers == 1 ? "" : "s", o->config.heads,
           o->config.heads == 1 ? "" : "s", o->config.width, o->config.context);
    print_ranks(o, trainer->parallel ? trainer->parallel->strategy : o->strategy, fsdp_size(trainer->ctx));
    example_print_node(node, blas_threads);
    printf("data        %s: %zu bytes to train on, %zu to validate on\n", data->name, data->train,
           data->bytes - data->train);
    print_training(o, data->train);
    print_shares(o, (size_t)fsdp_size(trainer->ctx));
    if (trainer->parallel) {
        print_mesh(trainer->parallel);
    } else {
        printf("activations %zu bytes per rank, beside the budget\n", gpt_trainer_activation_bytes(trainer));
    }
    if (copies) {
        printf("f32 copies  %zu bytes per rank, of the views in 16 bits, beside the budget\n", copies);
    }
}

void gpt_report_budget(const gpt_report *report, const gpt_trainer *trainer)
{
    const fsdp_budget *alone = trainer->budget_alone.total > 0 ? &trainer->budget_alone : NULL;

    if (report->speaks) {
        example_print_budget(&trainer->budget, fsdp_size(trainer->ctx), alone);
    }
}

void gpt_report_interval(const gpt_report *report, const gpt_interval *i)
{
    if (!report->speaks) {
        return;
    }
    example_bar_clear(&report->bar);
    printf("step %6zu | loss %.4f | gradient norm %6.3f | %8.0f tokens/s | %4.1f%% waiting | ", i->step, i->loss,
           i->norm, (double)i->tokens / i->seconds, 100 * i->wait_seconds / i->seconds);
    printf("CPU: %.1f%% communication, %.1f%% system | %5.1f s", 100 * i->communication_seconds / i->seconds,
           100 * i->system_seconds / i->seconds, example_now() - report->bar.started);
    if (i->scale > 0) {
        printf(" | loss times %g, %zu skipped", i->scale, i->skipped);
    }
    putchar('\n');
    fflush(stdout);
}

void gpt_report_exact_loss(const gpt_report *report, size_t step, double loss)
{
    if (!report->speaks) {
        return;
    }
    example_bar_clear(&report->bar);
    example_print_exact_loss(step, loss);
}

void gpt_report_exact_hash(const gpt_report *report, uint64_t hash)
{
    if (report->speaks) {
        example_print_exact_hash(hash);
    }
}

void gpt_report_traffic(const gpt_report *report, const gpt_traffic *traffic)
{
    const gpt_options *o     = report->options;
    const int64_t      steps = o->steps > o->hook_start ? (int64_t)(o->steps - o->hook_start) : 0;

    if (!report->speaks || o->hook == GPT_HOOK_NONE || !steps) {
        return;
    }
    printf("hook %s: %" PRId64 " bytes on the wire per step over all ranks", gpt_hook_names[o->hook],
           traffic->sent / steps);
    if (traffic->sent > 0) {
        printf(", 1/%.2f of the %" PRId64 " uncompressed", (double)traffic->uncompressed / (double)traffic->sent,
               traffic->uncompressed / steps);
    }
    if (o->hook_start) {
        printf(", from step %zu on", o->hook_start + 1);
    }
    putchar('\n');
}

void gpt_report_validation(const gpt_report *report, double loss, size_t bytes)
{
    if (!report->speaks) {
        return;
    }
    example_bar_clear(&report->bar);
    printf("\nvalidation loss %.4f nats per byte, over %zu bytes; %.1f s since the first step\n", loss, bytes,
           example_now() - report->bar.started);
    if (report->options->exact) {
        printf("exact validation loss %a = %.12f\n", loss, loss);
    }
    fflush(stdout);
}

void gpt_report_sample(const gpt_report *report, const unsigned char *text, size_t bytes)
{
    size_t i;

    if (!report->speaks) {
        return;
    }
    printf("\nwritten by the model:\n");
    for (i = 0; i < bytes; i++) {
        putchar(isprint(text[i]) || text[i] == '\n' || text[i] == '\t' || text[i] >= 0x80 ? text[i] : '?');
    }
    printf("\n\n");
}

void gpt_report_memory(const gpt_report *report, const fsdp_memory *memory, const fsdp_budget *budget)
{
    if (report->speaks) {
        example_print_memory(memory, budget);
    }
}

void gpt_report_kept_budgets(const gpt_report *report, size_t kept, int ranks)
{
    if (report->speaks) {
        printf("budgets to the byte on %zu of %d ranks\n", kept, ranks);
    }
}

void gpt_report_profile(const gpt_report *report, const gpt_profile *profile, size_t steps)
{
    double total = 0;
    int    part;

    if (!report->speaks) {
        return;
    }
    for (part = 0; part < GPT_N_PARTS; part++) {
        total += profile->seconds[part];
    }
    printf("\nprofile of rank 0: %zu steps of %.3f ms\n", steps, 1e3 * total / (double)steps);
    for (part = 0; part < GPT_N_PARTS; part++) {
        printf("  %-20s %6.2f%%\n", gpt_part_name((gpt_part)part), 100 * profile->seconds[part] / total);
    }
    putchar('\n');
}
