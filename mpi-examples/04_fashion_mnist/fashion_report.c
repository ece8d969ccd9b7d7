#include "fashion_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "mpi-examples/common/example_report.h"

void fashion_report_open(fashion_report *report, const fsdp_context *ctx, const fashion_options *options)
{
    report->speaks  = fsdp_rank(ctx) == 0;
    report->options = options;
    example_bar_open(&report->bar, ctx, (example_progress)options->progress);
}

void fashion_report_header(const fashion_report *report, const fsdp_context *ctx, const fashion_data *data,
                           const example_node *node, size_t blas_threads)
{
    const fashion_options *o = report->options;

    if (!report->speaks) {
        return;
    }
    printf("model       %zu parameters: two convolutions with batch normalization, one linear layer\n",
           fashion_parameters());
    printf("ranks       %d, %s, %s", fsdp_size(ctx), fsdp_strategy_name(o->strategy), fsdp_dtype_name(o->dtype));
    example_print_node(node, blas_threads);
    printf("data        %s: %zu images to train on, %zu to test on\n", o->data.folder, data->train.count,
           data->test.count);
    printf("training    %zu epochs of %zu steps of %zu x %zu images; learning rate %g, warm-up %zu, seed %zu\n",
           o->epochs, fashion_steps_per_epoch(o, data), o->accumulate, o->batch, o->lr, o->warmup, o->seed);
    printf("activations %zu bytes per rank, beside the budget\n",
           fashion_activations_bytes(fashion_images_per_rank(ctx, o)));
}

void fashion_report_budget(const fashion_report *report, const fsdp_budget *budget)
{
    if (report->speaks) {
        example_print_budget(budget, 1, NULL);
    }
}

void fashion_report_epoch(const fashion_report *report, const fashion_epoch *e)
{
    if (!report->speaks) {
        return;
    }
    example_bar_clear(&report->bar);
    printf("epoch %2zu | loss %.4f | test accuracy %5.2f%% | %6.0f images/s | %4.1f%% waiting | %5.1f s\n", e->epoch,
           e->loss, 100 * e->accuracy, (double)e->images / e->train_seconds, 100 * e->wait_seconds / e->train_seconds,
           e->seconds);
    (void)fflush(stdout);
}

void fashion_report_exact_loss(const fashion_report *report, size_t step, double loss)
{
    if (!report->speaks) {
        return;
    }
    example_bar_clear(&report->bar);
    example_print_exact_loss(step, loss);
}

void fashion_report_exact_hash(const fashion_report *report, uint64_t hash)
{
    if (report->speaks) {
        example_print_exact_hash(hash);
    }
}

static void print_confusion_row(const fashion_confusion *confusion, size_t row)
{
    int64_t all = 0;
    size_t  column;

    printf("%-9s", fashion_class_name(row));
    for (column = 0; column < FASHION_CLASSES; column++) {
        all += confusion->counts[row][column];
        printf(" %8" PRId64, confusion->counts[row][column]);
    }
    if (all > 0) {
        printf("  %5.1f%%", 100 * (double)confusion->counts[row][row] / (double)all);
    }
    putchar('\n');
}

void fashion_report_confusion(const fashion_report *report, const fashion_confusion *confusion)
{
    size_t c;

    if (!report->speaks) {
        return;
    }
    printf("\nwhat each row was taken for\n%-9s", "");
    for (c = 0; c < FASHION_CLASSES; c++) {
        printf(" %8s", fashion_class_name(c));
    }
    printf("   found\n");
    for (c = 0; c < FASHION_CLASSES; c++) {
        print_confusion_row(confusion, c);
    }
    printf("\ntest accuracy %.2f%%\n", 100 * fashion_accuracy(confusion));
}

void fashion_report_memory(const fashion_report *report, const fsdp_memory *memory, const fsdp_budget *budget)
{
    if (report->speaks) {
        example_print_memory(memory, budget);
    }
}
