#!/usr/bin/env python3
"""Waterwave against its paper (003): memory of one job freed when ops are scheduled or when they have ended (Fig. 2), what
sequential scheduling costs (Fig. 3), largest batches of jobs side by side (Tables 1 and 2, section 5.5), what the size of
node groups does to them (Fig. 8), and throughput beside taking turns and MPS (Fig. 7).

Nothing is calibrated: graphs are ours, ops take what the device descriptions say, and the paper's TensorFlow held other
bytes per image than these graphs do. So batches are read as shares of the largest one that fits alone ("sole"). Two jobs
count as side by side where node groups of both share at least one pair. Nothing is swapped, recomputed or cut into rounds.

Waterwave in two forms. "as the paper" has its barriers and Algorithm 1 (--pair-barriers); the other one waits for no more
than a plan's events need. The paper's waterwave-s was recorded where one of six runs came through; a plan is one that
always does. MPS is an estimate (planc-compare(1), mps): its memory is not shared, so that no batch is its largest; of Table 1
its column is left out.

In Figs. 2 and 3 launching an op and learning that it has ended cost the host what host.json says of a framework. The batches
are not stated, and of Fig. 3 neither the GPU: several batches are shown, on Fig. 2's GPU.
"""

import json
import os
import re
import sys
import tempfile

from benchlib import PLANC, bench, fitting, framework_host, graph, graph_in, largest, planc, simulated, sole_batch, table

