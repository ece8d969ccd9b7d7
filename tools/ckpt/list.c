/* fsdp-ckpt list: tensors, and what their values are like. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/plural.h"
#include "tools/ckpt/ckpt.h"

/* Of the finite values; sums in f64, in the order of the tensor. */
typedef struct statistics {
    uint64_t finite, other;
    double   min, max, sum, squares;
} statistics;

typedef struct listing {
    const ckpt_options *options;
    ckpt_piece          piece;
    fsdpi_json_writer   writer;
    size_t              name_width;
    uint64_t            tensors, elements, bytes;
} listing;

static void add_values(statistics *s, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            s->other++;
            continue;
        }
        s->min = s->finite == 0 || values[i] < s->min ? values[i] : s->min;
        s->max = s->finite == 0 || values[i] > s->max ? values[i] : s->max;
        s->sum += values[i];
        s->squares += values[i] * values[i];
        s->finite++;
    }
}

static fsdp_status take_statistics(listing *list, const fsdpi_placed_tensor *tensor, statistics *s,
                                   fsdpi_problem *problem)
{
    *s = (statistics){0};
    for (uint64_t first = 0, count; (count = ckpt_piece_count(tensor->info, first)) > 0; first += count) {
        FSDP_TRY(ckpt_read_raw(tensor, first, (size_t)count, list->piece.raw, problem));
        ckpt_to_values(tensor->info->dtype, list->piece.raw, (size_t)count, list->piece.values);
        add_values(s, list->piece.values, (size_t)count);
    }
    return FSDP_OK;
}

static void put_statistics(fsdpi_json_writer *writer, const statistics *s)
{
    const double n = (double)s->finite;

    if (s->finite > 0) {
        fsdpi_json_put_double(writer, "min", s->min);
        fsdpi_json_put_double(writer, "max", s->max);
        fsdpi_json_put_double(writer, "mean", s->sum / n);
        fsdpi_json_put_double(writer, "rms", sqrt(s->squares / n));
    }
    fsdpi_json_put_u64(writer, "non_finite", s->other);
}

static void print_statistics(const statistics *s)
{
    const double n = (double)s->finite;

    if (s->finite > 0) {
        (void)printf("  %12.5g %12.5g %12.5g %12.5g", s->min, s->max, s->sum / n, sqrt(s->squares / n));
    } else {
        (void)printf("  %12s %12s %12s %12s", "-", "-", "-", "-");
    }
    (void)printf(" %10" PRIu64, s->other);
}

/* Names come from a file, and a terminal obeys control characters. */
static void print_name(const char *name, size_t width)
{
    fsdpi_problem printable;

    (void)fsdpi_problem_set(&printable, FSDP_OK, "%s", name);
    (void)printf("%-*s", (int)width, printable.text);
}

static void print_tensor(const listing *list, const fsdpi_tensor_info *tensor, const statistics *s)
{
    char shape[256];

    (void)fputs("  ", stdout);
    print_name(tensor->name, list->name_width);
    (void)printf("  %-7s %14" PRIu64 "  %-18s", fsdpi_stored_name(tensor->dtype), tensor->end - tensor->begin,
                 ckpt_shape_text(tensor, shape, sizeof shape));
    if (s != NULL) {
        print_statistics(s);
    }
    (void)putchar('\n');
}

static fsdp_status list_tensor(listing *list, const fsdpi_placed_tensor *tensor, fsdpi_problem *problem)
{
    const bool stats = list->options->stats && ckpt_has_values(tensor->info->dtype);
    statistics s;

    if (stats) {
        FSDP_TRY(take_statistics(list, tensor, &s, problem));
    }
    list->tensors++;
    list->elements += fsdpi_tensor_elements(tensor->info);
    list->bytes += tensor->info->end - tensor->info->begin;
    if (!list->options->json) {
        print_tensor(list, tensor->info, stats ? &s : NULL);
        return FSDP_OK;
    }
    fsdpi_json_begin_object(&list->writer, NULL, true);
    ckpt_put_tensor(&list->writer, tensor->info);
    if (stats) {
        put_statistics(&list->writer, &s);
    }
    fsdpi_json_end_object(&list->writer);
    return FSDP_OK;
}

