"""The CUDA backend on a machine without a GPU: what it says of that, cuDNN's algorithms for devices that are described
only, and, on the emulated device (tests/cuda/emulator/emulator.h), everything else that it does. Needs `make cuda
emulated`; without a CUDA toolkit the tests are left out."""

import functools
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from unittest import mock

from graphtest import GRAPHS  # first: it finds what is imported next
from sampling import sampled

import pix2pixhd
from test_pix2pixhd import SMALL

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
EMULATED = os.path.join(BUILD, "emulated")
HAS_PLUGIN = os.path.exists(os.path.join(BUILD, "libplanrt-cuda.so"))
HAS_EMULATED = os.path.exists(os.path.join(EMULATED, "libplanrt-cuda.so"))
PROFILED_MEMORY = 2 << 30
HAS_GPU = os.path.exists("/dev/nvidiactl")

# Programs leave an interrupt alone that is ignored, as it is in the background of a shell's script: not those of tests.
signal.signal(signal.SIGINT, signal.default_int_handler)


def graph(name):
    return os.path.join(GRAPHS, name + ".yaml")


def run(program, *arguments, code=0, **environment):
    done = subprocess.run([os.path.join(BUILD, program), *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **{key: str(value) for key, value in environment.items()}})
    if code is not None and done.returncode != code:
        raise AssertionError(f"{program} {arguments}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done


def emulated(program, *arguments, code=0, **environment):
    """On the emulated device, where misuse of CUDA and leaks end in exit code 99. It has no clocks to warm up, and of less memory
    links are measured over less."""
    if arguments[0] == "profile" and "--deviceless" not in arguments:
        arguments = (*arguments, *(() if "--warm-up" in arguments else ("--warm-up", 1)))
        environment.setdefault("EMULATED_CUDA_MEMORY", PROFILED_MEMORY)
    return run(program, *arguments, code=code, PLANRT_PLUGINS=EMULATED, EMULATED_CUDA_STRICT=1, **environment)


@functools.cache
def measured():
    """LeNet's profile on the emulated device, for batches of two, which several tests begin with."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.json")
        emulated("planrun", "profile", graph("lenet-digits"), "--backend", "cuda", "--batches", "2", "-r", 1, "-o", path)
        with open(path, encoding="utf-8") as file:
            return file.read()


def catches(process, number):
    """Whether a process has a handler for a signal."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        caught = int(re.search(r"^SigCgt:\s*(\w+)", file.read(), re.M)[1], 16)
    return bool(caught >> (number - 1) & 1)


def pieces_of(path, kind):
    """Those that a profile has kept so far, in whole lines."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")[1:-1]
    return [json.loads(line) for line in lines if line.startswith(f'{{"piece":"{kind}"')]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def put_measured(self, name):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(measured())


class WithoutDevice(Case):
    def test_a_plug_in_that_is_not_there(self):
        done = run("planrun", "info", PLANRT_PLUGINS=self.folder)
        self.assertIn(f"no backend cuda: $PLANRT_PLUGINS has no {self.folder}/libplanrt-cuda.so", done.stdout)
        self.assertNotIn("$PLANRT_PLUGINS has no", run("planrun", "info", PLANRT_PLUGINS="").stdout)
        for name in ("../cuda", "", "cuda/x", "Cuda"):
            self.assertIn("is not the name of a backend",
                          run("planrun", "profile", graph("lenet-digits"), "--backend", name, code=2).stderr)

    def test_a_file_that_is_no_plug_in(self):
        with open(self.path("libplanrt-cuda.so"), "w", encoding="utf-8") as file:
            file.write("not a shared object")
        done = run("planrun", "info", PLANRT_PLUGINS=self.folder)
        self.assertRegex(done.stdout, r"backend cuda: not available: backend cuda: .*libplanrt-cuda.so: ")

    @unittest.skipUnless(HAS_PLUGIN and not HAS_GPU, "no CUDA toolkit, or a GPU")
    def test_no_driver_is_what_is_missing(self):
        done = run("planrun", "info")
        self.assertRegex(done.stdout, r"backend cuda: not available: no NVIDIA driver; CUDA \d+\.\d+ needs one\n")
        found = json.loads(run("planrun", "info", "--json").stdout)["backends"]
        self.assertEqual([(b["name"], b["available"]) for b in found], [("host", True), ("cuda", False)])
        run("planc", "plan", graph("lenet-digits"), "--device", "h100", "--budget", "1G", "-o", self.path("x.plan"))
        done = run("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6)
        self.assertIn("no NVIDIA driver", done.stderr)

    @unittest.skipUnless(HAS_EMULATED, "no emulated plug-in")
    def test_every_reason_has_its_words(self):
        for environment, said in (({"EMULATED_CUDA_DRIVER": "none"}, "no NVIDIA driver"),
                                  ({"EMULATED_CUDA_DRIVER": "12040"}, "made for CUDA 12.4, and this plug-in for 13.0"),
                                  ({"EMULATED_CUDA_DEVICES": "0"}, "an NVIDIA driver, but no device"),
                                  ({"EMULATED_CUDNN_CUDA": "12090"}, "cuDNN is made for CUDA 12.9, and this plug-in for 13.0")):
            done = emulated("planrun", "info", **environment)
            self.assertIn("backend cuda: not available: " + said, done.stdout.replace("the NVIDIA driver is ", ""))


@unittest.skipUnless(HAS_PLUGIN, "no CUDA toolkit")
class Deviceless(Case):
    """cuDNN itself, asked about devices that are not there."""

    asked = {}  # what it answered

    def profile(self, name, device, *options):
        key = name, device, *options
        if key in self.asked:
            with open(self.path("p.json"), "w", encoding="utf-8") as file:
                json.dump(self.asked[key], file)
        else:
            run("planrun", "profile", graph(name), "--deviceless", device, "-o", self.path("p.json"), *options)
            self.asked[key] = self.read("p.json")
        return self.read("p.json")

    def test_plans_for_12g_have_cudnn_s_workspaces(self):
        for name in ("resnet50", "vgg16"):
            with self.subTest(graph=name):
                profile = self.profile(name, "h100", "--batches", "256")
                several = 0
                for op in profile["ops"]:
                    for variant in op["variants"]:
                        self.assertTrue(variant["predicted"])
                        self.assertEqual(variant["workspace_bytes"],
                                         max(point["workspace_bytes"] for point in variant["points"]))
                    if "conv" in op["op"] and len(op["variants"]) > 1:
                        several += 1
                        for variant in op["variants"]:
                            self.assertRegex(variant["algorithm"], r"^(cudnn-\d+\.\d+\.\d+-sm90-e\d+(:[\d=,]+)?|cublaslt-(parts-)?\d+)$")
                self.assertGreater(several, 10)
                run("planc", "plan", graph(name), "--profile", self.path("p.json"), "--batch", 256, "--budget", "12G",
                    "--split-batch-norm", "-o", self.path("x.plan"))
                run("planc", "check", self.path("x.plan"), "--budget", "12G")
                with open(self.path("x.plan"), encoding="utf-8") as file:
                    self.assertIn("cudnn-", file.read())

    def test_sums_of_half_results_are_not_rounded_in_parts(self):
        """cuDNN has engines that split such sums, the heuristics propose them, and no note tells. Knob 0 is the number of
        parts; sums in f32 may be split."""
        parts = {"bf16": set(), "tf32": set()}
        for name, precision in (*((name, "bf16") for name in sampled(["vgg16", "resnet50"])), ("vgg16", "tf32")):
            run("planc", "train", graph(name), "--precision", precision, "-o", self.path("g.yaml"))
            run("planrun", "profile", self.path("g.yaml"), "--deviceless", "h200", "--batches", "64", "--most", 0, "-o",
                self.path("p.json"))
            parts[precision] |= {int(found[1]) for op in self.read("p.json")["ops"] for variant in op["variants"]
                                 if (found := re.search(r"-e\d+:(?:.*,)?0=(\d+)", variant["algorithm"]))}
        self.assertLessEqual(parts["bf16"], {1})
        self.assertGreater(max(parts["tf32"]), 1)

    def test_times_at_other_sizes_of_rounds(self):
        """A device's constants give no line in the batch."""
        for rounds in sampled([8, 11], first=1):
            times = []
            for batches in (64, rounds):
                profile = self.profile("resnet34", "h100", "--batches", batches)
                told = run("planc", "plan", graph("resnet34"), "--profile", self.path("p.json"), "--batch", rounds, "--json",
                           "-o", self.path("x.plan"))
                times.append(json.loads(told.stdout)["iteration_ns"])
                sizes = {point["batch"] for op in profile["ops"] for v in op["variants"] for point in v["points"]}
                self.assertEqual(sizes, {batches >> halvings for halvings in range(7)} - {0})
            self.assertLess(abs(times[0] - times[1]), 0.1 * times[1])

    def test_every_described_device(self):
        for device, arch in (("rtx2080ti", 75), ("a6000", 86), ("a100-40g", 80), ("a100-80g", 80), ("l4", 89), ("h100", 90),
                             ("h200", 90)):
            profile = self.profile("lenet-digits", device, "--batches", "64")
            algorithms = [v["algorithm"] for op in profile["ops"] for v in op["variants"] if v["algorithm"][:5] == "cudnn"]
            self.assertTrue(algorithms)
            for algorithm in algorithms:
                self.assertIn(f"-sm{arch}-e", algorithm)
            self.assertIn("dumped from a card" if device in ("h100", "h200") else "constructed", profile["machine"])

    def test_deterministic_leaves_out_the_others(self):
        every = self.profile("vgg16", "h100", "--batches", "32")
        some = self.profile("vgg16", "h100", "--batches", "32", "--deterministic")

        def algorithms(profile, deterministic):
            return {(op["op"], v["algorithm"]) for op in profile["ops"] for v in op["variants"]
                    if v["deterministic"] in deterministic}

        self.assertTrue(algorithms(every, (False,)))
        self.assertEqual(algorithms(some, (True, False)), algorithms(every, (True,)))

    def test_of_equals_the_deterministic_is_chosen(self):
        """Of ResNet-50's convolutions none then needs another."""
        profile = self.profile("resnet50", "h100", "--batches", "256")
        unsure = {(op["op"], v["algorithm"]) for op in profile["ops"] for v in op["variants"] if not v["deterministic"]}
        self.assertGreater(len(unsure), 100)
        for options in ([], ["--budget", "20G"], ["--policy", "superneurons", "--budget", "14G"]):
            run("planc", "plan", graph("resnet50"), "--profile", self.path("p.json"), "--batch", 256, "-o",
                self.path("x.plan"), *options)
            chosen = self.convolutions("x.plan")
            self.assertEqual(len({op for op, _ in chosen}), 158, options)
            self.assertEqual(chosen & unsure, set(), options)

    def convolutions(self, name):
        """Op and algorithm of every convolution of a plan of one round."""
        with open(self.path(name), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        ops = [row["op"] for row in rows if "op" in row]
        algorithms = [row["algorithm"] for row in rows if "algorithm" in row]
        executed = [(ops[row["n"] % len(ops)], algorithms[row["a"]]) for row in rows if row.get("i") == "exec"]
        return {(op, algorithm) for op, algorithm in executed if algorithm.startswith("cudnn-")}

    def test_tf32_and_bf16_have_tensor_cores_and_f32_has_not(self):
        for name, precision in itertools.product(sampled(["lenet-digits", "vgg16"]), ("f32", "tf32", "bf16")):
            run("planc", "train", graph(name), "--precision", precision, "-o", self.path("g.yaml"))
            run("planrun", "profile", self.path("g.yaml"), "--deviceless", "h100", "--batches", "32", "-o",
                self.path("p.json"))
            notes = {note for op in self.read("p.json")["ops"] for v in op["variants"] for note in v.get("notes", [])}
            self.assertEqual("tensor-core" in notes, precision != "f32", (name, precision))

    def test_what_cudnn_has_no_engine_for(self):
        run("planc", "train", graph("vgg16"), "--precision", "bf16", "-o", self.path("g.yaml"))
        done = run("planrun", "profile", self.path("g.yaml"), "--deviceless", "rtx2080ti", "--batches", "2", "-o",
                   self.path("p.json"))
        self.assertRegex(done.stderr, r"note: op \w+, and every other of which that holds, is left out: cuDNN [\d.]+ has no "
                         r"engine for conv2d in bf16 on sm_75\n")

    def test_ops_without_a_kernel_are_left_out(self):
        with mock.patch.multiple(pix2pixhd, **SMALL):
            pix2pixhd.pix2pixhd().write(self.path("small.yaml"))
        done = run("planrun", "profile", self.path("small.yaml"), "--deviceless", "h100", "--batches", "1", "-o",
                   self.path("p.json"))
        self.assertIn("note: op one_hot, and every other of which that holds, is left out: the CUDA backend has no kernel for "
                      "pix2pixhd.one_hot", done.stderr)
        self.assertNotIn("one_hot", [op["op"] for op in self.read("p.json")["ops"]])
        run("planc", "plan", self.path("small.yaml"), "--profile", self.path("p.json"), "--batch", 1, "-o", self.path("x.plan"))

    def test_an_interrupt_ends_it(self):
        child = subprocess.Popen([os.path.join(BUILD, "planrun"), "profile", graph("resnet50"), "--deviceless", "h100",
                                  "--batches", "256,255,254,253", "-o", self.path("p.json")], stderr=subprocess.PIPE,
                                 text=True)
        while not catches(child, signal.SIGINT):
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        told = child.communicate()[1]
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertIn("planrun: interrupted; nothing is kept: the same command begins anew\n", told)
        self.assertEqual(os.listdir(self.folder), [])

    @unittest.skipUnless(HAS_EMULATED, "no emulated plug-in")
    def test_a_device_that_was_measured_elsewhere(self):
        self.put_measured("mine.json")
        shutil.copy(os.path.join(ROOT, "profiles/h100.properties.json"), self.path("mine.properties.json"))
        profiles = [self.profile("lenet-digits", self.path(name), "--batches", "8")
                    for name in ("mine.json", "mine.properties.json")]
        for profile in profiles:
            profile["machine"] = ""
        self.assertEqual(*profiles)
        self.assertEqual(profiles[0]["device"], self.read("mine.json")["device"])
        self.assertNotIn("links", profiles[0])
        os.remove(self.path("mine.json"))
        self.assertIn("mine.json", run("planrun", "profile", graph("lenet-digits"), "--deviceless",
                                       self.path("mine.properties.json"), code=3).stderr)

    def test_properties_that_cannot_be(self):
        for text in ("{}", "[", '{"planrun":"device-properties/1","origin":"x","properties":{"deviceVer":900}}',
                     '{"planrun":"device-properties/2","origin":"x","properties":{}}'):
            with open(self.path("h100.properties.json"), "w", encoding="utf-8") as file:
                file.write(text)
            with open(os.path.join(ROOT, "profiles/h100.json"), encoding="utf-8") as file:
                description = file.read()
            with open(self.path("h100.json"), "w", encoding="utf-8") as file:
                file.write(description)
            done = run("planrun", "profile", graph("lenet-digits"), "--deviceless", "h100", "-o", self.path("p.json"),
                       code=None, PLANC_PROFILES=self.folder)
            self.assertIn(done.returncode, (3, 6), text)
            self.assertFalse(os.path.exists(self.path("p.json")))
        done = run("planrun", "profile", graph("lenet-digits"), "--deviceless", "k40m", "-o", self.path("p.json"), code=3)
        self.assertIn("device k40m has no device properties (k40m.properties.json); these have: a100-40g, a100-80g, a6000, "
                      "h100, h200, l4, rtx2080ti", done.stderr)
        done = run("planrun", "profile", graph("lenet-digits"), "--deviceless", "abacus", "-o", self.path("p.json"), code=3)
        self.assertIn("no description of device abacus", done.stderr)
        run("planrun", "profile", graph("lenet-digits"), "--deviceless", "h100", "--loads", "50", code=2)


@unittest.skipUnless(HAS_EMULATED, "no emulated plug-in")
class Emulated(Case):
    def test_every_op_as_the_host_does_it(self):
        for number, (name, batch, rounds) in enumerate((("lenet-digits", 3, 2), ("tiny-transformer", 2, 1))):
            for precision in sampled(["tf32", "f32", "bf16"], first=number):
                with self.subTest(graph=name, precision=precision):
                    run("planc", "train", graph(name), "--precision", precision, "-o", self.path("g.yaml"))
                    done = emulated("cuda/compare_backends", "cuda", self.path("g.yaml"), batch, rounds)
                    self.assertRegex(done.stdout, r"\d+ calls compared, .* 0 failures\n$")

    def test_convolutions_of_single_pixels_are_products_too(self):
        """37 images are two lots of 16 partial sums and a rest, and one lot of fewer than 64."""
        for number, (layout, dims) in enumerate((("NCHW", lambda c, h, w: f"{c},{h},{w}"), ("NHWC", lambda c, h, w: f"{h},{w},{c}"))):
            with open(self.path("pixels.yaml"), "w", encoding="utf-8") as file:
                file.write(f"""planc-graph: 1
name: pixels
layout: {layout}
batch: 37
device: h100
optimizer: sgd
origin: "a test"
loss: loss
tensors:
  images: input f32[N,{dims(5, 7, 6)}]
  labels: input i64[N]
  a.w: param f32[6,{dims(5, 1, 1)}]
  a.b: param f32[6]
  a.y: f32[N,{dims(6, 7, 6)}]
  b.w: param f32[4,{dims(6, 1, 1)}]
  b.y: f32[N,{dims(4, 4, 3)}]
  c.w: param f32[3,{dims(4, 1, 1)}]
  c.b: param f32[3]
  c.y: f32[N,{dims(3, 2, 3)}]
  flat: f32[N,18] of c.y
  loss: f32[]
  probs: f32[N,18]
ops:
  - {{op: a, type: conv2d, in: [images, a.w, a.b], out: [a.y], attrs: {{stride: [1, 1], pad: [0, 0]}}}}
  - {{op: b, type: conv2d, in: [a.y, b.w], out: [b.y], attrs: {{stride: [2, 2], pad: [0, 0]}}}}
  - {{op: c, type: conv2d, in: [b.y, c.w, c.b], out: [c.y], attrs: {{stride: [3, 1], pad: [0, 0]}}}}
  - {{op: loss, type: softmax_xent, in: [flat, labels], out: [loss, probs]}}
""")
            for precision in sampled(["f32", "tf32", "bf16"], first=number):
                with self.subTest(layout=layout, precision=precision):
                    run("planc", "train", self.path("pixels.yaml"), "--precision", precision, "-o", self.path("g.yaml"))
                    for batch, rounds in sampled([(37, 1), (5, 2)], first=["bf16", "f32", "tf32"].index(precision)):
                        done = emulated("cuda/compare_backends", "cuda", self.path("g.yaml"), batch, rounds)
                        self.assertRegex(done.stdout, r"\d+ calls compared, .* 0 failures\n$")
            emulated("planrun", "profile", self.path("g.yaml"), "--backend", "cuda", "--batches", "37", "-r", 1, "-o",
                     self.path("p.json"))
            variants = {op["op"]: {variant["algorithm"] for variant in op["variants"]} for op in self.read("p.json")["ops"]}
            sums = {"cublaslt-parts-16", "cublaslt-parts-64"} if layout == "NCHW" else {"cublaslt-0"}
            for op, own in (("b", {"cublaslt-0"}), ("b.dgrad", {"cublaslt-0"}), ("b.wgrad", sums)):
                self.assertLessEqual(own, variants[op], op)
            self.refuse_other_names("b.wgrad")
            self.refuse_other_names("b.dgrad")

    def refuse_other_names(self, op):
        """A plan whose convolution names a product that it is not ends with a reason, and runs nothing else instead."""
        run("planc", "plan", self.path("g.yaml"), "--profile", self.path("p.json"), "--batch", 37, "-o", self.path("x.plan"))
        with open(self.path("x.plan"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        heads = [json.loads(line) for line in lines]
        number = next(n for n, head in enumerate([head for head in heads if "op" in head]) if head["op"] == op)
        algorithm = next(head["a"] for head in heads if head.get("i") == "exec" and head["n"] == number)
        index = [i for i, head in enumerate(heads) if "algorithm" in head][algorithm]
        for name in ("cublaslt-bogus", "cublaslt-parts-3x", "cublaslt-parts-", "cublaslt-9223372036854775807", "cublaslt--1"):
            with open(self.path("y.plan"), "w", encoding="utf-8") as file:
                file.write("\n".join(lines[:index] + [json.dumps({"algorithm": name}, separators=(",", ":"))] + lines[index + 1:]) + "\n")
            done = emulated("planrun", "exec", self.path("y.plan"), "--backend", "cuda", "-n", 1, code=6)
            self.assertIn("no such algorithm", done.stderr, name)

    def plan(self, name, *options):
        done = run("planc", "plan", graph(name), "--device", "h100", "-o", self.path("x.plan"), *options)
        return done

    def test_losses_are_the_host_s(self):
        self.plan("lenet-digits", "--batch", 16, "--budget", "900M")
        host = json.loads(run("planrun", "exec", self.path("x.plan"), "-n", 3, "--json").stdout)["losses"]
        for options in ([], ["--graph"], ["--sequential"]):
            cuda = json.loads(emulated("planrun", "exec", self.path("x.plan"), "-n", 3, "--json", "--backend", "cuda",
                                       *options).stdout)["losses"]
            for a, b in zip(host, cuda, strict=True):
                self.assertLess(abs(a - b), 1e-4 * abs(a))

    def constrained(self, name, batch, policy, *more):
        """A plan of a policy at 1.1 times the least that it needs beside what the device reserves."""
        told = run("planc", "plan", graph(name), "--device", "h100", "--batch", batch, "--policy", policy, "--budget",
                   "1K", "-o", self.path("x.plan"), *more, code=1).stderr
        least = int(re.search(r"least feasible budget of \S+ is (\d+) bytes", told)[1])
        with open(os.path.join(ROOT, "profiles/h100.json"), encoding="utf-8") as file:
            reserved = json.load(file)["device"]["reserved_bytes"]
        budget = reserved + (least - reserved) * 11 // 10
        run("planc", "plan", graph(name), "--device", "h100", "--batch", batch, "--policy", policy, "--budget", budget,
            "-o", self.path("x.plan"), *more)

    WAYS = [["--poison"], ["--jitter", "3"], ["--graph"], ["--graph", "--poison"]]  # to run a plan

    def computes_the_reference_s_bits(self, policy, ways=None):
        for seed, options in enumerate(ways or self.WAYS):
            with self.subTest(policy=policy, options=options):
                done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--deterministic",
                                "--verify", "-n", 2, "--json", *options, EMULATED_CUDA_SEED=seed)
                self.assertTrue(json.loads(done.stdout)["verified"])

    def test_constrained_plans_compute_the_reference_s_bits(self):
        for n, policy in enumerate(("modnn", "vdnn-all", "vdnn-conv", "vdnn-dyn", "vdnn+", "chen", "cheap", "tensile")):
            self.constrained("lenet-digits", 4, policy)
            self.computes_the_reference_s_bits(policy, sampled(self.WAYS, len(self.WAYS), n))

    def test_what_is_at_home_on_the_host_between_iterations(self):
        self.constrained("tiny-transformer", 2, "tensile", "--optimizer", "adam")
        with open(self.path("x.plan"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r'\{"boundary":\d+,"m":1,')
        self.computes_the_reference_s_bits("tensile")

    def test_nothing_is_allocated_in_the_step(self):
        self.constrained("lenet-digits", 8, "vdnn-all")
        for options in ([], ["graph"]):
            made, once, more = map(int, emulated("cuda/count_allocations", self.path("x.plan"), *options).stdout.split())
            self.assertGreater(made, 3)
            self.assertEqual((once, more), (0, 0))

    def test_bare_runs(self):
        """In one queue, which waits for nothing."""
        self.constrained("lenet-digits", 8, "vdnn-all")
        done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--bare", "-n", 4, "--json")
        told = json.loads(done.stdout)
        self.assertGreater(told["period_ns"], 0)
        self.assertEqual((told["loss"], told["losses"], told["iterations"]), (None, [], 4))
        for option in (["--verify"], ["--trace", self.path("t.json")], ["--graph"], ["--poison"], ["--sequential"]):
            done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--bare", *option, code=2)
            self.assertIn(f"--bare and {option[0]} exclude each other", done.stderr)
        self.assertIn("it takes two periods or more", run("planrun", "exec", self.path("x.plan"), "--bare", code=2).stderr)
        self.assertIn("--links and --properties exclude each other",
                      run("planrun", "info", "--links", "1M", "--properties", code=2).stderr)

    def test_rates_of_links(self):
        told = json.loads(emulated("planrun", "info", "--backend", "cuda", "--links", "65M").stdout)
        self.assertEqual((told["planrun"], told["bytes"], told["memory_bytes"]), ("links/1", 128 << 20, 64 << 20))
        for key in ("h2d", "d2h", "both", "memory"):
            self.assertGreater(told[key + "_bytes_per_second"], 0)
        for size, memory, said in (("999T", 1 << 30, "999.00 TiB cannot be copied"), (0, 1 << 30, "0 B cannot be copied"),
                                   ((1 << 30) + 1, 1 << 30, "at most 1.00 GiB, the memory that both device and host have")):
            done = emulated("planrun", "info", "--backend", "cuda", "--links", size, code=2, EMULATED_CUDA_MEMORY=memory)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_virtual_memory(self):
        for policy in ("window",):
            run("planc", "plan", graph("lenet-digits"), "--device", "h100", "--batch", 256, "--policy", policy,
                "--placement", "vmm", "--chunk", "2M", "--budget", "812M", "-o", self.path("x.plan"))
            mapped = json.loads(run("planc", "show", self.path("x.plan"), "--json").stdout)["mappings"]
            self.assertGreater(mapped, 1, "no chunk is mapped twice")
            for options in sampled([["-n", 1], ["-n", 2, "--graph", "--poison"]], first=1):
                done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--verify", "--json", *options)
                self.assertTrue(json.loads(done.stdout)["verified"])
        run("planc", "plan", graph("lenet-digits"), "--device", "h100", "--batch", 8, "--policy", "window", "--placement",
            "vmm", "--chunk", "100K", "--budget", "820M", "-o", self.path("x.plan"))
        self.assertIn("this device maps multiples of",
                      emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6).stderr)

    def test_what_cannot_be_verified_is_told_before_it_runs(self):
        self.put_measured("p.json")
        profile = self.read("p.json")
        for op in profile["ops"]:  # nothing else is left to choose
            unsure = [v for v in op["variants"] if not v["deterministic"]]
            op["variants"] = unsure or op["variants"]
        with open(self.path("p.json"), "w", encoding="utf-8") as file:
            json.dump(profile, file)
        run("planc", "plan", graph("lenet-digits"), "--profile", self.path("p.json"), "--batch", 2, "--budget", "4G", "-o",
            self.path("x.plan"))
        emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda")
        for options in (["--deterministic"], ["--verify"], ["--verify", "--json"], ["--verify", "--graph"]):
            done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", *options, code=6)
            self.assertRegex(done.stderr, r"op \w+\.[dw]grad, algorithm cudnn-\S+: engine 4 is not deterministic, so its bits cannot be "
                             r"verified: a profile of deterministic algorithms alone makes plans with others\n$")
            self.assertEqual(done.stdout, "")
        emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--synthetic")
        # The host runs it with algorithms of its own, all of them deterministic.
        for options in (["--verify", "--deterministic"], ["--verify", "--jitter", 1]):
            done = run("planrun", "exec", self.path("x.plan"), "--json", "-n", 3, *options)
            self.assertTrue(json.loads(done.stdout)["verified"])

    def test_a_described_device_s_plan_runs_deterministic_engines(self):
        """Where one that is not has as little workspace, and cuDNN would rather have that one."""
        self.plan("lenet-digits", "--batch", 8, "--budget", "900M")
        losses = {emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "-n", 3, "--json", "--sequential",
                           EMULATED_CUDA_SEED=seed).stdout.split('"accuracy"')[0] for seed in range(4)}
        self.assertEqual(len(losses), 1)

    def contract(self, what, *arguments, **environment):
        for backend in ("host", "cuda"):
            with self.subTest(backend=backend):
                emulated("cuda/backend_contract", backend, what, *arguments, **environment)

    def test_copies_go_between_all_memories(self):
        self.contract("copying")

    def test_work_behind_a_failure_is_dropped(self):
        self.contract("dropping")
        run("planc", "plan", graph("lenet-digits"), "--device", "h100", "--batch", 8, "--budget", "4G", "-o",
            self.path("x.plan"))
        self.contract("replaying", self.path("x.plan"))

    def free_the_samples(self, name):
        """Of a plan, whose samples then come as soon as their stream gets there: the others' are no more than that."""
        with open(self.path(name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        head = json.loads(lines[0])
        end = len(lines) - head["epilogue"]
        rows = [(line, json.loads(line)) for line in lines[end - head["body"]:end]]
        fed = next(row["s"] for _, row in rows if row["i"] == "copy" and row["from"] == -1)
        body = [line for line, row in rows if row["i"] != "wait" or row["s"] != fed]
        lines[0] = lines[0].replace(f'"body":{len(rows)}', f'"body":{len(body)}')
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("\n".join(lines[:end - head["body"]] + body + lines[end:]) + "\n")
        return len(rows) - len(body)

    def test_slow_samples_do_not_stall_copies_out(self):
        run("planc", "plan", graph("lenet-digits"), "--device", "h100", "--batch", 32, "--sub-batch", 8, "--budget", "4G", "-o",
            self.path("x.plan"))
        self.assertGreater(self.free_the_samples("x.plan"), 0)
        for seed in range(3):
            self.contract("feeding", self.path("x.plan"), EMULATED_CUDA_SEED=seed)

    def test_a_device_that_is_lost_is_waited_for_by_nobody(self):
        emulated("cuda/backend_contract", "cuda", "losing", EMULATED_CUDA_FAULT="sticky:4")
        self.plan("lenet-digits", "--batch", 8, "--budget", "900M")
        for options in ([], ["--graph"], ["--sequential"], ["--verify"]):
            for kernel in (2, 60, 300):
                done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "-n", 20, *options, code=6,
                                EMULATED_CUDA_FAULT=f"sticky:{kernel}")
                self.assertIn("an illegal memory access was encountered", done.stderr)

    def test_a_job_of_several_fails_alone(self):
        """The others come to what they come to alone, on the device as on the host, replayed or not."""
        data = os.path.join(ROOT, "tests/data/digits/digits.csv.gz")
        run("planc", "train", graph("lenet-digits"), "--optimizer", "momentum", "-o", self.path("good.yaml"))
        with open(self.path("good.yaml"), encoding="utf-8") as file:
            text = file.read()
        with open(self.path("hot.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace("lr: 0.01", "lr: 1e9"))
        jobs = [self.path("good.yaml") + ":6", self.path("hot.yaml") + ":6", self.path("good.yaml") + ":6"]
        run("planc", "plan", self.path("good.yaml"), "--batch", 6, "--device", "h100", "--policy", "none", "-o",
            self.path("alone.plan"))
        wanted = json.loads(emulated("planrun", "exec", self.path("alone.plan"), "--backend", "cuda", "--data", data, "-n", 5,
                                     "--json").stdout.splitlines()[-1])
        for n, policy in enumerate(("temporal", "zico")):
            run("planc", "colocate", *jobs, "--device", "h100", "--policy", policy, "-o", self.path("x.plan"))
            for seed, options in enumerate(sampled([[], ["--graph"], ["--poison", "--jitter", 3], ["--sequential"]], 4, 2 - n)):
                done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--check-nan", "-n", 5, "--json",
                                *(f"--data={job}:{data}" for job in range(3)), *options, code=8, EMULATED_CUDA_SEED=seed)
                self.assertIn("x.plan: job 1 (lenet-digits): iteration 2: the loss is nan\n", done.stderr)
                found = json.loads(done.stdout.splitlines()[-1])["jobs"]
                self.assertEqual(found[1]["failed"]["iteration"], 2)
                self.assertEqual(found[1]["losses"], found[1]["losses"][:2])
                for job in (0, 2):
                    self.assertEqual((found[job]["losses"], found[job]["accuracy"]), (wanted["losses"], wanted["accuracy"]))
        emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--check-nan", "-n", 6, "--trace",
                 self.path("run.json"), *(f"--data={job}:{data}" for job in range(3)), code=8)
        trace = self.read("run.json")
        (failed,) = trace["otherData"]["failed"]
        periods = [{event["args"]["period"] for event in trace["traceEvents"] if event["args"].get("job") == job}
                   for job in range(3)]
        self.assertEqual(periods, [set(range(6)), set(range(failed["period"])), set(range(6))])

    def test_streams_have_the_priority_of_their_job(self):
        """Of two jobs that are alike the one with the higher priority ends its ops first, whichever it is."""
        job = graph("lenet-digits") + ":4:1"
        for first in range(2):
            run("planc", "colocate", job, job, "--device", "h100", "--policy", "zico", "--priority", f"{first}:5", "-o",
                self.path("x.plan"))
            for seed in sampled(range(3), 3, first):
                emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "-n", 4, "--verify", "--trace",
                         self.path("run.json"), EMULATED_CUDA_PRIORITY=1, EMULATED_CUDA_SEED=seed)
                ends = ([], [])
                for event in self.read("run.json")["traceEvents"]:
                    if "job" in event["args"] and event["ph"] == "X":
                        ends[event["args"]["job"]].append(event["ts"] + event["dur"])
                means = [sum(found) / len(found) for found in ends]
                self.assertLess(means[first], means[1 - first])

    def test_time_stamps_do_not_count(self):
        """What they take is found out and left out of launches; a copy that somebody waits for takes it."""
        stamp_us = 4000
        run("planc", "plan", graph("lenet-digits"), "--batch", 4, "--device", "h100", "--policy", "vdnn-all", "-o", self.path("x.plan"))
        emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "-n", 2, "--trace", self.path("run.json"),
                 EMULATED_CUDA_STAMP_US=stamp_us)
        events = [event for event in self.read("run.json")["traceEvents"] if event["ph"] == "X"]
        launches = sorted(event["dur"] for event in events if event["cat"] == "exec")
        copies = [event["dur"] for event in events if event["cat"] != "exec"]
        self.assertLess(launches[len(launches) // 4], stamp_us / 2)
        self.assertGreaterEqual(min(copies), stamp_us)

    def test_rounds_run_side_by_side(self):
        """They come to what they come to one after the other, replayed or not, alone and beside another job."""
        data = os.path.join(ROOT, "tests/data/digits/digits.csv.gz")
        run("planc", "plan", graph("lenet-digits"), "--batch", 8, "--sub-batch", 4, "--device", "h100", "--policy", "none", "-o",
            self.path("one.plan"))
        wanted = json.loads(emulated("planrun", "exec", self.path("one.plan"), "--backend", "cuda", "--data", data, "-n", 3,
                                     "--json").stdout.splitlines()[-1])
        job = graph("lenet-digits") + ":8"
        for jobs in (1, 2):
            run("planc", "colocate", *[job] * jobs, "--accumulate", 2, "--launch", "1ns", "--device", "h100", "-o",
                self.path("x.plan"))
            with open(self.path("x.plan"), encoding="utf-8") as file:
                self.assertEqual(file.read().count('{"stream":"compute"'), 2 * jobs)
            for seed, options in enumerate(sampled([[], ["--graph"], ["--poison", "--jitter", 3], ["--sequential"]], first=jobs)):
                done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "-n", 3, "--json", "--data",
                                f"0:{data}", *options, EMULATED_CUDA_SEED=seed)
                found = json.loads(done.stdout.splitlines()[-1])
                found = found["jobs"][0] if jobs > 1 else found
                self.assertEqual((found["losses"], found["accuracy"]), (wanted["losses"], wanted["accuracy"]))

    def test_jobs_come_and_go(self):
        """Each comes to what it comes to alone, replayed or not. Adam counts its steps, and dropout draws, from the job's own
        first iteration. The run is interrupted once all changes are made."""
        data = os.path.join(ROOT, "tests/data/digits/digits.csv.gz")
        for name, width in (("narrow", 8), ("wide", 16)):
            with open(self.path(name + ".yaml"), "w", encoding="utf-8") as file:
                file.write(f"planc-graph: 1\nname: {name}\nloss: loss\ntensors:\n  x: input f32[N,64]\n  labels: input i64[N]\n"
                           f"  w: param f32[{width},64]\n  h: f32[N,{width}]\n  d: f32[N,{width}]\n  v: param f32[10,{width}]\n"
                           "  z: f32[N,10]\n  loss: f32[]\n  probs: f32[N,10]\nops:\n"
                           "  - {op: h, type: linear, in: [x, w], out: [h]}\n"
                           "  - {op: d, type: dropout, in: [h], out: [d], attrs: {p: 0.25, seed: 1}}\n"
                           "  - {op: z, type: linear, in: [d, v], out: [z]}\n"
                           "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n")
            run("planc", "plan", self.path(name + ".yaml"), "--batch", 32, "--optimizer", "adam", "--device", "h100", "--policy",
                "none", "-o", self.path(name + ".plan"))
        run("planc", "colocate", "n=" + self.path("narrow.yaml") + ":32:2", "w=" + self.path("wide.yaml") + ":32:3", "--optimizer",
            "adam", "--device", "h100", "--policy", "zico", "-o", self.path("both.plan"))
        ways = [[], ["--graph", "--verify"], ["--graph"], ["--poison", "--jitter", 3, "--verify"]]
        for seed, options in enumerate(sampled(ways, 4, 1)):
            jobs = self.train_watched("narrow.plan", ["both.plan", "wide.plan", "both.plan", "narrow.plan"], seed, "--data", data,
                                      "--data", "w:" + data, "--save", self.path("saved"), *options)
            self.assertEqual([job["name"] for job in jobs], ["n", "w"])
            self.assertEqual([job.get("left") for job in jobs], [None, True])
            for job, values in zip(jobs, self.values(self.path("saved"))):
                self.assertGreater(job["iterations"], 0)
                alone = emulated("planrun", "exec", self.path(job["graph"] + ".plan"), "--backend", "cuda", "--data", data, "-n",
                                 job["iterations"], "--save", self.path("alone"), "--json")
                losses = json.loads(alone.stdout.splitlines()[-1])["losses"]
                common = min(len(losses), len(job["losses"]))
                self.assertEqual(losses[-common:], job["losses"][-common:])
                self.assertEqual(values, self.values(self.path("alone"))[0], (job["name"], options))

    def train_watched(self, first, plans, seed, *options):
        """The jobs of a run that begins with a plan, changes to others, and is interrupted with the last one."""
        watched = self.path("watched.plan")
        child = subprocess.Popen(
            [os.path.join(BUILD, "planrun"), "exec", self.path(first), "--backend", "cuda", "-n", "1000000", "--watch", watched,
             "--json", *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PLANRT_PLUGINS": EMULATED, "EMULATED_CUDA_STRICT": "1", "EMULATED_CUDA_SEED": str(seed)})
        child.stdout.readline()  # of the first epoch: the file is watched
        for plan in plans:
            shutil.copy(self.path(plan), watched + ".aside")
            os.rename(watched + ".aside", watched)
            told = "."
            while told and "changed to" not in told:
                told = child.stderr.readline()
            self.assertIn("changed to", told)
            time.sleep(0.2)  # for some periods
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate()
        self.assertEqual(child.returncode, -signal.SIGINT, errors)
        return json.loads(out.splitlines()[-1])["jobs"]

    @staticmethod
    def values(path):
        """What a checkpoint has of each job, in order."""
        with open(path, "rb") as file:
            head, _, rest = file.read().partition(b"\n")
        values = []
        for job in json.loads(head)["jobs"]:
            size = sum(int(value["bytes"]) for value in job["values"])
            values.append(rest[:size])
            rest = rest[size:]
        assert len(rest) == 8
        return values

    def test_more_streams_than_queues_are_told(self):
        self.plan("lenet-digits", "--batch", 8, "--budget", "900M")
        for queues, options, told in ((2, [], True), (5, [], False), (2, ["--sequential"], False), ("", [], False)):
            done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", *options,
                            CUDA_DEVICE_MAX_CONNECTIONS=queues)
            self.assertEqual("note: the run has 5 streams, and the device 2 hardware queues: some wait for each other; "
                             "CUDA_DEVICE_MAX_CONNECTIONS gives it up to 32" in done.stderr, told, done.stderr)

    def test_stand_ins_run_any_graph(self):
        self.constrained("tiny-transformer", 1, "vdnn-all")
        for seed in range(2):
            done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--synthetic", "--json",
                            *(["--graph"] if seed else []), EMULATED_CUDA_SEED=seed)
            self.assertTrue(json.loads(done.stdout)["verified"])

    def test_stand_ins_leave_what_their_op_leaves(self):
        """Of a storage that is written in parts, at odd addresses, while other parts wait elsewhere."""
        with open(self.path("parts.yaml"), "w", encoding="utf-8") as file:
            file.write("planc-graph: 1\nname: parts\noutputs: [y]\ntensors:\n  x: input u8[N,4096]\n  k: u8[N,4096]\n"
                       "  a: u8[1027N] of k\n  b: u8[3069N] of k @ 1027N\n  z: u8[N,65536]\n  y: u8[N,7]\nops:\n"
                       "  - {op: 1, type: t.f, in: [x], out: [a]}\n  - {op: 2, type: t.f, in: [x], out: [z]}\n"
                       "  - {op: 3, type: t.f, in: [z], out: [b]}\n  - {op: 4, type: t.f, in: [k], out: [y]}\n")
        run("planc", "plan", self.path("parts.yaml"), "--inference", "--device", "h100", "--policy", "vdnn-all", "--batch", 3,
            "--budget", "900M", "-o", self.path("x.plan"))
        for options in ([], ["--graph"], ["--poison"]):
            emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--synthetic", "--iterations", 3, *options)

    def test_profile_plan_run(self):
        emulated("planrun", "profile", graph("lenet-digits"), "--backend", "cuda", "--deterministic", "--batches", "8", "-r", 1,
                 "-o", self.path("p.json"))
        profile = self.read("p.json")
        self.assertGreater(profile["device"]["reserved_bytes"], 0)
        self.assertIn("Emulated", profile["machine"])
        properties = self.read("p.properties.json")
        self.assertEqual(properties["planrun"], "device-properties/1")
        self.assertIn("dumped from a card", properties["origin"])
        self.assertEqual(properties["properties"]["deviceVer"], 900)
        algorithms = {v["algorithm"].split("-")[0] for op in profile["ops"] for v in op["variants"]}
        self.assertEqual(algorithms, {"cudnn", "cublaslt", "cuda"})
        run("planc", "plan", graph("lenet-digits"), "--profile", self.path("p.json"), "--batch", 8, "--budget", "4G",
            "-o", self.path("x.plan"))
        done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "-n", 3, "--deterministic", "--verify",
                        "--json", "--trace", self.path("run.json"))
        told = json.loads(done.stdout)
        self.assertTrue(told["verified"])
        self.assertLessEqual(told["taken_bytes"], self.reserve_of(self.path("x.plan"))[0]["reserved_bytes"])
        run("planc", "simulate", self.path("x.plan"), "--against", self.path("run.json"))

    def reserve_of(self, plan):
        """What the plan reserves, and the algorithms that it runs."""
        shown = json.loads(run("planc", "show", plan, "--json").stdout)
        with open(plan, encoding="utf-8") as file:
            names = re.findall(r'^\{"algorithm":"([^"]+)"\}$', file.read(), re.MULTILINE)
        return shown, names

    def plan_with(self, profile, *options, batch=8):
        """A plan of the tf32 graph; what it reserves is the profile's and the code of its algorithms."""
        with open(self.path("with.json"), "w", encoding="utf-8") as file:
            json.dump(profile, file)
        done = run("planc", "plan", self.path("g.yaml"), "--profile", self.path("with.json"), "--batch", batch, "-o",
                   self.path("x.plan"), *options)
        shown, names = self.reserve_of(self.path("x.plan"))
        self.assertEqual(shown["reserved_bytes"],
                         profile["device"]["reserved_bytes"] + sum(profile["code"][name] for name in names))
        return done, shown, names

    def runs_within(self, shown, **environment):
        """Code and all else is within what is reserved, on a device where only the plan's code is loaded."""
        done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--json", **environment)
        self.assertLessEqual(json.loads(done.stdout)["taken_bytes"], shown["reserved_bytes"])

    def test_memory_of_the_device(self):
        """A plan is charged with the code that it runs, by default fills the device that was measured, and opens there;
        where it cannot be opened, that says how much there is."""
        memory = (2 << 30) - (1 << 19)  # no whole number of CUDA's pages
        run("planc", "train", graph("lenet-digits"), "--precision", "tf32", "-o", self.path("g.yaml"))
        emulated("planrun", "profile", self.path("g.yaml"), "--backend", "cuda", "--batches", "8", "-r", 1, "-o",
                 self.path("p.json"), EMULATED_CUDA_MEMORY=memory)
        profile = self.read("p.json")
        self.assertEqual(profile["device"]["memory_bytes"], memory)
        engines = {"cudnn": set(), "cublaslt": set(), "cuda": set()}
        for name in profile["code"]:
            engines[name.split("-")[0]].add(name)
        self.assertGreater(len(engines["cudnn"]), 5)
        self.assertEqual(set(profile["code"]), {v["algorithm"] for op in profile["ops"] for v in op["variants"]})

        done, shown, names = self.plan_with(profile, "--policy", "none")
        self.assertIn("note: budget 2.00 GiB (device cuda)", done.stderr)
        self.assertEqual(shown["budget_bytes"], memory)
        self.assertLess(sum(profile["code"][name] for name in names), sum(profile["code"].values()))
        self.runs_within(shown, EMULATED_CUDA_MEMORY=memory)
        # As if that were all that the device has.
        self.runs_within(shown, EMULATED_CUDA_MEMORY=shown["arena_bytes"] + shown["reserved_bytes"])
        for engine in (0, 1, 4, 7):  # what they share was loaded by the first of them
            wanted = f"-e{engine}"
            some = json.loads(json.dumps(profile))
            for op in some["ops"]:
                of = {e: [v for v in op["variants"] if f"-e{e}" in v["algorithm"]] for e in (engine, 0)}
                op["variants"] = of[engine] or of[0] or op["variants"]
            if any(wanted in name for name in engines["cudnn"]):
                _, shown, names = self.plan_with(some, "--policy", "none")
                self.assertTrue(any(wanted in name for name in names))
                if engine == 0:
                    self.assertLess(sum(profile["code"][name] for name in names), sum(profile["code"].values()) // 2)
                self.runs_within(shown)

        # Whatever ops took here, 30,000 times as many samples must not take too long to simulate.
        for point in (point for op in profile["ops"] for variant in op["variants"] for point in variant["points"]):
            point["time_ns"] = 1000
        _, shown, _ = self.plan_with(profile, "--policy", "none", "--budget", "4G", batch=240000)
        left = shown["arena_bytes"] >> 20
        self.assertGreater(left << 20, shown["reserved_bytes"])
        others = {"EMULATED_CUDA_MEMORY": (left + 400) << 20, "EMULATED_CUDA_OTHERS": 400 << 20}
        done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6, **others)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(f", 400.00 MiB of them taken already: plan for a budget of {left}M: ", done.stderr)
        _, shown, _ = self.plan_with(profile, "--budget", f"{left}M")
        self.runs_within(shown, **others)
        done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6, EMULATED_CUDA_MEMORY=250 << 20)
        self.assertIn("of them taken already: no budget will do: ", done.stderr)

    def test_workspaces_of_every_batch(self):
        """Of batches that nobody measured as well, and of rounds of any of several."""
        emulated("planrun", "profile", graph("lenet-digits"), "--backend", "cuda", "--batches", "6,16", "--unmeasured", 76, "-r", 1,
                 "-o", self.path("p.json"))
        for op in self.read("p.json")["ops"]:
            for variant in op["variants"]:  # what is asked about everywhere is known everywhere
                self.assertFalse("sampled" in variant and not variant["algorithm"].startswith("cudnn-"))
        for batch, rounds in sampled([(6, 3), (5, 5), (10, 10), (20, 10), (76, 76), (76, 38)], first=1):
            told = run("planc", "plan", graph("lenet-digits"), "--profile", self.path("p.json"), "--batch", batch, "--budget",
                       "4G", "--sub-batch", rounds, "-o", self.path("x.plan")).stderr
            emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda")
            self.assertNotIn("lists no workspaces for rounds of", told if rounds in (3, 38, 76) else "")
        told = run("planc", "plan", graph("lenet-digits"), "--profile", self.path("p.json"), "--batch", 20, "--budget", "4G",
                   "--sub-batch", 20, "-o", self.path("x.plan")).stderr
        self.assertIn("note: the profile lists no workspaces for rounds of 20: they are taken from others", told)

    def test_what_is_measured_is_what_is_listed_without_the_device(self):
        """Names, notes and workspaces, at every batch."""
        common = [graph("lenet-digits"), "--batches", "8"]
        emulated("planrun", "profile", *common, "--backend", "cuda", "--most", 0, "-r", 1, "-o", self.path("p.json"))
        emulated("planrun", "profile", *common, "--deviceless", self.path("p.json"), "-o", self.path("q.json"))
        found = []
        for name in ("p.json", "q.json"):
            found.append({(op["op"], v["algorithm"], v["deterministic"], *v.get("notes", []), point["workspace_bytes"])
                          for op in self.read(name)["ops"] for v in op["variants"] for point in v["points"]
                          if point["batch"] == 8})
        self.assertEqual(*found)
        emulated("planrun", "profile", *common, "--deviceless", self.path("p.json"), "--most", 2, "-o", self.path("q.json"))
        few = {op["op"]: {v["algorithm"] for v in op["variants"]} for op in self.read("q.json")["ops"]}
        emulated("planrun", "profile", *common, "--backend", "cuda", "--most", 2, "-r", 1, "-o", self.path("p.json"))
        self.assertEqual({op["op"]: {v["algorithm"] for v in op["variants"]} for op in self.read("p.json")["ops"]}, few)
        self.assertEqual(max(map(len, few.values())), 2)

    def test_a_profile_that_was_killed_goes_on(self):
        command = [graph("lenet-digits"), "--backend", "cuda", "--batches", "4,8", "-r", "1", "-o", self.path("p.json")]
        emulated("planrun", "profile", *command, "--warm-up", "1", code=-signal.SIGKILL,
                 SIGNAL_WHEN_KEPT=f"1:{int(signal.SIGKILL)}",
                 LD_PRELOAD=os.path.join(BUILD, "preload/signal_when_kept.so"))
        first = pieces_of(self.path("p.json.part"), "ops")[0]
        self.assertEqual((first["batch"], first["pass"]), (4, 0))
        self.assertGreater(first["passes"], 1)
        self.assertIn("going on from", emulated("planrun", "profile", *command).stderr)
        kept = {(time_["op"], time_["algorithm"]): time_["time_ns"] for time_ in first["times"]}
        found = {(op["op"], v["algorithm"]): point["time_ns"] for op in self.read("p.json")["ops"] for v in op["variants"]
                 for point in v["points"] if point["batch"] == 4}
        self.assertEqual({key: found[key] for key in kept}, kept)
        self.assertGreater(len(found), len(kept))

    def test_engines_that_cannot_be_run_are_left_out(self):
        run("planc", "train", graph("lenet-digits"), "--precision", "tf32", "-o", self.path("g.yaml"))
        done = emulated("cuda/compare_backends", "cuda", self.path("g.yaml"), 3, EMULATED_CUDNN_FAILS=1)
        self.assertRegex(done.stdout, r"\d+ calls compared, \d+ algorithms, [1-9]\d* left out, .* 0 failures\n$")
        command = ["planrun", "profile", self.path("g.yaml"), "--backend", "cuda", "--batches", "4", "-r", 1, "-o",
                   self.path("p.json")]
        done = emulated(*command, EMULATED_CUDNN_FAILS=1)
        refused = re.findall(r"note: op (\S+): (cudnn-\S+) cannot be run and is left out: cuDNN: execution", done.stderr)
        self.assertTrue(any(name == "conv1" for name, _ in refused))
        self.assertTrue(any("=-1" in algorithm for _, algorithm in refused), "no knob has a negative value")
        self.assertTrue(all("-e1:" in algorithm for _, algorithm in refused))
        profile = self.read("p.json")
        told = {(refusal["op"], refusal["algorithm"]) for refusal in profile["refused"]}
        self.assertEqual(told, set(refused))
        self.assertEqual(len(profile["refused"]), len(told))
        self.assertTrue(all(refusal["reason"] in done.stderr and refusal["batch"] == 4 for refusal in profile["refused"]))
        left = {op["op"]: [variant["algorithm"] for variant in op["variants"]] for op in profile["ops"]}
        self.assertTrue(all(left[name] and algorithm not in left[name] for name, algorithm in refused))
        command[2] = graph("lenet-digits")  # whose first convolution has no other
        self.assertIn("op conv1, algorithm cudnn-9.", emulated(*command, code=6, EMULATED_CUDNN_FAILS=0).stderr)

    def test_ops_for_which_the_device_has_no_memory(self):
        run("planc", "train", graph("lenet-digits"), "-o", self.path("g.yaml"))
        done = emulated("cuda/compare_backends", "--json", "cuda", self.path("g.yaml"), 1, code=1, EMULATED_CUDA_MEMORY=260 << 20)
        told = json.loads(done.stdout.splitlines()[-1])
        self.assertRegex(done.stderr, r"by cublaslt-\d+: left out: ")
        self.assertGreater(told["algorithms"], 0)
        self.assertEqual(told["failures"], len(re.findall("no algorithm can be run", done.stdout)))
        self.assertEqual(told["failures"], told["not_run"])

    def test_what_is_refused(self):
        self.plan("lenet-digits", "--batch", 8, "--budget", "900M")
        for options, code, said in ((["--link", "1GB/s"], 2, "cannot be paced"),
                                    (["--graph", "--trace", "t.json"], 2, "--graph and --trace exclude"),
                                    (["--graph", "--sequential"], 2, "--graph and --sequential exclude")):
            done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", *options, code=code)
            self.assertIn(said, done.stderr)
        self.assertIn("cannot be paced", emulated("planrun", "profile", graph("lenet-digits"), "--backend", "cuda", "--link",
                                                  "1GB/s", "-o", self.path("p.json"), code=2).stderr)
        self.assertEqual(os.listdir(self.folder), ["x.plan"])
        self.assertIn("cannot capture", run("planrun", "exec", self.path("x.plan"), "--graph", code=2).stderr)

    def test_another_version_s_or_architecture_s_plan(self):
        self.put_measured("p.json")
        run("planc", "plan", graph("lenet-digits"), "--profile", self.path("p.json"), "--batch", 2, "--budget", "4G",
            "-o", self.path("x.plan"))
        done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6, EMULATED_CUDA_ARCH=80)
        self.assertRegex(done.stderr, r"op \w+, algorithm cudnn-[^ ]*: was chosen for another cuDNN or device")
        with open(self.path("x.plan"), encoding="utf-8") as file:
            text = file.read()
        with open(self.path("y.plan"), "w", encoding="utf-8") as file:
            file.write(re.sub(r"cudnn-\d+\.", "cudnn-8.", text))
        done = emulated("planrun", "exec", self.path("y.plan"), "--backend", "cuda", code=6)
        self.assertIn("was chosen for another cuDNN or device", done.stderr)

    def test_a_device_that_is_too_full(self):
        """What is taken beside the arena must be within what the plan reserves."""
        with open(os.path.join(ROOT, "profiles/h100.json"), encoding="utf-8") as file:
            description = json.load(file)
        description["device"]["reserved_bytes"] = 1 << 20
        del description["origin"]["device.reserved_bytes"]
        with open(self.path("small.json"), "w", encoding="utf-8") as file:
            json.dump(description, file)
        run("planc", "plan", graph("lenet-digits"), "--device", self.path("small.json"), "--batch", 8, "--budget", "1G",
            "-o", self.path("x.plan"))
        done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6)
        self.assertIn("bytes of the device are taken beside the arena, and the plan reserves 1048576", done.stderr)

    def test_a_device_with_too_little_memory(self):
        for options in (["--policy", "none"], ["--policy", "window", "--placement", "vmm", "--chunk", "2M"]):
            self.plan("lenet-digits", "--batch", 32768, "--budget", "4G", "--sub-batch", 32768, *options)
            done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6,
                            EMULATED_CUDA_MEMORY=1 << 29)
            self.assertRegex(done.stderr, r"out of memory; the device has \d+ of 536870912 bytes free")

    def test_calls_that_fail(self):
        """Every failing call ends in one clear error, exit 5 or 6, and leaks nothing (99)."""
        self.constrained("lenet-digits", 8, "vdnn-all")
        for function in ("cudaMalloc", "cudaHostRegister", "cudaStreamCreateWithPriority", "cudaEventCreateWithFlags",
                         "cudaMemcpyAsync", "cudaMallocHost", "cudaLaunchHostFunc", "cudnnBackendFinalize",
                         "cudnnBackendExecute", "cublasLtMatmul", "cudaStreamSynchronize",
                         "cudaStreamWaitEvent"):
            for nth in (1, 2, 30):
                with self.subTest(function=function, nth=nth):
                    done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "-n", 2, code=None,
                                    EMULATED_CUDA_FAIL=f"{function}:{nth}")
                    self.assertIn(done.returncode, (0, 5, 6), done.stderr)
                    if nth == 1 and function != "cudaMallocHost":
                        self.assertNotEqual(done.returncode, 0)
                        self.assertRegex(done.stderr, r"planrun: .*(CUDA|cuDNN|cuBLASLt)")


