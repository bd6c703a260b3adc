What the host budget has no room for goes on to storage, where the device's profile knows one, and comes back.

  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M --storage 1G
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: --storage takes what --host-budget has no room for: give that, too
  [2]
  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M --host-budget 8K --storage 1G
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: the profile of device k40m says nothing of storage: planrun profile --storage measures it
  [2]
  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M --host-budget 8K
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: the least feasible host budget of vdnn-all is 12288 bytes (12.00 KiB); there:
  ! host peak: 12.00 KiB live at op last; largest:
  !       8.00 KiB  b
  !       4.00 KiB  a
  ! planc: does not fit a host budget of 8.00 KiB: policy vdnn-all, in its last attempt, took 12288 bytes of host memory, the budget is 8192: b of 8192 bytes finds no place at op last beside 4096 bytes, the largest a of 4096
  [1]
  $ sed 's/"duplex_ppm"/"storage": {"write": {"bytes_per_second": 1000000000, "latency_ns": 1000}, "read": {"bytes_per_second": 1000000000, "latency_ns": 1000}}, &/' data/profile/toy.json > p.json
  ~ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M --host-budget 8K --storage 1G --profile p.json -o x.plan
  x.plan: vdnn-all, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>, storage <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in, <size> to storage, <size> back; recomputed <N> ms
    why       attempt <N> of <N> is the first that fits: it offloads all inputs and takes the fastest algorithms
  ! planc: note: p.json lists none of the graph's <N> ops: their costs are predicted
  ! planc: note: batch <N> (the graph's header)
  ~ planc check x.plan && planc show x.plan | grep storage
  valid: tiny, vdnn-all, peak <size> of <size>, host <size> of <size>, storage <size> of <size>, <N> instructions
  budget <size>: arena <size>, reserved <size>; host <size> of <size>; storage <size> of <size>
  links host to device <N> GB/s + <N> ms, device to host <N> GB/s + <N> ms, host to storage <N> GB/s + <N> ms, storage to host <N> GB/s + <N> ms
  storage peak: <size> live at op second; largest:
  $ grep '^{"memory"\|^{"stream"' x.plan
  {"memory":"device","gpu":0,"bytes":1000000000,"budget":1048576,"reserved":1000,"arena":21504,"align":256}
  {"memory":"host","bytes":-1,"budget":8192,"reserved":0,"arena":8192,"align":256}
  {"memory":"storage","bytes":-1,"budget":1073741824,"reserved":0,"arena":4096,"align":4096}
  {"memory":"user"}
  {"stream":"compute","job":0,"memory":0}
  {"stream":"copy","job":0,"engine":0}
  {"stream":"copy","job":0,"engine":1}
  {"stream":"copy","job":0,"engine":2}
  {"stream":"copy","job":0,"engine":3}
  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M --host-budget 8K --storage 1K --profile p.json -o x.plan
  ! planc: note: p.json lists none of the graph's 7 ops: their costs are predicted
  ! planc: note: batch 4 (the graph's header)
  ! planc: note: the least feasible storage of vdnn-all is 4096 bytes (4.00 KiB); there:
  ! storage peak: 4.00 KiB live at op second; largest:
  !       4.00 KiB  a
  ! planc: does not fit a storage of 1.00 KiB: policy vdnn-all, in its last attempt, took 4096 bytes of storage, the budget is 1024: a of 4096 bytes finds no place at op second
  [1]

It is a budget of check like the others, and compare tells what goes there.

  $ planc check x.plan --storage 4095
  ! planc: x.plan: storage needs 4096 bytes, its budget is 4095, 1 too few
  [1]
  $ planc compare inputs/tiny.yaml --policies vdnn-all --budget 1M --host-budget 8K --storage 1G --profile p.json --json 2>/dev/null | grep -o '"storage_[a-z_]*":[0-9]*'
  "storage_peak_bytes":4096
  "storage_moved_bytes":8192
  ~ planc compare inputs/tiny.yaml --policies vdnn-all --budget 1M --host-budget 8K --storage 1G --profile p.json 2>/dev/null | sed -n 2,3p
  policy       least budget  round        iteration overhead         peak          out           in   to storage         back  means
  vdnn-all <size> <N> <N> ms  +<N>% <size> <size> <size> <size> <size>  swaps <- fastest

Waits for it are told apart from those for the links of the GPU.

  ~ planc simulate x.plan | grep waits
    waits h2d <N> ms <size> moved, too late for <N> ops
    waits d2h <N> ms <size> moved
    waits store <N> ms <size> moved
    waits load <N> ms <size> moved
    waits launch <N> ms
  ~ planc simulate x.plan --json | grep -o '"[a-z_]*\(store\|load\)_[a-z]*":[0-9]*'
  "stall_store_ns":<N>
  "stall_load_ns":<N>
  "store_bytes":<N>
  "load_bytes":<N>
  "store_ns":<N>
  "load_ns":<N>

A run's copies there and back are rows of their own, and an update with another device keeps the storage.

  $ planrun exec x.plan --synthetic --iterations 3 --storage . --trace x.json >/dev/null
  $ grep -o 'stream [0-9]*: [a-z0-9]*' x.json
  stream 0: compute
  stream 1: h2d
  stream 2: d2h
  stream 3: store
  stream 4: load
  $ planc simulate x.plan --against x.json | grep -o '[0-9]*x copy.*storage'
  1x copy from storage
  1x copy to storage
  ~ planc update x.plan --trace x.json --threshold 0 --profile-out y.json
  tiny, <N> periods measured
    alone               planned with         measured      from now on
        7x op <N> ms <N> ms <N> ms
        4x copy in <N> ms <N> ms <N> ms
        3x copy out <N> ms <N> ms <N> ms
        1x store <N> ms <N> ms <N> ms
        1x load <N> ms <N> ms <N> ms
    the iteration was predicted <N> ms, measured <N> ms
    changed by <N>, threshold <N>
    profile y.json
  ~ planc update x.plan --trace x.json --threshold 0 --profile-out y.json --json | grep -o '"\(stores\|loads\)":{[^}]*}'
  "stores":{"count":<N>,"old_ns":<N>,"measured_ns":<N>,"new_ns":<N>}
  "loads":{"count":<N>,"old_ns":<N>,"measured_ns":<N>,"new_ns":<N>}
  $ grep -o '"device.storage":"[^"]*"' y.json
  "device.storage":"as it was, and in proportion to what a run's copies took (planc update)"
  $ planc update x.plan --trace x.json --device k40m --threshold 0 -o y.plan >/dev/null && grep '"memory":"storage"' y.plan
  {"memory":"storage","bytes":-1,"budget":1073741824,"reserved":0,"arena":4096,"align":4096}

A plan does not say what a host without a budget leaves to storage, so that is asked for.

  $ sed '/^{"memory":"host"/s/"budget":8192/"budget":-1/' x.plan > any.plan; planc check any.plan | sed 's/.*host/host/; s/, [0-9]* instr.*//'
  > planrun exec any.plan --synthetic --storage . --iterations 4 --trace any.json >/dev/null 2>&1
  host 8.00 KiB of no limit, storage 4.00 KiB of 1.00 GiB
  $ planc update any.plan --trace any.json --threshold 0 -o next.plan
  ! planc: any.plan: it has storage and no host budget: say --host-budget, or --storage 0
  [2]
