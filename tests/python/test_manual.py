#!/usr/bin/env python3
"""The manual pages and README against the programs: commands, options, policies, devices, what --json prints, the rows
of a plan; every example runs."""

import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import pythons

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PYTHON_WITH_TORCH = pythons.with_torch()
ENVIRONMENT = {**os.environ, "PATH": BUILD + os.pathsep + os.environ["PATH"],
               "PLANC_PROFILES": os.path.join(ROOT, "profiles"), "PLANC_PYTHON": PYTHON_WITH_TORCH or sys.executable}
PROGRAMS = ("planc", "planrun")


def setUpModule():
    for program in PROGRAMS:
        if not os.path.exists(os.path.join(BUILD, program)):
            reason = f"{program} is not in {os.environ.get('BUILD', 'build')}: make build comes first"
            print("skipped: manual pages and README: " + reason)
            raise unittest.SkipTest(reason)


def page(name):
    """The page's source without fonts and escapes."""
    with open(os.path.join(ROOT, "man", name), encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"\\f[BIR]", "", text)
    return text.replace("\\-", "-").replace("\\ ", " ").replace("\\e", "\\")


def sections(text, macro):
    """Headings of .SH or .SS with what follows up to the next heading of the same or a higher level."""
    ends = r"\.SH " if macro == "SH" else r"\.S[HS] "
    return {heading: body for heading, body in
            re.findall(rf"^\.{macro} ([^\n]*)\n(.*?)(?=^{ends}|\Z)", text, re.M | re.S)}


def code_blocks(text):
    return re.findall(r"^\.nf\n(.*?)^\.fi$", text, re.M | re.S)


def run(command, **arguments):
    return subprocess.run(command, shell=True, env=ENVIRONMENT, capture_output=True, text=True, check=False,
                          **arguments)


def linked_folder():
    """A temporary folder in which examples find what they name."""
    folder = tempfile.TemporaryDirectory()
    for name in ("graphs", "tests", "runtime"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder.name, name))
    return folder


def keys_of(value):
    """All keys of nested objects, each where it first stands."""
    keys = {}
    if isinstance(value, dict):
        for key, inner in value.items():
            keys.update(dict.fromkeys([key, *keys_of(inner)]))
    elif isinstance(value, list):
        for inner in value:
            keys.update(dict.fromkeys(keys_of(inner)))
    return list(keys)


