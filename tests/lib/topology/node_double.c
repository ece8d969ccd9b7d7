/*
 * A double of rocm-smi's library and of the HIP runtime, preloaded under the name of the former, so that a program that
 * looks for either finds this. What node it pretends to be stands in the file that NODE_DOUBLE names, one word and its
 * values per line:
 *
 *     driver                      there is /sys/class/kfd; without it rsmi_init() fails as the real one does
 *     version 5                   of rocm-smi
 *     gpu ADDRESS NUMA HIVE       in rocm-smi's order; NUMA -1 where that is not known; the same address again: a part
 *     health USED TOTAL BUSY MHZ WATTS CELSIUS      of the GPU above; bytes, percent
 *     link I J HOPS WEIGHT MIN MAX                  XGMI between two of them; other links are PCIe
 *     hip I J ...                 the GPUs that HIP knows, in its order, as rocm-smi counts
 *
 * ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES work as lists of numbers. node_double_calls() tells what HIP was asked.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64, SUCCESS = 0, INVALID = 1, NOT_SUPPORTED = 2, INIT_ERROR = 8, HIP_NO_DEVICE = 100, HIP_INVALID = 101 };
enum { TYPE_XGMI = 2 };

typedef struct gpu {
    char     address[16];
    int      numa;
    uint64_t hive;
    double   used, total, busy, mhz, watts, celsius;
} gpu;

typedef struct link {
    bool     xgmi;
    uint64_t hops, weight, least, most;
} link_between;

static bool         has_read, has_driver;
static int          version = 5, n_gpus, n_hip, current;
static int          hip_gpus[MOST];
static gpu          gpus[MOST];
static link_between links[MOST][MOST];
static char         calls[256];

/* What the program under test calls. The prototypes are those of the libraries, of which no header is needed. */
int         hipGetDeviceCount(int *count);
int         hipDeviceGetPCIBusId(char *address, int size, int device);
int         hipGetDevice(int *device);
int         hipSetDevice(int device);
int         rsmi_init(uint64_t flags);
int         rsmi_shut_down(void);
int         rsmi_version_get(uint32_t *told);
int         rsmi_num_monitor_devices(uint32_t *count);
int         rsmi_dev_pci_id_get(uint32_t device, uint64_t *id);
int         rsmi_topo_numa_affinity_get(uint32_t device, int32_t *node);
int         rsmi_dev_xgmi_hive_id_get(uint32_t device, uint64_t *hive);
int         rsmi_minmax_bandwidth_get(uint32_t from, uint32_t to, uint64_t *least, uint64_t *most);
int         rsmi_topo_get_link_type(uint32_t from, uint32_t to, uint64_t *hops, uint32_t *type);
int         rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t *weight);
int         rsmi_dev_memory_total_get(uint32_t device, int kind, uint64_t *bytes);
int         rsmi_dev_memory_usage_get(uint32_t device, int kind, uint64_t *bytes);
int         rsmi_dev_busy_percent_get(uint32_t device, uint32_t *percent);
int         rsmi_dev_gpu_clk_freq_get(uint32_t device, int clock, void *frequencies);
int         rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor, int metric, int64_t *milli);
int         rsmi_dev_power_ave_get(uint32_t device, uint32_t sensor, uint64_t *microwatts);
const char *node_double_calls(void);

/* ---- the description --------------------------------------------------------------------------------------------- */

static bool read_gpu(const char *line)
{
    gpu               *g    = &gpus[n_gpus];
    unsigned long long hive = 0;

    if (n_gpus == MOST || sscanf(line, "gpu %15s %d %llx", g->address, &g->numa, &hive) != 3) {
        return false;
    }
    g->hive = hive;
    g->used = g->total = g->busy = g->mhz = g->watts = g->celsius = -1.0;
    n_gpus++;
    return true;
}

static bool read_health(const char *line)
{
    gpu *g = &gpus[n_gpus > 0 ? n_gpus - 1 : 0];

    return n_gpus > 0 && sscanf(line, "health %lf %lf %lf %lf %lf %lf", &g->used, &g->total, &g->busy, &g->mhz,
                                &g->watts, &g->celsius) == 6;
}

