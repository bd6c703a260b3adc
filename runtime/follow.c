/* The follower (planrt/follow.h): the plan's body in file order, with the framework's calls in place of its own.
 *
 * It goes by what is there, not by what an instruction says should be: data that are still in place are not copied in,
 * and data of which no other copy exists stay although the plan releases them. So a framework may know what persists
 * late, and may have brought it back between two iterations. */
#include "planrt/follow.h"

#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "util/arena.h"
#include "util/math.h"

enum { NOTHING = -1 };

/* What becomes of a buffer's data when its last place on the device is released. */
typedef enum next_use {
  NEXT_NONE,  /* nothing uses them any more */
  NEXT_WRITE, /* they are overwritten first */
  NEXT_READ
} next_use;

/* A residency. */
typedef struct place {
  int32_t buffer, memory;
  int64_t address;
  int32_t version; /* on the host, of what lies there; NOTHING: nothing does */
  int32_t below;   /* on the host, of the buffer's places there the one that was opened before; NOTHING: none */
  bool open;
} place;

/* Where a buffer's data are. */
typedef struct content {
  bool present;    /* in memory of the framework's */
  int32_t version; /* which the framework has, where it is present */
  int32_t made;    /* by the calls that were made */
  int32_t places;  /* residencies that are open on the device */
  int32_t host;    /* of those on the host the one that was opened last; NOTHING: none is open */
} content;

struct planrt_follow {
  const planc_plan *plan;
  planrt_framework framework;
  planc_trace *trace;
  pl_arena memory;
  char *host;         /* the arena of the host; NULL in a rehearsal */
  place *places;      /* by residency */
  content *contents;  /* by buffer */
  uint8_t *next_uses; /* by instruction of the body, of releases and copies: next_use */
  int32_t *ends;      /* by row of the boundary: the residency that is there at the end of the body */
  bool *repeats;      /* by instance */
  int32_t *wanted;    /* of one call */
  bool *seen;         /* by buffer, while the plan is left, as the following ones */
  bool *needed;       /* by instruction of the body */
  char **kept;        /* by buffer: a copy of data that made room for an older version; NULL: there is none */
  int32_t at, call;   /* where the iteration is: the next instruction, the next instance */
  bool within, left;
  bool asked; /* the framework was told the next call */
  bool over;  /* the iteration has failed, and was left by that */
  planrt_follow_counts counts;
};

static planc_status build(planrt_follow *f);
static planc_status rehearse(planrt_follow *f);
static void start(planrt_follow *f);

planc_status planrt_follow_new(const planc_plan *plan, const planrt_framework *framework, planrt_follow **out) {
  planrt_follow *f = calloc(1, sizeof *f);
  if (!f) return planc_error(PLANC_OUT_OF_MEMORY, "follower");
  *f = (planrt_follow){.plan = plan, .framework = *framework};
  planc_status status = planc_check(plan, NULL, NULL);
  if (!status) status = build(f);
  if (!status) status = rehearse(f);
  int64_t bytes = planc_plan_memory(plan, PLANC_MEMORY_HOST)->arena_bytes;
  if (!status) status = pl_arena_alloc(&f->memory, bytes > 0 ? bytes : 1, 1, (void *)&f->host);
  if (status)
    planrt_follow_free(f);
  else
    *out = f;
  return status;
}

void planrt_follow_free(planrt_follow *f) {
  if (!f) return;
  planc_trace_free(f->trace);
  pl_arena_free(&f->memory);
  free(f);
}

const planc_trace *planrt_follow_trace(const planrt_follow *f) {
  return f->trace;
}

bool planrt_follow_repeats(const planrt_follow *f, int32_t call) {
  return call >= 0 && call < f->trace->n_instances && f->repeats[call];
}

int32_t planrt_follow_buffer(const planrt_follow *f, int32_t tensor) {
  const planc_graph *graph = f->plan->jobs[0].graph;
  if (tensor < 0 || tensor >= graph->n_tensors) return NOTHING;
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (f->trace->buffers[b].storage == graph->tensors[tensor].storage) return b;
  return NOTHING;
}

static bool persists(const planrt_follow *f, int32_t buffer) {
  return f->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT;
}

