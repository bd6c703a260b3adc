/* moDNN's list of what has to come back from the host: a heap by next use. */
#include "planner/policies/modnn.h"

static bool before(modnn_wanted a, modnn_wanted b) {
  return a.use != b.use ? a.use < b.use : a.block < b.block;
}

planc_status modnn_want(modnn *m, int32_t block, int32_t use) {
  modnn_wanted wanted = {.use = use, .block = block};
  VEC_PUSH(&m->wanted, wanted);
  int64_t i = m->wanted.len - 1;
  for (; i > 0 && before(wanted, m->wanted.data[(i - 1) / 2]); i = (i - 1) / 2) {
    m->wanted.data[i] = m->wanted.data[(i - 1) / 2];
  }
  m->wanted.data[i] = wanted;
  return NULL;
}

void modnn_unwant_first(modnn *m) {
  modnn_wanted last = m->wanted.data[--m->wanted.len];
  int64_t i = 0;
  for (;;) {
    int64_t child = 2 * i + 1;
    if (child >= m->wanted.len) break;
    if (child + 1 < m->wanted.len && before(m->wanted.data[child + 1], m->wanted.data[child])) child++;
    if (!before(m->wanted.data[child], last)) break;
    m->wanted.data[i] = m->wanted.data[child];
    i = child;
  }
  if (m->wanted.len) m->wanted.data[i] = last;
}
