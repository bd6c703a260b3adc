Jobs that have names can leave a run and join it. A plan of one job, which planc plan makes, is of the job that trains the
same; what has no name goes by the graph's.

  $ planc train graphs/lenet-digits.yaml --optimizer momentum -o lenet.yaml 2>/dev/null; planc train graphs/tiny-transformer.yaml --optimizer adam -o tt.yaml 2>/dev/null
  lenet.yaml: lenet-digits, 35 ops
  tt.yaml: tiny-transformer, 162 ops
  $ planc colocate l=lenet.yaml:16:2 t=tt.yaml:8:1 --device k40m --policy zico -o both.plan 2>/dev/null | grep -o 'job [01]: .*,'
  job 0: l, lenet-digits, batch 16 in 1 round of 16,
  job 1: t, tiny-transformer, batch 8 in 1 round of 8,
  $ planc colocate t=tt.yaml:8:3 l=lenet.yaml:16:1 --device k40m --policy temporal --budget 2M -o turned.plan >/dev/null 2>&1
  $ planc plan lenet.yaml --batch 16 --device k40m --policy vdnn-all -o lenet.plan >/dev/null 2>&1
  $ planc plan tt.yaml --batch 8 --device k40m --policy none -o tt.plan >/dev/null 2>&1
  $ grep -o '"name":"[lt]"' both.plan; grep -c '"job":0,.*"name"' lenet.plan
  "name":"l"
  "name":"t"
  0
  [1]

They do so at the boundary of a period, and each comes to what it comes to alone in as many iterations of its own: the last
lines are of the training in which lenet was alone at first, and of lenet and the transformer alone.

  $ cat > watched <<'END'
  > rm -f error next.plan; n=0
  > until_is() { for k in $(seq 600); do eval "$1" && return; sleep 0.1; done; echo "never: $1"; kill $!; exit 1; }
  > put() { cp $1 aside; mv aside next.plan; n=$((n + 1)); until_is '[ $(grep -c "next.plan, policy\|goes on as before" error) = $n ]'; sleep 0.2; }
  > planrun exec lenet.plan --data data/digits/digits.csv.gz --data t:data/digits/digits.csv.gz -n 1000000 --watch next.plan --save left --verify --jitter 3 --poison >out 2>error &
  > until_is '[ -s error ]'
  > for plan in both tt turned both lenet; do put $plan.plan; done
  > kill $!; wait $! 2>/dev/null; true
  > END
  $ sh watched 2>/dev/null; sed 's/.* changed to/changed to/; s/ in [0-9.]* .iB//; s/ at its iteration [0-9]*//; s/at iteration [0-9]* of/at iteration N of/; s/, and//' error | grep -v 'plain ones\|ending after'
  changed to next.plan, policy zico
  planrun: note: job 1 (t) joins at iteration N of job 0 (l)
  changed to next.plan, policy none
  planrun: note: job 0 (l) leaves
  changed to next.plan, policy temporal
  planrun: note: job 0 (l) comes back at iteration N of job 1 (t)
  changed to next.plan, policy zico
  changed to next.plan, policy vdnn-all
  planrun: note: job 1 (t) leaves
  $ sed 's/iterations [0-9]*/iterations N/; s/, loss.*//' out | grep -v 'peak\|epoch'
  job 0: l, lenet-digits, iterations N (interrupted)
  job 1: t, tiny-transformer, iterations N (left)
  verified: every bit as in the reference
  $ iterations() { grep "^job $1" out | sed 's/.*iterations \([0-9]*\).*/\1/'; }
  > planrun exec lenet.plan --data data/digits/digits.csv.gz -n $(iterations 0) --save lenet.at >/dev/null 2>&1
  > planrun exec tt.plan --data data/digits/digits.csv.gz -n $(iterations 1) --save tt.at >/dev/null 2>&1
  > values() { tail -n +2 $1 | head -c -8; }
  > { values lenet.at; values tt.at; } > alone; values left | cmp - alone && echo same
  same

One that goes on in other rounds adds up in another order, which is told.

  $ planc plan lenet.yaml --batch 16 --sub-batch 8 --device k40m --policy none -o halves.plan >/dev/null 2>&1
  $ sed 's/in both.*lenet;/in halves;/; s/--save left//' watched > halved; sh halved 2>/dev/null; grep rounds error
  planrun: note: job 0 (lenet-digits) goes on in other rounds: its results may differ in the last bits

A checkpoint has those that have left as well, and goes on with any of them, or with others beside them.

  $ planrun exec tt.plan --data data/digits/digits.csv.gz --resume left -n 0 2>&1 >/dev/null | grep -v 'plain ones' | sed 's/of iteration [0-9]*/of iteration N/; s/its iteration [0-9]*/its iteration N/'
  planrun: note: job 0 (l) of left is not in the plan: it is kept as it is, at its iteration N
  planrun: note: the checkpoint is of iteration N of every job, or a later one, and 0 in all are asked for: none is left
  $ planrun exec both.plan --data t:data/digits/digits.csv.gz --resume tt.at -n 4 2>&1 | grep -v 'plain ones' | sed 's/iterations [0-9]*, loss.*/iterations N/'
  planrun: note: job 1 (l) is not in tt.at: it starts anew
  job 0: t, tiny-transformer, iterations N
  job 1: l, lenet-digits, iterations N
  peak 320.50 MiB, host 0 B

