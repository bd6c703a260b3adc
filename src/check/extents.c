/* Byte intervals as ranks (extents.h). */
#include "check/extents.h"

#include <stdlib.h>
#include <string.h>

#include "plan/layout.h"
#include "plan/mapping.h"
#include "util/vec.h"

/* One end of an instruction's interval. A key is the memory's number above the address, so that arenas do not mix. */
typedef struct interval_end {
  uint64_t key;
  int64_t owner; /* extent * 2, plus 1 for the upper end */
} interval_end;

enum { KEY_SHIFT = 54, DIGIT_BITS = 11, N_DIGITS = 1 << DIGIT_BITS };

/* Where a place's extents begin among all. */
typedef struct first_extents {
  int64_t ends, inner;
} first_extents;

/* While the ends are being collected. */
typedef struct collecting_extents {
  const planc_plan *plan;
  /* By memory. */
  pl_translation *translations;
  int64_t *ranges; /* of addresses */
  int64_t *mapped; /* the extent of its first mapping, -1 = they have none yet */

  int64_t n_pieces; /* of all places */
  VEC(interval_end) ends;
} collecting_extents;

static planc_status make(collecting_extents *c, pl_arena *arena, pl_extents *out);
static planc_status describe_memories(collecting_extents *c, pl_arena *arena);
static int32_t memory_of(const planc_plan *plan, const planc_instr *instr);
static planc_status add_interval(collecting_extents *c, int32_t in, int64_t address, int64_t bytes, first_extents *at,
                                 pl_interval_place *out);
static planc_status rank_ends(collecting_extents *c, pl_extent *extents, pl_extents *out);

planc_status pl_extents_make(const planc_plan *plan, pl_arena *arena, pl_extents *out) {
  collecting_extents c = {.plan = plan};
  *out = (pl_extents){0};
  planc_status status = make(&c, arena, out);
  VEC_FREE(&c.ends);
  return status;
}

static planc_status make(collecting_extents *c, pl_arena *arena, pl_extents *out) {
  const planc_plan *plan = c->plan;
  int64_t n_instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n;
  pl_extent *extents;
  first_extents *at;
  PLANC_TRY(describe_memories(c, arena));
  PLANC_TRY(PL_NEW(arena, &at, n_instrs));
  PLANC_TRY(PL_NEW(arena, &out->of, n_instrs));
  for (int64_t i = 0; i < n_instrs; i++) {
    const planc_instr *instr = pl_plan_instr_at(plan, i);
    PLANC_TRY(add_interval(c, memory_of(plan, instr), instr->address, instr->bytes, &at[i], &out->of[i]));
  }
  PLANC_TRY(PL_NEW(arena, &extents, c->ends.len / 2));
  for (int64_t i = 0; i < n_instrs; i++) {
    out->of[i].ends = &extents[at[i].ends];
    out->of[i].inner = &extents[at[i].inner];
  }
  return rank_ends(c, extents, out);
}

static planc_status describe_memories(collecting_extents *c, pl_arena *arena) {
  const planc_plan *plan = c->plan;
  PLANC_TRY(PL_NEW(arena, &c->translations, plan->n_memories));
  PLANC_TRY(PL_NEW(arena, &c->ranges, plan->n_memories));
  PLANC_TRY(PL_NEW(arena, &c->mapped, plan->n_memories));
  for (int32_t m = 0; m < plan->n_memories; m++) {
    const planc_memory *memory = &plan->memories[m];
    c->ranges[m] = pl_memory_range(plan, m);
    c->mapped[m] = -1;
    PLANC_TRY(pl_translation_make(memory->chunk_bytes, &plan->mappings[memory->first_mapping], memory->n_mappings,
                                  arena, &c->translations[m]));
  }
  return NULL;
}

/* The interval's memory, -1 where the instruction names no interval. */
static int32_t memory_of(const planc_plan *plan, const planc_instr *instr) {
  int32_t memory = -1;
  if (instr->op == PLANC_INSTR_acquire) memory = instr->memory;
  if (instr->op == PLANC_INSTR_exec && instr->stream >= 0 && instr->stream < plan->n_streams &&
      plan->streams[instr->stream].kind == PLANC_STREAM_KIND_compute)
    memory = plan->streams[instr->stream].on;
  return memory >= 0 && memory < plan->n_memories ? memory : -1;
}

/* --- Intervals ---------------------------------------------------------------------------------------------------- */

static planc_status add_mapped(collecting_extents *c, int32_t in, int64_t address, int64_t bytes, first_extents *at,
                               pl_interval_place *out);
static planc_status add_mappings(collecting_extents *c, int32_t in);
static pl_piece whole_mapping(const pl_translation *t, int32_t mapping);
static planc_status add_ends(collecting_extents *c, int32_t in, pl_piece piece);

