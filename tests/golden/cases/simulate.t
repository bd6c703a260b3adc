What a plan takes is predicted from the plan alone.

  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M -o tiny.plan >/dev/null 2>&1
  ~ planc simulate tiny.plan
  tiny, vdnn-all on k40m, batch <N> in <N> round
  iteration <N> ms   ideal <N> ms
    compute <N> ms   of it recompute <N> ms
    slowed <N> ms   by copies beside it
    waits h2d <N> ms <size> moved
    waits d2h <N> ms <size> moved
    waits launch <N> ms
  first iteration <N> ms, prologue <N> ms, epilogue <N> ms
