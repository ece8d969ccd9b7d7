/**
 * @file
 * How much time of cores a control group allows.
 */
#ifndef FSDPI_TOPOLOGY_CPU_QUOTA_H
#define FSDPI_TOPOLOGY_CPU_QUOTA_H

/**
 * Cores' worth of time that the control group of this process (version 1 or 2), or one above it, allows: the least of them.
 *
 * @param[in] root  in front of /proc and /sys: "", or where a test has made them up
 * @return 0 where there is no limit or the system does not say
 */
double fsdpi_cpu_quota(const char *root);

#endif
