#include "lib/record/signals.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/lock.h"

static const int WATCHED[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM};
enum { N_WATCHED = sizeof WATCHED / sizeof *WATCHED };

static struct {
    fsdpi_lock lock;
    int        contexts;
    void (*write)(int signal);
    struct sigaction before[N_WATCHED];
    int              is_ours[N_WATCHED];
} watch;

/* To whoever had it before: its handler, or the default, which ends the process where the signal is raised again. */
static void hand_on(const struct sigaction *before, int number, siginfo_t *info, void *machine)
{
    if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(number, info, machine);
    } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(number);
    } else {
        (void)sigaction(number, before, NULL);
        (void)raise(number); /* it is blocked until the handler returns */
    }
}

static void handle(int number, siginfo_t *info, void *machine)
{
    static volatile sig_atomic_t inside;

    if (!inside) { /* else writing has failed as the program did */
        inside = 1;
        watch.write(number);
        inside = 0;
    }
    for (int i = 0; i < N_WATCHED; i++) {
        if (WATCHED[i] == number) {
            hand_on(&watch.before[i], number, info, machine);
        }
    }
}

/* A program that has a use for SIGTERM, or does not die of it, keeps it to itself. */
static int is_to_be_watched(int number)
{
    struct sigaction now;

    return number != SIGTERM ||
           (sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL);
}

void fsdpi_signals_watch(void (*write)(int signal))
{
    struct sigaction ours;

    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = handle;
    ours.sa_flags     = SA_SIGINFO | SA_ONSTACK;
    (void)sigemptyset(&ours.sa_mask);
    fsdpi_lock_take(&watch.lock);
    watch.write = write;
    for (int i = 0; i < N_WATCHED && watch.contexts == 0; i++) {
        watch.is_ours[i] = is_to_be_watched(WATCHED[i]) && sigaction(WATCHED[i], &ours, &watch.before[i]) == 0;
    }
    watch.contexts++;
    fsdpi_lock_give(&watch.lock);
}

/* A handler that the program has put in place of ours stays. */
static void give_back(int i)
{
    struct sigaction now;

    if (watch.is_ours[i] && sigaction(WATCHED[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
        now.sa_sigaction == handle) {
        (void)sigaction(WATCHED[i], &watch.before[i], NULL);
    }
    watch.is_ours[i] = 0;
}

void fsdpi_signals_forget(void)
{
    fsdpi_lock_take(&watch.lock);
    watch.contexts--;
    for (int i = 0; i < N_WATCHED && watch.contexts == 0; i++) {
        give_back(i);
    }
    fsdpi_lock_give(&watch.lock);
}