The iterations of the run are those of the jobs that ran when another joins; data of a job that never comes is told.

  $ sed 's/--data t:[^ ]* /--data nobody:data\/digits\/digits.csv.gz /; s/in both.*lenet;/in both;/' watched > joined; sh joined 2>/dev/null; grep 'changed\|joins\|nobody' error | sed 's/ in [0-9.]* .iB//' > told; sed 's/iteration [1-9][0-9]*/iteration N/' told
  planrun: note: iteration N: changed to next.plan, policy zico
  planrun: note: job 1 (t) joins at its iteration 0, and at iteration N of job 0 (l)
  planrun: note: --data: no job called nobody has come: data/digits/digits.csv.gz was not used
  $ sed -n '1s/.*note: iteration \([0-9]*\):.*/\1/p; 2s/.*and at iteration \([0-9]*\) of.*/\1/p' told | uniq | wc -l
  1

Whose epochs count is told where not all jobs have data.

  $ planrun exec both.plan -n 2 --save two.at >/dev/null 2>&1
  $ planrun exec both.plan --data t:data/digits/digits.csv.gz --resume two.at --epochs 1 2>&1 | grep 'epochs\|left'
  planrun: note: the epochs of job 1 (t) count: it is at iteration 2, and 1 of them end with iteration 179
  $ planrun exec both.plan --data t:data/digits/digits.csv.gz --epochs 1 --save epoch.at >/dev/null 2>&1
  $ planrun exec both.plan --data t:data/digits/digits.csv.gz --resume epoch.at --epochs 1 2>&1 | grep 'epochs\|left'
  planrun: note: the epochs of job 1 (t) count: it is at iteration 179, and 1 of them end with iteration 179
  planrun: note: none of the iterations that are asked for is left

What could be meant in two ways, or is no job of the run, is refused, and the run goes on with the plan that it has.

  $ planc colocate lenet.yaml:16 lenet.yaml:16 --device k40m --policy temporal -o twice.plan >/dev/null 2>&1
  $ planc colocate l=lenet.yaml:8 t=tt.yaml:8 --device k40m --policy temporal -o eight.plan >/dev/null 2>&1
  $ planc train graphs/lenet-digits.yaml --optimizer sgd -o sgd.yaml 2>/dev/null; planc plan sgd.yaml --batch 16 --device k40m --policy none -o sgd.plan >/dev/null 2>&1
  sgd.yaml: lenet-digits, 35 ops
  $ sed -i 's/^planrun exec lenet.plan/planrun exec both.plan/; s/--data [^ ]* --data [^ ]*//; s/in both.*lenet;/in eight sgd twice;/' watched; sh watched 2>/dev/null; grep before error
  planrun: note: next.plan: job l: made for 8 samples in a batch, the run has 16: the run goes on as before
  planrun: note: next.plan: job lenet-digits: made from another graph than the run's: the run goes on as before
  planrun: note: next.plan: 2 of its jobs train lenet-digits alike, of the run's 1: only names tell which is which, planc colocate NAME=GRAPH: the run goes on as before
  $ planrun exec both.plan --resume lenet.at --data x:data/digits/digits.csv.gz
  ! planrun: --data: both.plan has no job x
  [2]
  $ planrun exec sgd.plan --resume left 2>&1 | grep -v 'plain ones'
  planrun: left: job lenet-digits: made from another graph than the run's

Of two alike one may stay alone under its name.

  $ planc colocate a=lenet.yaml:16:1 b=lenet.yaml:16:1 --device k40m --policy temporal -o ab.plan >/dev/null 2>&1; planrun exec ab.plan -n 2 --save ab.at >/dev/null 2>&1
  $ planc colocate b=lenet.yaml:16 --device k40m -o b.plan >/dev/null 2>&1; planrun exec b.plan --resume ab.at -n 3 --verify 2>&1 | grep -v 'plain ones'
  planrun: note: job 0 (a) of ab.at is not in the plan: it is kept as it is, at its iteration 2
  job 0: a, lenet-digits, iterations 2 (left)
  job 1: b, lenet-digits, iterations 3, loss 2.25576234
  peak 407.88 KiB, host 0 B
  verified: every bit as in the reference, from iteration 2 of every job on

A checkpoint says whose samples a job has trained on; a run that does nothing changes nothing of that.

  $ planrun exec b.plan --data data/digits/digits.csv.gz -n 1 --save b1.at >/dev/null 2>&1; planrun exec b.plan --resume b1.at -n 1 --save b2.at >/dev/null 2>&1
  $ planrun exec b.plan --resume b2.at --data data/digits/digits.csv.gz -n 2 2>&1 | grep 'pseudo'
  [1]
  $ planrun exec b.plan --resume b2.at -n 2 --save b3.at >/dev/null 2>&1; planrun exec b.plan --resume b3.at --data data/digits/digits.csv.gz -n 3 2>&1 | grep 'pseudo'
  planrun: note: b3.at is of a run without --data: up to iteration 2 it has trained on pseudo-random samples

Names are unlike each other.

  $ planc colocate a=lenet.yaml a=tt.yaml --device k40m -o x.plan 2>&1 | tail -1
  planc: job 1 (a): job 0 is called a already
  $ planc colocate $(printf 'a%.0s' $(seq 64))=lenet.yaml tt.yaml --device k40m -o x.plan 2>&1 | tail -1 | sed 's/a*=/NAME=/'
  planc: NAME=lenet.yaml: the job's name is longer than 63 characters
  $ sed '/"job":0,/s/"name":"l"/"name":"t"/' both.plan > same.plan; planc check same.plan
  ! planc: same.plan: jobs 0 and 1 have one name, t
  [1]
  $ sed '/"job":0,/s/"name":"l"/"name":"7"/' both.plan > number.plan; planc check number.plan 2>&1 | sed 's/:[0-9]*:[0-9]*:/:/'
  planc: number.plan: the name does not begin with a letter