int64_t planrt_follow_bytes(const planrt_follow *f, int32_t buffer) {
  return buffer >= 0 && buffer < f->trace->n_buffers ? f->trace->buffers[buffer].bytes : 0;
}

bool planrt_follow_persists(const planrt_follow *f, int32_t buffer) {
  return buffer >= 0 && buffer < f->trace->n_buffers && persists(f, buffer);
}

planrt_follow_counts planrt_follow_counted(const planrt_follow *f) {
  return f->counts;
}

/* --- An iteration ------------------------------------------------------------------------------------------------- */

static planc_status go_home(planrt_follow *f, int32_t row);
static planc_status run_to_call(planrt_follow *f);
static planc_status check_reads(const planrt_follow *f, int32_t instance, const int32_t *uses);
static planc_status make_room(planrt_follow *f, int32_t instance);
static void write_results(planrt_follow *f, int32_t instance, const int32_t *uses);
static planc_status bring_missing(planrt_follow *f);
static void wrap(planrt_follow *f);

/* What persists is where it was when something failed: whoever brings it, or ends the iteration, gets it back. */
static planc_status over_if(planrt_follow *f, planc_status status) {
  if (!status || !f->within) return status;
  f->counts.left += !f->left;
  f->left = f->over = true;
  return status;
}

planc_status planrt_follow_begin(planrt_follow *f) {
  if (f->within && !f->over) return planc_error(PLANC_USAGE, "an iteration is under way");
  if (f->within) PLANC_TRY(planrt_follow_end(f));
  for (int32_t row = 0; row < f->plan->n_boundary; row++) PLANC_TRY(go_home(f, row));
  f->within = true;
  f->left = false;
  f->asked = false;
  f->at = f->call = 0;
  return over_if(f, run_to_call(f));
}

static bool has_call(const planrt_follow *f) {
  return f->within && !f->left && f->call < f->trace->n_instances;
}

planc_status planrt_follow_next(planrt_follow *f, int32_t *out_call) {
  *out_call = NOTHING;
  if (!has_call(f)) return NULL;
  PLANC_TRY(over_if(f, check_reads(f, f->call, NULL)));
  PLANC_TRY(over_if(f, make_room(f, f->call)));
  *out_call = f->call;
  f->asked = true;
  return NULL;
}

planc_status planrt_follow_done(planrt_follow *f) {
  if (!has_call(f) || !f->asked) return planc_error(PLANC_USAGE, "no call was next");
  f->asked = false;
  write_results(f, f->call++, NULL);
  f->at++;
  return over_if(f, run_to_call(f));
}

planc_status planrt_follow_leave(planrt_follow *f) {
  if (!f->within || f->left) return NULL;
  f->left = true;
  f->counts.left++;
  return over_if(f, bring_missing(f));
}

planc_status planrt_follow_end(planrt_follow *f) {
  if (!f->within) return planc_error(PLANC_USAGE, "no iteration is under way");
  if (has_call(f)) return planc_error(PLANC_USAGE, "%d of %d calls were made", f->call, f->trace->n_instances);
  if (f->over) PLANC_TRY(planrt_follow_bring_all(f));
  f->within = f->over = false;
  f->counts.iterations++;
  wrap(f);
  return NULL;
}

/* --- What is done between calls ----------------------------------------------------------------------------------- */

static planc_status act(planrt_follow *f, const planc_instr *instr, next_use next);
static void open_place(planrt_follow *f, int32_t residency);
static planc_status release(planrt_follow *f, int32_t residency, next_use next);
static planc_status copy(planrt_follow *f, const planc_instr *instr, next_use next);
static planc_status repeat(planrt_follow *f, const planc_instr *instr);

static bool is_call(const planc_instr *instr) {
  return instr->op == PLANC_INSTR_exec && !instr->recompute;
}

static planc_status run_to_call(planrt_follow *f) {
  const planc_section *body = &f->plan->body;
  for (; f->at < body->n && !is_call(&body->instrs[f->at]); f->at++)
    PLANC_TRY(planc_context(act(f, &body->instrs[f->at], (next_use)f->next_uses[f->at]), "body[%d]", f->at));
  return NULL;
}

