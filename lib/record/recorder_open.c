/*
 * Where a record lies: the leader of a node makes the memfd, and the others open it through the leader's /proc/PID/fd, which
 * takes no name in any folder, and leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/yielding.h"
#include "lib/device/memory.h"
#include "lib/record/dump.h"
#include "lib/record/process.h"
#include "lib/record/recorder.h"

size_t fsdpi_recorder_entries(int operations)
{
    size_t entries = 1;

    while (entries < (size_t)operations) {
        entries *= 2;
    }
    return operations > 0 ? entries : 0;
}

static size_t section_bytes(int operations)
{
    enum { PAGE = 4096 };
    const size_t ring = fsdpi_recorder_entries(operations) * FSDPI_RECORDED_WORDS * sizeof(uint64_t);

    return FSDPI_RECORDED_HEAD_BYTES + (ring + PAGE - 1) / PAGE * PAGE;
}

size_t fsdpi_recorder_bookkeeping(int operations)
{
    return operations > 0 ? FSDPI_RECORDED_HEAD_BYTES + section_bytes(operations) : 0;
}

/* ---- what all ranks of the context have in common ------------------------------------------------------------------- */

typedef struct common {
    uint64_t              id;
    fsdpi_recorded_moment opened;
    char                  job[FSDPI_RECORDED_JOB_BYTES];
} common;

/* In the words of whoever has started it. */
static void name_job(char job[FSDPI_RECORDED_JOB_BYTES])
{
    static const struct {
        const char *variable, *kind;
    } KNOWN[] = {{"SLURM_JOB_ID", "Slurm job"},
                 {"PBS_JOBID", "PBS job"},
                 {"LSB_JOBID", "LSF job"},
                 {"FLUX_JOB_ID", "Flux job"},
                 {"PMIX_NAMESPACE", "PMIx job"},
                 {"OMPI_MCA_ess_base_jobid", "Open MPI job"},
                 {"OMPI_MCA_orte_ess_jobid", "Open MPI job"},
                 {"PMI_JOBID", "PMI job"}};

    job[0] = '\0';
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN && job[0] == '\0'; i++) {
        const char *value = getenv(KNOWN[i].variable);
        if (value != NULL && value[0] != '\0') {
            (void)snprintf(job, FSDPI_RECORDED_JOB_BYTES, "%s %.64s", KNOWN[i].kind, value);
        }
    }
}

static fsdp_status agree_on_common(const fsdpi_core *core, common *all)
{
    memset(all, 0, sizeof *all);
    if (core->rank == 0) {
        all->opened = fsdpi_ticks_moment(FSDPI_CLOCK_MONOTONIC);
        if (getrandom(&all->id, sizeof all->id, GRND_NONBLOCK) != (ssize_t)sizeof all->id) {
            all->id = all->opened.real ^ (uint64_t)getpid() << 40;
        }
        name_job(all->job);
    }
    FSDPI_TRY_MPI(core->ctx,
                  fsdpi_mpi_broadcast(all, (int)sizeof *all, MPI_BYTE, 0, core->comm, core->config.timeout_s));
    return FSDP_OK;
}

/* ---- the memory of a node -------------------------------------------------------------------------------------------- */

static bool map_file(fsdpi_recorder *recorder, int file, size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (map == MAP_FAILED) {
        return false;
    }
    recorder->map   = map;
    recorder->bytes = bytes;
    recorder->file  = file + 1;
    return true;
}

static void read_boot(char boot[40])
{
    FILE      *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool read = file != NULL && fgets(boot, 40, file) != NULL;

    if (file != NULL) {
        (void)fclose(file);
    }
    boot[read ? strcspn(boot, "\n") : 0] = '\0';
}

