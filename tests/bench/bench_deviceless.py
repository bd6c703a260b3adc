#!/usr/bin/env python3
"""cuDNN's algorithms for an H100 that is not there: how long listing them takes, how many there are, and plans for 12G with
their workspaces. Needs the CUDA plug-in (`make cuda`)."""

import json
import os
import subprocess
import sys
import tempfile
import time

from benchlib import BUILD, bench, graph, hold, machine, planc, table

BATCH = 256


def main(_):
    if not os.path.exists(os.path.join(BUILD, "libplanrt-cuda.so")):
        print("bench_deviceless: left out: there is no CUDA plug-in (make cuda)")
        sys.exit()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        profile, plan = os.path.join(folder, "p.json"), os.path.join(folder, "x.plan")
        for name in ("resnet50", "vgg16"):
            start = time.monotonic()
            subprocess.run([os.path.join(BUILD, "planrun"), "profile", graph(name), "--deviceless", "h100", "--batches",
                            str(BATCH), "-o", profile], check=True, capture_output=True)
            seconds = time.monotonic() - start
            with open(profile, encoding="utf-8") as file:
                ops = json.load(file)["ops"]
            engines = [v for op in ops for v in op["variants"] if v["algorithm"].startswith("cudnn-")]
            for options in ([], ["--split-batch-norm"]):
                if options and name == "vgg16":
                    continue
                told = json.loads(planc("plan", graph(name), "--profile", profile, "--batch", BATCH, "--budget", "12G",
                                        "--json", "-o", plan, *options))
                planc("check", plan, "--budget", "12G")
                rows.append([name + ("*" if options else ""), f"{seconds:.1f}", 30, len(engines),
                             max(v["workspace_bytes"] for v in engines) >> 20, told["sub_batch"],
                             told["peak_bytes"] >> 20, round(told["iteration_ns"] / 1e6)])
    table(f"cuDNN's engines for an H100 that is not there, batch {BATCH}, plans for 12G; seconds measured",
          ["graph", "seconds", "at most", "engines", "largest workspace MiB", "sub-batch", "peak MiB", "predicted ms"],
          rows, ["* batch norm split"])
    hold((row[0], row[1], row[2]) for row in rows)


if __name__ == "__main__":
    bench(machine(), {"all": main})
