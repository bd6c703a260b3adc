"""Mutants of plans: each has one or two changes that could break it, or could not. What the header counts is kept right,
unless that is the change. The same random numbers give the same mutants."""

from planfile import dumps, parse_row

SECTIONS = ("prologue", "body", "epilogue")
LISTS = ("memories", "links", "streams", "algorithms", "boundary", "maps")
KINDS = ("memories", "links", "predictions", "graphs", "jobs", "streams", "algorithms", "boundary", "maps", *SECTIONS)
COUNTS = ("residencies", "events", "uses", *LISTS, *SECTIONS)
WORKING, ORDERING = ("exec", "copy"), ("wait", "record")
MARKS = {"lag": ("wait",), "peers": ("copy", "wait")}  # what only some rows have, and of which instructions
SIZES = ("bytes", "budget", "reserved", "arena", "chunk")
STEPS = (64, 128, 256, 512, 1024, 2048, 4096)


class Rows:
    """A plan's rows by kind. A copy shares the rows, which are never changed in place."""

    def __init__(self, lines):
        header, self.device = map(parse_row, lines[:2])
        counts = {**header, "predictions": 1, "graphs": sum(header[key] for key in ("graphs", "tensors", "ops"))}
        self.header, self.text, at = header, {}, 2
        for name in KINDS:
            part = lines[at:at + counts[name]]
            if name == "graphs":
                self.graph_lines = part
            else:
                rows = list(map(parse_row, part))
                self.text.update((id(row), (line, row)) for row, line in zip(rows, part, strict=True))
                setattr(self, name, rows)
            at += counts[name]

    def copy(self):
        result = object.__new__(Rows)
        result.__dict__.update(self.__dict__)
        result.header = dict(self.header)
        for name in ("jobs", *LISTS, *SECTIONS):
            setattr(result, name, list(getattr(self, name)))
        return result

    def count(self):
        for name in ("jobs", *LISTS, *SECTIONS):
            self.header[name] = len(getattr(self, name))
        self.header["uses"] = sum(len(row.get("use", ())) for name in SECTIONS for row in getattr(self, name))

    def line(self, row):
        known = self.text.get(id(row))
        return known[0] if known and known[1] is row else dumps(row)

    def lines(self):
        lines = [dumps(self.header), dumps(self.device)]
        for name in KINDS:
            lines += self.graph_lines if name == "graphs" else map(self.line, getattr(self, name))
        return lines


def devices(rows):
    return sum(row["memory"] == "device" for row in rows.memories)


def acquired(rows):
    """The acquire of every residency."""
    return {row["r"]: row for row in rows.prologue + rows.body if row["i"] == "acquire"}


def owner(rows, at):
    """The memory whose map row this is."""
    for number, row in enumerate(rows.memories):
        at -= row.get("maps", 0)
        if at < 0:
            return number
    raise IndexError


def place(random, rows, kinds=None, residencies=None):
    """A section and an index in it, of any instruction or of one of these kinds and residencies."""
    places = [(name, at) for name in SECTIONS for at, row in enumerate(getattr(rows, name))
              if (not kinds or row["i"] in kinds) and (residencies is None or row["r"] in residencies)]
    if not places:
        return None
    if random.random() < 0.3:  # the ends of a run are short
        places = [place for place in places if place[0] != "body"] or places
    return random.choice(places)


def drop(random, rows):
    name, at = place(random, rows)
    del getattr(rows, name)[at]


def drop_order(random, rows):
    chosen = place(random, rows, ORDERING)
    if chosen:
        del getattr(rows, chosen[0])[chosen[1]]


def double(random, rows):
    name, at = place(random, rows)
    section = getattr(rows, name)
    section.insert(random.randint(max(0, at - 8), min(len(section), at + 8)), section[at])


def move_from(random, rows, chosen, distances=(1, 1, 2, 4, 16, 64)):
    name, at = chosen
    section = getattr(rows, name)
    row = section.pop(at)
    if random.random() < 0.05:
        section = getattr(rows, random.choice(SECTIONS))
        at = random.randint(0, len(section))
    far = random.choice(distances)
    section.insert(random.randint(max(0, at - far), min(len(section), at + far)), row)


def move(random, rows):
    move_from(random, rows, place(random, rows))


def move_order(random, rows):
    move_from(random, rows, place(random, rows, ORDERING) or place(random, rows))


