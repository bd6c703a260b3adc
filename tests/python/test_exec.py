"""`planrun exec` end to end: training under a budget, interrupts, checkpoints."""

import functools
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from sampling import TAKES_ALL, sampled

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
DIGITS = os.path.join(ROOT, "tests/data/digits/digits.csv.gz")
ENVIRONMENT = {**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles")}

# Programs leave an interrupt alone that is ignored, as it is in the background of a shell's script: not those of tests.
signal.signal(signal.SIGINT, signal.default_int_handler)


def run(program, *arguments):
    done = subprocess.run([os.path.join(BUILD, program), *map(str, arguments)], capture_output=True, text=True,
                          env=ENVIRONMENT)
    assert done.returncode == 0, (program, arguments, done.returncode, done.stderr)
    return done.stdout


def plan(folder, name, *options, graph="lenet-digits"):
    """Plans a graph for the digits, a model's name or a file; the plan's path and summary."""
    path = os.path.join(folder, name)
    if os.path.isabs(graph):
        return path, json.loads(run("planc", "plan", graph, "--json", "-o", path, *options))
    text, summary = planned(graph, tuple(map(str, options)))
    with open(path, "wb") as file:
        file.write(text)
    return path, json.loads(summary)


@functools.lru_cache(maxsize=None)
def planned(model, options):
    """A model's plan, made once for all tests, and its summary."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.plan")
        summary = run("planc", "plan", os.path.join(ROOT, f"graphs/{model}.yaml"), "--json", "-o", path, *options)
        with open(path, "rb") as file:
            return file.read(), summary


def train(path, *options):
    """The lines of epochs and the closing report of a run on the digits."""
    *epochs, report = run("planrun", "exec", path, "--data", DIGITS, "--json", *options).splitlines()
    return epochs, json.loads(report)


class Exec(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_a_third_of_the_memory_learns_the_same(self):
        problem = ["--batch", 64, "--optimizer", "momentum"]
        _, whole = plan(self.folder.name, "whole.plan", *problem, "--policy", "none")
        budget = whole["peak_bytes"] // 3
        small, summary = plan(self.folder.name, "small.plan", *problem, "--budget", budget)
        same_rounds = ["--policy", "none", "--sub-batch", summary["sub_batch"]]
        resident, _ = plan(self.folder.name, "resident.plan", *problem, *same_rounds)
        compared = 30 if TAKES_ALL else 10
        want, _ = train(resident, "--epochs", compared)
        got, report = train(small, "--epochs", 30)
        self.assertEqual((len(want), len(got)), (compared, 30))
        self.assertEqual(got[:compared], want)
        self.assertLessEqual(report["peak_bytes"], budget)
        self.assertGreaterEqual(report["accuracy"], 0.97)

    def test_what_is_asked_for_is_saved_where_no_iteration_is_left(self):
        path, _ = plan(self.folder.name, "any.plan", "--batch", 64, "--policy", "none")
        first, second = (os.path.join(self.folder.name, name) for name in ("first", "second"))
        run("planrun", "exec", path, "-n", 3, "--save", first)
        run("planrun", "exec", path, "-n", 3, "--resume", first, "--save", second)
        with open(first, "rb") as one, open(second, "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_the_steady_time_of_a_period(self):
        path, _ = plan(self.folder.name, "any.plan", "--batch", 64, "--policy", "none")
        trace = os.path.join(self.folder.name, "run.json")
        for options, known in ((["-n", 1], False), (["-n", 2], True), (["-n", 20, "--sequential"], True),
                               (["-n", 20, "--bare"], True), (["-n", 5, "--verify"], False),
                               (["-n", 5, "--trace", trace], False), (["-n", 5, "--interleave", 1], False)):
            report = json.loads(run("planrun", "exec", path, "--json", *options))
            self.assertEqual(report["period_ns"] is not None, known, options)
            if known:
                timed = report["iterations"] - max(1, report["iterations"] // 4)
                self.assertLessEqual(report["period_ns"] * timed, report["run_ns"])

    def test_a_transformer_learns_in_half_its_memory(self):
        def planned(name, *options):
            return plan(self.folder.name, name, "--batch", 16, *options, graph="tiny-transformer")

        _, whole = planned("whole.plan", "--policy", "none")
        budget = whole["peak_bytes"] // 2
        for choice in (["--budget", budget], ["--policy", "vdnn-all"], ["--policy", "cheap"]):
            path, _ = planned("any.plan", *choice)
            _, report = train(path, "--iterations", 3, "--verify", "--poison")
            self.assertTrue(report["verified"], choice)
        path, summary = planned("half.plan", "--budget", budget)
        self.assertLessEqual(summary["peak_bytes"], budget)
        # Over seeds 0.973, with a standard deviation of 0.005. At batch 64 it is 0.963 and 0.007.
        _, report = train(path, "--epochs", 20)
        self.assertGreaterEqual(report["accuracy"], 0.95)

    def test_mixed_precision_learns_in_half_its_memory(self):
        graph = os.path.join(self.folder.name, "bf16.yaml")
        lenet = os.path.join(ROOT, "graphs/lenet-digits.yaml")
        run("planc", "train", lenet, "--precision", "bf16", "--optimizer", "momentum", "-o", graph)
        resident, whole = plan(self.folder.name, "whole.plan", "--policy", "none", graph=graph)
        small, summary = plan(self.folder.name, "small.plan", "--budget", whole["peak_bytes"] // 2, graph=graph)
        self.assertLessEqual(summary["peak_bytes"], whole["peak_bytes"] // 2)
        _, report = train(small, "--iterations", 3, "--verify", "--poison")
        self.assertTrue(report["verified"])
        for path in sampled([small, resident]):
            _, report = train(path, "--epochs", 20)
            self.assertGreaterEqual(report["accuracy"], 0.95)

    def test_an_interrupted_run_goes_on_where_it_stopped(self):
        path, _ = plan(self.folder.name, "x.plan", "--budget", "400K")
        checkpoint = os.path.join(self.folder.name, "x.ckpt")
        child = subprocess.Popen([os.path.join(BUILD, "planrun"), "exec", path, "--data", DIGITS, "--epochs", "1000000",
                                  "--save", checkpoint, "--json"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        child.stdout.readline()  # an epoch is done
        child.send_signal(signal.SIGINT)
        report = json.loads(child.communicate()[0].splitlines()[-1])
        self.assertEqual(child.returncode, -signal.SIGINT)
        self.assertTrue(report["interrupted"])
        done = report["iterations"]
        _, whole = train(path, "--iterations", done + 3)
        _, resumed = train(path, "--iterations", done + 3, "--resume", checkpoint)
        self.assertEqual(resumed["losses"], whole["losses"][-3:])
        self.assertEqual(resumed["accuracy"], whole["accuracy"])

    def test_an_interleaved_run_ends_when_it_is_interrupted(self):
        path, _ = plan(self.folder.name, "x.plan", "--budget", "400K")
        for options in ([], ["--verify"]):
            child = subprocess.Popen([os.path.join(BUILD, "planrun"), "exec", path, "--interleave", "3", "--iterations",
                                      str(2**40), "--json", *options], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
            self.addCleanup(child.kill)
            while not self.catches(child, signal.SIGTERM):
                time.sleep(0.01)
            time.sleep(0.5)
            child.send_signal(signal.SIGTERM)
            report = json.loads(child.communicate()[0])
            self.assertEqual(child.returncode, -signal.SIGTERM)
            self.assertEqual(len(report["losses"]), report["iterations"])
            self.assertLess(report["iterations"], 2**40)

    def test_the_same_samples_go_on_after_a_checkpoint(self):
        path, _ = plan(self.folder.name, "x.plan", "--budget", "400K")
        checkpoint = os.path.join(self.folder.name, "x.ckpt")

        def losses(*options):
            return json.loads(run("planrun", "exec", path, "--same-samples", "--json", *options))["losses"]

        whole = losses("--seed", 7, "--iterations", 4)
        self.assertEqual(losses("--seed", 7, "--iterations", 2, "--save", checkpoint), whole[:2])
        self.assertEqual(losses("--iterations", 4, "--resume", checkpoint, "--verify"), whole[2:])

    def test_epochs_are_those_of_training(self):
        path, _ = plan(self.folder.name, "x.plan", "--batch", 500, "--policy", "none")  # two iterations an epoch
        first, second = (os.path.join(self.folder.name, name) for name in ("first", "second"))
        want, _ = train(path, "--epochs", 3)
        self.assertEqual([line.split(":")[0] for line in want], ["epoch 1", "epoch 2", "epoch 3"])
        got, report = train(path, "--iterations", 5, "--save", first)
        self.assertEqual(got, want[:2])
        self.assertEqual(report["losses"], [report["loss"]])
        self.assertEqual(train(path, "--iterations", 1)[0], [])
        self.assertEqual(train(path, "--iterations", 4)[0], want[:2])
        train(path, "--iterations", 2, "--save", second)
        self.assertEqual(train(path, "--iterations", 4, "--resume", second)[0], want[1:2])
        got, report = train(path, "--epochs", 3, "--resume", first)
        self.assertEqual(got, [f"epoch 3: loss {report['losses'][0]:.9g}"])

    def test_an_epoch_that_has_ended_has_its_line(self):
        # Epochs are of one iteration: an interrupt always falls on an epoch's end.
        path, _ = plan(self.folder.name, "x.plan", "--batch", 1437, "--policy", "none")
        child = subprocess.Popen([os.path.join(BUILD, "planrun"), "exec", path, "--data", DIGITS, "--epochs", "1000000",
                                  "--json"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(child.kill)
        first = child.stdout.readline().rstrip("\n")
        child.send_signal(signal.SIGINT)
        *others, report = child.communicate()[0].splitlines()
        report, epochs = json.loads(report), [first, *others]
        self.assertEqual(len(epochs), report["iterations"])
        self.assertEqual(epochs[-1], f"epoch {report['iterations']}: loss {report['loss']:.9g}")

    def test_a_loss_that_is_no_number_is_told(self):
        trained = os.path.join(self.folder.name, "trained.yaml")
        run("planc", "train", os.path.join(ROOT, "graphs/lenet-digits.yaml"), "--optimizer", "sgd", "-o", trained)
        with open(trained, encoding="utf-8") as file:
            text, changes = re.subn(r"lr: [0-9.]+", "lr: 1000000000.0", file.read())
        self.assertGreater(changes, 0)
        with open(trained, "w", encoding="utf-8") as file:
            file.write(text)
        path, _ = plan(self.folder.name, "wild.plan", "--batch", 64, "--policy", "none", graph=trained)
        done = subprocess.run([os.path.join(BUILD, "planrun"), "exec", path, "--data", DIGITS, "--epochs", "2"],
                              capture_output=True, text=True, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["epoch 1: loss nan", "epoch 2: loss nan"])
        self.assertIn("loss nan", lines)
        first = train(path)[1]["losses"].index(None)
        notes = [line for line in done.stderr.splitlines() if "finite" in line]
        self.assertEqual(len(notes), 1, done.stderr)
        self.assertRegex(notes[0], rf"^planrun: note: \S+: the loss of iteration {first} is (nan|infinite), the first "
                         "that is no finite number$")

    def test_plans_in_pages_compute_the_same(self):
        """Of every policy that places so; where memory is scarce tensors lie on pages that are apart."""
        problem = ["--batch", 64, "--sub-batch", 64, "--placement", "paged", "--chunk", "4K"]
        mappings = []
        for budget in sampled(["740K", "660K", "700K", "800K"]):
            compared = run("planc", "compare", os.path.join(ROOT, "graphs/lenet-digits.yaml"), *problem, "--budget", budget, "--json")
            fit = [row["policy"] for row in json.loads(compared)["rows"] if row["feasible"] and row["policy"] != "ideal"]
            for policy in fit:
                path, summary = plan(self.folder.name, "x.plan", *problem, "--budget", budget, "--policy", policy)
                with open(path, encoding="utf-8") as file:
                    mappings.append(sum(line.startswith('{"map"') for line in file))
                _, report = train(path, "--iterations", 3, "--verify", "--poison")
                self.assertTrue(report["verified"], (policy, budget))
                self.assertLessEqual(report["peak_bytes"], summary["peak_bytes"])
        self.assertGreater(max(mappings), 1)

    def test_a_run_may_end_before_its_first_body(self):
        rows = json.loads(run("planc", "compare", os.path.join(ROOT, "graphs/lenet-digits.yaml"), "--json"))["rows"]
        kinds = [["--policy", row["policy"]] for row in rows if row["policy"] != "ideal"]
        kinds += [["--budget", "400K"], ["--policy", "window", "--placement", "vmm", "--chunk", "64K"], ["--gpus", 2]]
        fresh = os.path.join(self.folder.name, "fresh.ckpt")
        for kind in kinds:
            path, _ = plan(self.folder.name, "x.plan", "--batch", 64, *kind)
            run("planrun", "exec", path, "--iterations", 0, "--sequential", "--save", fresh)
            with open(fresh, "rb") as file:
                want = file.read()
            for seed in range(1, 4):
                got = os.path.join(self.folder.name, "got.ckpt")
                run("planrun", "exec", path, "--iterations", 0, "--jitter", seed, "--poison", "--save", got)
                with open(got, "rb") as file:
                    self.assertEqual(file.read(), want, (kind, seed))

    def test_what_only_bodies_would_order_is_refused(self):
        path, _ = plan(self.folder.name, "x.plan", "--policy", "none")
        with open(path, encoding="utf-8") as file:
            header, *rows = file.read().splitlines()
        counts = json.loads(header)
        begin = next(i for i, row in enumerate(rows) if row.startswith('{"i":'))
        prologue = range(begin, begin + counts["prologue"])
        waits = [i for i in prologue if rows[i].startswith('{"i":"wait"')]
        epilogue = [json.loads(row) for row in rows[begin + counts["prologue"] + counts["body"]:]]
        awaited = {row["e"] for row in epilogue if row["i"] == "wait" and "lag" in row}
        records = [i for i in prologue if rows[i].startswith('{"i":"record"') and json.loads(rows[i])["e"] in awaited]
        self.assertEqual((len(waits), len(records)), (2, 1))
        for dropped, message in ((waits, "may still be writing"), (records, "the prologue does not record it")):
            broken = os.path.join(self.folder.name, "broken.plan")
            counts["prologue"] = len(prologue) - len(dropped)
            with open(broken, "w", encoding="utf-8") as file:
                file.writelines(row + "\n" for row in [json.dumps(counts, separators=(",", ":")),
                                                       *(row for i, row in enumerate(rows) if i not in dropped)])
            for command in (["planc", "check"], ["planrun", "exec", "--iterations", 0]):
                done = subprocess.run([os.path.join(BUILD, command[0]), *map(str, command[1:]), broken],
                                      capture_output=True, text=True, env=ENVIRONMENT)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(message, done.stderr)
                self.assertIn("in a run without bodies", done.stderr)

    def catches(self, child, number):
        with open(f"/proc/{child.pid}/status", encoding="utf-8") as file:
            caught = re.search(r"^SigCgt:\s*(\w+)", file.read(), re.M)
        self.assertIsNone(child.poll())
        return int(caught.group(1), 16) >> (number - 1) & 1

    def test_a_run_without_end_takes_no_memory_for_it(self):
        path, _ = plan(self.folder.name, "x.plan", "--policy", "none", "--batch", 2)
        for options in ([], ["--json"]):
            child = subprocess.Popen([os.path.join(BUILD, "planrun"), "exec", path, "--iterations", str(2**40),
                                      "--trace", os.path.join(self.folder.name, "t.json"), *options],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
            while not self.catches(child, signal.SIGINT):
                time.sleep(0.01)
            time.sleep(0.2)  # some iterations, or none
            child.send_signal(signal.SIGINT)
            out, messages = child.communicate()
            self.assertEqual(child.returncode, -signal.SIGINT, messages)
            if options:
                report = json.loads(out)
                self.assertEqual(len(report["losses"]), report["iterations"])

    def test_a_signal_that_is_ignored_stays_so(self):
        """As shells without job control have Ctrl-C ignored by what runs in the background."""
        path, _ = plan(self.folder.name, "x.plan", "--policy", "none", "--batch", 2)
        for ignored, heard in ((signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)):
            child = subprocess.Popen([os.path.join(BUILD, "planrun"), "exec", path, "--iterations", str(2**40)],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
                                     preexec_fn=lambda number=ignored: signal.signal(number, signal.SIG_IGN))
            self.addCleanup(child.kill)
            while not self.catches(child, heard):
                time.sleep(0.01)
            self.assertFalse(self.catches(child, ignored))
            for _ in range(2):
                child.send_signal(ignored)
            time.sleep(0.2)
            self.assertIsNone(child.poll())
            child.send_signal(heard)
            messages = child.communicate()[1]
            self.assertEqual(child.returncode, -heard, messages)

    def test_a_checkpoint_serves_other_plans_of_the_graph(self):
        small, summary = plan(self.folder.name, "small.plan", "--budget", "400K")
        large, _ = plan(self.folder.name, "large.plan", "--policy", "none", "--sub-batch", summary["sub_batch"])
        checkpoint = os.path.join(self.folder.name, "x.ckpt")
        train(small, "--epochs", 2, "--save", checkpoint)
        want, _ = train(small, "--epochs", 4)
        got, _ = train(large, "--epochs", 4, "--resume", checkpoint)
        self.assertEqual(got, want[2:])

    def test_other_samples_than_before_are_told(self):
        path, _ = plan(self.folder.name, "x.plan", "--budget", "400K")
        checkpoint = os.path.join(self.folder.name, "x.ckpt")
        data = ["--data", DIGITS]
        told = {(True, False): "is of a run with --data: from iteration 2 on it trains on pseudo-random samples",
                (False, True): "is of a run without --data: up to iteration 2 it has trained on pseudo-random samples"}
        for before in (True, False):
            run("planrun", "exec", path, *data * before, "-n", 2, "--save", checkpoint)
            for now in (True, False):
                done = subprocess.run([os.path.join(BUILD, "planrun"), "exec", path, *data * now, "-n", "3", "--resume",
                                       checkpoint], capture_output=True, text=True, env=ENVIRONMENT)
                self.assertEqual(done.returncode, 0, done.stderr)
                notes = [line for line in done.stderr.splitlines() if "samples" in line]
                want = told.get((before, now))
                self.assertEqual(notes, [f"planrun: note: {checkpoint} {want}"] if want else [])

    def test_other_samples_of_one_of_two_jobs_are_told(self):
        path, checkpoint = (os.path.join(self.folder.name, name) for name in ("x.plan", "x.ckpt"))
        job = os.path.join(ROOT, "graphs", "lenet-digits.yaml")
        run("planc", "colocate", f"a={job}:16", f"b={job}:16", "--device", "k40m", "--policy", "temporal", "-o", path)
        both = ["--data", f"a:{DIGITS}", "--data", f"b:{DIGITS}"]
        of_b = f"{checkpoint} is of a run with --data of that job: from iteration 2 on job 1 (b) trains on pseudo-random samples"
        of_a = f"{checkpoint} is of a run without --data of that job: up to iteration 2 job 0 (a) has trained on pseudo-random samples"
        for before, now, notes in ((both, both[:2], [of_b]), (both[2:], both, [of_a]), (both[:2], both[2:], [
                of_a.replace("without", "with").replace("up to iteration 2 job 0 (a) has trained", "from iteration 2 on job 0 (a) trains"),
                of_b.replace("with ", "without ").replace("from iteration 2 on job 1 (b) trains", "up to iteration 2 job 1 (b) has trained")])):
            run("planrun", "exec", path, *before, "-n", 2, "--save", checkpoint)
            done = subprocess.run([os.path.join(BUILD, "planrun"), "exec", path, *now, "-n", "3", "--resume", checkpoint],
                                  capture_output=True, text=True, env=ENVIRONMENT)
            self.assertEqual(done.returncode, 0, done.stderr)
            told = [line for line in done.stderr.splitlines() if "samples" in line]
            self.assertEqual(told, [f"planrun: note: {note}" for note in notes])

    def test_a_watched_file_that_never_comes_is_told(self):
        path, _ = plan(self.folder.name, "x.plan", "--budget", "400K")
        absent = os.path.join(self.folder.name, "absent.plan")
        for watched, note in ((absent, [f"planrun: note: {absent}: there was no such file at any time"]), (path, [])):
            done = subprocess.run([os.path.join(BUILD, "planrun"), "exec", path, "-n", "2", "--watch", watched],
                                  capture_output=True, text=True, env=ENVIRONMENT)
            told = [line for line in done.stderr.splitlines() if "no such file" in line]
            self.assertEqual((done.returncode, told), (0, note))

    def test_samples_that_nobody_takes_are_not_told(self):
        path, _ = plan(self.folder.name, "x.plan", "--budget", "400K")
        checkpoint = os.path.join(self.folder.name, "x.ckpt")
        data = ["--data", DIGITS]
        for before, n_before, now, n_now in ((data, 2, [], 2), (data, 2, [], 0), ([], 0, data, 2)):
            run("planrun", "exec", path, *before, "-n", n_before, "--save", checkpoint)
            done = subprocess.run([os.path.join(BUILD, "planrun"), "exec", path, *now, "-n", str(n_now), "--resume",
                                   checkpoint], capture_output=True, text=True, env=ENVIRONMENT)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("pseudo-random", done.stderr)

    def test_what_the_machine_has_no_memory_for_is_refused_before_it_is_taken(self):
        path, _ = plan(self.folder.name, "x.plan", "--policy", "none", "--device", "h100", "--gpus", 4096, "--batch",
                       4096, graph="tiny-transformer")
        done = subprocess.run([os.path.join(BUILD, "planrun"), "exec", path, "--synthetic"], capture_output=True,
                              text=True, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertRegex(done.stderr, r"^planrun: \S+: the run takes [0-9.]+ [GT]iB of the machine's memory, the "
                         r"reference beside it included, which has [0-9.]+ [GT]iB: plan for a smaller batch or "
                         r"budget, or fewer GPUs\n$")

    def test_a_terminal_is_told_what_memory_is_taken(self):
        path, _ = plan(self.folder.name, "x.plan", "--policy", "vdnn-all", "--gpus", 2)
        told = []
        for terminal in (True, False):
            ours, theirs = os.openpty() if terminal else os.pipe()
            done = subprocess.run([os.path.join(BUILD, "planrun"), "exec", path], stdout=subprocess.DEVNULL,
                                  stderr=theirs, env=ENVIRONMENT)
            os.write(theirs, b"<end>")
            text = b""
            while not text.endswith(b"<end>"):  # a read may give a part
                text += os.read(ours, 65536)
            told.append(text.decode())
            os.close(ours)
            os.close(theirs)
            self.assertEqual(done.returncode, 0, told)
        size = "[0-9.]+ [KM]iB"
        self.assertRegex(told[0], rf"{re.escape(path)}: taking {size} of device memory and {size} of the "
                         "host's\r\033\\[K")
        self.assertNotIn("taking", told[1])

    def test_only_what_ran_is_verified(self):
        path, _ = plan(self.folder.name, "x.plan", "--budget", "400K")
        checkpoint = os.path.join(self.folder.name, "x.ckpt")
        run("planrun", "exec", path, "-n", 2, "--save", checkpoint)
        resumed = ["--resume", checkpoint]
        for options, verified, text in ((["-n", 2], True, "every bit as in the reference"),
                                        (["-n", 0], None, "nothing, for no iteration ran"),
                                        (["-n", 2, *resumed], None, "nothing, for no iteration ran"),
                                        (["-n", 3, *resumed], True,
                                         "every bit as in the reference, from iteration 2 on")):
            report = json.loads(run("planrun", "exec", path, "--verify", "--json", *options))
            self.assertEqual(report["verified"], verified, options)
            lines = run("planrun", "exec", path, "--verify", *options).splitlines()
            self.assertEqual([line for line in lines if "verified" in line], [f"verified: {text}"], options)

    def test_update_and_watch_meet(self):
        # A running plan is measured by another run of it; what is planned from that is adopted with the same bits.
        path, _ = plan(self.folder.name, "old.plan", "--policy", "vdnn-all", "--device", "k40m")
        trace, watched = (os.path.join(self.folder.name, name) for name in ("run.json", "watched.plan"))
        train(path, "--iterations", 20, "--trace", trace)
        want, _ = train(path, "--epochs", 6)

        def update():
            run("planc", "update", path, "--trace", trace, "--threshold", 0, "-o", watched)

        got, report, told = self.train_watched(path, watched, [update], "--epochs", 6)
        self.assertEqual(got, want)
        self.assertEqual(report["plans_adopted"], 1)
        self.assertIn("policy vdnn-all", told[0])

    def test_an_update_keeps_what_is_not_limited(self):
        """A budget of -1, which planc does not write, is no reason for another plan, and no limit of one."""
        path, _ = plan(self.folder.name, "x.plan", "--policy", "vdnn-all", "--budget", "1200K")
        trace, new = os.path.join(self.folder.name, "x.trace"), os.path.join(self.folder.name, "new.plan")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r'("memory":"device".*?"budget":)\d+', r"\1-1", text))
        run("planrun", "exec", path, "--same-samples", "--iterations", 3, "--trace", trace)
        for threshold, code in ((1000, 7), (0, 0)):
            done = subprocess.run([os.path.join(BUILD, "planc"), "update", path, "--trace", trace, "-o", new, "--threshold",
                                   str(threshold)], capture_output=True, text=True, env=ENVIRONMENT)
            self.assertEqual(done.returncode, code, done.stderr)

    def test_plans_change_in_a_run_and_the_losses_do_not(self):
        names = {"small": ["--policy", "modnn", "--budget", "400K"], "none": ["--policy", "none"], "vdnn": ["--policy", "vdnn-all"]}
        plans = {name: plan(self.folder.name, name, "--sub-batch", 16, *options)[0] for name, options in names.items()}
        stale, _ = plan(self.folder.name, "stale", "--batch", 16)
        watched = os.path.join(self.folder.name, "watched.plan")

        def put(name):
            return lambda: self.put(watched, name)

        with open(plans["none"], "rb") as file:
            whole = file.read()
        torn = os.path.join(self.folder.name, "torn")
        with open(torn, "wb") as file:
            file.write(whole[:len(whole) // 2])
        steps = [put(plans["none"]), put(torn), put(plans["vdnn"]), put(stale), put(plans["small"])]
        want, whole = train(plans["small"], "--epochs", 12)
        got, report, told = self.train_watched(plans["small"], watched, steps, "--epochs", 12)
        self.assertEqual(got, want)
        self.assertEqual(report["losses"], whole["losses"])
        self.assertEqual(report["accuracy"], whole["accuracy"])
        self.assertEqual(report["plans_adopted"], 3)
        ends = ("policy none", "goes on as before", "policy vdnn-all", "goes on as before", "policy modnn")
        self.assertEqual(len(told), len(ends), told)
        for line, end in zip(told, ends):
            self.assertIn(end, line)
        self.assertIn("made for 16 samples in a batch, the run has", told[3])

    def test_a_verified_run_changes_plans(self):
        first, second = (plan(self.folder.name, name, "--policy", name)[0] for name in ("none", "naive"))
        watched = os.path.join(self.folder.name, "watched.plan")
        _, report, told = self.train_watched(first, watched, [lambda: self.put(watched, second)], "--epochs", 3,
                                             "--verify", "--poison")
        self.assertTrue(report["verified"])
        self.assertEqual(report["plans_adopted"], 1, told)

    def put(self, path, source):
        with open(source, "rb") as file, open(path + ".aside", "wb") as aside:
            aside.write(file.read())
        os.rename(path + ".aside", path)

    def train_watched(self, path, watched, steps, *options):
        """Trains, and after each of the first epochs takes a step and waits until planrun has told of it."""
        child = subprocess.Popen([os.path.join(BUILD, "planrun"), "exec", path, "--data", DIGITS, "--json", "--watch",
                                  watched, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, env=ENVIRONMENT)
        self.assertIn("plain ones stand in", child.stderr.readline())  # for those of the plan's device
        lines, told = [], []
        for step in steps:
            lines.append(child.stdout.readline())
            step()
            told.append(child.stderr.readline())
        rest, errors = child.communicate()
        self.assertEqual((child.returncode, errors), (0, ""))
        *epochs, report = "".join(lines + [rest]).splitlines()
        return epochs, json.loads(report), told


if __name__ == "__main__":
    unittest.main()
