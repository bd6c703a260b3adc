#include "tests/support/framework.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

void *fake_zeroed(int64_t count, size_t size) {
  void *p = calloc((size_t)count + 1, size);
  ck_assert(p);
  return p;
}

/* --- The framework ------------------------------------------------------------------------------------------------ */

uint64_t fake_mixed(uint64_t a, uint64_t b) {
  uint64_t state = a ^ (b * UINT64_C(0x2545f4914f6cdd1d));
  return rand_next(&state);
}

const planc_buffer *fake_buffer(const fake *f, int32_t b) {
  ck_assert(b >= 0 && b < f->trace->n_buffers);
  return &f->trace->buffers[b];
}

bool fake_persists(const fake *f, int32_t b) {
  return fake_buffer(f, b)->flags & PLANC_BUFFER_PERSISTENT;
}

uint64_t fake_stamp_of(const fake *f, int32_t b, int32_t version) {
  if (version == 0) return f->held[b].base;
  return fake_mixed(fake_mixed((uint64_t)f->iteration, (uint64_t)b), (uint64_t)version);
}

/* What a stream does with memory. */
typedef struct deed {
  const fake *f;
  unsigned char *memory;
  const char *when;
  uint64_t stamp;
  int64_t iteration;
  int32_t buffer, version;
} deed;

static deed deed_of(const fake *f, int32_t b, int32_t version, const char *when) {
  return (deed){f, f->held[b].memory, when, fake_stamp_of(f, b, version), f->iteration, b, version};
}

static void write_stamp(void *what) {
  const deed *d = what;
  int64_t bytes = fake_buffer(d->f, d->buffer)->bytes;
  uint64_t state = d->stamp;
  for (int64_t at = 0; at < bytes; at += 8) {
    uint64_t word = rand_next(&state);
    memcpy(d->memory + at, &word, bytes - at < 8 ? (size_t)(bytes - at) : 8);
  }
}

static bool has_stamp(const deed *d) {
  int64_t bytes = fake_buffer(d->f, d->buffer)->bytes;
  uint64_t state = d->stamp;
  for (int64_t at = 0; at < bytes; at += 8) {
    uint64_t word = rand_next(&state);
    if (memcmp(d->memory + at, &word, bytes - at < 8 ? (size_t)(bytes - at) : 8) != 0) return false;
  }
  return true;
}

static void assert_stamp(void *what) {
  const deed *d = what;
  ck_assert_msg(has_stamp(d), "%s, iteration %ld: %s is not in version %d", d->when, (long)d->iteration,
                planc_trace_buffer_name(d->f->trace, d->buffer), d->version);
}

/* Whoever has memory next, or had it before. */
static void spoil(void *what) {
  const deed *d = what;
  memset(d->memory, 0xa5, (size_t)fake_buffer(d->f, d->buffer)->bytes);
}

static void on_calls(const fake *f, void (*work)(void *what), deed d) {
  if (!f->streams) {
    work(&d);
    return;
  }
  streams_enqueue(f->streams, PLANRT_CALLS, work, &d, sizeof d);
  streams_go_on(f->streams);
}

void fake_stamp(fake *f, int32_t b, int32_t version) {
  on_calls(f, write_stamp, deed_of(f, b, version, ""));
}

static bool holds(const fake *f, int32_t b, int32_t version) {
  deed d = deed_of(f, b, version, "");
  if (d.memory && f->streams) streams_finish(f->streams);
  return d.memory && has_stamp(&d);
}

void fake_assert_holds(const fake *f, int32_t b, int32_t version, const char *when) {
  ck_assert_msg(f->held[b].memory, "%s, iteration %ld: %s has no memory", when, (long)f->iteration,
                planc_trace_buffer_name(f->trace, b));
  on_calls(f, assert_stamp, deed_of(f, b, version, when));
}

static void assert_within(const fake *f, int64_t beside, const char *when) {
  ck_assert_msg(f->limit < 0 || f->bytes + beside <= f->limit, "%s, iteration %ld: %ld bytes of %ld", when,
                (long)f->iteration, (long)(f->bytes + beside), (long)f->limit);
}

/* With streams memory is never freed, and what was given back last is taken first. */
static void *memory_for(fake *f, int64_t bytes) {
  if (f->streams && f->n_slots > 0) return f->slots[--f->n_slots];
  for (int32_t b = 0; f->streams && b < f->trace->n_buffers; b++)
    if (fake_buffer(f, b)->bytes > bytes) bytes = fake_buffer(f, b)->bytes;
  void *memory = malloc(bytes > 0 ? (size_t)bytes : 1);
  ck_assert(memory);
  return memory;
}

