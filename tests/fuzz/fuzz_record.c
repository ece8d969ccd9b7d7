/* A record, as a file and as lines of a launcher, up to what is said of it. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/records/pack.h"
#include "tools/records/verdict.h"
#include "tools/records/view.h"

static void say(records *all)
{
    verdict_job job;
    verdict     found;

    if (!verdict_pick_job(all, 0, &job)) {
        return;
    }
    verdict_find(&job, 5, &found);
    MUST(found.text[0] != '\0' && memchr(found.text, '\0', sizeof found.text) != NULL);
    verdict_release_job(&job);
}

/* What has been taken can be given on, and is taken again. */
static void give_on(const records *all)
{
    records        again = {0};
    size_t         size;
    unsigned char *packed = records_pack(&all->ranks[0], SIZE_MAX, &size);

    if (packed != NULL) {
        MUST(records_take(&again, packed, size, "again"));
        MUST(again.ranks[0].n == all->ranks[0].n);
    }
    free(packed);
    records_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    records        all   = {0};
    records_lines *lines = records_lines_begin();
    char          *text  = malloc(bytes + 1);

    if (records_take(&all, data, bytes, "input")) {
        give_on(&all);
    }
    say(&all);
    if (text != NULL && lines != NULL) {
        memcpy(text, data, bytes);
        text[bytes] = '\0';
        for (char *line = text, *end = line; end != NULL; line = end + 1) {
            end = strchr(line, '\n');
            records_lines_take(lines, line);
            if (end == NULL) {
                break;
            }
        }
    }
    if (lines != NULL) {
        (void)records_lines_end(lines, &all);
    }
    say(&all);
    records_release(&all);
    free(text);
    return 0;
}
