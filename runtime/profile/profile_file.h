/* What planrun profile has measured, piece by piece, and the profile made of it, planc-profile(5). */
#ifndef PLANRT_PROFILE_FILE_H
#define PLANRT_PROFILE_FILE_H

#include <cjson/cJSON.h>

#include "runtime/profile/measure.h"

/* Adds "graph_hash", which says what a profile or its pieces are of. */
void rt_add_graph_hash(cJSON *object, const planc_graph *graph);

/* Pieces are JSON objects, so that they can be kept in a file between two sittings. Where memory is short they are
 * spoilt, or NULL (util/json_tree.h). `taken` may be NULL. */
cJSON *rt_piece_of_ops(const planc_graph *graph, int64_t load_ppm, int64_t batch, const rt_op_times *times,
                       const rt_memory_taken *taken);
cJSON *rt_piece_of_links(const rt_link_times *times, const rt_run_costs *run);
cJSON *rt_piece_of_storage(const rt_storage_times *times);
bool rt_piece_is_of_ops(const cJSON *piece, int64_t load_ppm, int64_t batch);
bool rt_piece_is_of_links(const cJSON *piece);
bool rt_piece_is_of_storage(const cJSON *piece);

/* A piece of ops may be a pass of several that make up its batch, with the algorithms that were refused meanwhile, an
 * array of {"op", "algorithm", "batch", "reason"}; NULL spoils the piece. */
void rt_piece_of_pass(cJSON *piece, int32_t number, int32_t of, const cJSON *refused);
/* The first pass that is not among them; -1: the batch is whole. */
int32_t rt_pieces_next_pass(const cJSON *pieces, int64_t load_ppm, int64_t batch);
/* Appends the fastest algorithm of each op at a batch, without load, in the graph's order: of equally fast ones a
 * deterministic one, then the one with the least workspace. */
planc_status rt_pieces_fastest(const cJSON *pieces, const planc_graph *graph, int64_t batch, rt_op_times *out);

/* A piece may also be what a process was at when it came to its end. One algorithm at most is held to have ended it:
 * that which was being tried, if its op had another. It is then left out of the profile at all batches, as nobody knows
 * at which others it is safe; one that did so at two ops is tried with no other. Where none was, the pass is to be run
 * with care.
 */
cJSON *rt_piece_of_trial(int64_t load_ppm, int64_t batch, const rt_trial *trial);
bool rt_piece_is_trial(const cJSON *piece);
bool rt_trial_has_algorithm(const cJSON *trial);
/* Such an algorithm as one that was refused. */
cJSON *rt_trial_refusal(const cJSON *trial);
/* Whether the algorithm ended one at this op; whether it is not to be tried there. */
bool rt_pieces_ended_at(const cJSON *pieces, const char *op, const char *algorithm);
bool rt_pieces_leave_out(const cJSON *pieces, const char *op, const char *algorithm);
bool rt_pieces_ended_in(const cJSON *pieces, int64_t load_ppm, int64_t batch, int32_t pass);

typedef struct rt_profile_head {
  const char *name;    /* of the device */
  const char *machine; /* processor and libraries, free text */
  int64_t memory_bytes;
  int32_t processors;
} rt_profile_head;

/* The profile of an array of pieces that has one of links, at least one of ops without load and perhaps one of storage.
 * INTERNAL when a piece is not as the functions above make it. */
planc_status rt_profile_compose(const rt_profile_head *head, const planc_graph *graph, const cJSON *pieces,
                                cJSON **out);
/* Batches to be asked about, ascending; `sizes` is malloc'ed. */
typedef struct rt_batches {
  int32_t n;
  int64_t *sizes;
  int64_t all_up_to;                                      /* at all others up to this one as well */
  bool slow;                                              /* also about what takes the backend long */
  void (*progress)(void *user, int32_t done, int32_t of); /* or NULL */
  void *user;
} rt_batches;
/* The sizes of rounds into which each of n batches is cut, evenly or with a shorter last one; `all_up_to` is the
 * largest. `sizes` is to be freed after a failure as well. */
planc_status rt_round_sizes(int32_t n, const int64_t *batches, rt_batches *out);

/* Adds to a profile the exact workspaces where planc would not find them between the points, or beyond the last: at
 * these batches, and at all others up to `all_up_to`, as long as that is no more than some thousands, of what does not
 * take the backend long. A variant that is then not known at every batch is marked as sampled; so is one of which the
 * device that is asked says otherwise than the profile at a batch of its points: of it, these alone are added. Stopped
 * (`options`) it adds some. */
planc_status rt_profile_add_workspaces(cJSON *root, const rt_list_options *options, const rt_batches *batches);

/* The profile of a device that is not there: its description, a JSON tree that the profile takes over, with ops from
 * `pieces`. */
planc_status rt_profile_compose_described(cJSON *description, const char *machine, const planc_graph *graph,
                                          const cJSON *pieces, cJSON **out);

/* A backend's device as another machine needs it for such profiles: the text of NAME.properties.json, planc-profile(5).
 * Malloc'ed. */
planc_status rt_properties_print(const planrt_backend *backend, char **out);

typedef struct rt_described_options {
  const planrt_backend *backend;
  const char *device; /* a name or path: its files are NAME.json, and NAME.properties.json for the libraries */
  const planc_graph *graph;
  int32_t n_batches;
  const int64_t *batches;
  bool deterministic;
  int32_t most;                                                  /* algorithms of each op; 0: all */
  const volatile sig_atomic_t *stop;                             /* when it is not 0, *out is NULL; or NULL */
  void (*progress)(void *user, int32_t done, int32_t of);        /* or NULL */
  void (*refused)(void *user, const char *op, planc_status why); /* told of an op that is left out; or NULL: an error */
  void *user;
} rt_described_options;
/* A profile of a graph on a device that need not be there: every algorithm with its exact workspace at all sizes of
 * rounds of the batches, times predicted at several of them. */
planc_status rt_profile_described(const rt_described_options *options, cJSON **out);

#endif
