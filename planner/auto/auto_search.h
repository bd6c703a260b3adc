/* The search for ways (auto_gaps.h) with which an iteration fits and takes little time.
 *
 * Every choice is judged whole, by a rehearsal and the times of its copies, which takes microseconds; so thousands are.
 * Bytes beyond the room are charged at a price by position, at first that of the bound. A search begins (auto_start.h)
 * and then changes ways at random (auto_anneal.h), while prices rise where bytes are beyond the room still. All numbers
 * are whole, and what is random is the same each time. */
#ifndef PLANC_AUTO_AUTO_SEARCH_H
#define PLANC_AUTO_AUTO_SEARCH_H

#include "planner/auto/auto_segments.h"
#include "planner/auto/copy_times.h"
#include "planner/bound/bound_ascent.h"
#include "planner/bound/bound_certify.h"
#include "planner/choose/absences.h"

typedef struct pl_auto_score {
  int64_t ns;     /* of the period, and a little for each copy */
  int64_t charge; /* for bytes beyond the room, ns */
} pl_auto_score;

#define PL_AUTO_MOST_CHARGE (INT64_MAX / 4)

static inline bool pl_auto_fits(pl_auto_score score) {
  return score.charge == 0;
}

/* With so many times the charge. */
static inline int64_t pl_auto_sum(pl_auto_score score, int64_t times) {
  pl_signed_wide sum = score.ns + (pl_signed_wide)times * score.charge;
  return sum > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)sum;
}

/* What a rehearsal has found of the ways that are kept; the search's own is of those that were judged last. By
 * position. */
typedef struct pl_auto_kept {
  bool works;
  int64_t *held, *workspace, *op_ns; /* as in pl_rehearsal */
  int64_t *lost;                     /* and one more: the time that is lost ahead of it */
  int64_t host_bytes;
} pl_auto_kept;

/* A way for a gap that stays as yet. */
typedef struct pl_auto_move {
  int64_t saved, costs; /* ns, of charges and of time, when it was last looked at; costs > 0 */
  int32_t gap, round;   /* how many moves had been made then; NOT_YET: it is an estimate */
  uint8_t way;
} pl_auto_move;

typedef struct pl_auto_search {
  const pl_auto_gaps *gaps; /* borrowed */
  pl_rehearsal rehearsal;
  pl_copy_times times;
  pl_auto_segments segments;
  int64_t room;
  int64_t *price;                /* by position, of a byte beyond the room: parts of a ns (PL_PRICE_ONE) */
  const int64_t *first_price;    /* as it is at the beginning */
  int64_t least_raise;           /* what a price rises by at least */
  const pl_bound_shares *shares; /* by gap of the bound (of_bound), borrowed; NULL: no change goes by them */
  int64_t in_price, out_price;   /* of a ns of a link: parts of a ns */
  int64_t ideal_ns, least_ns;    /* no period is shorter */
  uint8_t *ways, *best, *spare;  /* by gap: now, of the fastest that fit, and scratch */
  pl_auto_score score, best_score;
  pl_auto_kept kept; /* of the ways that are kept */
  int32_t fullest;   /* a position where most is beyond the room, of the ways that were charged last and did not fit */
  int8_t *fixed;     /* by gap: the way that it is to have, or PL_AUTO_ANY_WAY */
  int32_t *candidates; /* gaps that are worth a change */
  int32_t n_candidates;
  const int32_t *heaviest; /* all gaps that something is decided about, but tails: those that take most bytes for most
                              time, by the ops' own, first */
  int32_t n_heaviest;
  int64_t work;         /* pl_rehearsal_work of all that was judged */
  int64_t most_steps;   /* of the rehearsal's: changes end there; none at first */
  int64_t *price_sums;  /* by position and one more: prices of positions ahead of it; scratch */
  int64_t *beyond;      /* by position, bytes beyond the room; scratch */
  int64_t *price_begun; /* by position, prices as they are when the first gap is forced */
  uint64_t random;
  const planc_watch *watch; /* where it says so the search ends; NULL: there is none */
  pl_auto_move *moves;      /* two for each gap */
  int32_t *taken;
} pl_auto_search;

/* In memory of `arena`; borrows `gaps`. Nothing fits yet. `prices` are those of the bound that was found. */
planc_status pl_auto_search_new(const pl_auto_gaps *gaps, const pl_bound_prices *prices, const pl_bound_found *found,
                                pl_arena *arena, pl_auto_search *out);
enum { PL_AUTO_ANY_WAY = -1 };
/* From the next pl_auto_search_in on, a gap that is no tail is spent in that way and no other, or in any
 * (PL_AUTO_ANY_WAY); no change touches it any more. The gap is open for the way. */
void pl_auto_search_fix(pl_auto_search *s, int32_t gap, int way);
/* Begins anew in `room` bytes, with the present ways but for those that are fixed; what was found before is forgotten.
 * `tails`: whether tails may stay, as the gaps were made with. */
void pl_auto_search_in(pl_auto_search *s, int64_t room, bool tails);
/* Goes on where that many bytes of them are not to be had, from the best that was found: that may fit no more, and is
 * forgotten. */
void pl_auto_search_without(pl_auto_search *s, int64_t lacking);
/* Has all stay that may, tails not, and all that is fixed in its way; and the latter alone. Nothing is judged. */
void pl_auto_let_all_stay(pl_auto_search *s);
void pl_auto_keep_fixed(pl_auto_search *s);
/* Judges the present ways, and keeps them if they are the fastest that fit; for those who change them. */
void pl_auto_judge(pl_auto_search *s);
/* The same, but false, without a score, where time and so many times the charge are certainly more than `most`. */
bool pl_auto_judge_within(pl_auto_search *s, int64_t times, int64_t most);
/* Notes what was judged last, the present ways, as what is kept. */
void pl_auto_note_kept(pl_auto_search *s);
/* The charge of the ways that are kept, by the prices as they are now. */
int64_t pl_auto_charge_kept(pl_auto_search *s);
/* Whether a gap is worth a change, and free for it. */
bool pl_auto_may_change(const pl_auto_search *s, int32_t gap);
/* Where the op stands that writes the version of a gap. */
int32_t pl_auto_writer_position(const pl_rehearsal *r, const pl_auto_gap *gap);
enum { PL_AUTO_MOST_INPUTS = 32 };
/* The tails, so many at most, that do not stay but would have to for a gap to be computed again from what it reads as
 * it is. Returns their number. */
int32_t pl_auto_search_inputs(const pl_auto_search *s, int32_t gap, int32_t tails[PL_AUTO_MOST_INPUTS]);
/* Whether any that fit were found. */
static inline bool pl_auto_search_found(const pl_auto_search *s) {
  return s->best_score.ns < INT64_MAX;
}
/* The fastest that fit, or else the present ways, in memory of `arena`. */
planc_status pl_auto_search_state(pl_auto_search *s, pl_arena *arena, pl_absences *out);

#endif
