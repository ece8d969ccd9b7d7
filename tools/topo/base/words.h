/**
 * @file
 * How things are called in every output.
 */
#ifndef TOPO_WORDS_H
#define TOPO_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <fsdp/fsdp.h>

/** BYTES of the texts below, with their NUL. */
#define TOPO_WORD_BYTES 96

typedef struct topo_word {
    char text[TOPO_WORD_BYTES];
} topo_word;

/** A text that grows within `size` BYTES, and is cut there. Starts with `used` 0. */
typedef struct topo_line {
    char  *text;
    size_t size, used;
} topo_line;

void topo_line_add(topo_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** "shared-gpu, few-cores"; "" for none. */
void topo_deviation_names(unsigned deviations, char *text, size_t size);

/** "125.6 GiB"; "unknown" for 0. */
topo_word topo_bytes(uint64_t bytes);

/** "1 core", "2 cores". */
topo_word topo_counted(size_t n, const char *singular);

/** "GPU 4 0000:d1:00.0", with "/1" if it is a part of one; "none" below 0. */
topo_word topo_gpu(const fsdp_node *node, int gpu);

/** The system's number of one of `domains`; "unknown" below 0. */
topo_word topo_number(const fsdp_domain *domains, int index);

/** "L3" and a number; "cache" where the level is not known. */
topo_word topo_cache(const fsdp_node *node, int cache);

/** Writes a text as one word of a shell, in quotes where it needs them. */
void topo_shell_word(FILE *file, const char *text);

const char *topo_vendor(const fsdp_gpu *gpu);
const char *topo_link_name(fsdp_link_type type);

/** "XGMI, 1 hop, weight 15, 50000 MB/s"; what is not known is left out. */
topo_word topo_link(const fsdp_link *link);

#endif
