/* moDNN's prefetching (IV-B2): when to start (Eq. 4, with the backlog of the copy engine) and whether it is of use. */
#include "planc/schedule.h"
#include "planner/choose/ways_back.h"
#include "planner/policies/modnn.h"
#include "util/math.h"

/* True when the block's content is on the host alone and `access` reads it: that, not what overwrites it until then. */
static bool missing(const modnn *m, const planc_access *access) {
  const modnn_block *b = &m->blocks[access->buffer];
  if (access->read < 0 || b->segment >= 0 || !b->on_host) return false;
  return m->trace->accesses[m->trace->by_buffer[b->next]].read >= 0;
}

int32_t modnn_next_wanting(modnn *m, int64_t *out_transfer_ns) {
  *out_transfer_ns = 0;
  /* Entries of blocks that have been brought back since are left in the heap until they come up. */
  while (m->wanted.len) {
    modnn_wanted top = m->wanted.data[0];
    if (m->blocks[top.block].segment < 0 && modnn_next_use(m, top.block) == top.use) break;
    modnn_unwant_first(m);
  }
  if (!m->wanted.len) return -1;
  const planc_instance *instance = &m->trace->instances[m->wanted.data[0].use];
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
    const planc_access *access = &m->trace->accesses[a];
    if (!missing(m, access)) continue;
    int64_t ns = pl_fetch_ns(m->device->links, m->trace, access->buffer);
    *out_transfer_ns = pl_add_saturate(*out_transfer_ns, ns);
  }
  return m->wanted.data[0].use;
}

planc_status modnn_load(modnn *m, int32_t block, int64_t when) {
  modnn_block *b = &m->blocks[block];
  int64_t start = when > m->in_free ? when : m->in_free;
  if (b->ready > start) start = b->ready;
  m->in_free = pl_add_saturate(start, pl_fetch_ns(m->device->links, m->trace, block));
  b->ready = m->in_free;
  b->filled = true;
  b->used = false;
  int32_t version = m->trace->accesses[m->trace->by_buffer[b->next]].read;
  VEC_PUSH(&m->decisions, ((modnn_decision){.kind = MODNN_PREFETCH, .subject = block, .choice = version}));
  return NULL;
}

bool modnn_must_start(const modnn *m, int32_t task, int64_t task_ns, int32_t wanting, int64_t transfer_ns) {
  int64_t end_of_task = pl_add_saturate(m->now, task_ns);
  int64_t start = end_of_task > m->in_free ? end_of_task : m->in_free;
  int64_t expected_start = pl_add_saturate(end_of_task, m->earliest[wanting] - m->earliest[task + 1]);
  return pl_add_saturate(start, transfer_ns) > expected_start;
}

static planc_status undo(modnn *m);

planc_status modnn_fitting_ns(modnn *m, int32_t wanting, int64_t *out_ns) {
  const planc_instance *instance = &m->trace->instances[wanting];
  *out_ns = 0;
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
    const planc_access *access = &m->trace->accesses[a];
    if (!missing(m, access)) continue;
    int64_t bytes = modnn_room(m, access->buffer);
    int32_t segment = pl_memory_list_best_fit(&m->memory, bytes);
    if (segment < 0) continue;
    int64_t address = m->memory.segments.data[segment].address;
    int32_t *taken = &m->blocks[access->buffer].segment;
    PLANC_TRY(pl_memory_list_take(&m->memory, segment, address, bytes, access->buffer, taken));
    VEC_PUSH(&m->journal, ((modnn_step){.block = access->buffer, .took = true}));
    *out_ns = pl_add_saturate(*out_ns, pl_fetch_ns(m->device->links, m->trace, access->buffer));
  }
  return undo(m);
}

/* --- Is a prefetch of use? Line 16, by playing the tasks until then ----------------------------------------------- */

/* Where copies are slow, prefetches must start long before they are wanted, and each task plays most of the trace: once
 * so many tasks have been played for a schedule, prefetches that must start further ahead wait until they are as near
 * as that. On recorded graphs with the links of real devices a schedule plays a fifth of this at most. */
enum { MOST_PLAYED = 1000000, NEAR = 64 };

static bool is_too_far(const modnn *m, int32_t task, int32_t wanting);
static planc_status is_useful(modnn *m, int32_t task, int32_t wanting, bool *out_useful);
static planc_status prefetch_for(modnn *m, int32_t wanting, bool *out_done);

