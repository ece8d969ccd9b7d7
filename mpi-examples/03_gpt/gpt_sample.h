/**
 * @file
 * Text written by the model, through its sharded units.
 */
#ifndef GPT_SAMPLE_H
#define GPT_SAMPLE_H

#include "gpt_trainer.h"

/**
 * Continues a line break by `bytes` bytes. Collective: rank 0 computes, the others give it their share of the parameters.
 * @param[out] text  room for `bytes` bytes, written on rank 0
 */
fsdp_status gpt_sample(gpt_trainer *trainer, unsigned char *text, size_t bytes);

#endif
