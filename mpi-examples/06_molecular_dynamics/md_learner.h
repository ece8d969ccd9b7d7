/**
 * @file
 * The potential as a sharded model, which knows nothing of LAMMPS: a frame is arrays, whoever has them.
 */
#ifndef MD_LEARNER_H
#define MD_LEARNER_H

#include <fsdp/fsdp.h>

#include "md_potential.h"

/** How it is trained. */
typedef struct md_training {
    size_t        frames;
    size_t        updates; /* steps of the optimizer on each frame */
    size_t        batches; /* each on one of so many parts of the frame's atoms, in turn */
    size_t        warmup;  /* updates over which the learning rate rises */
    size_t        seed;
    double        lr, weight_decay;
    fsdp_strategy strategy;
} md_training;

/** This rank's atoms at one time, and behind them, in `x`, ghosts: the atoms around. */
typedef struct md_frame {
    size_t     own, n; /* atoms, and atoms with ghosts */
    const int *tags;
    const double (*x)[3], (*v)[3], (*force)[3];
    const double *energies;
} md_frame;

typedef struct md_learner {
    fsdp_context    *ctx;
    fsdp_model      *model;
    fsdp_unit       *unit;
    fsdp_optimizer  *optimizer;
    fsdp_budget      budget;
    fsdp_lr_schedule schedule;
    md_training      training;
    md_potential     potential; /* in f64, as gathered last */
    md_weights       gradient;
    md_workspace     work;
    double (*seen)[MD_FUNCTIONS];
    size_t room; /* atoms that `seen` is for */
} md_learner;

/**
 * Makes the model, its initial values and AdamW. Collective.
 * @return FSDP_OK; another status: rank 0 or the library has said why. Close it all the same.
 */
fsdp_status md_learner_open(fsdp_context *ctx, const md_training *training, md_learner *learner);

/** Parameters of the model. */
size_t md_learner_parameters(void);

/**
 * Trains on a frame of all ranks, each of which has as many atoms as it has. The first one, 0, also sets what brings the network's
 * inputs and output to mean 0 and deviation 1. Collective.
 * @param[in]  number  of the frame
 * @param[out] loss    mean square of the error of an atom's energy, in units of the variance, over the updates, each before it was
 *                     made; the same on all ranks
 */
fsdp_status md_learner_train(md_learner *learner, const md_frame *frame, size_t number, double *loss);

/**
 * Adds, over all ranks, the squares of the errors of the potential's forces, and the squares of the frame's. Ghosts have to reach twice
 * MD_CUTOFF around atoms. Collective.
 */
fsdp_status md_learner_compare(md_learner *learner, const md_frame *frame, double sums[2]);

/** Gathers what has been learned so far into `potential`, on every rank. Collective. */
fsdp_status md_learner_fetch(md_learner *learner);

void md_learner_close(md_learner *learner);

#endif
