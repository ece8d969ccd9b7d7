/** @file What an operation across nodes consists of, and how parts travel. */
#ifndef FSDPI_RAILS_ROUTE_H
#define FSDPI_RAILS_ROUTE_H

/** A combination of these. */
typedef enum fsdpi_route { FSDPI_REDUCES = 1, FSDPI_GATHERS = 2, FSDPI_AROUND = 4, FSDPI_EXCHANGES = 8 } fsdpi_route;

#endif
