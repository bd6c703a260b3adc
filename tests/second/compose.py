"""Plans that planc does not make by itself, made of those that it makes: several jobs, several iterations in a period, rounds
in another order."""

import mutants
from planfile import Wrong, dumps
from work import expand_rows


def work_of(rows):
    return expand_rows(tuple(rows.graph_lines), rows.header["graphs"], tuple(map(dumps, rows.jobs)),
                       rows.header.get("replicas", 1))


def renamed(rows, section, **changes):
    """The rows of a section with numbers changed by functions: of residencies r, events e, instances n, buffers b."""
    result = []
    for row in getattr(rows, section):
        new = dict(row)
        for key, change in changes.items():
            for name in ("r", "from") if key == "r" else (key,):
                if new.get(name, -1) >= 0:
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
    first = [{**row, "e": row["e"] + events} if "lag" in row else row for row in rows.body]
    second = [mutants.marked({**row, "e": row["e"] - events}, "lag", False) if "lag" in row else row
              for row in renamed(rows, "body", **later)]
    result.body = first + second
    for name in ("prologue", "epilogue"):
        setattr(result, name, renamed(rows, name, e=later["e"]))
    result.header["events"] = 2 * events
    mutants.renumber(result)
    result.count()
    return result


def residencies_at_end(rows):
    """Of each boundary row, the residency that a body leaves."""
    open_now = {number: row["boundary"] for number, row in enumerate(rows.boundary)}
    for row in rows.body:
        if row["i"] == "acquire":
            open_now[row["r"]] = row["b"]
        elif row["i"] == "release":
            del open_now[row["r"]]
    left = {buffer: number for number, buffer in open_now.items()}
    return {number: left[row["boundary"]] for number, row in enumerate(rows.boundary)}


def in_memories(rows, numbers, starts=None):
    """The same plan with other numbers for its memories, and what lies in each so far behind its start. The rows of memories
    are left as they are."""
    result = rows.copy()
    result.links = [{**row, "link": [numbers[end] for end in row["link"]]} for row in rows.links]
    result.streams = [{**row, "memory": numbers[row["memory"]]} if "memory" in row else row for row in rows.streams]

    def changed(row):
        if "m" in row:
            return {**row, "m": numbers[row["m"]], "at": row["at"] + (starts[row["m"]] if starts else 0)}
        if row.get("wsb") and starts:
            return {**row, "ws": row["ws"] + starts[rows.streams[row["s"]]["memory"]]}
        return row
    for name in ("boundary", *mutants.SECTIONS):
        setattr(result, name, list(map(changed, getattr(rows, name))))
    return result


def store(random, rows):
    """The same plan with a memory of storage, in which half of what the host's held lies, at the same addresses. The storage
    has the host's links."""
    host, user = len(rows.memories) - 2, len(rows.memories) - 1
    result = in_memories(rows, [*range(user), user + 1])
    storage = user
    result.memories.insert(storage, {**rows.memories[host], "memory": "storage"})
    result.links += [{**row, "link": [storage if end == host else end for end in row["link"]]}
                     for row in result.links if host in row["link"]]
    slots = sorted({row["at"] for row in mutants.acquired(rows).values() if row["m"] == host})
    moved = {(host, at) for at in slots if random.random() < 0.5}
    for name in ("boundary", *mutants.SECTIONS):
        section = getattr(result, name)
        section[:] = [{**row, "m": storage} if (row.get("m"), row.get("at")) in moved else row for row in section]
    result.count()
    return result


def link_all(rows):
    """The same plan where every engine links every memory to every other."""
    result = rows.copy()
    first, memories = {}, range(len(rows.memories))
    for row in rows.links:
        first.setdefault(row["engine"], row)
    result.links = [{**row, "link": [start, end]} for row in first.values()
                    for start in memories for end in memories if start != end]
    result.count()
    return result


