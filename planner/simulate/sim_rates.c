/* Rates (sim_rates.h). */
#include "planner/simulate/sim_rates.h"

void sim_turn(const sim_program *program, sim_activity *activity, int32_t engine, bool copies) {
  const sim_engine *e = &program->engines[engine];
  int32_t more = copies ? 1 : -1;
  activity->copiers[engine].copies = copies;
  activity->copiers[e->bus].n_on_bus += more;
  for (int32_t k = 0; k < e->n_gpus; k++) activity->gpus[e->gpus[k]].n_copying += more;
}

void sim_occupy(sim_activity *activity, int32_t gpu, int32_t busy_ppm, bool runs) {
  sim_gpu *g = &activity->gpus[gpu];
  g->busy_ppm += runs ? busy_ppm : -busy_ppm;
  g->n_computing += runs ? 1 : -1;
}

int64_t sim_copy_rate(const sim_program *program, const sim_activity *activity, int32_t engine) {
  const sim_engine *e = &program->engines[engine];
  bool duplex = false;
  for (int32_t k = 0; k < e->n_against; k++) duplex |= activity->copiers[e->against[k]].copies;
  int64_t rate = duplex ? program->device.duplex_ppm : sim_full_copy_rate();
  rate /= (int64_t)activity->copiers[e->bus].n_on_bus * e->sharers;
  return rate > 0 ? rate : 1;
}

int64_t sim_kernel_rate(const sim_program *program, const sim_activity *activity, int32_t gpu) {
  const sim_gpu *g = &activity->gpus[gpu];
  int64_t rate = g->n_copying > 0 ? SIM_PPM : sim_full_kernel_rate(program);
  return g->busy_ppm <= SIM_PPM ? rate : rate * SIM_PPM / g->busy_ppm;
}
