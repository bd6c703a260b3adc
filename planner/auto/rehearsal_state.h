/* What is where in a rehearsal (rehearsal.h), for its own files. */
#ifndef PLANC_AUTO_REHEARSAL_STATE_H
#define PLANC_AUTO_REHEARSAL_STATE_H

#include <assert.h>

#include "planner/auto/rehearsal.h"
#include "util/math.h"

enum { NONE = -1 };

static inline int32_t number_of(const pl_rehearsal *r, int32_t buffer, int32_t version) {
  return r->gaps->first_version[buffer] + version;
}

static inline pl_stone *find_stone(const pl_rehearsal *r, int32_t buffer, int32_t version) {
  for (int32_t k = r->stone_of[buffer]; k != NONE; k = r->stones[k].is.below)
    if (r->stones[k].is.version == version) return &r->stones[k].is;
  return NULL;
}

/* The version that is on the device, leaving out stones; -1 = none. */
static inline int32_t resident_of(const pl_rehearsal *r, int32_t buffer) {
  return r->movers.moves[buffer] ? r->resident[buffer] : pl_movers_resting(&r->movers, buffer, r->position);
}

static inline bool is_resident(const pl_rehearsal *r, int32_t buffer, int32_t version) {
  return resident_of(r, buffer) == version || find_stone(r, buffer, version);
}

/* What other replicas send is there, too, although the user does not hold it. */
static inline bool is_on_host(const pl_rehearsal *r, int32_t buffer, int32_t version) {
  bool is_fed = version == 0 && r->gaps->trace->buffers[buffer].flags & PLANC_BUFFER_FED;
  return r->on_host[number_of(r, buffer, version)] || is_fed;
}

static inline void put_on_host(pl_rehearsal *r, int32_t buffer, int32_t version) {
  r->on_host[number_of(r, buffer, version)] = true;
  r->on_host_now += r->tables.bytes[buffer];
  r->host_bytes = pl_max(r->host_bytes, r->on_host_now);
}

/* The copy is there still, but nothing is expected to ask for it. */
static inline void forget_on_host(pl_rehearsal *r, int32_t buffer, int32_t version) {
  if (r->on_host[number_of(r, buffer, version)]) r->on_host_now -= r->tables.bytes[buffer];
}

static inline const planc_access *next_access(const pl_rehearsal *r, int32_t buffer) {
  const planc_order *order = r->gaps->order;
  assert(r->movers.moves[buffer]);
  return r->next[buffer] < order->first_use[buffer + 1] ? planc_order_access(order, r->next[buffer]) : NULL;
}

/* It is counted already. */
static inline void keep(pl_rehearsal *r, int32_t buffer, int32_t version) {
  assert(r->movers.moves[buffer]);
  if (r->resident[buffer] != NONE) r->works = false; /* no policy's ways lead there */
  r->resident[buffer] = version;
  r->opened[buffer] = r->position;
}

static inline void hold(pl_rehearsal *r, int32_t buffer, int32_t version) {
  keep(r, buffer, version);
  r->live += r->tables.bytes[buffer];
}

static inline void drop(pl_rehearsal *r, int32_t buffer) {
  if (r->resident[buffer] == NONE) return;
  r->resident[buffer] = NONE;
  r->live -= r->tables.bytes[buffer];
}

/* Comes from the host, or from the user: for the gap that it is in, or, where no use is ahead, for a recompute alone,
 * which waits for it. Returns whether it is for a gap. */
static inline bool come_from_host(pl_rehearsal *r, int32_t buffer, int32_t version) {
  const planc_access *next = next_access(r, buffer);
  int32_t gap = next && next->read == version ? r->gaps->of_use[r->next[buffer]] : NONE;
  const planc_buffer *it = &r->gaps->trace->buffers[buffer];
  if (gap != NONE)
    r->need[gap] = r->position;
  else if (!planc_user_holds(it, version))
    r->again_ns[r->position] += planc_link_ns(&r->gaps->walk->links[PLANC_ROUTE_H2D], it->bytes);
  return gap != NONE;
}

static inline void note_held(pl_rehearsal *r, int64_t workspace) {
  int64_t *held = &r->held[r->position];
  if (r->live + workspace > *held) *held = r->live + workspace;
}

/* Has what an instance reads computed again, as far as that is needed and the host does not have it. */
void pl_rehearsal_restore(pl_rehearsal *r, int32_t instance);

#endif
