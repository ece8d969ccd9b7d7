#include "lib/base/mpi_kind.h"

#include <stddef.h>
#include <string.h>

/* What stands in the texts of those that share their handles' types and values. */
static const struct {
    const char *mark, *kind;
} MARKS[] = {{"Open MPI", "Open MPI"},
             {"Spectrum MPI", "Open MPI"},
             {"MVAPICH", "MPICH"},
             {"MPICH", "MPICH"},
             {"Intel(R) MPI", "MPICH"}};

const char *fsdpi_mpi_kind(const char *library_version)
{
    for (size_t i = 0; i < sizeof MARKS / sizeof MARKS[0]; i++) {
        if (strstr(library_version, MARKS[i].mark) != NULL) {
            return MARKS[i].kind;
        }
    }
    return NULL;
}
