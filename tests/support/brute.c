/* Whole schedules by brute force (brute.h). */
#include "tests/support/brute.h"

#include <limits.h>

static int64_t units(int64_t bytes) {
  int64_t least = bytes > 0 ? bytes : 0;
  return (least + PLANC_ALIGNMENT - 1) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
}

/* --- The space ---------------------------------------------------------------------------------------------------- */

static const planc_access *access_at(const planc_trace *trace, const planc_buffer *buffer, int32_t k) {
  return &trace->accesses[trace->by_buffer[buffer->first_access + k]];
}

static bool stays_always(const planc_buffer *buffer) {
  return (buffer->flags & PLANC_BUFFER_PERSISTENT) || planc_kind_persists(buffer->kind) ||
         buffer->kind == PLANC_KIND_grad;
}

static bool add_gap(brute_space *space, brute_gap gap) {
  if (space->n_gaps == BRUTE_MAX_GAPS) return false;
  space->gaps[space->n_gaps++] = gap;
  return true;
}

static bool find_gaps(brute_space *space, int32_t b) {
  const planc_trace *trace = space->trace;
  const planc_buffer *buffer = &trace->buffers[b];
  int32_t written = -1;
  if (stays_always(buffer)) return true;
  for (int32_t k = 0; k < buffer->n_accesses; k++) {
    const planc_access *access = access_at(trace, buffer, k);
    int32_t from = k > 0 ? access_at(trace, buffer, k - 1)->instance : -1;
    bool fed = k == 0 && (buffer->flags & PLANC_BUFFER_FED) && access->read >= 0;
    bool inside = k > 0 && access->instance - from > 1;
    brute_gap gap = {b, from, access->instance, access->read, written};
    if ((fed || inside) && !add_gap(space, gap)) return false;
    if (access->write >= 0) written = access->instance;
  }
  return true;
}

static planc_variant variant_of(const brute_space *space, int32_t i, int32_t v) {
  const planc_trace *trace = space->trace;
  const planc_instance *instance = &trace->instances[i];
  if (instance->role == PLANC_ROLE_ACCUMULATE) {
    int64_t bytes = trace->buffers[trace->accesses[instance->first_access].buffer].bytes;
    return (planc_variant){.time_ns = planc_costs_add_ns(space->costs->profile, bytes)};
  }
  int32_t count;
  return planc_costs_variants(space->costs, instance->op, planc_costs_batch(space->costs, instance->batch), &count)[v];
}

/* Those that no other beats; of equal ones the first. */
static bool find_variants(brute_space *space, int32_t i) {
  const planc_instance *instance = &space->trace->instances[i];
  int32_t count = 1;
  if (instance->role == PLANC_ROLE_OP)
    (void)planc_costs_variants(space->costs, instance->op, planc_costs_batch(space->costs, instance->batch), &count);
  for (int32_t v = 0; v < count; v++) {
    planc_variant one = variant_of(space, i, v);
    bool beaten = false;
    for (int32_t w = 0; w < count && !beaten; w++) {
      planc_variant other = variant_of(space, i, w);
      bool no_worse = other.time_ns <= one.time_ns && units(other.workspace_bytes) <= units(one.workspace_bytes);
      bool equal = other.time_ns == one.time_ns && units(other.workspace_bytes) == units(one.workspace_bytes);
      beaten = no_worse && (!equal || w < v);
    }
    if (beaten) continue;
    if (space->n_variants[i] == BRUTE_MAX_VARIANTS) return false;
    space->variants[i][space->n_variants[i]++] = v;
  }
  return true;
}

bool brute_space_of(const planc_trace *trace, const planc_costs *costs, brute_space *out) {
  *out = (brute_space){.trace = trace, .costs = costs};
  if (trace->n_instances > BRUTE_MAX_INSTANCES) return false;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (!find_gaps(out, b)) return false;
  for (int32_t i = 0; i < trace->n_instances; i++)
    if (!find_variants(out, i)) return false;
  return true;
}

/* --- Its points --------------------------------------------------------------------------------------------------- */

