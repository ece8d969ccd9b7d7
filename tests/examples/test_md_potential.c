/* The potential of 06_molecular_dynamics, without LAMMPS: neighbours against all pairs, derivatives against differences, and forces on
 * parts of a box, with ghosts around them, against those on all of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-examples/06_molecular_dynamics/md_potential.h"
#include "tests/support/mpi_test.h"

enum { ATOMS = 120, MOST = 27 * ATOMS };

#define EDGE       6.0
#define DIFFERENCE 1e-5

typedef struct world {
    md_potential potential;
    md_workspace work;
    double       x[ATOMS][3];
} world;

/* Uniform in [-1, 1). */
static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(*state >> 32) / 2147483648.0;
}

static void fill(double *values, size_t n, double middle, double spread, uint64_t *state)
{
    size_t i;

    for (i = 0; i < n; i++) {
        values[i] = middle + spread * next_random(state);
    }
}

/* Atoms shaken, on a lattice of 5 x 5 x 5, and a network of random weights. */
static int open_world(void **state)
{
    world   *w    = calloc(1, sizeof *w);
    uint64_t seed = 2007;
    size_t   i;
    int      d;

    assert_non_null(w);
    for (i = 0; i < ATOMS; i++) {
        const int cell[3] = {(int)i % 5, (int)i / 5 % 5, (int)i / 25};

        for (d = 0; d < 3; d++) {
            w->x[i][d] = EDGE / 5 * (cell[d] + 0.5 + 0.2 * next_random(&seed));
        }
    }
    fill((double *)&w->potential.weights, sizeof(md_weights) / sizeof(double), 0, 0.3, &seed);
    fill(w->potential.normal.mean, MD_FUNCTIONS, 4, 2, &seed);
    fill(w->potential.normal.deviation, MD_FUNCTIONS, 4, 1, &seed);
    w->potential.normal.energy_mean      = -3;
    w->potential.normal.energy_deviation = 2;
    *state                               = w;
    return 0;
}

static int close_world(void **state)
{
    md_workspace_release(&((world *)*state)->work);
    free(*state);
    return 0;
}

/* The atoms for which `own` holds, then all others and all images within `reach` of the box. @return how many own ones there are */
static size_t surround(const double (*x)[3], int (*own)(const double *), double reach, double (*all)[3], size_t *n)
{
    size_t i, mine = 0;
    int    k, d;

    for (i = 0; i < ATOMS; i++) {
        if (own(x[i])) {
            memcpy(all[mine++], x[i], sizeof *all);
        }
    }
    *n = mine;
    for (i = 0; i < 27 * ATOMS; i++) {
        const double *atom   = x[i / 27];
        int           inside = 1;

        k = (int)(i % 27);
        if (k == 13 && own(atom)) {
            continue;
        }
        for (d = 0; d < 3; d++) {
            const int shift = (d == 0 ? k : d == 1 ? k / 3 : k / 9) % 3 - 1;

            all[*n][d] = atom[d] + shift * EDGE;
            inside     = inside && all[*n][d] > -reach && all[*n][d] < EDGE + reach;
        }
        *n += (size_t)inside;
    }
    return mine;
}

static int everywhere(const double *x)
{
    (void)x;
    return 1;
}

static int left(const double *x)
{
    return x[0] < 0.45 * EDGE;
}

static int right(const double *x)
{
    return !left(x);
}

static int nowhere(const double *x)
{
    (void)x;
    return 0;
}

static void neighbours_are_those_of_all_pairs(void **state)
{
    world *w          = *state;
    double(*all)[3]   = malloc(MOST * sizeof *all);
    md_neighbor *near = malloc(MOST * sizeof *near);
    size_t       n, i, j, k, found;

    assert_true(all && near);
    (void)surround((const double(*)[3])w->x, everywhere, 2 * MD_CUTOFF, all, &n);
    assert_int_equal(0, md_cells_build(&w->work.cells, n, (const double(*)[3])all, MD_CUTOFF));
    for (i = 0; i < ATOMS; i += 7) {
        found = md_cells_near(&w->work.cells, i, near);
        for (j = 0, k = 0; j < n; j++) {
            const double dx = all[j][0] - all[i][0], dy = all[j][1] - all[i][1], dz = all[j][2] - all[i][2];

            k += j != i && sqrt(dx * dx + dy * dy + dz * dz) < MD_CUTOFF;
        }
        assert_int_equal(k, found);
        for (k = 0; k < found; k++) {
            const double *to = all[near[k].atom], *t = near[k].towards;

            assert_true(near[k].r < MD_CUTOFF && (size_t)near[k].atom != i);
            assert_true(fabs(all[i][0] + near[k].r * t[0] - to[0]) < 1e-12);
            assert_true(fabs(all[i][2] + near[k].r * t[2] - to[2]) < 1e-12);
        }
    }
    free(all);
    free(near);
}

