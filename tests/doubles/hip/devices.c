/* Which devices there are, and which one a thread uses. */
#include <stdio.h>

#include "tests/doubles/hip/double.h"

static _Thread_local int selected;
static bool              peers[DOUBLE_DEVICES][DOUBLE_DEVICES];

int double_device_count(void)
{
    const long long n = double_setting("HIP_DOUBLE_GPUS", 1);

    return n < 0 ? 0 : n > DOUBLE_DEVICES ? DOUBLE_DEVICES : (int)n;
}

int double_device(void)
{
    return selected;
}

bool double_peer_enabled(int device, int peer)
{
    return device == peer || peers[device][peer];
}

static bool is_device(int device)
{
    return device >= 0 && device < double_device_count();
}

hipError_t hipGetDeviceCount(int *count)
{
    *count = double_device_count();
    return *count > 0 ? double_enter(__func__) : double_error(hipErrorNoDevice);
}

hipError_t hipGetDevice(int *device)
{
    if (double_device_count() == 0) {
        return double_error(hipErrorNoDevice);
    }
    *device = selected;
    return double_enter(__func__);
}

hipError_t hipSetDevice(int device)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || !is_device(device)) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidDevice);
    }
    selected = device;
    return hipSuccess;
}

hipError_t hipDeviceGetPCIBusId(char *address, int size, int device)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || !is_device(device) || size <= 0) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidDevice);
    }
    (void)snprintf(address, (size_t)size, "0000:%02x:00.0", (unsigned)device + 1);
    return hipSuccess;
}

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || !is_device(device) || !is_device(peer)) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidDevice);
    }
    *can = device != peer;
    return hipSuccess;
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || flags != 0 || !is_device(peer) || peer == selected) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidDevice);
    }
    if (peers[selected][peer]) {
        return double_error(hipErrorPeerAccessAlreadyEnabled);
    }
    peers[selected][peer] = true;
    return hipSuccess;
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least    = 1;
    *greatest = -1;
    return double_enter(__func__);
}
