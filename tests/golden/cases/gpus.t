On several GPUs each trains on an equal part of the batch; gradients are exchanged through the host.

  ~ planc plan inputs/tiny.yaml --policy none --budget 1G --batch 8 --gpus 2 -o two.plan
  two.plan: none, batch <N> on <N> GPUs, <N> each in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm
  ! planc: note: device k40m (the graph's header)
  ~ planc check two.plan
  valid: tiny, none, peak <size> of <size>, <N> instructions
  ~ planc show two.plan
  plan of tiny, policy none, device k40m
  batch <N> on <N> GPUs, <N> each in <N> round of <N>; <N> ops in the graph, <N> instructions in the body
  budget <size>: arena <size>, reserved <size>; host <size>
  links host to device <N> GB/s + <N> ms, device to host <N> GB/s + <N> ms
  predicted iteration <N> ms, ideal <N> ms
  peak: <size> live at op last.grad; largest:
   <size>  b
   <size>  b.grad
   <size>  a
   <size>  x
   <size>  the other replicas' w.grad
   <size>  w
  ~ planc simulate two.plan
  tiny, none on k40m, batch <N> on <N> GPUs, <N> each in <N> round
  iteration <N> ms   ideal <N> ms
    compute <N> ms   of it recompute <N> ms
    slowed <N> ms   by copies beside it
    waits h2d <N> ms <size> moved, too late for <N> ops
    waits d2h <N> ms <size> moved
    waits launch <N> ms
  first iteration <N> ms, prologue <N> ms, epilogue <N> ms
  throughput <N>   samples/s, overhead +<N>%, <size> moved
  $ grep -o '^{"memory":"device","gpu":.\|^{"link".*"engine":.' two.plan
  {"memory":"device","gpu":0
  {"link":[1,0],"engine":0
  {"link":[2,0],"engine":0
  {"link":[2,1],"engine":0
  {"link":[0,1],"engine":1
  {"link":[0,2],"engine":1
  {"link":[1,2],"engine":1
  $ grep -o '"replicas":.' two.plan
  "replicas":2
  $ planc simulate two.plan --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(round(d["samples_per_s"] * d["period_ns"] / 1e9, 3))'
  8.0
  $ grep '^{"job"\|^{"stream"' two.plan
  {"job":0,"batch":4,"rounds":[4],"iterations":1,"ideal":21518,"busy":24752,"stall":35248}
  {"stream":"compute","job":0,"memory":0}
  {"stream":"copy","job":0,"engine":0}
  {"stream":"copy","job":0,"engine":1}
  $ planc show two.plan --json | tr ',' '\n' | grep 'batch\|gpus\|shared_link'
  "batch":8
  "gpus":2
  "shared_link":false
  "sub_batch":4

The host runs the GPUs as parts of its arena, each gradient summed to the same bits on all of them.

  $ planc plan graphs/lenet-digits.yaml --policy modnn --budget 450K --batch 64 --gpus 2 -o digits.plan >/dev/null 2>&1
  $ planrun exec digits.plan --data data/digits/digits.csv.gz --iterations 3 --verify | tail -n 1
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms gemm, default, winograd: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  $ planrun exec digits.plan --iterations 2 --synthetic | tail -n 1
  verified: every bit as in the reference

Host memory is there for all of them; what is in one GPU's part of it is told as that.

  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M --batch 8 --gpus 2 --host-budget 8K -o x.plan
  ! planc: note: device k40m (the graph's header)
  ! planc: note: the least feasible host budget of vdnn-all is 24576 bytes (24.00 KiB); there:
  ! host peak on each of 2 GPUs: 12.00 KiB live at op last; largest:
  !       8.00 KiB  b
  !       4.00 KiB  a
  ! planc: does not fit a host budget of 8.00 KiB: policy vdnn-all, in its last attempt, took 24576 bytes of host memory, the budget is 8192: on each of 2 GPUs b of 8192 bytes finds no place at op last beside 4096 bytes, the largest a of 4096
  [1]

The link to the host may be one for all of them.

  $ planc plan inputs/tiny.yaml --policy none --budget 1G --batch 8 --gpus 2 --shared-link -o one.plan 2>/dev/null | head -n 1
  one.plan: none, batch 8 on 2 GPUs with one link, 4 each in 1 round of 4
  $ grep -o '^{"link":\[[0-3],[0-3]\]\|"bus":.' one.plan | paste - -
  {"link":[1,0]	"bus":0
  {"link":[2,0]	"bus":0
  {"link":[2,1]	"bus":0
  {"link":[0,1]	"bus":1
  {"link":[0,2]	"bus":1
  {"link":[1,2]	"bus":1
  $ ns() { planc simulate "$1" --json | tr ',' '\n' | sed -n 's/"period_ns"://p'; }
  > test "$(ns one.plan)" -gt "$(ns two.plan)" && echo slower
  slower

Policies side by side on them.

  ~ planc compare inputs/tiny.yaml --budget 1G --batch 8 --gpus 2 --shared-link --policies ideal,none,modnn 2>/dev/null | head -n 3
  tiny, batch <N> on <N> GPUs of k40m with one link, budget <size>
  policy       least budget  round        iteration overhead         peak          out           in  means
  ideal                   - <N> <N> ms  +<N>% <size> <size> <size>  everything stays
  $ planc compare inputs/tiny.yaml --budget 1G --batch 8 --gpus 2 --policies none --json 2>/dev/null | tr ',' '\n' | grep '"batch\|gpus\|link'
  "batch":8
  "gpus":2
  "shared_link":false

The parts are equal, and a batch that is coupled is parted only if that is asked for.

  $ planc plan inputs/tiny.yaml --policy none --batch 9 --gpus 2 -o x.plan
  ! planc: note: device k40m (the graph's header)
  ! planc: a batch of 9 has no 2 equal parts
  [2]
  $ planc plan inputs/tiny.yaml --policy none --batch 5000 --gpus 5000 --device k40m -o x.plan
  ! planc: --gpus 5000: not an integer from 1 to 4096
  [2]
  $ planc plan graphs/resnet34.yaml --policy none --batch 8 --gpus 2 --budget 12G -o x.plan
  ! planc: note: graphs/resnet34.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: graph resnet34 has ops that couple the samples of a batch (batch normalisation): running it in parts on several GPUs changes its results; --split-batch-norm allows it
  [2]

What the other GPUs send is told from the gradient of that name.

  $ planc plan inputs/tiny.yaml --policy vdnn-all --gpus 512 --batch 512 -m 300K -o x.plan 2>&1 | grep -c "the other replicas' w.grad"
  2
  $ planc plan inputs/tiny.yaml --policy modnn --gpus 512 --batch 512 -m 300K -o x.plan 2>&1 | grep -c "the other replicas' w.grad"
  2
