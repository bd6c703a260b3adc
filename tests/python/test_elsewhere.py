#!/usr/bin/env python3
"""The readers of what others have measured (tests/bench/elsewhere.py), on small files of the same forms written here:
what planc makes of them is as worked out by hand, and what is no such file is refused in one sentence."""

import contextlib
import copy
import gzip
import io
import json
import os
import random
import re
import shlex
import subprocess
import sys
import unittest
from unittest import mock

from foldertest import FolderCase
from graphtest import ROOT, read as read_graph

sys.path.insert(0, os.path.join(ROOT, "tests/bench"))
import bench_elsewhere
import elsewhere
import elsewhere_monet
import elsewhere_monet_sums
import elsewhere_monet_ways
from elsewhere_iteration import BadData

BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))

G10_TENSORS = [(0, 1, 1024), (1, 0, 4096), (2, 0, 8192), (3, 0, 12288), (4, 1, 512), (5, 0, 256), (6, 0, 8192), (7, 0, 1024),
               (8, 0, 4096)]
G10_KERNELS = [("LoadData_A0", 1200, "", "1"), ("Conv2d_Forward", 12000, "5,1,0", "3,2"), ("Add_Forward", 600, "2,4", "2"),
               ("makeLoss", 12, "2", "6"), ("Conv2d_Backward_Weight", 6000, "6,1", "7"),
               ("Conv2d_Apply_Grad", 120, "0,7", "0"), ("Conv2d_Backward_Input", 2400, "6,0", "8")]

# a -> b -> c -> Loss and back: what a made is read again at the very end.
NODES = [("a_conv", False, 30, 4096), ("b_pool", False, 20, 2048), ("c_relu", False, 10, 2048), ("Loss", False, 5, 256),
         ("c_relu_backward", True, 10, 2048), ("b_pool_backward", True, 20, 4096), ("a_conv_backward", True, 60, 256)]
LINKS = [(0, 1), (1, 2), (2, 3), (3, 4), (2, 4), (4, 5), (0, 5), (5, 6)]
CHECKMATE = {"directed": True, "multigraph": False, "graph": {"name": "small"},
             "nodes": [{"name": name, "backward": backward, "cost_cpu": cost, "cost_ram": ram, "id": i}
                       for i, (name, backward, cost, ram) in enumerate(NODES)],
             "links": [{"source": source, "target": target} for source, target in LINKS]}
LAYERED = {"directed": True, "multigraph": False, "graph": {"order": [0, 2, 1]},
           "nodes": [{"name": i, "out_cost": 10 * (i + 1), "param_cost": 0, "duration": 7 * i} for i in range(3)],
           "links": [{"0": 0, "1": 2}, {"0": 2, "1": 1}, {"0": 0, "1": 1}]}


K = 1024


def monet_node(id, op, args, mem, time, *, fixed=16, space=(0,), in_place=None, again=None, kind="FwdNode", local=()):
    """`time` and `space`, ms and KiB, are by algorithm or way; `in_place` and `again` are pairs of them."""
    in_place, again = in_place or (time, space), again or (time, space)
    return {"id": id, "op": op, "kind": kind, "mem": mem * K, "local_memory": 0, "local_tensors": list(local), "fixed_mem": fixed * K,
            "args": args, "time_ms": list(time), "ws_mem_MiB": [part / K for part in space], "rec_time_ms": list(again[0]),
            "rec_ws_mem_MiB": [part / K for part in again[1]], "inpl_time_ms": list(in_place[0]),
            "inpl_ws_mem_MiB": [part / K for part in in_place[1]]}


