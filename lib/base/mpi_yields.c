#include "lib/base/mpi_yields.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Of Open MPI since 1.3. Returns what was set before. */
typedef bool set_function(bool yields);

static pthread_once_t found = PTHREAD_ONCE_INIT;
static set_function  *set; /* NULL: this MPI does not yield by itself */
static atomic_int     n_suspended;

/* ISO C has no conversion from void * to a pointer to function; POSIX has one by way of memory. */
static void find(void)
{
    *(void **)(void *)&set = dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
    if (set != NULL && !set(true)) {
        (void)set(false);
        set = NULL;
    }
}

void fsdpi_mpi_suspend_yields(void)
{
    (void)pthread_once(&found, find);
    if (set != NULL && atomic_fetch_add(&n_suspended, 1) == 0) {
        (void)set(false);
    }
}

/* Whoever is last writes last, so that no two threads can leave it off. */
void fsdpi_mpi_resume_yields(void)
{
    if (set != NULL && atomic_fetch_sub(&n_suspended, 1) == 1) {
        (void)set(true);
    }
}
