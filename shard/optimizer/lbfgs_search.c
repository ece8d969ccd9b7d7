/*
 * Searches along a direction, in f64: what they decide follows from losses and exact dot products alone, so that all ranks decide alike.
 */
#include <math.h>

#include "shard/optimizer/lbfgs.h"

typedef fsdpi_lbfgs_point point;

/* One search. */
typedef struct line {
    fsdp_lbfgs  *lbfgs;
    const point *origin;
    size_t       left; /* evaluations */
    point        here; /* the last one evaluated */
} line;

/* What is not finite counts as infinitely high. */
static fsdp_status evaluate(line *l, double t, point *p)
{
    static const int along[][2] = {{FSDPI_LBFGS_GRADIENT, FSDPI_LBFGS_DIRECTION}};

    fsdpi_lbfgs_combine(l->lbfgs, FSDPI_LBFGS_MASTER, t, FSDPI_LBFGS_DIRECTION, FSDPI_LBFGS_ORIGIN);
    FSDP_TRY(fsdpi_lbfgs_moved(l->lbfgs));
    p->t = t;
    l->left -= l->left > 0;
    FSDP_TRY(fsdpi_lbfgs_evaluate(l->lbfgs, &p->loss));
    FSDP_TRY(fsdpi_lbfgs_dots(l->lbfgs, 1, along, &p->slope));
    if (!isfinite(p->loss) || !isfinite(p->slope)) {
        p->loss  = (double)INFINITY;
        p->slope = 0.0;
    }
    l->here = *p;
    return FSDP_OK;
}

static bool decreases(const line *l, const point *p)
{
    return p->loss <= l->origin->loss + l->lbfgs->options.decrease * p->t * l->origin->slope;
}

static bool is_flat(const line *l, const point *p)
{
    return fabs(p->slope) <= -(l->lbfgs->options.curvature * l->origin->slope);
}

/* Where the cubic through two points has its minimum, within [low, high]; their middle where it has none (Nocedal and Wright, 3.59). */
static double cubic_minimum(const point *a, const point *b, double low, double high)
{
    const double d1     = a->slope + b->slope - 3.0 * (a->loss - b->loss) / (a->t - b->t);
    const double square = fma(d1, d1, -(a->slope * b->slope));
    const double d2     = copysign(sqrt(square), b->t - a->t);
    const double t      = b->t - (b->t - a->t) * (b->slope + d2 - d1) / (b->slope - a->slope + 2.0 * d2);

    return isfinite(t) ? fmin(fmax(t, low), high) : 0.5 * (low + high);
}

static void take_best(const point *p, point *best)
{
    *best = p->loss < best->loss ? *p : *best;
}

/* Algorithm 3.6: between `low`, the better end, and `high`. */
static fsdp_status zoom(line *l, point low, point high, point *best)
{
    while (l->left > 0) {
        const double begin = fmin(low.t, high.t), width = fabs(high.t - low.t);
        point        p;

        if (!(begin + 0.5 * width > begin && begin + 0.5 * width < begin + width)) {
            return FSDP_OK; /* nothing lies between them */
        }
        FSDP_TRY(evaluate(l, cubic_minimum(&low, &high, begin + 0.1 * width, begin + 0.9 * width), &p));
        if (!decreases(l, &p) || p.loss >= low.loss) {
            high = p;
            continue;
        }
        take_best(&p, best);
        if (is_flat(l, &p)) {
            *best = p;
            return FSDP_OK;
        }
        high = p.slope * (high.t - low.t) >= 0.0 ? low : high;
        low  = p;
    }
    return FSDP_OK;
}

/* Algorithm 3.5. */
static fsdp_status search_wolfe(line *l, double first, point *best)
{
    point  last = *l->origin;
    double t    = first;

    while (l->left > 0 && isfinite(t)) {
        point p;

        FSDP_TRY(evaluate(l, t, &p));
        if (!decreases(l, &p) || (last.t > 0.0 && p.loss >= last.loss)) {
            return zoom(l, last, p, best);
        }
        take_best(&p, best);
        if (is_flat(l, &p)) {
            *best = p;
            return FSDP_OK;
        }
        if (p.slope >= 0.0) {
            return zoom(l, p, last, best);
        }
        t    = cubic_minimum(&last, &p, 2.0 * t, 10.0 * t);
        last = p;
    }
    return FSDP_OK;
}

/* Back by the minimum of the parabola through the origin, its slope and the last point: by a tenth to a half. */
static fsdp_status search_armijo(line *l, double first, point *best)
{
    double t = first;

    while (l->left > 0 && t > 0.0) {
        point p;

        FSDP_TRY(evaluate(l, t, &p));
        if (decreases(l, &p) && p.loss < l->origin->loss) {
            *best = p;
            return FSDP_OK;
        }
        const double slope = l->origin->slope;
        const double next  = -(slope * t * t) / (2.0 * (p.loss - l->origin->loss - slope * t));
        t                  = isfinite(next) ? fmin(fmax(next, 0.1 * t), 0.5 * t) : 0.5 * t;
    }
    return FSDP_OK;
}

fsdp_status fsdpi_lbfgs_search(fsdp_lbfgs *lbfgs, const point *origin, double first, point *found)
{
    line l = {.lbfgs = lbfgs, .origin = origin, .left = lbfgs->options.max_evaluations, .here = *origin};

    *found = *origin;
    FSDP_TRY(lbfgs->options.search == FSDP_ARMIJO ? search_armijo(&l, first, found) : search_wolfe(&l, first, found));
    if (found->t == 0.0) {
        fsdpi_lbfgs_copy(lbfgs, FSDPI_LBFGS_MASTER, FSDPI_LBFGS_ORIGIN);
        return fsdpi_lbfgs_moved(lbfgs);
    }
    return found->t == l.here.t ? FSDP_OK : evaluate(&l, found->t, found); /* its gradients have been overwritten */
}
