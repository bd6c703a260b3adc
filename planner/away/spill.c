/* What of the host's contents is kept in storage (spill.h).
 *
 * Positions are gone through once. Where more lives on the host than may, the contents that are idle for the
 * longest leave it, and of several as idle the largest. */
#include "planner/away/spill.h"

#include <stdlib.h>
#include <string.h>

#include "util/heap.h"
#include "util/math.h"

/* Positions at which a content lives on the host and nothing asks for it. */
typedef struct pl_host_stretch {
  int64_t idle, bytes; /* for how long; across the end of the period it goes on at its beginning */
  int32_t content, first, last;
  int32_t read; /* which ends it; -1: it lasts to the end of the period */
} host_stretch;

static planc_status keep(pl_arena *arena, const pl_contents *contents, pl_spilling *s);
static int compare_first(const void *a, const void *b);
static void add_stretches(pl_spilling *s, int32_t k);
static void choose(pl_spilling *s, int64_t aim);
static pl_spill_cost least_cost(const pl_spilling *s);
static void swap_kept(pl_spilling *s);

planc_status pl_spilling_make(pl_arena *arena, const planc_schedule *schedule, const pl_memories *memories,
                              const planc_device *device, pl_contents *contents, pl_spilling *out) {
  int64_t most = contents->n;
  for (int32_t k = 0; k < contents->n; k++) most += contents->all[k].n_reads;
  *out = (pl_spilling){0};
  PLANC_TRY(pl_staging_make(arena, schedule, memories, device, contents, &out->staging));
  PLANC_TRY(PL_NEW(arena, &out->stretches, most));
  PLANC_TRY(PL_NEW(arena, &out->heap, most));
  PLANC_TRY(PL_NEW(arena, &out->change, (int64_t)out->staging.n_commands + 2));
  PLANC_TRY(keep(arena, contents, out));
  for (int32_t k = 0; k < contents->n; k++)
    if (pl_staging_is_of_host(&out->staging, k)) add_stretches(out, k);
  if (out->n_stretches > 0) qsort(out->stretches, (size_t)out->n_stretches, sizeof *out->stretches, compare_first);
  return NULL;
}

pl_spill_cost pl_spill(pl_spilling *s, int64_t host_bytes, int64_t room_bytes) {
  enum { PARTS = 4 };
  pl_spill_cost least = {0};
  for (int64_t part = 0; part < PARTS; part++) {
    choose(s, host_bytes - host_bytes / PARTS * part);
    pl_spill_cost cost = least_cost(s);
    if (part > 0 && !pl_spill_is_cheaper(cost, least)) continue;
    cost.ns = pl_staging_pass(&s->staging, room_bytes);
    if (part > 0 && !pl_spill_is_cheaper(cost, least)) continue;
    least = cost;
    swap_kept(s);
  }
  swap_kept(s);
  return least;
}

static planc_status keep(pl_arena *arena, const pl_contents *contents, pl_spilling *s) {
  PLANC_TRY(PL_NEW(arena, &s->kept_all, contents->n));
  PLANC_TRY(PL_NEW(arena, &s->kept_reads, s->staging.n_commands));
  memcpy(s->kept_all, contents->all, (size_t)contents->n * sizeof *contents->all);
  memcpy(s->kept_reads, contents->reads, (size_t)s->staging.n_commands * sizeof *contents->reads);
  return NULL;
}

static int compare_first(const void *a, const void *b) {
  const host_stretch *x = a, *y = b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return (x->content > y->content) - (x->content < y->content);
}

/* --- Idle times --------------------------------------------------------------------------------------------------- */

static int64_t idle_at_start(const pl_spilling *s, int32_t k);
static int64_t idle_at_end(const pl_spilling *s, int32_t k);
static void add_stretch(pl_spilling *s, int32_t k, int64_t idle, int32_t asked, int32_t last, int32_t read);

static int32_t last_asked(const pl_spilling *s, const pl_content *content) {
  return content->n_reads > 0 ? s->staging.contents->reads[content->first_read + content->n_reads - 1].command
                              : content->written;
}

