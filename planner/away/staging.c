/* How what is stored passes through the host (staging.h).
 *
 * Copies of a direction run one at a time: to storage in the order of the offloads, back in the order of the reads. So
 * the host is a queue: what came first leaves first, when its copy has ended and some time has passed or, where
 * something else needs its room, at once: where its copy has not ended, all wait. Seen from the end of the period loads
 * are the same: what is read last leaves first, and each is copied as late as will do. */
#include "planner/away/staging.h"

#include "planc/schedule.h"
#include "util/math.h"

/* Something on its way through the host. */
typedef struct pl_passage {
  int64_t bytes;
  int64_t done, spare; /* when its copy has ended; a copy's time after that, in case that others take longer */
  int32_t what;        /* the content, or the read */
} passage;

/* A run through the period in one direction. */
typedef struct passing {
  pl_staging *staging;
  bool loads; /* from the end to the beginning */
  int32_t step, head, tail;
  int64_t bytes; /* of the queue */
  int64_t clock; /* ops and waiting */
  int64_t idle;  /* when the last copy ends */
} passing;

static const pl_content *content_at(const pl_staging *s, int32_t k) {
  return &s->contents->all[k];
}

int64_t pl_staging_bytes(const pl_staging *s, int32_t content) {
  int32_t buffer = content_at(s, content)->buffer;
  return pl_align_up(planc_schedule_trace(s->schedule)->buffers[buffer].bytes, PLANC_ALIGNMENT);
}

int64_t pl_staging_copy_ns(const pl_staging *s, const planc_link *link, int32_t content) {
  return planc_link_ns(link, planc_schedule_trace(s->schedule)->buffers[content_at(s, content)->buffer].bytes);
}

static planc_status find_times(pl_staging *s);
static void find_live(const pl_staging *s);
static int64_t pass(pl_staging *s, bool loads, int64_t room);
static int32_t command_at(const passing *p, int32_t step);
static void leave(passing *p);
static void enter_load(passing *p, int32_t c);
static void enter_store(passing *p, int32_t c);

planc_status pl_staging_make(pl_arena *arena, const planc_schedule *schedule, const pl_memories *memories,
                             const planc_device *device, pl_contents *contents, pl_staging *out) {
  int32_t host = planc_schedule_host(schedule), storage = pl_memories_behind_host(memories);
  *out = (pl_staging){.schedule = schedule,
                      .device = device,
                      .contents = contents,
                      .host = host,
                      .storage = storage,
                      .stores = device->links[pl_memories_route(memories, host, storage)],
                      .loads = device->links[pl_memories_route(memories, storage, host)],
                      .n_commands = planc_schedule_n_commands(schedule)};
  PLANC_TRY(PL_NEW(arena, &out->read_of, out->n_commands));
  PLANC_TRY(PL_NEW(arena, &out->now, (int64_t)out->n_commands + 1));
  PLANC_TRY(PL_NEW(arena, &out->ended, out->n_commands));
  PLANC_TRY(PL_NEW(arena, &out->live, (int64_t)out->n_commands + 3));
  PLANC_TRY(PL_NEW(arena, &out->done, contents->n));
  PLANC_TRY(PL_NEW(arena, &out->queue, out->n_commands));
  PLANC_TRY(PL_NEW(arena, &out->due, (int64_t)out->n_commands + 1));
  for (int32_t c = 0; c < out->n_commands; c++) out->read_of[c] = -1;
  for (int32_t k = 0; k < contents->n; k++) {
    const pl_content *content = &contents->all[k];
    if (!pl_staging_is_of_host(out, k)) continue;
    for (int32_t r = content->first_read; r < content->first_read + content->n_reads; r++)
      out->read_of[contents->reads[r].command] = r;
  }
  return find_times(out);
}

int64_t pl_staging_pass(pl_staging *s, int64_t room_bytes) {
  for (int32_t k = 0; k < s->contents->n; k++) {
    pl_content *content = &s->contents->all[k];
    content->stored_by = pl_content_stay(s->contents, content, -1);
    for (int32_t r = content->first_read; r < content->first_read + content->n_reads; r++)
      s->contents->reads[r].load = s->contents->reads[r].command;
  }
  find_live(s);
  int64_t stores = pass(s, false, room_bytes);
  find_live(s);
  return pl_add_saturate(stores - s->now[s->n_commands], pass(s, true, room_bytes));
}

static int64_t pass(pl_staging *s, bool loads, int64_t room) {
  passing p = {.staging = s, .loads = loads};
  for (int32_t step = 0; step <= s->n_commands; step++) s->due[step] = 0;
  for (; p.step < s->n_commands; p.step++) {
    int32_t c = command_at(&p, p.step);
    while (p.head < p.tail && s->queue[p.head].spare <= p.clock) leave(&p);
    while (p.head < p.tail && (p.head < s->due[p.step] || s->live[c + 1] > room - p.bytes)) {
      if (s->queue[p.head].done > p.clock) p.clock = s->queue[p.head].done;
      leave(&p);
    }
    if (loads) {
      enter_load(&p, c);
    } else {
      enter_store(&p, c);
    }
    p.clock = pl_add_saturate(p.clock, s->now[c + 1] - s->now[c]);
  }
  while (p.head < p.tail) leave(&p);
  return p.clock > p.idle ? p.clock : p.idle;
}

