/* What prices certify (bound_value.h). */
#include <string.h>

#include "planner/bound/bound_value_state.h"

/* --- Memory ------------------------------------------------------------------------------------------------------- */

planc_status pl_bound_prices_new(const pl_bound_model *model, pl_arena *arena, pl_bound_prices *out) {
  PLANC_TRY(PL_NEW(arena, &out->byte, model->n));
  PLANC_TRY(PL_NEW(arena, &out->in, pl_bound_n_slots(model)));
  return PL_NEW(arena, &out->out, pl_bound_n_slots(model));
}

void pl_bound_prices_copy(const pl_bound_model *model, const pl_bound_prices *from, pl_bound_prices *to) {
  size_t n = (size_t)model->n, slots = (size_t)pl_bound_n_slots(model);
  memcpy(to->byte, from->byte, n * sizeof *to->byte);
  memcpy(to->in, from->in, slots * sizeof *to->in);
  memcpy(to->out, from->out, slots * sizeof *to->out);
}

/* The sum over two periods has 61 bits. */
int64_t pl_bound_most_price(const pl_bound_model *model) {
  return pl_min(PL_PRICE_ONE << 8, (INT64_C(1) << 60) / (model->n > 0 ? model->n : 1));
}

static planc_status new_slots(const pl_bound_model *model, pl_arena *arena, int64_t **slots, pl_range_least *least) {
  PLANC_TRY(PL_NEW(arena, slots, 2 * (int64_t)pl_bound_n_slots(model)));
  return least ? pl_range_least_new(arena, 2 * pl_bound_n_slots(model), least) : NULL;
}

static planc_status new_gaps(int64_t most, pl_arena *arena, pl_bound_scratch *s) {
  PLANC_TRY(PL_NEW(arena, &s->with_copy, most + 1));
  PLANC_TRY(PL_NEW(arena, &s->without, most + 1));
  PLANC_TRY(PL_NEW(arena, &s->back_slot, most));
  PLANC_TRY(PL_NEW(arena, &s->send_slot, most));
  PLANC_TRY(PL_NEW(arena, &s->again_slot, most));
  PLANC_TRY(PL_NEW(arena, &s->leaving, most));
  PLANC_TRY(PL_NEW(arena, &s->way_with, most));
  return PL_NEW(arena, &s->way_without, most);
}

planc_status pl_bound_value_new(const pl_bound_model *model, int64_t room, pl_arena *arena, pl_bound_value *out) {
  pl_bound_scratch *s;
  int64_t most = 0;
  *out = (pl_bound_value){.model = model, .room = room};
  for (int32_t v = 0; v < model->n_versions; v++) most = pl_max(most, model->versions[v].n_gaps);
  PLANC_TRY(PL_NEW(arena, &s, 1));
  PLANC_TRY(PL_NEW(arena, &s->bytes_before, 2 * (int64_t)model->n + 1));
  PLANC_TRY(PL_NEW(arena, &s->kept, 2 * (int64_t)model->n + 1));
  PLANC_TRY(new_slots(model, arena, &s->back, &s->least_back));
  PLANC_TRY(new_slots(model, arena, &s->leave, &s->least_leave));
  PLANC_TRY(new_slots(model, arena, &s->send, &s->least_send));
  PLANC_TRY(new_slots(model, arena, &s->again, &s->least_again));
  PLANC_TRY(new_slots(model, arena, &s->bring, &s->least_bring));
  PLANC_TRY(new_gaps(most, arena, s));
  PLANC_TRY(PL_NEW(arena, &out->ways, model->n_gaps));
  out->scratch = s;
  return pl_bound_prices_new(model, arena, &out->slopes);
}

/* --- The value ---------------------------------------------------------------------------------------------------- */

static void spread(pl_bound_value *v, const pl_bound_prices *prices);
static void add_op(pl_bound_value *v, const pl_bound_prices *prices, int32_t position);
static void add_fed(pl_bound_value *v, const pl_bound_copy *copy);
static void add_result(pl_bound_value *v, const pl_bound_copy *copy);
static void add_version(pl_bound_value *v, const pl_bound_version *version);
static void sum_kept(pl_bound_value *v);

