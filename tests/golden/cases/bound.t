What no plan is faster than, and the least memory that any needs.

  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 700K --effort 1
  lenet-digits: batch 64 in 1 round of 64, budget 700.00 KiB
    at least  0.333 ms an iteration, ideal 0.319 ms (+4.7 %)
    a GiB     more lowers that by at most 509.209 ms
    memory    at least 655360 bytes (640.00 KiB), which op pool1.grad takes
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 700K --effort 1 --json
  {"planc":"bound/1","graph":"lenet-digits","device":"k40m","batch":64,"rounds":1,"sub_batch":64,"budget_bytes":716800,"bound_ns":333993,"gib_ns":509209509,"ideal_ns":319056,"least_budget":655360,"binds":"pool1.grad","effort":1,"values":160}
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)

In rounds each of them needs less.

  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --sub-batch 16 --budget 250K --effort 1
  lenet-digits: batch 64 in 4 rounds of 16, budget 250.00 KiB
    at least  0.867 ms an iteration, ideal 0.865 ms (+0.3 %)
    a GiB     more lowers that by at most 30.376 ms
    memory    at least 163840 bytes (160.00 KiB), which op pool1.grad takes
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 250K
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: no plan in rounds of 64 needs less than 655360 bytes of device memory, which op pool1.grad takes; the budget is 256000
  [1]

No plan is faster than its bound. Where everything has room there is little that a bound could tell.

  $ planc plan graphs/lenet-digits.yaml --device k40m --batch 64 --sub-batch 64 --policy best --budget 700K --json -o x.plan | sed 's/.*"iteration_ns":\([0-9]*\).*/\1/'
  774302
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 1G --effort 1
  lenet-digits: batch 64 in 1 round of 64, budget 1.00 GiB
    at least  0.319 ms an iteration, ideal 0.319 ms (+0.0 %)
    a GiB     more lowers that by at most 0.000 ms
    memory    at least 655360 bytes (640.00 KiB), which op pool1.grad takes
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)

  $ planc bound graphs/lenet-digits.yaml --effort 4
  ! planc: --effort 4: not an integer from 0 to 3
  [2]
  $ planc bound graphs/resnet50.yaml --sub-batch 8 --batch 32
  ! planc: note: graphs/resnet50.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: graph resnet50 has ops that couple the samples of a batch (batch normalisation): running it in sub-batches changes its results; --split-batch-norm allows it
  [2]