def renumber(rows):
    """Numbers the body's residencies by the order of its acquires."""
    first = len(rows.boundary)
    opened = [row["r"] for row in rows.body if row["i"] == "acquire"]
    number = {**{r: r for r in range(first)}, -1: -1, **{r: first + k for k, r in enumerate(opened)}}
    rows.header["residencies"] = first + len(opened)
    for at, row in enumerate(rows.body):
        changed = {key: number.get(row[key], row[key]) for key in ("r", "from") if key in row}
        if "use" in row:
            changed["use"] = [number.get(use, use) for use in row["use"]]
        if any(row[key] != value for key, value in changed.items()):
            rows.body[at] = {**row, **changed}


def move_lifetime(random, rows, residencies=None):
    """Moves an acquire or a release; residencies keep the order of their numbers."""
    chosen = place(random, rows, ("acquire", "release"), residencies)
    if chosen:
        move_from(random, rows, chosen)
        renumber(rows)


def move_parked(random, rows):
    """Moves an acquire or a release in a memory that is no device's."""
    first = devices(rows)
    move_lifetime(random, rows, {number for number, row in acquired(rows).items() if row["m"] >= first})


def swap(random, rows):
    name, at = place(random, rows)
    section = getattr(rows, name)
    other = min(len(section) - 1, at + 1) if random.random() < 0.6 else random.randrange(len(section))
    section[at], section[other] = section[other], section[at]


def marked(row, mark, there):
    """The instruction with what it may have, or without."""
    bare = {key: value for key, value in row.items() if key != mark}
    if not there or row["i"] not in MARKS[mark]:
        return bare
    whole = {**bare, mark: 1}
    return {key: whole[key] for key in ("i", "r", "from", "e", "lag", "peers", "bytes", "t", "s") if key in whole}


def changed(random, rows, row, kept):
    """The instruction with another value of a key that is none of those kept; a wait comes to have a lag, or loses it."""
    key = random.choice([*(key for key in row if key not in (*kept, "lag")), *(["lag"] if row["i"] == "wait" else [])])
    return marked(row, "lag", "lag" not in row) if key == "lag" else {**row, key: other_value(random, rows, row, key)}


def other_value(random, rows, row, key):
    """Of this key of an instruction."""
    if key in MARKS:
        return random.choice((0, 2, -1))
    value, header = row[key], rows.header
    if key in ("at", "ws", "bytes", "wsb"):
        if key in ("ws", "at") and random.random() < 0.3:
            rivals = [other[key] for name in SECTIONS for other in getattr(rows, name) if key in other]
            return random.choice(rivals)
        return stepped(random, value)
    if key == "use":
        result = list(value)
        if result:
            at = random.randrange(len(result))
            if random.random() < 0.2:
                other = random.randrange(len(result))
                result[at], result[other] = result[other], result[at]
            elif random.random() < 0.2:
                del result[at]
            else:
                result[at] = near(random, result[at], header["residencies"], -1)
        return result
    most = {"r": header["residencies"], "from": header["residencies"], "e": header["events"], "s": header["streams"],
            "a": header["algorithms"], "m": len(rows.memories), "busy": 2000000}.get(key, value + 4)
    return near(random, value, most, -1 if row["i"] == "copy" and key in ("r", "from") else 0)


def stepped(random, value, least=0):
    return max(least, value + random.choice((-1, 1)) * random.choice(STEPS))


def near(random, value, most, least):
    """A number up to one too large."""
    if random.random() < 0.5:
        return max(least, value + random.choice((-1, 1)))
    return random.randint(least, max(least, most if random.random() < 0.02 else most - 1))


def change(random, rows):
    name, at = place(random, rows)
    section = getattr(rows, name)
    key = random.choice([key for key in section[at] if key not in ("i", "re")])
    section[at] = {**section[at], key: other_value(random, rows, section[at], key)}


def change_order(random, rows):
    chosen = place(random, rows, ORDERING)
    if chosen:
        section, at = getattr(rows, chosen[0]), chosen[1]
        section[at] = changed(random, rows, section[at], ("i", "peers"))


def change_place(random, rows):
    chosen = place(random, rows, ("acquire", "exec"))
    if chosen:
        section, at = getattr(rows, chosen[0]), chosen[1]
        key = "ws" if section[at]["i"] == "exec" else random.choice(("at", "at", "m"))
        section[at] = {**section[at], key: other_value(random, rows, section[at], key)}