static bool is_in_arena(const fake *f, const unsigned char *memory) {
  return f->arena && memory >= f->arena && memory < f->arena + f->arena_bytes;
}

/* `mine`: the buffer that is to be there, -1 = none. */
static void assert_free(const fake *f, int64_t address, int64_t bytes, int32_t mine) {
  ck_assert(f->arena && address % f->plan->memories[0].alignment == 0);
  ck_assert_int_le(address + bytes, f->arena_bytes);
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    if (b == mine || !is_in_arena(f, f->held[b].memory)) continue;
    int64_t other = f->held[b].memory - f->arena;
    ck_assert_msg(other + fake_buffer(f, b)->bytes <= address || address + bytes <= other,
                  "iteration %ld: %s is there at %ld", (long)f->iteration, planc_trace_buffer_name(f->trace, b),
                  (long)address);
  }
}

/* In an iteration that goes by the plan, and began with all that persists known, all memory has an address. */
static void assert_placed(const fake *f, int64_t address, int64_t bytes, const char *when) {
  if (f->arena && f->limit >= 0 && bytes > 0)
    ck_assert_msg(address >= 0, "%s, iteration %ld: %ld bytes beside the arena", when, (long)f->iteration, (long)bytes);
}

static void take_at(fake *f, int32_t b, int64_t address) {
  int64_t bytes = fake_buffer(f, b)->bytes;
  ck_assert(!f->held[b].memory);
  if (address >= 0) assert_free(f, address, bytes, b);
  f->held[b].memory = address < 0 ? memory_for(f, bytes) : f->arena + address;
  ck_assert(f->held[b].memory);
  on_calls(f, spoil, deed_of(f, b, 0, ""));
  f->bytes += bytes;
}

static void take(fake *f, int32_t b) {
  take_at(f, b, -1);
}

static void give_memory(fake *f, unsigned char *memory) {
  if (is_in_arena(f, memory)) return;
  if (f->streams)
    f->slots[f->n_slots++] = memory;
  else
    free(memory);
}

void fake_give(fake *f, int32_t b) {
  holding *held = &f->held[b];
  if (f->streams || is_in_arena(f, held->memory)) on_calls(f, spoil, deed_of(f, b, 0, ""));
  give_memory(f, held->memory);
  held->memory = NULL;
  f->bytes -= fake_buffer(f, b)->bytes;
}

static bool fails(fake *f) {
  f->failed = f->failed || f->fail_in == 0;
  return f->fail_in >= 0 && f->fail_in-- == 0;
}

static void *fake_address(void *user, int32_t b) {
  fake *f = user;
  fake_buffer(f, b);
  return f->held[b].memory;
}

static int fake_allocate(void *user, int32_t b, int64_t address) {
  fake *f = user;
  ck_assert(!f->held[b].memory);
  ck_assert_msg(f->held[b].known, "memory for %s, which the framework does not know",
                planc_trace_buffer_name(f->trace, b));
  ck_assert(!f->held[b].gone);
  assert_placed(f, address, fake_buffer(f, b)->bytes, "allocate");
  if (fails(f)) return 1;
  take_at(f, b, address);
  assert_within(f, 0, "allocate");
  return 0;
}

typedef struct transfer {
  void *to;
  const void *from;
  size_t bytes;
} transfer;

static void move_bytes(void *what) {
  const transfer *t = what;
  memmove(t->to, t->from, t->bytes);
}

static int fake_move(void *user, int32_t b, int64_t address) {
  fake *f = user;
  int64_t bytes = fake_buffer(f, b)->bytes;
  unsigned char *old = f->held[b].memory;
  ck_assert_msg(old, "%s has no memory to be moved", planc_trace_buffer_name(f->trace, b));
  assert_placed(f, address, bytes, "move");
  if (address >= 0) assert_free(f, address, bytes, b);
  if (fails(f)) return 1;
  unsigned char *new = address < 0 ? memory_for(f, bytes) : f->arena + address;
  ck_assert(f->arena && old != new);
  transfer t = {new, old, (size_t)bytes};
  if (f->streams)
    streams_enqueue(f->streams, PLANRT_CALLS, move_bytes, &t, sizeof t);
  else
    move_bytes(&t);
  give_memory(f, old);
  f->held[b].memory = new;
  return 0;
}

