The plan goes to GRAPH's name with .plan, in the current folder; -o names another place, - is standard output.

  ~ mkdir sub; cp inputs/tiny.yaml sub/a.b.yaml; planc plan sub/a.b.yaml --policy none 2>/dev/null; ls *.plan
  a.b.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       every op has its fastest algorithm
  a.b.plan
  $ planc plan inputs/tiny.yaml --policy none -o - 2>/dev/null | cmp - a.b.plan && echo same
  same

With the plan on standard output there is no summary beside it.

  ~ planc plan inputs/tiny.yaml --policy none -o - 2>/dev/null > piped.plan; planc check piped.plan
  valid: tiny, none, peak <size> of <size>, <N> instructions

The same input gives the same bytes.

  $ planc plan inputs/tiny.yaml -o one.plan >/dev/null 2>&1; planc plan inputs/tiny.yaml -o two.plan >/dev/null 2>&1
  > cmp one.plan two.plan && echo same
  same

An existing output survives a run that fails, whatever it fails of.

  $ echo precious > old.plan
  > planc plan inputs/tiny.yaml --policy none --budget 1K -o old.plan 2>/dev/null; echo $?
  > planc plan data/graph/op-cycle.yaml -o old.plan 2>/dev/null; echo $?
  > planc plan inputs/tiny.yaml --policy nonsense -o old.plan 2>/dev/null; echo $?
  > planc train data/graph/op-cycle.yaml -o old.plan 2>/dev/null; echo $?
  > cat old.plan
  > ls old*
  1
  3
  2
  3
  precious
  old.plan

So it does one whose disk is full, or whose file grows beyond the limit, which cleans up.

  $ (ulimit -f 1; planc plan graphs/lenet-digits.yaml --policy none -o old.plan 2>/dev/null); echo $?
  > cat old.plan; ls old*
  5
  precious
  old.plan
  $ planc plan graphs/lenet-digits.yaml --policy none -o - 2>/dev/null > /dev/full
  [5]

An output that cannot be written is told before there is any work, and none of several changes then.

  $ planc plan inputs/tiny.yaml --policy none -o none/x.plan
  ! planc: none/x.plan: No such file or directory
  [5]
  $ mkdir ladder.1M.plan; planc colocate inputs/tiny.yaml inputs/tiny.yaml --device k40m --budgets 2M,1M -o ladder.plan; ls -d ladder*
  ladder.1M.plan
  ! planc: ladder.1M.plan: Is a directory

No output is what is read.

  $ cp inputs/tiny.yaml mine.yaml; planc plan mine.yaml -o ./mine.yaml 2>&1 | tail -n 1; cmp inputs/tiny.yaml mine.yaml
  planc: mine.yaml is read, the output must be another file
  $ cp inputs/tiny.yaml mine.plan; planc plan mine.plan --policy none 2>&1 | tail -n 1; planc plan ./mine.plan --policy none 2>&1 | tail -n 1; cmp inputs/tiny.yaml mine.plan
  planc: mine.plan has a plan's name: planc show, check, simulate and update take plans, and a graph of that name needs --output
  planc: ./mine.plan has a plan's name: planc show, check, simulate and update take plans, and a graph of that name needs --output
  $ planc train mine.yaml -o mine.yaml
  ! planc: mine.yaml is read, the output must be another file
  [2]
  $ planc predict mine.yaml -o mine.yaml
  ! planc: mine.yaml is read, the output must be another file
  [2]

A device is written to, and stays one.

  $ planc plan inputs/tiny.yaml --policy none -o /dev/stdout 2>/dev/null | sed '/^{/!d' | cmp - a.b.plan && echo same
  same
  $ planc train graphs/lenet-digits.yaml -o /dev/null; test -c /dev/null && echo still there
  /dev/null: lenet-digits, 35 ops
  still there

An output that cannot be written is exit code 5.

  $ planc plan inputs/tiny.yaml --policy none --budget 1M -o nowhere/x.plan 2>&1 | tail -n 1
  planc: nowhere/x.plan: No such file or directory
  $ planc plan inputs/tiny.yaml --policy none --budget 1M -o nowhere/x.plan 2>/dev/null
  [5]
  $ mkdir folder.plan; planc plan inputs/tiny.yaml --policy none -o folder.plan 2>/dev/null
  [5]
  $ planc train graphs/lenet-digits.yaml -o nowhere/x.yaml
  ! planc: nowhere/x.yaml: No such file or directory
  [5]
  $ planc train graphs/lenet-digits.yaml -o /dev/full
  ! planc: /dev/full: No space left on device
  [5]
  $ planc show inputs/tiny.yaml > /dev/full
  ! planc: standard output cannot be written
  [5]
  $ planc --help > /dev/full
  ! planc: standard output cannot be written
  [5]
