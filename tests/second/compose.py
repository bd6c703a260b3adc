"""Plans that planc does not make by itself, made of those that it makes: several jobs, several iterations in a period, rounds
in another order."""

import mutants
from planfile import Wrong, dumps
from work import expand_rows


def work_of(rows):
    return expand_rows(tuple(rows.graph_lines), rows.header["graphs"], tuple(map(dumps, rows.jobs)))


def renamed(rows, section, **changes):
    """The rows of a section with numbers changed by functions: of residencies r, events e, instances n, buffers b."""
    result = []
    for row in getattr(rows, section):
        new = dict(row)
        for key, change in changes.items():
            for name in ("r", "from") if key == "r" else (key,):
                if name in new:
                    new[name] = change(new[name])
        if "use" in new and "r" in changes:
            new["use"] = [use if use < 0 else changes["r"](use) for use in new["use"]]
        result.append(new)
    return result


def reorder(rows, order):
    """The same plan where job 0 has this order."""
    result = rows.copy()
    before = work_of(rows)
    result.jobs[0] = {**rows.jobs[0], "order": order}
    after = work_of(result)
    instances = {instance.key: number for number, instance in enumerate(after.instances)}
    buffers = {buffer.key: number for number, buffer in enumerate(after.buffers)}
    for name in mutants.SECTIONS:
        setattr(result, name, renamed(rows, name, n=lambda n: instances[before.instances[n].key],
                                      b=lambda b: buffers[before.buffers[b].key]))
    result.boundary = [{**row, "boundary": buffers[before.buffers[row["boundary"]].key]} for row in rows.boundary]
    result.count()
    return result


def legal_orders(rows):
    """Two neighbours exchanged, where that is legal."""
    count = sum(line.startswith('{"op"') for line in rows.graph_lines)
    for at in range(count - 1):
        order = list(range(count))
        order[at:at + 2] = at + 1, at
        try:
            yield reorder(rows, order)
        except Wrong:
            continue


def repeat(rows):
    """The same plan with two iterations in a period, the second as the first."""
    result = rows.copy()
    before = work_of(rows)
    result.jobs = [{**row, "iterations": 2} for row in rows.jobs]
    after = work_of(result)
    lasting = [buffer.persists for buffer in before.buffers]
    fresh = iter(range(len(lasting), len(after.buffers)))
    buffers = [number if lasts else next(fresh) for number, lasts in enumerate(lasting)]
    events, residencies, instances = rows.header["events"], rows.header["residencies"], len(before.instances)
    at_end = residencies_at_end(rows)
    later = {"n": lambda n: n + instances, "b": lambda b: buffers[b], "e": lambda e: e + events,
             "r": lambda r: at_end.get(r, r + residencies)}
    first = [{**row, "e": row["e"] + events} if row.get("lag") else row for row in rows.body]
    second = [{**row, "e": row["e"] - events, "lag": 0} if row.get("lag") else row for row in renamed(rows, "body", **later)]
    result.body = first + second
    for name in ("prologue", "epilogue"):
        setattr(result, name, renamed(rows, name, e=later["e"]))
    result.header["events"] = 2 * events
    mutants.renumber(result)
    result.count()
    return result


def residencies_at_end(rows):
    """Of each boundary row that is resident, the residency that a body leaves."""
    open_now = {number: row["boundary"] for number, row in enumerate(rows.boundary) if "at" in row}
    for row in rows.body:
        if row["i"] == "acquire":
            open_now[row["r"]] = row["b"]
        elif row["i"] == "release":
            del open_now[row["r"]]
    left = {buffer: number for number, buffer in open_now.items()}
    return {number: left[row["boundary"]] for number, row in enumerate(rows.boundary) if "at" in row}


def up(size):
    return -(-size // 256) * 256


def join(random, one, other, same_gpu):
    """A plan of the jobs of both, their bodies woven into each other at random."""
    result = one.copy()
    head, tail = one.header, other.header
    works = work_of(one), work_of(other)
    n, b = len(works[0].instances), len(works[0].buffers)
    arena, host = up(head["arena"]) if same_gpu else 0, up(head["host_arena"])
    gpus = 0 if same_gpu else head["gpus"]
    first, second = len(one.boundary), len(other.boundary)
    same_graph = one.graph_lines == other.graph_lines
    for key in ("events", *(() if same_graph else ("graphs", "tensors", "ops"))):
        result.header[key] = head[key] + tail[key]
    result.header["gpus"] = max(head["gpus"], tail["gpus"] + gpus)
    result.header["arena"] = tail["arena"] + arena if same_gpu else max(head["arena"], tail["arena"])
    result.header["host_arena"] = host + tail["host_arena"]
    result.header["budget"] = result.header["arena"] + one.device["reserved"]
    result.predictions = {**one.predictions, "peak": result.header["budget"], "host_peak": result.header["host_arena"]}
    if not same_graph:
        result.graph_lines = one.graph_lines + other.graph_lines
    graph = 0 if same_graph else head["graphs"]
    result.jobs = one.jobs + [{**row, "job": row["job"] + graph} for row in other.jobs]
    result.streams = one.streams + [{**row, "job": row["job"] + len(one.jobs), "gpu": row["gpu"] + gpus}
                                    for row in other.streams]
    result.algorithms = one.algorithms + other.algorithms
    result.boundary = one.boundary + [
        {"boundary": row["boundary"] + b, **({"at": row["at"] + arena} if "at" in row else {"home": row["home"] + host})}
        for row in other.boundary]

    def shifted(name):
        for row in renamed(other, name, n=lambda x: x + n, b=lambda x: x + b, e=lambda x: x + head["events"],
                           r=lambda r: r + first if r < second else r + head["residencies"] + first):
            for key, by in (("s", len(one.streams)), ("a", len(one.algorithms)), ("at", arena)):
                if key in row:
                    row[key] += by
            if row.get("h", -1) >= 0:
                row["h"] += host
            if row.get("wsb"):
                row["ws"] += arena
            yield row

    for name in mutants.SECTIONS:
        mine = renamed(one, name, r=lambda r: r if r < first else r + second)
        theirs, woven = list(shifted(name)), []
        while mine or theirs:
            from_mine = mine and (not theirs or name != "body" or random.random() < 0.5)
            woven.append((mine if from_mine else theirs).pop(0))
        setattr(result, name, woven)
    mutants.renumber(result)
    result.count()
    return result