void pl_bound_value_find(pl_bound_value *v, const pl_bound_prices *prices) {
  const pl_bound_model *model = v->model;
  size_t slots = (size_t)pl_bound_n_slots(model);
  v->value = 0;
  memset(v->slopes.in, 0, slots * sizeof *v->slopes.in);
  memset(v->slopes.out, 0, slots * sizeof *v->slopes.out);
  memset(v->scratch->kept, 0, (slots + 1) * sizeof *v->scratch->kept);
  spread(v, prices);
  for (int32_t p = 0; p < model->n; p++) add_op(v, prices, p);
  for (int32_t k = 0; k < model->n_fed; k++) add_fed(v, &model->fed[k]);
  for (int32_t k = 0; k < model->n_results; k++) add_result(v, &model->results[k]);
  for (int32_t k = 0; k < model->n_versions; k++) add_version(v, &model->versions[k]);
  sum_kept(v);
}

/* What is paid of an op's time in a slot. An op that copies slow down buys link time, as stalls do. */
static int64_t paid_of_time(const planc_device *device, int64_t price) {
  int64_t slowed = PL_PPM + device->slowdown_ppm;
  pl_signed_wide returned = (pl_signed_wide)price * slowed - (pl_signed_wide)device->slowdown_ppm * PL_PRICE_ONE;
  return returned <= 0 ? PL_PRICE_ONE : PL_PRICE_ONE - (int64_t)((returned + PL_PPM - 1) / PL_PPM);
}

/* The price of copying a byte where a ns has `own` and, of the other direction, `other`. A link without a rate costs
 * nothing: what is not known does not make a plan slower. */
static int64_t byte_price(const planc_device *device, const planc_link *link, int64_t own, int64_t other) {
  int64_t duplex = device->duplex_ppm;
  int64_t shared = duplex > PL_PPM / 2 ? pl_muldiv_floor(other, PL_PPM - duplex, duplex) : other;
  return link->bytes_per_second > 0 ? pl_muldiv_floor(own + shared, PL_NS, link->bytes_per_second) : 0;
}

static void spread(pl_bound_value *v, const pl_bound_prices *prices) {
  const pl_bound_model *model = v->model;
  const planc_device *device = &model->device;
  pl_bound_scratch *s = v->scratch;
  int32_t n = model->n;
  for (int32_t p = 0; p < 2 * n; p++) s->bytes_before[p + 1] = s->bytes_before[p] + prices->byte[p < n ? p : p - n];
  for (int32_t slot = 0, later = pl_bound_n_slots(model); slot < pl_bound_n_slots(model); slot++, later++) {
    int64_t in = byte_price(device, &device->links[PLANC_ROUTE_H2D], prices->in[slot], prices->out[slot]);
    int64_t out = byte_price(device, &device->links[PLANC_ROUTE_D2H], prices->out[slot], prices->in[slot]);
    s->send[slot] = s->send[later] = out;
    s->bring[slot] = s->bring[later] = in;
    s->back[slot] = in - s->bytes_before[pl_bound_found_from(slot)];
    s->back[later] = in - s->bytes_before[pl_bound_found_from(later)];
    s->leave[slot] = out + s->bytes_before[pl_bound_found_from(slot)];
    s->leave[later] = out + s->bytes_before[pl_bound_found_from(later)];
    s->again[slot] = s->again[later] =
        slot % 2 == 1 ? paid_of_time(device, prices->in[slot] + prices->out[slot]) : PL_PRICE_ONE + 1;
  }
  pl_range_least_build(&s->least_back, s->back);
  pl_range_least_build(&s->least_leave, s->leave);
  pl_range_least_build(&s->least_send, s->send);
  pl_range_least_build(&s->least_again, s->again);
  pl_range_least_build(&s->least_bring, s->bring);
}

/* --- Ops and what comes and goes ---------------------------------------------------------------------------------- */

static void add_op(pl_bound_value *v, const pl_bound_prices *prices, int32_t position) {
  const pl_bound_op *op = &v->model->ops[position];
  int64_t slot = 2 * (int64_t)position, paid = paid_of_time(&v->model->device, prices->in[slot] + prices->out[slot]);
  int64_t price = prices->byte[position], beside = v->room - op->operand_bytes;
  pl_signed_wide least = 0;
  planc_variant best = {0};
  for (int32_t k = 0; k < op->n_variants; k++) {
    const planc_variant *variant = &op->variants[k];
    pl_signed_wide cost = (pl_signed_wide)paid * variant->time_ns + (pl_signed_wide)price * variant->workspace_bytes;
    if (k > 0 && cost >= least) continue;
    least = cost;
    best = *variant;
  }
  v->value += least - (pl_signed_wide)price * beside;
  v->slopes.byte[position] = best.workspace_bytes - beside;
  pl_bound_slope_of_time(v, (int32_t)slot, paid, best.time_ns);
}

