Several plans are held against several budgets, and each pair has a verdict. The worst one decides how the command ends.

  $ planc plan inputs/tiny.yaml --policy vdnn-all --budget 1M -o small.plan >/dev/null 2>&1
  > planc plan inputs/tiny.yaml --policy none --budget 1M -o large.plan >/dev/null 2>&1
  > sed 's/"exec","n":1/"exec","n":0/' large.plan > 'a%b,c:d.plan'
  $ planc check small.plan large.plan
  small.plan: valid: tiny, vdnn-all, peak 21.00 KiB of 1.00 MiB, 73 instructions
  large.plan: valid: tiny, none, peak 25.00 KiB of 1.00 MiB, 42 instructions
  $ planc check small.plan large.plan --budget 1M,21K
  small.plan: valid: tiny, vdnn-all, peak 21.00 KiB of 1.00 MiB, 73 instructions
  small.plan: valid: tiny, vdnn-all, peak 21.00 KiB of 21.00 KiB, 73 instructions
  large.plan: valid: tiny, none, peak 25.00 KiB of 1.00 MiB, 42 instructions
  ! planc: large.plan: needs 25600 bytes on the device (arena 25600, reserved 0), the budget is 21504, 4096 too few
  ! planc: 1 of 4 checks did not pass
  [1]
  $ planc check small.plan nowhere.plan --budget 20K
  ! planc: small.plan: needs 21504 bytes on the device (arena 21504, reserved 0), the budget is 20480, 1024 too few
  ! planc: nowhere.plan: No such file or directory
  ! planc: 2 of 2 checks did not pass
  [3]
  $ planc check small.plan --budget 1M,1K --format=text
  small.plan: valid: tiny, vdnn-all, peak 21.00 KiB of 1.00 MiB, 73 instructions
  ! planc: small.plan: needs 21504 bytes on the device (arena 21504, reserved 0), the budget is 1024, 20480 too few
  ! planc: 1 of 2 checks did not pass
  [1]

One line of JSON for each; --json means the same.

  $ planc check small.plan nowhere.plan large.plan --budget 21K --format=json 2>/dev/null
  {"planc":"check/1","plan":"small.plan","valid":true,"budget_bytes":21504,"peak_bytes":21504,"host_peak_bytes":12288,"storage_peak_bytes":0,"touched_bytes":21504,"instances":7,"instructions":73,"recomputed":0}
  {"planc":"check/1","plan":"nowhere.plan","valid":false,"budget_bytes":21504,"exit_code":3,"message":"nowhere.plan: No such file or directory"}
  {"planc":"check/1","plan":"large.plan","valid":false,"budget_bytes":21504,"exit_code":1,"message":"large.plan: needs 25600 bytes on the device (arena 25600, reserved 0), the budget is 21504, 4096 too few"}
  [3]
  $ planc check nowhere.plan --json
  {"planc":"check/1","plan":"nowhere.plan","valid":false,"budget_bytes":null,"exit_code":3,"message":"nowhere.plan: No such file or directory"}
  ! planc: nowhere.plan: No such file or directory
  [3]

Workflow commands of GitHub Actions stand beside the file, and on the line where there is one. What ends a property or a
message is escaped.

  $ planc check small.plan 'a%b,c:d.plan' --format=github 2>/dev/null
  small.plan: valid: tiny, vdnn-all, peak 21.00 KiB of 1.00 MiB, 73 instructions
  ::error file=a%25b%2Cc%3Ad.plan,line=50,title=planc%3A the plan is not valid::a%25b,c:d.plan: line 50: exec first: runs twice, and not to recompute
  [1]
  $ head -n 3 small.plan > cut.plan; planc check cut.plan --format=github 2>/dev/null
  ::error file=cut.plan,line=1,title=planc%3A an input file is malformed or cannot be read::cut.plan:1:1: the header counts 107 rows, the file has 3 lines
  [3]
  $ planc check small.plan --graph graphs/lenet-digits.yaml --format=github 2>/dev/null
  ::error file=small.plan,title=planc%3A the plan was made from another graph or profile::small.plan: the plan was made from another graph than graphs/lenet-digits.yaml
  [4]
  $ planc check small.plan --format=github
  valid: tiny, vdnn-all, peak 21.00 KiB of 1.00 MiB, 73 instructions
  $ cp large.plan "$(printf 'two\nlines.plan')"; planc check two*.plan --budget 1K --format=github 2>/dev/null
  ::error file=two%0Alines.plan,title=planc%3A does not fit the budget::two%0Alines.plan: needs 25600 bytes on the device (arena 25600, reserved 0), the budget is 1024, 24576 too few
  [1]

JUnit: a suite for each plan, a test case for each budget. What cannot be judged is an error, the rest failures.

  $ planc check small.plan nowhere.plan --budget 1M,20K --format=junit 2>/dev/null
  <?xml version="1.0" encoding="UTF-8"?>
  <testsuites name="planc check" tests="4" failures="1" errors="2">
    <testsuite name="small.plan" tests="2" failures="1" errors="0">
      <testcase classname="small.plan" name="budget 1M">
        <system-out>valid: tiny, vdnn-all, peak 21.00 KiB of 1.00 MiB, 73 instructions</system-out>
      </testcase>
      <testcase classname="small.plan" name="budget 20K">
        <failure type="does not fit the budget" message="small.plan: needs 21504 bytes on the device (arena 21504, reserved 0), the budget is 20480, 1024 too few">small.plan: needs 21504 bytes on the device (arena 21504, reserved 0), the budget is 20480, 1024 too few</failure>
      </testcase>
    </testsuite>
    <testsuite name="nowhere.plan" tests="2" failures="0" errors="2">
      <testcase classname="nowhere.plan" name="budget 1M">
        <error type="an input file is malformed or cannot be read" message="nowhere.plan: No such file or directory">nowhere.plan: No such file or directory</error>
      </testcase>
      <testcase classname="nowhere.plan" name="budget 20K">
        <error type="an input file is malformed or cannot be read" message="nowhere.plan: No such file or directory">nowhere.plan: No such file or directory</error>
      </testcase>
    </testsuite>
  </testsuites>
  [3]
  $ cp large.plan '<&"x">.plan'; planc check '<&"x">.plan' --format=junit
  <?xml version="1.0" encoding="UTF-8"?>
  <testsuites name="planc check" tests="1" failures="0" errors="0">
    <testsuite name="&#60;&#38;&#34;x&#34;&#62;.plan" tests="1" failures="0" errors="0">
      <testcase classname="&#60;&#38;&#34;x&#34;&#62;.plan" name="its own budget">
        <system-out>valid: tiny, none, peak 25.00 KiB of 1.00 MiB, 42 instructions</system-out>
      </testcase>
    </testsuite>
  </testsuites>

Budgets and forms that there are not are misuse.

  $ planc check small.plan --budget 1M,
  ! planc: --budget: no size is given (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  [2]
  $ planc check small.plan --budget 1M,2X
  ! planc: --budget: 2X is not a size (examples: 12G, 12GiB, 12GB, 400K, 1.5G)
  [2]
  $ planc check small.plan --budget 1M --budget 2M
  ! planc: check: --budget is given twice
  [2]
  $ planc check small.plan --format=xml
  ! planc: --format takes text, json, github or junit, not xml
  [2]
  $ planc check small.plan --json --format=junit
  ! planc: --json and --format exclude each other
  [2]
  $ planc check small.plan --budget "$(seq -s, 65)"
  ! planc: --budget: more than 64
  [2]
