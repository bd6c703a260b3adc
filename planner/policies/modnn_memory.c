/* moDNN's offloading (IV-B1): finding contiguous segments to clear, and clearing them. */
#include "planc/schedule.h"
#include "planner/choose/ways_back.h"
#include "planner/policies/modnn.h"
#include "util/math.h"

int64_t modnn_bytes(const modnn *m, int32_t buffer) {
  int64_t bytes = m->trace->buffers[buffer].bytes;
  return pl_align_up(bytes > 0 ? bytes : 1, PLANC_ALIGNMENT);
}

/* The next access, or NULL when there is none. */
static const planc_access *next_access(const modnn *m, int32_t buffer) {
  const planc_buffer *of_trace = &m->trace->buffers[buffer];
  int32_t next = m->buffers[buffer].next;
  if (next >= of_trace->first_access + of_trace->n_accesses) return NULL;
  return &m->trace->accesses[m->trace->by_buffer[next]];
}

int32_t modnn_next_use(const modnn *m, int32_t buffer) {
  const planc_access *access = next_access(m, buffer);
  return access ? access->instance : INT32_MAX;
}

bool modnn_needed(const modnn *m, int32_t buffer) {
  const planc_access *access = next_access(m, buffer);
  return access && access->read >= 0;
}

/* Looking at all schemes is quadratic over an iteration: on 100,000 ops it took 19 s where this bound takes under one.
 * Networks of hundreds of layers have fewer segments than this and are searched whole. */
enum { MAX_SCHEMES = 128 };

static bool may_leave(const modnn *m, int32_t buffer, int32_t horizon);
static modnn_scheme scheme_from(const modnn *m, int32_t first, int64_t bytes, int32_t horizon,
                                const modnn_scheme *best);
static bool better(const modnn *m, const modnn_scheme *a, const modnn_scheme *b);
static bool must_transfer(const modnn *m, int32_t buffer);
static int64_t offload_end(const modnn *m, int32_t buffer, int64_t engine_free);
static int64_t reload_delay(const modnn *m, int32_t buffer);

modnn_scheme modnn_find_scheme(const modnn *m, int64_t bytes, int32_t horizon) {
  const pl_segment *segments = m->memory.segments.data;
  modnn_scheme best = {.first = -1};
  /* Once around the memory, from where the last search has left off. */
  int32_t start = m->searched < 0 ? -1 : m->buffers[m->searched].segment;
  if (start < 0) start = m->memory.first;
  int32_t looked_at = 0, i = start;
  do {
    int32_t buffer = segments[i].owner;
    if (buffer == PL_NO_OWNER || may_leave(m, buffer, horizon)) {
      modnn_scheme scheme = scheme_from(m, i, bytes, horizon, &best);
      if (scheme.first >= 0 && better(m, &scheme, &best)) best = scheme;
      if (best.first >= 0 && ((best.moved == 0 && best.end == m->now) || ++looked_at >= MAX_SCHEMES)) break;
    }
    i = segments[i].next < 0 ? m->memory.first : segments[i].next;
  } while (i != start);
  return best;
}

/* The scheme that starts at `first`; none when it runs into a buffer that must stay or is worse than `best`. */
static modnn_scheme scheme_from(const modnn *m, int32_t first, int64_t bytes, int32_t horizon,
                                const modnn_scheme *best) {
  const pl_segment *segments = m->memory.segments.data;
  modnn_scheme scheme = {.first = first, .last = -1, .end = m->now};
  int64_t engine_free = m->out_free, found = 0, late = 0, done = m->now;
  for (int32_t i = first; i >= 0; i = segments[i].next) {
    int32_t buffer = segments[i].owner;
    if (buffer != PL_NO_OWNER) {
      if (!may_leave(m, buffer, horizon)) break;
      if (must_transfer(m, buffer)) {
        engine_free = offload_end(m, buffer, engine_free);
        if (engine_free > done) done = engine_free;
        scheme.moved += m->trace->buffers[buffer].bytes;
      }
      late = pl_add_saturate(late, reload_delay(m, buffer));
      scheme.end = pl_add_saturate(done, late);
      if (best->first >= 0 && (scheme.end > best->end || (scheme.end == best->end && scheme.moved > best->moved)))
        break;
    }
    found += segments[i].bytes;
    if (found >= bytes) {
      scheme.last = i;
      return scheme;
    }
  }
  scheme.first = -1;
  return scheme;
}

