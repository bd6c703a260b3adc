/* Times in which jobs compute (sim_busy.h). */
#include "planner/simulate/sim_busy.h"

#include <stdlib.h>

#include "util/math.h"

typedef struct compute_stream {
  int32_t job, gpu, stream;
} compute_stream;

static planc_status find_sites(pl_arena *arena, sim_busy *out);

planc_status sim_busy_make(const sim_program *program, const sim_state *state, pl_arena *arena, sim_busy *out) {
  *out = (sim_busy){.program = program, .state = state};
  PLANC_TRY(PL_NEW(arena, &out->computed_ns, program->n_jobs));
  PLANC_TRY(PL_NEW(arena, &out->at_end, (int64_t)SIM_MAX_BODIES + 1));
  for (int32_t b = 0; b <= SIM_MAX_BODIES; b++) PLANC_TRY(PL_NEW(arena, &out->at_end[b], program->n_jobs));
  PLANC_TRY(find_sites(arena, out));
  return pl_number_set_make(arena, out->n_sites, &out->ran);
}

static int by_site(const void *a, const void *b);

static planc_status find_sites(pl_arena *arena, sim_busy *out) {
  const sim_program *program = out->program;
  compute_stream *streams;
  int32_t n = 0;
  PLANC_TRY(PL_NEW(arena, &streams, program->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->site_of, program->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->job_of, program->n_streams));
  PLANC_TRY(PL_NEW(arena, &out->n_gpus, program->n_jobs));
  for (int32_t s = 0; s < program->n_streams; s++) {
    const sim_stream *of = &program->streams[s];
    out->site_of[s] = -1;
    if (of->computes) streams[n++] = (compute_stream){of->job, of->on, s};
  }
  if (n > 0) qsort(streams, (size_t)n, sizeof *streams, by_site);
  for (int32_t k = 0; k < n; k++) {
    bool is_new = k == 0 || streams[k].job != streams[k - 1].job || streams[k].gpu != streams[k - 1].gpu;
    if (is_new) {
      out->job_of[out->n_sites++] = streams[k].job;
      out->n_gpus[streams[k].job]++;
    }
    out->site_of[streams[k].stream] = out->n_sites - 1;
  }
  return NULL;
}

static int by_site(const void *a, const void *b) {
  const compute_stream *x = a, *y = b;
  if (x->job != y->job) return x->job < y->job ? -1 : 1;
  if (x->gpu != y->gpu) return x->gpu < y->gpu ? -1 : 1;
  return (x->stream > y->stream) - (x->stream < y->stream);
}

void sim_busy_note_end(void *user, int32_t stage, int32_t step, int64_t start, int64_t end) {
  sim_busy *busy = user;
  int32_t section = stage == 0 ? SIM_PROLOGUE : stage == busy->state->epilogue_stage ? SIM_EPILOGUE : SIM_BODY;
  const sim_step *of = &busy->program->sections[section].steps[step];
  if (of->kind == SIM_KERNEL && end > start) pl_number_set_add(&busy->ran, busy->site_of[of->stream]);
}

/* Kernels begin and end only at times to which the machine goes on: one that has run since the last of them has run all
 * the time, and has ended now or runs on. */
void sim_busy_note_step(sim_busy *busy, int64_t ns, int32_t first_stage) {
  const pl_number_set *running = &busy->state->running;
  for (int32_t s = pl_number_set_above(running, 0); s >= 0; s = pl_number_set_above(running, s + 1))
    if (busy->site_of[s] >= 0) pl_number_set_add(&busy->ran, busy->site_of[s]);
  for (int32_t k = pl_number_set_above(&busy->ran, 0); k >= 0; k = pl_number_set_above(&busy->ran, k + 1)) {
    int64_t *sum = &busy->computed_ns[busy->job_of[k]];
    *sum = pl_add_saturate(*sum, ns);
    pl_number_set_remove(&busy->ran, k);
  }
  for (int32_t b = first_stage; b < busy->state->n_closed && b <= SIM_MAX_BODIES; b++)
    for (int32_t j = 0; j < busy->program->n_jobs; j++) busy->at_end[b][j] = busy->computed_ns[j];
}

int64_t sim_busy_of_job(const sim_busy *busy, int32_t job, int32_t from, int32_t until) {
  if (busy->n_gpus[job] == 0) return 0;
  return (busy->at_end[until][job] - busy->at_end[from][job]) / (until - from) / busy->n_gpus[job];
}
