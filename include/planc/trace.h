/* The trace: graph, batch, rounds, order and jobs expanded into one flat list of op instances over versions.
 *
 * A *buffer* is one storage in one round (or, for what spans rounds: in one iteration; for what persists: in all). Its
 * content between two writes is a *version*, counted from 0: version 0 of a persistent or fed buffer is what it holds
 * when the period starts, of any other buffer it is undefined. In the next period version 0 of a persistent buffer is
 * its last version of this one. Everything after expand sees only traces, so uneven rounds, several iterations and
 * several jobs are no special cases. */
#ifndef PLANC_TRACE_H
#define PLANC_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/graph.h"
#include "planc/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A job: a graph, its batch, how the batch is cut into rounds (sub-batches), and its iterations per period.
 *
 * A job with replicas is trained by all of them together (data parallelism): each does what the job says, on an equal
 * part of the samples, and before the optimizer every gradient is summed over all of them. A trace is that of one
 * replica, whichever: all jobs of a trace have equally many. */
typedef struct planc_job {
  const planc_graph *graph;
  int64_t batch; /* samples of an iteration; of a replica: of its part */
  int32_t n_rounds;
  const int64_t *rounds; /* samples of each round, all positive, summing to batch */
  int32_t iterations;    /* per period, at least 1 */
  const int32_t *order;  /* op order of a round, a legal permutation; NULL = the graph's */
  int32_t replicas;      /* how many train together; 0 and 1: the job trains alone */
  int32_t priority;      /* of its ops on the GPU beside those of other jobs, 0 to PLANC_MAX_PRIORITY: the most first */
  const char *name;      /* by which it is the same job in another plan; NULL: none is given */
#define X(name, ...) int64_t name; /* what was asked for it alone; 0: what the plan's settings say */
  PLANC_EACH_SETTINGS(X)
#undef X
} planc_job;

/* As many as CUDA's streams have beside the least. */
enum { PLANC_MAX_PRIORITY = 5 };

/* How many replicas train together, at least 1. */
static inline int32_t planc_job_replicas(const planc_job *job) {
  return job->replicas > 1 ? job->replicas : 1;
}

/* What lists of jobs call it: the name that it was given, else its graph's. */
static inline const char *planc_job_called(const planc_job *job) {
  return job->name ? job->name : job->graph->name;
}

/* The samples of an iteration of the whole training, which means are taken over. */
static inline int64_t planc_job_whole_batch(const planc_job *job) {
  return job->batch * planc_job_replicas(job);
}

/* Whether an iteration of either has rounds of the same sizes in the same order. */
bool planc_job_same_rounds(const planc_job *a, const planc_job *b);

enum {
  PLANC_BUFFER_PERSISTENT = 1, /* param or state: survives the period */
  PLANC_BUFFER_FED = 2,        /* version 0 comes from outside: an input batch, or the other replicas' gradients */
  PLANC_BUFFER_RESULT = 4      /* its last version leaves for the user's memory once per period: loss, outputs */
};

typedef struct planc_buffer {
  int32_t job, storage;
  int32_t iteration, round; /* -1 where it spans all of them */
  planc_kind kind;
  uint32_t flags;
  int64_t bytes;
  int32_t last_version; /* versions 0 .. last_version */
  int32_t sent;         /* a replica's gradient: the version that the others get; else -1 */
  int32_t peer; /* fed by the other replicas: the gradient of which it gets theirs, in version `sent`; else -1 */
  int32_t first_access, n_accesses; /* slice of trace->by_buffer */
} planc_buffer;

/* Whether a version is in the user's memory, so that it need not be copied out to come back. */
static inline bool planc_user_holds(const planc_buffer *buffer, int32_t version) {
  return version == 0 && (buffer->flags & PLANC_BUFFER_FED) && buffer->peer < 0;
}

/* Where the gradients of other replicas lie behind each other. */
enum { PLANC_OTHER_ALIGNMENT = 256 };
static inline int64_t planc_other_stride(int64_t gradient_bytes) {
  return (gradient_bytes + PLANC_OTHER_ALIGNMENT - 1) / PLANC_OTHER_ALIGNMENT * PLANC_OTHER_ALIGNMENT;
}

/* What one instance does with one buffer; an instance has at most one access per buffer. */
typedef struct planc_access {
  int32_t instance, buffer;
  int32_t read;  /* version read, -1 if none */
  int32_t write; /* version made, -1 if none; read >= 0 and write >= 0 is in place */
  bool effect;   /* a side effect: skipped by a recompute */
} planc_access;

