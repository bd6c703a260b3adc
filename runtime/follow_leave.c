/* Leaving a plan (follower.h): what the rest of the body would bring back comes back at once, and nothing goes any
 * more. */
#include <string.h>

#include "runtime/follower.h"

static planc_status bring_rest(planrt_follow *f);
static planc_status put_back(planrt_follow *f, int32_t buffer);
static void free_kept(planrt_follow *f, int32_t buffer);
static bool is_missing(const planrt_follow *f, int32_t buffer);
static planc_status prepare_calls(planrt_follow *f);
static planc_status allocate_lost(planrt_follow *f, int32_t buffer);

/* What went wrong first is told, when the rest is done. */
static void put_off(planc_status *first, planc_status status) {
  if (*first)
    planc_status_free(status);
  else
    *first = status;
}

/* What the rest of the body would bring back, as it would, and all that persists. What a call that is made again reads
 * was there when it was made first and is there, or was brought before it: nothing that is made later. */
planc_status rt_follow_bring_missing(planrt_follow *f) {
  PLANC_TRY(rt_order_fence(f));
  planc_status status = bring_rest(f);
  for (int32_t b = 0; b < f->trace->n_buffers; b++) put_off(&status, put_back(f, b));
  put_off(&status, rt_order_finish(f)); /* copies may still run from what was kept */
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (!is_missing(f, b)) free_kept(f, b);
  PLANC_TRY(status);
  PLANC_TRY(planrt_follow_bring_all(f));
  PLANC_TRY(rt_follow_settle(f, true));
  PLANC_TRY(prepare_calls(f));
  return rt_order_fence(f);
}

/* Whether a buffer, dead ones too, is not there in the version that the calls have made. */
static bool is_missing(const planrt_follow *f, int32_t buffer) {
  const rt_content *of = &f->contents[buffer];
  return !(of->present && of->version == of->made) && (rt_follow_persists(f, buffer) || of->made > 0);
}

/* Whether an instruction runs a call again that was made. */
static bool is_repeat(const planrt_follow *f, const planc_instr *instr) {
  return instr->op == PLANC_INSTR_exec && instr->recompute && instr->id < f->call;
}

/* --- What the plan would bring ------------------------------------------------------------------------------------ */

static void find_needed(planrt_follow *f);
static planc_status bring_by_instr(planrt_follow *f, int32_t i);

static planc_status bring_rest(planrt_follow *f) {
  find_needed(f);
  for (int32_t i = f->at; i < f->plan->body.n; i++) PLANC_TRY(bring_by_instr(f, i));
  return NULL;
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
    for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instr->id, uses, &k));) {
      f->needed[i] = f->needed[i] || (access->write >= 0 && wanted[access->buffer]);
    }
    for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instr->id, uses, &k));) {
      wanted[access->buffer] = wanted[access->buffer] || (f->needed[i] && access->read >= 0);
    }
  }
}

static planc_status bring_by_copy(planrt_follow *f, const planc_instr *instr, rt_next_use next);
static planc_status bring_by_repeat(planrt_follow *f, const planc_instr *instr);

/* On the host places come and go as in the plan; on the device all that comes stays. */
static planc_status bring_by_instr(planrt_follow *f, int32_t i) {
  const planc_instr *instr = &f->plan->body.instrs[i];
  bool places = instr->op == PLANC_INSTR_acquire || instr->op == PLANC_INSTR_release;
  if (places && rt_follow_memory(f, instr->id) == PLANC_MEMORY_HOST) {
    if (instr->op == PLANC_INSTR_acquire) rt_follow_open(f, instr->id);
    if (instr->op == PLANC_INSTR_release) rt_follow_close(f, instr->id);
  }
  if (!f->needed[i]) return NULL;
  return is_repeat(f, instr) ? bring_by_repeat(f, instr) : bring_by_copy(f, instr, (rt_next_use)f->next_uses[i]);
}

static planc_status keep(planrt_follow *f, int32_t buffer);

static planc_status bring_by_copy(planrt_follow *f, const planc_instr *instr, rt_next_use next) {
  bool comes =
      rt_follow_memory(f, instr->aux) == PLANC_MEMORY_HOST && rt_follow_memory(f, instr->id) == PLANC_MEMORY_DEVICE;
  bool goes =
      rt_follow_memory(f, instr->aux) == PLANC_MEMORY_DEVICE && rt_follow_memory(f, instr->id) == PLANC_MEMORY_HOST;
  if (goes) return rt_follow_copy_out_now(f, instr->id);
  if (!comes) return rt_follow_copy(f, instr, next);
  const rt_followed_place *from = &f->places[instr->aux];
  const rt_content *to = &f->contents[from->buffer];
  if (from->version == RT_NOTHING || next == RT_NEXT_NONE || (to->present && to->version == from->version)) return NULL;
  PLANC_TRY(keep(f, from->buffer));
  return rt_follow_copy_in_now(f, instr->aux, from);
}