@unittest.skipUnless(HAS_EMULATED, "no emulated device")
class EndedProfiles(Case):
    """Profiles that come to their end at an algorithm, and go on without it."""

    ENVIRONMENT = {"EMULATED_CUDA_MEMORY": PROFILED_MEMORY}

    @classmethod
    def setUpClass(cls):
        case = cls("setUp")
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.graph = case.path("g.yaml")
        run("planc", "train", graph("lenet-digits"), "--precision", "tf32", "-o", cls.graph)
        case.profile()
        cls.whole, cls.variants = case.read("p.json"), case.found()

    def command(self):
        return ["planrun", "profile", self.graph, "--backend", "cuda", "--batches", "4", "-r", 1, "-o", self.path("p.json"),
                "--warm-up", 1]

    def profile(self, fault="", code=0):
        return emulated(*self.command(), code=code, EMULATED_CUDA_FAULT=fault, **self.ENVIRONMENT).stderr

    def until_it_is_whole(self, fault, most):
        """The same command again and again; what was told by all that failed."""
        told = []
        while not os.path.exists(self.path("p.json")):
            self.assertLessEqual(len(told), most)
            told.append(self.profile(fault, code=None))
        return told[:-1]

    def found(self):
        return {(op["op"], variant["algorithm"]) for op in self.read("p.json")["ops"] for variant in op["variants"]}

    def of(self, engine):
        return {pair for pair in self.variants if re.search(engine, pair[1])}

    def trials(self):
        return pieces_of(self.path("p.json.part"), "trying")

    def test_an_algorithm_that_loses_the_device(self):
        """At two ops, then it is left out everywhere. All else is as it is undisturbed, what the code takes included."""
        ending = self.of("-e4:.*=0$")
        self.assertEqual(len(ending), 3)
        told = self.until_it_is_whole("sticky:1:convolution 4 0", 2)
        self.assertEqual(len(told), 2)
        self.assertEqual(self.found(), self.variants - ending)
        profile = self.read("p.json")
        self.assertEqual({(refusal["op"], refusal["algorithm"]) for refusal in profile["refused"]}, ending)
        for text, refusal in zip(told, profile["refused"]):
            self.assertIn("an illegal memory access was encountered", refusal["reason"])
            self.assertIn(f"op {refusal['op']}, algorithm {refusal['algorithm']}: CUDA: ", text)
            self.assertNotIn("cannot be run", text)
        gone = {algorithm for _, algorithm in ending}
        self.assertEqual(profile["code"], {name: size for name, size in self.whole["code"].items() if name not in gone})
        self.assertEqual(profile["device"]["reserved_bytes"], self.whole["device"]["reserved_bytes"])

    def test_a_pass_that_ended_with_its_ops_together(self):
        """Of two ops the kernel runs as they are prepared and alone; the fifth time is in an iteration."""
        told = self.until_it_is_whole("sticky:5:convolution 4 0 2", 4)
        self.assertIn("the same command goes on with its ops one by one", told[0])
        self.assertRegex(told[1], r"came to its end in pass \d of batch 4: the ops of that pass run one by one")
        self.assertRegex(told[1], r"the same command goes on without cudnn-\S+-e4:")
        gone = self.variants - self.found()
        self.assertTrue(gone)
        self.assertLessEqual(gone, self.of("-e4:.*=0$"))

    def until_it_hangs(self):
        program, *arguments = self.command()
        environment = {"PLANRT_PLUGINS": EMULATED, "EMULATED_CUDA_FAULT": "hang:1:convolution 4 0", **self.ENVIRONMENT}
        child = subprocess.Popen([os.path.join(BUILD, program), *map(str, arguments)], stderr=subprocess.DEVNULL,
                                 env={**os.environ, **{key: str(value) for key, value in environment.items()}})
        while not any("-e4:" in trial.get("algorithm", "") for trial in self.trials()):
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        return child

    def test_who_interrupts_blames_nothing(self):
        child = self.until_it_hangs()
        while child.poll() is None:
            child.send_signal(signal.SIGINT)
            time.sleep(0.05)
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertEqual(self.trials(), [])
        self.profile()
        self.assertEqual(self.found(), self.variants)
        self.assertNotIn("refused", self.read("p.json"))

    def test_an_algorithm_that_hangs_is_killed(self):
        child = self.until_it_hangs()
        child.send_signal(signal.SIGINT)  # as a watchdog does first
        child.kill()
        child.wait()
        trial, = self.trials()
        self.assertIn(f"op {trial['op']}: a run before came to its end at {trial['algorithm']}, which is left out", self.profile())
        self.assertEqual(self.variants - self.found(), {(trial["op"], trial["algorithm"])})
        refusal, = self.read("p.json")["refused"]
        self.assertEqual(refusal, {"op": trial["op"], "algorithm": trial["algorithm"], "batch": 4,
                                   "reason": "planrun came to its end while it ran"})

    def test_the_only_algorithm_of_an_op_is_tried_again(self):
        self.profile("sticky:337:kernel", code=6)  # behind those by which time stamps are measured
        self.assertRegex(self.profile(), "op .*: a run before came to its end at cuda, and there is no other: ")
        self.assertEqual(self.found(), self.variants)
        self.assertNotIn("refused", self.read("p.json"))


if __name__ == "__main__":
    unittest.main()
