/* The schedule: what a policy decides. One totally ordered list of commands over residencies of versions.
 *
 * A schedule has a table of memories: the device's, the host's, storage where there is one, and the user's. A residency
 * is a place for one buffer in one of these, named by its number. On the device `acquire` opens it, exec and copies
 * fill it, `release` closes it. Away from the device a copy fills it, and lowering closes it behind the last copy from
 * it; what is on the host lowering may keep in storage in between, where the host's budget is too small. One command
 * copies, from a residency or the user to a residency or the user, where a link leads from the one memory to the other;
 * `offload`, `prefetch`, `deliver` and `move` are the words for it here. `await` makes a stream wait for the copy last
 * started on a residency of the device, `follow` makes one job wait for another. Addresses are optional: lowering fills
 * the blanks. Dependencies need not be stated: lowering orders every hazard by events. The order of commands is the
 * order in which a sequential run executes them.
 *
 * The builder follows the content of every residency, so that a policy cannot state a schedule that reads a wrong
 * version: such a call fails with INTERNAL and a message that names instance and buffer. */
#ifndef PLANC_SCHEDULE_H
#define PLANC_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/cost.h"
#include "planc/plan.h"
#include "planc/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLANC_BLANK (-1) /* an address that lowering chooses */

/* Streams of a job: one for its ops, and one for each route between the device and other memories (PLANC_ROUTE_H2D and
 * so on). Copies within the device, which go by no route, are made on that of ops. Streams of jobs follow each other; a
 * job whose rounds run side by side has more compute streams, behind those of all jobs. Where there is storage, every
 * job has one more for each route between it and the host, behind all others. */
#define PLANC_STREAM_COMPUTE PLANC_N_ROUTES /* in place of a route */
enum { PLANC_N_STREAMS = 3 };               /* that every job has */

typedef enum planc_command_kind {
  PLANC_CMD_EXEC,
  PLANC_CMD_ACQUIRE,
  PLANC_CMD_RELEASE,
  PLANC_CMD_COPY,
  PLANC_CMD_AWAIT,
  PLANC_CMD_FOLLOW
} planc_command_kind;

typedef struct planc_command {
  planc_command_kind kind;
  int16_t stream;
  bool recompute;    /* exec: restores a version that was made before */
  bool sends;        /* copy: what the exec before made, for the other replicas; it was not stated */
  int32_t residency; /* acquire, release, await; copy: the one that it goes to, or PLANC_USER */
  int32_t source;    /* copy: the residency that it comes from, or PLANC_USER; follow: the job that goes first */
  int32_t instance;  /* exec */
  int32_t variant;   /* exec: index among the op's variants at its batch; 0 for other roles than OP */
  int32_t first_use; /* exec: schedule->uses[first_use + k] is the residency of the instance's k-th access, -1 for a
                        side effect that a recompute skips */
  int32_t version;   /* copy: of the buffer of the residency that it goes to, or else comes from */
  int64_t address;   /* acquire: device address or PLANC_BLANK; exec: the workspace's, or PLANC_BLANK */
} planc_command;

typedef struct planc_residency {
  int32_t buffer;
  int32_t memory;  /* its number in the schedule's table */
  int64_t address; /* or PLANC_BLANK */
} planc_residency;

typedef struct planc_schedule planc_schedule;

/* A schedule over `trace`; costs[j] are those of its job j. Trace and costs are borrowed; the arrays are copied. The
 * memories are those of the plan in its order (planc_plan); NULL: a device, the host and the user. A schedule's ops all
 * run on one GPU. INTERNAL for other than one device and one host, and for more jobs than a plan may have. */
planc_status planc_schedule_new(const planc_trace *trace, const planc_costs *const *costs, const planc_memory *memories,
                                int32_t n_memories, planc_schedule **out);
void planc_schedule_free(planc_schedule *schedule);

/* Virtual memory: device addresses are in a range of their own, which `mappings` cover from its beginning to its end,
 * in chunks of the arena. */
typedef struct planc_virtual_memory {
  int64_t arena_bytes, chunk_bytes; /* 0: addresses are the arena's */
  bool paged;                       /* as in planc_plan */
  const planc_mapping *mappings;
  int32_t n;
} planc_virtual_memory;
/* Copies `memory`. All device addresses must be stated then. */
planc_status planc_schedule_map(planc_schedule *s, const planc_virtual_memory *memory);

