Whatever the command line leaves open comes from the graph's header, else from a documented fall-back, and is named on
standard error.

  ~ planc plan inputs/tiny.yaml
  tiny.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster by more than a thousandth; none: every op has its fastest algorithm
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device k40m)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output tiny.plan
  $ grep -v -e '^batch' -e '^device' inputs/tiny.yaml > bare.yaml
  ~ planc plan bare.yaml
  bare.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster by more than a thousandth; none: every op has its fastest algorithm
  ! planc: note: device h100 (the fall-back)
  ! planc: note: batch <N> (the fall-back)
  ! planc: note: budget <size> (device h100)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output bare.plan
  $ sed -e 's/^batch: 4/batch: 8\npolicy: vdnn-all/' inputs/tiny.yaml > chosen.yaml
  ~ planc plan chosen.yaml
  chosen.plan: vdnn-all, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       attempt <N> of <N> is the first that fits: it offloads all inputs and takes the fastest algorithms
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device k40m)
  ! planc: note: policy vdnn-all (the graph's header)
  ! planc: note: output chosen.plan

What is given is not named.

  ~ planc plan bare.yaml --batch 4 --device p100 --budget 12G --policy none --output here.plan
  here.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm

A graph without backward ops is planned for training, with the optimizer of its header, or as it is.

  ~ planc plan graphs/lenet-digits.yaml --budget 400K -o lenet.plan
  lenet.plan: priced, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it window in rounds of <N> was the fastest with <N> ms; priced: <N> of <N> gaps between uses are spent off the device, <N> of them behind a copy out; the best of <N> choices, <N> of them simulated
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ~ sed '/^optimizer/d' graphs/lenet-digits.yaml > lenet.yaml; planc plan lenet.yaml --budget 400K
  lenet.plan: priced, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it window in rounds of <N> was the fastest with <N> ms; priced: <N> of <N> gaps between uses are spent off the device, <N> of them behind a copy out; the best of <N> choices, <N> of them simulated
  ! planc: note: lenet.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output lenet.plan
  ~ sed 's/^optimizer: sgd/optimizer: adam/' graphs/lenet-digits.yaml > lenet.yaml; planc plan lenet.yaml --budget 400K
  lenet.plan: priced, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it tensile in rounds of <N> was the fastest with <N> ms; priced: <N> of <N> gaps between uses are spent off the device, <N> of them behind a copy out; the best of <N> choices, <N> of them simulated
  ! planc: note: lenet.yaml has no backward ops: planned for training with adam (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output lenet.plan
  ~ planc plan lenet.yaml --budget 400K --optimizer momentum
  lenet.plan: priced, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it tensile in rounds of <N> was the fastest with <N> ms; priced: <N> of <N> gaps between uses are spent off the device, <N> of them behind a copy out; the best of <N> choices, <N> of them simulated
  ! planc: note: lenet.yaml has no backward ops: planned for training with momentum (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output lenet.plan
  ~ planc plan lenet.yaml --budget 400K --inference
  lenet.plan: priced, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it none was the fastest with <N> ms; priced: <N> of <N> gaps between uses are spent off the device, <N> of them behind a copy out; the best of <N> choices, <N> of them simulated
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output lenet.plan

A budget beyond the device is planned, with a warning.

  ~ planc plan inputs/tiny.yaml --budget 13G --policy none -o here.plan
  here.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: warning: the budget of <size> is beyond device k40m with <size>

A device is a name or a file.

  ~ planc plan inputs/tiny.yaml --device "$PLANC_PROFILES/p100.json" --policy none -o here.plan
  here.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device p100)
  $ planc plan inputs/tiny.yaml --device abacus
  ! planc: no description of device abacus; known ones: a100-40g, a100-80g, a6000, h100, h200, k40m, l4, p100, rtx2080ti, v100-16g-nvlink, v100-32g
  [3]
  $ PLANC_PROFILES=/nowhere planc plan inputs/tiny.yaml --device abacus
  ! planc: no description of device abacus; known ones: a100-40g, a100-80g, a6000, h100, h200, k40m, l4, p100, rtx2080ti, v100-16g-nvlink, v100-32g
  [3]

A graph in which no size depends on N is of one batch size, which may be told or not. No other one is planned.

  $ grep -v '^batch' inputs/tiny.yaml | sed -e 's/\[N/[4/' > own.yaml
  ~ planc plan own.yaml --policy none -o own.plan
  own.plan: none, its own batch in <N> round
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm
  ! planc: note: device k40m (the graph's header)
  ! planc: note: budget <size> (device k40m)
  ~ planc show own.yaml
  graph tiny, NCHW
  forward <N> ops, <N> GFLOP at its own batch
  backward <N> ops, <N> GFLOP at its own batch
  optimizer <N> ops, <N> GFLOP at its own batch
  <N> tensors in <N> storages, <N> parameters
  memory: all data <size>, most live at once <size> at op last.grad; with parameters, state and gradients kept at least <size> at op last.grad
  ~ planc bound own.yaml
  tiny: its own batch, budget <size>
    at least <N> ms an iteration, ideal <N> ms (+<N> %)
    a GiB     more, and none is faster than <N> ms
    memory    at least <N> bytes (<size>), which op last.grad takes
  ! planc: note: device k40m (the graph's header)
  ! planc: note: budget <size> (device k40m)
  $ sed -e 's/\[N/[4/' inputs/tiny.yaml > four.yaml; planc plan four.yaml --policy none -o four.plan >/dev/null 2>&1; planc check four.plan --graph four.yaml
  valid: tiny, none, peak 25.00 KiB of 12.00 GiB, 42 instructions
  $ sed 's/"batch":4,"rounds":\[4\]/"batch":8,"rounds":[8]/' four.plan > eight.plan; planc check eight.plan --graph four.yaml
  ! planc: eight.plan: the plan is of batch 8, and four.yaml of one batch size, 4: make the plan again
  [4]
  $ planc check eight.plan --graph own.yaml
  ! planc: eight.plan: the plan is of batch 8, and own.yaml of one batch size that it does not tell: make the plan again
  [4]
  $ planc check own.plan --graph own.yaml | cut -d, -f1
  valid: tiny
  $ sed 's/"batch":4,"rounds":\[4\]/"batch":8,"rounds":[4,4]/' four.plan > twice.plan; planc check twice.plan
  ! planc: twice.plan: job 0 is in 2 rounds, and no size in graph tiny depends on the batch
  [1]
  $ planc plan own.yaml --batch 8
  ! planc: note: device k40m (the graph's header)
  ! planc: --batch: graph tiny is of one batch size, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc plan own.yaml --sub-batch 2
  ! planc: note: device k40m (the graph's header)
  ! planc: --sub-batch: graph tiny is of one batch size, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc compare own.yaml --policies none --max-batch
  ! planc: note: device k40m (the graph's header)
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: --max-batch: graph tiny is of one batch size, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc compare own.yaml --policies none --no-least --json | grep -o '"batch":[^,]*'
  "batch":null
  ! planc: note: device k40m (the graph's header)
  ! planc: note: budget 12.00 GiB (device k40m)
  $ planc compare own.yaml --batch 4 --policies none
  ! planc: note: device k40m (the graph's header)
  ! planc: --batch: graph tiny is of one batch size, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc bound own.yaml --batch 4
  ! planc: note: device k40m (the graph's header)
  ! planc: --batch: graph tiny is of one batch size, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc simulate --passive own.yaml --batch 4
  ! planc: note: device k40m (the graph's header)
  ! planc: --batch: graph tiny is of one batch size, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc predict own.yaml --batch 4 -o -
  ! planc: note: device k40m (the graph's header)
  ! planc: note: device k40m has no model: times are those of its constants
  ! planc: --batch: graph tiny is of one batch size, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc show own.yaml --batch 4
  ! planc: --batch: graph tiny is of one batch size, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc colocate own.yaml:4 own.yaml --budget 1G
  ! planc: note: policy temporal (the fall-back)
  ! planc: job 0: batch 4: graph tiny is of one batch size, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planrun profile own.yaml --batches 4
  ! planrun: --batches 4: graph tiny is of one batch size, as no size in it depends on N
  [2]
  $ sed -e 's/^name: .*/&\nbatch: 4/' own.yaml > told.yaml
  ~ planc plan told.yaml --batch 4 --policy none
  told.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm
  ! planc: note: device k40m (the graph's header)
  ! planc: note: budget <size> (device k40m)
  ! planc: note: output told.plan
  $ planc plan told.yaml --batch 8
  ! planc: note: device k40m (the graph's header)
  ! planc: --batch: graph tiny is of one batch size, 4, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc plan told.yaml --sub-batch 2 --policy none
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: --sub-batch: graph tiny is of one batch size, 4, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
  $ planc plan told.yaml --gpus 2 --policy none
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: --gpus: graph tiny is of one batch size, 4, as no size in it depends on N; planc torch --batches records a step at several, for a graph of all batches
  [2]
