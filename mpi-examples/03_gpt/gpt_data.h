/**
 * @file
 * The text: the first 95% to train on, the last 5% to validate on, both cut into windows of a context each.
 */
#ifndef GPT_DATA_H
#define GPT_DATA_H

#include "gpt_options.h"

typedef struct gpt_data {
    const char    *name;
    unsigned char *text;
    size_t         bytes;
    size_t         train;   /* the first so many bytes are for training */
    size_t         context; /* a window is this many bytes and the one after */
    size_t         seed;
} gpt_data;

/**
 * Rank 0 reads the text and gives it to all ranks. Collective.
 * @return FSDP_OK; another status: rank 0 has said why, and `data` holds nothing.
 */
fsdp_status gpt_data_load(fsdp_context *ctx, const gpt_options *options, gpt_data *data);
void        gpt_data_release(gpt_data *data);

/**
 * Where the training window number `sample` begins, counted over all ranks and steps. Each epoch visits every window
 * once, in an order of its own, and cuts the text at other places. Local.
 */
const unsigned char *gpt_data_train_window(const gpt_data *data, size_t sample);

/** How many windows the validation text has, and where one begins. Local. */
size_t               gpt_data_val_windows(const gpt_data *data);
const unsigned char *gpt_data_val_window(const gpt_data *data, size_t window);

#endif