/* Has the rounds of `job` run side by side, on n compute streams: round r on the one that r modulo n says, and what is
 * of no round on the first. Only before anything is stated. INTERNAL for more streams than a plan may have. */
planc_status planc_schedule_side_by_side(planc_schedule *s, int32_t job, int32_t n);

/* --- Stating commands; every one appends to the list -------------------------------------------------------------- */

/* Opens the residency in `memory` that holds persistent `buffer`, as version 0, when the period starts. Only before the
 * first command. At the end of the schedule its last version must be in the same memory, where lowering gives it the
 * same place. What is away from the device is stated before what is resident, its address is PLANC_BLANK, and it must
 * not be resident at the end. */
planc_status planc_schedule_boundary(planc_schedule *s, int32_t buffer, int32_t memory, int64_t address,
                                     int32_t *out_residency);
/* Opens an empty residency. Away from the device the address is PLANC_BLANK, and no command is stated: the copy that
 * fills the residency opens it in the plan. */
planc_status planc_schedule_acquire(planc_schedule *s, int32_t buffer, int32_t memory, int64_t address,
                                    int32_t *out_residency);
/* Closes a residency of the device. */
planc_status planc_schedule_release(planc_schedule *s, int32_t residency);
/* Runs an instance on its compute stream with the open residencies that hold what it reads; what it only writes goes to
 * the buffer's open residency that was opened last. With `recompute`, side effects are skipped and the variant
 * is that of the first run, so that the bits are, too. A gradient that other replicas get is offloaded right after. */
planc_status planc_schedule_exec(planc_schedule *s, int32_t instance, int32_t variant, int64_t workspace_address,
                                 bool recompute);
/* Copies the content of a residency to one in `memory`, away from the device, which it opens. */
planc_status planc_schedule_offload(planc_schedule *s, int32_t residency, int32_t memory);
/* Copies a result's last version to the user. */
planc_status planc_schedule_deliver(planc_schedule *s, int32_t residency);
/* Fills an open, empty residency of the device with `version` from the host or, for version 0 of a fed buffer, from the
 * user or what the other replicas have of their gradients on the host: the source is where the own one is. */
planc_status planc_schedule_prefetch(planc_schedule *s, int32_t residency, int32_t version);
/* Copies the content of `source` to the open, empty residency `destination` of the same buffer, in any memory. */
planc_status planc_schedule_move(planc_schedule *s, int32_t destination, int32_t source);
/* Makes the stream of the buffer's job for `route` (or PLANC_STREAM_COMPUTE: of several that of its round) wait until
 * the copy last started on `residency` (which may be closed) has ended. */
planc_status planc_schedule_await(planc_schedule *s, planc_route route, int32_t residency);

/* Makes the stream of job `job` for `route` (or PLANC_STREAM_COMPUTE) wait until the compute stream of job `leader`,
 * another one, has done all that it has been given so far: in this period, or, where that is nothing, in the one
 * before. Neither job's rounds may run side by side. */
planc_status planc_schedule_follow(planc_schedule *s, planc_route route, int32_t job, int32_t leader);

/* --- Looking ------------------------------------------------------------------------------------------------------ */

