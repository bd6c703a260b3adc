/* The follower (planrt/follow.h): the plan's body in file order, with the framework's calls in place of its own.
 *
 * It goes by what is there, not by what an instruction says should be: data that are still in place are not copied in,
 * and data of which no other copy exists stay although the plan releases them. So a framework may know what persists
 * late, and may have brought it back between two iterations. */
#include <string.h>

#include "runtime/follower.h"

/* --- An iteration ------------------------------------------------------------------------------------------------- */

static planc_status go_home(planrt_follow *f, int32_t row);
static planc_status run_to_call(planrt_follow *f);
static planc_status hand_over(planrt_follow *f);
static void wrap(planrt_follow *f);

/* What persists is where it was when something failed: whoever brings it, or ends the iteration, gets it back. */
static planc_status over_if(planrt_follow *f, planc_status status) {
  if (!status || !f->within) return status;
  rt_follow_forget(f);
  f->counts.left += !f->left;
  f->left = f->over = true;
  return status;
}

planc_status planrt_follow_begin(planrt_follow *f) {
  if (f->within && !f->over) return planc_error(PLANC_USAGE, "an iteration is under way");
  if (f->within) PLANC_TRY(planrt_follow_end(f));
  rt_order_advance(f);
  rt_address_look(f);
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (f->contents[b].present) rt_order_after(f, PLANRT_CALLS, b, true);
  for (int32_t row = 0; row < f->plan->n_boundary; row++) PLANC_TRY(go_home(f, row));
  f->within = true;
  f->left = false;
  f->asked = false;
  PLANC_TRY(over_if(f, rt_address_begin(f)));
  f->at = f->call = 0;
  return over_if(f, run_to_call(f));
}

/* A call that takes something the user had has the ones before it over, in which he may clear what he has. */
static planc_status end_waiting(planrt_follow *f) {
  const planc_access *access;
  for (int32_t k = RT_NOTHING; f->waits && (access = rt_follow_access(f, f->call, NULL, &k));)
    f->waits = rt_follow_makes(f, access);
  if (f->waits) return rt_address_seat_if_taken(f, &f->plan->body.instrs[f->at]);
  PLANC_TRY(rt_address_seat_late(f));
  return rt_late_bring(f);
}

static bool has_call(const planrt_follow *f) {
  return f->within && !f->left && f->call < f->trace->n_instances;
}

planc_status planrt_follow_next(planrt_follow *f, int32_t *out_call) {
  *out_call = RT_NOTHING;
  if (!has_call(f)) return NULL;
  PLANC_TRY(over_if(f, end_waiting(f)));
  PLANC_TRY(over_if(f, rt_follow_check_reads(f, f->call, NULL)));
  const planc_instr *instr = &f->plan->body.instrs[f->at];
  const int32_t *uses = &f->plan->uses[instr->first_use];
  PLANC_TRY(over_if(f, rt_address_seat_operands(f, f->call, uses)));
  PLANC_TRY(over_if(f, rt_follow_make_room(f, f->call, uses)));
  PLANC_TRY(over_if(f, rt_follow_order_call(f, f->call, NULL)));
  PLANC_TRY(over_if(f, rt_follow_find_room(f, instr->bytes)));
  PLANC_TRY(over_if(f, rt_address_find_rooms(f, instr, NULL, 0)));
  *out_call = f->call;
  f->asked = true;
  return NULL;
}

planc_status planrt_follow_done(planrt_follow *f) {
  if (!has_call(f) || !f->asked) return planc_error(PLANC_USAGE, "no call was next");
  f->asked = false;
  rt_address_take_rooms(f);
  rt_follow_write_results(f, f->call++, NULL);
  f->at++;
  f->waits = f->waits || f->call == f->trace->n_instances;
  return over_if(f, run_to_call(f));
}

planc_status planrt_follow_leave(planrt_follow *f, bool made) {
  if (made && (!has_call(f) || !f->asked)) return planc_error(PLANC_USAGE, "no call was next");
  if (!f->within || f->left) return NULL;
  f->waits = false;
  f->left = true;
  f->counts.left++;
  PLANC_TRY(over_if(f, rt_late_bring(f)));
  if (made) {
    rt_address_take_rooms(f);
    rt_follow_write_results(f, f->call++, NULL);
    f->at++;
  }
  return over_if(f, rt_follow_bring_missing(f));
}

