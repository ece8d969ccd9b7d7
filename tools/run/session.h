/**
 * @file
 * A run: attempts, one after the other, until it is over.
 */
#ifndef RUN_SESSION_H
#define RUN_SESSION_H

#include "tools/run/options.h"

/** Runs the command behind `--`. Returns fsdp-run's exit status; the last line has been printed. */
int run_session(const run_options *options, char **command);

#endif
