/* Which of an op's algorithms are worth measuring (measure.h), as far as its library tells without running any. */
#include "runtime/profile/measure.h"

typedef struct shortlist {
  const rt_variant *variants;
  int32_t count;
  bool kept[RT_MAX_VARIANTS], beaten[RT_MAX_VARIANTS];
} shortlist;

static bool is_beaten(const shortlist *s, int32_t v);
static void keep(shortlist *s, int32_t v, int32_t *room);
static int32_t first_of(const shortlist *s, bool (*before)(const rt_variant *, const rt_variant *),
                        bool (*counts)(const shortlist *, int32_t));
static bool needs_less(const rt_variant *a, const rt_variant *b);
static bool any(const shortlist *s, int32_t v);
static bool ranks_before(const rt_variant *a, const rt_variant *b);
static bool deterministic(const shortlist *s, int32_t v);
static bool left_and_unbeaten(const shortlist *s, int32_t v);
static bool left(const shortlist *s, int32_t v);

int32_t rt_shortlist(rt_variant *variants, int32_t count, int32_t most) {
  if (most <= 0 || count <= most) return count;
  shortlist s = {.variants = variants, .count = count};
  for (int32_t v = 0; v < count; v++) s.beaten[v] = is_beaten(&s, v);
  int32_t room = most, n = 0;
  keep(&s, first_of(&s, needs_less, any), &room);
  keep(&s, first_of(&s, ranks_before, deterministic), &room);
  keep(&s, first_of(&s, needs_less, deterministic), &room);
  while (room > 0) {
    int32_t next = first_of(&s, ranks_before, left_and_unbeaten);
    keep(&s, next >= 0 ? next : first_of(&s, ranks_before, left), &room);
  }
  for (int32_t v = 0; v < count; v++)
    if (s.kept[v]) variants[n++] = variants[v];
  return n;
}

static bool needs_less(const rt_variant *a, const rt_variant *b) {
  if (a->workspace_bytes != b->workspace_bytes) return a->workspace_bytes < b->workspace_bytes;
  return a->deterministic != b->deterministic ? a->deterministic : a->rank < b->rank;
}

static bool ranks_before(const rt_variant *a, const rt_variant *b) {
  if (a->rank != b->rank) return a->rank < b->rank;
  return a->deterministic != b->deterministic ? a->deterministic : a->workspace_bytes < b->workspace_bytes;
}

/* Another is expected to be faster and needs no more. */
static bool is_beaten(const shortlist *s, int32_t v) {
  for (int32_t u = 0; u < s->count; u++)
    if (ranks_before(&s->variants[u], &s->variants[v]) &&
        s->variants[u].workspace_bytes <= s->variants[v].workspace_bytes)
      return true;
  return false;
}

/* The first by `before` of those that `counts` admits; -1 if there is none. */
static int32_t first_of(const shortlist *s, bool (*before)(const rt_variant *, const rt_variant *),
                        bool (*counts)(const shortlist *, int32_t)) {
  int32_t first = -1;
  for (int32_t v = 0; v < s->count; v++)
    if (counts(s, v) && (first < 0 || before(&s->variants[v], &s->variants[first]))) first = v;
  return first;
}

static bool any(const shortlist *s, int32_t v) {
  return v < s->count;
}
static bool deterministic(const shortlist *s, int32_t v) {
  return s->variants[v].deterministic;
}
static bool left(const shortlist *s, int32_t v) {
  return !s->kept[v];
}
static bool left_and_unbeaten(const shortlist *s, int32_t v) {
  return !s->kept[v] && !s->beaten[v];
}

static void keep(shortlist *s, int32_t v, int32_t *room) {
  if (v < 0 || s->kept[v] || *room == 0) return;
  s->kept[v] = true;
  --*room;
}
