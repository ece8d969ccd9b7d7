#include "lib/topology/gpu_ids.h"

#include <stddef.h>
#include <unistd.h>

enum { VENDOR_AMD = 0x1002, VENDOR_NVIDIA = 0x10de };
enum { CLASS_VGA = 0x0300, CLASS_3D = 0x0302, CLASS_DISPLAY = 0x0380, CLASS_ACCELERATOR = 0x1200 };

/* Devices that compute although they say that they are a screen's: Instinct and Radeon Pro, Quadro. */
static const struct {
    unsigned vendor, device;
} VGA_THAT_COMPUTES[] = {
    {VENDOR_AMD, 0x6860},    {VENDOR_AMD, 0x6861},    {VENDOR_AMD, 0x6862},    {VENDOR_AMD, 0x66a0},
    {VENDOR_AMD, 0x66a1},    {VENDOR_AMD, 0x66a7},    {VENDOR_AMD, 0x66af},    {VENDOR_AMD, 0x738c},
    {VENDOR_AMD, 0x738e},    {VENDOR_AMD, 0x73a2},    {VENDOR_AMD, 0x73a3},    {VENDOR_AMD, 0x744c},
    {VENDOR_AMD, 0x7448},    {VENDOR_NVIDIA, 0x11ba}, {VENDOR_NVIDIA, 0x102d}, {VENDOR_NVIDIA, 0x13f0},
    {VENDOR_NVIDIA, 0x17f0}, {VENDOR_NVIDIA, 0x15f0}, {VENDOR_NVIDIA, 0x1bb0}, {VENDOR_NVIDIA, 0x1b30},
    {VENDOR_NVIDIA, 0x1dba}, {VENDOR_NVIDIA, 0x1e30}, {VENDOR_NVIDIA, 0x2230}, {VENDOR_NVIDIA, 0x26b1},
};

bool fsdpi_is_compute_gpu(unsigned class_id, unsigned vendor, unsigned device)
{
    if (vendor != VENDOR_AMD && vendor != VENDOR_NVIDIA) {
        return false;
    }
    if (class_id == CLASS_3D || class_id == CLASS_DISPLAY || class_id == CLASS_ACCELERATOR) {
        return true;
    }
    for (size_t i = 0; class_id == CLASS_VGA && i < sizeof VGA_THAT_COMPUTES / sizeof VGA_THAT_COMPUTES[0]; i++) {
        if (VGA_THAT_COMPUTES[i].vendor == vendor && VGA_THAT_COMPUTES[i].device == device) {
            return true;
        }
    }
    return false;
}

bool fsdpi_has_gpu_driver(void)
{
    return access("/sys/class/kfd", F_OK) == 0;
}
