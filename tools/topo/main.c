/*
 * fsdp-topo: a node, who runs where on it, and who should.
 *
 *     fsdp-topo                                     this node: packages, NUMA nodes, caches, cores, GPUs, links, network cards
 *     mpirun -n 8 fsdp-topo                         where every rank is, what is wrong with that, what the plan is
 *     fsdp-topo --input node.xml --ranks 8 --svg node.svg   the plan for another machine, drawn
 *     fsdp-topo --launch --ranks 8                  the lines of mpirun, srun and others that give it
 *     fsdp-topo --watch                             GPUs, cores and memory at work
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/options.h"
#include "tools/topo/base/options.h"
#include "tools/topo/base/world.h"
#include "tools/topo/report/collect.h"
#include "tools/topo/report/gather.h"
#include "tools/topo/report/planned.h"
#include "tools/topo/svg/svg.h"
#include "tools/topo/text/json.h"
#include "tools/topo/text/launch.h"
#include "tools/topo/text/text.h"
#include "tools/topo/text/watch.h"
#include "tools/topo/text/wrapper.h"

static int exit_status(fsdp_status status)
{
    return status == FSDP_OK ? EXIT_SUCCESS : status == FSDP_ERR_ARG ? TOPO_EXIT_USAGE : EXIT_FAILURE;
}

/* What can be known to fail before anything is read; what is in the file stays until there is something better. */
static fsdp_status can_write(const topo_world *world, const char *option, const char *path)
{
    FILE *file = path && world->rank == 0 ? fopen(path, "ae") : NULL;

    if (path && world->rank == 0 && (!file || fclose(file) != 0)) {
        return topo_fail(world, "--%s is '%.200s', which cannot be written: %s; name a file that can be", option, path,
                         strerror(errno));
    }
    return FSDP_OK;
}

static FILE *open_output(const topo_world *world, const char *path)
{
    FILE *file = fopen(path, "we");

    if (!file) {
        (void)topo_fail(world, "'%.200s' cannot be written any more: %s; name another file", path, strerror(errno));
    }
    return file;
}

static fsdp_status close_output(const topo_world *world, const char *path, FILE *file)
{
    const int failed = ferror(file);

    if (fclose(file) != 0 || failed) {
        return topo_fail(world, "'%.200s' could not be written whole: %s; make room", path, strerror(errno));
    }
    return FSDP_OK;
}

static fsdp_status print_settings(void)
{
    fsdp_context *ctx;
    fsdp_status   status;

    TOPO_TRY(fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    status = fsdp_rank(ctx) == 0 ? fsdp_settings_print(ctx, stdout) : FSDP_OK;
    if (fsdp_finalize(ctx) != FSDP_OK) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* MPI_Finalize() would wait for a rank that is gone */
    }
    return status;
}

static fsdp_status print_report(const topo_world *world, const topo_options *options, const topo_report *report)
{
    topo_writer *writer = options->json ? topo_json_write : options->why ? topo_text_write_why : topo_text_write;
    topo_texts   texts;

    TOPO_TRY(topo_collect(world, report, writer, &texts));
    if (world->rank == 0 && options->json) {
        topo_json_document(stdout, &texts);
    } else {
        for (size_t i = 0; i < texts.n; i++) {
            (void)fputs(texts.text[i], stdout);
        }
    }
    topo_texts_release(&texts);
    return FSDP_OK;
}

static fsdp_status draw_report(const topo_world *world, const char *path, const topo_report *report)
{
    fsdp_status status = FSDP_OK;
    topo_texts  texts;

    TOPO_TRY(topo_collect(world, report, topo_svg_write, &texts));
    if (world->rank == 0) {
        FILE *file = open_output(world, path);

        if (file) {
            topo_svg_document(file, &texts);
        }
        status = file ? close_output(world, path, file) : FSDP_ERR_ARG;
    }
    topo_texts_release(&texts);
    return topo_agree(world, status);
}

static fsdp_status write_wrapper(const topo_world *world, const char *path, const topo_report *report)
{
    FILE *file = open_output(world, path);

    if (!file) {
        return FSDP_ERR_ARG;
    }
    topo_wrapper_write(file, report);
    TOPO_TRY(close_output(world, path, file));
    if (chmod(path, 0755) != 0) {
        return topo_fail(world, "--wrapper '%.200s' cannot be made executable: %s; name a file of your own", path,
                         strerror(errno));
    }
    return FSDP_OK;
}