static void read_host(char host[FSDPI_RECORDED_HOST_BYTES])
{
    char whole[256] = "";

    (void)gethostname(whole, sizeof whole - 1);
    whole[strcspn(whole, ".")] = '\0';
    (void)snprintf(host, FSDPI_RECORDED_HOST_BYTES, "%.*s", FSDPI_RECORDED_HOST_BYTES - 1, whole);
}

static void fill_header(const fsdpi_recorder *recorder, const common *all, int sections)
{
    const fsdpi_core      *core   = recorder->core;
    fsdpi_recorded_header *header = fsdpi_recorder_header(recorder);

    header->section_bytes = (uint32_t)section_bytes(core->config.record);
    header->entries       = (uint32_t)fsdpi_recorder_entries(core->config.record);
    header->sections      = (uint32_t)sections;
    header->node_ranks    = (uint32_t)recorder->nodes->size;
    header->size          = (uint32_t)core->size;
    header->nodes         = (uint32_t)recorder->nodes->count;
    header->node          = (uint32_t)recorder->nodes->mine;
    header->clock         = fsdpi_ticks_clock();
    header->timeout_s     = core->config.timeout_s;
    header->id            = all->id;
    header->opened        = fsdpi_ticks_moment(header->clock);
    header->oom_kills     = -1;
    memcpy(header->job, all->job, sizeof header->job);
    read_host(header->host);
    read_boot(header->boot);
    for (int i = 0; i < sections; i++) {
        fsdpi_recorder_section(recorder, i)->rank = -1;
    }
    header->version = FSDPI_RECORDED_VERSION;
    memcpy(header->magic, FSDPI_RECORDED_MAGIC, sizeof header->magic); /* now it may be read */
}

static size_t map_bytes(const fsdpi_recorder *recorder, int sections)
{
    return FSDPI_RECORDED_HEAD_BYTES + (size_t)sections * section_bytes(recorder->core->config.record);
}

/* Where a process has no descriptor left, its record is memory that only it and its files know. */
static bool make(fsdpi_recorder *recorder, const common *all, int sections)
{
    const size_t bytes = map_bytes(recorder, sections);
    const int    file  = memfd_create(FSDPI_RECORDED_NAME, MFD_CLOEXEC);

    if (file < 0 || ftruncate(file, (off_t)bytes) != 0 || !map_file(recorder, file, bytes)) {
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (file >= 0) {
            (void)close(file);
        }
        if (memory == MAP_FAILED) {
            return false;
        }
        recorder->map   = memory;
        recorder->bytes = bytes;
    }
    fill_header(recorder, all, sections);
    return true;
}

/* Of the leader: where its memory is to be opened. */
typedef struct announcement {
    int32_t  pid, file; /* -1: nowhere */
    uint64_t bytes;
} announcement;

static bool is_the_one(const fsdpi_recorder *recorder, uint64_t id)
{
    const fsdpi_recorded_header *header = fsdpi_recorder_header(recorder);

    return memcmp(header->magic, FSDPI_RECORDED_MAGIC, sizeof header->magic) == 0 && header->id == id &&
           header->node == (uint32_t)recorder->nodes->mine;
}

static void unmap(fsdpi_recorder *recorder)
{
    if (recorder->map != NULL) {
        (void)munmap(recorder->map, recorder->bytes);
    }
    if (recorder->file > 0) {
        (void)close(recorder->file - 1);
    }
    recorder->map  = NULL;
    recorder->file = 0;
}

/* Where processes are numbered otherwise than at the leader's, another file may be found, or none. */
static bool join(fsdpi_recorder *recorder, const announcement *told, uint64_t id)
{
    char        path[64];
    struct stat about;

    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)told->pid, (int)told->file);
    const int file = told->file >= 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) {
        return false;
    }
    if (fstat(file, &about) != 0 || (uint64_t)about.st_size != told->bytes ||
        !map_file(recorder, file, (size_t)told->bytes)) {
        (void)close(file);
        return false;
    }
    if (!is_the_one(recorder, id)) {
        unmap(recorder);
        return false;
    }
    return true;
}

