#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shard/pipeline/generate.h"
#include "shard/pipeline/grid.h"
#include "shard/pipeline/lower.h"
#include "shard/pipeline/schedule_text.h"
#include "shard/pipeline/verify.h"
#include "tools/plan/plan.h"

/* A schedule on its way through the checks. */
typedef struct plan {
    const plan_options *options;
    fsdpi_schedule      given, lowered;
    fsdpi_passes        passes; /* of the lowered one */
    fsdpi_simulation    run;
    fsdpi_flaw          flaw;
} plan;

static fsdpi_pace pace_of(const plan_options *o)
{
    return (fsdpi_pace){.forward         = o->forward,
                        .backward_input  = o->backward_input,
                        .backward_weight = o->backward_weight,
                        .transfer        = o->transfer,
                        .buffers         = (int)o->buffers,
                        .most_held       = (int)o->most_held};
}

/* ---- getting it ------------------------------------------------------------------------------------------------------ */

static int read_file(plan *p)
{
    FILE *file = fopen(p->options->path, "r");

    if (file == NULL) {
        (void)fprintf(stderr, "fsdp-plan: %s cannot be opened: %s\n", p->options->path, strerror(errno));
        return PLAN_FAILED;
    }
    const bool read = fsdpi_schedule_read(&p->given, file, &p->flaw);
    (void)fclose(file);
    if (!read && p->flaw.rank >= 0) {
        (void)fprintf(stderr, "fsdp-plan: %s, line %d, action %zu: %s\n", p->options->path, p->flaw.rank + 1,
                      p->flaw.at + 1, p->flaw.text);
    } else if (!read) {
        (void)fprintf(stderr, "fsdp-plan: %s: %s\n", p->options->path, p->flaw.text);
    }
    return read ? PLAN_GOOD : PLAN_REFUSED;
}

static int generate(plan *p)
{
    const plan_options *o = p->options;

    if (fsdpi_generate(&p->given, (fsdpi_pipeline_kind)o->kind, (int)o->ranks, (int)o->stages_per_rank, (int)o->micros,
                       &p->flaw)) {
        return PLAN_GOOD;
    }
    (void)fprintf(stderr, "fsdp-plan: %s\n", p->flaw.text);
    return PLAN_USAGE;
}

/* ---- proving it ------------------------------------------------------------------------------------------------------ */

/* One with messages stays as it is. Takes `given` over. */
static bool make_lowered(plan *p)
{
    if (fsdpi_schedule_is_lowered(&p->given)) {
        p->lowered = p->given;
        p->given   = (fsdpi_schedule){0};
        return true;
    }
    fsdpi_passes passes;
    bool         good = fsdpi_passes_open(&passes, &p->given, &p->flaw);

    if (good) {
        good = fsdpi_verify_passes(&passes, &p->flaw) && fsdpi_lower(&passes, &p->lowered, &p->flaw);
        fsdpi_passes_close(&passes);
    }
    return good;
}

static bool prove(plan *p)
{
    const fsdpi_pace pace = pace_of(p->options);

    return make_lowered(p) && fsdpi_passes_open(&p->passes, &p->lowered, &p->flaw) &&
           fsdpi_verify_passes(&p->passes, &p->flaw) && fsdpi_verify_order(&p->passes, &p->flaw) &&
           fsdpi_simulate(&p->passes, &pace, &p->run, &p->flaw);
}

static int refuse(const plan *p)
{
    const fsdpi_schedule *shown = p->lowered.rows != NULL ? &p->lowered : &p->given;

    (void)fprintf(stderr, "fsdp-plan: %s\n", p->flaw.text);
    if (p->flaw.rank >= 0 && !p->options->quiet) {
        fsdpi_grid_print_flaw(shown, &p->run, &p->flaw, stderr);
    }
    return PLAN_REFUSED;
}

/* ---- saying it ------------------------------------------------------------------------------------------------------- */

static void print_step(const plan *p)
{
    const plan_options *o    = p->options;
    double              busy = 0;
    const double        bubble =
        fsdpi_bubble((fsdpi_pipeline_kind)o->kind, (int)o->ranks, (int)o->stages_per_rank, (int)o->micros);

    for (int r = 0; r < p->run.n_ranks; r++) {
        busy += p->run.ranks[r].busy / p->run.n_ranks;
    }
    (void)printf("step      %g, of which a rank computes %g and waits %g: a bubble of %.2f%%\n", p->run.seconds, busy,
                 p->run.seconds - busy, p->run.seconds > 0 ? 100 * (1 - busy / p->run.seconds) : 0);
    if (o->path == NULL && bubble >= 0) {
        (void)printf("formula   a bubble of %.2f%%, if transfers take no time%s\n", 100 * bubble,
                     o->kind == FSDPI_ZB_H1 ? " and the three parts of a pass the same" : "");
    }
}

static void print_held(const plan *p)
{
    (void)printf("held      micro-batches at once, by rank:");
    for (int r = 0; r < p->run.n_ranks; r++) {
        (void)printf(" %d", p->run.ranks[r].most_held);
        if (p->run.ranks[r].most_owed > 0) {
            (void)printf("+%d", p->run.ranks[r].most_owed);
        }
    }
    (void)printf("%s\n", p->options->path == NULL && p->options->kind == FSDPI_ZB_H1 ? "; +: between I and W" : "");
}

static void report(const plan *p)
{
    const fsdpi_pace pace = pace_of(p->options);

    (void)printf("schedule  %s: %d ranks, %d stages, %d micro-batches, %zu messages\n",
                 p->options->path != NULL ? p->options->path
                                          : fsdpi_pipeline_kind_text((fsdpi_pipeline_kind)p->options->kind),
                 p->lowered.ranks, p->lowered.stages, p->lowered.micros, p->run.messages);
    (void)printf("proved    no deadlock with %d buffer%s for each stage and direction\n", pace.buffers,
                 pace.buffers == 1 ? "" : "s");
    print_step(p);
    print_held(p);
    if (!p->options->quiet) {
        (void)printf("\n");
        fsdpi_grid_print(&p->lowered, &pace, &p->run, stdout);
    }
}

static int write_file(const plan *p)
{
    const char           *path  = p->options->write;
    const fsdpi_schedule *which = p->options->lowered || p->given.rows == NULL ? &p->lowered : &p->given;
    FILE                 *file  = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

    if (file == NULL) {
        (void)fprintf(stderr, "fsdp-plan: %s cannot be written: %s\n", path, strerror(errno));
        return PLAN_FAILED;
    }
    fsdpi_schedule_write(which, file);
    if (file != stdout && (ferror(file) != 0) + (fclose(file) != 0) > 0) {
        (void)fprintf(stderr, "fsdp-plan: %s cannot be written: %s\n", path, strerror(errno));
        return PLAN_FAILED;
    }
    return PLAN_GOOD;
}

static int show(const plan *p)
{
    if (p->options->write == NULL || strcmp(p->options->write, "-") != 0) {
        report(p);
    }
    return p->options->write != NULL ? write_file(p) : PLAN_GOOD;
}

int plan_pipeline(const plan_options *options)
{
    plan p      = {.options = options};
    int  result = options->path != NULL ? read_file(&p) : generate(&p);

    if (result == PLAN_GOOD) {
        result = prove(&p) ? show(&p) : refuse(&p);
    }
    fsdpi_simulation_close(&p.run);
    fsdpi_passes_close(&p.passes);
    fsdpi_schedule_close(&p.lowered);
    fsdpi_schedule_close(&p.given);
    return result;
}
