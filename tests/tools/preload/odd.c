/*
 * Programs that do odd things around a large allreduce.
 *
 *   odd sum      nothing odd: rank 0 prints the sum
 *   odd fork     rank 0 forks a child that ends at once, and one that runs another program, between two sums
 *   odd abort    rank 1 calls MPI_Abort() while the others are in the sum
 *   odd late     rank 1 stays away from the second sum for ten seconds; the communicator's error handler prints what it hears
 *   odd gone     rank 0 ends MPI without having freed its communicators, which all have done sums
 *   odd brief N  N communicators, one after the other, each for two small sums; prints by how many MiB they have grown rank 0, if
 *                by more than MPI's own records explain
 *   odd heap     allocates two arrays of 1 MiB and frees them, a hundred times; prints that rank 0 has found new pages each time, if so
 *   odd blind    the rank may not read the memory of others: process_vm_readv() and process_vm_writev() fail
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1 << 18, GROWTH_MIB = 64, ROUNDS = 100, ARRAY_BYTES = 1 << 17 };

static float in[COUNT], out[COUNT];
static int   rank;

/* Of 1 over all ranks, as the last element has it. */
static int sum(MPI_Comm comm)
{
    for (int i = 0; i < COUNT; i++) {
        in[i] = 1;
    }
    const int code = MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm);
    if (code == MPI_SUCCESS && rank == 0) {
        printf("sum %g\n", (double)out[COUNT - 1]);
        fflush(stdout);
    }
    return code;
}

static void fork_two(void)
{
    for (int i = 0; i < 2; i++) {
        const pid_t child = fork();

        if (child == 0 && i == 0) {
            exit(0); /* with what is registered to run at exit */
        }
        if (child == 0) {
            execlp("echo", "echo", "child", (char *)NULL);
            _exit(1);
        }
        (void)waitpid(child, NULL, 0);
    }
}

/* NOLINTNEXTLINE(readability-non-const-parameter): MPI says how it is called */
static void hear(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    int  length;

    (void)comm;
    MPI_Error_string(*code, text, &length);
    printf("rank %d hears: %s\n", rank, text);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static int stay_away(void)
{
    MPI_Errhandler handler;

    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    if (rank == 1) {
        sleep(10);
    }
    return sum(MPI_COMM_WORLD);
}

/* What this process holds, in MiB. */
static long held(void)
{
    long  pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2) {
        pages = 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return pages * sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* The first few fill the caches of MPI and of the drop-in. */
static void be_brief(long n)
{
    long before = 0;

    for (long i = 0; i < n; i++) {
        int      one[2] = {1, 1}, all[2] = {0, 0}, size;
        MPI_Comm comm;

        before = i == n / 10 ? held() : before;
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? rank : -rank, &comm);
        MPI_Comm_size(comm, &size);
        for (int round = 0; round < 2; round++) {
            MPI_Allreduce(one, all, 2, MPI_INT, MPI_SUM, comm);
        }
        if (all[0] != size || all[1] != size) {
            printf("communicator %ld has the sums %d and %d\n", i, all[0], all[1]);
        }
        MPI_Comm_free(&comm);
    }
    if (rank == 0 && held() - before > GROWTH_MIB) {
        printf("grown by %ld MiB\n", held() - before);
    }
}

static long faults(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : 0;
}

/* As an MPI does it that needs room for the data of others in each call. */
static void allocate_often(void)
{
    const long before = faults();

    for (int i = 0; i < ROUNDS; i++) {
        char *const arrays[] = {malloc(ARRAY_BYTES), malloc(ARRAY_BYTES)};

        for (size_t k = 0; k < 2; k++) {
            if (arrays[k] != NULL) {
                memset(arrays[k], i, ARRAY_BYTES);
                in[i] = arrays[k][i];
            }
            free(arrays[k]);
        }
    }
    if (rank == 0 && faults() - before > ROUNDS * (ARRAY_BYTES / sysconf(_SC_PAGESIZE)) / 2) {
        printf("%ld pages were new\n", faults() - before);
    }
}

/* As a container's filter of system calls does it; before MPI begins. */
static int be_blind(void)
{
    const unsigned     no      = SECCOMP_RET_ERRNO | EPERM;
    struct sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
                                  BPF_STMT(BPF_RET | BPF_K, no), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog  filter  = {.len = sizeof rules / sizeof rules[0], .filter = rules};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void do_odd(const char *what, long n)
{
    MPI_Comm comm;

    if (strcmp(what, "fork") == 0 && rank == 0) {
        fork_two();
    } else if (strcmp(what, "abort") == 0 && rank == 1) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    } else if (strcmp(what, "late") == 0) {
        (void)stay_away();
    } else if (strcmp(what, "gone") == 0) {
        for (int i = 0; i < 3; i++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            (void)sum(comm);
        }
    } else if (strcmp(what, "brief") == 0) {
        be_brief(n);
    } else if (strcmp(what, "heap") == 0) {
        allocate_often();
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "blind") == 0 && !be_blind()) {
        perror("odd: no filter of system calls");
        return 77;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)sum(MPI_COMM_WORLD);
    do_odd(argc > 1 ? argv[1] : "sum", argc > 2 ? strtol(argv[2], NULL, 10) : 0);
    const int code = sum(MPI_COMM_WORLD);
    MPI_Finalize();
    return code;
}
