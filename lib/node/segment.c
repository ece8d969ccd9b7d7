#include "lib/node/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/core.h"
#include "lib/base/error.h"
#include "lib/base/yielding.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define HUGE_PAGE ((intptr_t)2 << 20)
#define GIB       ((intptr_t)1 << 30)
#define AWAY      (64 * GIB)   /* further than a program's own memory reaches, mostly */
#define MOST      (1024 * GIB) /* that a segment may take of the addresses there, which do not come back */

enum { NAME_BYTES = 64, PATH_BYTES = 640, WHY_BYTES = 448 };

bool fsdpi_segment_room(const char *folder, uintmax_t *bytes)
{
    struct statvfs fs;

    if (statvfs(folder, &fs) != 0) {
        return false;
    }
    *bytes = (uintmax_t)fs.f_bavail * fs.f_frsize;
    return true;
}

static fsdp_status no_room(fsdpi_core *core, const fsdpi_segment_need *need)
{
    const char *dir  = core->config.shm_dir;
    uintmax_t   free = 0;

    (void)fsdpi_segment_room(core->config.shm_dir, &free);
    return fsdpi_fail_together(
        core->ctx, FSDP_ERR_MEMORY,
        "%zu bytes of shared memory for this node do not fit into %s, where %ju are free; enlarge it, set "
        "FSDP_SHM_DIR to a larger memory file system, %s, or set FSDP_NODE_SIZE=1 to do without",
        need->bytes, dir, free, need->remedy);
}

static fsdp_status cannot_use(fsdpi_core *core, const char *name, const char *what)
{
    return fsdpi_fail_together(core->ctx, FSDP_ERR_MEMORY,
                               "shared memory in %s: cannot %s: %s; set FSDP_SHM_DIR to another folder", name, what,
                               strerror(errno));
}

/* The ranks of a node may call the folder by different names; see nodes.c. */
static void path_of(const fsdpi_core *core, const char *name, char *path)
{
    (void)snprintf(path, PATH_BYTES, "%s/%s", core->config.shm_dir, name);
}

/* Makes the file, as large as it has to be, where there is room for it. */
static fsdp_status make_file(fsdpi_core *core, char *name, char *path, const fsdpi_segment_need *need, int *file)
{
    static atomic_uint made; /* several contexts in one process; a name in use is an error, not a mix-up */
    uintmax_t          free;

    if (!fsdpi_segment_room(core->config.shm_dir, &free)) {
        return cannot_use(core, core->config.shm_dir, "look at the folder");
    }
    if (free < need->bytes) {
        return no_room(core, need);
    }
    (void)snprintf(name, NAME_BYTES, "fsdp-%ld-%u-%" PRIx64, (long)getpid(), atomic_fetch_add(&made, 1),
                   (uint64_t)(fsdpi_seconds() * 1e9));
    path_of(core, name, path);
    *file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (*file < 0) {
        return cannot_use(core, core->config.shm_dir, "make a file");
    }
    return ftruncate(*file, (off_t)need->bytes) == 0 ? FSDP_OK : cannot_use(core, path, "set its size");
}

/* Touches this rank's part without the risk of SIGBUS; where the kernel is too old for that, reserves its blocks. */
static fsdp_status claim(fsdpi_core *core, const fsdpi_segment *segment, int file, const fsdpi_segment_need *need)
{
    const size_t page  = (size_t)sysconf(_SC_PAGESIZE);
    const size_t begin = need->own / page * page;
    const size_t end   = (need->own + need->n_own + page - 1) / page * page;

    (void)madvise(segment->base, segment->bytes, MADV_HUGEPAGE);
    if (need->n_own == 0 || madvise(segment->base + begin, end - begin, MADV_POPULATE_WRITE) == 0) {
        return FSDP_OK;
    }
    if (errno != EINVAL) {
        return no_room(core, need);
    }
    return file < 0 || posix_fallocate(file, (off_t)need->own, (off_t)need->n_own) == 0 ? FSDP_OK : no_room(core, need);
}

/*
 * Where huge pages go: a GiB of addresses away from the program's own memory. On virtual machines whose host keeps page
 * tables of its own, as under PVM, the host forgets a whole GiB when the guest's kernel looks which huge pages in it are in
 * use. All small pages there are slow then until each has been used again. Where the address is taken, the kernel finds
 * another one. NULL leaves it the choice.
 */
