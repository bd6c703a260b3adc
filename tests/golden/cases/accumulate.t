A batch in rounds that run side by side, each on a compute stream of its own, and one step of the optimizer after them.

  ~ planc colocate graphs/lenet-digits.yaml:64 --accumulate 2 --device k40m --budget 1G -o two.plan
  two.plan: zico, batch <N> in <N> rounds of <N> side by side
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    job <N> runs at <N> % of what it does alone with rounds one after the other, <N> ms an iteration by none
    together <N> times the throughput of one job alone
    why       every op has its fastest algorithm; <N> rounds side by side, the second begins <N> ms after the first
  ! planc: note: policy zico (the fall-back)
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:<N>:inference it is planned as it is)
  $ planc check two.plan --budget 1G | sed 's/, peak.*//'
  valid: lenet-digits, zico
  $ grep -c '"stream":"compute"' two.plan
  2
  $ planc show two.plan | head -2 | sed 's/;.*//'
  plan of lenet-digits, policy zico, device k40m
  batch 64 in 2 rounds of 32 side by side
  $ planrun exec two.plan --iterations 3 --verify --poison --jitter 3 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference
  $ planrun exec two.plan --data data/digits/digits.csv.gz --save two.state >/dev/null 2>&1
  $ planc plan graphs/lenet-digits.yaml --batch 64 --sub-batch 32 --device k40m --policy none -o one.plan >/dev/null 2>&1
  $ planrun exec one.plan --data data/digits/digits.csv.gz --save one.state >/dev/null 2>&1; cmp one.state two.state
  $ planc colocate graphs/lenet-digits.yaml:64 --accumulate 2 --device k40m --budget 1G -o again.plan >/dev/null 2>&1; cmp two.plan again.plan

With less memory a round begins later, and at last when the one before has ended, or what has no room is elsewhere.

  ~ planc colocate graphs/lenet-digits.yaml:64 --accumulate 2 --device k40m --budgets 900K,680K,400K -o less.plan 2>/dev/null | grep 'plan:\|why'
  less.900K.plan: zico, batch <N> in <N> rounds of <N> side by side
    why       every op has its fastest algorithm; <N> rounds side by side, the second begins <N> ms after the first
  less.680K.plan: zico, batch <N> in <N> rounds of <N>
    why       every op has its fastest algorithm; rounds one after the other, side by side they do not fit
  less.400K.plan: zico, batch <N> in <N> rounds of <N>
    why       ops have the fastest algorithms that find room beside the data; rounds one after the other, as policy prefetch-1 has data away from the device
  $ planrun exec less.900K.plan --iterations 3 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference

Jobs of a mix have numbers of their own; of several iterations each has one step.

  ~ planc colocate graphs/lenet-digits.yaml:64:2 graphs/tiny-transformer.yaml:16 graphs/lenet-digits.yaml:8:inference --device k40m --accumulate 4 --accumulate 1:2 -o mix.plan 2>/dev/null | grep 'job .: \|why'
    job <N>: lenet-digits, batch <N> in <N> rounds of <N> side by side, <N> iterations
    job <N>: tiny-transformer, batch <N> in <N> rounds of <N> side by side, <N> iteration
    job <N>: lenet-digits, batch <N> in <N> round of <N>, <N> iterations
    why       side by side in regions of <size>, in pairs: in every period job <N> begins <N> ms after job <N>; job <N>: every op has its fastest algorithm; <N> rounds side by side, the second begins <N> ms after the first; job <N>: every op has its fastest algorithm; <N> rounds side by side, the second begins <N> ms after the first
  $ planrun exec mix.plan --iterations 4 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference
  $ planc colocate graphs/lenet-digits.yaml:64:3 --accumulate 2 --device k40m -o three.plan 2>/dev/null | grep -o 'zico.*'
  zico, batch 64 in 2 rounds of 32 side by side, 3 iterations a period
  $ planrun exec three.plan --iterations 6 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference

Policies that do not run rounds side by side run them one after the other where they are compared.

  ~ planc compare --colocate graphs/lenet-digits.yaml:64 --accumulate 2 --device k40m --policies temporal,mps,zico 2>/dev/null
  <N> job on k40m, budget <size>
    job <N>: lenet-digits, batch <N>, <N> iteration in a period, alone <N> ms each by none
  policy       least budget           period         peak throughput  speed of each
  temporal <size> <N> ms <size> <N> <N>
  mps                     - <N> ms <size> <N> <N>
  zico <size> <N> ms <size> <N> <N> <- fastest
  why zico: every op has its fastest algorithm; <N> rounds side by side, the second begins <N> ms after the first
  mps: not planned: the pools of all jobs take <size>, <size> migrate on demand
  compared with rounds one after the other, not for colocate: temporal
  $ planc colocate graphs/lenet-digits.yaml:64 --accumulate 2 --policy temporal -o no.plan
  ! planc: --accumulate is for policy zico: others run rounds one after the other
  [2]
  $ planc compare --colocate graphs/lenet-digits.yaml:64 --accumulate 2 --policies temporal,waterwave
  ! planc: --accumulate is for policy zico: others run rounds one after the other
  [2]
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/lenet-digits.yaml:8:inference --accumulate 2 --deadline 5ms -o no.plan
  ! planc: note: policy preemptive (the fall-back)
  ! planc: --accumulate is for policy zico: others run rounds one after the other
  [2]
  $ planc colocate graphs/lenet-digits.yaml:64 graphs/lenet-digits.yaml:8:inference --accumulate 2 --deadline 5ms --policy zico --device k40m -o late.plan 2>/dev/null | grep -o 'rounds of 32 side by side\|requests of job 1'
  rounds of 32 side by side
  requests of job 1

