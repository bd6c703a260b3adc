Every policy's plan passes the checker under the budget it was made for. `ideal` is only simulated.

  $ planc plan inputs/tiny.yaml --policy ideal
  ! planc: policy ideal is only simulated and has no plan; see planc compare
  [2]
  $ ls *.plan
  ! ls: cannot access '*.plan': No such file or directory
  [2]
  $ for policy in none vdnn-all vdnn-conv vdnn-dyn vdnn+ modnn naive prefetch-1 lms capuchin tensile superneurons chen cheap window; do
  >   planc plan graphs/lenet-digits.yaml --policy $policy -o x.plan >/dev/null 2>&1 &&
  >     planc check x.plan --graph graphs/lenet-digits.yaml | cut -d, -f1,2
  > done
  valid: lenet-digits, none
  valid: lenet-digits, vdnn-all
  valid: lenet-digits, vdnn-conv
  valid: lenet-digits, vdnn-dyn
  valid: lenet-digits, vdnn+
  valid: lenet-digits, modnn
  valid: lenet-digits, naive
  valid: lenet-digits, prefetch-1
  valid: lenet-digits, lms
  valid: lenet-digits, capuchin
  valid: lenet-digits, tensile
  valid: lenet-digits, superneurons
  valid: lenet-digits, chen
  valid: lenet-digits, cheap
  valid: lenet-digits, window
  $ for policy in none vdnn-all vdnn-conv vdnn-dyn vdnn+ modnn naive prefetch-1 lms capuchin tensile superneurons chen cheap window; do
  >   planc plan inputs/tiny.yaml --policy $policy -o x.plan >/dev/null 2>&1 &&
  >     planc check x.plan --graph inputs/tiny.yaml | cut -d, -f1,2
  > done
  valid: tiny, none
  valid: tiny, vdnn-all
  valid: tiny, vdnn-conv
  valid: tiny, vdnn-dyn
  valid: tiny, vdnn+
  valid: tiny, modnn
  valid: tiny, naive
  valid: tiny, prefetch-1
  valid: tiny, lms
  valid: tiny, capuchin
  valid: tiny, tensile
  valid: tiny, superneurons
  valid: tiny, chen
  valid: tiny, cheap
  valid: tiny, window

The sub-batch can be fixed; the last round takes what is left.

  ~ planc plan inputs/tiny.yaml --policy modnn --sub-batch 3 --budget 1M -o x.plan; planc check x.plan
  x.plan: modnn, batch <N> in <N> rounds of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       the fastest of rounds of <N> without offloading in <N> ms, <N> placed as a whole in <N> ms
  valid: tiny, modnn, peak <size> of <size>, <N> instructions
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  $ planc show x.plan | sed -n 2p
  batch 4 in 2 rounds of 3; 7 ops in the graph, 59 instructions in the body
