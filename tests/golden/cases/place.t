Addresses for buffers of anybody: no two overlap, and what is found is held to what lives at a time.

  $ printf 'id,lower,upper,size\na,0,4,3\nb,2,9,4\nc,5,9,3\n' > three.csv; planc place three.csv
  three.placed.csv: 3 buffers
    needs     7 bytes (7 B)
    at least  7 bytes, which live at a time
  ! planc: note: output three.placed.csv
  $ cat three.placed.csv
  id,lower,upper,size,offset
  a,0,4,3,0
  b,2,9,4,3
  c,5,9,3,0

Columns in any order, lines that end as those of other systems, and addresses that stand there already.

  $ printf 'size,offset,id,upper,lower\r\n3,9,a,4,0\r\n\r\n4,9,b,9,2\r\n3,9,c,9,5\r\n' > other.csv; planc place other.csv -o - | cmp - three.placed.csv && echo same
  same
  $ printf '\357\273\277id,lower,upper,size\na,0,4,3\nb,2,9,4\nc,5,9,3\n' > marked.csv; planc place marked.csv -o - | cmp - three.placed.csv && echo same
  same
  $ planc place three.placed.csv -o - | cmp - three.placed.csv && echo same
  same

Greedy orders miss a placement without a byte to spare that the search finds. Where there is none, it shows that.

  $ planc place data/place/tight.csv --effort 0
  tight.placed.csv: 14 buffers
    needs     68 bytes (68 B)
    at least  64 bytes, which live at a time: 5.88 % less might do
  ! planc: note: output tight.placed.csv
  $ planc place data/place/tight.csv --json
  {"planc":"place/1","file":"data/place/tight.csv","output":"tight.placed.csv","buffers":14,"bytes":64,"least_bytes":64,"live_bytes":64,"is_least":true,"too_many":false,"alignment":1,"effort":2}
  ! planc: note: output tight.placed.csv
  $ planc place data/place/tight.csv --capacity 63
  ! planc: data/place/tight.csv: there are no addresses within 63 bytes: 64 live at a time
  [1]
  $ planc place data/place/gap.csv
  gap.placed.csv: 8 buffers
    needs     9 bytes (9 B)
    at least  9 bytes, as a complete search has shown
  ! planc: note: output gap.placed.csv
  $ planc place data/place/gap.csv --capacity 8
  ! planc: data/place/gap.csv: there are no addresses within 8 bytes: a complete search has shown it
  [1]

An alignment rounds sizes up, and a capacity down.

  $ planc place three.csv --alignment 4 -o -
  id,lower,upper,size,offset
  a,0,4,3,0
  b,2,9,4,4
  c,5,9,3,0
  $ planc place three.csv --alignment 4 --capacity 11
  three.placed.csv: 3 buffers
    needs     8 bytes (8 B) of 11 B
    at least  8 bytes, which live at a time
  ! planc: note: output three.placed.csv
  $ planc place three.csv --capacity 12 --alignment 4 --json
  {"planc":"place/1","file":"three.csv","output":"three.placed.csv","buffers":3,"bytes":8,"least_bytes":8,"live_bytes":8,"is_least":true,"too_many":false,"alignment":4,"effort":2}
  ! planc: note: output three.placed.csv

Nothing to place takes nothing.

  $ echo id,lower,upper,size > none.csv; planc place none.csv --json
  {"planc":"place/1","file":"none.csv","output":"none.placed.csv","buffers":0,"bytes":0,"least_bytes":0,"live_bytes":0,"is_least":true,"too_many":false,"alignment":1,"effort":2}
  ! planc: note: output none.placed.csv

What is no such file is refused with its line, and nothing is written.

  $ echo id,lower,upper > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv: line 1 has no column size: it names id, lower, upper and size
  [3]
  $ echo id,lower,upper,size,gaps > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv: line 1: a column is called 'gaps': there may be id, lower, upper, size and offset alone
  [3]
  $ echo id,lower,upper,size,id > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv: line 1: two columns id
  [3]
  $ printf 'id,lower,upper,size\na,0,4\n' > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv: line 2 has 3 fields, line 1 has 4
  [3]
  $ printf 'id,lower,upper,size\na,0,4,1,2,3\n' > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv: line 2 has more than 5 fields
  [3]
  $ printf 'id,lower,upper,size\na,0,4,-1\n' > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv: line 2: size '-1' is not an integer of 64 bits from 0
  [3]
  $ printf 'id,lower,upper,size\na,0,4,9223372036854775808\n' > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv: line 2: size '9223372036854775808' is not an integer of 64 bits from 0
  [3]
  $ printf 'id,lower,upper,size\na,4,4,1\n' > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv: line 2: lower 4 is not below upper 4
  [3]
  $ printf 'id,lower,upper,size\na,0,4,9223372036854775807\nb,0,4,1\n' > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv: sizes of more than 2^62 bytes together
  [3]
  $ : > bad.csv; planc place bad.csv -o bad.out
  ! planc: bad.csv is empty: its first line names id, lower, upper and size
  [3]
  $ planc place missing.csv
  ! planc: missing.csv: No such file or directory
  [3]
  $ ls bad.out
  ! ls: cannot access 'bad.out': No such file or directory
  [2]
  $ planc place three.csv --capacity 0
  ! planc: --capacity 0 holds nothing: leave it out for as little as is found
  [2]
  $ planc place three.csv --alignment 0
  ! planc: --alignment 0: it is 1 at least
  [2]
  $ planc place three.csv --effort 4
  ! planc: --effort 4: not an integer from 0 to 3
  [2]
  $ planc place three.csv -o three.csv
  ! planc: three.csv is read, the output must be another file
  [2]
