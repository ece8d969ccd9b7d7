/**
 * @file
 * The numbered token of a run's folder: of the attempts that fsdp-run makes, only the newest may rename anything there. A lost
 * host can keep its ranks running, and nobody can end them.
 *
 * ".token" in the folder says the number of the attempt that holds it, and the series that the number belongs to, which was
 * drawn with the first one. A program has its own as FSDP_RUN_TOKEN, "7.0123456789abcdef"; one without, or of another series,
 * is not fenced.
 *
 * Nobody is locked out by this in the middle of a step, and nobody waits: whoever renames makes what it renames first, looks at
 * the token then, and renames last. Whoever takes the folder writes the token first, and removes what is unfinished then. So
 * either the look finds the newer token, or there is nothing left to rename.
 */
#ifndef FSDPI_TOKEN_H
#define FSDPI_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "shard/checkpoint/format/problem.h"

#define FSDPI_TOKEN_VARIABLE "FSDP_RUN_TOKEN"
#define FSDPI_TOKEN_FILE     ".token"

enum { FSDPI_TOKEN_SERIES_BYTES = 17, FSDPI_TOKEN_TEXT_BYTES = 40 };

typedef struct fsdpi_token {
    uint64_t number; /* 0: none */
    char     series[FSDPI_TOKEN_SERIES_BYTES];
} fsdpi_token;

/** This program's; 0 where it has none, or the variable is no token. */
fsdpi_token fsdpi_token_mine(void);

/** As the variable has it. */
void fsdpi_token_text(const fsdpi_token *token, char text[FSDPI_TOKEN_TEXT_BYTES]);

/** What the folder says; number 0 where there is none. FSDP_ERR_IO; FSDP_ERR_FORMAT: the file is none of ours. */
fsdp_status fsdpi_token_read(const char *folder, fsdpi_token *token, fsdpi_problem *problem);

/** FSDP_ERR_STATE where a newer attempt holds the folder; FSDP_OK for a program without a token. */
fsdp_status fsdpi_token_check(const char *folder, const fsdpi_token *mine, fsdpi_problem *problem);

/** Whether `holder`, what a lock says of who has it, names an older attempt of this program's series. */
bool fsdpi_token_is_older(const char *holder);

/**
 * By fsdp-run: takes the folder for the next attempt. Later checks of all others fail, and what they have not finished is gone.
 * @param[out] token  the new one
 */
fsdp_status fsdpi_token_take(const char *folder, fsdpi_token *token, fsdpi_problem *problem);

#endif
