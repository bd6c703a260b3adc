A job of several whose loss is no number ends alone: the other ends with the losses that it has alone.

  $ planc train graphs/lenet-digits.yaml --optimizer momentum -o good.yaml 2>/dev/null; sed 's/lr: 0.01/lr: 1e9/' good.yaml > hot.yaml
  good.yaml: lenet-digits, 35 ops
  $ for policy in temporal zico waterwave tensile; do
  >   planc colocate good.yaml:16 hot.yaml:16 --device k40m --policy $policy -o $policy.plan >/dev/null 2>&1
  > done
  $ planc plan good.yaml --batch 16 --device k40m --policy none -o alone.plan >/dev/null 2>&1
  $ planc plan hot.yaml --batch 16 --device k40m --policy none -o hot.plan >/dev/null 2>&1
  $ planrun exec alone.plan --data data/digits/digits.csv.gz -n 6 --json 2>/dev/null | grep -o '"losses":\[[^]]*\],"accuracy":[0-9.]*' > alone
  $ for policy in temporal zico waterwave tensile; do
  >   planrun exec $policy.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -n 6 --check-nan --jitter 3 --poison --json 2>error >out || echo "exit $?"
  >   grep -v note error; grep -o '"failed":.*' out; grep -o '"losses":\[[^]]*\],"accuracy":[0-9.]*,*' out | sed -n 's/,$//; 2p' | cmp - alone
  > done
  exit 8
  planrun: temporal.plan: job 1 (lenet-digits): iteration 2: the loss is nan
  "failed":{"iteration":2,"why":"job 1 (lenet-digits): iteration 2: the loss is nan"}}]}
  exit 8
  planrun: zico.plan: job 1 (lenet-digits): iteration 2: the loss is nan
  "failed":{"iteration":2,"why":"job 1 (lenet-digits): iteration 2: the loss is nan"}}]}
  exit 8
  planrun: waterwave.plan: job 1 (lenet-digits): iteration 2: the loss is nan
  "failed":{"iteration":2,"why":"job 1 (lenet-digits): iteration 2: the loss is nan"}}]}
  exit 8
  planrun: tensile.plan: job 1 (lenet-digits): iteration 2: the loss is nan
  "failed":{"iteration":2,"why":"job 1 (lenet-digits): iteration 2: the loss is nan"}}]}

Without the option it goes on. Alone it ends the run.

  $ planrun exec zico.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -n 6 2>&1 | grep -o 'job [01].*iterations [0-9]*\|.*first that is.*'
  planrun: note: job 1 (lenet-digits): the loss of iteration 2 is nan, the first that is no finite number
  job 0: lenet-digits, iterations 6
  job 1: lenet-digits, iterations 6
  $ planrun exec hot.plan --data data/digits/digits.csv.gz -n 6 --check-nan 2>&1 | grep -v note
  planrun: hot.plan: job 0 (lenet-digits): iteration 2: the loss is nan

So does a label that is none of the graph's, which alone is bad input.

  $ sed 's/10\b/9/' graphs/lenet-digits.yaml > nine.yaml
  $ planc colocate good.yaml:16 nine.yaml:16 --device k40m --policy zico -o nines.plan >/dev/null 2>&1
  $ planrun exec nines.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -n 6 --verify --save at --trace run.json 2>error | grep -o 'job [01].*iterations [0-9]*\( (failed)\)*\|verified.*'; grep -v note error
  job 0: lenet-digits, iterations 6
  job 1: lenet-digits, iterations 0 (failed)
  verified: every bit as in the reference, but of what failed
  planrun: nines.plan: job 1 (lenet-digits): input labels, iteration 0: row 1613 of the data has label 9, and the graph takes those below 9
  $ planc simulate nines.plan --against run.json
  ! planc: run.json: otherData.failed: a job failed in this run, and its work is not all there: it is no measure
  [3]
  $ planc plan nine.yaml --batch 16 --device k40m --policy none -o nine.plan >/dev/null 2>&1; planrun exec nine.plan --data data/digits/digits.csv.gz -n 6 2>&1 | grep -v note
  planrun: nine.plan: job 0 (lenet-digits): input labels, iteration 0: row 1613 of the data has label 9, and the graph takes those below 9