static planc_status act(planrt_follow *f, const planc_instr *instr, next_use next) {
  switch ((planc_instr_op)instr->op) {
    case PLANC_INSTR_acquire:
      open_place(f, instr->id);
      break;
    case PLANC_INSTR_release:
      return release(f, instr->id, next);
    case PLANC_INSTR_copy:
      return copy(f, instr, next);
    case PLANC_INSTR_exec:
      return repeat(f, instr);
    case PLANC_INSTR_record:
    case PLANC_INSTR_wait:
      break;
  }
  return NULL;
}

static planc_memory_kind memory_of(const planrt_follow *f, int32_t residency) {
  return residency == PLANC_USER ? PLANC_MEMORY_USER : f->plan->memories[f->places[residency].memory].kind;
}

static const char *name_of(const planrt_follow *f, int32_t buffer) {
  return planc_trace_buffer_name(f->trace, buffer);
}

static planc_status failed(const planrt_follow *f, int32_t buffer, const char *what) {
  return planc_error(PLANC_DEVICE, "%s: the framework could not %s", name_of(f, buffer), what);
}

static void open_place(planrt_follow *f, int32_t residency) {
  place *at = &f->places[residency];
  content *of = &f->contents[at->buffer];
  at->open = true;
  at->version = NOTHING;
  if (memory_of(f, residency) == PLANC_MEMORY_DEVICE) of->places++;
  if (memory_of(f, residency) != PLANC_MEMORY_HOST) return;
  at->below = of->host;
  of->host = residency;
}

static void *address_of(const planrt_follow *f, int32_t buffer) {
  return f->framework.address(f->framework.user, buffer);
}

static planc_status copy_out(planrt_follow *f, place *to) {
  const content *from = &f->contents[to->buffer];
  void *data = from->present ? address_of(f, to->buffer) : NULL;
  to->version = data ? from->version : NOTHING;
  if (!data || !f->host) return NULL;
  int64_t bytes = f->trace->buffers[to->buffer].bytes;
  memcpy(f->host + to->address, data, (size_t)bytes);
  f->counts.out_bytes += bytes;
  return NULL;
}

static planc_status allocate(planrt_follow *f, int32_t buffer) {
  if (f->framework.allocate(f->framework.user, buffer)) return failed(f, buffer, "allocate it");
  f->contents[buffer].present = true;
  return NULL;
}

static planc_status copy_in(planrt_follow *f, const place *from) {
  int32_t buffer = from->buffer;
  content *to = &f->contents[buffer];
  if (from->version == NOTHING)
    return planc_error(PLANC_INTERNAL, "%s is neither here nor on the host", name_of(f, buffer));
  if (!to->present) PLANC_TRY(allocate(f, buffer));
  to->version = from->version;
  if (!f->host) return NULL;
  void *data = address_of(f, buffer);
  if (!data) return failed(f, buffer, "say where it is");
  int64_t bytes = f->trace->buffers[buffer].bytes;
  memcpy(data, f->host + from->address, (size_t)bytes);
  f->counts.in_bytes += bytes;
  return NULL;
}

static planc_status give_back(planrt_follow *f, int32_t buffer, bool last) {
  if (f->framework.release(f->framework.user, buffer, last)) return failed(f, buffer, "release it");
  f->contents[buffer].present = false;
  return NULL;
}

/* Whether what persists may leave the device: the host has it, or gets it now where it could not be had before. */
static planc_status is_safe(planrt_follow *f, int32_t buffer, bool *out) {
  const content *of = &f->contents[buffer];
  place *host = of->host == NOTHING ? NULL : &f->places[of->host];
  if (host && host->version == NOTHING) PLANC_TRY(copy_out(f, host));
  *out = host && host->version == of->version;
  return NULL;
}

static void close_place(planrt_follow *f, int32_t residency) {
  content *of = &f->contents[f->places[residency].buffer];
  f->places[residency].open = false;
  while (of->host != NOTHING && !f->places[of->host].open) of->host = f->places[of->host].below;
}

