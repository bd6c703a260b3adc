/* Updating (planc/update.h): sums and change, links and constants, and from them the profile to plan with next. */
#include "planc/update.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile_print.h"
#include "planner/code.h"
#include "planner/measured/alone.h"
#include "planner/measured/handovers.h"
#include "planner/measured/update_tables.h"
#include "planner/simulate/plan_streams.h"
#include "util/math.h"

typedef struct made {
  planc_update update; /* first: what is given out */
  planc_profile *profile;
  int64_t weight_ppm;
} made;

/* Whether a profile could say the same of the device. */
static bool is_describable(const planc_device *device) {
  const planc_link *links[] = {&device->h2d, &device->d2h};
  for (int d = 0; d < 2; d++)
    if (links[d]->bytes_per_second < 1 || links[d]->latency_ns < 0) return false;
  return device->memory_bytes >= 1 && device->reserved_bytes >= 0 && device->reserved_bytes <= device->memory_bytes &&
         device->launch_ns >= 0 && device->in_flight >= 1 && device->duplex_ppm >= 1 &&
         device->duplex_ppm <= PLANC_PPM && device->slowdown_ppm >= 0 &&
         device->slowdown_ppm <= INT64_C(1000) * PLANC_PPM;
}

static planc_status check_plan(const planc_update_options *options) {
  const planc_plan *plan = options->plan;
  if (options->weight_ppm < 0 || options->weight_ppm > PLANC_PPM)
    return planc_error(PLANC_USAGE, "a weight of %" PRId64 " ppm", options->weight_ppm);
  const planc_device device = planc_plan_describe(plan);
  if (!is_describable(&device))
    return planc_error(PLANC_INVALID_PLAN, "device %s: no profile can describe it", plan->device.name);
  if (plan->n_jobs == 1 && planc_plan_gpus(plan) == 1 && planc_plan_replicas(plan) == 1 &&
      plan->jobs[0].iterations == 1)
    return NULL;
  return planc_error(PLANC_USAGE, "only plans of one job on one GPU, with one iteration a period, are updated");
}

/* --- Change --------------------------------------------------------------------------------------------------- */

/* TENSILE, IV-E: |sum of the new latencies - sum of the old| / sum of the old. The paper's sums are the ops'; a plan
 * that swaps depends on the links as well, by as much as the copies of a direction have changed beside what the ops
 * take. */
static int64_t change_of(const planc_latency_sum *sum, int64_t ops_ns) {
  int64_t apart_ns = sum->new_ns > sum->old_ns ? sum->new_ns - sum->old_ns : sum->old_ns - sum->new_ns;
  int64_t change = planc_muldiv_floor(apart_ns, PLANC_PPM, ops_ns > 0 ? ops_ns : 1);
  return change < PLANC_JSON_MAX ? change : PLANC_JSON_MAX;
}

static void take_sums(const planc_latencies *latencies, planc_update *out) {
  const planc_latency_sum *sums[] = {&latencies->all, &latencies->copies[0], &latencies->copies[1]};
  out->ops = latencies->all;
  out->copies_in = latencies->copies[0];
  out->copies_out = latencies->copies[1];
  for (int s = 0; s < 3; s++) {
    int64_t change = change_of(sums[s], latencies->all.old_ns);
    if (change > out->change_ppm) out->change_ppm = change;
  }
}

/* --- Links ---------------------------------------------------------------------------------------------------- */

static int64_t copies_take(const planc_plan *plan, const planc_acquired *acquired, int direction,
                           const planc_link *link) {
  int64_t sum = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (planc_instr_direction(plan, acquired, instr) == direction)
      sum = planc_add_saturate(sum, planc_link_ns(link, instr->bytes));
  }
  return sum;
}

/* Latency and time per byte in proportion: a plan's copies are too much alike to fit both. */
static void scale_link(const planc_plan *plan, const planc_acquired *acquired, int direction,
                       const planc_latency_sum *copies, planc_link *link) {
  planc_update_ratio slower = {copies->new_ns, copies_take(plan, acquired, direction, link)};
  if (slower.new_ns <= 0 || slower.base_ns <= 0) return;
  planc_update_ratio faster = {slower.base_ns, slower.new_ns};
  int64_t rate = planc_update_scale(link->bytes_per_second, faster);
  link->bytes_per_second = rate > 0 ? rate : 1;
  link->latency_ns = planc_update_scale(link->latency_ns, slower);
}

