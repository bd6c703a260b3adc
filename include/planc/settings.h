/* What the user may ask of policies. One table: a plan keeps each by its name, the command line takes it as an option.
 */
#ifndef PLANC_SETTINGS_H
#define PLANC_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

/* X(name, option, kind, users, fallback, help)
 *
 * Kinds and their ranges: bytes, 1 to 2^53; count, 1 to PLANC_MOST_COUNT; share, in parts per million, 1 to 1,000,000;
 * flag, 1. 0 is the default, which `fallback` tells. `users` is what of planc_policy.supports has use for it, 0: every
 * policy. */
#define PLANC_SETTINGS(X) PLANC_JOB_SETTINGS(X) PLANC_MIX_SETTINGS(X) PLANC_ANY_SETTINGS(X)
/* Of policies for a job, of those for mixes (planc_mix_policy.supports), and of all. */
#define PLANC_JOB_SETTINGS(X)                                                       \
  X(window, "window", bytes, PLANC_POLICY_WINDOW, "1.5 times the data it may hold", \
    "schedule-window of policy window")                                             \
  X(workspace_limit, "workspace-limit", bytes, PLANC_POLICY_WINDOW, "any",          \
    "largest workspace of an algorithm that policy window takes")                   \
  X(window_per_use, "window-per-use", flag, PLANC_POLICY_WINDOW, "",                \
    "let data count in the window at each use, not once")                           \
  X(swap_rate, "swap-rate", share, PLANC_POLICY_SWAP_RATE, "100", "how many of the tensors policy tensile may swap")
#define PLANC_MIX_SETTINGS(X)                                                                           \
  X(region, "region", bytes, PLANC_MIX_REGIONS, "64M",                                                  \
    "memory that policy zico hands from job to job at a time; 256 bytes is tensor by tensor")           \
  X(split_size, "split-size", bytes, PLANC_MIX_GROUPS, "the fastest of several",                        \
    "what a node group of policy waterwave allocates")                                                  \
  X(split_groups, "split-groups", count, PLANC_MIX_GROUPS, "the fastest of several",                    \
    "node groups that policy waterwave cuts the largest job into, instead of their size")               \
  X(release_split, "release-split", bytes, PLANC_MIX_GROUPS, "as they allocate, or half as much again", \
    "what a node group of policy waterwave deallocates")                                                \
  X(split_relaxed, "split-relaxed", flag, PLANC_MIX_GROUPS, "",                                         \
    "let sizes of node groups differ, so that they take about as long")                                 \
  X(split_variable, "split-variable", flag, PLANC_MIX_GROUPS, "",                                       \
    "let node groups allocate as much as those of the job before deallocate")                           \
  X(pair_barriers, "pair-barriers", flag, PLANC_MIX_BARRIERS, "",                                       \
    "pair node groups by Waterwave's Algorithm 1, and let streams wait for each other before each pair")
enum { PLANC_MOST_COUNT = 4096 };
#define PLANC_DEFAULT_REGION (INT64_C(64) << 20) /* that of region (Zico, 6.3) */
#define PLANC_ANY_SETTINGS(X)                                          \
  X(no_swap, "no-swap", flag, 0, "", "nothing is swapped to the host") \
  X(no_recompute, "no-recompute", flag, 0, "", "nothing is computed again")

typedef struct planc_settings {
#define X(name, option, kind, users, fallback, help) int64_t name;
  PLANC_SETTINGS(X)
#undef X
} planc_settings;

static inline bool planc_settings_are_same(const planc_settings *a, const planc_settings *b) {
  bool same = true;
#define X(name, option, kind, users, fallback, help) same = same && a->name == b->name;
  PLANC_SETTINGS(X)
#undef X
  return same;
}

#endif
