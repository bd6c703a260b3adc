Whatever the command line leaves open comes from the graph's header, else from a documented fall-back, and is named on
standard error.

  ~ planc plan inputs/tiny.yaml
  tiny.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster by more than a thousandth; none: every op has its fastest algorithm
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device k40m)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output tiny.plan
  $ grep -v -e '^batch' -e '^device' inputs/tiny.yaml > bare.yaml
  ~ planc plan bare.yaml
  bare.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster by more than a thousandth; none: every op has its fastest algorithm
  ! planc: note: device h100 (the fall-back)
  ! planc: note: batch <N> (the fall-back)
  ! planc: note: budget <size> (device h100)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output bare.plan
  $ sed -e 's/^batch: 4/batch: 8\npolicy: vdnn-all/' inputs/tiny.yaml > chosen.yaml
  ~ planc plan chosen.yaml
  chosen.plan: vdnn-all, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       attempt <N> of <N> is the first that fits: it offloads all inputs and takes the fastest algorithms
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device k40m)
  ! planc: note: policy vdnn-all (the graph's header)
  ! planc: note: output chosen.plan

What is given is not named.

  ~ planc plan bare.yaml --batch 4 --device p100 --budget 12G --policy none --output here.plan
  here.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm

A graph without backward ops is planned for training, with the optimizer of its header, or as it is.

  ~ planc plan graphs/lenet-digits.yaml --budget 400K -o lenet.plan
  lenet.plan: priced, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it window in rounds of <N> was the fastest with <N> ms; priced: <N> of <N> gaps are spent on the host by a copy and <N> without one; the best of <N> choices, <N> of which were simulated
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ~ sed '/^optimizer/d' graphs/lenet-digits.yaml > lenet.yaml; planc plan lenet.yaml --budget 400K
  lenet.plan: priced, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it window in rounds of <N> was the fastest with <N> ms; priced: <N> of <N> gaps are spent on the host by a copy and <N> without one; the best of <N> choices, <N> of which were simulated
  ! planc: note: lenet.yaml has no backward ops: planned for training with sgd (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output lenet.plan
  ~ sed 's/^optimizer: sgd/optimizer: adam/' graphs/lenet-digits.yaml > lenet.yaml; planc plan lenet.yaml --budget 400K
  lenet.plan: priced, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it tensile in rounds of <N> was the fastest with <N> ms; priced: <N> of <N> gaps are spent on the host by a copy and <N> without one; the best of <N> choices, <N> of which were simulated
  ! planc: note: lenet.yaml has no backward ops: planned for training with adam (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output lenet.plan
  ~ planc plan lenet.yaml --budget 400K --optimizer momentum
  lenet.plan: priced, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it tensile in rounds of <N> was the fastest with <N> ms; priced: <N> of <N> gaps are spent on the host by a copy and <N> without one; the best of <N> choices, <N> of which were simulated
  ! planc: note: lenet.yaml has no backward ops: planned for training with momentum (--inference plans it as it is)
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output lenet.plan
  ~ planc plan lenet.yaml --budget 400K --inference
  lenet.plan: priced, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster, of those asked before it none was the fastest with <N> ms; priced: <N> of <N> gaps are spent on the host by a copy and <N> without one; the best of <N> choices, <N> of which were simulated
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: policy auto (the fall-back)
  ! planc: note: output lenet.plan

A budget beyond the device is planned, with a warning.

  ~ planc plan inputs/tiny.yaml --budget 13G --policy none -o here.plan
  here.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: warning: the budget of <size> is beyond device k40m with <size>

A device is a name or a file.

  ~ planc plan inputs/tiny.yaml --device "$PLANC_PROFILES/p100.json" --policy none -o here.plan
  here.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device p100)
  $ planc plan inputs/tiny.yaml --device abacus
  ! planc: no description of device abacus; known ones: a100-40g, a100-80g, a6000, h100, h200, k40m, l4, p100, rtx2080ti, v100-16g-nvlink, v100-32g
  [3]
  $ PLANC_PROFILES=/nowhere planc plan inputs/tiny.yaml --device abacus
  ! planc: no description of device abacus; known ones: a100-40g, a100-80g, a6000, h100, h200, k40m, l4, p100, rtx2080ti, v100-16g-nvlink, v100-32g
  [3]
