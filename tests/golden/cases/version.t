Both programs name the plan format that they speak.

  $ planc --version
  planc 0.1.0, plan format 1
  $ planrun --version
  planrun 0.1.0, plan format 1
  $ planrun info
  planrun 0.1.0, plan format 1
  backend host: one thread, f32
