/* moDNN's prefetching (IV-B2): when to start (Eq. 4, with the backlog of the copy engine) and whether it is of use. */
#include "planc/schedule.h"
#include "planner/choose/ways_back.h"
#include "planner/policies/modnn.h"
#include "util/math.h"

static bool is_too_far(const modnn *m, int32_t instance, int32_t wanting);
static planc_status is_useful(modnn *m, int32_t instance, int32_t wanting, bool *out_useful);
static planc_status prefetch_for(modnn *m, int32_t wanting, bool *out_done);
static bool missing(const modnn *m, const planc_access *access);
static planc_status play_instance(modnn *m, int32_t instance, int32_t horizon, bool *out_found);
static planc_status undo(modnn *m);
static planc_status play_allocate(modnn *m, int32_t buffer, int32_t horizon, bool *out_found);
static planc_status play_release(modnn *m, int32_t buffer);

planc_status modnn_prefetch(modnn *m, int32_t instance, int64_t run_ns) {
  bool go_on = true;
  while (go_on) {
    int64_t transfer_ns;
    int32_t wanting = modnn_next_wanting(m, &transfer_ns);
    if (wanting < 0 || !modnn_must_start(m, instance, run_ns, wanting, transfer_ns)) return NULL;
    if (is_too_far(m, instance, wanting)) return NULL;
    PLANC_TRY(is_useful(m, instance, wanting, &go_on));
    if (go_on) PLANC_TRY(prefetch_for(m, wanting, &go_on));
  }
  return NULL;
}

/* Starts the transfers of what `wanting` misses; *out_done is false when there was no memory for all of it. */
static planc_status prefetch_for(modnn *m, int32_t wanting, bool *out_done) {
  const planc_instance *in = &m->trace->instances[wanting];
  *out_done = true;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &m->trace->accesses[a];
    if (!missing(m, access)) continue;
    int64_t when;
    PLANC_TRY(modnn_allocate(m, access->buffer, wanting, &when, out_done));
    if (!*out_done) return NULL;
    PLANC_TRY(modnn_fetch(m, access->buffer, when));
  }
  return NULL;
}

planc_status modnn_fetch(modnn *m, int32_t buffer, int64_t when) {
  modnn_buffer *b = &m->buffers[buffer];
  int64_t start = when > m->in_free ? when : m->in_free;
  if (b->ready > start) start = b->ready;
  m->in_free = pl_add_saturate(start, pl_fetch_ns(m->device->links, m->trace, buffer));
  b->ready = m->in_free;
  b->filled = true;
  b->used = false;
  int32_t version = m->trace->accesses[m->trace->by_buffer[b->next]].read;
  VEC_PUSH(&m->decisions, ((modnn_decision){.kind = MODNN_PREFETCH, .subject = buffer, .choice = version}));
  return NULL;
}

/* --- When to start (Eq. 4) ---------------------------------------------------------------------------------------- */

int32_t modnn_next_wanting(modnn *m, int64_t *out_transfer_ns) {
  *out_transfer_ns = 0;
  /* Entries of buffers that have been brought back since are left in the heap until they come up. */
  while (m->wanted.len) {
    modnn_wanted top = m->wanted.data[0];
    if (m->buffers[top.buffer].segment < 0 && modnn_next_use(m, top.buffer) == top.use) break;
    modnn_unwant_first(m);
  }
  if (!m->wanted.len) return -1;
  const planc_instance *in = &m->trace->instances[m->wanted.data[0].use];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &m->trace->accesses[a];
    if (!missing(m, access)) continue;
    int64_t ns = pl_fetch_ns(m->device->links, m->trace, access->buffer);
    *out_transfer_ns = pl_add_saturate(*out_transfer_ns, ns);
  }
  return m->wanted.data[0].use;
}

/* True when the buffer's content is on the host alone and `access` reads it: that, not what overwrites it before. */
static bool missing(const modnn *m, const planc_access *access) {
  const modnn_buffer *b = &m->buffers[access->buffer];
  if (access->read < 0 || b->segment >= 0 || !b->on_host) return false;
  return m->trace->accesses[m->trace->by_buffer[b->next]].read >= 0;
}

bool modnn_must_start(const modnn *m, int32_t instance, int64_t run_ns, int32_t wanting, int64_t transfer_ns) {
  int64_t end_of_run = pl_add_saturate(m->now, run_ns);
  int64_t start = end_of_run > m->in_free ? end_of_run : m->in_free;
  int64_t expected_start = pl_add_saturate(end_of_run, m->earliest[wanting] - m->earliest[instance + 1]);
  return pl_add_saturate(start, transfer_ns) > expected_start;
}

