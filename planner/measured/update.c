/* Updating (planc/update.h): sums and change, links and constants, and from them the profiles to plan with next. */
#include "planc/update.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile_print.h"
#include "cost/routes.h"
#include "plan/describe.h"
#include "planner/analysis/plan_streams.h"
#include "planner/measured/alone.h"
#include "planner/measured/handovers.h"
#include "planner/measured/update_tables.h"
#include "util/math.h"

typedef struct made_update {
  planc_update update; /* first: what is given out */
  pl_arena arena;
  planc_profile **made; /* by table */
  const planc_profile **profiles;
  pl_latency_tables found;
  int32_t *table_of;
  int32_t n_tables;
  int64_t weight_ppm;
} made_update;

static planc_status make(const planc_update_options *options, made_update *m);
static planc_status measure(const planc_update_options *options, pl_arena *scratch, made_update *m,
                            pl_acquired **out_acquired);
static planc_status check_plan(const planc_update_options *options, const pl_acquired *acquired);
static bool is_describable(const planc_plan *plan, const pl_acquired *acquired);
static bool is_describable_link(const planc_link *link);
static planc_status make_profile(const planc_update_options *options, int32_t job, const pl_acquired *acquired,
                                 made_update *m);
static planc_status fill(const planc_update_options *options, int32_t job, const pl_acquired *acquired,
                         const made_update *m, planc_profile *out);
static planc_status share_tables(const planc_update_options *options, made_update *m);
static void take_sums(const planc_plan *plan, made_update *m);
static void scale_link(const planc_plan *plan, const pl_acquired *acquired, planc_route route,
                       const planc_latency_sum *copies, planc_link *link);
static void assume_constants(const pl_latencies *latencies, planc_profile *out);
static void scale_constants(const pl_latencies *latencies, pl_update_ratio elementwise, planc_profile *out);
static planc_status make_origins(const planc_profile *base, const planc_latency_sum *copies, planc_profile *out);
static planc_status keep_code(const planc_update_options *options, const planc_profile *base, planc_profile *out);
static planc_status find_times(const planc_update_options *options, const pl_acquired *acquired, pl_arena *scratch,
                               int64_t *out_ns);

planc_status planc_update_check(const planc_plan *plan) {
  if (planc_plan_gpus(plan) == 1) return NULL;
  return planc_error(PLANC_USAGE, "it has %" PRId32 " GPUs that do different things: such plans are not updated",
                     planc_plan_gpus(plan));
}

planc_status planc_update_make(const planc_update_options *options, planc_update **out) {
  *out = NULL;
  PLANC_TRY(planc_update_check(options->plan));
  made_update *m = calloc(1, sizeof *m);
  if (!m) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  m->weight_ppm = options->weight_ppm;
  planc_status status = make(options, m);
  if (status) {
    planc_update_free(&m->update);
  } else {
    *out = &m->update;
  }
  return status;
}

static planc_status make(const planc_update_options *options, made_update *m) {
  pl_arena scratch = {0};
  pl_acquired *acquired;
  planc_status status = measure(options, &scratch, m, &acquired);
  if (!status) take_sums(options->plan, m);
  for (int32_t j = 0; j < options->plan->n_jobs && !status; j++) status = make_profile(options, j, acquired, m);
  pl_arena_free(&scratch);
  return status;
}

static planc_status measure(const planc_update_options *options, pl_arena *scratch, made_update *m,
                            pl_acquired **out_acquired) {
  int64_t *times_ns;
  PLANC_TRY(PL_NEW(scratch, &times_ns, options->timeline->n_timed));
  PLANC_TRY(pl_plan_acquired(options->plan, scratch, out_acquired));
  PLANC_TRY(check_plan(options, *out_acquired));
  PLANC_TRY(share_tables(options, m));
  PLANC_TRY(find_times(options, *out_acquired, scratch, times_ns));
  return pl_latencies_find(options, *out_acquired, times_ns, &m->found);
}

