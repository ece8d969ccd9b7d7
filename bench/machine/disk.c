#include "bench/machine/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOLDER_BYTES = BENCH_PATH_BYTES / 2, NAME_BYTES = 32 };

#define DROP "/proc/sys/vm/drop_caches"

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static fsdp_status agree(const bench_world *world, const char *parent, int error)
{
    char line[400];

    (void)snprintf(line, sizeof line, "--checkpoint is '%.200s', where no folder can be made: %s; name another", parent,
                   strerror(error));
    return bench_agree(world, error == 0, line);
}

fsdp_status bench_disk_possible(const bench_world *world, const char *parent)
{
    char folder[BENCH_PATH_BYTES]; /* with a slash behind it only folders are found */

    if (!parent) {
        return FSDP_OK;
    }
    const int n     = snprintf(folder, sizeof folder, "%s/", parent);
    const int error = n >= FOLDER_BYTES - NAME_BYTES                         ? ENAMETOOLONG
                      : world->rank == 0 && access(folder, W_OK | X_OK) != 0 ? errno
                                                                             : 0;
    return agree(world, parent, error);
}

fsdp_status bench_disk_open(bench_disk *disk, const bench_world *world, const char *parent)
{
    int error = 0, rank;

    *disk = (bench_disk){.world = world};
    MPI_Comm_rank(world->machine, &rank);
    disk->leads = rank == 0;
    if (world->rank == 0) {
        (void)snprintf(disk->folder, sizeof disk->folder, "%s/fsdp-bench-%ld", parent, (long)getpid());
        error = mkdir(disk->folder, 0777) != 0 ? errno : 0;
    }
    MPI_Bcast(disk->folder, (int)sizeof disk->folder, MPI_CHAR, 0, world->comm);
    disk->drops = !disk->leads || access(DROP, W_OK) == 0;
    MPI_Allreduce(MPI_IN_PLACE, &disk->drops, 1, MPI_INT, MPI_LAND, world->comm);
    return agree(world, parent, error);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    (void)about;
    (void)type;
    if (where->level > 0) {
        (void)remove(path);
    }
    return 0;
}

static int forget_one(const char *path, const struct stat *about, int type, struct FTW *where)
{
    const int fd = type == FTW_F ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    (void)about;
    (void)where;
    if (fd >= 0) {
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        (void)close(fd);
    }
    return 0;
}

static void visit(const bench_disk *disk, int (*visitor)(const char *, const struct stat *, int, struct FTW *))
{
    (void)nftw(disk->folder, visitor, 16, FTW_DEPTH | FTW_PHYS);
}

/* Ranks that are ready sleep, so that the one that works has a core. */
static void wait_for_all(const bench_disk *disk)
{
    (void)bench_max_asleep(disk->world, 0);
}

void bench_disk_clear(const bench_disk *disk)
{
    if (disk->world->rank == 0) {
        visit(disk, remove_one);
    }
    wait_for_all(disk);
}

void bench_disk_close(const bench_disk *disk)
{
    bench_disk_clear(disk);
    if (disk->world->rank == 0) {
        (void)rmdir(disk->folder);
    }
}

void bench_disk_forget(const bench_disk *disk)
{
    if (disk->leads) {
        sync();
    }
    if (disk->leads && disk->drops) {
        const int fd = open(DROP, O_WRONLY | O_CLOEXEC);

        if (fd >= 0) {
            (void)!write(fd, "3", 1);
            (void)close(fd);
        }
    } else if (disk->leads) {
        visit(disk, forget_one);
    }
    wait_for_all(disk);
}

/* ---- dd ---------------------------------------------------------------------------------------------------------- */

static int run(char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    pid_t                      process;
    int                        status = -1;

    if (posix_spawn_file_actions_init(&actions) != 0) {
        return 0;
    }
    if (posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawnp(&process, arguments[0], &actions, NULL, arguments, environ) == 0) {
        while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
        }
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

double bench_disk_dd(const bench_disk *disk, size_t bytes, int reads)
{
    char from[BENCH_PATH_BYTES + 8], to[BENCH_PATH_BYTES + 8], count[32];
    char dd[] = "dd", size[] = "bs=4M", whole[] = "iflag=count_bytes,fullblock", sync_it[] = "conv=fsync";
    char path[BENCH_PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/dd-%d", disk->folder, disk->world->rank);
    (void)snprintf(from, sizeof from, "if=%s", reads ? path : "/dev/zero");
    (void)snprintf(to, sizeof to, "of=%s", reads ? "/dev/null" : path);
    (void)snprintf(count, sizeof count, "count=%zu", bytes);
    char *const arguments[] = {dd, from, to, size, whole, count, reads ? NULL : sync_it, NULL};
    MPI_Barrier(disk->world->comm);
    const double begin   = bench_now();
    const int    good    = run(arguments);
    const double seconds = bench_now() - begin, slowest = bench_max_asleep(disk->world, seconds);

    return bench_max_asleep(disk->world, !good) > 0 ? -1 : slowest;
}