static fsdp_status show(const topo_world *world, const topo_options *options, int nodes, topo_report *report)
{
    if (options->watch) {
        return topo_watch(world, options, report);
    }
    if (options->launch) {
        TOPO_TRY(options->wrapper ? write_wrapper(world, options->wrapper, report) : FSDP_OK);
        topo_launch_write(stdout, report, nodes, options->wrapper);
        return FSDP_OK;
    }
    TOPO_TRY(print_report(world, options, report));
    return options->svg ? draw_report(world, options->svg, report) : FSDP_OK;
}

/* A plan is rank 0's alone: the others only learn how it went. */
static fsdp_status show_plan(const topo_world *world, const topo_options *options)
{
    topo_options asked  = *options;
    topo_world   alone  = {.size = 1, .node_size = 1, .node = MPI_COMM_NULL, .leaders = MPI_COMM_NULL};
    fsdp_status  status = FSDP_OK;
    topo_report  report;
    int          nodes = 1;

    if (world->rank == 0) {
        if (world->has_mpi) {
            MPI_Comm_size(world->leaders, &nodes);
            asked.ranks = asked.ranks || options->input ? asked.ranks : (size_t)world->node_size;
        }
        status = topo_report_plan(&alone, &asked, &report);
        status = status == FSDP_OK ? show(&alone, &asked, nodes, &report) : status;
        topo_report_release(&report);
    }
    return topo_agree(world, status);
}

/* Collective. @return how many ranks of the job are not where the plan of their node has them; rank 0 says it */
static int count_deviating(const topo_world *world, const topo_report *report)
{
    int count = 0;

    for (size_t i = 0; i < report->n; i++) {
        count += topo_report_differs(report, i);
    }
    MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (count > 0) {
        (void)topo_fail(world, "--check: %d of %d ranks not where the plan has them; what fsdp_init() says tells why",
                        count, world->size);
    }
    return count;
}

static fsdp_status show_job(const topo_world *world, const topo_options *options, int *deviating)
{
    topo_report report;
    fsdp_status status = topo_report_gather(world, &report);

    status = status == FSDP_OK ? show(world, options, 1, &report) : status;
    if (status == FSDP_OK && options->check) {
        *deviating = count_deviating(world, &report);
    }
    topo_report_release(&report);
    return status;
}

static fsdp_status run(const topo_world *world, const topo_options *options, int *deviating)
{
    if (options->check && !world->has_mpi) {
        return topo_fail(world, "--check compares ranks that run with their plan; start it under mpirun");
    }
    TOPO_TRY(topo_agree(world, can_write(world, "svg", options->svg)));
    TOPO_TRY(topo_agree(world, can_write(world, "wrapper", options->wrapper)));
    if (options->settings) {
        return print_settings();
    }
    if (world->has_mpi && !options->input && !options->ranks && !options->launch) {
        return show_job(world, options, deviating);
    }
    return show_plan(world, options);
}

static fsdp_status flush_output(const topo_world *world)
{
    const int flushed = fflush(stdout) == 0;

    if (!flushed || ferror(stdout)) {
        (void)topo_fail(world, "standard output could not be written: %s; make room",
                        flushed ? "an earlier write failed" : strerror(errno));
        return FSDP_ERR_STATE;
    }
    return FSDP_OK;
}

int main(int argc, char **argv)
{
    topo_options options;
    topo_world   world;
    char         message[CLI_MESSAGE_BYTES];
    fsdp_status  status = FSDP_OK;
    int          with_mpi, deviating = 0;

    topo_options_parse(argc, argv, &options, message);
    with_mpi = topo_was_launched() || (options.settings && !message[0] && !options.help && !options.version);
    if (with_mpi) {
        MPI_Init(&argc, &argv);
    }
    topo_world_open(&world, with_mpi);
    if (message[0]) {
        status = topo_fail(&world, "%s", message);
    } else if (!topo_options_answer(&options, world.rank)) {
        status = run(&world, &options, &deviating);
    }
    status = status == FSDP_OK ? flush_output(&world) : status;
    topo_world_close(&world);
    if (with_mpi) {
        MPI_Finalize();
    }
    return status == FSDP_OK && deviating > 0 ? TOPO_EXIT_DEVIATES : exit_status(status);
}
