"""The op zoo (tests/cuda/zoo): all that the CUDA backend has a kernel or a library's call for is in it, and agrees with
the host on the emulated device. Needs `make cuda-tests`; without a CUDA toolkit the tests are left out."""

import functools
import glob
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
EMULATED = os.path.join(BUILD, "emulated")
ZOO = os.path.join(ROOT, "tests/cuda/zoo")
MODELS, OPS, LARGE = "*.yaml", "ops/*.yaml", "large/*.yaml"

# Inputs, outputs and side effects of what libraries run, in the letters of runtime/cuda/ops.c; p: P, or not there. f16,
# which the libraries would take as well, the host has no kernels for.
LIBRARIES = {"conv2d": ("TTp", "T", ""), "conv2d_dgrad": ("TT", "T", ""), "conv2d_wgrad": ("TT", "T", ""),
             "linear": ("TTp", "T", ""), "linear_dgrad": ("TT", "T", ""), "linear_wgrad": ("TT", "T", ""),
             "matmul": ("TT", "T", ""), "matmul_nt": ("TT", "T", ""), "matmul_tn": ("TT", "T", "")}
# Stand-ins have bits of their own, which `planrun exec --synthetic` verifies.
ELSEWHERE = {"synthetic"}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def paths(pattern):
    return sorted(glob.glob(os.path.join(ZOO, pattern)))