def monet():
    """conv, norm, relu over it, conv, loss and back: the gradient of the relu reads what it made or, slower, what the norm did."""
    nodes = [monet_node(0, "aten::_convolution", [[]], 8, (1.0, -1000, 0.5), space=(0, 0, 16)),
             monet_node(1, "aten::batch_norm", [[0]], 8, (0.2,), again=((0.1,), (0,))),
             monet_node(2, "aten::relu_", [[1]], 8, (0.2,), in_place=((0.1,), (-8,))),
             monet_node(3, "aten::_convolution", [[2]], 4, (2.0,)), monet_node(4, "loss::loss", [[3]], 4, (0,)),
             monet_node(5, "aten::_convolution_param_grad", [[2, 4]], 0, (0.4,), fixed=18),
             monet_node(6, "aten::_convolution_ip_grad", [[4]], 8, (0.4,), fixed=18),
             monet_node(7, "aten::relu__ip_grad", [[2, 6], [1, 6]], 8, (0.3, 0.4), fixed=18, space=(-8, -6)),
             monet_node(8, "aten::batch_norm_ip_grad", [[0, 7]], 8, (0.5,), fixed=18),
             monet_node(9, "aten::_convolution_param_grad", [[8]], 0, (0.4,), fixed=19)]
    for node, last in ((nodes[4], 3), (nodes[5], 4), (nodes[6], 4), (nodes[7], 6), (nodes[8], 7), (nodes[9], 8)):
        node.update(local_tensors=[last], local_memory=nodes[last]["mem"])
    return {"loss": 4, "nodes": nodes, "conv_list": {str(id): i for i, id in enumerate((0, 3, 5, 6, 9))},
            "inplace_list": {"2": 1}, "fwd_to_bwd": {}}


def instruction(kind, **fields):
    return {"INSTRUCTION": kind, **fields}


def memory(name, size):
    return instruction("MEMORY", NAME=name, MEMORY=str(size))


def call(name, arguments, time, *results):
    """`results` are (name, bytes, alias)."""
    lines = [instruction("CALL", NAME=name, ARGS=arguments, RESULT=[result[0] for result in results], TIME=str(time))]
    for result, size, alias in results:
        lines += [memory(result, size), instruction("ALIAS", NAME=result, ALIAS=str(alias))]
    return lines


def dtr_log():
    return [instruction("ANNOTATE", ANNOTATION="START"), instruction("CONSTANT", NAME="w"), memory("w", 1024),
            instruction("COPY", DST="w2", SRC="w"), instruction("RELEASE", NAME="w"),
            instruction("CONSTANT", NAME="x"), memory("x", 2048),
            *call("cudnn_convolution", ["x", "w2"], 100, ("y", 4096, -1), ("none", 0, -1)),
            *call("view", ["y"], 3, ("v", 4096, 0)), instruction("RELEASE", NAME="y"),
            instruction("MUTATE", NAME="relu_", ARGS=["v", "none"], MUTATE=[0], TIME="20"),
            *call("mm", ["v", "v"], 50, ("z", 512, -1)),
            instruction("ANNOTATE", ANNOTATION="BACKWARD"),
            *call("mm_backward", ["z", "v"], 70, ("dv", 4096, -1)), instruction("RELEASE", NAME="z"),
            instruction("RELEASE", NAME="v"), *call("cudnn_convolution_backward", ["dv", "x", "w2"], 200, ("dw", 1024, -1)),
            instruction("COPY", DST="dw2", SRC="dw"), instruction("RELEASE", NAME="dw"), instruction("RELEASE", NAME="dv"),
            instruction("MUTATE", NAME="add_", ARGS=["w2", "dw2"], MUTATE=[0], TIME="5")]


