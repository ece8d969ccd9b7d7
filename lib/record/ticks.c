#include "lib/record/ticks.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static bool counter_is_steady(void)
{
    static const unsigned POWER_MANAGEMENT = 0x80000007, INVARIANT = 1 << 8;
    unsigned              a, b, c, d;

    return __get_cpuid(POWER_MANAGEMENT, &a, &b, &c, &d) != 0 && (d & INVARIANT) != 0;
}

/* Linux goes over to one of these where it has found the counters of cores to differ, or not to be had. */
static bool linux_trusts_it(void)
{
    static const char *const OTHERS[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "xen"};
    char                     name[32] = "";
    FILE                    *file     = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    const bool               read     = file != NULL && fgets(name, sizeof name, file) != NULL;

    if (file != NULL) {
        (void)fclose(file);
    }
    name[strcspn(name, "\n")] = '\0';
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        if (strcmp(name, OTHERS[i]) == 0) {
            return false;
        }
    }
    return read;
}

uint32_t fsdpi_ticks_clock(void)
{
    return counter_is_steady() && linux_trusts_it() ? FSDPI_CLOCK_TSC : FSDPI_CLOCK_MONOTONIC;
}

#else

uint32_t fsdpi_ticks_clock(void)
{
    return FSDPI_CLOCK_MONOTONIC;
}

#endif

fsdpi_recorded_moment fsdpi_ticks_moment(uint32_t clock)
{
    return (fsdpi_recorded_moment){.ticks     = fsdpi_ticks(clock),
                                   .monotonic = fsdpi_clock_nanoseconds(CLOCK_MONOTONIC),
                                   .real      = fsdpi_clock_nanoseconds(CLOCK_REALTIME)};
}