static void add_fed(pl_bound_value *v, const pl_bound_copy *copy) {
  const pl_bound_scratch *s = v->scratch;
  int32_t slot = pl_range_least_of(&s->least_back, 2 * copy->from, 2 * copy->to);
  v->value += (pl_signed_wide)copy->bytes * (s->bytes_before[copy->to] + s->back[slot]);
  pl_bound_copy_in(v, slot, copy->to, copy->bytes);
}

static void add_result(pl_bound_value *v, const pl_bound_copy *copy) {
  int32_t slot = pl_range_least_of(&v->scratch->least_send, 2 * copy->from, 2 * copy->to);
  v->value += (pl_signed_wide)copy->bytes * v->scratch->send[slot];
  pl_bound_slope_of_copy(v, slot, PLANC_ROUTE_D2H, copy->bytes);
}

/* --- Versions ----------------------------------------------------------------------------------------------------- */

static void price_gap(pl_bound_value *v, const pl_bound_version *version, int32_t k);
static void take(pl_bound_value *v, const pl_bound_version *version);

/* From its last gap to its first, for both cases: the host has the version by then, or not. */
static void add_version(pl_bound_value *v, const pl_bound_version *version) {
  pl_bound_scratch *s = v->scratch;
  s->with_copy[version->n_gaps] = s->without[version->n_gaps] = 0;
  for (int32_t k = version->n_gaps - 1; k >= 0; k--) price_gap(v, version, k);
  v->value += version->on_host ? s->with_copy[0] : s->without[0];
  take(v, version);
}

/* The least of copying it out: from when it was written up to the gap's first use; or in the gap, where it stays for
 * that, or is computed again, of what is taken to be there. */
static pl_signed_wide price_of_leaving(pl_bound_scratch *s, const pl_bound_version *version, const pl_bound_gap *gap,
                                       int32_t k) {
  int32_t later = pl_range_least_of(&s->least_leave, 2 * gap->from + 1, 2 * gap->to);
  pl_signed_wide least = (pl_signed_wide)version->bytes * (s->leave[later] - s->bytes_before[gap->from + 1]);
  s->send_slot[k] = later;
  s->leaving[k] = PL_LEAVES_LATER;
  if (version->written < gap->from) {
    int32_t before = pl_range_least_of(&s->least_send, 2 * version->written + 1, 2 * gap->from + 1);
    pl_signed_wide price = (pl_signed_wide)version->bytes * s->send[before];
    if (price <= least) {
      least = price;
      s->send_slot[k] = before;
      s->leaving[k] = PL_LEAVES_SENT;
    }
  }
  if (gap->again_ns >= 0) {
    int32_t behind = pl_range_least_of(&s->least_send, 2 * gap->from + 1, 2 * gap->to);
    pl_signed_wide price =
        (pl_signed_wide)version->bytes * s->send[behind] + (pl_signed_wide)gap->again_ns * s->again[s->again_slot[k]];
    if (price < least) {
      least = price;
      s->send_slot[k] = behind;
      s->leaving[k] = PL_LEAVES_AGAIN;
    }
  }
  return least;
}

static pl_signed_wide price_of_return(pl_bound_scratch *s, const pl_bound_version *version, const pl_bound_gap *gap,
                                      int32_t k) {
  s->back_slot[k] = pl_range_least_of(&s->least_back, 2 * gap->from + 1, 2 * gap->to);
  return (pl_signed_wide)version->bytes * (s->bytes_before[gap->to] + s->back[s->back_slot[k]]);
}

static pl_bound_inputs inputs_of_gap(const pl_bound_gap *gap, const pl_bound_version *version) {
  return (pl_bound_inputs){gap->first_input, gap->n_inputs, version->bytes};
}

static pl_bound_window window_of(const pl_bound_value *v, const pl_bound_version *version, int32_t k) {
  const pl_bound_scratch *s = v->scratch;
  const pl_bound_gap *gap = &v->model->gaps[version->first_gap + k];
  int32_t first = 2 * gap->from + 1, end = 2 * gap->to;
  pl_bound_window window = {.from = gap->from, .to = gap->to, .again_slot = s->again_slot[k]};
  if (gap->n_inputs == 0) return window;
  window.bring_slot = pl_range_least_of(&s->least_bring, first, end);
  window.back_slot = pl_range_least_of(&s->least_back, first, end);
  return window;
}

