Both programs name the plan format that they speak.

  $ planc --version
  planc 0.1.0, plan format 2
  $ planrun --version
  planrun 0.1.0, plan format 2

Which processor and oneDNN there are is not looked at; of the CUDA backend only that something is said.

  $ planrun info | sed -e 's/^backend host: .*, oneDNN [0-9.]*, [a-z0-9_]*;/backend host: PROCESSOR, oneDNN VERSION, ISA;/' -e 's/^backend cuda: .*/backend cuda: .../'
  planrun 0.1.0, plan format 2
  backend host: PROCESSOR, oneDNN VERSION, ISA; f32, bf16
  backend cuda: ...
  $ planrun info --json | sed -e 's/"device":"[^"]*","library":"oneDNN [0-9.]*, [a-z0-9_]*"/"device":"PROCESSOR","library":"oneDNN VERSION, ISA"/' -e 's/_bytes":[0-9]*,"processors":[0-9]*/_bytes":N,"processors":N/' -e 's/{"name":"cuda".*/.../'
  {"planrun":"info/1","version":"0.1.0","plan_format":2,"backends":[{"name":"host","available":true,"device":"PROCESSOR","library":"oneDNN VERSION, ISA","dtype":"f32, bf16","memory_bytes":N,"processors":N},...
