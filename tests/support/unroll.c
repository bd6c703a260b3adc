/* A run of a plan, written out (unroll.h). */
#include "tests/support/unroll.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void *filled(int64_t n, size_t size, int value) {
  void *values = malloc((size_t)(n + 1) * size);
  ck_assert_ptr_nonnull(values);
  return memset(values, value, (size_t)(n + 1) * size);
}

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

static void add_touch(unrolled *u, int32_t memory, int64_t from, int64_t bytes, bool writes) {
  if (bytes <= 0) return;
  if (VEC_RESERVE(&u->touches, u->touches.len + 1)) ck_abort_msg("out of memory");
  u->touches.data[u->touches.len++] = (unroll_touch){memory, from, from + bytes, writes};
}

/* Where in its arena chunk `chunk` of a memory's addresses is. */
static int64_t mapped_to(const planc_plan *plan, const planc_memory *memory, int64_t chunk) {
  const planc_mapping *mappings = &plan->mappings[memory->first_mapping];
  for (int32_t m = 0; m < memory->n_mappings; chunk -= mappings[m++].n)
    if (chunk < mappings[m].n) return mappings[m].first + chunk;
  ck_abort_msg("an address that is not mapped");
}

static void touch(unrolled *u, int32_t replica, int32_t memory, int64_t from, int64_t bytes, bool writes) {
  const planc_memory *of = &u->plan->memories[memory];
  int32_t in = replica * u->plan->n_memories + memory;
  int64_t chunk = of->chunk_bytes;
  if (chunk == 0) add_touch(u, in, from, bytes, writes);
  while (chunk > 0 && bytes > 0) {
    int64_t part = chunk - from % chunk < bytes ? chunk - from % chunk : bytes;
    add_touch(u, in, mapped_to(u->plan, of, from / chunk) * chunk + from % chunk, part, writes);
    from += part;
    bytes -= part;
  }
}

/* What the user holds is nobody's bytes. */
static void touch_residency(unrolled *u, int32_t replica, int32_t residency, bool writes) {
  const planc_instr *acquired = residency == PLANC_USER ? NULL : u->acquired[residency];
  if (acquired) touch(u, replica, acquired->memory, acquired->address, acquired->bytes, writes);
}

static void touch_all(unrolled *u, int32_t replica, const planc_instr *it) {
  if (it->op == PLANC_INSTR_acquire) u->acquired[it->id] = it;
  if (it->op == PLANC_INSTR_exec) {
    const planc_instance *instance = &u->trace->instances[it->id];
    for (int32_t k = 0; k < instance->n_accesses; k++) {
      int32_t use = u->plan->uses[it->first_use + k];
      if (use >= 0) touch_residency(u, replica, use, u->trace->accesses[instance->first_access + k].write >= 0);
    }
    touch(u, replica, u->plan->streams[it->stream].on, it->address, it->bytes, true);
  } else if (it->op == PLANC_INSTR_copy) {
    for (int32_t of = 0; of < u->replicas; of++)
      if ((of != replica) == it->peers) touch_residency(u, of, it->aux, false);
    touch_residency(u, replica, it->id, true);
  }
}

static void unroll_section(unrolled *u, const planc_section *section, int32_t body) {
  for (int64_t k = 0; k < (int64_t)section->n * u->replicas; k++) {
    unroll_node *node = &u->nodes.data[u->nodes.len++];
    *node = (unroll_node){.instr = &section->instrs[k / u->replicas],
                          .body = body,
                          .replica = (int32_t)(k % u->replicas),
                          .first_touch = u->touches.len};
    touch_all(u, node->replica, node->instr);
    node->n_touches = u->touches.len - node->first_touch;
  }
}

