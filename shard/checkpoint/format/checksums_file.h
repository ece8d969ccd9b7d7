/**
 * @file
 * checksums.bin: the chunks of all files of a checkpoint, file after file as state.json lists them: of each chunk its BYTES and its
 * sum, 64 bits each, little-endian. state.json has the sum of the whole. 16 bytes for up to 4 MiB, and nothing to take apart.
 */
#ifndef FSDPI_CHECKSUMS_FILE_H
#define FSDPI_CHECKSUMS_FILE_H

#include "shard/checkpoint/format/checksums.h"

/**
 * Writes it, so that it is on the disk; sets `sums->sum_of_chunks`. FSDP_ERR_IO; FSDP_ERR_ARG where it would be longer than
 * readers take.
 */
fsdp_status fsdpi_checksums_file_write(const char *path, fsdpi_checksums *sums, fsdpi_problem *problem);

/**
 * Reads the chunks of `sums` as fsdpi_checksums_get() leaves it where they are apart; else does nothing. FSDP_ERR_FORMAT unless
 * its length and its sum are those of state.json and the chunks add up to their files.
 */
fsdp_status fsdpi_checksums_file_read(const char *path, fsdpi_checksums *sums, fsdpi_problem *problem);

#endif
