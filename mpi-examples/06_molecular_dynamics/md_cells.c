#include "md_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cell is at least 1 / PER_REACH of the reach wide, so that so many on either side hold all neighbours. */
enum { PER_REACH = 2 };

/* Whether there is room for so many atoms and cells. */
static int make_room(md_cells *c, size_t atoms, size_t cells)
{
    if (atoms > c->room) {
        free(c->atoms);
        free(c->cell);
        c->atoms = malloc(atoms * sizeof *c->atoms);
        c->cell  = malloc(atoms * sizeof *c->cell);
        c->room  = c->atoms && c->cell ? atoms : 0;
    }
    if (cells > c->cell_room) {
        free(c->first);
        c->first     = malloc(cells * sizeof *c->first);
        c->cell_room = c->first ? cells : 0;
    }
    return atoms <= c->room && cells <= c->cell_room;
}

/* The box around all atoms, in cells: not many more than atoms, however far these are apart. 0: some are nowhere. */
static int divide(md_cells *c)
{
    const double most = 2 * cbrt((double)c->n) + 1;
    size_t       i;
    int          d;

    for (d = 0; d < 3; d++) {
        double high = c->n ? c->x[0][d] : 0;

        c->low[d] = high;
        for (i = 0; i < c->n; i++) {
            if (!isfinite(c->x[i][d])) {
                return 0;
            }
            c->low[d] = fmin(c->low[d], c->x[i][d]);
            high      = fmax(high, c->x[i][d]);
        }
        c->width[d] = fmax(c->reach / PER_REACH, (high - c->low[d]) / most);
        c->count[d] = (int)((high - c->low[d]) / c->width[d]) + 1;
    }
    return 1;
}

static int along(const md_cells *c, size_t i, int d)
{
    const int cell = (int)((c->x[i][d] - c->low[d]) / c->width[d]);

    return cell < c->count[d] ? cell : c->count[d] - 1;
}

static int cell_of(const md_cells *c, size_t i)
{
    return (along(c, i, 2) * c->count[1] + along(c, i, 1)) * c->count[0] + along(c, i, 0);
}

int md_cells_build(md_cells *cells, size_t n, const double (*x)[3], double reach)
{
    size_t n_cells, i;

    cells->n     = n;
    cells->x     = x;
    cells->reach = reach;
    if (!divide(cells)) {
        return -1;
    }
    n_cells = (size_t)cells->count[0] * (size_t)cells->count[1] * (size_t)cells->count[2];
    if (!make_room(cells, n + 1, n_cells + 2)) {
        return -1;
    }
    memset(cells->first, 0, (n_cells + 2) * sizeof *cells->first);
    for (i = 0; i < n; i++) {
        cells->cell[i] = cell_of(cells, i);
        cells->first[cells->cell[i] + 2]++;
    }
    for (i = 2; i < n_cells + 2; i++) {
        cells->first[i] += cells->first[i - 1];
    }
    for (i = 0; i < n; i++) {
        cells->atoms[cells->first[cells->cell[i] + 1]++] = (int)i; /* which makes it the end of this cell */
    }
    return 0;
}

/* Those of the atoms from `begin` up to `end`, in their sorted order, that are near. */
static size_t add_near(const md_cells *c, size_t i, int begin, int end, md_neighbor *near)
{
    const double reach = c->reach * c->reach;
    size_t       n     = 0;
    int          k;

    for (k = begin; k < end; k++) {
        const int    j  = c->atoms[k];
        const double dx = c->x[j][0] - c->x[i][0], dy = c->x[j][1] - c->x[i][1], dz = c->x[j][2] - c->x[i][2];
        const double square = dx * dx + dy * dy + dz * dz;

        if (square < reach && (size_t)j != i) {
            const double r = sqrt(square);

            near[n++] = (md_neighbor){.atom = j, .r = r, .towards = {dx / r, dy / r, dz / r}};
        }
    }
    return n;
}

size_t md_cells_near(const md_cells *cells, size_t i, md_neighbor *near)
{
    int    from[3], to[3], d, y, z;
    size_t n = 0;

    for (d = 0; d < 3; d++) {
        const int middle = along(cells, i, d);

        from[d] = middle > PER_REACH ? middle - PER_REACH : 0;
        to[d]   = middle + PER_REACH < cells->count[d] ? middle + PER_REACH : cells->count[d] - 1;
    }
    for (z = from[2]; z <= to[2]; z++) {
        for (y = from[1]; y <= to[1]; y++) {
            const int row = (z * cells->count[1] + y) * cells->count[0];

            n += add_near(cells, i, cells->first[row + from[0]], cells->first[row + to[0] + 1], near + n);
        }
    }
    return n;
}

void md_cells_release(md_cells *cells)
{
    free(cells->first);
    free(cells->atoms);
    free(cells->cell);
}
