/**
 * @file
 * What fsdp-run prints.
 */
#ifndef RUN_LINES_H
#define RUN_LINES_H

#include "tools/run/nodes.h"

/** A line on standard output, at once. */
__attribute__((format(printf, 1, 2))) void run_say(const char *format, ...);

/** A line on standard error, of `what` and `why`. Returns `status`. */
int run_fail(int status, const char *what, const char *why);

/** "a,b,c": free it. NULL: no memory. */
char *run_list_nodes(run_node *const *nodes, size_t n);

#endif
