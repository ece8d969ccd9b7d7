#include "bench/twin/twin.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/twin/launcher.h"
#include "bench/twin/twin_channel.h"

#define START_SECONDS 60.0 /* until the twin must have come */
#define END_SECONDS   10.0
#define LOOK_SECONDS  0.1

static int launcher_has_ended(bench_twin *twin)
{
    if (twin->launcher > 0 && waitpid(twin->launcher, NULL, WNOHANG) == twin->launcher) {
        twin->launcher = 0;
    }
    return twin->launcher <= 0;
}

/* Waits, asleep, for the launcher to end; ends it if it does not. */
static void end_launcher(bench_twin *twin)
{
    const double          begin = bench_now();
    const struct timespec t     = {0, (long)(LOOK_SECONDS * 1e9)};

    while (!launcher_has_ended(twin) && bench_now() - begin < END_SECONDS) {
        (void)nanosleep(&t, NULL);
    }
    if (twin->launcher > 0) {
        (void)kill(twin->launcher, SIGTERM);
        (void)waitpid(twin->launcher, NULL, 0);
        twin->launcher = 0;
    }
}

static void start(bench_twin *twin, const char *program, const bench_twin_kind *kind)
{
    char        name[64];
    const char *arguments[] = {BENCH_TWIN_ARGUMENT, name, kind->multiple ? "multiple" : "single", NULL};
    const int   listener    = bench_channel_listen(name, sizeof name);
    double      begin       = bench_now();

    if (listener < 0) {
        (void)snprintf(twin->why_not, sizeof twin->why_not, "no socket to talk to it");
        return;
    }
    twin->launcher = bench_launch_alike(program, kind->preload, arguments, twin->why_not, sizeof twin->why_not);
    while (twin->launcher > 0 && twin->socket < 0 && bench_now() - begin < START_SECONDS) {
        twin->socket = bench_channel_accept(listener, LOOK_SECONDS);
        if (twin->socket < 0 && launcher_has_ended(twin)) {
            (void)snprintf(twin->why_not, sizeof twin->why_not, "the launcher could not start as many ranks again");
        }
    }
    if (twin->launcher > 0 && twin->socket < 0) {
        (void)snprintf(twin->why_not, sizeof twin->why_not, "it has not come within %.0f s", START_SECONDS);
        end_launcher(twin);
    }
    (void)close(listener);
}

void bench_twin_start(bench_twin *twin, const bench_world *world, const char *program, const bench_twin_kind *kind)
{
    *twin = (bench_twin){.socket = -1};
    if (world->rank == 0) {
        start(twin, program, kind);
        twin->there = twin->socket >= 0;
    }
    bench_share_asleep(world, &twin->there, sizeof twin->there);
}

/* A twin that is gone has no more to say: what it was asked is not known. */
double bench_twin_ask(const bench_twin *twin, const bench_world *world, const bench_order *order)
{
    double answer = -1;

    if (world->rank == 0 && !(bench_channel_send(twin->socket, order, sizeof *order) &&
                              bench_channel_receive(twin->socket, &answer, sizeof answer))) {
        (void)fprintf(stderr, "fsdp-bench: the twin job does not answer; --no-twin does without\n");
        answer = -1;
    }
    bench_share_asleep(world, &answer, sizeof answer);
    return answer;
}

void bench_twin_open(bench_twin *twin, const bench_world *world, const bench_options *options, size_t bytes)
{
    const bench_twin_kind kind  = {.multiple = options->thread_level};
    const bench_order     order = {.kind      = BENCH_ORDER_PREPARE,
                                   .library   = 1,
                                   .memory    = options->memory,
                                   .bytes     = bytes,
                                   .reuse     = options->reuse,
                                   .node_size = options->ranks_per_node ? (int)options->ranks_per_node : FSDP_UNSET};

    *twin = (bench_twin){.socket = -1, .why_not = "--no-twin"};
    if (!bench_options_sweep(options) || options->device == BENCH_DEVICE_GPU) {
        (void)snprintf(twin->why_not, sizeof twin->why_not, "only the plain sweep on host memory has one");
        return;
    }
    if (options->no_twin) {
        return;
    }
    bench_twin_start(twin, world, options->program, &kind);
    if (twin->there && bench_twin_ask(twin, world, &order) < 0) {
        bench_twin_close(twin, world);
        (void)snprintf(twin->why_not, sizeof twin->why_not, "no memory for two more buffers of %zu bytes per rank",
                       bytes);
    }
}

double bench_twin_time(const bench_twin *twin, const bench_world *world, const bench_case *c, size_t iterations)
{
    const bench_order order = {.kind = BENCH_ORDER_TIME, .what = *c, .iterations = iterations};

    return twin->there ? bench_twin_ask(twin, world, &order) : -1;
}

void bench_twin_close(bench_twin *twin, const bench_world *world)
{
    const bench_order order = {.kind = BENCH_ORDER_END};

    if (!twin->there) {
        return;
    }
    (void)bench_twin_ask(twin, world, &order);
    twin->there = 0;
    if (world->rank == 0) {
        (void)close(twin->socket);
        twin->socket = -1;
        end_launcher(twin);
    }
}
