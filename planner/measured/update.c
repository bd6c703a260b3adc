/* Updating (planc/update.h): sums and change, links and constants, and from them the profile to plan with next. */
#include "planc/update.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile_print.h"
#include "cost/routes.h"
#include "plan/describe.h"
#include "planner/analysis/plan_streams.h"
#include "planner/base/code.h"
#include "planner/measured/alone.h"
#include "planner/measured/handovers.h"
#include "planner/measured/update_tables.h"
#include "util/math.h"

typedef struct made_update {
  planc_update update; /* first: what is given out */
  planc_profile *profile;
  int64_t weight_ppm;
} made_update;

/* Whether rounds of a job run side by side. */
static bool has_rounds_at_once(const planc_plan *plan) {
  int32_t n = 0;
  for (int32_t s = 0; s < plan->n_streams; s++) n += plan->streams[s].kind == PLANC_STREAM_KIND_compute;
  return n > plan->n_jobs;
}

planc_status planc_update_job(const planc_plan *plan, const planc_job **out) {
  *out = plan->jobs;
  bool is_one = plan->n_jobs == 1 && planc_plan_gpus(plan) == 1 && planc_plan_replicas(plan) == 1;
  if (!is_one || (*out)->iterations != 1)
    return planc_error(PLANC_USAGE, "only plans of one job on one GPU, with one iteration a period, are updated");
  if (!has_rounds_at_once(plan)) return NULL;
  return planc_error(PLANC_USAGE, "its rounds run side by side: only plans of one round at a time are updated");
}

static bool is_describable_link(const planc_link *link) {
  return link->bytes_per_second >= 1 && link->latency_ns >= 0;
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

static planc_status make(const planc_update_options *options, const planc_job *job, made_update *m);
static planc_status check_plan(const planc_update_options *options, const pl_acquired *acquired);
static planc_status find_times(const planc_update_options *options, const pl_acquired *acquired, pl_arena *scratch,
                               int64_t *out_ns);
static planc_status fill(const planc_update_options *options, const planc_job *job, const pl_acquired *acquired,
                         const pl_latencies *latencies, made_update *m);
static void take_sums(const pl_latencies *latencies, planc_update *out);
static void scale_link(const planc_plan *plan, const pl_acquired *acquired, planc_route route,
                       const planc_latency_sum *copies, planc_link *link);
static planc_status keep_code(const planc_profile *base, const planc_plan *plan, planc_profile *out);
static void assume_constants(const pl_latencies *latencies, planc_profile *out);
static void scale_constants(const pl_latencies *latencies, pl_update_ratio elementwise, planc_profile *out);
static planc_status make_origins(const planc_profile *base, const pl_latencies *latencies, planc_profile *out);

planc_status planc_update_make(const planc_update_options *options, planc_update **out) {
  *out = NULL;
  const planc_job *job;
  PLANC_TRY(planc_update_job(options->plan, &job));
  made_update *m = calloc(1, sizeof *m);
  planc_profile *profile = calloc(1, sizeof *profile);
  if (!m || !profile) {
    free(m);
    free(profile);
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  }
  m->profile = profile;
  m->update.profile = profile;
  m->weight_ppm = options->weight_ppm;
  planc_status status = make(options, job, m);
  if (status) {
    planc_update_free(&m->update);
  } else {
    *out = &m->update;
  }
  return status;
}

static planc_status make(const planc_update_options *options, const planc_job *job, made_update *m) {
  pl_arena scratch = {0};
  pl_latencies latencies = {0};
  pl_acquired *acquired;
  int64_t *times_ns;
  planc_status status = PL_NEW(&scratch, &times_ns, options->timeline->n_timed);
  if (!status) status = pl_plan_acquired(options->plan, &scratch, &acquired);
  if (!status) status = check_plan(options, acquired);
  if (!status) status = find_times(options, acquired, &scratch, times_ns);
  if (!status) status = pl_latencies_find(options, acquired, times_ns, &latencies);
  if (!status) status = fill(options, job, acquired, &latencies, m);
  pl_latencies_free(&latencies);
  pl_arena_free(&scratch);
  return status;
}

static planc_status fill(const planc_update_options *options, const planc_job *job, const pl_acquired *acquired,
                         const pl_latencies *latencies, made_update *m) {
  const planc_profile *base = options->profile;
  planc_profile *out = m->profile;
  pl_update_ratio elementwise = {0};
  const planc_device made_for = pl_plan_describe(options->plan);
  take_sums(latencies, &m->update);
  out->has_graph_hash = true;
  out->graph_hash = planc_graph_hash(job->graph);
  out->device = base ? pl_device_for(&base->device, &made_for) : made_for;
  PLANC_TRY(pl_arena_strndup(&out->arena, out->device.name, strlen(out->device.name), &out->device.name));
  for (int r = 0; r < PLANC_N_ROUTES; r++)
    scale_link(options->plan, acquired, (planc_route)r, &latencies->copies[r], &out->device.links[r]);
  if (base) {
    PLANC_TRY(keep_code(base, options->plan, out));
    PLANC_TRY(pl_profile_take_rates(out, base));
  } else {
    assume_constants(latencies, out);
  }
  PLANC_TRY(pl_update_tables(options, job, latencies, out, &elementwise));
  if (base) scale_constants(latencies, elementwise, out);
  return make_origins(base, latencies, out);
}

void planc_update_free(planc_update *update) {
  if (!update) return;
  made_update *m = (made_update *)update;
  planc_profile_free(m->profile);
  free(m);
}

planc_status planc_update_print(const planc_update *update, char **out_text, size_t *out_length) {
  const made_update *m = (const made_update *)update;
  char origin[128];
  snprintf(origin, sizeof origin, "what a run measured counts %" PRId64 " ppm, what its plan was made with the rest",
           m->weight_ppm);
  return pl_profile_print_ops(m->profile, origin, out_text, out_length);
}

static planc_status check_plan(const planc_update_options *options, const pl_acquired *acquired) {
  const planc_plan *plan = options->plan;
  if (options->weight_ppm < 0 || options->weight_ppm > PL_PPM)
    return planc_error(PLANC_USAGE, "a weight of %" PRId64 " ppm", options->weight_ppm);
  if (is_describable(plan, acquired)) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "device %s: no profile can describe it", plan->device.name);
}

