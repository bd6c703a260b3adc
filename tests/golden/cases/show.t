What is in a graph, and in a plan with what binds its peak. Sizes of inputs/tiny.yaml can be worked out by hand.

  $ planc show inputs/tiny.yaml
  graph tiny, NCHW
  forward        3 ops, 0.000 GFLOP at batch 4
  backward       3 ops, 0.000 GFLOP at batch 4
  optimizer      1 ops, 0.000 GFLOP at batch 4
  8 tensors in 8 storages, 256 parameters
  memory: all data 30.00 KiB, most live at once 25.00 KiB at op last.grad; with parameters, state and gradients kept, in rounds of one sample at least 6.00 KiB at op last.grad
  $ planc show inputs/tiny.yaml --batch 1
  graph tiny, NCHW
  forward        3 ops, 0.000 GFLOP at batch 1
  backward       3 ops, 0.000 GFLOP at batch 1
  optimizer      1 ops, 0.000 GFLOP at batch 1
  8 tensors in 8 storages, 256 parameters
  memory: all data 9.00 KiB, most live at once 7.00 KiB at op last.grad; with parameters, state and gradients kept, in rounds of one sample at least 6.00 KiB at op last.grad
  ~ planc show graphs/lenet-digits.yaml
  graph lenet-digits, NCHW
  origin: after LeCun et al., Gradient-based learning applied to document recognition, Proc. IEEE, <N>
  forward <N> ops, <N> GFLOP at batch <N>
  <N> tensors in <N> storages, <N> parameters
  memory: all data <size>, most live at once <size> at op pool1; with parameters, state and gradients kept, in rounds of one sample at least <size> at op pool1
  trained with sgd: all data <size>, most live at once <size> at op pool1.grad; with parameters, state and gradients kept, in rounds of one sample at least <size> at op pool1.grad
  $ planc plan inputs/tiny.yaml --policy none -o tiny.plan >/dev/null 2>&1
  ~ planc show tiny.plan
  plan of tiny, policy none, device k40m
  batch <N> in <N> round of <N>; <N> ops in the graph, <N> instructions in the body
  budget <size>: arena <size>, reserved <size>; host <size>
  links host to device <N> GB/s + <N> ms, device to host <N> GB/s + <N> ms
  predicted iteration <N> ms, ideal <N> ms
  peak: <size> live at op last.grad; largest:
   <size>  b
   <size>  b.grad
   <size>  a
   <size>  x
   <size>  w
  $ cat tiny.plan | planc show /dev/stdin | head -n 1; cat inputs/tiny.yaml | planc show /dev/stdin | head -n 1
  plan of tiny, policy none, device k40m
  graph tiny, NCHW
  $ planc show tiny.plan | tail -n 6
  peak: 25.00 KiB live at op last.grad; largest:
        8.00 KiB  b
        8.00 KiB  b.grad
        4.00 KiB  a
        4.00 KiB  x
        1.00 KiB  w

What was asked of its policy is told, and of a job what was asked of it alone.

  $ planc plan inputs/tiny.yaml --policy window --window 6K --no-recompute -o w.plan >/dev/null 2>&1; planc show w.plan | grep asked; planc show w.plan --json | grep -o '"settings":{[^}]*}'
  asked for window 6.00 KiB, no-recompute
  "settings":{"window":6144,"no_recompute":1}
  $ planc colocate inputs/tiny.yaml:4:1 inputs/tiny.yaml:4:1 --policy tensile --swap-rate 50 --swap-rate 7 --priority 1:2 -o t.plan 2>/dev/null | grep 'job .: '
    job 0: tiny, batch 4 in 1 round of 4, 1 iteration, swap-rate 50 %
    job 1: tiny, batch 4 in 1 round of 4, 1 iteration, priority 2, swap-rate 7 %
  $ planc show t.plan | grep '^  job .: '
    job 0: tiny, batch 4 in 1 round of 4, 1 iteration, swap-rate 50 %
    job 1: tiny, batch 4 in 1 round of 4, 1 iteration, priority 2, swap-rate 7 %

A plan has its own batch.

  $ planc show tiny.plan -b 3
  ! planc: --batch: a plan has its own
  [2]

How long tensors live in it, as simulated; of a graph there is nothing to tell.

  ~ planc show tiny.plan --lifespans
  job    lifespans of  tensors        bytes           mean         median        longest
  <N>      temporary <N> <size> <N> ms <N> ms <N> ms
  <N>      feature map <N> <size> <N> ms <N> ms <N> ms
  <N>      gradient map <N> <size> <N> ms <N> ms <N> ms
  $ planc show tiny.plan --lifespans --json | sed 's/_ns":[0-9]*/_ns":<N>/g'
  {"planc":"show/1","plan":"tiny","lifespans":[{"job":0,"class":"temporary","tensors":1,"bytes":4,"mean_ns":<N>,"median_ns":<N>,"longest_ns":<N>},{"job":0,"class":"feature map","tensors":3,"bytes":16384,"mean_ns":<N>,"median_ns":<N>,"longest_ns":<N>},{"job":0,"class":"gradient map","tensors":3,"bytes":13312,"mean_ns":<N>,"median_ns":<N>,"longest_ns":<N>}]}
  $ planc show inputs/tiny.yaml --lifespans
  ! planc: --lifespans is for plans, and this is a graph: plan it first
  [2]

Sums end at the largest number.

  $ printf 'planc-graph: 1\nname: big\ntensors: {a: "input f32[N,4]", b: "f32[N,4]", c: "f32[N,4]"}\nops:\n  - {op: one, type: t.x, in: [a], out: [b], flops: 9223372036854775807, traffic: 0}\n  - {op: two, type: t.x, in: [b], out: [c], flops: 9223372036854775807, traffic: 0}\n' > big.yaml; planc show big.yaml | grep -o '[0-9.-]* GFLOP' | head -n 1
  9223372036.855 GFLOP
