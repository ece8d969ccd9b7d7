#include "lib/topology/rocm_smi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/topology/gpu_ids.h"

/* The names under which Debian (.1) and AMD (the others) install it. */
static const char *const LIBRARIES[] = {"librocm_smi64.so.1", "librocm_smi64.so.7", "librocm_smi64.so.6",
                                        "librocm_smi64.so.5", "librocm_smi64.so"};

/* Of rocm_smi.h: what is passed, and returns 0 for success. */
enum { SMI_SUCCESS = 0, SMI_VRAM = 0, SMI_SYSTEM_CLOCK = 0, SMI_EDGE = 0, SMI_JUNCTION = 1, SMI_CURRENT = 0 };
enum { SMI_LINK_PCIE = 1, SMI_LINK_XGMI = 2 };

typedef struct smi_version {
    uint32_t    major, minor, patch;
    const char *build;
} smi_version;

/* rsmi_frequencies_t up to version 5 and from version 6 on. The room behind it is for versions that have more. */
typedef union smi_frequencies {
    struct {
        uint32_t supported, current;
        uint64_t hertz[32];
    } five;
    struct {
        bool     has_deep_sleep;
        uint32_t supported, current;
        uint64_t hertz[33];
    } six;
    unsigned char room[1024];
} smi_frequencies;

#define SMI_FUNCTIONS(X)                                                                                               \
    X(init, "rsmi_init", (uint64_t flags))                                                                             \
    X(shut_down, "rsmi_shut_down", (void))                                                                             \
    X(version, "rsmi_version_get", (smi_version * version))                                                            \
    X(count, "rsmi_num_monitor_devices", (uint32_t * count))                                                           \
    X(pci_id, "rsmi_dev_pci_id_get", (uint32_t device, uint64_t * id))                                                 \
    X(numa, "rsmi_topo_numa_affinity_get", (uint32_t device, int32_t * node))                                          \
    X(hive, "rsmi_dev_xgmi_hive_id_get", (uint32_t device, uint64_t * hive))                                           \
    X(bandwidth, "rsmi_minmax_bandwidth_get", (uint32_t from, uint32_t to, uint64_t * least, uint64_t * most))         \
    X(link_type, "rsmi_topo_get_link_type", (uint32_t from, uint32_t to, uint64_t * hops, uint32_t * type))            \
    X(link_weight, "rsmi_topo_get_link_weight", (uint32_t from, uint32_t to, uint64_t * weight))                       \
    X(memory_total, "rsmi_dev_memory_total_get", (uint32_t device, int kind, uint64_t *bytes))                         \
    X(memory_used, "rsmi_dev_memory_usage_get", (uint32_t device, int kind, uint64_t *bytes))                          \
    X(busy, "rsmi_dev_busy_percent_get", (uint32_t device, uint32_t * percent))                                        \
    X(clock, "rsmi_dev_gpu_clk_freq_get", (uint32_t device, int clock, smi_frequencies *frequencies))                  \
    X(temperature, "rsmi_dev_temp_metric_get", (uint32_t device, uint32_t sensor, int metric, int64_t *milli))         \
    X(power, "rsmi_dev_power_ave_get", (uint32_t device, uint32_t sensor, uint64_t * microwatts))

/* A function that this version does not have is NULL. */
#define SMI_MEMBER(member, name, arguments) int(*member) arguments; /* NOLINT(bugprone-macro-parentheses) */
struct fsdpi_smi {
    void *library;
    int   n_devices;
    int   major; /* of its version */
    SMI_FUNCTIONS(SMI_MEMBER)
};
#undef SMI_MEMBER

static void *load(void)
{
    void *library = NULL;

    for (size_t i = 0; library == NULL && i < sizeof LIBRARIES / sizeof LIBRARIES[0]; i++) {
        library = dlopen(LIBRARIES[i], RTLD_LAZY | RTLD_LOCAL);
    }
    return library;
}

/* ISO C has no conversion from void * to a pointer to function; POSIX has one by way of memory. */
static void find_functions(fsdpi_smi *smi)
{
#define SMI_FIND(member, name, arguments) *(void **)(void *)&smi->member = dlsym(smi->library, name);
    SMI_FUNCTIONS(SMI_FIND)
#undef SMI_FIND
}

static bool start(fsdpi_smi *smi, char *why)
{
    smi_version version = {0};
    uint32_t    count   = 0;

    if (smi->init == NULL || smi->shut_down == NULL || smi->count == NULL || smi->pci_id == NULL) {
        (void)snprintf(why, FSDP_REASON_BYTES, "its library lacks functions that it should have");
        return false;
    }
    const int code = smi->init(0);
    if (code != SMI_SUCCESS) {
        (void)snprintf(why, FSDP_REASON_BYTES, "rsmi_init returns %d", code);
        return false;
    }
    smi->n_devices = smi->count(&count) == SMI_SUCCESS && count <= FSDP_MOST_GPUS ? (int)count : 0;
    smi->major     = smi->version != NULL && smi->version(&version) == SMI_SUCCESS ? (int)version.major : 0;
    (void)snprintf(why, FSDP_REASON_BYTES, "version %d, %d device%s", smi->major, smi->n_devices,
                   smi->n_devices == 1 ? "" : "s");
    return true;
}