/* --- Constants ------------------------------------------------------------------------------------------------ */

/* All ops are in tables; constants are left for the sums of gradients, which only move memory. */

static int64_t within(int64_t value, int64_t least, int64_t most) {
  return value < least ? least : value > most ? most : value;
}

/* Of a profile made from the plan alone: kernels start as fast as the shortest instruction, and memory moves what the
 * sums moved in the rest of their time. */
static void assume_constants(const planc_latencies *latencies, planc_profile *out) {
  const planc_latency_sum *adds = &latencies->adds;
  int64_t kernel_ns = within(latencies->least_ns, 1, PLANC_NS), rate = PLANC_NS;
  int64_t moving_ns = adds->new_ns - planc_muldiv_floor(kernel_ns, adds->count, 1);
  int64_t moved = planc_muldiv_floor(latencies->add_bytes, 3, 1);
  if (adds->count > 0) rate = planc_muldiv_ceil(moved, PLANC_NS, moving_ns > 0 ? moving_ns : 1);
  out->compute = (planc_compute){.flops_per_second = PLANC_NS,
                                 .half_flops_per_second = PLANC_NS,
                                 .memory_bytes_per_second = within(rate, 1, PLANC_JSON_MAX),
                                 .processors = 1,
                                 .kernel_ns = kernel_ns,
                                 .split_depth = 1};
  for (int32_t c = 0; c < PLANC_N_CLASSES; c++) out->efficiency_ppm[c] = PLANC_PPM;
  for (int32_t m = 0; m < PLANC_N_REQUIRED_MULTIPLIES; m++)
    out->multiply[m] = (planc_multiply){.flops_ppm = PLANC_PPM, .tile = 1};
}

/* In proportion to what sums took, else to the other elementwise ops. */
static void scale_constants(const planc_latencies *latencies, planc_update_ratio elementwise, planc_profile *out) {
  const planc_latency_sum *adds = &latencies->adds;
  if (adds->count > 0) {
    int64_t one_ns = planc_costs_add_ns(out, latencies->add_bytes / adds->count);
    elementwise = (planc_update_ratio){adds->new_ns, planc_muldiv_floor(one_ns, adds->count, 1)};
  }
  if (elementwise.new_ns <= 0 || elementwise.base_ns <= 0) return;
  planc_update_ratio faster = {elementwise.base_ns, elementwise.new_ns};
  planc_compute *compute = &out->compute;
  compute->kernel_ns = within(planc_update_scale(compute->kernel_ns, elementwise), 1, PLANC_NS);
  compute->memory_bytes_per_second =
      within(planc_update_scale(compute->memory_bytes_per_second, faster), 1, PLANC_JSON_MAX);
}

/* --- Origins -------------------------------------------------------------------------------------------------- */

static planc_status add_origin(planc_profile *profile, planc_origin *origins, const char *of, const char *text) {
  planc_origin *origin = &origins[profile->n_origins++];
  PLANC_TRY(planc_arena_strndup(&profile->arena, of, strlen(of), &origin->of));
  return planc_arena_strndup(&profile->arena, text, strlen(text), &origin->text);
}

static planc_status make_origins(const planc_profile *base, const planc_latencies *latencies, planc_profile *out) {
  enum { OWN = 3 };
  static const char links[] = "as it was, and in proportion to what a run's copies took (planc update)";
  static const char *const replaced[] = {"device.h2d", "device.d2h", "compute"};
  planc_origin *origins;
  PLANC_TRY(PLANC_NEW(&out->arena, &origins, (base ? base->n_origins : 0) + OWN + 1));
  out->origins = origins;
  for (int32_t o = 0; base && o < base->n_origins; o++) {
    bool kept = true;
    for (int r = 0; r < OWN; r++)
      kept &= (r < 2 && latencies->copies[r].count == 0) || strcmp(base->origins[o].of, replaced[r]) != 0;
    if (kept) PLANC_TRY(add_origin(out, origins, base->origins[o].of, base->origins[o].text));
  }
  for (int d = 0; d < 2; d++)
    if (latencies->copies[d].count > 0) PLANC_TRY(add_origin(out, origins, replaced[d], links));
  return add_origin(out, origins, "compute",
                    base ? "as it was, and memory and kernels in proportion to what a run's sums of gradients took"
                         : "of no meaning but for sums of gradients");
}

/* --- All ------------------------------------------------------------------------------------------------------ */

