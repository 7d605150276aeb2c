"""Runs `mlirfuse-opt` for the IR tests: a process that has imported it forks for each command.

Imports are most of the time of a RUN line. `lit.cfg.py` calls `start`; `tool_server.py SOCKET ARGUMENT...` is a
command, which has its own working directory, environment, standard streams and exit code, as if it had been started
by itself.
"""

import json
import os
import socket
import sys

CRASHED = 134
"""The exit code of a command whose process was ended by a signal, as a shell has it for an abort."""

SERVE = "--serve"


def start(environment: dict[str, str]) -> str:
    """Starts the server, which ends with this process, and returns its socket."""
    import atexit  # imports are here, as a command needs few of them, and there are many commands
    import subprocess
    import tempfile

    path = os.path.join(tempfile.mkdtemp(prefix="mlirfuse-lit-"), "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        descriptor = listener.fileno()
        arguments = [sys.executable, __file__, SERVE, str(descriptor)]
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, pass_fds=[descriptor], env=environment)
    atexit.register(_end, process, path)
    return path


def _end(process, path: str) -> None:
    process.communicate()
    os.remove(path)
    os.rmdir(os.path.dirname(path))


def serve(listener: socket.socket) -> None:
    """Runs each command in a process forked from this one, which makes no MLIR context; until standard input ends."""
    import select
    import signal
    import warnings

    from mlirfuse.tools import opt

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    # Python 3.12 warns of NumPy's threads, which run nothing here.
    warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            _run(connection, opt.main)
        connection.close()


def _run(connection, main) -> None:
    message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    command = json.loads(message)
    os.chdir(command["directory"])
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv = ["mlirfuse-opt", *command["arguments"]]
    try:
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send(bytes([code]))
    os._exit(0)


def command(path: str, arguments: list[str]) -> int:
    """Has the server run a command with this process's directory, environment and streams; returns its exit code."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        content = {"directory": os.getcwd(), "environment": dict(os.environ), "arguments": arguments}
        socket.send_fds(connection, [json.dumps(content).encode()], [0, 1, 2])
        code = connection.recv(1)
    return code[0] if code else CRASHED


if __name__ == "__main__":
    if sys.argv[1] == SERVE:
        with socket.socket(fileno=int(sys.argv[2])) as listening:
            serve(listening)
    else:
        sys.exit(command(sys.argv[1], sys.argv[2:]))
