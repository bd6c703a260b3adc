Derives backward and optimizer ops; the result is a graph like any other, and planning it is planning the original.

  $ planc train graphs/lenet-digits.yaml > train.yaml
  $ planc show train.yaml | grep ops
  forward       10 ops, 0.013 GFLOP at batch 64
  backward      17 ops, 0.023 GFLOP at batch 64
  optimizer      8 ops, 0.000 GFLOP at batch 64
  $ grep -c sgd train.yaml
  9
  $ for optimizer in sgd momentum adam; do
  >   planc train graphs/lenet-digits.yaml --optimizer $optimizer -o train.yaml
  >   planc plan train.yaml --budget 400K -o one.plan >/dev/null 2>&1
  >   planc plan graphs/lenet-digits.yaml --optimizer $optimizer --budget 400K -o two.plan >/dev/null 2>&1
  >   cmp one.plan two.plan && echo same
  > done
  train.yaml: lenet-digits, 35 ops
  same
  train.yaml: lenet-digits, 35 ops
  same
  train.yaml: lenet-digits, 35 ops
  same

A graph that cannot be trained says why.

  $ planc train train.yaml
  ! planc: train.yaml: graph lenet-digits has backward or optimizer ops already: op loss.grad
  [3]
  $ planc train inputs/tiny.yaml
  ! planc: inputs/tiny.yaml: graph tiny has backward or optimizer ops already: op last.grad
  [3]
  $ sed '/^loss:/d' graphs/lenet-digits.yaml > no-loss.yaml; planc train no-loss.yaml
  ! planc: no-loss.yaml: graph lenet-digits has no loss to derive
  [3]
  $ planc plan no-loss.yaml -o no-loss.plan 2>&1 | tail -n 1
  planc: no-loss.yaml: graph lenet-digits has no loss to derive training from; --inference takes it as it stands
  $ sed 's/type: maxpool2d/type: my.pool/' graphs/lenet-digits.yaml > unknown.yaml; planc train unknown.yaml
  ! planc: unknown.yaml: training: op pool2: type my.pool has no derivative
  [3]
