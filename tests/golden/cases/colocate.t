Two jobs under one budget, as often as fills a period, and what each is beside alone.

  ~ planc colocate graphs/lenet-digits.yaml:64 inputs/tiny.yaml:8:3 --device k40m --budget 1G -o mix.plan
  mix.plan: temporal, <N> jobs
    peak <size> of <size>, host <size>
    period <N> ms, ideal one after the other <N> ms (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    job <N>: lenet-digits, batch <N> in <N> round of <N>, <N> iteration
      ideal <N> ms, computes <N> ms, waits <N> ms
      moved <size> out, <size> in; recomputed <N> ms
    job <N>: tiny, batch <N> in <N> round of <N>, <N> iterations
      ideal <N> ms, computes <N> ms, waits <N> ms
      moved <size> out, <size> in; recomputed <N> ms
    job <N> runs at <N> % of what it does alone, <N> ms an iteration by none
    job <N> runs at <N> % of what it does alone, <N> ms an iteration by none
    together <N> times the throughput of one job alone
  ! planc: note: policy temporal (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:<N>:inference it is planned as it is)
  ~ planc check mix.plan --budget 1G
  valid: lenet-digits+tiny, temporal, <N> jobs (lenet-digits, tiny), peak <size> of <size>, <N> instructions
  $ planc show mix.plan | grep -o '^plan of.*\|job [01]: .*iterations*$'
  plan of lenet-digits+tiny, policy temporal, device k40m
  job 0: lenet-digits, batch 64 in 1 round of 64, 1 iteration
  job 1: tiny, batch 8 in 1 round of 8, 3 iterations
  $ planc colocate graphs/lenet-digits.yaml:64 inputs/tiny.yaml:8:3 --device k40m --budget 1G -o again.plan >/dev/null 2>&1; cmp mix.plan again.plan

Speed is beside the job alone on the whole GPU, however small the budget.

  $ planc colocate graphs/lenet-digits.yaml:64 graphs/lenet-digits.yaml:32 --device k40m --budget 700K -o tight.plan 2>/dev/null | grep 'runs at' | sed 's/[0-9.]* %/<N> %/'
    job 0 runs at <N> % of what it does alone on the whole GPU, 0.323 ms an iteration by none; within the budget 0.512 ms by vdnn+
    job 1 runs at <N> % of what it does alone, 0.263 ms an iteration by none
  $ planc compare --colocate graphs/lenet-digits.yaml:64 graphs/lenet-digits.yaml:32 --device k40m --budget 700K --policies temporal --no-least 2>/dev/null | grep '  job'
    job 0: lenet-digits, batch 64, 1 iteration in a period, alone 0.512 ms each by vdnn+, on the whole GPU 0.323 ms by none
    job 1: lenet-digits, batch 32, 2 iterations in a period, alone 0.263 ms each by none

A job that is there twice is two jobs. One may be for inference.

  $ planc colocate graphs/lenet-digits.yaml:16 graphs/lenet-digits.yaml:16 graphs/lenet-digits.yaml:16:inference --device k40m --policy zico -o three.plan | grep '^  job . runs\|policy\|3 jobs' | sed 's/, .*//; s/[0-9.]* %/<N> %/'
  three.plan: zico
    job 0 runs at <N> % of what it does alone
    job 1 runs at <N> % of what it does alone
    job 2 runs at <N> % of what it does alone
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:16:inference it is planned as it is)
  ! planc: note: budget 12.00 GiB (device k40m)
  $ planrun exec three.plan --iterations 2 --verify | grep -o 'identical.*\|verified.*'
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms gemm, default, winograd: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with

Small jobs have no use for Zico's large regions: smaller ones are tried where these leave no shift, and are thought of where others were asked for.

  $ for region in "" "--region 1M"; do planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budget 2M --policy zico $region -o small.plan 2>/dev/null | grep why | sed 's/: in every.*//'; planrun exec small.plan --iterations 2 --verify 2>/dev/null | grep -o 'verified.*'; done
    why       side by side in regions of 512.00 KiB
  verified: every bit as in the reference
    why       the jobs take turns, for no shift at which they fit side by side was found; regions of another size than 1.00 MiB may do
  verified: every bit as in the reference
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budget 2M --policy zico --region 512K -o small.plan 2>/dev/null | grep -o 'why *side by side'
  why       side by side
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budget 1G --policy zico -o small.plan 2>/dev/null | grep why | sed 's/: in every.*//'
    why       side by side in regions of 64.00 MiB

Node groups side by side take over what the pair before has let go, as the paper has it or as soon as there is room.

  ~ planc colocate graphs/lenet-digits.yaml:64 graphs/lenet-digits.yaml:16:3 --device k40m --budget 1G --policy waterwave -o flow.plan 2>/dev/null | grep 'policy\|waterwave\|why'
  flow.plan: waterwave, <N> jobs
    why       side by side in <N> of <N> pairs of node groups of <size>
  $ planrun exec flow.plan --iterations 2 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference
  ~ planc colocate inputs/tiny.yaml:64 inputs/tiny.yaml:64 --device k40m --policy waterwave --split-groups 4 --split-relaxed --pair-barriers -o flow.plan 2>/dev/null | grep why
    why       side by side in <N> of <N> pairs of node groups of <size>, relaxed
  $ head -1 flow.plan | grep -o '"split.*"pair_barriers":1'
  "split_groups":4,"split_relaxed":1,"pair_barriers":1
  ~ planc colocate inputs/tiny.yaml:64 inputs/tiny.yaml:64 --device k40m --policy waterwave-s -o flow.plan 2>/dev/null | grep why
    why       side by side in <N> of <N> pairs of node groups cut at the fullest
  $ planc check flow.plan | sed 's/, peak.*//'
  valid: tiny+tiny, waterwave-s, 2 jobs (tiny, tiny)

