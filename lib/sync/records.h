/**
 * @file
 * How the leaders of M nodes hear of each other in ceil(log2 M) rounds: who sends how much to whom, and where it lies. Nothing
 * here sends anything; lib/sync/exchange.h does.
 *
 * Before a round a leader has heard of 1, 2, 4, ... nodes, from its own on, around. The leader of the node behind these sends
 * it what it has heard itself: of as many nodes, or of those that are left (Bruck et al., "Efficient Algorithms for All-to-All
 * Communications in Multiport Message-Passing Systems", 1997).
 *
 * Each node has a record: an opinion, and payload if it has data for the others. In the record of its own node a leader joins
 * the opinions of all that it has heard of. While they all carry payload, a message is all their records; as soon as one is
 * known not to, or to call something else, nobody will need the others' payload, and a message is that one record's head: of
 * constant size, whatever M. Which of the two has come is seen in its first opinion: it carries only if all in it do.
 */
#ifndef FSDPI_RECORDS_H
#define FSDPI_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/sync/opinion.h"

typedef struct fsdpi_record_head {
    fsdpi_opinion all;   /* of the nodes that its sender had heard of */
    uint64_t      bytes; /* of payload behind this; lib/sync/pairs.c has flags in them */
} fsdpi_record_head;

/** A round of one leader: with which nodes' leaders, and how many records at most. */
typedef struct fsdpi_round {
    int to, from;
    int records;
} fsdpi_round;

/** What lies in a leader's memory: the records of its node, and of those after it as far as they have come. */
typedef struct fsdpi_records {
    unsigned char *area;
    int            nodes;
    int            mine;
    int            have; /* nodes that have been heard of */
    int            seen; /* records whose length is known: each is looked at once */
    int            last; /* records that the last round takes */
    size_t         end;  /* BYTES of those seen */
    size_t         part; /* BYTES of the first `last` of them */
} fsdpi_records;

/** ceil(log2 of the nodes). */
int fsdpi_rounds(int nodes);

/** The round of the leader of node `mine` that has heard of `have` nodes, a power of two below `nodes`. */
fsdpi_round fsdpi_round_of(int nodes, int mine, int have);

/** Begins with this node's record, which the caller fills in before the first round. */
fsdpi_record_head *fsdpi_records_begin(fsdpi_records *records, unsigned char *area, int nodes, int mine);

/** BYTES that the next round sends, from the beginning of the area. What it receives belongs at `end` of it. */
size_t fsdpi_records_leaving(fsdpi_records *records);

/** The message of a round has come. */
void fsdpi_records_arrived(fsdpi_records *records);

/** BYTES of a record, and the record behind it. */
static inline size_t fsdpi_record_bytes(const fsdpi_record_head *record)
{
    return sizeof *record + (size_t)(record->bytes + 7) / 8 * 8;
}

static inline const fsdpi_record_head *fsdpi_record_behind(const fsdpi_record_head *record)
{
    return (const fsdpi_record_head *)(const void *)((const unsigned char *)record + fsdpi_record_bytes(record));
}

#endif
