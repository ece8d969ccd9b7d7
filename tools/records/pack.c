#include "tools/records/pack.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mark(int which, int value)
{
    return (uint64_t)(value & 0xff) << 8 * which;
}

static void pack_entry(const record_entry *entry, uint64_t *words)
{
    words[FSDPI_WORD_SEQUENCE] = entry->sequence + 1;
    words[FSDPI_WORD_ISSUED]   = entry->issued;
    words[FSDPI_WORD_BEGUN]    = entry->begun;
    words[FSDPI_WORD_ENDED]    = entry->ended;
    words[FSDPI_WORD_COUNT]    = entry->count;
    words[FSDPI_WORD_BYTES]    = entry->bytes;
    words[FSDPI_WORD_MARKS]    = mark(FSDPI_MARK_STATE, entry->state) | mark(FSDPI_MARK_LANE, entry->lane) |
                              mark(FSDPI_MARK_COLLECTIVE, entry->collective) | mark(FSDPI_MARK_CALL, entry->call) |
                              mark(FSDPI_MARK_ALGORITHM, entry->algorithm) | mark(FSDPI_MARK_DTYPE, entry->dtype + 1) |
                              mark(FSDPI_MARK_OP, entry->op + 1) | mark(FSDPI_MARK_STATUS, entry->status);
    memcpy(&words[FSDPI_WORD_LABEL], entry->label, sizeof entry->label);
    words[FSDPI_WORD_ROOT] = (uint64_t)entry->root + 1;
}

/* A ring that has room for them where their numbers say, up to the last one that was issued. */
static uint32_t ring_for(const record_rank *rank, size_t first)
{
    const uint64_t span = rank->n > first ? rank->section.issued - rank->entries[first].sequence : 1;
    uint32_t       ring = 1;

    while (ring < span) {
        ring *= 2;
    }
    return ring;
}

unsigned char *records_pack(const record_rank *rank, size_t most, size_t *bytes)
{
    enum { PAGE = 4096, ENTRY_BYTES = FSDPI_RECORDED_WORDS * 8 };
    const size_t           first   = rank->n > most ? rank->n - most : 0;
    const uint32_t         ring    = ring_for(rank, first);
    const size_t           section = FSDPI_RECORDED_HEAD_BYTES + ((size_t)ring * ENTRY_BYTES + PAGE - 1) / PAGE * PAGE;
    fsdpi_recorded_header  head    = rank->head;
    fsdpi_recorded_trailer trailer = {.bytes = FSDPI_RECORDED_HEAD_BYTES + section + sizeof trailer};
    unsigned char         *data    = calloc(1, trailer.bytes);

    if (data == NULL) {
        return NULL;
    }
    head.entries       = ring;
    head.section_bytes = (uint32_t)section;
    head.sections      = 1;
    memcpy(trailer.magic, FSDPI_RECORDED_TRAILER, sizeof trailer.magic);
    memcpy(data, &head, sizeof head);
    memcpy(data + FSDPI_RECORDED_HEAD_BYTES, &rank->section, sizeof rank->section);
    for (size_t i = first; i < rank->n; i++) {
        uint64_t words[FSDPI_RECORDED_WORDS] = {0};
        pack_entry(&rank->entries[i], words);
        memcpy(data + (size_t)2 * FSDPI_RECORDED_HEAD_BYTES + rank->entries[i].sequence % ring * sizeof words, words,
               sizeof words);
    }
    memcpy(data + trailer.bytes - sizeof trailer, &trailer, sizeof trailer);
    *bytes = trailer.bytes;
    return data;
}
