#!/usr/bin/env python3
"""A virtual host's first process, and the way in; cluster.sh starts both.

    host.py serve SOCKET PORT                 the first process of a host's namespaces: prints "ready", never ends
    host.py enter SOCKET COMMAND [ARG...]     runs a command there, with this one's input, output, folder and environment
    host.py reach ADDRESS PORT SOCKET COMMAND [ARG...]
                                              the same from another host: 255 if the network does not lead there
    host.py left SOCKET                       lists what is on the host that did not come with it; 1 if there is anything
    host.py halt SOCKET                       ends all that runs on the host, and the host

A process can enter only process namespaces below its own, so no host could start anything on another one: the first process
listens at a socket in the file system that all of them share, takes a command with its open files, and starts it.

A command that ends may leave processes, as on any host. One whose caller is gone, killed included, ends at once with all that
it has started. SIGUSR1 and SIGUSR2 of the caller reach the command.
"""
import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys
import time

LENGTH = struct.Struct("!I")
PR_SET_CHILD_SUBREAPER = 36
UNREACHABLE = 255  # as of ssh
PATIENCE_S = 5  # until a host that does not answer counts as unreachable
OF_CLUSTER = ("FSDP_CLUSTER_CORES", "FSDP_CLUSTER_ID", "FSDP_CLUSTER_MPIRUN")  # the library would warn of them
SHARED = "/dev/shm"


