How jobs share the GPU's time: by weight, and with least shares.

  $ planc colocate graphs/resnet50.yaml:64 graphs/bert-base.yaml:16 --device v100-32g --weight 1:3 -o mix.plan | grep 'job .*iterations*$\|runs at'
    job 0: resnet50, batch 64 in 1 round of 64, 1 iteration
    job 1: bert-base, batch 16 in 1 round of 16, 5 iterations
    job 0 runs at 24.6 % of what it does alone, 211.989 ms an iteration by none
    job 1 runs at 75.7 % of what it does alone, 130.635 ms an iteration by none
  ! planc: note: policy temporal (the fall-back)
  ! planc: note: graphs/resnet50.yaml has no backward ops: planned for training with sgd (given as graphs/resnet50.yaml:64:inference it is planned as it is)
  ! planc: note: graphs/bert-base.yaml has no backward ops: planned for training with adam (given as graphs/bert-base.yaml:16:inference it is planned as it is)
  ! planc: note: budget 31.75 GiB (device v100-32g)
  $ planc colocate graphs/resnet50.yaml:64 b=graphs/bert-base.yaml:16 --device v100-32g --policy temporal --min-share b:60 -o mix.plan | grep 'job .*iterations*$\|runs at'
    job 0: resnet50, batch 64 in 1 round of 64, 2 iterations
    job 1: b, bert-base, batch 16 in 1 round of 16, 5 iterations
    job 0 runs at 39.4 % of what it does alone, 211.989 ms an iteration by none
    job 1 (b) runs at 60.8 % of what it does alone, at least 60 %, 130.635 ms an iteration by none
  ! planc: note: graphs/resnet50.yaml has no backward ops: planned for training with sgd (given as graphs/resnet50.yaml:64:inference it is planned as it is)
  ! planc: note: graphs/bert-base.yaml has no backward ops: planned for training with adam (given as b=graphs/bert-base.yaml:16:inference it is planned as it is)
  ! planc: note: budget 31.75 GiB (device v100-32g)
  $ planc colocate graphs/resnet50.yaml:64:1 graphs/bert-base.yaml:16:1 --device v100-32g --policy temporal --min-share 1:40 -o mix.plan
  ! planc: note: graphs/resnet50.yaml has no backward ops: planned for training with sgd (given as graphs/resnet50.yaml:64:1:inference it is planned as it is)
  ! planc: note: graphs/bert-base.yaml has no backward ops: planned for training with adam (given as graphs/bert-base.yaml:16:1:inference it is planned as it is)
  ! planc: note: budget 31.75 GiB (device v100-32g)
  ! planc: note: each job has its share with these iterations in a period, GRAPH:BATCH:ITERATIONS: 2 of job 0 (resnet50), 3 of job 1 (bert-base)
  ! planc: job 1 (bert-base) runs at 38.38 % of what it does alone, with 1 iteration in a period, and is to run at 40.00 % at least
  [1]
  $ planc compare --colocate graphs/resnet50.yaml:64 graphs/bert-base.yaml:16 --device v100-32g --policies temporal,zico,vdnn-conv --no-least --min-share 0:52.5 --weight 1:2
  2 jobs on v100-32g, budget 31.75 GiB
    job 0: resnet50, batch 64, 1 iteration in a period, alone 211.989 ms each by none
    job 1: bert-base, batch 16, 3 iterations in a period, alone 130.635 ms each by none
  policy       least budget           period         peak throughput  speed of each
  temporal                -      1156.289 ms     7.19 GiB      1.002  0.550 0.452  job 0 in 3 iterations  job 1 in 4 iterations
  zico                    -       785.869 ms    10.04 GiB      1.038  0.540 0.499  job 0 in 2 iterations <- fastest by weight
  vdnn-conv               -   too slow
  why zico: side by side in regions of 64.00 MiB: in every period job 0 begins 3.226 ms after job 1
  vdnn-conv: job 0 (resnet50) runs at 45.22 % of what it does alone, with 8 iterations in a period, and is to run at 52.50 % at least
  ! planc: note: graphs/resnet50.yaml has no backward ops: planned for training with sgd (given as graphs/resnet50.yaml:64:inference it is planned as it is)
  ! planc: note: graphs/bert-base.yaml has no backward ops: planned for training with adam (given as graphs/bert-base.yaml:16:inference it is planned as it is)
  ! planc: note: budget 31.75 GiB (device v100-32g)
  $ planc colocate graphs/lenet-digits.yaml:2 graphs/lenet-digits.yaml:2 --device k40m --budget 1G --policy temporal --min-share 55 -o mix.plan
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:2:inference it is planned as it is)
  ! planc: note: each job has its share with --policy auto
  ! planc: job 0 (lenet-digits) runs at 52.91 % of what it does alone, with 1 iteration in a period, and is to run at 55.00 % at least
  [1]
  $ planc colocate graphs/lenet-digits.yaml:2 graphs/lenet-digits.yaml:256 --device k40m --budget 1G --policy temporal --max-ratio 1 --min-share 60 -o mix.plan
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:2:inference it is planned as it is)
  ! planc: note: with up to 4 iterations of a job in a period, and by policy auto, a job is slower than its share as well
  ! planc: job 0 (lenet-digits) runs at 22.31 % of what it does alone, with 1 iteration in a period, and is to run at 60.00 % at least
  [1]
  $ planc colocate graphs/lenet-digits.yaml:2 graphs/lenet-digits.yaml:2 --device k40m --policy zico --min-share 0
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:2:inference it is planned as it is)
  ! planc: --min-share 0: not a number of percent, more than 0 and at most 100
  [2]
  $ planc colocate graphs/lenet-digits.yaml:2 graphs/lenet-digits.yaml:2 --device k40m --policy zico --min-share 40 --min-share 50
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:2:inference it is planned as it is)
  ! planc: --min-share 40 and 50: one of all jobs
  [2]
  $ planc colocate graphs/lenet-digits.yaml:2 graphs/lenet-digits.yaml:2 --device k40m --policy zico --weight 0:1001
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:2:inference it is planned as it is)
  ! planc: --weight 1001: not an integer from 1 to 1000
  [2]
  $ planc colocate graphs/lenet-digits.yaml:2 graphs/lenet-digits.yaml:2 --device k40m --policy zico --weight 2
  ! planc: note: graphs/lenet-digits.yaml has no backward ops: planned for training with sgd (given as graphs/lenet-digits.yaml:2:inference it is planned as it is)
  ! planc: --weight 2: say whose it is, as in 1:5
  [2]