planc_status modnn_drop(modnn *m, int32_t buffer) {
  modnn_buffer *b = &m->buffers[buffer];
  PLANC_TRY(pl_memory_list_release(&m->memory, b->segment, NULL));
  b->segment = -1;
  b->filled = false;
  VEC_PUSH(&m->decisions, ((modnn_decision){.kind = MODNN_RELEASE, .subject = buffer}));
  return NULL;
}

static bool must_transfer(const modnn *m, int32_t buffer) {
  return m->buffers[buffer].filled && !m->buffers[buffer].on_host && modnn_needed(m, buffer);
}

/* When a transfer to the host that is next in line ends. */
static int64_t offload_end(const modnn *m, int32_t buffer, int64_t engine_free) {
  int64_t start = engine_free > m->buffers[buffer].ready ? engine_free : m->buffers[buffer].ready;
  return pl_add_saturate(start, pl_offload_ns(m->device->links, m->trace, buffer));
}

/* How late the buffer would be for its next use if it left now: a delay to a future instance (IV-B1), also where the
 * host has a copy and leaving itself is free. */
static int64_t reload_delay(const modnn *m, int32_t buffer) {
  if (!m->buffers[buffer].filled || !modnn_needed(m, buffer)) return 0;
  int64_t start = m->now > m->in_free ? m->now : m->in_free;
  int64_t back = pl_add_saturate(start, pl_fetch_ns(m->device->links, m->trace, buffer));
  int64_t use = pl_add_saturate(m->now, m->earliest[modnn_next_use(m, buffer)] - m->earliest[m->instance]);
  return back > use ? back - use : 0;
}

/* Criteria (a) and (b). */
static bool may_leave(const modnn *m, int32_t buffer, int32_t horizon) {
  return buffer >= 0 && !m->buffers[buffer].stays && m->buffers[buffer].used && modnn_next_use(m, buffer) > horizon;
}

/* Less delay, then fewer bytes moved, then the lower address. */
static bool better(const modnn *m, const modnn_scheme *a, const modnn_scheme *b) {
  const pl_segment *segments = m->memory.segments.data;
  if (b->first < 0) return true;
  if (a->end != b->end) return a->end < b->end;
  if (a->moved != b->moved) return a->moved < b->moved;
  return segments[a->first].address < segments[b->first].address;
}

/* Offloads a buffer if the host lacks its content and takes it off the device; raises *end to the transfer's end. */
static planc_status evict(modnn *m, int32_t buffer, int64_t *end) {
  modnn_buffer *b = &m->buffers[buffer];
  if (must_transfer(m, buffer)) {
    m->out_free = offload_end(m, buffer, m->out_free);
    if (m->out_free > *end) *end = m->out_free;
    if (b->made > m->last_anchor) m->last_anchor = b->made;
    VEC_PUSH(&m->offloads, ((modnn_offload){.buffer = buffer, .after = m->last_anchor}));
    b->on_host = true;
  }
  bool needed = b->filled && modnn_needed(m, buffer);
  PLANC_TRY(modnn_drop(m, buffer));
  return needed ? modnn_want(m, buffer, modnn_next_use(m, buffer)) : NULL;
}

planc_status modnn_note_scheme(modnn *m, const modnn_scheme *scheme) {
  m->leaving.len = 0;
  for (int32_t i = scheme->first;; i = m->memory.segments.data[i].next) {
    int32_t buffer = m->memory.segments.data[i].owner;
    if (buffer != PL_NO_OWNER) VEC_PUSH(&m->leaving, buffer);
    if (i == scheme->last) return NULL;
  }
}

static planc_status vacate(modnn *m, int64_t bytes, int32_t horizon, int32_t *out_segment, int64_t *out_when);
static void reach(modnn *m, int64_t address, int64_t bytes);
static int64_t workspace_address(const modnn *m, const pl_segment *at, int64_t bytes);

