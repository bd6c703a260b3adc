A run tells how long everything took. Where that differs by enough from what the plan was made with, there is a new plan.

  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o new.plan --threshold 0.2
  tiny, 3 periods measured
    alone               planned with         measured      from now on
        7x op               0.021 ms         0.027 ms         0.026 ms
        4x copy in          0.042 ms         0.043 ms         0.042 ms
        3x copy out         0.031 ms         0.026 ms         0.027 ms
    the iteration was predicted 0.079 ms, measured 0.078 ms, now predicted 0.077 ms
    changed by 0.250, threshold 0.200
    planned anew
  new.plan: vdnn-all, batch 4 in 1 round of 4
    peak      21.00 KiB of 1.00 MiB, host 12.00 KiB
    iteration 0.077 ms, ideal 0.026 ms (+189.5 %)
    bound     0.035 ms, than which no plan in this order and such rounds is faster (+122.4 %)
    moved     12.00 KiB out, 20.00 KiB in; recomputed 0.000 ms
    why       attempt 1 of 2 is the first that fits: it offloads all inputs and takes the fastest algorithms
  $ planc check new.plan
  valid: tiny, vdnn-all, peak 21.00 KiB of 1.00 MiB, 73 instructions
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o new.plan --threshold 0.2 --json
  {"planc":"update/1","policy":"vdnn-all","periods":3,"weight_ppm":900000,"threshold_ppm":200000,"ops":{"count":7,"old_ns":21518,"measured_ns":27493,"new_ns":26896},"copies_in":{"count":4,"old_ns":42040,"measured_ns":43024,"new_ns":42926},"copies_out":{"count":3,"old_ns":31225,"measured_ns":26632,"new_ns":27092},"stores":{"count":0,"old_ns":0,"measured_ns":0,"new_ns":0},"loads":{"count":0,"old_ns":0,"measured_ns":0,"new_ns":0},"period":{"old_ns":79393,"measured_ns":78151,"new_ns":77856},"change_ppm":249930,"updated":true,"decisions":"new","other_algorithms":0}

Otherwise nothing is written, and the exit code says so.

  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o other.plan
  tiny, 3 periods measured
    alone               planned with         measured      from now on
        7x op               0.021 ms         0.027 ms         0.026 ms
        4x copy in          0.042 ms         0.043 ms         0.042 ms
        3x copy out         0.031 ms         0.026 ms         0.027 ms
    the iteration was predicted 0.079 ms, measured 0.078 ms
    changed by 0.250, threshold 0.300
  ! planc: data/timeline/tiny.plan: latencies have not changed by more than the threshold: nothing is written
  [7]
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o other.plan --json 2>/dev/null
  {"planc":"update/1","policy":"vdnn-all","periods":3,"weight_ppm":900000,"threshold_ppm":300000,"ops":{"count":7,"old_ns":21518,"measured_ns":27493,"new_ns":26896},"copies_in":{"count":4,"old_ns":42040,"measured_ns":43024,"new_ns":42926},"copies_out":{"count":3,"old_ns":31225,"measured_ns":26632,"new_ns":27092},"stores":{"count":0,"old_ns":0,"measured_ns":0,"new_ns":0},"loads":{"count":0,"old_ns":0,"measured_ns":0,"new_ns":0},"period":{"old_ns":79393,"measured_ns":78151,"new_ns":null},"change_ppm":249930,"updated":false,"decisions":null,"other_algorithms":null}
  [7]
  $ ls
  data
  graphs
  inputs
  new.plan

The weight is that of what was measured: with 0 nothing changes.

  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o other.plan --weight 0 --threshold 0 | tail -1
    changed by 0.000, threshold 0.000
  ! planc: data/timeline/tiny.plan: latencies have not changed by more than the threshold: nothing is written

