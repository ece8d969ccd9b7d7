#include "gpt_report.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR_COLUMNS  30
#define BAR_INTERVAL 0.2 /* SECONDS between two drawings */

void gpt_report_open(gpt_report *report, const fsdp_context *ctx, const gpt_options *options)
{
    memset(report, 0, sizeof *report);
    report->speaks  = fsdp_rank(ctx) == 0;
    report->options = options;
    report->bar     = report->speaks && (options->progress == GPT_PROGRESS_ON ||
                                     (options->progress == GPT_PROGRESS_AUTO && isatty(STDERR_FILENO)));
}

void gpt_report_header(const gpt_report *report, const fsdp_context *ctx, const gpt_data *data, const gpt_node *node,
                       size_t blas_threads, size_t activation_bytes)
{
    const gpt_options *o = report->options;

    if (!report->speaks) {
        return;
    }
    printf("model       %zu parameters: %zu layers, %zu heads, width %zu, context %zu bytes\n",
           gpt_parameters(&o->config), o->config.layers, o->config.heads, o->config.width, o->config.context);
    printf("ranks       %d, %s, f32; on this node %d ranks on %d cores", fsdp_size(ctx),
           fsdp_strategy_name(o->strategy), node->ranks, node->cores);
    if (blas_threads) {
        printf(", %zu BLAS thread%s each", blas_threads, blas_threads > 1 ? "s" : "");
    }
    printf("\ndata        %s: %zu bytes to train on, %zu to validate on\n", data->name, data->train,
           data->bytes - data->train);
    printf("training    %zu steps of %zu x %zu bytes, %.2f epochs; learning rate %g to %g, warm-up %zu, seed %zu\n",
           o->steps, o->batch, o->config.context,
           (double)o->steps * (double)o->batch * (double)o->config.context / (double)data->train, o->lr, o->min_lr,
           o->warmup, o->seed);
    printf("activations %zu bytes per rank, beside the budget\n", activation_bytes);
}

void gpt_report_budget(const gpt_report *report, const fsdp_budget *budget)
{
    int kind;

    if (!report->speaks) {
        return;
    }
    printf("\nbudget per rank, in bytes\n");
    for (kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        printf("  %-26s %14zu\n", fsdp_memory_name((fsdp_memory_kind)kind), budget->bytes[kind]);
    }
    printf("  %-26s %14zu\n", "total", budget->total);
    printf("  %-26s %14zu  %zu per parameter\n\n", "unsharded state", budget->unsharded,
           budget->unsharded / budget->parameters);
    fflush(stdout);
}

void gpt_report_start(gpt_report *report)
{
    report->started = gpt_now();
}

void gpt_report_clear(const gpt_report *report)
{
    if (!report->bar) {
        return;
    }
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
}

void gpt_report_progress(gpt_report *report, size_t step)
{
    const size_t steps = report->options->steps, full = BAR_COLUMNS * step / steps;
    const double now = report->bar ? gpt_now() : 0;
    unsigned     left;
    char         bar[BAR_COLUMNS + 1];

    if (!report->bar || now - report->drawn < BAR_INTERVAL) {
        return;
    }
    report->drawn = now;
    left          = (unsigned)((now - report->started) / (double)step * (double)(steps - step) + 0.5);
    memset(bar, '.', BAR_COLUMNS);
    memset(bar, '#', full);
    bar[BAR_COLUMNS] = '\0';
    fprintf(stderr, "\r[%s] step %zu of %zu, %u:%02u left\033[K", bar, step, steps, left / 60, left % 60);
    fflush(stderr);
}

void gpt_report_interval(const gpt_report *report, const gpt_interval *i)
{
    if (!report->speaks) {
        return;
    }
    gpt_report_clear(report);
    printf("step %6zu | loss %.4f | gradient norm %6.3f | %8.0f tokens/s | %4.1f%% waiting | %5.1f s\n", i->step,
           i->loss, i->norm, (double)i->tokens / i->seconds, 100 * i->wait_seconds / i->seconds,
           gpt_now() - report->started);
    fflush(stdout);
}

void gpt_report_exact_loss(const gpt_report *report, size_t step, double loss)
{
    if (!report->speaks) {
        return;
    }
    gpt_report_clear(report);
    printf("exact step %zu loss %a = %.12f\n", step, loss, loss);
}

void gpt_report_exact_hash(const gpt_report *report, uint64_t hash)
{
    if (report->speaks) {
        printf("exact parameters %016llx\n", (unsigned long long)hash);
    }
}

void gpt_report_validation(const gpt_report *report, double loss, size_t bytes)
{
    if (!report->speaks) {
        return;
    }
    gpt_report_clear(report);
    printf("\nvalidation loss %.4f nats per byte, over %zu bytes; %.1f s since the first step\n", loss, bytes,
           gpt_now() - report->started);
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
    if (!report->speaks) {
        return;
    }
    printf("memory held %zu bytes, at most %zu; budget %zu (%+.2f%%)\n", memory->current_total, memory->peak_total,
           budget->total, 100 * ((double)memory->peak_total / (double)budget->total - 1));
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