/* --- Times -------------------------------------------------------------------------------------------------------- */

/* What a residency was last used for has ended by then. */
typedef struct last_uses {
  int64_t filled, used, copied;
} last_uses;

typedef struct timing {
  pl_staging *staging;
  int64_t *clocks; /* by stream */
  last_uses *last; /* by residency */
} timing;

static void time_exec(const timing *t, const planc_command *command) {
  const planc_schedule *schedule = t->staging->schedule;
  const planc_trace *trace = planc_schedule_trace(schedule);
  const planc_instance *instance = &trace->instances[command->instance];
  const int32_t *uses = &planc_schedule_uses(schedule)[command->first_use];
  int64_t end = t->clocks[command->stream];
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    if (uses[k] < 0) continue;
    bool writes = trace->accesses[instance->first_access + k].write >= 0;
    end = pl_max(end, writes ? t->last[uses[k]].used : t->last[uses[k]].filled);
  }
  end = pl_add_saturate(end, planc_schedule_variant(schedule, command).time_ns);
  t->clocks[command->stream] = end;
  for (int32_t k = 0; k < instance->n_accesses; k++) {
    if (uses[k] < 0) continue;
    last_uses *last = &t->last[uses[k]];
    last->used = pl_max(last->used, end);
    if (trace->accesses[instance->first_access + k].write >= 0) last->filled = end;
  }
}

/* Copies within the device take no time here. Those between host and storage only order each other. */
static void time_copy(const timing *t, int32_t c) {
  pl_staging *s = t->staging;
  const planc_command *command = &planc_schedule_commands(s->schedule)[c];
  planc_route route = planc_schedule_route(s->schedule, command->stream);
  if (route == PLANC_STREAM_COMPUTE) return;
  if (planc_schedule_is_away(s->schedule, command->residency) && planc_schedule_is_away(s->schedule, command->source)) {
    int64_t start = pl_max(pl_max(t->clocks[command->stream], s->now[c]), t->last[command->source].filled);
    t->last[command->residency].filled = t->clocks[command->stream] = s->ended[c] = pl_add_saturate(
        start, planc_link_ns(&s->device->links[route], planc_schedule_bytes(s->schedule, command->residency)));
    return;
  }
  bool in = planc_schedule_kind_of(s->schedule, command->residency) == PLANC_MEMORY_DEVICE;
  last_uses *last = &t->last[in ? command->residency : command->source];
  int32_t buffer = planc_schedule_buffer(s->schedule, command);
  int64_t bytes = planc_schedule_trace(s->schedule)->buffers[buffer].bytes;
  int64_t begin = pl_max(pl_max(t->clocks[command->stream], s->now[c]), in ? last->used : last->filled);
  int64_t end = pl_add_saturate(begin, planc_link_ns(&s->device->links[route], bytes));
  s->ended[c] = end;
  t->clocks[command->stream] = last->copied = last->used = end;
  if (in) last->filled = end;
  if (!in && command->residency != PLANC_USER) t->last[command->residency].filled = end;
}

/* When the ops come to each command, with copies between device and host but without storage. */
static planc_status find_times(pl_staging *s) {
  const planc_trace *trace = planc_schedule_trace(s->schedule);
  pl_arena arena = {0};
  timing t = {.staging = s};
  planc_status status = PL_NEW(&arena, &t.clocks, planc_schedule_n_streams(s->schedule));
  if (!status) status = PL_NEW(&arena, &t.last, planc_schedule_n_residencies(s->schedule));
  for (int32_t c = 0; !status && c < s->n_commands; c++) {
    const planc_command *command = &planc_schedule_commands(s->schedule)[c];
    if (command->kind == PLANC_CMD_EXEC) {
      time_exec(&t, command);
    } else if (command->kind == PLANC_CMD_COPY) {
      time_copy(&t, c);
    } else if (command->kind == PLANC_CMD_AWAIT) {
      t.clocks[command->stream] = pl_max(t.clocks[command->stream], t.last[command->residency].copied);
    }
    s->now[c + 1] = s->now[c];
    for (int32_t j = 0; j < trace->n_jobs; j++)
      s->now[c + 1] = pl_max(s->now[c + 1], t.clocks[planc_schedule_compute(s->schedule, j, -1)]);
  }
  pl_arena_free(&arena);
  return status;
}

/* --- What lives on the host --------------------------------------------------------------------------------------- */

