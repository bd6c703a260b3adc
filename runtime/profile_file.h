/* What planrun profile has measured, piece by piece, and the profile made of it, planc-profile(5). */
#ifndef PLANRT_PROFILE_FILE_H
#define PLANRT_PROFILE_FILE_H

#include <cjson/cJSON.h>

#include "runtime/measure.h"

/* Pieces are JSON objects, so that they can be kept in a file between two sittings. All of these return NULL when
 * memory is short. */
cJSON *planrt_piece_of_ops(const planc_graph *graph, int64_t load_ppm, int64_t batch, const planrt_op_times *times);
cJSON *planrt_piece_of_links(const planrt_link_times *times, int64_t slowdown_ppm);
bool planrt_piece_is_of_ops(const cJSON *piece, int64_t load_ppm, int64_t batch);
bool planrt_piece_is_of_links(const cJSON *piece);
/* The sum of all times in a piece of ops. */
double planrt_piece_total_ns(const cJSON *piece);

typedef struct planrt_profile_head {
  const char *name;    /* of the device */
  const char *machine; /* processor and libraries, free text */
  int64_t memory_bytes;
} planrt_profile_head;

/* The profile of an array of pieces that has one of links and at least one of ops without load.
 * INTERNAL when a piece is not as the functions above make it. */
planc_status planrt_profile_compose(const planrt_profile_head *head, const planc_graph *graph, const cJSON *pieces,
                                    cJSON **out);
/* Adds to a profile the exact workspaces at batches 1 to `most` where planc would not find them between the measured
 * ones. */
planc_status planrt_profile_add_workspaces(cJSON *root, const planrt_backend *backend, const planc_graph *graph,
                                           int64_t most);

#endif
