#include "lib/topology/progress_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/config.h"
#include "lib/topology/mask.h"

/* ---- what compute leaves over -------------------------------------------------------------------------------------- */

/* The hardware threads of a core; only this one where the system does not say. */
static fsdp_mask core_of(const char *root, int thread)
{
    char      path[512], line[4096] = "";
    fsdp_mask core = {{0}};

    (void)snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", root, thread);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(line, sizeof line, file) != NULL) {
            line[strcspn(line, "\n")] = '\0';
        }
        (void)fclose(file);
    }
    if (line[0] == '\0' || fsdp_mask_read(line, &core) != FSDP_OK) {
        core = (fsdp_mask){{0}};
    }
    fsdpi_mask_add(&core, thread);
    return core;
}

/* "4", or "4,2" for threads that start 2 each; 0 where that cannot be read. */
static long count_computing(const char *text)
{
    long  all = 1;
    char *end;

    for (const char *at = text;; at = end + 1) {
        const long level = strtol(at, &end, 10);
        if (end == at || level < 1 || level > FSDPI_MASK_BITS || all > FSDPI_MASK_BITS) {
            return 0;
        }
        all *= level;
        if (*end != ',') {
            return *end == '\0' ? all : 0;
        }
    }
}

int fsdpi_idle_cpu(const char *root, const fsdp_mask *threads, const char *computing)
{
    const long needed = computing != NULL ? count_computing(computing) : 0;
    fsdp_mask  left   = *threads;
    long       cores  = 0;
    int        last   = -1;

    if (needed == 0) {
        return -1;
    }
    for (int t = fsdpi_mask_first(&left); t >= 0; t = fsdpi_mask_first(&left)) {
        const fsdp_mask core = core_of(root, t);
        for (int w = 0; w < FSDP_MASK_WORDS; w++) {
            left.word[w] &= ~core.word[w];
        }
        last = t;
        cores++;
    }
    return cores > needed ? last : -1;
}

/* ---- whose it is --------------------------------------------------------------------------------------------------- */

static int order_of(const fsdpi_cpu_claim *claims, size_t n, size_t mine, char *why, size_t size)
{
    const fsdpi_cpu_claim *own = &claims[mine];
    char                   text[128];

    if (!fsdp_mask_has(&own->launched, own->wanted)) {
        fsdp_mask_text(&own->launched, text, sizeof text);
        (void)snprintf(why, size,
                       "is not among the hardware threads that the launcher has given rank %d: %s; name one of them",
                       own->rank, text);
        return -1;
    }
    for (size_t r = 0; r < n; r++) {
        const bool asks = claims[r].wanted == own->wanted;
        const bool has  = fsdp_mask_has(&claims[r].threads, own->wanted) &&
                         !fsdpi_mask_equal(&claims[r].threads, &own->threads); /* one mask for both says nothing */

        if (r != mine && (asks || has)) {
            fsdp_mask_text(&claims[r].threads, text, sizeof text);
            (void)snprintf(why, size,
                           "is rank %d's, which %s %s; give each rank of a node a value of its own, or use 'auto'",
                           claims[r].rank, asks ? "asks for it too and is on" : "computes on", text);
            return -1;
        }
    }
    return own->wanted;
}

static bool is_alone(const fsdpi_cpu_claim *claims, size_t n, size_t mine)
{
    for (size_t r = 0; r < n; r++) {
        if (r != mine && fsdpi_mask_meets(&claims[r].threads, &claims[mine].threads)) {
            return false;
        }
    }
    return true;
}

int fsdpi_progress_cpu(const fsdpi_cpu_claim *claims, size_t n, size_t mine, bool shared, char *why, size_t size)
{
    const fsdpi_cpu_claim *own = &claims[mine];

    why[0] = '\0';
    if (own->wanted >= 0) {
        return order_of(claims, n, mine, why, size);
    }
    if (own->wanted == FSDP_CPU_NONE || shared) {
        return -1;
    }
    if (own->spare >= 0) {
        return own->spare;
    }
    return own->idle >= 0 && is_alone(claims, n, mine) ? own->idle : -1;
}

int fsdpi_claimed(const fsdpi_cpu_claim *claims, size_t n)
{
    fsdp_mask all = {{0}};

    for (size_t r = 0; r < n; r++) {
        fsdpi_mask_include(&all, &claims[r].threads);
    }
    return fsdp_mask_count(&all);
}

double fsdpi_share_of_core(const fsdpi_cpu_claim *claims, size_t n, double quota)
{
    const double threads = (double)fsdpi_claimed(claims, n);
    const double time    = quota > 0.0 && quota < threads ? quota : threads;

    return time <= 0.0 || time >= (double)n ? 1.0 : time / (double)n;
}
