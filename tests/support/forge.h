/* A graph that says something else than another and has the same hash (planc_graph_hash): what guards correctness must
 * tell them apart. */
#ifndef PLANC_TESTS_FORGE_H
#define PLANC_TESTS_FORGE_H

#include "planc/graph.h"

typedef struct forged {
  planc_graph graph; /* not to be freed by planc_graph_free; of the original but for its last op */
  planc_op *ops;     /* malloc'ed */
  planc_attr attr;
} forged;

/* The last op of `of`, whose first attribute is its learning rate, learns 12,300 times as fast. */
void forge(const planc_graph *of, forged *out);
void forged_free(forged *f);

#endif
