"""What the card does meanwhile: clocks, power, temperature and why it throttles, once a second, by nvidia-smi."""

import itertools
import os
import shutil
import statistics
import subprocess

from .commands import kill, with_us

FIELDS = ("timestamp", "pstate", "clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "utilization.gpu",
          "memory.used")
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # as newer and older drivers call them
BUSY = 50  # per cent, from which on a second counts as one of work


def facts(commands):
    """All that nvidia-smi tells of the card and its driver; or why not."""
    if not shutil.which("nvidia-smi"):
        return "there is no nvidia-smi"
    return commands.run("nvidia-smi", "-q", ours=False, seconds=10).stdout


def is_known(field):
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=" + field, "--format=csv"], capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def new_path(folder):
    """Of the next log; of those before some may be lost."""
    paths = (os.path.join(folder, f"clocks-{number}.csv") for number in itertools.count(1))
    return next(path for path in paths if not os.path.exists(path))


class Clocks:
    """Logs to a file until it is closed, a line at a time: what stands in a buffer would be lost then."""

    def __init__(self, path):
        self.child = None
        reasons = next(filter(is_known, REASONS), None) if shutil.which("nvidia-smi") else None
        by_line = ["stdbuf", "-oL"] if shutil.which("stdbuf") else []
        if reasons:
            with open(path, "w", encoding="utf-8") as file:
                self.child = subprocess.Popen(
                    [*by_line, "nvidia-smi", "--query-gpu=" + ",".join([*FIELDS, reasons]), "--format=csv,nounits", "-l", "1"],
                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=with_us())

    def close(self):
        if self.child:
            kill(self.child)


def tell(paths):
    """Of the seconds with work: clock and power in the middle and at most, and the reasons for throttling seen."""
    rows = []
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [[cell.strip() for cell in line.split(",")] for line in file]
        rows += [line for line in lines if len(line) == len(FIELDS) + 1]
    busy = [row for row in rows if row[6].isdecimal() and int(row[6]) >= BUSY]
    if not busy:
        return "no clocks were logged"

    def column(index):
        return [float(row[index]) for row in busy if row[index].replace(".", "", 1).isdecimal()] or [0.0]

    return (f"SM clock {statistics.median(column(2)):.0f} MHz in the median of {len(busy)} s of work, {min(column(2)):.0f} to "
            f"{max(column(2)):.0f}; memory {statistics.median(column(3)):.0f} MHz; {statistics.median(column(4)):.0f} W, at "
            f"most {max(column(4)):.0f}; {max(column(5)):.0f} C at most; throttle reasons {', '.join(sorted({row[8] for row in busy}))}")
