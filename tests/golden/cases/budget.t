12G and 12GiB are 12 * 2^30 bytes, 12GB are 12 * 10^9; a bare number is bytes.

  $ budget() { planc compare inputs/tiny.yaml --policies none --json --budget "$1" 2>/dev/null |
  >   sed 's/.*"budget_bytes":\([0-9]*\).*/\1/'; }
  > for size in 12G 12GiB 12GB 1.5G 1.5GB 12000M 400K 400KiB 400KB 0.5T 30000 30000B 1.0000000001K .5M; do
  >   echo "$size $(budget $size)"
  > done
  12G 12884901888
  12GiB 12884901888
  12GB 12000000000
  1.5G 1610612736
  1.5GB 1500000000
  12000M 12582912000
  400K 409600
  400KiB 409600
  400KB 400000
  0.5T 549755813888
  30000 30000
  30000B 30000
  1.0000000001K 1024
  .5M 524288

Anything else is refused.

  $ for size in '' G 12Q 12g 12GIB 12Gib -1 +1 1e9 12,5G '12 G' ' 12G' 0x10 1.5.5G nan 12GG .; do
  >   planc plan inputs/tiny.yaml --budget "$size"
  > done
  ! planc: --budget: no size is given (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: G is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 12Q is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 12g is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 12GIB is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 12Gib is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: -1 is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: +1 is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 1e9 is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 12,5G is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 12 G is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget:  12G is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 0x10 is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 1.5.5G is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: nan is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: 12GG is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  ! planc: --budget: . is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  [2]
  $ planc plan inputs/tiny.yaml --budget 9999999T
  ! planc: --budget: 9999999T is beyond the largest size
  [2]
  $ planc plan inputs/tiny.yaml --budget 9223372036854775808
  ! planc: --budget: 9223372036854775808 is beyond the largest size
  [2]
  $ planc plan inputs/tiny.yaml --host-budget lots
  ! planc: --host-budget: lots is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  [2]
  $ planc check inputs/tiny.yaml --budget lots
  ! planc: --budget: lots is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  [2]

No budget is too small to be answered.

  $ planc plan inputs/tiny.yaml --budget 0 --policy none 2>&1 | tail -n 1
  planc: does not fit 0 B: policy none, in its last attempt, took 25600 bytes of device memory, the budget is 0: b of 8192 bytes finds no place at op last.grad beside 17408 bytes, the largest b.grad of 8192 and x of 4096