/* The plan's reserved memory is that of the device and the code of the algorithms that it runs. */
static planc_status keep_code(const planc_profile *base, const planc_plan *plan, planc_profile *out) {
  int64_t ran = planc_code_of_plan(base, plan);
  int64_t reserved = planc_plan_memory(plan, PLANC_MEMORY_DEVICE)->reserved_bytes;
  if (base->code.n == 0) return NULL;
  out->device.reserved_bytes = reserved > ran ? reserved - ran : 0;
  return planc_labels_copy(&out->arena, &base->code, &out->code);
}

static planc_status fill(const planc_update_options *options, const planc_acquired *acquired,
                         const planc_latencies *latencies, made *m) {
  const planc_profile *base = options->profile;
  planc_profile *out = m->profile;
  planc_update_ratio elementwise = {0};
  const planc_device made_for = planc_plan_describe(options->plan);
  take_sums(latencies, &m->update);
  out->has_graph_hash = true;
  out->graph_hash = planc_graph_hash(options->plan->jobs[0].graph);
  out->device = base ? planc_device_for(&base->device, &made_for) : made_for;
  PLANC_TRY(planc_arena_strndup(&out->arena, out->device.name, strlen(out->device.name), &out->device.name));
  scale_link(options->plan, acquired, 0, &latencies->copies[0], &out->device.h2d);
  scale_link(options->plan, acquired, 1, &latencies->copies[1], &out->device.d2h);
  if (base) {
    PLANC_TRY(keep_code(base, options->plan, out));
    PLANC_TRY(planc_profile_take_rates(out, base));
  } else {
    assume_constants(latencies, out);
  }
  PLANC_TRY(planc_update_tables(options, latencies, out, &elementwise));
  if (base) scale_constants(latencies, elementwise, out);
  return make_origins(base, latencies, out);
}

/* Medians over the periods, by timed instruction: without what ran beside it, and copies with their hand-overs. */
static planc_status find_times(const planc_update_options *options, const planc_acquired *acquired, int64_t *out_ns) {
  const planc_timeline *timeline = options->timeline;
  int64_t handover_ns[2] = {0};
  PLANC_TRY(planc_section_check(options->plan, &options->plan->body));
  PLANC_TRY(planc_alone_times(timeline, options->plan, 0, out_ns));
  PLANC_TRY(planc_handovers_find(timeline, options->plan, handover_ns));
  for (int32_t k = 0; k < timeline->n_timed; k++) {
    const planc_instr *instr = &options->plan->body.instrs[timeline->instrs[k]];
    int direction = planc_instr_direction(options->plan, acquired, instr);
    if (direction >= 0) out_ns[k] += handover_ns[direction];
  }
  return NULL;
}

static planc_status make(const planc_update_options *options, made *m) {
  planc_arena scratch = {0};
  planc_latencies latencies = {0};
  planc_acquired *acquired;
  int64_t *times_ns;
  planc_status status = PLANC_NEW(&scratch, &times_ns, options->timeline->n_timed);
  if (!status) status = planc_plan_acquired(options->plan, &scratch, &acquired);
  if (!status) status = find_times(options, acquired, times_ns);
  if (!status) status = planc_latencies_find(options, acquired, times_ns, &latencies);
  if (!status) status = fill(options, acquired, &latencies, m);
  planc_latencies_free(&latencies);
  planc_arena_free(&scratch);
  return status;
}

planc_status planc_update_make(const planc_update_options *options, planc_update **out) {
  *out = NULL;
  PLANC_TRY(check_plan(options));
  made *m = calloc(1, sizeof *m);
  planc_profile *profile = calloc(1, sizeof *profile);
  if (!m || !profile) {
    free(m);
    free(profile);
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  }
  m->profile = profile;
  m->update.profile = profile;
  m->weight_ppm = options->weight_ppm;
  planc_status status = make(options, m);
  if (status) {
    planc_update_free(&m->update);
  } else {
    *out = &m->update;
  }
  return status;
}

void planc_update_free(planc_update *update) {
  if (!update) return;
  made *m = (made *)update;
  planc_profile_free(m->profile);
  free(m);
}

planc_status planc_update_print(const planc_update *update, char **out_text, size_t *out_length) {
  const made *m = (const made *)update;
  char origin[128];
  snprintf(origin, sizeof origin, "what a run measured counts %" PRId64 " ppm, what its plan was made with the rest",
           m->weight_ppm);
  return planc_profile_print_ops(m->profile, origin, out_text, out_length);
}
