/* The schedule: what a policy decides. One totally ordered list of commands over residencies of versions.
 *
 * `acquire` opens a residency (a place on the device for one buffer); exec, prefetch and move fill it; `release` closes
 * it. `offload` copies a residency's content to the host, `await` makes a stream wait for the copy last started on a
 * residency, `move` copies it on the device, `follow` makes one job wait for another. Device and host addresses are
 * optional: lowering fills the blanks. Dependencies need not be stated: lowering orders every hazard by events. The
 * order of commands is the order in which a sequential run executes them.
 *
 * The builder follows the content of every residency and host copy, so that a policy cannot state a schedule that reads
 * a wrong version: such a call fails with INTERNAL and a message that names instance and buffer. */
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

#define PLANC_PARKED (-2) /* in place of an offload command: the copy that the period before left */

/* Device addresses and host addresses are multiples of this. */
enum { PLANC_ALIGNMENT = PLANC_PLAN_ALIGNMENT };

/* Streams of a job: stream k of job j is number j * PLANC_N_STREAMS + k. A job whose rounds run side by side has more
 * compute streams, behind those of all jobs. */
enum { PLANC_STREAM_COMPUTE, PLANC_STREAM_H2D, PLANC_STREAM_D2H, PLANC_N_STREAMS };

typedef enum planc_command_kind {
  PLANC_CMD_EXEC,
  PLANC_CMD_ACQUIRE,
  PLANC_CMD_RELEASE,
  PLANC_CMD_OFFLOAD,
  PLANC_CMD_PREFETCH,
  PLANC_CMD_AWAIT,
  PLANC_CMD_MOVE,
  PLANC_CMD_FOLLOW
} planc_command_kind;

typedef struct planc_command {
  planc_command_kind kind;
  int16_t stream;
  bool recompute;    /* exec: restores a version that was made before */
  bool sends;        /* offload: what the exec before made, for the other replicas; it was not stated */
  bool user;         /* offload, prefetch: the other side is the user's memory, not a host slot */
  int32_t residency; /* all but exec and follow; move: the destination */
  int32_t source;    /* move: the origin; prefetch: the offload command that made the host copy, or PLANC_PARKED; -1 =
                        user; follow: the job that goes first */
  int32_t instance;  /* exec */
  int32_t variant;   /* exec: index among the op's variants at its batch; 0 for other roles than OP */
  int32_t first_use; /* exec: schedule->uses[first_use + k] is the residency of the instance's k-th access, -1 for a
                        side effect that a recompute skips */
  int32_t version;   /* offload, prefetch: which version is copied */
  int64_t address;   /* acquire: device address or PLANC_BLANK; exec: the workspace's, or PLANC_BLANK */
} planc_command;

typedef struct planc_residency {
  int32_t buffer;
  int64_t address; /* or PLANC_BLANK */
} planc_residency;

typedef struct planc_schedule planc_schedule;

/* A schedule over `trace`; costs[j] are those of its job j. The trace and all costs are borrowed, the array is not. */
planc_status planc_schedule_new(const planc_trace *trace, const planc_costs *const *costs, planc_schedule **out);
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
 * of no round on the first. Only before anything is stated. */
planc_status planc_schedule_side_by_side(planc_schedule *s, int32_t job, int32_t n);

/* --- Stating commands; every one appends to the list ----------------------------------------------------------- */

/* Persistent `buffer` is parked on the host when the period starts: a copy of version 0 is there, in a slot that it
 * has for all time. At the end of the schedule a copy of its last version must be there, which takes over the slot, and
 * the buffer must not be resident. Only before the first planc_schedule_boundary; *out_residency stands for the slot,
 * and is closed for the schedule. */
planc_status planc_schedule_park(planc_schedule *s, int32_t buffer, int32_t *out_residency);
/* Opens the residency that holds persistent `buffer` when the period starts. Only before the first command. At the end
 * of the schedule the same buffers must be resident, holding their last version. */
planc_status planc_schedule_boundary(planc_schedule *s, int32_t buffer, int64_t address, int32_t *out_residency);
planc_status planc_schedule_acquire(planc_schedule *s, int32_t buffer, int64_t address, int32_t *out_residency);
planc_status planc_schedule_release(planc_schedule *s, int32_t residency);
/* Runs an instance on its compute stream with the open residencies that hold what it reads; what it only writes goes to
 * the buffer's open residency that was opened last. With `recompute`, side effects are skipped and the variant
 * is that of the first run, so that the bits are, too. A gradient that other replicas get is offloaded right after. */