static void atoms_far_apart_or_nowhere_are_no_trouble(void **state)
{
    world      *w         = *state;
    double      far[3][3] = {{0, 0, 0}, {1e9, -1e9, 1e9}, {1.5, 0, 0}}, force[3][3], energy;
    md_neighbor near[3];

    assert_int_equal(0, md_cells_build(&w->work.cells, 3, (const double(*)[3])far, MD_CUTOFF));
    assert_int_equal(1, md_cells_near(&w->work.cells, 0, near));
    assert_int_equal(2, near[0].atom);
    assert_int_equal(0, md_cells_near(&w->work.cells, 1, near));
    assert_int_equal(0, md_forces(&w->work, &w->potential, 0, 0, NULL, NULL, &energy));
    assert_true(energy == 0);
    far[1][1] = NAN;
    assert_int_equal(-1, md_forces(&w->work, &w->potential, 3, 3, (const double(*)[3])far, force, &energy));
}

/* The energy of the whole box. */
static double energy_of(world *w, double (*force)[3])
{
    double(*all)[3] = malloc(MOST * sizeof *all), energy;
    size_t n, own;

    assert_non_null(all);
    own = surround((const double(*)[3])w->x, everywhere, 2 * MD_CUTOFF + 0.1, all, &n);
    assert_int_equal(0, md_forces(&w->work, &w->potential, own, n, (const double(*)[3])all, force, &energy));
    free(all);
    return energy;
}

static void forces_are_differences_of_the_energy(void **state)
{
    world *w = *state;
    double force[ATOMS][3], other[ATOMS][3], sum[3] = {0};
    size_t i;
    int    d;

    (void)energy_of(w, force);
    for (i = 0; i < ATOMS; i++) {
        for (d = 0; d < 3; d++) {
            const double kept = w->x[i][d];
            double       above, below;

            sum[d] += force[i][d];
            if (i % 9) {
                continue;
            }
            w->x[i][d] = kept + DIFFERENCE;
            above      = energy_of(w, other);
            w->x[i][d] = kept - DIFFERENCE;
            below      = energy_of(w, other);
            w->x[i][d] = kept;
            assert_true(fabs(force[i][d]) > 1e-3);
            assert_true(fabs((below - above) / (2 * DIFFERENCE) - force[i][d]) < 1e-6 * (1 + fabs(force[i][d])));
        }
    }
    assert_true(fabs(sum[0]) + fabs(sum[1]) + fabs(sum[2]) < 1e-9); /* nothing pushes the whole */
}

/* What the two halves of the box, each with ghosts as far as `reach`, differ by from the whole: forces, energy, and errors of forces. */
static double compare_halves(world *w, double reach, double *energy_error)
{
    int (*const halves[])(const double *) = {left, right};
    double whole[ATOMS][3], force[ATOMS][3], part, most = 0, energy = energy_of(w, whole), sums[2] = {0};
    double(*all)[3] = malloc(MOST * sizeof *all);
    size_t h, i, k, n, own;

    assert_non_null(all);
    for (h = 0; h < 2; h++) {
        size_t inside = 0, kept;

        own = surround((const double(*)[3])w->x, halves[h], reach, all, &n);
        for (k = kept = own; k < n; k++) { /* of what is in the box too, what is not near this half */
            const double from = h ? 0.45 * EDGE - reach : -reach, to = h ? EDGE + reach : 0.45 * EDGE + reach;

            if (all[k][0] > from && all[k][0] < to) {
                memmove(all[kept++], all[k], sizeof *all);
            }
        }
        assert_int_equal(0, md_forces(&w->work, &w->potential, own, kept, (const double(*)[3])all, force, &part));
        energy -= part;
        for (i = 0; i < ATOMS; i++) {
            if (halves[h](w->x[i])) {
                most = fmax(most, fabs(force[inside][0] - whole[i][0]) + fabs(force[inside][1] - whole[i][1]));
                inside++;
            }
        }
        force[0][0] += 1;
        assert_int_equal(0, md_force_errors(&w->work, &w->potential, own, kept, (const double(*)[3])all,
                                            (const double(*)[3])force, sums));
    }
    assert_true(fabs(sums[0] - 2) < 1e-9 && sums[1] > 2); /* one error of 1 in each half */
    free(all);
    print_message("ghosts within %g: forces differ by %g, energies by %g\n", reach, most, fabs(energy));
    *energy_error = fabs(energy);
    return most;
}