void unroll(const planc_plan *plan, const planc_trace *trace, int32_t bodies, unrolled *out) {
  *out = (unrolled){.plan = plan, .trace = trace, .bodies = bodies, .replicas = planc_plan_replicas(plan)};
  int64_t n = out->replicas * ((int64_t)plan->prologue.n + (int64_t)bodies * plan->body.n + plan->epilogue.n);
  if (VEC_RESERVE(&out->nodes, n + 1)) ck_abort_msg("out of memory");
  out->acquired = filled(plan->n_residencies, sizeof *out->acquired, 0);
  out->words = n / 64 + 1;
  out->before = filled(n * out->words, sizeof *out->before, 0);
  unroll_section(out, &plan->prologue, -1);
  for (int32_t body = 0; body < bodies; body++) unroll_section(out, &plan->body, body);
  unroll_section(out, &plan->epilogue, bodies);
}

void unrolled_free(unrolled *u) {
  VEC_FREE(&u->nodes);
  VEC_FREE(&u->touches);
  free((void *)u->acquired);
  free(u->before);
}

/* --- Order -------------------------------------------------------------------------------------------------------- */

/* Node i starts after node j, and after whatever j started after. */
static void order(const unrolled *u, int64_t i, int64_t j) {
  if (j < 0) return;
  for (int64_t w = 0; w < u->words; w++) u->before[i * u->words + w] |= u->before[j * u->words + w];
  u->before[i * u->words + j / 64] |= UINT64_C(1) << (j % 64);
}

/* Whether the newest record of its event is the one that a wait means: with lag 1 it stands before its own body's. */
static bool means(const unrolled *u, int64_t wait, int64_t record) {
  const unroll_node *node = &u->nodes.data[wait];
  return record >= 0 && u->nodes.data[record].body == node->body - node->instr->lag;
}

int64_t unrolled_order(unrolled *u, const planc_instr *without) {
  int64_t missing = -1, n_streams = u->plan->n_streams, n_events = u->plan->n_events;
  /* By replica and then by stream: its newest node, -1 = none; by event: its newest record. */
  int64_t *newest = filled(u->replicas * n_streams, sizeof *newest, -1);
  int64_t *recorded = filled(u->replicas * n_events, sizeof *recorded, -1);
  memset(u->before, 0, (size_t)(u->nodes.len * u->words) * sizeof *u->before);
  for (int64_t i = 0; i < u->nodes.len; i++) {
    const planc_instr *it = u->nodes.data[i].instr;
    int32_t replica = u->nodes.data[i].replica;
    if (it == without || it->op == PLANC_INSTR_acquire || it->op == PLANC_INSTR_release) continue;
    order(u, i, newest[replica * n_streams + it->stream]);
    newest[replica * n_streams + it->stream] = i;
    if (it->op == PLANC_INSTR_record) recorded[replica * n_events + it->id] = i;
    for (int32_t of = 0; it->op == PLANC_INSTR_wait && of < u->replicas; of++) {
      if ((of != replica) != it->peers) continue;
      int64_t record = recorded[of * n_events + it->id];
      if (means(u, i, record)) {
        order(u, i, record);
      } else if (missing < 0) {
        missing = i;
      }
    }
  }
  free(newest);
  free(recorded);
  return missing;
}

static bool overlap(const unroll_touch *a, const unroll_touch *b) {
  return (a->writes || b->writes) && a->memory == b->memory && a->from < b->to && b->from < a->to;
}

static bool conflict(const unrolled *u, const unroll_node *x, const unroll_node *y) {
  for (int64_t i = x->first_touch; i < x->first_touch + x->n_touches; i++)
    for (int64_t j = y->first_touch; j < y->first_touch + y->n_touches; j++)
      if (overlap(&u->touches.data[i], &u->touches.data[j])) return true;
  return false;
}

bool unrolled_race(const unrolled *u, int64_t out_pair[2]) {
  for (int64_t i = 0; i < u->nodes.len; i++) {
    const unroll_node *node = &u->nodes.data[i];
    for (int64_t j = 0; node->n_touches > 0 && j < i; j++) {
      if (u->before[i * u->words + j / 64] >> (j % 64) & 1 || !conflict(u, &u->nodes.data[j], node)) continue;
      out_pair[0] = j;
      out_pair[1] = i;
      return true;
    }
  }
  return false;
}