def commands_of(program):
    """Names of the commands that --help lists."""
    listed = run(f"{program} --help").stdout.split("commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


class Options(unittest.TestCase):
    def test_the_synopsis_lists_the_commands(self):
        for program in PROGRAMS:
            synopsis = sections(page(program + ".1"), "SH")["SYNOPSIS"]
            listed = re.findall(rf"^{program} ([a-z]+)", synopsis, re.M)
            self.assertEqual(list(dict.fromkeys(listed)), commands_of(program), program)

    def test_every_option_of_a_command_is_in_its_section_and_conversely(self):
        for program in PROGRAMS:
            bodies = {}  # a command may have a section for each way to use it
            for heading, body in sections(page(program + ".1"), "SS").items():
                bodies[heading.split()[0]] = bodies.get(heading.split()[0], "") + heading + "\n" + body
            self.assertEqual(list(bodies), commands_of(program), program)
            for command, body in bodies.items():
                lines = re.findall(r"^ +(?:-([a-z]),)? +--([a-z-]+)", run(f"{program} {command} --help").stdout, re.M)
                offered = {name for _, name in lines} - {"help"}
                self.assertEqual(set(re.findall(r"--([a-z][a-z-]*)", body)), offered, f"{program} {command}")
                letters = {(letter, name) for letter, name in lines if letter and name != "help"}
                documented = set(re.findall(r'^\.BR -([a-z]) ", " --([a-z-]+)', body, re.M))
                self.assertLessEqual(documented, letters, f"{program} {command}")
                if command not in ("compare", "simulate"):  # they refer to plan
                    self.assertEqual(documented, letters, f"{program} {command}")

    def test_an_option_s_value_has_the_name_that_help_gives_it(self):
        for program in PROGRAMS:
            for heading, body in sections(page(program + ".1"), "SS").items():
                listed = run(f"{program} {heading.split()[0]} --help").stdout
                offered = dict(re.findall(r"^ +(?:-[a-z],)? +--([a-z-]+)(?: (\S+))?", listed, re.M))
                described = re.findall(r'^\.TP\n\.BR?(?: -[a-z] ", ")? --([a-z-]+)(?: " " (\S+))?$', body, re.M)
                self.assertTrue(described or offered == {"help": ""}, heading)
                for name, value in described:
                    self.assertEqual(value, offered[name], f"{program} {heading}: --{name}")

    def test_options_of_the_programs_themselves(self):
        for program in PROGRAMS:
            options = sections(page(program + ".1"), "SH")["COMMON OPTIONS"]
            offered = run(f"{program} --help").stdout.split("\noptions: ")[1].split("\n")[0]
            self.assertEqual(set(re.findall(r"^\.BR? .*?(--[a-z]+)", options, re.M)),
                             set(re.findall(r"--[a-z]+", offered)), program)


OF_SOME_JOBS = r'\["(?:name|priority|swap_rate)",\] '  # what they were given


class Json(unittest.TestCase):
    def check_planc(self, forms, plan, of_the_plan_alone=False):
        """What the commands print has the forms' keys; `plan` are options of the plan that they print it of. Most commands take
        none."""
        described = [(re.search(r'"planc":"(\S+)"', form)[1],
                      list(dict.fromkeys(re.findall(r'"([a-z0-9_]+)"', form)))) for form in forms.split("\n\n")]
        with linked_folder() as folder:
            run(f"planc plan graphs/lenet-digits.yaml {plan} -o x.plan && planrun exec x.plan --trace run.json && "
                "planc plan graphs/lenet-digits.yaml --policy none -o none.plan", cwd=folder)
            commands = (f"plan graphs/lenet-digits.yaml {plan} -o x.plan",
                        "colocate graphs/lenet-digits.yaml graphs/tiny-transformer.yaml --policy zico -o mix.plan",
                        "check x.plan",
                        "check x.plan --budget 1", "simulate x.plan --vanilla none.plan --against run.json",
                        "simulate graphs/lenet-digits.yaml --passive --budget 1M",
                        "compare graphs/lenet-digits.yaml --policies none,modnn --max-batch",
                        "compare graphs/lenet-digits.yaml --policies none,modnn --budgets 300K,800K",
                        "compare --colocate tests/golden/inputs/tiny.yaml tests/golden/inputs/tiny.yaml",
                        "show graphs/lenet-digits.yaml", "show x.plan --lifespans", "show x.plan",
                        "explain x.plan",
                        "bound graphs/lenet-digits.yaml --effort 0",
                        "place tests/data/place/tight.csv",
                        *(["torch tests/data/torch/small.py:step"] if PYTHON_WITH_TORCH else []),
                        "predict graphs/lenet-digits.yaml --device k40m --batch 8 -o p.json",
                        "predict --fit lenet-digits.json tiny-transformer.json --graphs graphs/lenet-digits.yaml,"
                        "graphs/tiny-transformer.yaml -o model.json",
                        "update x.plan --trace run.json -o y.plan")
            described = [form for form in described if PYTHON_WITH_TORCH or form[0] != "torch/1"]
            self.assertEqual(len(described), len(commands))
            if of_the_plan_alone:
                described = [form for form, command in zip(described, commands) if "x.plan" in command]
                commands = [command for command in commands if "x.plan" in command]
            for graph in () if of_the_plan_alone else ("lenet-digits", "tiny-transformer"):
                run(f"planrun profile graphs/{graph}.yaml --batches 2,4 --repetitions 1 -o {graph}.json", cwd=folder)
            printed = [json.loads(run(f"planc {command} --json", cwd=folder).stdout) for command in commands]
        for (command, keys), answer in zip(described, printed):
            if "explanation" not in keys_of(answer):  # not all policies give one
                keys = [key for key in keys if key != "explanation"]
            self.assertEqual((command, keys), (answer["planc"], keys_of(answer)))

    def test_planc(self):
        forms = code_blocks(sections(page("planc.1"), "SH")["JSON OUTPUT"])[0]
        forms = forms.replace('[, "jobs"]', "").replace('[, "explanation"]', ', "explanation"')
        forms = re.sub(OF_SOME_JOBS, "", forms.replace('[, "storage_peak"]', ""))
        optional = r"\[[^][{}]*\]"  # of plans with virtual memory
        self.check_planc(re.sub(optional, "", forms), "--budget 400K")
        self.check_planc(forms, "--budget 4M --policy window --placement vmm --chunk 4K", of_the_plan_alone=True)

    def test_jobs(self):
        """Of a plan with several, commands print each; their own keys stay the same."""
        forms, job, _ = code_blocks(sections(page("planc.1"), "SH")["JSON OUTPUT"])
        job = re.sub(OF_SOME_JOBS, "", job)
        with linked_folder() as folder:
            for command in ("show", "check", "simulate"):
                answer = json.loads(run(f"planc {command} tests/data/plan/jobs.plan --json", cwd=folder).stdout)
                form = next(form for form in forms.split("\n\n")
                            if f'"planc":"{command}/' in form and '"jobs"' in form)
                self.assertEqual([keys_of(of) for of in answer["jobs"]], 2 * [re.findall(r'"(\w+)"', job)], command)
                self.assertEqual([key for key in answer if key not in re.findall(r'"(\w+)"', form)], [], command)

    def test_footprint(self):
        form = code_blocks(sections(page("planc.1"), "SH")["JSON OUTPUT"])[2]
        answer = json.loads(run("planc simulate tests/data/plan/jobs.plan --free-at completion --json", cwd=ROOT).stdout)
        self.assertEqual(re.findall(r'"(\w+)"', form), keys_of(answer["footprint"]))

    def test_planrun(self):
        examples = [json.loads(block) for block in code_blocks(page("planrun.1")) if block.startswith('{"planrun":')]
        described = {example["planrun"]: keys_of(example) for example in examples}
        with linked_folder() as folder:
            run("planc plan graphs/lenet-digits.yaml --budget 400K -o x.plan", cwd=folder)
            printed = [json.loads(run(f"planrun {command} --json", cwd=folder).stdout.splitlines()[-1])
                       for command in ("exec x.plan", "info --links 1", "info")]
        self.assertEqual(described, {answer["planrun"]: keys_of(answer) for answer in printed})


class PlanFormat(unittest.TestCase):
    """planc-plan(5), Forms, against plans: what rows there are, and their keys in order."""

    @staticmethod
    def kind_and_keys(row):
        """The first key tells a row's kind, an instruction's value with it. `row` is a plan's row or a form."""
        outer = row
        while True:  # objects and lists inside have keys of their own, or none
            flat = re.sub(r":\{[^{}]*\}|:\[[^][]*\]", ":0", outer)
            if flat == outer:
                break
            outer = flat
        keys = re.findall(r'"([^"]+)":', outer)
        return (re.match(r'{"i":"(\w+)"', row) or [None, keys[0]])[1], keys

    def forms(self):
        """Kind to the key lists that its forms allow."""
        block = code_blocks(sections(page("planc-plan.5"), "SS")["Forms"])[0]
        allowed = {}
        for form in block.replace("\n ", "").splitlines():
            form = re.sub(r":\[[^][]*\]", ":0", form)  # lists, so that the brackets left hold optional keys
            for row in self.without_brackets(form):
                kind, keys = self.kind_and_keys(row)
                allowed.setdefault(kind, set()).add(tuple(keys))
        return allowed

    def without_brackets(self, form):
        """With what is in brackets and without, the innermost first."""
        optional = re.search(r"\[([^][]*)\]", form)
        if not optional:
            return {form}
        before, after = form[:optional.start()], form[optional.end():]
        return self.without_brackets(before + after) | self.without_brackets(before + optional[1] + after)

    def test_rows(self):
        seen = {}
        with open(os.path.join(ROOT, "tests/data/plan/small.plan"), encoding="utf-8") as file:
            rows = file.read().splitlines()
        with linked_folder() as folder:
            with open(os.path.join(ROOT, "tests/golden/inputs/tiny.yaml"), encoding="utf-8") as file:
                graph = re.sub("type: my.op,", "type: my.op, class: norm, workspace: 7N,", file.read())
            with open(os.path.join(folder, "classes.yaml"), "w", encoding="utf-8") as file:
                file.write(graph)
            rows += run("planc plan classes.yaml -o -", cwd=folder).stdout.splitlines()
            for options in ("--policy zico --region 4K --priority 1:2", "--policy tensile --swap-rate 5 --swap-rate 6",
                            "--policy waterwave --split-size 4K --release-split 8K --split-relaxed --split-variable",
                            "--policy waterwave --split-groups 4 --pair-barriers"):
                rows += run(f"planc colocate x=classes.yaml classes.yaml {options} --device k40m -o -",
                            cwd=folder).stdout.splitlines()
            for options in ("--policy cheap --no-swap", "--policy vdnn-all", "--policy tensile --inference",
                            "--policy tensile --swap-rate 50 --no-recompute",
                            "--sub-batch 24 --budget 400K --effort 0 --reorder",
                            "--policy priced --device k40m --batch 64 --sub-batch 64 --budget 650K",
                            "--policy window --placement paged --chunk 4K --budget 2M --gpus 2 --shared-link "
                            "--window 1M --workspace-limit 1M --window-per-use"):
                done = run(f"planc plan graphs/lenet-digits.yaml {options} -o -", cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                # No policy states an order yet. The graph's own is one that a plan may state.
                n_ops = json.loads(done.stdout.splitlines()[0])["ops"]
                order = ",".join(str(op) for op in range(n_ops))
                ordered = re.sub(r'^({"job":.*)}$', rf'\1,"order":[{order}]}}', done.stdout, flags=re.M)
                checked = run("planc check /dev/stdin", cwd=folder, input=ordered)
                self.assertEqual(checked.returncode, 0, checked.stderr)
                rows += done.stdout.splitlines() + ordered.splitlines()
        for row in rows:
            kind, keys = self.kind_and_keys(row)
            self.assertEqual(keys, list(json.loads(row)))
            seen.setdefault(kind, set()).add(tuple(keys))
        allowed = self.forms()
        self.assertEqual(seen.keys(), allowed.keys())
        for kind, rows in seen.items():
            self.assertLessEqual(rows, allowed[kind])
            for which in (set.union, set.intersection):  # all keys, and those that a row must have
                self.assertEqual(which(*map(set, rows)), which(*map(set, allowed[kind])), kind)

    def test_every_instruction_has_its_meaning(self):
        with open(os.path.join(ROOT, "include/planc/plan.h"), encoding="utf-8") as file:
            instructions = re.findall(r"X\((\w+)\)", re.search(r"#define PLANC_INSTRS\(X\) (.*)", file.read())[1])
        described = re.findall(r"^\.TP\n\.B (\w+)$", sections(page("planc-plan.5"), "SS")["Instructions"], re.M)
        self.assertEqual(sorted(described), sorted(instructions))

    def test_the_header_s_keys_are_all_described(self):
        named = re.findall(r"^\.TP\n\.BR? (.*)$", sections(page("planc-plan.5"), "SS")["Header"], re.M)
        described = [key for line in named for key in re.findall(r"[a-z_-]+", line)]
        self.assertEqual(tuple(described), max(self.forms()["planc-plan"], key=len))


class Tables(unittest.TestCase):
    def test_policies(self):
        described = re.findall(r"^\.TP\n\.B (\S+)$", sections(page("planc.1"), "SH")["POLICIES"], re.M)
        shown = json.loads(run("planc compare inputs/tiny.yaml --json", cwd=os.path.join(ROOT, "tests/golden")).stdout)
        self.assertEqual(described, ["ideal", "auto", "best"] + [row["policy"] for row in shown["rows"]][1:])

    def test_policies_for_several_jobs(self):
        described = re.findall(r"^\.TP\n\.B (\S+)$", sections(page("planc.1"), "SH")["POLICIES FOR SEVERAL JOBS"], re.M)
        refused = run("planc compare --colocate a b --policies all").stderr
        self.assertEqual(described, re.search(r"for several jobs: (.*)", refused)[1].split(", "))

    def test_devices(self):
        rows = re.findall(r"^(\S+)\t(\d+) MiB\t(?:(\d+) MiB|0)\t(yes|no)$", sections(page("planc.1"), "SH")["DEVICES"],
                          re.M)
        described = {name: (int(memory) << 20, int(reserved or 0) << 20, properties == "yes")
                     for name, memory, reserved, properties in rows}
        there = {}
        for path in glob.glob(os.path.join(ROOT, "profiles", "*.json")):
            if path.endswith(".properties.json"):
                continue
            with open(path, encoding="utf-8") as file:
                profile = json.load(file)
            if "ops" in profile:  # measured, of a graph
                continue
            device = profile["device"]
            self.assertEqual(os.path.basename(path), device["name"] + ".json")
            there[device["name"]] = (device["memory_bytes"], device["reserved_bytes"],
                                     os.path.exists(path.replace(".json", ".properties.json")))
        self.assertEqual(described, there)

    def test_exit_codes(self):
        """The codes that the status table gives out are the ones described, and those of --help."""
        with open(os.path.join(ROOT, "include/planc/status.h"), encoding="utf-8") as file:
            given = set(re.findall(r"^  X\([A-Z_]+, (\d)", file.read(), re.M))
        all_described = set()
        for program in PROGRAMS:
            described = sections(page(program + ".1"), "SH")["EXIT STATUS"]
            all_described.update(re.findall(r"^(\d)  ", described, re.M))
            self.assertEqual(re.findall(r"^(\d)  ", described, re.M),
                             re.findall(r"[:,] (\d) ", run(f"{program} --help").stdout.split("exit")[1]), program)
        self.assertEqual(all_described, given)


class Environment(unittest.TestCase):
    """The variables that each program's sources read are those that its page describes."""
    READERS = {"planc": ("src/**/*.[ch]", "planner/**/*.[ch]"),
               "planrun": (*(f"src/{room}/**/*.[ch]" for room in ("util", "graph", "cost", "plan", "check")),
                           "runtime/**/*.[ch]")}

    def test_every_variable_is_described(self):
        for program, patterns in self.READERS.items():
            read = set()
            for path in itertools.chain(*(glob.glob(os.path.join(ROOT, pattern), recursive=True) for pattern in patterns)):
                with open(path, encoding="utf-8") as file:
                    read |= set(re.findall(r'getenv\(("\w+"|[^)]*)', file.read()))
            self.assertTrue(read, program)
            described = re.findall(r"^\.TP\n\.B (\w+)$", sections(page(program + ".1"), "SH")["ENVIRONMENT"], re.M)
            self.assertEqual({f'"{name}"' for name in described}, read, program)

    def test_what_is_written_in_python_reads_none(self):
        for path in itertools.chain(*(glob.glob(os.path.join(ROOT, folder, "**/*.py"), recursive=True)
                                      for folder in ("graphs", "runtime"))):
            with open(path, encoding="utf-8") as file:
                self.assertNotRegex(file.read(), r"environ|getenv", path)


class Source(unittest.TestCase):
    """The pages as such, and as troff sees them."""

    def test_every_page_refers_to_all_others(self):
        names = {os.path.basename(path) for path in glob.glob(os.path.join(ROOT, "man", "*"))}
        for name in names:
            seen = re.findall(r"^\.BR (planc|planrun|planc-\w+) \((\d)\)", sections(page(name), "SH")["SEE ALSO"], re.M)
            self.assertEqual({f"{other}.{section}" for other, section in seen}, names - {name}, name)

    @unittest.skipUnless(shutil.which("groff"), "there is no groff")
    def test_groff_has_no_warnings(self):
        for path in sorted(glob.glob(os.path.join(ROOT, "man", "*"))):
            done = run(f"groff -ww -t -man -Tutf8 {path}")
            self.assertEqual((done.returncode, done.stderr), (0, ""), path)

    @unittest.skipUnless(shutil.which("man"), "there is no man")
    def test_man_has_no_warnings(self):
        for path in sorted(glob.glob(os.path.join(ROOT, "man", "*"))):
            done = run(f"man --warnings -E UTF-8 -l -Tutf8 {path}")
            self.assertEqual((done.returncode, done.stderr), (0, ""), path)


class Examples(unittest.TestCase):
    def test_every_example_runs(self):
        for program in PROGRAMS:
            blocks = code_blocks(sections(page(program + ".1"), "SH")["EXAMPLES"])
            self.assertTrue(blocks, program)
            for block in blocks:
                with self.subTest(block=block), linked_folder() as folder:
                    done = run("set -e\n" + block, cwd=folder)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_tour_in_the_readme_runs_and_prints_what_it_shows(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            blocks = re.findall(r"(?:^    .*\n)+", file.read(), re.M)
        in_torch = [block for block in blocks if block.startswith("    build/planc torch")]
        tour = [block.replace("build/", "") for block in blocks if block.startswith("    build/") and block not in in_torch]
        shown = [re.sub("^    ", "", block, flags=re.M) for block in blocks if block.startswith("    r50.plan: ")]
        self.assertEqual((len(tour), len(shown)), (11, 1))
        has_cuda = os.path.exists(os.path.join(BUILD, "libplanrt-cuda.so"))
        with linked_folder() as folder:
            for block in tour:
                if "--deviceless" in block and not has_cuda:
                    continue
                with self.subTest(block=block):
                    done = run("set -e\n" + block, cwd=folder)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    if block is tour[0]:
                        self.assertEqual(done.stdout[:len(shown[0])], shown[0])

    @unittest.skipUnless(PYTHON_WITH_TORCH, "skipped: no Python here has PyTorch (Debian: python3-torch)")
    def test_the_way_from_pytorch_in_the_readme_runs_and_gives_the_losses_of_a_plain_run(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            blocks = re.findall(r"(?:^    .*\n)+", file.read(), re.M)
        block, = (block for block in blocks if block.startswith("    build/planc torch"))
        block = block.replace("build/", "").replace(" python3 ", f" {PYTHON_WITH_TORCH} ")
        with linked_folder() as folder:
            done = run("set -e\n" + block, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            followed = [line for line in done.stdout.splitlines() if line.startswith("step ")]
            example = re.search(r"runtime/\S+\.py", block)[0]
            plain = run(f"PYTHONPATH=runtime/torch {PYTHON_WITH_TORCH} {example}", cwd=folder).stdout.splitlines()
            self.assertEqual(followed, plain)
            self.assertGreater(len(plain), 5)

    def test_the_commands_in_the_readme_s_text_run(self):
        """Those that name no file of their own get LeNet's."""
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            text = re.sub(r"^    .*\n", "", file.read(), flags=re.M)
        commands = [" ".join(command.split()) for command in re.findall(r"`((?:planc|planrun) [^`]+)`", text)]
        lenet = "graphs/lenet-digits.yaml"
        files = {"plan": f"{lenet} -o x.plan", "train": f"{lenet} -o x.yaml", "check": "x.plan", "exec": "x.plan",
                 "bound": lenet,
                 "colocate": f"{lenet} graphs/tiny-transformer.yaml -o mix.plan",
                 "update": "x.plan --trace run.json --threshold 0 -o next.plan",
                 "predict --fit": f"lenet.json --graphs {lenet} -o model.json",
                 "torch": "tests/data/torch/small.py:step --budget 80%"}
        self.assertTrue([command for command in commands if "--passive" in command])
        with linked_folder() as folder:
            made = run(f"planc plan {lenet} -o x.plan && planrun profile {lenet} --batches 2,4 --repetitions 1 -o lenet.json && "
                       "planrun exec x.plan --iterations 3 --trace run.json", cwd=folder)
            self.assertEqual(made.returncode, 0, made.stderr)
            for command in commands:
                if command.startswith("planc torch") and not PYTHON_WITH_TORCH:
                    continue
                named = command.replace("GRAPH", lenet).replace("MODEL", "model.json")
                if "graphs/" not in named:
                    _, name, *options = named.split()
                    named += " " + files[name + " --fit" if "--fit" in options else name]
                with self.subTest(command=named):
                    done = run(named, cwd=folder)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_files_that_the_readme_names_are_there(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            named = re.findall(r"`((?:src|planner|runtime|include|man|graphs|profiles|tests)/[\w./*-]+)`", file.read())
        self.assertTrue(named)
        for path in named:
            if "NAME" not in path:
                self.assertTrue(glob.glob(os.path.join(ROOT, path)), path)

    def test_the_graph_of_the_format_s_page_is_one(self):
        for block in code_blocks(sections(page("planc-graph.5"), "SH")["SYNOPSIS"]):
            with tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "graph.yaml"), "w", encoding="utf-8") as file:
                    file.write(block)
                done = run("planc plan graph.yaml --device k40m -o - | planc check /dev/stdin", cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
