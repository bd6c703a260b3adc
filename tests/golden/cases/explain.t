Why a plan takes what it does. The figures of inputs/tiny.yaml can be worked out by hand.

  $ planc plan inputs/tiny.yaml --policy none --budget 1M -o tiny.plan >/dev/null 2>&1
  $ planc explain tiny.plan
  tiny.plan: none, batch 4 in 1 round of 4
    peak      25.00 KiB of 1.00 MiB, host 0 B
    iteration 0.045 ms, ideal 0.021 ms (+109.1 %)
    bound     0.035 ms, than which no plan in this order and such rounds is faster (+28.6 %)
    moved     4 B out, 4.00 KiB in; recomputed 0.000 ms
    beyond ideal: waits for copies in 0.010 ms, waits for copies out 0.010 ms, waits for launches 0.003 ms
    256.00 KiB less: no plan in this order and such rounds is faster than 0.035 ms
    256.00 KiB more: no plan in this order and such rounds is faster than 0.035 ms
  peak: 25.00 KiB live at op last.grad; largest:
        8.00 KiB  b
        8.00 KiB  b.grad
        4.00 KiB  a
        4.00 KiB  x
        1.00 KiB  w
  3 gaps between two uses of data: 3 kept (9.00 KiB), 0 copied (0 B), 0 again (0 B); most bytes times time:
        4.00 KiB  x, 0.022 ms from first to first.grad
                  kept: copies would take 0.010 ms; it leaves 999.00 KiB free at op last.grad
        4.00 KiB  a, 0.016 ms from second to second.grad
                  kept: copies would take 0.020 ms, again 0.003 ms; it leaves 999.00 KiB free at op last.grad
        1.00 KiB  w, 0.026 ms from first to step
                  kept: copies would take 0.020 ms; it leaves 999.00 KiB free at op last.grad
  $ planc explain tiny.plan --top 1 --json
  {"planc":"explain/1","plan":"tiny","policy":"none","period_ns":45000,"ideal_ns":21518,"bound_ns":35000,"beyond_ideal":{"wait_in_ns":10408,"wait_out_ns":10001,"wait_store_ns":0,"wait_load_ns":0,"wait_launch_ns":3073,"recompute_ns":0,"moves_ns":0,"slowdown_ns":0,"slower_ns":0},"less":{"budget_bytes":786432,"fits":true,"bound_ns":35000,"least_budget":16384,"binds":"last.grad"},"more":{"budget_bytes":1310720,"fits":true,"bound_ns":35000,"least_budget":16384,"binds":"last.grad"},"peak":{"live_bytes":25600,"op":"last.grad","live":[{"storage":"b","bytes":8192},{"storage":"b.grad","bytes":8192},{"storage":"a","bytes":4096},{"storage":"x","bytes":4096},{"storage":"w","bytes":1024}]},"kept":{"gaps":3,"bytes":9216},"copied":{"gaps":0,"bytes":0},"again":{"gaps":0,"bytes":0},"gaps":[{"storage":"x","job":0,"iteration":0,"round":0,"bytes":4096,"from":"first","to":"first.grad","way":"kept","between_ns":22755,"away_ns":0,"copies_ns":10408,"again_ns":null,"waited_ns":0,"free_bytes":1022976,"free_op":"last.grad"}]}