static planc_status bring_by_repeat(planrt_follow *f, const planc_instr *instr) {
  const int32_t *uses = &f->plan->uses[instr->first_use];
  const planc_access *access;
  for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, instr->id, uses, &k));) {
    const rt_content *of = &f->contents[access->buffer];
    if (access->read >= 0 || access->write < 0 || !of->present || of->version == access->write) continue;
    PLANC_TRY(keep(f, access->buffer));
    PLANC_TRY(rt_follow_give_back(f, access->buffer, false));
  }
  return rt_follow_repeat(f, instr);
}

/* --- What makes room meanwhile ------------------------------------------------------------------------------------ */

/* Before another version comes in the place of what is there. */
static planc_status keep(planrt_follow *f, int32_t buffer) {
  const rt_content *of = &f->contents[buffer];
  if (!of->present || is_missing(f, buffer) || f->kept[buffer]) return NULL;
  PLANC_TRY(rt_order_host_alloc(f, f->trace->buffers[buffer].bytes, (void *)&f->kept[buffer]));
  PLANC_TRY(rt_order_fence(f));
  PLANC_TRY(rt_order_copy(f, f->out_stream, buffer, f->kept[buffer], true));
  rt_order_after(f, f->out_stream, buffer, false);
  return rt_order_fence(f);
}

static planc_status put_back(planrt_follow *f, int32_t buffer) {
  rt_content *of = &f->contents[buffer];
  if (!f->kept[buffer] || !is_missing(f, buffer)) return NULL;
  if (!of->present) PLANC_TRY(rt_follow_allocate(f, buffer, RT_NOTHING));
  PLANC_TRY(rt_order_fence(f));
  PLANC_TRY(rt_order_copy(f, f->in_stream, buffer, f->kept[buffer], false));
  rt_order_after(f, f->in_stream, buffer, true);
  of->version = of->made;
  return NULL;
}

static void free_kept(planrt_follow *f, int32_t buffer) {
  rt_order_host_free(f, f->kept[buffer]);
  f->kept[buffer] = NULL;
}

void rt_follow_free_kept(planrt_follow *f) {
  for (int32_t b = 0; f->kept && b < f->trace->n_buffers; b++) free_kept(f, b);
}

/* --- What later calls need ---------------------------------------------------------------------------------------- */

/* The later calls find what they read, and memory for what they overwrite. */
static planc_status prepare_calls(planrt_follow *f) {
  memset(f->seen, 0, (size_t)f->trace->n_buffers * sizeof *f->seen);
  for (int32_t call = f->call; call < f->trace->n_instances; call++) {
    const planc_access *access;
    for (int32_t k = RT_NOTHING; (access = rt_follow_access(f, call, NULL, &k));) {
      if (f->seen[access->buffer]) continue;
      f->seen[access->buffer] = true;
      if (access->read >= 0 && is_missing(f, access->buffer))
        return planc_error(PLANC_INTERNAL, "%s did not come back", rt_follow_name(f, access->buffer));
      if (access->read < 0 && !rt_follow_makes(f, access) && !f->contents[access->buffer].present)
        PLANC_TRY(allocate_lost(f, access->buffer));
    }
  }
  return NULL;
}

/* Memory for what the plan has overwritten next, and of which it has kept no copy. */
static planc_status allocate_lost(planrt_follow *f, int32_t buffer) {
  PLANC_TRY(rt_follow_allocate(f, buffer, RT_NOTHING));
  f->contents[buffer].lost = true;
  return NULL;
}

/* --- What persists ------------------------------------------------------------------------------------------------ */

planc_status planrt_follow_bring(planrt_follow *f, int32_t buffer) {
  if (buffer < 0 || buffer >= f->trace->n_buffers) return planc_error(PLANC_USAGE, "there is no buffer %d", buffer);
  const rt_content *of = &f->contents[buffer];
  if (of->present) return rt_order_before(f, PLANRT_CALLS, buffer, true);
  if (!rt_follow_persists(f, buffer)) return NULL;
  if (f->kept[buffer]) { /* it could not be put back when the plan was left */
    PLANC_TRY(put_back(f, buffer));
    PLANC_TRY(rt_order_finish(f));
    free_kept(f, buffer);
  }
  PLANC_TRY(rt_late_bring_buffer(f, buffer));
  if (of->present) return NULL;
  const rt_followed_place *host = of->host == RT_NOTHING ? NULL : &f->places[of->host];
  if (of->leaving && (!f->within || of->version == of->made)) return rt_follow_stay(f, buffer);
  if (host && host->version != RT_NOTHING) return rt_follow_copy_in_now(f, of->host, host);
  if (f->within) return allocate_lost(f, buffer);
  return planc_error(PLANC_INTERNAL, "%s is neither here nor on the host", rt_follow_name(f, buffer));
}

planc_status planrt_follow_bring_all(planrt_follow *f) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++) PLANC_TRY(planrt_follow_bring(f, b));
  return NULL;
}

bool planrt_follow_is_lost(const planrt_follow *f, int32_t buffer) {
  return buffer >= 0 && buffer < f->trace->n_buffers && f->contents[buffer].lost;
}

bool planrt_follow_has(const planrt_follow *f, int32_t buffer) {
  return buffer >= 0 && buffer < f->trace->n_buffers && f->contents[buffer].present;
}
