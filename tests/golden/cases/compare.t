One row per policy, also where it does not fit; making the table is a success.

  ~ planc compare inputs/tiny.yaml --budget 24K --policies ideal,none,vdnn-all,modnn
  tiny, batch <N> on k40m, budget <size>
  policy       least budget  round        iteration overhead         peak          out           in  means
  ideal                   - <N> <N> ms  +<N>% <size> <size> <size>  everything stays
  none <size>   does not fit
  vdnn-all <size> <N> <N> ms  +<N>% <size> <size> <size>  swaps
  modnn <size> <N> <N> ms  +<N>% <size> <size> <size>  swaps <- fastest
  why modnn: the fastest of rounds of <N> in <N> ms, <N> without offloading in <N> ms
  against no scheduling, which takes <N> ms and <size>
  policy            samples/s        moved      MSR      EOR   excess      CBR
  ideal <N> <size> <N> <N>    +<N>% <N>
  vdnn-all <N> <size> <N> <N>   +<N>% <N>
  modnn <N> <size> <N> <N>   +<N>% <N>
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  $ planc compare inputs/tiny.yaml --budget 1K --policies none,modnn
  tiny, batch 4 on k40m, budget 1.00 KiB
  policy       least budget  round        iteration overhead         peak          out           in  means
  none            25.00 KiB   does not fit
  modnn            6.00 KiB   does not fit
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  $ planc compare inputs/tiny.yaml 2>/dev/null | sed -n '2,/^$/p' | cut -d ' ' -f 1
  policy
  ideal
  none
  vdnn-all
  vdnn-conv
  vdnn-dyn
  vdnn+
  modnn
  naive
  prefetch-1
  lms
  capuchin
  tensile
  superneurons
  chen
  cheap
  window
  priced

Rows come in the order asked for.

  $ planc compare inputs/tiny.yaml --policies modnn,none 2>/dev/null | sed -n '2,/^$/p' | cut -d ' ' -f 1
  policy
  modnn
  none

A policy that cannot plan a graph says why in its row, and the others have theirs. When none can, that is an error.

  ~ planc compare inputs/vast.yaml --policies none,vdnn-all,chen
  vast, batch <N> on k40m, budget <size>
  policy       least budget  round        iteration overhead         peak          out           in  means
  none <size>   does not fit
  vdnn-all                -   unsupported: simulation: a time of <N> ns is too long to simulate
  chen <size>   does not fit
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device k40m)
  ~ planc compare inputs/vast.yaml --policies none,vdnn-all --json
  {"planc":"compare/1","graph":"vast","device":"k40m","batch":<N>,"gpus":<N>,"shared_link":false,"budget_bytes":<N>,"vanilla_ns":<N>,"vanilla_bytes":<N>,"best":null,"rows":[{"policy":"none","feasible":false,"unsupported":null,"least_budget":<N>,"is_least":true,"means":null,"sub_batch":null,"iteration_ns":null,"ideal_ns":null,"peak_bytes":null,"host_peak_bytes":null,"storage_peak_bytes":null,"storage_moved_bytes":null,"d2h_bytes":null,"h2d_bytes":null,"recompute_ns":null,"stall_ns":null,"overhead_ppm":null,"samples_per_s":null,"moved_bytes":null,"msr_ppm":null,"eor_ppm":null,"eor_excess_ppm":null,"cbr_ppm":null},{"policy":"vdnn-all","feasible":false,"unsupported":"simulation: a time of <N> ns is too long to simulate","least_budget":null,"is_least":false,"means":null,"sub_batch":null,"iteration_ns":null,"ideal_ns":null,"peak_bytes":null,"host_peak_bytes":null,"storage_peak_bytes":null,"storage_moved_bytes":null,"d2h_bytes":null,"h2d_bytes":null,"recompute_ns":null,"stall_ns":null,"overhead_ppm":null,"samples_per_s":null,"moved_bytes":null,"msr_ppm":null,"eor_ppm":null,"eor_excess_ppm":null,"cbr_ppm":null}]}
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device k40m)
  ~ planc compare inputs/vast.yaml --policies vdnn-all
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device k40m)
  ! planc: vdnn-all: simulation: a time of <N> ns is too long to simulate
  [3]
  $ planc compare graphs/resnet34.yaml --batch 8 --sub-batch 4 --device k40m --policies none,modnn
  ! planc: note: graphs/resnet34.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: none: graph resnet34 has ops that couple the samples of a batch (batch normalisation): running it in sub-batches changes its results; --split-batch-norm allows it
  [2]

