Both programs name the plan format that they speak.

  $ planc --version
  planc 0.1.0, plan format 1
  $ planrun --version
  planrun 0.1.0, plan format 1

Which oneDNN there is and what this processor lets it use are not looked at.

  $ planrun info | sed 's/oneDNN [0-9.]*, [a-z0-9_]*$/oneDNN VERSION, ISA/'
  planrun 0.1.0, plan format 1
  backend host: f32, oneDNN VERSION, ISA
  $ planrun info --json | sed 's/oneDNN [0-9.]*, [a-z0-9_]*"/oneDNN VERSION, ISA"/'
  {"planrun":"info/1","version":"0.1.0","plan_format":1,"backends":[{"name":"host","dtype":"f32","library":"oneDNN VERSION, ISA"}]}
