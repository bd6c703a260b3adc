/* The rules are those of the paper's public allocator: a free range of just the size; else the largest smaller one
 * grows, or where there are only larger ones the smallest of these comes apart for a new one. What a range lacks are
 * loose chunks, then such of the smallest range that has as many, then of the largest ones, then new chunks. */
#include "planner/memory/chunks.h"

enum { NONE = -1, WORD = 64 };

void pl_chunks_free(pl_chunks *chunks) {
  VEC_FREE(&chunks->ranges);
  VEC_FREE(&chunks->of);
  VEC_FREE(&chunks->sizes);
  VEC_FREE(&chunks->present);
  VEC_FREE(&chunks->loose);
}

int64_t pl_chunks_needed(const pl_chunks *chunks, int64_t bytes) {
  return bytes / chunks->chunk_bytes + (bytes % chunks->chunk_bytes > 0);
}

static int32_t take_free(pl_chunks *c, int64_t n);
static planc_status make_range(pl_chunks *c, int64_t n, int32_t *out);
static int64_t size_up_to(const pl_chunks *c, int64_t most);
static int64_t size_from(const pl_chunks *c, int64_t least);
static planc_status take_apart(pl_chunks *c, int64_t size, int64_t n);
static planc_status add_chunks(pl_chunks *c, int64_t n);
static planc_status put_free(pl_chunks *c, int32_t range);

planc_status pl_chunks_take(pl_chunks *chunks, int64_t bytes, int32_t *out_range, int64_t *out_address) {
  int64_t n = pl_chunks_needed(chunks, bytes);
  *out_range = NONE;
  if (chunks->most > 0 && n > chunks->most - chunks->n_used) return NULL;
  if (n < chunks->sizes.len && chunks->sizes.data[n].oldest != NONE) {
    *out_range = take_free(chunks, n);
  } else {
    PLANC_TRY(make_range(chunks, n, out_range));
  }
  chunks->n_used += n;
  *out_address = chunks->ranges.data[*out_range].first * chunks->chunk_bytes;
  return NULL;
}

/* A new range of `n` chunks. */
static planc_status make_range(pl_chunks *c, int64_t n, int32_t *out) {
  if (c->ranges.len == INT32_MAX) return planc_error(PLANC_INTERNAL, "too many ranges of virtual memory");
  pl_chunk_range range = {.first = c->of.len, .n = n, .next = NONE};
  int64_t smaller = size_up_to(c, n), larger = smaller > 0 ? 0 : size_from(c, n);
  if (smaller > 0) {
    const pl_chunk_range *grows = &c->ranges.data[take_free(c, smaller)];
    for (int64_t k = 0; k < grows->n; k++) VEC_PUSH(&c->of, c->of.data[grows->first + k]);
  }
  PLANC_TRY(larger > 0 ? take_apart(c, larger, n) : add_chunks(c, n - smaller));
  c->n_mapped += n - smaller;
  *out = (int32_t)c->ranges.len;
  VEC_PUSH(&c->ranges, range);
  return NULL;
}

/* Adds `n` chunks to the range that is being made: loose ones, such of free ranges, new ones. */
static planc_status add_chunks(pl_chunks *c, int64_t n) {
  for (; n > 0 && c->n_taken < c->loose.len; n--) VEC_PUSH(&c->of, c->loose.data[c->n_taken++]);
  while (n > 0) {
    int64_t size = size_from(c, n);
    if (size == 0) size = size_up_to(c, INT64_MAX);
    if (size == 0) break;
    int64_t some = size < n ? size : n;
    PLANC_TRY(take_apart(c, size, some));
    n -= some;
  }
  for (; n > 0; n--) VEC_PUSH(&c->of, c->n_chunks++);
  return NULL;
}

planc_status pl_chunks_give(pl_chunks *chunks, int32_t range) {
  chunks->n_used -= chunks->ranges.data[range].n;
  return put_free(chunks, range);
}

planc_status pl_chunks_map(const pl_chunks *chunks, pl_mappings *out) {
  for (int64_t k = 0; k < chunks->of.len; k++) {
    int64_t last = out->len - 1;
    if (last >= 0 && out->data[last].first + out->data[last].n == chunks->of.data[k]) {
      out->data[last].n++;
    } else {
      VEC_PUSH(out, ((planc_mapping){chunks->of.data[k], 1}));
    }
  }
  return NULL;
}

/* --- Free ranges by size ------------------------------------------------------------------------------------------ */

/* The largest size up to `most` of which there are free ranges; 0 = none. */
static int64_t size_up_to(const pl_chunks *c, int64_t most) {
  if (most >= c->sizes.len) most = c->sizes.len - 1;
  for (int64_t word = most / WORD; most > 0 && word >= 0; word--) {
    uint64_t bits = c->present.data[word];
    if (word == most / WORD) bits &= UINT64_MAX >> (WORD - 1 - most % WORD);
    if (bits) return word * WORD + WORD - 1 - __builtin_clzll(bits);
  }
  return 0;
}

/* The smallest size from `least` on of which there are free ranges; 0 = none. */
static int64_t size_from(const pl_chunks *c, int64_t least) {
  for (int64_t word = least / WORD; word < c->present.len; word++) {
    uint64_t bits = c->present.data[word];
    if (word == least / WORD) bits &= UINT64_MAX << least % WORD;
    if (bits) return word * WORD + __builtin_ctzll(bits);
  }
  return 0;
}

static planc_status put_free(pl_chunks *c, int32_t range) {
  int64_t n = c->ranges.data[range].n;
  while (c->sizes.len <= n) VEC_PUSH(&c->sizes, ((pl_chunk_queue){NONE, NONE}));
  while (c->present.len <= n / WORD) VEC_PUSH(&c->present, 0);
  pl_chunk_queue *size = &c->sizes.data[n];
  c->ranges.data[range].next = NONE;
  if (size->newest == NONE) {
    size->oldest = range;
    c->present.data[n / WORD] |= UINT64_C(1) << n % WORD;
  } else {
    c->ranges.data[size->newest].next = range;
  }
  size->newest = range;
  return NULL;
}

static int32_t take_free(pl_chunks *c, int64_t n) {
  pl_chunk_queue *size = &c->sizes.data[n];
  int32_t range = size->oldest;
  size->oldest = c->ranges.data[range].next;
  if (size->oldest == NONE) {
    size->newest = NONE;
    c->present.data[n / WORD] &= ~(UINT64_C(1) << n % WORD);
  }
  return range;
}

/* --- Ranges taken apart ------------------------------------------------------------------------------------------- */

/* Takes a free range apart: its first `n` chunks go to the range that is being made, the others are loose. */
static planc_status take_apart(pl_chunks *c, int64_t size, int64_t n) {
  const pl_chunk_range *range = &c->ranges.data[take_free(c, size)];
  for (int64_t k = 0; k < n; k++) VEC_PUSH(&c->of, c->of.data[range->first + k]);
  for (int64_t k = n; k < size; k++) VEC_PUSH(&c->loose, c->of.data[range->first + k]);
  c->n_unmapped += size;
  return NULL;
}