A job in rounds is not the same job as one without, and has a least budget of its own; the same job twice is told once.

  $ mix() { planc colocate graphs/lenet-digits.yaml:64 graphs/lenet-digits.yaml:64 graphs/lenet-digits.yaml:64 --device k40m --budget 60K -o no.plan "$@" 2>&1 | grep -o 'budget of job . (lenet-digits) alone'; }; mix --accumulate 1:2; mix --accumulate 2
  budget of job 0 (lenet-digits) alone
  budget of job 1 (lenet-digits) alone
  budget of job 0 (lenet-digits) alone

One round is the whole batch; other numbers have to divide it.

  $ planc colocate graphs/lenet-digits.yaml:64 --accumulate 1 --device k40m -o one.plan 2>/dev/null | grep -o 'zico.*'
  zico, batch 64 in 1 round of 64
  $ planc colocate graphs/lenet-digits.yaml:64 --accumulate 3 --device k40m -o no.plan 2>&1 | tail -1
  planc: job 0 (lenet-digits): a batch of 64 is not 3 rounds of equal size: choose a number that divides it
  $ planc colocate graphs/lenet-digits.yaml:4 --accumulate 8 --device k40m -o no.plan 2>&1 | tail -1
  planc: job 0 (lenet-digits): a batch of 4 is not 8 rounds of equal size: choose a number that divides it
  $ planc colocate graphs/lenet-digits.yaml:64 --accumulate 0 --device k40m -o no.plan 2>&1 | tail -1
  planc: --accumulate 0: not an integer from 1 to 64
  $ planc colocate graphs/lenet-digits.yaml:6500 --accumulate 65 --device k40m -o no.plan 2>&1 | tail -1
  planc: --accumulate 65: not an integer from 1 to 64
  $ planc colocate graphs/lenet-digits.yaml:64 --accumulate two --device k40m -o no.plan 2>&1 | tail -1
  planc: --accumulate two: not an integer from 1 to 64
  $ planc colocate graphs/lenet-digits.yaml:64 --accumulate 1:2 --device k40m -o no.plan 2>&1 | tail -1
  planc: --accumulate 1:2: the jobs are numbered from 0 to 0, or go by the names that they were given as NAME=GRAPH
  $ planc colocate graphs/lenet-digits.yaml:64 --accumulate 2 --accumulate 4 --device k40m -o no.plan 2>&1 | tail -1
  planc: --accumulate 4: given already
  $ planc colocate graphs/lenet-digits.yaml:64:inference --accumulate 2 --device k40m -o no.plan 2>&1 | tail -1
  planc: --accumulate: no job trains, so that none accumulates gradients
  $ planc colocate graphs/lenet-digits.yaml:64:inference --accumulate 0:2 --device k40m -o no.plan 2>&1 | tail -1
  planc: job 0 (lenet-digits): it is for inference: there are no gradients for rounds to accumulate
  $ planc colocate graphs/resnet34.yaml:8 --accumulate 2 --device k40m -o no.plan 2>&1 | tail -1
  planc: job 0 (resnet34): graph resnet34 has ops that couple the samples of a batch (batch normalisation): running it in sub-batches changes its results; --split-batch-norm allows it
  $ planc colocate graphs/resnet34.yaml:8 --accumulate 2 --split-batch-norm --device k40m -o split.plan 2>/dev/null | grep -o 'zico.*'
  zico, batch 8 in 2 rounds of 4 side by side
  $ planc colocate graphs/lenet-digits.yaml:64 --device k40m -o no.plan
  ! planc: one job has the GPU alone: name others, or --accumulate, or plan it by itself
  [2]
  $ planc compare --colocate graphs/lenet-digits.yaml:64 --device k40m
  ! planc: one job has the GPU alone: name others, or --accumulate, or plan it by itself
  [2]
  $ planc compare --colocate a=graphs/lenet-digits.yaml:64 --device k40m --budget 1G --policies temporal --no-least 2>/dev/null | head -1
  1 job on k40m, budget 1.00 GiB
  $ planc compare graphs/lenet-digits.yaml --accumulate 2
  ! planc: --accumulate is for --colocate
  [2]
  $ test -e no.plan
  [1]

What was measured beside another round is taken apart by what the simulator says of both: a plan made anew of it has
rounds side by side as well.

  $ planrun exec two.plan --iterations 3 --trace two.json >/dev/null 2>&1
  $ planc simulate two.plan --against two.json | grep -c 'compute stream'
  2
  $ planc update two.plan --trace two.json --threshold 0 -o next.plan 2>/dev/null | grep -o 'next.plan.*'
  next.plan: zico, batch 64 in 2 rounds of 32 side by side
  $ planrun exec next.plan --iterations 3 --verify 2>/dev/null | grep -o 'verified.*'
  verified: every bit as in the reference
