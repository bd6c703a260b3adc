/* Lowering between its files: what it works on, and the instructions that more than one of them makes. */
#ifndef PLANC_LOWER_LOWERING_H
#define PLANC_LOWER_LOWERING_H

#include "planc/candidate.h"
#include "planner/lower/addresses.h"
#include "planner/lower/events.h"
#include "util/map.h"

enum { LOWER_NONE = -1 };

/* An instruction of the prologue or epilogue. Several in a row on one stream can be one step: the first of them begins
 * it, the last one ends it. */
typedef struct lower_around {
  planc_instr instr;
  int32_t begins, ends; /* steps, or LOWER_NONE */
} lower_around;
typedef VEC(lower_around) lower_arounds;

typedef struct lowering {
  const planc_target *target;
  int64_t room; /* the candidate's */
  const planc_schedule *schedule;
  const planc_trace *trace;
  const planc_residency *residencies;
  const planc_command *commands;
  int32_t n_commands;
  planc_plan *plan;
  pl_arena *memory;       /* the plan's */
  pl_arena arena;         /* lowering's own */
  pl_addresses addresses; /* residencies of the boundary that are away have slots of the same number */
  /* A step is what runs on a stream and can be waited for. Acquires and releases are none, nor are copies that nobody
   * reads. Behind the steps of the body stand those of the epilogue, then those of the prologue. */
  pl_step *steps;
  int32_t n_steps;                         /* of all three */
  int32_t first_before;                    /* of the prologue */
  int32_t *step_of_command, *step_of_copy; /* between memories */
  int16_t *stream_of_route;                /* by job and route */
  lower_arounds before, after;
  /* first_range[k] is the first range of thing k; first_range[k + 1] ends them. Things: residencies (those away have
   * no range), then each command's workspace, then slots. */
  int32_t *first_range;
  int32_t *id_of; /* by residency: its number in the plan */
  int32_t *id_of_slot;
  VEC(pl_range) ranges;
  VEC(pl_range_touch) touches;
  pl_hazards work;
  pl_waits waits, waits_before; /* the prologue's */
  int32_t *event_of_step;       /* LOWER_NONE where nobody waits */
  pl_map algorithm_index;
  VEC(const char *) algorithms;
} lowering;

/* -1 = none. */
static inline int16_t lower_stream_of(const lowering *l, int32_t job, planc_route route) {
  return l->stream_of_route[job * PLANC_N_ROUTES + (int32_t)route];
}

static inline const pl_slot *lower_slot_at(const lowering *l, int32_t slot) {
  return &l->addresses.away.slots[slot];
}

/* What lower_touch calls a slot. */
static inline int32_t lower_touched_slot(const lowering *l, int32_t slot) {
  return planc_schedule_n_residencies(l->schedule) + l->n_commands + slot;
}

static inline bool lower_is_on_device(const lowering *l, int32_t residency) {
  return !planc_schedule_is_away(l->schedule, residency);
}

static inline int32_t lower_job_of(const lowering *l, int32_t residency) {
  return l->trace->buffers[l->residencies[residency].buffer].job;
}

static inline int64_t lower_bytes_of(const lowering *l, int32_t residency) {
  return l->trace->buffers[l->residencies[residency].buffer].bytes;
}

static inline planc_instr lower_acquire_of(const lowering *l, int32_t id, planc_boundary at) {
  return (planc_instr){.op = PLANC_INSTR_acquire,
                       .memory = (int16_t)at.memory,
                       .id = id,
                       .aux = at.buffer,
                       .address = at.address,
                       .bytes = l->trace->buffers[at.buffer].bytes};
}

static inline planc_instr lower_release_of(int32_t id) {
  return (planc_instr){.op = PLANC_INSTR_release, .id = id};
}

/* `to` and `from` are numbers in the plan. */
static inline planc_instr lower_copy_of(int16_t stream, int32_t to, int32_t from, int64_t bytes) {
  return (planc_instr){.op = PLANC_INSTR_copy, .stream = stream, .id = to, .aux = from, .bytes = bytes};
}

static inline planc_instr lower_record_of(const lowering *l, int32_t step) {
  return (planc_instr){
      .op = PLANC_INSTR_record, .stream = (int16_t)l->steps[step].stream, .id = l->event_of_step[step]};
}

/* A wait numbers steps within its section: `first_step` is the first of these. */
static inline planc_instr lower_wait_of(const lowering *l, const pl_wait *wait, int32_t first_step) {
  return (planc_instr){.op = PLANC_INSTR_wait,
                       .lag = (uint8_t)wait->lag,
                       .peers = wait->peers,
                       .stream = (int16_t)l->steps[first_step + wait->step].stream,
                       .id = l->event_of_step[first_step + wait->producer]};
}

/* --- lower_steps.c: what runs, what it touches, what it has to wait for ------------------------------------------- */

/* The bytes that each residency and command touches. */
planc_status lower_make_ranges(lowering *l);
/* The steps of the body. */
planc_status lower_make_steps(lowering *l);
/* Appends a step that makes the touches from its first one on. */
planc_status lower_end_step(lowering *l, pl_step step);
/* Appends the touches of thing `what`: a residency, a workspace or a slot, numbered as in first_range. */
planc_status lower_touch(lowering *l, int32_t what, bool writes);
/* Whether a command runs on a stream. */
bool lower_runs(const lowering *l, int32_t command);
/* Whether a command copies what the other replicas sent. */
bool lower_is_from_peers(const lowering *l, int32_t command);
/* Which steps wait for which, and the events of those that are waited for. */
planc_status lower_find_waits(lowering *l);
planc_status lower_number_events(lowering *l);

/* --- lower_around.c: prologue and epilogue ------------------------------------------------------------------------ */

/* Their steps, behind those of the body, and then their instructions. */
planc_status lower_make_around(lowering *l);
planc_status lower_make_prologue(lowering *l);
planc_status lower_make_epilogue(lowering *l);

#endif