/* The ends of the stretches of an interval of memory `in`. */
static planc_status add_interval(collecting_extents *c, int32_t in, int64_t address, int64_t bytes, first_extents *at,
                                 pl_interval_place *out) {
  if (in < 0 || address < 0 || bytes <= 0 || address > c->ranges[in] - bytes) return NULL;
  if (c->translations[in].n > 0) return add_mapped(c, in, address, bytes, at, out);
  at->ends = c->ends.len / 2;
  out->n = 1;
  out->end = address + bytes;
  return add_ends(c, in, (pl_piece){address, bytes});
}

/* An interval that several mappings hold. */
static planc_status add_mapped(collecting_extents *c, int32_t in, int64_t address, int64_t bytes, first_extents *at,
                               pl_interval_place *out) {
  enum { MAX_PIECES = 1 << 24 }; /* the checker opens each, so a long plan of many mappings would take their product */
  const pl_translation *t = &c->translations[in];
  int32_t first = pl_translation_find(t, address), last = pl_translation_find(t, address + bytes - 1);
  int64_t head = t->starts[first + 1] - address;
  if (last > first + 1) {
    PLANC_TRY(add_mappings(c, in));
    at->inner = c->mapped[in] + first + 1;
  }
  at->ends = c->ends.len / 2;
  out->n = last - first + 1;
  c->n_pieces += out->n;
  if (c->n_pieces > MAX_PIECES) {
    return planc_error(PLANC_INVALID_PLAN,
                       "residencies and workspaces lie in more than %d pieces of memory: it needs larger chunks",
                       MAX_PIECES);
  }
  for (int32_t m = first; m <= last; m++) {
    pl_piece piece = m == first  ? pl_translate(t, address, head < bytes ? head : bytes)
                     : m == last ? pl_translate(t, t->starts[m], address + bytes - t->starts[m])
                                 : whole_mapping(t, m);
    if (piece.address + piece.bytes > out->end) out->end = piece.address + piece.bytes;
    if (m == first || m == last) PLANC_TRY(add_ends(c, in, piece));
  }
  return NULL;
}

/* The mappings of memory `in`, each an extent. */
static planc_status add_mappings(collecting_extents *c, int32_t in) {
  const pl_translation *t = &c->translations[in];
  if (c->mapped[in] >= 0) return NULL;
  c->mapped[in] = c->ends.len / 2;
  for (int32_t m = 0; m < t->n; m++) PLANC_TRY(add_ends(c, in, whole_mapping(t, m)));
  return NULL;
}

static pl_piece whole_mapping(const pl_translation *t, int32_t mapping) {
  return pl_translate(t, t->starts[mapping], t->starts[mapping + 1] - t->starts[mapping]);
}

static planc_status add_ends(collecting_extents *c, int32_t in, pl_piece piece) {
  uint64_t key = (uint64_t)in << KEY_SHIFT | (uint64_t)piece.address;
  int64_t owner = c->ends.len;
  VEC_PUSH(&c->ends, ((interval_end){key, owner}));
  VEC_PUSH(&c->ends, ((interval_end){key + (uint64_t)piece.bytes, owner + 1}));
  return NULL;
}

/* --- Ranks -------------------------------------------------------------------------------------------------------- */

static void sort_ends(interval_end *ends, interval_end *spare, int64_t n);

/* Numbers the ends in order; `extents` has one for every two of them. */
static planc_status rank_ends(collecting_extents *c, pl_extent *extents, pl_extents *out) {
  interval_end *ends = c->ends.data, *spare = malloc(((size_t)c->ends.len + 1) * sizeof *spare);
  if (!spare) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  sort_ends(ends, spare, c->ends.len);
  free(spare);
  for (int64_t i = 0, rank = -1; i < c->ends.len; i++) {
    if (i == 0 || ends[i].key != ends[i - 1].key) rank++;
    pl_extent *extent = &extents[ends[i].owner / 2];
    *(ends[i].owner % 2 ? &extent->hi : &extent->lo) = (int32_t)rank;
    out->n_ranks = (int32_t)rank + 1;
  }
  return NULL;
}

/* Sorts by key, a digit at a time from the lowest; digits that all keys share cost a pass of counting only. */
static void sort_ends(interval_end *ends, interval_end *spare, int64_t n) {
  interval_end *from = ends, *to = spare;
  for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
    int64_t counts[N_DIGITS] = {0};
    for (int64_t i = 0; i < n; i++) counts[from[i].key >> shift & (N_DIGITS - 1)]++;
    if (n == 0 || counts[from[0].key >> shift & (N_DIGITS - 1)] == n) continue;
    int64_t before = 0;
    for (int d = 0; d < N_DIGITS; d++) {
      int64_t count = counts[d];
      counts[d] = before;
      before += count;
    }
    for (int64_t i = 0; i < n; i++) to[counts[from[i].key >> shift & (N_DIGITS - 1)]++] = from[i];
    interval_end *other = from;
    from = to;
    to = other;
  }
  if (from != ends) memcpy(ends, from, (size_t)n * sizeof *ends);
}
