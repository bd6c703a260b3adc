/* What the user may ask of policies. One table: a plan keeps each by its name, the command line takes it as an option.
 * How device memory is addressed (planc_terms.placement and its chunks) is none of them: it holds for whatever policy
 * plans, and a plan keeps it where its memory stands. */
#ifndef PLANC_SETTINGS_H
#define PLANC_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, option, kind, least, most, standard, users, help), a setting each:
 *
 * - `name` is its field in planc_settings and its word in a plan; `--option` sets it, and `help` says what it does.
 * - `kind` is bytes, count, share (in parts per million), flag or level (one more than the user says, who counts from
 *   0). Its value is from `least` to `most`, or 0 where the user has not set it.
 * - `standard` is what holds then: AMOUNT(n, unit) or LEVEL(n), a value; or WORDS(text), which tells what the policy
 *   chooses.
 * - `users` are bits of planc_policy.supports, or of planc_mix_policy.supports in PLANC_MIX_SETTINGS: a policy with one
 *   of them has use for the setting. 0: every policy has.
 *
 * So swap_rate is a share that `--swap-rate 50` sets to 500000; unset it is 100 percent, and only policies that support
 * PLANC_POLICY_SWAP_RATE look at it. */
#define PLANC_SETTINGS(X) PLANC_JOB_SETTINGS(X) PLANC_MIX_SETTINGS(X) PLANC_ANY_SETTINGS(X)
/* JOB: of policies for one job. EACH: those of them that each job of a mix may have for itself. MIX: of policies for
 * mixes. ANY: of both. */
#define PLANC_JOB_SETTINGS(X)                                                                                  \
  X(window, "window", bytes, 1, PLANC_MAX_BYTES, WORDS("1.5 times the data it may hold"), PLANC_POLICY_WINDOW, \
    "schedule-window of policy window")                                                                        \
  X(workspace_limit, "workspace-limit", bytes, 1, PLANC_MAX_BYTES, WORDS("any"), PLANC_POLICY_WINDOW,          \
    "largest workspace of an algorithm that policy window takes")                                              \
  X(window_per_use, "window-per-use", flag, 1, 1, WORDS(""), PLANC_POLICY_WINDOW,                              \
    "let data count in the window at each use, not once")                                                      \
  X(effort, "effort", level, 1, 4, LEVEL(1), PLANC_POLICY_SEARCHES,                                            \
    "how long policies auto and priced search, ten times as long each")                                        \
  X(reorder, "reorder", flag, 1, 1, WORDS(""), PLANC_POLICY_SEARCHES,                                          \
    "let optimizer ops run early and others late, where policies auto and priced are faster so")               \
  PLANC_EACH_SETTINGS(X)
#define PLANC_EACH_SETTINGS(X)                                                               \
  X(swap_rate, "swap-rate", share, 1, 1000000, AMOUNT(100, PERCENT), PLANC_POLICY_SWAP_RATE, \
    "how many of the tensors policy tensile may swap")
#define PLANC_MIX_SETTINGS(X)                                                                                    \
  X(region, "region", bytes, 256, PLANC_MAX_BYTES, AMOUNT(64, MIB), PLANC_MIX_REGIONS, /* Zico, 6.3 */           \
    "memory that policy zico hands from job to job at a time; 256 bytes is tensor by tensor")                    \
  X(split_size, "split-size", bytes, 1, PLANC_MAX_BYTES, WORDS("the fastest of several"), PLANC_MIX_GROUPS,      \
    "what a node group of policy waterwave allocates")                                                           \
  X(split_groups, "split-groups", count, 1, 4096, WORDS("the fastest of several"), PLANC_MIX_GROUPS,             \
    "node groups that policy waterwave cuts the largest job into, instead of their size")                        \
  X(release_split, "release-split", bytes, 1, PLANC_MAX_BYTES, WORDS("as they allocate, or half as much again"), \
    PLANC_MIX_GROUPS, "what a node group of policy waterwave deallocates")                                       \
  X(split_relaxed, "split-relaxed", flag, 1, 1, WORDS(""), PLANC_MIX_GROUPS,                                     \
    "let sizes of node groups differ, so that they take about as long")                                          \
  X(split_variable, "split-variable", flag, 1, 1, WORDS(""), PLANC_MIX_GROUPS,                                   \
    "let node groups allocate as much as those of the job before deallocate")                                    \
  X(pair_barriers, "pair-barriers", flag, 1, 1, WORDS(""), PLANC_MIX_BARRIERS,                                   \
    "pair node groups by Waterwave's Algorithm 1, and let streams wait for each other before each pair")
#define PLANC_ANY_SETTINGS(X)                                                       \
  X(no_swap, "no-swap", flag, 1, 1, WORDS(""), 0, "nothing is swapped to the host") \
  X(no_recompute, "no-recompute", flag, 1, 1, WORDS(""), 0, "nothing is computed again")

#define PLANC_MAX_BYTES (INT64_C(1) << 53)

/* A default as a number, 0 where a policy chooses, and as text. */
#define PLANC_SETTING_VALUE(standard) PLANC_VALUE_##standard
#define PLANC_VALUE_AMOUNT(n, unit) ((n)*PLANC_UNIT_##unit)
#define PLANC_VALUE_LEVEL(n) ((n) + 1)
#define PLANC_VALUE_WORDS(text) 0
#define PLANC_SETTING_TEXT(standard) PLANC_TEXT_##standard
#define PLANC_TEXT_AMOUNT(n, unit) #n PLANC_UNIT_TEXT_##unit
#define PLANC_TEXT_LEVEL(n) #n
#define PLANC_TEXT_WORDS(text) text
enum { PLANC_UNIT_MIB = 1 << 20, PLANC_UNIT_PERCENT = 10000 };
#define PLANC_UNIT_TEXT_MIB "M"
#define PLANC_UNIT_TEXT_PERCENT ""

/* PLANC_STANDARD_name of each. */
enum {
#define X(name, option, kind, least, most, standard, users, help) PLANC_STANDARD_##name = PLANC_SETTING_VALUE(standard),
  PLANC_SETTINGS(X)
#undef X
};

typedef struct planc_settings {
#define X(name, option, kind, least, most, standard, users, help) int64_t name;
  PLANC_SETTINGS(X)
#undef X
} planc_settings;

/* USAGE where one is out of its range, or has no meaning there, or two exclude each other. Planning and the reader of
 * plans both ask. */
planc_status planc_settings_check(const planc_settings *settings);

static inline bool planc_settings_are_same(const planc_settings *a, const planc_settings *b) {
  bool same = true;
#define X(name, option, kind, least, most, standard, users, help) same = same && a->name == b->name;
  PLANC_SETTINGS(X)
#undef X
  return same;
}

#ifdef __cplusplus
}
#endif

#endif