static void begin_file(listing *list, const fsdpi_tensor_file *file)
{
    if (list->options->json) {
        fsdpi_json_begin_object(&list->writer, NULL, false);
        fsdpi_json_put_string(&list->writer, "path", file->path);
        fsdpi_json_put_u64(&list->writer, "bytes", file->header.file_bytes);
        fsdpi_json_begin_object(&list->writer, "metadata", true);
        for (size_t i = 0; i < file->header.n_metadata; i++) {
            fsdpi_json_put_string(&list->writer, file->header.metadata[i].name, file->header.metadata[i].value);
        }
        fsdpi_json_end_object(&list->writer);
        fsdpi_json_begin_array(&list->writer, "tensors", false);
        return;
    }
    list->name_width = 4;
    for (size_t i = 0; i < file->header.n_tensors; i++) {
        const size_t length = strlen(file->header.tensors[i].name);

        list->name_width = length > list->name_width && length <= 60 ? length : list->name_width;
    }
    (void)printf("%s: %zu tensor%s, %" PRIu64 " bytes\n", file->path, file->header.n_tensors,
                 fsdpi_s(file->header.n_tensors), file->header.file_bytes);
    (void)printf("  %-*s  %-7s %14s  %-18s", (int)list->name_width, "name", "dtype", "bytes", "shape");
    if (list->options->stats) {
        (void)printf("  %12s %12s %12s %12s %10s", "min", "max", "mean", "rms", "non-finite");
    }
    (void)putchar('\n');
}

static fsdp_status list_part(listing *list, const ckpt_part *part, fsdpi_problem *problem)
{
    const fsdpi_tensor_files *const files = &part->files;
    size_t                          next  = 0;

    for (size_t f = 0; f < files->n_files; f++) {
        begin_file(list, &files->files[f]);
        for (; next < files->n_tensors && files->tensors[next].file == &files->files[f]; next++) {
            FSDP_TRY(list_tensor(list, &files->tensors[next], problem));
        }
        if (list->options->json) {
            fsdpi_json_end_array(&list->writer);
            fsdpi_json_end_object(&list->writer);
        }
    }
    return FSDP_OK;
}

static void put_group_optimizers(listing *list, const fsdpi_model_state *model)
{
    if (model->n_group_optimizers == 0) {
        return;
    }
    fsdpi_json_begin_array(&list->writer, "group_optimizers", false);
    for (size_t i = 0; i < model->n_group_optimizers; i++) {
        fsdpi_json_begin_object(&list->writer, NULL, true);
        fsdpi_json_put_string(&list->writer, "group", model->group_optimizers[i].group);
        fsdpi_json_put_string(&list->writer, "optimizer", model->group_optimizers[i].kind);
        fsdpi_json_put_u64(&list->writer, "optimizer_steps", model->group_optimizers[i].steps);
        fsdpi_json_end_object(&list->writer);
    }
    fsdpi_json_end_array(&list->writer);
}

static void put_model(listing *list, const fsdpi_model_state *model)
{
    fsdpi_json_put_string(&list->writer, "strategy", model->strategy);
    if (model->has_optimizer) {
        fsdpi_json_put_string(&list->writer, "optimizer", model->optimizer);
        fsdpi_json_put_u64(&list->writer, "optimizer_steps", model->optimizer_steps);
    }
    put_group_optimizers(list, model);
}

static void put_named_models(listing *list, const fsdpi_model_state *first)
{
    if (first == NULL) {
        return;
    }
    fsdpi_json_begin_array(&list->writer, "models", false);
    for (const fsdpi_model_state *model = first; model != NULL; model = model->next) {
        fsdpi_json_begin_object(&list->writer, NULL, false);
        fsdpi_json_put_string(&list->writer, "name", model->name);
        put_model(list, model);
        fsdpi_json_end_object(&list->writer);
    }
    fsdpi_json_end_array(&list->writer);
}

