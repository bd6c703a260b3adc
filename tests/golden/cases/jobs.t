A plan of two jobs, made by hand: reports show each, and what has one name in both is told apart.

  $ planc show data/plan/jobs.plan
  plan of narrow+wide, policy hand, device toy
  2 jobs; 170 instructions in the body
  budget 5.75 KiB: arena 5.75 KiB, reserved 0 B; host 4.50 KiB
  links host to device 1.000 GB/s + 0.000 ms, device to host 1.000 GB/s + 0.000 ms
  predicted period 0.041 ms, ideal 0.028 ms
    job 0: narrow, batch 4 in 1 round of 4, 2 iterations
      ideal 0.020 ms, computes 0.034 ms, waits 0.007 ms
      moved 2.51 KiB out, 3.50 KiB in; recomputed 0.000 ms
    job 1: wide, batch 6 in 2 rounds of 4, 1 iteration
      ideal 0.008 ms, computes 0.014 ms, waits 0.027 ms
      moved 3.01 KiB out, 6.00 KiB in; recomputed 0.000 ms
  peak: 5.50 KiB live at op job 1: f; largest:
        2.00 KiB  job 1: a
        2.00 KiB  job 1: x
           512 B  job 0: a
           512 B  job 0: x
           256 B  job 0: w
           256 B  workspace
  $ planc simulate data/plan/jobs.plan
  narrow+wide, hand on toy, 2 jobs
  period               0.041 ms   ideal 0.028 ms
    compute            0.048 ms   of it recompute 0.000 ms
    slowed             0.000 ms   by copies beside it
    waits h2d          0.002 ms   9.50 KiB moved, too late for 7 ops
    waits d2h          0.001 ms   5.52 KiB moved
    waits launch       0.000 ms
  first period 0.049 ms, prologue 0.000 ms, epilogue 0.000 ms
  throughput         338107.083   samples/s, overhead +47.9%, 15.02 KiB moved
    job 0: narrow, batch 4 in 1 round of 4, 2 iterations
      ideal 0.020 ms, computes 0.034 ms, waits 0.007 ms
      moved 2.51 KiB out, 3.50 KiB in; recomputed 0.000 ms
    job 1: wide, batch 6 in 2 rounds of 4, 1 iteration
      ideal 0.008 ms, computes 0.014 ms, waits 0.027 ms
      moved 3.01 KiB out, 6.00 KiB in; recomputed 0.000 ms
  $ planc check data/plan/jobs.plan
  valid: narrow+wide, hand, 2 jobs (narrow, wide), peak 5.75 KiB of 5.75 KiB, 186 instructions
  $ planc show data/plan/jobs.plan --json | grep -o '"batch":null.*"sub_batch":null\|"jobs":.*\]'
  "batch":null,"gpus":1,"shared_link":false,"rounds":null,"sub_batch":null
  "jobs":[{"graph":"narrow","batch":4,"rounds":1,"sub_batch":4,"iterations":2,"ideal_ns":20000,"busy_ns":34241,"stall_ns":7166,"d2h_bytes":2568,"h2d_bytes":3584,"recompute_ns":0},{"graph":"wide","batch":6,"rounds":2,"sub_batch":4,"iterations":1,"ideal_ns":8000,"busy_ns":14090,"stall_ns":27317,"d2h_bytes":3080,"h2d_bytes":6144,"recompute_ns":0}],"host_budget_bytes":null,"storage_budget_bytes":null,"links":[{"from":"user","to":"device","engine":0,"bytes_per_second":1000000000,"latency_ns":0},{"from":"user","to":"host","engine":0,"bytes_per_second":1000000000,"latency_ns":0},{"from":"host","to":"device","engine":0,"bytes_per_second":1000000000,"latency_ns":0},{"from":"device","to":"user","engine":1,"bytes_per_second":1000000000,"latency_ns":0},{"from":"host","to":"user","engine":1,"bytes_per_second":1000000000,"latency_ns":0},{"from":"device","to":"host","engine":1,"bytes_per_second":1000000000,"latency_ns":0}],"settings":{},"peak":{"live_bytes":5632,"op":"job 1: f","live":[{"storage":"job 1: a","bytes":2048},{"storage":"job 1: x","bytes":2048},{"storage":"job 0: a","bytes":512},{"storage":"job 0: x","bytes":512},{"storage":"job 0: w","bytes":256},{"storage":"workspace","bytes":256}]
  $ planc check data/plan/jobs.plan --json | grep -o '"jobs":.*\]'
  "jobs":[{"graph":"narrow","batch":4,"rounds":1,"sub_batch":4,"iterations":2,"ideal_ns":20000,"busy_ns":34241,"stall_ns":7166,"d2h_bytes":2568,"h2d_bytes":3584,"recompute_ns":0},{"graph":"wide","batch":6,"rounds":2,"sub_batch":4,"iterations":1,"ideal_ns":8000,"busy_ns":14090,"stall_ns":27317,"d2h_bytes":3080,"h2d_bytes":6144,"recompute_ns":0}]

In its run too, which simulate holds against what it predicts. An update needs a device that a profile can describe.

  $ planrun exec data/plan/jobs.plan --synthetic --iterations 3 --trace run.json >/dev/null
  $ planc simulate data/plan/jobs.plan --against run.json | grep -o 'compute stream [0-9]*\|job [0-9]: [a-z]*'
  job 0: narrow
  job 1: wide
  compute stream 0
  compute stream 3
  $ planc update data/plan/jobs.plan --trace run.json -o x.plan
  ! planc: data/plan/jobs.plan: device toy: no profile can describe it
  [1]

A run is of whole periods, and says so where no job comes to the iterations asked for.

  $ planc colocate graphs/lenet-digits.yaml:8:2 graphs/tiny-transformer.yaml:4:3 --budget 4M --policy temporal -o mix.plan >/dev/null 2>&1
  $ planrun exec mix.plan --iterations 3 2>&1 | grep whole
  planrun: note: a run is of whole periods: it ends after at least 4 iterations, not 3
  $ planrun exec mix.plan --iterations 4 2>&1 | grep whole
  [1]
