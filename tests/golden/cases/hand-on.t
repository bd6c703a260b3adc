A sampler takes over what the trainer of its model learns. On the same samples it has the trainer's losses, to the bit, and
its accuracy, whichever policy has made the plan.

  $ for policy in temporal zico waterwave tensile; do
  >   planc colocate trainer=graphs/lenet-digits.yaml:32:1 sampler=graphs/lenet-digits.yaml:32:1:inference --device k40m --policy $policy -o $policy.plan >/dev/null 2>&1
  >   planrun exec $policy.plan --data trainer:data/digits/digits.csv.gz --data sampler:data/digits/digits.csv.gz -n 4 --hand-on trainer:sampler --jitter 3 --poison --verify --json 2>/dev/null >out
  >   grep -o '"verified":[a-z]*\|"handed_on":[0-9]*' out; grep -o '"losses":\[[^]]*\],"accuracy":0[0-9.]*' out | sort -u | grep -c ,
  > done
  "verified":true
  "handed_on":5
  1
  "verified":true
  "handed_on":5
  1
  "verified":true
  "handed_on":5
  1
  "verified":true
  "handed_on":5
  1
  $ planrun exec temporal.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -n 4 --json 2>/dev/null | grep -o '"losses":\[[^]]*\],"accuracy":0[0-9.]*' | sort -u | grep -c ,
  2

Every two iterations: a run in parts comes to what a run in one does.

  $ D=data/digits/digits.csv.gz; run() { planrun exec zico.plan --data 0:$D --data 1:$D --hand-on 0:1:2 --json "$@" 2>/dev/null | grep -o '"handed_on":[0-9]*'; }
  > run -n 5 --save whole; run -n 3 --save part; run -n 5 --resume part --save parts; cmp whole parts
  "handed_on":3
  "handed_on":2
  "handed_on":1

What is no way to hand on is refused.

  $ for value in 1:0 0:0 0:1:0 0 0:9 trainer:nobody 0: :1 0:1: 0::2 0:1:2:3; do planrun exec zico.plan --hand-on $value 2>&1 | grep -v note; done
  planrun: --hand-on: job 0 trains its parameters itself: only a job for inference takes others'
  planrun: --hand-on: job 0 has its own parameters
  planrun: --hand-on 0: not an integer from 1 to 1099511627776
  planrun: --hand-on "0": two jobs are named, FROM:TO or FROM:TO:N
  planrun: --hand-on: 0:9: zico.plan has no job 9
  planrun: --hand-on: trainer:nobody: zico.plan has no job nobody
  planrun: --hand-on "0:": two jobs are named, FROM:TO or FROM:TO:N
  planrun: --hand-on ":1": two jobs are named, FROM:TO or FROM:TO:N
  planrun: --hand-on "0:1:": two jobs are named, FROM:TO or FROM:TO:N
  planrun: --hand-on "0::2": two jobs are named, FROM:TO or FROM:TO:N
  planrun: --hand-on "0:1:2:3": two jobs are named, FROM:TO or FROM:TO:N
  $ planrun exec zico.plan --hand-on 0:1 --hand-on trainer:sampler 2>&1 | grep -v note; planrun exec zico.plan --hand-on 0:1 --watch other.plan
  planrun: --hand-on: job 1 is handed parameters twice
  ! planrun: --hand-on and --watch exclude each other
  [2]
  $ planc colocate graphs/tiny-transformer.yaml:8:1 graphs/lenet-digits.yaml:8:1:inference --device k40m --policy temporal -o other.plan >/dev/null 2>&1; planrun exec other.plan --hand-on 0:1 2>&1 | grep -v note
  planrun: --hand-on: job 0 has no conv1.w, which job 1 is to take over

A job that takes over hands nothing on, in whichever order that is asked for; and in parts a run with the order of every period ends as in one.

  $ planc colocate s=graphs/tiny-transformer.yaml:16:inference t=graphs/tiny-transformer.yaml:16 graphs/tiny-transformer.yaml:4:inference --device k40m -o chain.plan >/dev/null 2>&1
  $ for on in "--hand-on s:2 --hand-on t:s" "--hand-on t:s --hand-on s:2"; do planrun exec chain.plan $on 2>&1 | grep -v note; done
  planrun: --hand-on: job 0 is for inference: parameters are handed on from the job that trains them
  planrun: --hand-on: job 0 is for inference: parameters are handed on from the job that trains them
  $ run() { planrun exec chain.plan --hand-on t:s --hand-on t:2:3 "$@" >/dev/null 2>&1; }; run --iterations 6 --save whole; run --iterations 4 --save part; run --iterations 6 --resume part --save parts; cmp whole parts

How often it was is told, with the rest.

  $ planrun exec zico.plan -n 1 --hand-on 0:1:2 2>/dev/null | grep handed; planrun exec zico.plan -n 2 --hand-on 0:1 2>/dev/null | grep handed
  handed on 1 time
  handed on 3 times

A job goes by the name of its graph where it has none of its own. One that begins behind a checkpoint takes over at once,
whatever N is.

  $ planrun exec chain.plan --hand-on t:tiny-transformer -n 1 2>/dev/null | grep handed
  handed on 2 times
  $ planc plan graphs/lenet-digits.yaml --batch 32 --device k40m -o trainer.plan >/dev/null 2>&1; planrun exec trainer.plan --data data/digits/digits.csv.gz -n 140 --save trained 2>/dev/null | grep -o 'accuracy.*' >before
  $ planc colocate lenet-digits=graphs/lenet-digits.yaml:32:1 sampler=graphs/lenet-digits.yaml:32:1:inference --device k40m -o later.plan >/dev/null 2>&1
  $ planrun exec later.plan --data 0:data/digits/digits.csv.gz --data sampler:data/digits/digits.csv.gz --resume trained -n 141 --hand-on lenet-digits:sampler:1000 >out 2>&1; grep -o '.*starts anew\|handed.*' out; grep -o 'accuracy.*' out | grep -c -f before
  planrun: note: job 1 (sampler) is not in trained: it starts anew
  handed on 1 time
  1

What fails hands nothing on any more.

  $ planc train graphs/lenet-digits.yaml --optimizer momentum -o good.yaml >/dev/null 2>&1; sed 's/lr: 0.01/lr: 1e9/' good.yaml > hot.yaml
  $ planc colocate hot.yaml:16:1 graphs/lenet-digits.yaml:16:1:inference --device k40m -o hot.plan >/dev/null 2>&1
  $ planrun exec hot.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -n 6 --hand-on 0:1 --check-nan --json 2>/dev/null | grep -o '"handed_on":[0-9]*'
  "handed_on":3
