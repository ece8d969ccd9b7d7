#include "tools/topo/text/watch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/topo/base/load.h"
#include "tools/topo/base/words.h"
#include "tools/topo/report/collect.h"

#define FIRST_LOOK 0.1 /* SECONDS over which cores are watched before anything is printed */

static volatile sig_atomic_t stopped; /* a handler can reach nothing else */

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

static void listen_to_signals(void)
{
    struct sigaction action = {.sa_handler = stop};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

/* Ends early where a signal comes. */
static void nap(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (!stopped && nanosleep(&left, &left) != 0) {
    }
}

static topo_word amount(double value, const char *unit)
{
    topo_word word = {"-"};

    if (value >= 0) {
        (void)snprintf(word.text, sizeof word.text, "%.0f%s", value, unit);
    }
    return word;
}

static topo_word part(double used, double total)
{
    topo_word word = {"-"};

    if (used >= 0 && total > 0) {
        (void)snprintf(word.text, sizeof word.text, "%.1f/%.1f GiB", used / 1073741824.0, total / 1073741824.0);
    }
    return word;
}

static void print_gpu_head(FILE *file)
{
    (void)fprintf(file, "  %-22s  %16s  %5s  %9s  %6s  %11s", "GPU", "memory", "use", "clock", "power", "temperature");
}

static void print_gpu(FILE *file, const topo_report *report, int gpu)
{
    fsdp_gpu_health h = {-1, -1, -1, -1, -1, -1};

    if (gpu >= 0) {
        (void)fsdp_gpu_health_read(report->topology, (size_t)gpu, &h);
    }
    (void)fprintf(file, "  %-22s  %16s  %5s  %9s  %6s  %11s", topo_gpu(report->node, gpu).text,
                  part(h.used_bytes, h.total_bytes).text, amount(h.busy_percent, "%").text,
                  amount(h.clock_mhz, " MHz").text, amount(h.power_watts, " W").text,
                  amount(h.temperature_celsius, " C").text);
}

static void print_node(FILE *file, const topo_report *report)
{
    const topo_memory memory = topo_memory_look(-1);
    const time_t      now    = time(NULL);
    struct tm         parts  = {0};
    char              clock[16];

    (void)localtime_r(&now, &parts);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    (void)fprintf(file, "%s %s: %s, %s busy, memory %s\n", clock, report->host,
                  topo_counted(report->node->n_cores, "core").text,
                  amount(topo_load_percent(report->load, &report->node->threads), "%").text,
                  part(memory.used, memory.total).text);
}

static void print_numas(FILE *file, const topo_report *report)
{
    for (size_t i = 0; i < report->node->n_numas; i++) {
        const fsdp_domain *numa   = &report->node->numas[i];
        const topo_memory  memory = topo_memory_look(numa->number);

        (void)fprintf(file, "  NUMA node %s: %s busy, memory %s\n", topo_number(report->node->numas, (int)i).text,
                      amount(topo_load_percent(report->load, &numa->threads), "%").text,
                      part(memory.used, memory.total).text);
    }
}

static void print_ranks(FILE *file, const topo_report *report)
{
    const int gpus = report->node->n_gpus > 0;

    (void)fprintf(file, "  %4s", "rank");
    if (gpus) {
        print_gpu_head(file);
    }
    (void)fprintf(file, "  %5s  %16s  %s\n", "cores", "its memory", "threads");
    for (size_t i = 0; i < report->n; i++) {
        const fsdp_place *place  = &report->real[i];
        const topo_memory memory = topo_memory_look(place->numa >= 0 ? report->node->numas[place->numa].number : -1);
        char              threads[64];

        fsdp_mask_text(&place->threads, threads, sizeof threads);
        (void)fprintf(file, "  %4d", report->ranks[i].before.rank);
        if (gpus) {
            print_gpu(file, report, place->gpu);
        }
        (void)fprintf(file, "  %5s  %16s  %s\n", amount(topo_load_percent(report->load, &place->threads), "%").text,
                      part(memory.used, memory.total).text, threads);
    }
}

static void write_look(FILE *file, const topo_report *report, size_t index)
{
    (void)index;
    print_node(file, report);
    if (report->n > 0) {
        print_ranks(file, report);
        return;
    }
    print_numas(file, report);
    if (report->node->n_gpus > 0) {
        print_gpu_head(file);
        (void)fputc('\n', file);
    }
    for (size_t i = 0; i < report->node->n_gpus; i++) {
        print_gpu(file, report, (int)i);
        (void)fputc('\n', file);
    }
}

/* Open MPI gives its ranks a terminal of their own: what mpirun itself prints to is what a person sees, or does not. */
static int is_screen(const topo_world *world)
{
    char    path[64], name[64];
    ssize_t length;

    if (!isatty(STDOUT_FILENO) || !world->has_mpi) {
        return isatty(STDOUT_FILENO);
    }
    (void)snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getppid(), STDOUT_FILENO);
    length                        = readlink(path, name, sizeof name - 1);
    name[length > 0 ? length : 0] = 0;
    return strncmp(name, "/dev/pts/", 9) == 0 || strncmp(name, "/dev/tty", 8) == 0;
}

static fsdp_status look(const topo_world *world, const topo_report *report)
{
    topo_texts texts;

    if (topo_leads(world)) {
        topo_load_look(report->load);
    }
    TOPO_TRY(topo_collect(world, report, write_look, &texts));
    if (texts.n > 0 && is_screen(world)) {
        (void)fputs("\033[H\033[J", stdout); /* up to the corner, and what was below is gone */
    }
    for (size_t i = 0; i < texts.n; i++) {
        (void)fputs(texts.text[i], stdout);
    }
    (void)fflush(stdout);
    topo_texts_release(&texts);
    return FSDP_OK;
}

/* What is read of the system is about this machine, and no other. */
static fsdp_status check_here(const topo_world *world, const topo_report *report)
{
    if (topo_agree(world, topo_leads(world) && !report->node->is_here ? FSDP_ERR_ARG : FSDP_OK) != FSDP_OK) {
        return topo_fail(world, "--watch shows this machine, and FSDP_TOPOLOGY names another one's record; unset it");
    }
    return FSDP_OK;
}

fsdp_status topo_watch(const topo_world *world, const topo_options *options, topo_report *report)
{
    TOPO_TRY(check_here(world, report));
    report->load = calloc(1, sizeof *report->load);
    if (topo_agree(world, report->load ? FSDP_OK : FSDP_ERR_MEMORY) != FSDP_OK) {
        (void)topo_fail(world, "no memory for what cores are doing; free some");
        return FSDP_ERR_MEMORY;
    }
    listen_to_signals();
    topo_load_look(report->load);
    nap(FIRST_LOOK);
    for (size_t i = 0; options->count == 0 || i < options->count; i++) {
        nap(i > 0 ? options->interval : 0);
        if (topo_agree(world, stopped ? FSDP_ERR_STATE : FSDP_OK) != FSDP_OK) {
            break;
        }
        TOPO_TRY(look(world, report));
    }
    return FSDP_OK;
}
