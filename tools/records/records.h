/**
 * @file
 * The records of ranks, as a program without MPI reads them: from files, from the memory of processes of this host, or as lines
 * from other hosts. What is read is treated as untrusted; what cannot be used is noted, and left out.
 */
#ifndef RECORDS_RECORDS_H
#define RECORDS_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/record/layout.h"

enum { RECORDS_LABEL_BYTES = FSDPI_RECORDED_LABEL_BYTES, RECORDS_NOTE_BYTES = 400 };

/** One operation of a rank. */
typedef struct record_entry {
    uint64_t sequence;
    uint64_t issued, begun, ended; /* ticks; 0: not yet */
    uint64_t count, bytes;
    int      state, lane, dtype, op, root, status; /* -1: none */
    int      collective, call, algorithm;          /* for records_name() */
    char     label[RECORDS_LABEL_BYTES];
} record_entry;

/** One rank in one context. */
typedef struct record_rank {
    fsdpi_recorded_section section; /* read once: its members no longer change */
    fsdpi_recorded_header
                  head; /* `written`: the moment for which all of this holds; `process`, as the letter of that moment */
    record_entry *entries; /* in the order of their numbers: the last ones that were kept */
    size_t        n;
    bool          is_live; /* read from memory, just now */
} record_rank;

typedef struct records {
    record_rank *ranks;
    size_t       n, room;
    char (*notes)[RECORDS_NOTE_BYTES]; /* what has been left out, and why */
    size_t n_notes, more_notes;        /* kept; and beyond these */
} records;

void records_release(records *all);

/** A name of an entry: "allgather"; "" where it is not known. */
const char *records_name(const record_rank *rank, int number);

/** Notes something, as printf(). */
void records_note(records *all, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * Takes one record in the form of a file from memory, if it is one: else says why not.
 * @param[in]     data   BYTES of it
 * @param[in,out] name   what to call it
 * @return false: it is noted
 */
bool records_take(records *all, const void *data, size_t bytes, const char *name);

/** Reads all records of a folder. Returns how many files there were; -1: the folder cannot be read, which errno says. */
long records_read_folder(records *all, const char *folder);

/**
 * Reads what a process has mapped, with the other ranks of its node; or, with pid 0, what all processes of this user have.
 * Returns how many records there were; -1: there is no such process, or it is another user's, which errno says.
 */
long records_read_processes(records *all, long pid);

/** Writes each record as lines of text, which survive being mixed with other hosts' lines; and takes such lines. */
void records_write_lines(const records *all, FILE *file);

typedef struct records_lines records_lines;
records_lines               *records_lines_begin(void);
void                         records_lines_take(records_lines *lines, const char *line);

/** Adds those that are whole to `all`, notes the others, and releases the lines. Returns how many were whole. */
long records_lines_end(records_lines *lines, records *all);

/** Runs commands, some at a time, and takes their lines. Returns how many records there were; notes what went wrong. */
long records_read_commands(records *all, char *const *commands, size_t n);

/**
 * What all hosts of a list print, "node1,node2", or what a launcher prints that runs a command once per host, as "flux exec".
 * @param[in] rsh     runs a command on a host: "ssh"
 * @param[in] remote  fsdp-top there; NULL: the one beside this program
 * @return how many records there were; -1: the list is none, or the job none of Slurm's
 */
long records_read_hosts(records *all, const char *hosts, const char *rsh, const char *remote);
long records_read_launcher(records *all, const char *launcher, const char *remote);

/** The same by a step of Slurm's on all nodes of a job, "42" or "42_3". */
long records_read_slurm(records *all, const char *job, const char *remote);

/** Writes each record into a folder, which it makes, under the name that it has as a file. 0, or an errno. */
int records_save(const records *all, const char *folder);

#endif
