/* The session's parts, which most files of libplanrt share. Each section below names the file of its functions. */
#ifndef PLANRT_SESSION_H
#define PLANRT_SESSION_H

#include "runtime/backend.h"
#include "runtime/failures.h"

/* One instruction with its addresses resolved. */
typedef enum rt_action_kind {
  RT_CALL,    /* launch `call` */
  RT_COPY,    /* `bytes` from `from` to `to` */
  RT_FEED,    /* ask the user for samples of buffer `id` at `from`, and copy them to `to` */
  RT_DELIVER, /* copy a result, buffer `id`, from `from`, and hand it to the user */
  RT_RECORD,
  RT_WAIT,
  RT_POISON /* nothing but poison in `bytes` at `to`; without a stream in file order only */
} rt_action_kind;

typedef struct rt_action {
  uint8_t kind, lag;
  uint8_t direction; /* copy: rt_direction */
  int16_t replica;   /* whose it is */
  int16_t job;       /* whose it is, but of records and waits, which serve all */
  int32_t stream;    /* the session's; -1: none */
  int32_t instr;     /* which instruction of its part */
  int32_t id;        /* feed, deliver: buffer; record, wait: the session's event */
  int32_t handover;  /* feed, deliver: which of the body's */
  int32_t span;      /* of the body's first replica: which of a period's spans it has; -1: none */
  int32_t repeats;   /* copy, wait: for so many replicas in a row, this one's is the first; elsewhere 1 */
  void *to;
  const void *from;
  int64_t bytes;
  int64_t from_step; /* of a repeated copy: from a replica's `from` to the next one's */
  const rt_call *call;
} rt_action;

/* Prologue, body or epilogue: what each instruction is for every replica, before the next instruction. What a replica
 * does with each of the others is at most two actions: with those before it, and with those behind it. */
typedef struct rt_part {
  const char *name;
  int32_t n;
  rt_action *actions;
  /* Actions of each of the session's streams, those without one left out: by_stream[first[s]] up to, not including,
   * first[s + 1]. */
  int32_t *first, *by_stream;
} rt_part;

enum { RT_PROLOGUE, RT_BODY, RT_EPILOGUE, RT_N_PARTS };

/* Every replica has the plan's streams and events for itself, one behind the other's. Beside them a session has lanes,
 * one for what the user brings and one for what he gets: the plan's copies go on while he is slow. Each handover, a
 * feed or a delivery, has events of its own behind theirs: `ready` when there is something to take, and, by row,
 * `taken` when its place is free again. */
enum { RT_LANE_IN, RT_LANE_OUT, RT_N_LANES };
enum { RT_ROWS = 2, RT_HANDOVER_EVENTS = 1 + RT_ROWS };

typedef struct rt_resident rt_resident;
typedef struct rt_record rt_record;

/* A job of the training that the plan does not have: as it left, until a plan has it again. */
typedef struct rt_away {
  int32_t number;
  rt_record *record;
  char *values; /* that persist, replica by replica, in the order of the record */
} rt_away;

struct planrt_session {
  const planc_plan *plan;
  planrt_options options;
  planc_check_report report;
  planc_trace *trace;
  const planrt_backend *backend;
  rt_device *device; /* NULL: taken back, or given up until the next run */
  bool gave_up_device;
  int32_t n_streams, n_events; /* of all replicas; lanes and handovers not counted */
  int32_t n_handovers;         /* of the body, of all replicas */
  int64_t taken_bytes;  /* of the device beside the arena, others' not counted where they make it more than reserved */
  int64_t device_bytes; /* of memory that the device has; 0: not known */
  int64_t before_bytes; /* taken of it when the session began */
  int64_t others_bytes; /* of these, by others; -1: not asked yet */
  pl_arena loaded;      /* what goes with the device: parts, calls, cursors */
  pl_arena memory;      /* everything else below */
  rt_part parts[RT_N_PARTS];

