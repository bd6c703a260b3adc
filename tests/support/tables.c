/* Tables of plans that tests make (tables.h). */
#include "tests/support/tables.h"

#include "plan/layout.h"

enum { ENGINES_OF_GPU = 2, STREAMS_OF_JOB = 3 };

static int32_t gpu_of(const planc_plan *plan, const int32_t *gpus, int32_t job) {
  return gpus ? gpus[job] : plan->jobs[job].replica;
}

static planc_status make_memories(planc_plan *plan, planc_arena *arena, int32_t n_gpus, bool storage) {
  plan->n_memories = n_gpus + (storage ? 3 : 2);
  PLANC_TRY(PLANC_NEW(arena, &plan->memories, plan->n_memories));
  for (int32_t m = 0; m < plan->n_memories; m++) {
    planc_memory_kind kind = m < n_gpus                  ? PLANC_MEMORY_DEVICE
                             : m == n_gpus               ? PLANC_MEMORY_HOST
                             : m == plan->n_memories - 1 ? PLANC_MEMORY_USER
                                                         : PLANC_MEMORY_STORAGE;
    plan->memories[m] = (planc_memory){
        .kind = kind, .gpu = m < n_gpus ? m : -1, .bytes = -1, .budget_bytes = -1, .alignment = PLANC_PLAN_ALIGNMENT};
  }
  return NULL;
}

static planc_status make_links(planc_plan *plan, planc_arena *arena, int32_t n_gpus) {
  static const planc_link byte_in_a_nanosecond = {.bytes_per_second = 1000000000};
  int32_t n_others = plan->n_memories - n_gpus, n_ways = n_others * (n_others + 1) / 2;
  PLANC_TRY(PLANC_NEW(arena, &plan->links, (int64_t)n_gpus * ENGINES_OF_GPU * n_ways));
  for (int32_t engine = 0; engine < n_gpus * ENGINES_OF_GPU; engine++) {
    for (int32_t far = plan->n_memories - 1; far >= n_gpus; far--) {
      for (int32_t to = n_gpus - 1; to < far; to++) {
        int32_t near = to < n_gpus ? engine / ENGINES_OF_GPU : to;
        bool back = engine % ENGINES_OF_GPU;
        plan->links[plan->n_links++] = (planc_plan_link){.from = back ? near : far,
                                                         .to = back ? far : near,
                                                         .engine = engine,
                                                         .bus = -1,
                                                         .cost = byte_in_a_nanosecond};
      }
    }
  }
  return NULL;
}

static planc_status make_streams(planc_plan *plan, planc_arena *arena, const int32_t *gpus) {
  planc_stream *streams;
  plan->n_streams = plan->n_jobs * STREAMS_OF_JOB;
  PLANC_TRY(PLANC_NEW(arena, &streams, plan->n_streams));
  for (int32_t s = 0; s < plan->n_streams; s++) {
    int32_t job = s / STREAMS_OF_JOB, kind = s % STREAMS_OF_JOB, gpu = gpu_of(plan, gpus, job);
    streams[s] = kind == 0 ? (planc_stream){PLANC_STREAM_KIND_compute, job, gpu}
                           : (planc_stream){PLANC_STREAM_KIND_copy, job, gpu * ENGINES_OF_GPU + kind - 1};
  }
  plan->streams = streams;
  return NULL;
}

planc_status tables_make(planc_plan *plan, planc_arena *arena, const int32_t *gpus, bool storage) {
  int32_t n_gpus = 1;
  for (int32_t j = 0; j < plan->n_jobs; j++)
    if (gpu_of(plan, gpus, j) >= n_gpus) n_gpus = gpu_of(plan, gpus, j) + 1;
  PLANC_TRY(make_memories(plan, arena, n_gpus, storage));
  PLANC_TRY(make_links(plan, arena, n_gpus));
  return make_streams(plan, arena, gpus);
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
  planc_plan_find_peaks(plan);
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
  for (int32_t l = 0; l < plan->n_links; l++)
    plan->links[l].cost = plan->links[l].engine % ENGINES_OF_GPU == 0 ? h2d : d2h;
}
