/*
 * Records in the memory of processes of this host, through /proc/PID/fd: no process is stopped or waited for, and one that is
 * stopped can be read as well.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/record/process.h"
#include "lib/record/ticks.h"
#include "tools/records/records.h"

enum { MOST_BYTES = 1 << 30, PATH_BYTES = 300 };

/* Memory that has been read: several processes have the same. */
typedef struct seen {
    ino_t *inodes;
    size_t n;
} seen;

static bool is_new(seen *known, ino_t inode)
{
    for (size_t i = 0; i < known->n; i++) {
        if (known->inodes[i] == inode) {
            return false;
        }
    }
    ino_t *more = realloc(known->inodes, (known->n + 1) * sizeof *more);
    if (more == NULL) {
        return false;
    }
    known->inodes             = more;
    known->inodes[known->n++] = inode;
    return true;
}

/* What a file would hold of one section, with what is known of its process now. */
static bool take_section(records *all, const fsdpi_recorded_header *header, const unsigned char *section)
{
    fsdpi_recorded_section head;
    fsdpi_recorded_header  mine    = *header;
    fsdpi_recorded_trailer trailer = {.bytes = FSDPI_RECORDED_HEAD_BYTES + header->section_bytes + sizeof trailer};
    char                   name[64];

    memcpy(&head, section, sizeof head);
    if (head.rank < 0) { /* its rank has not come to it, or has a record of its own */
        return false;
    }
    head.group[sizeof head.group - 1] = '\0';
    mine.sections                     = 1;
    mine.cause                        = FSDPI_CAUSE_NONE;
    mine.written                      = fsdpi_ticks_moment(header->clock);
    mine.process                      = (unsigned char)fsdpi_process_state(head.pid, head.started);
    mine.oom_kills                    = fsdpi_process_oom_kills(head.group);
    memcpy(trailer.magic, FSDPI_RECORDED_TRAILER, sizeof trailer.magic);
    unsigned char *data = calloc(1, trailer.bytes);
    if (data == NULL) {
        return false;
    }
    memcpy(data, &mine, sizeof mine);
    memcpy(data + FSDPI_RECORDED_HEAD_BYTES, section, header->section_bytes);
    memcpy(data + trailer.bytes - sizeof trailer, &trailer, sizeof trailer);
    (void)snprintf(name, sizeof name, "the memory of process %d", (int)head.pid);
    const bool taken = records_take(all, data, trailer.bytes, name);
    free(data);
    return taken;
}

/* A copy: the memory of a process that may go on meanwhile, or end. */
static unsigned char *copy_memory(int file, size_t bytes)
{
    unsigned char *data = malloc(bytes);
    size_t         have = 0;

    while (data != NULL && have < bytes) {
        const ssize_t n = pread(file, data + have, bytes - have, (off_t)have);
        if (n <= 0) {
            free(data);
            return NULL;
        }
        have += (size_t)n;
    }
    return data;
}

static long take_memory(records *all, int file, size_t bytes)
{
    fsdpi_recorded_header header;
    long                  taken = 0;
    unsigned char *data = bytes >= FSDPI_RECORDED_HEAD_BYTES && bytes <= MOST_BYTES ? copy_memory(file, bytes) : NULL;

    if (data == NULL) {
        return 0;
    }
    memcpy(&header, data, sizeof header);
    const size_t room = (bytes - FSDPI_RECORDED_HEAD_BYTES) / (header.section_bytes > 0 ? header.section_bytes : 1);
    if (memcmp(header.magic, FSDPI_RECORDED_MAGIC, sizeof header.magic) != 0 ||
        header.section_bytes < FSDPI_RECORDED_HEAD_BYTES || header.clock > FSDPI_CLOCK_TSC) {
        free(data);
        return 0;
    }
    for (size_t i = 0; i < header.sections && i < room; i++) {
        taken += take_section(all, &header, data + FSDPI_RECORDED_HEAD_BYTES + i * header.section_bytes);
    }
    free(data);
    return taken;
}

static long take_descriptor(records *all, const char *path, seen *known)
{
    static const char prefix[]  = "/memfd:" FSDPI_RECORDED_NAME;
    char              link[128] = "";
    struct stat       about;
    long              taken = 0;

    if (readlink(path, link, sizeof link - 1) < 0 || strncmp(link, prefix, sizeof prefix - 1) != 0) {
        return 0;
    }
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0 && fstat(file, &about) == 0 && about.st_size > 0 && is_new(known, about.st_ino)) {
        taken = take_memory(all, file, (size_t)about.st_size);
    }
    if (file >= 0) {
        (void)close(file);
    }
    return taken;
}

static long take_process(records *all, long pid, seen *known)
{
    char           path[PATH_BYTES];
    long           taken = 0;
    struct dirent *entry;

    (void)snprintf(path, sizeof path, "/proc/%ld/fd", pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return -1;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(path, sizeof path, "/proc/%ld/fd/%.200s", pid, entry->d_name);
            taken += take_descriptor(all, path, known);
        }
    }
    (void)closedir(folder);
    return taken;
}

static long take_all(records *all, seen *known)
{
    struct dirent *entry;
    long           taken  = 0;
    DIR           *folder = opendir("/proc");

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        const long pid = strtol(entry->d_name, NULL, 10);
        const long n   = pid > 0 ? take_process(all, pid, known) : 0;
        taken += n > 0 ? n : 0;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return taken;
}

/* Of a user who may not look into others: root sees everybody's. */
long records_read_processes(records *all, long pid)
{
    seen       known = {0};
    const long taken = pid > 0 ? take_process(all, pid, &known) : take_all(all, &known);
    const int  why   = errno;

    free(known.inodes);
    errno = why;
    return taken;
}
