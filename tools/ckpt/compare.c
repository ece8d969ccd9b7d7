/*
 * fsdp-ckpt compare: tensor by tensor, over the names of both. A difference of a value from NaN is infinite; two NaN do not
 * differ, though their bits may. Relative differences are over the larger magnitude of the two.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "tools/ckpt/ckpt.h"

typedef struct difference {
    bool     bitwise; /* the same type, shape and bits */
    bool     has_values;
    uint64_t elements; /* that differ in value */
    double   absolute, relative;
} difference;

typedef struct comparison {
    const ckpt_options *options;
    ckpt_source         a, b;
    ckpt_piece          piece_a, piece_b;
    fsdpi_json_writer   writer;
    uint64_t            tensors, same, differ;
} comparison;

static void add_difference(difference *d, const double *a, const double *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i]))) {
            continue;
        }
        const double size     = fmax(fabs(a[i]), fabs(b[i]));
        const double absolute = isfinite(a[i]) && isfinite(b[i]) ? fabs(a[i] - b[i]) : (double)INFINITY;
        const double relative = isinf(absolute) ? absolute : absolute / size;

        d->elements++;
        d->absolute = absolute > d->absolute ? absolute : d->absolute;
        d->relative = relative > d->relative ? relative : d->relative;
    }
}

static bool same_shape(const fsdpi_tensor_info *a, const fsdpi_tensor_info *b)
{
    return a->n_dims == b->n_dims && (a->n_dims == 0 || memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0);
}

static fsdp_status compare_values(comparison *c, const fsdpi_placed_tensor *a, const fsdpi_placed_tensor *b,
                                  difference *d, fsdpi_problem *problem)
{
    const fsdpi_stored type_a = a->info->dtype, type_b = b->info->dtype;

    *d = (difference){.bitwise = type_a == type_b, .has_values = ckpt_has_values(type_a) && ckpt_has_values(type_b)};
    for (uint64_t first = 0, count; (count = ckpt_piece_count(a->info, first)) > 0; first += count) {
        const size_t n = (size_t)count;

        FSDP_TRY(ckpt_read_raw(a, first, n, c->piece_a.raw, problem));
        FSDP_TRY(ckpt_read_raw(b, first, n, c->piece_b.raw, problem));
        if (type_a == type_b && memcmp(c->piece_a.raw, c->piece_b.raw, n * fsdpi_stored_bits(type_a) / 8) == 0) {
            continue;
        }
        d->bitwise = false;
        if (d->has_values) {
            ckpt_to_values(type_a, c->piece_a.raw, n, c->piece_a.values);
            ckpt_to_values(type_b, c->piece_b.raw, n, c->piece_b.values);
            add_difference(d, c->piece_a.values, c->piece_b.values, n);
        }
    }
    return FSDP_OK;
}

/* ---- Reporting ---- */

/* What is the matter with one tensor, in a few words; `values` may be NULL. */
static void report(comparison *c, const char *stem, const char *name, const char *what, const difference *values)
{
    fsdpi_problem printable;

    c->differ++;
    if (c->options->json) {
        fsdpi_json_begin_object(&c->writer, NULL, true);
        if (stem != NULL) {
            fsdpi_json_put_string(&c->writer, "part", stem);
        }
        fsdpi_json_put_string(&c->writer, "name", name);
        fsdpi_json_put_string(&c->writer, "difference", what);
        if (values != NULL && values->has_values) {
            fsdpi_json_put_u64(&c->writer, "elements", values->elements);
            fsdpi_json_put_double(&c->writer, "max_absolute", values->absolute);
            fsdpi_json_put_double(&c->writer, "max_relative", values->relative);
        }
        fsdpi_json_end_object(&c->writer);
        return;
    }
    (void)fsdpi_problem_set(&printable, FSDP_OK, "%s%s%s", stem != NULL ? stem : "", stem != NULL ? ": " : "", name);
    (void)printf("%s: %s", printable.text, what);
    if (values != NULL && values->has_values) {
        (void)printf("; %" PRIu64 " elements, at most %.6g, relative %.6g", values->elements, values->absolute,
                     values->relative);
    }
    (void)putchar('\n');
}

static fsdp_status compare_tensor(comparison *c, const char *stem, const fsdpi_placed_tensor *a,
                                  const fsdpi_placed_tensor *b, fsdpi_problem *problem)
{
    char       what[600], shape_a[256], shape_b[256];
    difference d;

    if (!same_shape(a->info, b->info)) {
        (void)snprintf(what, sizeof what, "shapes differ, %s and %s", ckpt_shape_text(a->info, shape_a, sizeof shape_a),
                       ckpt_shape_text(b->info, shape_b, sizeof shape_b));
        report(c, stem, a->info->name, what, NULL);
        return FSDP_OK;
    }
    FSDP_TRY(compare_values(c, a, b, &d, problem));
    c->same += d.bitwise;
    if (d.bitwise) {
        return FSDP_OK;
    }
    if (a->info->dtype != b->info->dtype) {
        (void)snprintf(what, sizeof what, "types differ, %s and %s", fsdpi_stored_name(a->info->dtype),
                       fsdpi_stored_name(b->info->dtype));
        report(c, stem, a->info->name, what, &d);
        return FSDP_OK;
    }
    report(c, stem, a->info->name, d.has_values && d.elements == 0 ? "bits differ, values do not" : "values differ",
           &d);
    return FSDP_OK;
}

