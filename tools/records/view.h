/**
 * @file
 * What a record says, in seconds and in words.
 */
#ifndef RECORDS_VIEW_H
#define RECORDS_VIEW_H

#include "tools/records/records.h"

enum { VIEW_BYTES = 160 };

static inline int view_doing(const record_rank *rank)
{
    return (int)(rank->section.doing >> FSDPI_DOING_SHIFT);
}

/** The operation that goes with it. */
static inline uint64_t view_doing_sequence(const record_rank *rank)
{
    return rank->section.doing & (((uint64_t)1 << FSDPI_DOING_SHIFT) - 1);
}

/** The entry of an operation; NULL: it is not kept. */
const record_entry *view_entry(const record_rank *rank, uint64_t sequence);

/** The first that has been issued and not ended well: given up counts as not ended. NULL: there is none. */
const record_entry *view_first_pending(const record_rank *rank);

/** Whether the rank has ended an operation, as far as is known: one that is no longer kept is. */
bool view_has_ended(const record_rank *rank, uint64_t sequence);

/** SECONDS from a stamp to the moment of the record, and from one stamp to another. */
double view_seconds_since(const record_rank *rank, uint64_t ticks);
double view_seconds(const record_rank *rank, uint64_t from, uint64_t to);

/** SECONDS that it has waited in all, with the wait that it is in; and since its context was opened. */
double view_waited(const record_rank *rank);
double view_age(const record_rank *rank);

/** "14:02:11", by the clock of the rank's host and this program's time zone. */
void view_clock_time(const record_rank *rank, uint64_t ticks, char text[VIEW_BYTES]);

/** "38 s", "2 min 5 s". */
void view_duration(double seconds, char text[VIEW_BYTES]);

/** "allgather of h.4 for the backward pass", "allreduce of 16 f32 elements, sum"; `full`: with the elements in any case. */
void view_operation(const record_rank *rank, const record_entry *entry, bool full, char text[VIEW_BYTES]);

/** "rank 3 on node17"; where it is of a group, that too. */
void view_rank(const record_rank *rank, char text[VIEW_BYTES]);

/** "in its own code", and so on: in a few words. */
const char *view_doing_text(const record_rank *rank);

#endif
