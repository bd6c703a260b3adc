/* What the machine runs (sim_machine.h): steps on streams, launched by the dispatchers of jobs, ordered by events.
 * Programs are made of plans (program_of_plan.h), and by tests. */
#ifndef PLANC_SIMULATE_SIM_PROGRAM_H
#define PLANC_SIMULATE_SIM_PROGRAM_H

#include "planc/simulate.h"
#include "util/arena.h"
#include "util/math.h"

typedef enum sim_step_kind { SIM_WAIT, SIM_RECORD, SIM_KERNEL, SIM_COPY } sim_step_kind;

typedef struct sim_step {
  sim_step_kind kind;
  uint8_t lag;       /* of a wait: 0 = the record of this body, 1 = of the one before */
  bool op;           /* of a kernel: it counts as a miss where a copy to its GPU comes late for it */
  bool to_gpu;       /* of a copy: it ends in the memory of a GPU */
  planc_route route; /* of a copy */
  int32_t stream;    /* negative: the step is none of the machine's, as where a plan acquires memory */
  int32_t event;     /* of a wait or a record */
  int32_t busy_ppm;  /* of a kernel, at most 1,000,000: the share of the GPU that it keeps busy */
  int64_t time_ns;   /* alone */
  int64_t chunks;    /* of virtual memory that the dispatcher maps and unmaps before it launches the step */
  bool tracked;      /* behind the step the dispatcher notes which memory is in use */
} sim_step;

/* Steps in the order in which dispatchers launch them. */
typedef struct sim_section {
  const sim_step *steps;
  int32_t n;
  int32_t *first, *next; /* by stream its first step, by step the stream's next one; n = none */
  /* By dispatcher its first kernel or copy, by step the dispatcher's next one; n = none. */
  int32_t *first_launch, *next_launch;
  int32_t n_timed; /* kernels and copies, the steps that take time */
} sim_section;

typedef struct sim_stream {
  bool computes; /* it runs kernels; else copies */
  int32_t job;
  int32_t dispatcher; /* who launches its work: its job's own, which has the job's number, or 0 that serves all jobs */
  int32_t on;         /* a GPU; of copies an engine */
  int32_t priority;   /* of its kernels, see planc_job; 0 to most_priority of the program */
} sim_stream;

/* Engines that share a bandwidth are on one bus, which has the number of the lowest of them. An engine that shares none
 * is on a bus of its own. */
typedef struct sim_engine {
  int32_t bus;
  int32_t sharers; /* replicas whose engines of this number are on the bus: 1 = only one is */
  int32_t n_gpus;  /* whose kernels its copies slow */
  const int32_t *gpus;
  int32_t n_against; /* engines that copy the other way */
  const int32_t *against;
} sim_engine;

/* Streams listed by a key, a dispatcher say: those of key k are streams[first[k]] up to, not including,
 * streams[first[k + 1]]. */
typedef struct sim_streams {
  int32_t *first, *streams;
} sim_streams;

enum { SIM_PROLOGUE, SIM_BODY, SIM_EPILOGUE, SIM_N_SECTIONS };

typedef struct sim_program {
  planc_plan_device device;
  bool captured;         /* a body is launched as a whole, and none overlaps another */
  bool apart;            /* nothing of a body is launched before the one before it has ended */
  bool from_rest;        /* nothing of the first body is launched before the prologue has ended */
  int64_t chunk_ns;      /* to map or unmap a chunk */
  int64_t track_ns;      /* that a dispatcher takes behind a step that is tracked */
  int32_t most_priority; /* of the streams */
  int32_t n_streams, n_jobs, n_gpus, n_engines, n_events;
  const sim_stream *streams;
  const sim_engine *engines;
  sim_section sections[SIM_N_SECTIONS];
  int32_t *recorder;    /* by event: the stream that records it in the body, -1 if none */
  int32_t *dispatchers; /* those that have streams */
  int32_t n_dispatchers;
  int32_t *place_of; /* by dispatcher: its place among those that have streams */
  sim_streams of_dispatchers, of_engines;
  sim_streams of_gpus;      /* the streams that compute there */
  sim_streams waits_events; /* by event the streams that wait for it, in any section */
} sim_program;

static inline bool sim_is_copy(const sim_step *step) {
  return step->kind == SIM_COPY;
}
static inline bool sim_is_timed(const sim_step *step) {
  return step->kind == SIM_KERNEL || sim_is_copy(step);
}

/* How long a dispatcher takes to launch a step where bodies are not captured. */
static inline int64_t sim_launch_ns(const sim_program *program, const sim_step *step) {
  int64_t mapping = pl_mul_saturate(step->chunks, program->chunk_ns);
  int64_t tracking = step->tracked ? program->track_ns : 0;
  return pl_add_saturate(pl_add_saturate(program->device.launch_ns, mapping), tracking);
}
/* The least time in which a dispatcher launches all that it has to in a body. */
int64_t sim_dispatcher_ns(const sim_program *program, int32_t dispatcher);

/* Lists the steps of a section by stream and by dispatcher, and counts them, all in `arena`. To be done again where
 * steps were edited. */
planc_status sim_list_steps(const sim_program *program, pl_arena *arena, sim_section *section);
/* The rest of a program whose device, streams, engines and sections' steps are set. */
planc_status sim_prepare(sim_program *program, pl_arena *arena);

/* Has one dispatcher launch the work of all jobs, in the plan's order. */
planc_status sim_share_dispatcher(sim_program *program, pl_arena *arena);

#endif
