#include "shard/pipeline/action.h"

#include <stdio.h>
#include <string.h>

static const char *const NAMES[FSDPI_N_WORKS] = {"F",      "B",      "I",       "W",       "SEND_F",     "RECV_F",
                                                 "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};

enum { MOST_DIGITS = 6 };

bool fsdpi_has_micro(fsdpi_work work)
{
    return work < FSDPI_UNSHARD;
}

bool fsdpi_is_compute(fsdpi_work work)
{
    return work <= FSDPI_RUN_BACKWARD_WEIGHT;
}

bool fsdpi_is_message(fsdpi_work work)
{
    return work >= FSDPI_SEND_F && work <= FSDPI_RECV_B;
}

/* Reads a number of few digits; returns how many there are, 0 if it is none. */
static size_t read_number(const char *text, size_t length, int *number)
{
    size_t n = 0;

    *number = 0;
    while (n < length && text[n] >= '0' && text[n] <= '9') {
        *number = *number * 10 + (text[n] - '0');
        if (++n > MOST_DIGITS) {
            return 0;
        }
    }
    return n;
}

/* The work that the text begins with, by its longest name. */
static int find_work(const char *text, size_t length, size_t *n)
{
    int found = -1;

    *n = 0;
    for (int w = 0; w < FSDPI_N_WORKS; w++) {
        const size_t chars = strlen(NAMES[w]);
        if (chars <= length && chars > *n && memcmp(text, NAMES[w], chars) == 0) {
            found = w;
            *n    = chars;
        }
    }
    return found;
}

bool fsdpi_action_parse(const char *text, size_t length, fsdpi_action *action)
{
    size_t n, at = read_number(text, length, &action->stage);

    if (at == 0) {
        return false;
    }
    const int work = find_work(text + at, length - at, &n);
    if (work < 0) {
        return false;
    }
    at += n;
    action->work  = (fsdpi_work)work;
    action->micro = 0;
    n             = read_number(text + at, length - at, &action->micro);
    return fsdpi_has_micro(action->work) ? n > 0 && at + n == length : at == length;
}

const char *fsdpi_action_print(const fsdpi_action *action, char *text)
{
    if (fsdpi_has_micro(action->work)) {
        (void)snprintf(text, FSDPI_ACTION_BYTES, "%d%s%d", action->stage, NAMES[action->work], action->micro);
    } else {
        (void)snprintf(text, FSDPI_ACTION_BYTES, "%d%s", action->stage, NAMES[action->work]);
    }
    return text;
}
