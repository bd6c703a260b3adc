/* planrt: runs plans. A session replays one plan on a backend, with the user's data coming in through `feed` and its
 * results leaving through `sink`.
 *
 *   planrt_session_new(plan, &options, &session);   checks the plan, allocates everything
 *   planrt_init(session);                           parameters and state as a fresh training run has them
 *   planrt_run(session, 100);                       prologue, 100 periods, epilogue
 *   planrt_read(session, 0, 0, storage, out, bytes);   what has been trained
 *   planrt_session_free(session);
 *
 * A session is used by one thread at a time; `feed` and `sink` may be called by others, but never two at once. After
 * planrt_session_new no run allocates anything. Every failure is a planc_status; after a failed run the contents of the
 * persistent buffers are undefined until written again. planc/status.h says what structs may come to have. */
#ifndef PLANRT_PLANRT_H
#define PLANRT_PLANRT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "planc/check.h"
#include "planc/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct planrt_session planrt_session;

/* What executes: "host", or a plug-in such as "cuda" (libplanrt-cuda.so), looked for in $PLANRT_PLUGINS, or else beside
 * the program and in ../lib/planrt. A program that opens plug-ins exports libplanc's symbols to them (-rdynamic).
 * Static. DEVICE when cuda's plug-in, or something that a plug-in needs, is missing; USAGE for a name of none. */
typedef struct planrt_backend planrt_backend;
planc_status planrt_backend_find(const char *name, const planrt_backend **out);

/* Asks for samples [offset, offset + count) of the batch of one iteration of an input. With replicas the batch is that
 * of them all, and of each replica's part the first sample's offset is the replica's number times the job's batch. */
typedef struct planrt_feed_request {
  int32_t job;       /* of the plan that the session has */
  int32_t storage;   /* of the job's graph, an input */
  int64_t iteration; /* of the job, counted from 0 over all that it has done */
  int64_t offset, count;
  void *out; /* to be filled with exactly `bytes` bytes */
  int64_t bytes;
} planrt_feed_request;
/* Must give the same bytes whenever it gets the same request: a plan may load an input more than once, and a verified
 * run asks for everything twice. Requests come in no particular order of iterations. */
typedef planc_status (*planrt_feed)(void *user, const planrt_feed_request *request);

/* What a session without a feed takes: pseudo-random samples, in functions of its seed, the job's number in the
 * training (planrt_job) and the input's name. A feed may call it for jobs that it has nothing for. */
planc_status planrt_feed_random(const planrt_session *session, const planrt_feed_request *request);

/* A round's result: the loss or another output. `data` is valid during the call. */
typedef struct planrt_result {
  int32_t replica; /* 0 where the job trains alone */
  int32_t job;
  int32_t storage;
  int64_t iteration; /* as in planrt_feed_request */
  int32_t round;
  const void *data;
  int64_t bytes;
} planrt_result;
/* A failure of `feed` or `sink` ends the run. Of a training of several jobs BAD_INPUT and JOB_FAILED are the failure of
 * the job that the request or the result is of, see planrt_failed: it ends alone, and the others go on. */
typedef planc_status (*planrt_sink)(void *user, const planrt_result *result);

