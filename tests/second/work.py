"""What the graphs and jobs of a plan stand for: op instances, buffers and versions, as planc-plan(5) defines them under
"Instances and buffers"."""

from functools import lru_cache

from planfile import PHASES, demand, dumps, parse_row, read_graphs

NO_RECOMPUTE = 16

class Buffer:
    """`key`: what it is, whatever its number; it starts with the job. `first`: version 0 is defined. `last`: the last version.
    `comes_from`: of what an exchange gets, the gradient and which version of it."""

    def __init__(self, key, size, kind, result=False):
        self.key, self.job, self.bytes, self.kind, self.result = key, key[0], size, kind, result
        self.persists = kind in ("param", "state")
        self.first = self.persists or kind in ("input", "peers")
        self.last, self.comes_from = 0, None


class Access:
    def __init__(self, buffer, read, write, effect):
        self.buffer, self.read, self.write, self.effect = buffer, read, write, effect


class Instance:
    """`key`: as a buffer's. `again`: a recompute may run it."""

    def __init__(self, key, accesses, buffers, once):
        self.key, self.job, self.accesses = key, key[0], accesses
        lasting = any(access.write is not None and not access.effect and
                      (buffers[access.buffer].persists or buffers[access.buffer].kind == "grad" and access.read is not None)
                      for access in accesses)
        self.again = not (once or lasting)


def storages_of(graph, op, *keys):
    """In the order of the operands, each once."""
    return list(dict.fromkeys(graph.tensors[t].storage for key in keys for t in op[key]))


class Training:
    """A job: what its rounds share and how it adds up gradients."""

    def __init__(self, number, row, graph, replicas):
        self.number, self.graph = number, graph
        self.batch, self.rounds = row["batch"], row["rounds"]
        demand(sum(self.rounds) == self.batch, "rounds do not sum to the batch")
        order = self.legal_order(row.get("order"))
        self.round_ops = [op for op in order if op["phase"] != "optimizer"]
        self.optimizer_ops = [op for op in order if op["phase"] == "optimizer"]
        self.in_rounds, self.last_op = {}, {}
        for at, op in enumerate(self.round_ops):
            for storage in storages_of(graph, op, "in", "out", "effects"):
                self.in_rounds.setdefault(storage, []).append(at)
                self.last_op[storage] = at
        self.optimized = {s for op in self.optimizer_ops for s in storages_of(graph, op, "in", "out", "effects")}
        self.adds_in_place = self.accumulators()
        self.made = {s for op in self.round_ops for s in storages_of(graph, op, "out") if self.kind(s) == "grad"}
        if len(self.rounds) > 1 or replicas > 1:
            self.check_shared()

    def kind(self, storage):
        return self.graph.tensors[storage].kind

    def persists(self, storage):
        return self.kind(storage) in ("param", "state")

    def shared(self, storage):
        """One buffer for all rounds of an iteration, or for all time."""
        return (self.persists(storage) or self.kind(storage) == "grad" or
                (self.kind(storage) != "input" and storage not in self.in_rounds))

    def legal_order(self, order):
        ops = self.graph.ops
        if order is None:
            return ops
        demand(sorted(order) == list(range(len(ops))), "an order that is no permutation")
        phases = [PHASES.index(ops[number]["phase"]) for number in order]
        demand(phases == sorted(phases), "an order that mixes phases")
        demand(self.writes_found(order) == self.writes_found(range(len(ops))), "an order in which an op reads another version")
        return [ops[number] for number in order]

    def writes_found(self, order):
        found, writes = {}, {}
        for number in order:
            op = self.graph.ops[number]
            found[number] = [writes.get(s, 0) for s in storages_of(self.graph, op, "in", "out", "effects")]
            for storage in storages_of(self.graph, op, "out", "effects"):
                writes[storage] = writes.get(storage, 0) + 1
        return found

    def accumulators(self):
        """The gradients that are added up by the op that makes them."""
        result = set()
        for at, op in enumerate(self.round_ops):
            made = [s for s in storages_of(self.graph, op, "out") if self.kind(s) == "grad"]
            if op["flags"] & 8 and all(self.in_rounds[s] == [at] for s in made) and not self.overwrites_gradient(op):
                result.update(made)
        return result

    def overwrites_gradient(self, op):
        """The gradients of normalisations add to dgamma and dbeta, their second and third outputs, and not to dx."""
        return op["type"] in ("batchnorm_grad", "layernorm_grad") and self.kind(storages_of(self.graph, op, "out")[0]) == "grad"

    def check_shared(self):
        demand(all(map(self.shared, self.optimized)), "an optimizer op touches what each round has anew")
        touched = self.optimized | self.in_rounds.keys()
        demand(not any(self.shared(s) and self.graph.tensors[s].bytes[1] for s in touched),
               "what rounds share depends on the batch")


