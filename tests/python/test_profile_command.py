"""`planrun profile` end to end on lenet-digits: profile, plan, run; interrupts; what a run before has left. No time is
judged. Needs `make unit`."""

import json
import os
import signal
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
GRAPH = os.path.join(ROOT, "graphs/lenet-digits.yaml")

# Programs leave an interrupt alone that is ignored, as it is in the background of a shell's script: not those of tests.
signal.signal(signal.SIGINT, signal.default_int_handler)


def run(program, *arguments):
    return subprocess.run([os.path.join(BUILD, program), *map(str, arguments)], capture_output=True, text=True)


def without_times(value):
    """What must not differ between two measurements."""
    if isinstance(value, dict):
        measured = ("time_ns", "spread_ns", "ns", "bytes_per_second", "latency_ns", "launch_ns", "duplex_ppm",
                    "slowdown_ppm", "busy_ppm", "compute", "origin", "reserved_bytes")
        return {key: without_times(inner) for key, inner in value.items() if key not in measured}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


class Profile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/var/tmp")  # on a disk: /tmp may be memory, which is no storage
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "host.json")
        self.part = self.output + ".part"
        self.plan = os.path.join(folder.name, "x.plan")

    def profile(self, *options, code=0):
        done = run("planrun", "profile", GRAPH, "-o", self.output, *options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def read(self):
        with open(self.output, encoding="utf-8") as file:
            return json.load(file)

    def profile_until(self, command, passes, how):
        """Runs a command that gets a signal when its file of parts has so many passes; what it told of that."""
        preload = os.path.join(BUILD, "preload/signal_when_kept.so")
        self.assertTrue(os.path.exists(preload), "make unit comes first")
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "LD_PRELOAD": preload, "SIGNAL_WHEN_KEPT": f"{passes}:{int(how)}"})
        self.assertEqual(done.returncode, -how, done.stderr)
        return done.stderr

    def test_plans_made_with_it_run(self):
        self.profile("--batches", "8,32,128", "--repetitions", 2)
        self.assertFalse(os.path.exists(self.part))
        for op in self.read()["ops"]:
            for variant in op["variants"]:
                self.assertEqual([point["batch"] for point in variant["points"]], [8, 32, 128])
        for optimizer, differs in (("sgd", False), ("adam", True)):
            done = run("planc", "plan", GRAPH, "--profile", self.output, "--optimizer", optimizer, "-o", self.plan)
            self.assertEqual(f"note: {self.output} was made for another graph: " in done.stderr, differs, done.stderr)
        for batch in (128, 77):  # measured, and not
            for budget in ("300K", "600K", "4M"):
                with self.subTest(batch=batch, budget=budget):
                    done = run("planc", "plan", GRAPH, "--profile", self.output, "--batch", batch, "--budget", budget,
                               "-o", self.plan)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    with open(self.plan, encoding="utf-8") as file:
                        self.assertIn("dnnl", file.read())
                    done = run("planrun", "exec", self.plan, "--verify", "--json")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(json.loads(done.stdout)["verified"])

    def test_every_algorithm_of_the_host_is_deterministic(self):
        """And so it is where a profile says otherwise: there is nothing that could not be verified."""
        self.profile("--batches", "8", "--repetitions", 1, "--deterministic")
        wrong = self.read()
        for variant in (variant for op in wrong["ops"] for variant in op["variants"]):
            self.assertTrue(variant["deterministic"])
            variant["deterministic"] = False
        with open(self.output, "w", encoding="utf-8") as file:
            json.dump(wrong, file)
        done = run("planc", "plan", GRAPH, "--profile", self.output, "--batch", 8, "--budget", "4M", "-o", self.plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.plan, encoding="utf-8") as file:
            self.assertIn("dnnl", file.read())
        done = run("planrun", "exec", self.plan, "--verify", "--deterministic", "-n", 3, "--jitter", 1)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_loads_and_a_paced_link(self):
        self.profile("--batches", 8, "--repetitions", 1, "--loads", 50, "--link", "500MB/s")
        profile = self.read()
        self.assertEqual([load["load_ppm"] for load in profile["loads"]], [500000])
        self.assertEqual(len(profile["loads"][0]["ops"]), len(profile["ops"]))
        for direction in ("h2d", "d2h"):  # a pace is never exceeded
            for bytes_, ns in (point.values() for point in profile["links"][direction]["alone"]):
                self.assertGreaterEqual(ns, bytes_ * 2)

    def test_storage(self):
        """Is measured in a file that leaves nothing behind, and a device has it only then."""
        folder = os.path.dirname(self.output)
        self.profile("--batches", 8, "-r", 1, "--storage", folder)
        self.assertEqual(os.listdir(folder), [os.path.basename(self.output)])
        profile = self.read()
        self.assertEqual(set(profile["device"]["storage"]), {"write", "read"})
        self.assertIn("off by ", profile["origin"]["device.storage"])
        for way in ("write", "read"):
            self.assertGreater(profile["device"]["storage"][way]["bytes_per_second"], 0)
            sizes = [point["bytes"] for point in profile["links"]["storage"][way]]
            self.assertEqual(sizes, [65536 << 2 * k for k in range(len(sizes))])
            self.assertGreaterEqual(len(sizes), 2)
        done = run("planc", "plan", GRAPH, "--profile", self.output, "--batch", 8, "-o", self.plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.profile("--batches", 8, "-r", 1)
        self.assertNotIn("storage", self.read()["device"])
        for where, told in ((os.path.join(folder, "none"), "No such file or directory"), (self.output, "Not a directory")):
            self.assertIn(f"{where}: {told}", self.profile("--batches", 8, "--storage", where, code=6).stderr)
        with open("/proc/mounts", encoding="utf-8") as mounts:
            in_memory = [mount.split()[1] for mount in mounts if mount.split()[1:3] == ["/dev/shm", "tmpfs"]]
        for where in in_memory[:1]:
            self.assertIn(f"{where}: it is in the host's memory; name a directory on a disk\n",
                          self.profile("--batches", 8, "--storage", where, code=6).stderr)
        self.profile("--deviceless", "h100", "--storage", folder, code=2)

    def test_an_interrupted_profile_goes_on(self):
        """With the pass that it was in, whatever ended it; the profile is one that no interrupt would have made otherwise."""
        command = [os.path.join(BUILD, "planrun"), "profile", GRAPH, "-o", self.output, "--batches", "8,16,24,32", "--loads",
                   "50", "--repetitions", "5"]
        kept = ""
        for number, (passes, how) in enumerate(((1, signal.SIGINT), (3, signal.SIGKILL), (6, signal.SIGINT))):
            told = self.profile_until(command, passes, how)
            if number:
                self.assertIn(f"has {kept.count(chr(10)) - 1} measured parts", told)
            self.assertFalse(os.path.exists(self.output))
            with open(self.part, encoding="utf-8") as file:
                text = file.read()
            self.assertTrue(text.startswith(kept))
            kept = text[:text.rindex("\n") + 1]
            self.assertEqual(kept.count("\n"), 1 + passes)
            if how == signal.SIGINT:
                self.assertRegex(told, "planrun: ending after the iteration, op or copy that it is at; again to end at once\n"
                                       "(.*\n)*planrun: interrupted; the same command goes on from ")
                self.assertEqual(kept, text)
                self.assertNotIn('"trying"', kept)
            # What it was at when it was killed is not to be held against that here.
            kept = "".join(line for line in kept.splitlines(True) if '"trying"' not in line)
            with open(self.part, "w", encoding="utf-8") as file:
                file.write(kept + '{"piece":"ops","ba')  # as a crash leaves it
        pieces = [json.loads(line) for line in kept.splitlines()[1:]]
        numbers = [(piece["load_ppm"], piece["batch"], piece["pass"]) for piece in pieces]
        self.assertEqual(numbers, sorted(set(numbers)), "a pass was measured twice, or out of turn")
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(self.part))
        gone_on = self.read()
        kept_times = {(piece["batch"], time_["op"], time_["algorithm"]): time_["time_ns"]
                      for piece in pieces for time_ in piece["times"] if piece["load_ppm"] == 0}
        self.assertTrue(kept_times)
        found = {(point["batch"], op["op"], variant["algorithm"]): point["time_ns"]
                 for op in gone_on["ops"] for variant in op["variants"] for point in variant["points"]}
        self.assertLess(len(kept_times), len(found))
        self.assertEqual({key: found[key] for key in kept_times}, kept_times)
        subprocess.run(command, capture_output=True, text=True, check=True)
        self.assertEqual(without_times(gone_on), without_times(self.read()))

    def test_what_is_not_kept_is_told(self):
        child = subprocess.Popen([os.path.join(BUILD, "planrun"), "profile", GRAPH, "-o", "-", "--batches", "8",
                                  "--warm-up", "60000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn("measured for training", child.stderr.readline())
        child.send_signal(signal.SIGINT)
        out, told = child.communicate()
        self.assertEqual((child.returncode, out), (-signal.SIGINT, ""), told)
        self.assertEqual(told, "planrun: ending after the iteration, op or copy that it is at; again to end at once\n"
                               "planrun: interrupted; nothing is kept: the same command begins anew\n")

    def test_other_ways_to_measure_do_not_go_on(self):
        command = [os.path.join(BUILD, "planrun"), "profile", GRAPH, "-o", self.output, "--batches", "8,16", "-r", "5"]
        self.profile_until(command, 1, signal.SIGKILL)
        for options, told in ((["-r", 4], "another --repetitions, which is 5 there and 4 here; give the same to go on"),
                              (["-r", 5, "--most", 2], "another --most, which is 8 there and 2 here"),
                              (["-r", 5, "--warm-up", 1], "another --warm-up, which is 0 there and 1 here"),
                              (["-r", 5, "--link", "1GB/s"], "another --link, which is 0 there and 1000000000 here"),
                              (["-r", 5, "--storage", "."], "another --storage, which is not given there and . here"),
                              (["-r", 5, "--optimizer", "adam"], "another graph"),
                              (["-r", 5, "--batches", 8], "another --batches, which is 8,16 there and 8 here"),
                              (["-r", 5, "--loads", 50], "another --loads, which is 0 there and 0,500000 here"),
                              (["-r", 5, "--deterministic"], "--deterministic, which is not given there and given here")):
            batches = [] if "--batches" in options else ["--batches", "8,16"]
            told_now = self.profile(*batches, *options, code=4).stderr
            self.assertIn(f"{self.part}: was measured with ", told_now)
            self.assertIn(told, told_now)
            self.assertIn("remove it to start anew", told_now)

    def test_most(self):
        self.profile("--batches", 8, "--repetitions", 1, "--most", 1, "--warm-up", 5)
        self.assertEqual({len(op["variants"]) for op in self.read()["ops"]}, {1})

    def test_what_cannot_be_gone_on_with_is_refused(self):
        with open(self.output, "w", encoding="utf-8") as file:
            file.write("as it was")
        for left, code in (('{"planrun":"profile/1","graph_hash":"0"}\n{"piece":"links"}\n', 4), ("\x00\n", 4)):
            with open(self.part, "w", encoding="utf-8") as file:
                file.write(left)
            self.assertIn("remove it", self.profile("--batches", 8, code=code).stderr)
        os.remove(self.part)
        self.profile("--batches", 0, code=2)
        self.profile("--batches", "8,8", code=2)
        self.profile("--loads", 101, code=2)
        with open(self.output, encoding="utf-8") as file:
            self.assertEqual(file.read(), "as it was")


    def test_standard_output(self):
        done = subprocess.run([os.path.join(BUILD, "planrun"), "profile", GRAPH, "-o", "-", "--batches", "4", "-r", "1"],
                              capture_output=True, text=True, check=True, cwd=os.path.dirname(self.output))
        self.assertEqual(done.stdout[-2:], "}\n")
        self.assertEqual(json.loads(done.stdout)["device"]["name"], "host")
        self.assertEqual(os.listdir(os.path.dirname(self.output)), [])

    def test_a_run_that_measured_nothing_is_as_good_as_none(self):
        for left in ("", '{"planrun":"profi', '{"planrun":"profile/1","graph_hash":"0"}\n{"piece":"ops","ba'):
            with open(self.part, "w", encoding="utf-8") as file:
                file.write(left)
            self.profile("--batches", 2, "--repetitions", 1, "--most", 1)
            self.assertFalse(os.path.exists(self.part))


if __name__ == "__main__":
    unittest.main()