static void put_state(listing *list, const fsdpi_state *state)
{
    fsdpi_json_begin_object(&list->writer, "state", false);
    fsdpi_json_put_u64(&list->writer, "step", state->program.step);
    fsdpi_json_put_u64(&list->writer, "epoch", state->program.epoch);
    fsdpi_json_put_u64(&list->writer, "sample", state->program.sample);
    fsdpi_json_put_u64(&list->writer, "seed", state->program.seed);
    fsdpi_json_put_string(&list->writer, "text", state->program.text);
    fsdpi_json_put_u64(&list->writer, "ranks", state->program.ranks);
    put_model(list, state->models);
    put_named_models(list, state->models->next);
    fsdpi_json_end_object(&list->writer);
}

/* Strategy and optimizers, to the end of the line. */
static void print_model(const fsdpi_model_state *model)
{
    (void)printf("%s%s", model->strategy[0] != 0 ? " under " : "", model->strategy);
    if (model->has_optimizer) {
        (void)printf("; %s after %" PRIu64 " step%s", model->optimizer, model->optimizer_steps,
                     fsdpi_s(model->optimizer_steps));
    }
    for (size_t i = 0; i < model->n_group_optimizers; i++) {
        const fsdpi_group_optimizer *one = &model->group_optimizers[i];

        (void)printf("; %s of %s after %" PRIu64 " step%s", one->kind, one->group, one->steps, fsdpi_s(one->steps));
    }
    (void)printf("\n");
}

/* Of a state that has been read the model without a name comes first, whether it is there or not. */
static void list_state(listing *list, const ckpt_source *source)
{
    const fsdpi_state *const state = &source->state;

    if (!source->has_state) {
        return;
    }
    if (list->options->json) {
        put_state(list, state);
        return;
    }
    (void)printf("%s: step %" PRIu64 ", epoch %" PRIu64 ", seed %" PRIu64 "; saved by %" PRIu64 " ranks", source->path,
                 state->program.step, state->program.epoch, state->program.seed, state->program.ranks);
    print_model(state->models);
    for (const fsdpi_model_state *model = state->models->next; model != NULL; model = model->next) {
        (void)printf("  model %s", model->name);
        print_model(model);
    }
}

static fsdp_status list_all(listing *list, ckpt_source *source, fsdpi_problem *problem)
{
    FSDP_TRY(ckpt_piece_make(&list->piece, problem));
    FSDP_TRY(ckpt_source_open(list->options->paths[0], source, problem));
    fsdpi_json_begin_object(&list->writer, NULL, false);
    fsdpi_json_put_string(&list->writer, "path", source->path);
    list_state(list, source);
    fsdpi_json_begin_array(&list->writer, "files", false);
    for (size_t i = 0; i < source->n_parts; i++) {
        FSDP_TRY(list_part(list, &source->parts[i], problem));
    }
    fsdpi_json_end_array(&list->writer);
    fsdpi_json_put_u64(&list->writer, "tensors", list->tensors);
    fsdpi_json_put_u64(&list->writer, "elements", list->elements);
    fsdpi_json_put_u64(&list->writer, "bytes", list->bytes);
    fsdpi_json_end_object(&list->writer);
    return FSDP_OK;
}

int ckpt_list(const ckpt_options *options)
{
    listing       list   = {.options = options};
    ckpt_source   source = {.n_parts = 0};
    fsdpi_problem problem;
    fsdp_status   status;

    fsdpi_json_writer_init(&list.writer, 2);
    status = list_all(&list, &source, &problem);
    ckpt_source_close(&source);
    ckpt_piece_free(&list.piece);
    if (status != FSDP_OK || !options->json) {
        free(list.writer.text);
    }
    if (status != FSDP_OK) {
        return ckpt_fail(&problem);
    }
    if (options->json) {
        return ckpt_print_json(&list.writer, CKPT_GOOD);
    }
    (void)printf("in all %" PRIu64 " tensors, %" PRIu64 " elements, %" PRIu64 " bytes\n", list.tensors, list.elements,
                 list.bytes);
    return CKPT_GOOD;
}
