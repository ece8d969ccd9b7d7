#include "md_lammps.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lammps/library.h>

enum { COMMAND_BYTES = 2048 };

size_t md_system_atoms(const md_system *system)
{
    return 4 * system->cells * system->cells * system->cells;
}

double md_system_edge(const md_system *system)
{
    return cbrt((double)md_system_atoms(system) / system->density);
}

/* ---- what LAMMPS says -------------------------------------------------------------------------------------------- */

/* What to do about errors that options can bring about. */
static const char *remedy_for(const char *error)
{
    static const struct {
        const char *text, *remedy;
    } known[] = {
        {"Lost atoms", "; use a smaller --timestep"},
        {"Non-numeric", "; use a smaller --timestep"},
        {"Out of range", "; use a smaller --timestep"},
        {"dump file", "; give --dump-file a place that can be written"},
    };
    size_t i;

    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strstr(error, known[i].text)) {
            return known[i].remedy;
        }
    }
    return "";
}

/* Receives what LAMMPS prints, some lines at a time, and passes errors on, which come first. */
static ssize_t pass_on(void *cookie, const char *text, size_t size)
{
    char error[COMMAND_BYTES];

    (void)cookie;
    if (size > 6 && memcmp(text, "ERROR", 5) == 0) {
        (void)snprintf(error, sizeof error, "%.*s", (int)(size < sizeof error ? size : sizeof error - 1), text);
        error[strcspn(error, "\n")] = '\0';
        (void)fprintf(stderr, "%s: LAMMPS: %s%s\n", program_invocation_short_name, error, remedy_for(error));
    }
    return (ssize_t)size;
}

/* Of any rank, LAMMPS prints errors to what `stdout` is while it is opened, and closes that in the end if it is another by then. */
static void *open_quietly(MPI_Comm comm)
{
    static const cookie_io_functions_t functions   = {.write = pass_on};
    char                              *arguments[] = {"lammps", "-log", "none", "-nocite", NULL};
    FILE                              *usual = stdout, *screen = fopencookie(NULL, "w", functions);
    void                              *lammps;

    if (screen) { /* else there is no memory, and LAMMPS prints all it has to say */
        (void)setvbuf(screen, NULL, _IOLBF, BUFSIZ);
        stdout = screen;
    }
    lammps = lammps_open(4, arguments, comm, NULL);
    stdout = usual;
    return lammps;
}

void md_lammps_close(void *lammps)
{
    if (lammps) {
        lammps_close(lammps);
    }
}

int md_lammps_version(void *lammps)
{
    return lammps_version(lammps);
}

/* In a build with exceptions, an error of one rank leaves the others waiting in LAMMPS. */
static int check(void *lammps)
{
    char message[COMMAND_BYTES];

    if (!lammps_has_error(lammps)) {
        return 0;
    }
    if (lammps_get_last_error_message(lammps, message, sizeof message) == 2) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    return -1;
}