static void add_stretches(pl_spilling *s, int32_t k) {
  const pl_content *content = &s->staging.contents->all[k];
  int32_t asked = content->written;
  for (int32_t r = content->first_read; r < content->first_read + content->n_reads; r++) {
    int32_t next = s->staging.contents->reads[r].command;
    int64_t idle = asked == PL_AT_BOUNDARY ? idle_at_start(s, k) + idle_at_end(s, content->twin)
                                           : s->staging.now[next] - s->staging.now[asked];
    add_stretch(s, k, idle, asked, next, r);
    asked = next;
  }
  if (content->until == PL_STAYS)
    add_stretch(s, k, idle_at_end(s, k) + idle_at_start(s, content->twin), asked, s->staging.n_commands + 1, -1);
}

static int64_t idle_at_start(const pl_spilling *s, int32_t k) {
  const pl_content *content = &s->staging.contents->all[k];
  if (content->written != PL_AT_BOUNDARY || content->n_reads == 0) return 0;
  return s->staging.now[s->staging.contents->reads[content->first_read].command];
}

/* How long nobody asks for a content from the last one who does to the end of the period, or from its beginning to the
 * first. */
static int64_t idle_at_end(const pl_spilling *s, int32_t k) {
  const pl_content *content = &s->staging.contents->all[k];
  int32_t last = last_asked(s, content);
  if (content->until != PL_STAYS) return 0;
  return s->staging.now[s->staging.n_commands] - s->staging.now[last == PL_AT_BOUNDARY ? 0 : last];
}

static void add_stretch(pl_spilling *s, int32_t k, int64_t idle, int32_t asked, int32_t last, int32_t read) {
  int32_t first = asked == PL_AT_BOUNDARY ? 0 : asked + 2;
  if (first <= last)
    s->stretches[s->n_stretches++] = (host_stretch){idle, pl_staging_bytes(&s->staging, k), k, first, last, read};
}

/* --- A heap of stretches ------------------------------------------------------------------------------------------ */

static bool goes_before(const pl_spilling *s, int32_t a, int32_t b) {
  const host_stretch *x = &s->stretches[a], *y = &s->stretches[b];
  if (x->idle != y->idle) return x->idle > y->idle;
  return x->bytes != y->bytes ? x->bytes > y->bytes : a < b;
}

PL_HEAP(stretches, int32_t, pl_spilling, goes_before)

static void push(pl_spilling *s, int32_t g) {
  s->heap[s->n_heap++] = g;
  stretches_rise(s, s->heap, s->n_heap);
}

static int32_t pop(pl_spilling *s) {
  int32_t top = s->heap[0];
  s->heap[0] = s->heap[--s->n_heap];
  stretches_sink(s, s->heap, s->n_heap);
  return top;
}

/* --- Choosing ----------------------------------------------------------------------------------------------------- */

static void change(pl_spilling *s, int32_t position, int64_t bytes);
static void drop_stretch(pl_spilling *s, const host_stretch *it);
static void store(pl_spilling *s, int32_t k);
static void drop_before(pl_spilling *s, int32_t k, int32_t r);
static void drop(pl_spilling *s, int32_t k, int32_t asked, int32_t next);

/* Stores contents so that `aim` bytes live on the host at any position, where that can be had. */
static void choose(pl_spilling *s, int64_t aim) {
  int32_t g = 0;
  s->n_heap = 0;
  s->position = -1;
  s->live = 0;
  for (int32_t p = 0; p < s->staging.n_commands + 2; p++) s->change[p] = 0;
  for (int32_t k = 0; k < s->staging.contents->n; k++) {
    pl_content *content = &s->staging.contents->all[k];
    int64_t bytes = pl_staging_bytes(&s->staging, k);
    if (!pl_staging_is_of_host(&s->staging, k)) continue;
    content->lies_in = content->memory;
    change(s, content->written == PL_AT_BOUNDARY ? 0 : content->written + 1, bytes);
    if (content->until != PL_STAYS) change(s, content->until == PL_AT_BOUNDARY ? 1 : content->until + 2, -bytes);
    for (int32_t r = 0; r < content->n_reads; r++) s->staging.contents->reads[content->first_read + r].loaded = false;
  }
  for (int32_t p = 0; p < s->staging.n_commands + 2; p++) {
    s->position = p;
    s->live += s->change[p];
    for (; g < s->n_stretches && s->stretches[g].first <= p; g++) push(s, g);
    while (s->live > aim && s->n_heap > 0) {
      int32_t top = pop(s);
      if (s->stretches[top].last >= p) drop_stretch(s, &s->stretches[top]);
    }
  }
}

