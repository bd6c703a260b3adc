One row per policy, also where it does not fit; making the table is a success.

  ~ planc compare inputs/tiny.yaml --budget 24K --policies ideal,none,vdnn-all,modnn
  tiny, batch <N> on k40m, budget <size>
  policy     least budget  round        iteration    ideal         peak          out           in      recompute
  ideal <size> <N> <N> ms  +<N>% <size> <size> <size>              -
  none <size>   does not fit
  vdnn-all <size> <N> <N> ms  +<N>% <size> <size> <size>              -
  modnn <size> <N> <N> ms  +<N>% <size> <size> <size>              -
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  $ planc compare inputs/tiny.yaml --budget 1K --policies none,modnn
  tiny, batch 4 on k40m, budget 1.00 KiB
  policy     least budget  round        iteration    ideal         peak          out           in      recompute
  none          25.00 KiB   does not fit
  modnn          6.00 KiB   does not fit
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch 4 (the graph's header)
  $ planc compare inputs/tiny.yaml 2>/dev/null | cut -d ' ' -f 1
  tiny,
  policy
  ideal
  none
  vdnn-all
  vdnn-conv
  vdnn-dyn
  vdnn+
  modnn
  chen
  cheap

Rows come in the order asked for.

  $ planc compare inputs/tiny.yaml --policies modnn,none 2>/dev/null | cut -d ' ' -f 1
  tiny,
  policy
  modnn
  none