typedef struct planrt_options {
  const planrt_backend *backend; /* NULL: the host's */
  uint64_t seed;                 /* of initial values, dropout and the default feed */
  planrt_feed feed;              /* NULL: pseudo-random samples */
  planrt_sink sink;              /* NULL: results are dropped */
  void *user;                    /* first argument of these, and of `pause` */
  bool synthetic;                /* stand-ins for all ops, see runtime/host/synthetic.c: any graph runs, no numerics */
  bool verify;                   /* run the reference beside the plan, see planrt_run; implies `deterministic` */
  bool poison;                   /* fill memory with NaNs when it is acquired and, in file order, when it is released */
  bool concurrent;               /* planrt_run: streams run beside each other; else everything in file order */
  /* The backend keeps the body once and replays it (CUDA Graphs): bodies then do not overlap. Goes with concurrent,
   * not with timeline. USAGE when the backend cannot. */
  bool replay;
  /* For timing, what a run with `concurrent` is held against: all calls and copies of the plan in the file's order on
   * one stream, without events, time stamps and work of the user's: `sink` gets nothing, and samples are those of
   * period 0, whatever `concurrent` and `same_samples` say. USAGE with `verify`, `poison`, `replay`, `jitter`,
   * `timeline` or `evaluate`, and when planrt_run is to run fewer than two periods. See planrt_period. */
  bool bare;
  /* Ask for the samples of period 0 only, once and before the first run, and take them in every period: what a run
   * takes is then the device's time and not the feed's. */
  bool same_samples;
  bool deterministic; /* refuse algorithms that do not give the same bits every time */
  /* Paces the link between host and device, in each direction; 0 = as fast as copies go. */
  int64_t link_bytes_per_s;
  const char *storage_path; /* the directory for a plan's storage, borrowed as the plan is; or NULL */
  uint64_t jitter;          /* not 0: seed of random delays before the work of every stream */
  /* When each instruction of the body ran, of replicas of the first one's, is kept of the last `timeline` periods, for
   * planrt_timeline_write. */
  int32_t timeline;
  const volatile sig_atomic_t *stop; /* or NULL: when it is not 0, planrt_run ends after what is on its way */
  /* Or NULL: asked by planrt_run before each period that it hands to the device, which may have some before that still
   * to run; true: the run ends before that one. */
  bool (*pause)(void *user);
  bool evaluate; /* make planrt_evaluate possible */
  /* Take the plan as it is, for tests of plans the checker has judged or should reject: a wrong plan then computes
   * wrong bits or fails, but touches no memory other than the session's. */
  bool unchecked;
} planrt_options;

/* Checks the plan (planc_check with its own budgets), opens a device of the backend with arenas of exactly the plan's
 * sizes and prepares every op. `plan` is borrowed until the session is freed; `options` is copied. DEVICE when an op
 * has no kernel, memory is short or the backend has none of a kind that the plan has; USAGE when the plan keeps data in
 * storage and no directory is given for it; INVALID_PLAN or INFEASIBLE from the checker. */
planc_status planrt_session_new(const planc_plan *plan, const planrt_options *options, planrt_session **out);
void planrt_session_free(planrt_session *session);

/* Whether the session could go on with `plan`, which may have other jobs. A job of it is one that the training has had
 * where both have the same name, or, where one of them has none, are of the same graph (its content), batch and number
 * of replicas; of several alike without names as many are the same, in order. STALE where a job of the same name, or of
 * none and the same graph's name, has become another; where only names could tell which of several is which; where no
 * job is known, or all that are have failed. INVALID_PLAN or INFEASIBLE from the checker. Touches nothing. `numbers`
 * (may be NULL) are by job of the plan: which number it has or, where it is new, would get. */
planc_status planrt_can_adopt(const planrt_session *session, const planc_plan *plan, int32_t *numbers);
/* Changes plans between two runs: *session becomes one for `plan`, with the same options, seed, period and learning
 * rate. Jobs that both plans have go on with all that persists of them, their iterations and failures, with as many
 * iterations in a period as the new plan has: each runs what it would have run, bit for bit where rounds and algorithms
 * are the same. Those that only the old one has are kept as they are, in memory and by planrt_save, until a plan has
 * them again. Those that are new start as planrt_init has them, with their first iteration. Both plans are never on the
 * device at once. After a failure *session is as it was; where even its own plan does not get the device back, it can
 * only be read, saved and freed (planrt_can_run). `plan` is borrowed as in planrt_session_new, the old one no longer.
 */
planc_status planrt_adopt(planrt_session **session, const planc_plan *plan);
bool planrt_can_run(const planrt_session *session);

