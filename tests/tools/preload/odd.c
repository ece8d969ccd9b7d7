/*
 * Programs that do odd things around a large allreduce.
 *
 *   odd sum      nothing odd: rank 0 prints the sum
 *   odd fork     rank 0 forks a child that ends at once, and one that runs another program, between two sums
 *   odd abort    rank 1 calls MPI_Abort() while the others are in the sum
 *   odd late     rank 1 stays away from the second sum for ten seconds; the communicator's error handler prints what it hears
 *   odd gone     rank 0 ends MPI without having freed its communicators, which all have done sums
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1 << 18 };

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

static void do_odd(const char *what)
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
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)sum(MPI_COMM_WORLD);
    do_odd(argc > 1 ? argv[1] : "sum");
    const int code = sum(MPI_COMM_WORLD);
    MPI_Finalize();
    return code;
}
