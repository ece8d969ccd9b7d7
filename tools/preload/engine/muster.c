#include "tools/preload/engine/muster.h"

#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/preload/engine/report.h"
#include "tools/preload/engine/settings.h"
#include "tools/preload/engine/text.h"

enum { TAG = 32767, PATIENCE_S = 10, NAMED = 8 }; /* the largest tag that every MPI has */

/* What ranks must have in common, in a number: their versions and how their settings lie in memory. */
static int signature(void)
{
    unsigned mixed = 2166136261u; /* FNV-1a */

    for (const char *c = FSDPI_PRELOAD_VERSION; *c != '\0'; c++) {
        mixed = (mixed ^ (unsigned char)*c) * 16777619u;
    }
    return (int)((mixed ^ (unsigned)sizeof(fsdpi_preload_settings)) & INT_MAX);
}

static double patience(void)
{
    const char *text  = getenv("FSDP_TIMEOUT_S");
    const long  limit = text != NULL ? strtol(text, NULL, 10) : 0;

    return limit > 0 && limit < PATIENCE_S ? (double)limit : PATIENCE_S;
}

/* Whether it is complete in time. A message that has not come by then is not waited for any more. */
static bool complete_by(MPI_Request *request, double end)
{
    const struct timespec nap  = {.tv_nsec = 1000000};
    int                   done = 0;

    while (PMPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        if (fsdpi_report_now() > end) {
            (void)PMPI_Cancel(request);
            (void)PMPI_Request_free(request);
            return false;
        }
        (void)nanosleep(&nap, NULL);
    }
    return done != 0;
}

static void say_missing(const int *signatures, int size)
{
    char   names[128] = "";
    size_t length     = 0;
    int    missing = 0, others = 0;

    for (int i = 1; i < size; i++) {
        others += signatures[i] != 0 && signatures[i] != signature();
        if (signatures[i] == 0 && missing++ < NAMED) {
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%d", length > 0 ? ", " : "", i);
        }
    }
    if (missing > 0) {
        fsdpi_preload_say(
            "stands aside, all calls go to MPI: of %d ranks of MPI_COMM_WORLD %d run without it, rank%s %s%s; "
            "preload it in all of them, from a folder that every node sees",
            size, missing, missing > 1 ? "s" : "", names, missing > NAMED ? " and more" : "");
    } else {
        fsdpi_preload_say("stands aside, all calls go to MPI: %d of %d ranks preload another version than rank 0's %s",
                          others, size, FSDPI_PRELOAD_VERSION);
    }
}

/* Rank 0: hears everybody, and answers those that it has heard. */
static bool hear_all(int size)
{
    const double end        = fsdpi_report_now() + patience();
    int         *signatures = calloc((size_t)size, sizeof *signatures);
    MPI_Request *requests   = calloc((size_t)size, sizeof(MPI_Request));
    int          all        = signatures != NULL && requests != NULL;

    for (int i = 1; all && i < size; i++) {
        (void)PMPI_Irecv(&signatures[i], 1, MPI_INT, i, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    const bool asked = all;
    for (int i = 1; asked && i < size; i++) {
        all = complete_by(&requests[i], end) && signatures[i] == signature() && all;
    }
    if (asked && !all) {
        say_missing(signatures, size);
    }
    for (int i = 1; asked && i < size; i++) {
        if (signatures[i] != 0) {
            (void)PMPI_Send(&all, 1, MPI_INT, i, TAG, MPI_COMM_WORLD);
        }
    }
    free(signatures);
    free(requests);
    return all != 0;
}

/* All others. Rank 0 may hear the last of them only when its own patience ends. */
static bool be_heard(int rank)
{
    MPI_Request  requests[2];
    const double end  = fsdpi_report_now() + 2 * patience();
    const int    mine = signature();
    int          all  = 0;

    (void)PMPI_Irecv(&all, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[0]);
    (void)PMPI_Isend(&mine, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[1]);
    const bool answered = complete_by(&requests[0], end);
    if (!answered && rank == 1) {
        fsdpi_preload_say(
            "stands aside, all calls go to MPI: rank 0 of MPI_COMM_WORLD runs without it; preload it in all "
            "ranks, from a folder that every node sees");
    }
    if (answered) {
        (void)PMPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    } else {
        (void)PMPI_Cancel(&requests[1]);
        (void)PMPI_Request_free(&requests[1]);
    }
    return all != 0;
}

bool fsdpi_muster(int rank, int size)
{
    return rank == 0 ? hear_all(size) : be_heard(rank);
}
