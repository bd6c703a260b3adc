A plan is checked against its own budget or another one.

  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M -o tiny.plan >/dev/null 2>&1
  $ planc check tiny.plan | cut -d, -f1-3
  valid: tiny, vdnn-all, peak 21.00 KiB of 1.00 MiB
  $ planc check tiny.plan --budget 21K | cut -d, -f1-3
  valid: tiny, vdnn-all, peak 21.00 KiB of 21.00 KiB
  $ planc check tiny.plan --budget 20K
  ! planc: tiny.plan: needs 21504 bytes on the device (arena 21504, reserved 0), the budget is 20480, 1024 too few
  [1]
  $ planc check tiny.plan --host-budget 1K
  ! planc: tiny.plan: host needs 12288 bytes, its budget is 1024, 11264 too few
  [1]

A message about a plan that is not valid names the line, the instruction and the storage: here an op runs twice, a wait
comes too late, memory is used twice, an op's input is not there, the stated peak is not that of the arena.

  $ planc plan inputs/tiny.yaml --policy none -o tiny.plan >/dev/null 2>&1
  $ sed 's/"exec","n":1/"exec","n":0/' tiny.plan > wrong.plan; planc check wrong.plan
  ! planc: wrong.plan: line 50: exec first: runs twice, and not to recompute
  [1]
  $ sed '0,/\("wait","e":[0-9]*\),"s":0/s//\1,"lag":1,"s":0/' tiny.plan > wrong.plan; planc check wrong.plan
  ! planc: wrong.plan: line 38: wait event 5: a wait with lag 1 must stand before the record of the same body
  [1]
  $ sed 's/"at":5120/"at":4096/' tiny.plan > wrong.plan; planc check wrong.plan
  ! planc: wrong.plan: line 46: acquire a: overlaps x in residency 1, which is open at 1024
  [1]
  $ sed 's/"use":\[1,0,2\]/"use":[1,0,1]/' tiny.plan > wrong.plan; planc check wrong.plan
  ! planc: wrong.plan: line 48: exec first: wants a, but residency 1 is of x
  [1]
  $ sed '3s/"arena":25600/"arena":25599/' tiny.plan > wrong.plan; planc check wrong.plan
  ! planc: wrong.plan: line 58: acquire b.grad: 8192 bytes from address 17408 on are not inside the arena of 25599 bytes
  [1]
  $ sed '7s/"engine":0/"engine":1/' tiny.plan > wrong.plan; planc check wrong.plan
  ! planc: wrong.plan: line 36: prefetch w: stream 1 does not copy from the user to device 0
  [1]
  $ sed '3s/"budget":[0-9]*/"budget":1024/' tiny.plan > wrong.plan; planc check wrong.plan
  ! planc: wrong.plan: needs 25600 bytes on the device (arena 25600, reserved 0), the budget is 1024, 24576 too few
  [1]
  $ planc check wrong.plan --json
  {"planc":"check/1","plan":"wrong.plan","valid":false,"budget_bytes":1024,"exit_code":1,"message":"wrong.plan: needs 25600 bytes on the device (arena 25600, reserved 0), the budget is 1024, 24576 too few"}
  ! planc: wrong.plan: needs 25600 bytes on the device (arena 25600, reserved 0), the budget is 1024, 24576 too few
  [1]

planrun refuses such a plan as well.

  $ planrun exec wrong.plan
  ! planrun: wrong.plan: needs 25600 bytes on the device (arena 25600, reserved 0), the budget is 1024, 24576 too few
  [1]
