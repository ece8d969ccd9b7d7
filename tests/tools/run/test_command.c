/* Commands of launchers, read and made again for other nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_test.h"
#include "tools/run/command.h"

enum { MOST = 64 };

/* Splits at blanks; the words are in `text`. */
static char **split(char *text)
{
    static char *words[MOST];
    char        *rest;
    size_t       n = 0;

    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        words[n++] = word;
    }
    words[n] = NULL;
    return words;
}

static void join(char *const *words, char *text)
{
    text[0] = '\0';
    for (; *words != NULL; words++) {
        (void)sprintf(text + strlen(text), "%s%s", text[0] != '\0' ? " " : "", *words);
    }
}

/* For two ranks each on a and c. */
static void becomes(run_launcher launcher, const char *given, const char *expected, size_t ranks, size_t per_node)
{
    run_node          a = {.name = "a"}, c = {.name = "c"};
    run_node         *chosen[]    = {&a, &c};
    const size_t      each[]      = {2, 2};
    const char *const variables[] = {"FSDP_RUN_ID", NULL};
    char              text[1024], made[4096], message[RUN_MESSAGE_BYTES] = "";
    run_command       command;

    (void)snprintf(text, sizeof text, "%s", given);
    assert_true(run_command_read(split(text), launcher, &command, message));
    assert_int_equal(ranks, command.ranks);
    assert_int_equal(per_node, command.per_node);
    char **words = run_command_make(&command, chosen, each, 2, variables);
    assert_non_null(words);
    join(words, made);
    assert_string_equal(expected, made);
    run_command_free(words);
    run_command_release(&command);
}

static void refused(run_launcher launcher, const char *given, const char *words)
{
    char        text[1024], message[RUN_MESSAGE_BYTES] = "";
    run_command command;

    (void)snprintf(text, sizeof text, "%s", given);
    assert_false(run_command_read(split(text), launcher, &command, message));
    assert_non_null(strstr(message, words));
    run_command_release(&command);
}

#define SETTINGS                                                                                                       \
    "--mca oob_tcp_keepalive_time 10 --mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3 "                \
    "--mca odls_base_sigkill_timeout 3"

static void mpirun_gets_hosts_and_variables(void **state)
{
    (void)state;
    becomes(RUN_OPENMPI,
            "mpirun -n 8 --hostfile all --mca btl tcp,self -x PATH --bind-to core --oversubscribe ./app -n 3",
            "mpirun -n 4 --host a:2,c:2 " SETTINGS
            " -x FSDP_RUN_ID --mca btl tcp,self -x PATH --bind-to core --oversubscribe ./app -n 3",
            8, 0);
    becomes(RUN_OPENMPI, "mpirun --npernode 3 -H a,b ./app",
            "mpirun -n 4 --host a:2,c:2 " SETTINGS " -x FSDP_RUN_ID ./app", 0, 3);
}

static void mpiexec_of_hydra_gets_hosts(void **state)
{
    (void)state;
    becomes(RUN_HYDRA, "mpiexec -f hosts -np 8 -ppn 2 -genv A 1 ./app --x",
            "mpiexec -n 4 -hosts a:2,c:2 -genv A 1 ./app --x", 8, 2);
}

static void srun_gets_a_list_of_nodes(void **state)
{
    (void)state;
    becomes(RUN_SRUN, "srun --mpi=pmix -N 4 -n8 --nodelist=a,b -c 2 ./app",
            "srun --nodelist=a,c --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --overlap --mpi=pmix -c "
            "2 ./app",
            8, 0);
    becomes(RUN_SRUN, "srun --ntasks-per-node 2 --exclusive --kill-on-bad-exit=0 ./app",
            "srun --nodelist=a,c --nodes=2 --ntasks=4 --ntasks-per-node=2 --exclusive --kill-on-bad-exit=0 ./app", 0,
            2);
}

static void what_cannot_be_moved_is_refused(void **state)
{
    (void)state;
    refused(RUN_OPENMPI, "mpirun -n 4 --rankfile ranks ./app", "--rankfile cannot be given");
    refused(RUN_OPENMPI, "mpirun -n 4 ./app : -n 2 ./other", "several programs");
    refused(RUN_OPENMPI, "mpirun -n 0 ./app", "-n is '0'");
    refused(RUN_OPENMPI, "mpirun -n four ./app", "-n is 'four'");
    refused(RUN_OPENMPI, "mpirun -n 4", "no program behind the options");
    refused(RUN_OPENMPI, "mpirun -n", "-n lacks a value");
    refused(RUN_SRUN, "srun --multi-prog file", "--multi-prog cannot be given");
    refused(RUN_AUTO, "./app", "no launcher that is known");
    refused(RUN_AUTO, "/nonexistent/mpirun ./app", "neither Open MPI's mpirun nor Hydra's mpiexec");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mpirun_gets_hosts_and_variables),
        cmocka_unit_test(mpiexec_of_hydra_gets_hosts),
        cmocka_unit_test(srun_gets_a_list_of_nodes),
        cmocka_unit_test(what_cannot_be_moved_is_refused),
    };

    (void)unsetenv("OMPI_MCA_odls_base_sigkill_timeout");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
