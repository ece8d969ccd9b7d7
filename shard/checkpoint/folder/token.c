#include "shard/checkpoint/folder/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "shard/checkpoint/folder/remove.h"
#include "shard/checkpoint/format/file_io.h"

#define BEGIN "token "

enum { MOST_BYTES = 128, HEX_DIGITS = FSDPI_TOKEN_SERIES_BYTES - 1 };

/* "7.0123456789abcdef", and whatever follows. */
static fsdpi_token parse(const char *text)
{
    fsdpi_token token = {.number = 0};
    int         end   = 0;

    if (text[0] < '1' || text[0] > '9' ||
        sscanf(text, "%" SCNu64 ".%16[0-9a-f]%n", &token.number, token.series, &end) < 2 ||
        strlen(token.series) != HEX_DIGITS) {
        return (fsdpi_token){.number = 0};
    }
    return token;
}

fsdpi_token fsdpi_token_mine(void)
{
    const char *text = getenv(FSDPI_TOKEN_VARIABLE);

    return text != NULL ? parse(text) : (fsdpi_token){.number = 0};
}

void fsdpi_token_text(const fsdpi_token *token, char text[FSDPI_TOKEN_TEXT_BYTES])
{
    (void)snprintf(text, FSDPI_TOKEN_TEXT_BYTES, "%" PRIu64 ".%s", token->number, token->series);
}

static void token_path(const char *folder, char *path)
{
    fsdpi_path_join(path, folder, FSDPI_TOKEN_FILE);
}

fsdp_status fsdpi_token_read(const char *folder, fsdpi_token *token, fsdpi_problem *problem)
{
    char   path[FSDPI_FOLDER_PATH_BYTES], *text = NULL;
    size_t bytes;

    *token = (fsdpi_token){.number = 0};
    token_path(folder, path);
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_file_text(path, MOST_BYTES, &text, &bytes, problem));
    if (strncmp(text, BEGIN, strlen(BEGIN)) == 0) {
        *token = parse(text + strlen(BEGIN));
    }
    free(text);
    return token->number != 0
               ? FSDP_OK
               : fsdpi_problem_set(problem, FSDP_ERR_FORMAT,
                                   "%s: this is no token of fsdp-run; remove the file if nothing runs in its folder",
                                   path);
}

fsdp_status fsdpi_token_check(const char *folder, const fsdpi_token *mine, fsdpi_problem *problem)
{
    fsdpi_token there;

    if (mine->number == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(fsdpi_token_read(folder, &there, problem));
    if (strcmp(there.series, mine->series) != 0 || there.number <= mine->number) {
        return FSDP_OK;
    }
    return fsdpi_problem_set(problem, FSDP_ERR_STATE,
                             "%s: fsdp-run has given this attempt up (its token is %" PRIu64 ", and %" PRIu64
                             " holds the folder); nothing is changed there: end the program",
                             folder, mine->number, there.number);
}

bool fsdpi_token_is_older(const char *holder)
{
    const fsdpi_token mine = fsdpi_token_mine();
    const char       *at   = strstr(holder, ", " BEGIN);

    if (mine.number == 0 || at == NULL) {
        return false;
    }
    const fsdpi_token other = parse(at + strlen(", " BEGIN));
    return other.number != 0 && strcmp(other.series, mine.series) == 0 && other.number < mine.number;
}

static void draw_series(char *series)
{
    uint64_t        bits = 0;
    struct timespec now;

    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        (void)clock_gettime(CLOCK_REALTIME, &now);
        bits = fsdpi_hash_bytes(fsdpi_hash_u64(FSDPI_HASH_START, (uint64_t)getpid()), &now, sizeof now);
    }
    (void)snprintf(series, FSDPI_TOKEN_SERIES_BYTES, "%016" PRIx64, bits);
}

static fsdp_status replace(const char *folder, const fsdpi_token *token, fsdpi_problem *problem)
{
    char path[FSDPI_FOLDER_PATH_BYTES], beside[FSDPI_FOLDER_PATH_BYTES], text[FSDPI_TOKEN_TEXT_BYTES], line[MOST_BYTES];
    int  unsynced    = 0;
    const int length = (fsdpi_token_text(token, text), snprintf(line, sizeof line, BEGIN "%s\n", text));

    token_path(folder, path);
    fsdpi_path_join(beside, folder, FSDPI_TOKEN_FILE ".partial");
    FSDP_TRY(fsdpi_write_file(beside, line, (size_t)length, problem));
    if (rename(beside, path) != 0) {
        return fsdpi_problem_errno(problem, path, "replace");
    }
    return fsdpi_sync_folder(folder, &unsynced, problem);
}

fsdp_status fsdpi_token_take(const char *folder, fsdpi_token *token, fsdpi_problem *problem)
{
    FSDP_TRY(fsdpi_token_read(folder, token, problem));
    if (token->number == 0) {
        draw_series(token->series);
    }
    token->number++;
    FSDP_TRY(replace(folder, token, problem));
    return fsdpi_leftovers_remove(folder, NULL, problem);
}
