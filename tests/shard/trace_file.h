/**
 * @file
 * What FSDP_TRACE has written, read back line by line.
 */
#ifndef FSDP_TESTS_TRACE_FILE_H
#define FSDP_TESTS_TRACE_FILE_H

#include <stddef.h>

enum { MOST_EVENTS = 4096 };

typedef struct event {
    char   name[128], kind[32], purpose[64];
    double begin, length, issued; /* microseconds */
    int    lane;
} event;

typedef struct traced {
    event  events[MOST_EVENTS];
    size_t n;
} traced;

/** Fails the test if the file cannot be read. */
void read_trace(const char *name, traced *t);

/** The last event of that name, and for that purpose unless it is NULL; fails the test if there is none. */
const event *last_of(const traced *t, const char *name, const char *purpose);

size_t count_of(const traced *t, const char *name);

#endif
