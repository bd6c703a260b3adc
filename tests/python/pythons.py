"""Pythons that may have PyTorch. Whether one has it is asked without the seconds that importing it takes."""

import atexit
import functools
import gc
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types

DEBIAN = "/usr/bin/python3"


def has_torch(python):
    try:
        return subprocess.run([python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def with_torch():
    """The first that has it of what PLANC_PYTHON names, this one and Debian's; None if none has."""
    return next((python for python in (os.environ.get("PLANC_PYTHON"), sys.executable, DEBIAN) if python and has_torch(python)), None)


# --- One that has imported it -----------------------------------------------------------------------------------------

CLIENT = """#!%s -IS
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(%r)
socket.send_fds(connection, [b"!"], [0, 1, 2])
connection.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
connection.shutdown(socket.SHUT_WR)
sys.exit(int(connection.recv(8) or 70))
"""


@functools.cache
def warm(python=sys.executable):
    """A program that does what a Python with PyTorch does with -B, and -c, -m or a file: in a process that is forked from one that
    has imported PyTorch, and nothing else. Importing it takes longer than what most tests do with it."""
    folder = tempfile.TemporaryDirectory()
    at, program = (os.path.join(folder.name, name) for name in ("socket", "python"))
    with open(program, "w", encoding="utf-8") as file:
        file.write(CLIENT % (python, at))
    os.chmod(program, 0o755)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    server = subprocess.Popen([python, "-B", os.path.abspath(__file__), at], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    server.stdout.readline()  # it listens

    def close():
        server.communicate()
        folder.cleanup()

    atexit.register(close)
    return program


def serve(at):
    """Until its input ends."""
    import torch  # pylint: disable=unused-import

    gc.collect()
    gc.freeze()  # children do not look through it for what is garbage

    sys.path.pop(0)  # this file's folder
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(at)
        listener.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection = listener.accept()[0]
            if os.fork() == 0:
                listener.close()
                answer(connection)
            connection.close()
            put_away(os.WNOHANG)
        put_away(0)


def put_away(options):
    """Of its children those that have ended, or all."""
    try:
        while os.waitpid(-1, options)[0]:
            pass
    except ChildProcessError:
        pass


def answer(connection):
    """Runs what is asked for, and ends with it."""
    files = socket.recv_fds(connection, 1, 3)[1]
    with connection.makefile("rb") as asked:
        words, folder, environment = json.load(asked)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = 0
    try:
        run_main(words)
    except SystemExit as end:
        code = int(end.code) if isinstance(end.code, int) else 0 if end.code is None else 1
        if code == 1 and end.code != 1:
            print(end.code, file=sys.stderr)
    except BaseException:  # as Python does
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    connection.sendall(str(code).encode())
    os._exit(code)


def run_main(words):
    while words[0] == "-B":
        words = words[1:]
    sys.path[:0] = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    if words[0] in ("-c", "-m"):
        kind, what, *rest = words
        sys.argv = [kind, *rest]
        sys.path.insert(0, "" if kind == "-c" else os.getcwd())
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            main = types.ModuleType("__main__")
            sys.modules["__main__"] = main
            exec(compile(what, "<string>", "exec"), main.__dict__)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
