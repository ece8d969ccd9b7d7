#include "gpt_options.h"

#include <stdio.h>

#include "mpi-examples/common/example_bar.h"
#include "mpi-examples/common/example_error.h"
#include "mpi-examples/common/example_options.h"

#define FIELD(name) offsetof(gpt_options, name)
#define MOST        EXAMPLE_MOST_SIZE
#define MOST_RANKS  100000

const char *const gpt_hook_names[] = {"none", "bf16", "f16", "int8", "powersgd", NULL};

const char *const gpt_recompute_names[] = {"none", "selective", "full", NULL};

static const char *const optimizer_names[] = {"adamw", "muon", NULL};

static const char *const pass_dtypes[] = {"f32", NULL}, *const view_dtypes[] = {"f32", "bf16", "f16", NULL},
                         *const moment_dtypes[] = {"f32", "bf16", "u8", NULL};

static const example_option rows[] = {
    {"layers", EXAMPLE_SIZE, FIELD(config.layers), 1, 100000, NULL, "blocks"},
    {"heads", EXAMPLE_SIZE, FIELD(config.heads), 1, MOST, NULL, "attention heads per block; must divide the width"},
    {"width", EXAMPLE_SIZE, FIELD(config.width), 1, MOST, NULL, "size of the residual stream"},
    {"context", EXAMPLE_SIZE, FIELD(config.context), 1, MOST, NULL, "bytes that the model sees at once"},
    {"batch", EXAMPLE_SIZE, FIELD(batch), 1, MOST, NULL, "sequences per step over all ranks, whatever their number"},
    {"accumulate", EXAMPLE_SIZE, FIELD(accumulate), 1, MOST, NULL,
     "micro-batches that each batch is divided into; their gradients add up on each rank and are reduced once"},
    {"accumulate-sync", EXAMPLE_FLAG, FIELD(accumulate_sync), 0, 0, NULL,
     "reduce the gradients of each micro-batch instead, which needs no room for whole gradients"},
    {"dp", EXAMPLE_SIZE, FIELD(dp), 1, MOST_RANKS, NULL,
     "ranks with other sequences and the same layers; without it all that --tp and --pp leave"},
    {"outer", EXAMPLE_SIZE, FIELD(outer), 1, MOST_RANKS, NULL,
     "make two axes of those: outer, of so many, and inner, of the rest; must divide --dp"},
    {"axis-strategies", EXAMPLE_TEXT, FIELD(axis_strategies), 0, 0, NULL,
     "what is divided over which of them, instead of --strategy: outer=no_shard,inner=full_shard; without --outer "
     "dp=..."},
    {"tp", EXAMPLE_SIZE, FIELD(tp), 1, MOST_RANKS, NULL,
     "ranks that divide each layer, its heads and its MLP; must divide --heads"},
    {"pp", EXAMPLE_SIZE, FIELD(pp), 1, MOST_RANKS, NULL, "ranks that divide the layers, as stages of a pipeline"},
    {"schedule", EXAMPLE_TEXT, FIELD(schedule), 0, 0, NULL,
     "order of the stages: gpipe, 1f1b, interleaved, zb-h1, or a file that has one; without it 1f1b"},
    {"stages-per-rank", EXAMPLE_SIZE, FIELD(stages_per_rank), 2, MOST_RANKS, NULL,
     "of --schedule interleaved; without it 2"},
    {"micro", EXAMPLE_SIZE, FIELD(micro), 1, 1 << 20, NULL,
     "micro-batches of a step on such a mesh; without it as many as --pp"},
    {"recompute", EXAMPLE_CHOICE, FIELD(recompute), 0, 0, gpt_recompute_names,
     "what backward passes compute again instead of keeping it, on such a mesh: none, selective (scores of attention) "
     "or "
     "full (all but a layer's input)"},
    {"sequence-parallel", EXAMPLE_FLAG, FIELD(sequence_parallel), 0, 0, NULL,
     "divide norms and residuals over --tp too, by positions"},
    {"steps", EXAMPLE_SIZE, FIELD(steps), 1, MOST, NULL, "optimizer steps"},
    {"optimizer", EXAMPLE_CHOICE, FIELD(optimizer), 0, 0, optimizer_names,
     "adamw; or muon for the matrices of the blocks, and AdamW for embeddings, head and vectors"},
    {"lr", EXAMPLE_NUMBER, FIELD(lr), 0, 10, NULL, "largest learning rate"},
    {"min-lr", EXAMPLE_NUMBER, FIELD(min_lr), 0, 10, NULL,
     "learning rate at the end of the cosine; without it a hundredth of the largest"},
    {"warmup", EXAMPLE_SIZE, FIELD(warmup), 0, MOST, NULL,
     "steps over which the learning rate rises; with fewer steps it is still rising in the end"},
    {"weight-decay", EXAMPLE_NUMBER, FIELD(weight_decay), 0, 10, NULL, "of the matrices"},
    {"beta2", EXAMPLE_NUMBER, FIELD(beta2), 0, 0.9999999, NULL, "AdamW's second decay rate"},
    {"moments", EXAMPLE_DTYPE, FIELD(moment_dtype), 0, 0, moment_dtypes,
     "type of AdamW's moments between steps: f32, bf16 or u8, which takes about a quarter of the bytes of f32"},
    {"clip", EXAMPLE_NUMBER, FIELD(clip), 1e-9, 1e9, NULL, "largest norm of a gradient"},
    {"strategy", EXAMPLE_STRATEGY, FIELD(strategy), 0, 0, NULL,
     "full_shard, shard_grad_op, shard_optim, no_shard, hybrid_shard or hybrid_shard_zero2"},
    {"group-size", EXAMPLE_COUNT, FIELD(group_size), 0, MOST, NULL,
     "ranks that share one copy under the hybrid strategies; 0: those of a node"},
    {"prefetch", EXAMPLE_COUNT, FIELD(prefetch), 0, MOST, NULL,
     "units gathered before they are begun, 0 to 64; without it as FSDP_PREFETCH says, or 1"},
    {"param-dtype", EXAMPLE_DTYPE, FIELD(param_dtype), 0, 0, view_dtypes,
     "type in which parameters are gathered: f32, bf16 or f16"},
    {"quantized-params", EXAMPLE_FLAG, FIELD(quantized_params), 0, 0, NULL,
     "gather parameters as 8 bit integers, about a quarter of the bytes of f32; full_shard only"},
    {"reduce-dtype", EXAMPLE_DTYPE, FIELD(reduce_dtype), 0, 0, view_dtypes,
     "type in which gradients are reduced: f32, bf16 or f16; with f16 in either the loss is scaled"},
    {"dtype", EXAMPLE_DTYPE, FIELD(dtype), 0, 0, pass_dtypes, "type of the passes and of the masters: f32"},
    {"hook", EXAMPLE_CHOICE, FIELD(hook), 0, 0, gpt_hook_names,
     "how gradients are compressed, with no_shard or between the groups of the hybrid strategies: bf16, f16, int8 or "
     "powersgd"},
    {"hook-rank", EXAMPLE_SIZE, FIELD(hook_rank), 1, 65536, NULL, "rank of powersgd; without it 4"},
    {"hook-start", EXAMPLE_SIZE, FIELD(hook_start), 0, MOST, NULL,
     "steps that come before the hook; powersgd does better when the gradients of the first ones are sent whole"},
    {"seed", EXAMPLE_SIZE, FIELD(seed), 0, 9007199254740991.0, NULL,
     "of initial values, sample order and generated text"},
    {"data", EXAMPLE_TEXT, FIELD(data), 0, 0, NULL,
     "the file to learn; without it, the King James text of Debian's bible-kjv"},
    {"weights", EXAMPLE_TEXT, FIELD(weights), 0, 0, NULL,
     "a safetensors file to begin with, under the names that GPT-2 was published with; what it has besides is left "
     "out"},
    EXAMPLE_CHECKPOINT_ROWS(gpt_options),
    {"interval", EXAMPLE_SIZE, FIELD(interval), 1, MOST, NULL, "steps from one report to the next"},
    {"val-batches", EXAMPLE_SIZE, FIELD(val_batches), 0, MOST, NULL,
     "batches to validate on; 0: all of the last 5% of the data"},
    {"sample", EXAMPLE_SIZE, FIELD(sample), 0, MOST, NULL, "bytes of text to generate in the end"},
    {"temperature", EXAMPLE_NUMBER, FIELD(temperature), 0, 100, NULL, "how freely; 0: always the most likely byte"},
    {"blas-threads", EXAMPLE_SIZE, FIELD(blas_threads), 0, 65536, NULL,
     "threads per rank in matrix products; 0: cores / ranks of a node"},
    {"progress", EXAMPLE_CHOICE, FIELD(progress), 0, 0, example_progress_names,
     "bar on stderr: on, off, or auto: if stderr is a terminal"},
    {"exact", EXAMPLE_FLAG, FIELD(exact), 0, 0, NULL,
     "print the loss of each step, that of the validation, and a hash of all parameters, to the last bit"},
    {"profile", EXAMPLE_FLAG, FIELD(profile), 0, 0, NULL, "print where the time of a step goes"},
    {"help", EXAMPLE_FLAG, FIELD(help), 0, 0, NULL, "this text"},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

/* What mpi-examples/demo.sh trains. Values below the least of their row are replaced: see the help of each. */
static const gpt_options defaults = {
    .config       = {8, 4, 96, 128},
    .batch        = 24,
    .accumulate   = 1,
    .steps        = 900,
    .warmup       = 100,
    .interval     = 50,
    .sample       = 400,
    .seed         = 1,
    .optimizer    = GPT_OPTIMIZER_ADAMW,
    .lr           = 8e-3,
    .min_lr       = -1,
    .weight_decay = 0.1,
    .beta2        = 0.99,
    .clip         = 1.0,
    .temperature  = 0.8,
    .strategy     = FSDP_FULL_SHARD,
    .prefetch     = FSDP_UNSET,
    .dtype        = FSDP_F32,
    .param_dtype  = FSDP_F32,
    .reduce_dtype = FSDP_F32,
    .moment_dtype = FSDP_F32,
    .hook         = GPT_HOOK_NONE,
    .progress     = EXAMPLE_PROGRESS_AUTO,
    .checkpoint   = EXAMPLE_CHECKPOINT_OPTIONS_DEFAULT,
};

fsdp_status gpt_options_read(int argc, char **argv, gpt_options *options)
{
    *options = defaults;
    EXAMPLE_TRY(example_options_read(argc, argv, rows, N_ROWS, options));
    if (options->min_lr < 0) {
        options->min_lr = options->lr / 100;
    }
    return FSDP_OK;
}

static fsdp_status check_model(const gpt_config *c)
{
    if (c->width % c->heads != 0) {
        return example_fail("--heads is %zu, which does not divide --width %zu; choose a divisor of the width",
                            c->heads, c->width);
    }
    if (gpt_parameters(c) == 0) {
        return example_fail("--layers %zu, --width %zu and --context %zu make more parameters than memory can address; "
                            "use smaller ones",
                            c->layers, c->width, c->context);
    }
    return FSDP_OK;
}

static fsdp_status check_batch(const gpt_options *o, size_t ranks)
{
    const gpt_config *c = &o->config;

    if (o->batch % o->accumulate != 0) {
        return example_fail("--accumulate is %zu, which does not divide --batch %zu; use a divisor of it",
                            o->accumulate, o->batch);
    }
    if (o->batch / o->accumulate < ranks) {
        return example_fail(
            "--batch %zu in %zu micro-batches is less than a sequence for each of %zu ranks; use a larger "
            "one, or fewer ranks",
            o->batch, o->accumulate, ranks);
    }
    if (gpt_activations_bytes(c, gpt_options_share(o, ranks, 0).count) == 0) {
        return example_fail("--batch %zu on %zu ranks with --context %zu and --width %zu is more than a matrix product "
                            "can index; use smaller ones",
                            o->batch, ranks, c->context, c->width);
    }
    return FSDP_OK;
}

fsdp_status gpt_options_adamw(const gpt_options *options, fsdp_optimizer_options *adamw)
{
    EXAMPLE_TRY(fsdp_optimizer_options_init(FSDP_ADAMW, adamw));
    adamw->lr           = options->lr;
    adamw->weight_decay = options->weight_decay;
    adamw->beta2        = options->beta2;
    adamw->moment_dtype = options->moment_dtype;
    return FSDP_OK;
}

gpt_share gpt_options_share(const gpt_options *options, size_t ranks, size_t rank)
{
    const size_t micro = options->batch / options->accumulate, each = micro / ranks, more = micro % ranks;

    return (gpt_share){.first = rank * each + (rank < more ? rank : more), .count = each + (rank < more)};
}

int gpt_options_mesh(const gpt_options *options)
{
    return options->dp || options->outer || options->axis_strategies || options->tp || options->pp ||
           options->schedule || options->stages_per_rank || options->micro ||
           options->recompute != GPT_RECOMPUTE_NONE || options->sequence_parallel;
}

fsdp_status gpt_options_check(const fsdp_context *ctx, const gpt_options *options)
{
    EXAMPLE_TRY(check_model(&options->config));
    EXAMPLE_TRY(gpt_options_mesh(options) ? FSDP_OK : check_batch(options, (size_t)fsdp_size(ctx)));
    if (options->min_lr > options->lr) {
        return example_fail("--min-lr is %g, above --lr %g; use at most as much", options->min_lr, options->lr);
    }
    if (options->optimizer == GPT_OPTIMIZER_MUON && options->quantized_params) {
        return example_fail(
            "--optimizer muon needs whole matrices, which --quantized-params cannot gather; leave out one of "
            "the two");
    }
    if (options->hook_rank && options->hook != GPT_HOOK_POWER_SGD) {
        return example_fail("--hook-rank is %zu, and --hook %s has no rank; use --hook powersgd", options->hook_rank,
                            gpt_hook_names[options->hook]);
    }
    return FSDP_OK;
}

void gpt_options_help(void)
{
    printf("usage: mpirun -n RANKS 03_gpt [OPTION]...\n\n"
           "Trains a GPT-2 on the bytes of a text, fully sharded over the ranks.\n\n");
    example_options_print(rows, N_ROWS, &defaults);
    printf("\ndata\n"
           "  The last twentieth of the text, rounded down to bytes, is for validation, the rest for training. For "
           "each epoch\n"
           "  the training text is cut into windows of --context bytes, one behind the other, and these are shuffled; "
           "the\n"
           "  targets are the same bytes shifted by one. Where the first window begins, within the first two, and the "
           "order\n"
           "  follow from --seed and the number of the epoch. Validation cuts its text from the first byte on; a last "
           "window\n"
           "  that is not whole is left out.\n");
}
