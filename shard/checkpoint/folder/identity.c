#include "shard/checkpoint/folder/identity.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/hash.h"
#include "shard/checkpoint/folder/token.h"

/* As its file says: which of the processes of that number, and of which of the kernels and containers of that name. */
typedef struct identity {
    char     host[128];
    long     process;
    uint64_t started; /* in ticks since the kernel was; 0: no such process */
    uint64_t machine;
} identity;

/* Field 22 of /proc/PID/stat; the second is in parentheses and may have blanks. */
static uint64_t start_of(long process)
{
    char     path[64], text[1024];
    uint64_t started = 0;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    const size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n]          = '\0';
    const char *rest = strrchr(text, ')');
    if (rest != NULL) {
        (void)sscanf(rest, ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
                     &started);
    }
    return started;
}

/* Numbers of processes mean the same where kernel and namespace are. */
static uint64_t machine_here(void)
{
    char  text[128] = "", names[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (file != NULL) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        (void)fclose(file);
    }
    (void)readlink("/proc/self/ns/pid", names, sizeof names - 1);
    return fsdpi_hash_text(fsdpi_hash_text(FSDPI_HASH_START, text), names);
}

static identity identity_here(void)
{
    identity me = {.process = (long)getpid(), .machine = machine_here()};

    (void)gethostname(me.host, sizeof me.host - 1);
    me.started = start_of(me.process);
    return me;
}

/* ", token 7.0123456789abcdef", or "" */
static void name_token(char *text, size_t size)
{
    const fsdpi_token mine = fsdpi_token_mine();
    char              token[FSDPI_TOKEN_TEXT_BYTES];

    text[0] = '\0';
    if (mine.number != 0) {
        fsdpi_token_text(&mine, token);
        (void)snprintf(text, size, ", token %s", token);
    }
}

void fsdpi_identity_describe(char *text, size_t size)
{
    const identity me = identity_here();
    char           token[FSDPI_TOKEN_TEXT_BYTES + 16];

    name_token(token, sizeof token);
    (void)snprintf(text, size, "host %s, process %ld%s", me.host, me.process, token);
}

void fsdpi_identity_line(const char *job, char *line)
{
    const identity me = identity_here();
    char           token[FSDPI_TOKEN_TEXT_BYTES + 16];

    name_token(token, sizeof token);
    (void)snprintf(line, FSDPI_IDENTITY_BYTES,
                   "host %s, process %ld, started %" PRIu64 ", machine %016" PRIx64 ", job %s%s\n", me.host, me.process,
                   me.started, me.machine, job, token);
}

bool fsdpi_identity_has_ended(const char *line)
{
    identity it = {.process = 0};

    return sscanf(line, "host %127[^,], process %ld, started %" SCNu64 ", machine %" SCNx64, it.host, &it.process,
                  &it.started, &it.machine) == 4 &&
           it.machine == machine_here() && start_of(it.process) != it.started;
}
