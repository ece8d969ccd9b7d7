/** @file What an operation across nodes consists of, and how parts travel. */
#ifndef FSDPI_RAILS_ROUTE_H
#define FSDPI_RAILS_ROUTE_H

/**
 * A combination of these. `FSDPI_WHOLE`: all of the vector is every rank's part. `FSDPI_COLLECTS`: every rank has a part of the
 * root's vector, reduces it and sends it there.
 */
typedef enum fsdpi_route {
    FSDPI_REDUCES   = 1,
    FSDPI_GATHERS   = 2,
    FSDPI_AROUND    = 4,
    FSDPI_EXCHANGES = 8,
    FSDPI_WHOLE     = 16,
    FSDPI_COLLECTS  = 32
} fsdpi_route;

/** Those in which what is final travels. */
enum { FSDPI_MOVES = FSDPI_GATHERS | FSDPI_EXCHANGES | FSDPI_COLLECTS };

#endif