planc_status modnn_prefetch(modnn *m, int32_t task, int64_t task_ns) {
  bool go_on = true;
  while (go_on) {
    int64_t transfer_ns;
    int32_t wanting = modnn_next_wanting(m, &transfer_ns);
    if (wanting < 0 || !modnn_must_start(m, task, task_ns, wanting, transfer_ns)) return NULL;
    if (is_too_far(m, task, wanting)) return NULL;
    PLANC_TRY(is_useful(m, task, wanting, &go_on));
    if (go_on) PLANC_TRY(prefetch_for(m, wanting, &go_on));
  }
  return NULL;
}

static bool is_too_far(const modnn *m, int32_t task, int32_t wanting) {
  return m->n_played > MOST_PLAYED && wanting - task > NEAR;
}

static planc_status play_release(modnn *m, int32_t block) {
  modnn_block *b = &m->blocks[block];
  const pl_segment *segment = &m->memory.segments.data[b->segment];
  modnn_step step = {.block = block, .address = segment->address, .bytes = segment->bytes, .left = -1};
  int32_t merged;
  PLANC_TRY(pl_memory_list_release(&m->memory, b->segment, &merged));
  b->segment = -1;
  int32_t left = m->memory.segments.data[merged].prev;
  if (left >= 0) step.left = m->memory.segments.data[left].block;
  VEC_PUSH(&m->journal, step);
  return NULL;
}

/* Best fit, else the best scheme that spares what is used up to `horizon`. */
static planc_status play_allocate(modnn *m, int32_t block, int32_t horizon, bool *out_found) {
  int64_t bytes = modnn_room(m, block);
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
  PLANC_TRY(pl_memory_list_take(&m->memory, segment, address, bytes, block, &m->blocks[block].segment));
  VEC_PUSH(&m->journal, ((modnn_step){.block = block, .took = true}));
  *out_found = true;
  return NULL;
}

/* Plays one task: memory for what it reads and makes, then its dead data is freed. */
static planc_status play_task(modnn *m, int32_t task, int32_t horizon, bool *out_found) {
  const planc_trace *trace = m->trace;
  const planc_instance *instance = &trace->instances[task];
  *out_found = true;
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses && *out_found; a++) {
    int32_t block = trace->accesses[a].buffer;
    if (m->blocks[block].segment < 0) PLANC_TRY(play_allocate(m, block, horizon, out_found));
  }
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses && *out_found; a++) {
    int32_t block = trace->accesses[a].buffer;
    const planc_buffer *buffer = &trace->buffers[block];
    int32_t next = m->entry[a] + 1;
    bool dead = next >= buffer->first_access + buffer->n_accesses || trace->accesses[trace->by_buffer[next]].read < 0;
    if (dead && !m->blocks[block].pinned && m->blocks[block].segment >= 0) PLANC_TRY(play_release(m, block));
  }
  return NULL;
}

/* Undoing in reverse order meets every state again, so the left neighbours are where they were. */
static planc_status undo(modnn *m) {
  while (m->journal.len) {
    modnn_step step = m->journal.data[--m->journal.len];
    int32_t *segment = &m->blocks[step.block].segment;
    if (step.took) {
      PLANC_TRY(pl_memory_list_release(&m->memory, *segment, NULL));
      *segment = -1;
    } else {
      int32_t where = step.left < 0 ? m->memory.first : m->memory.segments.data[m->blocks[step.left].segment].next;
      PLANC_TRY(pl_memory_list_take(&m->memory, where, step.address, step.bytes, step.block, segment));
    }
  }
  return NULL;
}

/* Predicts, with what is known now, whether all of `wanting`'s operands will find memory without defragmentation. */
static planc_status is_useful(modnn *m, int32_t task, int32_t wanting, bool *out_useful) {
  *out_useful = true;
  for (int32_t k = task; k <= wanting && *out_useful; k++, m->n_played++)
    PLANC_TRY(play_task(m, k, wanting, out_useful));
  return undo(m);
}

/* Starts the transfers of what `wanting` misses; *out_done is false when there was no memory for all of it. */
static planc_status prefetch_for(modnn *m, int32_t wanting, bool *out_done) {
  const planc_instance *instance = &m->trace->instances[wanting];
  *out_done = true;
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
    const planc_access *access = &m->trace->accesses[a];
    if (!missing(m, access)) continue;
    int64_t when;
    PLANC_TRY(modnn_allocate(m, access->buffer, wanting, &when, out_done));
    if (!*out_done) return NULL;
    PLANC_TRY(modnn_load(m, access->buffer, when));
  }
  return NULL;
}
