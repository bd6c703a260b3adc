"""What `make check` takes of many cases that are alike: a part, the same every time, in which all that differs between them
stands at least once. With SAMPLES=all in the environment (`make fuzz`) all of them are taken. tests/support/unit.h has the same
for unit tests."""

import os

TAKES_ALL = os.environ.get("SAMPLES") == "all"


def sampled(cases, part=2, first=0):
    """Of a list every so manieth from the first on, or all."""
    return cases if TAKES_ALL else cases[first % part::part]
