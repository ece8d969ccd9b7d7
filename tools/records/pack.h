/**
 * @file
 * A record that has been read, as the bytes of a file again.
 */
#ifndef RECORDS_PACK_H
#define RECORDS_PACK_H

#include "tools/records/records.h"

/** With at most so many of its last entries. Returns memory for free(); NULL: there is none. */
unsigned char *records_pack(const record_rank *rank, size_t most, size_t *bytes);

#endif
