/* Printing profiles, planc-profile(5). */
#ifndef PLANC_COST_PROFILE_PRINT_H
#define PLANC_COST_PROFILE_PRINT_H

#include "cost/profile.h"
#include "util/emit.h"

/* The constants with their origins, and that of section `section`, which is to follow. The device is called `name`
 * (NULL: as it is). */
void pl_profile_emit_head(pl_emit *emit, const planc_profile *profile, const char *name, const char *section,
                          const char *origin);
/* The hash of the graph that measured ops are of. */
void pl_profile_emit_graph(pl_emit *emit, uint64_t graph_hash);

/* A profile of constants and measured ops; sections links, loads and model are left out. `origin` is that of the ops.
 */
planc_status pl_profile_print_ops(const planc_profile *profile, const char *origin, char **out_text,
                                  size_t *out_length);

#endif