static planc_variant chosen(const brute_space *space, const brute_choice *choice, int32_t i) {
  return variant_of(space, i, space->variants[i][choice->variant[i]]);
}

/* Data that nobody needs back has one moment to come back: the last. */
static int32_t first_moment(const brute_gap *gap, bool moments) {
  return moments && gap->version >= 0 ? gap->from + 1 : gap->to;
}

static bool may_stay(const brute_gap *gap) {
  return gap->from >= 0;
}

double brute_count(const brute_space *space, bool moments) {
  double count = 1;
  for (int32_t g = 0; g < space->n_gaps; g++)
    count *= space->gaps[g].to - first_moment(&space->gaps[g], moments) + 1 + may_stay(&space->gaps[g]);
  for (int32_t i = 0; i < space->trace->n_instances; i++) count *= space->n_variants[i];
  return count;
}

void brute_first(const brute_space *space, bool moments, brute_choice *out) {
  *out = (brute_choice){.back = {0}};
  for (int32_t g = 0; g < space->n_gaps; g++)
    if (!may_stay(&space->gaps[g])) out->back[g] = first_moment(&space->gaps[g], moments);
}

bool brute_next(const brute_space *space, bool moments, brute_choice *choice) {
  for (int32_t i = 0; i < space->trace->n_instances; i++) {
    if (++choice->variant[i] < space->n_variants[i]) return true;
    choice->variant[i] = 0;
  }
  for (int32_t g = 0; g < space->n_gaps; g++) {
    const brute_gap *gap = &space->gaps[g];
    bool stays = may_stay(gap) && choice->back[g] == 0;
    choice->back[g] = stays ? first_moment(gap, moments) : choice->back[g] + 1;
    if (choice->back[g] <= gap->to) return true;
    choice->back[g] = may_stay(gap) ? 0 : first_moment(gap, moments);
  }
  return false;
}

static bool is_away(const brute_space *space, const brute_choice *choice, int32_t g) {
  return !may_stay(&space->gaps[g]) || choice->back[g] > 0;
}

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

/* Bytes that are on the device while instance i runs; `early`: with what came back before it is needed. */
static int64_t bytes_at(const brute_space *space, const brute_choice *choice, int32_t i, bool early) {
  const planc_trace *trace = space->trace;
  int64_t sum = units(chosen(space, choice, i).workspace_bytes);
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    bool lives = (buffer->flags & PLANC_BUFFER_PERSISTENT) != 0;
    if (!lives && buffer->n_accesses > 0) {
      lives =
          access_at(trace, buffer, 0)->instance <= i && access_at(trace, buffer, buffer->n_accesses - 1)->instance >= i;
    }
    if (lives) sum += units(buffer->bytes);
  }
  for (int32_t g = 0; g < space->n_gaps; g++) {
    const brute_gap *gap = &space->gaps[g];
    if (i <= gap->from || i >= gap->to || !is_away(space, choice, g)) continue;
    int64_t bytes = units(trace->buffers[gap->buffer].bytes);
    bool back = early && i >= choice->back[g];
    if (gap->from < 0) {
      sum += back ? bytes : 0; /* its life as counted above begins with its first use */
    } else {
      sum -= back ? 0 : bytes;
    }
  }
  return sum;
}

int64_t brute_peak(const brute_space *space, const brute_choice *choice) {
  int64_t peak = 0;
  for (int32_t i = 0; i < space->trace->n_instances; i++) {
    int64_t bytes = bytes_at(space, choice, i, true);
    if (bytes > peak) peak = bytes;
  }
  return peak;
}

int64_t brute_least_peak(const brute_space *space) {
  brute_choice choice = {.back = {0}};
  for (int32_t g = 0; g < space->n_gaps; g++) choice.back[g] = space->gaps[g].to;
  for (int32_t i = 0; i < space->trace->n_instances; i++)
    for (int32_t v = 0; v < space->n_variants[i]; v++) {
      int64_t workspace = variant_of(space, i, space->variants[i][v]).workspace_bytes;
      if (workspace < chosen(space, &choice, i).workspace_bytes) choice.variant[i] = v;
    }
  return brute_peak(space, &choice);
}

