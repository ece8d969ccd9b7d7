#include "fsdp/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>

#include "collectives/collectives.h"
#include "lib/context/context.h"
#include "lib/record/dump.h"

enum { MOST_SIGNALS = 8 };

static volatile sig_atomic_t arrived;

static struct {
    size_t           n;
    int              signals[MOST_SIGNALS];
    struct sigaction before[MOST_SIGNALS];
} watched;

/* A launcher also sends SIGTERM to ranks that wait for one that is gone, and SIGKILL soon: what they know of it is written now. */
static void note(int number)
{
    const int code = errno;

    if (arrived == 0) {
        arrived = number;
    }
    if (number == SIGTERM) {
        fsdpi_dump_of_signal(number, false);
    }
    errno = code;
}

/* Calls that a signal interrupts go on. */
static bool watch(int number)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};

    (void)sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, &watched.before[watched.n]) != 0) {
        return false;
    }
    watched.signals[watched.n++] = number;
    return true;
}

fsdp_status fsdp_stop_watch(const int *signals, size_t n)
{
    static const int defaults[] = {SIGUSR1, SIGTERM};

    if (watched.n > 0) {
        return fsdpi_fail(NULL, FSDP_ERR_STATE,
                          "fsdp_stop_watch: signals are watched already; call fsdp_stop_unwatch first");
    }
    if (signals == NULL) {
        signals = defaults;
        n       = sizeof defaults / sizeof defaults[0];
    }
    if (n == 0 || n > MOST_SIGNALS) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_stop_watch: %zu signals; watch 1 to %d", n, MOST_SIGNALS);
    }
    arrived = 0;
    for (size_t i = 0; i < n; i++) {
        if (!watch(signals[i])) {
            fsdp_stop_unwatch();
            return fsdpi_fail(NULL, FSDP_ERR_ARG, "fsdp_stop_watch: %d is no signal that can be handled", signals[i]);
        }
    }
    return FSDP_OK;
}

void fsdp_stop_unwatch(void)
{
    while (watched.n > 0) {
        watched.n--;
        (void)sigaction(watched.signals[watched.n], &watched.before[watched.n], NULL);
    }
    arrived = 0;
}

int fsdp_stop_signal(void)
{
    return (int)arrived;
}

fsdp_status fsdp_stop_agree(fsdp_context *ctx, int *signal)
{
    const char *name  = "fsdp_stop_agree";
    int32_t     first = (int32_t)arrived;

    if (ctx == NULL) {
        return fsdpi_fail(NULL, FSDP_ERR_ARG, "%s: the context is NULL; pass one from fsdp_init", name);
    }
    const fsdp_status status =
        signal != NULL ? FSDP_OK : fsdpi_fail(ctx, FSDP_ERR_ARG, "%s: the place for the signal is NULL", name);
    const fsdpi_purpose purpose = {.name = name, .status = status};
    const fsdp_status   agreed  = fsdpi_allreduce(ctx, &purpose, FSDP_IN_PLACE, &first, 1, FSDP_I32, FSDP_MAX);
    if (agreed == FSDP_OK && signal != NULL) {
        *signal = first;
    }
    return agreed;
}