static planc_status check_plan(const planc_update_options *options, const pl_acquired *acquired) {
  const planc_plan *plan = options->plan;
  if (options->weight_ppm < 0 || options->weight_ppm > PL_PPM)
    return planc_error(PLANC_USAGE, "a weight of %" PRId64 " ppm", options->weight_ppm);
  if (is_describable(plan, acquired)) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "device %s: no profile can describe it", plan->device.name);
}

/* Whether a profile could say the same of the device: of storage only where the body copies there or back. */
static bool is_describable(const planc_plan *plan, const pl_acquired *acquired) {
  planc_device described = pl_plan_describe(plan), *device = &described;
  for (int32_t i = 0; i < plan->body.n; i++) {
    planc_route route = pl_instr_route(plan, acquired, &plan->body.instrs[i]);
    if (route < PLANC_N_ROUTES && !is_describable_link(&device->links[route])) return false;
  }
  for (int r = 0; r < PLANC_N_ROUTES; r++)
    if (pl_routes[r].memory == PLANC_MEMORY_DEVICE && !is_describable_link(&device->links[r])) return false;
  return device->memory_bytes >= 1 && device->reserved_bytes >= 0 && device->reserved_bytes <= device->memory_bytes &&
         device->launch_ns >= 0 && device->in_flight >= 1 && device->duplex_ppm >= 1 && device->duplex_ppm <= PL_PPM &&
         device->slowdown_ppm >= 0 && device->slowdown_ppm <= INT64_C(1000) * PL_PPM;
}

static bool is_describable_link(const planc_link *link) {
  return link->bytes_per_second >= 1 && link->latency_ns >= 0;
}

static const planc_profile *base_of(const planc_update_options *options, int32_t job) {
  return options->profiles ? options->profiles[job] : NULL;
}

/* Jobs of a table have the profile of the first of them. */
static planc_status make_profile(const planc_update_options *options, int32_t job, const pl_acquired *acquired,
                                 made_update *m) {
  planc_profile **made = &m->made[m->table_of[job]];
  bool is_first = !*made;
  if (is_first) *made = calloc(1, sizeof **made);
  if (!*made) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  m->profiles[job] = *made;
  return is_first ? fill(options, job, acquired, m, *made) : NULL;
}

static planc_status fill(const planc_update_options *options, int32_t job, const pl_acquired *acquired,
                         const made_update *m, planc_profile *out) {
  const planc_plan *plan = options->plan;
  const planc_profile *base = base_of(options, job);
  const pl_latencies *latencies = &m->found.tables[m->table_of[job]];
  pl_update_ratio elementwise = {0};
  const planc_device made_for = pl_plan_describe(plan);
  out->has_graph_hash = true;
  out->graph_hash = planc_graph_hash(plan->jobs[job].graph);
  out->device = base ? pl_device_for(&base->device, &made_for) : made_for;
  PLANC_TRY(pl_arena_strndup(&out->arena, out->device.name, strlen(out->device.name), &out->device.name));
  for (int r = 0; r < PLANC_N_ROUTES; r++)
    scale_link(plan, acquired, (planc_route)r, &m->found.copies[r], &out->device.links[r]);
  if (base) {
    PLANC_TRY(keep_code(options, base, out));
    PLANC_TRY(pl_profile_take_rates(out, base));
  } else {
    assume_constants(latencies, out);
  }
  PLANC_TRY(pl_update_tables(base, &plan->jobs[job], latencies, out, &elementwise));
  if (base) scale_constants(latencies, elementwise, out);
  return make_origins(base, m->found.copies, out);
}

void planc_update_free(planc_update *update) {
  if (!update) return;
  made_update *m = (made_update *)update;
  for (int32_t t = 0; t < m->n_tables; t++) {
    planc_profile_free(m->made[t]);
    pl_latencies_free(&m->found.tables[t]);
  }
  pl_arena_free(&m->arena);
  free(m);
}