static planc_status release(planrt_follow *f, int32_t residency, next_use next) {
  place *at = &f->places[residency];
  content *of = &f->contents[at->buffer];
  bool may_go = true;
  close_place(f, residency);
  if (memory_of(f, residency) != PLANC_MEMORY_DEVICE || --of->places > 0 || !of->present) return NULL;
  if (persists(f, at->buffer) && !address_of(f, at->buffer)) return NULL;
  if (persists(f, at->buffer) && next == NEXT_READ) PLANC_TRY(is_safe(f, at->buffer, &may_go));
  return may_go ? give_back(f, at->buffer, next == NEXT_NONE) : NULL;
}

/* What comes in for no call is for the user, who had it when it was given back for the last time. */
static planc_status copy(planrt_follow *f, const planc_instr *instr, next_use next) {
  planc_memory_kind from = memory_of(f, instr->aux), to = memory_of(f, instr->id);
  if (from == PLANC_MEMORY_DEVICE && to == PLANC_MEMORY_HOST) return copy_out(f, &f->places[instr->id]);
  if (from == PLANC_MEMORY_HOST && to == PLANC_MEMORY_DEVICE)
    return next == NEXT_NONE || f->contents[f->places[instr->id].buffer].present ? NULL
                                                                                 : copy_in(f, &f->places[instr->aux]);
  if (from == PLANC_MEMORY_HOST && to == PLANC_MEMORY_HOST) {
    const place *old = &f->places[instr->aux];
    place *new = &f->places[instr->id];
    new->version = old->version;
    if (f->host) memmove(f->host + new->address, f->host + old->address, (size_t)f->trace->buffers[old->buffer].bytes);
  }
  return NULL; /* within the device, and to the user: the framework has the data where it wants them */
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

/* Accesses of a call, all of them or, of one that is made again, those that it has a place for. */
static const planc_access *next_access(const planrt_follow *f, int32_t instance, const int32_t *uses, int32_t *k) {
  const planc_instance *of = &f->trace->instances[instance];
  while (++*k < of->n_accesses)
    if (!uses || uses[*k] >= 0) return &f->trace->accesses[of->first_access + *k];
  return NULL;
}
#define EACH_ACCESS(access, f, instance, uses) \
  (int32_t k_ = NOTHING; ((access) = next_access((f), (instance), (uses), &k_));)

/* Whether a call makes a buffer, as others write one that there is already. */
static bool makes(const planrt_follow *f, const planc_access *access) {
  return access->read < 0 && access->write == 1 && !persists(f, access->buffer);
}

static planc_status check_reads(const planrt_follow *f, int32_t instance, const int32_t *uses) {
  const planc_access *access;
  for
    EACH_ACCESS(access, f, instance, uses) {
      const content *of = &f->contents[access->buffer];
      if (access->read < 0 || (of->present && of->version == access->read)) continue;
      return planc_error(PLANC_INTERNAL, "%s reads version %d of %s, which is not on the device",
                         planc_trace_op(f->trace, instance)->name, access->read, name_of(f, access->buffer));
    }
  return NULL;
}

/* Gives memory to what a call overwrites, of what has none. */
static planc_status make_room(planrt_follow *f, int32_t instance) {
  const planc_access *access;
  for
    EACH_ACCESS(access, f, instance, NULL) {
      bool overwrites = access->read < 0 && !makes(f, access);
      if (overwrites && !f->contents[access->buffer].present) PLANC_TRY(allocate(f, access->buffer));
    }
  return NULL;
}

static void write_results(planrt_follow *f, int32_t instance, const int32_t *uses) {
  const planc_access *access;
  for
    EACH_ACCESS(access, f, instance, uses) {
      content *of = &f->contents[access->buffer];
      if (access->write < 0) continue;
      of->present = true;
      of->version = access->write;
      if (!uses) of->made = access->write;
    }
}

static planc_status repeat(planrt_follow *f, const planc_instr *instr) {
  const int32_t *uses = &f->plan->uses[instr->first_use];
  const planc_access *access;
  int32_t n = 0;
  PLANC_TRY(check_reads(f, instr->id, uses));
  for
    EACH_ACCESS(access, f, instr->id, uses) {
      const content *of = &f->contents[access->buffer];
      bool is_there = access->read < 0 && of->present;
      if (is_there && of->version != access->write)
        return planc_error(PLANC_USAGE, "the plan has two versions of %s on the device at once; a framework has one",
                           name_of(f, access->buffer));
      if (access->write < 0 || is_there) continue;
      if (access->read < 0 && !makes(f, access)) PLANC_TRY(allocate(f, access->buffer));
      f->wanted[n++] = access->buffer;
    }
  if (n == 0) return NULL;
  if (f->framework.repeat(f->framework.user, instr->id, f->wanted, n))
    return planc_error(PLANC_DEVICE, "the framework could not run %s again", planc_trace_op(f->trace, instr->id)->name);
  f->counts.repeats++;
  write_results(f, instr->id, uses);
  return NULL;
}

/* --- Leaving the plan --------------------------------------------------------------------------------------------- */

/* Whether a buffer, dead ones too, is not there in the version that the calls have made. */
static bool is_missing(const planrt_follow *f, int32_t buffer) {
  const content *of = &f->contents[buffer];
  return !(of->present && of->version == of->made) && (persists(f, buffer) || of->made > 0);
}

/* Whether an instruction runs a call again that was made. */
static bool is_repeat(const planrt_follow *f, const planc_instr *instr) {
  return instr->op == PLANC_INSTR_exec && instr->recompute && instr->id < f->call;
}

/* What the rest of the body does with buffers that are missing, and with those from which these are made again. */
static void find_needed(planrt_follow *f) {
  bool *wanted = f->seen;
  for (int32_t b = 0; b < f->trace->n_buffers; b++) wanted[b] = is_missing(f, b);
  for (int32_t i = f->plan->body.n - 1; i >= f->at; i--) {
    const planc_instr *instr = &f->plan->body.instrs[i];
    const planc_access *access;
    bool copies = instr->op == PLANC_INSTR_copy && instr->id != PLANC_USER && instr->aux != PLANC_USER;
    f->needed[i] = copies && wanted[f->places[instr->id].buffer];
    if (!is_repeat(f, instr)) continue;
    const int32_t *uses = &f->plan->uses[instr->first_use];
    for
      EACH_ACCESS(access, f, instr->id, uses) {
        f->needed[i] = f->needed[i] || (access->write >= 0 && wanted[access->buffer]);
      }
    for
      EACH_ACCESS(access, f, instr->id, uses) {
        wanted[access->buffer] = wanted[access->buffer] || (f->needed[i] && access->read >= 0);
      }
  }
}

/* Before another version comes in the place of what is there. */
static planc_status keep(planrt_follow *f, int32_t buffer) {
  const content *of = &f->contents[buffer];
  if (!of->present || is_missing(f, buffer) || f->kept[buffer]) return NULL;
  size_t bytes = (size_t)f->trace->buffers[buffer].bytes;
  void *data = address_of(f, buffer);
  if (!data) return failed(f, buffer, "say where it is");
  f->kept[buffer] = malloc(bytes > 0 ? bytes : 1);
  if (!f->kept[buffer]) return planc_error(PLANC_OUT_OF_MEMORY, "%s", name_of(f, buffer));
  memcpy(f->kept[buffer], data, bytes);
  return NULL;
}

static planc_status put_back(planrt_follow *f, int32_t buffer) {
  content *of = &f->contents[buffer];
  if (!f->kept[buffer] || !is_missing(f, buffer)) return NULL;
  if (!of->present) PLANC_TRY(allocate(f, buffer));
  void *data = address_of(f, buffer);
  if (!data) return failed(f, buffer, "say where it is");
  memcpy(data, f->kept[buffer], (size_t)f->trace->buffers[buffer].bytes);
  of->version = of->made;
  return NULL;
}

static planc_status bring_by_copy(planrt_follow *f, const planc_instr *instr, next_use next) {
  bool comes = memory_of(f, instr->aux) == PLANC_MEMORY_HOST && memory_of(f, instr->id) == PLANC_MEMORY_DEVICE;
  if (!comes) return copy(f, instr, next);
  const place *from = &f->places[instr->aux];
  const content *to = &f->contents[from->buffer];
  if (from->version == NOTHING || next == NEXT_NONE || (to->present && to->version == from->version)) return NULL;
  PLANC_TRY(keep(f, from->buffer));
  return copy_in(f, from);
}

static planc_status bring_by_repeat(planrt_follow *f, const planc_instr *instr) {
  const int32_t *uses = &f->plan->uses[instr->first_use];
  const planc_access *access;
  for
    EACH_ACCESS(access, f, instr->id, uses) {
      const content *of = &f->contents[access->buffer];
      if (access->read >= 0 || access->write < 0 || !of->present || of->version == access->write) continue;
      PLANC_TRY(keep(f, access->buffer));
      PLANC_TRY(give_back(f, access->buffer, false));
    }
  return repeat(f, instr);
}

/* On the host places come and go as in the plan; on the device all that comes stays. */
static planc_status bring_by_instr(planrt_follow *f, int32_t i) {
  const planc_instr *instr = &f->plan->body.instrs[i];
  bool places = instr->op == PLANC_INSTR_acquire || instr->op == PLANC_INSTR_release;
  if (places && memory_of(f, instr->id) == PLANC_MEMORY_HOST) {
    if (instr->op == PLANC_INSTR_acquire) open_place(f, instr->id);
    if (instr->op == PLANC_INSTR_release) close_place(f, instr->id);
  }
  if (!f->needed[i]) return NULL;
  return is_repeat(f, instr) ? bring_by_repeat(f, instr) : bring_by_copy(f, instr, (next_use)f->next_uses[i]);
}

/* The later calls find what they read, and memory for what they overwrite. */
static planc_status prepare_calls(planrt_follow *f) {
  memset(f->seen, 0, (size_t)f->trace->n_buffers * sizeof *f->seen);
  for (int32_t call = f->call; call < f->trace->n_instances; call++) {
    const planc_access *access;
    for
      EACH_ACCESS(access, f, call, NULL) {
        if (f->seen[access->buffer]) continue;
        f->seen[access->buffer] = true;
        if (access->read >= 0 && is_missing(f, access->buffer))
          return planc_error(PLANC_INTERNAL, "%s did not come back", name_of(f, access->buffer));
        if (access->read < 0 && !makes(f, access) && !f->contents[access->buffer].present)
          PLANC_TRY(allocate(f, access->buffer));
      }
  }
  return NULL;
}

static planc_status bring_rest(planrt_follow *f) {
  find_needed(f);
  for (int32_t i = f->at; i < f->plan->body.n; i++) PLANC_TRY(bring_by_instr(f, i));
  return NULL;
}

/* What the rest of the body would bring back, as it would, and all that persists. What a call that is made again reads
 * was there when it was made first and is there, or was brought before it: nothing that is made later. */
static planc_status bring_missing(planrt_follow *f) {
  planc_status status = bring_rest(f);
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    planc_status back = put_back(f, b);
    if (!status)
      status = back;
    else
      planc_status_free(back);
    free(f->kept[b]);
    f->kept[b] = NULL;
  }
  PLANC_TRY(status);
  PLANC_TRY(planrt_follow_bring_all(f));
  return prepare_calls(f);
}

