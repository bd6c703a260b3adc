What each policy takes within several budgets.

  $ planc compare graphs/lenet-digits.yaml --device k40m --batch 64 --budgets 800K,1M,500K --policies none,modnn,lms,ideal,auto
  lenet-digits, batch 64 on k40m
  policy            500.00 KiB      800.00 KiB        1.00 MiB
  none                      -        0.588 ms        0.555 ms
  modnn              0.892 ms        0.513 ms        0.513 ms
  lms                       -        0.984 ms        0.555 ms
  ideal              0.323 ms        0.323 ms        0.323 ms
  auto               0.553 ms*       0.364 ms*       0.336 ms*
    500.00 KiB  auto 0.553 ms, +73.5 %; no plan in this order and such rounds is faster than 0.500 ms (+10.6 %)
    800.00 KiB  auto 0.364 ms, +14.4 %; no plan in this order and such rounds is faster than 0.323 ms (+13.0 %)
      1.00 MiB  auto 0.336 ms, +5.3 %; no plan in this order and such rounds is faster than 0.320 ms (+5.0 %)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc compare graphs/lenet-digits.yaml --device k40m --batch 64 --budgets 100K --policies none,modnn
  lenet-digits, batch 64 on k40m
  policy            100.00 KiB
  none                      -
  modnn              9.960 ms*
    100.00 KiB  modnn 9.960 ms, +3021.7 %; no plan in this order and such rounds is faster than 9.730 ms (+2.4 %)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc compare graphs/lenet-digits.yaml --device k40m --batch 64 --budgets 500K,1M --policies none,modnn --json
  {"planc":"compare-budgets/1","graph":"lenet-digits","device":"k40m","batch":64,"gpus":1,"budgets":[{"budget_bytes":512000,"best":"modnn","planned_for_bytes":512000,"rows":[{"policy":"none","feasible":false,"unsupported":null,"iteration_ns":null,"ideal_ns":null,"bound_ns":null,"peak_bytes":null},{"policy":"modnn","feasible":true,"unsupported":null,"iteration_ns":892204,"ideal_ns":319056,"bound_ns":865227,"peak_bytes":509952}]},{"budget_bytes":1048576,"best":"modnn","planned_for_bytes":1048576,"rows":[{"policy":"none","feasible":true,"unsupported":null,"iteration_ns":555210,"ideal_ns":319056,"bound_ns":320046,"peak_bytes":1030144},{"policy":"modnn","feasible":true,"unsupported":null,"iteration_ns":513670,"ideal_ns":319056,"bound_ns":499035,"peak_bytes":782336}]}]}
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  $ planc compare graphs/resnet34.yaml --device k40m --batch 8 --budgets 1G,2G --policies modnn,lms --sub-batch 4 2>/dev/null
  [2]

  $ planc compare graphs/lenet-digits.yaml --budgets 1M,1024K
  ! planc: --budgets: 1048576 bytes are there twice
  [2]
  $ planc compare graphs/lenet-digits.yaml --budgets 1M,x
  ! planc: --budgets: x is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  [2]
  $ planc compare graphs/lenet-digits.yaml --budgets 1M --budget 2M
  ! planc: --budgets and --budget exclude each other
  [2]
  $ planc compare graphs/lenet-digits.yaml --budgets 1M --max-batch
  ! planc: --budgets and --max-batch exclude each other
  [2]
  $ planc compare --colocate graphs/lenet-digits.yaml graphs/lenet-digits.yaml --budgets 1M
  ! planc: --colocate and --budgets exclude each other
  [2]

A plan for less memory fits more, and is told where it is the faster one.

  $ planc compare graphs/lenet-digits.yaml --device k40m --batch 64 --budgets 720K,760K --policies tensile 2>/dev/null
  lenet-digits, batch 64 on k40m
  policy            720.00 KiB      760.00 KiB
  tensile            0.724 ms*       0.782 ms*
    720.00 KiB  tensile 0.724 ms, +127.1 %; no plan in this order and such rounds is faster than 0.327 ms (+121.5 %)
    760.00 KiB  tensile 0.724 ms, +127.1 %, planned for 720.00 KiB
