#include "tools/records/records.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NOTES = 32, MOST_ENTRIES = 1 << 20, WORD_BYTES = sizeof(uint64_t) };

/* Of each rank the last ones say enough, and there may be many ranks. */
enum { ENTRIES_KEPT = 1024, ENTRIES_OF_MANY = 64, MANY_RANKS = 4096 };

void records_release(records *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->ranks[i].entries);
    }
    free(all->ranks);
    free(all->notes);
    *all = (records){0};
}

void records_note(records *all, const char *format, ...)
{
    va_list arguments;

    if (all->notes == NULL) {
        all->notes = calloc(MOST_NOTES, sizeof *all->notes);
    }
    if (all->notes == NULL || all->n_notes == MOST_NOTES) {
        all->more_notes++;
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(all->notes[all->n_notes++], RECORDS_NOTE_BYTES, format, arguments);
    va_end(arguments);
}

/* ---- what is trusted ------------------------------------------------------------------------------------------------- */

static void end_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || (unsigned char)*c == 0x7f) {
            *c = '?';
        }
    }
}

static size_t section_bytes(uint32_t entries)
{
    const size_t ring = (size_t)entries * FSDPI_RECORDED_WORDS * WORD_BYTES, page = 4096;

    return FSDPI_RECORDED_HEAD_BYTES + (ring + page - 1) / page * page;
}

