Training in mixed precision: bf16 activations, f32 weights, and casts between them.

  $ planc train graphs/lenet-digits.yaml --precision bf16 -o bf16.yaml
  bf16.yaml: lenet-digits, 44 ops
  $ grep conv1.w bf16.yaml
    conv1.w: param f32[16,1,5,5]
    conv1.w.bf16: bf16[16,1,5,5]
    d.conv1.w.bf16: bf16[16,1,5,5]
    conv1.w.grad: grad f32[16,1,5,5]
    - {op: conv1.w.bf16, type: cast, in: [conv1.w], out: [conv1.w.bf16]}
    - {op: conv1, type: conv2d, in: [images.bf16, conv1.w.bf16, conv1.b], out: [conv1.y], attrs: {pad: [2, 2], stride: [1, 1]}}
    - {op: conv1.wgrad, type: conv2d_wgrad, phase: backward, in: [images.bf16, d.conv1.y], out: [d.conv1.w.bf16], attrs: {pad: [2, 2], stride: [1, 1]}}
    - {op: conv1.w.bf16.grad, type: cast, phase: backward, in: [d.conv1.w.bf16], out: [conv1.w.grad]}
    - {op: conv1.w.sgd, type: sgd, phase: optimizer, in: [conv1.w, conv1.w.grad], out: [conv1.w], attrs: {lr: 0.01}}
  $ planc show bf16.yaml
  graph lenet-digits, NCHW
  origin: after LeCun et al., Gradient-based learning applied to document recognition, Proc. IEEE, 1998
  forward       15 ops, 0.013 GFLOP at batch 64
  backward      21 ops, 0.023 GFLOP at batch 64
  optimizer      8 ops, 0.000 GFLOP at batch 64
  46 tensors in 41 storages, 9514 parameters
  memory: all data 628.64 KiB, most live at once 400.70 KiB at op pool1.grad; with parameters, state and gradients kept, in rounds of one sample at least 84.83 KiB at op conv2
  $ planc train graphs/lenet-digits.yaml -o f32.yaml
  f32.yaml: lenet-digits, 35 ops
  $ planc train graphs/lenet-digits.yaml --precision f32 | cmp - f32.yaml && echo same
  same
  $ planc train graphs/lenet-digits.yaml --precision tf32 | sed 's/, tf32: 1//; s/, attrs: {tf32: 1}//' | cmp - f32.yaml && echo same
  same
  $ planc train graphs/lenet-digits.yaml --precision tf32 | grep -c 'tf32: 1'
  11

It needs less memory, and swapping and rounds change no bit of it either. A plan made for another device runs on the host
as well as one made with the host's own profile, whose workspaces hold what is widened to f32.

  $ planc plan f32.yaml --policy none --json -o f32.plan 2>/dev/null | grep -o '"peak_bytes":[0-9]*'
  "peak_bytes":1206272
  $ planc plan bf16.yaml --policy none --json -o resident.plan 2>/dev/null | grep -o '"peak_bytes":[0-9]*'
  "peak_bytes":885376
  $ for policy in modnn vdnn-all chen; do
  >   planc plan bf16.yaml --budget 340K --policy $policy -o bf16.plan >/dev/null 2>&1
  >   planrun exec bf16.plan --data data/digits/digits.csv.gz --iterations 3 --verify --poison --jitter 4 | tail -1
  > done
  verified: every bit as in the reference
  verified: every bit as in the reference
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms default, gemm: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms default, gemm: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms default, gemm: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  $ planc plan bf16.yaml --sub-batch 24 --budget 340K -o rounds.plan >/dev/null 2>&1
  $ planrun exec rounds.plan --iterations 3 --verify --poison | tail -1
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms default, gemm, winograd: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  $ planrun profile bf16.yaml --batches 64 -o host.json --repetitions 1 >/dev/null 2>&1
  $ planc plan bf16.yaml --profile host.json --policy none -o host.plan >/dev/null 2>&1
  $ planrun exec host.plan --iterations 3 --verify --poison | tail -1
  verified: every bit as in the reference

A graph may be bf16 through and through, gradients that are added up over rounds included.

  $ sed 's/f32\[/bf16[/' graphs/lenet-digits.yaml > all.yaml
  $ planc plan all.yaml --sub-batch 24 --policy none -o all.plan >/dev/null 2>&1
  ~ planrun exec all.plan --iterations 3 --verify --poison
  iterations <N>
  peak <size>, host <size>
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms gemm, default, winograd: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  $ planc train all.yaml --precision bf16
  ! planc: all.yaml: precision: graph lenet-digits has its own mixed precision: tensor images is bf16
  [3]
  $ planc train bf16.yaml --precision tf32
  ! planc: bf16.yaml: graph lenet-digits has backward or optimizer ops already, and a precision is of the forward graph that they are derived from; of a step in PyTorch, record or export one under torch.autocast: its graph has the casts
  [3]
  $ planc train graphs/lenet-digits.yaml --precision f16
  ! planc: no precision is called "f16": f32, tf32 and bf16 are
  [2]