fsdpi_smi *fsdpi_smi_open(char *why)
{
    const bool has_driver = fsdpi_has_gpu_driver(); /* without it rsmi_init() fails and prints two lines */
    void      *library    = load();
    fsdpi_smi *smi        = library != NULL && has_driver ? calloc(1, sizeof *smi) : NULL;

    if (library == NULL) {
        (void)snprintf(why, FSDP_REASON_BYTES, "librocm_smi64 is not installed%s",
                       has_driver ? "" : ", and there is no driver (/sys/class/kfd)");
        return NULL;
    }
    if (smi == NULL) {
        (void)snprintf(why, FSDP_REASON_BYTES, "%s",
                       has_driver ? "no memory" : "installed, but there is no driver (/sys/class/kfd)");
        (void)dlclose(library);
        return NULL;
    }
    smi->library = library;
    find_functions(smi);
    if (!start(smi, why)) {
        (void)dlclose(library);
        free(smi);
        return NULL;
    }
    return smi;
}

void fsdpi_smi_close(fsdpi_smi *smi)
{
    if (smi == NULL) {
        return;
    }
    (void)smi->shut_down();
    (void)dlclose(smi->library);
    free(smi);
}

int fsdpi_smi_count(const fsdpi_smi *smi)
{
    return smi->n_devices;
}

/* Domain in the upper half; bus, device and function in bits 15 to 8, 7 to 3 and 2 to 0; a partition in 31 to 28. */
static void address_of(uint64_t id, char *address)
{
    (void)snprintf(address, FSDP_ADDRESS_BYTES, "%04x:%02x:%02x.%01x", (unsigned)(id >> 32 & 0xffff),
                   (unsigned)(id >> 8 & 0xff), (unsigned)(id >> 3 & 0x1f), (unsigned)(id & 7));
}

bool fsdpi_smi_device(const fsdpi_smi *smi, int device, fsdp_gpu *gpu, int *numa)
{
    const uint32_t d    = (uint32_t)device;
    int32_t        node = -1;
    uint64_t       id;

    *numa = -1;
    if (smi->pci_id(d, &id) != SMI_SUCCESS) {
        return false;
    }
    address_of(id, gpu->address);
    if (smi->hive == NULL || smi->hive(d, &gpu->hive) != SMI_SUCCESS) {
        gpu->hive = 0;
    }
    if (smi->memory_total == NULL || smi->memory_total(d, SMI_VRAM, &gpu->bytes) != SMI_SUCCESS) {
        gpu->bytes = 0;
    }
    if (smi->numa != NULL && smi->numa(d, &node) == SMI_SUCCESS && node >= 0) {
        *numa = (int)node;
    }
    return true;
}

/* On a link that is not XGMI the type and the weight can run into an assertion: the bandwidth is asked first. */
bool fsdpi_smi_link(const fsdpi_smi *smi, int from, int to, fsdp_link *link)
{
    const uint32_t a = (uint32_t)from, b = (uint32_t)to;
    uint32_t       type;

    if (smi->bandwidth == NULL || smi->link_type == NULL || smi->link_weight == NULL ||
        smi->bandwidth(a, b, &link->min_bandwidth, &link->max_bandwidth) != SMI_SUCCESS ||
        smi->link_type(a, b, &link->hops, &type) != SMI_SUCCESS) {
        return false;
    }
    if (smi->link_weight(a, b, &link->weight) != SMI_SUCCESS) {
        link->weight = 0;
    }
    link->type = type == SMI_LINK_XGMI ? FSDP_LINK_XGMI : type == SMI_LINK_PCIE ? FSDP_LINK_PCIE : FSDP_LINK_UNKNOWN;
    return true;
}

static double clock_of(const fsdpi_smi *smi, uint32_t device)
{
    smi_frequencies f = {.room = {0}};

    if (smi->clock == NULL || smi->clock(device, SMI_SYSTEM_CLOCK, &f) != SMI_SUCCESS) {
        return -1.0;
    }
    if (smi->major >= 6) {
        return f.six.current < 33 ? (double)f.six.hertz[f.six.current] * 1e-6 : -1.0;
    }
    return f.five.current < 32 ? (double)f.five.hertz[f.five.current] * 1e-6 : -1.0;
}

static double temperature_of(const fsdpi_smi *smi, uint32_t device)
{
    int64_t milli;

    if (smi->temperature == NULL || (smi->temperature(device, SMI_EDGE, SMI_CURRENT, &milli) != SMI_SUCCESS &&
                                     smi->temperature(device, SMI_JUNCTION, SMI_CURRENT, &milli) != SMI_SUCCESS)) {
        return -1.0;
    }
    return (double)milli * 1e-3;
}

void fsdpi_smi_health(const fsdpi_smi *smi, int device, fsdp_gpu_health *health)
{
    const uint32_t d = (uint32_t)device;
    uint64_t       value;
    uint32_t       percent;

    if (smi->memory_total != NULL && smi->memory_total(d, SMI_VRAM, &value) == SMI_SUCCESS) {
        health->total_bytes = (double)value;
    }
    if (smi->memory_used != NULL && smi->memory_used(d, SMI_VRAM, &value) == SMI_SUCCESS) {
        health->used_bytes = (double)value;
    }
    if (smi->busy != NULL && smi->busy(d, &percent) == SMI_SUCCESS) {
        health->busy_percent = (double)percent;
    }
    if (smi->power != NULL && smi->power(d, 0, &value) == SMI_SUCCESS) {
        health->power_watts = (double)value * 1e-6;
    }
    health->clock_mhz           = clock_of(smi, d);
    health->temperature_celsius = temperature_of(smi, d);
}
