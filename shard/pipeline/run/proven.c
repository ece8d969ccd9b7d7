#define _POSIX_C_SOURCE 200809L /* fmemopen(), open_memstream() */

#include "shard/pipeline/run/proven.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"
#include "shard/pipeline/generate.h"
#include "shard/pipeline/grid.h"
#include "shard/pipeline/lower.h"
#include "shard/pipeline/schedule_text.h"
#include "shard/pipeline/verify.h"

/* ---- getting it ------------------------------------------------------------------------------------------------------ */

static bool find_kind(const char *name, fsdpi_pipeline_kind *kind)
{
    for (int k = 0; k < FSDPI_N_PIPELINE_KINDS; k++) {
        if (strcmp(name, fsdpi_pipeline_kind_text((fsdpi_pipeline_kind)k)) == 0) {
            *kind = (fsdpi_pipeline_kind)k;
            return true;
        }
    }
    return false;
}

static fsdp_status by_name(fsdpi_proven *source, fsdp_context *ctx, const fsdp_pipeline_options *o,
                           fsdpi_schedule *given)
{
    fsdpi_pipeline_kind kind;

    if (o->schedule == NULL || !find_kind(o->schedule, &kind)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "fsdp_pipeline_create: there is no schedule '%.40s'; use gpipe, 1f1b, interleaved or "
            "zb-h1, or give one as text or in a file",
            o->schedule != NULL ? o->schedule : "");
    }
    return fsdpi_generate(given, kind, fsdp_size(ctx), o->stages_per_rank, o->micros, &source->flaw)
               ? FSDP_OK
               : fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_pipeline_create: %s", source->flaw.text);
}

/* `name`: of the file, or "the text". */
static fsdp_status read_from(fsdpi_proven *source, fsdp_context *ctx, const char *name, FILE *file,
                             fsdpi_schedule *given)
{
    const fsdpi_flaw *flaw = &source->flaw;

    if (fsdpi_schedule_read(given, file, &source->flaw)) {
        return FSDP_OK;
    }
    return flaw->rank >= 0 ? fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_pipeline_create: %s, line %d, action %zu: %s",
                                                 name, flaw->rank + 1, flaw->at + 1, flaw->text)
                           : fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_pipeline_create: %s: %s", name, flaw->text);
}

static fsdp_status by_text(fsdpi_proven *source, fsdp_context *ctx, const fsdp_pipeline_options *o,
                           fsdpi_schedule *given)
{
    const bool  in_file = o->file != NULL;
    const char *name    = in_file ? o->file : "the text";
    FILE       *file    = in_file              ? fopen(o->file, "r")
                          : o->text[0] != '\0' ? fmemopen((void *)(uintptr_t)o->text, strlen(o->text), "r")
                                               : NULL;

    if (file == NULL) {
        return in_file
                   ? fsdpi_fail_together(ctx, FSDP_ERR_IO, "fsdp_pipeline_create: %s cannot be opened: %s", o->file,
                                         strerror(errno))
                   : fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_pipeline_create: the text of the schedule is empty");
    }
    const fsdp_status status = read_from(source, ctx, name, file, given);
    (void)fclose(file);
    FSDP_TRY(status);
    if (given->ranks != fsdp_size(ctx)) {
        return fsdpi_fail_together(
            ctx, FSDP_ERR_ARG,
            "fsdp_pipeline_create: %s has lines for %d ranks, and the pipeline has %d; a line is a "
            "rank",
            name, given->ranks, fsdp_size(ctx));
    }
    if (o->micros != 0 && o->micros != given->micros) {
        return fsdpi_fail_together(ctx, FSDP_ERR_ARG,
                                   "fsdp_pipeline_create: %s has %d micro-batches, and `micros` is %d; set that to 0",
                                   name, given->micros, o->micros);
    }
    return FSDP_OK;
}

/* ---- proving it ------------------------------------------------------------------------------------------------------ */

