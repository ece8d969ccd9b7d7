/**
 * @file
 * Signals that end a process: SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, and SIGTERM where the program has no handler of its
 * own. While there is a context with FSDP_RECORD_DIR, its record is written first; then whoever had the signal before has it.
 */
#ifndef FSDPI_SIGNALS_H
#define FSDPI_SIGNALS_H

/** Begins and ends watching, each as often as the other. `write` is safe in a signal handler, and always the same. */
void fsdpi_signals_watch(void (*write)(int signal));
void fsdpi_signals_forget(void);

#endif
