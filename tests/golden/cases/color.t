Errors are red where the user wants it; standard error is no terminal here, so "auto" is "never".

  $ planc frobnicate --color=always
  ! <ESC>[31mplanc: unknown command frobnicate; 'planc --help' lists them<ESC>[0m
  [2]
  $ planc --color=always frobnicate
  ! <ESC>[31mplanc: unknown command frobnicate; 'planc --help' lists them<ESC>[0m
  [2]
  $ planc frobnicate --color=never
  ! planc: unknown command frobnicate; 'planc --help' lists them
  [2]
  $ planc frobnicate --color=auto
  ! planc: unknown command frobnicate; 'planc --help' lists them
  [2]
  $ planc frobnicate --color=sometimes
  ! planc: --color takes auto, always or never
  [2]

An explicit "always" is stronger than NO_COLOR.

  $ NO_COLOR=1 planc frobnicate --color=always
  ! <ESC>[31mplanc: unknown command frobnicate; 'planc --help' lists them<ESC>[0m
  [2]
  $ NO_COLOR=1 planc frobnicate
  ! planc: unknown command frobnicate; 'planc --help' lists them
  [2]
  $ NO_COLOR=1 planc frobnicate --color=auto
  ! planc: unknown command frobnicate; 'planc --help' lists them
  [2]

Data is never coloured.

  ~ planc compare inputs/tiny.yaml --policies none --color=always
  tiny, batch <N> on k40m, budget <size>
  policy       least budget  round        iteration overhead         peak          out           in  means
  none <size> <N> <N> ms  +<N>% <size> <size> <size>  everything stays <- fastest
  why none: every op has its fastest algorithm
  against no scheduling, which takes <N> ms and <size>
  policy            samples/s        moved      MSR      EOR   excess      CBR
  none <N> <size> <N> <N>    +<N>% <N>
  ! planc: note: device k40m (the graph's header)
  ! planc: note: batch <N> (the graph's header)
  ! planc: note: budget <size> (device k40m)

On a terminal the default is colour, unless NO_COLOR is there and not empty.

  $ on_terminal() { script -qec "$1" /dev/null | tr -d '\r' | sed "s/$(printf '\033')/<ESC>/g"; }
  > on_terminal 'planc frobnicate'
  > on_terminal 'NO_COLOR=1 planc frobnicate'
  > on_terminal 'NO_COLOR= planc frobnicate'
  <ESC>[31mplanc: unknown command frobnicate; 'planc --help' lists them<ESC>[0m
  planc: unknown command frobnicate; 'planc --help' lists them
  <ESC>[31mplanc: unknown command frobnicate; 'planc --help' lists them<ESC>[0m