With barriers it may be faster, and then they are there unasked.

  $ for barriers in "" --pair-barriers; do planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --policy waterwave-s $barriers --json -o flow$barriers.plan 2>/dev/null; done | python3 -c 'import json, sys; a, b = map(json.loads, sys.stdin); print(a["period_ns"] <= b["period_ns"], a["explanation"])'
  True side by side in 2 of 6 pairs of node groups cut at the fullest, with barriers between pairs
  $ planrun exec flow.plan --iterations 2 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference

Of two jobs that are alike the one with a priority computes as if the other were not there.

  $ planc colocate graphs/lenet-digits.yaml:64 graphs/lenet-digits.yaml:64 --device k40m --policy zico --priority 1:5 -o first.plan >/dev/null 2>&1
  $ grep -c '"priority":5' first.plan
  1
  $ planc simulate first.plan --json | python3 -c 'import json, sys; print(*(job["busy_ns"] > 1.01 * job["ideal_ns"] for job in json.load(sys.stdin)["jobs"]))'
  True False
  $ planrun exec first.plan --iterations 2 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference
  $ planc colocate inputs/tiny.yaml:64 inputs/tiny.yaml:64 --device k40m --policy temporal --priority 2:1 -o x.plan
  ! planc: --priority 2:1: the jobs are numbered from 0 to 1, or go by the names that they were given as NAME=GRAPH
  [2]
  $ planc colocate inputs/tiny.yaml:64 b=inputs/tiny.yaml:64 --device k40m --policy temporal --priority b:3 -o x.plan | grep 'job .: '
    job 0: tiny, batch 64 in 1 round of 64, 1 iteration
    job 1: b, tiny, batch 64 in 1 round of 64, 1 iteration, priority 3
  ! planc: note: jobs that take turns, as by policy temporal, have no use for priorities
  ! planc: note: budget 12.00 GiB (device k40m)
  $ grep -c '"priority":3' x.plan
  1
  $ planc colocate inputs/tiny.yaml:64 inputs/tiny.yaml:64 --device k40m --policy temporal --priority 1:2 --priority 1:3 -o x.plan
  ! planc: --priority 1:3: job 1 has a priority already
  [2]

  $ planc colocate inputs/tiny.yaml:64 inputs/tiny.yaml:64 --device k40m --policy temporal --priority 1:6 -o x.plan
  ! planc: --priority 6: not an integer from 0 to 5
  [2]

A job that may not run often enough to get its part is told, with what would do.

  ~ planc colocate graphs/resnet50.yaml:32 inputs/tiny.yaml:4 --device k40m -o x.plan 2>&1 | grep 'note: job'
  planc: note: job <N> (tiny) has the most iterations in a period that may be chosen, <N>, and they take <N> ms alone where those of job <N> (resnet50) take <N> ms: with --max-ratio <N> it has more of the GPU
  $ planc colocate inputs/tiny.yaml:64:1 inputs/tiny.yaml:1 --device k40m -o x.plan 2>&1 | grep 'note: job'
  [1]
  ~ planc compare --colocate graphs/lenet-digits.yaml:640 inputs/tiny.yaml:1 --device k40m --max-ratio 1 --policies temporal --no-least 2>&1 | grep 'note: job'
  planc: note: job <N> (tiny) has the most iterations in a period that may be chosen, <N>, and they take <N> ms alone where those of job <N> (lenet-digits) take <N> ms: with --max-ratio <N> it has more of the GPU

A trainer and a sampler of one model take turns, or the sampler interrupts the trainer when requests come. Each hands its memory over and back.

  ~ for deadline in "" "--deadline 2ms"; do planc colocate graphs/tiny-transformer.yaml:16 graphs/tiny-transformer.yaml:16:inference --device k40m $deadline -o turns.plan 2>/dev/null | grep 'turns\|requests\|iteration[s]*$'; planrun exec turns.plan --iterations 2 --verify 2>/dev/null | grep -o 'verified.*'; done
  turns.plan: temporal, <N> jobs
    job <N>: tiny-transformer, batch <N> in <N> round of <N>, <N> iterations
    job <N>: tiny-transformer, batch <N> in <N> round of <N>, <N> iterations
  verified: every bit as in the reference
  turns.plan: preemptive, <N> jobs
    job <N>: tiny-transformer, batch <N> in <N> round of <N>, <N> iterations
    job <N>: tiny-transformer, batch <N> in <N> round of <N>, <N> iterations
    requests of job <N> take up to <N> ms of <N> ms
  verified: every bit as in the reference

Requests of a job for inference have a deadline, beside a job that trains.

  ~ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16:inference --device k40m --deadline 1.5ms -o late.plan 2>/dev/null | grep 'late\|requests\|iterations'
  late.plan: preemptive, <N> jobs
    job <N>: lenet-digits, batch <N> in <N> round of <N>, <N> iterations
    job <N>: tiny-transformer, batch <N> in <N> round of <N>, <N> iterations
    requests of job <N> take up to <N> ms of <N> ms
  $ planrun exec late.plan --iterations 2 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference
  ~ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16:inference --device k40m --deadline 1:1.5ms --policy temporal -o no.plan 2>&1 >/dev/null | grep requests | sed 's|1:[0-9]*us|1:<N>us|'
  planc: note: all requests are in time with --deadline <N>:<N>us, the least as far as a few plans can tell
  planc: job <N> (tiny-transformer): requests take up to <N> ms, with <N> iterations in a period; the deadline is <N> ms, and two iterations take <N> ms alone
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16:inference --device k40m --deadline 1.5ms --policy temporal -o no.plan >/dev/null 2>&1
  [1]