planc_status planc_update_print(const planc_update *update, int32_t job, char **out_text, size_t *out_length) {
  const made_update *m = (const made_update *)update;
  char origin[128];
  snprintf(origin, sizeof origin, "what a run measured counts %" PRId64 " ppm, what its plan was made with the rest",
           m->weight_ppm);
  return pl_profile_print_ops(m->profiles[job], origin, out_text, out_length);
}

/* --- Jobs that are alike ------------------------------------------------------------------------------------------ */

static bool are_alike(const planc_update_options *options, int32_t a, int32_t b) {
  const planc_job *one = &options->plan->jobs[a], *other = &options->plan->jobs[b];
  return one->graph == other->graph && base_of(options, a) == base_of(options, b) && one->batch == other->batch &&
         planc_job_same_rounds(one, other);
}

/* Ops of different jobs are apart, those of the same graph at different batches too. */
static planc_status share_tables(const planc_update_options *options, made_update *m) {
  int32_t n = options->plan->n_jobs;
  PLANC_TRY(PL_NEW(&m->arena, &m->table_of, n));
  PLANC_TRY(PL_NEW(&m->arena, &m->found.tables, n));
  PLANC_TRY(PL_NEW(&m->arena, &m->found.jobs, n));
  PLANC_TRY(PL_NEW(&m->arena, &m->made, n));
  PLANC_TRY(PL_NEW(&m->arena, &m->profiles, n));
  for (int32_t j = 0; j < n; j++) {
    int32_t same = 0;
    while (same < j && !are_alike(options, same, j)) same++;
    m->table_of[j] = same < j ? m->table_of[same] : m->n_tables++;
  }
  m->found.table_of = m->table_of;
  m->update.jobs = m->found.jobs;
  m->update.profiles = m->profiles;
  return NULL;
}

/* --- Change ------------------------------------------------------------------------------------------------------- */

/* TENSILE, IV-E: |sum of the new latencies - sum of the old| / sum of the old. The paper's sums are the ops'; a plan
 * that swaps depends on the links as well, by as much as the copies of a route have changed beside what the ops
 * take. Of several jobs the sums are those of all, as their plan is one. */
static int64_t change_of(const planc_latency_sum *sum, int64_t ops_ns) {
  int64_t apart_ns = sum->new_ns > sum->old_ns ? sum->new_ns - sum->old_ns : sum->old_ns - sum->new_ns;
  int64_t change = pl_muldiv_floor(apart_ns, PL_PPM, ops_ns > 0 ? ops_ns : 1);
  return change < PL_JSON_MAX ? change : PL_JSON_MAX;
}

static void take_sums(const planc_plan *plan, made_update *m) {
  planc_update *out = &m->update;
  for (int32_t j = 0; j < plan->n_jobs; j++) pl_latency_sum_add(&out->ops, &m->found.jobs[j]);
  int64_t ops_ns = out->ops.old_ns;
  out->change_ppm = change_of(&out->ops, ops_ns);
  for (int r = 0; r < PLANC_N_ROUTES; r++) {
    out->copies[r] = m->found.copies[r];
    int64_t change = change_of(&out->copies[r], ops_ns);
    if (change > out->change_ppm) out->change_ppm = change;
  }
}

/* --- Links -------------------------------------------------------------------------------------------------------- */

static int64_t copies_take(const planc_plan *plan, const pl_acquired *acquired, planc_route route,
                           const planc_link *link) {
  int64_t sum = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (pl_instr_route(plan, acquired, instr) == route) sum = pl_add_saturate(sum, pl_copy_ns(plan, link, instr));
  }
  return sum;
}

/* Latency and time per byte in proportion: a plan's copies are too much alike to fit both. */
static void scale_link(const planc_plan *plan, const pl_acquired *acquired, planc_route route,
                       const planc_latency_sum *copies, planc_link *link) {
  pl_update_ratio slower = {copies->new_ns, copies->count > 0 ? copies_take(plan, acquired, route, link) : 0};
  if (slower.new_ns <= 0 || slower.base_ns <= 0) return;
  pl_update_ratio faster = {slower.base_ns, slower.new_ns};
  int64_t rate = pl_update_scale(link->bytes_per_second, faster);
  link->bytes_per_second = rate > 0 ? rate : 1;
  link->latency_ns = pl_update_scale(link->latency_ns, slower);
}

