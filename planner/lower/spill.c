/* What of the host's contents is kept in storage (contents.h).
 *
 * Time is that of the ops alone. As long as more lives on the host at some time than may, a content that lives there
 * and is not asked for is stored: the one that is not asked for the longest, of several the largest. First a stored
 * content leaves the host right behind its offload and comes back right ahead of its read. Then those that would be
 * waited for get what room there is: copies of a direction run one at a time, to storage in the order of the offloads,
 * back in the order of the reads and each as late as will do. */
#include <stdlib.h>

#include "planner/lower/contents.h"
#include "util/math.h"

typedef struct candidate {
  int64_t idle, bytes;
  int32_t content;
} candidate;

typedef struct reader {
  int32_t content, read; /* -1: none */
} reader;

typedef struct spilling {
  const planc_schedule *schedule;
  const planc_device *device;
  planc_contents *contents;
  int32_t n_commands;
  int64_t *now;     /* by command: when the ops before it have ended; and one more */
  reader *readers;  /* by command: what it reads */
  int32_t *done_by; /* by content: the command by whose end it would be stored if nobody waited */
  int32_t *load_at; /* by read: the command ahead of which it would be loaded so that nobody waits */
  int64_t *live;    /* by position: bytes on the host */
  candidate *candidates;
} spilling;

static int64_t bytes_of(const spilling *s, const planc_content *content) {
  return planc_schedule_trace(s->schedule)->buffers[content->buffer].bytes;
}

static void find_times(const spilling *s) {
  const planc_command *commands = planc_schedule_commands(s->schedule);
  for (int32_t c = 0; c < s->n_commands; c++) {
    int64_t ns = commands[c].kind == PLANC_CMD_EXEC ? planc_schedule_variant(s->schedule, &commands[c]).time_ns : 0;
    s->now[c + 1] = planc_add_saturate(s->now[c], ns);
  }
}

static void find_readers(const spilling *s) {
  for (int32_t c = 0; c < s->n_commands; c++) s->readers[c] = (reader){-1, -1};
  for (int32_t k = 0; k < s->contents->n; k++) {
    const planc_content *content = &s->contents->all[k];
    for (int32_t r = content->first_read; r < content->first_read + content->n_reads; r++)
      s->readers[s->contents->reads[r].command] = (reader){k, r};
  }
}

/* --- When copies run ---------------------------------------------------------------------------------------------- */