Where a deadline is not met it is told what would do: a larger ratio, other iterations, or a longer deadline. It does.

  $ mix() { planc colocate graphs/lenet-digits.yaml:64:$1 graphs/tiny-transformer.yaml:16$2:inference --device k40m -o late.plan "$3" $4 $5 $6 2>&1 | grep 'requests' | sed 's/ [0-9.]* ms/ <N> ms/g'; }
  > mix 4 "" --deadline 1.2ms --max-ratio 1
  > mix 4 "" --deadline 1.2ms $(mix 4 "" --deadline 1.2ms --max-ratio 1 | sed -n 's/.*in time with//p')
  > mix 4 :1 --deadline 1.2ms
  > ratio=$(mix 4 :1 --deadline 1.2ms | sed -n 's/.*ITERATIONS: \([0-9]*\) of job 0[^,]*, \([0-9]*\) of job 1.*/\1 :\2/p')
  > mix $ratio --deadline 1.2ms
  > mix 4 "" --deadline 500us | sed 's/with [0-9]* it/with <N> it/; s/1:[0-9]*us/1:<N>us/'
  > mix 4 "" $(mix 4 "" --deadline 500us | sed -n 's/.*in time with\(.*\), the least.*/\1/p')
  planc: note: all requests are in time with --max-ratio 3
  planc: job 1 (tiny-transformer): requests take up to <N> ms, with 1 iteration in a period; the deadline is <N> ms, and two iterations take <N> ms alone
    requests of job 1 take up to <N> ms of <N> ms
  planc: note: all requests are in time with these iterations in a period, GRAPH:BATCH:ITERATIONS: 4 of job 0 (lenet-digits), 3 of job 1 (tiny-transformer)
  planc: job 1 (tiny-transformer): requests take up to <N> ms, with 1 iteration in a period; the deadline is <N> ms, and two iterations take <N> ms alone
    requests of job 1 take up to <N> ms of <N> ms
  planc: note: all requests are in time with --deadline 1:<N>us, the least as far as a few plans can tell
  planc: job 1 (tiny-transformer): requests take up to <N> ms, with <N> iterations in a period; the deadline is <N> ms, and two iterations take <N> ms alone
    requests of job 1 take up to <N> ms of <N> ms
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --deadline 1.5ms -o no.plan
  ! planc: note: policy preemptive (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:64:inference it is planned as it is)
  ! planc: note: graphs/tiny-transformer.yaml has no backward ops: planned for training with adam (given as graphs/tiny-transformer.yaml:16:inference it is planned as it is)
  ! planc: --deadline 1.5ms: no job is for inference: say whose it is, as in 1:50ms
  [2]
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --deadline 2:1.5ms -o no.plan
  ! planc: note: policy preemptive (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:64:inference it is planned as it is)
  ! planc: note: graphs/tiny-transformer.yaml has no backward ops: planned for training with adam (given as graphs/tiny-transformer.yaml:16:inference it is planned as it is)
  ! planc: --deadline 2:1.5ms: the jobs are numbered from 0 to 1, or go by the names that they were given as NAME=GRAPH
  [2]
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --deadline 1:1.5 -o no.plan
  ! planc: note: policy preemptive (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:64:inference it is planned as it is)
  ! planc: note: graphs/tiny-transformer.yaml has no backward ops: planned for training with adam (given as graphs/tiny-transformer.yaml:16:inference it is planned as it is)
  ! planc: --deadline 1:1.5: 1.5 is not a time (examples: 50ms, 1.5s, 200us)
  [2]
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --deadline 1:1s --deadline 1:2s -o no.plan
  ! planc: note: policy preemptive (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:64:inference it is planned as it is)
  ! planc: note: graphs/tiny-transformer.yaml has no backward ops: planned for training with adam (given as graphs/tiny-transformer.yaml:16:inference it is planned as it is)
  ! planc: --deadline 1:2s: job 1 has a deadline already
  [2]
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16:inference --device k40m --deadline 1:2ms --deadline 1s --json -o late.plan 2>/dev/null | grep -o '"deadline_ns":[0-9][0-9]*'
  "deadline_ns":2000000
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16:inference --device k40m --deadline 1s --deadline 2s -o no.plan
  ! planc: note: policy preemptive (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:64:inference it is planned as it is)
  ! planc: --deadline 1s and 2s: one of all jobs for inference
  [2]
  $ planc compare --colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --policies temporal,preemptive
  ! planc: preemptive is for mixes in which jobs have deadlines; --deadline gives them
  [2]
  ~ planc compare --colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16:inference --device k40m --budget 2M --deadline 1ms --policies temporal,preemptive,zico --no-least 2>/dev/null
  <N> jobs on k40m, budget <size>
    job <N>: lenet-digits, batch <N>, <N> iterations in a period, alone <N> ms each by none
    job <N>: tiny-transformer, batch <N>, <N> iterations in a period, alone <N> ms each by none
  policy       least budget           period         peak throughput  speed of each
  temporal                -   too late
  preemptive              - <N> ms <size> <N> <N> <N>  job <N> up to <N> ms
  zico                    - <N> ms <size> <N> <N> <N>  job <N> up to <N> ms <- fastest
  why zico: side by side in regions of <size>: in every period job <N> begins <N> ms after job <N>
  temporal: job <N> (tiny-transformer): requests take up to <N> ms, with <N> iterations in a period; the deadline is <N> ms, and two iterations take <N> ms alone
  ~ planc compare --colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16:inference --device k40m --budget 2M --deadline 1ms --policies temporal,zico --no-least --json 2>/dev/null | grep -o '"deadline_ns":[0-9a-z]*\|"late":[a-z]*\|"responses_ns":[^]]*]'
  "deadline_ns":null
  "deadline_ns":<N>
  "late":true
  "responses_ns":[]
  "late":false
  "responses_ns":[<N>,<N>]
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --policy preemptive -o no.plan 2>&1 | tail -1
  planc: preemptive is for mixes in which jobs have deadlines; --deadline gives them
  $ test -e no.plan
  [1]

