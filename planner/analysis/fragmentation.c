/* What of an arena is lost: best fit leaves free ranges, in its pages too; virtual memory loses the ends of last
 * chunks, and what is free in the chunks that data of at most one chunk shares. */
#include <assert.h>
#include <stdlib.h>

#include "plan/plan_trace.h"
#include "planc/analysis.h"
#include "planner/analysis/plan_live.h"
#include "util/ascending.h"
#include "util/math.h"

typedef struct free_piece {
  int64_t address, bytes;
  bool keeps_chunks; /* when it is released */
} free_piece;

/* What is open at a time. */
typedef struct level {
  int64_t bytes;                     /* asked for */
  int64_t n_own, own_bytes, own_end; /* pieces with chunks of their own: asked for; with the ends of last chunks */
  int64_t shared_bytes, n_shared;    /* the rest: asked for; chunks that hold any of it */
} level;

typedef struct following {
  const planc_plan *plan;
  const planc_trace *trace;
  planc_fragmentation *out;
  pl_arena arena;
  pl_acquired *acquired;
  const planc_memory *device; /* the first: all have one arena */
  int32_t memory;             /* the one that is followed */
  free_piece *open;           /* by residency; no bytes: not open */
  level now;
  int64_t between;         /* bytes asked for that lie between the boundary's buffers */
  int64_t n_chunks;        /* that data may share */
  int64_t *chunks, *users; /* in order of addresses; how many pieces each has now */
} following;

/* Sums of a piece and what is open already fit. */
static const int64_t MOST = INT64_MAX / 4;

static planc_status follow(following *f);
static planc_status list_chunks(following *f);
static bool is_on_gpu(const following *f, int32_t memory);
static planc_status follow_memory(following *f);
static int64_t chunk_of(const following *f);
static planc_status open_boundary(following *f);
static planc_status open_piece(following *f, free_piece it);
static void close_piece(following *f, int32_t residency);
static void add(following *f, free_piece it, int sign);
static planc_status beyond(void);
static void note(following *f);

planc_status planc_fragmentation_of(const planc_plan *plan, planc_fragmentation *out) {
  planc_trace *trace;
  *out = (planc_fragmentation){0};
  PLANC_TRY(pl_plan_expand(plan, &trace));
  following f = {.plan = plan, .trace = trace, .out = out};
  f.device = planc_plan_memory(plan, PLANC_MEMORY_DEVICE);
  planc_status status = follow(&f);
  pl_arena_free(&f.arena);
  planc_trace_free(trace);
  return status;
}

static planc_status follow(following *f) {
  const planc_plan *plan = f->plan;
  PLANC_TRY(pl_plan_check_names(plan, f->trace));
  PLANC_TRY(pl_plan_acquired(plan, &f->arena, &f->acquired));
  PLANC_TRY(PL_NEW(&f->arena, &f->open, plan->n_residencies));
  PLANC_TRY(list_chunks(f));
  for (f->memory = 0; f->memory < plan->n_memories; f->memory++) {
    if (!is_on_gpu(f, f->memory)) continue;
    for (int64_t c = 0; c < f->n_chunks; c++) f->users[c] = 0;
    PLANC_TRY(follow_memory(f));
  }
  planc_fragmentation *out = f->out;
  out->lost_bytes = f->device->arena_bytes > out->live_bytes ? f->device->arena_bytes - out->live_bytes : 0;
  out->bound_bytes = pl_mul_saturate(chunk_of(f), out->most_at_once);
  return NULL;
}

static planc_status follow_memory(following *f) {
  const planc_plan *plan = f->plan;
  f->now = (level){0};
  f->between = 0;
  PLANC_TRY(open_boundary(f));
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    free_piece it = {instr->address, instr->bytes, false};
    if (pl_memory_at(plan, f->acquired, instr) != f->memory) continue;
    if (instr->op == PLANC_INSTR_acquire) {
      f->open[instr->id] = it;
      PLANC_TRY(open_piece(f, it));
    } else if (instr->op == PLANC_INSTR_release) {
      close_piece(f, instr->id);
    } else if (instr->op == PLANC_INSTR_exec) {
      PLANC_TRY(open_piece(f, it));
      add(f, it, -1);
    }
  }
  return NULL;
}

static planc_status open_piece(following *f, free_piece it) {
  if (it.bytes > MOST || f->now.bytes > MOST - it.bytes || f->now.own_end > MOST) return beyond();
  add(f, it, 1);
  note(f);
  return NULL;
}

/* --- Shared chunks ------------------------------------------------------------------------------------------------ */

/* Chunks that data has of its own or shares; 0 = there are none. */
static int64_t chunk_of(const following *f) {
  return f->device->paged ? 0 : f->device->chunk_bytes;
}

/* The plan does not say which data shares chunks; the size decides, as it did there. */
static bool shares(const following *f, int64_t bytes) {
  return bytes <= chunk_of(f);
}