static bool read_link(const char *line)
{
    int                i, j;
    unsigned long long hops, weight, least, most;

    if (sscanf(line, "link %d %d %llu %llu %llu %llu", &i, &j, &hops, &weight, &least, &most) != 6 || i < 0 || j < 0 ||
        i >= n_gpus || j >= n_gpus) {
        return false;
    }
    links[i][j] = links[j][i] = (link_between){true, hops, weight, least, most};
    return true;
}

/* Numbers between blanks or commas. */
static int read_numbers(const char *text, int *numbers)
{
    int   n = 0;
    char *end;

    for (long number = strtol(text, &end, 10); end != text && n < MOST; number = strtol(text, &end, 10)) {
        numbers[n++] = (int)number;
        text         = end + (*end == ',');
    }
    return n;
}

/* What a variable leaves of HIP's devices. */
static void filter(const char *variable)
{
    const char *text = getenv(variable);
    int         wanted[MOST], kept[MOST], n = 0;

    if (text == NULL) {
        return;
    }
    const int n_wanted = read_numbers(text, wanted);
    while (n < n_wanted && wanted[n] >= 0 && wanted[n] < n_hip) {
        kept[n] = hip_gpus[wanted[n]];
        n++;
    }
    memcpy(hip_gpus, kept, sizeof kept[0] * (size_t)n);
    n_hip = n;
}

static bool read_line(const char *line)
{
    if (strncmp(line, "driver", 6) == 0) {
        has_driver = true;
        return true;
    }
    if (strncmp(line, "hip", 3) == 0) {
        n_hip = read_numbers(line + 3, hip_gpus);
        return true;
    }
    if (strncmp(line, "gpu", 3) == 0) {
        return read_gpu(line);
    }
    if (strncmp(line, "health", 6) == 0) {
        return read_health(line);
    }
    if (strncmp(line, "link", 4) == 0) {
        return read_link(line);
    }
    return line[0] == '#' || line[0] == '\n' || sscanf(line, "version %d", &version) == 1;
}

