/**
 * @file
 * Which messages each algorithm sends between nodes, and how long they are: one function per algorithm, written down here
 * from what fsdp-bench --algorithms says and not from the code that sends them. tests/collectives/counted.h holds both
 * against what is counted in front of MPI.
 */
#ifndef FSDP_TESTS_TRAFFIC_H
#define FSDP_TESTS_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRAFFIC_MOST_RANKS = 64 };

/** Nodes of consecutive ranks, all of `per_node` but perhaps the last. */
typedef struct traffic_world {
    int size, per_node;
} traffic_world;

typedef struct traffic_call {
    size_t part[TRAFFIC_MOST_RANKS]; /* ELEMENTS of the vector that belong to each rank */
    size_t whole;                    /* ELEMENTS of the vector */
    size_t width;                    /* BYTES of an element */
    size_t chunk;                    /* BYTES of a message by rails, at most */
    size_t block;                    /* BYTES of what staged brings at once, of all parts together, at most */
    bool   reduces;                  /* each rank gives the whole vector, and has a part of the result */
    bool   gathers;                  /* each rank has the whole result */
    bool   collects;                 /* the root has every rank's part */
    int    root;
    bool   in_parts; /* through blocks it goes part by part, and not from one root or to one */
} traffic_call;

typedef struct traffic {
    uint64_t messages, bytes;
} traffic;

/** ceil(log2 nodes): the rounds of an agreement. */
int traffic_rounds(int nodes);
int traffic_nodes(const traffic_world *w);

/** What `from` sends to `to`. All but the first have an agreement too, which is not counted here. */
typedef traffic (*traffic_formula)(const traffic_world *w, const traffic_call *c, int from, int to);

/** Between leaders, and all that there is of a call that stays on one node or has no data. */
traffic traffic_agreement(const traffic_world *w, const traffic_call *c, int from, int to);

/** Less what the agreement would be without data, on which it rides. */
traffic traffic_inline(const traffic_world *w, const traffic_call *c, int from, int to);

traffic traffic_staged(const traffic_world *w, const traffic_call *c, int from, int to);
traffic traffic_rails(const traffic_world *w, const traffic_call *c, int from, int to);
traffic traffic_ring(const traffic_world *w, const traffic_call *c, int from, int to);
traffic traffic_pairwise(const traffic_world *w, const traffic_call *c, int from, int to);

/** Nothing but the agreement: MPI does the rest, or memory. */
traffic traffic_none(const traffic_world *w, const traffic_call *c, int from, int to);

#endif
