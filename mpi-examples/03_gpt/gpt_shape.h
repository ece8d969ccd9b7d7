/**
 * @file
 * The shape of a mesh, as the options say it: what they leave open, and what cannot be.
 */
#ifndef GPT_SHAPE_H
#define GPT_SHAPE_H

#include "gpt_options.h"

/**
 * Fills in what the options of a mesh leave open, and checks them on so many ranks. Local.
 * @return FSDP_OK; FSDP_ERR_ARG, and rank 0 has said why.
 */
fsdp_status gpt_shape_complete(gpt_options *options, size_t ranks);

#endif