static void price_free_gap(pl_bound_scratch *s, int32_t k);

static void price_gap(pl_bound_value *v, const pl_bound_version *version, int32_t k) {
  pl_bound_scratch *s = v->scratch;
  const pl_bound_gap *gap = &v->model->gaps[version->first_gap + k];
  if (!gap->comes_back) { /* it is the last, and takes nothing */
    s->with_copy[k] = s->without[k] = 0;
    return;
  }
  pl_signed_wide stays = (pl_signed_wide)version->bytes * (s->bytes_before[gap->to] - s->bytes_before[gap->from + 1]);
  if (stays == 0) {
    price_free_gap(s, k);
    return;
  }
  pl_signed_wide back = price_of_return(s, version, gap, k), here = stays;
  uint8_t way = PL_BOUND_STAYS;
  if (gap->again_ns >= 0) {
    s->again_slot[k] = pl_range_least_of(&s->least_again, 2 * gap->from + 1, 2 * gap->to);
    pl_signed_wide again = (pl_signed_wide)gap->again_ns * s->again[s->again_slot[k]];
    if (again < here && gap->n_inputs > 0) {
      const pl_bound_window window = window_of(v, version, k);
      again += pl_bound_price_of_inputs(v, &window, inputs_of_gap(gap, version));
    }
    if (again < here) {
      here = again;
      way = PL_BOUND_AGAIN;
    }
  }
  bool may_leave = version->may_leave, returns = may_leave && back < here;
  s->way_with[k] = returns ? PL_BOUND_COPIED : way;
  s->with_copy[k] = (returns ? back : here) + s->with_copy[k + 1];
  s->without[k] = here + s->without[k + 1];
  s->way_without[k] = way;
  if (version->on_host || !may_leave) return;
  pl_signed_wide leaves = price_of_leaving(s, version, gap, k) + back + s->with_copy[k + 1];
  if (leaves >= s->without[k]) return;
  s->without[k] = leaves;
  s->way_without[k] = PL_BOUND_COPIED;
}

/* Nothing is cheaper than to stay for nothing. A copy out that would be made for later gaps may be made at the same
 * time with the first of these. */
static void price_free_gap(pl_bound_scratch *s, int32_t k) {
  s->with_copy[k] = s->with_copy[k + 1];
  s->without[k] = s->without[k + 1];
  s->way_with[k] = s->way_without[k] = PL_BOUND_STAYS;
}

/* What these decisions take of memory and links. */
static void take(pl_bound_value *v, const pl_bound_version *version) {
  pl_bound_scratch *s = v->scratch;
  bool on_host = version->on_host;
  for (int32_t k = 0; k < version->n_gaps; k++) {
    const pl_bound_gap *gap = &v->model->gaps[version->first_gap + k];
    pl_bound_way way =
        !gap->comes_back ? PL_BOUND_COPIED : (pl_bound_way)(on_host ? s->way_with[k] : s->way_without[k]);
    v->ways[version->first_gap + k] = way;
    if (way == PL_BOUND_STAYS) pl_bound_keep(v, gap->from + 1, gap->to, version->bytes);
    if (way == PL_BOUND_AGAIN) {
      const pl_bound_window window = window_of(v, version, k);
      pl_bound_slope_of_time(v, s->again_slot[k], s->again[s->again_slot[k]], gap->again_ns);
      pl_bound_take_inputs(v, &window, inputs_of_gap(gap, version), 1);
    }
    if (way != PL_BOUND_COPIED || !gap->comes_back) continue;
    if (!on_host) {
      pl_bound_slope_of_copy(v, s->send_slot[k], PLANC_ROUTE_D2H, version->bytes);
      if (s->leaving[k] == PL_LEAVES_LATER)
        pl_bound_keep(v, gap->from + 1, pl_bound_found_from(s->send_slot[k]), version->bytes);
      if (s->leaving[k] == PL_LEAVES_AGAIN)
        pl_bound_slope_of_time(v, s->again_slot[k], s->again[s->again_slot[k]], gap->again_ns);
    }
    on_host = true;
    pl_bound_copy_in(v, s->back_slot[k], gap->to, version->bytes);
  }
}

/* --- What is on the device ---------------------------------------------------------------------------------------- */

static void sum_kept(pl_bound_value *v) {
  int64_t kept = 0;
  for (int32_t p = 0; p < 2 * v->model->n; p++) {
    kept += v->scratch->kept[p];
    v->slopes.byte[p % v->model->n] += kept;
  }
}