What left the device would have found no room.

  $ planc plan graphs/lenet-digits.yaml --device k40m --batch 64 --sub-batch 64 --policy lms --budget 800K -o x.plan >/dev/null 2>&1
  $ planc explain x.plan -n 4
  x.plan: lms, batch 64 in 1 round of 64
    peak      755.75 KiB of 800.00 KiB, host 488.00 KiB
    iteration 0.984 ms, ideal 0.319 ms (+208.6 %)
    bound     0.323 ms, than which no plan in this order and such rounds is faster (+204.7 %)
    moved     490.50 KiB out, 992.50 KiB in; recomputed 0.000 ms
    beyond ideal: waits for copies in 0.168 ms, waits for copies out 0.110 ms, slowed by copies beside ops 0.001 ms, slower algorithms, smaller rounds 0.385 ms
    200.00 KiB less: no plan in this order and such rounds fits, op pool1.grad takes 640.00 KiB
    200.00 KiB more: no plan in this order and such rounds is faster than 0.320 ms
  peak: 728.70 KiB live at op pool1.grad; largest:
      256.00 KiB  conv1.y
      256.00 KiB  d.conv1.y
       64.00 KiB  d.pool1.y
       64.00 KiB  pool1.y
       18.00 KiB  conv2.w
       18.00 KiB  conv2.w.grad
       16.00 KiB  fc1.w
       16.00 KiB  fc1.w.grad
       20.70 KiB  11 more
  35 gaps between two uses of data: 27 kept (161.18 KiB), 8 copied (592.00 KiB), 0 again (0 B); most bytes times time:
      256.00 KiB  conv1.y, 0.655 ms from pool1 to pool1.grad
                  copied, away 0.603 ms: copies take 0.072 ms, ops waited 0.036 ms; there would be room, 409.42 KiB at op pool2.grad
      128.00 KiB  conv2.y, 0.153 ms from pool2 to pool2.grad
                  copied, away 0.117 ms: copies take 0.046 ms, ops waited 0.004 ms; there would be room, 689.42 KiB at op fc1.dgrad
       64.00 KiB  pool1.y, 0.241 ms from conv2 to conv2.wgrad
                  copied, away 0.224 ms: copies take 0.033 ms, again would 0.008 ms, ops waited 0.012 ms; there would be room, 409.42 KiB at op pool2.grad
       16.00 KiB  images, 0.770 ms from conv1 to conv1.wgrad
                  kept: copies would take 0.011 ms; it leaves 71.30 KiB free at op pool1.grad
  $ planc plan graphs/lenet-digits.yaml --device k40m --batch 64 --sub-batch 64 --policy superneurons --no-swap --budget 760K -o y.plan >/dev/null 2>&1
  $ planc explain y.plan -n 3
  y.plan: superneurons, batch 64 in 1 round of 64
    peak      729.88 KiB of 760.00 KiB, host 0 B
    iteration 0.785 ms, ideal 0.319 ms (+146.1 %)
    bound     0.365 ms, than which no plan in this order and such rounds is faster (+114.7 %)
    moved     2.50 KiB out, 16.50 KiB in; recomputed 0.014 ms
    beyond ideal: waits for copies out 0.003 ms, ops that run again 0.014 ms, slowed by copies beside ops 0.001 ms, slower algorithms, smaller rounds 0.447 ms
    190.00 KiB less: no plan in this order and such rounds fits, op pool1.grad takes 677.16 KiB
    190.00 KiB more: no plan in this order and such rounds is faster than 0.339 ms
  peak: 728.70 KiB live at op pool1.grad; largest:
      256.00 KiB  conv1.y
      256.00 KiB  d.conv1.y
       64.00 KiB  d.pool1.y
       64.00 KiB  pool1.y
       18.00 KiB  conv2.w
       18.00 KiB  conv2.w.grad
       16.00 KiB  fc1.w
       16.00 KiB  fc1.w.grad
       20.70 KiB  11 more
  39 gaps between two uses of data: 37 kept (1.15 MiB), 0 copied (0 B), 2 again (96.00 KiB); most bytes times time:
      256.00 KiB  conv1.y, 0.277 ms from pool1 run again to pool1.grad
                  kept: copies would take 0.072 ms; it leaves 159.30 KiB free at op conv2.dgrad
      256.00 KiB  conv1.y, 0.181 ms from pool1 to pool1 run again
                  kept: copies would take 0.072 ms; it leaves 113.42 KiB free at op pool2.grad
       16.00 KiB  fc1.w.grad, 0.515 ms from fc1.wgrad to fc1.w.sgd
                  kept: copies would take 0.023 ms, again 0.010 ms; it leaves 31.30 KiB free at op pool1.grad

