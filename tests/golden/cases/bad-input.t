Every malformed input ends in one line that names the place, exit code 3 and no output.

  $ planc plan nowhere.yaml --device k40m
  ! planc: nowhere.yaml: No such file or directory
  [3]
  $ planc show nowhere.plan
  ! planc: nowhere.plan: No such file or directory
  [3]
  $ planc check nowhere.plan
  ! planc: nowhere.plan: No such file or directory
  [3]
  $ planc simulate nowhere.plan
  ! planc: nowhere.plan: No such file or directory
  [3]
  $ planc train nowhere.yaml
  ! planc: nowhere.yaml: No such file or directory
  [3]
  $ planc compare nowhere.yaml
  ! planc: nowhere.yaml: No such file or directory
  [3]
  $ planc plan inputs
  ! planc: inputs: is a directory
  [3]
  $ planrun exec nowhere.plan
  ! planrun: nowhere.plan: No such file or directory
  [3]
  $ : > empty; planc plan empty; planc check empty; planc simulate empty; planc show empty
  ! planc: empty:1:1: expected a graph, found an empty file
  ! planc: empty:1:1: no plan: it does not begin with {"planc-plan": (planc plan makes one of a graph)
  ! planc: empty:1:1: no plan: it does not begin with {"planc-plan": (planc plan makes one of a graph)
  ! planc: empty:1:1: expected a graph, found an empty file
  [3]

Graphs: a key twice, a cycle, a number beyond 63 bits, text that ends early.

  $ planc plan data/graph/op-key-twice.yaml
  ! planc: data/graph/op-key-twice.yaml:11:33: key "in" is given twice
  [3]
  $ planc plan data/graph/op-cycle.yaml
  ! planc: data/graph/op-cycle.yaml:12:5: op b: tensor r is produced only later, by op c (line 13)
  [3]
  $ planc plan data/graph/tensor-bytes-overflow.yaml
  ! planc: data/graph/tensor-bytes-overflow.yaml:9:3: tensor q: its size does not fit 64 bits
  [3]
  $ planc plan data/graph/header-truncated.yaml
  ! planc: data/graph/header-truncated.yaml:11:1: did not find expected node content
  [3]
  $ head -c 300 inputs/tiny.yaml > short.yaml; planc show short.yaml
  ! planc: short.yaml:12:1: could not find expected ':'
  [3]
  $ planc train data/graph/op-unknown-input.yaml -o out.yaml
  ! planc: data/graph/op-unknown-input.yaml:11:32: unknown tensor "q"
  [3]
  $ planc compare data/graph/header-version-2.yaml
  ! planc: data/graph/header-version-2.yaml:2:14: graph format 2 is not known; this planc reads format 1
  [3]
  $ sed 's/^optimizer: sgd/optimizer: lion/' graphs/lenet-digits.yaml > lion.yaml; planc train lion.yaml
  ! planc: no optimizer is called "lion": sgd, momentum and adam are
  [3]
  $ sed 's/^device: k40m/device: abacus/' inputs/tiny.yaml > abacus.yaml; planc plan abacus.yaml
  ! planc: note: device abacus (the graph's header)
  ! planc: no description of device abacus; known ones: a100-40g, a100-80g, a6000, h100, h200, k40m, l4, p100, rtx2080ti, v100-16g-nvlink, v100-32g
  [3]
  $ sed 's/^batch: 4/policy: fastest/' inputs/tiny.yaml > fastest.yaml; planc plan fastest.yaml
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 32 (the fall-back)
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: note: policy fastest (the graph's header)
  ! planc: unknown policy fastest: ideal, auto, best, none, vdnn-all, vdnn-conv, vdnn-dyn, vdnn+, modnn, naive, prefetch-1, lms, capuchin, tensile, superneurons, chen, cheap, window, priced
  [3]

Profiles.

  $ for name in truncated beyond-2-53 deep trailing not-an-object op-twice empty duplicate-key; do
  >   planc plan inputs/tiny.yaml --profile data/profile/$name.json
  > done
  ! planc: data/profile/truncated.json:36: not valid JSON
  ! planc: data/profile/beyond-2-53.json: device.memory_bytes: is beyond 2^53
  ! planc: data/profile/deep.json:1: not valid JSON
  ! planc: data/profile/trailing.json:75: text after the end of the JSON value
  ! planc: data/profile/not-an-object.json: must be an object
  ! planc: data/profile/op-twice.json: ops[1]: op conv1 is measured twice, also in ops[0]
  ! planc: data/profile/empty.json:1: not valid JSON
  ! planc: data/profile/duplicate-key.json: device.launch_ns: the key stands twice
  [3]
  $ planc plan inputs/tiny.yaml --profile data/timeline/tiny.plan
  ! planc: data/timeline/tiny.plan: a profile is asked for, and this is a plan
  [3]
  $ sed 's/"memory":"host"/"memory":"hots"/' data/timeline/tiny.plan | planc check /dev/stdin
  ! planc: /dev/stdin:4:12: not "device", "host", "storage" or "user"
  [3]
  $ planc plan inputs/tiny.yaml --profile nowhere.json
  ! planc: nowhere.json: No such file or directory
  [3]
  $ planc plan inputs/tiny.yaml --device nowhere.json
  ! planc: nowhere.json: No such file or directory
  [3]

Plans: cut off at the end of a line, not JSON, a row too many, another version of the format.

  $ planc plan inputs/tiny.yaml --policy none -o tiny.plan >/dev/null 2>&1
  $ for n in 1 2 20; do head -n $n tiny.plan > cut.plan; planc check cut.plan; done
  ! planc: cut.plan:1:1: the header counts 76 rows, the file has 1 lines
  ! planc: cut.plan:1:1: the header counts 76 rows, the file has 2 lines
  ! planc: cut.plan:1:1: the header counts 76 rows, the file has 20 lines
  [3]
  $ sed '$d' tiny.plan > cut.plan; planc check cut.plan
  ! planc: cut.plan:1:1: the header counts 76 rows, the file has 75 lines
  [3]
  $ { cat tiny.plan; sed -n '$p' tiny.plan; } > long.plan; planc check long.plan
  ! planc: long.plan:1:1: the header counts 76 rows, the file has 77 lines
  [3]
  $ sed '1s/"planc-plan":2/"planc-plan":1/' tiny.plan > new.plan; planc check new.plan; planc simulate new.plan
  ! planc: new.plan:1:15: plan format 1 is not read, only format 2: plan again with this planc
  ! planc: new.plan:1:15: plan format 1 is not read, only format 2: plan again with this planc
  [3]
  $ sed '3s/./[/' tiny.plan > broken.plan; planc check broken.plan; planrun exec broken.plan
  ! planc: broken.plan:3:1: expected {"memory":
  ! planrun: broken.plan:3:1: expected {"memory":
  [3]
  $ planc check inputs/tiny.yaml
  ! planc: inputs/tiny.yaml:1:1: no plan: it does not begin with {"planc-plan": (planc plan makes one of a graph)
  [3]
  $ cp tiny.plan tiny; for command in plan compare train predict; do planc $command tiny; done; planc check tiny.plan --graph tiny; planrun profile tiny
  ! planc: tiny:1:2: a graph is asked for, and this is a plan, which planc show, check, simulate and update and planrun exec take
  ! planc: tiny:1:2: a graph is asked for, and this is a plan, which planc show, check, simulate and update and planrun exec take
  ! planc: tiny:1:2: a graph is asked for, and this is a plan, which planc show, check, simulate and update and planrun exec take
  ! planc: tiny:1:2: a graph is asked for, and this is a plan, which planc show, check, simulate and update and planrun exec take
  ! planc: tiny:1:2: a graph is asked for, and this is a plan, which planc show, check, simulate and update and planrun exec take
  ! planrun: tiny:1:2: a graph is asked for, and this is a plan, which planc show, check, simulate and update and planrun exec take
  [3]
  $ planc plan "$PLANC_PROFILES/k40m.json" 2>&1 | sed 's,.*/profiles/,,'
  k40m.json:2:3: a graph is asked for, and this is a profile, which the options profile and device take
  $ ls *.plan
  broken.plan
  cut.plan
  long.plan
  new.plan
  tiny.plan

Data for planrun.

  $ planc plan graphs/lenet-digits.yaml --budget 1M -o lenet.plan >/dev/null 2>&1
  $ planrun exec lenet.plan --data nowhere.csv
  ! planrun: nowhere.csv: No such file or directory
  [3]
  $ echo 1,2,3 > data.csv; planrun exec lenet.plan --data data.csv
  ! planrun: data.csv:1: value 3 should be a pixel, an integer from 0 to 16
  [3]