def behind(one, other):
    """A memory with the arena of the other behind its own, and where that starts."""
    align = max(one["align"], other["align"])
    start = -(-one["arena"] // align) * align
    arena = start + other["arena"]
    budget = -1 if one["budget"] == -1 else max(one["budget"], arena + one["reserved"])
    return {**one, "budget": budget, "arena": arena, "align": align}, start


def join_memories(one, other, same_gpu):
    """The memories of both: the rows, and for each plan the number and the start of each of its memories."""
    mine, theirs = mutants.devices(one), mutants.devices(other)
    first = 0 if same_gpu else mine
    result = one.memories[:mine] + [{**row, "gpu": number + first} for number, row in enumerate(other.memories[:theirs])
                                    if number + first >= mine]
    count = len(result)
    result += one.memories[mine:]
    numbers = [[*range(mine), count, count + 1], [*range(first, first + theirs), count, count + 1]]
    starts = [0] * (theirs + 2)
    for memory, row in enumerate(other.memories[:-1]):
        if numbers[1][memory] < mine or numbers[1][memory] == count:
            result[numbers[1][memory]], starts[memory] = behind(result[numbers[1][memory]], row)
    return result, numbers, starts


def join(random, one, other, same_gpu):
    """A plan of the jobs of both, their bodies woven into each other at random. The other's engines are further ones."""
    works = work_of(one), work_of(other)
    n, b = len(works[0].instances), len(works[0].buffers)
    memories, numbers, starts = join_memories(one, other, same_gpu)
    one, other = in_memories(one, numbers[0]), in_memories(other, numbers[1], starts)
    result = one.copy()
    result.memories = memories
    head, tail = one.header, other.header
    first, second = len(one.boundary), len(other.boundary)
    same_graph = one.graph_lines == other.graph_lines
    for key in ("events", *(() if same_graph else ("graphs", "tensors", "ops"))):
        result.header[key] = head[key] + tail[key]
    if not same_graph:
        result.graph_lines = one.graph_lines + other.graph_lines
    graph, engines = 0 if same_graph else head["graphs"], 1 + max(row["engine"] for row in one.links)
    result.links = one.links + [{**row, "engine": row["engine"] + engines} for row in other.links]
    result.jobs = one.jobs + [{**row, "job": row["job"] + graph} for row in other.jobs]
    result.streams = one.streams + [
        {**row, "job": row["job"] + len(one.jobs), **({"engine": row["engine"] + engines} if "engine" in row else {})}
        for row in other.streams]
    result.algorithms = one.algorithms + other.algorithms
    result.boundary = one.boundary + [{**row, "boundary": row["boundary"] + b} for row in other.boundary]
    for name in mutants.SECTIONS:
        mine = renamed(one, name, r=lambda r: r if r < first else r + second)
        theirs = renamed(other, name, n=lambda x: x + n, b=lambda x: x + b, e=lambda x: x + head["events"],
                         r=lambda r: r + first if r < second else r + head["residencies"] + first,
                         s=lambda s: s + len(one.streams), a=lambda a: a + len(one.algorithms))
        woven = []
        while mine or theirs:
            from_mine = mine and (not theirs or name != "body" or random.random() < 0.5)
            woven.append((mine if from_mine else theirs).pop(0))
        setattr(result, name, woven)
    mutants.renumber(result)
    result.count()
    return result


def emigrate(random, rows):
    """The same plan where one op of the body runs on a further GPU: what it reads is copied there, and back what it writes, by
    an engine in between."""
    new = mutants.devices(rows)
    result = in_memories(rows, [m + (m >= new) for m in range(len(rows.memories))])
    at = random.choice([at for at, row in enumerate(rows.body) if row["i"] == "exec"])
    row, known, end = rows.body[at], mutants.acquired(rows), 0
    home, engine = rows.streams[row["s"]], 1 + max(link["engine"] for link in rows.links)
    result.links += [{"link": ends, "engine": engine, "rate": 1, "latency": 0}
                     for ends in ([home["memory"], new], [new, home["memory"]])]
    there, copier = len(rows.streams), len(rows.streams) + 1
    result.streams += [{"stream": "compute", "job": home["job"], "memory": new},
                       {"stream": "copy", "job": home["job"], "engine": engine}]
    opened, brought, returned, closed, use = [], [], [], [], list(row["use"])
    for number, access in enumerate(work_of(rows).instances[row["n"]].accesses):
        if use[number] < 0:
            continue
        old, use[number] = known[use[number]], rows.header["residencies"] + number
        ends = {"r": use[number], "from": old["r"]}, {"r": old["r"], "from": use[number]}
        copies = [{"i": "copy", **ways, "bytes": old["bytes"], "s": copier} for ways in ends]
        opened.append({**old, "r": use[number], "m": new, "at": end})
        brought += copies[:access.read is not None]
        returned += copies[1:] if access.write is not None else []
        closed.append({"i": "release", "r": use[number]})
        end += -(-old["bytes"] // 256) * 256

    def after(first, then):
        event = result.header["events"]
        result.header["events"] += 1
        return [{"i": "record", "e": event, "s": first}, {"i": "wait", "e": event, "s": then}]
    moved = {**row, "s": there, "ws": end if row["wsb"] else 0, "use": use}
    result.memories.insert(new, {"memory": "device", "gpu": new, "bytes": -1, "budget": -1, "reserved": 0,
                                 "arena": end + row["wsb"], "align": 256})
    result.body[at:at + 1] = [*opened, *after(row["s"], copier), *brought, *after(copier, there), moved,
                              *after(there, copier), *returned, *after(copier, row["s"]), *closed]
    mutants.renumber(result)
    result.count()
    return result
