/* Rates (sim_rates.h). */
#include "planner/simulate/sim_rates.h"

#include <string.h>

planc_status sim_activity_make(const sim_program *program, pl_arena *arena, sim_activity *out) {
  PLANC_TRY(PL_NEW(arena, &out->gpus, program->n_gpus));
  PLANC_TRY(PL_NEW(arena, &out->kernels, program->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->copiers, program->n_engines));
  return pl_number_set_make(arena, program->n_streams, &out->computing);
}

void sim_activity_begin(const sim_program *program, sim_activity *activity) {
  for (int32_t g = 0; g < program->n_gpus; g++) activity->gpus[g] = (sim_gpu){0};
  for (int32_t s = 0; s < program->n_streams; s++) activity->kernels[s] = (sim_kernel){0};
  for (int32_t s = 0; s < program->n_streams; s++) pl_number_set_remove(&activity->computing, s);
  for (int32_t e = 0; e < program->n_engines; e++) activity->copiers[e] = (sim_copier){0};
}

void sim_activity_copy(const sim_program *program, sim_activity *to, const sim_activity *from) {
  memcpy(to->gpus, from->gpus, (size_t)program->n_gpus * sizeof *to->gpus);
  memcpy(to->kernels, from->kernels, (size_t)program->n_streams * sizeof *to->kernels);
  memcpy(to->copiers, from->copiers, (size_t)program->n_engines * sizeof *to->copiers);
  for (int32_t s = 0; s < program->n_streams; s++) pl_number_set_put(&to->computing, s, to->kernels[s].runs);
}

void sim_turn(const sim_program *program, sim_activity *activity, int32_t engine, bool copies) {
  const sim_engine *e = &program->engines[engine];
  int32_t more = copies ? 1 : -1;
  activity->copiers[engine].copies = copies;
  activity->copiers[e->bus].n_on_bus += more;
  for (int32_t k = 0; k < e->n_gpus; k++) activity->gpus[e->gpus[k]].n_copying += more;
}

static void share_out(const sim_program *program, sim_activity *activity, int32_t gpu);

void sim_occupy(const sim_program *program, sim_activity *activity, int32_t stream, const sim_kernel *kernel) {
  int32_t gpu = program->streams[stream].on;
  sim_gpu *g = &activity->gpus[gpu];
  sim_kernel *own = &activity->kernels[stream];
  g->busy_ppm += kernel ? kernel->busy_ppm : -own->busy_ppm;
  g->n_computing += kernel ? 1 : -1;
  *own = kernel ? *kernel : (sim_kernel){0};
  own->runs = kernel != NULL;
  pl_number_set_put(&activity->computing, stream, own->runs);
  if (own->time_ns < 1) own->time_ns = 1;
  if (g->busy_ppm > PL_PPM) share_out(program, activity, gpu);
}

int64_t sim_copy_rate(const sim_program *program, const sim_activity *activity, int32_t engine) {
  const sim_engine *e = &program->engines[engine];
  bool duplex = false;
  for (int32_t k = 0; k < e->n_against; k++) duplex |= activity->copiers[e->against[k]].copies;
  int64_t rate = duplex ? program->device.duplex_ppm : sim_full_copy_rate();
  rate /= (int64_t)activity->copiers[e->bus].n_on_bus * e->sharers;
  return rate > 0 ? rate : 1;
}

int64_t sim_kernel_rate(const sim_program *program, const sim_activity *activity, int32_t stream) {
  const sim_gpu *g = &activity->gpus[program->streams[stream].on];
  const sim_kernel *kernel = &activity->kernels[stream];
  int64_t full = g->n_copying > 0 ? PL_PPM : sim_full_kernel_rate(program);
  if (g->busy_ppm <= PL_PPM || kernel->is_whole) return full;
  sim_wide part = program->streams[stream].priority == g->priority ? (sim_wide)g->left_ppm : 0;
  int64_t rate = (int64_t)(((sim_wide)full * part * (sim_wide)kernel->time_ns + g->wanted - 1) / g->wanted);
  return rate > 0 ? rate : 1;
}

/* --- A crowded GPU ------------------------------------------------------------------------------------------------ */

static void share_among(const sim_program *program, sim_activity *activity, int32_t gpu);
static bool shares(const sim_program *program, const sim_activity *activity, int32_t stream, int32_t gpu);
static sim_wide wanted(const sim_kernel *kernel);
static bool has_enough(const sim_gpu *g, const sim_kernel *kernel);

static int32_t first_computing(const sim_activity *activity) {
  return pl_number_set_above(&activity->computing, 0);
}
static int32_t next_computing(const sim_activity *activity, int32_t stream) {
  return pl_number_set_above(&activity->computing, stream + 1);
}

/* Shares a crowded GPU out among its kernels: each priority, from the highest down, has what the ones above it leave.
 * The first of which some kernel has less than it can use leaves nothing. */
static void share_out(const sim_program *program, sim_activity *activity, int32_t gpu) {
  sim_gpu *g = &activity->gpus[gpu];
  g->left_ppm = PL_PPM;
  g->wanted = 0;
  for (int32_t s = first_computing(activity); s >= 0; s = next_computing(activity, s))
    if (program->streams[s].on == gpu) activity->kernels[s].is_whole = false;
  for (g->priority = program->most_priority;; g->priority--) {
    share_among(program, activity, gpu);
    if (g->wanted > 0 || g->priority == 0) return;
  }
}

/* Finds the kernels of a priority that have enough, and takes out what these use. Of the rest the others have larger
 * parts, and may then have enough as well: so this goes on until no more have. */
static void share_among(const sim_program *program, sim_activity *activity, int32_t gpu) {
  sim_gpu *g = &activity->gpus[gpu];
  for (int32_t s = first_computing(activity); s >= 0; s = next_computing(activity, s))
    if (shares(program, activity, s, gpu)) g->wanted += wanted(&activity->kernels[s]);
  bool changed = true;
  while (changed) {
    changed = false;
    for (int32_t s = first_computing(activity); s >= 0; s = next_computing(activity, s)) {
      sim_kernel *kernel = &activity->kernels[s];
      if (!shares(program, activity, s, gpu) || kernel->is_whole || !has_enough(g, kernel)) continue;
      kernel->is_whole = changed = true;
      g->left_ppm -= kernel->busy_ppm;
      g->wanted -= wanted(kernel);
    }
  }
}

/* Whether the kernel that runs on a stream is one of the GPU's, of the priority that is looked at. */
static bool shares(const sim_program *program, const sim_activity *activity, int32_t stream, int32_t gpu) {
  const sim_stream *of = &program->streams[stream];
  return of->on == gpu && of->priority == activity->gpus[gpu].priority;
}

/* What its part is in proportion to. */
static sim_wide wanted(const sim_kernel *kernel) {
  return (sim_wide)kernel->busy_ppm * (sim_wide)kernel->time_ns;
}

/* Whether its part of what is left is its busy share at least, which is all that it can use. */
static bool has_enough(const sim_gpu *g, const sim_kernel *kernel) {
  return kernel->busy_ppm == 0 || (sim_wide)g->left_ppm * (sim_wide)kernel->time_ns >= g->wanted;
}
