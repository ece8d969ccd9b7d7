/**
 * @file
 * How the program ends when something is wrong: together on all ranks, with one message.
 *
 * The library prints its own failures, so that GPT_TRY only returns. What the program finds out by itself goes through
 * gpt_fail() where every rank finds the same, and through gpt_agree() where one rank may find what others do not.
 */
#ifndef GPT_ERROR_H
#define GPT_ERROR_H

#include <fsdp/fsdp.h>

/** BYTES of the longest message, with its NUL. */
#define GPT_MESSAGE_BYTES 256

/** Returns from the calling function where `call` does not return FSDP_OK. */
#define GPT_TRY(call)                                                                                                  \
    do {                                                                                                               \
        const fsdp_status gpt_status_ = (call);                                                                        \
        if (gpt_status_ != FSDP_OK)                                                                                    \
            return gpt_status_;                                                                                        \
    } while (0)

/** Rank 0 prints the message. Local. @return FSDP_ERR_ARG */
fsdp_status gpt_fail(const fsdp_context *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Collective: FSDP_OK if `message` is empty on all ranks; else rank 0 prints those that are not. */
fsdp_status gpt_agree(fsdp_context *ctx, const char *message);

#endif