/* --- Constants ---------------------------------------------------------------------------------------------------- */

/* All ops are in tables; constants are left for the sums of gradients, which only move memory. Without a profile the
 * shortest instruction is the start-up time of kernels; the rest of the gradient sums' time gives the memory rate. */
static void assume_constants(const pl_latencies *latencies, planc_profile *out) {
  const planc_latency_sum *adds = &latencies->adds;
  int64_t kernel_ns = pl_clamp(latencies->least_ns, 1, PL_NS), rate = PL_NS;
  int64_t moving_ns = adds->new_ns - pl_mul_saturate(kernel_ns, latencies->n_adds);
  int64_t moved = pl_mul_saturate(latencies->add_bytes, 3);
  if (latencies->n_adds > 0) rate = pl_muldiv_ceil(moved, PL_NS, moving_ns > 0 ? moving_ns : 1);
  out->compute = (pl_compute){.flops_per_second = PL_NS,
                              .half_flops_per_second = PL_NS,
                              .memory_bytes_per_second = pl_clamp(rate, 1, PL_JSON_MAX),
                              .processors = 1,
                              .kernel_ns = kernel_ns,
                              .split_depth = 1};
  for (int32_t c = 0; c < PL_N_CLASSES; c++) out->efficiency_ppm[c] = PL_PPM;
  for (int32_t m = 0; m < PL_N_REQUIRED_MULTIPLIES; m++)
    out->multiply[m] = (pl_multiply){.flops_ppm = PL_PPM, .tile = 1};
}

/* In proportion to what sums took, else to the other elementwise ops. */
static void scale_constants(const pl_latencies *latencies, pl_update_ratio elementwise, planc_profile *out) {
  const planc_latency_sum *adds = &latencies->adds;
  if (latencies->n_adds > 0) {
    int64_t one_ns = planc_costs_add_ns(out, latencies->add_bytes / latencies->n_adds);
    elementwise = (pl_update_ratio){adds->new_ns, pl_mul_saturate(one_ns, latencies->n_adds)};
  }
  if (elementwise.new_ns <= 0 || elementwise.base_ns <= 0) return;
  pl_update_ratio faster = {elementwise.base_ns, elementwise.new_ns};
  pl_compute *compute = &out->compute;
  compute->kernel_ns = pl_clamp(pl_update_scale(compute->kernel_ns, elementwise), 1, PL_NS);
  compute->memory_bytes_per_second =
      pl_clamp(pl_update_scale(compute->memory_bytes_per_second, faster), 1, PL_JSON_MAX);
}

/* --- Origins ------------------------------------------------------------------------------------------------------ */

static planc_status add_origin(planc_profile *profile, pl_origin *origins, const char *of, const char *text) {
  pl_origin *origin = &origins[profile->n_origins++];
  PLANC_TRY(pl_arena_strndup(&profile->arena, of, strlen(of), &origin->of));
  return pl_arena_strndup(&profile->arena, text, strlen(text), &origin->text);
}

