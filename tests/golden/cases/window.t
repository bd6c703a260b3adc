Window scheduling, with best fit and in virtual memory. Both plans run, bit for bit.

  ~ planc plan graphs/lenet-digits.yaml --policy window --workspace-limit 64K --budget 1200K -o best-fit.plan
  best-fit.plan: window, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       scheduled within <size> of <size>, the most found that fits
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ~ planc plan graphs/lenet-digits.yaml --policy window --placement vmm --chunk 4K --budget 900K -o vmm.plan
  vmm.plan: window, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       scheduled within <size> of <size>, the most found that fits
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ~ planc plan graphs/lenet-digits.yaml --policy window --workspace-limit 64K --placement paged --chunk 4K --budget 1200K -o paged.plan 2>/dev/null
  paged.plan: window, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       scheduled within <size> of <size>, the most found that fits
  $ for plan in best-fit vmm paged; do
  >   planc check $plan.plan --budget 1200K --graph graphs/lenet-digits.yaml | cut -d, -f1,2
  >   planrun exec $plan.plan --data data/digits/digits.csv.gz --iterations 2 --verify | tail -n 1
  > done
  valid: lenet-digits, window
  verified: every bit as in the reference
  valid: lenet-digits, window
  verified: every bit as in the reference
  valid: lenet-digits, window
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms implicit-gemm, default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms gemm, default, winograd: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms implicit-gemm, default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ~ planc show vmm.plan | grep virtual
  virtual memory in chunks of <size>, <N> mappings; at most <size> lost inside chunks, bound <size> of <N> chunks, and <size> in shared ones
  $ planc show best-fit.plan | grep virtual
  [1]
  ~ planc show paged.plan | grep pages
  pages of <size>, <N> mappings
  ~ planc simulate vmm.plan --map-in-step 100us | grep -E "iteration  |maps"
  iteration <N> ms   ideal <N> ms
    maps <N>   chunks
  $ planc simulate best-fit.plan --map-in-step 100us
  ! planc: best-fit.plan: simulation: the plan has no virtual memory
  [2]
  $ planc simulate paged.plan --map-in-step 100us
  ! planc: paged.plan: simulation: the plan has no chunks of virtual memory, but pages
  [2]
  $ a=$(planc simulate vmm.plan --json | sed 's/.*"period_ns":\([0-9]*\).*/\1/'); b=$(planc simulate vmm.plan --map-in-step 0ns --json | sed 's/.*"period_ns":\([0-9]*\).*/\1/'); test $b -gt $a && echo the host waits, however fast it maps
  the host waits, however fast it maps
  $ planc simulate vmm.plan --map-in-step 0ns --graph-replay
  ! planc: --graph-replay and --map-in-step exclude each other
  [2]

The window in bytes, its two ways to count, and what cannot be.

  $ planc plan graphs/lenet-digits.yaml --policy window --window 1 --budget 2M -o x.plan 2>/dev/null | head -n 1
  x.plan: window, batch 64 in 1 round of 64
  $ planc plan graphs/lenet-digits.yaml --policy window --window-per-use --budget 2M -o x.plan 2>/dev/null | head -n 1
  x.plan: window, batch 64 in 1 round of 64
  $ planc plan inputs/tiny.yaml --policy window --window 0 2>&1 | tail -n 1
  planc: --window: at least 1 byte
  $ planc plan inputs/tiny.yaml --policy window --workspace-limit 0 2>&1 | tail -n 1
  planc: --workspace-limit: at least 1 byte
  $ planc plan inputs/tiny.yaml --policy window --placement heap 2>&1 | tail -n 1
  planc: unknown placement heap: best-fit, paged or vmm
  $ planc plan inputs/tiny.yaml --policy window --placement vmm --chunk 100 2>&1 | tail -n 1
  planc: chunks of 100 bytes: they must be multiples of 256
  $ planc plan inputs/tiny.yaml --placement vmm --chunk 100 2>&1 | tail -n 1
  planc: chunks of 100 bytes: they must be multiples of 256
  $ planc plan inputs/tiny.yaml --policy modnn --placement vmm 2>&1 | tail -n 1
  planc: policy modnn does not place in virtual memory
  $ planc plan graphs/resnet50.yaml --policy window --placement vmm --chunk 256 --batch 64 2>&1 | tail -n 1
  planc: chunks of 256 bytes would be 47759609 for the data of graph resnet50, at most 4194304 are planned

The host maps whole pages.

  $ planc plan inputs/tiny.yaml --policy window --placement vmm --chunk 512 -o x.plan 2>/dev/null | head -n 1
  x.plan: window, batch 4 in 1 round of 4
  $ planrun exec x.plan --synthetic --iterations 1 --verify
  ! planrun: x.plan: host: chunks of 512 bytes are not whole pages of 4096
  [6]

Too small a budget names the op that binds it.

  $ planc plan graphs/lenet-digits.yaml --policy window --budget 20K -o x.plan
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 64 (the graph's header)
  ! planc: note: the least feasible budget of window is 804864 bytes (786.00 KiB); there:
  ! peak: 786.00 KiB live at op conv2.dgrad; largest:
  !     576.00 KiB  workspace
  !     128.00 KiB  d.conv2.y
  !      64.00 KiB  d.pool1.y
  !      18.00 KiB  conv2.w
  ! planc: does not fit 20.00 KiB: op conv2.dgrad needs 804864 bytes, 20480 are left for data
  [1]

Where no chunk fits, the least budget has whole ones, however much larger that is than what was asked for.

  $ for policy in window best; do planc plan graphs/lenet-digits.yaml --policy $policy --placement vmm --budget 800K 2>&1 | grep 'least\|does not'; done
  planc: note: the least feasible budget of window is 41943040 bytes (40.00 MiB); there:
  planc: does not fit 800.00 KiB: op conv2.dgrad needs 41943040 bytes in whole chunks of 41943040, 0 are left for data
  planc: note: the least feasible budget of best is 41943040 bytes (40.00 MiB), with policy window; there:
  planc: does not fit 800.00 KiB: op conv2.dgrad needs 41943040 bytes in whole chunks of 41943040, 0 are left for data
  $ planc compare graphs/lenet-digits.yaml --policies window --placement vmm --budget 800K 2>/dev/null | tail -n 1
  window          40.00 MiB   does not fit
