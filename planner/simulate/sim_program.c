/* Sorting a program's steps by stream and by dispatcher (sim_program.h). */
#include "planner/simulate/sim_program.h"

static planc_status find_recorders(sim_program *program, pl_arena *arena);
static planc_status find_dispatchers(sim_program *program, pl_arena *arena);
static planc_status sort_by_dispatcher(sim_program *program, pl_arena *arena);
static planc_status sort_by_engine(sim_program *program, pl_arena *arena);
static planc_status sort_by_gpu(sim_program *program, pl_arena *arena);
static planc_status sort_by_event(sim_program *program, pl_arena *arena);

planc_status sim_prepare(sim_program *program, pl_arena *arena) {
  for (int k = 0; k < SIM_N_SECTIONS; k++) PLANC_TRY(sim_list_steps(program, arena, &program->sections[k]));
  PLANC_TRY(find_recorders(program, arena));
  PLANC_TRY(find_dispatchers(program, arena));
  PLANC_TRY(sort_by_dispatcher(program, arena));
  PLANC_TRY(sort_by_engine(program, arena));
  PLANC_TRY(sort_by_gpu(program, arena));
  return sort_by_event(program, arena);
}

static planc_status find_recorders(sim_program *program, pl_arena *arena) {
  const sim_section *body = &program->sections[SIM_BODY];
  PLANC_TRY(PL_NEW(arena, &program->recorder, program->n_events));
  for (int32_t e = 0; e < program->n_events; e++) program->recorder[e] = -1;
  for (int32_t i = 0; i < body->n; i++)
    if (body->steps[i].stream >= 0 && body->steps[i].kind == SIM_RECORD)
      program->recorder[body->steps[i].event] = body->steps[i].stream;
  return NULL;
}