int64_t brute_least_instance(const brute_space *space) {
  const planc_trace *trace = space->trace;
  int64_t most = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    int64_t bytes = INT64_MAX;
    for (int32_t v = 0; v < space->n_variants[i]; v++) {
      int64_t workspace = units(variant_of(space, i, space->variants[i][v]).workspace_bytes);
      if (workspace < bytes) bytes = workspace;
    }
    for (int32_t k = 0; k < instance->n_accesses; k++)
      bytes += units(trace->buffers[trace->accesses[instance->first_access + k].buffer].bytes);
    if (bytes > most) most = bytes;
  }
  return most;
}

/* --- Time --------------------------------------------------------------------------------------------------------- */

typedef struct bound {
  const brute_space *space;
  const brute_choice *choice;
  int64_t arena;
  int64_t bytes[BRUTE_MAX_INSTANCES]; /* that cannot be elsewhere while the instance runs */
  int64_t end[BRUTE_MAX_INSTANCES];   /* the earliest; the iteration before ends at 0 */
} bound;

/* A copy that can start at `ready`. */
typedef struct copy {
  int64_t ready, ns, bytes;
} copy;

/* When an engine can have done all of them: the ones that are ready first go first. */
static int64_t done_ns(const copy *copies, int32_t n, uint32_t which) {
  int64_t latest = 0;
  for (int32_t k = 0; k < n; k++) {
    if (!(which >> k & 1)) continue;
    int64_t sum = copies[k].ready;
    for (int32_t other = 0; other < n; other++)
      if ((which >> other & 1) && copies[other].ready >= copies[k].ready) sum += copies[other].ns;
    if (sum > latest) latest = sum;
  }
  return latest;
}

static int64_t copy_out_ns(const brute_space *space, int32_t buffer) {
  return planc_link_ns(&space->costs->device.links[PLANC_ROUTE_D2H], space->trace->buffers[buffer].bytes);
}
static int64_t copy_in_ns(const brute_space *space, int32_t buffer) {
  return planc_link_ns(&space->costs->device.links[PLANC_ROUTE_H2D], space->trace->buffers[buffer].bytes);
}

static bool goes_out(const brute_gap *gap) {
  return gap->version >= 0 && gap->written >= 0;
}

/* A gap's data can be on its way back, to another place than it had, when the host has it and no instance before the
 * gap's end leaves it no room beside. False for the user's data that can come before the iteration starts. */
static bool back_ready(const bound *b, const brute_gap *gap, int64_t *out) {
  const brute_space *space = b->space;
  int64_t bytes = units(space->trace->buffers[gap->buffer].bytes);
  bool any = goes_out(gap) || b->bytes[space->trace->n_instances - 1] + bytes > b->arena;
  *out = goes_out(gap) ? b->end[gap->written] + copy_out_ns(space, gap->buffer) : 0;
  for (int32_t i = gap->written + 1; i < gap->to; i++) {
    if (b->bytes[i] + bytes <= b->arena) continue;
    if (b->end[i] > *out) *out = b->end[i];
    any = true;
  }
  return any;
}

/* When all that instance i and those before it need can be back. */
static int64_t inputs_ready(const bound *b, int32_t i) {
  copy copies[BRUTE_MAX_GAPS];
  int32_t n = 0;
  for (int32_t g = 0; g < b->space->n_gaps; g++) {
    const brute_gap *gap = &b->space->gaps[g];
    if (gap->to > i || gap->version < 0 || !is_away(b->space, b->choice, g)) continue;
    copy one = {.ns = copy_in_ns(b->space, gap->buffer)};
    if (back_ready(b, gap, &one.ready)) copies[n++] = one;
  }
  return done_ns(copies, n, (1u << n) - 1);
}

/* The writer of a buffer's last version. */
static int32_t last_writer(const planc_trace *trace, const planc_buffer *buffer) {
  for (int32_t k = buffer->n_accesses - 1; k >= 0; k--)
    if (access_at(trace, buffer, k)->write >= 0) return access_at(trace, buffer, k)->instance;
  return -1;
}