static bool is_on_gpu(const following *f, int32_t memory) {
  return memory >= 0 && f->plan->memories[memory].kind == PLANC_MEMORY_DEVICE;
}

/* The chunk of the piece's last byte. Caching never places a small piece across two chunks; other plans may. */
static int64_t last_chunk(const following *f, free_piece it) {
  return pl_add_saturate(it.address, it.bytes - 1) / f->device->chunk_bytes;
}

static planc_status list_chunks(following *f) {
  const planc_plan *plan = f->plan;
  int64_t n = 0;
  PLANC_TRY(PL_NEW(&f->arena, &f->chunks, 2 * (int64_t)plan->body.n));
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_acquire && instr->op != PLANC_INSTR_exec) continue;
    if (!is_on_gpu(f, pl_memory_at(plan, f->acquired, instr))) continue;
    if (instr->bytes <= 0 || !shares(f, instr->bytes)) continue;
    f->chunks[n++] = instr->address / f->device->chunk_bytes;
    f->chunks[n++] = last_chunk(f, (free_piece){instr->address, instr->bytes, false});
  }
  if (n > 0) qsort(f->chunks, (size_t)n, sizeof *f->chunks, pl_ascending);
  for (int64_t i = 0; i < n; i++) {
    if (i == 0 || f->chunks[i] != f->chunks[i - 1]) f->chunks[f->n_chunks++] = f->chunks[i];
  }
  return PL_NEW(&f->arena, &f->users, f->n_chunks);
}

/* `sign` more pieces in a chunk. */
static void use_chunk(following *f, int64_t chunk, int sign) {
  const int64_t *found = bsearch(&chunk, f->chunks, (size_t)f->n_chunks, sizeof chunk, pl_ascending);
  assert(found); /* all pieces of the body are listed */
  int64_t *users = &f->users[found - f->chunks];
  f->now.n_shared -= *users > 0;
  *users += sign;
  f->now.n_shared += *users > 0;
}

/* --- Levels ------------------------------------------------------------------------------------------------------- */

static void note(following *f) {
  const level *now = &f->now;
  planc_fragmentation *out = f->out;
  int64_t shared = pl_mul_saturate(now->n_shared, chunk_of(f)) - now->shared_bytes;
  if (now->bytes - f->between > out->live_bytes) out->live_bytes = now->bytes - f->between;
  if (now->own_end - now->own_bytes > out->inside_bytes) out->inside_bytes = now->own_end - now->own_bytes;
  if (shared > out->shared_bytes) out->shared_bytes = shared;
  if (now->n_own > out->most_at_once) out->most_at_once = now->n_own;
}

static void add(following *f, free_piece it, int sign) {
  level *now = &f->now;
  int64_t chunk_bytes = chunk_of(f);
  if (it.bytes <= 0) return;
  now->bytes += sign * it.bytes;
  if (shares(f, it.bytes)) {
    now->shared_bytes += sign * it.bytes;
    int64_t first = it.address / chunk_bytes, last = last_chunk(f, it);
    use_chunk(f, first, sign);
    if (last != first) use_chunk(f, last, sign);
  } else if (chunk_bytes > 0) {
    now->n_own += sign;
    now->own_bytes += sign * it.bytes;
    now->own_end += sign * pl_align_up(it.bytes, chunk_bytes);
  }
}

static planc_status beyond(void) {
  return planc_error(PLANC_INVALID_PLAN, "what is open at a time exceeds 64 bits");
}

/* In virtual memory the boundary is one block, and what lies between its buffers is asked for too. */
static planc_status open_boundary(following *f) {
  const planc_plan *plan = f->plan;
  int64_t end = 0, n = 0;
  level *now = &f->now;
  for (int32_t r = 0; r < plan->n_boundary; r++) {
    const planc_boundary *it = &plan->boundary[r];
    if (it->memory != f->memory) continue;
    n = 1;
    f->open[r] = (free_piece){it->address, f->trace->buffers[it->buffer].bytes, chunk_of(f) > 0};
    now->bytes = pl_add_saturate(now->bytes, f->open[r].bytes);
    int64_t behind = pl_add_saturate(it->address, f->open[r].bytes);
    if (behind > end) end = behind;
  }
  if (now->bytes > MOST || end > MOST) return beyond();
  if (chunk_of(f) > 0 && n > 0) {
    f->between = end > now->bytes ? end - now->bytes : 0;
    now->bytes += f->between;
    now->n_own = n;
    now->own_bytes = now->bytes;
    now->own_end = pl_align_up(end, f->device->chunk_bytes);
  }
  note(f);
  return NULL;
}

static void close_piece(following *f, int32_t residency) {
  free_piece *it = &f->open[residency];
  if (it->keeps_chunks) {
    f->now.bytes -= it->bytes;
    f->now.own_bytes -= it->bytes;
  } else {
    add(f, *it, -1);
  }
  *it = (free_piece){0};
}