static void parts_of_a_box_add_up_with_ghosts_of_twice_the_cutoff(void **state)
{
    double energy_error;

    assert_true(compare_halves(*state, 2 * MD_CUTOFF, &energy_error) < 1e-11);
    assert_true(energy_error < 1e-10);
    assert_true(compare_halves(*state, 1.01 * MD_CUTOFF, &energy_error) > 1e-4);
    assert_true(energy_error < 1e-10); /* it needs no more than the cutoff */
}

static void a_rank_without_atoms_has_no_energy(void **state)
{
    world *w        = *state;
    double(*all)[3] = malloc(MOST * sizeof *all), energy;
    size_t n;

    assert_non_null(all);
    assert_int_equal(0, surround((const double(*)[3])w->x, nowhere, MD_CUTOFF, all, &n));
    assert_int_equal(0, md_forces(&w->work, &w->potential, 0, n, (const double(*)[3])all, NULL, &energy));
    assert_true(energy == 0);
    free(all);
}

/* Half the square of the error of one atom's energy. */
static double loss_of(const md_potential *p, const double *seen, double energy)
{
    const double error = (md_energy(p, seen, NULL) - energy) / p->normal.energy_deviation;

    return 0.5 * error * error;
}

static void gradients_of_weights_are_differences_of_the_loss(void **state)
{
    world     *w       = *state;
    double    *weights = (double *)&w->potential.weights, seen[ATOMS][MD_FUNCTIONS], error;
    md_weights gradient;
    size_t     t, e;

    memset(&gradient, 0, sizeof gradient);
    assert_int_equal(0, md_describe_atoms(&w->work, ATOMS, ATOMS, (const double(*)[3])w->x, seen));
    error = md_learn(&w->potential, seen[60], 1.25, &gradient);
    assert_true(fabs(0.5 * error * error - loss_of(&w->potential, seen[60], 1.25)) < 1e-12);
    for (t = 0; t < MD_N_TENSORS; t++) {
        const md_tensor tensor = md_tensor_of(t);
        double          size = 0, wrong = 0;

        for (e = 0; e < tensor.elements; e++) {
            double *value = &weights[tensor.offset + e], kept = *value, above, below, found;

            *value = kept + DIFFERENCE;
            above  = loss_of(&w->potential, seen[60], 1.25);
            *value = kept - DIFFERENCE;
            below  = loss_of(&w->potential, seen[60], 1.25);
            *value = kept;
            found  = ((double *)&gradient)[tensor.offset + e];
            wrong  = hypot(wrong, (above - below) / (2 * DIFFERENCE) - found);
            size   = hypot(size, found);
        }
        print_message("%-14s norm %.3e, error %.1e of it\n", tensor.name, size, wrong / size);
        assert_true(size > 0 && wrong < 1e-7 * size);
    }
}

static void tensors_cover_all_weights(void **state)
{
    size_t t, next = 0;

    (void)state;
    for (t = 0; t < MD_N_TENSORS; t++) {
        const md_tensor tensor = md_tensor_of(t);

        assert_int_equal(next, tensor.offset);
        assert_int_equal(tensor.elements, tensor.shape[0] * (tensor.shape[1] ? tensor.shape[1] : 1));
        next += tensor.elements;
    }
    assert_int_equal(sizeof(md_weights) / sizeof(double), next);
    assert_int_equal(16 * 32 + 32 + 32 * 32 + 32 + 32 + 1, next);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_cover_all_weights),
        cmocka_unit_test_setup_teardown(neighbours_are_those_of_all_pairs, open_world, close_world),
        cmocka_unit_test_setup_teardown(atoms_far_apart_or_nowhere_are_no_trouble, open_world, close_world),
        cmocka_unit_test_setup_teardown(forces_are_differences_of_the_energy, open_world, close_world),
        cmocka_unit_test_setup_teardown(parts_of_a_box_add_up_with_ghosts_of_twice_the_cutoff, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_rank_without_atoms_has_no_energy, open_world, close_world),
        cmocka_unit_test_setup_teardown(gradients_of_weights_are_differences_of_the_loss, open_world, close_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
