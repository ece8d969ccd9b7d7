/*
 * fsdp-bench: what the collectives cost, beside MPI's own and the bound that memory and links set.
 *
 *     mpirun -n 8 fsdp-bench                     allgather, reduce_scatter and allreduce, 8 bytes to 256 MiB
 *     mpirun -n 8 fsdp-bench --overlap           how much of it compute hides
 *     mpirun -n 2 fsdp-bench --floor             between two nodes: how near to what messages allow, beside MPI
 *     mpirun -n 8 fsdp-bench --async             what the progress thread reaches alone
 *     mpirun -n 8 fsdp-bench --lanes             what a short operation takes beside long ones
 *     mpirun -n 2 fsdp-bench --record            what remembering operations costs
 *     mpirun -n 2 fsdp-bench --drop-in libfsdp_mpi.so   plain MPI, and with the drop-in
 *     mpirun -n 8 fsdp-bench --step              training steps: what gathering ahead hides behind compute
 *     mpirun -n 8 fsdp-bench --checkpoint DIR    saving and loading there, beside one dd per rank
 *     mpirun -n 8 fsdp-bench --device gpu        the same collectives on GPU memory; with --kernels: what kernels move
 *     mpirun -n 8 fsdp-bench --tune=FILE         writes a table of algorithms for this machine
 *     fsdp-bench --algorithms --nodes 4096       prints what would be chosen on so many nodes, and why
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench/async/async.h"
#include "bench/base/options.h"
#include "bench/base/world.h"
#include "bench/collectives/overlap.h"
#include "bench/collectives/plot.h"
#include "bench/collectives/shards.h"
#include "bench/collectives/sweep.h"
#include "bench/drop_in/drop_in.h"
#include "bench/floor/floor.h"
#include "bench/job/open.h"
#include "bench/kernels/kernels.h"
#include "bench/lanes/lanes.h"
#include "bench/machine/disk.h"
#include "bench/pipeline/pipeline.h"
#include "bench/record/record.h"
#include "bench/training/checkpoint.h"
#include "bench/training/step.h"
#include "bench/tune/tune.h"
#include "bench/twin/twin.h"
#include "tools/common/options.h"

static fsdp_status run_job(bench_world *world, const bench_options *options, size_t *wrong)
{
    bench_job   job;
    fsdp_status status = bench_job_open(&job, world, options), closed;

    if (status == FSDP_OK) {
        status = options->overlap      ? bench_overlap(&job)
                 : options->floor      ? bench_floor(&job, wrong)
                 : options->async      ? bench_async(&job, wrong)
                 : options->lanes      ? bench_lanes(&job, wrong)
                 : options->record     ? bench_record(&job)
                 : options->drop_in    ? bench_drop_in(&job)
                 : options->shards     ? bench_shards(&job, wrong)
                 : options->step       ? bench_step(&job, wrong)
                 : options->checkpoint ? bench_checkpoint(&job, wrong)
                 : options->pipeline   ? bench_pipeline(&job, wrong)
                 : options->kernels    ? bench_kernels(&job, wrong)
                 : options->tune       ? bench_tune(&job, wrong)
                                       : bench_sweep(&job, wrong);
    }
    if (status == FSDP_ERR_MPI || status == FSDP_ERR_TIMEOUT) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* a rank is gone: nothing collective would end */
    }
    closed = bench_job_close(&job);
    return status != FSDP_OK ? status : closed;
}

static fsdp_status print_algorithms(const bench_world *world, const bench_options *options)
{
    if (!options->nodes) {
        return fsdp_algorithms_print(world->ctx, stdout);
    }
    const fsdp_cluster cluster = {.nodes          = (int)options->nodes,
                                  .ranks_per_node = options->ranks_per_node ? (int)options->ranks_per_node : 1,
                                  .latency_s      = options->alpha * 1e-6,
                                  .bytes_per_s    = options->beta * 1e9};
    return fsdp_algorithms_print_for(world->ctx, &cluster, stdout);
}

static int run(bench_world *world, const bench_options *options)
{
    size_t      wrong = 0;
    fsdp_status status;

    if (options->algorithms) {
        status = world->rank == 0 ? print_algorithms(world, options) : FSDP_OK;
        return status == FSDP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    status = run_job(world, options, &wrong);
    if (wrong > 0) {
        (void)bench_fail(world, "%zu elements are wrong", wrong);
    }
    return status == FSDP_OK && wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* What can be known to fail before anything is measured. */
static int outputs_are_possible(const bench_world *world, const bench_options *options)
{
    return bench_plot_possible(world, options) == FSDP_OK &&
           bench_disk_possible(world, options->checkpoint) == FSDP_OK &&
           bench_file_possible(world, "json", options->json) == FSDP_OK &&
           bench_file_possible(world, "csv", options->csv) == FSDP_OK &&
           bench_file_possible(world, "tune", options->tune) == FSDP_OK;
}

/* What the context has to tell first. */
static int run_is_possible(const bench_world *world, const bench_options *options)
{
    return bench_floor_possible(world, options) == FSDP_OK && bench_async_possible(world, options) == FSDP_OK &&
           bench_lanes_possible(world, options) == FSDP_OK;
}

static int open_and_run(bench_world *world, const bench_options *options)
{
    fsdp_config config;
    fsdp_status status;
    int         result;

    if (!outputs_are_possible(world, options)) {
        return BENCH_EXIT_USAGE;
    }
    fsdp_config_init(&config);
    status = bench_context_open(world, options, &config);
    if (status != FSDP_OK) {
        return status == FSDP_ERR_ARG ? BENCH_EXIT_USAGE : EXIT_FAILURE;
    }
    result = run_is_possible(world, options) ? run(world, options) : BENCH_EXIT_USAGE;
    if (fsdp_finalize(world->ctx) != FSDP_OK) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
    }
    return result;
}

/* A row that nobody can read is a failure. */
static int output_is_written(void)
{
    const int flushed = fflush(stdout) == 0;

    if (flushed && !ferror(stdout)) {
        return 1;
    }
    (void)fprintf(stderr, "fsdp-bench: standard output could not be written: %s; make room\n",
                  flushed ? "an earlier write failed" : strerror(errno));
    return 0;
}

int main(int argc, char **argv)
{
    bench_options options;
    bench_world   world;
    char          message[CLI_MESSAGE_BYTES];
    int           level, result = EXIT_SUCCESS;

    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* naps stand in for compute: they end when they should */
    if (argc > 1 && strcmp(argv[1], BENCH_TWIN_ARGUMENT) == 0) {
        return bench_twin_serve(argc, argv);
    }
    bench_options_parse(argc, argv, &options, message);
    MPI_Init_thread(&argc, &argv, options.thread_level ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
    bench_world_open(&world, level);
    if (message[0]) {
        (void)bench_fail(&world, "%s", message);
        result = BENCH_EXIT_USAGE;
    } else if (!bench_options_answer(&options, world.rank)) {
        result = open_and_run(&world, &options);
    }
    bench_world_close(&world);
    MPI_Finalize();
    return output_is_written() || result != EXIT_SUCCESS ? result : EXIT_FAILURE;
}