  /* The user's side. home[replica * n_homes + home_of[job] + storage] is a persistent storage's value, NULL for others.
   */
  int32_t n_homes, *home_of;
  char **home;
  char *user_memory; /* homes, staging, samples and results: one block, whole pages */
  int64_t user_bytes;
  char *staging; /* for samples and comparisons, as large as the largest buffer of the user's */
  int64_t staging_bytes;
  /* Where samples wait for their copy: by handover, or by replica and buffer where the same ones are taken again. */
  char **samples;
  int64_t *result_at;           /* by buffer: offset in a period's results of a replica, -1 for others */
  int64_t replica_result_bytes; /* of one period and replica */
  int64_t result_bytes;         /* of one period */
  /* Of the last `kept_periods` periods, period p at (p % kept_periods) * result_bytes, and behind them of the one that
   * a captured body runs, whichever that is. */
  char *results;
  int64_t kept_periods;
  uint64_t *digests;        /* verify: as results, each row as many as the body has actions; or NULL */
  uint64_t *wanted_digests; /* of the reference, by replica and instance */
  int32_t n_spans;          /* of a period */
  rt_span *spans;           /* of the last options.timeline periods; or NULL */
  planrt_feed feed;         /* the options', or the default */
  void *feed_user;
  int64_t *classes; /* by home_of[job] + storage: of integer inputs, the number of values they may have; 0: any */

  struct rt_cursor *cursors; /* by stream, for interleaved runs */
  planrt_step step;
  /* Of each job of the plan: by how much its iterations are ahead of the periods (less than 0: behind), its number in
   * the training, and the name that it has or NULL. */
  int64_t *ahead;
  int32_t *numbers;
  const char **names;
  int32_t n_before; /* how many jobs the training had before this plan: those with these numbers */
  int32_t n_away;
  rt_away *away;
  rt_failures failures;            /* of jobs */
  bool replays;                    /* bodies are replayed as the backend keeps them; else enqueued, work by work */
  planrt_samples *resumed_samples; /* by job of the plan: planrt_resumed_samples */
  int64_t resumed_period;          /* at which the session was resumed */
  bool *resumed_other_rounds;      /* by job of the plan: planrt_resumed_in_other_rounds */
  bool *has_random;                /* by job of the plan: samples were pseudo-random */
  int64_t period_ns;               /* of the last run; 0: not known */
  rt_resident *reference;          /* or NULL */
};

/* The home of a replica's value of a storage: where the user's memory has it between two runs. NULL unless it persists.
 */
static inline char *rt_home(const planrt_session *session, int32_t replica, int32_t job, int32_t storage) {
  return session->home[(int64_t)replica * session->n_homes + session->home_of[job] + storage];
}

/* Which of a period's iterations of its job a buffer belongs to. */
static inline int64_t rt_within_period(const planc_buffer *buffer) {
  return buffer->iteration < 0 ? 0 : buffer->iteration;
}
/* The iteration that a job begins a period with, counted over all that it has done. */
static inline int64_t rt_first_iteration(const planrt_session *session, int32_t job, int64_t period) {
  return period * session->trace->jobs[job].iterations + session->ahead[job];
}
/* The iteration of its job that a buffer belongs to in a period. */
static inline int64_t rt_buffer_iteration(const planrt_session *session, const planc_buffer *buffer, int64_t period) {
  return rt_first_iteration(session, buffer->job, period) + rt_within_period(buffer);
}

/* --- session.c ---------------------------------------------------------------------------------------------------- */

/* planrt_session_new of a plan that has been checked: `checked` is the report; NULL: it is still to be checked. */
planc_status rt_session_new_checked(const planc_plan *plan, const planrt_options *options,
                                    const planc_check_report *checked, planrt_session **out);
/* Closes the device and gives back all of it: what persists is still there, and nothing can be run. */
void rt_session_close_device(planrt_session *session);
/* Gives the device back until the next run, which begins from what is at home as every run does. */
void rt_session_give_up_device(planrt_session *session);

/* --- jobs.c ------------------------------------------------------------------------------------------------------- */

/* Numbers the jobs of a new session as they stand in its plan, with no iteration done. */
planc_status rt_jobs_open(planrt_session *session);
void rt_jobs_close(planrt_session *session);
/* How many jobs the training has had: numbers are below. */
int32_t rt_jobs_known(const planrt_session *session);
/* The job of the plan that has a number, -1 where it is away. */
int32_t rt_job_with(const planrt_session *session, int32_t number);
/* Which is away, by its number. */
rt_away *rt_job_away(const planrt_session *session, int32_t number);
/* By how much a job that has done so many iterations is ahead where `per_period` of them are a period's; false where
 * that is beyond counting, its samples included. */
