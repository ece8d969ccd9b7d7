#include "md_coupling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lammps/library.h>

#include "md_atoms.h"
#include "mpi-examples/common/example_error.h"

typedef const double (*vectors)[3];

static size_t count_of(void *lammps, const char *name)
{
    return (size_t) * (const int *)lammps_extract_global(lammps, name);
}

/* LAMMPS has the rows of an array behind each other. */
static vectors vectors_of(void *lammps, const char *name)
{
    return (vectors) * (double **)lammps_extract_atom(lammps, name);
}

md_frame md_coupling_frame(void *lammps)
{
    const size_t own = count_of(lammps, "nlocal");

    return (md_frame){.own      = own,
                      .n        = own + count_of(lammps, "nghost"),
                      .tags     = lammps_extract_atom(lammps, "id"),
                      .x        = vectors_of(lammps, "x"),
                      .v        = vectors_of(lammps, "v"),
                      .force    = vectors_of(lammps, "f"),
                      .energies = lammps_extract_compute(lammps, "energy", LMP_STYLE_ATOM, LMP_TYPE_VECTOR)};
}

/* LAMMPS asks for the forces on this rank's atoms. `x` has the ghosts behind them. */
static void push(void *driver, int64_t step, int own,
                 int     *tags, /* NOLINT(readability-non-const-parameter): LAMMPS's type */
                 double **x, double **force)
{
    md_driver   *d = driver;
    md_learner  *l = d->learner;
    const size_t n = (size_t)own;
    double       energy;

    (void)tags;
    if (md_forces(&l->work, &l->potential, n, n + count_of(d->lammps, "nghost"), (vectors)*x, (double(*)[3]) * force,
                  &energy) != 0) {
        energy = NAN;
    }
    d->status = fsdp_allreduce(l->ctx, FSDP_IN_PLACE, &energy, 1, FSDP_F64, FSDP_SUM);
    if (d->status == FSDP_OK && !isfinite(energy)) {
        d->status =
            example_fail("the learned potential gives no finite energy in time step %lld; train on more --frames, "
                         "or use a smaller --lr or --timestep",
                         (long long)step);
    }
    if (d->status != FSDP_OK) {
        memset(*force, 0, 3 * n * sizeof **force);
        lammps_force_timeout(d->lammps); /* the run ends behind this step */
    }
    lammps_fix_external_set_energy_global(d->lammps, "learned", energy);
}

void md_coupling_drive(md_driver *driver)
{
    lammps_set_fix_external_callback(driver->lammps, "learned", push, driver);
}

fsdp_status md_coupling_seat(void *lammps, const md_source *source, fsdp_context *ctx, size_t atoms, uint64_t step)
{
    double     *all    = malloc(7 * atoms * sizeof *all); /* x and v of all, and what md_lammps_seat() needs */
    fsdp_status status = example_agree(ctx, all ? "" : "no memory for the atoms of all ranks; use fewer --cells");

    if (status == FSDP_OK && source->checkpoint) {
        status = md_atoms_get(ctx, source->checkpoint, atoms, all);
    } else if (status == FSDP_OK) {
        lammps_gather_atoms(source->lammps, "x", 1, 3, all); /* in the order of tags */
        lammps_gather_atoms(source->lammps, "v", 1, 3, all + 3 * atoms);
    }
    if (status == FSDP_OK && md_lammps_seat(lammps, atoms, all, all + 3 * atoms, (int *)(all + 6 * atoms), step) != 0) {
        status = FSDP_ERR_STATE;
    }
    free(all);
    return status;
}
