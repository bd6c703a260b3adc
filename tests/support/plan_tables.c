/* Tables of plans that tests make (plan_tables.h). */
#include "tests/support/plan_tables.h"

#include "plan/derived.h"

enum { ENGINES_OF_GPU = 2, STREAMS_OF_JOB = 3, STORAGE_STREAMS_OF_JOB = 2 };

static int32_t gpu_of(const int32_t *gpus, int32_t job) {
  return gpus ? gpus[job] : 0;
}

static planc_status make_memories(planc_plan *plan, pl_arena *arena, int32_t n_gpus, bool storage) {
  plan->n_memories = n_gpus + (storage ? 3 : 2);
  PLANC_TRY(PL_NEW(arena, &plan->memories, plan->n_memories));
  for (int32_t m = 0; m < plan->n_memories; m++) {
    planc_memory_kind kind = m < n_gpus                  ? PLANC_MEMORY_DEVICE
                             : m == n_gpus               ? PLANC_MEMORY_HOST
                             : m == plan->n_memories - 1 ? PLANC_MEMORY_USER
                                                         : PLANC_MEMORY_STORAGE;
    plan->memories[m] = (planc_memory){
        .kind = kind, .gpu = m < n_gpus ? m : -1, .bytes = -1, .budget_bytes = -1, .alignment = PLANC_ALIGNMENT};
  }
  return NULL;
}

static void add_link(planc_plan *plan, int32_t from, int32_t to, int32_t engine) {
  static const planc_link byte_in_a_nanosecond = {.bytes_per_second = 1000000000};
  plan->links[plan->n_links++] =
      (planc_plan_link){.from = from, .to = to, .engine = engine, .bus = -1, .cost = byte_in_a_nanosecond};
}

static planc_status make_links(planc_plan *plan, pl_arena *arena, int32_t n_gpus) {
  enum { WAYS = 3, STORAGE_LINKS = 4 };
  int32_t host = n_gpus, user = plan->n_memories - 1, n_engines = n_gpus * ENGINES_OF_GPU;
  int32_t storage = tables_memory(plan, PLANC_MEMORY_STORAGE);
  PLANC_TRY(PL_NEW(arena, &plan->links, (int64_t)n_engines * WAYS + STORAGE_LINKS));
  for (int32_t engine = 0; engine < n_engines; engine++) {
    int32_t gpu = engine / ENGINES_OF_GPU;
    int32_t ways[WAYS][2] = {{user, gpu}, {user, host}, {host, gpu}};
    bool back = engine % ENGINES_OF_GPU;
    for (int w = 0; w < WAYS; w++) add_link(plan, ways[w][back], ways[w][!back], engine);
  }
  for (int back = 0; storage >= 0 && back < 2; back++) {
    int32_t ways[][2] = {{user, storage}, {host, storage}};
    for (int w = 0; w < 2; w++) add_link(plan, ways[w][back], ways[w][!back], n_engines + back);
  }
  return NULL;
}

static planc_status make_streams(planc_plan *plan, pl_arena *arena, const int32_t *gpus, int32_t n_gpus, bool storage) {
  planc_stream *streams;
  int32_t n = plan->n_jobs * STREAMS_OF_JOB;
  plan->n_streams = n + (storage ? plan->n_jobs * STORAGE_STREAMS_OF_JOB : 0);
  PLANC_TRY(PL_NEW(arena, &streams, plan->n_streams));
  for (int32_t s = n; s < plan->n_streams; s++) {
    int32_t job = (s - n) / STORAGE_STREAMS_OF_JOB, kind = (s - n) % STORAGE_STREAMS_OF_JOB;
    streams[s] = (planc_stream){PLANC_STREAM_KIND_copy, job, n_gpus * ENGINES_OF_GPU + kind};
  }
  for (int32_t s = 0; s < n; s++) {
    int32_t job = s / STREAMS_OF_JOB, kind = s % STREAMS_OF_JOB, gpu = gpu_of(gpus, job);
    streams[s] = kind == 0 ? (planc_stream){PLANC_STREAM_KIND_compute, job, gpu}
                           : (planc_stream){PLANC_STREAM_KIND_copy, job, gpu * ENGINES_OF_GPU + kind - 1};
  }
  plan->streams = streams;
  return NULL;
}

planc_status tables_make(planc_plan *plan, pl_arena *arena, const int32_t *gpus, bool storage) {
  int32_t n_gpus = 1;
  for (int32_t j = 0; j < plan->n_jobs; j++)
    if (gpu_of(gpus, j) >= n_gpus) n_gpus = gpu_of(gpus, j) + 1;
  PLANC_TRY(PL_NEW(arena, &plan->predicted.jobs, plan->n_jobs));
  PLANC_TRY(make_memories(plan, arena, n_gpus, storage));
  PLANC_TRY(make_links(plan, arena, n_gpus));
  plan->device.duplex_ppm = 1000000;
  return make_streams(plan, arena, gpus, n_gpus, storage);
}

int32_t tables_memory(const planc_plan *plan, planc_memory_kind kind) {
  for (int32_t m = 0; m < plan->n_memories; m++)
    if (plan->memories[m].kind == kind) return m;
  return -1;
}

static void set(planc_plan *plan, int64_t device, int64_t host, int64_t *(*of)(planc_memory *memory)) {
  for (int32_t m = 0; m < plan->n_memories; m++) {
    planc_memory *memory = &plan->memories[m];
    if (memory->kind == PLANC_MEMORY_DEVICE) *of(memory) = device;
    if (memory->kind == PLANC_MEMORY_HOST) *of(memory) = host;
  }
}

static int64_t *arena_of(planc_memory *memory) {
  return &memory->arena_bytes;
}

static int64_t *budget_of(planc_memory *memory) {
  return &memory->budget_bytes;
}

void tables_arenas(planc_plan *plan, int64_t device, int64_t host) {
  set(plan, device, host, arena_of);
  pl_plan_find_peaks(plan);
}

void tables_budgets(planc_plan *plan, int64_t device, int64_t host) {
  set(plan, device, host, budget_of);
}

void tables_map(planc_plan *plan, int64_t chunk_bytes, const planc_mapping *mappings, int32_t n) {
  plan->mappings = mappings;
  plan->n_mappings = n;
  for (int32_t m = 1; m < plan->n_memories; m++) plan->memories[m].first_mapping = n;
  plan->memories[0].chunk_bytes = chunk_bytes;
  plan->memories[0].n_mappings = n;
}

void tables_links(planc_plan *plan, planc_link h2d, planc_link d2h) {
  int32_t n_engines = planc_plan_gpus(plan) * ENGINES_OF_GPU;
  for (int32_t l = 0; l < plan->n_links; l++)
    if (plan->links[l].engine < n_engines)
      plan->links[l].cost = plan->links[l].engine % ENGINES_OF_GPU == 0 ? h2d : d2h;
}
