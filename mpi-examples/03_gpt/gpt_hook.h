/**
 * @file
 * The gradient hook of --hook: how it is made, and what it has sent.
 */
#ifndef GPT_HOOK_H
#define GPT_HOOK_H

#include "gpt_options.h"

/** BYTES that all ranks have sent through a hook, and that the same gradients would have been in f32. */
typedef struct gpt_traffic {
    int64_t sent, uncompressed;
} gpt_traffic;

/**
 * Makes the hook that the options ask for. Collective.
 * @param[out] hook  NULL for none; the caller releases it with fsdp_hook_destroy(), after the model
 */
fsdp_status gpt_hook_create(fsdp_context *ctx, const gpt_options *options, fsdp_hook **hook);

/** What has gone through it so far; zeros where `hook` is NULL. Collective. */
fsdp_status gpt_hook_traffic(fsdp_context *ctx, const fsdp_hook *hook, gpt_traffic *traffic);

#endif
