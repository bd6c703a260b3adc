"""The CUDA backend on a machine without a GPU: what it says of that, cuDNN's algorithms for devices that are described
only, and, on the emulated device (tests/cuda/emulator/emulator.h), everything else that it does. Needs `make cuda
emulated`; without a CUDA toolkit the tests are left out."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
EMULATED = os.path.join(BUILD, "emulated")
HAS_PLUGIN = os.path.exists(os.path.join(BUILD, "libplanrt-cuda.so"))
HAS_EMULATED = os.path.exists(os.path.join(EMULATED, "libplanrt-cuda.so"))
HAS_GPU = os.path.exists("/dev/nvidiactl")


def graph(name):
    return os.path.join(ROOT, "graphs", name + ".yaml")


def run(program, *arguments, code=0, **environment):
    done = subprocess.run([os.path.join(BUILD, program), *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **{key: str(value) for key, value in environment.items()}})
    if code is not None and done.returncode != code:
        raise AssertionError(f"{program} {arguments}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done


def emulated(program, *arguments, code=0, **environment):
    """On the emulated device, where misuse of CUDA and leaks end in exit code 99."""
    return run(program, *arguments, code=code, PLANRT_PLUGINS=EMULATED, EMULATED_CUDA_STRICT=1, **environment)


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
                                  ({"EMULATED_CUDA_DEVICES": "0"}, "an NVIDIA driver, but no device")):
            done = emulated("planrun", "info", **environment)
            self.assertIn("backend cuda: not available: " + said, done.stdout.replace("the NVIDIA driver is ", ""))


@unittest.skipUnless(HAS_PLUGIN, "no CUDA toolkit")
class Deviceless(Case):
    """cuDNN itself, asked about devices that are not there."""

    def profile(self, name, device, *options):
        run("planrun", "profile", graph(name), "--deviceless", device, "-o", self.path("p.json"), *options)
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
                            self.assertRegex(variant["algorithm"], r"^cudnn-\d+\.\d+\.\d+-sm90-e\d+(:[\d=,]+)?$")
                self.assertGreater(several, 10)
                run("planc", "plan", graph(name), "--profile", self.path("p.json"), "--batch", 256, "--budget", "12G",
                    "--split-batch-norm", "-o", self.path("x.plan"))
                run("planc", "check", self.path("x.plan"), "--budget", "12G")
                with open(self.path("x.plan"), encoding="utf-8") as file:
                    self.assertIn("cudnn-", file.read())

    def test_times_at_other_sizes_of_rounds(self):
        """A device's constants give no line in the batch."""
        for rounds in (8, 11):
            times = []
            for batches in (64, rounds):
                profile = self.profile("resnet50", "h100", "--batches", batches)
                told = run("planc", "plan", graph("resnet50"), "--profile", self.path("p.json"), "--batch", rounds, "--json",
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
            self.assertIn("constructed", profile["machine"])

    def test_deterministic_leaves_out_the_others(self):
        every = self.profile("vgg16", "h100", "--batches", "32")
        some = self.profile("vgg16", "h100", "--batches", "32", "--deterministic")

        def algorithms(profile, deterministic):
            return {(op["op"], v["algorithm"]) for op in profile["ops"] for v in op["variants"]
                    if v["deterministic"] in deterministic}

        self.assertTrue(algorithms(every, (False,)))
        self.assertEqual(algorithms(some, (True, False)), algorithms(every, (True,)))

    def test_tf32_and_bf16_have_tensor_cores_and_f32_has_not(self):
        for precision in ("f32", "tf32", "bf16"):
            run("planc", "train", graph("vgg16"), "--precision", precision, "-o", self.path("g.yaml"))
            run("planrun", "profile", self.path("g.yaml"), "--deviceless", "h100", "--batches", "32", "-o",
                self.path("p.json"))
            notes = {note for op in self.read("p.json")["ops"] for v in op["variants"] for note in v.get("notes", [])}
            self.assertEqual("tensor-core" in notes, precision != "f32", precision)

    def test_what_cudnn_has_no_engine_for(self):
        run("planc", "train", graph("vgg16"), "--precision", "bf16", "-o", self.path("g.yaml"))
        done = run("planrun", "profile", self.path("g.yaml"), "--deviceless", "rtx2080ti", "--batches", "2", "-o",
                   self.path("p.json"))
        self.assertRegex(done.stderr, r"note: op \w+, and every other of which that holds, is left out: cuDNN [\d.]+ has no "
                         r"engine for conv2d in bf16 on sm_75\n")

    def test_ops_without_a_kernel_are_left_out(self):
        done = run("planrun", "profile", graph("pix2pixhd"), "--deviceless", "h100", "--batches", "1", "-o",
                   self.path("p.json"))
        self.assertIn("note: op one_hot, and every other of which that holds, is left out: the CUDA backend has no kernel for "
                      "one_hot", done.stderr)
        self.assertNotIn("one_hot", [op["op"] for op in self.read("p.json")["ops"]])
        run("planc", "plan", graph("pix2pixhd"), "--profile", self.path("p.json"), "--batch", 1, "-o", self.path("x.plan"))

    def test_an_interrupt_ends_it(self):
        child = subprocess.Popen([os.path.join(BUILD, "planrun"), "profile", graph("resnet50"), "--deviceless", "h100",
                                  "--batches", "256,255,254,253", "-o", self.path("p.json")], stderr=subprocess.DEVNULL)
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=5), -signal.SIGINT)
        self.assertEqual(os.listdir(self.folder), [])

    @unittest.skipUnless(HAS_EMULATED, "no emulated plug-in")
    def test_a_device_that_was_measured_elsewhere(self):
        emulated("planrun", "profile", graph("lenet-digits"), "--backend", "cuda", "--batches", "2", "-r", 1, "-o",
                 self.path("mine.json"))
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
        for name, batch, rounds in (("lenet-digits", 3, 2), ("tiny-transformer", 2, 1)):
            for precision in ("f32", "tf32", "bf16"):
                with self.subTest(graph=name, precision=precision):
                    run("planc", "train", graph(name), "--precision", precision, "-o", self.path("g.yaml"))
                    done = emulated("cuda/compare_backends", "cuda", self.path("g.yaml"), batch, rounds)
                    self.assertRegex(done.stdout, r"\d+ calls compared, .* 0 failures\n$")

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
        reserved = 837812224
        budget = reserved + (least - reserved) * 11 // 10
        run("planc", "plan", graph(name), "--device", "h100", "--batch", batch, "--policy", policy, "--budget", budget,
            "-o", self.path("x.plan"), *more)

    def computes_the_reference_s_bits(self, policy):
        for seed, options in enumerate((["--poison"], ["--jitter", "3"], ["--graph"], ["--graph", "--poison"])):
            with self.subTest(policy=policy, options=options):
                done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--deterministic",
                                "--verify", "-n", 2, "--json", *options, EMULATED_CUDA_SEED=seed)
                self.assertTrue(json.loads(done.stdout)["verified"])

    def test_constrained_plans_compute_the_reference_s_bits(self):
        for policy in ("modnn", "vdnn-all", "vdnn-conv", "vdnn-dyn", "vdnn+", "chen", "cheap", "tensile"):
            self.constrained("lenet-digits", 8, policy)
            self.computes_the_reference_s_bits(policy)

    def test_what_is_at_home_on_the_host_between_iterations(self):
        self.constrained("tiny-transformer", 2, "tensile", "--optimizer", "adam")
        with open(self.path("x.plan"), encoding="utf-8") as file:
            self.assertIn('"home":', file.read())
        self.computes_the_reference_s_bits("tensile")

    def test_nothing_is_allocated_in_the_step(self):
        self.constrained("lenet-digits", 8, "vdnn-all")
        for options in ([], ["graph"]):
            made, once, more = map(int, emulated("cuda/count_allocations", self.path("x.plan"), *options).stdout.split())
            self.assertGreater(made, 3)
            self.assertEqual((once, more), (0, 0))

    def test_virtual_memory(self):
        for policy in ("window",):
            run("planc", "plan", graph("lenet-digits"), "--device", "h100", "--batch", 256, "--policy", policy,
                "--placement", "vmm", "--chunk", "2M", "--budget", "812M", "-o", self.path("x.plan"))
            mapped = json.loads(run("planc", "show", self.path("x.plan"), "--json").stdout)["mappings"]
            self.assertGreater(mapped, 1, "no chunk is mapped twice")
            for options in ([], ["--graph", "--poison"]):
                done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--verify", "-n", 2, "--json",
                                *options)
                self.assertTrue(json.loads(done.stdout)["verified"])
        run("planc", "plan", graph("lenet-digits"), "--device", "h100", "--batch", 8, "--policy", "window", "--placement",
            "vmm", "--chunk", "100K", "--budget", "820M", "-o", self.path("x.plan"))
        self.assertIn("this device maps multiples of",
                      emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6).stderr)

    def test_deterministic_refuses_what_is_not(self):
        emulated("planrun", "profile", graph("lenet-digits"), "--backend", "cuda", "--batches", "2", "-r", 1, "-o",
                 self.path("p.json"))
        profile = self.read("p.json")
        for op in profile["ops"]:  # nothing else is left to choose
            unsure = [v for v in op["variants"] if not v["deterministic"]]
            op["variants"] = unsure or op["variants"]
        with open(self.path("p.json"), "w", encoding="utf-8") as file:
            json.dump(profile, file)
        run("planc", "plan", graph("lenet-digits"), "--profile", self.path("p.json"), "--batch", 2, "--budget", "4G", "-o",
            self.path("x.plan"))
        emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda")
        done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--deterministic", code=6)
        self.assertIn("is not deterministic", done.stderr)

    def test_stand_ins_run_any_graph(self):
        self.constrained("tiny-transformer", 1, "vdnn-all")
        for seed in range(2):
            done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", "--synthetic", "--json",
                            *(["--graph"] if seed else []), EMULATED_CUDA_SEED=seed)
            self.assertTrue(json.loads(done.stdout)["verified"])

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
        self.assertLessEqual(told["taken_bytes"], profile["device"]["reserved_bytes"])
        run("planc", "simulate", self.path("x.plan"), "--against", self.path("run.json"))

    def test_workspaces_of_every_batch(self):
        """Of batches that nobody measured as well, and of rounds of any of several."""
        emulated("planrun", "profile", graph("lenet-digits"), "--backend", "cuda", "--batches", "24,64", "-r", 1, "-o",
                 self.path("p.json"))
        for op in self.read("p.json")["ops"]:
            for variant in op["variants"]:  # what is asked about everywhere is known everywhere
                self.assertFalse("sampled" in variant and not variant["algorithm"].startswith("cudnn-"))
        for batch, rounds in ((24, 12), (23, 23), (40, 40), (80, 40)):
            told = run("planc", "plan", graph("lenet-digits"), "--profile", self.path("p.json"), "--batch", batch, "--budget",
                       "4G", "--sub-batch", rounds, "-o", self.path("x.plan")).stderr
            emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda")
            self.assertNotIn("lists no workspaces for rounds of", told if rounds == 12 else "")
        told = run("planc", "plan", graph("lenet-digits"), "--profile", self.path("p.json"), "--batch", 80, "--budget", "4G",
                   "--sub-batch", 80, "-o", self.path("x.plan")).stderr
        self.assertIn("note: the profile lists no workspaces for rounds of 80: they are taken from others", told)

    def test_engines_that_cannot_be_run_are_left_out(self):
        run("planc", "train", graph("lenet-digits"), "--precision", "tf32", "-o", self.path("g.yaml"))
        done = emulated("cuda/compare_backends", "cuda", self.path("g.yaml"), 3, EMULATED_CUDNN_FAILS=1)
        self.assertRegex(done.stdout, r"\d+ calls compared, [1-9]\d* left out, .* 0 failures\n$")
        command = ["planrun", "profile", self.path("g.yaml"), "--backend", "cuda", "--batches", "4", "-r", 1, "-o",
                   self.path("p.json")]
        done = emulated(*command, EMULATED_CUDNN_FAILS=1)
        refused = re.findall(r"note: op (\S+): (cudnn-\S+) cannot be run and is left out: cuDNN: execution", done.stderr)
        self.assertTrue(any(name == "conv1" for name, _ in refused))
        self.assertTrue(any("=-1" in algorithm for _, algorithm in refused), "no knob has a negative value")
        self.assertTrue(all("-e1:" in algorithm for _, algorithm in refused))
        left = {op["op"]: [variant["algorithm"] for variant in op["variants"]] for op in self.read("p.json")["ops"]}
        self.assertTrue(all(left[name] and algorithm not in left[name] for name, algorithm in refused))
        command[2] = graph("lenet-digits")  # whose first convolution has no other
        self.assertIn("op conv1: cudnn-9.", emulated(*command, code=6, EMULATED_CUDNN_FAILS=0).stderr)

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
        emulated("planrun", "profile", graph("lenet-digits"), "--backend", "cuda", "--batches", "4", "-r", 1, "-o",
                 self.path("p.json"))
        run("planc", "plan", graph("lenet-digits"), "--profile", self.path("p.json"), "--batch", 4, "--budget", "4G",
            "-o", self.path("x.plan"))
        done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6, EMULATED_CUDA_ARCH=80)
        self.assertRegex(done.stderr, r"op \w+: cudnn-[^ ]*: was chosen for another cuDNN or device")
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

    def check_gpu(self, *options):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/cuda/check_gpu.py"), "--small", "--out", self.folder,
                               *options], capture_output=True, text=True,
                              env={**os.environ, "BUILD": BUILD, "PLANRT_PLUGINS": EMULATED, "EMULATED_CUDA_STRICT": "1"})
        self.assertIn("passed", done.stdout, done.stderr)
        return self.read("results.json")

    def test_check_gpu(self):
        """But for times, which an emulated device does not have. What is over is not done again."""
        results = self.check_gpu("--minutes", "10")
        rows = {row["check"]: row for row in results["rows"]}
        failed = [row for name, row in rows.items() if row["ok"] is False and "time" not in name and "overhead" not in name]
        self.assertEqual(failed, [])
        for name in ("numerics tiny-transformer bf16", "profile lenet-digits", "virtual memory paged",
                     "lenet-digits modnn at 40 %: verified, memory within the plan"):
            self.assertTrue(rows[name]["ok"], name)
        self.assertLess(rows["lenet-digits modnn at 40 %: verified, memory within the plan"]["peak_bytes"],
                        rows["lenet-digits resident: verified, memory within the plan"]["peak_bytes"])
        again = self.check_gpu("--minutes", "0", "--resume")
        self.assertEqual(again["done"], results["done"])
        self.assertEqual([row for row in again["rows"] if row["of"] in again["done"]],
                         [row for row in results["rows"] if row["of"] in results["done"]])

    def test_a_device_with_too_little_memory(self):
        for options in (["--policy", "none"], ["--policy", "window", "--placement", "vmm", "--chunk", "2M"]):
            self.plan("lenet-digits", "--batch", 32768, "--budget", "4G", "--sub-batch", 32768, *options)
            done = emulated("planrun", "exec", self.path("x.plan"), "--backend", "cuda", code=6,
                            EMULATED_CUDA_MEMORY=1 << 29)
            self.assertRegex(done.stderr, r"out of memory; the device has \d+ of 536870912 bytes free")

    def test_calls_that_fail(self):
        """Every failing call ends in one clear error, exit 5 or 6, and leaks nothing (99)."""
        self.constrained("lenet-digits", 8, "vdnn-all")
        for function in ("cudaMalloc", "cudaHostRegister", "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags",
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


if __name__ == "__main__":
    unittest.main()
