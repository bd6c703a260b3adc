A graph that has never run gets the times of a device's constants, or of its model, as a profile that can be planned with.

  ~ planc predict inputs/tiny.yaml --device p100 -o p.json
  p.json: <N> ops on p100, <N> of them by its model, predicted in <N> ms
    compute <N> ms at batch <N>, with the fastest algorithms
  ! planc: note: device p100 has no model: times are those of its constants
  ! planc: note: batch <N> (the graph's header)
  $ grep -c '"predicted":true' p.json
  7
  ~ planc plan inputs/tiny.yaml --profile p.json -o tiny.plan
  tiny.plan: none, batch <N> in <N> round of <N>
    peak <size> of <size>, host <size>
    iteration <N> ms, ideal <N> ms (+<N> %)
    bound <N> ms, than which no plan in this order and such rounds is faster (+<N> %)
    moved <size> out, <size> in; recomputed <N> ms
    why       no other policy that fits is faster by more than a thousandth; none: every op has its fastest algorithm
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device p100)
  ! planc: note: policy auto (the fall-back)
  ~ planc predict inputs/tiny.yaml --device p100 --load 0.5 --batch 6 --json -o busy.json
  {"planc":"predict/1","device":"p100","ops":<N>,"modelled":<N>,"load_ppm":<N>,"batch":<N>,"compute_ns":<N>,"predict_ns":<N>}
  ! planc: note: device p100 has no model: times are those of its constants

