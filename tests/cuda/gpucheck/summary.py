"""What came of the checks, on a page."""

import os

from . import clocks
from .state import writable

GIB = 1 << 30
LEGEND = ("Times are ms a step. Predicted: by the simulator with the profile measured here, and by the device's description. Off: "
          "predicted over measured, less one; within 3 % holds, by description within 15 %. Measured: the steady period; traced: "
          "with time stamps around every op and copy. Overhead: over a bare loop of the same calls, without events; within 1 % holds. "
          "Share: of the memory with everything resident.")


def write(path, head, state, checks, left):
    with writable(path + ".part") as file:
        print(f"# {head['device']}", "", *(f"{key}: {value}  " for key, value in head.items()), "", sep="\n", file=file)
        for line in lines_of(state, checks, left):
            print(line, file=file)
    os.replace(path + ".part", path)


def lines_of(state, checks, left):
    """The page's lines. `left`: how many checks are not through."""
    passed, failed = count(state, checks)
    again = sum(row["ok"] is False for check in checks if is_tried_again(state, check) for row in state.rows(check.name))
    yield (f"{passed} rows passed, {failed} failed. " +
           (f"{again} more failed in checks that are tried again. " if again else "") +
           (f"{left} of {len(checks)} checks are not through." if left else f"All {len(checks)} checks are through."))
    yield ""
    yield clocks.tell(sorted(state.path("logs", name) for name in os.listdir(state.path("logs")) if name.startswith("clocks-")))
    yield ""
    yield LEGEND
    yield ""
    yield from steps(state, checks)
    yield from beyond(state, checks)
    yield from beside(state, checks)
    yield from words(state, checks)


def is_tried_again(state, check):
    return not state.outcome(check.name) and not state.is_cut_off(check.name)


def count(state, checks):
    """Rows that passed, and that failed; what is left out for the sake of a failed check has failed as well."""
    rows = [row for check in checks if state.outcome(check.name) for row in state.rows(check.name)]
    blocked = [state.blocked_by(check.needs) for check in checks]
    left_out = sum(by is not None and by[1] == "failed" for by in blocked)
    return sum(row["ok"] is True for row in rows), sum(row["ok"] is False for row in rows) + left_out


# --- Tables ----------------------------------------------------------------------------------------------------------


def table(title, head, rows):
    if not rows:
        return []
    return [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head),
            *("| " + " | ".join("" if cell is None else str(cell) for cell in row) + " |" for row in rows), ""]


def gib(size):
    return f"{size / GIB:.2f}"


def steps(state, checks):
    found = [(check.name, state.gives(check.name, "step"), state.gives(check.name, "described_ms")) for check in checks]
    found = [(name, step, described) for name, step, described in found if step]
    whole = ("traced", "--graph", "its prediction", "bare loop", "overhead", "with --graph")
    keys = ("traced_ms", "graph_ms", "graph_predicted_ms", "bare_ms", "overhead", "graph_overhead")
    yield from table("Predicted against measured, ms", ("step", "peak GiB", "predicted", "measured", "off", "by description", *whole),
                     [(name, gib(step["peak_bytes"]), step["predicted_ms"], step["measured_ms"], step["off"], described,
                       *(step.get(key) for key in keys)) for name, step, described in found if "graph_ms" in step])
    yield from table("Policies, ms", ("step", "share %", "peak GiB", "rounds", "moved GiB", "recomputed", "predicted", "traced",
                                      "off", "over resident"),
                     [(name, step["share"], gib(step["peak_bytes"]), step["rounds"], gib(step["moved_bytes"]),
                       step["recompute_ms"], step["predicted_ms"], step["measured_ms"], step["off"], over_resident(state, step))
                      for name, step, _ in found if "graph_ms" not in step])


def over_resident(state, step):
    resident = state.gives(step["resident"], "step")
    return resident and f"{step['traced_ms'] / resident['traced_ms'] - 1:+.1%}"


def beyond(state, checks):
    found = [state.gives(check.name, "beyond") for check in checks]
    yield from table("A batch that does not fit, ms", ("batch", "policy", "peak GiB", "predicted", "measured", "off"),
                     [(one["batch"], plan["policy"], gib(plan["peak_bytes"]), plan["predicted_ms"], plan["measured_ms"], plan["off"])
                      for one in found if one for plan in one["plans"]])


def beside(state, checks):
    theirs = [state.gives(check.name, "pytorch") for check in checks]
    yield from table("PyTorch on the same card", ("model", "batch", "precision", "mode", "step ms", "peak GiB", "version"),
                     [(told["model"], told["batch"], told["precision"], told["mode"], told["step_ms"], gib(told["peak_bytes"]),
                       told["torch"]) for told in theirs if told])


# --- The rest --------------------------------------------------------------------------------------------------------


def words(state, checks):
    """What failed, what cannot be, and what no table has; the logs in the archive have everything."""
    lines, unfit, left = [], [], []
    for check in checks:
        outcome, blocked = state.outcome(check.name), state.blocked_by(check.needs)
        if blocked and blocked[1] == "failed":
            lines.append(f"- FAILED: {check.name}: left out, it needs {blocked[0]}")
        elif blocked:
            unfit.append(f"{check.name} (it needs {blocked[0]})")
        elif outcome == "unfit":
            unfit.append(f"{check.name} ({state.rows(check.name)[-1]['why']})")
        elif outcome == "passed":
            unfit += [f"{check.name} in full ({row['why']})" for row in state.rows(check.name) if row["ok"] is None and "why" in row]
        elif not outcome:
            left.append(check.name)
        lines += [line(check, row) for row in state.rows(check.name) if is_told(state, check, row)]
    for name, those in (("cannot be", unfit), ("not through", left)):
        if those:
            lines.append(f"- {name}: {'; '.join(those)}")
    return ["## Checks", "", *lines] if lines else []


def is_told(state, check, row):
    if row["ok"] is None or state.is_cut_off(check.name):
        return False
    return not row["ok"] or not state.gives(check.name, "step")


def line(check, row):
    rest = " ".join(f"{key}={value}" for key, value in row.items() if key not in ("row", "ok"))
    return f"- {'ok' if row['ok'] else 'FAILED'}: {check.name}: {row['row']} {rest}"[:500].rstrip()