def change_slot(random, rows, slots=None):
    """Everything in one place of a memory gets another place, sometimes in another memory, in all sections."""
    slots = slots or sorted({(row["m"], row["at"]) for row in acquired(rows).values()})
    memory, old = random.choice(slots)
    changed = {"m": random.randrange(len(rows.memories)) if random.random() < 0.2 else memory,
               "at": random.choice(slots)[1] if random.random() < 0.3 else stepped(random, old)}
    for name in ("boundary", *SECTIONS):
        section = getattr(rows, name)
        section[:] = [{**row, **changed} if "at" in row and (row["m"], row["at"]) == (memory, old) else row for row in section]


def move_boundary(random, rows):
    """A boundary buffer to another place."""
    change_slot(random, rows, [(row["m"], row["at"]) for row in rows.boundary])


def change_event(random, rows):
    """Everything about one event becomes another event's, in one section or all."""
    count = rows.header["events"]
    if not count:
        return
    old, new = random.randrange(count), random.randrange(count)
    for name in SECTIONS if random.random() < 0.5 else ("body",):
        section = getattr(rows, name)
        section[:] = [{**row, "e": new} if row.get("e") == old else row for row in section]


def swap_streams(random, rows):
    """Of two instructions, or of two rows in the list of streams."""
    if random.random() < 0.2:
        change_list(random, rows, "streams")
        return
    one, other = (place(random, rows, WORKING + ORDERING) for _ in range(2))
    first, second = getattr(rows, one[0])[one[1]], getattr(rows, other[0])[other[1]]
    getattr(rows, one[0])[one[1]] = {**first, "s": second["s"]}
    getattr(rows, other[0])[other[1]] = {**second, "s": first["s"]}


def again(random, rows):
    """A recompute more, or one that is none."""
    chosen = place(random, rows, ("exec",))
    if not chosen:
        return
    section, at = getattr(rows, chosen[0]), chosen[1]
    row = {"i": "exec", "n": section[at]["n"]}
    if "re" not in section[at]:
        row["re"] = 1
    row.update((key, value) for key, value in section[at].items() if key not in row and key != "re")
    if random.random() < 0.5:
        section[at] = row
    else:
        section.insert(random.randint(at, min(len(section), at + 6)), row)


def add(random, rows):
    """An instruction more: what is there twice, or what orders more."""
    name, at = place(random, rows)
    section, header = getattr(rows, name), rows.header
    residency, stream = random.randrange(max(1, header["residencies"])), random.randrange(header["streams"])
    size = acquired(rows).get(residency, {"bytes": 256})["bytes"]
    other = random.randrange(-1, header["residencies"])
    event = random.randrange(max(1, header["events"]))
    kind = random.randrange(6)
    peers = {"peers": 1} if random.random() < (0.5 if header.get("replicas") else 0.02) else {}
    if kind < 2:
        row = marked({"i": "wait", "e": event, **peers, "s": stream}, "lag", kind)
    elif kind == 2:
        row = {"i": "record", "e": header["events"], "s": stream}
        header["events"] += 1
    elif kind == 3:
        row = {"i": "copy", "r": residency, "from": other, **peers, "bytes": size, "s": stream}
    elif kind == 4:
        row = {"i": "copy", "r": other, "from": residency, **peers, "bytes": size, "s": stream}
    else:
        row = {"i": "release", "r": residency}
    section.insert(at, row)


def change_list(random, rows, name=None):
    """A row of memories, links, streams, algorithms, boundary or mappings: changed, dropped, doubled, or swapped with
    another."""
    name = name or random.choice([name for name in LISTS if getattr(rows, name)])
    section = getattr(rows, name)
    at, what = random.randrange(len(section)), random.random()
    row = section[at]
    if what < 0.2:
        if name == "maps" and random.random() < 0.8:
            count_maps(rows, at, -1 if what < 0.1 else 1)
        section[at:at + 1] = [] if what < 0.1 else [row, row]
    elif what < 0.4:
        other = random.randrange(len(section))
        section[at], section[other] = section[other], section[at]
    else:
        section[at] = {"memories": other_memory, "links": other_link, "streams": other_stream,
                       "algorithms": lambda *_: row, "boundary": other_boundary, "maps": other_map}[name](random, rows, row)


def count_maps(rows, at, more):
    """There are to be so many more map rows of the memory whose this one is."""
    number = owner(rows, at)
    rows.memories[number] = {**rows.memories[number], "maps": rows.memories[number]["maps"] + more}


def other_memory(random, rows, row):
    key = "budget" if random.random() < 0.2 and "budget" in row else random.choice(list(row))
    if key == "memory":
        return {**row, key: random.choice(("device", "host", "storage", "user"))}
    if key == "align":
        return {**row, key: random.choice((0, 64, 128, 256, 512, 768, 1024, 4096, 2 ** 30, 2 ** 31))}
    if key == "budget" and random.random() < 0.7:
        return {**row, key: row["arena"] + row["reserved"] + random.choice((-256, -1, 0, 1))}
    if key in SIZES:
        return {**row, key: stepped(random, row[key], -2)}
    return {**row, key: near(random, row[key], row[key] + 4, -1)}