/* Whether the user has a result. */
static bool is_delivered(const fake *f, int32_t b) {
  const planc_buffer *buffer = fake_buffer(f, b);
  return (buffer->flags & PLANC_BUFFER_RESULT) && holds(f, b, buffer->last_version);
}

static int fake_release(void *user, int32_t b, bool last) {
  fake *f = user;
  ck_assert_msg(f->held[b].memory, "%s has no memory to give back", planc_trace_buffer_name(f->trace, b));
  ck_assert(!last || !fake_persists(f, b));
  if (fails(f)) return 1;
  f->held[b].gone = last;
  if (last && is_delivered(f, b)) f->held[b].delivered = true;
  fake_give(f, b);
  return 0;
}

/* Whether the framework makes a tensor for what is written: it is the first that is in the buffer. */
static bool is_made(const fake *f, const planc_access *access) {
  return access->read < 0 && access->write == 1 && !fake_persists(f, access->buffer);
}

static bool is_wanted(const int32_t *wanted, int32_t n, int32_t buffer) {
  int32_t found = 0;
  for (int32_t k = 0; k < n; k++) found += wanted[k] == buffer;
  ck_assert_int_le(found, 1);
  return found > 0;
}

/* What is written and not wanted lies beside until the call has run. */
/* Memory that a call makes is where it is told to be; it may use its workspace until it has run. */
static void take_rooms(fake *f, int32_t call, const planrt_rooms *rooms, const int32_t *wanted, int32_t n_wanted) {
  const planc_instance *instance = &f->trace->instances[call];
  int32_t n = 0;
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &f->trace->accesses[instance->first_access + k];
    if (!is_made(f, access) || (wanted && !is_wanted(wanted, n_wanted, access->buffer))) continue;
    int32_t at = 0;
    while (f->arena && at < rooms->n && rooms->buffers[at] != access->buffer) at++;
    if (f->arena) ck_assert_int_lt(at, rooms->n);
    int64_t address = f->arena ? rooms->addresses[at] : -1;
    assert_placed(f, address, fake_buffer(f, access->buffer)->bytes, "call");
    take_at(f, access->buffer, address);
    n++;
  }
  ck_assert_int_eq(rooms->n, f->arena ? n : 0);
  if (rooms->workspace_bytes == 0) return;
  assert_free(f, rooms->workspace, rooms->workspace_bytes, -1);
  for (int32_t k = 0; k < rooms->n; k++)
    ck_assert(rooms->addresses[k] < 0 ||
              rooms->addresses[k] + fake_buffer(f, rooms->buffers[k])->bytes <= rooms->workspace ||
              rooms->workspace + rooms->workspace_bytes <= rooms->addresses[k]);
}

static int fake_repeat(void *user, int32_t call, const int32_t *wanted, int32_t n, const planrt_rooms *rooms) {
  fake *f = user;
  ck_assert(call >= 0 && call < f->trace->n_instances);
  ck_assert(f->called[call] && planrt_follow_repeats(f->follow, call));
  const planc_instance *instance = &f->trace->instances[call];
  const planc_access *accesses = &f->trace->accesses[instance->first_access];
  int64_t beside = 0;
  int32_t n_found = 0;
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &accesses[k];
    if (access->effect) continue;
    if (access->read >= 0) fake_assert_holds(f, access->buffer, access->read, "repeat");
    if (access->write < 0) continue;
    bool mine = is_wanted(wanted, n, access->buffer);
    n_found += mine;
    if (!mine) beside += fake_buffer(f, access->buffer)->bytes;
    if (mine) ck_assert(!f->held[access->buffer].gone);
    if (mine && access->read < 0) ck_assert_int_eq(f->held[access->buffer].memory != NULL, !is_made(f, access));
  }
  ck_assert(n > 0 && n_found == n);
  if (fails(f)) return 1;
  take_rooms(f, call, rooms, wanted, n);
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    const planc_access *access = &accesses[k];
    if (access->effect || access->write < 0 || !is_wanted(wanted, n, access->buffer)) continue;
    fake_stamp(f, access->buffer, access->write);
  }
  assert_within(f, beside, "repeat");
  f->n_repeats++;
  return 0;
}

