"""What each backward node of a problem of MONET's is to read, where it has a choice. MONET's solver chooses that
together with all else; planc does not, so that it plans many choices: first every one in which all nodes of a kind do
the same, then mixtures of these by size, then from the best on, node by node and pair by pair, the largest first,
whatever is better.
"""

import itertools


def uniform(problem):
    """Choices in which all nodes of an op with as many ways take the same; one where there is nothing to choose."""
    kinds = {}
    for id, ways in problem.choices().items():
        kinds.setdefault((problem.nodes[id].op, ways), []).append(id)
    for taken in itertools.product(*(range(ways) for _, ways in kinds)):
        yield {id: way for ids, way in zip(kinds.values(), taken) for id in ids}


def by_size(problem, large, small):
    """Choices in which nodes of many bytes do as in one and the others as in another, from each size on."""
    ways = problem.choices()
    for limit in sorted({problem.nodes[id].bytes for id in ways})[1:]:
        yield {id: (large if problem.nodes[id].bytes >= limit else small)[id] for id in ways}


def forward_reads(problem, id):
    return {u for way in problem.nodes[id].ways for u in way if u <= problem.loss}


def changes(problem):
    """Of one node, or of two that could read the same; those of the most bytes first."""
    ways, reads = problem.choices(), {id: forward_reads(problem, id) for id in problem.choices()}
    pairs = [pair for pair in itertools.combinations(ways, 2) if reads[pair[0]] & reads[pair[1]]]
    found = [dict(zip(ids, taken)) for ids in [(id,) for id in ways] + pairs
             for taken in itertools.product(*(range(ways[id]) for id in ids))]

    def bytes_of(change):
        return sum(problem.nodes[id].bytes for id in change) / len(change)

    return sorted(found, key=lambda change: (-bytes_of(change), len(change)))


def ranked(problem, units_of, goes_on):
    """The best choice of those looked at while `goes_on()`, and behind it those in which all nodes do the same, the
    best first; `units_of(choice)` is what is wanted small."""
    seen = {}

    def look(choice):
        key = tuple(sorted(choice.items()))
        if key not in seen:
            seen[key] = units_of(choice)
        return seen[key]

    alike = sorted(uniform(problem), key=look)
    best, better = alike[0], bool(problem.choices())
    for choice in (mixed for small in alike[1:] for mixed in by_size(problem, alike[0], small)):
        if goes_on() and look(choice) < look(best):
            best = choice
    while better:
        better = False
        for change in changes(problem):
            if not goes_on():
                break
            if look({**best, **change}) < look(best):
                best, better = {**best, **change}, True
    return [best] + [choice for choice in alike if choice != best]
