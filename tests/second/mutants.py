"""Mutants of plans: each has one or two changes that could break it, or could not. What the header counts is kept right,
unless that is the change. The same random numbers give the same mutants."""

from planfile import dumps, parse_row

SECTIONS = ("prologue", "body", "epilogue")
LISTS = ("streams", "algorithms", "boundary", "maps")
COUNTS = ("budget", "host_budget", "arena", "host_arena", "chunk", "gpus", "residencies", "events", "uses", *SECTIONS)
STEPS = (64, 128, 256, 512, 1024, 2048, 4096)


class Rows:
    """A plan's rows by kind. A copy shares the rows, which are never changed in place."""

    def __init__(self, lines):
        header = parse_row(lines[0])
        self.header, self.device, self.predictions = (parse_row(line) for line in lines[:3])
        graphs = header["graphs"] + header["tensors"] + header["ops"]
        self.graph_lines, self.text, at = lines[3:3 + graphs], {}, 3 + graphs
        for name, count in (("jobs", header["jobs"]), *((name, header[name]) for name in LISTS[:3]),
                            ("maps", header.get("mappings", 0)), *((name, header[name]) for name in SECTIONS)):
            rows = [parse_row(line) for line in lines[at:at + count]]
            self.text.update((id(row), (line, row)) for row, line in zip(rows, lines[at:at + count], strict=True))
            setattr(self, name, rows)
            at += count

    def copy(self):
        result = object.__new__(Rows)
        result.__dict__.update(self.__dict__)
        result.header = dict(self.header)
        for name in ("jobs", *LISTS, *SECTIONS):
            setattr(result, name, list(getattr(self, name)))
        return result

    def count(self):
        for name in ("jobs", *LISTS[:3], *SECTIONS):
            self.header[name] = len(getattr(self, name))
        if "mappings" in self.header:
            self.header["mappings"] = len(self.maps)
        self.header["uses"] = sum(len(row.get("use", ())) for name in SECTIONS for row in getattr(self, name))

    def line(self, row):
        known = self.text.get(id(row))
        return known[0] if known and known[1] is row else dumps(row)

    def lines(self):
        rows = [row for name in ("jobs", *LISTS, *SECTIONS) for row in getattr(self, name)]
        return [dumps(self.header), dumps(self.device), dumps(self.predictions), *self.graph_lines, *map(self.line, rows)]


def place(random, rows, kinds=None):
    """A section and an index in it, of any instruction or of one of these kinds."""
    places = [(name, at) for name in SECTIONS for at, row in enumerate(getattr(rows, name)) if not kinds or row["i"] in kinds]
    if not places:
        return None
    if random.random() < 0.3:  # the ends of a run are short
        places = [place for place in places if place[0] != "body"] or places
    return random.choice(places)


def drop(random, rows):
    name, at = place(random, rows)
    del getattr(rows, name)[at]


def drop_order(random, rows):
    chosen = place(random, rows, ("wait", "record"))
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
    move_from(random, rows, place(random, rows, ("wait", "record")) or place(random, rows))


def renumber(rows):
    """Numbers the body's residencies by the order of its acquires."""
    first = len(rows.boundary)
    acquired = [row["r"] for row in rows.body if row["i"] == "acquire"]
    number = {**{r: r for r in range(first)}, -1: -1, **{r: first + k for k, r in enumerate(acquired)}}
    rows.header["residencies"] = first + len(acquired)
    for at, row in enumerate(rows.body):
        changed = {key: number.get(row[key], row[key]) for key in ("r", "from") if key in row}
        if "use" in row:
            changed["use"] = [number.get(use, use) for use in row["use"]]
        if any(row[key] != value for key, value in changed.items()):
            rows.body[at] = {**row, **changed}


def move_lifetime(random, rows):
    """Moves an acquire or a release; residencies keep the order of their numbers."""
    chosen = place(random, rows, ("acquire", "release"))
    if chosen:
        move_from(random, rows, chosen)
        renumber(rows)


def swap(random, rows):
    name, at = place(random, rows)
    section = getattr(rows, name)
    other = min(len(section) - 1, at + 1) if random.random() < 0.6 else random.randrange(len(section))
    section[at], section[other] = section[other], section[at]


def other_value(random, rows, row, key):
    """Of this key of an instruction."""
    value, header = row[key], rows.header
    if key in ("at", "ws", "h", "bytes", "wsb"):
        if key in ("ws", "at", "h") and random.random() < 0.3:
            rivals = [other[key] for name in SECTIONS for other in getattr(rows, name) if key in other]
            return random.choice(rivals)
        return max(-1 if key == "h" else 0, value + random.choice((-1, 1)) * random.choice(STEPS))
    if key == "lag":
        return 1 - value
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
            "a": header["algorithms"], "busy": 2000000}.get(key, value + 4)
    return near(random, value, most, 0)


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
    chosen = place(random, rows, ("wait", "record"))
    if chosen:
        section, at = getattr(rows, chosen[0]), chosen[1]
        key = random.choice([key for key in section[at] if key != "i"])
        section[at] = {**section[at], key: other_value(random, rows, section[at], key)}