/* One with messages stays as it is. Takes `given` over. */
static bool make_lowered(fsdpi_proven *source, fsdpi_schedule *given)
{
    fsdpi_passes passes;

    if (fsdpi_schedule_is_lowered(given)) {
        source->schedule = *given;
        *given           = (fsdpi_schedule){0};
        return true;
    }
    bool good = fsdpi_passes_open(&passes, given, &source->flaw);
    if (good) {
        good = fsdpi_verify_passes(&passes, &source->flaw) && fsdpi_lower(&passes, &source->schedule, &source->flaw);
        fsdpi_passes_close(&passes);
    }
    if (!good) { /* it is what the place of a flaw is in */
        fsdpi_schedule_close(&source->schedule);
        source->schedule = *given;
        *given           = (fsdpi_schedule){0};
    }
    return good;
}

static bool prove(fsdpi_proven *source, const fsdp_pipeline_options *o, fsdpi_schedule *given)
{
    const fsdpi_pace pace = {
        .forward = 1, .backward_input = 1, .backward_weight = 1, .buffers = o->buffers, .most_held = o->most_held};

    return make_lowered(source, given) && fsdpi_passes_open(&source->passes, &source->schedule, &source->flaw) &&
           fsdpi_verify_passes(&source->passes, &source->flaw) && fsdpi_verify_order(&source->passes, &source->flaw) &&
           fsdpi_simulate(&source->passes, &pace, &source->run, &source->flaw);
}

fsdp_status fsdpi_proven_open(fsdpi_proven *source, fsdp_context *ctx, const fsdp_pipeline_options *options)
{
    fsdpi_schedule given = {0};

    *source            = (fsdpi_proven){.flaw = {.rank = -1}};
    fsdp_status status = options->file != NULL || options->text != NULL ? by_text(source, ctx, options, &given)
                                                                        : by_name(source, ctx, options, &given);
    if (status == FSDP_OK && !prove(source, options, &given)) {
        status = fsdpi_fail_together(ctx, FSDP_ERR_ARG, "fsdp_pipeline_create: %s", source->flaw.text);
    }
    fsdpi_schedule_close(&given);
    return status;
}

void fsdpi_proven_close(fsdpi_proven *source)
{
    fsdpi_simulation_close(&source->run);
    fsdpi_passes_close(&source->passes);
    fsdpi_schedule_close(&source->schedule);
}

/* ---- saying it ------------------------------------------------------------------------------------------------------- */

static void log_lines(const fsdp_context *ctx, const char *text)
{
    for (size_t n = strcspn(text, "\n"); text[n] == '\n'; n = strcspn(text, "\n")) {
        fsdpi_log(ctx, FSDP_LOG_ERROR, "%.*s", (int)n, text);
        text += n + 1;
    }
}

void fsdpi_proven_show_flaw(const fsdpi_proven *source, fsdp_context *ctx, fsdp_status status)
{
    char  *grid  = NULL;
    size_t bytes = 0;

    if (source->flaw.rank < 0 || source->schedule.rows == NULL) {
        return;
    }
    FILE *file = open_memstream(&grid, &bytes);
    if (file == NULL) {
        return;
    }
    fsdpi_grid_print_flaw(&source->schedule, &source->run, &source->flaw, file);
    if (fclose(file) == 0) {
        (void)fsdpi_record(ctx, status, "fsdp_pipeline_create: %s\n%s", source->flaw.text, grid);
        if (fsdp_rank(ctx) == 0) {
            log_lines(ctx, grid);
        }
    }
    free(grid);
}

uint64_t fsdpi_proven_hash(const fsdpi_proven *source)
{
    uint64_t hash = FSDPI_HASH_START;

    for (int r = 0; r < source->schedule.ranks; r++) {
        for (size_t i = 0; i < source->schedule.rows[r].n; i++) {
            const fsdpi_action *a = &source->schedule.rows[r].list[i];

            hash = fsdpi_hash_word(hash, ((uint64_t)a->work << 56) | ((uint64_t)a->stage << 28) | (uint64_t)a->micro);
        }
        hash = fsdpi_hash_word(hash, UINT64_MAX);
    }
    return hash;
}
