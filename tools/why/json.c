#include "tools/why/json.h"

#include <inttypes.h>

#include "tools/common/json.h"
#include "tools/records/view.h"

static void print_operation(const record_rank *rank, uint64_t sequence, FILE *file)
{
    const record_entry *entry = view_entry(rank, sequence);
    char                what[VIEW_BYTES];

    (void)fprintf(file, "{\"number\": %" PRIu64, sequence);
    if (entry != NULL) {
        view_operation(rank, entry, true, what);
        (void)fputs(", \"text\": ", file);
        cli_json_text(file, what);
        (void)fputs(", \"collective\": ", file);
        cli_json_text(file, records_name(rank, entry->collective));
        (void)fputs(", \"label\": ", file);
        cli_json_text(file, entry->label);
        (void)fputs(", \"call\": ", file);
        cli_json_text(file, records_name(rank, entry->call));
    }
    (void)fputc('}', file);
}

static void print_rank(const record_rank *rank, FILE *file)
{
    const char state[] = {rank->head.process > 0x20 && rank->head.process < 0x7f ? (char)rank->head.process : '\0',
                          '\0'};

    (void)fprintf(file, "{\"rank\": %d, \"host\": ", (int)rank->section.shown_rank);
    cli_json_text(file, rank->head.host);
    (void)fprintf(file, ", \"pid\": %d, \"node\": %u, \"doing\": ", (int)rank->section.pid, (unsigned)rank->head.node);
    cli_json_text(file, view_doing_text(rank));
    (void)fprintf(file, ", \"seconds\": %.3f, \"issued\": %" PRIu64 ", \"ended\": %" PRIu64 ", \"waited\": %.3f",
                  view_seconds_since(rank, rank->section.since), (uint64_t)rank->section.issued,
                  (uint64_t)rank->section.ended, view_waited(rank));
    (void)fputs(", \"process\": ", file);
    cli_json_text(file, state);
    (void)fprintf(file, ", \"signal\": %d}", (int)rank->head.signal);
}

static void print_notes(const records *all, FILE *file)
{
    for (size_t i = 0; i < all->n_notes; i++) {
        (void)fputs(i > 0 ? ", " : "", file);
        cli_json_text(file, all->notes[i]);
    }
}

void why_print_json(const verdict *found, const verdict_job *job, const records *all, FILE *file)
{
    (void)fputs("{\"verdict\": ", file);
    cli_json_text(file, verdict_word(found->kind));
    (void)fprintf(file, ", \"status\": %d, \"text\": ", (int)found->kind);
    cli_json_text(file, found->text);
    (void)fputs(",\n \"advice\": ", file);
    cli_json_text(file, found->advice);
    (void)fprintf(file, ",\n \"ranks\": %zu, \"records\": %zu, \"waiting\": %zu, \"longest\": %.3f", found->size,
                  found->known, found->waiting, found->longest);
    if (found->witness != NULL) {
        (void)fputs(",\n \"operation\": ", file);
        print_operation(found->witness, found->sequence, file);
    }
    if (found->culprit != NULL) {
        (void)fprintf(file, ",\n \"culprits\": %zu, \"first\": ", found->culprits);
        print_rank(found->culprit, file);
    }
    (void)fputs(",\n \"all\": [", file);
    for (size_t i = 0; i < job->n; i++) {
        (void)fputs(i > 0 ? ",\n  " : "\n  ", file);
        print_rank(job->all[i], file);
    }
    (void)fputs("],\n \"notes\": [", file);
    print_notes(all, file);
    (void)fputs("]}\n", file);
}