def change_place(random, rows):
    chosen = place(random, rows, ("acquire", "exec", "offload", "prefetch"))
    if chosen:
        section, at = getattr(rows, chosen[0]), chosen[1]
        key = {"acquire": "at", "exec": "ws"}.get(section[at]["i"], "h")
        section[at] = {**section[at], key: other_value(random, rows, section[at], key)}


def change_host_slot(random, rows):
    """Everything that is at one host address gets another."""
    slots = sorted({row["h"] for name in SECTIONS for row in getattr(rows, name) if row.get("h", -1) >= 0})
    if not slots:
        return
    old = random.choice(slots)
    new = random.choice(slots) if random.random() < 0.3 else max(0, old + random.choice((-1, 1)) * random.choice(STEPS))
    for name in SECTIONS:
        section = getattr(rows, name)
        section[:] = [{**row, "h": new} if row.get("h") == old else row for row in section]


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
    one, other = (place(random, rows, ("exec", "offload", "prefetch", "move", "record", "wait")) for _ in range(2))
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
    size = next((row["bytes"] for row in rows.prologue + rows.body if row["i"] == "acquire" and row["r"] == residency), 256)
    slot = random.choice([-1] + [row["h"] for row in rows.body if "h" in row])
    event = random.randrange(max(1, header["events"]))
    kind = random.randrange(7)
    if kind < 2:
        row = {"i": "wait", "e": event, "lag": kind, "s": stream}
    elif kind == 2:
        row = {"i": "record", "e": header["events"], "s": stream}
        header["events"] += 1
    elif kind == 3:
        row = {"i": "offload", "r": residency, "h": slot, "bytes": size, "s": stream}
    elif kind == 4:
        row = {"i": "prefetch", "r": residency, "h": slot, "bytes": size, "s": stream}
    elif kind == 5:
        origin = residency if random.random() < 0.5 else random.randrange(max(1, header["residencies"]))
        row = {"i": "move", "r": residency, "from": origin, "bytes": size, "s": stream}
    else:
        row = {"i": "release", "r": residency}
    section.insert(at, row)


def change_list(random, rows, name=None):
    """A row of streams, boundary, mappings or algorithms: changed, dropped, doubled, or swapped with another."""
    name = name or random.choice([name for name in LISTS if getattr(rows, name)])
    section = getattr(rows, name)
    at, what = random.randrange(len(section)), random.random()
    row = section[at]
    if what < 0.1:
        del section[at]
    elif what < 0.2:
        section.insert(at, row)
    elif what < 0.4:
        other = random.randrange(len(section))
        section[at], section[other] = section[other], section[at]
    elif name == "streams":
        key = random.choice(("stream", "job", "gpu"))
        value = {"stream": random.choice(("compute", "h2d", "d2h")), "job": random.randrange(rows.header["jobs"]),
                 "gpu": random.randrange(rows.header["gpus"])}[key]
        section[at] = {**row, key: value}
    elif name == "boundary":
        key = random.choice([key for key in row])
        if key == "boundary":
            section[at] = {**row, key: near(random, row[key], row[key] + 4, 0)}
        elif random.random() < 0.2:
            section[at] = {"boundary": row["boundary"], "home" if key == "at" else "at": row[key]}
        else:
            section[at] = {**row, key: max(0, row[key] + random.choice((-1, 1)) * random.choice(STEPS))}
    elif name == "maps":
        key = random.choice(("map", "chunks"))
        section[at] = {**row, key: max(0, row[key] + random.choice((-1, 1)))}


def move_boundary(random, rows):
    """A boundary buffer to another address, in all sections."""
    if not rows.boundary:
        return
    at = random.randrange(len(rows.boundary))
    row = rows.boundary[at]
    key = "at" if "at" in row else "home"
    new = max(0, row[key] + random.choice((-1, 1)) * random.choice(STEPS))
    rows.boundary[at] = {**row, key: new}
    field = "at" if key == "at" else "h"
    for name in SECTIONS:
        section = getattr(rows, name)
        section[:] = [{**other, field: new} if other.get(field) == row[key] else other for other in section]


def change_job(random, rows):
    at = random.randrange(len(rows.jobs))
    row, rounds = rows.jobs[at], list(rows.jobs[at]["rounds"])
    ops = [parse_row(line) for line in rows.graph_lines if line.startswith('{"op"')]
    what = random.randrange(6)
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
    elif what == 4 and "replica" in row:
        key = random.choice(("replica", "replicas"))
        rows.jobs[at] = {**row, key: max(0, row[key] + random.choice((-1, 1)))}
    elif rows.header["graphs"] == 1 and len(ops) > 1:
        order, first = list(row.get("order", range(len(ops)))), random.randrange(len(ops) - 1)
        order[first], order[first + 1] = order[first + 1], order[first]
        rows.jobs[at] = {**row, "order": order}