What was measured elsewhere makes a model. Times that are predicted are no measurements.

  $ planc predict --fit p.json --graphs inputs/tiny.yaml -o m.json
  ! planc: the profiles have no measured times
  [3]
  $ sed 's/"predicted":true,//g' p.json > measured.json
  ~ planc predict --fit measured.json --graphs inputs/tiny.yaml --name mine -o m.json
  m.json: <N> types and algorithms from <N> times, fitted and judged in <N> ms
    ops held out         median error <N> %, <N> % below <N> %; roofline <N> %; <N> times, <N> more not predicted
    measurements of one shape differ by <N> %, median of <N> times
  $ planc predict --fit measured.json --graphs inputs/tiny.yaml --name mine -o again.json > said && cmp m.json again.json
  ~ planc predict --fit measured.json measured.json --graphs inputs/tiny.yaml,inputs/tiny.yaml --json -o m.json
  {"planc":"predict-fit/1","groups":<N>,"times":<N>,"held_out_ops":{"n":<N>,"unknown":<N>,"median_ppm":<N>,"p90_ppm":<N>,"roofline_median_ppm":<N>},"repeated":<N>,"repeat_median_ppm":<N>,"fit_ns":<N>}
  $ planc predict --fit measured.json --graphs inputs/tiny.yaml --name mine -o - | cmp - again.json
  $ planc predict inputs/tiny.yaml --device p100 -o - 2> said | cmp - p.json
  $ planc predict inputs/tiny.yaml --device p100 --json -o -
  ! planc: two outputs go to standard output
  [2]
  ~ planc predict inputs/tiny.yaml --device m.json -o q.json
  q.json: <N> ops on p100, <N> of them by its model, predicted in <N> ms
    compute <N> ms at batch <N>, with the fastest algorithms
  ! planc: note: batch <N> (the graph's header)
  ~ planc predict inputs/tiny.yaml --device m.json --profile p.json -o q.json
  q.json: <N> ops on p100, <N> of them by its model, predicted in <N> ms
    compute <N> ms at batch <N>, with the fastest algorithms
  ! planc: note: batch <N> (the graph's header)
  $ ls
  again.json
  busy.json
  data
  graphs
  inputs
  m.json
  measured.json
  p.json
  q.json
  said
  tiny.plan

Profiles and graphs belong together.

  $ planc predict --fit measured.json --graphs graphs/vgg16.yaml -o x.json
  ! planc: measured.json: op first is not in graph vgg16
  [3]
  $ planc predict --fit measured.json -o x.json
  ! planc: --graphs must name the graph of each profile, in their order
  [2]
  $ planc predict --fit measured.json --graphs inputs/tiny.yaml,inputs/tiny.yaml -o x.json
  ! planc: --graphs names more than the 1 profiles
  [2]
  $ planc predict --fit measured.json --graphs inputs/tiny.yaml, -o x.json
  ! planc: --graphs takes paths with commas
  [2]
  $ planc predict --fit measured.json --graphs inputs/tiny.yaml --load 0.5 -o x.json
  ! planc: --fit and --load exclude each other
  [2]
  $ planc predict inputs/tiny.yaml --graphs inputs/tiny.yaml
  ! planc: --graphs needs --fit
  [2]
  $ planc predict inputs/tiny.yaml inputs/tiny.yaml
  ! planc: predict takes one graph
  [2]
  $ planc predict inputs/tiny.yaml --load 1.5
  ! planc: --load takes a fraction from 0 to 1
  [2]
  $ planc predict inputs/tiny.yaml --load nan
  ! planc: --load takes a fraction from 0 to 1
  [2]
  $ planc predict inputs/tiny.yaml --inference --optimizer sgd
  ! planc: an optimizer and inference exclude each other
  [2]
  $ planc predict inputs/tiny.yaml --device missing
  ! planc: no description of device missing; known ones: a100-40g, a100-80g, a6000, h100, h200, k40m, l4, p100, rtx2080ti, v100-16g-nvlink, v100-32g
  [3]
  $ sed 's/"roofline"/"other"/' m.json > bad.json
  $ planc predict inputs/tiny.yaml --device bad.json
  ! planc: bad.json: model.features[0]: must be roofline: the model is of another version
  [3]
  $ ls x.json
  ! ls: cannot access 'x.json': No such file or directory
  [2]

A profile of another graph is told, as ops match by name only; the profile names its graph, optimizer ops included. One
without a hash may be of any graph that it has an op of.

  $ planc predict graphs/lenet-digits.yaml --device k40m --batch 64 -o p.json >/dev/null 2>&1
  $ planc plan graphs/lenet-digits.yaml --profile p.json --batch 64 -o x.plan 2>&1 >/dev/null | grep p.json
  [1]
  $ planc plan graphs/lenet-digits.yaml --profile p.json --optimizer adam -o x.plan 2>&1 >/dev/null | grep p.json
  planc: note: p.json was made for another graph: 27 of 35 ops are in it by name
  $ planc compare inputs/tiny.yaml --profile p.json --policies none 2>&1 >/dev/null | grep p.json
  planc: note: p.json was made for another graph: 0 of 7 ops are in it by name
  $ grep -v graph_hash p.json > any.json
  $ planc plan graphs/lenet-digits.yaml --profile any.json --optimizer adam -o x.plan 2>&1 >/dev/null | grep any.json
  [1]
  $ planc compare inputs/tiny.yaml --profile any.json --policies none 2>&1 >/dev/null | grep any.json
  planc: note: any.json lists none of the graph's 7 ops: their costs are predicted

Where a profile was asked for workspaces at some batches only, a plan at others is made with a guess.

  $ planc predict graphs/vgg16.yaml --device k40m --batch 8 -o p.json >/dev/null 2>&1
  $ sed 's/"predicted":true/&,"sampled":true/' p.json > some.json
  $ planc plan graphs/vgg16.yaml --profile some.json --batch 8 --policy none -o x.plan 2>&1 >/dev/null | grep rounds
  [1]
  $ planc plan graphs/vgg16.yaml --profile some.json --batch 7 --policy none -o x.plan 2>&1 >/dev/null | grep rounds
  planc: note: the profile lists no workspaces for rounds of 7: they are taken from others, and planrun refuses a plan with too little (planrun profile lists them of batches that --batches or --unmeasured names)
