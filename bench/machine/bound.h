/**
 * @file
 * The least time that memory and links allow.
 */
#ifndef BENCH_BOUND_H
#define BENCH_BOUND_H

#include "bench/base/collective.h"

/** What the bound rests on. */
typedef struct bench_limits {
    int    nodes, node_size; /* ranks of the largest node */
    double memory;           /* BYTES per second of a node */
    double link;             /* BYTES per second, each way, of a node; 0: not known, or one node */
} bench_limits;

/** BYTES of memory traffic of one rank, on average over its node: each byte read or written once. */
double bench_traffic(const bench_case *c, const bench_limits *limits);

/** BYTES that a node has to send, or receive if that is more. */
double bench_link_bytes(const bench_case *c, const bench_limits *limits);

/** SECONDS: the larger of what memory and link take. */
double bench_bound(const bench_case *c, const bench_limits *limits);

#endif