void fake_call(fake *f, int32_t call, const char *how) {
  const planc_instance *instance = &f->trace->instances[call];
  const planc_access *accesses = &f->trace->accesses[instance->first_access];
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    int32_t b = accesses[k].buffer;
    ck_assert(!f->held[b].gone);
    if (!f->held[b].known && fake_persists(f, b)) {
      take(f, b);
      fake_stamp(f, b, 0);
    }
    f->held[b].known = true;
    if (accesses[k].read >= 0) fake_assert_holds(f, b, accesses[k].read, how);
    if (is_made(f, &accesses[k]) && f->left) take(f, b);
  }
  if (!f->left) take_rooms(f, call, planrt_follow_rooms(f->follow), NULL, 0);
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    int32_t b = accesses[k].buffer;
    ck_assert_msg(f->held[b].memory, "%s, iteration %ld: %s has no memory to be overwritten", how, (long)f->iteration,
                  planc_trace_buffer_name(f->trace, b));
    assert_placed(f, is_in_arena(f, f->held[b].memory) ? 0 : -1, fake_buffer(f, b)->bytes, how);
  }
  assert_within(f, 0, how);
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    int32_t b = accesses[k].buffer;
    if (accesses[k].write < 0) continue;
    fake_stamp(f, b, accesses[k].write);
    f->held[b].now = accesses[k].write;
  }
  f->called[call] = true;
}

/* Outside a plan data goes when the last call that touches it has been made. */
static void drop_dead(fake *f, int32_t call) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    const planc_buffer *buffer = fake_buffer(f, b);
    const planc_access *last = &f->trace->accesses[f->trace->by_buffer[buffer->first_access + buffer->n_accesses - 1]];
    if (fake_persists(f, b) || !f->held[b].memory || last->instance > call) continue;
    if (is_delivered(f, b)) f->held[b].delivered = true;
    fake_give(f, b);
  }
}

/* --- Streams ------------------------------------------------------------------------------------------------------ */

static void *fake_host_alloc(void *user, int64_t bytes) {
  (void)user;
  return fake_zeroed(bytes, 1);
}

static void fake_host_free(void *user, void *memory) {
  const fake *f = user;
  ck_assert(streams_are_done(f->streams));
  free(memory);
}

static void copy_bytes(void *what) {
  const transfer *t = what;
  memcpy(t->to, t->from, t->bytes);
}

static int fake_copy(void *user, int32_t stream, int32_t b, void *host, bool out) {
  fake *f = user;
  void *memory = f->held[b].memory;
  ck_assert(memory && stream != PLANRT_CALLS);
  if (fails(f)) return 1;
  transfer t = {out ? host : memory, out ? memory : host, (size_t)fake_buffer(f, b)->bytes};
  streams_enqueue(f->streams, stream, copy_bytes, &t, sizeof t);
  streams_go_on(f->streams);
  return 0;
}

static int fake_record(void *user, int32_t event, int32_t stream) {
  fake *f = user;
  if (fails(f)) return 1;
  streams_record(f->streams, event, stream);
  return 0;
}

static int fake_wait(void *user, int32_t event, int32_t stream) {
  fake *f = user;
  if (fails(f)) return 1;
  streams_wait(f->streams, event, stream);
  return 0;
}

static int fake_finish(void *user) {
  fake *f = user;
  if (fails(f)) return 1;
  streams_finish(f->streams);
  return 0;
}

static const planrt_streams stream_functions = {.host_alloc = fake_host_alloc,
                                                .host_free = fake_host_free,
                                                .copy = fake_copy,
                                                .record = fake_record,
                                                .wait = fake_wait,
                                                .finish = fake_finish};

/* --- Plans -------------------------------------------------------------------------------------------------------- */

void fake_start(fake *f, const planc_plan *plan, int kind, uint64_t seed) {
  *f = (fake){.plan = plan, .random = seed, .limit = -1, .fail_in = -1, .has_arena = kind & FAKE_ARENA};
  if (kind & FAKE_STREAMS) f->streams = streams_new(seed);
}

static const planrt_framework functions = {.address = fake_address,
                                           .allocate = fake_allocate,
                                           .move = fake_move,
                                           .release = fake_release,
                                           .repeat = fake_repeat};