def receive(connection, n):
    data = b""
    while len(data) < n:
        part = connection.recv(n - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def answer(connection, **fields):
    try:
        connection.sendall(json.dumps(fields).encode() + b"\n")
    except OSError:
        pass  # nobody waits for it


# --- on the host


def processes():
    """pid, parent and state of each process of this process namespace."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # has ended meanwhile
        yield int(name), int(parent), state


def descendants(root):
    found, grown = {root}, True
    table = [(pid, parent) for pid, parent, _ in processes()]
    while grown:
        more = {pid for pid, parent in table if parent in found} - found
        grown = bool(more)
        found |= more
    return found - {root}


def reap():
    """Statuses by pid of children that have ended, and whether any are left."""
    ended = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended[pid] = os.waitstatus_to_exitcode(status)


def kill_descendants():
    left = True
    while left:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        left = reap()[1]
        if left:
            time.sleep(0.01)  # for them to go, however long it takes


def become(request, files):
    """Turns this process into the command of a request."""
    for number in signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ:
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    argv, env = request["argv"], request["env"]
    try:
        os.umask(request["umask"])
        os.chdir(request["cwd"])
        for name in OF_CLUSTER:
            env.pop(name, None)
        os.execvpe(argv[0], argv, {**env, "TMPDIR": SHARED})
    except OSError as error:
        os.write(2, f"host.py: cannot start '{argv[0]}' in {request['cwd']}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def lead(connection, request, files):
    """Runs a command as its parent, to which its orphans fall, until it ends or its caller is gone."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, awakened = os.pipe()
    os.set_blocking(awakened, False)
    signal.set_wakeup_fd(awakened, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    command = os.fork()
    if command == 0:
        become(request, files)
    for file in files:
        os.close(file)
    while True:
        ready = select.select([connection, wake], [], [])[0]
        if wake in ready:
            os.read(wake, 4096)
            status = reap()[0].get(command)
            if status is not None:
                answer(connection, status=status)
                return
        if connection in ready:
            try:
                numbers = connection.recv(64)
            except OSError:
                numbers = b""
            if not numbers:
                kill_descendants()
                answer(connection, status=-signal.SIGKILL)
                return
            for number in numbers:
                os.kill(command, number)


def left_on_host(leaders):
    lines = []
    for pid, _, state in processes():
        if pid != 1 and pid not in leaders and state != "Z":
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            lines.append(f"process {pid} {words}")
    for folder, _, files in os.walk(SHARED):
        lines += [f"file {os.path.join(folder, name)}" for name in files]
        if folder != SHARED:
            lines.append(f"folder {folder}")
    for kind in "shm", "sem", "msg":
        try:
            with open(f"/proc/sysvipc/{kind}", encoding="utf-8") as file:
                lines += [f"System V {kind} {line.split()[1]}" for line in file.readlines()[1:]]
        except FileNotFoundError:
            pass  # a kernel without
    return sorted(lines)


def end_host():
    while [pid for pid, _, state in processes() if pid != 1 and state != "Z"]:
        try:
            os.kill(-1, signal.SIGKILL)  # all but this one
        except ProcessLookupError:
            pass
        time.sleep(0.01)  # for them to go, however long it takes


def take(listener, connection, leaders):
    head, files, *_ = socket.recv_fds(connection, LENGTH.size, 3)
    if len(head) < LENGTH.size:
        return
    request = json.loads(receive(connection, LENGTH.unpack(head)[0]))
    if request["do"] == "left":
        leaders &= {pid for pid, *_ in processes()}
        answer(connection, left=left_on_host(leaders))
    elif request["do"] == "halt":
        end_host()
        answer(connection, status=0)
        os._exit(0)
    else:
        leader = os.fork()
        if leader == 0:
            listener.close()
            lead(connection, request, files)
            os._exit(0)
        leaders.add(leader)
    for file in files:
        os.close(file)


def serve(path, port):
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:  # the caller's, which somebody may wait for
            try:
                os.close(int(name))
            except OSError:
                pass  # that of the list itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps what ends here, orphans included
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(128)
    # What `reach` knocks at.
    door = socket.create_server(("", port), backlog=128)
    os.chdir("/")
    print("ready", flush=True)
    null = os.open("/dev/null", os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.close(null)
    leaders = set()
    while True:
        for source in select.select([listener, door], [], [])[0]:
            try:
                connection = source.accept()[0]
                if source is listener:
                    take(listener, connection, leaders)
                connection.close()
            except (OSError, EOFError):
                pass  # the caller is gone


# --- the way in


def call(path, **request):
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        sys.exit("host.py: the host is down")
    payload = json.dumps(request).encode()
    socket.send_fds(connection, [LENGTH.pack(len(payload))], [0, 1, 2])
    connection.sendall(payload)
    return connection


def reply(connection):
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(4096)
        if not part:
            return {}
        data += part
    return json.loads(data)


def end(connection):
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # has been done, by the command or its host


def enter(path, argv):
    connection = None
    told = []

    def stop(number, _):
        told.append(number)
        signal.signal(number, signal.SIG_DFL)
        if connection:
            end(connection)

    def forward(number, _):
        try:
            if connection:
                connection.send(bytes([number]))
        except OSError:
            pass  # the command has just ended

    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    for number in signal.SIGUSR1, signal.SIGUSR2:
        signal.signal(number, forward)
    mask = os.umask(0)
    os.umask(mask)
    connection = call(path, do="run", argv=argv, env=dict(os.environ), cwd=os.getcwd(), umask=mask)
    if told:
        end(connection)
    try:
        status = reply(connection).get("status", -signal.SIGKILL)
    except OSError:
        status = -signal.SIGKILL  # the host has gone
    if told:
        return 128 + told[0]
    return status if status >= 0 else 128 - status


def reach(address, port, path, argv):
    try:
        socket.create_connection((address, int(port)), PATIENCE_S).close()
    except OSError as error:
        print(f"host.py: cannot reach {address}: {error.strerror or error}", file=sys.stderr)
        return UNREACHABLE
    return enter(path, argv)


def left(path):
    found = reply(call(path, do="left"))["left"]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


def halt(path):
    reply(call(path, do="halt"))
    return 0


def main(what, *words):
    if what == "serve":
        return serve(words[0], int(words[1]))
    if what == "enter":
        return enter(words[0], words[1:])
    if what == "reach":
        return reach(words[0], words[1], words[2], words[3:])
    return {"left": left, "halt": halt}[what](*words)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