static void note(const pl_staging *s, int32_t opens, int32_t closes, int64_t bytes) {
  s->live[opens == PL_AT_BOUNDARY ? 0 : opens + 1] += bytes;
  if (closes != PL_STAYS) s->live[closes == PL_AT_BOUNDARY ? 1 : closes + 2] -= bytes;
}

/* As slot_layout.c makes their slots. */
static void note_stored(const pl_staging *s, int32_t k) {
  const pl_content *content = content_at(s, k);
  const pl_read *reads = &s->contents->reads[content->first_read];
  int64_t bytes = pl_staging_bytes(s, k);
  if (content->written != PL_AT_BOUNDARY) note(s, content->written, content->stored_by, bytes);
  for (int32_t r = 0; r < content->n_reads; r++)
    if (reads[r].loaded) note(s, reads[r].load, pl_content_stay(s->contents, content, r), bytes);
}

static void find_live(const pl_staging *s) {
  for (int32_t p = 0; p < s->n_commands + 2; p++) s->live[p] = 0;
  for (int32_t k = 0; k < s->contents->n; k++) {
    const pl_content *content = content_at(s, k);
    if (!pl_staging_is_of_host(s, k)) continue;
    if (pl_is_stored(content)) {
      note_stored(s, k);
    } else {
      note(s, content->written, content->until, pl_staging_bytes(s, k));
    }
  }
  for (int32_t p = 1; p < s->n_commands + 2; p++) s->live[p] += s->live[p - 1];
}

/* --- One direction ------------------------------------------------------------------------------------------------ */

static int32_t command_at(const passing *p, int32_t step) {
  return p->loads ? p->staging->n_commands - 1 - step : step;
}

/* The first of the queue is there up to the step before. */
static void leave(passing *p) {
  const passage *first = &p->staging->queue[p->head++];
  int32_t last = command_at(p, p->step - 1);
  if (p->loads) {
    p->staging->contents->reads[first->what].load = last;
  } else {
    p->staging->contents->all[first->what].stored_by = last;
  }
  p->bytes -= first->bytes;
}

static int64_t copy_ns(const passing *p, int32_t content) {
  return pl_staging_copy_ns(p->staging, p->loads ? &p->staging->loads : &p->staging->stores, content);
}

/* Copies one after the other; returns when this one has ended. */
static int64_t copy(passing *p, int32_t content, int64_t ready) {
  p->idle = pl_add_saturate(pl_max(ready, p->idle), copy_ns(p, content));
  return p->idle;
}

/* `limit`: the command at which it has to have left. */
static void enter(passing *p, int32_t content, int32_t what, int64_t done, int32_t limit) {
  pl_staging *s = p->staging;
  int64_t bytes = pl_staging_bytes(s, content);
  s->queue[p->tail++] = (passage){bytes, done, pl_add_saturate(done, copy_ns(p, content)), what};
  p->bytes += bytes;
  s->due[p->loads ? s->n_commands - 1 - limit : limit] = p->tail;
}

/* The content of the host that a command writes or reads, PL_NO_SIDE = none. */
static int32_t host_content_at(const pl_staging *s, int32_t c) {
  pl_sides sides = s->contents->of_command[c];
  if (sides.target != PL_NO_SIDE && pl_staging_is_of_host(s, sides.target)) return sides.target;
  return sides.source != PL_NO_SIDE && pl_staging_is_of_host(s, sides.source) ? sides.source : PL_NO_SIDE;
}

/* What is offloaded is copied, and enters when it would leave the host if it needed no copy. */
static void enter_store(passing *p, int32_t c) {
  pl_staging *s = p->staging;
  int32_t k = host_content_at(s, c);
  if (k == PL_NO_SIDE || !pl_is_stored(content_at(s, k)) || content_at(s, k)->written == PL_AT_BOUNDARY) return;
  const pl_content *content = content_at(s, k);
  if (content->written == c) s->done[k] = copy(p, k, pl_add_saturate(p->clock, s->ended[c] - s->now[c]));
  if (content->stored_by != c) return;
  int32_t next = content->first_read;
  while (next < content->first_read + content->n_reads && s->contents->reads[next].command <= c) next++;
  bool none = next == content->first_read + content->n_reads;
  enter(p, k, k, s->done[k], none ? s->n_commands : s->contents->reads[next].command);
}

static void enter_load(passing *p, int32_t c) {
  pl_staging *s = p->staging;
  int32_t r = s->read_of[c], k = host_content_at(s, c);
  if (r < 0 || !pl_is_stored(content_at(s, k)) || !s->contents->reads[r].loaded) return;
  const pl_content *content = content_at(s, k);
  int32_t limit = content->stored_by;
  if (r > content->first_read) limit = (int32_t)pl_max(limit, s->contents->reads[r - 1].command);
  enter(p, k, r, copy(p, k, p->clock), limit);
}
