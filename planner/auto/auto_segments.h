/* Ways by segments of the forward pass: what crosses a cut stays or is copied, the rest is computed again, segment by
 * segment, as by checkpointing (Chen et al., 2016). Cuts are where fewer bytes cross than at so many positions on
 * either side, so that they fall between a model's blocks. */
#ifndef PLANC_AUTO_AUTO_SEGMENTS_H
#define PLANC_AUTO_AUTO_SEGMENTS_H

#include "planner/auto/auto_gaps.h"

typedef struct pl_auto_segments {
  const pl_auto_gaps *gaps; /* borrowed */
  int32_t *first, *last;    /* by buffer: its first and its last position in the forward pass, -1 = it has none */
  int32_t *reach;           /* by position: so many on either side are crossed by more bytes; -1: not a forward one */
  int32_t *segment;         /* by position: the cuts ahead of it */
  int32_t end;              /* the forward pass's last segment */
} pl_auto_segments;

/* In memory of `arena`; borrows `gaps`. */
planc_status pl_auto_segments_new(const pl_auto_gaps *gaps, pl_arena *arena, pl_auto_segments *out);
/* Cuts where the reach is at least `reach`. Returns how many cuts there are. */
int32_t pl_auto_segments_cut(pl_auto_segments *s, int32_t reach);
/* Of what the forward pass makes and the backward pass reads, and of tails, what crosses a cut stays, and so does what
 * the last segment makes if `keeps_last`; but of the first `n_copied` segments it is copied where it may be. The rest
 * is computed again. Fills in these ways; others, and those that need tails, are as they were. */
void pl_auto_segments_set(pl_auto_segments *s, int32_t n_copied, bool keeps_last, uint8_t *ways);

#endif