/* The first command from `from` on by whose end `ns` have passed; the last one if none. */
static int32_t command_after(const spilling *s, int32_t from, int64_t ns) {
  int32_t low = from, high = s->n_commands - 1;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (s->now[middle + 1] >= ns) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/* The last command up to `to` that begins when `ns` have passed or before. */
static int32_t command_before(const spilling *s, int32_t to, int64_t ns) {
  int32_t low = 0, high = to;
  while (low < high) {
    int32_t middle = low + (high - low + 1) / 2;
    if (s->now[middle] <= ns) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/* Contents are in the order in which they are written. */
static void time_stores(const spilling *s) {
  int64_t free_at = 0;
  for (int32_t k = 0; k < s->contents->n; k++) {
    planc_content *content = &s->contents->all[k];
    content->stored_by = s->done_by[k] = content->written;
    if (!content->stored || content->written == PLANC_AT_BOUNDARY) continue;
    int64_t begin = s->now[content->written] > free_at ? s->now[content->written] : free_at;
    free_at = planc_add_saturate(begin, planc_link_ns(&s->device->store, bytes_of(s, content)));
    s->done_by[k] = command_after(s, content->written, free_at);
  }
}

static void time_loads(const spilling *s) {
  int64_t next = INT64_MAX;
  for (int32_t c = s->n_commands - 1; c >= 0; c--) {
    int32_t r = s->readers[c].read;
    if (r < 0) continue;
    const planc_content *content = &s->contents->all[s->readers[c].content];
    s->contents->reads[r].load = s->load_at[r] = c;
    if (!content->stored) continue;
    int64_t end = s->now[c] < next ? s->now[c] : next, ns = planc_link_ns(&s->device->load, bytes_of(s, content));
    next = end > ns ? end - ns : 0;
    s->load_at[r] = command_before(s, c, next);
  }
}

/* --- What lives on the host -----------------------------------------------------------------------------------------
 */

static void note(const spilling *s, int32_t opens, int32_t closes, int64_t bytes) {
  s->live[opens == PLANC_AT_BOUNDARY ? 0 : opens + 1] += bytes;
  if (closes != PLANC_STAYS) s->live[closes == PLANC_AT_BOUNDARY ? 1 : closes + 2] -= bytes;
}

/* As slots.c makes them. */
static void note_stored(const spilling *s, const planc_content *content) {
  const planc_read *reads = &s->contents->reads[content->first_read];
  int64_t bytes = bytes_of(s, content);
  if (content->written != PLANC_AT_BOUNDARY) note(s, content->written, content->stored_by, bytes);
  for (int32_t r = 0; r < content->n_reads; r++) note(s, reads[r].load, reads[r].command, bytes);
}

/* The position at which most lives, and how much that is. */
static int32_t find_fullest(const spilling *s, int64_t *out_bytes) {
  int32_t fullest = 0;
  for (int32_t p = 0; p < s->n_commands + 3; p++) s->live[p] = 0;
  for (int32_t k = 0; k < s->contents->n; k++) {
    const planc_content *content = &s->contents->all[k];
    if (content->stored) {
      note_stored(s, content);
    } else {
      note(s, content->written, content->until, bytes_of(s, content));
    }
  }
  for (int32_t p = 1; p < s->n_commands + 3; p++) {
    s->live[p] += s->live[p - 1];
    if (s->live[p] > s->live[fullest]) fullest = p;
  }
  *out_bytes = s->live[fullest];
  return fullest;
}

/* Lets stored contents stay on the host until they are stored. */
static void delay_releases(const spilling *s, int64_t room) {
  for (int32_t k = 0; k < s->contents->n; k++) {
    planc_content *content = &s->contents->all[k];
    int64_t bytes = bytes_of(s, content);
    int32_t limit = content->n_reads > 0 ? s->contents->reads[content->first_read].load - 1 : s->n_commands - 1;
    if (!content->stored || content->written == PLANC_AT_BOUNDARY) continue;
    if (limit > s->done_by[k]) limit = s->done_by[k];
    while (content->stored_by < limit && s->live[content->stored_by + 2] <= room - bytes)
      s->live[++content->stored_by + 1] += bytes;
  }
}

/* Loads stored contents ahead of their reads. */
static void advance_loads(const spilling *s, int64_t room) {
  for (int32_t c = 0; c < s->n_commands; c++) {
    int32_t r = s->readers[c].read;
    if (r < 0 || !s->contents->all[s->readers[c].content].stored) continue;
    const planc_content *content = &s->contents->all[s->readers[c].content];
    int64_t bytes = bytes_of(s, content);
    int32_t first = content->stored_by + 1;
    planc_read *read = &s->contents->reads[r];
    if (r > content->first_read && read[-1].command + 1 > first) first = read[-1].command + 1;
    if (first < s->load_at[r]) first = s->load_at[r];
    while (read->load > first && s->live[read->load] <= room - bytes) s->live[read->load--] += bytes;
  }
}

/* --- Choosing -------------------------------------------------------------------------------------------------------
 */

/* For how long nothing asks for a content around a position; -1 where something does, or it is not there. */
static int64_t idle_at(const spilling *s, const planc_content *content, int32_t position) {
  int32_t before = content->written + 1, after = content->until == PLANC_STAYS ? s->n_commands + 1 : -1;
  if (position < before || (position == before && content->written != PLANC_AT_BOUNDARY)) return -1;
  for (int32_t r = 0; r < content->n_reads; r++) {
    int32_t at = s->contents->reads[content->first_read + r].command + 1;
    if (at == position) return -1;
    if (at > position) {
      after = at;
      break;
    }
    before = at;
  }
  return after < 0 ? -1 : s->now[after - 1] - s->now[before > 0 ? before - 1 : 0];
}

/* A parked buffer is stored at both ends of the period. */
static void store(const spilling *s, int32_t k) {
  s->contents->all[k].stored = s->contents->all[s->contents->all[k].twin].stored = true;
}

static int compare(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->idle != y->idle) return x->idle > y->idle ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return (x->content > y->content) - (x->content < y->content);
}

/* Stores contents that live at the position, until `excess` bytes less live there; false when there is none. */
static bool store_some(const spilling *s, int32_t position, int64_t excess) {
  int32_t n = 0;
  for (int32_t k = 0; k < s->contents->n; k++) {
    const planc_content *content = &s->contents->all[k];
    int64_t idle = content->stored ? -1 : idle_at(s, content, position);
    if (idle >= 0) s->candidates[n++] = (candidate){idle, bytes_of(s, content), k};
  }
  if (n > 0) qsort(s->candidates, (size_t)n, sizeof *s->candidates, compare);
  for (int32_t i = 0; i < n && excess > 0; i++) {
    store(s, s->candidates[i].content);
    excess -= s->candidates[i].bytes;
  }
  return n > 0;
}

static planc_status prepare(spilling *s, planc_arena *arena) {
  PLANC_TRY(PLANC_NEW(arena, &s->now, (int64_t)s->n_commands + 1));
  PLANC_TRY(PLANC_NEW(arena, &s->readers, s->n_commands));
  PLANC_TRY(PLANC_NEW(arena, &s->done_by, s->contents->n));
  PLANC_TRY(PLANC_NEW(arena, &s->load_at, s->n_commands));
  PLANC_TRY(PLANC_NEW(arena, &s->live, (int64_t)s->n_commands + 3));
  PLANC_TRY(PLANC_NEW(arena, &s->candidates, s->contents->n));
  find_times(s);
  find_readers(s);
  return NULL;
}

planc_status planc_contents_spill(planc_arena *arena, const planc_schedule *schedule, const planc_device *device,
                                  int64_t host_bytes, int64_t room_bytes, planc_contents *contents) {
  spilling s = {
      .schedule = schedule, .device = device, .contents = contents, .n_commands = planc_schedule_n_commands(schedule)};
  int64_t most;
  bool more = true;
  for (int32_t k = 0; k < contents->n; k++) contents->all[k].stored = false;
  PLANC_TRY(prepare(&s, arena));
  while (more) {
    time_stores(&s);
    time_loads(&s);
    int32_t position = find_fullest(&s, &most);
    more = most > host_bytes && store_some(&s, position, most - host_bytes);
  }
  delay_releases(&s, room_bytes);
  advance_loads(&s, room_bytes);
  return NULL;
}