planc_status planc_schedule_exec(planc_schedule *s, int32_t instance, int32_t variant, int64_t workspace_address,
                                 bool recompute);
/* Copies the residency's content to a host slot; its host copy then stays until the buffer's last access. */
planc_status planc_schedule_offload(planc_schedule *s, int32_t residency);
/* Copies a result's last version to the user. */
planc_status planc_schedule_deliver(planc_schedule *s, int32_t residency);
/* Fills an open, empty residency with `version` from its host copy or, for version 0 of a fed buffer, from the user or
 * the host copies of the other replicas' gradients: they are where the own one is. */
planc_status planc_schedule_prefetch(planc_schedule *s, int32_t residency, int32_t version);
/* Makes `stream` of the buffer's job (PLANC_STREAM_...), of several compute streams that of its round, wait until the
 * copy last started on `residency` (which may be closed) has ended. */
planc_status planc_schedule_await(planc_schedule *s, int32_t stream, int32_t residency);
/* Copies the content of `source` to the open, empty residency `destination` of the same buffer. */
planc_status planc_schedule_move(planc_schedule *s, int32_t destination, int32_t source);

/* Makes `stream` (PLANC_STREAM_...) of job `job` wait until the compute stream of job `leader`, another one, has done
 * all that it has been given so far: in this period, or, where that is nothing, in the one before. Of neither job run
 * rounds side by side. */
planc_status planc_schedule_follow(planc_schedule *s, int32_t stream, int32_t job, int32_t leader);

/* --- Looking ---------------------------------------------------------------------------------------------------- */

/* The open residency of `buffer` that holds `version`, or -1. */
int32_t planc_schedule_resident(const planc_schedule *s, int32_t buffer, int32_t version);
/* The variant of an instance's first run, -1 if it has not run. */
int32_t planc_schedule_ran(const planc_schedule *s, int32_t instance);
/* The open residency of `buffer` opened last, whatever it holds, or -1. */
int32_t planc_schedule_open(const planc_schedule *s, int32_t buffer);
/* The version an open residency holds, -1 if empty. */
int32_t planc_schedule_content(const planc_schedule *s, int32_t residency);
/* True when `version` can be prefetched: a host copy of it exists or the user holds it. */
bool planc_schedule_on_host(const planc_schedule *s, int32_t buffer, int32_t version);

int32_t planc_schedule_n_streams(const planc_schedule *s);
/* How many compute streams a job has, and which of them one of its rounds has; round -1: what is of none. */
int32_t planc_schedule_n_compute(const planc_schedule *s, int32_t job);
int32_t planc_schedule_compute(const planc_schedule *s, int32_t job, int32_t round);
/* Which PLANC_STREAM_... a stream is. */
int32_t planc_schedule_stream_kind(const planc_schedule *s, int32_t stream);
/* ends[c], by command: of an exec up to which command, not included, its workspace is taken: its own alone; where
 * another compute stream of its job may run beside it, up to the next exec of its own, or what is behind the rounds. */
void planc_schedule_workspace_ends(const planc_schedule *s, int32_t *ends);
const planc_virtual_memory *planc_schedule_memory(const planc_schedule *s);
const planc_trace *planc_schedule_trace(const planc_schedule *s);
/* Of the residency's buffer. */
int64_t planc_schedule_bytes(const planc_schedule *s, int32_t residency);
const planc_costs *planc_schedule_costs(const planc_schedule *s, int32_t job);
int32_t planc_schedule_n_commands(const planc_schedule *s);
const planc_command *planc_schedule_commands(const planc_schedule *s);
int32_t planc_schedule_n_residencies(const planc_schedule *s);
const planc_residency *planc_schedule_residencies(const planc_schedule *s);
int32_t planc_schedule_n_boundary(const planc_schedule *s); /* residencies 0 .. n-1 are the boundary's */
int32_t planc_schedule_n_parked(const planc_schedule *s);   /* the first of these are of buffers parked on the host */
/* The offload command that parks the buffer in its last version; PLANC_PARKED when no period changes the buffer. */
int32_t planc_schedule_parking(const planc_schedule *s, int32_t buffer);
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
