#include "gpt_shape.h"

#include <string.h>

#include "gpt_mesh.h"
#include "mpi-examples/common/example_error.h"

/* Axes that are not there have a length of 1; along dp are all ranks that the others leave. */
static fsdp_status complete_axes(gpt_options *o, size_t ranks)
{
    o->tp = o->tp ? o->tp : 1;
    o->pp = o->pp ? o->pp : 1;
    if (!o->dp && ranks % (o->tp * o->pp) != 0) {
        return example_fail(
            "--tp %zu times --pp %zu is %zu, which does not divide the %zu ranks; use divisors of them, "
            "or other ranks",
            o->tp, o->pp, o->tp * o->pp, ranks);
    }
    o->dp = o->dp ? o->dp : ranks / (o->tp * o->pp);
    if (o->dp * o->tp * o->pp != ranks) {
        return example_fail(
            "--dp %zu times --tp %zu times --pp %zu is %zu, and there are %zu ranks; leave out --dp, or "
            "start as many ranks",
            o->dp, o->tp, o->pp, o->dp * o->tp * o->pp, ranks);
    }
    if (o->outer && o->dp % o->outer != 0) {
        return example_fail("--outer is %zu, which does not divide --dp %zu; use a divisor of it", o->outer, o->dp);
    }
    return FSDP_OK;
}

static fsdp_status check_strategies(const gpt_options *o)
{
    if (o->axis_strategies && strlen(o->axis_strategies) >= GPT_STRATEGIES_BYTES) {
        return example_fail("--axis-strategies has %zu characters; name each axis once, as in "
                            "outer=no_shard,inner=full_shard",
                            strlen(o->axis_strategies));
    }
    return FSDP_OK;
}

static fsdp_status check_division(const gpt_options *o)
{
    const gpt_config *c = &o->config;

    if (c->heads % o->tp != 0) {
        return example_fail("--tp is %zu, which does not divide --heads %zu; use a divisor of the heads", o->tp,
                            c->heads);
    }
    if (GPT_VOCABULARY % o->tp != 0) {
        return example_fail("--tp is %zu, which does not divide the vocabulary of %d bytes; use a power of 2", o->tp,
                            GPT_VOCABULARY);
    }
    if (o->sequence_parallel && c->context % o->tp != 0) {
        return example_fail("--tp is %zu, which does not divide --context %zu, and --sequence-parallel divides it; use "
                            "another context, or leave the option out",
                            o->tp, c->context);
    }
    return FSDP_OK;
}

static fsdp_status check_micro_batches(const gpt_options *o)
{
    if (o->batch % (o->micro * o->dp) != 0) {
        return example_fail("--batch is %zu, which --micro %zu times --dp %zu do not divide; use a multiple of %zu, or "
                            "other numbers",
                            o->batch, o->micro, o->dp, o->micro * o->dp);
    }
    if (gpt_activations_bytes(&o->config, o->batch / (o->micro * o->dp)) == 0) {
        return example_fail("--batch %zu in %zu micro-batches with --context %zu and --width %zu is more than a matrix "
                            "product can index; use smaller ones",
                            o->batch, o->micro, o->config.context, o->config.width);
    }
    if (o->accumulate > 1 || o->accumulate_sync) {
        return example_fail("--accumulate%s does not go with --dp, --tp or --pp; their micro-batches are --micro",
                            o->accumulate_sync ? "-sync" : "");
    }
    return FSDP_OK;
}

/* What only the trainer of one axis has. */
static fsdp_status check_others(const gpt_options *o)
{
    if (o->optimizer != GPT_OPTIMIZER_ADAMW) {
        return example_fail(
            "--optimizer muon needs whole matrices, and does not go with --dp, --tp or --pp; use adamw");
    }
    if (o->param_dtype != FSDP_F32 || o->reduce_dtype != FSDP_F32) {
        return example_fail("--param-dtype and --reduce-dtype other than f32 do not go with --dp, --tp or --pp; leave "
                            "them out");
    }
    if (o->hook != GPT_HOOK_NONE || o->quantized_params) {
        return example_fail("--hook and --quantized-params do not go with --dp, --tp or --pp; leave them out");
    }
    return FSDP_OK;
}

fsdp_status gpt_shape_complete(gpt_options *options, size_t ranks)
{
    EXAMPLE_TRY(complete_axes(options, ranks));
    options->micro    = options->micro ? options->micro : options->pp;
    options->schedule = options->schedule ? options->schedule : "1f1b";
    EXAMPLE_TRY(check_strategies(options));
    EXAMPLE_TRY(check_division(options));
    EXAMPLE_TRY(check_micro_batches(options));
    if (options->stages_per_rank && strcmp(options->schedule, "interleaved") != 0) {
        return example_fail(
            "--stages-per-rank is %zu, and --schedule %.60s says itself how many there are; use interleaved, "
            "or leave the option out",
            options->stages_per_rank, options->schedule);
    }
    return check_others(options);
}