A ladder of budgets: runs go on from plan to plan. Where one rung is missing there is none.

  ~ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budgets 2M,1M,600K --policy zico -o ladder.plan 2>/dev/null | grep 'zico\|peak'
  ladder.2M.plan: zico, <N> jobs
    peak <size> of <size>, host <size>
  ladder.1M.plan: zico, <N> jobs
    peak <size> of <size>, host <size>
  ladder.600K.plan: zico, <N> jobs
    peak <size> of <size>, host <size>
  $ planc check ladder.600K.plan --budget 600K | sed 's/, peak.*//'
  valid: lenet-digits+tiny-transformer, zico, 2 jobs (lenet-digits, tiny-transformer)
  $ planrun exec ladder.2M.plan --iterations 20 --save ladder.state >/dev/null 2>&1
  $ planrun exec ladder.600K.plan --iterations 40 --resume ladder.state --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference, from iteration 20 of every job on
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budgets 2M,1M -o high.plan 2>&1 | grep 'note: budget'
  [1]
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budgets 2M,1K -o low.plan 2>&1 | grep -o 'does not fit a budget of 1.00 KiB'
  does not fit a budget of 1.00 KiB
  $ ls low.*
  ! ls: cannot access 'low.*': No such file or directory
  [2]
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budgets 2M,1M --json -o json.plan 2>/dev/null | python3 -c 'import json, sys; a = json.load(sys.stdin); print(a["planc"], *(p["output"] for p in a["plans"]))'
  colocate-budgets/1 json.2M.plan json.1M.plan
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --budgets 1M,1M
  ! planc: mix.1M.plan is written twice, outputs must be two files
  [2]
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --budgets 1M -o -
  ! planc: --budgets writes a plan for each, which standard output cannot take
  [2]
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --budgets 1M --budget 1M
  ! planc: --budget and --budgets exclude each other
  [2]
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --budgets 1M,1Q
  ! planc: --budgets: 1Q is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  [2]

With TENSILE each job has memory of its own, and swaps as many of its tensors as its rate allows.

  ~ planc colocate graphs/lenet-digits.yaml:640 graphs/lenet-digits.yaml:640 --device k40m --budget 1G --policy tensile --swap-rate 100 --swap-rate 1 -o apart.plan 2>/dev/null | grep 'tensile\|why\|moved'
  apart.plan: tensile, <N> jobs
    moved <size> out, <size> in; recomputed <N> ms
      moved <size> out, <size> in; recomputed <N> ms
      moved <size> out, <size> in; recomputed <N> ms
    why       side by side, each with memory of its own: <size> together, of which <size> at a time
  $ planrun exec apart.plan --iterations 2 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference
  $ planc colocate inputs/tiny.yaml:4 inputs/tiny.yaml:4 inputs/tiny.yaml:4 --device k40m --policy tensile --swap-rate 5 --swap-rate 6 -o x.plan
  ! planc: 2 values of --swap-rate for 3 jobs: one of all, or one of each
  [2]
  $ planc colocate inputs/tiny.yaml:4 inputs/tiny.yaml:4 --device k40m --policy tensile --swap-rate 5 --swap-rate 0 -o x.plan
  ! planc: --swap-rate 0: not an integer from 1 to 100
  [2]
  $ planc colocate inputs/tiny.yaml:4 inputs/tiny.yaml:4 --device k40m --swap-rate 5 -o x.plan
  ! planc: note: policy temporal (the fall-back)
  ! planc: policy temporal has no use for --swap-rate
  [2]