/* A job that the training has had. Its number, from 0 on, it keeps for good: those of the first plan are numbered as in
 * that, others behind them as they come. */
typedef struct planrt_job {
  int32_t job;        /* of the plan that the session has; -1: it is away */
  const char *name;   /* that a plan or checkpoint has given it; NULL: none */
  const char *graph;  /* its graph's name */
  int64_t iterations; /* that it has done, those that do not count after a failure included */
  bool is_new;        /* it came with the plan that the session has: no plan or checkpoint before had it */
  const char *why;    /* it has failed, as planrt_failed says; NULL: it has not */
  int64_t failed_at;
} planrt_job;
int32_t planrt_jobs(const planrt_session *session);
/* What is pointed to is the session's until it is changed. `number` is below planrt_jobs. */
planrt_job planrt_job_of(const planrt_session *session, int32_t number);
/* The number of a job of the plan. */
int32_t planrt_job_number(const planrt_session *session, int32_t job);

/* Sets params and state, of every replica alike, to what a fresh training run starts from, in functions of `seed` and
 * each tensor's name:
 * weights of convolutions and linear layers He-uniform by fan-in, embeddings and positions normal with standard
 * deviation 0.02, biases 0, scales of normalisations 1 and shifts 0, running mean 0 and variance 1, optimizer state 0;
 * whatever only ops of unknown type use is small and uniform. */
planc_status planrt_init(planrt_session *session);

/* What ops may depend on beside their operands. */
typedef struct planrt_step {
  double learning_rate; /* NaN: every optimizer op's own `lr` */
  int64_t period;       /* the next to run; iteration i of job j is iteration period * iterations[j] + i of that job,
                           after a change of plans or a resumption so many more, or fewer, that it goes on where it
                           was. Feeds, dropout and Adam's step count (iteration + 1) follow it */
} planrt_step;
/* Before planrt_set_step: NaN and 0. Each run moves `period` on. */
planrt_step planrt_get_step(const planrt_session *session);
void planrt_set_step(planrt_session *session, planrt_step step);

/* Runs the prologue, `periods` bodies and the epilogue; fewer bodies when `stop` or `pause` say so: the step tells how
 * many. With `verify` the reference (the trace executed with every buffer resident, same rounds and algorithms) runs
 * beside it. Of every iteration what each op puts out, gradients, parameters and recomputed results included, is
 * compared by 64-bit hashes and every result bit for bit; persistent buffers are compared bit for bit after each
 * epilogue. INVALID_PLAN names the first difference. To bound what is kept, the epilogue and the prologue then also run
 * every PLANRT_VERIFY_PERIODS periods. */
enum { PLANRT_VERIFY_PERIODS = 16 };
planc_status planrt_run(planrt_session *session, int64_t periods);
/* The same in an order drawn from `seed`: any stream may run on as far as the plan's events allow, whole bodies ahead
 * of the others included. Every seed gives the same results if the plan is safe under any timing. INVALID_PLAN when no
 * stream can go on. */
planc_status planrt_run_interleaved(planrt_session *session, int64_t periods, uint64_t seed);

/* Writes when each instruction of the body, of replicas of the first one's, ran in the last periods (the option
 * `timeline` says how many at most) to `path`, written aside and renamed: Chrome's trace-event JSON, for Perfetto and
 * `planc simulate --against`, in the form of planrun(1). USAGE without that option, and when planrt_run has run no
 * period or the last took longer than PLANC_TIMELINE_MAX_NS. */
planc_status planrt_timeline_write(const planrt_session *session, const char *path);

/* Copies a param's or state's value out of, or into, the session's home memory; `bytes` must be its size. Every replica
 * has values of its own, `replica` is 0 where the job trains alone: of what the optimizer trains all have the same,
 * unless different ones were written, and of running statistics each those of its samples. */
planc_status planrt_read(const planrt_session *session, int32_t replica, int32_t job, int32_t storage, void *out,
                         int64_t bytes);