static void *away_from_others(size_t bytes)
{
    static atomic_intptr_t end; /* of the next; each lies below the one before */

    if (bytes < (size_t)HUGE_PAGE || bytes > (size_t)MOST) {
        return NULL;
    }
    if (atomic_load(&end) == 0) {
        void *others = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (others == MAP_FAILED) {
            return NULL;
        }
        (void)munmap(others, 1);
        atomic_store(&end, ((intptr_t)others - AWAY) / GIB * GIB);
    }
    const intptr_t room = ((intptr_t)bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    const intptr_t at   = atomic_fetch_sub(&end, room) - room;
    return at > 0 ? (void *)at : NULL;
}

static fsdp_status map(fsdpi_core *core, fsdpi_segment *segment, size_t bytes, int file)
{
    const int kind   = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void     *memory = mmap(file < 0 ? away_from_others(bytes) : NULL, bytes, PROT_READ | PROT_WRITE, kind, file, 0);

    if (memory == MAP_FAILED) {
        return cannot_use(core, core->config.shm_dir, "map a file");
    }
    *segment = (fsdpi_segment){.base = memory, .bytes = bytes};
    return FSDP_OK;
}

static fsdp_status cannot_open(fsdpi_core *core, const fsdpi_nodes *nodes, const char *path)
{
    return fsdpi_fail_together(
        core->ctx, FSDP_ERR_MEMORY,
        "rank %d cannot open %s, shared memory that rank %d has made: %s; run all ranks of a host as one "
        "user, set FSDP_SHM_DIR to a folder that all of them may use, or set FSDP_NODE_SIZE=1",
        core->rank, path, fsdpi_rank_at(nodes, nodes->mine, 0), strerror(errno));
}

/* What a leader tells the others of its node: the name of the file, or "" and why there is none. */
typedef struct announcement {
    char name[NAME_BYTES], why[WHY_BYTES];
} announcement;

static fsdp_status make_and_announce(fsdpi_core *core, const fsdpi_segment_need *need, int *file, announcement *told)
{
    char              path[PATH_BYTES] = "";
    const fsdp_status status           = make_file(core, told->name, path, need, file);

    if (status != FSDP_OK && *file >= 0) {
        (void)unlink(path);
    }
    if (status != FSDP_OK) {
        *told = (announcement){{0}, {0}};
        (void)snprintf(told->why, sizeof told->why, "%s", fsdpi_error_recorded(core->ctx));
    }
    return status;
}

static fsdp_status open_announced(fsdpi_core *core, const fsdpi_nodes *nodes, const announcement *told, int *file)
{
    char path[PATH_BYTES];

    if (told->name[0] == '\0') {
        return fsdpi_record(core->ctx, FSDP_ERR_MEMORY, "%s", told->why);
    }
    path_of(core, told->name, path);
    *file = open(path, O_RDWR | O_CLOEXEC);
    return *file >= 0 ? FSDP_OK : cannot_open(core, nodes, path);
}

/* The leader makes the file and tells its name; it is unlinked as soon as all have opened it, so nothing is left behind. */
static fsdp_status open_shared(fsdpi_core *core, const fsdpi_nodes *nodes, const fsdpi_segment_need *need, int *file)
{
    const bool   leader = nodes->position == 0;
    char         path[PATH_BYTES];
    announcement told   = {{0}, {0}};
    fsdp_status  status = leader ? make_and_announce(core, need, file, &told) : FSDP_OK;

    FSDPI_TRY_MPI(core->ctx,
                  fsdpi_mpi_broadcast(&told, sizeof told, MPI_CHAR, 0, core->node_comm, core->config.timeout_s));
    if (!leader) {
        status = open_announced(core, nodes, &told, file);
    }
    FSDPI_TRY_MPI(core->ctx, fsdpi_mpi_barrier(core->node_comm, core->config.timeout_s));
    if (leader && told.name[0] != '\0') {
        path_of(core, told.name, path);
        (void)unlink(path);
    }
    return status;
}

/* Of a rank that is alone on its node: no folder is needed for it. */
static fsdp_status open_own(fsdpi_core *core, const fsdpi_segment_need *need, int *file)
{
    *file = memfd_create("fsdp-segment", MFD_CLOEXEC);
    if (*file < 0 || ftruncate(*file, (off_t)need->bytes) != 0) {
        return fsdpi_fail_together(
            core->ctx, FSDP_ERR_MEMORY,
            "%zu bytes of memory that can be mapped twice: %s; raise the limit on open files, or "
            "make the model without `fixed_addresses`",
            need->bytes, strerror(errno));
    }
    return FSDP_OK;
}

fsdp_status fsdpi_segment_open(fsdpi_core *core, const fsdpi_nodes *nodes, const fsdpi_segment_need *need,
                               fsdpi_segment *segment)
{
    int         file   = -1;
    fsdp_status status = FSDP_OK;

    *segment = (fsdpi_segment){0};
    if (nodes->size > 1) {
        status = open_shared(core, nodes, need, &file);
    } else if (need->mappable) {
        status = open_own(core, need, &file);
    }
    if (status == FSDP_OK) {
        status = map(core, segment, need->bytes, file);
    }
    if (status == FSDP_OK) {
        status = claim(core, segment, file, need);
    }
    if (status == FSDP_OK && need->mappable) {
        segment->file = file + 1;
    } else if (file >= 0) {
        (void)close(file);
    }
    if (status != FSDP_OK) {
        fsdpi_segment_close(segment);
    }
    return status;
}

static void close_kept(fsdpi_segment *segment)
{
    if (segment->file > 0) {
        (void)close(segment->file - 1);
    }
    segment->file = 0;
}

void fsdpi_segment_close(fsdpi_segment *segment)
{
    if (segment->base != NULL) {
        (void)munmap(segment->base, segment->bytes);
    }
    close_kept(segment);
    *segment = (fsdpi_segment){0};
}

void fsdpi_segment_bury(fsdpi_segment *segment)
{
    close_kept(segment);
    (void)mmap(segment->base, segment->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
               0);
}