With other costs than the plan's there are no prices; a mix has none either.

  $ planc explain x.plan --device v100-32g
  ! planc: x.plan was not made with v100-32g: its ops or copies take other times there
  [4]
  $ planc explain x.plan --device k40m --profile x.json
  ! planc: --profile and --device exclude each other
  [2]
  $ planc colocate graphs/lenet-digits.yaml:32 graphs/lenet-digits.yaml:64 --device k40m --budget 2M -o mix.plan >/dev/null 2>&1
  $ planc explain mix.plan -n 2
  mix.plan: temporal, 2 jobs
    peak      1.19 MiB of 2.00 MiB, host 0 B
    period    2.078 ms, ideal one after the other 2.004 ms (+3.7 %)
    moved     12.53 KiB out, 82.50 KiB in; recomputed 0.000 ms
    job 0: lenet-digits, batch 32 in 1 round of 32, 4 iterations
      ideal 1.047 ms, computes 1.050 ms, waits 1.027 ms
      moved 5.02 KiB out, 33.00 KiB in; recomputed 0.000 ms
    job 1: lenet-digits, batch 64 in 1 round of 64, 3 iterations
      ideal 0.957 ms, computes 0.961 ms, waits 1.117 ms
      moved 7.51 KiB out, 49.50 KiB in; recomputed 0.000 ms
  peak: 1.19 MiB live at op job 1: conv2.dgrad; largest:
      576.00 KiB  workspace
      256.00 KiB  job 1: conv1.y
      128.00 KiB  job 1: d.conv2.y
       64.00 KiB  job 1: d.pool1.y
       64.00 KiB  job 1: pool1.y
       18.00 KiB  job 0: conv2.w
       18.00 KiB  job 1: conv2.w
       18.00 KiB  job 1: conv2.w.grad
       71.87 KiB  20 more
  245 gaps between two uses of data: 245 kept (3.96 MiB), 0 copied (0 B), 0 again (0 B); most bytes times time:
      256.00 KiB  job 1: conv1.y, iteration 1, 0.188 ms from job 1: pool1 to job 1: pool1.grad
                  kept: copies would take 0.072 ms; it leaves 834.13 KiB free at op job 1: conv2.dgrad
      256.00 KiB  job 1: conv1.y, iteration 2, 0.188 ms from job 1: pool1 to job 1: pool1.grad
                  kept: copies would take 0.072 ms; it leaves 834.13 KiB free at op job 1: conv2.dgrad
  $ planc explain mix.plan --device k40m
  ! planc: mix.plan: a mix, or what runs side by side, has no prices: leave out --device
  [2]
  $ sed 's/"device":"k40m"/"device":"elsewhere"/' x.plan > moved.plan
  $ planc explain moved.plan -n 0 | head -n 3
  moved.plan: lms, batch 64 in 1 round of 64
    peak      755.75 KiB of 800.00 KiB, host 488.00 KiB
    iteration 0.984 ms, ideal 0.319 ms (+208.6 %)
  ! planc: note: no prices: moved.plan was not made with the description of device elsewhere: give --profile or --device

A plan is checked first.

  $ sed '0,/"i":"release"/{/"i":"release"/d}' x.plan > broken.plan
  $ planc explain broken.plan
  ! planc: broken.plan:1:1: the header counts 335 rows, the file has 334 lines
  [3]

Moves on the device are told for themselves: so long as all of them take together.

  $ planc plan graphs/lenet-digits.yaml --policy priced --effort 0 --budget 640K --reserved 0 -o moved.plan 2>/dev/null | grep -o '[0-9]* moves of [0-9.]* KiB'
  2 moves of 82.00 KiB
  $ grep -o '"i":"copy".*"t":[0-9]*' moved.plan | sed 's/.*"t"://' | awk '{ sum += $1 } END { print NR, sum }'
  2 7157
  $ planc explain moved.plan --json | grep -o '"moves_ns":[0-9]*'
  "moves_ns":7157