/* When enough of what is on its way out can have left for instance i to have its bytes. */
static int64_t room_ready(const bound *b, int32_t i) {
  enum { MOST = BRUTE_MAX_GAPS };
  const planc_trace *trace = b->space->trace;
  copy copies[MOST];
  int32_t n = 0;
  int64_t total = 0;
  for (int32_t g = 0; g < b->space->n_gaps && n < MOST; g++) {
    const brute_gap *gap = &b->space->gaps[g];
    if (!is_away(b->space, b->choice, g) || !goes_out(gap) || i <= gap->from || i >= gap->to) continue;
    copies[n++] =
        (copy){b->end[gap->written], copy_out_ns(b->space, gap->buffer), units(trace->buffers[gap->buffer].bytes)};
  }
  for (int32_t k = 0; k < trace->n_buffers && n < MOST; k++) {
    const planc_buffer *buffer = &trace->buffers[k];
    if (!(buffer->flags & PLANC_BUFFER_RESULT) || buffer->n_accesses == 0) continue;
    if (access_at(trace, buffer, buffer->n_accesses - 1)->instance >= i) continue;
    copies[n++] = (copy){b->end[last_writer(trace, buffer)], copy_out_ns(b->space, k), units(buffer->bytes)};
  }
  for (int32_t k = 0; k < n; k++) total += copies[k].bytes;
  if (b->bytes[i] + total <= b->arena) return 0;
  int64_t best = INT64_MAX;
  for (uint32_t which = 1; which < 1u << n; which++) {
    int64_t left = total;
    for (int32_t k = 0; k < n; k++) left -= which >> k & 1 ? copies[k].bytes : 0;
    if (b->bytes[i] + left > b->arena) continue;
    int64_t done = done_ns(copies, n, which);
    if (done < best) best = done;
  }
  return best;
}

/* What the copy engines have to do per iteration: whatever overlaps, the iteration is not shorter. */
static int64_t engines_ns(const brute_space *space, const brute_choice *choice) {
  int64_t in = 0, out = 0;
  for (int32_t b = 0; b < space->trace->n_buffers; b++)
    if (space->trace->buffers[b].flags & PLANC_BUFFER_RESULT) out += copy_out_ns(space, b);
  for (int32_t g = 0; g < space->n_gaps; g++) {
    const brute_gap *gap = &space->gaps[g];
    if (gap->version < 0 || !is_away(space, choice, g)) continue;
    in += copy_in_ns(space, gap->buffer);
    bool first = goes_out(gap); /* the host keeps a version it has got */
    for (int32_t k = 0; k < g; k++)
      first &= !(space->gaps[k].buffer == gap->buffer && space->gaps[k].version == gap->version &&
                 is_away(space, choice, k));
    if (first) out += copy_out_ns(space, gap->buffer);
  }
  return in > out ? in : out;
}

int64_t brute_bound_ns(const brute_space *space, const brute_choice *choice, int64_t arena) {
  bound b = {.space = space, .choice = choice, .arena = units(arena)};
  int32_t n = space->trace->n_instances;
  for (int32_t i = 0; i < n; i++) {
    b.bytes[i] = bytes_at(space, choice, i, false);
    if (b.bytes[i] > b.arena) return INT64_MAX;
  }
  for (int32_t i = 0; i < n; i++) {
    int64_t start = i > 0 ? b.end[i - 1] : 0, inputs = inputs_ready(&b, i), room = room_ready(&b, i);
    if (inputs > start) start = inputs;
    if (room > start) start = room;
    b.end[i] = start + chosen(space, choice, i).time_ns;
  }
  int64_t engines = engines_ns(space, choice);
  return engines > b.end[n - 1] ? engines : b.end[n - 1];
}

/* --- Stating a point ---------------------------------------------------------------------------------------------- */

typedef struct stater {
  const brute_space *space;
  const brute_choice *choice;
  planc_schedule *s;
  bool apart;
  int64_t top; /* of the addresses stated */
} stater;

