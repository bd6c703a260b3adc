/* moDNN's list of what has to come back from the host: a heap by next use. */
#include "planner/policies/modnn.h"
#include "util/heap.h"

static bool goes_before(const modnn *m, modnn_wanted a, modnn_wanted b) {
  (void)m;
  return a.use != b.use ? a.use < b.use : a.buffer < b.buffer;
}

PL_HEAP(wanted, modnn_wanted, modnn, goes_before)

planc_status modnn_want(modnn *m, int32_t buffer, int32_t use) {
  modnn_wanted wanted = {.use = use, .buffer = buffer};
  VEC_PUSH(&m->wanted, wanted);
  wanted_rise(m, m->wanted.data, m->wanted.len);
  return NULL;
}

void modnn_unwant_first(modnn *m) {
  m->wanted.data[0] = m->wanted.data[--m->wanted.len];
  wanted_sink(m, m->wanted.data, m->wanted.len);
}
