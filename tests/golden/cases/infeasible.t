Where a policy cannot meet a budget it names the least one that it can, the op that binds there and what is live.
Parameters, gradients and data of inputs/tiny.yaml are of round sizes.

  $ planc plan inputs/tiny.yaml --policy none --budget 24K
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: the least feasible budget of none is 25600 bytes (25.00 KiB); there:
  ! peak: 25.00 KiB live at op last.grad; largest:
  !       8.00 KiB  b
  !       8.00 KiB  b.grad
  !       4.00 KiB  a
  !       4.00 KiB  x
  !       1.00 KiB  w
  ! planc: does not fit 24.00 KiB: policy none, in its last attempt, took 25600 bytes of device memory, the budget is 24576: b.grad of 8192 bytes finds no place at op last.grad beside 17408 bytes, the largest b of 8192 and x of 4096
  [1]
  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 10K
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: the least feasible budget of vdnn-all is 21504 bytes (21.00 KiB); there:
  ! peak: 21.00 KiB live at op last.grad; largest:
  !       8.00 KiB  b
  !       8.00 KiB  b.grad
  !       4.00 KiB  a
  !       1.00 KiB  w
  ! planc: does not fit 10.00 KiB: policy vdnn-all, in its last attempt, took 21504 bytes of device memory, the budget is 10240: b.grad of 8192 bytes finds no place at op last.grad beside 13312 bytes, the largest b of 8192 and a of 4096
  [1]
  $ planc plan inputs/tiny.yaml --policy modnn --budget 1K
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: the least feasible budget of modnn is 6144 bytes (6.00 KiB); there:
  ! peak: 6.00 KiB live at op second; largest:
  !       2.00 KiB  b
  !       1.00 KiB  a
  !       1.00 KiB  w
  !       1.00 KiB  w.grad
  !       1.00 KiB  x
  ! planc: does not fit 1.00 KiB: op last.grad alone needs 4096 bytes at 1 sample, beside 2048 bytes of parameters, state and gradients that stay: 6144 bytes at the least
  [1]
  $ ls *.plan
  ! ls: cannot access '*.plan': No such file or directory
  [2]

The least budget is feasible and no smaller one is.

  $ planc plan inputs/tiny.yaml --policy none --budget 25600 -o least.plan 2>/dev/null
  least.plan: none, batch 4 in 1 round of 4
    peak      25.00 KiB of 25.00 KiB, host 0 B
    iteration 0.045 ms, ideal 0.021 ms (+109.1 %)
    bound     0.035 ms, than which no plan in this order and such rounds is faster (+28.6 %)
    moved     4 B out, 4.00 KiB in; recomputed 0.000 ms
    why       every op has its fastest algorithm
  $ planc plan inputs/tiny.yaml --policy none --budget 25599 2>&1 | tail -n 1
  planc: does not fit 25.00 KiB: policy none, in its last attempt, took 25600 bytes of device memory, the budget is 25599: b.grad of 8192 bytes finds no place at op last.grad beside 17408 bytes, the largest b of 8192 and x of 4096
  $ planc plan inputs/tiny.yaml --policy modnn --budget 6144 -o least.plan 2>/dev/null | sed -n 2p
    peak      6.00 KiB of 6.00 KiB, host 3.00 KiB
  $ planc plan inputs/tiny.yaml --policy modnn --budget 6143 2>&1 | tail -n 1
  planc: does not fit 6.00 KiB: op last.grad alone needs 4096 bytes at 1 sample, beside 2048 bytes of parameters, state and gradients that stay: 6144 bytes at the least

What the device reserves for itself counts too, and is named.

  $ sed 's/"reserved_bytes": 0,/"reserved_bytes": 1024,/' "$PLANC_PROFILES/k40m.json" > reserving.json
  $ planc plan inputs/tiny.yaml --policy modnn --device reserving.json --budget 7167 2>&1 | tail -n 1
  planc: does not fit 7.00 KiB: op last.grad alone needs 4096 bytes at 1 sample, beside 2048 bytes of parameters, state and gradients that stay and 1024 bytes reserved by the device: 7168 bytes at the least
  $ planc plan inputs/tiny.yaml --policy modnn --device reserving.json --budget 7168 -o least.plan 2>/dev/null | sed -n 2p
    peak      7.00 KiB of 7.00 KiB, host 3.00 KiB

Whatever the policy: it fits a budget exactly when its least budget is no larger.

  $ for budget in 5000 6144 9000 12000 20000 22000 26000; do
  >   planc compare inputs/tiny.yaml --budget $budget --json 2>/dev/null
  > done | python3 -c 'import json, sys
  > tables = [json.loads(line) for line in sys.stdin]
  > rows = [(table["budget_bytes"], row) for table in tables for row in table["rows"] if row["policy"] != "ideal"]
  > print({row["feasible"] == (row["least_budget"] <= budget) for budget, row in rows})
  > print({row["feasible"] for budget, row in rows} == {False, True})'
  {True}
  True

