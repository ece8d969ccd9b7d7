#include "tools/preload/engine/report.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/preload/engine/settings.h"
#include "tools/preload/engine/text.h"
#include "tools/preload/engine/worth.h"

enum {
    BINS    = 18, /* of sizes: 0, and each four times the one before, from 64 bytes */
    SAMPLES = 1024,
    SIDES   = 2, /* MPI, the library */
    LEAST   = 4  /* of each; of fewer a median says nothing, since one long wait for a late rank would be it */
};

/* Times of calls that are compared: all of the first ones, then each in the place of one before by chance. */
typedef struct {
    uint64_t count;
    float    seconds[SAMPLES];
} sample;

typedef struct {
    uint64_t calls, bytes, fates[FSDPI_N_FATES];
    double   seconds;
    sample  *sides; /* SIDES of them, once there is one to be compared */
} line;

static line            LINES[FSDPI_N_COLLECTIVES][BINS];
static pthread_mutex_t LOCK = PTHREAD_MUTEX_INITIALIZER;
static double          begun;
static uint64_t        chance = 88172645463325252u;

double fsdpi_report_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void fsdpi_report_open(void)
{
    begun = fsdpi_report_now();
}

static int bin_of(uint64_t bytes)
{
    int bin = 0;

    for (uint64_t end = 1; bytes >= end && bin < BINS - 1; end = end == 1 ? 64 : 4 * end) {
        bin++;
    }
    return bin;
}

/* Marsaglia's xorshift (2003). */
static uint64_t draw(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance;
}

static void add_sample(line *to, const fsdpi_event *event)
{
    if (to->sides == NULL) {
        to->sides = calloc(SIDES, sizeof *to->sides);
    }
    if (to->sides == NULL) {
        return;
    }
    sample        *side  = &to->sides[event->by_library];
    const uint64_t place = side->count < SAMPLES ? side->count : draw() % (side->count + 1);
    if (place < SAMPLES) {
        side->seconds[place] = (float)event->seconds;
    }
    side->count++;
}

