/* The device of a profile, and the constants that times of its ops follow from (profile_sections.h). */
#include <string.h>

#include "cost/json.h"
#include "cost/profile_sections.h"

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof *(array)))

static planc_status read_link(const pl_json *at, planc_link *out) {
  static const pl_json_field fields[] = {
      {"bytes_per_second", offsetof(planc_link, bytes_per_second), 1, PL_JSON_MAX},
      {"latency_ns", offsetof(planc_link, latency_ns), 0, PL_JSON_MAX},
  };
  return pl_json_struct(at, fields, COUNT(fields), out);
}

/* The tier below the host's memory. */
static planc_status read_storage(const pl_json *at, planc_device *out) {
  static const pl_json_key keys[] = {{"write", false}, {"read", false}};
  pl_json members[COUNT(keys)];
  PLANC_TRY(pl_json_members(at, keys, COUNT(keys), members));
  PLANC_TRY(read_link(&members[0], &out->links[PLANC_ROUTE_STORE]));
  return read_link(&members[1], &out->links[PLANC_ROUTE_LOAD]);
}

planc_status pl_read_device(const pl_json *at, pl_arena *arena, planc_device *out) {
  enum { NAME, MEMORY, RESERVED, LAUNCH, IN_FLIGHT, H2D, D2H, STORAGE, DUPLEX, SLOWDOWN, PAGING, N };
  static const pl_json_key keys[N] = {
      [NAME] = {"name", false},
      [MEMORY] = {"memory_bytes", false},
      [RESERVED] = {"reserved_bytes", false},
      [LAUNCH] = {"launch_ns", false},
      [IN_FLIGHT] = {"in_flight", false},
      [H2D] = {"h2d", false},
      [D2H] = {"d2h", false},
      [STORAGE] = {"storage", true},
      [DUPLEX] = {"duplex_ppm", false},
      [SLOWDOWN] = {"slowdown_ppm", false},
      [PAGING] = {"paging_ppm", true},
  };
  pl_json members[N];
  PLANC_TRY(pl_json_members(at, keys, N, members));
  const char *name;
  PLANC_TRY(pl_json_name(&members[NAME], &name));
  PLANC_TRY(pl_arena_strndup(arena, name, strlen(name), &out->name));
  PLANC_TRY(pl_json_int(&members[MEMORY], 1, PL_JSON_MAX, &out->memory_bytes));
  PLANC_TRY(pl_json_int(&members[RESERVED], 0, out->memory_bytes, &out->reserved_bytes));
  PLANC_TRY(pl_json_int(&members[LAUNCH], 0, PL_JSON_MAX, &out->launch_ns));
  int64_t in_flight;
  PLANC_TRY(pl_json_int(&members[IN_FLIGHT], 1, INT32_MAX, &in_flight));
  out->in_flight = (int32_t)in_flight;
  PLANC_TRY(read_link(&members[H2D], &out->links[PLANC_ROUTE_H2D]));
  PLANC_TRY(read_link(&members[D2H], &out->links[PLANC_ROUTE_D2H]));
  if (members[STORAGE].value) PLANC_TRY(read_storage(&members[STORAGE], out));
  PLANC_TRY(pl_json_int(&members[DUPLEX], 1, PL_PPM, &out->duplex_ppm));
  PLANC_TRY(pl_json_int(&members[SLOWDOWN], 0, (int64_t)1000 * PL_PPM, &out->slowdown_ppm));
  return members[PAGING].value ? pl_json_int(&members[PAGING], 1, PL_PPM, &out->paging_ppm) : NULL;
}

planc_status pl_read_compute(const pl_json *at, pl_compute *out) {
  static const pl_json_field fields[] = {
      {"flops_per_second", offsetof(pl_compute, flops_per_second), 1, PL_JSON_MAX},
      {"half_flops_per_second", offsetof(pl_compute, half_flops_per_second), 1, PL_JSON_MAX},
      {"memory_bytes_per_second", offsetof(pl_compute, memory_bytes_per_second), 1, PL_JSON_MAX},
      {"processors", offsetof(pl_compute, processors), 1, 1000000},
      {"kernel_ns", offsetof(pl_compute, kernel_ns), 1, PL_NS},
      {"split_depth", offsetof(pl_compute, split_depth), 1, 1000000},
      {"sustained_ppm", offsetof(pl_compute, sustained_ppm), 1, PL_PPM},
      {"tf32_flops_per_second", offsetof(pl_compute, tf32_flops_per_second), 1, PL_JSON_MAX},
  };
  return pl_json_struct_partly(at, fields, COUNT(fields) - 2, COUNT(fields), out);
}

planc_status pl_read_efficiency(const pl_json *at, int64_t out[PL_N_CLASSES]) {
  static const pl_json_field fields[] = {
#define X(name) {#name, PLANC_CLASS_##name * sizeof(int64_t), 1, PL_PPM},
      PLANC_CLASSES(X)
#undef X
  };
  return pl_json_struct(at, fields, COUNT(fields), out);
}

planc_status pl_read_multiply(const pl_json *at, pl_multiply out[PL_N_MULTIPLIES]) {
  static const pl_json_key keys[] = {
#define X(id, name) {name, PL_MULTIPLY_##id >= PL_N_REQUIRED_MULTIPLIES},
      PL_MULTIPLIES(X)
#undef X
  };
  static const pl_json_field fields[] = {
      {"flops_ppm", offsetof(pl_multiply, flops_ppm), 1, PL_PPM},
      {"tile", offsetof(pl_multiply, tile), 1, 4096},
      {"depth_overhead", offsetof(pl_multiply, depth_overhead), 0, 1000000},
      {"small_tile", offsetof(pl_multiply, small_tile), 1, 4096},
      {"small_flops_ppm", offsetof(pl_multiply, small_flops_ppm), 1, PL_PPM},
  };
  enum { REQUIRED = 3 };
  pl_json members[PL_N_MULTIPLIES];
  PLANC_TRY(pl_json_members(at, keys, PL_N_MULTIPLIES, members));
  for (int32_t m = 0; m < PL_N_MULTIPLIES; m++) {
    if (!members[m].value) continue;
    PLANC_TRY(pl_json_struct_partly(&members[m], fields, REQUIRED, COUNT(fields), &out[m]));
    if (!out[m].small_tile != !out[m].small_flops_ppm)
      return pl_json_error(&members[m], "small_tile and small_flops_ppm stand together");
  }
  return NULL;
}

planc_status pl_read_cache(const pl_json *at, pl_cache_rate *out) {
  static const pl_json_field fields[] = {
      {"bytes", offsetof(pl_cache_rate, bytes), 1, INT64_C(1) << 40},
      {"bytes_per_second", offsetof(pl_cache_rate, bytes_per_second), 1, PL_JSON_MAX},
  };
  return pl_json_struct(at, fields, COUNT(fields), out);
}

planc_status pl_read_occupancy(const pl_json *at, pl_occupancy *out) {
  static const pl_json_field fields[] = {
      {"threads", offsetof(pl_occupancy, threads), 1, 1000000},
      {"thread_elements", offsetof(pl_occupancy, thread_elements), 1, 1000000},
      {"norm_threads", offsetof(pl_occupancy, norm_threads), 1, 1000000},
      {"result_threads", offsetof(pl_occupancy, result_threads), 1, 1000000},
      {"outputs", offsetof(pl_occupancy, outputs), 1, PL_NS},
  };
  return pl_json_struct(at, fields, COUNT(fields), out);
}
