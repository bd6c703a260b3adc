/* By how much values grow with prices (bound_value_state.h). */
#include "planner/bound/bound_value_state.h"

/* Of what is longer it need not be told how long it is; so millions of them have 64 bits. */
#define MOST_TERM (INT64_C(1) << 40)

void pl_bound_slope_of_time(pl_bound_value *v, int32_t slot, int64_t paid, int64_t ns) {
  int32_t of = slot % pl_bound_n_slots(v->model);
  if (paid >= PL_PRICE_ONE) return;
  int64_t bought = pl_min(pl_muldiv_floor(ns, PL_PPM + v->model->device.slowdown_ppm, PL_PPM), MOST_TERM);
  v->slopes.in[of] -= bought;
  v->slopes.out[of] -= bought;
}

void pl_bound_slope_of_copy(pl_bound_value *v, int32_t slot, planc_route route, int64_t bytes) {
  const planc_device *device = &v->model->device;
  const planc_link *link = &device->links[route];
  int32_t of = slot % pl_bound_n_slots(v->model);
  int64_t ns = link->bytes_per_second > 0 ? pl_muldiv_floor(bytes, PL_NS, link->bytes_per_second) : 0;
  int64_t duplex = device->duplex_ppm, shared = duplex > PL_PPM / 2 ? pl_muldiv_floor(ns, PL_PPM - duplex, duplex) : ns;
  v->slopes.in[of] += pl_min(route == PLANC_ROUTE_H2D ? ns : shared, MOST_TERM);
  v->slopes.out[of] += pl_min(route == PLANC_ROUTE_H2D ? shared : ns, MOST_TERM);
}

void pl_bound_keep(pl_bound_value *v, int32_t first, int32_t end, int64_t bytes) {
  if (first >= end) return;
  v->scratch->kept[first] += bytes;
  v->scratch->kept[end] -= bytes;
}

void pl_bound_copy_in(pl_bound_value *v, int32_t slot, int32_t end, int64_t bytes) {
  pl_bound_slope_of_copy(v, slot, PLANC_ROUTE_H2D, bytes);
  pl_bound_keep(v, pl_bound_found_from(slot), end, bytes);
}