What whoever lends the GPU allows is the budget's default, for one job as well.

  $ GPU_MEMORY_LIMIT=1G planc plan inputs/tiny.yaml --device k40m -o x.plan 2>&1 | grep budget
  planc: note: budget 1.00 GiB (GPU_MEMORY_LIMIT)
  $ CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1=2G,0=512M planc plan inputs/tiny.yaml --device k40m -o x.plan 2>&1 | grep budget
  planc: note: budget 512.00 MiB (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT)
  $ CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1=2G planc plan inputs/tiny.yaml --device k40m -o x.plan 2>&1 | grep budget
  planc: note: budget 12.00 GiB (device k40m)
  $ CUDA_MPS_PINNED_DEVICE_MEM_LIMIT='1=2G, 0=256M' planc plan inputs/tiny.yaml --device k40m -o x.plan 2>&1 | grep budget
  planc: note: budget 256.00 MiB (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT)
  $ CUDA_MPS_PINNED_DEVICE_MEM_LIMIT='0=256M , 1=2G, ' planc plan inputs/tiny.yaml --device k40m -o x.plan 2>&1 | grep budget
  planc: note: budget 256.00 MiB (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT)
  $ GPU_MEMORY_LIMIT=24G planc plan inputs/tiny.yaml --device k40m -o x.plan 2>&1 | grep budget
  planc: note: budget 12.00 GiB (device k40m; GPU_MEMORY_LIMIT allows 24.00 GiB)
  $ planc colocate inputs/tiny.yaml:8 inputs/tiny.yaml:8 --device k40m --budgets 9007199254740993,1G -o x.plan
  ! planc: --budgets: 9007199254740993 is more than a plan can hold, 2^53 bytes
  [2]
  $ CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=2G planc plan inputs/tiny.yaml --device k40m -o x.plan
  ! planc: note: batch 4 (the graph's header)
  ! planc: environment variable CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: "2G" is not a device's number and size, as 0=2G is
  [2]
  $ CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=256M,GPU-abc=2G planc plan inputs/tiny.yaml --device k40m -o x.plan
  ! planc: note: batch 4 (the graph's header)
  ! planc: environment variable CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: "GPU-abc=2G" is not a device's number and size, as 0=2G is
  [2]
  $ GPU_MEMORY_LIMIT=plenty planc plan inputs/tiny.yaml --device k40m -o x.plan
  ! planc: note: batch 4 (the graph's header)
  ! planc: environment variable GPU_MEMORY_LIMIT: plenty is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  [2]
  $ GPU_MEMORY_LIMIT=1G planc plan inputs/tiny.yaml --device k40m --budget 2G -o x.plan 2>&1 | grep 'note: budget'
  [1]

A plan of many jobs can be read again.

  $ planc colocate $(for i in $(seq 64); do echo inputs/tiny.yaml:1; done) --device k40m -o many.plan >/dev/null 2>&1; planc check many.plan | sed 's/, .*//'
  valid: tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+tiny+16-more

A mix that does not fit is told with what each job needs alone, and all together.

  ~ planc colocate graphs/lenet-digits.yaml:64 inputs/tiny.yaml:8 --device k40m --budget 86K -o mix2.plan
  ! planc: note: policy temporal (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:<N>:inference it is planned as it is)
  ! planc: note: the least feasible budget of job <N> (lenet-digits) alone, planned as for a mix, is <N> bytes (<size>), with policy modnn
  ! planc: note: the least feasible budget of job <N> (tiny) alone, planned as for a mix, is <N> bytes (<size>), with policy modnn
  ! planc: note: the least feasible budget of all jobs with policy temporal is <N> bytes (<size>); there:
  ! peak: <size> live at op job <N>: last.grad; largest:
  !  <size>  job <N>: conv2.w
  !  <size>  job <N>: fc1.w
  !  <size>  job <N>: b
  !  <size>  job <N>: b.grad
  !  <size>  job <N>: a
  !  <size>  job <N>: x
  !  <size>  job <N>: conv1.w
  !  <size>  job <N>: fc2.w
  !  <size> <N> more
  ! planc: does not fit a budget of <size>: job <N> (lenet-digits), beside the other jobs' parameters and state, <N> bytes if all stay on the device: op pool1.grad alone needs <N> bytes at <N> sample, beside <N> bytes of parameters, state and gradients that stay: <N> bytes at the least; with some of these on the host all jobs take <N> bytes
  [1]
  ~ planc colocate graphs/lenet-digits.yaml:64 inputs/tiny.yaml:8 --device k40m --budget 1 -o mix2.plan
  ! planc: note: policy temporal (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:<N>:inference it is planned as it is)
  ! planc: note: the least feasible budget of job <N> (lenet-digits) alone, planned as for a mix, is <N> bytes (<size>), with policy modnn
  ! planc: note: the least feasible budget of job <N> (tiny) alone, planned as for a mix, is <N> bytes (<size>), with policy modnn
  ! planc: note: the least feasible budget of all jobs with policy temporal is <N> bytes (<size>); there:
  ! peak: <size> live at op job <N>: last.grad; largest:
  !  <size>  job <N>: conv2.w
  !  <size>  job <N>: fc1.w
  !  <size>  job <N>: b
  !  <size>  job <N>: b.grad
  !  <size>  job <N>: a
  !  <size>  job <N>: x
  !  <size>  job <N>: conv1.w
  !  <size>  job <N>: fc2.w
  !  <size> <N> more
  ! planc: does not fit a budget of <size>: job <N> (lenet-digits): op pool1.grad alone needs <N> bytes at <N> sample, beside <N> bytes of parameters, state and gradients that stay: <N> bytes at the least
  [1]
  $ test -e mix2.plan
  [1]

What is no mix.

  $ planc colocate inputs/tiny.yaml
  ! planc: one job has the GPU alone: name others, or --accumulate, or plan it by itself
  [2]
  $ planc colocate inputs/tiny.yaml:0 inputs/tiny.yaml
  ! planc: inputs/tiny.yaml:0: batch 0: not an integer from 1 to 2147483647
  [2]
  $ planc colocate inputs/tiny.yaml:1:0 inputs/tiny.yaml
  ! planc: inputs/tiny.yaml:1:0: iterations 0: not an integer from 1 to 1024
  [2]
  $ planc colocate inputs/tiny.yaml:1:1025 inputs/tiny.yaml
  ! planc: inputs/tiny.yaml:1:1025: iterations 1025: not an integer from 1 to 1024
  [2]
  $ planc colocate inputs/tiny.yaml:99999999999999999999 inputs/tiny.yaml
  ! planc: inputs/tiny.yaml:99999999999999999999: batch 99999999999999999999: not an integer from 1 to 2147483647
  [2]
  $ planc colocate inputs/tiny.yaml:1:1:1 inputs/tiny.yaml
  ! planc: note: policy temporal (the fall-back)
  ! planc: inputs/tiny.yaml:1:1:1 is no job: behind inputs/tiny.yaml may stand :BATCH or :BATCH:ITERATIONS, and behind that :inference
  [2]
  $ for job in :x :1:x :inference:2 : :1: :-1; do planc colocate inputs/tiny.yaml$job inputs/tiny.yaml 2>&1 | tail -1; done
  planc: inputs/tiny.yaml:x is no job: behind inputs/tiny.yaml may stand :BATCH or :BATCH:ITERATIONS, and behind that :inference
  planc: inputs/tiny.yaml:1:x is no job: behind inputs/tiny.yaml may stand :BATCH or :BATCH:ITERATIONS, and behind that :inference
  planc: inputs/tiny.yaml:inference:2 is no job: behind inputs/tiny.yaml may stand :BATCH or :BATCH:ITERATIONS, and behind that :inference
  planc: inputs/tiny.yaml: is no job: behind inputs/tiny.yaml may stand :BATCH or :BATCH:ITERATIONS, and behind that :inference
  planc: inputs/tiny.yaml:1: is no job: behind inputs/tiny.yaml may stand :BATCH or :BATCH:ITERATIONS, and behind that :inference
  planc: inputs/tiny.yaml:-1 is no job: behind inputs/tiny.yaml may stand :BATCH or :BATCH:ITERATIONS, and behind that :inference
  $ planc colocate nothing.yaml:1:1:1 inputs/tiny.yaml 2>&1 | tail -1
  planc: nothing.yaml:1: No such file or directory
  $ cp inputs/tiny.yaml a:1; planc colocate a:1:2:1 inputs/tiny.yaml:2:1 --device k40m --launch 0 -o x.plan >/dev/null; rm a:1; grep -o '"launch":[0-9]*' x.plan
  "launch":0
  ! planc: note: policy temporal (the fall-back)
  ! planc: note: budget 12.00 GiB (device k40m)
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --policy best
  ! planc: policy best is for one job, for several: temporal, preemptive, zico, waterwave, waterwave-s, tensile, vdnn-conv, capuchin, auto
  [2]
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --policy mps
  ! planc: mps has no plan: compare --colocate compares with it
  [2]
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --region 4K
  ! planc: note: policy temporal (the fall-back)
  ! planc: policy temporal has no use for --region
  [2]
  $ planc colocate inputs/tiny.yaml:1 inputs/tiny.yaml:1 --device k40m --policy zico --region 1000
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: regions of 1000 bytes: their size must be a multiple of 256
  [2]
  $ planc colocate inputs/tiny.yaml:1 inputs/tiny.yaml:1 --device k40m --policy waterwave --split-size 1M --split-groups 4
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: node groups have a size or a number, not both
  [2]
  $ planc colocate inputs/tiny.yaml:1 inputs/tiny.yaml:1 --device k40m --policy waterwave --split-groups 4097
  ! planc: --split-groups 4097: not an integer from 1 to 4096
  [2]
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --policy waterwave-s --split-size 1M
  ! planc: policy waterwave-s has no use for --split-size
  [2]
  $ planc compare inputs/tiny.yaml --region 4K
  ! planc: --region is for --colocate
  [2]
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --max-ratio 0
  ! planc: note: policy temporal (the fall-back)
  ! planc: --max-ratio 0: not an integer from 1 to 1024
  [2]
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --profile a --profile b --profile c
  ! planc: note: policy temporal (the fall-back)
  ! planc: 3 profiles for 2 jobs: one of all, or one of each
  [2]
  $ planc colocate inputs/tiny.yaml inputs/tiny.yaml --profile a --device k40m
  ! planc: note: policy temporal (the fall-back)
  ! planc: --profile and --device exclude each other
  [2]
  $ planc colocate inputs/tiny.yaml:4 inputs/tiny.yaml:4 -o inputs/tiny.yaml
  ! planc: inputs/tiny.yaml is read, the output must be another file
  [2]
  $ planc colocate graphs/vgg16.yaml graphs/deeplabv3plus.yaml -o x.plan 2>&1 | grep 'device'
  planc: the header of job 1 (deeplabv3plus) names device v100-16g-nvlink, and that of job 0 (vgg16) k40m: jobs that share a GPU have one device, say which with --device
  $ planc colocate inputs/tiny.yaml:2 graphs/lenet-digits.yaml:2 -o x.plan 2>&1 | grep 'device'
  planc: note: device k40m (the graph's header)
  planc: note: budget 12.00 GiB (device k40m)

Workspaces that are a guess are told for each job by its own profile, and what profiles say of the device is the first one's.

  $ for n in 8 4; do planc predict graphs/vgg16.yaml --device k40m --batch $n -o $n.json >/dev/null 2>&1; sed -i 's/"predicted":true/&,"sampled":true/' $n.json; done
  $ mix() { planc colocate graphs/vgg16.yaml:8:1 graphs/vgg16.yaml:$1:1 --profile 8.json --profile 4.json -o mix.plan 2>&1 >/dev/null | grep 'rounds\|other'; }
  > mix 4; echo; mix 7; echo; sed -i 's/"launch_ns":[0-9]*/"launch_ns":77/' 4.json; mix 4
  planc: note: the profile lists no workspaces for rounds of 7: they are taken from others, and planrun refuses a plan with too little (planrun profile lists them of batches that --batches or --unmeasured names)
  planc: note: the profile of job 1 has other figures of the device (launch, links): those of job 0 count for all

A host budget is one of all jobs, too.

  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --host-budget 20K --budget 300K -o x.plan 2>&1 | grep -o 'does not fit.*budget.[^:]*'
  does not fit a host budget of 20.00 KiB: job 1 (tiny-transformer): policy naive, in its last attempt, took 580904 bytes of host memory, the budget is 20480
  ~ planc colocate a=graphs/lenet-digits.yaml:64 b=graphs/tiny-transformer.yaml:16 --device k40m --host-budget 100K --budget 200K -o x.plan 2>&1 | grep 'least feasible\|host peak\|does not fit'
  planc: note: the least feasible host budget of job <N> (a) alone, planned as for a mix, is <N> bytes (<size>), with policy vdnn+
  planc: note: the least feasible host budget of job <N> (b) alone, planned as for a mix, is <N> bytes (<size>), with policy window
  planc: note: the least feasible host budget of all jobs with policy temporal is <N> bytes (<size>); there:
  host peak: <size> live at op job <N>: layer2.fc2.bgrad; largest:
  planc: does not fit a host budget of <size>: job <N> (b): policy window, in its last attempt, took <N> bytes of host memory, the budget is <N>: brightness.y of <N> bytes finds no place at op layer2.fc2.bgrad beside <N> bytes, the largest layer1.fc1.y of <N> and layer1.gelu.y of <N>
  $ least=$(planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --host-budget 100K --budget 200K -o x.plan 2>&1 | sed -n 's/.*all jobs with policy temporal is \([0-9]*\) bytes.*/\1/p')
  > for host in $least $((least - 256)); do planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --host-budget $host --budget 200K -o x.plan >/dev/null 2>&1; echo $?; done
  0
  1

Policies side by side.

  ~ planc compare --colocate graphs/lenet-digits.yaml:64 inputs/tiny.yaml:8 --device k40m --budget 1G
  <N> jobs on k40m, budget <size>
    job <N>: lenet-digits, batch <N>, <N> iteration in a period, alone <N> ms each by none
    job <N>: tiny, batch <N>, <N> iterations in a period, alone <N> ms each by none
  policy       least budget           period         peak throughput  speed of each
  temporal <size> <N> ms <size> <N> <N> <N>
  mps                     - <N> ms <size> <N> <N> <N>
  zico <size> <N> ms <size> <N> <N> <N> <- fastest
  waterwave <size> <N> ms <size> <N> <N> <N>
  waterwave-s <size> <N> ms <size> <N> <N> <N>
  tensile <size> <N> ms <size> <N> <N> <N>
  vdnn-conv <size> <N> ms <size> <N> <N> <N>
  capuchin <size> <N> ms <size> <N> <N> <N>
  why zico: side by side in regions of <size>: in every period job <N> begins <N> ms after job <N>
  mps: not planned: the pools of all jobs take <size>, <size> migrate on demand
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:<N>:inference it is planned as it is)
  $ planc compare --colocate inputs/tiny.yaml:8 inputs/tiny.yaml:8:2 --device k40m --policies temporal --json 2>/dev/null | grep -o '"policy":.*' | sed 's/[0-9.]*[0-9]\([],]\)/<N>\1/g'
  "policy":"temporal","planned":true,"feasible":true,"late":false,"least_budget":<N>,"is_least":true,"period_ns":<N>,"peak_bytes":<N>,"throughput":<N>,"weighted_throughput":<N>,"speeds":[<N>,<N>],"ratio":[<N>,<N>],"responses_ns":[<N>,<N>]}]}
  ~ planc compare --colocate inputs/tiny.yaml:8 inputs/tiny.yaml:8 --device v100-32g --budget 800.5M --policies mps,temporal --json 2>/dev/null | grep -o '"best".*'
  "best":"temporal","rows":[{"policy":"mps","planned":false,"feasible":true,"late":false,"least_budget":null,"is_least":false,"period_ns":<N>,"peak_bytes":<N>,"throughput":<N>,"weighted_throughput":<N>,"speeds":[<N>,<N>],"ratio":[<N>,<N>],"responses_ns":[],"explanation":"not planned: the pools of all jobs take <size>, <size> migrate on demand"},{"policy":"temporal","planned":true,"feasible":true,"late":false,"least_budget":<N>,"is_least":true,"period_ns":<N>,"peak_bytes":<N>,"throughput":<N>,"weighted_throughput":<N>,"speeds":[<N>,<N>],"ratio":[<N>,<N>],"responses_ns":[<N>,<N>]}]}
  ~ planc compare --colocate inputs/tiny.yaml:8 inputs/tiny.yaml:8 --device v100-32g --budget 800.5M --policies mps
  <N> jobs on v100-32g, budget <size>
    job <N>: tiny, batch <N>, <N> iteration in a period, alone <N> ms each by none
    job <N>: tiny, batch <N>, <N> iteration in a period, alone <N> ms each by none
  policy       least budget           period         peak throughput  speed of each
  mps                     - <N> ms <size> <N> <N> <N>
  mps: not planned: the pools of all jobs take <size>, <size> migrate on demand
  $ planc compare --colocate inputs/tiny.yaml
  ! planc: one job has the GPU alone: name others, or --accumulate, or plan it by itself
  [2]
  $ planc compare --colocate inputs/tiny.yaml inputs/tiny.yaml --gpus 2
  ! planc: --colocate and --gpus exclude each other
  [2]
  $ planc compare --colocate inputs/tiny.yaml inputs/tiny.yaml --policies temporal,temporal
  ! planc: --policies names temporal twice
  [2]
  $ planc compare --colocate inputs/tiny.yaml inputs/tiny.yaml --policies temporal --region 4K
  ! planc: policy temporal has no use for --region
  [2]
  $ planc compare --colocate inputs/tiny.yaml inputs/tiny.yaml --policies modnn
  ! planc: policy modnn is for one job, for several: temporal, preemptive, mps, zico, waterwave, waterwave-s, tensile, vdnn-conv, capuchin, auto
  [2]
  $ planc compare inputs/tiny.yaml --max-ratio 2
  ! planc: --max-ratio is for --colocate
  [2]
  $ planc compare inputs/tiny.yaml --profile a --profile b
  ! planc: --profile is given twice
  [2]
  $ planc compare inputs/tiny.yaml inputs/tiny.yaml
  ! planc: unexpected operand inputs/tiny.yaml: only --colocate takes several
  [2]

