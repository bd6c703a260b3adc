What no plan is faster than, and the least memory that any needs.

  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 700K --effort 1
  lenet-digits: batch 64 in 1 round of 64, budget 700.00 KiB
    at least  0.333 ms an iteration, ideal 0.319 ms (+4.7 %)
    a GiB     more, and none is faster than 0.319 ms
    memory    at least 655360 bytes (640.00 KiB), which op pool1.grad takes
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 700K --effort 1 --json
  {"planc":"bound/1","graph":"lenet-digits","device":"k40m","batch":64,"rounds":1,"sub_batch":64,"budget_bytes":716800,"bound_ns":333993,"gib_ns":509209509,"ideal_ns":319056,"least_budget":655360,"binds":"pool1.grad","effort":1,"values":160}
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)

In rounds each of them needs less.

  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --sub-batch 16 --budget 250K --effort 1
  lenet-digits: batch 64 in 4 rounds of 16, budget 250.00 KiB
    at least  0.867 ms an iteration, ideal 0.865 ms (+0.3 %)
    a GiB     more, and none is faster than 0.865 ms
    memory    at least 163840 bytes (160.00 KiB), which op pool1.grad takes
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 250K
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: smaller rounds may need less: --sub-batch states how many samples are in one
  ! planc: no plan in rounds of 64 needs less than 655360 bytes of device memory, which op pool1.grad takes; the budget is 256000
  [1]

No plan is faster than its bound. Where everything has room there is little that a bound could tell.

  $ planc plan graphs/lenet-digits.yaml --device k40m --batch 64 --sub-batch 64 --policy best --budget 700K --json -o x.plan | sed 's/.*"iteration_ns":\([0-9]*\).*/\1/'
  774302
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 1G --effort 1
  lenet-digits: batch 64 in 1 round of 64, budget 1.00 GiB
    at least  0.319 ms an iteration, ideal 0.319 ms (+0.0 %)
    a GiB     more, and none is faster than 0.319 ms
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

What is reserved is no plan's, and is said where something has no room.

  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 700K --effort 1 --reserved 20K
  lenet-digits: batch 64 in 1 round of 64, budget 700.00 KiB
    at least  0.344 ms an iteration, ideal 0.319 ms (+7.8 %)
    a GiB     more, and none is faster than 0.319 ms
    memory    at least 675840 bytes (660.00 KiB), which op pool1.grad takes beside 20.00 KiB that are reserved
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --budget 700K --reserved 200K
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: 200.00 KiB are reserved on device k40m beside any plan; --reserved states another size
  ! planc: note: smaller rounds may need less: --sub-batch states how many samples are in one
  ! planc: no plan in rounds of 64 needs less than 860160 bytes of device memory, which op pool1.grad takes; the budget is 716800
  [1]
  $ planc bound graphs/lenet-digits.yaml --device k40m --batch 64 --reserved 1T
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: --reserved 1T: device k40m has 12884901888 bytes
  [2]
  $ planc compare graphs/lenet-digits.yaml --device k40m --batch 64 --budgets 100K,300K,1M --reserved 200K --policies none
  lenet-digits, batch 64 on k40m
  policy            100.00 KiB      300.00 KiB        1.00 MiB
  none                      -               -        0.588 ms*
    100.00 KiB  no policy of these fits, less than the 200.00 KiB reserved
    300.00 KiB  no policy of these fits, 200.00 KiB of it are reserved
      1.00 MiB  none 0.588 ms, +84.6 %; no plan in this order and such rounds is faster than 0.322 ms (+82.9 %)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc compare graphs/lenet-digits.yaml --device k40m --batch 64 --budget 300K --reserved 200K --policies none --no-least
  lenet-digits, batch 64 on k40m, budget 300.00 KiB
  policy       least budget  round        iteration overhead         peak          out           in  means
  none                    -   does not fit
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: 200.00 KiB are reserved on device k40m beside any plan; --reserved states another size
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/lenet-digits.yaml:64 --device k40m --budget 2M --reserved 200K -o mix.plan > mix.txt
  ! planc: note: policy temporal (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:64:inference it is planned as it is)
  $ grep -o '"reserved":[0-9]*' mix.plan | head -1
  "reserved":204800