def other_link(random, rows, row):
    key, (start, end) = random.choice(("link", "engine", "rate", "latency", "bus")), row["link"]
    if key == "link":
        ends = near(random, start, len(rows.memories), -1), near(random, end, len(rows.memories), -1)
        return {**row, key: random.choice(([end, start], [ends[0], end], [start, ends[1]]))}
    if key == "bus" and key in row and random.random() < 0.5:
        return {other: row[other] for other in row if other != key}
    if key == "engine":
        return {**row, key: near(random, row[key], 1 + max(link[key] for link in rows.links), -1)}
    return {**row, key: near(random, row.get(key, 0), len(rows.links), -1)}


def other_stream(random, rows, row):
    key = random.choice(list(row))
    if key == "job":
        return {**row, key: near(random, row[key], len(rows.jobs), 0)}
    engines = 1 + max(link["engine"] for link in rows.links)
    if (row["stream"] == "copy") == (key == "stream"):
        return {"stream": "compute", "job": row["job"], "memory": random.randint(0, devices(rows))}
    return {"stream": "copy", "job": row["job"], "engine": random.randint(0, engines)}


def other_boundary(random, rows, row):
    key = random.choice(list(row))
    most = row[key] + 4 if key == "boundary" else len(rows.memories)
    return {**row, key: stepped(random, row[key]) if key == "at" else near(random, row[key], most, 0)}


def other_map(random, rows, row):
    key = random.choice(list(row))
    return {**row, key: max(0, row[key] + random.choice((-1, 1)))}


def change_memory(random, rows):
    at = random.randrange(len(rows.memories) - 1)
    rows.memories[at] = other_memory(random, rows, rows.memories[at])


def add_link(random, rows):
    """A link more, of an engine that there is or of a new one."""
    row = other_link(random, rows, random.choice(rows.links))
    engine = random.randint(0, 1 + max(link["engine"] for link in rows.links))
    rows.links.append({**row, "link": random.sample(range(len(rows.memories)), 2), "engine": engine})


def change_bus(random, rows):
    """Of all links of an engine."""
    engine = random.choice(rows.links)["engine"]
    bus = random.choice((None, 0, 1, random.randint(0, len(rows.links))))
    for at, row in enumerate(rows.links):
        if row["engine"] == engine:
            rows.links[at] = {**{key: row[key] for key in row if key != "bus"}, **({} if bus is None else {"bus": bus})}


def change_job(random, rows):
    at = random.randrange(len(rows.jobs))
    row, rounds = rows.jobs[at], list(rows.jobs[at]["rounds"])
    ops = [parse_row(line) for line in rows.graph_lines if line.startswith('{"op"')]
    what = random.randrange(5)
    if what == 0 and len(rounds) > 1:
        one, other = random.sample(range(len(rounds)), 2)
        rounds[one], rounds[other] = rounds[one] + 1, rounds[other] - 1
        rows.jobs[at] = {**row, "rounds": rounds}
    elif what == 1:
        rows.jobs[at] = {**row, "rounds": rounds[:-1] + [rounds[-1] + random.choice((-1, 1))]}
    elif what == 2:
        rows.jobs[at] = {**row, "batch": row["batch"] + 1, "rounds": rounds[:-1] + [rounds[-1] + 1]}
    elif what == 3:
        rows.jobs[at] = {**row, "iterations": row["iterations"] + random.choice((-1, 1))}
    elif rows.header["graphs"] == 1 and len(ops) > 1:
        order, first = list(row.get("order", range(len(ops)))), random.randrange(len(ops) - 1)
        order[first], order[first + 1] = order[first + 1], order[first]
        rows.jobs[at] = {**row, "order": order}


# --- Replicas ---------------------------------------------------------------------------------------------------------