/* Of plans whose addresses are in one. */
static planc_status make_arena(fake *f) {
  int64_t bytes = planrt_follow_arena_bytes(f->follow);
  ck_assert_int_eq(bytes, f->plan->memories[0].chunk_bytes > 0 ? 0 : f->plan->memories[0].arena_bytes);
  if (!f->has_arena || bytes == 0) return NULL;
  f->arena = fake_zeroed(bytes, 1);
  f->arena_bytes = bytes;
  return planrt_follow_place(f->follow, f->arena);
}

planc_status fake_follow(fake *f) {
  planrt_framework framework = functions;
  framework.user = f;
  framework.streams = f->streams ? &stream_functions : NULL;
  PLANC_TRY(planrt_follow_new(f->plan, &framework, &f->follow));
  f->trace = planrt_follow_trace(f->follow);
  f->held = fake_zeroed(f->trace->n_buffers, sizeof *f->held);
  f->slots = fake_zeroed(f->trace->n_buffers, sizeof *f->slots);
  f->called = fake_zeroed(f->trace->n_instances, sizeof *f->called);
  f->again = fake_zeroed(f->trace->n_instances, sizeof *f->again);
  for (int32_t i = 0; i < f->plan->body.n; i++)
    if (f->plan->body.instrs[i].op == PLANC_INSTR_exec && f->plan->body.instrs[i].recompute)
      f->again[f->plan->body.instrs[i].id] = true;
  PLANC_TRY(make_arena(f));
  int32_t known_percent = (int32_t)rand_below(&f->random, 3) * 50;
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    f->held[b].base = rand_next(&f->random);
    if (!fake_persists(f, b) || !rand_chance(&f->random, known_percent)) continue;
    f->held[b].known = true;
    take(f, b);
    fake_stamp(f, b, 0);
  }
  return NULL;
}

void fake_free(fake *f) {
  int32_t n = f->trace ? f->trace->n_buffers : 0;
  f->fail_in = -1;
  if (f->streams) streams_finish(f->streams); /* what it checks it looks up in the trace */
  planrt_follow_free(f->follow);              /* and the trace with it */
  for (int32_t b = 0; b < n; b++)
    if (!is_in_arena(f, f->held[b].memory)) free(f->held[b].memory);
  for (int32_t k = 0; k < f->n_slots; k++) free(f->slots[k]);
  streams_free(f->streams);
  free(f->slots);
  free(f->arena);
  free(f->held);
  free(f->called);
  free(f->again);
  *f = (fake){0};
}

/* --- Iterations --------------------------------------------------------------------------------------------------- */

static bool knows_all(const fake *f) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (fake_persists(f, b) && !f->held[b].known) return false;
  return true;
}

planc_status fake_begin(fake *f) {
  f->limit = -1;
  f->left = false;
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    holding *held = &f->held[b];
    held->now = 0;
    held->gone = held->delivered = false;
    if (!fake_persists(f, b)) held->known = false;
  }
  for (int32_t i = 0; i < f->trace->n_instances; i++) f->called[i] = false;
  PLANC_TRY(planrt_follow_begin(f->follow));
  if (knows_all(f)) f->limit = f->plan->memories[0].arena_bytes;
  assert_within(f, 0, "begin");
  return NULL;
}

/* What the calls from `next` on read before they write it is there. */
static void assert_ready_from(const fake *f, int32_t next) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    const planc_buffer *buffer = fake_buffer(f, b);
    for (int32_t k = 0; k < buffer->n_accesses; k++) {
      const planc_access *access = &f->trace->accesses[f->trace->by_buffer[buffer->first_access + k]];
      if (access->instance < next) continue;
      if (access->read >= 0 && f->held[b].known) fake_assert_holds(f, b, access->read, "leave");
      break;
    }
  }
}

/* What persists holds its data, or is said to be without them. */
static void assert_there_or_lost(const fake *f) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (fake_persists(f, b) && f->held[b].known && !planrt_follow_is_lost(f->follow, b))
      fake_assert_holds(f, b, f->held[b].now, "when the plan was left");
}

planc_status fake_leave(fake *f, int32_t next) {
  int32_t call;
  f->limit = -1;
  f->left = true;
  PLANC_TRY(planrt_follow_leave(f->follow, false));
  assert_ready_from(f, next);
  assert_there_or_lost(f);
  ok(planrt_follow_next(f->follow, &call));
  ck_assert_int_eq(call, -1);
  f->n_left++;
  return NULL;
}