int md_lammps_command(void *lammps, const char *format, ...)
{
    char    commands[COMMAND_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(commands, sizeof commands, format, arguments);
    va_end(arguments);
    lammps_commands_string(lammps, commands);
    return check(lammps);
}

/* ---- the liquid -------------------------------------------------------------------------------------------------- */

/* Twice the potential's cutoff, and what atoms may move until ghosts are chosen anew. */
#define FAR_GHOSTS "comm_modify cutoff 5.4\n"

const char md_lammps_far_ghosts[] = FAR_GHOSTS;

/* LAMMPS adds up energies per atom in those time steps only in which it prints something that needs them: here their sum, at the
 * end of each run. It works out nothing else there that ranks would have to wait for each other for. */
static const char *const forces_of[] = {[MD_REFERENCE] = "pair_style lj/cut 2.5\n"
                                                         "pair_modify shift yes\n"
                                                         "pair_coeff 1 1 1.0 1.0\n"
                                                         "compute energy all pe/atom\n"
                                                         "compute potential all reduce sum c_energy\n"
                                                         "thermo_style custom step c_potential\n",
                                        [MD_LEARNED]   = "fix learned all external pf/callback 1 1\n" FAR_GHOSTS
                                                       "thermo_style custom step\n"};

int md_lammps_open(MPI_Comm comm, const md_system *system, md_forces_of forces, void **lammps)
{
    const double edge = md_system_edge(system);
    int          failed;

    *lammps = open_quietly(comm);
    if (!*lammps) {
        return -1;
    }
    failed = md_lammps_command(*lammps,
                               "units lj\n"
                               "atom_style atomic\n"
                               "atom_modify map array\n"
                               "region box block 0 %.17g 0 %.17g 0 %.17g\n"
                               "create_box 1 box\n"
                               "mass 1 1.0\n"
                               "neighbor 0.3 bin\n"
                               "neigh_modify every 1 delay 0 check yes\n"
                               "compute kinetic all ke\n"
                               "%s"
                               "thermo_modify norm no\n"
                               "timestep %.17g\n"
                               "fix move all nve\n",
                               edge, edge, edge, forces_of[forces], system->timestep) != 0;
    if (failed) {
        lammps_close(*lammps);
        *lammps = NULL;
    }
    return failed ? -1 : 0;
}

int md_lammps_seat(void *lammps, size_t n, const double *x, const double *v, int *scratch, uint64_t step)
{
    int   *tags = scratch, *types = scratch + n;
    size_t i;

    for (i = 0; i < n; i++) {
        tags[i]  = (int)i + 1;
        types[i] = 1;
    }
    if (md_lammps_command(lammps, "delete_atoms group all\nreset_timestep %llu\n", (unsigned long long)step) != 0) {
        return -1;
    }
    lammps_create_atoms(lammps, (int)n, tags, types, x, v, NULL, 0);
    return check(lammps);
}

/* A number that a compute works out. */
static double value_of(void *lammps, const char *name)
{
    const double *value = lammps_extract_compute(lammps, name, LMP_STYLE_GLOBAL, LMP_TYPE_SCALAR);

    return value ? *value : NAN;
}

/* What the callback has said. */
static double learned_energy(void *lammps)
{
    double      *value  = lammps_extract_fix(lammps, "learned", LMP_STYLE_GLOBAL, LMP_TYPE_SCALAR, 0, 0);
    const double energy = value ? *value : NAN;

    lammps_free(value);
    return energy;
}

int md_lammps_thermo(void *lammps, size_t atoms, md_thermo *thermo)
{
    const double potential =
        lammps_has_id(lammps, "fix", "learned") ? learned_energy(lammps) : value_of(lammps, "potential");

    thermo->energy      = (potential + value_of(lammps, "kinetic")) / (double)atoms;
    thermo->temperature = value_of(lammps, "thermo_temp");
    return check(lammps);
}

/* Adds all bits of three numbers per atom. Fowler, Noll and Vo's hash, a number at a time. */
static uint64_t hash_of(void *lammps, char *name, size_t atoms, double *all, uint64_t hash)
{
    uint64_t bits;
    size_t   i;

    lammps_gather_atoms(lammps, name, 1, 3, all);
    for (i = 0; i < 3 * atoms; i++) {
        memcpy(&bits, &all[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}

int md_lammps_hash(void *lammps, size_t atoms, double *all, uint64_t *hash)
{
    char x[] = "x", v[] = "v";

    *hash = hash_of(lammps, v, atoms, all, hash_of(lammps, x, atoms, all, 0xcbf29ce484222325u));
    return check(lammps);
}

/* Where the atoms of a face-centred lattice are. */
static void lattice(const md_system *system, double *x)
{
    static const double corners[4][3] = {{0, 0, 0}, {0, 0.5, 0.5}, {0.5, 0, 0.5}, {0.5, 0.5, 0}};
    const size_t        n             = system->cells;
    const double        width         = md_system_edge(system) / (double)n;
    size_t              i, d;

    for (i = 0; i < md_system_atoms(system); i++) {
        const double *corner  = corners[i % 4];
        const size_t  cell[3] = {i / 4 % n, i / 4 / n % n, i / 4 / n / n};

        for (d = 0; d < 3; d++) {
            x[3 * i + d] = width * ((double)cell[d] + corner[d]);
        }
    }
}

int md_lammps_melt(void *lammps, const md_system *system, double *scratch)
{
    const size_t n = md_system_atoms(system);
    double      *v = scratch + 3 * n;

    lattice(system, scratch);
    memset(v, 0, 3 * n * sizeof *v);
    if (md_lammps_seat(lammps, n, scratch, v, (int *)(scratch + 6 * n), 0) != 0) {
        return -1;
    }
    return md_lammps_command(lammps, "velocity all create %.17g %zu loop geom\n", system->temperature, system->seed);
}
