"""Models with their profiles, and plans for them. Plans are made in the background, on processors that the GPU's work
leaves, ahead of the checks that run them, and are kept: one that is there is not made again for the same profile."""

import concurrent.futures
import dataclasses
import json
import os
import re
import sys
import threading

from .commands import Failure, Unfit, last_words
from .state import digest, writable


@dataclasses.dataclass(frozen=True)
class Model:
    """A graph at a batch. `name` is its graph's, `precision` that of `planc train`."""
    name: str
    batch: int
    batches: str  # that are profiled
    precision: str = "f32"
    nhwc: bool = False
    optimizer: str = "sgd"
    image: bool = True
    repetitions: int = 3
    unmeasured: int = None  # a batch that does not fit, of which workspaces are listed

    @property
    def label(self):
        return "-".join([self.name, self.precision] + ["nhwc"] * self.nhwc)

    @property
    def graph(self):
        return os.path.join("graphs", self.label + ".yaml")


@dataclasses.dataclass(frozen=True)
class Job:
    """A plan to be made. The budget is bytes, a share of what is live with everything resident in per cent, or None:
    what the device has. Of several shares the first that can be met is taken."""
    model: Model
    policy: str
    budget: int = None
    shares: tuple = ()
    device: str = None  # a description instead of the model's profile
    options: tuple = ()
    batch: int = None   # instead of the model's

    @property
    def name(self):
        size = f"-of-{self.batch}" if self.batch else ""
        size += "" if not self.budget else f"-{self.budget >> 20}m"
        return "-".join([self.model.label, self.policy, *filter(None, [self.device])]) + size + "".join(self.options)


class Planner:
    """Makes plans with planc. `commands(log)` gives what runs it, with a log of its own; `device` is a name for files."""

    def __init__(self, state, tools, commands, workers, device):
        self.state, self.tools, self.commands, self.device = state, tools, commands, device
        self.pool = concurrent.futures.ThreadPoolExecutor(workers)
        self.lock, self.asked, self.graphs, self.least = threading.Lock(), {}, threading.Lock(), threading.Lock()
        self.running, self.closed = set(), False

    def close(self):
        """Ends what is still being made."""
        self.closed = True  # for what has begun and does not run yet
        self.pool.shutdown(wait=False, cancel_futures=True)
        for commands in list(self.running):
            commands.kill_all()
        self.pool.shutdown(wait=True)

    def ask(self, job):
        """The future of a plan, which may have been asked for before."""
        with self.lock:
            if job not in self.asked:
                self.asked[job] = self.pool.submit(self.make, job)
            return self.asked[job]

    def get(self, job):
        """Its path and what planc told. Unfit where no budget that is asked for can be met. What failed is tried again
        when it is asked for the next time."""
        try:
            made = self.ask(job).result()
        except Exception:
            with self.lock:
                self.asked.pop(job, None)
            raise
        if "why" in made:
            raise Unfit(made["why"])
        return self.state.path(made["plan"]), made

    # --- Graphs and profiles

    def graph(self, model, commands):
        """The path of a model's training graph, made if it is not there."""
        path = self.state.path(model.graph)
        with self.graphs:
            if not os.path.exists(path):
                source = self.tools.graph(model.name)
                if model.nhwc:
                    folder = self.state.path("graphs", "nhwc")
                    os.makedirs(folder, exist_ok=True)
                    commands.must(sys.executable, "-B", self.tools.generator, model.name, "--nhwc", "-d", folder, ours=False)
                    source = os.path.join(folder, model.name + ".yaml")
                commands.must(self.tools.planc, "train", source, "--precision", model.precision, "--optimizer",
                              model.optimizer, "-o", path)
        return path

    def profile(self, model):
        """The name of a model's profile, which no other device's has: it is there when it has been measured."""
        return os.path.join("profiles", f"{self.device}-{model.label}-{model.batch}.json")

    # --- Plans

    def make(self, job):
        about = os.path.join("plans", job.name + ".json")
        made, profile = self.state.load(about), None if job.device else digest(self.state.path(self.profile(job.model)))
        if made and made["profile"] == profile and ("why" in made or os.path.exists(self.state.path(made["plan"]))):
            return made
        with writable(self.state.path("logs", f"plan-{job.name}.log"), "a") as log:
            commands = self.commands(log)
            self.running.add(commands)
            if self.closed:
                commands.kill_all()
            try:
                made = {**self.make_anew(job, commands), "profile": profile}
            finally:
                self.running.discard(commands)
        self.state.save(about, made)
        return made

    def make_anew(self, job, commands):
        common = ["nice", self.tools.planc, "plan", self.graph(job.model, commands), "--batch",
                  job.batch or job.model.batch, "--json",
                  "--policy", job.policy, *job.options]
        if job.device:
            common += ["--device", job.device]
        else:
            common += ["--profile", self.state.path(self.profile(job.model))]
        why = None
        for budget, share in self.budgets(job, commands):
            path = os.path.join("plans", job.name + ".plan")
            done = commands.run(*common, *(["--budget", budget] if budget else []), "-o", self.state.path(path))
            if done.returncode == 0:
                shown = commands.must(self.tools.planc, "show", self.state.path(path), "--json")
                commands.must(self.tools.planc, "check", self.state.path(path), *(["--budget", budget] if budget else []))
                return {"plan": path, "budget_bytes": budget, "share": share, "told": read(done.stdout), "shown": read(shown)}
            if done.returncode != 1:
                raise Failure(f"planc plan: exit {done.returncode}: {last_words(done.stderr)}")
            why = f"does not fit {budget or 'the device'}; least {least_budget(done.stderr)}"
        return {"why": why}

    def everything(self, model, commands):
        """The least budget with everything resident, and what is reserved of it."""
        path, about = self.state.path("plans", f"{model.label}-least.plan"), os.path.join("plans", f"{model.label}-least.json")
        profile = digest(self.state.path(self.profile(model)))
        with self.least:  # once for all that are after the same
            known = self.state.load(about)
            if known and known["profile"] == profile:
                return known["live_bytes"], known["reserved_bytes"]
            common = [self.tools.planc, "plan", self.graph(model, commands), "--profile", self.state.path(self.profile(model)),
                      "--batch", model.batch, "--policy", "none", "--budget"]
            live = least_budget(commands.run(*common, "1K", "-o", os.devnull).stderr)
            commands.must(*common, live, "-o", path)
            reserved = read(commands.must(self.tools.planc, "show", path, "--json"))["reserved_bytes"]
            self.state.save(about, {"profile": profile, "live_bytes": live, "reserved_bytes": reserved})
        return live, reserved

    def budgets(self, job, commands):
        if not job.shares:
            return [(job.budget, None)]
        live, reserved = self.everything(job.model, commands)
        # A small model's peak is hardly more than what is reserved: there that is left aside.
        aside = 0 if live > 4 * reserved else reserved
        return [(aside + (live - aside) * share // 100, share) for share in job.shares]


def read(text):
    return json.loads(text.strip().splitlines()[-1])


def least_budget(told):
    found = re.search(r"least feasible budget of \S+ is (\d+) bytes", told)
    if not found:
        raise Failure(f"no least budget in: {last_words(told, 200)}")
    return int(found[1])
