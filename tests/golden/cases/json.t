--json prints one line of JSON with the version of its format first.

  ~ planc plan inputs/tiny.yaml --json --policy none --budget 1M -o tiny.plan
  {"planc":"plan/1","graph":"tiny","policy":"none","output":"tiny.plan","batch":<N>,"gpus":<N>,"shared_link":false,"rounds":<N>,"sub_batch":<N>,"iterations":<N>,"budget_bytes":<N>,"peak_bytes":<N>,"host_peak_bytes":<N>,"storage_peak_bytes":<N>,"iteration_ns":<N>,"ideal_ns":<N>,"bound_ns":<N>,"d2h_bytes":<N>,"h2d_bytes":<N>,"recompute_ns":<N>,"stall_ns":<N>,"explanation":"every op has its fastest algorithm"}
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ~ planc check tiny.plan --json
  {"planc":"check/1","plan":"tiny.plan","valid":true,"budget_bytes":<N>,"peak_bytes":<N>,"host_peak_bytes":<N>,"storage_peak_bytes":<N>,"touched_bytes":<N>,"instances":<N>,"instructions":<N>,"recomputed":<N>}
  ~ planc simulate tiny.plan --json
  {"planc":"simulate/1","policy":"none","period_ns":<N>,"averaged":null,"ideal_ns":<N>,"first_period_ns":<N>,"prologue_ns":<N>,"epilogue_ns":<N>,"compute_ns":<N>,"recompute_ns":<N>,"slowdown_ns":<N>,"stall_h2d_ns":<N>,"stall_d2h_ns":<N>,"stall_store_ns":<N>,"stall_load_ns":<N>,"stall_launch_ns":<N>,"misses":<N>,"h2d_bytes":<N>,"d2h_bytes":<N>,"store_bytes":<N>,"load_bytes":<N>,"h2d_ns":<N>,"d2h_ns":<N>,"store_ns":<N>,"load_ns":<N>,"peak_bytes":<N>,"live_peak_bytes":<N>,"overhead_ppm":<N>,"samples_per_s":<N>,"moved_bytes":<N>,"msr_ppm":null,"eor_ppm":null,"eor_excess_ppm":null,"cbr_ppm":null,"vanilla_ns":null,"vanilla_bytes":null,"retimed_ops":null,"kept_ops":null}
  ~ planc show tiny.plan --json
  {"planc":"show/1","plan":"tiny","policy":"none","device":"k40m","batch":<N>,"gpus":<N>,"shared_link":false,"rounds":<N>,"sub_batch":<N>,"iterations":<N>,"budget_bytes":<N>,"arena_bytes":<N>,"reserved_bytes":<N>,"host_arena_bytes":<N>,"storage_arena_bytes":<N>,"period_ns":<N>,"ideal_ns":<N>,"instructions":<N>,"lost_bytes":<N>,"host_budget_bytes":null,"storage_budget_bytes":null,"links":[{"from":"host","to":"device","engine":<N>,"bytes_per_second":<N>,"latency_ns":<N>},{"from":"user","to":"device","engine":<N>,"bytes_per_second":<N>,"latency_ns":<N>},{"from":"user","to":"host","engine":<N>,"bytes_per_second":<N>,"latency_ns":<N>},{"from":"device","to":"host","engine":<N>,"bytes_per_second":<N>,"latency_ns":<N>},{"from":"device","to":"user","engine":<N>,"bytes_per_second":<N>,"latency_ns":<N>},{"from":"host","to":"user","engine":<N>,"bytes_per_second":<N>,"latency_ns":<N>}],"settings":{},"peak":{"live_bytes":<N>,"op":"last.grad","live":[{"storage":"b","bytes":<N>},{"storage":"b.grad","bytes":<N>},{"storage":"a","bytes":<N>},{"storage":"x","bytes":<N>},{"storage":"w","bytes":<N>}]}}
  ~ planc show inputs/tiny.yaml --json
  {"planc":"show/1","graph":"tiny","batch":<N>,"ops":<N>,"storages":<N>,"parameters":<N>,"flops":<N>,"batch_coupled":false,"memory":{"all_data_bytes":<N>,"liveness_bytes":<N>,"persistent_bytes":<N>,"lower_bound_bytes":<N>}}
  ~ planc show graphs/lenet-digits.yaml --json
  {"planc":"show/1","graph":"lenet-digits","batch":<N>,"ops":<N>,"storages":<N>,"parameters":<N>,"flops":<N>,"batch_coupled":false,"memory":{"all_data_bytes":<N>,"liveness_bytes":<N>,"persistent_bytes":<N>,"lower_bound_bytes":<N>},"training":{"all_data_bytes":<N>,"liveness_bytes":<N>,"persistent_bytes":<N>,"lower_bound_bytes":<N>}}
  ~ planc compare inputs/tiny.yaml --json --policies ideal,none,modnn --budget 24K
  {"planc":"compare/1","graph":"tiny","device":"k40m","batch":<N>,"gpus":<N>,"shared_link":false,"budget_bytes":<N>,"vanilla_ns":<N>,"vanilla_bytes":<N>,"best":"modnn","rows":[{"policy":"ideal","feasible":true,"unsupported":null,"least_budget":null,"is_least":false,"means":"everything stays","sub_batch":<N>,"iteration_ns":<N>,"ideal_ns":<N>,"peak_bytes":<N>,"host_peak_bytes":<N>,"storage_peak_bytes":<N>,"storage_moved_bytes":<N>,"d2h_bytes":<N>,"h2d_bytes":<N>,"recompute_ns":<N>,"stall_ns":<N>,"overhead_ppm":<N>,"samples_per_s":<N>,"moved_bytes":<N>,"msr_ppm":<N>,"eor_ppm":<N>,"eor_excess_ppm":<N>,"cbr_ppm":<N>},{"policy":"none","feasible":false,"unsupported":null,"least_budget":<N>,"is_least":true,"means":null,"sub_batch":null,"iteration_ns":null,"ideal_ns":null,"peak_bytes":null,"host_peak_bytes":null,"storage_peak_bytes":null,"storage_moved_bytes":null,"d2h_bytes":null,"h2d_bytes":null,"recompute_ns":null,"stall_ns":null,"overhead_ppm":null,"samples_per_s":null,"moved_bytes":null,"msr_ppm":null,"eor_ppm":null,"eor_excess_ppm":null,"cbr_ppm":null},{"policy":"modnn","feasible":true,"unsupported":null,"least_budget":<N>,"is_least":true,"means":"swaps","sub_batch":<N>,"iteration_ns":<N>,"ideal_ns":<N>,"peak_bytes":<N>,"host_peak_bytes":<N>,"storage_peak_bytes":<N>,"storage_moved_bytes":<N>,"d2h_bytes":<N>,"h2d_bytes":<N>,"recompute_ns":<N>,"stall_ns":<N>,"overhead_ppm":<N>,"samples_per_s":<N>,"moved_bytes":<N>,"msr_ppm":<N>,"eor_ppm":<N>,"eor_excess_ppm":<N>,"cbr_ppm":<N>,"explanation":"the fastest of rounds of <N> in <N> ms, <N> without offloading in <N> ms"}]}
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ~ planrun exec tiny.plan --synthetic --json
  {"planrun":"exec/1","loss":null,"losses":[],"accuracy":null,"verified":true,"iterations":<N>,"interrupted":false,"peak_bytes":<N>,"host_peak_bytes":<N>,"storage_peak_bytes":<N>,"taken_bytes":<N>,"run_ns":<N>,"period_ns":null,"plans_adopted":<N>}

