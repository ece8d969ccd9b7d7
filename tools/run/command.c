#include "tools/run/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY(message, ...) ((void)snprintf(message, RUN_MESSAGE_BYTES, __VA_ARGS__), false)

/* ---- options of launchers ---------------------------------------------------------------------------------------------------- */

/* What becomes of an option. */
typedef enum fate {
    KEEP,
    DROP,     /* fsdp-run says it itself */
    RANKS,    /* dropped, and its value is the number of ranks */
    PER_NODE, /* the same of each node */
    REFUSE    /* another program, or nodes, that fsdp-run knows nothing of */
} fate;

/* Those that take words. Others are taken to be alone, or to have their value behind `=`. */
typedef struct known {
    const char *name; /* with its dashes; " " between those that mean the same */
    int         words;
    fate        fate;
} known;

static const known OPENMPI[] = {
    {"-n -np -c --n --np", 1, RANKS},
    {"-H -host --host -hostfile --hostfile -machinefile --machinefile -default-hostfile --default-hostfile", 1, DROP},
    {"-npernode --npernode -N -ppr --ppr", 1, PER_NODE},
    {"-pernode --pernode -npersocket --npersocket", 0, REFUSE},
    {"-mca --mca -gmca --gmca -prtemca --prtemca -pmixmca --pmixmca -omca --omca", 2, KEEP},
    {"-x -am --am -tune --tune -wdir --wdir -wd --wd -path --path -prefix --prefix -map-by --map-by -bind-to --bind-to",
     1, KEEP},
    {"-rank-by --rank-by -cpu-set --cpu-set -cpu-list --cpu-list -cpus-per-proc --cpus-per-proc -cpus-per-rank", 1,
     KEEP},
    {"--cpus-per-rank -output-filename --output-filename -stdin --stdin -xterm --xterm -timeout --timeout", 1, KEEP},
    {"-rf --rankfile -rankfile -app --app", 1, REFUSE},
    {"-personality --personality -report-uri --report-uri -ompi-server --ompi-server -preload-files --preload-files", 1,
     KEEP},
    {"-max-restarts --max-restarts -launch-agent --launch-agent -output --output -report-events --report-events", 1,
     KEEP},
};
static const known HYDRA[] = {
    {"-n -np", 1, RANKS},
    {"-f -hosts -host -hostfile -machinefile --hosts", 1, DROP},
    {"-ppn -perhost -grr", 1, PER_NODE},
    {"-env -genv", 2, KEEP},
    {"-genvlist -genvexcl -envlist -wdir -path -launcher -bootstrap -launcher-exec -bootstrap-exec -rmk -iface", 1,
     KEEP},
    {"-bind-to -map-by -membind -topolib -demux -outfile-pattern -errfile-pattern -prepend-pattern -pmi-port", 1, KEEP},
    {"-order-nodes -localhost -ckpoint-interval -ckpoint-prefix -ckpointlib -usize -num-proxy -binding -configfile", 1,
     KEEP},
};
static const known SRUN[] = {
    {"-n --ntasks", 1, RANKS},
    {"-w --nodelist -N --nodes -x --exclude -F --nodefile", 1, DROP},
    {"--ntasks-per-node", 1, PER_NODE},
    {"--multi-prog", 0, REFUSE},
    {"-c --cpus-per-task -p --partition -t --time -J --job-name -o --output -e --error -i --input -A --account", 1,
     KEEP},
    {"-C --constraint -d --dependency -D --chdir -G --gpus -q --qos -m --distribution -W --wait -T --threads", 1, KEEP},
    {"-L --licenses -M --clusters -B --extra-node-info -b --begin -S --core-spec -r --relative", 1, KEEP},
    {"--jobid --mpi --cpu-bind --mem --mem-bind --mem-per-cpu --gres --gpus-per-node --gpus-per-task --gpu-bind", 1,
     KEEP},
    {"--export --signal --reservation --network --propagate --prolog --epilog --task-prolog --task-epilog --het-group",
     1, KEEP},
    {"--hint --threads-per-core --sockets-per-node --cores-per-socket --ntasks-per-core --ntasks-per-socket --wckey", 1,
     KEEP},
};

