#!/usr/bin/env python3
"""Waterwave against its paper (003): memory of one job freed when ops are scheduled or when they have ended (Fig. 2), what
sequential scheduling costs (Fig. 3), largest batches of jobs side by side (Tables 1 and 2, section 5.5), what the size of
node groups does to them (Fig. 8), and throughput beside taking turns and MPS (Fig. 7).

Nothing is calibrated: graphs are ours, ops take what the device descriptions say, and the paper's TensorFlow held other
bytes per image than these graphs do. So batches are read as shares of the largest one that fits alone ("sole"). Jobs count as
side by side where node groups of several share at least one pair, however many do not: how many share one, and the throughput
(the sum over jobs of their speeds relative to alone, 1 for turns) stand beside the batch, and the largest batch at which at
least half of the pairs are shared. Nothing is swapped, recomputed or cut into rounds.

Waterwave in two forms. "as the paper" has its barriers and Algorithm 1 (--pair-barriers); the other one waits for no more
than a plan's events need. The paper's waterwave-s was recorded where one of six runs came through; a plan is one that
always does. MPS is an estimate (planc(1), mps): its memory is not shared, and what has no room pages, so that no batch is its
largest; of Table 1 its row is the paper's alone.

In Figs. 2 and 3 launching an op and learning that it has ended cost the host what host.json says of a framework. The batches
are not stated, and of Fig. 3 neither the GPU: several batches are shown, on Fig. 2's GPU.
"""

import functools
import json
import os
import re
import sys
import tempfile

from benchlib import MPS_NOTE, bench, busy_share, colocated, framework_host, graph, graph_in, largest, planc, simulated, sole_batch, table

DEVICES = {"V100": "v100-32g", "P100": "p100"}
# The paper's models: our graphs, the step in which batches are tried, and Table 1: sole, mps, waterwave-s, waterwave.
MODELS = {
    "ResNet50": ("resnet50", 2, {"V100": (406, 384, 266, 370), "P100": (190, 190, 120, 176)}),
    "ResNet152": ("resnet152", 2, {"V100": (186, 176, 118, 160), "P100": (86, 86, 62, 78)}),
    "NasNet": ("nasnet-a-mobile", 4, {"V100": (560, 556, 316, 544), "P100": (280, 265, 192, 260)}),
    "InceptionV3": ("inception-v3", 2, {"V100": (332, 328, 204, 310), "P100": (160, 160, 106, 150)}),
    "BERT-base": ("bert-base", 2, {"V100": (138, 136, 88, 124), "P100": (60, 56, 38, 48)}),
    "Tacotron2": ("tacotron2", 2, {"V100": (198, 198, 96, 152), "P100": (98, 94, 48, 72)}),
}
MIXES = {("ResNet50", "BERT-base"): (358, 116), ("ResNet50", "Tacotron2"): (370, 150), ("BERT-base", "Tacotron2"): (120, 150)}
SEVERAL = {3: (336, 402.76), 4: (310, 401.58)}
SPLITS = {"ResNet50": [2, 4, 6, 8, 12], "ResNet152": [1, 2, 4, 6, 8, 12], "NasNet": [2, 4, 6, 8, 12],
          "InceptionV3": [2, 4, 6, 8, 12], "BERT-base": [2, 4, 6, 8, 12]}
GROUPS = [2, 4, 8, 16]  # of Tacotron 2, whose recurrences are not cut by size
# Fig. 3: what sequential scheduling loses, and the kernels of an iteration, of one model not stated.
SEQUENTIAL = {"ResNet50": (0.246, None), "BERT-base": (0.346, 7000), "Tacotron2": (0.707, 80000)}
PAPER_PEAK_NS = 50e6  # Fig. 2, freed at schedule
HOST = framework_host()
# Jobs that swap, recompute or run in rounds fit at any batch.
WHOLE = ["--no-swap", "--no-recompute"]
PAPER = ["--policy", "waterwave", "--pair-barriers", *WHOLE]
OURS = ["--policy", "waterwave", *WHOLE]
HALVES = ["--policy", "waterwave-s", "--pair-barriers", *WHOLE]


def path_of(folder, model):
    return graph_in(folder, MODELS[model][0])