planc_status planrt_write(planrt_session *session, int32_t replica, int32_t job, int32_t storage, const void *data,
                          int64_t bytes);

/* Writes all params and state of every replica and how many iterations have been run, of every job that the training
 * has had, and the seed to `path` (written aside and renamed). */
planc_status planrt_save(const planrt_session *session, const char *path);
/* Puts a session where the saved one was, seed included: what it then runs is what the saved one would have run, bit
 * for bit. The plan may be another one, with other jobs too, in the way of planrt_adopt: jobs that the file does not
 * have start anew, and others that it has are away. BAD_INPUT when the file is damaged, STALE when planrt_can_adopt
 * would say so or a session of stand-ins saved it and this one is none, or the other way round; the session is then as
 * it was. */
planc_status planrt_resume(planrt_session *session, const char *path);
/* Whose samples a job of the plan trained on when the checkpoint was saved that the session was resumed from. UNKNOWN
 * where it does not say, and of a job that it does not have. */
typedef enum planrt_samples { PLANRT_SAMPLES_UNKNOWN, PLANRT_SAMPLES_RANDOM, PLANRT_SAMPLES_USER } planrt_samples;
planrt_samples planrt_resumed_samples(const planrt_session *session, int32_t job);
/* Whether that job had other rounds then, which its results are summed in. No where the checkpoint does not say. */
bool planrt_resumed_in_other_rounds(const planrt_session *session, int32_t job);

/* Runs the forward ops of a job, with its first replica's values, as inference (running statistics, no dropout) on
 * `samples` samples from `feed` (batch i is its iteration i; of the last batch only what is needed counts) and gives
 * the share of positions whose most probable class is their label. The pass has the device to itself, with as many
 * samples at once as the plan's budget has room for; the next run takes the device again. USAGE without the option
 * `evaluate` and for a job that is not there, BAD_INPUT when the graph has no softmax_xent, INFEASIBLE when there is no
 * room for one sample. */
planc_status planrt_evaluate(planrt_session *session, int32_t job, planrt_feed feed, void *user, int64_t samples,
                             double *out_accuracy);

/* How a job of several has failed. The iteration is the first that does not count, and `why` is the session's; both are
 * the same however work was timed. What of it was on its way to the device still runs, with zeros in place of samples;
 * then its streams record and wait as the plan has it and do nothing else, in this run and all that follow, until
 * planrt_init. What the others do is not touched by that. `sink` gets no more of its results, nothing of it is
 * verified, and of what persists it has what an epilogue brought home last: what it had when the run began in which it
 * failed, or with `verify` a later period. With all jobs failed the run ends. False: it has not. */
typedef struct planrt_failure {
  int64_t iteration;
  const char *why;
} planrt_failure;
bool planrt_failed(const planrt_session *session, int32_t job, planrt_failure *out);

uint64_t planrt_seed(const planrt_session *session); /* the options', or that of the checkpoint resumed */

/* The checker's report on the session's plan; zeros when the session is `unchecked`. */
const planc_check_report *planrt_report(const planrt_session *session);

/* What context, libraries, code and captured bodies took of the device's memory beside the arena when the session was
 * made: at most what the plan reserves. 0 on the host. */
int64_t planrt_taken(const planrt_session *session);

/* What a period took in the last run: from the end of its first, which is awaited there, to the end of its last, by how
 * many come after the first. 0: not known, as of a run of one period, of an interleaved one, and with `verify` or
 * `timeline`. */
int64_t planrt_period(const planrt_session *session);

/* How many streams the session has on its device, the user's side included, and how many of them the device tells
 * apart: where there are more, some wait for each other without need. */
void planrt_streams_of(const planrt_session *session, int32_t *out_streams, int32_t *out_told_apart);

/* The host backend's library of kernels and the instruction set it uses here: "oneDNN 2.6.3, avx512_core". Static. */
const char *planrt_host_library(void);

#ifdef __cplusplus
}
#endif

#endif
