/**
 * @file
 * What the example is compared with: the simulation without training, training without a simulation, and both one behind the other with a
 * file in between. Collective, as in md_run.h; takes the place of md_run_train().
 */
#ifndef MD_COMPARE_H
#define MD_COMPARE_H

#include "md_run.h"

fsdp_status md_compare_train(md_run *run);

#endif