A checkpoint knows which job has failed, and a run goes on with the others.

  $ planrun exec nines.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -n 8 --resume at 2>error | grep -o 'job [01].*iterations [0-9]*\( (failed)\)*'; grep -v note error
  job 0: lenet-digits, iterations 8
  job 1: lenet-digits, iterations 0 (failed)
  planrun: nines.plan: job 1 (lenet-digits): input labels, iteration 0: row 1613 of the data has label 9, and the graph takes those below 9
  $ planrun exec alone.plan --data data/digits/digits.csv.gz -n 8 --json 2>/dev/null | grep -o '"losses":\[[^]]*\]' | tr ',' '\n' | tail -2 > alone
  $ planrun exec nines.plan --data 0:data/digits/digits.csv.gz -n 8 --resume at --json 2>/dev/null | grep -o '"losses":\[[^]]*\]' | sed -n 2p | tr ',' '\n' | tail -2 | sed 's/.*\[//' | cmp - alone

The others do as much as where nothing fails, in one run or in two. An epoch of the run stays one: of job 0, three times
its data.

  $ planc colocate good.yaml:64:3 hot.yaml:64:1 --device k40m --policy zico -o uneven.plan >/dev/null 2>&1
  $ planrun exec uneven.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -n 6 --check-nan --save whole 2>/dev/null | grep -o 'job [01].*iterations [0-9]*\( (failed)\)*'
  job 0: lenet-digits, iterations 18
  job 1: lenet-digits, iterations 2 (failed)
  $ planrun exec uneven.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -n 4 --check-nan --save part 2>/dev/null | grep -o 'job [01].*iterations [0-9]*\( (failed)\)*'
  job 0: lenet-digits, iterations 12
  job 1: lenet-digits, iterations 2 (failed)
  $ planrun exec uneven.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -n 6 --check-nan --resume part --save part 2>/dev/null | grep -o 'job [01].*iterations [0-9]*\( (failed)\)*'
  job 0: lenet-digits, iterations 18
  job 1: lenet-digits, iterations 2 (failed)
  $ cmp part whole
  $ planrun exec uneven.plan --data 0:data/digits/digits.csv.gz --data 1:data/digits/digits.csv.gz -e 3 --check-nan --json 2>/dev/null | grep -o '"losses":\[[^]]*\]' | sed -n 2p | tr ',' '\n' | wc -l
  66

Data is a job's, and each has its own.

  $ planrun exec nines.plan --data data/digits/digits.csv.gz
  ! planrun: --data: nines.plan has 2 jobs: say whose data it is, --data 0:data/digits/digits.csv.gz
  [2]
  $ planrun exec nines.plan --data 2:data/digits/digits.csv.gz
  ! planrun: --data: nines.plan has no job 2
  [2]
  $ planrun exec nines.plan --data 0:data/digits/digits.csv.gz --data 0:data/digits/digits.csv.gz
  ! planrun: --data: job 0 has data already
  [2]
  $ planrun exec nines.plan --check-nan --synthetic
  ! planrun: --check-nan and --synthetic exclude each other
  [2]

A job that failed stays so where a run goes on from its checkpoint. It is no failure of a run that has it no longer, and under another name it starts anew.

  $ planc colocate a=nine.yaml:16 b=good.yaml:16 --device k40m --policy zico -o named.plan >/dev/null 2>&1
  $ planc colocate c=good.yaml:16 b=good.yaml:16 --device k40m --policy zico -o again.plan >/dev/null 2>&1
  $ planrun exec named.plan --data a:data/digits/digits.csv.gz --data b:data/digits/digits.csv.gz -n 2 --save failed >/dev/null 2>&1; echo $?
  8
  $ planrun exec named.plan --data a:data/digits/digits.csv.gz --data b:data/digits/digits.csv.gz -n 4 --resume failed 2>&1 | grep 'job [01]'
  planrun: note: job 0 (a) has failed at iteration 0 and stays so: under another name it starts anew
  planrun: named.plan: job 0 (a): input labels, iteration 0: row 1613 of the data has label 9, and the graph takes those below 9
  job 0: a, lenet-digits, iterations 0 (failed)
  job 1: b, lenet-digits, iterations 4, loss 2.50679398, accuracy 0.1504
  $ planrun exec again.plan --data b:data/digits/digits.csv.gz --data c:data/digits/digits.csv.gz -n 4 --resume failed 2>&1 | grep 'job [012]'
  planrun: note: job 0 (a) of failed is not in the plan: it is kept as it is, failed at iteration 0
  planrun: note: job 2 (c) is not in failed: it starts anew
  job 0: a, lenet-digits, iterations 0 (failed)
  job 1: b, lenet-digits, iterations 6, loss 2.52034974, accuracy 0.1448
  job 2: c, lenet-digits, iterations 4, loss 2.67489678, accuracy 0.1504
  $ planrun exec again.plan --data b:data/digits/digits.csv.gz --data c:data/digits/digits.csv.gz -n 4 --resume failed >/dev/null 2>&1; echo $?
  0
