#include "gpt_profile.h"

#include <string.h>

#include "mpi-examples/common/example_clock.h"

void gpt_profile_start(gpt_profile *profile)
{
    memset(profile, 0, sizeof *profile);
    profile->last = example_now();
}

void gpt_profile_lap(gpt_profile *profile, gpt_part part)
{
    const double now = example_now();

    profile->seconds[part] += now - profile->last;
    profile->last = now;
}

const char *gpt_part_name(gpt_part part)
{
#define GPT_PART_TEXT(name, text) text,
    static const char *const texts[] = {GPT_PART_LIST(GPT_PART_TEXT)};
#undef GPT_PART_TEXT

    return texts[part];
}