Host memory can be what is missing.

  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M --host-budget 1K
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: the least feasible host budget of vdnn-all is 12288 bytes (12.00 KiB); there:
  ! host peak: 12.00 KiB live at op last; largest:
  !       8.00 KiB  b
  !       4.00 KiB  a
  ! planc: does not fit a host budget of 1.00 KiB: policy vdnn-all, in its last attempt, took 12288 bytes of host memory, the budget is 1024: b of 8192 bytes finds no place at op last beside 4096 bytes, the largest a of 4096
  [1]

Of the fastest policy the least budget is that of whichever needs least, in smaller rounds than it takes by itself where it
then needs less. What binds on the host is told as well.

  $ planc plan inputs/tiny.yaml --budget 1K
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: the least feasible budget of auto is 4096 bytes (4.00 KiB), with policy naive in rounds of 1, as far as a few plans can tell; there:
  ! peak: 4.00 KiB live at op last.grad; largest:
  !       2.00 KiB  b
  !       2.00 KiB  b.grad
  ! planc: does not fit 1.00 KiB: policy naive, in its last attempt, took 4096 bytes of device memory, the budget is 1024: b of 2048 bytes finds no place at op last.grad beside 2048 bytes, the largest b.grad of 2048
  [1]
  $ planc plan inputs/tiny.yaml --budget 6400 -o least.plan 2>/dev/null | sed -n 1,2p
  least.plan: priced, batch 4 in 4 rounds of 1
    peak      6.00 KiB of 6.25 KiB, host 1.00 KiB
  $ planc plan inputs/tiny.yaml --budget 4K -o least.plan 2>/dev/null | sed -n '1,2p; /why/p'
  least.plan: priced, batch 4 in 4 rounds of 1
    peak      4.00 KiB of 4.00 KiB, host 3.00 KiB
    why       no policy fits in rounds of its own choice; in smaller ones no other policy that fits is faster, of those asked before it window in rounds of 1 was the fastest with 0.326 ms; priced: 15 of 15 gaps between uses are spent off the device, 8 of them behind a copy out; the best of 20370 choices, 4 of them simulated
  $ planc plan inputs/tiny.yaml --budget 17K --host-budget 0 --policy naive
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: the least feasible host budget of naive is 13312 bytes (13.00 KiB); there:
  ! host peak: 13.00 KiB live at op last; largest:
  !       8.00 KiB  b
  !       4.00 KiB  a
  !       1.00 KiB  w
  ! planc: does not fit a host budget of 0 B: policy naive, in its last attempt, took 13312 bytes of host memory, the budget is 0: b of 8192 bytes finds no place at op last beside 5120 bytes, the largest a of 4096 and w of 1024
  [1]
  $ planc plan inputs/tiny.yaml --budget 1K --host-budget 0 --policy naive
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: the least feasible budget of naive is 16384 bytes (16.00 KiB), with a host without limit; there:
  ! peak: 16.00 KiB live at op last.grad; largest:
  !       8.00 KiB  b
  !       8.00 KiB  b.grad
  ! planc: note: it needs a host budget of 13312 bytes (13.00 KiB) as well
  ! planc: does not fit 1.00 KiB: policy naive, in its last attempt, took 16384 bytes of device memory, the budget is 1024: b of 8192 bytes finds no place at op last.grad beside 8192 bytes, the largest b.grad of 8192
  [1]

A policy swaps no more than the host has room for, and keeps the rest: then the host's budget is what fails, not the
device's, of which less would do with a larger host.

  ~ planc plan graphs/lenet-digits.yaml --policy tensile --budget 690K --host-budget 0 2>&1 | grep 'least\|planc: does'
  planc: note: the least feasible host budget of tensile is <N> bytes (<size>), as far as a few plans can tell; there:
  planc: does not fit <size>, as what has no room in a host budget of <size> stays on the device: policy tensile, in its last attempt, took <N> bytes of device memory, the budget is <N>: fc1.w of <N> bytes finds no place at op pool1.grad beside <N> bytes, the largest conv1.y of <N> and d.conv1.y of <N>
  $ planc plan graphs/lenet-digits.yaml --policy tensile --budget 690K --host-budget 24K -o less.plan >/dev/null 2>&1 && planc plan graphs/lenet-digits.yaml --policy tensile --budget 680K --host-budget 400K -o less.plan >/dev/null 2>&1 && echo both
  both
  $ planc compare graphs/lenet-digits.yaml --policies tensile --budget 690K --host-budget 0 --json 2>/dev/null | grep -o '"least_budget":[0-9]*' > least; planc compare graphs/lenet-digits.yaml --policies tensile --budget 690K --json 2>/dev/null | grep -o '"least_budget":[0-9]*' | cmp - least && echo as without a limit
  as without a limit

Where no op needs any memory, the first is named all the same.

  $ printf 'planc-graph: 1\nname: none\ntensors:\n  x: param f32[8]\nops:\n  - {op: a, type: t.a}\n' > none.yaml; planc plan none.yaml --inference --device k40m --reserved 1M --policy modnn --budget 1K 2>&1 | tail -1
  planc: does not fit 1.00 KiB: op a alone needs 0 bytes at 1 sample, beside 256 bytes of parameters, state and gradients that stay and 1048576 bytes reserved by the device: 1048832 bytes at the least
