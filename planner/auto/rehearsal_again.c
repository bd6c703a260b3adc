/* What runs again in a rehearsal (rehearsal.h): first which instances do, as planner/choose/restores.c finds them; then
 * what is held while they run, when it is known how long each stone is needed, as planner/choose/absences.c opens and
 * closes them. What changes there changes here: tests/unit/test_auto.c holds one to the other. */
#include "planner/auto/rehearsal_state.h"

static void ask_for_inputs(pl_rehearsal *r, int32_t instance, bool again);
static bool is_restored(const pl_rehearsal *r, int32_t instance);
static void run_again(pl_rehearsal *r, int32_t instance);
static void keep_or_close(pl_rehearsal *r);

void pl_rehearsal_restore(pl_rehearsal *r, int32_t instance) {
  ask_for_inputs(r, instance, false);
  while (r->depth > 0 && r->works) {
    int32_t top = r->stack[r->depth - 1], asked = top < 0 ? -1 - top : top;
    r->steps += r->gaps->trace->instances[asked].n_accesses;
    r->work += r->gaps->trace->instances[asked].n_accesses;
    if (is_restored(r, asked)) {
      r->depth--;
    } else if (top < 0) {
      r->depth--;
      run_again(r, asked);
    } else {
      r->stack[r->depth - 1] = -1 - asked;
      ask_for_inputs(r, asked, true);
    }
  }
  if (r->works) keep_or_close(r);
}

static void ask_for_inputs(pl_rehearsal *r, int32_t instance, bool again) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    if ((again && access->effect) || access->read < 0 || is_resident(r, access->buffer, access->read) ||
        is_on_host(r, access->buffer, access->read))
      continue;
    int32_t writer = r->tables.writer[number_of(r, access->buffer, access->read)];
    bool may = writer != NONE && r->gaps->latest[writer] >= r->position;
    r->works &= may && r->depth < trace->n_accesses;
    if (!r->works) return;
    r->stack[r->depth++] = writer;
  }
}

static bool is_restored(const pl_rehearsal *r, int32_t instance) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    if (access->write >= 0 && !access->effect && !is_resident(r, access->buffer, access->write)) return false;
  }
  return true;
}

static bool finds_place(const pl_rehearsal *r, const planc_access *access, pl_stone **out_stone);
static void open_stone(pl_rehearsal *r, const planc_access *access);
static void write_in_place(pl_rehearsal *r, const planc_access *access);

static void run_again(pl_rehearsal *r, int32_t instance) {
  const planc_trace *trace = r->gaps->trace;
  const planc_instance *in = &trace->instances[instance];
  int32_t first = r->gaps->order->first[instance], end = in->first_access + in->n_accesses;
  r->works &= r->n_runs < trace->n_accesses;
  for (int32_t a = in->first_access; r->works && a < end; a++) {
    const planc_access *access = &trace->accesses[a];
    pl_stone *stone;
    if (access->effect || finds_place(r, access, &stone)) continue;
    if (stone)
      stone->last = r->n_runs;
    else
      open_stone(r, access);
  }
  if (!r->works) return;
  r->runs[r->n_runs++] = (pl_rehearsed_run){r->workspace[first], r->n_stones, NONE};
  r->again_ns[r->position] += r->op_ns[first];
  for (int32_t a = in->first_access; a < end; a++) {
    const planc_access *access = &trace->accesses[a];
    if (!access->effect && access->read >= 0 && access->write >= 0) write_in_place(r, access);
  }
}

/* What it reads, or what is open for what it writes: that is the residency opened last. Whether it is no stone. */
static bool finds_place(const pl_rehearsal *r, const planc_access *access, pl_stone **out_stone) {
  int32_t top = r->stone_of[access->buffer], version = access->read >= 0 ? access->read : access->write;
  bool only_writes = access->read < 0 && top != NONE;
  *out_stone = NULL;
  if (!only_writes && resident_of(r, access->buffer) == version) return true;
  if (!only_writes)
    *out_stone = find_stone(r, access->buffer, version);
  else if (r->stones[top].is.version == version)
    *out_stone = &r->stones[top].is;
  return false;
}

static void open_stone(pl_rehearsal *r, const planc_access *access) {
  int32_t buffer = access->buffer, version = access->read >= 0 ? access->read : access->write;
  bool is_ahead = access->read >= 0 && come_from_host(r, buffer, version);
  r->works &= r->n_stones < r->gaps->trace->n_accesses;
  if (!r->works) return;
  r->stones[r->n_stones] =
      (pl_rehearsed_stone){{buffer, version, NONE, r->n_runs, r->stone_of[buffer]}, is_ahead, NONE};
  r->stone_of[buffer] = r->n_stones++;
}

/* What is changed in place has the version that it is changed to. */
static void write_in_place(pl_rehearsal *r, const planc_access *access) {
  pl_stone *stone = find_stone(r, access->buffer, access->read);
  if (stone)
    stone->version = access->write;
  else
    r->resident[access->buffer] = access->write;
}

static void keep_or_list(pl_rehearsal *r, int32_t number);

/* What is read later stays; the rest of what recomputes open goes behind the last that needs it. What has come for a
 * gap is what stays, whatever else holds the same in the end: the walk has it first. */
static void keep_or_close(pl_rehearsal *r) {
  for (int32_t k = 0; k < r->n_stones; k++) {
    if (!r->stones[k].is_ahead) continue;
    r->live += r->tables.bytes[r->stones[k].is.buffer];
    keep_or_list(r, k);
  }
  for (int32_t k = 0; k < r->n_stones; k++) {
    r->stone_of[r->stones[k].is.buffer] = NONE;
    if (!r->stones[k].is_ahead) keep_or_list(r, k);
  }
  for (int32_t k = 0, opened = 0; k < r->n_runs; k++) {
    for (; opened < r->runs[k].n_stones; opened++)
      if (!r->stones[opened].is_ahead) r->live += r->tables.bytes[r->stones[opened].is.buffer];
    note_held(r, r->runs[k].workspace);
    for (int32_t c = r->runs[k].first_closing; c != NONE; c = r->stones[c].also_closing)
      r->live -= r->tables.bytes[r->stones[c].is.buffer];
  }
  r->n_stones = r->n_runs = 0;
}

static bool stays(pl_rehearsal *r, const pl_stone *stone);

static void keep_or_list(pl_rehearsal *r, int32_t number) {
  pl_rehearsed_stone *stone = &r->stones[number];
  if (stays(r, &stone->is)) return;
  stone->also_closing = r->runs[stone->is.last].first_closing;
  r->runs[stone->is.last].first_closing = number;
}

static bool stays(pl_rehearsal *r, const pl_stone *stone) {
  int32_t buffer = stone->buffer, version = stone->version;
  if (!r->movers.moves[buffer]) return false; /* what rests is there from its first use on, up to its last */
  const planc_access *next = next_access(r, buffer);
  if (r->resident[buffer] == version || !next || next->read != version) return false;
  int32_t gap = r->gaps->of_use[r->next[buffer]];
  bool is_for_other = gap != NONE && r->gaps->items[gap].to != r->position;
  if (is_for_other && r->ways[gap] == PL_AUTO_TWICE && !is_on_host(r, buffer, version)) {
    r->apart[gap] = true;
    return false;
  }
  keep(r, buffer, version);
  if (gap != NONE) r->back[gap] = r->position;
  return true;
}
