A plan under a third of the resident peak computes the resident plan's bits.

  $ planc plan graphs/lenet-digits.yaml --policy none -o resident.plan >/dev/null 2>&1
  $ planc plan graphs/lenet-digits.yaml --budget 240K -o lenet.plan >/dev/null 2>&1
  ~ planrun exec lenet.plan --iterations 3 --verify --poison
  iterations <N>
  loss <N>
  peak <size>, host <size>
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms gemm, default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ~ planrun exec lenet.plan --data data/digits/digits.csv.gz --iterations 2 --verify
  iterations <N>
  loss <N>
  accuracy <N>
  peak <size>, host <size>
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms gemm, default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  $ planrun exec lenet.plan --data data/digits/digits.csv.gz --iterations 2 | grep loss > one
  > planrun exec lenet.plan --data data/digits/digits.csv.gz --iterations 2 --interleave 5 | grep loss > two
  > cmp one two && echo same
  same
  ! planrun: note: backend host does not have the plan's algorithms gemm, default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms gemm, default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with

Any graph runs with stand-ins.

  $ planc plan inputs/tiny.yaml --budget 10K -o tiny.plan >/dev/null 2>&1
  ~ planrun exec tiny.plan --synthetic --iterations 4
  iterations <N>
  peak <size>, host <size>
  verified: every bit as in the reference
  $ planrun exec tiny.plan
  ! planrun: tiny.plan: body[5]: op first, algorithm default: the host has no kernel for my.op; planrun exec --synthetic runs any graph, with stand-ins
  [6]
  $ planrun profile inputs/tiny.yaml -o tiny.json
  ! planrun: note: batch 4 (the graph's header)
  ! planrun: batch 4: op first: the host has no kernel for my.op, so the graph cannot be measured; planc plan --device plans it by predicted times
  [6]

Stand-ins go on from stand-ins alone.

  $ planrun exec lenet.plan --synthetic --save hashes >/dev/null && planrun exec lenet.plan --synthetic --iterations 2 --resume hashes | head -1
  iterations 2
  $ planrun exec lenet.plan --iterations 2 --resume hashes
  ! planrun: note: backend host does not have the plan's algorithms gemm, default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: hashes: saved by a run of stand-ins, which train nothing: only such a run goes on from it
  [4]
  $ planrun exec lenet.plan --save trained >/dev/null 2>&1; planrun exec lenet.plan --synthetic --iterations 2 --resume trained
  ! planrun: trained: saved by a run of real ops: one of stand-ins cannot go on from it
  [4]

Who goes on in other rounds is told, for sums are rounded otherwise.

  $ for size in 64 16; do planc plan graphs/lenet-digits.yaml --batch 64 --sub-batch $size --budget 2M -o rounds.$size.plan >/dev/null 2>&1; done
  $ planrun exec rounds.64.plan -n 2 --save whole >/dev/null 2>&1; planrun exec rounds.64.plan -n 3 --resume whole 2>&1 | grep -c 'other rounds'
  0
  [1]
  $ planrun exec rounds.16.plan -n 3 --resume whole 2>&1 | grep 'other rounds'
  planrun: note: job 0 (lenet-digits) goes on in other rounds: its results may differ in the last bits

A rate that is none is told with examples of rates.

  $ planrun exec lenet.plan --link 1PB/s
  ! planrun: --link takes a rate such as 0.2GB/s or 200MiB/s, not 1PB/s
  [2]

A trace needs something that runs.

  $ planrun exec tiny.plan --synthetic --iterations 0 --trace none.json; ls none.json
  ! planrun: --trace: no iteration runs, so there is nothing to write
  ! ls: cannot access 'none.json': No such file or directory
  [2]
  $ planrun exec tiny.plan --synthetic --iterations 2 --save at.checkpoint >/dev/null && planrun exec tiny.plan --synthetic --iterations 2 --resume at.checkpoint --trace none.json >/dev/null; ls none.json
  ! planrun: note: the checkpoint is of iteration 2, and 2 in all are asked for: none is left
  ! planrun: note: no period has run with the plan: none.json is not written
  ! ls: cannot access 'none.json': No such file or directory
  [2]

Backends are those of planrun, and plug-ins that are there.

  $ planrun exec tiny.plan --backend foo
  ! planrun: no backend foo: there are host and cuda
  [2]

Recomputed dropout keeps the same elements and recomputed batch norm updates its running statistics once, with every
stream on its own and delayed at random.

  $ for policy in cheap chen; do
  >   planc plan inputs/dropnorm.yaml --device k40m --batch 12 --policy $policy -o drop.plan >/dev/null 2>&1
  >   grep -c '"re":1' drop.plan
  >   planrun exec drop.plan --iterations 5 --verify --poison --jitter 2 | tail -1
  > done
  4
  verified: every bit as in the reference
  2
  verified: every bit as in the reference
  ! planrun: note: backend host does not have the plan's algorithms gemm, default, winograd: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  ! planrun: note: backend host does not have the plan's algorithms gemm, default, winograd: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with

Samples that are made once are the first period's in every period: with the parameters kept as they are (inference), so
is every loss.

  $ planc plan graphs/lenet-digits.yaml --inference --device k40m --batch 4 --budget 4M -o infer.plan >/dev/null 2>&1
  $ planrun exec infer.plan --same-samples --iterations 3 --verify --json | sed 's/.*"losses":\[\([^]]*\)\].*/\1/' | tr ',' '\n' | sort -u | wc -l
  1
  ! planrun: note: backend host does not have the plan's algorithms gemm, default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  $ planrun exec infer.plan --iterations 3 --json | sed 's/.*"losses":\[\([^]]*\)\].*/\1/' | tr ',' '\n' | sort -u | wc -l
  3
  ! planrun: note: backend host does not have the plan's algorithms gemm, default: plain ones stand in, which may take far longer; a profile of planrun profile has its own to plan with
  $ planrun exec infer.plan --same-samples --data data/digits/digits.csv.gz
  ! planrun: --data and --same-samples exclude each other
  [2]

What a plan keeps in storage needs a directory, in which nothing is left.

  $ planrun exec data/plan/storage.plan --synthetic
  ! planrun: data/plan/storage.plan: the plan keeps 512 B in storage, and no directory is given for it; --storage names one that has room
  [2]
  $ mkdir disk && planrun exec data/plan/storage.plan --synthetic --iterations 3 --jitter 3 --poison --storage disk && rmdir disk
  iterations 3
  peak 1.50 KiB, host 512 B, storage 512 B
  verified: every bit as in the reference
  $ planrun exec data/plan/storage.plan --synthetic --storage disk
  ! planrun: data/plan/storage.plan: host: no storage in disk: No such file or directory
  [6]
  $ planrun exec data/plan/storage.plan --synthetic --storage /proc
  ! planrun: data/plan/storage.plan: host: no storage in /proc: no file can be made there
  [6]
  $ planrun exec data/plan/storage.plan --synthetic --storage data/plan/storage.plan
  ! planrun: data/plan/storage.plan: host: no storage in data/plan/storage.plan: Not a directory
  [6]
