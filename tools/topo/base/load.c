#include "tools/topo/base/load.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 8 /* of /proc/stat: user, nice, system, idle, waiting for disks, two of interrupts, stolen */
#define IDLE    3
#define WAITING 4

static void update(topo_load *load, int thread, const unsigned long long *ticks)
{
    unsigned long long all = 0, busy, spent;

    for (int c = 0; c < COLUMNS; c++) {
        all += ticks[c];
    }
    busy  = all - ticks[IDLE] - ticks[WAITING];
    spent = all - load->all[thread];
    if (spent > 0 && busy >= load->busy[thread]) {
        load->percent[thread] = 100.0 * (double)(busy - load->busy[thread]) / (double)spent;
    }
    load->all[thread]  = all;
    load->busy[thread] = busy;
}

void topo_load_look(topo_load *load)
{
    FILE *file = fopen("/proc/stat", "re");
    char  line[512];

    for (int t = 0; t < TOPO_LOAD_THREADS; t++) {
        load->percent[t] = load->all[t] > 0 ? load->percent[t] : -1;
    }
    while (file && fgets(line, sizeof line, file)) {
        unsigned long long t[COLUMNS] = {0};
        int                thread;

        if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &thread, &t[0], &t[1], &t[2], &t[3], &t[4],
                   &t[5], &t[6], &t[7]) >= 5 &&
            thread >= 0 && thread < TOPO_LOAD_THREADS) {
            update(load, thread, t);
        }
    }
    if (file) {
        (void)fclose(file);
    }
}

double topo_load_percent(const topo_load *load, const fsdp_mask *threads)
{
    double sum = 0;
    int    n   = 0;

    for (int t = 0; t < TOPO_LOAD_THREADS; t++) {
        if (fsdp_mask_has(threads, t) && load->percent[t] >= 0) {
            sum += load->percent[t];
            n++;
        }
    }
    return n > 0 ? sum / n : -1;
}

/* A line of meminfo, of which those of NUMA nodes begin with "Node 0 "; in BYTES. */
static void read_line(const char *line, const char *name, double *value)
{
    const char *found = strstr(line, name);
    double      kib;

    if (found && sscanf(found + strlen(name), "%lf", &kib) == 1) {
        *value = 1024 * kib;
    }
}

topo_memory topo_memory_look(int numa)
{
    char        path[80] = "/proc/meminfo", line[256];
    double      total = -1, unused = -1, files = 0;
    topo_memory memory = {-1, -1};
    FILE       *file;

    if (numa >= 0) {
        (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", numa);
    }
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        read_line(line, "MemTotal:", &total);
        read_line(line, numa >= 0 ? "MemFree:" : "MemAvailable:", &unused);
        if (numa >= 0) {
            read_line(line, "FilePages:", &files);
        }
    }
    if (file) {
        (void)fclose(file);
    }
    if (total >= 0 && unused >= 0) {
        memory = (topo_memory){total - unused - files, total};
    }
    return memory;
}
