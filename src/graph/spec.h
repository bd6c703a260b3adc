/* The scalars of planc-graph(5), read and written: names, size laws, tensor specs, numbers. */
#ifndef PLANC_GRAPH_SPEC_H
#define PLANC_GRAPH_SPEC_H

#include "planc/graph.h"

enum { PL_NAME_MAX = 255, PL_LAW_TEXT = 48, PL_SHOWN_TEXT = 64 };

/* The names of the flags PL_OP_..., by bit. */
enum { PL_N_FLAGS = 5 };
extern const char *const pl_flag_names[PL_N_FLAGS];

/* What is wrong with a name ("is empty"), or NULL. */
const char *pl_name_fault(const char *name);

/* `text` made fit for a message: shortened, with '?' for what does not print. */
const char *pl_shown(const char *text, char buffer[PL_SHOWN_TEXT]);

/* The canonical text of a law. */
const char *pl_law_text(planc_law law, char buffer[PL_LAW_TEXT]);
/* A whole scalar that is a law. On failure *out_at (in this and in pl_spec_parse) is where in `text` the fault is.
 */
planc_status pl_law_parse(const char *text, planc_law *out, const char **out_at);

/* A tensor's spec: [KIND " "] DTYPE "[" [LAW ("," LAW)*] "]" [" of " NAME [" @ " LAW]]. */
typedef struct pl_spec {
  bool has_kind;
  planc_kind kind; /* activation when none is given */
  planc_dtype dtype;
  int32_t rank;
  planc_law dims[PLANC_MAX_RANK];
  const char *of; /* in the text, not terminated; NULL if it has a storage of its own */
  size_t of_length;
  planc_law offset;
} pl_spec;
planc_status pl_spec_parse(const char *text, pl_spec *out, const char **out_at);

/* A number of kind INT (util/real.h); false when it does not fit int64. */
bool pl_integer_parse(const char *text, int64_t *out);

#endif
