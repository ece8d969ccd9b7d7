/** @file The public call in which the calling thread waits for other ranks, for the error of a wait that takes too long. */
#ifndef FSDPI_DOING_H
#define FSDPI_DOING_H

/** From now on `call`, a text that stays; NULL: none that is known. Returns the one before, to be set again. */
const char *fsdpi_doing(const char *call);

#endif
