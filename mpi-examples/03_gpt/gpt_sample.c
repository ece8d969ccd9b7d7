#include "gpt_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-examples/common/example_error.h"

static double largest(const real *logits)
{
    double most = (double)logits[0];
    size_t v;

    for (v = 1; v < GPT_VOCABULARY; v++) {
        most = (double)logits[v] > most ? (double)logits[v] : most;
    }
    return most;
}

/* Draws a byte with probability proportional to exp(logit / temperature); u is uniform in [0, 1). */
static unsigned char choose(const real *logits, double temperature, double u)
{
    const double most = largest(logits);
    double       weights[GPT_VOCABULARY], total = 0;
    size_t       v;

    for (v = 0; v < GPT_VOCABULARY; v++) {
        const double below = (double)logits[v] - most;

        weights[v] = temperature > 0 ? exp(below / temperature) : below >= 0;
        total += weights[v];
    }
    u *= total;
    for (v = 0; v < GPT_VOCABULARY - 1 && u >= weights[v]; v++) {
        u -= weights[v];
    }
    return (unsigned char)v;
}

/* `context` holds `length` bytes. When it is full its second half becomes the beginning, to be computed anew. */
static size_t make_room(unsigned char *context, size_t length, size_t most)
{
    const size_t kept = most / 2 > 0 ? most / 2 : 1;

    if (length < most) {
        return length;
    }
    memmove(context, context + length - kept, kept);
    return kept;
}

static fsdp_status continue_text(gpt_trainer *trainer, unsigned char *context, unsigned char *text, size_t bytes)
{
    const gpt_options *options  = trainer->options;
    const size_t       most     = options->config.context;
    const uint64_t     stream   = fsdp_random_stream("03_gpt.sample");
    const size_t       batch    = fsdp_rank(trainer->ctx) == 0;
    size_t             computed = 0, length = 1, i;

    context[0] = '\n';
    for (i = 0; i < bytes; i++) {
        const gpt_pass pass = {context, most + 1, batch, batch ? computed : 0, length};

        EXAMPLE_TRY(gpt_trainer_forward(trainer, &pass));
        if (!batch) {
            continue;
        }
        text[i]         = choose(gpt_last_logits(trainer->activations, &pass), options->temperature,
                                 fsdp_random_uniform(options->seed, stream, i));
        context[length] = text[i];
        computed        = length;
        length          = make_room(context, length + 1, most + 1);
        computed        = length <= computed ? 0 : computed;
    }
    return FSDP_OK;
}

/* Every rank takes part, and chooses the same. */
static fsdp_status continue_on_mesh(gpt_trainer *trainer, unsigned char *context, unsigned char *text, size_t bytes)
{
    const gpt_options *options = trainer->options;
    const size_t       most    = options->config.context;
    const uint64_t     stream  = fsdp_random_stream("03_gpt.sample");
    size_t             length  = 1, i;
    real               logits[GPT_VOCABULARY];

    context[0] = '\n';
    for (i = 0; i < bytes; i++) {
        EXAMPLE_TRY(gpt_parallel_logits(trainer->parallel, context, length, logits));
        text[i]         = choose(logits, options->temperature, fsdp_random_uniform(options->seed, stream, i));
        context[length] = text[i];
        length          = make_room(context, length + 1, most + 1);
    }
    return FSDP_OK;
}

fsdp_status gpt_sample(gpt_trainer *trainer, unsigned char *text, size_t bytes)
{
    unsigned char *context = malloc(trainer->options->config.context + 1);
    fsdp_status    status  = example_agree(trainer->ctx, context ? "" : "no memory for the text to be written");

    if (status == FSDP_OK && context) {
        status = trainer->parallel ? continue_on_mesh(trainer, context, text, bytes)
                                   : continue_text(trainer, context, text, bytes);
    }
    free(context);
    return status;
}