static void describe(void)
{
    const char *name = getenv("NODE_DOUBLE");
    char        line[512];

    if (has_read || name == NULL) {
        return;
    }
    has_read   = true;
    FILE *file = fopen(name, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (!read_line(line)) {
            (void)fprintf(stderr, "NODE_DOUBLE: %s: what does this mean: %s", name, line);
            abort();
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    filter("ROCR_VISIBLE_DEVICES");
    filter("HIP_VISIBLE_DEVICES");
}

int access(const char *name, int type)
{
    if (strcmp(name, "/sys/class/kfd") == 0) {
        describe();
        return has_driver ? 0 : -1;
    }
    return faccessat(AT_FDCWD, name, type, 0);
}

/* ---- HIP --------------------------------------------------------------------------------------------------------- */

static void note(const char *call)
{
    const size_t used = strlen(calls);

    describe();
    (void)snprintf(calls + used, sizeof calls - used, "%s ", call);
}

const char *node_double_calls(void)
{
    return calls;
}

int hipGetDeviceCount(int *count)
{
    note("count");
    *count = n_hip;
    return n_hip > 0 ? SUCCESS : HIP_NO_DEVICE;
}

int hipDeviceGetPCIBusId(char *address, int size, int device)
{
    note("address");
    if (device < 0 || device >= n_hip) {
        return HIP_INVALID;
    }
    (void)snprintf(address, (size_t)size, "%s", gpus[hip_gpus[device]].address);
    return SUCCESS;
}

int hipGetDevice(int *device)
{
    note("get");
    *device = current;
    return n_hip > 0 ? SUCCESS : HIP_NO_DEVICE;
}

int hipSetDevice(int device)
{
    note("set");
    if (device < 0 || device >= n_hip) {
        return HIP_INVALID;
    }
    current = device;
    return SUCCESS;
}

/* ---- rocm-smi ---------------------------------------------------------------------------------------------------- */

int rsmi_init(uint64_t flags)
{
    (void)flags;
    describe();
    if (!has_driver) {
        (void)fprintf(stderr, "rsmi_init() failed\nThis is what the real one prints, in its own words.\n");
        return INIT_ERROR;
    }
    return SUCCESS;
}

int rsmi_shut_down(void)
{
    return SUCCESS;
}

/* The first of three numbers; a pointer follows them. */
int rsmi_version_get(uint32_t *told)
{
    told[0] = (uint32_t)version;
    return SUCCESS;
}

int rsmi_num_monitor_devices(uint32_t *count)
{
    *count = (uint32_t)n_gpus;
    return SUCCESS;
}

int rsmi_dev_pci_id_get(uint32_t device, uint64_t *id)
{
    unsigned domain, bus, dev, function;
    uint64_t part = 0;

    if (device >= (uint32_t)n_gpus ||
        sscanf(gpus[device].address, "%x:%x:%x.%x", &domain, &bus, &dev, &function) != 4) {
        return INVALID;
    }
    for (uint32_t d = 0; d < device; d++) {
        part += strcmp(gpus[d].address, gpus[device].address) == 0;
    }
    *id = (uint64_t)domain << 32 | part << 28 | (uint64_t)bus << 8 | (uint64_t)dev << 3 | function;
    return SUCCESS;
}

int rsmi_topo_numa_affinity_get(uint32_t device, int32_t *node)
{
    *node = gpus[device].numa;
    return SUCCESS;
}

int rsmi_dev_xgmi_hive_id_get(uint32_t device, uint64_t *hive)
{
    *hive = gpus[device].hive;
    return SUCCESS;
}

int rsmi_minmax_bandwidth_get(uint32_t from, uint32_t to, uint64_t *least, uint64_t *most)
{
    *least = links[from][to].least;
    *most  = links[from][to].most;
    return links[from][to].xgmi ? SUCCESS : NOT_SUPPORTED;
}

/* The real ones run into an assertion on links that are not XGMI. */
int rsmi_topo_get_link_type(uint32_t from, uint32_t to, uint64_t *hops, uint32_t *type)
{
    if (!links[from][to].xgmi) {
        abort();
    }
    *hops = links[from][to].hops;
    *type = TYPE_XGMI;
    return SUCCESS;
}

int rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t *weight)
{
    if (!links[from][to].xgmi) {
        abort();
    }
    *weight = links[from][to].weight;
    return SUCCESS;
}

static int tell(double value, double unit, uint64_t *told)
{
    *told = value >= 0.0 ? (uint64_t)(value * unit) : 0;
    return value >= 0.0 ? SUCCESS : NOT_SUPPORTED;
}

int rsmi_dev_memory_total_get(uint32_t device, int kind, uint64_t *bytes)
{
    return kind == 0 ? tell(gpus[device].total, 1.0, bytes) : INVALID;
}

int rsmi_dev_memory_usage_get(uint32_t device, int kind, uint64_t *bytes)
{
    return kind == 0 ? tell(gpus[device].used, 1.0, bytes) : INVALID;
}

int rsmi_dev_busy_percent_get(uint32_t device, uint32_t *percent)
{
    uint64_t  told;
    const int code = tell(gpus[device].busy, 1.0, &told);

    *percent = (uint32_t)told;
    return code;
}

/* Two 32-bit numbers (from version 6 on a flag and two), then frequencies. */
int rsmi_dev_gpu_clk_freq_get(uint32_t device, int clock, void *frequencies)
{
    struct {
        uint32_t supported, current;
        uint64_t hertz[32];
    } five = {2, 1, {0}};
    struct {
        bool     has_deep_sleep;
        uint32_t supported, current;
        uint64_t hertz[33];
    } six          = {false, 2, 1, {0}};
    const int code = tell(gpus[device].mhz, 1e6, &five.hertz[1]);

    six.hertz[1] = five.hertz[1];
    if (version >= 6) {
        memcpy(frequencies, &six, sizeof six);
    } else {
        memcpy(frequencies, &five, sizeof five);
    }
    return clock == 0 ? code : INVALID;
}

/* Has no sensor at the edge, as MI300 has none. */
int rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor, int metric, int64_t *milli)
{
    uint64_t  told;
    const int code = tell(gpus[device].celsius, 1e3, &told);

    *milli = (int64_t)told;
    return sensor == 1 && metric == 0 ? code : NOT_SUPPORTED;
}

int rsmi_dev_power_ave_get(uint32_t device, uint32_t sensor, uint64_t *microwatts)
{
    return sensor == 0 ? tell(gpus[device].watts, 1e6, microwatts) : INVALID;
}