/* Its part belongs to this rank's NUMA node, as far as it touches it first. */
static void fill_section(fsdpi_recorder *recorder)
{
    const fsdpi_core       *core    = recorder->core;
    fsdpi_recorded_section *section = fsdpi_recorder_section(recorder, recorder->position);

    section->shown_rank = core->shown_rank;
    section->pid        = (int32_t)getpid();
    section->number     = (uint32_t)core->number;
    section->started    = fsdpi_process_look(section->pid).started;
    (void)snprintf(section->program, sizeof section->program, "%s", program_invocation_short_name);
    fsdpi_process_group(section->group, sizeof section->group);
    section->oom_kills = fsdpi_process_oom_kills(section->group);
    atomic_store(&section->since, fsdpi_ticks(fsdpi_recorder_header(recorder)->clock));
    atomic_store(&section->n_names, 1);
    recorder->entries = (_Atomic uint64_t *)(void *)((unsigned char *)section + FSDPI_RECORDED_HEAD_BYTES);
    recorder->mask    = fsdpi_recorder_entries(core->config.record) - 1;
    recorder->clock   = fsdpi_recorder_header(recorder)->clock;
    recorder->section = section;
    section->rank     = core->rank;
}

static fsdp_status open_memory(fsdpi_recorder *recorder, const common *all)
{
    const fsdpi_core *core  = recorder->core;
    const bool        leads = recorder->nodes->position == 0;
    announcement      told  = {.pid = (int32_t)getpid(), .file = -1};
    bool              have  = leads && make(recorder, all, recorder->nodes->size);

    if (have) {
        told.file  = recorder->file - 1;
        told.bytes = recorder->bytes;
    }
    FSDPI_TRY_MPI(core->ctx,
                  fsdpi_mpi_broadcast(&told, (int)sizeof told, MPI_BYTE, 0, core->node_comm, core->config.timeout_s));
    recorder->position = recorder->nodes->position;
    if (!leads && !(have = join(recorder, &told, all->id))) {
        recorder->position = 0;
        have               = make(recorder, all, 1);
    }
    if (have) {
        fill_section(recorder);
    } else {
        fsdpi_log(core->ctx, FSDP_LOG_WARN, "FSDP_RECORD: no memory for a record, so that nothing is recorded: %s",
                  strerror(errno));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_recorder_open(fsdpi_recorder *recorder, fsdpi_core *core, const fsdpi_nodes *nodes)
{
    common all;

    recorder->core  = core;
    recorder->nodes = nodes;
    recorder->dump  = -1;
    recorder->clock = fsdpi_ticks_clock(); /* which others read as well */
    if (core->config.record == 0 || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) {
        return FSDP_OK;
    }
    FSDP_TRY(agree_on_common(core, &all));
    FSDP_TRY(open_memory(recorder, &all));
    fsdpi_count_memory(core->ctx, FSDP_MEMORY_BOOKKEEPING, fsdpi_recorder_bookkeeping(core->config.record));
    return fsdpi_dump_open(recorder);
}

void fsdpi_recorder_show_rank(const fsdpi_recorder *recorder, int rank)
{
    if (recorder->section != NULL) {
        recorder->section->shown_rank = rank;
    }
}

void fsdpi_recorder_forget(fsdpi_recorder *recorder)
{
    recorder->section = NULL;
}

void fsdpi_recorder_close(fsdpi_recorder *recorder)
{
    if (recorder->core == NULL) { /* not opened */
        return;
    }
    fsdpi_dump_close(recorder);
    if (recorder->section != NULL) {
        atomic_store(&recorder->section->doing, (uint64_t)FSDPI_DOING_LEFT << FSDPI_DOING_SHIFT);
        atomic_store(&recorder->section->since, fsdpi_ticks(recorder->clock));
    }
    recorder->section = NULL;
    unmap(recorder);
}