/* From this position on `bytes` more live on the host. */
static void change(pl_spilling *s, int32_t position, int64_t bytes) {
  if (position <= s->position) {
    s->live += bytes;
  } else {
    s->change[position] += bytes;
  }
}

/* A buffer of the boundary is stored at both ends of the period. */
static void drop_stretch(pl_spilling *s, const host_stretch *it) {
  store(s, it->content);
  store(s, s->staging.contents->all[it->content].twin);
  if (it->read >= 0) drop_before(s, it->content, it->read);
}

/* What is stored when the period begins or ends is not on the host then. */
static void store(pl_spilling *s, int32_t k) {
  pl_content *content = &s->staging.contents->all[k];
  if (pl_is_stored(content)) return;
  content->lies_in = s->staging.storage;
  if (content->written == PL_AT_BOUNDARY && content->n_reads > 0) drop_before(s, k, content->first_read);
  if (content->until == PL_STAYS) drop(s, k, last_asked(s, content), -1);
  if (content->until == PL_AT_BOUNDARY) drop(s, k, PL_AT_BOUNDARY, 0);
}

static void drop_before(pl_spilling *s, int32_t k, int32_t r) {
  const pl_content *content = &s->staging.contents->all[k];
  pl_read *read = &s->staging.contents->reads[r];
  if (read->loaded) return;
  read->loaded = true;
  drop(s, k, r > content->first_read ? read[-1].command : content->written, read->command);
}

/* From behind command `asked` to command `next`, which asks again: -1 = none in this period. */
static void drop(pl_spilling *s, int32_t k, int32_t asked, int32_t next) {
  int64_t bytes = pl_staging_bytes(&s->staging, k);
  change(s, asked == PL_AT_BOUNDARY ? 0 : asked + 2, -bytes);
  if (next >= 0) change(s, next + 1, bytes);
}

/* --- Comparing choices -------------------------------------------------------------------------------------------- */

/* What the choice costs at least: what it copies, and the time of that, a direction at a time. */
static pl_spill_cost least_cost(const pl_spilling *s) {
  const pl_contents *contents = s->staging.contents;
  int64_t stores = 0, loads = 0, sum = 0, all = s->staging.now[s->staging.n_commands];
  for (int32_t k = 0; k < contents->n; k++) {
    const pl_content *content = &contents->all[k];
    if (!pl_is_stored(content)) continue;
    int64_t bytes = pl_staging_bytes(&s->staging, k);
    if (content->written != PL_AT_BOUNDARY) {
      sum = pl_add_saturate(sum, bytes);
      stores = pl_add_saturate(stores, pl_staging_copy_ns(&s->staging, &s->staging.stores, k));
    }
    for (int32_t r = 0; r < content->n_reads; r++) {
      if (!contents->reads[content->first_read + r].loaded) continue;
      sum = pl_add_saturate(sum, bytes);
      loads = pl_add_saturate(loads, pl_staging_copy_ns(&s->staging, &s->staging.loads, k));
    }
  }
  int64_t waits = stores > all ? stores - all : 0;
  return (pl_spill_cost){pl_add_saturate(waits, loads > all ? loads : all), sum};
}

/* The choice in the contents for the one that is kept. */
static void swap_kept(pl_spilling *s) {
  pl_contents *contents = s->staging.contents;
  pl_content *all = contents->all;
  pl_read *reads = contents->reads;
  contents->all = s->kept_all;
  contents->reads = s->kept_reads;
  s->kept_all = all;
  s->kept_reads = reads;
}