A job that does not even fit alone leaves the table as it is, with least budgets that colocate makes a plan for, and
that are the same at any budget.

  ~ planc compare --colocate graphs/lenet-digits.yaml:64 inputs/tiny.yaml:8 --device k40m --budget 1K
  <N> jobs on k40m, budget <size>
    job <N>: lenet-digits, batch <N>
    job <N>: tiny, batch <N>
    no period: job <N> (lenet-digits): op pool1.grad alone needs <N> bytes at <N> sample, beside <N> bytes of parameters, state and gradients that stay: <N> bytes at the least
  policy       least budget           period         peak throughput  speed of each
  temporal <size>   does not fit
  mps                     -   does not fit
  zico <size>   does not fit
  waterwave <size>   does not fit
  waterwave-s <size>   does not fit
  tensile < <size>   does not fit
  vdnn-conv <size>   does not fit
  capuchin < <size>   does not fit
  mps: job <N> (lenet-digits): op pool1.grad alone needs <N> bytes at <N> sample, beside <N> bytes of parameters, state and gradients that stay: <N> bytes at the least
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:<N>:inference it is planned as it is)
  $ planc compare --colocate graphs/lenet-digits.yaml:64 inputs/tiny.yaml:8 --device k40m --budget 1K --json 2>/dev/null | python3 -c 'import json, sys; a = json.load(sys.stdin); print(a["best"], a["jobs"][0]["alone_ns"], a["jobs"][1]["alone_policy"], a["rows"][0]["ratio"], file=sys.stderr); [print(r["policy"], r["least_budget"]) for r in a["rows"] if r["planned"]]' >least
  ! None None None []
  $ while read policy least; do planc colocate graphs/lenet-digits.yaml:64 inputs/tiny.yaml:8 --device k40m --policy $policy --budget $least -o x.plan 2>/dev/null | grep -o "x.plan: $policy"; done <least
  x.plan: temporal
  x.plan: zico
  x.plan: waterwave
  x.plan: waterwave-s
  x.plan: tensile
  x.plan: vdnn-conv
  x.plan: capuchin
  $ planc compare --colocate graphs/lenet-digits.yaml:64 inputs/tiny.yaml:8 --device k40m --budget 1G --json 2>/dev/null | python3 -c 'import json, sys; [print(r["policy"], r["least_budget"]) for r in json.load(sys.stdin)["rows"] if r["planned"]]' | diff least -