planc_status planrt_follow_end(planrt_follow *f) {
  if (!f->within) return planc_error(PLANC_USAGE, "no iteration is under way");
  if (has_call(f)) return planc_error(PLANC_USAGE, "%d of %d calls were made", f->call, f->trace->n_instances);
  if (f->over) {
    PLANC_TRY(planrt_follow_bring_all(f));
    PLANC_TRY(rt_order_finish(f));
    rt_follow_free_kept(f);
  }
  PLANC_TRY(over_if(f, hand_over(f)));
  f->within = f->over = false;
  f->counts.iterations++;
  wrap(f);
  return NULL;
}

/* What the framework has is its users' from now on, whose calls come after all copies of it. */
static planc_status hand_over(planrt_follow *f) {
  PLANC_TRY(rt_follow_settle(f, false));
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    if (f->contents[b].present) PLANC_TRY(rt_order_before(f, PLANRT_CALLS, b, true));
  return NULL;
}

static bool is_call(const planc_instr *instr) {
  return instr->op == PLANC_INSTR_exec && !instr->recompute;
}

static planc_status run_to_call(planrt_follow *f) {
  const planc_section *body = &f->plan->body;
  for (; f->at < body->n && !is_call(&body->instrs[f->at]); f->at++)
    PLANC_TRY(
        planc_context(rt_follow_act(f, &body->instrs[f->at], (rt_next_use)f->next_uses[f->at]), "body[%d]", f->at));
  return NULL;
}

/* --- Between iterations ------------------------------------------------------------------------------------------- */

/* What the plan has on the host at the boundary goes there from wherever it was left or brought. */
static planc_status go_home(planrt_follow *f, int32_t row) {
  rt_followed_place *home = &f->places[row];
  rt_content *of = &f->contents[home->buffer];
  if (rt_follow_memory(f, row) != PLANC_MEMORY_HOST) return NULL;
  if (home->version == RT_NOTHING) PLANC_TRY(rt_late_bring_buffer(f, home->buffer));
  if (!of->present || !rt_follow_address(f, home->buffer)) return NULL;
  PLANC_TRY(rt_follow_copy_out_now(f, row));
  return rt_follow_give_back(f, home->buffer, false);
}

planc_status planrt_follow_renew(planrt_follow *f, int32_t buffer) {
  if (f->within) return planc_error(PLANC_USAGE, "an iteration is under way");
  if (buffer < 0 || buffer >= f->trace->n_buffers || !rt_follow_persists(f, buffer))
    return planc_error(PLANC_USAGE, "there is no buffer %d that persists", buffer);
  rt_content *of = &f->contents[buffer];
  rt_late_forget(f, buffer);
  if (of->leaving) PLANC_TRY(rt_follow_let_go(f, buffer));
  PLANC_TRY(rt_order_before(f, PLANRT_CALLS, buffer, true));
  for (int32_t row = 0; row < f->plan->n_boundary; row++)
    if (f->places[row].buffer == buffer) f->places[row].version = RT_NOTHING;
  rt_address_set(f, buffer, RT_NOTHING);
  of->present = true;
  of->touched = false;
  return NULL;
}

/* The last version of this iteration is the first one of the next. */
static void wrap(planrt_follow *f) {
  const planc_trace *trace = f->trace;
  for (int32_t row = 0; row < f->plan->n_boundary; row++) {
    const rt_followed_place *end = &f->places[f->ends[row]];
    bool holds = !f->left && end->version == trace->buffers[end->buffer].last_version;
    f->places[row].version = holds ? 0 : RT_NOTHING;
  }
  for (int32_t r = 0; r < f->plan->n_residencies; r++) f->places[r].open = false;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    f->contents[b] = (rt_content){.present = f->contents[b].present && rt_follow_persists(f, b),
                                  .leaving = f->contents[b].leaving,
                                  .touched = f->contents[b].touched && rt_follow_persists(f, b) && !f->left,
                                  .host = RT_NOTHING};
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (!rt_follow_persists(f, b)) rt_address_set(f, b, RT_NOTHING);
  for (int32_t i = 0; i < f->n_late; i++) f->late[i].from.version = 0;
  f->open_bytes = 0;
  for (int32_t row = 0; row < f->plan->n_boundary; row++) {
    int32_t version = f->places[row].version;
    rt_follow_open(f, row);
    f->places[row].version = version;
  }
}

/* Before the first iteration all that persists is the framework's. */
void rt_follow_start(planrt_follow *f) {
  for (int32_t r = 0; r < f->plan->n_residencies; r++) f->places[r].version = RT_NOTHING;
  for (int32_t b = 0; b < f->trace->n_buffers; b++) f->contents[b] = (rt_content){.present = true};
  f->left = true;
  f->waits = false;
  f->n_late = 0;
  wrap(f);
  f->left = f->within = f->over = false;
  f->counts = (planrt_follow_counts){0};
}