planc_status planrt_follow_bring(planrt_follow *f, int32_t buffer) {
  if (buffer < 0 || buffer >= f->trace->n_buffers) return planc_error(PLANC_USAGE, "there is no buffer %d", buffer);
  const content *of = &f->contents[buffer];
  if (of->present || !persists(f, buffer)) return NULL;
  const place *host = of->host == NOTHING ? NULL : &f->places[of->host];
  return host && host->version != NOTHING ? copy_in(f, host) : allocate(f, buffer);
}

planc_status planrt_follow_bring_all(planrt_follow *f) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++) PLANC_TRY(planrt_follow_bring(f, b));
  return NULL;
}

bool planrt_follow_has(const planrt_follow *f, int32_t buffer) {
  return buffer >= 0 && buffer < f->trace->n_buffers && f->contents[buffer].present;
}

/* --- From iteration to iteration ---------------------------------------------------------------------------------- */

/* What the plan has on the host at the boundary goes there from wherever it was left or brought. */
static planc_status go_home(planrt_follow *f, int32_t row) {
  place *home = &f->places[row];
  content *of = &f->contents[home->buffer];
  if (memory_of(f, row) != PLANC_MEMORY_HOST || !of->present || !address_of(f, home->buffer)) return NULL;
  PLANC_TRY(copy_out(f, home));
  return give_back(f, home->buffer, false);
}