Another budget or policy is reason enough. What is not given is the plan's.

  ~ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o small.plan --budget 22K
  tiny, <N> periods measured
    alone               planned with         measured      from now on
        7x op <N> ms <N> ms <N> ms
        4x copy in <N> ms <N> ms <N> ms
        3x copy out <N> ms <N> ms <N> ms
    the iteration was predicted <N> ms, measured <N> ms, now predicted <N> ms
    changed by <N>, threshold <N>
    planned anew
  small.plan: vdnn-all, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       attempt <N> of <N> is the first that fits: it offloads all inputs and takes the fastest algorithms
  ~ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o small.plan --policy naive
  tiny, <N> periods measured
    alone               planned with         measured      from now on
        7x op <N> ms <N> ms <N> ms
        4x copy in <N> ms <N> ms <N> ms
        3x copy out <N> ms <N> ms <N> ms
    the iteration was predicted <N> ms, measured <N> ms, now predicted <N> ms
    changed by <N>, threshold <N>
    planned anew
  small.plan: naive, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       all data leaves behind each op that uses it and is back for the next, <N> times; every op has its fastest algorithm
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o small.plan --budget 2K
  ! planc: note: the decisions of the plan at hand need a budget of 21504 bytes (21.00 KiB)
  ! planc: note: rounds stay those of the plan: with --profile or --device, which tell of other batches, and a smaller --sub-batch less may do
  ! planc: note: the least feasible budget of vdnn-all is 21504 bytes (21.00 KiB) in rounds of 4; there:
  ! peak: 21.00 KiB live at op last.grad; largest:
  !       8.00 KiB  b
  !       8.00 KiB  b.grad
  !       4.00 KiB  a
  !       1.00 KiB  w
  ! planc: does not fit 2.00 KiB: policy vdnn-all, in its last attempt, took 21504 bytes of device memory, the budget is 2048: b of 8192 bytes finds no place at op last.grad beside 13312 bytes, the largest b.grad of 8192 and a of 4096
  [1]
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o small.plan --policy ideal
  ! planc: policy ideal is only simulated and has no plan; see planc compare
  [2]

  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o rounds.plan --sub-batch 2 2>&1 | head -n 1
  planc: note: workspaces of rounds of 2 are taken from those of 4: planrun refuses a plan with too little; a --profile has those that were measured
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o both --profile-out both
  ! planc: both is written twice, outputs must be two files
  [2]

The profile that a plan is made with can be had as well, alone or beside it; planc plan makes the same plan with it.

  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json --profile-out p.json --threshold 0.2 >/dev/null
  $ planc plan inputs/tiny.yaml --profile p.json --policy vdnn-all --batch 4 --budget 1M -o again.plan >/dev/null
  $ cmp again.plan new.plan && echo same
  same

Measured times of ops that ran stand beside those that are known of others, in proportion.

  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json --device k40m --profile-out k40m.json --threshold 0.2 | head -2
  tiny, 3 periods measured
    alone               planned with         measured      from now on
  $ grep -o '"op":"second".*' k40m.json
  "op":"second","variants":[{"algorithm":"default","deterministic":true,"points":[{"batch":1,"time_ns":3722,"workspace_bytes":0,"busy_ppm":12575},{"batch":2,"time_ns":3748,"workspace_bytes":0,"busy_ppm":25304},{"batch":4,"time_ns":3800,"workspace_bytes":0,"busy_ppm":50244}]}]},

At new times what a policy would do may be slower, or find no room any more. The old decisions stay then,
unless they are not what is asked for. Here every third copy takes 9 ms.

  $ cat > invent.awk <<'END'
  > /"instr":/ { match($0, /"instr":[0-9]+/); instr = substr($0, RSTART + 8, RLENGTH - 8)
  >   took = /"cat":"exec"/ ? 10 : instr % 3 ? 1 : 9000
  >   sub(/"ts":[0-9.]+,"dur":[0-9.]+/, sprintf("\"ts\":%d,\"dur\":%d", at, took)); at += took }
  > { print }
  > END
  $ planc plan graphs/lenet-digits.yaml --policy modnn --budget 400K -o tight.plan >/dev/null 2>&1
  > planrun exec tight.plan --trace fast.json >/dev/null; awk -f invent.awk fast.json > slow.json
  ! planrun: note: backend host does not have the plan's algorithms gemm, default, implicit-gemm: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ~ planc update tight.plan --trace slow.json -o kept.plan | sed '1,/changed/d'
    decisions kept: planned anew the iteration takes <N> ms
  kept.plan: modnn, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
  $ planc check kept.plan >/dev/null && planrun exec kept.plan --verify | tail -n 1
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms gemm, default, implicit-gemm: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  $ planc update tight.plan --trace slow.json -o kept.plan --json | grep -o '"decisions":"[a-z]*"'
  "decisions":"kept"
  $ planc update tight.plan --trace slow.json -o roomy.plan --budget 2M --json | grep -o '"decisions":"[a-z]*","other_algorithms":[0-9]*'
  "decisions":"new","other_algorithms":2
  ! planc: note: 2 ops run with other algorithms than in the plan at hand: results may differ in the last bits
  $ planc update tight.plan --trace slow.json -o small.plan --sub-batch 8 2>&1 >/dev/null | grep -v workspaces
  planc: note: rounds are others than those of the plan at hand: results may differ in the last bits
  $ planc update tight.plan --trace slow.json -o kept.plan --budget 100K 2>/dev/null
  [1]
  $ planc update tight.plan --trace slow.json -o kept.plan --policy none --budget 300K 2>/dev/null
  [1]

