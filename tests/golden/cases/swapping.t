Baselines that swap, or swap and recompute, run a transformer in two thirds of its memory, bit for bit.

  $ for policy in naive prefetch-1 lms capuchin tensile superneurons; do
  >   planc plan graphs/tiny-transformer.yaml --batch 64 --policy $policy --budget 1.5M -o x.plan >/dev/null 2>&1 &&
  >     planc check x.plan --budget 1.5M --graph graphs/tiny-transformer.yaml | cut -d, -f1,2
  >   planrun exec x.plan --data data/digits/digits.csv.gz --iterations 2 --verify --poison | tail -n 1
  > done
  valid: tiny-transformer, naive
  verified: every bit as in the reference
  valid: tiny-transformer, prefetch-1
  verified: every bit as in the reference
  valid: tiny-transformer, lms
  verified: every bit as in the reference
  valid: tiny-transformer, capuchin
  verified: every bit as in the reference
  valid: tiny-transformer, tensile
  verified: every bit as in the reference
  valid: tiny-transformer, superneurons
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with

A budget that cannot be met is an answer as with other policies: the least one, and what is live there.

  ~ planc plan graphs/tiny-transformer.yaml --batch 64 --policy lms --budget 400K -o x.plan
  ! planc: note: graphs/tiny-transformer.yaml has no backward ops: planned for training with adam (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: the least feasible budget of lms is <N> bytes (<size>), as far as a few plans can tell; there:
  ! peak: <size> live at op layer1.attention.scores.bgrad; largest:
  !  <size>  d.layer1.attention.k.heads.y
  !  <size>  d.layer1.attention.scores.y
  !  <size>  d.layer1.attention.v.heads.y
  !  <size>  layer1.attention.k.heads.y
  !  <size>  layer1.attention.q.heads.y
  !  <size>  pixels
  !  <size>  layer1.fc1.w
  !  <size>  layer1.fc1.w.grad
  !  <size> <N> more
  ! planc: does not fit <size>: policy lms, in its last attempt, took <N> bytes of device memory, the budget is <N>: d.layer1.attention.v.heads.y of <N> bytes finds no place at op layer1.attention.scores.bgrad beside <N> bytes, the largest d.layer1.attention.scores.y of <N> and layer1.attention.q.heads.y of <N>
  [1]

Of the tensors `tensile` may swap a share: all, unless told otherwise, and not none.

  $ planc plan graphs/tiny-transformer.yaml --batch 64 --policy tensile -o all.plan >/dev/null 2>&1
  $ planc plan graphs/tiny-transformer.yaml --batch 64 --policy tensile --swap-rate 100 -o 100.plan >/dev/null 2>&1
  $ planc plan graphs/tiny-transformer.yaml --batch 64 --policy tensile --swap-rate 5 -o 5.plan >/dev/null 2>&1
  $ cmp all.plan 100.plan && test "$(grep -c '"copy".*"s":2' 5.plan)" -lt "$(grep -c '"copy".*"s":2' all.plan)" && echo less
  less
  $ planc plan graphs/tiny-transformer.yaml --policy tensile --swap-rate 0 2>&1 | tail -n 1
  planc: --swap-rate 0: not an integer from 1 to 100