def of_peers(random, rows, *kinds):
    """A section and an index in it of an instruction that looks at the other replicas, or of one that has to do with one: a
    record of an event that they wait on, what is done with a residency that they copy from, or with one that they copy to."""
    instructions = [(name, at, row) for name in SECTIONS for at, row in enumerate(getattr(rows, name))]
    looking = [(name, at, row) for name, at, row in instructions if "peers" in row]
    if kinds == ("near",):
        events = {row["e"] for _, _, row in looking if row["i"] == "wait"}
        ends = {row[key] for _, _, row in looking if row["i"] == "copy" for key in ("r", "from")}
        looking = [(name, at, row) for name, at, row in instructions
                   if row.get("e") in events or row.get("r") in ends or row.get("from") in ends or
                   ends.intersection(row.get("use", ()))]
    elif kinds:
        looking = [one for one in looking if one[2]["i"] in kinds]
    name, at, _ = random.choice(looking)
    return name, at


def toggle_peers(random, rows):
    """An instruction that looks at the other replicas looks at its own, or the other way round."""
    name, at = of_peers(random, rows) if random.random() < 0.5 else place(random, rows, ("copy", "wait"))
    section = getattr(rows, name)
    section[at] = marked(section[at], "peers", "peers" not in section[at])


def drop_peers(random, rows):
    name, at = of_peers(random, rows)
    del getattr(rows, name)[at]


def move_peers(random, rows):
    kinds = random.choice(((), ("near",)))
    name, at = of_peers(random, rows, *kinds)
    alone = getattr(rows, name)[at]["i"] in ("acquire", "release")
    move_from(random, rows, (name, at), (1, 2, 4, 8, 16, 64))
    if alone:
        renumber(rows)


def change_peers(random, rows):
    """A key of an instruction that looks at the other replicas, or of one that has to do with one."""
    name, at = of_peers(random, rows, *random.choice(((), ("near",))))
    section = getattr(rows, name)
    row = section[at]
    section[at] = changed(random, rows, row, ("i", "re", "peers", "t", "busy"))


def add_peers_wait(random, rows):
    """A wait on the others next to one on the own, or the other way round, or somewhere else."""
    waits = [(name, at) for name in SECTIONS for at, row in enumerate(getattr(rows, name)) if row["i"] == "wait"]
    name, at = of_peers(random, rows, "wait") if random.random() < 0.3 else random.choice(waits)
    section = getattr(rows, name)
    row = section[at]
    added = marked(row, "peers", "peers" not in row or random.random() < 0.3)
    if random.random() < 0.3:
        added = marked(added, "lag", "lag" not in added)
    section.insert(at + random.choice((0, 0, 0, 1, -8, 8)), added)


def peers_event(random, rows):
    """A wait on the others gets an event of its own, recorded where it likes."""
    name, at = of_peers(random, rows, "wait")
    section = getattr(rows, name)
    wait, event = section[at], rows.header["events"]
    rows.header["events"] += 1
    section[at] = {**wait, "e": event}
    stream = random.choice([row["s"] for part in SECTIONS for row in getattr(rows, part)
                            if row["i"] == "record" and row["e"] == wait["e"]] + [random.randrange(rows.header["streams"])])
    sections = [name] if "lag" not in wait else ["prologue", "body"]
    for part in sections:
        there = getattr(rows, part)
        there.insert(random.randint(0, len(there)), {"i": "record", "e": event, "s": stream})


def double_gather(random, rows):
    """The others' gradients are brought twice, or elsewhere."""
    name, at = of_peers(random, rows, "copy")
    section = getattr(rows, name)
    if random.random() < 0.5:
        section.insert(random.randint(max(0, at - 16), min(len(section), at + 16)), section[at])
    else:
        known = acquired(rows)
        key = random.choice(("r", "from"))
        same = random.choice(("b", "bytes", "m"))
        old = known[section[at][key]]
        new = random.choice([other["r"] for other in known.values() if other[same] == old[same]])
        section[at] = {**section[at], key: new}


def fence(rows, at):
    """Before this row of the body, all streams of all replicas wait for each other."""
    event, streams = rows.header["events"], range(1, rows.header["streams"])
    own, others = event + len(streams), event + len(streams) + 1
    rows.header["events"] = others + 1
    rows.body[at:at] = [
        *({"i": "record", "e": event + k, "s": stream} for k, stream in enumerate(streams)),
        *({"i": "wait", "e": event + k, "s": 0} for k in range(len(streams))),
        {"i": "record", "e": own, "s": 0}, {"i": "wait", "e": own, "peers": 1, "s": 0},
        {"i": "record", "e": others, "s": 0}, *({"i": "wait", "e": others, "s": stream} for stream in streams)]