What goes wrong.

  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json
  ! planc: update needs --output or --profile-out
  [2]
  $ planc update data/timeline/tiny.plan -o x.plan
  ! planc: update needs --trace
  [2]
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o x.plan --weight 1.5
  ! planc: --weight takes a fraction from 0 to 1
  [2]
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json -o x.plan --profile p.json --device k40m
  ! planc: --profile and --device exclude each other
  [2]
  $ planc update new.plan --trace data/timeline/tiny.json -o x.plan
  ! planc: data/timeline/tiny.json was measured with another plan of the same graph
  [4]
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.plan -o x.plan
  ! planc: data/timeline/tiny.plan:2: text after the end of the JSON value
  [3]
  $ sed 's/\("wait","e":[0-9]*\),"s"/\1,"lag":1,"s"/' data/timeline/tiny.plan > wrong.plan
  > planc update wrong.plan --trace data/timeline/tiny.json -o x.plan
  ! planc: wrong.plan: line 38: wait event 13: a wait with lag 1 must stand before the record of the same body
  [1]

What a policy was told stays with the plan, and is asked for anew where it is told otherwise.

  $ planc plan inputs/tiny.yaml --policy tensile --swap-rate 60 -o rate.plan >/dev/null 2>&1
  $ planrun exec rate.plan --synthetic --iterations 3 --trace rate.json >/dev/null
  $ planc update rate.plan --trace rate.json -o same.plan --threshold 0 >/dev/null; planc check same.plan >/dev/null && grep -o '"swap_rate":[0-9]*' same.plan
  "swap_rate":600000
  $ planc update rate.plan --trace rate.json -o other.plan --threshold 1000 --swap-rate 100 >/dev/null; planc check other.plan >/dev/null && grep -c swap_rate other.plan
  0
  [1]

That holds for another policy as well, which may be left with nothing to do.

  $ planc plan inputs/tiny.yaml --policy tensile --no-swap -o resident.plan >/dev/null 2>&1
  $ planrun exec resident.plan --synthetic --iterations 3 --trace resident.json >/dev/null
  $ planc update resident.plan --trace resident.json -o other.plan --threshold 0 --policy vdnn-all
  ! planc: resident.plan: policy vdnn-all swaps and has no other choice, and no swap is allowed
  [2]
  $ planc update resident.plan --trace resident.json -o other.plan --threshold 0 --policy modnn >/dev/null; grep -o '"policy":"modnn","no_swap":1' other.plan
  "policy":"modnn","no_swap":1
  $ planc update rate.plan --trace rate.json -o other.plan --threshold 0 --policy modnn >/dev/null; grep -c swap_rate other.plan
  0
  [1]

A plan may state times that add up to more than a plan can state of a period.

  $ sed 's/"t":[0-9]*/"t":9007199254740992/' data/timeline/tiny.plan > ages.plan
  > planrun exec ages.plan --synthetic --iterations 3 --trace ages.json >/dev/null
  > planc update ages.plan --trace ages.json -o other.plan --threshold 0 --weight 0.3
  ! planc: ages.plan: simulation: a time of 9007199254740992 ns is too long to simulate
  [3]
