"""The command planc of an installed package: the program inside it, which calls this Python for `planc torch`."""

import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "planc")
    os.putenv("PLANC_PYTHON", sys.executable)
    os.execv(program, [program, *sys.argv[1:]])