/* --- Change --------------------------------------------------------------------------------------------------- */

/* TENSILE, IV-E: |sum of the new latencies - sum of the old| / sum of the old. The paper's sums are the ops'; a plan
 * that swaps depends on the links as well, by as much as the copies of a route have changed beside what the ops
 * take. */
static int64_t change_of(const planc_latency_sum *sum, int64_t ops_ns) {
  int64_t apart_ns = sum->new_ns > sum->old_ns ? sum->new_ns - sum->old_ns : sum->old_ns - sum->new_ns;
  int64_t change = pl_muldiv_floor(apart_ns, PL_PPM, ops_ns > 0 ? ops_ns : 1);
  return change < PL_JSON_MAX ? change : PL_JSON_MAX;
}

static void take_sums(const pl_latencies *latencies, planc_update *out) {
  int64_t ops_ns = latencies->all.old_ns;
  out->ops = latencies->all;
  out->change_ppm = change_of(&out->ops, ops_ns);
  for (int r = 0; r < PLANC_N_ROUTES; r++) {
    out->copies[r] = latencies->copies[r];
    int64_t change = change_of(&out->copies[r], ops_ns);
    if (change > out->change_ppm) out->change_ppm = change;
  }
}

/* --- Links ---------------------------------------------------------------------------------------------------- */