/* The last version of this iteration is the first one of the next. */
static void wrap(planrt_follow *f) {
  const planc_trace *trace = f->trace;
  for (int32_t row = 0; row < f->plan->n_boundary; row++) {
    const place *end = &f->places[f->ends[row]];
    bool holds = !f->left && end->version == trace->buffers[end->buffer].last_version;
    f->places[row].version = holds ? 0 : NOTHING;
  }
  for (int32_t r = 0; r < f->plan->n_residencies; r++) f->places[r].open = false;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    f->contents[b] = (content){.present = f->contents[b].present && persists(f, b), .host = NOTHING};
  for (int32_t row = 0; row < f->plan->n_boundary; row++) {
    int32_t version = f->places[row].version;
    open_place(f, row);
    f->places[row].version = version;
  }
}

/* Before the first iteration all that persists is the framework's. */
static void start(planrt_follow *f) {
  for (int32_t r = 0; r < f->plan->n_residencies; r++) f->places[r].version = NOTHING;
  for (int32_t b = 0; b < f->trace->n_buffers; b++) f->contents[b] = (content){.present = true};
  f->left = true;
  wrap(f);
  f->left = f->within = f->over = false;
  f->counts = (planrt_follow_counts){0};
}

/* --- Making a follower -------------------------------------------------------------------------------------------- */

