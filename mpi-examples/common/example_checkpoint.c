#include "example_checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "example_error.h"

const char *const example_save_dtypes[] = {"f32", "bf16", NULL};

static fsdp_status find(const example_checkpoint *c, char *path)
{
    const char *resume = c->options->resume;

    path[0] = '\0';
    if (strcmp(resume, "never") == 0) {
        return FSDP_OK;
    }
    if (strcmp(resume, "auto") == 0) {
        return fsdp_checkpoint_latest(c->ctx, c->options->folder, path, FSDP_CHECKPOINT_PATH_BYTES);
    }
    if (strlen(resume) >= FSDP_CHECKPOINT_PATH_BYTES) {
        return example_fail("--resume is a path of %zu bytes; use a shorter one", strlen(resume));
    }
    memcpy(path, resume, strlen(resume) + 1);
    return FSDP_OK;
}

/* Another model would be refused by the library; another training would go on, but not with the same result. */
static fsdp_status restore(fsdp_checkpoint *saver, const char *path, fsdp_checkpoint_state *state)
{
    fsdp_checkpoint_state found;

    EXAMPLE_TRY(fsdp_checkpoint_restore(saver, path, NULL, &found));
    if (strcmp(found.text, state->text) != 0) {
        if (example_speaks()) {
            (void)fprintf(stderr, "saved with  %s\nnow         %s\n", found.text, state->text);
        }
        return example_fail("the checkpoint %.200s is of another training; use the same options, --resume never, or "
                            "another folder",
                            path);
    }
    *state = found;
    if (example_speaks()) {
        printf("resumed     %s: step %" PRIu64 ", saved by %" PRIu64 " rank%s\n", path, found.step, found.ranks,
               found.ranks == 1 ? "" : "s");
        (void)fflush(stdout);
    }
    return FSDP_OK;
}

fsdp_status example_checkpoint_open_with(example_checkpoint *checkpoint, const example_checkpoint_options *options,
                                         fsdp_model *model, fsdp_optimizer *optimizer, fsdp_context *ctx,
                                         fsdp_checkpoint_state *state, fsdp_budget *budget,
                                         example_checkpoint_arrays add_arrays)
{
    fsdp_checkpoint_options saving = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    char                    path[FSDP_CHECKPOINT_PATH_BYTES];

    *checkpoint = (example_checkpoint){.options = options, .ctx = ctx};
    if (!options->folder) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(fsdp_stop_watch(NULL, 0)); /* a signal while it loads is obeyed behind the first step */
    saving.dtype        = options->dtype;
    saving.keep_last    = options->keep;
    saving.asynchronous = options->asynchronous;
    saving.cached       = options->cache > 0;
    EXAMPLE_TRY(fsdp_checkpoint_open(model, optimizer, options->folder, &saving, &checkpoint->saver));
    if (add_arrays) {
        EXAMPLE_TRY(add_arrays(checkpoint->saver));
    }
    EXAMPLE_TRY(fsdp_checkpoint_budget(checkpoint->saver, budget));
    EXAMPLE_TRY(find(checkpoint, path));
    return path[0] ? restore(checkpoint->saver, path, state) : FSDP_OK;
}

fsdp_status example_checkpoint_open(example_checkpoint *checkpoint, const example_checkpoint_options *options,
                                    fsdp_model *model, fsdp_optimizer *optimizer, fsdp_context *ctx,
                                    fsdp_checkpoint_state *state, fsdp_budget *budget)
{
    return example_checkpoint_open_with(checkpoint, options, model, optimizer, ctx, state, budget, NULL);
}

static fsdp_status save(const example_checkpoint *c, const fsdp_checkpoint_state *state)
{
    return c->options->asynchronous ? fsdp_checkpoint_save_async(c->saver, state)
                                    : fsdp_checkpoint_save(c->saver, state);
}

fsdp_status example_checkpoint_step(example_checkpoint *checkpoint, const fsdp_checkpoint_state *state, int last)
{
    if (!checkpoint->saver) {
        return FSDP_OK;
    }
    EXAMPLE_TRY(fsdp_checkpoint_progress(checkpoint->saver, NULL));
    EXAMPLE_TRY(fsdp_stop_agree(checkpoint->ctx, &checkpoint->stopped));
    if (last) {
        checkpoint->stopped = 0; /* there is nothing left to stop */
    }
    checkpoint->saved = last || checkpoint->stopped || state->step % checkpoint->options->every == 0;
    if (checkpoint->saved) {
        return save(checkpoint, state);
    }
    return checkpoint->options->cache > 0 && state->step % checkpoint->options->cache == 0
               ? fsdp_checkpoint_cache(checkpoint->saver, state)
               : FSDP_OK;
}

fsdp_status example_checkpoint_close(example_checkpoint *checkpoint)
{
    const fsdp_status status = fsdp_checkpoint_close(checkpoint->saver);

    checkpoint->saver = NULL;
    if (!checkpoint->stopped) { /* else one that comes late, or again, must not end a rank before the others */
        fsdp_stop_unwatch();
    }
    if (status == FSDP_OK && checkpoint->stopped && example_speaks()) {
        printf("stopped by signal %d; saved in %s; the same command resumes there\n", checkpoint->stopped,
               checkpoint->options->folder);
    }
    return status;
}

int example_exit_status(fsdp_status status, int stopped)
{
    return !example_output_is_written() || status != FSDP_OK ? EXIT_FAILURE
           : stopped                                         ? FSDP_STOP_EXIT_STATUS
                                                             : EXIT_SUCCESS;
}
