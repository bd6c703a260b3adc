What a plan takes is predicted from the plan alone.

  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M -o tiny.plan >/dev/null 2>&1
  ~ planc simulate tiny.plan
  tiny, vdnn-all on k40m, batch <N> in <N> round
  iteration <N> ms   ideal <N> ms
    compute <N> ms   of it recompute <N> ms
    slowed <N> ms   by copies beside it
    waits h2d <N> ms <size> moved, too late for <N> ops
    waits d2h <N> ms <size> moved
    waits launch <N> ms
  first iteration <N> ms, prologue <N> ms, epilogue <N> ms
  throughput <N>   samples/s, overhead +<N>%, <size> moved

Of two jobs that run at their own pace and disturb each other little, one may fall behind for very long. What is told is then a mean.

  $ planc colocate inputs/tiny.yaml:8:1 inputs/tiny.yaml:8:1 --device k40m --launch 1ns --policy tensile -o even.plan >/dev/null 2>&1
  > awk '/"exec"/ { sub(/"t":[0-9]*/, "&00"); if (++n == 4) sub(/:317000/, ":337000") } 1' even.plan >uneven.plan
  > for plan in even uneven; do planc simulate $plan.plan | grep mean; planc simulate $plan.plan --json | grep -o '"averaged":[^,]*'; done
  "averaged":null
    mean of                  30   periods, none of which repeats
  "averaged":30

Against the same without scheduling, which `none` plans when it has the room.

  $ planc plan inputs/tiny.yaml --policy none --budget 1G -o none.plan >/dev/null 2>&1
  > planc plan inputs/tiny.yaml --policy naive --budget 1M -o naive.plan >/dev/null 2>&1
  > planc simulate none.plan --vanilla none.plan | tail -n 1
  against none.plan: MSR 0.0000, EOR 1.0000 (excess +0.0%), CBR 0.0000
  ~ planc simulate naive.plan --vanilla none.plan | tail -n 2
  throughput <N>   samples/s, overhead +<N>%, <size> moved
  against none.plan: MSR <N>, EOR <N> (excess +<N>%), CBR <N>
  $ planc simulate naive.plan --vanilla none.plan --json | tr ',' '\n' | grep 'peak\|vanilla_bytes\|msr'
  "peak_bytes":16384
  "live_peak_bytes":16384
  "msr_ppm":360000
  "vanilla_bytes":25600
  $ planc simulate naive.plan --json | tr ',' '\n' | grep 'vanilla\|msr\|eor\|cbr'
  "msr_ppm":null
  "eor_ppm":null
  "eor_excess_ppm":null
  "cbr_ppm":null
  "vanilla_ns":null
  "vanilla_bytes":null
  $ planc simulate none.plan --graph-replay --vanilla none.plan | tail -n 1
  against none.plan: MSR 0.0000, EOR 1.0000 (excess +0.0%), CBR 0.0000

Hosts that do otherwise than the executor's.

  $ planc simulate none.plan --track 1ms --json | grep -o '"period_ns":[0-9]*'
  "period_ns":7045000
  $ planc simulate none.plan --track 1ms --track-every 1G --json | grep -o '"period_ns":[0-9]*'
  "period_ns":45000
  $ planc simulate none.plan --one-dispatcher --in-flight 1 --json | grep -o '"period_ns":[0-9]*'
  "period_ns":70848

Sequential scheduling: each launch begins when the op before it has ended.

  $ planc simulate none.plan --in-flight 1 --json | grep -o '"period_ns":[0-9]*'
  "period_ns":70848

Memory without a plan, given back once its last op is launched, or has ended.

  $ planc simulate none.plan --free-at schedule | grep freed
  freed at schedule: 25.00 KiB live after 0.025 ms of 0.048 ms, mean 12.87 KiB, backward from 0.035 ms
  $ planc simulate none.plan --free-at completion | grep freed
  freed at completion: 30.00 KiB live after 0.035 ms of 0.048 ms, mean 16.55 KiB, backward from 0.035 ms
  $ planc simulate none.plan --free-at completion --json | tr ',' '\n' | grep -A 6 footprint
  "footprint":{"free_at":"completion"
  "peak_bytes":30724
  "peak_ns":35000
  "mean_bytes":16949
  "period_ns":48022
  "backward_ns":35001
  "most_bytes":[5120
  $ planc simulate none.plan --free-at launch
  ! planc: --free-at launch: not schedule or completion
  [2]
  $ planc simulate none.plan --free-at schedule --graph-replay
  ! planc: --graph-replay and --free-at exclude each other
  [2]
  $ planc simulate none.plan --free-at schedule --map-in-step 5
  ! planc: --map-in-step and --free-at exclude each other
  [2]
  $ planc simulate --passive inputs/tiny.yaml --free-at schedule
  ! planc: --passive and --free-at exclude each other
  [2]

What tracking goes with.

  $ planc simulate none.plan --track-every 1G
  ! planc: --track-every goes with --track
  [2]
  $ planc simulate none.plan --track 5ns --graph-replay
  ! planc: --graph-replay and --track exclude each other
  [2]
  $ planc simulate none.plan --track 1000
  ! planc: --track 1000: 1000 is not a time (examples: 50ms, 1.5s, 200us)
  [2]
  $ planc simulate none.plan --track 2s
  ! planc: --track 2s: more than 1s
  [2]
  $ planc simulate none.plan --in-flight 0
  ! planc: --in-flight 0: not an integer from 1 to 2147483647
  [2]

It has to be the same: graph, batch, device; and without scheduling.

  $ planc simulate naive.plan --vanilla naive.plan
  ! planc: naive.plan is no plan of policy none
  [4]
  $ plan() { planc plan "$1" --policy none --budget 1G --device "$2" --batch "$3" -o other.plan >/dev/null 2>&1; }
  > for other in "graphs/lenet-digits.yaml k40m 4" "inputs/tiny.yaml p100 4" "inputs/tiny.yaml k40m 5"; do
  >   plan $other; planc simulate naive.plan --vanilla other.plan; echo $?
  > done
  4
  4
  4
  ! planc: other.plan has another graph
  ! planc: other.plan is for another device
  ! planc: other.plan has another batch
  $ planc simulate naive.plan --vanilla nowhere.plan
  ! planc: nowhere.plan: No such file or directory
  [3]
  $ planc simulate naive.plan --vanilla inputs/tiny.yaml
  ! planc: inputs/tiny.yaml:1:1: no plan: it does not begin with {"planc-plan": (planc plan makes one of a graph)
  [3]

A plan that does not pass its check has no times that mean anything.

  $ sed 's/"b":3,"m":0,"at":9216/"b":3,"m":0,"at":5120/' tiny.plan > wrong.plan; planc check wrong.plan; planc simulate wrong.plan; planc simulate tiny.plan --vanilla wrong.plan
  ! planc: wrong.plan: line 51: acquire b: overlaps a in residency 2, which is open at 5120
  ! planc: wrong.plan: line 51: acquire b: overlaps a in residency 2, which is open at 5120
  ! planc: wrong.plan: line 51: acquire b: overlaps a in residency 2, which is open at 5120
  [1]
  $ sed 's/"budget":1048576/"budget":4096/' tiny.plan > small.plan; planc check small.plan; planc simulate small.plan
  ! planc: small.plan: needs 21504 bytes on the device (arena 21504, reserved 0), the budget is 4096, 17408 too few
  ! planc: small.plan: needs 21504 bytes on the device (arena 21504, reserved 0), the budget is 4096, 17408 too few
  [1]