/* The memories, by number. */
const planc_memory *planc_schedule_memories(const planc_schedule *s, int32_t *out_n);
/* The number of the device's memory, in which ops run, of the host's, and of the first one of a kind, or -1. */
int32_t planc_schedule_device(const planc_schedule *s);
int32_t planc_schedule_host(const planc_schedule *s);
int32_t planc_schedule_first_of(const planc_schedule *s, planc_memory_kind kind);
/* The residency of `buffer` in `memory`, away from the device, that holds `version`, the one opened last; or -1. */
int32_t planc_schedule_away(const planc_schedule *s, int32_t buffer, int32_t memory, int32_t version);
/* The open residency of `buffer` on the device that holds `version`, or -1. */
int32_t planc_schedule_resident(const planc_schedule *s, int32_t buffer, int32_t version);
/* The variant of an instance's first run, -1 if it has not run. */
int32_t planc_schedule_ran(const planc_schedule *s, int32_t instance);
/* The open residency of `buffer` on the device opened last, whatever it holds, or -1. */
int32_t planc_schedule_open(const planc_schedule *s, int32_t buffer);
/* The version an open residency holds, -1 if empty. */
int32_t planc_schedule_content(const planc_schedule *s, int32_t residency);
/* True when `version` can be prefetched: it is on the host or the user holds it. */
bool planc_schedule_on_host(const planc_schedule *s, int32_t buffer, int32_t version);
/* The kind of memory of a copy's side: of a residency, or USER for PLANC_USER. */
planc_memory_kind planc_schedule_kind_of(const planc_schedule *s, int32_t residency);
/* Whether a copy's side is a residency away from the device. */
bool planc_schedule_is_away(const planc_schedule *s, int32_t residency);
/* Whether a command copies from a memory of one kind to one of another. */
bool planc_schedule_copies(const planc_schedule *s, const planc_command *command, planc_memory_kind from,
                           planc_memory_kind to);
/* Whether a command is for the exec before it: it copies to a memory farther from the device than the one that it
 * copies from, or releases. Other commands are for the exec behind them. */
bool planc_schedule_gives(const planc_schedule *s, const planc_command *command);
/* The buffer of a command that is neither exec nor follow; of a copy that which it fills. */
int32_t planc_schedule_buffer(const planc_schedule *s, const planc_command *command);

int32_t planc_schedule_n_streams(const planc_schedule *s);
/* From which on they are those of routes between host and storage. */
int32_t planc_schedule_first_storage_stream(const planc_schedule *s);
/* How many compute streams a job has, and which of them one of its rounds has; round -1: what is of none. */
int32_t planc_schedule_n_compute(const planc_schedule *s, int32_t job);
int32_t planc_schedule_compute(const planc_schedule *s, int32_t job, int32_t round);
/* The job's stream for a route or PLANC_STREAM_COMPUTE, of several its first; -1 where it has none. */
int32_t planc_schedule_stream(const planc_schedule *s, int32_t job, planc_route route);
/* The route that a stream is for, or PLANC_STREAM_COMPUTE. */
planc_route planc_schedule_route(const planc_schedule *s, int32_t stream);
/* Tells when workspaces are free again. ends[c] is the command ahead of which that of exec c is. Of a job with one
 * compute stream that is the next command, for its next op waits for this one. Of a job with several, ops of other
 * streams may run beside it: then it is the next exec on its own stream, or the first that is behind all rounds. */
void planc_schedule_workspace_ends(const planc_schedule *s, int32_t *ends);
const planc_virtual_memory *planc_schedule_virtual_memory(const planc_schedule *s);
const planc_trace *planc_schedule_trace(const planc_schedule *s);
/* Of the residency's buffer. */
int64_t planc_schedule_bytes(const planc_schedule *s, int32_t residency);
const planc_costs *planc_schedule_costs(const planc_schedule *s, int32_t job);
int32_t planc_schedule_n_commands(const planc_schedule *s);
const planc_command *planc_schedule_commands(const planc_schedule *s);
int32_t planc_schedule_n_residencies(const planc_schedule *s);
const planc_residency *planc_schedule_residencies(const planc_schedule *s);
int32_t planc_schedule_n_boundary(const planc_schedule *s); /* residencies 0 .. n-1 are the boundary's */
int32_t planc_schedule_n_away(const planc_schedule *s);     /* the first of these are away from the device */
/* In which residency a buffer that starts the period away from the device ends it: the boundary's, where no period
 * changes the buffer; -1 for other buffers. */
int32_t planc_schedule_away_at_end(const planc_schedule *s, int32_t buffer);
const int32_t *planc_schedule_uses(const planc_schedule *s);
/* Checks that the schedule is whole: every instance ran, every result was delivered, the boundary is restored. */
planc_status planc_schedule_finish(planc_schedule *s);
/* The variant an exec command chose. */
planc_variant planc_schedule_variant(const planc_schedule *s, const planc_command *command);
/* How an instance runs that only adds gradients (of another role than OP): made from the device's memory bandwidth. */
planc_variant planc_adding_variant(const planc_trace *trace, const planc_profile *profile, int32_t instance);

#ifdef __cplusplus
}
#endif

#endif