static planc_status check_form(const planrt_follow *f) {
  const planc_plan *plan = f->plan;
  const planc_job *job = &plan->jobs[0];
  const char *what = plan->n_jobs != 1                                             ? "several jobs"
                     : planc_plan_replicas(plan) > 1 || planc_plan_gpus(plan) != 1 ? "several GPUs"
                     : job->iterations != 1                                        ? "several iterations in a period"
                     : job->n_rounds != 1                                          ? "several rounds"
                     : job->order                                                  ? "another order than the graph"
                                                                                   : NULL;
  if (what) return planc_error(PLANC_USAGE, "a plan with %s cannot be followed", what);
  for (int32_t m = 0; m < plan->n_memories; m++)
    if (plan->memories[m].kind == PLANC_MEMORY_STORAGE && plan->memories[m].arena_bytes > 0)
      return planc_error(PLANC_USAGE, "a plan that keeps data in storage cannot be followed");
  return NULL;
}

static planc_status check_buffers(const planrt_follow *f) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (f->trace->buffers[b].flags & PLANC_BUFFER_FED)
      return planc_error(PLANC_USAGE, "the plan brings input %s, which is the framework's", name_of(f, b));
  return NULL;
}

/* Where each residency is, and which of them are at the boundary when the body ends. */
static void find_places(planrt_follow *f) {
  const planc_plan *plan = f->plan;
  for (int32_t row = 0; row < plan->n_boundary; row++) {
    const planc_boundary *at = &plan->boundary[row];
    f->places[row] = (place){at->buffer, at->memory, at->address, NOTHING, NOTHING, true};
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire)
      f->places[instr->id] = (place){instr->aux, instr->memory, instr->address, NOTHING, NOTHING, true};
    if (instr->op == PLANC_INSTR_release) f->places[instr->id].open = false;
    if (instr->op == PLANC_INSTR_exec && instr->recompute) f->repeats[instr->id] = true;
  }
  for (int32_t r = 0; r < plan->n_residencies; r++)
    if (f->places[r].open) f->wanted[f->places[r].buffer] = r;
  for (int32_t row = 0; row < plan->n_boundary; row++) f->ends[row] = f->wanted[f->places[row].buffer];
}

/* From the end of the body to its beginning: what is done next with each buffer, in the next body where this one does
 * nothing more. */
