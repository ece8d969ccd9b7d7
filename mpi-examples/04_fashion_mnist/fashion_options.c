#include "fashion_options.h"

#include <stdio.h>

#include "mpi-examples/common/example_bar.h"
#include "mpi-examples/common/example_options.h"

#define FIELD(name) offsetof(fashion_options, name)

static const char *const dtypes[] = {"f32", "bf16", NULL};

static const example_option rows[] = {
    {"epochs", EXAMPLE_SIZE, FIELD(epochs), 1, EXAMPLE_MOST_SIZE, NULL, "passes over the training images"},
    {"batch", EXAMPLE_SIZE, FIELD(batch), 1, EXAMPLE_MOST_SIZE, NULL, "images per micro-batch over all ranks"},
    {"accumulate", EXAMPLE_SIZE, FIELD(accumulate), 1, EXAMPLE_MOST_SIZE, NULL,
     "micro-batches per step, whose gradients add up"},
    {"lr", EXAMPLE_NUMBER, FIELD(lr), 0, 100, NULL, "largest learning rate; it falls to 0 along a cosine"},
    {"warmup", EXAMPLE_SIZE, FIELD(warmup), 0, EXAMPLE_MOST_SIZE, NULL, "steps over which the learning rate rises"},
    {"momentum", EXAMPLE_NUMBER, FIELD(momentum), 0.001, 0.9999, NULL, "Nesterov's"},
    {"weight-decay", EXAMPLE_NUMBER, FIELD(weight_decay), 0, 10, NULL, "of the matrices"},
    {"strategy", EXAMPLE_STRATEGY, FIELD(strategy), 0, 0, NULL,
     "what is divided over the ranks: full_shard, shard_grad_op, shard_optim, no_shard, hybrid_shard or "
     "hybrid_shard_zero2"},
    {"dtype", EXAMPLE_DTYPE, FIELD(dtype), 0, 0, dtypes,
     "type in which parameters are gathered and gradients reduced: f32 or bf16"},
    {"seed", EXAMPLE_SIZE, FIELD(seed), 0, 9007199254740991.0, NULL, "of initial values and the order of images"},
    {"data", EXAMPLE_TEXT, FIELD(data.folder), 0, 0, NULL, "folder with the four files of Fashion-MNIST"},
    {"train-images", EXAMPLE_SIZE, FIELD(data.train_images), 0, EXAMPLE_MOST_SIZE, NULL,
     "train on the first so many; 0: on all"},
    {"test-images", EXAMPLE_SIZE, FIELD(data.test_images), 0, EXAMPLE_MOST_SIZE, NULL,
     "test on the first so many; 0: on all"},
    EXAMPLE_CHECKPOINT_ROWS(fashion_options),
    {"blas-threads", EXAMPLE_SIZE, FIELD(blas_threads), 0, 65536, NULL,
     "threads per rank in matrix products; 0: cores / ranks of a node"},
    {"progress", EXAMPLE_CHOICE, FIELD(progress), 0, 0, example_progress_names,
     "bar on stderr: on, off, or auto: if stderr is a terminal"},
    {"exact", EXAMPLE_FLAG, FIELD(exact), 0, 0, NULL,
     "print the loss of each step, and a hash of all parameters, to the last bit"},
    {"help", EXAMPLE_FLAG, FIELD(help), 0, 0, NULL, "this text"},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static const fashion_options defaults = {
    .epochs       = 6,
    .batch        = 128,
    .accumulate   = 1,
    .warmup       = 200,
    .seed         = 1,
    .lr           = 0.1,
    .momentum     = 0.9,
    .weight_decay = 5e-4,
    .strategy     = FSDP_FULL_SHARD,
    .dtype        = FSDP_F32,
    .progress     = EXAMPLE_PROGRESS_AUTO,
    .data         = {.folder = FASHION_DATA_FOLDER},
    .checkpoint   = EXAMPLE_CHECKPOINT_OPTIONS_DEFAULT,
};

fsdp_status fashion_options_read(int argc, char **argv, fashion_options *options)
{
    *options = defaults;
    return example_options_read(argc, argv, rows, N_ROWS, options);
}

void fashion_options_help(void)
{
    printf("usage: mpirun -n RANKS 04_fashion_mnist [OPTION]...\n\n"
           "Trains a convolutional network to tell articles of clothing apart, fully sharded over the ranks.\n\n");
    example_options_print(rows, N_ROWS, &defaults);
}