static int64_t copies_take(const planc_plan *plan, const pl_acquired *acquired, planc_route route,
                           const planc_link *link) {
  int64_t sum = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (pl_instr_route(plan, acquired, instr) == route) sum = pl_add_saturate(sum, planc_link_ns(link, instr->bytes));
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

/* --- Constants ------------------------------------------------------------------------------------------------ */

/* All ops are in tables; constants are left for the sums of gradients, which only move memory. */

static int64_t within(int64_t value, int64_t least, int64_t most) {
  return value < least ? least : value > most ? most : value;
}

/* Without a profile the shortest instruction is the start-up time of kernels; the rest of the gradient sums' time gives
 * the memory rate. */
static void assume_constants(const pl_latencies *latencies, planc_profile *out) {
  const planc_latency_sum *adds = &latencies->adds;
  int64_t kernel_ns = within(latencies->least_ns, 1, PL_NS), rate = PL_NS;
  int64_t moving_ns = adds->new_ns - pl_mul_saturate(kernel_ns, adds->count);
  int64_t moved = pl_mul_saturate(latencies->add_bytes, 3);
  if (adds->count > 0) rate = pl_muldiv_ceil(moved, PL_NS, moving_ns > 0 ? moving_ns : 1);
  out->compute = (pl_compute){.flops_per_second = PL_NS,
                              .half_flops_per_second = PL_NS,
                              .memory_bytes_per_second = within(rate, 1, PL_JSON_MAX),
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
  if (adds->count > 0) {
    int64_t one_ns = planc_costs_add_ns(out, latencies->add_bytes / adds->count);
    elementwise = (pl_update_ratio){adds->new_ns, pl_mul_saturate(one_ns, adds->count)};
  }
  if (elementwise.new_ns <= 0 || elementwise.base_ns <= 0) return;
  pl_update_ratio faster = {elementwise.base_ns, elementwise.new_ns};
  pl_compute *compute = &out->compute;
  compute->kernel_ns = within(pl_update_scale(compute->kernel_ns, elementwise), 1, PL_NS);
  compute->memory_bytes_per_second = within(pl_update_scale(compute->memory_bytes_per_second, faster), 1, PL_JSON_MAX);
}

/* --- Origins -------------------------------------------------------------------------------------------------- */

static planc_status add_origin(planc_profile *profile, pl_origin *origins, const char *of, const char *text) {
  pl_origin *origin = &origins[profile->n_origins++];
  PLANC_TRY(pl_arena_strndup(&profile->arena, of, strlen(of), &origin->of));
  return pl_arena_strndup(&profile->arena, text, strlen(text), &origin->text);
}

static bool has_copied(const pl_latencies *latencies, planc_route route) {
  return latencies->copies[route].count > 0;
}

static planc_status make_origins(const planc_profile *base, const pl_latencies *latencies, planc_profile *out) {
  enum { OWN = 4 };
  static const char links[] = "as it was, and in proportion to what a run's copies took (planc update)";
  static const char *const replaced[OWN] = {"device.h2d", "device.d2h", "device.storage", "compute"};
  const bool measured[OWN] = {has_copied(latencies, PLANC_ROUTE_H2D), has_copied(latencies, PLANC_ROUTE_D2H),
                              has_copied(latencies, PLANC_ROUTE_STORE) || has_copied(latencies, PLANC_ROUTE_LOAD),
                              true};
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

/* --- All ------------------------------------------------------------------------------------------------------ */

/* The plan's reserved memory is that of the device and the code of the algorithms that it runs. */
static planc_status keep_code(const planc_profile *base, const planc_plan *plan, planc_profile *out) {
  int64_t ran = pl_code_of_plan(base, plan);
  int64_t reserved = planc_plan_memory(plan, PLANC_MEMORY_DEVICE)->reserved_bytes;
  if (base->code.n == 0) return NULL;
  out->device.reserved_bytes = reserved > ran ? reserved - ran : 0;
  return pl_labels_copy(&out->arena, &base->code, &out->code);
}

/* False where the plan has times that are too long to simulate. */
static planc_status predict(const planc_update_options *options, pl_arena *scratch, pl_predicted *out,
                            bool *out_predicts) {
  planc_status status = pl_predict_spans(options->plan, options->timeline, scratch, out);
  *out_predicts = !status;
  if (planc_status_code(status) != PLANC_BAD_INPUT) return status;
  planc_status_free(status);
  return NULL;
}

/* Medians over the steady periods, by timed instruction, without what ran beside it. A copy's hand-overs are part of a
 * link's latency, which planning slows by opposite copies as well: what that adds comes off again. Ops lose to copies
 * only while these move data. */
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