def fence_peers(random, rows):
    """A copy of the others' gradients, now surely in order, is made somewhere else or twice, from or to elsewhere."""
    name, at = of_peers(random, rows, "copy")
    row, known = rows.body[at], acquired(rows)
    what = random.randrange(6)
    if what < 3:
        same = random.choice(("b", "b", "m", "bytes"))
        key = "from" if what < 2 else "r"
        old = known[row[key]]
        row = {**row, key: random.choice([other["r"] for other in known.values() if other[same] == old[same]])}
        start, end = known[row["from"]], known[row["r"]]
        row = {**row, "bytes": start["bytes"], "s": stream_between(random, rows, start["m"], end["m"])}
    if random.random() < 0.8:
        del rows.body[at]
    if what > 1:
        at = random.randint(max(0, at - 64), min(len(rows.body), at + 64))
    fence(rows, at)
    after = len(rows.body)
    fence(rows, at)
    rows.body.insert(at + len(rows.body) - after, row)


def detour(random, rows):
    """The others' gradients are copied to another memory first, or to another place, and from there on."""
    name, at = of_peers(random, rows, "copy")
    row, known = rows.body[at], acquired(rows)
    old, origin = known[row["r"]], known[row["from"]]
    opened, onwards = twin(random, rows, old)
    onwards = {**marked(onwards, "peers", False), "r": old["r"], "from": opened["r"],
               "s": stream_between(random, rows, opened["m"], old["m"])}
    row = {**row, "r": opened["r"], "s": stream_between(random, rows, origin["m"], opened["m"])}
    rows.body[at:at + 1] = [opened, row, onwards, {"i": "release", "r": opened["r"]}]
    for place in (at + 3, at + 2, at + 1) if random.random() < 0.8 else ():
        fence(rows, place)
    renumber(rows)


