Wrong use of the command line ends in one line that says what is wrong, and exit code 2.

  $ planc
  ! planc: no command given; 'planc --help' lists them
  [2]
  $ planc frobnicate
  ! planc: unknown command frobnicate; 'planc --help' lists them
  [2]
  $ planc --frobnicate
  ! planc: unknown command --frobnicate; 'planc --help' lists them
  [2]
  $ planc plan
  ! planc: plan: missing operand: GRAPH
  [2]
  $ planc plan inputs/tiny.yaml extra
  ! planc: plan: unexpected operand extra
  [2]
  $ planc plan inputs/tiny.yaml --frobnicate
  ! planc: plan: unknown option --frobnicate
  [2]
  $ planc plan inputs/tiny.yaml -x
  ! planc: plan: unknown option -x
  [2]
  $ planc plan inputs/tiny.yaml --json=yes
  ! planc: plan: --json takes no value
  [2]
  $ planc plan inputs/tiny.yaml --policy
  ! planc: plan: --policy needs a value: NAME
  [2]
  $ planc plan inputs/tiny.yaml --policy none --policy none
  ! planc: plan: --policy is given twice
  [2]
  $ planc plan inputs/tiny.yaml --policy fastest
  ! planc: unknown policy fastest: ideal, auto, best, none, vdnn-all, vdnn-conv, vdnn-dyn, vdnn+, modnn, naive, prefetch-1, lms, capuchin, tensile, superneurons, chen, cheap, window, priced
  [2]
  $ planc plan inputs/tiny.yaml --policy ''
  ! planc: unknown policy : ideal, auto, best, none, vdnn-all, vdnn-conv, vdnn-dyn, vdnn+, modnn, naive, prefetch-1, lms, capuchin, tensile, superneurons, chen, cheap, window, priced
  [2]
  $ planc plan inputs/tiny.yaml --batch 0
  ! planc: --batch 0: not an integer from 1 to 2147483647
  [2]
  $ planc plan inputs/tiny.yaml --batch -4
  ! planc: --batch -4: not an integer from 1 to 2147483647
  [2]
  $ planc plan inputs/tiny.yaml --batch 4.5
  ! planc: --batch 4.5: not an integer from 1 to 2147483647
  [2]
  $ planc plan inputs/tiny.yaml --batch 99999999999999999999
  ! planc: --batch 99999999999999999999: not an integer from 1 to 2147483647
  [2]
  $ planc plan inputs/tiny.yaml --batch ''
  ! planc: --batch : not an integer from 1 to 2147483647
  [2]
  $ planc plan inputs/tiny.yaml --sub-batch 5
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: --sub-batch 5: not an integer from 1 to 4, the batch
  [2]
  $ planc plan inputs/tiny.yaml --profile data/profile/toy.json --device k40m
  ! planc: --profile and --device exclude each other
  [2]
  $ planc plan graphs/lenet-digits.yaml --inference --optimizer sgd
  ! planc: an optimizer and inference exclude each other
  [2]
  $ planc plan graphs/lenet-digits.yaml --optimizer lion
  ! planc: no optimizer is called "lion": sgd, momentum and adam are
  [2]
  $ planc train graphs/lenet-digits.yaml -o train.yaml; planc plan train.yaml --optimizer adam
  train.yaml: lenet-digits, 35 ops
  ! planc: train.yaml has backward ops already, an optimizer is for graphs without
  [2]
  $ planc plan inputs/tiny.yaml --policy none --window 1M 2>&1 | tail -n 1
  planc: policy none has no use for --window
  $ planc plan inputs/tiny.yaml --policy window --swap-rate 5 2>&1 | tail -n 1
  planc: policy window has no use for --swap-rate
  $ planc plan inputs/tiny.yaml --policy window --chunk 4K 2>&1 | tail -n 1
  planc: --chunk is for --placement vmm and paged
  $ planc plan inputs/tiny.yaml --budget 8193T 2>&1 | tail -n 1
  planc: --budget: 8193T is more than a plan can hold, 2^53 bytes
  $ planc train graphs/lenet-digits.yaml --optimizer lion
  ! planc: no optimizer is called "lion": sgd, momentum and adam are
  [2]
  $ planc show inputs/tiny.yaml --batch 0
  ! planc: --batch 0: not an integer from 1 to 2147483647
  [2]
  $ planc compare inputs/tiny.yaml --policies none,fastest
  ! planc: unknown policy fastest: ideal, auto, best, none, vdnn-all, vdnn-conv, vdnn-dyn, vdnn+, modnn, naive, prefetch-1, lms, capuchin, tensile, superneurons, chen, cheap, window, priced
  [2]
  $ planc compare inputs/tiny.yaml --policies ,
  ! planc: --policies names no policy
  [2]
  $ planc check
  ! planc: check: missing operand: PLAN...
  [2]
  $ planc simulate
  ! planc: simulate: missing operand: PLAN|GRAPH
  [2]
  $ planc show
  ! planc: show: missing operand: GRAPH|PLAN
  [2]
  $ planc train
  ! planc: train: missing operand: GRAPH
  [2]
  $ planc compare
  ! planc: compare: missing operand: GRAPH ...
  [2]

