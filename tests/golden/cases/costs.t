A plan at other times than it was planned with: those that a profile lists for its ops.

  $ planc plan inputs/tiny.yaml --policy none --budget 1M -o tiny.plan >/dev/null 2>&1
  > op() { printf '{"op":"%s","variants":[{"algorithm":"default","deterministic":true,"points":[' "$1"
  >        printf '{"batch":4,"time_ns":%s,"workspace_bytes":0,"busy_ppm":1000000}]}]}' "$2"; }
  > profile() { sed '$d' "$PLANC_PROFILES/k40m.json"; printf ',"ops":['; op "$1" "$2"; printf ','; op "$3" "$4"; printf ']}'; }
  > profile first 1000000 last 2000000 > slow.json; profile other 1 another 2 > none.json
  > planc simulate tiny.plan --costs slow.json | grep -v 'ideal\|throughput\|waits\|first\|compute'
  tiny, none on k40m, batch 4 in 1 round
  at other times than it was planned with: 2 of 7 ops
    slowed             0.000 ms   by copies beside it
  $ planc simulate tiny.plan --json | tr ',' '\n' | grep 'compute_ns\|_ops'
  "compute_ns":21518
  "recompute_ns":0
  "retimed_ops":null
  "kept_ops":null}
  $ planc simulate tiny.plan --costs slow.json --json | tr ',' '\n' | grep 'compute_ns\|_ops'
  "compute_ns":3015397
  "recompute_ns":0
  "retimed_ops":2
  "kept_ops":5}

The ideal has the times that are kept, too: nothing of this plan is far from it.

  $ planc simulate tiny.plan --costs slow.json --json | tr ',' '\n' | grep '"ideal_ns\|compute_ns'
  "ideal_ns":3015397
  "compute_ns":3015397
  "recompute_ns":0

The plan without scheduling that it is compared with runs at these times, too.

  $ planc simulate tiny.plan --costs slow.json --vanilla tiny.plan | tail -n 1
  against tiny.plan: MSR 0.0000, EOR 1.0000 (excess +0.0%), CBR 0.0000

Ops match by name: that the profile was made for another graph is told, and once.

  $ sed 's/"planc-profile": 1,/&"graph_hash":"0123456789abcdef",/' slow.json > theirs.json
  > planc simulate tiny.plan --costs theirs.json --vanilla tiny.plan | head -n 2
  tiny, none on k40m, batch 4 in 1 round
  at other times than it was planned with: 2 of 7 ops
  ! planc: note: theirs.json was made for another graph: 2 of 7 ops are in it by name

  $ planc simulate tiny.plan --costs none.json
  ! planc: none.json: the profile has no times for the plan's ops with the plan's algorithms
  [4]
  $ planc simulate tiny.plan --costs nowhere.json
  ! planc: nowhere.json: No such file or directory
  [3]
  $ planc simulate tiny.plan --costs tiny.plan
  ! planc: tiny.plan: a profile is asked for, and this is a plan
  [3]

Times may be so long that no plan can state what a period takes, or that it cannot be simulated. Every policy says so.

  $ planc predict inputs/tiny.yaml --device k40m --batch 4 -o p.json >/dev/null 2>&1
  > sed 's/"time_ns":[0-9]*/"time_ns":8900000000000000/g' p.json > ages.json
  > sed 's/"time_ns":[0-9]*/"time_ns":890000000000000/g' p.json > years.json
  > for policy in none modnn naive window best; do planc plan inputs/tiny.yaml --profile ages.json --policy $policy -o x.plan; echo $?; done 2>&1 | grep -v note | sort | uniq -c
        5 3
        5 planc: lowering: the ops of a period take too long: together more than 2^53 ns
  $ planc plan inputs/tiny.yaml --profile years.json --policy modnn -o x.plan
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: budget 12.00 GiB (device k40m)
  ! planc: simulation: a time of 890000000000000 ns is too long to simulate
  [3]
