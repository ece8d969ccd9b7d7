#include "md_options.h"

#include <stdio.h>

#include "mpi-examples/common/example_bar.h"
#include "mpi-examples/common/example_error.h"
#include "mpi-examples/common/example_options.h"

#define FIELD(name) offsetof(md_options, name)

enum { LEAST_ATOMS = 16 }; /* per rank */

static const char *const modes[] = {
    [MD_BOTH] = "both", [MD_ALONE] = "md", [MD_TRAIN] = "train", [MD_DUMP] = "dump", NULL};

static const example_option rows[] = {
    {"mode", EXAMPLE_CHOICE, FIELD(mode), 0, 0, modes,
     "both: training in the gaps of the simulation; md or train: one of them alone, to time it; dump: the simulation "
     "writes a "
     "file, which is then trained on"},
    {"cells", EXAMPLE_SIZE, FIELD(system.cells), 3, 100, NULL, "lattice cells per edge of the box, of 4 atoms each"},
    {"density", EXAMPLE_NUMBER, FIELD(system.density), 0.5, 1.1, NULL, "of the liquid, in atoms per volume"},
    {"temperature", EXAMPLE_NUMBER, FIELD(system.temperature), 0.1, 10, NULL,
     "of the lattice at the beginning; about half of it is left when it has melted"},
    {"timestep", EXAMPLE_NUMBER, FIELD(system.timestep), 1e-6, 1, NULL, "of the simulation, in its units"},
    {"equilibrate", EXAMPLE_SIZE, FIELD(equilibrate), 1, EXAMPLE_MOST_SIZE, NULL, "time steps before the first frame"},
    {"frames", EXAMPLE_SIZE, FIELD(training.frames), 1, 1000000, NULL, "frames to train on"},
    {"interval", EXAMPLE_SIZE, FIELD(interval), 1, 1000000, NULL, "time steps from frame to frame"},
    {"updates", EXAMPLE_SIZE, FIELD(training.updates), 1, 1000, NULL, "optimizer steps on each frame"},
    {"batches", EXAMPLE_SIZE, FIELD(training.batches), 1, 1000, NULL,
     "parts of a frame's atoms, of which each update takes the next"},
    {"lr", EXAMPLE_NUMBER, FIELD(training.lr), 0, 100, NULL, "largest learning rate; it falls to 0 along a cosine"},
    {"warmup", EXAMPLE_SIZE, FIELD(training.warmup), 0, EXAMPLE_MOST_SIZE, NULL,
     "updates over which the learning rate rises"},
    {"weight-decay", EXAMPLE_NUMBER, FIELD(training.weight_decay), 0, 10, NULL, "AdamW's, of the matrices"},
    {"strategy", EXAMPLE_STRATEGY, FIELD(training.strategy), 0, 0, NULL,
     "what is divided over the ranks: full_shard, shard_grad_op, shard_optim, no_shard, hybrid_shard or "
     "hybrid_shard_zero2"},
    {"seed", EXAMPLE_SIZE, FIELD(training.seed), 1, 900000000, NULL, "of velocities and initial values"},
    {"test-frames", EXAMPLE_SIZE, FIELD(test_frames), 0, 1000000, NULL,
     "frames behind those trained on, whose forces are compared"},
    {"drive", EXAMPLE_SIZE, FIELD(drive), 0, EXAMPLE_MOST_SIZE, NULL,
     "time steps that the learned potential then takes, beside as many of LAMMPS's own; 0: none"},
    {"dump-file", EXAMPLE_TEXT, FIELD(dump_file), 0, 0, NULL,
     "with --mode dump: the file, which is removed at the end"},
    EXAMPLE_CHECKPOINT_ROWS(md_options),
    {"progress", EXAMPLE_CHOICE, FIELD(progress), 0, 0, example_progress_names,
     "bar on stderr: on, off, or auto: if stderr is a terminal"},
    {"exact", EXAMPLE_FLAG, FIELD(exact), 0, 0, NULL,
     "print the loss of each frame, and hashes of all parameters and atoms, to the last bit"},
    {"help", EXAMPLE_FLAG, FIELD(help), 0, 0, NULL, "this text"},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static const md_options defaults = {
    .mode        = MD_BOTH,
    .system      = {.cells = 6, .density = 0.8442, .temperature = 1.44, .timestep = 0.005},
    .training    = {.frames   = 200,
                    .updates  = 32,
                    .batches  = 8,
                    .warmup   = 100,
                    .seed     = 1,
                    .lr       = 0.005,
                    .strategy = FSDP_FULL_SHARD},
    .equilibrate = 300,
    .interval    = 20,
    .test_frames = 10,
    .drive       = 1000,
    .dump_file   = "06_molecular_dynamics.dump",
    .checkpoint  = EXAMPLE_CHECKPOINT_OPTIONS_DEFAULT,
    .progress    = EXAMPLE_PROGRESS_AUTO,
};

static fsdp_status check(const md_options *o, int ranks)
{
    const size_t atoms = md_system_atoms(&o->system);

    if (atoms / (size_t)ranks < LEAST_ATOMS) {
        return example_fail(
            "--cells %zu are %zu atoms, fewer than %d for each of %d ranks; use more cells, or at most %zu "
            "ranks",
            o->system.cells, atoms, LEAST_ATOMS, ranks, atoms / LEAST_ATOMS);
    }
    if (o->training.batches > atoms) {
        return example_fail("--batches is %zu, and --cells %zu are %zu atoms; use fewer batches", o->training.batches,
                            o->system.cells, atoms);
    }
    if (o->checkpoint.folder && o->mode != MD_BOTH) {
        return example_fail("--mode %s is there to be timed and saves nothing; leave --checkpoint out", modes[o->mode]);
    }
    return FSDP_OK;
}

fsdp_status md_options_read(int argc, char **argv, int ranks, md_options *options)
{
    *options = defaults;
    EXAMPLE_TRY(example_options_read(argc, argv, rows, N_ROWS, options));
    options->system.seed = options->training.seed;
    return options->help ? FSDP_OK : check(options, ranks);
}

void md_options_help(void)
{
    printf("usage: mpirun -n RANKS 06_molecular_dynamics [OPTION]...\n\n"
           "Runs a liquid in LAMMPS, and trains a potential on its atoms while it runs, sharded over the same ranks; "
           "then the\n"
           "potential drives the dynamics.\n\n");
    example_options_print(rows, N_ROWS, &defaults);
}