typedef struct known_list {
    const known *rows;
    size_t       n;
} known_list;

static known_list known_of(run_launcher launcher)
{
    switch (launcher) {
    case RUN_HYDRA:
        return (known_list){HYDRA, sizeof HYDRA / sizeof *HYDRA};
    case RUN_SRUN:
        return (known_list){SRUN, sizeof SRUN / sizeof *SRUN};
    default:
        return (known_list){OPENMPI, sizeof OPENMPI / sizeof *OPENMPI};
    }
}

static bool has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, word, length) == 0 && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* In short options of srun the value may follow at once, as in -n4. */
static const known *look_up(run_launcher launcher, const char *option, const char **value)
{
    const known_list list   = known_of(launcher);
    const char      *equals = option[1] == '-' || launcher == RUN_HYDRA ? strchr(option, '=') : NULL;
    const size_t     length = equals != NULL ? (size_t)(equals - option) : strlen(option);
    const bool       glued  = launcher == RUN_SRUN && option[1] != '-' && option[1] != '\0' && option[2] != '\0';

    *value = equals != NULL ? equals + 1 : glued ? option + 2 : NULL;
    for (size_t i = 0; i < list.n; i++) {
        if (has_word(list.rows[i].name, option, glued ? 2 : length)) {
            return &list.rows[i];
        }
    }
    return NULL;
}

/* ---- which launcher ----------------------------------------------------------------------------------------------------------- */

static bool says(const char *output, const char *word)
{
    return strstr(output, word) != NULL;
}

/* mpirun and mpiexec are names of many: what it says of itself. */
static bool ask_launcher(const char *name, run_launcher *launcher, char *message)
{
    char command[RUN_MESSAGE_BYTES], output[4096];

    if (strlen(name) > RUN_MESSAGE_BYTES - 64 || strchr(name, '\'') != NULL) {
        return SAY(message, "'%.100s' is no launcher; name mpirun, mpiexec or srun", name);
    }
    (void)snprintf(command, sizeof command, "'%s' --version 2>&1 </dev/null", name);
    FILE *pipe = popen(command, "re");
    if (pipe == NULL) {
        return SAY(message, "'%.100s' cannot be asked for its version: %s", name, strerror(errno));
    }
    output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
    const int status                                  = pclose(pipe);
    if (says(output, "Open MPI") || says(output, "OpenRTE") || says(output, "PRRTE")) {
        *launcher = RUN_OPENMPI;
    } else if (says(output, "HYDRA") || says(output, "Intel(R) MPI")) {
        *launcher = RUN_HYDRA;
    } else {
        return SAY(
            message,
            "'%.100s' is neither Open MPI's mpirun nor Hydra's mpiexec (status %d of --version); name one, or say "
            "which it is with --launcher",
            name, status);
    }
    return true;
}