def bytes_of_peers(random, rows):
    """Of a copy of the others' gradients: those of one of its ends, or near that."""
    name, at = of_peers(random, rows, "copy")
    section, known = getattr(rows, name), acquired(rows)
    row = section[at]
    sizes = [known[row[key]]["bytes"] for key in ("r", "from")] + [0, row["bytes"] * 2, -(-row["bytes"] // 256) * 256]
    section[at] = {**row, "bytes": max(0, random.choice(sizes) + random.choice((0, 0, 0, -1, 1, 256)))}


def gathered(rows):
    """The buffers for the others' gradients, by what is copied to them."""
    known = acquired(rows)
    return {known[row["r"]]["b"] for row in rows.body if "peers" in row and row["i"] == "copy" and row["r"] in known}


def size_of_peers(random, rows):
    """A buffer for the others' gradients gets another size."""
    buffer = random.choice(sorted(gathered(rows)))
    least = random.choice((-256, 256, 1, -1))
    resize(rows, {buffer}, lambda row: max(0, row["bytes"] + least))


def resize(rows, buffers, size):
    """All residencies of these buffers, and copies between them."""
    known = acquired(rows)
    numbers = {number for number, row in known.items() if row["b"] in buffers}
    for at, row in enumerate(rows.body):
        if row["i"] == "acquire" and row["r"] in numbers:
            rows.body[at] = {**row, "bytes": size(row)}
        elif row["i"] == "copy" and "peers" not in row and row["r"] in numbers | {-1} and row["from"] in numbers:
            rows.body[at] = {**row, "bytes": size(known[row["from"]])}


def set_replicas(rows, count):
    header = {key: value for key, value in rows.header.items() if key != "replicas"}
    rows.header = {}
    for key, value in header.items():
        if key == "memories" and count is not None:
            rows.header["replicas"] = count
        rows.header[key] = value


def change_replicas(random, rows):
    """There are more replicas or fewer, or of a plan without, some."""
    now = rows.header.get("replicas")
    if now is None:
        set_replicas(rows, random.choice((0, 1, 2, 2, 3, 4096)))
    else:
        set_replicas(rows, random.choice((None, now - 1, now - 1, now + 1, now + 1, 2, 4096, 4097)))


def other_replicas(random, rows):
    """There are more replicas or fewer, and the buffers for the others' gradients have the size for that; when they get larger,
    places of their own behind all others."""
    now = rows.header["replicas"]
    new = random.choice((2, 3, 4, 5, now + 1, max(2, now - 1), 7, 4096))
    set_replicas(rows, new)
    buffers = gathered(rows)
    resize(rows, buffers, lambda row: row["bytes"] // (now - 1) * (new - 1))
    if new > now and random.random() < 0.9:
        for at, row in enumerate(rows.body):
            if row["i"] == "acquire" and row["b"] in buffers:
                memory = rows.memories[row["m"]]
                start = -(-memory["arena"] // memory["align"]) * memory["align"]
                rows.body[at] = {**row, "at": start}
                rows.memories[row["m"]] = {**memory, "arena": start + row["bytes"], "budget": -1}
    if random.random() < 0.3:
        budget_of_replicas(random, rows)


def budget_of_replicas(random, rows):
    """The host's or the storage's budget is near what its arenas take."""
    at = random.randrange(devices(rows), len(rows.memories) - 1)
    row = rows.memories[at]
    count = rows.header.get("replicas", 1) + random.choice((-1, 0, 0, 0, 1))
    arena = random.choice((row["arena"], row["arena"] + 256))
    rows.memories[at] = {**row, "budget": max(-1, arena * count + row["reserved"] + random.choice((-1, 0, 0, 1)))}
    if random.random() < 0.2:
        rows.memories[at] = {**row, "arena": random.choice((2 ** 51, 2 ** 52, 2 ** 53)), "budget": 2 ** 53}


def change_header(random, rows):
    key = random.choice(COUNTS)
    rows.header[key] = max(0, rows.header[key] + random.choice((-1, 1)))


def change_prediction(random, rows):
    """What is predicted of all jobs or of one, or what predictions are made of."""
    where = random.choice(("all", "job", "device", "device"))
    if where == "all":
        rows.predictions = [other_number(random, rows.predictions[0], ("period", "bound"))]
    elif where == "job":
        at = random.randrange(len(rows.jobs))
        rows.jobs[at] = other_number(random, rows.jobs[at], ("ideal", "busy", "stall"))
    else:
        rows.device = other_number(random, rows.device, [key for key in rows.device if key != "device"])


def other_number(random, row, keys):
    key = random.choice(keys)
    return {**row, key: row[key] + random.choice((1, -1, -row[key] - 1))}


def between(random, rows):
    """The border of two sections moves by a few rows."""
    for first, second in ((rows.prologue, rows.body), (rows.body, rows.epilogue)):
        if random.random() < 0.5:
            first.append(second.pop(0)) if random.random() < 0.5 else second.insert(0, first.pop())


def drop_work(random, rows):
    name, at = place(random, rows, WORKING)
    del getattr(rows, name)[at]


def move_work(random, rows):
    move_from(random, rows, place(random, rows, WORKING), (4, 16, 64))


def retarget(random, rows):
    """A copy or an exec takes another residency of the same buffer, in this memory or another, or of a buffer of the same
    size."""
    known = acquired(rows)
    name, at = place(random, rows, WORKING)
    section = getattr(rows, name)
    row = section[at]
    key = random.choice([key for key in ("r", "from", "use") if key in row])
    use = random.randrange(len(row["use"])) if key == "use" else 0
    old = known.get(row["use"][use] if key == "use" else row[key])
    if not old:
        return
    same = "b" if random.random() < 0.5 else "bytes"
    new = random.choice([other["r"] for other in known.values() if other[same] == old[same]])
    section[at] = {**row, key: [*row["use"][:use], new, *row["use"][use + 1:]] if key == "use" else new}


def shortcut(random, rows):
    """A copy takes what it copies from where that was copied from."""
    origin, found = {}, []
    for at, row in enumerate(rows.body):
        if row["i"] == "copy":
            found += [(at, origin[row["from"]])] if row["from"] in origin else []
            origin[row["r"]] = row["from"]
    at, start = random.choice(found)
    rows.body[at] = {**rows.body[at], "from": start}


def stream_between(random, rows, start, end):
    """A stream for copies from one memory to another, if there is one."""
    engines = {link["engine"] for link in rows.links if link["link"] == [start, end]}
    fit = [number for number, row in enumerate(rows.streams) if row.get("engine", -1) in engines or
           start == end == row.get("memory", -1)]
    return random.choice(fit or range(len(rows.streams)))


def twin(random, rows, old):
    """Another residency of what one holds, somewhere, and the copy to it."""
    memory = old["m"] if random.random() < 0.5 else random.randrange(len(rows.memories) - 1)
    align, arena = rows.memories[memory]["align"], rows.memories[memory]["arena"]
    new = {**old, "r": rows.header["residencies"], "m": memory, "at": max(0, arena - old["bytes"]) // align * align}
    if random.random() < 0.3:
        new["at"] = random.choice(list(acquired(rows).values()))["at"]
    elif random.random() < 0.5:  # where there is surely nothing
        new["at"] = -(-arena // align) * align
        rows.memories[memory] = {**rows.memories[memory], "arena": new["at"] + old["bytes"], "budget": -1}
    peers = {"peers": 1} if rows.header.get("replicas") and random.random() < 0.05 else {}
    return [new, {"i": "copy", "r": new["r"], "from": old["r"], **peers, "bytes": old["bytes"],
                  "s": stream_between(random, rows, old["m"], memory)}]


def residency_at(random, rows, at):
    """The acquire of one that is open at this place in the body."""
    closed = {row["r"] for row in rows.body[:at] if row["i"] == "release"}
    return random.choice([row for row in rows.prologue + rows.body[:at] if row["i"] == "acquire" and row["r"] not in closed])


def relocate(random, rows):
    """A residency gives way to another one of its buffer, in this memory or another, into which a copy brings what it
    holds."""
    at = random.randrange(len(rows.body))
    old = residency_at(random, rows, at)
    rows.body[at:] = [*twin(random, rows, old), {"i": "release", "r": old["r"]}, *rows.body[at:]]
    new = rows.body[at]["r"]

    def number(residency):
        return new if residency == old["r"] else residency
    for later in range(at + 3, len(rows.body)):
        row = rows.body[later]
        changed = {key: number(row[key]) for key in ("r", "from") if key in row}
        if "use" in row:
            changed["use"] = list(map(number, row["use"]))
        rows.body[later] = {**row, **changed}
    renumber(rows)


def visit(random, rows):
    """A second residency of a buffer, for a while, of which others may copy."""
    at = random.randrange(len(rows.body))
    until = min(len(rows.body), at + random.choice((0, 2, 8, 32)))
    old = residency_at(random, rows, at)
    added = twin(random, rows, old)
    rows.body.insert(until, {"i": "release", "r": added[0]["r"]})
    rows.body[at:at] = added
    if random.random() < 0.3:
        rows.body.insert(until + 2, {**added[1], "r": old["r"], "from": added[0]["r"],
                                     "s": stream_between(random, rows, added[0]["m"], old["m"])})
    renumber(rows)


def share_chunk(random, rows):
    """Virtual memory: a map row, or a residency's address, goes where others are."""
    if not rows.maps:
        return
    at = random.randrange(len(rows.maps))
    row = rows.maps[at]
    memory = rows.memories[owner(rows, at)]
    chunks = memory["arena"] // memory["chunk"]
    rows.maps[at] = {**row, "map": random.randrange(max(1, chunks - row["chunks"] + 1))}


def split_map(random, rows):
    """A map row as two, and sometimes its chunks exchanged."""
    long = [at for at, row in enumerate(rows.maps) if row["chunks"] > 1]
    if not long:
        return
    at = random.choice(long)
    row = rows.maps[at]
    first = random.randrange(1, row["chunks"])
    parts = [{**row, "chunks": first}, {"map": row["map"] + first, "chunks": row["chunks"] - first}]
    count_maps(rows, at, 1)
    rows.maps[at:at + 1] = parts if random.random() < 0.5 else parts[::-1]


CHANGES = {drop: 3, drop_order: 6, double: 2, move: 5, move_order: 8, move_lifetime: 6, move_parked: 4, swap: 4,
           change: 8, change_order: 6, change_place: 6, change_slot: 3, change_event: 2, swap_streams: 3, again: 3,
           add: 6, change_list: 5, change_memory: 3, add_link: 1, change_bus: 1, move_boundary: 2, change_job: 1,
           between: 1, drop_work: 3, move_work: 5, retarget: 6, shortcut: 2, relocate: 4, visit: 4, share_chunk: 3,
           split_map: 2, change_prediction: 0.4, change_header: 2, change_replicas: 0.5}
# Of plans with replicas, beside these:
OF_REPLICAS = {toggle_peers: 8, drop_peers: 4, move_peers: 10, change_peers: 8, add_peers_wait: 5, peers_event: 3,
               double_gather: 4, fence_peers: 6, detour: 3, bytes_of_peers: 3, size_of_peers: 1, change_replicas: 1,
               other_replicas: 5, budget_of_replicas: 2}


def mutate(random, rows):
    """A mutant's lines and what was done."""
    mutant = rows.copy()
    changes = {**CHANGES, **OF_REPLICAS} if "replicas" in rows.header else CHANGES
    chosen = random.choices(list(changes), list(changes.values()), k=random.choice((1, 1, 2)))
    chosen.sort(key=lambda one: one is change_header)  # counts are kept right until then
    for one in chosen:
        if one is change_header:
            mutant.count()
        try:
            one(random, mutant)
        except (LookupError, ValueError):  # of something of which there is none
            pass
    if chosen[-1] is not change_header:
        mutant.count()
    return mutant.lines(), ", ".join(one.__name__ for one in chosen)