typedef enum planc_role {
  PLANC_ROLE_OP,         /* runs the graph's op */
  PLANC_ROLE_ACCUMULATE, /* adds a round's temporary gradient (first access, read) to the gradient (second, in place) */
  PLANC_ROLE_EXCHANGE    /* adds the other replicas' gradients (second access, read) to its own (first, in place); the
                            sum is taken in the order of the replicas, so that it is the same everywhere */
} planc_role;

typedef struct planc_instance {
  int32_t job, iteration, round; /* round is -1 for optimizer ops and EXCHANGE */
  int32_t op;                    /* for ACCUMULATE and EXCHANGE: the op whose gradient it adds */
  planc_role role;
  bool accumulates;                 /* adds to its gradient (beta = 1) */
  int64_t batch;                    /* samples of its round; the job's batch where there is no round */
  int64_t sample_offset;            /* of its round within the replica's batch */
  int32_t first_access, n_accesses; /* slice of trace->accesses */
} planc_instance;

typedef struct planc_trace {
  int32_t n_jobs, n_instances, n_accesses, n_buffers;
  const planc_job *jobs;           /* a copy; the graphs are borrowed */
  const planc_instance *instances; /* in file order */
  const planc_access *accesses;    /* by instance; reads before pure writes, in operand order */
  const int32_t *by_buffer;        /* access indices grouped by buffer, in time order */
  const planc_buffer *buffers;
} planc_trace;

/* Of all its jobs. */
static inline int32_t planc_trace_replicas(const planc_trace *trace) {
  return trace->n_jobs > 0 ? planc_job_replicas(&trace->jobs[0]) : 1;
}

/* Expands jobs (one after the other) into a trace.
 *  - a round's ops run forward and backward; optimizer ops run once per iteration, after the last round;
 *  - a gradient spans the rounds of its iteration: in rounds after the first its single writer adds in place where its
 *    type can and nothing else in the round touches the gradient; else the round works on a temporary buffer (kind
 *    temp), and an ACCUMULATE instance adds that after the round's last access;
 *  - input buffers are per round and fed; loss and outputs are per round and leave;
 *  - with replicas there is an EXCHANGE instance for every gradient that the rounds made. They stand behind the rounds
 *    and before the optimizer ops, in the order in which the rounds were done with the gradients. The other replicas'
 *    gradients arrive in one fed buffer (kind temp): that of the k-th other one, counted in the order of all, begins
 *    k * planc_other_stride of the gradient's bytes behind its beginning.
 *
 * Fails with BAD_INPUT
 *  - on overflow,
 *  - on rounds that do not sum to the batch,
 *  - on an order that is no permutation, or lets an op see another version than the graph's order does,
 *  - with several rounds or replicas, where an optimizer op touches a buffer of a round, rounds share a buffer whose
 *    size depends on the batch, or an op of planc's own types would not compute the same in parts of the batch
 *    (planc-graph(5), phase). */
planc_status planc_expand(const planc_job *jobs, int32_t n_jobs, planc_trace **out);
/* Fails with BAD_INPUT, as planc_expand would, when the graph cannot run in several rounds. */
planc_status planc_check_rounds(const planc_graph *graph);
void planc_trace_free(planc_trace *trace);

/* The access of `instance` that serves tensor `tensor` of its op; -1 if there is none, as for other roles than OP. */
int32_t planc_trace_access_of(const planc_trace *trace, int32_t instance, int32_t tensor);
/* The graph's op of an instance. */
const planc_op *planc_trace_op(const planc_trace *trace, int32_t instance);
static inline planc_phase planc_trace_phase(const planc_trace *trace, int32_t instance) {
  return planc_trace_op(trace, instance)->phase;
}
/* What an instance runs, for people and files: its op's type, "accumulate" or "exchange". */
const char *planc_trace_type(const planc_trace *trace, int32_t instance);
/* The storage's name of a buffer. */
const char *planc_trace_buffer_name(const planc_trace *trace, int32_t buffer);
/* What goes before that name: "the other replicas' " where the buffer holds their gradients of that name, else "". */
const char *planc_trace_buffer_whose(const planc_trace *trace, int32_t buffer);
/* True when running the instance again restores what it wrote: it writes no persistent buffer and changes no gradient
 * other than as a side effect, and its op may run twice. A gradient that it only writes it makes anew. */
bool planc_trace_recomputable(const planc_trace *trace, int32_t instance);

#ifdef __cplusplus
}
#endif

#endif