static bool is_power_of_two(uint32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* What is wrong with it; NULL: nothing. */
static const char *find_fault(const fsdpi_recorded_header *head, size_t bytes)
{
    if (bytes < FSDPI_RECORDED_HEAD_BYTES) {
        return "is shorter than a header: only a part of it was written";
    }
    if (memcmp(head->magic, FSDPI_RECORDED_MAGIC, sizeof head->magic) != 0) {
        return "is not a record";
    }
    if (head->version != FSDPI_RECORDED_VERSION) {
        return "was written by another version of libfsdp; use the fsdp-why of that";
    }
    if (!is_power_of_two(head->entries) || head->entries > MOST_ENTRIES || head->sections != 1 ||
        head->section_bytes != section_bytes(head->entries) || head->size == 0 || head->size > INT32_MAX ||
        head->nodes == 0 || head->nodes > head->size || head->node >= head->nodes || head->node_ranks == 0 ||
        head->node_ranks > head->size || head->clock > FSDPI_CLOCK_TSC || head->cause > FSDPI_CAUSE_SIGNAL) {
        return "has a header that contradicts itself";
    }
    if (bytes < FSDPI_RECORDED_HEAD_BYTES + (size_t)head->section_bytes + sizeof(fsdpi_recorded_trailer)) {
        return "ends early: only a part of it was written";
    }
    return NULL;
}

static bool has_trailer(const unsigned char *data, const fsdpi_recorded_header *head, size_t bytes)
{
    fsdpi_recorded_trailer trailer;
    const size_t           at = FSDPI_RECORDED_HEAD_BYTES + (size_t)head->section_bytes;

    memcpy(&trailer, data + at, sizeof trailer);
    return memcmp(trailer.magic, FSDPI_RECORDED_TRAILER, sizeof trailer.magic) == 0 &&
           trailer.bytes == at + sizeof trailer && bytes == trailer.bytes;
}

static void clean_header(fsdpi_recorded_header *head)
{
    end_text(head->job, sizeof head->job);
    end_text(head->host, sizeof head->host);
    end_text(head->boot, sizeof head->boot);
    end_text(head->reason, sizeof head->reason);
}

static bool clean_section(fsdpi_recorded_section *section, const fsdpi_recorded_header *head)
{
    if (section->n_names > FSDPI_RECORDED_NAMES) {
        section->n_names = FSDPI_RECORDED_NAMES;
    }
    for (size_t i = 0; i < FSDPI_RECORDED_NAMES; i++) {
        end_text(section->names[i], sizeof section->names[i]);
    }
    end_text(section->program, sizeof section->program);
    end_text(section->group, sizeof section->group);
    return section->rank >= 0 && (uint32_t)section->rank < head->size && section->shown_rank >= 0 && section->pid > 0 &&
           section->doing >> FSDPI_DOING_SHIFT <= FSDPI_DOING_LEFT;
}

/* ---- entries --------------------------------------------------------------------------------------------------------- */

static int mark(const uint64_t *words, int which)
{
    return (int)(words[FSDPI_WORD_MARKS] >> 8 * which & 0xff);
}

const char *records_name(const record_rank *rank, int number)
{
    return number < FSDPI_RECORDED_NAMES && (uint64_t)number < rank->section.n_names ? rank->section.names[number] : "";
}

/* False: it holds none, or was being written. */
static bool read_entry(const uint64_t *words, uint64_t at, uint64_t ring, const fsdpi_recorded_section *section,
                       record_entry *entry)
{
    const uint64_t sequence = words[FSDPI_WORD_SEQUENCE] - 1;

    if (words[FSDPI_WORD_VERSION] % 2 != 0 || words[FSDPI_WORD_SEQUENCE] == 0 || sequence % ring != at ||
        sequence >= section->issued || mark(words, FSDPI_MARK_STATE) > FSDPI_RECORDED_FAILED) {
        return false;
    }
    *entry = (record_entry){.sequence   = sequence,
                            .issued     = words[FSDPI_WORD_ISSUED],
                            .begun      = words[FSDPI_WORD_BEGUN],
                            .ended      = words[FSDPI_WORD_ENDED],
                            .count      = words[FSDPI_WORD_COUNT],
                            .bytes      = words[FSDPI_WORD_BYTES],
                            .state      = mark(words, FSDPI_MARK_STATE),
                            .lane       = mark(words, FSDPI_MARK_LANE),
                            .dtype      = mark(words, FSDPI_MARK_DTYPE) - 1,
                            .op         = mark(words, FSDPI_MARK_OP) - 1,
                            .root       = (int)(words[FSDPI_WORD_ROOT] & INT32_MAX) - 1,
                            .status     = mark(words, FSDPI_MARK_STATUS),
                            .collective = mark(words, FSDPI_MARK_COLLECTIVE),
                            .call       = mark(words, FSDPI_MARK_CALL),
                            .algorithm  = mark(words, FSDPI_MARK_ALGORITHM)};
    memcpy(entry->label, &words[FSDPI_WORD_LABEL], sizeof entry->label);
    end_text(entry->label, sizeof entry->label);
    return true;
}

static int by_sequence(const void *a, const void *b)
{
    const record_entry *x = a, *y = b;

    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static bool read_entries(record_rank *rank, const unsigned char *ring, size_t most)
{
    const uint64_t n = rank->head.entries, issued = rank->section.issued;
    const uint64_t kept = n < most ? n : most, first = issued > kept ? issued - kept : 0;

    rank->entries = calloc(kept, sizeof *rank->entries);
    if (rank->entries == NULL) {
        return false;
    }
    for (uint64_t sequence = first; sequence < issued && sequence - first < kept; sequence++) {
        uint64_t       words[FSDPI_RECORDED_WORDS];
        const uint64_t at = sequence % n;
        memcpy(words, ring + at * sizeof words, sizeof words);
        rank->n += read_entry(words, at, n, &rank->section, &rank->entries[rank->n]) &&
                   rank->entries[rank->n].sequence == sequence;
    }
    qsort(rank->entries, rank->n, sizeof *rank->entries, by_sequence);
    return true;
}

/* ---- one record ------------------------------------------------------------------------------------------------------ */

static bool grow(records *all)
{
    const size_t room = all->room == 0 ? 16 : 2 * all->room;
    record_rank *more = all->n < all->room ? all->ranks : calloc(room, sizeof *more);

    if (more == NULL || more == all->ranks) {
        return more != NULL;
    }
    if (all->n > 0) {
        memcpy(more, all->ranks, all->n * sizeof *more);
    }
    free(all->ranks);
    all->ranks = more;
    all->room  = room;
    return true;
}

bool records_take(records *all, const void *data, size_t bytes, const char *name)
{
    const unsigned char  *at = data;
    fsdpi_recorded_header head;

    memset(&head, 0, sizeof head);
    memcpy(&head, data, bytes < sizeof head ? bytes : sizeof head);
    const char *fault = find_fault(&head, bytes);
    if (fault == NULL && !has_trailer(at, &head, bytes)) {
        fault = "has no end: only a part of it was written, or something was added";
    }
    if (fault != NULL) {
        records_note(all, "%.200s %s", name, fault);
        return false;
    }
    if (!grow(all)) {
        records_note(all, "%.200s is left out: there is no memory for it", name);
        return false;
    }
    record_rank *rank = &all->ranks[all->n];
    *rank             = (record_rank){.head = head, .is_live = head.cause == FSDPI_CAUSE_NONE};
    memcpy(&rank->section, at + FSDPI_RECORDED_HEAD_BYTES, sizeof rank->section);
    clean_header(&rank->head);
    if (!clean_section(&rank->section, &rank->head)) {
        records_note(all, "%.200s has a section that contradicts itself", name);
        return false;
    }
    if (!read_entries(rank, at + (size_t)2 * FSDPI_RECORDED_HEAD_BYTES,
                      all->n < MANY_RANKS ? ENTRIES_KEPT : ENTRIES_OF_MANY)) {
        records_note(all, "%.200s is left out: there is no memory for it", name);
        return false;
    }
    all->n++;
    return true;
}