planc_status fake_end(fake *f, bool left) {
  int32_t call;
  ok(planrt_follow_next(f->follow, &call));
  ck_assert_int_eq(call, -1);
  if (left) drop_dead(f, f->trace->n_instances);
  PLANC_TRY(planrt_follow_end(f->follow));
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    const planc_buffer *buffer = fake_buffer(f, b);
    holding *held = &f->held[b];
    if (buffer->flags & PLANC_BUFFER_RESULT)
      ck_assert_msg(held->delivered || is_delivered(f, b), "the user does not get %s",
                    planc_trace_buffer_name(f->trace, b));
    if (!fake_persists(f, b)) ck_assert_msg(!held->memory, "%s is left over", planc_trace_buffer_name(f->trace, b));
    if (fake_persists(f, b)) held->base = fake_stamp_of(f, b, buffer->last_version);
    held->now = 0;
  }
  f->iteration++;
  f->limit = -1;
  return NULL;
}

planc_status fake_iterate(fake *f, int32_t leave_at) {
  int32_t n = f->trace->n_instances, call;
  bool left = false, asked = rand_chance(&f->random, 50);
  PLANC_TRY(fake_begin(f));
  for (int32_t i = 0; i < n; i++) {
    if (i == leave_at && !asked) PLANC_TRY(fake_leave(f, i));
    left = left || (i == leave_at && !asked);
    if (!left) {
      PLANC_TRY(planrt_follow_next(f->follow, &call));
      ck_assert_int_eq(call, i);
    }
    if (!left && rand_chance(&f->random, 5)) {
      ok(planrt_follow_next(f->follow, &call));
      ck_assert_int_eq(call, i);
    }
    if (i == leave_at && !left) PLANC_TRY(fake_leave(f, i));
    left = left || i == leave_at;
    fake_call(f, i, left ? "call outside the plan" : "call");
    if (left) drop_dead(f, i);
    if (!left) PLANC_TRY(planrt_follow_done(f->follow));
  }
  if (leave_at == n && !left) PLANC_TRY(fake_leave(f, n));
  return fake_end(f, left || leave_at == n);
}

void fake_assert_has(const fake *f, int32_t b) {
  if (f->held[b].known) fake_assert_holds(f, b, 0, "between iterations");
  if (!f->held[b].known) ck_assert(!f->held[b].memory);
  ck_assert(planrt_follow_has(f->follow, b));
}

/* By what the framework comes to know where it is first used. */
static planc_status replace(fake *f, int32_t b) {
  PLANC_TRY(planrt_follow_renew(f->follow, b));
  if (f->held[b].memory) fake_give(f, b);
  f->held[b].known = false;
  f->held[b].base = rand_next(&f->random);
  return NULL;
}

planc_status fake_use_between(fake *f) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    if (!fake_persists(f, b)) continue;
    holding *held = &f->held[b];
    bool may_have = !held->known || held->memory, has = planrt_follow_has(f->follow, b);
    ck_assert(f->streams ? may_have || !has : may_have == has);
    if (rand_chance(&f->random, 15)) PLANC_TRY(replace(f, b));
    if (!rand_chance(&f->random, 40)) continue;
    has = planrt_follow_has(f->follow, b);
    if (!has || rand_chance(&f->random, 50)) PLANC_TRY(planrt_follow_bring(f->follow, b));
    fake_assert_has(f, b);
    if (!held->known && rand_chance(&f->random, 30)) {
      held->known = true;
      take(f, b);
      fake_stamp(f, b, 0);
    }
    if (rand_chance(&f->random, 50)) held->base = rand_next(&f->random);
    if (!held->known) continue;
    if (rand_chance(&f->random, 30)) {
      fake_give(f, b);
      take(f, b);
    }
    fake_stamp(f, b, 0);
  }
  if (!rand_chance(&f->random, 25)) return NULL;
  PLANC_TRY(planrt_follow_bring_all(f->follow));
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (fake_persists(f, b)) fake_assert_has(f, b);
  return NULL;
}

planc_status fake_run(fake *f, manner how) {
  for (int32_t k = 0; k < ITERATIONS; k++) {
    bool leaves = (how == LEAVING || how == BOTH) && rand_chance(&f->random, 50);
    PLANC_TRY(fake_iterate(f, leaves ? (int32_t)rand_below(&f->random, f->trace->n_instances + 1) : NEVER));
    if (how == MEDDLING || how == BOTH) PLANC_TRY(fake_use_between(f));
  }
  return NULL;
}
