/**
 * @file
 * What Linux says of a process: whether it is there, stopped, and whether the kernel has killed one of its control group for
 * want of memory. Without MPI; all but fsdpi_process_group() is safe in a signal handler.
 */
#ifndef FSDPI_PROCESS_H
#define FSDPI_PROCESS_H

#include <stddef.h>
#include <stdint.h>

/** Of /proc/PID/stat. */
typedef struct fsdpi_process {
    char     state;   /* 'R', 'S', 'T' and so on; 0: there is no such process */
    uint64_t started; /* in clock ticks since the host has booted: tells it from a later one of the same number */
} fsdpi_process;

fsdpi_process fsdpi_process_look(int32_t pid);

/** As the letter of /proc/PID/stat; 0 where that process is no longer there, or is a zombie. */
char fsdpi_process_state(int32_t pid, uint64_t started);

/** Appends to a text that ends with NUL before `end`; what does not fit is left out. Returns where it ends now. */
char *fsdpi_append(char *at, const char *end, const char *text);
char *fsdpi_append_number(char *at, const char *end, uint64_t number);

/** The folder of this process's memory control group; "" where there is none. */
void fsdpi_process_group(char *group, size_t size);

/** How often the kernel has killed a process of that group for want of memory; -1: not known. */
int64_t fsdpi_process_oom_kills(const char *group);

#endif
