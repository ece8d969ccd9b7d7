/* GPUs and network cards, as hwloc knows them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/topology/gpu_ids.h"
#include "lib/topology/mask.h"
#include "lib/topology/read_hwloc.h"

/* The hardware threads that a PCI device is next to: none where that is all of a machine of several NUMA nodes. */
static fsdp_mask locality(const fsdp_node *node, hwloc_topology_t hwloc, hwloc_obj_t device)
{
    hwloc_obj_t     near    = hwloc_get_non_io_ancestor_obj(hwloc, device);
    const fsdp_mask threads = fsdpi_hwloc_mask(near != NULL ? near->cpuset : NULL);

    return node->n_numas > 1 && fsdpi_mask_equal(&threads, &node->threads) ? (fsdp_mask){{0}} : threads;
}

void fsdpi_hwloc_address(hwloc_obj_t device, char *address)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;

    (void)snprintf(address, FSDP_ADDRESS_BYTES, "%04x:%02x:%02x.%01x", pci->domain, pci->bus, pci->dev, pci->func);
}

const char *fsdpi_hwloc_info(hwloc_obj_t object, const char *name, const char *otherwise)
{
    const char *text = hwloc_obj_get_info_by_name(object, name);

    return text != NULL ? text : otherwise;
}

/* "GPU-" and what follows of letters, digits and dashes, or nothing: it is to be passed on to a shell. */
static void copy_uuid(fsdp_gpu *gpu, const char *text)
{
    static const char ALLOWED[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
    const size_t      n         = strspn(text, ALLOWED);

    if (strncmp(text, "GPU-", 4) == 0 && text[n] == '\0' && n < sizeof gpu->uuid) {
        memcpy(gpu->uuid, text, n + 1);
    }
}

int fsdpi_hwloc_smi_number(hwloc_obj_t device)
{
    return device->name != NULL && strncmp(device->name, "rsmi", 4) == 0 ? (int)strtol(device->name + 4, NULL, 10) : -1;
}

int fsdpi_hwloc_part(hwloc_obj_t pci, hwloc_obj_t device)
{
    int part = 0;

    for (hwloc_obj_t other = pci->io_first_child; other != NULL; other = other->next_sibling) {
        part += fsdpi_hwloc_smi_number(other) >= 0 && fsdpi_hwloc_smi_number(other) < fsdpi_hwloc_smi_number(device);
    }
    return part;
}

/* What a device of the operating system says of the GPU that carries it. */
static void read_gpu_device(hwloc_obj_t device, fsdp_gpu *gpu, char *peers)
{
    const char *model = fsdpi_hwloc_info(device, "GPUModel", ""), *hive = fsdpi_hwloc_info(device, "XGMIHiveID", "");
    const char *kib = fsdpi_hwloc_info(device, "RSMIVRAMSize", fsdpi_hwloc_info(device, "CUDAGlobalMemorySize", ""));

    if (model[0] != '\0') {
        fsdpi_node_copy_text(gpu->name, sizeof gpu->name, model);
    }
    copy_uuid(gpu, fsdpi_hwloc_info(device, "NVIDIAUUID", ""));
    gpu->hive  = hive[0] != '\0' ? strtoull(hive, NULL, 16) : gpu->hive;
    gpu->bytes = kib[0] != '\0' ? strtoull(kib, NULL, 10) * 1024 : gpu->bytes;
    if (fsdpi_hwloc_smi_number(device) >= 0) {
        gpu->smi = fsdpi_hwloc_smi_number(device);
        (void)snprintf(peers, sizeof((fsdp_topology *)0)->peers[0], "%s", fsdpi_hwloc_info(device, "XGMIPeers", ""));
    }
}

static void read_gpu_devices(fsdp_topology *topology, hwloc_obj_t pci, const char *address)
{
    for (hwloc_obj_t device = pci->io_first_child; device != NULL; device = device->next_sibling) {
        const int part  = fsdpi_hwloc_part(pci, device);
        const int found = fsdpi_node_gpu(&topology->node, address, part);
        const int at    = found >= 0 ? found : fsdpi_node_add_gpu(topology, address, part);

        if (at >= 0) {
            read_gpu_device(device, &topology->gpus[at], topology->peers[at]);
        }
    }
}

static void add_gpu(fsdp_topology *topology, hwloc_topology_t hwloc, hwloc_obj_t pci)
{
    char address[FSDP_ADDRESS_BYTES];

    fsdpi_hwloc_address(pci, address);
    const int at = fsdpi_node_add_gpu(topology, address, 0);
    if (at < 0) {
        return;
    }
    fsdp_gpu  *gpu  = &topology->gpus[at];
    fsdp_node *node = &topology->node;

    gpu->vendor  = pci->attr->pcidev.vendor_id;
    gpu->device  = pci->attr->pcidev.device_id;
    gpu->threads = locality(node, hwloc, pci);
    gpu->package = fsdpi_domain_of(node->packages, node->n_packages, &gpu->threads);
    gpu->numa    = fsdpi_domain_of(node->numas, node->n_numas, &gpu->threads);
    fsdpi_node_copy_text(gpu->name, sizeof gpu->name, fsdpi_hwloc_info(pci, "PCIDevice", ""));
    read_gpu_devices(topology, pci, address);
}

static bool is_fabric(hwloc_obj_t device)
{
    return device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS || strncmp(device->name, "hsi", 3) == 0 ||
           strncmp(device->name, "ib", 2) == 0 || strncmp(device->name, "cxi", 3) == 0;
}

/* "mlx5_0" rather than "ib0", and that rather than any other. */
static bool is_better_name(hwloc_obj_t device, const fsdp_nic *nic)
{
    return device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS || (is_fabric(device) && !nic->fabric);
}

/* One entry per card, under the name that libraries of the fabric use where it has one. */
static void add_nic(fsdp_topology *topology, hwloc_topology_t hwloc, hwloc_obj_t device)
{
    fsdp_node  *node = &topology->node;
    hwloc_obj_t pci  = device->parent;
    char        address[FSDP_ADDRESS_BYTES];
    size_t      at = 0;

    while (pci != NULL && pci->type == HWLOC_OBJ_OS_DEVICE) {
        pci = pci->parent;
    }
    if (pci == NULL || pci->type != HWLOC_OBJ_PCI_DEVICE || device->name == NULL) {
        return; /* of software: bridges, tunnels */
    }
    fsdpi_hwloc_address(pci, address);
    while (at < node->n_nics && strcmp(topology->nics[at].address, address) != 0) {
        at++;
    }
    if (at == FSDPI_MOST_NICS || (at < node->n_nics && !is_better_name(device, &topology->nics[at]))) {
        return;
    }
    node->n_nics  = at == node->n_nics ? at + 1 : node->n_nics;
    fsdp_nic *nic = &topology->nics[at];
    (void)snprintf(nic->address, sizeof nic->address, "%s", address);
    fsdpi_node_copy_text(nic->name, sizeof nic->name, device->name);
    nic->fabric  = nic->fabric || is_fabric(device);
    nic->threads = locality(node, hwloc, pci);
    nic->package = fsdpi_domain_of(node->packages, node->n_packages, &nic->threads);
    nic->numa    = fsdpi_domain_of(node->numas, node->n_numas, &nic->threads);
}

void fsdpi_hwloc_read_devices(fsdp_topology *topology, hwloc_topology_t hwloc)
{
    for (hwloc_obj_t pci = NULL; (pci = hwloc_get_next_pcidev(hwloc, pci)) != NULL;) {
        const struct hwloc_pcidev_attr_s *attr = &pci->attr->pcidev;

        if (fsdpi_is_compute_gpu(attr->class_id, attr->vendor_id, attr->device_id)) {
            add_gpu(topology, hwloc, pci);
        }
    }
    for (hwloc_obj_t device = NULL; (device = hwloc_get_next_osdev(hwloc, device)) != NULL;) {
        if (device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ||
            device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) {
            add_nic(topology, hwloc, device);
        }
    }
}