A line is JSON to others too.

  $ for command in "check tiny.plan" "simulate tiny.plan" "show tiny.plan" "show graphs/vgg16.yaml" \
  >     "compare inputs/tiny.yaml --budget 24K"; do
  >   planc $command --json 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["planc"])'
  > done
  check/1
  simulate/1
  show/1
  show/1
  compare/1

Figures of the ideal device are of one run, that without scheduling, which is held to no budget.

  $ planc compare graphs/lenet-digits.yaml --device p100 --policies ideal --json 2>/dev/null > ideal.json
  > python3 -c 'import json
  > table = json.load(open("ideal.json")); ideal = table["rows"][0]
  > print(ideal["peak_bytes"] - table["vanilla_bytes"], ideal["iteration_ns"] - table["vanilla_ns"])
  > print(ideal["least_budget"], ideal["is_least"], ideal["msr_ppm"], ideal["eor_ppm"])'
  0 0
  None False 0 1000000

A plan that is not valid or does not fit is an answer too.

  $ planc check tiny.plan --json --budget 20K
  {"planc":"check/1","plan":"tiny.plan","valid":false,"budget_bytes":20480,"exit_code":1,"message":"tiny.plan: needs 25600 bytes on the device (arena 25600, reserved 0), the budget is 20480, 5120 too few"}
  ! planc: tiny.plan: needs 25600 bytes on the device (arena 25600, reserved 0), the budget is 20480, 5120 too few
  [1]