What can only swap is refused where nothing may be swapped, and not compared unless it is named.

  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budget 1G --policy vdnn-conv --no-swap -o none.plan 2>&1 | grep -v note
  planc: job 0 (lenet-digits): policy vdnn-conv swaps and has no other choice, and no swap is allowed
  $ planc compare --colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budget 1G --no-least --no-swap 2>/dev/null | grep -c vdnn
  0
  [1]

Policy auto takes the fastest of the others, which the plan tells, and is asked again by update.

  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budget 1M --policy auto -o auto.plan 2>/dev/null
  auto.plan: waterwave, 2 jobs
    peak      1023.88 KiB of 1.00 MiB, host 0 B
    period    1.739 ms, ideal one after the other 1.577 ms (+10.3 %)
    moved     5.64 KiB out, 41.13 KiB in; recomputed 0.000 ms
    job 0: lenet-digits, batch 64 in 2 rounds of 32, 2 iterations
      ideal 0.638 ms, computes 1.004 ms, waits 0.735 ms
      moved 5.02 KiB out, 33.00 KiB in; recomputed 0.000 ms
    job 1: tiny-transformer, batch 16 in 1 round of 16, 1 iteration
      ideal 0.939 ms, computes 0.965 ms, waits 0.774 ms
      moved 644 B out, 8.13 KiB in; recomputed 0.000 ms
    job 0 runs at 37.2 % of what it does alone on the whole GPU, 0.323 ms an iteration by none; within the budget 0.442 ms by window
    job 1 runs at 54.6 % of what it does alone, 0.950 ms an iteration by none
    together  0.919 times the throughput of one job alone
    why       no other policy that fits has more throughput, the next is zico with 0.912; waterwave: side by side in 8 of 49 pairs of node groups of 36.88 KiB, relaxed, variable
  $ planc compare --colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budget 1M --no-least --policies zico,auto --json 2>/dev/null | grep -o '"period_ns":[0-9]*'
  "period_ns":1753201
  "period_ns":1739766
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16:inference --device k40m --budget 2M --policy auto --deadline 600us --max-ratio 30 -o late.plan 2>&1 | grep 'why\|requests'
  planc: note: all requests are in time with --deadline 1:611us, the least as far as a few plans can tell
  planc: waterwave: job 1 (tiny-transformer): requests take up to 0.611 ms, with 30 iterations in a period; the deadline is 0.600 ms, and two iterations take 0.565 ms alone
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/tiny-transformer.yaml:16 --device k40m --budget 100K --policy auto 2>&1 | tail -n 1
  planc: does not fit a budget of 100.00 KiB: temporal: job 0 (lenet-digits), beside the other jobs' parameters and state, 239448 bytes if all stay on the device: op pool1.grad alone needs 10240 bytes at 1 sample, beside 77824 bytes of parameters, state and gradients that stay: 88064 bytes at the least; with some of these on the host all jobs take 141056 bytes
