#include "bench/twin/twin_channel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SHORTEST_NAP    0.5e-3
#define LONGEST_NAP     8e-3 /* the twin naps most of the time: it must not be felt */
#define GIVE_UP_SECONDS 600
#define TAG             7

/* An abstract address, which leaves no file behind. */
static socklen_t fill_address(struct sockaddr_un *address, const char *name)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address->sun_path + 1));
}

int bench_channel_listen(char *name, size_t name_bytes)
{
    struct sockaddr_un address;
    const int          listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timespec    t;
    socklen_t          length;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    (void)snprintf(name, name_bytes, "fsdp-bench-%ld-%ld", (long)getpid(), t.tv_nsec);
    length = fill_address(&address, name);
    if (listener >= 0 && (bind(listener, (const struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0)) {
        (void)close(listener);
        return -1;
    }
    return listener;
}

/* Others may know the name too. */
static int is_ours(int channel)
{
    struct ucred peer;
    socklen_t    length = sizeof peer;

    return getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == getuid();
}

static int checked(int channel)
{
    const struct timeval limit = {.tv_sec = GIVE_UP_SECONDS};

    if (channel >= 0 &&
        (!is_ours(channel) || setsockopt(channel, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)) {
        (void)close(channel);
        return -1;
    }
    return channel;
}

int bench_channel_accept(int listener, double seconds)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};

    if (poll(&wait, 1, (int)(seconds * 1e3)) <= 0) {
        return -1;
    }
    return checked(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}

int bench_channel_connect(const char *name)
{
    struct sockaddr_un address;
    const socklen_t    length  = fill_address(&address, name);
    const int          channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (channel >= 0 && (connect(channel, (const struct sockaddr *)&address, length) != 0 || !is_ours(channel))) {
        (void)close(channel);
        return -1;
    }
    return channel;
}

int bench_channel_send(int channel, const void *data, size_t bytes)
{
    const char *next = data;

    while (bytes > 0) {
        const ssize_t sent = send(channel, next, bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR) {
            return 0;
        }
        next += sent > 0 ? sent : 0;
        bytes -= (size_t)(sent > 0 ? sent : 0);
    }
    return 1;
}

int bench_channel_receive(int channel, void *data, size_t bytes)
{
    char *next = data;

    while (bytes > 0) {
        const ssize_t got = recv(channel, next, bytes, 0);

        if (got == 0 || (got < 0 && errno != EINTR)) {
            return 0;
        }
        next += got > 0 ? got : 0;
        bytes -= (size_t)(got > 0 ? got : 0);
    }
    return 1;
}

static void nap_until_message(const bench_world *world)
{
    double nap   = SHORTEST_NAP;
    int    there = 0;

    MPI_Iprobe(0, TAG, world->comm, &there, MPI_STATUS_IGNORE);
    while (!there) {
        const struct timespec t = {0, (long)(nap * 1e9)};

        (void)nanosleep(&t, NULL);
        nap = nap * 1.1 < LONGEST_NAP ? nap * 1.1 : LONGEST_NAP;
        MPI_Iprobe(0, TAG, world->comm, &there, MPI_STATUS_IGNORE);
    }
}

void bench_share_asleep(const bench_world *world, void *data, size_t bytes)
{
    if (world->rank != 0) {
        nap_until_message(world);
        MPI_Recv(data, (int)bytes, MPI_BYTE, 0, TAG, world->comm, MPI_STATUS_IGNORE);
        return;
    }
    for (int rank = 1; rank < world->size; rank++) {
        MPI_Send(data, (int)bytes, MPI_BYTE, rank, TAG, world->comm);
    }
}
