Help goes to standard output and is a success.

  $ planc --help
  usage: planc COMMAND [operand ...] [option ...]
  commands:
    plan       make a plan for a graph under a memory budget
    colocate   make one plan for several jobs on one GPU
    check      check plans and their budgets
    simulate   predict a plan's time and stalls, or those of passive swapping
    compare    plan with several policies and compare
    show       show what is in a graph or a plan
    train      derive backward and optimizer ops of a forward graph
    predict    predict how long ops take that were never run
    update     make a plan anew from what a run of it measured
    explain    tell why a plan takes the time and memory that it does
    bound      tell what no plan of a graph is faster than
    place      find addresses for buffers whose lifetimes are known
    torch      record a PyTorch training step as it runs, and plan it
  'planc COMMAND --help' tells a command's options.
  options: --color=auto|always|never (anywhere), --version, --help
  exit: 0 fits, 1 does not fit or plan not valid, 2 usage, 3 bad input, 4 stale, 5 internal, 6 device, 7 unchanged
  $ planc -h | head -n 1
  usage: planc COMMAND [operand ...] [option ...]
  $ planc plan --help
  usage: planc plan GRAPH [option ...]
  make a plan for a graph under a memory budget
  options:
    -b, --batch N                  samples per iteration (default: the graph's header, else 32)
    -d, --device NAME|FILE         device description (default: the graph's header, else h100)
    -p, --profile FILE             measured profile to plan with, instead of --device
        --launch TIME              host time to launch an op (default: the profile's)
        --reserved SIZE            device memory that contexts and libraries take (default: the profile's)
    -m, --budget SIZE              device memory, reserved bytes included (default: the device's, or what is lent of it)
        --host-budget SIZE         host memory for offloaded data (default: not limited)
        --storage SIZE             storage for what the host budget has no room for (default: none)
        --optimizer NAME           sgd, momentum or adam, where the graph has no backward ops (default: the graph's header, else sgd)
        --inference                plan the graph as it stands, without deriving training
        --sub-batch N              samples per round, for policies that split (default: they choose)
        --split-batch-norm         allow rounds although batch normalisation couples the batch
        --gpus N                   GPUs that train together, each on an equal part of the batch (default: 1)
        --shared-link              the GPUs share one link to the host
        --placement NAME           best-fit: in one piece; paged: in pages of virtual memory; vmm: in chunks (default: best-fit)
        --chunk SIZE               chunk of --placement vmm, page of paged (defaults: 40M, 2M)
        --window SIZE              schedule-window of policy window (default: 1.5 times the data it may hold)
        --workspace-limit SIZE     largest workspace of an algorithm that policy window takes (default: any)
        --window-per-use           let data count in the window at each use, not once
        --effort LEVEL             how long policies auto and priced search, ten times as long each, 0 to 3 (default: 1)
        --reorder                  let optimizer ops run early and others late, where policies auto and priced are faster so
        --swap-rate PERCENT        how many of the tensors policy tensile may swap, 1 to 100 (default: 100)
        --no-swap                  nothing is swapped to the host
        --no-recompute             nothing is computed again
        --policy NAME              how to plan (default: the graph's header, else auto)
    -o, --output FILE              the plan, - for standard output (default: GRAPH's name with .plan, here)
        --json                     the summary as one line of JSON
    -h, --help                     this text
  $ planc check --help
  usage: planc check PLAN... [option ...]
  check plans and their budgets
  options:
    -m, --budget SIZE,...          device memory they must fit (default: each plan's own budget)
        --host-budget SIZE         host memory they must fit (default: each plan's own)
        --storage SIZE             storage they must fit (default: each plan's own)
    -g, --graph FILE ...           the graph they must have been made from; of several, each in turn
        --format FORM              text, json, github (workflow annotations) or junit (XML); default: text
        --json                     as --format=json: one line of JSON for each plan and budget
    -h, --help                     this text
  $ planc simulate --help
  usage: planc simulate PLAN|GRAPH [option ...]
  predict a plan's time and stalls, or those of passive swapping
  options:
        --graph-replay             the body captured and replayed as a whole, as by `planrun exec --graph`
        --map-in-step TIME         chunks of virtual memory mapped as data comes and goes, each in TIME of the host
        --track TIME               memory in use tracked by events, as without a plan: TIME of the host behind each op, or
        --track-every SIZE         behind the first for which so much was allocated since the last
        --in-flight N              ops that each dispatcher may have launched ahead (default: the device's)
        --one-dispatcher           one dispatcher launches the work of all jobs, in the plan's order (default: each job has one)
        --free-at WHEN             memory as without a plan, freed at `schedule` of its last op or at its `completion`
        --costs FILE               times from this profile, as far as it has them, in place of those that it was planned with
        --vanilla FILE             the plan of the same without scheduling, to tell what this one saves and costs
        --against FILE             compare with what `planrun exec --trace` measured of this plan
        --json                     the result as one line of JSON
        --passive                  of a graph: evict when memory runs out and swap in on access, without a plan; and with it:
    -b, --batch N                  samples per iteration (default: the graph's header, else 32)
    -d, --device NAME|FILE         device description (default: the graph's header, else h100)
    -p, --profile FILE             measured profile to plan with, instead of --device
        --launch TIME              host time to launch an op (default: the profile's)
        --reserved SIZE            device memory that contexts and libraries take (default: the profile's)
    -m, --budget SIZE              device memory, reserved bytes included (default: the device's, or what is lent of it)
        --host-budget SIZE         host memory for offloaded data (default: not limited)
        --optimizer NAME           sgd, momentum or adam, where the graph has no backward ops (default: the graph's header, else sgd)
        --inference                plan the graph as it stands, without deriving training
        --sub-batch N              samples per round, for policies that split (default: they choose)
        --split-batch-norm         allow rounds although batch normalisation couples the batch
    -h, --help                     this text
  $ planc compare --help
  usage: planc compare GRAPH ... [option ...]
  plan with several policies and compare
  options:
    -b, --batch N                  samples per iteration (default: the graph's header, else 32)
    -d, --device NAME|FILE         device description (default: the graph's header, else h100)
    -p, --profile FILE ...         measured profile to plan with, instead of --device
        --launch TIME              host time to launch an op (default: the profile's)
        --reserved SIZE            device memory that contexts and libraries take (default: the profile's)
    -m, --budget SIZE              device memory, reserved bytes included (default: the device's, or what is lent of it)
        --host-budget SIZE         host memory for offloaded data (default: not limited)
        --storage SIZE             storage for what the host budget has no room for (default: none)
        --optimizer NAME           sgd, momentum or adam, where the graph has no backward ops (default: the graph's header, else sgd)
        --inference                plan the graph as it stands, without deriving training
        --sub-batch N              samples per round, for policies that split (default: they choose)
        --split-batch-norm         allow rounds although batch normalisation couples the batch
        --gpus N                   GPUs that train together, each on an equal part of the batch (default: 1)
        --shared-link              the GPUs share one link to the host
        --placement NAME           best-fit: in one piece; paged: in pages of virtual memory; vmm: in chunks (default: best-fit)
        --chunk SIZE               chunk of --placement vmm, page of paged (defaults: 40M, 2M)
        --window SIZE              schedule-window of policy window (default: 1.5 times the data it may hold)
        --workspace-limit SIZE     largest workspace of an algorithm that policy window takes (default: any)
        --window-per-use           let data count in the window at each use, not once
        --effort LEVEL             how long policies auto and priced search, ten times as long each, 0 to 3 (default: 1)
        --reorder                  let optimizer ops run early and others late, where policies auto and priced are faster so
        --swap-rate PERCENT        how many of the tensors policy tensile may swap, 1 to 100 (default: 100)
        --no-swap                  nothing is swapped to the host
        --no-recompute             nothing is computed again
        --policies A,B,...         which policies (default: all but auto and best)
        --budgets A,B,...          what each policy takes within each of several budgets: the frontier of time and memory
        --no-least                 look for no least budgets, which takes most of the time
        --max-batch                search the largest batch that each policy can plan for
        --colocate                 several graphs that share a GPU, with policies for that
        --region SIZE              memory that policy zico hands from job to job at a time; 256 bytes is tensor by tensor (default: 64M)
        --split-size SIZE          what a node group of policy waterwave allocates (default: the fastest of several)
        --split-groups N           node groups that policy waterwave cuts the largest job into, instead of their size, 1 to 4096 (default: the fastest of several)
        --release-split SIZE       what a node group of policy waterwave deallocates (default: as they allocate, or half as much again)
        --split-relaxed            let sizes of node groups differ, so that they take about as long
        --split-variable           let node groups allocate as much as those of the job before deallocate
        --pair-barriers            pair node groups by Waterwave's Algorithm 1, and let streams wait for each other before each pair
        --max-ratio N              with it: most iterations per period that are chosen for a job (default: 8; 1024 with a deadline)
        --priority JOB:N ...       with it: of a job's ops on the GPU, from 0 to 5, the most first (default: 0)
        --accumulate [JOB:]K ...   with it: split a job's batch into K rounds, side by side where a policy can
        --deadline [JOB:]TIME ...  with it: the longest that a request of a job may take, without JOB for inference
        --min-share [JOB:]PERCENT ... with it: the least part of what it does alone that a job is to do, without JOB every job
        --weight JOB:N ...         with it: time of the GPU that a job gets beside others, from 1 to 1000 (default: 1)
        --json                     the table as one line of JSON
    -h, --help                     this text
  $ planc show --help
  usage: planc show GRAPH|PLAN [option ...]
  show what is in a graph or a plan
  options:
    -b, --batch N                  batch for sizes of a graph (default: its header's, else 1)
        --lifespans                of a plan, how long tensors live, by job and class
        --json                     the same as one line of JSON
    -h, --help                     this text
  $ planc train --help
  usage: planc train GRAPH [option ...]
  derive backward and optimizer ops of a forward graph
  options:
        --optimizer NAME           sgd, momentum or adam (default: the graph's header, else sgd)
        --precision NAME           f32, tf32 or bf16 (default: f32)
    -o, --output FILE              the training graph (default: standard output)
    -h, --help                     this text
  $ planc place --help
  usage: planc place FILE.csv [option ...]
  find addresses for buffers whose lifetimes are known
  options:
        --capacity SIZE            how much memory will do (default: as little as is found)
        --alignment SIZE           addresses are multiples of this, and sizes count so (default: 1)
        --effort 0..3              how long to search for less: not at all, up to about a third of a second, 3 or 30 (default: 2)
    -o, --output FILE              the buffers with their addresses, - for standard output (default: FILE's name with .placed.csv, here)
        --json                     the summary as one line of JSON
    -h, --help                     this text
  $ planc predict --help
  usage: planc predict GRAPH | --fit PROFILE... [option ...]
  predict how long ops take that were never run
  options:
    -d, --device NAME|FILE         device description, or model of a device (default: the graph's header, else h100)
    -b, --batch N                  largest batch to predict (default: the graph's header, else 32)
        --load SHARE               share of the time that others keep the device busy, 0 to 1 (default: 0)
    -p, --profile FILE             take algorithms and workspaces from this profile, and predict their times
    -o, --output FILE              the profile or model, - for standard output (default: predicted.json, with --fit model.json)
        --optimizer NAME           sgd, momentum or adam, where a graph has no backward ops (default: its header's, else sgd)
        --inference                take graphs as they stand, without deriving training
        --fit                      fit a model to measured profiles, the operands
        --graphs GRAPH,...         with --fit: the graphs that were measured, in the order of the profiles
        --name NAME                with --fit: of the device in the model (default: the first profile's)
        --json                     what was done as one line of JSON
    -h, --help                     this text
  $ planrun --help
  usage: planrun COMMAND [operand ...] [option ...]
  commands:
    exec       run a plan
    profile    measure ops, links and launches on this machine
    info       backends, devices and versions
  'planrun COMMAND --help' tells a command's options.
  options: --version, --help
  exit: 0 done, 1 plan not valid or not as the reference, 2 usage, 3 bad input, 4 stale, 5 internal, 6 device, 8 a job failed
  $ planrun exec --help
  usage: planrun exec PLAN [option ...]
  run a plan
  options:
    -d, --data [JOB:]FILE ...      train on labelled images: CSV, gzip'ed or not (default: pseudo-random samples)
        --backend NAME             what executes: host (default) or cuda
        --graph                    capture the body once and replay it as a whole (backend cuda)
        --bare                     run calls and copies on one stream without events, to hold a run's time against
        --deterministic            refuse algorithms that do not give the same bits every time
    -e, --epochs N                 with --data: passes over the data, in all (default 1)
    -n, --iterations N             iterations in all, rounded up to whole periods (default without --data: 1)
        --same-samples             take the first iterations' samples in every period: times the device, not the feed
    -s, --seed N                   of initial values, shuffles and dropout (default 0)
        --save FILE                write a checkpoint after each epoch, at the end and when interrupted
        --resume FILE              go on from a checkpoint
        --watch FILE               change to the plan in FILE whenever a new one is put there
        --hand-on FROM:TO[:N] ...  job TO, for inference, takes over job FROM's parameters every N iterations of it
        --trace FILE               write when everything in the last periods ran, for Perfetto and planc simulate --against
        --link RATE                pace copies between host and device, e.g. 0.2GB/s (default: as fast as they go)
        --storage DIR              where what a plan keeps in storage goes: a file without a name in this directory
        --check-nan                a job whose loss is no finite number ends there; others go on
        --verify                   run the reference beside the plan and compare every bit
        --synthetic                stand-ins for all ops, verified: any graph runs
        --sequential               one thread, in file order (default: a thread for each stream)
        --interleave SEED          one thread, in an order drawn from SEED, as the plan's events allow
        --jitter SEED              random delays before the work of every stream
        --poison                   fill memory with NaNs when it is acquired, and in file order when released
        --json                     end with one line of JSON
    -h, --help                     this text
  $ planrun info --help
  usage: planrun info [option ...]
  backends, devices and versions
  options:
        --json                     one line of JSON
        --properties               the GPU's properties, for --deviceless elsewhere
        --links SIZE               copy so much each way between host and device, and tell the rates in one line of JSON
        --backend NAME             whose links: host (default) or cuda
    -h, --help                     this text

Values are not looked at then.

  $ planc plan nowhere.yaml --batch none --help | head -n 1
  usage: planc plan GRAPH [option ...]
  $ planc show -h | head -n 1
  usage: planc show GRAPH|PLAN [option ...]
  $ planc torch --help
  usage: planc torch FILE.py:STEP [ARGUMENT ...] [option ...]
  record a PyTorch training step as it runs, and plan it
  options:
        --example NAME             the function beside the step that gives its arguments (default: example)
        --on DEVICE                where the step runs: cpu or cuda (default: cuda where PyTorch sees one)
        --fake                     record without the device and without its memory, by tensors that have no elements
    -d, --device NAME|FILE         the GPU to plan for, see planc plan (default: h100)
    -p, --profile FILE             measured profile to plan with, instead of --device
    -m, --budget SIZE|N%           device memory, or a part of what the step takes as it is (default: the device's)
        --host-budget SIZE         host memory for offloaded data (default: not limited)
        --effort LEVEL             how long policy auto searches, 0 to 3 (default: 1)
        --graph FILE               keep the recorded graph in this file
        --batches B,B,B            record at three batch sizes, and make a graph of all batches instead of a plan
        --micro-batches K,K,...    record the step in each of so many micro-batches, and plan the fastest (default: 1)
    -o, --output FILE              the plan (default: FILE's name with .plan, here)
        --check PLAN               only tell whether PLAN is of the step as it is now
        --json                     the table as one line of JSON
    -h, --help                     this text
