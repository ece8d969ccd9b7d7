#include "lib/record/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/record/process.h"
#include "lib/record/signals.h"

enum { MOST_DUMPS = 64, PATH_BYTES = 1024 };

/* Of an open context: what a signal handler finds without asking anybody. Contexts beyond these are written to no file. */
typedef struct dump {
    _Atomic(const fsdpi_recorder *) recorder;
    char                            path[PATH_BYTES]; /* in FSDP_RECORD_DIR; "": there is none */
    bool                            mismatched;
} dump;

static dump       dumps[MOST_DUMPS];
static fsdpi_lock lock; /* over taking one */

static const fsdpi_recorder *recorder_of(const dump *o)
{
    return atomic_load_explicit(&o->recorder, memory_order_acquire);
}

/* ---- one file; all of this is safe in a signal handler -------------------------------------------------------------------------------- */

static bool put(int file, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    while (bytes > 0) {
        const ssize_t n = write(file, at, bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool put_all(int file, const fsdpi_recorder *recorder, int position, const fsdpi_recorded_header *header)
{
    union {
        fsdpi_recorded_header header;
        unsigned char         bytes[FSDPI_RECORDED_HEAD_BYTES];
    } head                         = {.bytes = {0}};
    fsdpi_recorded_trailer trailer = {.bytes = FSDPI_RECORDED_HEAD_BYTES + header->section_bytes + sizeof trailer};

    head.header = *header;
    memcpy(trailer.magic, FSDPI_RECORDED_TRAILER, sizeof trailer.magic);
    return put(file, &head, sizeof head) &&
           put(file, fsdpi_recorder_section(recorder, position), header->section_bytes) &&
           put(file, &trailer, sizeof trailer);
}

/* Returns 0 or an errno; what has not come to its end is left under the name of a part. */
static int write_file(const fsdpi_recorder *recorder, int position, const fsdpi_recorded_header *header,
                      const char *path)
{
    char         part[PATH_BYTES + sizeof FSDPI_RECORDED_PART];
    const size_t length = strlen(path);

    memcpy(part, path, length);
    memcpy(part + length, ".part", sizeof ".part");
    const int file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
    if (file < 0) {
        return errno;
    }
    errno              = 0;
    const bool written = put_all(file, recorder, position, header);
    const int  why     = written ? 0 : errno != 0 ? errno : EIO;
    const bool closed  = close(file) == 0;
    return !written ? why : closed && rename(part, path) == 0 ? 0 : errno;
}

static void fill_header(fsdpi_recorded_header *header, const fsdpi_recorder *recorder, fsdpi_recorded_cause cause)
{
    *header            = *fsdpi_recorder_header(recorder);
    header->sections   = 1;
    header->cause      = (uint32_t)cause;
    header->written    = fsdpi_ticks_moment(header->clock);
    header->written_by = recorder->core->shown_rank;
    header->process    = 'R';
    header->oom_kills  = -1;
}

/* Of any rank of the node. */
static void fill_about(fsdpi_recorded_header *header, const fsdpi_recorder *recorder, int position, const char *reason)
{
    const fsdpi_recorded_section *section = fsdpi_recorder_section(recorder, position);

    if (position != recorder->position) {
        header->process = (unsigned char)fsdpi_process_state(section->pid, section->started);
    }
    header->oom_kills = fsdpi_process_oom_kills(section->group);
    (void)fsdpi_append(header->reason, header->reason + sizeof header->reason - 1, reason);
}

/* ---- names ------------------------------------------------------------------------------------------------------------- */

/* The launcher's number, under which no other process of the job writes; or else the context's. */
static int rank_in_names(const fsdpi_recorder *recorder, int position)
{
    static const char *const KNOWN[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",      "PMI_RANK",
                                        "PALS_RANKID",          "FLUX_TASK_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN && position == recorder->position; i++) {
        const char *value = getenv(KNOWN[i]);
        if (value != NULL && value[0] >= '0' && value[0] <= '9') {
            return atoi(value);
        }
    }
    return fsdpi_recorder_section(recorder, position)->shown_rank;
}

/* Safe in a signal handler. */
static bool name_file(const fsdpi_recorder *recorder, int position, const char *folder, char path[PATH_BYTES])
{
    const fsdpi_recorded_section *section = fsdpi_recorder_section(recorder, position);
    const char                   *end     = path + PATH_BYTES - 1;
    char                         *at      = fsdpi_append(path, end, folder);

    at = fsdpi_append(at, end, "/");
    at = fsdpi_append(at, end, fsdpi_recorder_header(recorder)->host);
    at = fsdpi_append(at, end, ".");
    at = fsdpi_append_number(at, end, (uint64_t)section->file_rank);
    if (section->number != 1) {
        at = fsdpi_append(at, end, ".");
        at = fsdpi_append_number(at, end, section->number);
    }
    return fsdpi_append(at, end, FSDPI_RECORDED_SUFFIX) < end;
}

/* ---- opening and closing --------------------------------------------------------------------------------------------------- */

static int take_dump(const fsdpi_recorder *recorder)
{
    int taken = -1;

    fsdpi_lock_take(&lock);
    for (int i = 0; i < MOST_DUMPS && taken < 0; i++) {
        if (recorder_of(&dumps[i]) == NULL) {
            taken               = i;
            dumps[i].path[0]    = '\0';
            dumps[i].mismatched = false;
            atomic_store(&dumps[i].recorder, recorder);
        }
    }
    fsdpi_lock_give(&lock);
    return taken;
}

static fsdp_status use_folder(const fsdpi_recorder *recorder, char path[PATH_BYTES])
{
    const char *folder = recorder->core->config.record_dir;

    (void)mkdir(folder, S_IRWXU | S_IRWXG | S_IRWXO);
    if (access(folder, W_OK | X_OK) != 0 || !name_file(recorder, recorder->position, folder, path)) {
        return fsdpi_fail_together(recorder->core->ctx, FSDP_ERR_ARG,
                                   "FSDP_RECORD_DIR: no file can be written in '%.200s': %s; name a folder of yours",
                                   folder, strerror(errno));
    }
    return FSDP_OK;
}

static void write_of_last_signal(int signal)
{
    fsdpi_dump_of_signal(signal, true);
}

fsdp_status fsdpi_dump_open(fsdpi_recorder *recorder)
{
    const char *folder = recorder->core->config.record_dir;
    char        path[PATH_BYTES];

    if (recorder->section == NULL) {
        return FSDP_OK;
    }
    recorder->section->file_rank = rank_in_names(recorder, recorder->position);
    recorder->dump               = take_dump(recorder);
    if (folder == NULL || folder[0] == '\0' || recorder->dump < 0) {
        return FSDP_OK;
    }
    FSDP_TRY(use_folder(recorder, path));
    memcpy(dumps[recorder->dump].path, path, sizeof path);
    fsdpi_signals_watch(write_of_last_signal);
    return FSDP_OK;
}

void fsdpi_dump_close(fsdpi_recorder *recorder)
{
    if (recorder->dump < 0) {
        return;
    }
    dump *o = &dumps[recorder->dump];
    if (o->path[0] != '\0') {
        fsdpi_signals_forget();
    }
    atomic_store(&o->recorder, NULL);
    recorder->dump = -1;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

/* Each record is written once on its own account, by whoever comes first. */
static bool take(const fsdpi_recorder *recorder, int position)
{
    fsdpi_recorded_section *section = fsdpi_recorder_section(recorder, position);
    uint64_t                nobody  = 0;

    return section->rank >= 0 &&
           atomic_compare_exchange_strong(&section->taken, &nobody, (uint64_t)recorder->core->shown_rank + 1);
}

static int write_position(const fsdpi_recorder *recorder, int position, const char *path, fsdpi_recorded_cause cause,
                          const char *reason)
{
    fsdpi_recorded_header header;

    fill_header(&header, recorder, cause);
    fill_about(&header, recorder, position, reason);
    return write_file(recorder, position, &header, path);
}

/* The others of its node, beginning behind this rank, so that those who give up at the same time share the work. */
static void write_node(const fsdpi_recorder *recorder, const char *reason)
{
    const int n = (int)fsdpi_recorder_header(recorder)->sections;
    char      path[PATH_BYTES];

    for (int i = 1; i < n; i++) {
        const int position = (recorder->position + i) % n;
        if (take(recorder, position) && name_file(recorder, position, recorder->core->config.record_dir, path)) {
            (void)write_position(recorder, position, path, FSDPI_CAUSE_TIMEOUT, reason);
        }
    }
}

static void write_own(const dump *o, const fsdpi_recorder *recorder, fsdpi_recorded_cause cause, const char *reason)
{
    if (take(recorder, recorder->position)) {
        (void)write_position(recorder, recorder->position, o->path, cause, reason);
    }
}

void fsdpi_dump_give_up(const char *reason)
{
    for (int i = 0; i < MOST_DUMPS; i++) {
        const fsdpi_recorder *recorder = recorder_of(&dumps[i]);
        if (recorder != NULL && dumps[i].path[0] != '\0') {
            write_own(&dumps[i], recorder, FSDPI_CAUSE_TIMEOUT, reason);
            write_node(recorder, reason);
        }
    }
}

void fsdpi_dump_fail(const char *reason)
{
    for (int i = 0; i < MOST_DUMPS; i++) {
        const fsdpi_recorder *recorder = recorder_of(&dumps[i]);
        if (recorder != NULL && dumps[i].path[0] != '\0') {
            write_own(&dumps[i], recorder, FSDPI_CAUSE_FAILED, reason);
        }
    }
}

void fsdpi_dump_mismatch(fsdpi_recorder *recorder, const char *reason)
{
    dump *o = recorder->dump >= 0 ? &dumps[recorder->dump] : NULL;

    if (o != NULL && o->path[0] != '\0' && !o->mismatched) {
        o->mismatched = true;
        (void)write_position(recorder, recorder->position, o->path, FSDPI_CAUSE_FAILED, reason);
    }
}

static void write_for_signal(const dump *d, const fsdpi_recorder *recorder, int position, int signal)
{
    fsdpi_recorded_header header;
    char                  path[PATH_BYTES];

    fill_header(&header, recorder, FSDPI_CAUSE_SIGNAL);
    fill_about(&header, recorder, position, "");
    header.signal = signal;
    if (position == recorder->position) {
        (void)write_file(recorder, position, &header, d->path);
    } else if (name_file(recorder, position, recorder->core->config.record_dir, path)) {
        (void)write_file(recorder, position, &header, path);
    }
}

static bool is_gone(const fsdpi_recorder *recorder, int position)
{
    const fsdpi_recorded_section *section = fsdpi_recorder_section(recorder, position);

    return section->rank >= 0 && fsdpi_process_state(section->pid, section->started) == '\0';
}

static bool is_taken(const fsdpi_recorder *recorder)
{
    return atomic_load(&fsdpi_recorder_section(recorder, recorder->position)->taken) != 0;
}

/* A launcher that ends a job because a rank has gone tells the others so by a signal. */
void fsdpi_dump_of_signal(int signal, bool ends)
{
    for (int i = 0; i < MOST_DUMPS; i++) {
        const fsdpi_recorder *recorder = recorder_of(&dumps[i]);
        if (recorder == NULL || dumps[i].path[0] == '\0' || recorder->section == NULL) {
            continue;
        }
        if (ends ? take(recorder, recorder->position) : !is_taken(recorder)) {
            write_for_signal(&dumps[i], recorder, recorder->position, signal);
        }
        for (int k = 0; k < (int)fsdpi_recorder_header(recorder)->sections; k++) {
            if (k != recorder->position && is_gone(recorder, k) && take(recorder, k)) {
                write_for_signal(&dumps[i], recorder, k, signal);
            }
        }
    }
}

int fsdpi_dump_write(const char *folder)
{
    char path[PATH_BYTES];
    int  result = ENOENT;

    for (int i = 0; i < MOST_DUMPS; i++) {
        const fsdpi_recorder *recorder = recorder_of(&dumps[i]);
        if (recorder == NULL || recorder->section == NULL) {
            continue;
        }
        result = name_file(recorder, recorder->position, folder, path)
                     ? write_position(recorder, recorder->position, path, FSDPI_CAUSE_ASKED, "")
                     : ENAMETOOLONG;
        if (result != 0) {
            break;
        }
    }
    return result;
}
