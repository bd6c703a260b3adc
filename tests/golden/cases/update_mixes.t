What a run of several jobs measured goes to a profile for each job, and the plan made of these has the same jobs, as often
as before. In this run an op takes 10 us, and a copy 20.

  $ cat > invent.awk <<'END'
  > /"instr":/ { took = /"cat":"exec"/ ? 10 : 20
  >   sub(/"ts":[0-9.]+,"dur":[0-9.]+/, sprintf("\"ts\":%d,\"dur\":%d", at, took)); at += took }
  > { print }
  > END
  $ planc colocate a=graphs/lenet-digits.yaml:64:2 b=graphs/tiny-transformer.yaml:16:1 --policy temporal --device k40m --budget 1G -o mix.plan >/dev/null 2>&1
  > planrun exec mix.plan --iterations 6 --trace run.json >/dev/null 2>&1; awk -f invent.awk run.json > mix.json
  $ planc update mix.plan --trace mix.json -o next.plan --profile-out a.json --profile-out b.json > said; sed '/next.plan/,$d' said
  lenet-digits+tiny-transformer, 6 periods measured
    alone               planned with         measured      from now on
      232x op               1.577 ms         2.320 ms         2.245 ms
       70x of a             0.638 ms         0.700 ms         0.693 ms
      162x of b             0.939 ms         1.620 ms         1.551 ms
        6x copy in          0.064 ms         0.120 ms         0.114 ms
        6x copy out         0.060 ms         0.150 ms         0.141 ms
    the period was predicted 1.602 ms, measured 2.560 ms, now predicted 2.314 ms
    changed by 0.423, threshold 0.300
    profile a.json
    profile b.json
    planned anew
  ! planc: note: iterations in a period stay what they are; with the measured times planc would choose 4:1: colocate with the profiles of --profile-out does
  ~ sed '1,/planned anew/d' said
  next.plan: temporal, <N> jobs
    peak <size> of <size>, host <size>
    period <N> ms, ideal one after the other <N> ms (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    job <N>: a, lenet-digits, batch <N> in <N> round of <N>, <N> iterations
      ideal <N> ms, computes <N> ms, waits <N> ms
      moved <size> out, <size> in; recomputed <N> ms
    job <N>: b, tiny-transformer, batch <N> in <N> round of <N>, <N> iteration
      ideal <N> ms, computes <N> ms, waits <N> ms
      moved <size> out, <size> in; recomputed <N> ms
    job <N> (a) runs at <N> % of what it does alone, <N> ms an iteration by none
    job <N> (b) runs at <N> % of what it does alone, <N> ms an iteration by none
    together <N> times the throughput of one job alone
  $ planc check next.plan --budget 1G | sed 's/, peak.*//'
  valid: lenet-digits+tiny-transformer, temporal, 2 jobs (a, b)
  $ planrun exec next.plan --iterations 6 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference
  $ planc colocate a=graphs/lenet-digits.yaml:64:2 b=graphs/tiny-transformer.yaml:16:1 --policy temporal --profile a.json --profile b.json --budget 1G -o again.plan >/dev/null 2>&1; cmp next.plan again.plan && echo same
  same
  $ planc update mix.plan --trace mix.json -o next.plan --json | grep -o '"policy":"[a-z]*"\|"jobs":.*\]\|"decisions":"[a-z]*"'
  "policy":"temporal"
  "jobs":[{"name":"a","graph":"lenet-digits","ops":{"count":70,"old_ns":638112,"measured_ns":700000,"new_ns":693814}},{"name":"b","graph":"tiny-transformer","ops":{"count":162,"old_ns":939777,"measured_ns":1620000,"new_ns":1551998}}]
  "decisions":"new"
  ! planc: note: iterations in a period stay what they are; with the measured times planc would choose 4:1: colocate with the profiles of --profile-out does

Where one job would now have less than half of the other's time, unlike before, it is noted how often planc would have them.

  $ planc colocate a=graphs/lenet-digits.yaml:64 b=graphs/tiny-transformer.yaml:16 --policy temporal --profile a.json --profile b.json --budget 1G -o chosen.plan 2>/dev/null | grep -o 'job .*iterations*$'
  job 0: a, lenet-digits, batch 64 in 1 round of 64, 4 iterations
  job 1: b, tiny-transformer, batch 16 in 1 round of 16, 1 iteration

A run of the plan at hand is gone on with by the new one.

  $ planrun exec mix.plan --iterations 4 --save state >/dev/null 2>&1; planrun exec next.plan --iterations 8 --resume state --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference, from iteration 4 of every job on

Jobs that are alike have one profile, which one file has for all; others are told apart by their batch.

  $ planc colocate graphs/lenet-digits.yaml:64:1 graphs/lenet-digits.yaml:64:1 --device k40m --budget 1G --policy zico -o twins.plan >/dev/null 2>&1
  > planrun exec twins.plan --iterations 3 --trace run.json >/dev/null 2>&1; awk -f invent.awk run.json > twins.json
  $ planc update twins.plan --trace twins.json --threshold 0 --profile-out twin.json >/dev/null && planc update twins.plan --trace twins.json --threshold 0 --profile-out one.json --profile-out other.json >/dev/null
  > cmp twin.json one.json && cmp one.json other.json && echo alike
  alike
  $ planc update mix.plan --trace mix.json --profile-out one.json
  ! planc: 1 file for the profiles of 2 jobs: give --profile-out for each, in their order
  [2]
  $ planc update mix.plan --trace mix.json --profile-out one.json --profile-out two.json --profile-out three.json
  ! planc: 3 files for the profiles of 2 jobs: give --profile-out for each, in their order
  [2]

Other profiles are told as colocate is told them, and other budgets, policies and what these are told.

  $ planc update mix.plan --trace mix.json --device k40m -o n.plan --json | grep -o '"change_ppm":[0-9]*\|"updated":[a-z]*\|"decisions":"[a-z]*"'
  "change_ppm":423301
  "updated":true
  "decisions":"new"
  ! planc: note: iterations in a period stay what they are; with the measured times planc would choose 4:1: colocate with the profiles of --profile-out does
  $ planc update mix.plan --trace mix.json --profile a.json --profile b.json -o n.plan --json | grep -o '"updated":[a-z]*\|"decisions":"[a-z]*"'
  "updated":true
  "decisions":"new"
  ! planc: note: iterations in a period stay what they are; with the measured times planc would choose 4:1: colocate with the profiles of --profile-out does
  $ planc update mix.plan --trace mix.json --profile a.json --profile b.json --profile b.json -o n.plan
  ! planc: 3 profiles for 2 jobs: one of all, or one of each
  [2]
  $ planc update mix.plan --trace mix.json --threshold 10 -o n.plan >/dev/null
  ! planc: mix.plan: latencies have not changed by more than the threshold: nothing is written
  [7]
  $ planc update mix.plan --trace mix.json --threshold 10 --policy zico --region 512K --budget 4M -o n.plan | grep 'plan:\|why'
  n.plan: zico, 2 jobs
    why       side by side in regions of 512.00 KiB: in every period job 0 begins 0.025 ms after job 1
  ! planc: note: iterations in a period stay what they are; with the measured times planc would choose 4:1: colocate with the profiles of --profile-out does
  $ planc check n.plan | sed 's/, peak.*//'; grep -o '"region":[0-9]*' n.plan
  valid: lenet-digits+tiny-transformer, zico, 2 jobs (a, b)
  "region":524288
  $ planc update mix.plan --trace mix.json --budget 1M -o n.plan
  ! planc: note: the decisions of the plan at hand need a budget of 1455104 bytes (1.39 MiB)
  ! planc: note: rounds stay those of the plan: with --profile or --device, which tell of other batches, less may do
  ! planc: note: the least feasible budget of job 0 (a) alone, planned as for a mix, is 804864 bytes (786.00 KiB), with policy naive in rounds of 64
  ! planc: note: the least feasible budget of job 1 (b) alone, planned as for a mix, is 86272 bytes (84.25 KiB), with policy window in rounds of 16
  ! planc: note: the least feasible budget of all jobs with policy temporal is 1053696 bytes (1.00 MiB); there:
  ! peak: 1019.84 KiB live at op job 0: conv2.dgrad; largest:
  !     576.00 KiB  workspace
  !     128.00 KiB  job 0: d.conv2.y
  !      64.00 KiB  job 0: d.pool1.y
  !      18.00 KiB  job 0: conv2.w
  !       8.00 KiB  job 1: layer1.fc1.w
  !       8.00 KiB  job 1: layer1.fc1.w.m
  !       8.00 KiB  job 1: layer1.fc1.w.v
  !       8.00 KiB  job 1: layer1.fc2.w
  !     201.84 KiB  116 more
  ! planc: does not fit a budget of 1.00 MiB: policy temporal, in its last attempt, took 1053480 bytes of device memory, the budget is 1048576: layer2.fc1.b.m of 256 bytes finds no place at op conv2.dgrad beside 1044056 bytes, the largest the workspace of op conv2.dgrad of 589824 and d.conv2.y of 131072; 4520 are free then, in pieces that do not fit
  [1]
  $ planc update mix.plan --trace mix.json --policy modnn -o n.plan
  ! planc: policy modnn is for one job, for several: temporal, preemptive, zico, waterwave, waterwave-s, tensile, vdnn-conv, capuchin, auto
  [2]
  $ planc update mix.plan --trace mix.json --region 1M -o n.plan
  ! planc: policy temporal has no use for --region
  [2]
  $ planc update mix.plan --trace mix.json --sub-batch 16 -o n.plan
  ! planc: --sub-batch is for plans of one job with one iteration a period
  [2]
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json --deadline 5ms -o n.plan
  ! planc: --deadline is for plans of planc colocate
  [2]
  $ planc update data/timeline/tiny.plan --trace data/timeline/tiny.json --region 1M -o n.plan
  ! planc: policy vdnn-all has no use for --region
  [2]

Deadlines are not in a plan, and are given again.

  $ planc colocate graphs/lenet-digits.yaml:64 s=graphs/lenet-digits.yaml:8:inference --deadline 5ms --device k40m -o late.plan >/dev/null 2>&1
  > planrun exec late.plan --iterations 6 --trace run.json >/dev/null 2>&1; awk -f invent.awk run.json > late.json
  $ planc update late.plan --trace late.json --threshold 0 -o n.plan
  ! planc: late.plan: a plan does not keep the deadlines that policy preemptive plans for: say them with --deadline
  [2]
  $ planc update late.plan --trace late.json --threshold 0 --deadline 5ms -o n.plan | grep -o 'requests of job 1.* of 5.000 ms'
  requests of job 1 (s) take up to 0.714 ms of 5.000 ms
  ~ planc update late.plan --trace late.json --threshold 0 --deadline s:100us -o n.plan
  ! planc: note: all requests are in time with --deadline s:715us, the least as far as a few plans can tell
  ! planc: job <N> (s): requests take up to <N> ms, with <N> iteration in a period; the deadline is <N> ms, and two iterations take <N> ms alone
  [1]

Swap rates that differ from job to job stand with the jobs, and hold for the next plan unless another is given.

  $ cat > rates.awk <<'END'
  > /^{"planc-plan"|^{"job"/ { rate = "none"; if (match($0, /"swap_rate":[0-9]*/)) rate = substr($0, RSTART + 12, RLENGTH - 12); printf "%s ", rate }
  > END
  $ planc colocate graphs/lenet-digits.yaml:640:1 graphs/lenet-digits.yaml:640:1 --device k40m --budget 1G --policy tensile --swap-rate 100 --swap-rate 1 -o rates.plan >/dev/null 2>&1
  > planrun exec rates.plan --iterations 3 --trace run.json >/dev/null 2>&1; awk -f invent.awk run.json > rates.json
  > planc check rates.plan | sed 's/, peak.*//'
  valid: lenet-digits+lenet-digits, tensile, 2 jobs (lenet-digits, lenet-digits)
  $ for asked in '' '--swap-rate 5' '--swap-rate 100' '--policy zico'; do
  >   planc update rates.plan --trace rates.json --threshold 0 $asked -o n.plan >/dev/null && awk -f rates.awk n.plan; echo "of all and each: $asked"; done
  none none 10000 of all and each:
  50000 none none of all and each: --swap-rate 5
  none none none of all and each: --swap-rate 100
  none none none of all and each: --policy zico

Several iterations of one job, and GPUs that train together: what one of them did stands for all.

  $ planc colocate graphs/lenet-digits.yaml:64:3 --accumulate 1 --device k40m -o three.plan >/dev/null 2>&1
  > planrun exec three.plan --iterations 9 --trace run.json >/dev/null 2>&1; awk -f invent.awk run.json > three.json
  $ planc update three.plan --trace three.json --threshold 0 -o n.plan > said; sed -n '3,5p; /n.plan/p' said
      105x op               0.957 ms         1.050 ms         1.040 ms
        6x copy in          0.065 ms         0.120 ms         0.114 ms
        6x copy out         0.060 ms         0.150 ms         0.141 ms
  n.plan: zico, batch 64 in 1 round of 64, 3 iterations a period
  $ planrun exec n.plan --iterations 6 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference
  $ planc colocate graphs/lenet-digits.yaml:64:3 --accumulate 2 --device k40m -o rounds.plan >/dev/null 2>&1
  > planrun exec rounds.plan --iterations 9 --trace run.json >/dev/null 2>&1; awk -f invent.awk run.json > rounds.json
  $ planc update rounds.plan --trace rounds.json --threshold 0 -o n.plan > said; grep 'n.plan\|period *[0-9]' said
  n.plan: zico, batch 64 in 2 rounds of 32 side by side, 3 iterations a period
    period    1.248 ms
  $ planc update rounds.plan --trace rounds.json --threshold 0 --device k40m -o n.plan > said; grep -o 'n.plan.*\|, ideal' said
  n.plan: zico, batch 64 in 2 rounds of 32 side by side, 3 iterations a period
  , ideal
  $ for link in '' --shared-link; do
  >   planc plan graphs/lenet-digits.yaml --batch 64 --gpus 2 $link --policy vdnn-all --device k40m -o two.plan >/dev/null 2>&1
  >   planrun exec two.plan --iterations 6 --trace run.json >/dev/null 2>&1; awk -f invent.awk run.json > two.json
  >   planc update two.plan --trace two.json --threshold 0 -o n.plan > said; sed -n '3,5p; /n.plan/p' said
  >   planrun exec n.plan --iterations 3 --verify 2>/dev/null | grep -o 'verified.*'; done
       43x op               0.286 ms         0.430 ms         0.415 ms
       16x copy in          0.189 ms         0.746 ms         0.690 ms
       14x copy out         0.168 ms         0.306 ms         0.292 ms
  n.plan: vdnn-all, batch 64 on 2 GPUs, 32 each in 1 round of 32
  verified: every bit as in the reference
       43x op               0.286 ms         0.430 ms         0.415 ms
       16x copy in          0.189 ms         0.373 ms         0.354 ms
       14x copy out         0.168 ms         0.153 ms         0.154 ms
  n.plan: vdnn-all, batch 64 on 2 GPUs with one link, 32 each in 1 round of 32
  verified: every bit as in the reference
