/* Algorithms that a backend does not have (foreign.h). */
#include "runtime/foreign.h"

#include "runtime/session.h"

static planc_status find(const planrt_session *session, bool *asked, rt_names *out);

planc_status rt_foreign_find(const planrt_session *session, rt_names *out) {
  if (!session->device || session->options.synthetic) return NULL;
  pl_arena scratch = {0};
  bool *asked;
  planc_status status = PL_NEW(&scratch, &asked, (int64_t)session->plan->n_algorithms + 1);
  if (!status) status = find(session, asked, out);
  pl_arena_free(&scratch);
  return status;
}

static planc_status is_foreign(const planrt_session *session, const rt_call *call, bool *out) {
  const planrt_backend *backend = session->backend;
  int64_t bytes = 0;
  bool slow = backend->slow_workspace && backend->slow_workspace(session->device, call);
  if (!slow) PLANC_TRY(backend->workspace(session->device, call, &bytes));
  *out = bytes < 0;
  return NULL;
}

/* Every algorithm is asked about at its first call alone: that may take as long as preparing it. */
static planc_status find(const planrt_session *session, bool *asked, rt_names *out) {
  const rt_part *body = &session->parts[RT_BODY];
  for (int32_t i = 0; i < body->n; i++) {
    const rt_action *action = &body->actions[i];
    if (action->kind != RT_CALL || action->call->role != PLANC_ROLE_OP) continue;
    int32_t algorithm = session->plan->body.instrs[action->instr].aux;
    bool foreign;
    if (asked[algorithm]) continue;
    asked[algorithm] = true;
    PLANC_TRY(is_foreign(session, action->call, &foreign));
    if (foreign) VEC_PUSH(out, action->call->algorithm);
  }
  return NULL;
}