/* Any dispatcher will do to go through a program without streams. */
static planc_status find_dispatchers(sim_program *program, pl_arena *arena) {
  bool *has_streams;
  PLANC_TRY(PL_NEW(arena, &has_streams, program->n_jobs));
  PLANC_TRY(PL_NEW(arena, &program->dispatchers, (int64_t)program->n_streams + 1));
  program->n_dispatchers = 0;
  for (int32_t s = 0; s < program->n_streams; s++) {
    int32_t dispatcher = program->streams[s].dispatcher;
    if (!has_streams[dispatcher]) program->dispatchers[program->n_dispatchers++] = dispatcher;
    has_streams[dispatcher] = true;
  }
  if (program->n_dispatchers == 0) program->dispatchers[program->n_dispatchers++] = 0;
  PLANC_TRY(PL_NEW(arena, &program->place_of, (int64_t)program->n_jobs + 1));
  for (int32_t k = 0; k < program->n_dispatchers; k++) program->place_of[program->dispatchers[k]] = k;
  return NULL;
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static void link_steps(const sim_program *program, sim_section *section);

planc_status sim_list_steps(const sim_program *program, pl_arena *arena, sim_section *section) {
  section->n_timed = 0;
  PLANC_TRY(PL_NEW(arena, &section->first, program->n_streams));
  PLANC_TRY(PL_NEW(arena, &section->next, section->n));
  PLANC_TRY(PL_NEW(arena, &section->first_launch, program->n_jobs));
  PLANC_TRY(PL_NEW(arena, &section->next_launch, section->n));
  for (int32_t s = 0; s < program->n_streams; s++) section->first[s] = section->n;
  for (int32_t j = 0; j < program->n_jobs; j++) section->first_launch[j] = section->n;
  link_steps(program, section);
  return NULL;
}

/* Goes backwards, so that of each stream and dispatcher the step seen last is the one that comes next. */
static void link_steps(const sim_program *program, sim_section *section) {
  for (int32_t i = section->n - 1; i >= 0; i--) {
    const sim_step *step = &section->steps[i];
    if (step->stream < 0) continue;
    int32_t dispatcher = program->streams[step->stream].dispatcher;
    section->next[i] = section->first[step->stream];
    section->first[step->stream] = i;
    if (!sim_is_timed(step)) continue;
    section->next_launch[i] = section->first_launch[dispatcher];
    section->first_launch[dispatcher] = i;
    section->n_timed++;
  }
}

/* --- Streams by what they have to do with ------------------------------------------------------------------------- */

/* Keys, each with a stream that is to be listed for it. */
typedef struct stream_pairs {
  int64_t n;
  int32_t *keys, *streams; /* by pair */
} stream_pairs;

static planc_status new_pairs(pl_arena *arena, int64_t most, stream_pairs *out);
static void add_pair(stream_pairs *pairs, int32_t key, int32_t stream);
static planc_status sort_streams(const stream_pairs *pairs, int32_t n_keys, pl_arena *arena, sim_streams *out);

static planc_status sort_by_dispatcher(sim_program *program, pl_arena *arena) {
  stream_pairs pairs;
  PLANC_TRY(new_pairs(arena, program->n_streams, &pairs));
  for (int32_t s = 0; s < program->n_streams; s++) add_pair(&pairs, program->streams[s].dispatcher, s);
  return sort_streams(&pairs, program->n_jobs, arena, &program->of_dispatchers);
}

static planc_status sort_by_engine(sim_program *program, pl_arena *arena) {
  stream_pairs pairs;
  PLANC_TRY(new_pairs(arena, program->n_streams, &pairs));
  for (int32_t s = 0; s < program->n_streams; s++)
    if (!program->streams[s].computes) add_pair(&pairs, program->streams[s].on, s);
  return sort_streams(&pairs, program->n_engines, arena, &program->of_engines);
}

static planc_status sort_by_gpu(sim_program *program, pl_arena *arena) {
  stream_pairs pairs;
  PLANC_TRY(new_pairs(arena, program->n_streams, &pairs));
  for (int32_t s = 0; s < program->n_streams; s++)
    if (program->streams[s].computes) add_pair(&pairs, program->streams[s].on, s);
  return sort_streams(&pairs, program->n_gpus, arena, &program->of_gpus);
}

static planc_status sort_by_event(sim_program *program, pl_arena *arena) {
  stream_pairs pairs;
  int64_t n = 0;
  for (int k = 0; k < SIM_N_SECTIONS; k++) n += program->sections[k].n;
  PLANC_TRY(new_pairs(arena, n, &pairs));
  for (int k = 0; k < SIM_N_SECTIONS; k++) {
    const sim_section *section = &program->sections[k];
    for (int32_t i = 0; i < section->n; i++)
      if (section->steps[i].stream >= 0 && section->steps[i].kind == SIM_WAIT)
        add_pair(&pairs, section->steps[i].event, section->steps[i].stream);
  }
  return sort_streams(&pairs, program->n_events, arena, &program->waits_events);
}

static planc_status new_pairs(pl_arena *arena, int64_t most, stream_pairs *out) {
  out->n = 0;
  PLANC_TRY(PL_NEW(arena, &out->keys, most));
  return PL_NEW(arena, &out->streams, most);
}

static void add_pair(stream_pairs *pairs, int32_t key, int32_t stream) {
  pairs->keys[pairs->n] = key;
  pairs->streams[pairs->n++] = stream;
}

/* first[k + 1] goes from where the streams of key k begin to where they end. */
static planc_status sort_streams(const stream_pairs *pairs, int32_t n_keys, pl_arena *arena, sim_streams *out) {
  PLANC_TRY(PL_NEW(arena, &out->first, (int64_t)n_keys + 2));
  PLANC_TRY(PL_NEW(arena, &out->streams, pairs->n));
  for (int64_t i = 0; i < pairs->n; i++) out->first[pairs->keys[i] + 2]++;
  for (int32_t k = 1; k < n_keys + 2; k++) out->first[k] += out->first[k - 1];
  for (int64_t i = 0; i < pairs->n; i++) out->streams[out->first[pairs->keys[i] + 1]++] = pairs->streams[i];
  return NULL;
}