class Elsewhere(FolderCase):
    def g10(self, kernels=G10_KERNELS, tensors=G10_TENSORS):
        head = "id\tname\tcycles_1.2GHz\tin\tout\n"
        rows = "".join("\t".join(map(str, (i, *kernel))) + "\n" for i, kernel in enumerate(kernels))
        self.put("g10/kernels.tsv", (head + rows).encode())
        rows = "".join("\t".join(map(str, tensor)) + "\n" for tensor in tensors)
        self.put("g10/tensors.tsv", ("id\tglobal\tbytes\n" + rows).encode())
        return self.path("g10")

    def checkmate(self, value=None):
        return self.put("small.json", json.dumps(CHECKMATE if value is None else value).encode())

    def dtr(self, lines=None):
        text = "".join(json.dumps(line) + "\n" for line in (dtr_log() if lines is None else lines))
        return self.put("small.log.gz", gzip.compress(text.encode()))

    def monet(self, value=None, name="data/monet/net_2_inplace_mode.json"):
        os.makedirs(self.path("data/monet"), exist_ok=True)
        return self.put(name, json.dumps(monet() if value is None else value).encode())

    def monet_published(self):
        self.put("data/monet/solutions.tsv", b"path\tmode\tbudget_GB\ttotal_cost\nx\tnet_2_inplace_mode\t1.0\t500\n")
        head = "model\tbatch\tmode\tbudget_GB\tbest_obj_10us\tbound_10us\tstatus\n"
        rows = "other\t2\tinplace_mode\t1.0\t9\t9\toptimal\nn\t2\tinplace_mode\t1.0\t500\t400\toptimal\n"
        self.put("data/monet/gurobi_results.tsv", (head + rows + "n\t2\tinplace_mode\t0.00001\t\t\tinfeasible\n").encode())

    def convert(self, path):
        """The command that the converter prints, as a list, and the graph."""
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/bench/elsewhere.py"), path, "-o", self.folder],
                              capture_output=True, text=True, check=True)
        command = shlex.split(done.stdout)
        self.assertEqual(command[:2], ["planc", "plan"])
        return [os.path.join(BUILD, "planc"), *command[1:]], read_graph(command[2])

    def plan(self, command, policy, budget="1G"):
        """The summary, None where nothing fits. What fits passes the checker."""
        plan = self.path("x.plan")
        done = subprocess.run([*command, "--policy", policy, "--budget", str(budget), "--json", "-o", plan], capture_output=True,
                              text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        if done.returncode:
            return None
        subprocess.run([command[0], "check", plan, "--graph", command[2]], check=True, capture_output=True)
        return json.loads(done.stdout)

    def ops(self, graph):
        return {op["op"]: op for op in graph.ops}

    def refused(self, path, what):
        with self.assertRaisesRegex(BadData, what):
            elsewhere.read(path)

    def test_g10(self):
        command, graph = self.convert(self.g10())
        kinds = {name: tensor.kind for name, tensor in graph.tensors.items()}
        self.assertEqual(kinds, {"t0": "state", "t1": "activation", "t2": "activation", "t4": "param", "t5": "input",
                                 "t6": "activation", "t7": "activation", "t8": "activation"})
        ops = self.ops(graph)
        self.assertEqual([op["phase"] for op in graph.ops], ["forward"] * 4 + ["backward"] * 3)
        self.assertEqual((ops["k5"]["in"], ops["k5"]["out"], ops["k5"]["effects"]), (["t7"], [], ["t0"]))
        self.assertEqual([ops[k]["class"] for k in ("k1", "k2", "k5")], ["conv", "elementwise", "optimizer"])
        self.assertEqual([op["op"] for op in graph.ops if op["flags"] == ["no-recompute"]], ["k0"])
        self.assertEqual(command[-1], "--no-recompute")
        row = self.plan(command, "none")
        # The forward convolution: both globals, what is fed, x, y and the workspace of tensor 3.
        self.assertEqual(row["peak_bytes"], 1024 + 512 + 256 + 4096 + 8192 + 12288)
        self.assertEqual(row["ideal_ns"], 22332 * 10 // 12)
        self.assertIsNone(self.plan(command, "none", row["peak_bytes"] - 1))

    def test_g10_links(self):
        with open(self.convert(self.g10())[0][4], encoding="utf-8") as file:
            device = json.load(file)["device"]
        self.assertEqual((device["memory_bytes"], device["launch_ns"], device["reserved_bytes"]), (40 * 2**30, 0, 0))
        self.assertEqual([device[way]["bytes_per_second"] for way in ("h2d", "d2h")], [15_754_000_000] * 2)

    def test_g10_updates_what_was_fed(self):
        tensors, kernels = [(0, 0, 256), (1, 0, 256)], [("Add_Forward", 1, "0", "1"), ("Add_Forward", 1, "0,1", "0")]
        self.assertEqual(self.convert(self.g10(kernels, tensors))[1].tensors["t0"].kind, "state")

    def test_g10_malformed(self):
        def kernels(*row):
            return self.g10([*G10_KERNELS, row])

        self.refused(kernels("Add_Forward", 1, "99", ""), r"^kernels.tsv:9: tensor 99 is not in tensors.tsv$")
        self.refused(kernels("Add_Forward", 1, "1,1", ""), r"a tensor stands twice")
        self.refused(kernels("Add_Forward", -1, "1", ""), r"a whole number below 2\^53")
        self.refused(kernels("Add_Forward", 10**19, "1", ""), r"a whole number below 2\^53")
        self.refused(kernels("Add [x]", 1, "1", ""), r"a kernel's name")
        self.refused(kernels("Add_Forward", 1, "1"), r"5 columns are expected")
        self.refused(self.g10(tensors=[*G10_TENSORS, (8, 0, 1)]), r"an id of its own")
        self.refused(self.g10(tensors=[(0, 0, 0)]), r"bytes are expected")
        self.refused(self.g10(kernels=[]), r"kernels .* are expected")
        self.put("g10/kernels.tsv", b"id\tname\n")
        self.refused(self.path("g10"), r"kernels.tsv:1: the columns")

    def test_checkmate(self):
        command, graph = self.convert(self.checkmate())
        classes = [op.get("class") for op in graph.ops]
        self.assertEqual(classes, ["conv", "pool", "elementwise", None, "elementwise", "pool", "conv"])
        self.assertEqual([op["phase"] for op in graph.ops], ["forward"] * 4 + ["backward"] * 3)
        self.assertEqual(command[-1], "--no-swap")
        row = self.plan(command, "none")
        # At b_pool_backward: what a_conv and c_relu_backward made, and its own output.
        self.assertEqual(row["peak_bytes"], 4096 + 2048 + 4096)
        self.assertEqual(row["ideal_ns"], 155 * 10**7)
        self.assertEqual(row["iteration_ns"], row["ideal_ns"])

    def test_checkmate_is_recomputed_and_not_swapped(self):
        value = copy.deepcopy(CHECKMATE)
        value["nodes"][2]["cost_ram"] = value["nodes"][4]["cost_ram"] = 8192
        command, _ = self.convert(self.checkmate(value))
        most = self.plan(command, "none")["peak_bytes"]
        self.assertEqual(most, 4096 + 256 + 2 * 8192)
        row = self.plan(command, "best", most - 4096)
        self.assertEqual((row["d2h_bytes"], row["h2d_bytes"]), (0, 0))
        self.assertEqual(row["iteration_ns"] - row["ideal_ns"], 30 * 10**7)

    def test_layered(self):
        command, graph = self.convert(self.checkmate(LAYERED))
        self.assertEqual([op["op"] for op in graph.ops], ["0.n0", "1.n2", "2.n1"])
        self.assertEqual(command[-2:], ["--no-swap", "--inference"])
        row = self.plan(command, "none")
        self.assertEqual(row["peak_bytes"], (10 + 20 + 30) * 256)
        self.assertEqual(row["ideal_ns"], 21 * 10**8)

    def test_checkmate_malformed(self):
        def changed(change):
            value = copy.deepcopy(CHECKMATE)
            change(value)
            return self.checkmate(value)

        self.refused(changed(lambda v: v["nodes"].append(v["nodes"][0])), r"nodes\[7\]: 0 is there twice")
        self.refused(changed(lambda v: v["links"].append({"source": 0, "target": 9})), r"links\[8\]: a link of two nodes")
        self.refused(changed(lambda v: v["links"].append({"source": 6, "target": 0})), r"^a_conv comes before what it reads$")
        self.refused(changed(lambda v: v["nodes"][3].pop("cost_ram")), r"nodes\[3\]: cost_ram: is missing")
        self.refused(changed(lambda v: v["nodes"][3].update(cost_ram=0)), r"an output of 0 bytes")
        self.refused(changed(lambda v: v["nodes"][3].update(cost_cpu=1.5)), r"an integer")
        self.refused(changed(lambda v: v["nodes"][4].update(backward=0)), r"whether it is backward")
        self.refused(changed(lambda v: v["nodes"][1].update(backward=True)), r"a forward node behind a backward one")
        self.refused(changed(lambda v: v["graph"].update(order=[0, 0])), r"each node once")
        self.refused(changed(lambda v: v.update(nodes=[], links=[])), r"one or more")
        self.refused(self.checkmate([]), r"an object is expected")
        self.refused(self.put("deep.json", b"[" * 100000), r"not a JSON text")

    def test_dtr(self):
        command, graph = self.convert(self.dtr())
        # w, x, y, z, dv and dw; the view has y's storage and what has no bytes has none.
        self.assertEqual({name: tensor.kind for name, tensor in graph.tensors.items()},
                         {"s0": "state", "s1": "param", **dict.fromkeys(["s2", "s3", "s4", "s5"], "activation")})
        ops = self.ops(graph)
        self.assertEqual((ops["1.view"]["in"], ops["1.view"]["out"]), (["s2"], []))
        self.assertEqual((ops["2.relu_"]["in"], ops["2.relu_"]["out"]), (["s2"], ["s2"]))
        self.assertEqual((ops["6.add_"]["in"], ops["6.add_"]["effects"]), (["s5"], ["s0"]))
        self.assertEqual(ops["7.end"]["in"], ["s5"])
        self.assertEqual([op["phase"] for op in graph.ops], ["forward"] * 4 + ["backward"] * 4)
        row = self.plan(command, "none")
        # At mm_backward: w, x, y, z, dv.
        self.assertEqual(row["peak_bytes"], 1024 + 2048 + 4096 + 512 + 4096)
        self.assertEqual(row["ideal_ns"], 100 + 3 + 20 + 50 + 70 + 200 + 5)

    def test_dtr_names_move(self):
        lines = [*call("a", [], 1, ("p", 512, -1)), *call("b", [], 1, ("q", 1024, -1)),
                 instruction("COPY_FROM", DST="p", SRC="q"), instruction("RELEASE", NAME="q"), *call("c", ["p"], 1, ("r", 256, -1)),
                 instruction("RELEASE", NAME="r"), instruction("RELEASE", NAME="p"), instruction("RELEASE", NAME="unheard-of")]
        ops = [(op["type"], op["in"]) for op in self.convert(self.dtr(lines))[1].ops]
        self.assertEqual(ops, [("dtr.a", []), ("dtr.b", []), ("dtr.c", ["s1"])])

    def test_dtr_malformed(self):
        def log(*more):
            return self.dtr([*dtr_log(), *more])

        self.refused(log(instruction("MUTATE", NAME="f", ARGS=["v"], MUTATE=[0], TIME="1")), r"line \d+: v has no storage here")
        self.refused(log(*call("f", ["x"], 1, ("x", 1, -1))), r"x has a storage already")
        self.refused(log(*call("f", ["x"], 1, ("g", 1, 1))), r"a view of argument 1, of 1")
        self.refused(log(*call("f", ["x"], 1, ("g", 1, -1))[:2]), r"the end: ALIAS of g is expected")
        self.refused(log(*call("f", ["x"], "soon", ("g", 1, -1))), r"a whole number")
        self.refused(log(instruction("MUTATE", NAME="f", ARGS=["x"], MUTATE=[1], TIME="1")), r"MUTATE, a list")
        self.refused(log(instruction("CONSTANT", NAME="k")), r"MEMORY of k is expected")
        self.refused(log(instruction("EXPLODE\n")), r"EXPLODE_ is not an instruction")
        self.refused(log([]), r"an INSTRUCTION is expected")
        self.refused(self.dtr([]), r"the log has no call")
        self.refused(self.put("x.log", b'{"INSTRUCTION": "RELEASE"'), r"line 1: not a JSON text")

    def test_monet(self):
        command, graph = self.convert(self.monet())
        kinds = {name: tensor.kind for name, tensor in graph.tensors.items() if tensor.root is tensor}
        self.assertEqual(kinds, {"fixed": "param", **dict.fromkeys(["t0", "t1", "t3", "t4", "g5", "t6", "t8", "g9"], "activation")})
        ops = self.ops(graph)
        # In place are the relu and its gradient.
        self.assertEqual((ops["2.relu_"]["in"], ops["2.relu_"]["out"]), (["t1"], ["t2.0"]))
        self.assertEqual((ops["7.relu__ip_grad"]["in"], ops["7.relu__ip_grad"]["out"]), (["t2.0", "t6"], ["t7.0"]))
        self.assertEqual(ops["end"]["in"], ["g5", "g9"])
        self.assertEqual([op["op"] for op in graph.ops if op["flags"] == ["no-recompute"]],
                         [op["op"] for op in graph.ops if op["phase"] == "backward"][:-1])
        self.assertEqual(command[-1], "--no-swap")
        row = self.plan(command, "none")
        # At its second gradient: what is fixed, a gradient, what the first convolution and the relu made, the loss, its output.
        self.assertEqual(row["peak_bytes"], (16 + 2 + 8 + 8 + 4 + 8) * K)
        self.assertEqual(row["ideal_ns"], (50 + 20 + 10 + 200 + 40 + 40 + 30 + 50 + 40) * 10**4)

    def test_monet_ways(self):
        problem = elsewhere_monet.Problem(self.monet())
        self.assertEqual(problem.choices(), {7: 2})
        layout = elsewhere_monet.Layout(problem, {7: 1})
        # What the relu reads is read again, so that it is not in place; its gradient is, beside 2 KiB.
        self.assertEqual(layout.pieces[2:3] + layout.pieces[7:8], [[("t2", 8 * K)], [("t6", 8 * K)]])
        self.assertEqual(layout.workspaces[7], 2 * K)
        costs = {(): 3, ((7, 0),): 2, ((7, 1),): 1}
        found = elsewhere_monet_ways.ranked(problem, lambda choice: costs[tuple(choice.items())], lambda: True)
        self.assertEqual(found, [{7: 1}, {7: 0}])

    def test_monet_sums(self):
        """A plan by MONET's rules: as planc says, and with what its inequalities charge."""
        problem = elsewhere_monet.Problem(self.monet())
        layout, plan = elsewhere_monet.Layout(problem, {}), self.path("x.plan")
        command, _ = self.convert(self.monet())
        row = self.plan(command, "none")
        found = elsewhere_monet_sums.judge(problem, layout, plan)
        self.assertEqual(found["units"] * 10**4, row["iteration_ns"])
        self.assertEqual((found["live_bytes"], found["unlike"]), (row["peak_bytes"], []))
        # At the last reader of the loss, which counts twice: its output and what the first convolution and the relu made.
        self.assertEqual(found["charged_bytes"], (18 + 4 + 4 + 8 + 8 + 8) * K)
        runs = [(0, 2), (1, None), (2, None), (3, 0), (4, None), (5, 0), (6, 0), (1, None), (2, None), (7, None), (8, None), (9, 0)]
        again = elsewhere_monet_sums.Sums(problem, layout, runs)
        self.assertEqual((again.units - found["units"], again.unlike), (10 + 10, []))
        # Behind the relu, which is in place, what the norm made is no more.
        runs.insert(7, (2, None))
        with self.assertRaisesRegex(BadData, "1 is not there for 2"):
            elsewhere_monet_sums.Sums(problem, layout, runs)

    def test_monet_malformed(self):
        def changed(change):
            value = monet()
            change(value)
            return self.monet(value)

        self.refused(changed(lambda v: v.update(loss=0, nodes=v["nodes"][:1])), r"a loss with nodes before and after it")
        self.refused(changed(lambda v: v["nodes"][3].update(id=4)), r"nodes\[3\]: the nodes in order")
        self.refused(changed(lambda v: v["nodes"][3].update(args=[[3]])), r"nodes before this one are expected")
        self.refused(changed(lambda v: v["nodes"][3].update(args=[[1], [2]])), r"one only of a forward node")
        self.refused(changed(lambda v: v["nodes"][3].update(time_ms=[-1000])), r"an algorithm that runs")
        self.refused(changed(lambda v: v["nodes"][7].update(time_ms=[1], ws_mem_MiB=[0])), r"a time and workspace for each of args")
        self.refused(changed(lambda v: v["nodes"][7].update(time_ms=[1])), r"1 numbers are expected")
        self.refused(changed(lambda v: v["nodes"][7].update(time_ms="1")), r"a list of numbers is expected")

    def test_what_is_cut_off_or_changed(self):
        """Files that are cut off anywhere, and such with a byte changed: read, or refused in one sentence."""
        draw, refusals = random.Random(15), 0
        self.g10()
        names = ["g10/kernels.tsv", "g10/tensors.tsv", os.path.basename(self.checkmate()), os.path.basename(self.dtr()),
                 os.path.basename(self.monet(name="monet.json"))]
        plain = self.put("plain.log", "".join(json.dumps(line) + "\n" for line in dtr_log()).encode())
        for name in [*names, os.path.basename(plain)]:
            with open(self.path(name), "rb") as file:
                whole = file.read()
            for _ in range(150):
                at = draw.randrange(len(whole))
                changed = whole[:at] if draw.random() < 0.5 else whole[:at] + bytes([draw.randrange(256)]) + whole[at + 1:]
                self.put(name, changed)
                try:
                    elsewhere.read(self.path(name.split("/")[0]))
                except BadData as error:
                    self.assertNotIn("\n", str(error))
                    refusals += 1
            self.put(name, whole)
        self.assertGreater(refusals, 400)

    def test_refusals_of_the_command(self):
        def fails(code, *arguments):
            done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/bench/elsewhere.py"), *arguments],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            self.assertRegex(done.stderr, r"^elsewhere.py: [^\n]+\n$")
            return done.stderr

        self.assertIn("is not in tensors.tsv", fails(3, self.g10(tensors=[]), "-o", self.folder))
        self.assertIn("No such file", fails(3, self.path("absent.json"), "-o", self.folder))
        self.assertIn("is expected", fails(3, self.put("x.txt", b""), "-o", self.folder))
        self.assertIn("No such file", fails(5, self.checkmate(), "-o", self.path("absent")))

    def bench(self, data, *arguments):
        out = io.StringIO()
        with mock.patch.object(bench_elsewhere, "DATA", data), contextlib.redirect_stdout(out), \
                mock.patch.object(sys, "argv", ["bench_elsewhere.py", *arguments]), contextlib.redirect_stderr(io.StringIO()):
            bench_elsewhere.main()
        return out.getvalue()

    def dtr_measured(self):
        self.dtr()
        os.makedirs(self.path("data/dtr"))
        os.rename(self.path("small.log.gz"), self.path("data/dtr/small_2.log.gz"))
        head = "model\tbatch\tkind\tbudget_GB\ttime_ms_mean\tgpu_time_ms_mean\ttotal_mem_MB\n"
        self.put("data/dtr/measured.tsv", (head + "small\t2\tbaseline\t-\t50\t50\t1\nsmall\t2\tdtr\t1\t60\t60\t0\n").encode())

    def test_bench_without_data(self):
        text = self.bench(self.path("absent"))
        for name in ("g10", "checkmate", "dtr", "monet"):
            self.assertIn(f"{name} is skipped, ../shared/bench/{name} is absent", text)

    def test_bench(self):
        self.dtr_measured()
        text = self.bench(self.path("data"))
        self.assertIn("g10 is skipped", text)
        rows = [re.split(r"  +", line.strip()) for line in text.splitlines() if line.split()[:1] == ["small_2"]]
        self.assertEqual([row[:5] for row in rows], [["small_2", "-", "1", "1.000", "1.000"],
                                                     ["small_2", "1", "0", "none fits", "none fits"]])
        self.assertEqual([row[-1] for row in rows], ["1.000", "1.200"])

    def test_bench_of_files(self):
        """What is given is planned, whichever source it is of, and nothing else."""
        self.dtr_measured()
        self.monet_published()
        files = [self.path("data/dtr"), self.checkmate(), self.g10(), self.monet()]
        rows = json.loads(self.bench(self.path("absent"), "--json", *files))
        self.assertEqual({row["source"] for row in rows}, {"g10", "checkmate", "dtr", "monet"})
        for row in rows:
            plan = row["auto"]
            self.assertTrue(row["source"] == "monet" or "none" in plan or plan["slowdown"] >= plan.get("bound", 1) >= 1, row)
        small, large = [row for row in rows if row["source"] == "monet"]
        self.assertEqual((small["published"]["status"], small["auto"]["none"]), ("infeasible", "none fits"))
        self.assertEqual(large["published"], {"objective": 500, "bound": 400, "status": None})
        self.assertEqual((large["auto"]["units"], large["of_published"]), (480, 0.96))
        self.assertLessEqual(large["bound"], 480)
        self.assertEqual([row["published"]["DTR"] for row in rows if row["source"] == "dtr"], [1, 1.2])
        with self.assertRaisesRegex(SystemExit, "is expected"):
            self.bench(self.path("absent"), self.put("x.txt", b""))
        with self.assertRaisesRegex(SystemExit, "there is no measured.tsv beside it"):
            self.bench(self.path("absent"), "--json", self.dtr())


if __name__ == "__main__":
    unittest.main()