static planc_status make_origins(const planc_profile *base, const planc_latency_sum *copies, planc_profile *out) {
  enum { OWN = 4 };
  static const char links[] = "as it was, and in proportion to what a run's copies took (planc update)";
  static const char *const replaced[OWN] = {"device.h2d", "device.d2h", "device.storage", "compute"};
  const bool measured[OWN] = {copies[PLANC_ROUTE_H2D].count > 0, copies[PLANC_ROUTE_D2H].count > 0,
                              copies[PLANC_ROUTE_STORE].count > 0 || copies[PLANC_ROUTE_LOAD].count > 0, true};
  pl_origin *origins;
  PLANC_TRY(PL_NEW(&out->arena, &origins, (base ? base->n_origins : 0) + OWN + 1));
  out->origins = origins;
  for (int32_t o = 0; base && o < base->n_origins; o++) {
    bool kept = true;
    for (int r = 0; r < OWN; r++) kept &= !measured[r] || strcmp(base->origins[o].of, replaced[r]) != 0;
    if (kept) PLANC_TRY(add_origin(out, origins, base->origins[o].of, base->origins[o].text));
  }
  for (int r = 0; r < OWN - 1; r++)
    if (measured[r]) PLANC_TRY(add_origin(out, origins, replaced[r], links));
  return add_origin(out, origins, "compute",
                    base ? "as it was, and memory and kernels in proportion to what a run's sums of gradients took"
                         : "of no meaning but for sums of gradients");
}

/* --- Code and times ----------------------------------------------------------------------------------------------- */

/* Of all algorithms that the plan runs, each as the profile has it that says the most, as mixes are planned. */
static int64_t code_of_plan(const planc_update_options *options) {
  int64_t sum = 0;
  for (int32_t a = 0; a < options->plan->n_algorithms; a++) {
    int64_t most = 0;
    for (int32_t j = 0; j < options->plan->n_jobs; j++) {
      int64_t bytes = planc_profile_code(base_of(options, j), options->plan->algorithms[a]);
      if (bytes > most) most = bytes;
    }
    sum = pl_add_saturate(sum, most);
  }
  return sum;
}

/* The plan's reserved memory is that of the device and the code of the algorithms that it runs. */
static planc_status keep_code(const planc_update_options *options, const planc_profile *base, planc_profile *out) {
  int64_t ran = code_of_plan(options);
  int64_t reserved = planc_plan_memory(options->plan, PLANC_MEMORY_DEVICE)->reserved_bytes;
  out->device.reserved_bytes = reserved > ran ? reserved - ran : 0;
  if (base->code.n == 0) return NULL;
  return pl_labels_copy(&out->arena, &base->code, &out->code);
}

/* False where the plan has times that are too long to simulate. */
static planc_status predict(const planc_update_options *options, pl_arena *scratch, pl_predicted *out,
                            bool *out_predicts) {
  planc_status status = pl_simulated_spans(options->plan, options->timeline, scratch, out);
  *out_predicts = !status;
  if (planc_status_code(status) != PLANC_BAD_INPUT) return status;
  planc_status_free(status);
  return NULL;
}

/* Medians over the steady periods, by timed instruction, without what ran beside it, other jobs' ops too. A copy's
 * hand-overs are part of a link's latency, which planning slows by opposite copies as well: what that adds comes off
 * again. Ops lose to copies only while these move data. */
static planc_status find_times(const planc_update_options *options, const pl_acquired *acquired, pl_arena *scratch,
                               int64_t *out_ns) {
  const planc_plan *plan = options->plan;
  planc_timeline timeline = *options->timeline;
  pl_predicted predicted;
  planc_span *handed_over;
  int64_t *copies_ns;
  bool predicts;
  PLANC_TRY(pl_section_check(plan, &plan->body));
  PLANC_TRY(predict(options, scratch, &predicted, &predicts));
  PLANC_TRY(pl_handovers_add(&timeline, plan, predicts ? &predicted : NULL, scratch, &handed_over));
  PLANC_TRY(PL_NEW(scratch, &copies_ns, timeline.n_timed));
  PLANC_TRY(pl_alone_times(&timeline, plan, out_ns));
  timeline.spans = handed_over;
  PLANC_TRY(pl_alone_times(&timeline, plan, copies_ns));
  for (int32_t k = 0; k < timeline.n_timed; k++)
    if (pl_instr_route(plan, acquired, &plan->body.instrs[timeline.instrs[k]]) < PLANC_N_ROUTES)
      out_ns[k] = copies_ns[k];
  return NULL;
}