planc_status modnn_fitting_ns(modnn *m, int32_t wanting, int64_t *out_ns) {
  const planc_instance *in = &m->trace->instances[wanting];
  *out_ns = 0;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &m->trace->accesses[a];
    if (!missing(m, access)) continue;
    int64_t bytes = modnn_bytes(m, access->buffer);
    int32_t segment = pl_memory_list_best_fit(&m->memory, bytes);
    if (segment < 0) continue;
    int64_t address = m->memory.segments.data[segment].address;
    int32_t *taken = &m->buffers[access->buffer].segment;
    PLANC_TRY(pl_memory_list_take(&m->memory, segment, address, bytes, access->buffer, taken));
    VEC_PUSH(&m->journal, ((modnn_step){.buffer = access->buffer, .took = true}));
    *out_ns = pl_add_saturate(*out_ns, pl_fetch_ns(m->device->links, m->trace, access->buffer));
  }
  return undo(m);
}

/* --- Is a prefetch of use? Line 16, by playing the instances until then ------------------------------------------- */

/* Where copies are slow, prefetches must start long before they are wanted, and each instance plays most of the trace:
 * once so many instances have been played for a schedule, prefetches that must start further ahead wait until they are
 * as near as that. On recorded graphs with the links of real devices a schedule plays a fifth of this at most. */
enum { MAX_PLAYED = 1000000, NEAR = 64 };

static bool is_too_far(const modnn *m, int32_t instance, int32_t wanting) {
  return m->n_played > MAX_PLAYED && wanting - instance > NEAR;
}

/* Predicts, with what is known now, whether all of `wanting`'s operands will find memory without defragmentation. */
static planc_status is_useful(modnn *m, int32_t instance, int32_t wanting, bool *out_useful) {
  *out_useful = true;
  for (int32_t k = instance; k <= wanting && *out_useful; k++, m->n_played++)
    PLANC_TRY(play_instance(m, k, wanting, out_useful));
  return undo(m);
}

/* Plays one instance: memory for what it reads and makes, then its dead data is freed. */
static planc_status play_instance(modnn *m, int32_t instance, int32_t horizon, bool *out_found) {
  const planc_trace *trace = m->trace;
  const planc_instance *in = &trace->instances[instance];
  *out_found = true;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses && *out_found; a++) {
    int32_t buffer = trace->accesses[a].buffer;
    if (m->buffers[buffer].segment < 0) PLANC_TRY(play_allocate(m, buffer, horizon, out_found));
  }
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses && *out_found; a++) {
    int32_t buffer = trace->accesses[a].buffer;
    const planc_buffer *of_trace = &trace->buffers[buffer];
    int32_t next = m->entry[a] + 1;
    bool dead =
        next >= of_trace->first_access + of_trace->n_accesses || trace->accesses[trace->by_buffer[next]].read < 0;
    if (dead && !m->buffers[buffer].stays && m->buffers[buffer].segment >= 0) PLANC_TRY(play_release(m, buffer));
  }
  return NULL;
}

/* Best fit, else the best scheme that spares what is used up to `horizon`. */
static planc_status play_allocate(modnn *m, int32_t buffer, int32_t horizon, bool *out_found) {
  int64_t bytes = modnn_bytes(m, buffer);
  int32_t segment = pl_memory_list_best_fit(&m->memory, bytes);
  if (segment < 0) {
    modnn_scheme scheme = modnn_find_scheme(m, bytes, horizon);
    *out_found = false;
    if (scheme.first < 0) return NULL;
    PLANC_TRY(modnn_note_scheme(m, &scheme));
    for (int64_t i = 0; i < m->leaving.len; i++) PLANC_TRY(play_release(m, m->leaving.data[i]));
    segment = pl_memory_list_best_fit(&m->memory, bytes);
  }
  int64_t address = m->memory.segments.data[segment].address;
  PLANC_TRY(pl_memory_list_take(&m->memory, segment, address, bytes, buffer, &m->buffers[buffer].segment));
  VEC_PUSH(&m->journal, ((modnn_step){.buffer = buffer, .took = true}));
  *out_found = true;
  return NULL;
}

static planc_status play_release(modnn *m, int32_t buffer) {
  modnn_buffer *b = &m->buffers[buffer];
  const pl_segment *segment = &m->memory.segments.data[b->segment];
  modnn_step step = {.buffer = buffer, .address = segment->address, .bytes = segment->bytes, .left = -1};
  int32_t merged;
  PLANC_TRY(pl_memory_list_release(&m->memory, b->segment, &merged));
  b->segment = -1;
  int32_t left = m->memory.segments.data[merged].prev;
  if (left >= 0) step.left = m->memory.segments.data[left].owner;
  VEC_PUSH(&m->journal, step);
  return NULL;
}

/* Undoing in reverse order meets every state again, so the left neighbours are where they were. */
static planc_status undo(modnn *m) {
  while (m->journal.len) {
    modnn_step step = m->journal.data[--m->journal.len];
    int32_t *segment = &m->buffers[step.buffer].segment;
    if (step.took) {
      PLANC_TRY(pl_memory_list_release(&m->memory, *segment, NULL));
      *segment = -1;
    } else {
      int32_t where = step.left < 0 ? m->memory.first : m->memory.segments.data[m->buffers[step.left].segment].next;
      PLANC_TRY(pl_memory_list_take(&m->memory, where, step.address, step.bytes, step.buffer, segment));
    }
  }
  return NULL;
}