Each policy has one row.

  $ planc compare inputs/tiny.yaml --policies none,modnn,none
  ! planc: --policies names none twice
  [2]
  $ planc compare inputs/tiny.yaml --policies ideal,best,none,vdnn-all,vdnn-conv,vdnn-dyn,vdnn+,modnn,naive,prefetch-1,lms,capuchin,tensile,superneurons,chen,cheap,window,best
  ! planc: --policies names best twice
  [2]

Policies that choose rounds leave a batch whole that cannot be split, and say so when the user wants it otherwise.

  ~ planc compare inputs/whole.yaml --policies none,vdnn+,modnn
  whole, batch <N> on k40m, budget <size>
  policy       least budget  round        iteration overhead         peak          out           in  means
  none <size> <N> <N> ms  +<N>% <size> <size> <size>  everything stays <- fastest
  vdnn+ <size> <N> <N> ms  +<N>% <size> <size> <size>  everything stays
  modnn <size> <N> <N> ms  +<N>% <size> <size> <size>  everything stays
  why none: every op has its fastest algorithm
  against no scheduling, which takes <N> ms and <size>
  policy            samples/s        moved      MSR      EOR   excess      CBR
  none <N> <size> <N> <N>    +<N>% <N>
  vdnn+ <N> <size> <N> <N>    +<N>% <N>
  modnn <N> <size> <N> <N>    +<N>% <N>
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device k40m)
  $ planc compare inputs/whole.yaml --policies none,vdnn+,modnn --budget 10K
  whole, batch 4 on k40m, budget 10.00 KiB
  policy       least budget  round        iteration overhead         peak          out           in  means
  none            14.00 KiB   does not fit
  vdnn+           14.00 KiB   does not fit
  modnn           14.00 KiB   does not fit
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  $ planc compare inputs/whole.yaml --policies vdnn+,modnn --sub-batch 2
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: vdnn+: op step runs once for all rounds but touches a, which each round has anew
  [3]
  $ planc plan inputs/tiny.yaml --batch 2000000000 --sub-batch 1 -o x.plan
  ! planc: note: device k40m (the graph's header)
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: note: policy auto (the fall-back)
  ! planc: sub-batches of 1 make 2000000000 rounds of 7 ops, which are more than 16777216 op instances
  [2]

Where the optimizer overwrites a parameter unread, that stays for what runs again with it.

  ~ planc compare inputs/overwrite.yaml --policies none,superneurons,chen,cheap 2>/dev/null
  overwrite, batch <N> on k40m, budget <size>
  policy       least budget  round        iteration overhead         peak          out           in  means
  none <size> <N> <N> ms  +<N>% <size> <size> <size>  everything stays <- fastest
  superneurons <size> <N> <N> ms  +<N>% <size> <size> <size>  everything stays
  chen <size> <N> <N> ms  +<N>% <size> <size> <size>  everything stays
  cheap <size> <N> <N> ms  +<N>% <size> <size> <size>  recomputes (checkpointing)
  why none: every op has its fastest algorithm
  against no scheduling, which takes <N> ms and <size>
  policy            samples/s        moved      MSR      EOR   excess      CBR
  none <N> <size> <N> <N>    +<N>% <N>
  superneurons <N> <size> <N> <N>    +<N>% <N>
  chen <N> <size> <N> <N>    +<N>% <N>
  cheap <N> <size>  -0.4000 <N>   +<N>%  -0.2857

The search of the largest batch: none needs 1 KiB and 6 KiB a sample, naive 4 KiB a sample; in rounds any batch will do.

  $ planc compare inputs/tiny.yaml --budget 24K --policies none,naive,modnn --max-batch --json 2>/dev/null |
  > grep -o '"policy":"[^"]*"\|"max_batch":[^}]*}'
  "policy":"none"
  "max_batch":{"batch":3,"unbounded":false,"fails_at":null,"tried":7,"iteration_ns":45000}
  "policy":"naive"
  "max_batch":{"batch":6,"unbounded":false,"fails_at":null,"tried":12,"iteration_ns":184701}
  "policy":"modnn"
  "max_batch":{"batch":null,"unbounded":true,"fails_at":null,"tried":6,"iteration_ns":null}
  $ planc compare inputs/tiny.yaml --budget 24K --policies none,naive,modnn --max-batch 2>/dev/null | sed -n '2,/^$/p' | cut -c -52
  policy       least budget max batch    its iteration
  none            25.00 KiB         3         0.045 ms
  naive           16.00 KiB         6         0.184 ms
  modnn            6.00 KiB       any                -
  $ planc compare inputs/tiny.yaml --budget 1M --policies none,naive --max-batch 2>/dev/null | sed -n '2,/^$/p' | cut -c -52
  policy       least budget max batch    its iteration
  none            25.00 KiB       170         0.075 ms
  naive           16.00 KiB       256         0.647 ms
  $ planc compare inputs/tiny.yaml --budget 6K --policies none --max-batch 2>/dev/null
  tiny, batch 4 on k40m, budget 6.00 KiB
  policy       least budget max batch    its iteration  round        iteration overhead         peak          out           in  means
  none            25.00 KiB         0                -   does not fit
  $ planc compare inputs/vast.yaml --policies none,vdnn-all --max-batch 2>/dev/null | cut -c -64
  vast, batch 1 on k40m, budget 12.00 GiB
  policy       least budget max batch    its iteration  round
  none           256.00 TiB         0                -   does not
  vdnn-all                -         -                -   unsupport

Nor is there a smaller one than the rounds that are asked for, as for plan.

  $ planc compare inputs/tiny.yaml --budget 24K --sub-batch 4 --policies none,naive --max-batch 2>/dev/null | sed -n '2,/^$/p' | cut -c -52
  policy       least budget max batch    its iteration
  none            25.00 KiB         0                -
  naive           16.00 KiB       any                -
  $ planc plan inputs/tiny.yaml --budget 24K --batch 3 --sub-batch 4 --policy none -o x.plan
  ! planc: note: device k40m (the graph's header)
  ! planc: --sub-batch 4: not an integer from 1 to 3, the batch
  [2]

What that batch takes is what a plan of it does.

  $ for batch in 3 6; do
  >   planc compare inputs/tiny.yaml --budget 24K --batch $batch --policies none,naive --json 2>/dev/null | tr ',' '\n' | grep '^"iteration_ns":[0-9]'
  > done
  "iteration_ns":45000
  "iteration_ns":179142
  "iteration_ns":184701

What was not scheduled saves nothing and costs nothing; a policy's measures compare with that.

  $ planc compare inputs/tiny.yaml --budget 25K --policies none,naive --json 2>/dev/null | tr ',' '\n' |
  > grep 'vanilla_bytes\|"policy\|moved\|msr\|eor_ppm.*00000$'
  "vanilla_bytes":25600
  "rows":[{"policy":"none"
  "storage_moved_bytes":0
  "moved_bytes":4100
  "msr_ppm":0
  "eor_ppm":1000000
  {"policy":"naive"
  "storage_moved_bytes":0
  "moved_bytes":73732
  "msr_ppm":360000

A policy need not meet every larger budget: what it meets is no less than the least that is told.

  $ planc train graphs/tiny-transformer.yaml -o tt.yaml 2>/dev/null
  tt.yaml: tiny-transformer, 162 ops
  $ planc compare tt.yaml --batch 32 --device k40m --budget 700K --host-budget 0 --no-swap --policies capuchin --json | grep -o '"feasible":true\|"least_budget":[0-9]*,"is_least":[a-z]*'
  "feasible":true
  "least_budget":716800,"is_least":false

An option that none of the policies has a use for, and others that would have no effect.

  $ planc compare inputs/tiny.yaml --policies none,vdnn-all --swap-rate 50
  ! planc: none of the policies has a use for --swap-rate
  [2]
  $ planc compare inputs/tiny.yaml --policies modnn --window 1K
  ! planc: policy modnn has no use for --window
  [2]
  $ planc compare inputs/tiny.yaml --policies modnn,window --window 1K --budget 1G 2>/dev/null | grep -c '^window'
  2
  $ planc plan inputs/tiny.yaml --shared-link -o x.plan
  ! planc: --shared-link is for several --gpus
  [2]
  $ planc plan inputs/tiny.yaml --inference -o x.plan
  ! planc: inputs/tiny.yaml has backward ops already, inference is for graphs without
  [2]
  $ planc predict --fit x.json --graphs inputs/tiny.yaml --name 'my gpu' -o model.json
  ! planc: --name: must be printable ASCII without spaces, quotes and backslashes
  [2]

The host's time to launch an op is the profile's, or what is asked for; it is in the plan. Where it is longer than the
ops, the iteration is the launches'.

  $ planc plan inputs/tiny.yaml --device k40m --policy none --launch 1ms -o slow.plan
  slow.plan: none, batch 4 in 1 round of 4
    peak      25.00 KiB of 12.00 GiB, host 0 B
    iteration 9.000 ms, ideal 0.021 ms (+41725.4 %)
    bound     7.000 ms, than which no plan in this order and such rounds is faster (+28.6 %)
    moved     4 B out, 4.00 KiB in; recomputed 0.000 ms
    why       every op has its fastest algorithm
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: budget 12.00 GiB (device k40m)
  $ grep -o '"launch":[0-9]*' slow.plan
  "launch":1000000
  $ planc plan inputs/tiny.yaml --device k40m --launch 2s -o x.plan
  ! planc: --launch 2s: launching an op takes from 0ns to 1000ms
  [2]
  $ planc plan inputs/tiny.yaml --device k40m --launch fast -o x.plan
  ! planc: --launch fast: fast is not a time (examples: 50ms, 1.5s, 200us)
  [2]
  $ planc simulate slow.plan --launch 1ms
  ! planc: --launch: a plan has its own; only --passive takes it
  [2]
  $ planc colocate inputs/tiny.yaml:4:1 inputs/tiny.yaml:4:1 --device k40m --launch 1ms -o slow.plan
  slow.plan: temporal, 2 jobs
    peak      26.00 KiB of 12.00 GiB, host 0 B
    period    9.000 ms, ideal one after the other 0.043 ms (+20812.7 %)
    moved     8 B out, 8.00 KiB in; recomputed 0.000 ms
    job 0: tiny, batch 4 in 1 round of 4, 1 iteration
      ideal 0.021 ms, computes 0.021 ms, waits 8.978 ms
      moved 4 B out, 4.00 KiB in; recomputed 0.000 ms
    job 1: tiny, batch 4 in 1 round of 4, 1 iteration
      ideal 0.021 ms, computes 0.021 ms, waits 8.978 ms
      moved 4 B out, 4.00 KiB in; recomputed 0.000 ms
    job 0 runs at 100.0 % of what it does alone, 9.000 ms an iteration by none
    job 1 runs at 100.0 % of what it does alone, 9.000 ms an iteration by none
    together  2.000 times the throughput of one job alone
  ! planc: note: policy temporal (the fall-back)
  ! planc: note: budget 12.00 GiB (device k40m)
  $ grep -o '"launch":[0-9]*' slow.plan
  "launch":1000000

Least budgets take most of the time, and can be left out.

  $ planc compare inputs/tiny.yaml --device k40m --policies none,modnn --no-least --json 2>/dev/null | grep -o '"policy":"[a-z]*","feasible":[a-z]*\|"least_budget":[^,]*'
  "policy":"none","feasible":true
  "least_budget":null
  "policy":"modnn","feasible":true
  "least_budget":null
  $ planc compare --colocate inputs/tiny.yaml inputs/tiny.yaml --device k40m --policies temporal,zico --no-least --json 2>/dev/null | grep -o '"least_budget":[^,]*'
  "least_budget":null
  "least_budget":null