static fsdp_status compare_parts(comparison *c, const char *stem, const fsdpi_tensor_files *a,
                                 const fsdpi_tensor_files *b, fsdpi_problem *problem)
{
    for (size_t i = 0; i < a->n_tensors; i++) {
        const fsdpi_placed_tensor *const tensor = &a->tensors[a->by_name[i]];
        const fsdpi_placed_tensor *const other  = fsdpi_tensor_files_find(b, tensor->info->name);

        c->tensors++;
        if (other == NULL) {
            report(c, stem, tensor->info->name, "only in the first", NULL);
            continue;
        }
        FSDP_TRY(compare_tensor(c, stem, tensor, other, problem));
    }
    for (size_t i = 0; i < b->n_tensors; i++) {
        const char *const name = b->tensors[b->by_name[i]].info->name;

        if (fsdpi_tensor_files_find(a, name) == NULL) {
            c->tensors++;
            report(c, stem, name, "only in the second", NULL);
        }
    }
    return FSDP_OK;
}

/* Every part of one and of the other, whether both have it or not. */
static fsdp_status compare_checkpoints(comparison *c, fsdpi_problem *problem)
{
    static const fsdpi_tensor_files none = {.n_files = 0};

    for (size_t i = 0; i < c->a.n_parts; i++) {
        const ckpt_part *const part  = &c->a.parts[i];
        const size_t           other = ckpt_part_find(&c->b, part->stem);

        FSDP_TRY(compare_parts(c, part->stem, &part->files, other < c->b.n_parts ? &c->b.parts[other].files : &none,
                               problem));
    }
    for (size_t i = 0; i < c->b.n_parts; i++) {
        const ckpt_part *const part = &c->b.parts[i];

        if (ckpt_part_find(&c->a, part->stem) == c->a.n_parts) {
            FSDP_TRY(compare_parts(c, part->stem, &none, &part->files, problem));
        }
    }
    return FSDP_OK;
}

/* Optimizers only where both are checkpoints: else it is models that are compared. */
static fsdp_status compare_all(comparison *c, fsdpi_problem *problem)
{
    if (c->a.is_folder && c->b.is_folder) {
        return compare_checkpoints(c, problem);
    }
    return compare_parts(c, c->a.is_folder || c->b.is_folder ? FSDPI_MODEL_STEM : NULL, &c->a.parts[0].files,
                         &c->b.parts[0].files, problem);
}

static fsdp_status open_and_compare(comparison *c, fsdpi_problem *problem)
{
    FSDP_TRY(ckpt_piece_make(&c->piece_a, problem));
    FSDP_TRY(ckpt_piece_make(&c->piece_b, problem));
    FSDP_TRY(ckpt_source_open(c->options->paths[0], &c->a, problem));
    FSDP_TRY(ckpt_source_open(c->options->paths[1], &c->b, problem));
    return compare_all(c, problem);
}

int ckpt_compare(const ckpt_options *options)
{
    comparison    c = {.options = options};
    fsdpi_problem problem;
    fsdp_status   status;

    fsdpi_json_writer_init(&c.writer, 2);
    fsdpi_json_begin_object(&c.writer, NULL, false);
    fsdpi_json_begin_array(&c.writer, "differences", false);
    status = open_and_compare(&c, &problem);
    ckpt_piece_free(&c.piece_a);
    ckpt_piece_free(&c.piece_b);
    ckpt_source_close(&c.a);
    ckpt_source_close(&c.b);
    fsdpi_json_end_array(&c.writer);
    fsdpi_json_put_u64(&c.writer, "tensors", c.tensors);
    fsdpi_json_put_u64(&c.writer, "bitwise_equal", c.same);
    fsdpi_json_end_object(&c.writer);

    if (status == FSDP_OK && options->json) {
        return ckpt_print_json(&c.writer, c.differ == 0 ? CKPT_GOOD : CKPT_DIFFERENT);
    }
    free(c.writer.text);
    if (status != FSDP_OK) {
        return ckpt_fail(&problem);
    }
    (void)printf("%" PRIu64 " tensors: %" PRIu64 " bitwise equal, %" PRIu64 " differ\n", c.tensors, c.same, c.differ);
    return c.differ == 0 ? CKPT_GOOD : CKPT_DIFFERENT;
}
