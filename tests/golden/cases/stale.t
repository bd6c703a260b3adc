A plan carries the graph that it was made from; --graph compares it with a file's.

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
  valid: lenet-digits, priced, peak <size> of <size>, <N> instructions
  ~ planc train graphs/lenet-digits.yaml --optimizer adam -o adam.yaml; planc check lenet.plan --graph adam.yaml
  adam.yaml: lenet-digits, <N> ops
  valid: lenet-digits, priced, peak <size> of <size>, <N> instructions
  $ planc train graphs/lenet-digits.yaml --optimizer sgd -o sgd.yaml; planc check lenet.plan --graph sgd.yaml
  sgd.yaml: lenet-digits, 35 ops
  ! planc: lenet.plan: the plan was made from another graph than sgd.yaml
  [4]
  $ planc check lenet.plan --graph inputs/tiny.yaml
  ! planc: lenet.plan: the plan was made from another graph than inputs/tiny.yaml
  [4]

What is compared is what the graphs say. A forged graph learns 12,300 times as fast and has the same hash.

  $ sed 's/\[w\]}/[w], attrs: {lr: 0.01}}/' inputs/tiny.yaml > honest.yaml
  > sed 's/lr: 0.01}/lr: 123.18734645843506}, traffic: 7752773887812/' honest.yaml > forged.yaml
  > for g in honest forged; do planc plan $g.yaml --policy none -o $g.plan >/dev/null 2>&1; grep -o '"hash":"[^"]*"' $g.plan; done
  > planc check forged.plan --graph honest.yaml
  "hash":"67bf4c745213f388"
  "hash":"67bf4c745213f388"
  ! planc: forged.plan: the plan was made from another graph than honest.yaml
  [4]

Of a plan with several jobs every graph is compared, whichever the order. Here a second job does nothing.

  $ printf 'planc-graph: 1\nname: nop\nbatch: 4\ntensors:\n  x: input f32[N]\nops:\n  - {op: nop, type: my.nop}\n' > nop.yaml
  > sed -e '1s/"graphs":1,"tensors":8,"ops":7,"jobs":1,"streams":3/"graphs":2,"tensors":9,"ops":8,"jobs":2,"streams":4/' \
  >   -e '1s/"body":32/"body":33/' -e '/^{"job":0/i {"graph":"nop","hash":"b72f2c09a9f72e11","layout":"NCHW","tensors":1,"ops":1,"loss":-1,"outputs":[]}' \
  >   -e '/^{"job":0/i {"tensor":"x","kind":"input","dtype":"f32","shape":["N"]}' \
  >   -e '/^{"job":0/i {"op":"nop","type":"my.nop","phase":"forward","in":[],"out":[],"effects":[],"attrs":{},"flops":0,"traffic":0,"flags":0}' \
  >   -e '/^{"job":0/a {"job":1,"batch":4,"rounds":[4],"iterations":1,"ideal":0,"busy":0,"stall":0}' -e '/"stream":"copy","job":0,"engine":1/a {"stream":"compute","job":1,"memory":0}' \
  >   -e '0,/"i":"exec"/{/"i":"exec"/i {"i":"exec","n":7,"a":0,"s":3,"ws":0,"wsb":0,"t":1,"busy":0,"use":[]}' -e '}' tiny.plan > two.plan
  ~ planc check two.plan --graph inputs/tiny.yaml --graph nop.yaml
  valid: tiny, none, <N> jobs (tiny, nop), peak <size> of <size>, <N> instructions
  ~ planc check two.plan -g nop.yaml -g inputs/tiny.yaml
  valid: tiny, none, <N> jobs (tiny, nop), peak <size> of <size>, <N> instructions
  $ planc check two.plan --graph inputs/tiny.yaml
  ! planc: two.plan: job 1: its graph, nop, is none of those given
  [4]
  $ planc check two.plan --graph inputs/tiny.yaml --graph honest.yaml
  ! planc: two.plan: job 1: its graph, nop, is none of those given
  [4]
  $ planc check two.plan -g nop.yaml -g inputs/tiny.yaml -g honest.yaml
  ! planc: two.plan: no job of the plan was made from honest.yaml
  [4]
