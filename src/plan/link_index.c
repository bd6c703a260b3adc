/* Looking up links (link_index.h): sorted by their keys. */
#include "plan/link_index.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
  const pl_link_key *x = a, *y = b;
  if (x->engine != y->engine) return x->engine < y->engine ? -1 : 1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

planc_status pl_link_index_make(const planc_plan *plan, pl_arena *arena, pl_link_index *out) {
  *out = (pl_link_index){.n = plan->n_links};
  PLANC_TRY(PL_NEW(arena, &out->keys, plan->n_links));
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    out->keys[l] = (pl_link_key){link->engine, link->from, link->to, l};
  }
  if (plan->n_links > 0) qsort(out->keys, (size_t)plan->n_links, sizeof *out->keys, compare);
  for (int32_t l = 1; l < plan->n_links; l++)
    if (compare(&out->keys[l], &out->keys[l - 1]) == 0)
      return planc_error(PLANC_INVALID_PLAN, "link %d: it stands twice, as link %d does", out->keys[l].link,
                         out->keys[l - 1].link);
  return NULL;
}

int32_t pl_link_find(const pl_link_index *index, int32_t engine, int32_t from, int32_t to) {
  pl_link_key key = {.engine = engine, .from = from, .to = to};
  if (index->n == 0) return -1;
  const pl_link_key *found = bsearch(&key, index->keys, (size_t)index->n, sizeof *index->keys, compare);
  return found ? found->link : -1;
}