DEVICES = {"V100": "v100-32g", "P100": "p100"}
# The paper's models: our graphs, the step in which batches are tried, and Table 1: sole, waterwave-s, waterwave.
MODELS = {
    "ResNet50": ("resnet50", 2, {"V100": (406, 266, 370), "P100": (190, 120, 176)}),
    "ResNet152": ("resnet152", 2, {"V100": (186, 118, 160), "P100": (86, 62, 78)}),
    "NasNet": ("nasnet-a-mobile", 4, {"V100": (560, 316, 544), "P100": (280, 192, 260)}),
    "InceptionV3": ("inception-v3", 2, {"V100": (332, 204, 310), "P100": (160, 106, 150)}),
    "BERT-base": ("bert-base", 2, {"V100": (138, 88, 124), "P100": (60, 38, 48)}),
    "Tacotron2": ("tacotron2", 2, {"V100": (198, 96, 152), "P100": (98, 48, 72)}),
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


def side_by_side(jobs, device, options):
    """The summary of a plan in which node groups share pairs, else None."""
    command = [PLANC, "colocate", *jobs, "--max-ratio", "1", "--device", device, *options, "--json", "-o", os.devnull]
    text = fitting(command)
    made = json.loads(text) if text else None
    whole = made and all(job["rounds"] == 1 for job in made["jobs"])
    return made if whole and re.search(r"side by side in \d+ of", made["explanation"]) else None


def sole(folder, model, device):
    _, step, paper = MODELS[model]
    return sole_batch(path_of(folder, model), DEVICES[device], step, paper[device][0])


def together(folder, models, device, options, start, step):
    paths = [path_of(folder, model) for model in models]
    return largest(step, start, lambda batch: side_by_side([f"{path}:{batch}" for path in paths], DEVICES[device], options))


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
        return json.loads(planc("simulate", path, *options, "--json"))["iteration_ns"]
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
            for model, (_, step, paper) in MODELS.items():
                alone = sole(folder, model, device)
                halves, as_paper, ours = (together(folder, [model] * 2, device, options, alone * 9 // 10, step)
                                          for options in (HALVES, PAPER, OURS))
                told = paper[device]
                rows.append([model, alone, halves, as_paper, ours, share(halves, alone), share(told[1], told[0]),
                             share(as_paper, alone), share(ours, alone), share(told[2], told[0])])
                tell(device, rows)
            table(f"Table 1: largest batch of two equal jobs, {device}",
                  ["model", "sole", "-s", "as the paper", "waterwave", "-s of sole", "paper", "as the paper of sole",
                   "waterwave of sole", "paper"], rows,
                  ["a plan takes turns where that is faster: with larger batches than -s's, its pairs are slower than turns, or do not fit"])


def table2(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for models, paper in MIXES.items():
            found = []
            for k, model in enumerate(models):
                other = path_of(folder, models[1 - k])
                beside = MODELS[models[1 - k]]
                fixed = paper[1 - k] * sole(folder, models[1 - k], "V100") // beside[2]["V100"][0]
                alone = sole(folder, model, "V100")

                def fits(batch):
                    jobs = [f"{path_of(folder, model)}:{batch}", f"{other}:{fixed}"]
                    return side_by_side(jobs, DEVICES["V100"], OURS)
                found += [largest(MODELS[model][1], alone * 9 // 10, fits), alone]
            told = [share(batch, MODELS[model][2]["V100"][0]) for batch, model in zip(paper, models)]
            rows.append([" + ".join(models), *found[::2], share(found[0], found[1]), told[0], share(found[2], found[3]), told[1]])
            tell("V100", rows)
    table("Table 2: largest batches of two unequal jobs, V100",
          ["jobs", "batch A", "batch B", "A of sole", "paper", "B of sole", "paper"], rows,
          ["each beside the other at the paper's share of its own sole batch"])


def several(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        alone, speeds = sole(folder, "ResNet50", "V100"), {}
        for n_jobs in (2, 3, 4):
            batch = together(folder, ["ResNet50"] * n_jobs, "V100", OURS, alone * 8 // 10, 2)
            made = side_by_side([f"{graph('resnet50')}:{batch}"] * n_jobs, DEVICES["V100"], OURS)
            speeds[n_jobs] = 1e9 * n_jobs * batch / made["iteration_ns"] if made else 0
            told = SEVERAL.get(n_jobs, (370, None))
            rows.append([n_jobs, batch, share(batch, alone), share(told[0], 406), f"{speeds[n_jobs]:.1f}", told[1] or "-"])
            tell("V100", rows)
    table("Section 5.5: ResNet-50, V100", ["jobs", "largest batch", "of sole", "paper", "images/s", "paper"], rows)


def splits(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model, sizes in {**SPLITS, "Tacotron2": GROUPS}.items():
            alone, step = sole(folder, model, "V100"), MODELS[model][1]
            for size in sizes:
                options = [*PAPER, "--split-groups", str(size)] if model == "Tacotron2" else [*PAPER, "--split-size", f"{size}G"]
                batch = together(folder, [model] * 2, "V100", options, alone * 9 // 10, step)
                made = side_by_side([f"{path_of(folder, model)}:{batch}"] * 2, DEVICES["V100"], options) if batch else None
                rows.append([model, f"{size} groups" if model == "Tacotron2" else f"{size} GB", batch, share(batch, alone),
                             f"{1e9 * 2 * batch / made['iteration_ns']:.1f}" if made else "-"])
                tell("V100", rows)
    table("Fig. 8: two equal jobs by the size of node groups, as the paper has them, V100",
          ["model", "split", "largest batch", "of sole", "samples/s"], rows,
          ["the paper's largest batches are at 6 GB, NasNet's at 12, ResNet152's from 2 to 8, Tacotron2's at 8 groups"])


def throughput(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            alone = sole(folder, model, "V100")
            for part in (8, 4, 2, 1.25):
                batch = max(1, int(alone / part))
                jobs = [f"{path_of(folder, model)}:{batch}"] * 2
                found = json.loads(planc("compare", "--colocate", "--no-least", *jobs, "--max-ratio", "1", "--device",
                                         DEVICES["V100"], "--policies", "temporal,mps,waterwave", "--json"))["rows"]
                speed = {row["policy"]: 1e9 * 2 * batch / row["iteration_ns"] if row["iteration_ns"] else None for row in found}
                waterwave, temporal, mps = (speed.get(name) for name in ("waterwave", "temporal", "mps"))
                rows.append([model, batch, *(f"{s:.1f}" if s else "-" for s in (temporal, mps, waterwave)),
                             f"{waterwave / temporal - 1:+.1%}" if waterwave and temporal else "-",
                             f"{waterwave / mps:.2f}" if waterwave and mps else "-"])
                tell("V100", rows)
    table("Fig. 7: samples a second of two equal jobs, V100",
          ["model", "batch", "temporal", "mps", "waterwave", "over temporal", "times mps"], rows,
          ["paper: at most +14.27 % over temporal but for Tacotron2's +49 %, ResNet152's at batch 32; 12 times mps for ResNet50,",
           "6.8 for BERT-base, 3.1 for Tacotron2, at the largest batches"])


if __name__ == "__main__":
    bench(simulated(" and ".join(DEVICES.values())),
          {"figure2": figure2, "figure3": figure3, "table1": table1, "table2": table2, "several": several, "splits": splits,
           "throughput": throughput})
