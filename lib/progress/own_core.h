/**
 * @file
 * The core that the progress thread has for itself, and how it finds out that others compute there too: in containers or virtual
 * hosts that do not see each other, or in a job beside this one, whose processes the launcher does not tell of.
 */
#ifndef FSDPI_OWN_CORE_H
#define FSDPI_OWN_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/topology/bind.h"

typedef struct fsdpi_own_core {
    _Atomic bool has;           /* the thread does not nap while anything is under way */
    bool         was_asked_for; /* by number: it stays, whoever else is there */
    int          shared;        /* of the last spells at work, so many in a row had others there */
    double       since;         /* the thread has begun to work, */
    uint64_t     used;          /* and had used so many NANOSECONDS of a core by then */
    double       seconds;       /* of the present spell before that, */
    double       lost;          /* and those of them that others had */
} fsdpi_own_core;

/** Puts the thread on the core that binding leaves over for it, if there is one. */
void fsdpi_own_core_take(fsdpi_own_core *core, const fsdpi_binding *binding, bool asked_for, pthread_t thread);

/** By the thread itself, when it begins to work, and when it has ended: in between it does not sleep, while it has the core. */
void fsdpi_own_core_begin(fsdpi_own_core *core, double now);
void fsdpi_own_core_end(fsdpi_own_core *core, double now);

/**
 * By the thread at work, again and again. Who never sleeps uses all the time that passes, unless somebody else runs there: a thread
 * that again and again has had clearly less gives the core up, and runs where the process does. True if it has just done so.
 */
bool fsdpi_own_core_is_lost(fsdpi_own_core *core, double now);

#endif