static int64_t next_address(stater *st, int32_t buffer) {
  if (!st->apart) return PLANC_BLANK;
  int64_t address = st->top, bytes = units(st->space->trace->buffers[buffer].bytes);
  st->top += bytes > 0 ? bytes : PLANC_ALIGNMENT;
  return address;
}

static planc_status acquire(stater *st, int32_t buffer, int32_t *out) {
  return planc_schedule_acquire(st->s, buffer, planc_schedule_device(st->s), next_address(st, buffer), out);
}

static planc_status bring_back(stater *st, int32_t i) {
  for (int32_t g = 0; g < st->space->n_gaps; g++) {
    const brute_gap *gap = &st->space->gaps[g];
    if (!is_away(st->space, st->choice, g) || st->choice->back[g] != i) continue;
    int32_t residency;
    PLANC_TRY(acquire(st, gap->buffer, &residency));
    if (gap->version >= 0) PLANC_TRY(planc_schedule_prefetch(st->s, residency, gap->version));
  }
  return NULL;
}

/* A version leaves as soon as it is written. */
static planc_status send_out(const stater *st, int32_t i) {
  for (int32_t g = 0; g < st->space->n_gaps; g++) {
    const brute_gap *gap = &st->space->gaps[g];
    if (!is_away(st->space, st->choice, g) || !goes_out(gap) || gap->written != i) continue;
    if (planc_schedule_on_host(st->s, gap->buffer, gap->version)) continue;
    PLANC_TRY(planc_schedule_offload(st->s, planc_schedule_open(st->s, gap->buffer), planc_schedule_host(st->s)));
  }
  return NULL;
}

static planc_status let_go(const stater *st, int32_t i) {
  const planc_trace *trace = st->space->trace;
  const planc_instance *instance = &trace->instances[i];
  for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
    int32_t b = trace->accesses[a].buffer;
    const planc_buffer *buffer = &trace->buffers[b];
    if (buffer->flags & PLANC_BUFFER_PERSISTENT) continue;
    if (access_at(trace, buffer, buffer->n_accesses - 1)->instance != i) continue;
    if (buffer->flags & PLANC_BUFFER_RESULT) PLANC_TRY(planc_schedule_deliver(st->s, planc_schedule_open(st->s, b)));
    PLANC_TRY(planc_schedule_release(st->s, planc_schedule_open(st->s, b)));
  }
  for (int32_t g = 0; g < st->space->n_gaps; g++) {
    const brute_gap *gap = &st->space->gaps[g];
    if (gap->from != i || !is_away(st->space, st->choice, g)) continue;
    PLANC_TRY(planc_schedule_release(st->s, planc_schedule_open(st->s, gap->buffer)));
  }
  return NULL;
}

static planc_status state(stater *st) {
  const planc_trace *trace = st->space->trace;
  int32_t residency;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT)
      PLANC_TRY(planc_schedule_boundary(st->s, b, planc_schedule_device(st->s), next_address(st, b), &residency));
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    PLANC_TRY(bring_back(st, i));
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++)
      if (planc_schedule_open(st->s, trace->accesses[a].buffer) < 0)
        PLANC_TRY(acquire(st, trace->accesses[a].buffer, &residency));
    PLANC_TRY(planc_schedule_exec(st->s, i, st->space->variants[i][st->choice->variant[i]], PLANC_BLANK, false));
    PLANC_TRY(send_out(st, i));
    PLANC_TRY(let_go(st, i));
  }
  return planc_schedule_finish(st->s);
}

planc_status brute_schedule(const brute_space *space, const brute_choice *choice, bool apart, planc_schedule **out) {
  PLANC_TRY(planc_schedule_new(space->trace, (const planc_costs *const[]){space->costs}, NULL, 0, out));
  stater st = {.space = space, .choice = choice, .s = *out, .apart = apart};
  planc_status status = state(&st);
  if (!status) return NULL;
  planc_schedule_free(*out);
  *out = NULL;
  return status;
}
