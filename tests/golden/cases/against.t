A trace of a run stands beside the prediction. This one is made up: each op takes 4 us and each copy 2 ns a byte, with
half a microsecond before everything.

  $ planc simulate data/timeline/tiny.plan --against data/timeline/tiny.json
  tiny, vdnn-all on k40m, batch 4 in 1 round
  iteration            0.079 ms   ideal 0.021 ms
    compute            0.021 ms   of it recompute 0.000 ms
    slowed             0.000 ms   by copies beside it
    waits h2d          0.032 ms   20.00 KiB moved, too late for 4 ops
    waits d2h          0.024 ms   12.00 KiB moved
    waits launch       0.000 ms
  first iteration 0.082 ms, prologue 0.015 ms, epilogue 0.010 ms
  throughput          50382.276   samples/s, overhead +269.0%, 32.00 KiB moved
  against data/timeline/tiny.json, 3 periods, 0.078 ms to 0.078 ms
    with waits                            predicted         measured    ratio
    iteration                              0.079 ms         0.078 ms    0.984
      with its ops as measured             0.081 ms         0.078 ms    0.961
    4x copy in                             0.042 ms         0.043 ms    1.023
    3x copy out                            0.031 ms         0.026 ms    0.853
    3x my.op_grad                          0.009 ms         0.012 ms    1.267
    3x my.op                               0.009 ms         0.012 ms    1.279
    1x sgd                                 0.003 ms         0.004 ms    1.284
  compute stream 0
    busy                                   0.022 ms         0.028 ms    1.274
    waits for copies in                    0.032 ms         0.030 ms    0.954
    waits for copies out                   0.024 ms         0.018 ms    0.728
    waits for other streams                0.000 ms         0.000 ms        -
    launches and hand-overs                0.000 ms         0.001 ms        -
  $ planc simulate data/timeline/tiny.plan --against data/timeline/tiny.json --json
  {"planc":"simulate/1","policy":"vdnn-all","period_ns":79393,"averaged":null,"ideal_ns":21518,"first_period_ns":82521,"prologue_ns":15102,"epilogue_ns":10102,"compute_ns":21518,"recompute_ns":0,"slowdown_ns":539,"stall_h2d_ns":32468,"stall_d2h_ns":24868,"stall_store_ns":0,"stall_load_ns":0,"stall_launch_ns":0,"misses":4,"h2d_bytes":20480,"d2h_bytes":12292,"store_bytes":0,"load_bytes":0,"h2d_ns":42040,"d2h_ns":31225,"store_ns":0,"load_ns":0,"peak_bytes":21504,"live_peak_bytes":21504,"overhead_ppm":2689608,"samples_per_s":50382.275515,"moved_bytes":32772,"msr_ppm":null,"eor_ppm":null,"eor_excess_ppm":null,"cbr_ppm":null,"vanilla_ns":null,"vanilla_bytes":null,"retimed_ops":null,"kept_ops":null,"against":{"trace":"data/timeline/tiny.json","periods":3,"predicted_ns":79393,"measured_ns":78151,"ratio_ppm":984356,"least_ns":78151,"most_ns":78151,"predicted_as_measured_ns":81295,"classes":[{"class":"copy in","count":4,"predicted_ns":42040,"measured_ns":43024,"ratio_ppm":1023406},{"class":"copy out","count":3,"predicted_ns":31225,"measured_ns":26632,"ratio_ppm":852906},{"class":"my.op_grad","count":3,"predicted_ns":9508,"measured_ns":12045,"ratio_ppm":1266827},{"class":"my.op","count":3,"predicted_ns":9421,"measured_ns":12045,"ratio_ppm":1278526},{"class":"sgd","count":1,"predicted_ns":3128,"measured_ns":4015,"ratio_ppm":1283567}],"streams":[{"stream":0,"predicted":{"busy_ns":22057,"wait_in_ns":32468,"wait_out_ns":24868,"wait_store_ns":0,"wait_load_ns":0,"wait_compute_ns":0,"other_ns":0},"measured":{"busy_ns":28105,"wait_in_ns":30989,"wait_out_ns":18102,"wait_store_ns":0,"wait_load_ns":0,"wait_compute_ns":0,"other_ns":1000}}]}}

A trace belongs to one plan.

  $ planc plan inputs/tiny.yaml --policy none -o tiny.plan >/dev/null 2>&1
  > planc simulate tiny.plan --against data/timeline/tiny.json
  ! planc: data/timeline/tiny.json was measured with another plan of the same graph
  [4]
  $ sed '3s/"budget":1048576/"budget":1048577/' data/timeline/tiny.plan > other.plan
  > planc simulate other.plan --against data/timeline/tiny.json --json
  ! planc: data/timeline/tiny.json was measured with another plan of the same graph
  [4]

What is wrong with a trace is named with its place.

  $ planc simulate data/timeline/tiny.plan --against nowhere.json
  ! planc: nowhere.json: No such file or directory
  [3]
  $ planc simulate data/timeline/tiny.plan --against data/timeline/tiny.plan
  ! planc: data/timeline/tiny.plan:2: text after the end of the JSON value
  [3]
  $ for from in '"instr":6,' '"ts":9.193' '"cat":"exec"' '"period":5' '"periods":3' '"tid":2,"args":{"instr"'; do
  >   sed "0,/$from/s/$from/\"x\":1,&/" data/timeline/tiny.json > x.json
  >   planc simulate data/timeline/tiny.plan --against x.json
  > done
  ! planc: x.json: traceEvents[4].args.x: unknown key
  ! planc: x.json: traceEvents[4].x: unknown key
  ! planc: x.json: traceEvents[4].x: unknown key
  ! planc: x.json: traceEvents[3].args.x: unknown key
  ! planc: x.json: otherData.x: unknown key
  ! planc: x.json: traceEvents[3].x: unknown key
  [3]
  $ sed '$d' data/timeline/tiny.json > cut.json; planc simulate data/timeline/tiny.plan --against cut.json
  ! planc: cut.json:48: not valid JSON
  [3]
  $ sed '9d' data/timeline/tiny.json > less.json; planc simulate data/timeline/tiny.plan --against less.json
  ! planc: less.json: traceEvents: 41 spans, but 3 periods of 14 instructions
  [3]
  $ sed 's/"ts":9.193/"ts":8.692/' data/timeline/tiny.json > x.json
  > sed 's/"ts":9.193/"ts":999.1/' data/timeline/tiny.json > y.json
  > planc simulate data/timeline/tiny.plan --against x.json | sed -n '/other streams/,$p'
  > planc simulate data/timeline/tiny.plan --against y.json
    waits for other streams                0.000 ms         0.000 ms        -
    launches and hand-overs                0.000 ms         0.001 ms        -
  ! planc: y.json: traceEvents: period 5: instruction 14 begins before stream 0 is free
  [3]
