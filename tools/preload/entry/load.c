#include "tools/preload/entry/load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mpi_kind.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#error "a preloaded library cannot bring a sanitizer along"
#endif

/* Under these names an MPI may be in the process without being seen by everybody, as in that of an interpreter. */
static const char *const LIBRARIES[] = {"libmpi.so.40",       "libmpich.so.12",        "libmpi.so.12",
                                        "libmpi.so",          "libmpich.so",           "libmpi_mpifh.so.40",
                                        "libmpichfort.so.12", "libmpi_usempif08.so.40"};

const fsdpi_engine_table *fsdpi_engine;

/* Only one rank of a job speaks, if it can be known which that is. */
static bool is_first_rank(void)
{
    static const char *const VARIABLES[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof VARIABLES / sizeof VARIABLES[0]; i++) {
        const char *rank = getenv(VARIABLES[i]);

        if (rank != NULL) {
            return strcmp(rank, "0") == 0;
        }
    }
    return true;
}

static void say_aside(const char *why, const char *detail)
{
    if (is_first_rank()) {
        (void)fprintf(stderr, "libfsdp_mpi: stands aside, all calls go to MPI: %s%s\n", why, detail);
    }
}

/* What is loaded is looked at only, and from now on seen by everybody. */
static void *find_hidden(const char *name)
{
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof LIBRARIES[0]; i++) {
        void *library = dlopen(LIBRARIES[i], RTLD_NOLOAD | RTLD_LAZY | RTLD_GLOBAL);
        void *found   = library != NULL ? dlsym(library, name) : NULL;

        if (found != NULL) {
            return found; /* stays open: it is in use */
        }
        if (library != NULL) {
            (void)dlclose(library);
        }
    }
    return NULL;
}

static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    return found != NULL ? found : find_hidden(name);
}

void *fsdpi_next(const char *name)
{
    void *found = find(name);

    if (found == NULL) {
        (void)fprintf(stderr, "libfsdp_mpi: this process has no %s; do not preload libfsdp_mpi.so into it\n", name);
        abort();
    }
    return found;
}

static bool is_our_mpi(void)
{
    static char version[16384]; /* MPICH writes 8192 */
    int         length                = 0;
    int (*get_version)(char *, int *) = NULL;
    void *const found                 = find("PMPI_Get_library_version");

    if (found == NULL) {
        say_aside("this program's MPI does not say which it is", "");
        return false;
    }
    memcpy(&get_version, &found, sizeof found);
    (void)get_version(version, &length);
    const char *kind = fsdpi_mpi_kind(version);
    if (kind == NULL || strcmp(kind, FSDPI_PRELOAD_MPI) != 0) {
        say_aside("it was built with " FSDPI_PRELOAD_MPI ", but this program runs ",
                  kind != NULL ? kind : "another MPI");
        return false;
    }
    return true;
}

/* The engine lies beside this library. */
static void *open_engine(void)
{
    char    path[PATH_MAX];
    Dl_info self;

    if (dladdr(&fsdpi_engine, &self) == 0 || self.dli_fname == NULL) {
        say_aside("the folder of libfsdp_mpi.so is unknown", "");
        return NULL;
    }
    const char  *slash  = strrchr(self.dli_fname, '/');
    const size_t folder = slash != NULL ? (size_t)(slash - self.dli_fname) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*s%s", (int)folder, self.dli_fname, FSDPI_PRELOAD_ENGINE) >= (int)sizeof path) {
        say_aside("the path is too long: ", self.dli_fname);
        return NULL;
    }
    void *engine = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (engine == NULL) {
        say_aside("", dlerror());
    }
    return engine;
}

void fsdpi_engine_load(void)
{
    const char *wanted = getenv("FSDP_MPI");

    if (fsdpi_engine != NULL || (wanted != NULL && strcmp(wanted, "off") == 0) || !is_our_mpi()) {
        return;
    }
    void *engine = open_engine();
    void *found  = engine != NULL ? dlsym(engine, FSDPI_ENGINE_START) : NULL;
    if (found == NULL) {
        return;
    }
    fsdpi_engine_start_function *start;
    memcpy(&start, &found, sizeof found);
    fsdpi_engine = start();
}

void fsdpi_engine_unload(void)
{
    const fsdpi_engine_table *engine = fsdpi_engine;

    fsdpi_engine = NULL;
    if (engine != NULL) {
        engine->finish();
    }
}
