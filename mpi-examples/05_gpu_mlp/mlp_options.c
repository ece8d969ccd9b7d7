#include "mlp_options.h"

#include <stdio.h>

#include "mpi-examples/common/example_error.h"
#include "mpi-examples/common/example_options.h"

#define FIELD(name) offsetof(mlp_options, name)

static const char *const places[] = {"host", "gpu", NULL};

static const example_option rows[] = {
    {"device", EXAMPLE_CHOICE, FIELD(device), 0, 0, places,
     "where the network is, and is computed: host, or gpu: each rank's own"},
    {"offload", EXAMPLE_FLAG, FIELD(offload), 0, 0, NULL,
     "with --device gpu: masters and optimizer state in the host's memory"},
    {"hidden", EXAMPLE_SIZE, FIELD(hidden), 1, 65536, NULL, "width of the hidden layers"},
    {"layers", EXAMPLE_SIZE, FIELD(layers), 1, MLP_MOST_LAYERS - 1, NULL, "how many of them"},
    {"tp", EXAMPLE_SIZE, FIELD(tp), 1, 65536, NULL,
     "ranks that divide the layers in pairs, and see the same images; must divide the ranks and --hidden"},
    {"epochs", EXAMPLE_SIZE, FIELD(epochs), 1, EXAMPLE_MOST_SIZE, NULL, "passes over the training images"},
    {"batch", EXAMPLE_SIZE, FIELD(batch), 1, EXAMPLE_MOST_SIZE, NULL, "images per step over all ranks"},
    {"lr", EXAMPLE_NUMBER, FIELD(lr), 0, 100, NULL, "learning rate of AdamW"},
    {"strategy", EXAMPLE_STRATEGY, FIELD(strategy), 0, 0, NULL,
     "what is divided over the ranks: full_shard, shard_grad_op, shard_optim, no_shard, hybrid_shard or "
     "hybrid_shard_zero2"},
    {"pp", EXAMPLE_SIZE, FIELD(pp), 1, MLP_MOST_LAYERS, NULL, "stages that the layers are divided into, one per rank"},
    {"micro", EXAMPLE_SIZE, FIELD(micros), 1, 1024, NULL, "with --pp: micro-batches of a step"},
    {"schedule", EXAMPLE_TEXT, FIELD(schedule), 0, 0, NULL, "with --pp: gpipe or 1f1b"},
    {"seed", EXAMPLE_SIZE, FIELD(seed), 0, 9007199254740991.0, NULL, "of initial values and the order of images"},
    {"data", EXAMPLE_TEXT, FIELD(data.folder), 0, 0, NULL,
     "folder with the four files of Fashion-MNIST; made-up: images of no meaning; auto: Debian's, or else made-up"},
    {"train-images", EXAMPLE_SIZE, FIELD(data.train_images), 0, EXAMPLE_MOST_SIZE, NULL,
     "train on the first so many; 0: on all"},
    {"test-images", EXAMPLE_SIZE, FIELD(data.test_images), 0, EXAMPLE_MOST_SIZE, NULL,
     "test on the first so many; 0: on all"},
    {"exact", EXAMPLE_FLAG, FIELD(exact), 0, 0, NULL,
     "print the loss of each step, and a hash of all parameters, to the last bit"},
    {"help", EXAMPLE_FLAG, FIELD(help), 0, 0, NULL, "this text"},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static const mlp_options defaults = {
    .device   = MLP_ON_HOST,
    .hidden   = 256,
    .layers   = 2,
    .tp       = 1,
    .epochs   = 3,
    .batch    = 128,
    .seed     = 1,
    .lr       = 1e-3,
    .strategy = FSDP_FULL_SHARD,
    .pp       = 1,
    .micros   = 4,
    .schedule = "1f1b",
    .data     = {.folder = MLP_DATA_AUTO},
};

fsdp_status mlp_options_read(int argc, char **argv, mlp_options *options)
{
    *options = defaults;
    EXAMPLE_TRY(example_options_read(argc, argv, rows, N_ROWS, options));
    if (options->offload && options->device != MLP_ON_GPU && !options->help) {
        return example_fail(
            "--offload takes from a GPU what --device host does not have there; use --device gpu with it");
    }
    if (options->hidden % options->tp != 0 && !options->help) {
        return example_fail("--tp %zu does not divide the %zu columns of --hidden; use a divisor", options->tp,
                            options->hidden);
    }
    if (options->tp > 1 && options->pp > 1 && !options->help) {
        return example_fail("--tp %zu and --pp %zu divide the layers in two ways; use one of them", options->tp,
                            options->pp);
    }
    return FSDP_OK;
}

void mlp_options_help(void)
{
    printf("usage: mpirun -n RANKS 05_gpu_mlp [OPTION]...\n\n"
           "Trains a small network to tell articles of clothing apart, all of it on GPUs, fully sharded over the "
           "ranks.\n\n");
    example_options_print(rows, N_ROWS, &defaults);
}
