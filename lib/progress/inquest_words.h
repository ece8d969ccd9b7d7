/**
 * @file
 * What an inquest has found, in words: of an error that ends a wait, and of a warning that does not.
 */
#ifndef FSDPI_INQUEST_WORDS_H
#define FSDPI_INQUEST_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/progress/queue_state.h"

/** The detail of the error with which the head is given up. */
void fsdpi_inquest_describe_end(const fsdpi_queue *queue, char *text, size_t size);

/** Why the context is broken, where that is known to be a time-out: "rank 2 does not answer"; else the text of `broken`. */
void fsdpi_inquest_describe(const fsdpi_queue *queue, fsdp_status broken, char *text, size_t size);

/** That the head has not moved for so many seconds, and who is missing as far as is known now. */
void fsdpi_inquest_describe_stall(const fsdpi_queue *queue, const fsdpi_notice *notice, int64_t seconds, char *text,
                                  size_t size);

#endif