static bool find_launcher(const char *name, run_launcher wish, run_launcher *launcher, char *message)
{
    const char *slash = strrchr(name, '/'), *base = slash != NULL ? slash + 1 : name;

    *launcher = wish;
    if (wish != RUN_AUTO) {
        return true;
    }
    if (strcmp(base, "srun") == 0) {
        *launcher = RUN_SRUN;
        return true;
    }
    if (strncmp(base, "mpirun", 6) != 0 && strncmp(base, "mpiexec", 7) != 0 && strcmp(base, "prterun") != 0) {
        return SAY(message,
                   "'%.100s' is no launcher that is known; name mpirun, mpiexec or srun first behind --, or say "
                   "which it is with --launcher",
                   name);
    }
    return ask_launcher(name, launcher, message);
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------- */

static bool read_count(const char *option, const char *text, size_t *count, char *message)
{
    char *end;

    errno                     = 0;
    const unsigned long value = text != NULL ? strtoul(text, &end, 10) : 0;
    if (text == NULL || !isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value == 0 ||
        value > 100000000) {
        return SAY(message, "%.50s is '%.50s'; give a number of ranks from 1", option, text != NULL ? text : "");
    }
    *count = value;
    return true;
}

static bool take_option(run_command *c, const known *row, char **words, const char *value, char *message)
{
    const char *text = value != NULL ? value : row->words > 0 ? words[1] : NULL;

    switch (row->fate) {
    case REFUSE:
        return SAY(message, "%.50s cannot be given to fsdp-run, which chooses nodes itself; leave it out", words[0]);
    case RANKS:
        return read_count(words[0], text, &c->ranks, message);
    case PER_NODE:
        return read_count(words[0], text, &c->per_node, message);
    default:
        break;
    }
    if (row->fate == KEEP && row->words == 2 && words[1] != NULL &&
        (strcmp(words[1], "plm_rsh_agent") == 0 || strcmp(words[1], "plm_ssh_agent") == 0)) {
        c->agent = words[2];
    }
    return true;
}

static bool read_options(char **argv, run_command *c, char *message)
{
    size_t i = 1;

    while (argv[i] != NULL && argv[i][0] == '-' && argv[i][1] != '\0') {
        const char  *value;
        const known *row   = look_up(c->launcher, argv[i], &value);
        const size_t words = 1 + (row != NULL && value == NULL ? (size_t)row->words : 0);

        for (size_t k = 1; k < words; k++) {
            if (argv[i + k] == NULL) {
                return SAY(message, "%.50s lacks a value", argv[i]);
            }
        }
        if (row != NULL && !take_option(c, row, &argv[i], value, message)) {
            return false;
        }
        for (size_t k = 0; k < words && (row == NULL || row->fate == KEEP); k++) {
            c->kept[c->n_kept++] = argv[i + k];
        }
        i += words;
    }
    c->program = &argv[i];
    return argv[i] != NULL || SAY(message, "there is no program behind the options of '%.100s'", argv[0]);
}

bool run_command_read(char **argv, run_launcher launcher, run_command *command, char *message)
{
    size_t n = 0;

    *command = (run_command){0};
    if (argv[0] == NULL) {
        return SAY(message, "there is no command; give it behind --, as: fsdp-run -- mpirun -n 8 ./program");
    }
    while (argv[n] != NULL) {
        n++;
    }
    command->kept = calloc(n + 1, sizeof *command->kept);
    if (command->kept == NULL) {
        return SAY(message, "no memory for the command");
    }
    command->kept[command->n_kept++] = argv[0];
    if (!find_launcher(argv[0], launcher, &command->launcher, message) || !read_options(argv, command, message)) {
        return false;
    }
    for (char **word = command->program; command->launcher != RUN_SRUN && *word != NULL; word++) {
        if (strcmp(*word, ":") == 0) {
            return SAY(message, "several programs, with ':' between them, cannot be moved to other nodes; start one");
        }
    }
    return true;
}

void run_command_release(run_command *command)
{
    free(command->kept);
    *command = (run_command){0};
}

/* ---- making ----------------------------------------------------------------------------------------------------------------- */

typedef struct word_list {
    char **words;
    size_t n, room;
    bool   failed;
} word_list;

static void put(word_list *list, char *word)
{
    if (list->n + 1 >= list->room) {
        const size_t room   = 2 * list->room + 16;
        char       **longer = realloc(list->words, room * sizeof *longer);
        if (longer == NULL) {
            list->failed = true;
            free(word);
            return;
        }
        list->words = longer;
        list->room  = room;
    }
    if (word == NULL) {
        list->failed = true;
        return;
    }
    list->words[list->n++] = word;
    list->words[list->n]   = NULL;
}

__attribute__((format(printf, 2, 3))) static void put_text(word_list *list, const char *format, ...)
{
    va_list arguments;
    char   *word = NULL;

    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0) {
        word = NULL;
    }
    va_end(arguments);
    put(list, word);
}

