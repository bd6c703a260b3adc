A plan carries the hash of the graph that it was made from; --graph compares it with a file's.

  $ planc plan inputs/tiny.yaml --policy none -o tiny.plan >/dev/null 2>&1
  ~ planc check tiny.plan --graph inputs/tiny.yaml
  valid: tiny, none, peak <size> of <size>, <N> instructions

Comments and the order of keys do not matter, what the graph says does.

  ~ { echo '# a comment'; sed 's/{op: first, type: my.op,/{type: my.op, op: first,/' inputs/tiny.yaml; } > same.yaml
  > planc check tiny.plan --graph same.yaml
  valid: tiny, none, peak <size> of <size>, <N> instructions
  $ sed 's/256\]/128]/' inputs/tiny.yaml > other.yaml; planc check tiny.plan --graph other.yaml
  ! planc: tiny.plan: the plan was made from another graph than other.yaml
  [4]
  $ planc check tiny.plan --graph other.yaml --json
  {"planc":"check/1","plan":"tiny.plan","valid":false,"budget_bytes":12884901888,"exit_code":4,"message":"tiny.plan: the plan was made from another graph than other.yaml"}
  ! planc: tiny.plan: the plan was made from another graph than other.yaml
  [4]

A plan of a graph with training derived is compared with that derived.

  ~ planc plan graphs/lenet-digits.yaml --optimizer adam --budget 1M -o lenet.plan >/dev/null 2>&1
  > planc check lenet.plan --graph graphs/lenet-digits.yaml
  valid: lenet-digits, prefetch-1, peak <size> of <size>, <N> instructions
  ~ planc train graphs/lenet-digits.yaml --optimizer adam -o adam.yaml; planc check lenet.plan --graph adam.yaml
  valid: lenet-digits, prefetch-1, peak <size> of <size>, <N> instructions
  $ planc train graphs/lenet-digits.yaml --optimizer sgd -o sgd.yaml; planc check lenet.plan --graph sgd.yaml
  ! planc: lenet.plan: the plan was made from another graph than sgd.yaml
  [4]
  $ planc check lenet.plan --graph inputs/tiny.yaml
  ! planc: lenet.plan: the plan was made from another graph than inputs/tiny.yaml
  [4]