planc_status modnn_allocate(modnn *m, int32_t buffer, int32_t horizon, int64_t *out_when, bool *out_found) {
  int32_t segment;
  PLANC_TRY(vacate(m, modnn_bytes(m, buffer), horizon, &segment, out_when));
  *out_found = segment >= 0;
  if (segment < 0) return NULL;
  int64_t address = m->memory.segments.data[segment].address;
  modnn_buffer *b = &m->buffers[buffer];
  m->searched = buffer;
  reach(m, address, modnn_bytes(m, buffer));
  PLANC_TRY(pl_memory_list_take(&m->memory, segment, address, modnn_bytes(m, buffer), buffer, &b->segment));
  VEC_PUSH(&m->decisions, ((modnn_decision){.kind = MODNN_ACQUIRE, .subject = buffer, .address = address}));
  return NULL;
}

planc_status modnn_allocate_workspace(modnn *m, int64_t bytes, int32_t horizon, int64_t *out_address, int64_t *out_when,
                                      bool *out_found) {
  int32_t segment, workspace = m->trace->n_buffers;
  PLANC_TRY(vacate(m, bytes, horizon, &segment, out_when));
  *out_found = segment >= 0;
  if (segment < 0) return NULL;
  *out_address = workspace_address(m, &m->memory.segments.data[segment], pl_align_up(bytes, PLANC_ALIGNMENT));
  reach(m, *out_address, bytes);
  return pl_memory_list_take(&m->memory, segment, *out_address, bytes, workspace, &m->buffers[workspace].segment);
}

planc_status modnn_free_workspace(modnn *m) {
  modnn_buffer *workspace = &m->buffers[m->trace->n_buffers];
  PLANC_TRY(pl_memory_list_release(&m->memory, workspace->segment, NULL));
  workspace->segment = -1;
  return NULL;
}

planc_status modnn_defragment(modnn *m, int64_t *out_when) {
  *out_when = m->now;
  m->leaving.len = 0;
  for (int32_t i = m->memory.first; i >= 0; i = m->memory.segments.data[i].next) {
    int32_t buffer = m->memory.segments.data[i].owner;
    if (buffer != PL_NO_OWNER && !m->buffers[buffer].stays) VEC_PUSH(&m->leaving, buffer);
  }
  for (int64_t i = 0; i < m->leaving.len; i++) PLANC_TRY(evict(m, m->leaving.data[i], out_when));
  return NULL;
}

/* A free segment of at least `bytes`, offloading where it must; -1 when there is none. */
static planc_status vacate(modnn *m, int64_t bytes, int32_t horizon, int32_t *out_segment, int64_t *out_when) {
  *out_when = m->now;
  *out_segment = pl_memory_list_best_fit(&m->memory, bytes);
  if (*out_segment >= 0) return NULL;
  /* What the very next instance uses would have to come straight back: it leaves only if nothing else can. */
  modnn_scheme scheme = modnn_find_scheme(m, bytes, horizon < INT32_MAX ? horizon + 1 : horizon);
  if (scheme.first < 0) scheme = modnn_find_scheme(m, bytes, horizon);
  if (scheme.first < 0) return NULL;
  PLANC_TRY(modnn_note_scheme(m, &scheme));
  for (int64_t i = 0; i < m->leaving.len; i++) PLANC_TRY(evict(m, m->leaving.data[i], out_when));
  *out_segment = pl_memory_list_best_fit(&m->memory, bytes);
  return NULL;
}

static void reach(modnn *m, int64_t address, int64_t bytes) {
  if (address + bytes > m->reached) m->reached = address + bytes;
}

/* At the segment's end: what is prefetched beside it goes to the beginning, and nothing free stays between the two. But
 * no higher than anything has been: a workspace is no reason to use more memory. */
static int64_t workspace_address(const modnn *m, const pl_segment *at, int64_t bytes) {
  int64_t end = at->address + at->bytes;
  if (m->reached < end) end = m->reached;
  return end - bytes > at->address ? (end - bytes) / PLANC_ALIGNMENT * PLANC_ALIGNMENT : at->address;
}