@functools.cache
def compare(graph, *sizes, options=(), code=0, **environment):
    """What compare_backends tells of a graph on the emulated device, and on stderr."""
    done = subprocess.run([os.path.join(BUILD, "cuda/compare_backends"), "--json", *options, "cuda", graph, *map(str, sizes)],
                          capture_output=True, text=True, env={**os.environ, "PLANRT_PLUGINS": EMULATED,
                                                               "EMULATED_CUDA_STRICT": "1", **environment})
    if done.returncode != code:
        raise AssertionError(f"{graph}: exit {done.returncode}\n{done.stdout[:2000]}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


# --- What there is to compare ----------------------------------------------------------------------------------------


def backend_types():
    """By op type the letters of its operands, from the backend's own table."""
    source = read("runtime/cuda/ops.c")
    table = {type: (ins, outs, effects) for type, ins, outs, effects in
             re.findall(r'\[PL_OPTYPE_(\w+)\] = \{RUN(?:_IN)?\(\w+\), \{"([^"]*)", "([^"]*)", "([^"]*)"\}\}', source)}
    table["accumulate"] = re.search(r'accumulated = \{"([^"]*)", "([^"]*)", "([^"]*)"\}', source).groups()
    by_role = set(re.findall(r'rt_cuda_(\w+) = RUN\(', source))
    assert by_role == {"accumulate"} | ELSEWHERE, by_role
    return {**table, **LIBRARIES}


def known_types():
    """By op type what src/graph/optypes.c says of it."""
    table = read("src/graph/optypes.c").split("planc_optype table[PL_N_OPTYPES] = {")[1].split("\n};")[0]
    return {re.match(r"TYPE\((\w+)", entry)[1]: entry for entry in re.split(r"\n    (?=TYPE\()", table)[1:]}


def dtypes_of(letters, t, p, q):
    """The dtypes of a list of operands as a pattern."""
    each = {"T": t, "P": p, "Q": q, "F": "f32", "I": "i64"}
    parts = [f"({each['P']})?" if letter == "p" else each[letter] for letter in letters.rstrip("+")]
    text = ",".join(parts).replace(",(", "(,")
    return text + (f"(,{each[letters[-2]]})*" if letters.endswith("+") else "")


def combinations(operands):
    """Patterns of all combinations of dtypes that the letters allow."""
    patterns = set()
    for t, p, q in itertools.product(("f32", "bf16"), repeat=3):
        if "T" in "".join(operands) and p not in ("f32", t):
            continue
        # An operand that may be left out is there with each of its dtypes, and is not.
        ins = [operands[0]] if "p" not in operands[0] else [operands[0].replace("p", "P"), operands[0].replace("p", "")]
        for first in ins:
            parts = [dtypes_of(letters, t, p, q) for letters in (first, *operands[1:])]
            patterns.add(">".join(part for part in parts if part))
    return patterns


def missing(kinds):
    """What the backend has and `kinds`, of reports, have not."""
    known = known_types()
    absent = []

    def has(kind, having):
        return all(re.fullmatch(value, kind[key]) if key == "dtypes" else kind[key] == value for key, value in having.items())

    def want(type, what, **having):
        if not any(kind["type"] == type and has(kind, having) for kind in kinds):
            absent.append(f"{type} {what}")

    for type, operands in backend_types().items():
        entry = known.get(type, "")
        adds = "ACCUMULATES" in entry
        for dtypes in combinations(operands):
            if type in LIBRARIES and "p" in operands[0] and dtypes == "bf16,bf16>bf16":
                continue  # a bias is added to the same
            want(type, dtypes, dtypes=dtypes)
            if adds:
                want(type, f"{dtypes} accumulating", dtypes=dtypes, accumulates=True)
            if ".in_place" in entry and "only_in_place" not in entry:
                want(type, f"{dtypes} in place", dtypes=dtypes, in_place=True)
        if re.search(r"\bCONV\b|LINEAR|MATMUL", entry):
            want(type, "TF32", tf32=True)
        for layout in ("NCHW", "NHWC") if re.search(r":N[CK]", entry) else ():
            want(type, layout, layout=layout)
    return absent


@unittest.skipUnless(os.path.exists(os.path.join(EMULATED, "libplanrt-cuda.so")), "no emulated plug-in")
class Zoo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Compares all of it, in one round and in a later one."""
        cls.kinds, cls.summaries = [], {}
        for path in paths(OPS):
            cls.keep(path, compare(path, 3, 2)[0])
        for path in paths(LARGE):
            cls.keep(path, compare(path, 2)[0])
        for path, precision in itertools.product(paths(MODELS), ("f32", "tf32", "bf16")):
            with tempfile.TemporaryDirectory() as folder:
                graph = os.path.join(folder, "graph.yaml")
                subprocess.run([os.path.join(BUILD, "planc"), "train", path, "--precision", precision, "-o", graph],
                               check=True, capture_output=True)
                cls.keep(f"{path} {precision}", compare(graph, 4, 2)[0])

    @classmethod
    def keep(cls, name, report):
        cls.summaries[name] = report
        cls.kinds += report["kinds"]

    def test_every_algorithm_agrees_with_the_host(self):
        self.assertEqual(len(self.summaries), len(paths(OPS)) + len(paths(LARGE)) + 3 * len(paths(MODELS)))
        for name, report in self.summaries.items():
            with self.subTest(graph=name):
                self.assertEqual((report["failures"], report["left_out"]), (0, 0))
                self.assertGreaterEqual(report["algorithms"], report["calls"])
                self.assertLessEqual(report["of_allowed"], 1)
                self.assertEqual(report["calls"], sum(kind["calls"] for kind in report["kinds"]))

    def test_nothing_that_the_backend_has_is_left_out(self):
        self.assertEqual(missing(self.kinds), [])

    def test_what_no_graph_has_is_told(self):
        """The check itself: without a kind of call something is missing."""
        for without, told in (({"type": "gelu_grad"}, "gelu_grad f32,f32>f32"),
                              ({"type": "conv2d_wgrad", "layout": "NHWC"}, "conv2d_wgrad NHWC"),
                              ({"type": "linear", "tf32": True}, "linear TF32"),
                              ({"type": "bias", "dtypes": "bf16,f32>bf16"}, "bias bf16,f32>bf16"),
                              ({"type": "linear_bgrad", "accumulates": True, "dtypes": "bf16>f32"},
                               "linear_bgrad bf16>f32 accumulating")):
            left = [kind for kind in self.kinds if not all(kind[key] == value for key, value in without.items())]
            self.assertIn(told, missing(left))

    def test_every_type_is_the_kernels_or_the_libraries(self):
        self.assertEqual(set(known_types()), set(backend_types()) - {"accumulate"})
        tolerances = set(re.findall(r'\{"(\w+)", [A-Z]+\}', read("tests/cuda/tolerance.c")))
        self.assertEqual(tolerances, set(backend_types()))

    def test_ways_to_up_sample_convolve_and_pool(self):
        for layout in ("nchw", "nhwc"):
            ops = read("tests/cuda/zoo/ops", f"images-{layout}.yaml")
            for mode in ("nearest", "bilinear", "aligned"):
                self.assertRegex(ops, rf"type: upsample,.*mode: {mode}")
            self.assertRegex(ops, r"type: maxpool2d_grad,.*pad: \[[1-9]")
            ops = read("tests/cuda/zoo/ops", f"convolutions-{layout}.yaml")
            for what in (r"groups: 2\b", r"groups: 8\b", r"dilation: \[2, 2\]", r"stride: \[2, 3\]", r"pad: \[2, 0\]"):
                for type in ("conv2d", "conv2d_dgrad", "conv2d_wgrad"):
                    self.assertRegex(ops, rf"type: {type},.*{what}")

    def test_the_large_one_is(self):
        """Of more bytes than 31 bits count, at its own batch."""
        text = read("tests/cuda/zoo/large/large.yaml")
        batch = int(re.search(r"^batch: (\d+)$", text, re.M)[1])
        c, h, w = map(int, re.search(r"x: input f32\[N,(\d+),(\d+),(\d+)\]", text).groups())
        self.assertGreater(4 * batch * c * h * w, 1 << 31)

    def test_the_files_are_what_the_generator_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", os.path.join(ZOO, "generate_zoo.py"), "-d", folder], check=True)
            for pattern in (MODELS, OPS, LARGE):
                written = sorted(glob.glob(os.path.join(folder, pattern)))
                self.assertEqual([os.path.relpath(path, folder) for path in written],
                                 [os.path.relpath(path, ZOO) for path in paths(pattern)])
                for ours, theirs in zip(written, paths(pattern), strict=True):
                    self.assertEqual(read(ours), read(theirs), theirs)


@unittest.skipUnless(os.path.exists(os.path.join(EMULATED, "libplanrt-cuda.so")), "no emulated plug-in")
class Options(unittest.TestCase):
    def setUp(self):
        self.graph = os.path.join(ZOO, "ops/convolutions-nchw.yaml")

    def test_fewer_algorithms(self):
        every, some, once = (compare(self.graph, 1, options=options)[0] for options in ((), ("--most", "2"), ("--once",)))
        self.assertEqual({report["calls"] for report in (every, some, once)}, {every["calls"]})
        self.assertEqual(once["algorithms"], once["calls"])
        self.assertLess(once["algorithms"], some["algorithms"])
        self.assertLess(some["algorithms"], every["algorithms"])

    def test_the_graph_s_own_batch(self):
        path = os.path.join(ZOO, "ops/elements.yaml")
        self.assertEqual(compare(path), compare(path, 5))

    def test_what_is_left_out_says_why(self):
        report, told = compare(self.graph, 1, EMULATED_CUDNN_FAILS="1")
        self.assertGreater(report["left_out"], 0)
        self.assertEqual(len(re.findall(r"^conv\S+ \(conv2d\w*\) by cudnn-\S+: left out: cuDNN: .*$", told, re.M)),
                         report["left_out"])

    def test_an_op_that_cannot_be_run_is_a_failure_and_not_the_end(self):
        report, _ = compare(self.graph, 1, code=1, EMULATED_CUDNN_FAILS="0")
        failed = [kind for kind in report["kinds"] if kind["failures"]]
        self.assertTrue(failed)
        self.assertEqual(report["calls"], compare(self.graph, 1)[0]["calls"])

    def test_usage(self):
        for arguments in ([], ["cuda"], ["--most", "0", "cuda", self.graph], ["--twice", "cuda", self.graph],
                          ["cuda", self.graph, "0"], ["cuda", self.graph, "1", "65"], ["cuda", self.graph, "1", "1", "1"]):
            done = subprocess.run([os.path.join(BUILD, "cuda/compare_backends"), *arguments], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr[:6]), (2, "usage:"), arguments)


if __name__ == "__main__":
    unittest.main()
