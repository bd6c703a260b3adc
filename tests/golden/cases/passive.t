Passive swapping is simulated from a graph, without a plan. At 20 KiB, x and w of inputs/tiny.yaml leave for b.grad.

  $ planc simulate inputs/tiny.yaml --passive --budget 20K --json 2>/dev/null | tr ',{' '\n\n' | grep 'evict\|swap\|copied\|peak'
  "peak_bytes":20480
  "host_peak_bytes":1024
  "evict_ns":0
  "swap_in_ns":20510
  "evictions":2
  "copied_out":0
  "swap_ins":2
  "evicted_bytes":0
  "swapped_in_bytes":5120
  "evict_ppm":0
  "swap_in_ppm":207295
  "evict_ns":10102
  "swap_in_ns":20510
  "evictions":2
  "copied_out":1
  "swap_ins":2
  "evicted_bytes":1024
  "swapped_in_bytes":5120
  "evict_ppm":90991
  "swap_in_ppm":184739
  ~ planc simulate inputs/tiny.yaml --passive --budget 20K
  tiny, passive swapping on k40m, batch <N> under <size>
                          first                steady
  iteration <N> ms <N>% <N> ms <N>%
    compute <N> ms <N>% <N> ms <N>%
    evictions <N> ms <N>% <N> ms <N>%
    swap-ins <N> ms <N>% <N> ms <N>%
    user's data <N> ms <N>% <N> ms <N>%
    launches <N> ms <N>% <N> ms <N>%
  first: <N> evicted, <N> of them copied (<size>); <N> swapped in (<size>)
  steady: <N> evicted, <N> of them copied (<size>); <N> swapped in (<size>)
  peak <size>, host <size>; prologue <N> ms
  against no swapping (<N> ms, <size>): EOR first <N>, steady <N>; MSR <N>
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)

What fits whole is not swapped.

  $ planc simulate inputs/tiny.yaml --passive --budget 25600 2>/dev/null | grep evicted
  first: 0 evicted, 0 of them copied (0 B); 0 swapped in (0 B)
  steady: 0 evicted, 0 of them copied (0 B); 0 swapped in (0 B)
  $ planc simulate inputs/tiny.yaml --passive --batch 1 --sub-batch 1 --budget 1M 2>/dev/null | grep evicted
  first: 0 evicted, 0 of them copied (0 B); 0 swapped in (0 B)
  steady: 0 evicted, 0 of them copied (0 B); 0 swapped in (0 B)

What does not fit is the data of one op. The least budget is feasible.

  $ planc simulate inputs/tiny.yaml --passive --budget 16383 2>&1 | tail -n 1
  planc: passive swapping: op last.grad alone needs 16384 bytes of operands, 8192 of them for b, and 0 of workspace: no budget below 16384 bytes will do, 0 reserved by the device included
  $ planc simulate inputs/tiny.yaml --passive --budget 16384 2>/dev/null | grep peak | cut -d ' ' -f 1-3
  peak 16.00 KiB,
  $ planc simulate inputs/tiny.yaml --passive --budget 20K --host-budget 1K >/dev/null 2>&1
  $ planc simulate inputs/tiny.yaml --passive --budget 20K --host-budget 1023 2>&1 | tail -n 1
  planc: passive swapping: it needs 1024 bytes of host memory, the host budget is 1023
  $ planc simulate inputs/tiny.yaml --passive --budget 20K --host-budget 1K --storage 1G
  ! planc: simulate: unknown option --storage
  [2]

It has no plan, and a plan is not passive.

  $ planc plan inputs/tiny.yaml --passive
  ! planc: plan: unknown option --passive
  [2]
  $ planc plan inputs/tiny.yaml --policy passive --device k40m --batch 4 --budget 1M
  ! planc: unknown policy passive: ideal, auto, best, none, vdnn-all, vdnn-conv, vdnn-dyn, vdnn+, modnn, naive, prefetch-1, lms, capuchin, tensile, superneurons, chen, cheap, window, priced
  [2]
  $ planc plan inputs/tiny.yaml --policy none --budget 1M -o tiny.plan >/dev/null 2>&1
  $ planc simulate tiny.plan --passive
  ! planc: tiny.plan:1:2: a graph is asked for, and this is a plan, which planc show, check, simulate and update and planrun exec take
  [3]
  $ planc simulate tiny.plan --budget 1M
  ! planc: --budget: a plan has its own; only --passive takes it
  [2]
  $ planc simulate tiny.plan --batch 4
  ! planc: --batch: a plan has its own; only --passive takes it
  [2]
  $ planc simulate inputs/tiny.yaml --passive --vanilla tiny.plan
  ! planc: --passive and --vanilla exclude each other
  [2]
  $ planc simulate inputs/tiny.yaml --passive --costs p.json
  ! planc: --passive and --costs exclude each other
  [2]
  $ planc simulate inputs/tiny.yaml
  ! planc: inputs/tiny.yaml:1:1: no plan: it does not begin with {"planc-plan": (planc plan makes one of a graph)
  [3]