class Work:
    """Instances, and buffers in the order of their numbers."""

    def __init__(self, graphs, rows, replicas):
        self.instances, self.buffers, self.numbers, self.version = [], [], {}, []
        for job in [Training(number, row, graphs[row["job"]], replicas) for number, row in enumerate(rows)]:
            for iteration in range(rows[job.number]["iterations"]):
                for number, samples in enumerate(job.rounds):
                    self.run_round(job, iteration, number, samples)
                if replicas > 1:
                    self.exchange(job, iteration, replicas - 1)
                for op in job.optimizer_ops:
                    self.run(job, op, iteration, 0, job.batch)
        for buffer, version in zip(self.buffers, self.version, strict=True):
            buffer.last = version

    def run_round(self, job, iteration, number, samples):
        for at, op in enumerate(job.round_ops):
            self.run(job, op, iteration, number, samples)
            if not number:
                continue
            for storage in storages_of(job.graph, op, "in", "out", "effects"):
                if job.kind(storage) == "grad" and storage not in job.adds_in_place and job.last_op[storage] == at:
                    self.append((job.number, storage, iteration, number, "add"),
                                [(self.number(job, storage, iteration, number, samples), True, False, False),
                                 (self.number(job, storage, iteration), True, True, False)])

    def exchange(self, job, iteration, others):
        for at, op in enumerate(job.round_ops):
            for storage in storages_of(job.graph, op, "in", "out", "effects"):
                if storage not in job.made or job.last_op[storage] != at:
                    continue
                gradient = self.number(job, storage, iteration)
                size = -(-self.buffers[gradient].bytes // 256) * 256 * others
                theirs = self.add(Buffer((job.number, storage, iteration, "peers"), size, "peers"))
                self.buffers[theirs].comes_from = gradient, self.version[gradient]
                self.append((job.number, storage, iteration, "exchange"),
                            [(gradient, True, True, False), (theirs, True, False, False)])

    def add(self, buffer):
        self.buffers.append(buffer)
        self.version.append(0)
        return len(self.buffers) - 1

    def number(self, job, storage, iteration, number=None, samples=None):
        """Of the buffer that this storage is in this round; without a round, of a gradient for all of them."""
        tensor = job.graph.tensors[storage]
        temporary = (number and tensor.kind == "grad" and storage in job.in_rounds and storage not in job.adds_in_place)
        if job.persists(storage):
            key = job.number, storage
        elif job.shared(storage) and not temporary:
            key = job.number, storage, iteration
        else:
            key = job.number, storage, iteration, number
        if key not in self.numbers:
            size = tensor.size(samples if len(key) == 4 else job.batch)
            kind = "temp" if temporary else tensor.kind
            self.numbers[key] = self.add(Buffer(key, size, kind, storage in job.graph.results))
        return self.numbers[key]

    def run(self, job, op, iteration, number, samples):
        graph, named = job.graph, {}
        adds = number and op["phase"] != "optimizer"
        for key in ("in", "out", "effects"):
            for t in op[key]:
                tensor = graph.tensors[t]
                buffer = self.number(job, tensor.storage, iteration, number, samples)
                reads, writes, effect, part = named.get(buffer, (False, False, True, True))
                reads |= key != "out"
                if key != "in":
                    writes = True
                    part &= tensor.size(samples) < graph.tensors[tensor.storage].size(samples)
                    reads |= bool(adds and key == "out" and tensor.storage in job.adds_in_place)
                named[buffer] = reads, writes, effect and key == "effects", part
        accesses = []
        for buffer, (reads, writes, effect, part) in named.items():
            keeps = writes and part and (self.version[buffer] > 0 or self.buffers[buffer].first)
            accesses.append((buffer, reads or keeps, writes, effect))
        self.append((job.number, op["op"], iteration, number),
                    [a for a in accesses if a[1]] + [a for a in accesses if not a[1]], op["flags"] & NO_RECOMPUTE)

    def append(self, key, accesses, once=False):
        result = []
        for buffer, reads, writes, effect in accesses:
            version = self.version[buffer]
            if reads:
                demand(version or self.buffers[buffer].first, "an instance reads what is undefined")
            if writes:
                self.version[buffer] += 1
            result.append(Access(buffer, version if reads else None, version + 1 if writes else None, effect))
        self.instances.append(Instance(key, result, self.buffers, once))


@lru_cache(maxsize=256)
def expand_rows(graph_lines, count, job_lines, replicas):
    return Work(read_graphs(graph_lines, count), [parse_row(line) for line in job_lines], replicas)


def expand(plan):
    """The plan's work."""
    return expand_rows(plan.graph_lines, len(plan.graphs), tuple(map(dumps, plan.jobs)), plan.replicas)