def change_header(random, rows):
    key = random.choice([key for key in COUNTS if key in rows.header])
    step = random.choice(STEPS) if key in ("budget", "host_budget", "arena", "host_arena", "chunk") else 1
    rows.header[key] = max(0, rows.header[key] + random.choice((-1, 1)) * step)
    if key in ("arena", "host_arena") and random.random() < 0.8:
        peak = "peak" if key == "arena" else "host_peak"
        base = rows.device["reserved"] if key == "arena" else 0
        rows.predictions = {**rows.predictions, peak: rows.header[key] + base}


def change_prediction(random, rows):
    if random.random() < 0.5:
        key = random.choice(list(rows.predictions))
        rows.predictions = {**rows.predictions, key: rows.predictions[key] + 1}
    else:
        key = random.choice([key for key, value in rows.device.items() if type(value) is int])
        rows.device = {**rows.device, key: rows.device[key] + 1}


def between(random, rows):
    """The border of two sections moves by a few rows."""
    for first, second in ((rows.prologue, rows.body), (rows.body, rows.epilogue)):
        if random.random() < 0.5:
            first.append(second.pop(0)) if random.random() < 0.5 else second.insert(0, first.pop())


def drop_work(random, rows):
    name, at = place(random, rows, ("exec", "offload", "prefetch", "move"))
    del getattr(rows, name)[at]


def move_work(random, rows):
    move_from(random, rows, place(random, rows, ("exec", "offload", "prefetch", "move")), (4, 16, 64))


def retarget(random, rows):
    """A copy or an exec takes another residency of the same buffer, or of a buffer of the same size."""
    acquired = {row["r"]: row for row in rows.prologue + rows.body if row["i"] == "acquire"}
    name, at = place(random, rows, ("exec", "offload", "prefetch", "move"))
    section = getattr(rows, name)
    row = section[at]
    key = random.choice([key for key in ("r", "from", "use") if key in row])
    use = random.randrange(len(row["use"])) if key == "use" else 0
    old = acquired.get(row["use"][use] if key == "use" else row[key])
    if not old:
        return
    same = "b" if random.random() < 0.5 else "bytes"
    new = random.choice([other["r"] for other in acquired.values() if other[same] == old[same]])
    section[at] = {**row, key: [*row["use"][:use], new, *row["use"][use + 1:]] if key == "use" else new}


def relocate(random, rows):
    """A residency gives way to another one of its buffer, into which a move brings what it holds."""
    at = random.randrange(len(rows.body))
    before, after = rows.body[:at], rows.body[at:]
    acquired = {row["r"]: row for row in rows.prologue + rows.body if row["i"] == "acquire"}
    closed = {row["r"] for row in before if row["i"] == "release"}
    began = {row["r"] for row in rows.prologue + before if row["i"] == "acquire"}
    old = acquired[random.choice(sorted(began - closed))]
    new = rows.header["residencies"]
    free = max(0, rows.header["arena"] - old["bytes"]) & -256
    to = random.choice(list(acquired.values()))["at"] if random.random() < 0.5 else free

    def number(residency):
        return new if residency == old["r"] else residency
    for place_in_after, row in enumerate(after):
        changed = {key: number(row[key]) for key in ("r", "from") if key in row}
        if "use" in row:
            changed["use"] = list(map(number, row["use"]))
        after[place_in_after] = {**row, **changed}
    stream = random.choice([at for at, stream in enumerate(rows.streams) if stream["stream"] == "compute"])
    rows.body[at:] = [{**old, "r": new, "at": to},
                      {"i": "move", "r": new, "from": old["r"], "bytes": old["bytes"], "s": stream},
                      {"i": "release", "r": old["r"]}, *after]
    renumber(rows)


def share_chunk(random, rows):
    """Virtual memory: a map row, or a residency's address, goes where others are."""
    if not rows.maps:
        return
    at = random.randrange(len(rows.maps))
    row = rows.maps[at]
    chunks = rows.header["arena"] // rows.header["chunk"]
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
    rows.maps[at:at + 1] = parts if random.random() < 0.5 else parts[::-1]


CHANGES = {drop: 3, drop_order: 6, double: 2, move: 5, move_order: 8, move_lifetime: 8, swap: 4, change: 8, change_order: 6,
           change_place: 6, change_host_slot: 3, change_event: 2, swap_streams: 3, again: 3, add: 6, change_list: 3,
           move_boundary: 2, change_job: 1, between: 1, drop_work: 3, move_work: 5, retarget: 6, relocate: 3, share_chunk: 3,
           split_map: 2, change_prediction: 0.4, change_header: 2}


def mutate(random, rows):
    """A mutant's lines and what was done."""
    mutant = rows.copy()
    chosen = random.choices(list(CHANGES), list(CHANGES.values()), k=random.choice((1, 1, 2)))
    chosen.sort(key=lambda one: one is change_header)  # counts are kept right until then
    for one in chosen:
        if one is change_header:
            mutant.count()
        try:
            one(random, mutant)
        except (IndexError, ValueError):  # of something of which there is none
            pass
    if chosen[-1] is not change_header:
        mutant.count()
    return mutant.lines(), ", ".join(one.__name__ for one in chosen)