bool rt_job_ahead(int64_t period, int32_t per_period, int64_t whole_batch, int64_t iterations, int64_t *out);
/* Whether so many more periods can be counted from where the session stands, in iterations of every job too. */
bool rt_jobs_can_run(const planrt_session *session, int64_t periods);
/* Takes down a job that leaves, and puts one back. */
planc_status rt_away_take(const planrt_session *from, int32_t job, rt_away *out);
void rt_away_put_back(const rt_away *away, planrt_session *to, int32_t job);
void rt_away_free(rt_away *away);

/* --- init.c ------------------------------------------------------------------------------------------------------- */

/* Sets what persists of a job, in all replicas, to what a fresh training starts from. */
planc_status rt_init_job(planrt_session *session, int32_t job);

/* --- user.c ------------------------------------------------------------------------------------------------------- */

/* Makes homes, staging, samples and results for the session's trace, whose jobs have been numbered (rt_jobs_open). */
planc_status rt_user_open(planrt_session *session);
/* Brings the samples that are taken again and again, as the session's seed has them. */
planc_status rt_user_ask_same(planrt_session *session);
void rt_user_close(planrt_session *session);
/* The homes of a job one after the other, by replica and storage:
 * rt_homes at = {.storage = -1}; while (rt_next_home(...)). */
typedef struct rt_homes {
  int32_t replica, storage;
  char *home;
  int64_t bytes;
} rt_homes;
bool rt_next_home(const planrt_session *session, int32_t job, rt_homes *at);
/* Where a replica's result of a period is, in a row of `results`. */
static inline char *rt_result_slot(const planrt_session *session, int64_t row, int32_t replica, int32_t buffer) {
  return session->results + row * session->result_bytes + replica * session->replica_result_bytes +
         session->result_at[buffer];
}

/* --- load.c ------------------------------------------------------------------------------------------------------- */

/* Turns the plan's instructions into actions: addresses, calls and their handles. */
planc_status rt_load(planrt_session *session);

/* --- interpreter.c ------------------------------------------------------------------------------------------------ */

/* Where a stream of an interleaved run stands: body -1 is the prologue, `periods` the epilogue, one more the end. */
typedef struct rt_cursor {
  int64_t body;
  int32_t position; /* in by_stream */
  int32_t repeat;   /* of the action there */
} rt_cursor;

/* Runs prologue, `periods` bodies (fewer when stopped: *out_done) and epilogue in file order, or interleaved as drawn
 * from `seed`. The step's period is the first body's and is left as it is. */
planc_status rt_interpret(planrt_session *session, int64_t periods, int64_t *out_done);
planc_status rt_interleave(planrt_session *session, int64_t periods, uint64_t seed, int64_t *out_done);
/* Has the backend keep the body, for rt_interpret to replay. */
planc_status rt_capture(planrt_session *session);

/* --- resident.c --------------------------------------------------------------------------------------------------- */

/* How an instance is run. */
typedef struct rt_choice {
  const char *algorithm; /* NULL: the instance is not run */
  int64_t workspace_bytes;
} rt_choice;

/* An executor with every buffer of every replica resident at an address of its own: the reference, and the inference
 * pass. What is said by instance holds for all replicas; a trace without replicas has one. */