An option with a value takes it as the next argument, after "=", or, when it has a letter, attached to that.

  $ planc show inputs/tiny.yaml --batch 3 | sed -n 2p
  forward        3 ops, 0.000 GFLOP at batch 3
  $ planc show inputs/tiny.yaml --batch=3 | sed -n 2p
  forward        3 ops, 0.000 GFLOP at batch 3
  $ planc show inputs/tiny.yaml -b 3 | sed -n 2p
  forward        3 ops, 0.000 GFLOP at batch 3
  $ planc show inputs/tiny.yaml -b3 | sed -n 2p
  forward        3 ops, 0.000 GFLOP at batch 3

What follows "--" is an operand, and so is "-" alone.

  $ planc show -- --json
  ! planc: --json: No such file or directory
  [3]
  $ planc show -
  ! planc: -: No such file or directory
  [3]

A batch-coupled graph is not split unless the user says so.

  $ planc plan graphs/resnet34.yaml --batch 8 --sub-batch 4 --device k40m
  ! planc: note: graphs/resnet34.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: note: policy auto (the fall-back)
  ! planc: graph resnet34 has ops that couple the samples of a batch (batch normalisation): running it in sub-batches changes its results; --split-batch-norm allows it
  [2]
  $ planc plan graphs/resnet34.yaml --batch 8 --sub-batch 4 --device k40m --split-batch-norm -o split.plan >split.log 2>&1
  $ head -n 1 split.log
  planc: note: graphs/resnet34.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)

planrun likewise.

  $ planrun
  ! planrun: no command given; 'planrun --help' lists them
  [2]
  $ planrun frobnicate
  ! planrun: unknown command frobnicate; 'planrun --help' lists them
  [2]
  $ planrun exec
  ! planrun: exec: missing operand: PLAN
  [2]
  $ planrun exec tiny.plan --iterations many
  ! planrun: --iterations many: not an integer from 0 to 1099511627776
  [2]
  $ planrun exec tiny.plan --epochs 3
  ! planrun: --epochs goes with --data
  [2]
  $ planrun exec tiny.plan --synthetic --data data/digits/digits.csv.gz
  ! planrun: --data and --synthetic exclude each other
  [2]
  $ planrun exec tiny.plan --sequential --interleave 7
  ! planrun: --sequential and --interleave exclude each other
  [2]
  $ planrun exec tiny.plan --interleave 7 --trace t.json
  ! planrun: --interleave and --trace exclude each other
  [2]
  $ planrun exec tiny.plan --link 3
  ! planrun: --link takes a rate such as 0.2GB/s or 200MiB/s, not 3
  [2]
  $ planrun exec tiny.plan --link 0GB/s
  ! planrun: --link takes a rate above 0
  [2]
  $ planrun profile inputs/tiny.yaml --name 'my laptop'
  ! planrun: --name: must be printable ASCII without spaces, quotes and backslashes
  [2]
  $ planrun profile inputs/tiny.yaml -o nowhere/p.json
  ! planrun: nowhere/p.json: No such file or directory
  [5]
  $ planrun exec tiny.plan --resume x --seed 3
  ! planrun: --seed and --resume exclude each other
  [2]
  $ planrun info extra
  ! planrun: info: unexpected operand extra
  [2]

Switches leave a policy without a choice nothing:

  $ planc plan inputs/tiny.yaml --policy vdnn-all --no-swap 2>&1 | tail -n 1
  planc: policy vdnn-all swaps and has no other choice, and no swap is allowed
  $ planc plan inputs/tiny.yaml --placement vmm --chunk 4K --no-swap 2>&1 | tail -n 1
  planc: policy window swaps and has no other choice, and no swap is allowed
  $ planc plan inputs/tiny.yaml --policy chen --no-recompute 2>&1 | tail -n 1
  planc: policy chen recomputes and has no other choice, and no recompute is allowed
