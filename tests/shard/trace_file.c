#include "tests/shard/trace_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/mpi_test.h"

enum { LINE = 1024 };

static double number_of(const char *line, const char *key)
{
    char        pattern[64];
    const char *found;

    (void)snprintf(pattern, sizeof pattern, "\"%s\":", key);
    found = strstr(line, pattern);
    return found != NULL ? strtod(found + strlen(pattern), NULL) : -1.0;
}

static void text_of(const char *line, const char *key, char *text, size_t size)
{
    char        pattern[64];
    const char *found;

    (void)snprintf(pattern, sizeof pattern, "\"%s\":\"", key);
    found = strstr(line, pattern);
    (void)snprintf(text, size, "%.*s", found != NULL ? (int)strcspn(found + strlen(pattern), "\"") : 0,
                   found != NULL ? found + strlen(pattern) : "");
}

void read_trace(const char *name, traced *t)
{
    char  line[LINE];
    FILE *file = fopen(name, "r");

    assert_non_null(file);
    t->n = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strstr(line, "\"ph\":\"X\"") != NULL) {
            event *e = &t->events[t->n++];

            assert_true(t->n <= MOST_EVENTS);
            text_of(line, "name", e->name, sizeof e->name);
            text_of(line, "cat", e->kind, sizeof e->kind);
            text_of(line, "for", e->purpose, sizeof e->purpose);
            e->begin  = number_of(line, "ts");
            e->length = number_of(line, "dur");
            e->issued = number_of(line, "issued");
            e->lane   = (int)number_of(line, "tid");
        }
    }
    (void)fclose(file);
}

const event *last_of(const traced *t, const char *name, const char *purpose)
{
    for (size_t i = t->n; i-- > 0;) {
        if (strcmp(t->events[i].name, name) == 0 && (purpose == NULL || strcmp(t->events[i].purpose, purpose) == 0)) {
            return &t->events[i];
        }
    }
    fail_msg("no event '%s'", name);
    return NULL;
}

size_t count_of(const traced *t, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        n += strcmp(t->events[i].name, name) == 0;
    }
    return n;
}