/* "a:2,b:2", or "a,b" */
static char *join(run_node *const *chosen, const size_t *ranks, size_t n, bool with_ranks)
{
    const size_t room = n * (RUN_NAME_BYTES + 24) + 1;
    char        *text = malloc(room), *at = text;

    for (size_t i = 0; text != NULL && i < n; i++) {
        at += with_ranks
                  ? snprintf(at, (size_t)(text + room - at), "%s%s:%zu", i > 0 ? "," : "", chosen[i]->name, ranks[i])
                  : snprintf(at, (size_t)(text + room - at), "%s%s", i > 0 ? "," : "", chosen[i]->name);
    }
    return text;
}

static bool keeps(const run_command *c, const char *option)
{
    const size_t length = strlen(option);

    for (size_t i = 1; i < c->n_kept; i++) {
        if (strncmp(c->kept[i], option, length) == 0 && (c->kept[i][length] == '\0' || c->kept[i][length] == '=')) {
            return true;
        }
    }
    return false;
}

/* Daemons on a host that cannot be reached any more find out by themselves, and end what they have started. */
static void put_openmpi(word_list *list, const char *const *variables)
{
    static const char *const SETTINGS[][2] = {
        {"oob_tcp_keepalive_time", "10"},
        {"oob_tcp_keepalive_intvl", "2"},
        {"oob_tcp_keepalive_probes", "3"},
        {"odls_base_sigkill_timeout", "3"}, /* in which ranks write what they know of one that is gone */
    };

    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        char variable[64];
        (void)snprintf(variable, sizeof variable, "OMPI_MCA_%s", SETTINGS[i][0]);
        if (getenv(variable) == NULL) {
            put_text(list, "--mca");
            put_text(list, "%s", SETTINGS[i][0]);
            put_text(list, "%s", SETTINGS[i][1]);
        }
    }
    for (; *variables != NULL; variables++) {
        put_text(list, "-x");
        put_text(list, "%s", *variables);
    }
}

static void put_srun(word_list *list, const run_command *c, run_node *const *chosen, const size_t *ranks, size_t n,
                     size_t sum)
{
    char *hosts = join(chosen, ranks, n, false);
    bool  even  = true;

    for (size_t i = 1; i < n; i++) {
        even = even && ranks[i] == ranks[0];
    }
    put_text(list, "--nodelist=%s", hosts != NULL ? hosts : "");
    put_text(list, "--nodes=%zu", n);
    put_text(list, "--ntasks=%zu", sum);
    if (even) {
        put_text(list, "--ntasks-per-node=%zu", ranks[0]);
    }
    if (!keeps(c, "--kill-on-bad-exit") && !keeps(c, "-K")) {
        put_text(list, "--kill-on-bad-exit=1");
    }
    if (!keeps(c, "--overlap") && !keeps(c, "--exclusive")) {
        put_text(list, "--overlap"); /* Slurm may take cores of a step that a lost node has ended for busy */
    }
    list->failed = list->failed || hosts == NULL;
    free(hosts);
}

char **run_command_make(const run_command *c, run_node *const *chosen, const size_t *ranks, size_t n,
                        const char *const *variables)
{
    word_list list = {0};
    size_t    sum  = 0;

    for (size_t i = 0; i < n; i++) {
        sum += ranks[i];
    }
    put_text(&list, "%s", c->kept[0]);
    if (c->launcher == RUN_SRUN) {
        put_srun(&list, c, chosen, ranks, n, sum);
    } else {
        char *hosts = join(chosen, ranks, n, true);
        put_text(&list, "-n");
        put_text(&list, "%zu", sum);
        put_text(&list, c->launcher == RUN_HYDRA ? "-hosts" : "--host");
        list.failed = list.failed || hosts == NULL;
        put(&list, hosts);
    }
    if (c->launcher == RUN_OPENMPI) {
        put_openmpi(&list, variables);
    }
    for (size_t i = 1; i < c->n_kept; i++) {
        put_text(&list, "%s", c->kept[i]);
    }
    for (char **word = c->program; *word != NULL; word++) {
        put_text(&list, "%s", *word);
    }
    if (list.failed) {
        run_command_free(list.words);
        return NULL;
    }
    return list.words;
}

void run_command_free(char **words)
{
    for (char **word = words; words != NULL && *word != NULL; word++) {
        free(*word);
    }
    free(words);
}