@functools.cache
def side_by_side(jobs, device, options):
    """The summary of a plan in which node groups share pairs, with how many of all do ("shared", "pairs"), else None."""
    made = colocated(jobs, device, "--max-ratio", "1", *options)
    found = made and re.search(r"side by side in (\d+) of (\d+)", made["explanation"])
    if not found or any(job["rounds"] != 1 for job in made["jobs"]):
        return None
    return {**made, "shared": int(found[1]), "pairs": int(found[2])}


class Searched:
    """The largest batch at which jobs are side by side, its plan, and the largest at which half of the pairs are shared."""

    def __init__(self, jobs_of, device, options, start, step):
        def plan(batch):
            return side_by_side(tuple(jobs_of(batch)), device, tuple(options))

        def half(batch):
            made = plan(batch)
            return made is not None and 2 * made["shared"] >= made["pairs"]
        self.batch = largest(step, start, plan)
        self.made = plan(self.batch) if self.batch else None
        self.half = largest(step, self.batch * 3 // 4, half) if self.batch else 0

    def told(self, alone):
        """Batch and its part of the largest alone, pairs, throughput, and the batch and part with half of the pairs shared."""
        return [self.batch or "-", share(self.batch, alone),
                *([f"{self.made['shared']} of {self.made['pairs']}", f"{self.made['throughput']:.3f}"] if self.made else ["-"] * 2),
                self.half or "-", share(self.half, alone)]


FOUND = ["largest batch", "of sole", "shared of pairs", "throughput", "half shared", "of sole"]
CRITERION = ["largest batch: at least one pair of node groups is shared (shared of pairs: how many, of the plan of that batch);",
             "half shared: at least half of the pairs are; throughput: of all jobs, relative to one alone, 1 for turns"]


@functools.cache
def sole(folder, model, device):
    _, step, paper = MODELS[model]
    return sole_batch(path_of(folder, model), DEVICES[device], step, paper[device][0])


def together(folder, models, device, options, start, step):
    paths = [path_of(folder, model) for model in models]
    return Searched(lambda batch: [f"{path}:{batch}" for path in paths], DEVICES[device], options, start, step)


def share(part, whole):
    return f"{part / whole:.1%}" if whole else "-"


def tell(device, rows):
    """A row as soon as it is known: a part takes hours."""
    print(f"  {device}:", *rows[-1], file=sys.stderr, flush=True)


def figure2(_):
    """Once with the framework's launches, once with such as put the peak of memory freed at schedule where the paper's is."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for batch in (32, 64, 96, 128):
            launch_ns = HOST["launch_ns"]
            for host in ("framework's", "the paper's"):
                early, late = (footprint(folder, "ResNet50", batch, launch_ns, rule) for rule in ("schedule", "completion"))
                rows.append([batch, host, f"{launch_ns / 1e3:.0f}", *(f"{at['peak_bytes'] / 1e9:.1f}" for at in (early, late)),
                             *(f"{at['peak_ns'] / 1e6:.0f}" for at in (early, late)), f"{late['backward_ns'] / 1e6:.0f}",
                             *(f"{at['mean_bytes'] / 1e9:.1f}" for at in (early, late))])
                launch_ns = paper_launch_ns(early)
    table("Fig. 2: memory of ResNet-50 freed when ops are scheduled or when they have ended, P100",
          ["batch", "host", "us a launch", "GB at schedule", "at completion", "peak ms at schedule", "at completion", "backward ms",
           "mean GB at schedule", "at completion"], rows,
          ["paper: 5.4 GB at 50 ms when freed at schedule, over 13 GB at about 200 ms at completion, backward from 180 ms;",
           "\"the paper's\" host launches so fast that what is freed at schedule peaks after 50 ms, as there; no budget limits the memory"])


def paper_launch_ns(early):
    """What a launch takes of a host that makes the peak of memory freed at schedule come when it does in Fig. 2."""
    return round(HOST["launch_ns"] * PAPER_PEAK_NS / early["peak_ns"])


def footprint(folder, model, batch, launch_ns, rule):
    path = planned(folder, model, batch, launch_ns)
    return json.loads(planc("simulate", path, "--free-at", rule, "--json"))["footprint"]


def planned(folder, model, batch, launch_ns):
    path = os.path.join(folder, "x.plan")
    planc("plan", path_of(folder, model), "--batch", batch, "--device", DEVICES["P100"], "--budget", "64G", "--policy", "none",
          "--launch", f"{launch_ns}ns", "-o", path)
    return path


def figure3(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model, (paper, kernels) in SEQUENTIAL.items():
            alone = MODELS[model][2]["P100"][0]
            for batch in (alone // 8, alone // 4, alone // 2, alone):
                rows.append([model, batch, *sequential(folder, model, batch, kernels), f"{paper:.1%}"])
    table("Fig. 3: what is lost where an op is launched when the one before it has ended, P100",
          ["model", "batch", "ops", "ms", "sequential", "lost", "with events", "the paper's launches", "paper"], rows,
          ["batches are parts of the paper's largest one; \"with events\": the host learns of each op's end by one; \"the paper's launches\":",
           "about 7,000 and 80,000 kernels, each of which costs a launch and an event; of ResNet50, as slow ones as Fig. 2's 50 ms tell of"])


def sequential(folder, model, batch, kernels):
    """Ops of an iteration, its time, and sequentially; what is then lost, with events as well, on the paper's host."""
    def takes(*options):
        return json.loads(planc("simulate", path, *options, "--json"))["period_ns"]
    event = ["--in-flight", "1", "--track", f"{HOST['event_ns']}ns"]
    path = planned(folder, model, batch, HOST["launch_ns"])
    with open(path, encoding="utf-8") as file:
        ops = sum('{"i":"exec"' in line for line in file)
    times = [takes(), takes("--in-flight", "1"), takes(*event)]
    found = [ops, f"{times[0] / 1e6:.0f}", f"{times[1] / 1e6:.0f}", *(f"{1 - times[0] / time:.1%}" for time in times[1:])]
    if kernels:
        path = planned(folder, model, batch, round(kernels / ops * HOST["launch_ns"]))
        event[-1] = f"{round(kernels / ops * HOST['event_ns'])}ns"
    else:
        early = footprint(folder, model, batch, HOST["launch_ns"], "schedule")
        path, event = planned(folder, model, batch, paper_launch_ns(early)), event[:2]
    return [*found, f"{1 - takes() / takes(*event):.1%}"]


def table1(_):
    with tempfile.TemporaryDirectory() as folder:
        for device in DEVICES:
            rows = []
            for model, (_, step, papers) in MODELS.items():
                alone, paper = sole(folder, model, device), papers[device]
                rows.append([model, "sole", alone, *["-"] * 5, paper[0], "-"])
                rows.append([model, "mps", *["-"] * 6, paper[1], share(paper[1], paper[0])])
                for name, options, told in (("-s", HALVES, paper[2]), ("as the paper", PAPER, paper[3]), ("waterwave", OURS, paper[3])):
                    found = together(folder, [model] * 2, device, options, alone * 9 // 10, step)
                    rows.append([model, name, *found.told(alone), told, share(told, paper[0])])
                    tell(device, rows)
            table(f"Table 1: largest batch of two equal jobs, {device}", ["model", "system", *FOUND, "paper", "of its sole"], rows,
                  [*CRITERION,
                   "a plan takes turns where that is faster: with larger batches than -s's, its pairs are slower than turns, or do not fit;",
                   "of mps the paper's row alone: its memory is not shared here, and what has no room pages, so that no batch is its largest;",
                   "sole is of these graphs: the paper does not tell the tokens of its BERT (here 128) nor the lengths of its Tacotron2"])


def table2(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for models, paper in MIXES.items():
            for k, model in enumerate(models):
                beside = models[1 - k]
                alone, fixed, found = unequal(folder, model, beside, paper[1 - k])
                rows.append([model, f"{beside}:{fixed}", *found.told(alone), paper[k], share(paper[k], MODELS[model][2]["V100"][0])])
                tell("V100", rows)
    table("Table 2: largest batches of two unequal jobs, V100", ["model", "beside", *FOUND, "paper", "of its sole"], rows,
          [*CRITERION, "each beside the other at the paper's share of its own sole batch"])


def unequal(folder, model, beside, paper):
    """A model's largest batch alone, the batch beside it, at the paper's share of its own, and the largest with which that is found."""
    fixed = paper * sole(folder, beside, "V100") // MODELS[beside][2]["V100"][0]
    alone, paths = sole(folder, model, "V100"), [path_of(folder, name) for name in (model, beside)]
    return alone, fixed, Searched(lambda batch: [f"{paths[0]}:{batch}", f"{paths[1]}:{fixed}"], DEVICES["V100"], OURS,
                                  alone * 9 // 10, MODELS[model][1])


def several(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        alone = sole(folder, "ResNet50", "V100")
        solo_ns = json.loads(planc("plan", graph("resnet50"), "--batch", alone, "--device", DEVICES["V100"], "--policy", "none",
                                   "--json", "-o", os.devnull))["iteration_ns"]
        for n_jobs in (2, 3, 4):
            found = together(folder, ["ResNet50"] * n_jobs, "V100", OURS, alone * 8 // 10, 2)
            told = SEVERAL.get(n_jobs, (370, None))
            speed = f"{1e9 * n_jobs * found.batch / found.made['period_ns']:.1f}" if found.made else "-"
            rows.append([n_jobs, *found.told(alone), told[0], share(told[0], 406), speed, told[1] or "-"])
            tell("V100", rows)
    table("Section 5.5: ResNet-50, V100", ["jobs", *FOUND, "paper", "of its sole", "images/s", "paper"], rows,
          [*CRITERION,
           f"alone ResNet-50 takes {1e9 * alone / solo_ns:.1f} images/s by the device description, and no sharing makes up for the paper's faster",
           "kernels; its jobs leave each other little (Fig. 5 of bench_zico.py: mean busy share), there as here"])


def splits(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model, sizes in {**SPLITS, "Tacotron2": GROUPS}.items():
            alone, step = sole(folder, model, "V100"), MODELS[model][1]
            for size in sizes:
                options = [*PAPER, "--split-groups", str(size)] if model == "Tacotron2" else [*PAPER, "--split-size", f"{size}G"]
                found = together(folder, [model] * 2, "V100", options, alone * 9 // 10, step)
                rows.append([model, f"{size} groups" if model == "Tacotron2" else f"{size} GB", *found.told(alone)])
                tell("V100", rows)
    table("Fig. 8: two equal jobs by the size of node groups, as the paper has them, V100", ["model", "split", *FOUND], rows,
          [*CRITERION,
           "the paper's largest batches are at 6 GB, NasNet's at 12, ResNet152's from 2 to 8, Tacotron2's at 8 groups; ours hardly",
           "differ, since one shared pair is enough for them: with half of the pairs shared they do, and throughput is less where fewer are"])


def batches(folder, model):
    """Of Fig. 7: parts of the largest batch alone, and the paper's largest as a part of its sole one."""
    alone, paper = sole(folder, model, "V100"), MODELS[model][2]["V100"]
    return [max(1, int(alone * part)) for part in (1 / 8, 1 / 4, 1 / 2, paper[3] / paper[0])]


def throughput(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            for batch in batches(folder, model):
                jobs = [f"{path_of(folder, model)}:{batch}"] * 2
                found = json.loads(planc("compare", "--colocate", "--no-least", *jobs, "--max-ratio", "1", "--device",
                                         DEVICES["V100"], "--policies", "temporal,mps,waterwave", *WHOLE, "--json"))["rows"]
                alone_plan = os.path.join(folder, "alone.plan")
                planc("plan", jobs[0].rsplit(":", 1)[0], "--batch", batch, "--device", DEVICES["V100"], "--policy", "none", "-o", alone_plan)
                speed = {row["policy"]: 1e9 * 2 * batch / row["period_ns"] if row["period_ns"] else None for row in found}
                waterwave, temporal, mps = (speed.get(name) for name in ("waterwave", "temporal", "mps"))
                rows.append([model, batch, f"{busy_share(alone_plan):.0%}", *(f"{s:.1f}" if s else "-" for s in (temporal, mps, waterwave)),
                             f"{waterwave / temporal - 1:+.1%}" if waterwave and temporal else "-",
                             f"{waterwave / mps:.2f}" if waterwave and mps else "-"])
                tell("V100", rows)
    table("Fig. 7: samples a second of two equal jobs, V100",
          ["model", "batch", "busy", "temporal", "mps", "waterwave", "over temporal", "times mps"], rows,
          ["paper: at most +14.27 % over temporal but for Tacotron2's +49 %, ResNet152's at batch 32; 12 times mps for ResNet50,",
           "6.8 for BERT-base, 3.1 for Tacotron2, as batches grow; ours end at the paper's largest in parts of sole (Table 1);",
           "busy: mean busy share of the ops of one job, which bounds what two can gain", *MPS_NOTE])


if __name__ == "__main__":
    bench(simulated(" and ".join(DEVICES.values())),
          {"figure2": figure2, "figure3": figure3, "table1": table1, "table2": table2, "several": several, "splits": splits,
           "throughput": throughput})