static void find_uses(planrt_follow *f, next_use *next) {
  const planc_section *body = &f->plan->body;
  for (int32_t pass = 0; pass < 2; pass++) {
    for (int32_t b = 0; b < f->trace->n_buffers; b++)
      if (!persists(f, b)) next[b] = NEXT_NONE;
    for (int32_t i = body->n - 1; i >= 0; i--) {
      const planc_instr *instr = &body->instrs[i];
      const planc_access *access;
      if (instr->op == PLANC_INSTR_release || (instr->op == PLANC_INSTR_copy && instr->id != PLANC_USER))
        f->next_uses[i] = (uint8_t)next[f->places[instr->id].buffer];
      if (instr->op != PLANC_INSTR_exec) continue;
      for
        EACH_ACCESS(access, f, instr->id, instr->recompute ? &f->plan->uses[instr->first_use] : NULL)
      next[access->buffer] = access->read >= 0 ? NEXT_READ : NEXT_WRITE;
    }
  }
}

static planc_status build(planrt_follow *f) {
  const planc_plan *plan = f->plan;
  next_use *next;
  PLANC_TRY(check_form(f));
  PLANC_TRY(planc_expand(plan->jobs, plan->n_jobs, &f->trace));
  PLANC_TRY(check_buffers(f));
  int32_t n = f->trace->n_buffers;
  PLANC_TRY(PL_NEW(&f->memory, &f->places, plan->n_residencies));
  PLANC_TRY(PL_NEW(&f->memory, &f->contents, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->next_uses, plan->body.n));
  PLANC_TRY(PL_NEW(&f->memory, &f->ends, plan->n_boundary));
  PLANC_TRY(PL_NEW(&f->memory, &f->repeats, f->trace->n_instances));
  PLANC_TRY(PL_NEW(&f->memory, &f->wanted, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->seen, n));
  PLANC_TRY(PL_NEW(&f->memory, &f->needed, plan->body.n));
  PLANC_TRY(PL_NEW(&f->memory, &f->kept, n));
  PLANC_TRY(PL_NEW(&f->memory, &next, n));
  find_places(f);
  find_uses(f, next);
  start(f);
  return NULL;
}

/* --- Rehearsal ---------------------------------------------------------------------------------------------------- */

/* A framework without data. In the first iteration it does not know what persists. */
static void *rehearsed_address(void *user, int32_t buffer) {
  planrt_follow *f = user;
  return f->counts.iterations == 0 && persists(f, buffer) ? NULL : f;
}

static int rehearsed_allocate(void *user, int32_t buffer) {
  (void)user, (void)buffer;
  return 0;
}

static int rehearsed_release(void *user, int32_t buffer, bool last) {
  (void)user, (void)buffer, (void)last;
  return 0;
}

static int rehearsed_repeat(void *user, int32_t call, const int32_t *wanted, int32_t n) {
  (void)user, (void)call, (void)wanted, (void)n;
  return 0;
}

static planc_status rehearse_iteration(planrt_follow *f) {
  PLANC_TRY(planrt_follow_begin(f));
  for (int32_t call = 0; call < f->trace->n_instances; call++) {
    int32_t next;
    PLANC_TRY(planrt_follow_next(f, &next));
    PLANC_TRY(planrt_follow_done(f));
  }
  return planrt_follow_end(f);
}

/* What would be missing in an iteration is no defect of the follower's before the first one. */
static planc_status refused(planc_status status) {
  planc_status refusal = planc_error(PLANC_USAGE, "%s", planc_status_message(status));
  planc_status_free(status);
  return refusal;
}

/* Runs the body until it begins as it ends, with nothing in it: a plan that this finds nothing wrong with can be
 * followed. */
static planc_status rehearse(planrt_follow *f) {
  enum { ITERATIONS = 3 };
  planrt_framework framework = f->framework;
  planc_status status = NULL;
  f->framework = (planrt_framework){f, rehearsed_address, rehearsed_allocate, rehearsed_release, rehearsed_repeat};
  for (int32_t i = 0; i < ITERATIONS && !status; i++) status = rehearse_iteration(f);
  f->framework = framework;
  start(f);
  if (planc_status_code(status) == PLANC_INTERNAL) status = refused(status);
  return planc_context(status, "the plan cannot be followed");
}