void fsdpi_report_note(const fsdpi_event *event)
{
    line *to = &LINES[event->collective][bin_of(event->bytes)];

    (void)pthread_mutex_lock(&LOCK);
    to->calls++;
    to->bytes += event->bytes;
    to->seconds += event->seconds;
    to->fates[event->fate]++;
    if (event->fate == FSDPI_COMPARED) {
        add_sample(to, event);
    }
    (void)pthread_mutex_unlock(&LOCK);
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Sorts; 0 if there are too few. */
static double median(sample *of)
{
    const size_t count = of->count < SAMPLES ? (size_t)of->count : SAMPLES;

    if (count < LEAST) {
        return 0;
    }
    qsort(of->seconds, count, sizeof of->seconds[0], compare_floats);
    return 0.5 * ((double)of->seconds[count / 2] + (double)of->seconds[(count - 1) / 2]);
}

/* "-", "64", "4K": the bytes that a bin stays below. */
static const char *bin_text(int bin, char *text, size_t bytes)
{
    static const char UNITS[] = " KMGT";

    uint64_t end  = 64;
    int      unit = 0;
    if (bin == 0) {
        return "0";
    }
    if (bin == BINS - 1) {
        return "more";
    }
    for (int i = 1; i < bin; i++) {
        end *= 4;
    }
    while (end >= 1024) {
        end /= 1024;
        unit++;
    }
    (void)snprintf(text, bytes, "<%d%.*s", (int)end, unit > 0, &UNITS[unit]);
    return text;
}

static void write_fates(FILE *file, const line *of)
{
    static const char *const TEXTS[] = {
#define TEXT_OF(name, text) text,
        FSDPI_FATES(TEXT_OF)
#undef TEXT_OF
    };
    const char *between = "";

    for (int i = FSDPI_ALONE; i < FSDPI_N_FATES; i++) {
        if (of->fates[i] > 0) {
            (void)fprintf(file, "%s%s", between, TEXTS[i]);
            if (of->fates[i] < of->calls) {
                (void)fprintf(file, " %llu", (unsigned long long)of->fates[i]);
            }
            between = ", ";
        }
    }
    (void)fputs("\n", file);
}

/* Returns the seconds that the library saves, or would save, against MPI. */
static double write_comparison(FILE *file, line *of)
{
    double times[SIDES] = {0, 0};

    for (int i = 0; of->sides != NULL && i < SIDES; i++) {
        times[i] = median(&of->sides[i]);
    }
    if (times[0] <= 0 || times[1] <= 0) {
        (void)fprintf(file, " %10s %10s %6s ", "-", "-", "-");
        return 0;
    }
    (void)fprintf(file, " %10.2f %10.2f %6.2f ", 1e6 * times[0], 1e6 * times[1], times[0] / times[1]);
    return (double)of->fates[FSDPI_COMPARED] * (times[0] - times[1]);
}

static double write_line(FILE *file, fsdpi_collective which, int bin, double run)
{
    line          *of    = &LINES[which][bin];
    const uint64_t taken = of->fates[FSDPI_TAKEN] + of->fates[FSDPI_COMPARED];
    double         saved = 0;
    char           text[16];

    (void)fprintf(file, "%-21s %6s %9llu %15llu %9llu %9llu %10.4f %6.2f%%", fsdpi_collective_name(which),
                  bin_text(bin, text, sizeof text), (unsigned long long)of->calls, (unsigned long long)of->bytes,
                  (unsigned long long)taken, (unsigned long long)(of->calls - taken), of->seconds,
                  run > 0 ? 100 * of->seconds / run : 0);
    if (fsdpi_preload.compares) {
        saved = write_comparison(file, of);
    }
    (void)fputs(" ", file);
    write_fates(file, of);
    return saved;
}

static void write_table(FILE *file, int ranks)
{
    const double run   = fsdpi_report_now() - begun;
    double       saved = 0;

    (void)fprintf(file, "# libfsdp_mpi %s: %d ranks, %.3f s from MPI_Init to MPI_Finalize; calls and times of rank 0\n",
                  FSDPI_PRELOAD_VERSION, ranks, run);
    (void)fprintf(file, "# %-19s %6s %9s %15s %9s %9s %10s %7s", "collective", "bytes", "calls", "all bytes", "taken",
                  "declined", "seconds", "share");
    (void)fprintf(file, "%s  why declined\n", fsdpi_preload.compares ? "     MPI us libfsdp us  ratio " : "");
    for (int i = 0; i < FSDPI_N_COLLECTIVES; i++) {
        for (int bin = 0; bin < BINS; bin++) {
            if (LINES[i][bin].calls > 0) {
                saved += write_line(file, (fsdpi_collective)i, bin, run);
            }
        }
    }
    if (fsdpi_preload.compares) {
        (void)fprintf(file,
                      "# by the medians, libfsdp takes %.4f s %s than MPI for the calls compared: %.2f%% of the run\n",
                      saved < 0 ? -saved : saved, saved < 0 ? "more" : "less",
                      run > 0 ? 100 * (saved < 0 ? -saved : saved) / run : 0);
    }
}

/* In one piece, which what the program writes does not cut in two. */
static bool write_to_stderr(int ranks)
{
    char  *text  = NULL;
    size_t bytes = 0;
    FILE  *file  = open_memstream(&text, &bytes);

    if (file == NULL) {
        return false;
    }
    write_table(file, ranks);
    const bool written = fclose(file) == 0 && fwrite(text, 1, bytes, stderr) == bytes;
    free(text);
    return written;
}

static bool write_to_file(const char *path, int ranks)
{
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        return false;
    }
    write_table(file, ranks);
    return fclose(file) == 0;
}

void fsdpi_report_write(const char *path, int ranks)
{
    if (!(strcmp(path, "-") == 0 ? write_to_stderr(ranks) : write_to_file(path, ranks))) {
        fsdpi_preload_say("FSDP_MPI_REPORT: %s cannot be written: %s", path, strerror(errno));
    }
}