typedef struct rt_resident_options {
  const planrt_backend *backend;
  const planc_trace *trace; /* borrowed */
  int32_t first_job;        /* its jobs are the session's from this one on */
  const rt_choice *choices; /* by instance */
  bool synthetic, deterministic;
  bool timed;              /* launches will be given spans */
  int32_t streams;         /* for rt_resident_together; 0: none */
  int64_t workspace_bytes; /* room for at least so large a workspace, which `instead` may choose */
  /* Gives another choice for an instance whose own cannot be run on this device, which says that it needs a workspace
   * of `need_bytes` (-1: not known); false: there is none, and `why` ends it all, as where this is NULL. */
  bool (*instead)(void *user, int32_t instance, planc_status why, int64_t need_bytes, rt_choice *choice);
  /* Told before an instance's call is prepared, which runs it once; a failure ends it all. Or NULL. */
  planc_status (*preparing)(void *user, int32_t instance, const char *algorithm);
  /* Told how much more the device has taken since a call with an algorithm was prepared, whether that succeeded or not:
   * it keeps the code that has been loaded. Or NULL. */
  planc_status (*loaded)(void *user, const char *algorithm, int64_t bytes);
  void *user;
} rt_resident_options;
/* Of the device, the workspaces of twins left out. */
planc_status rt_resident_bytes(const rt_resident_options *options, int64_t *out_bytes);
planc_status rt_resident_new(const rt_resident_options *options, rt_resident **out);
void rt_resident_free(rt_resident *resident);
/* What its device has taken beside the arena by now. */
planc_status rt_resident_taken(const rt_resident *resident, int64_t *out_bytes);
/* Copies the persistent buffers in from the session's home. */
planc_status rt_resident_load(rt_resident *resident, const planrt_session *session);
/* From now on nothing is run, or asked for, of a job of the trace. */
void rt_resident_leave_out(rt_resident *resident, int32_t job);
/* Runs one period of the launch's step, each instance for all replicas before the next; inputs are asked of `feed`
 * through the session's staging. Of replica r and n instances spans[r * n + i] is when instance i ran and digests[r * n
 * + i] the hash of what it put out; either may be NULL. */
planc_status rt_resident_run(rt_resident *resident, const planrt_session *session, const rt_launch *launch,
                             planrt_feed feed, void *user, rt_span *spans, uint64_t *digests);
/* The parts of that. Samples may also be brought once, of a session that has them all (same_samples) and the same
 * trace, and instances [first, first + n) enqueued again and again: they may not have run yet when this returns. */
planc_status rt_resident_bring(rt_resident *resident, const planrt_session *session);
planc_status rt_resident_enqueue(rt_resident *resident, int32_t first, int32_t n, const rt_launch *launch,
                                 rt_span *spans, uint64_t *digests);
planc_status rt_resident_synchronize(rt_resident *resident);
/* Runs one instance and waits for its end: a failure is its own. */
planc_status rt_resident_run_one(rt_resident *resident, int32_t i, const rt_launch *launch, rt_span *spans);
enum { RT_MAX_TOGETHER = 8, RT_MAX_TOGETHER_BYTES = 64 << 20 };
/* Runs an instance of the first replica `times` times on each of the first `n` streams at once; *out_ns is how long all
 * of it takes, 0 where it was not run since its workspace is beyond RT_MAX_TOGETHER_BYTES. What it puts out is then
 * undefined. */
planc_status rt_resident_together(rt_resident *resident, int32_t instance, int32_t n, int32_t times, int64_t *out_ns);
/* Copies the content of a replica's buffer to `out`. */
planc_status rt_resident_read(const rt_resident *resident, int32_t replica, int32_t buffer, void *out);

/* --- reference.c -------------------------------------------------------------------------------------------------- */

/* Makes room for what a verified session's ops put out; before the body is captured. */
planc_status rt_digests_new(planrt_session *session);
/* Opens the reference of a loaded session. */
planc_status rt_reference_open(planrt_session *session);
/* Runs the reference over the `periods` periods from the step's on, which the session has just run, and compares their
 * results, then the persistent buffers, bit for bit. rt_resident_load must have been done before that run. */
planc_status rt_reference_compare(planrt_session *session, int64_t periods);

/* --- feed.c ------------------------------------------------------------------------------------------------------- */

/* Asks `feed` for the samples of a replica's fed buffer of the period that begins with iteration `first` of its job. */
planc_status rt_ask(planrt_feed feed, void *user, const planc_trace *trace, int32_t replica, int32_t buffer,
                    int64_t first, void *out);
/* Whether samples are asked for a buffer: those of other replicas are not. */
static inline bool rt_is_asked_for(const planc_buffer *buffer) {
  return (buffer->flags & PLANC_BUFFER_FED) && buffer->peer < 0;
}
/* The default feed: pseudo-random samples for the session given as `user`. */
planc_status rt_random_feed(void *user, const planrt_feed_request *request);

#endif
