/* What values are found with (bound_value.h), for their own files. */
#ifndef PLANC_BOUND_VALUE_STATE_H
#define PLANC_BOUND_VALUE_STATE_H

#include "planner/bound/bound_value.h"

/* When the copy out is made with which a version leaves the device. */
typedef enum pl_bound_leaving {
  PL_LEAVES_SENT,  /* it is made up to the gap's first use */
  PL_LEAVES_LATER, /* behind that, and the version stays for it */
  PL_LEAVES_AGAIN  /* behind that, of what is computed again */
} pl_bound_leaving;

/* The arrays by position or slot go on through a second period, since gaps may. */
typedef struct pl_bound_scratch {
  int64_t *bytes_before; /* by position and one more: the sum of byte prices ahead of it */
  int64_t *back;         /* by slot: a byte's price of a copy in there, less bytes_before where it is there */
  int64_t *leave;        /* by slot: of a copy out there, and bytes_before up to where it is gone */
  int64_t *send;         /* by slot: of a copy out there */
  int64_t *again;        /* by slot: what is paid of an op's time there; PL_PRICE_ONE and more in slots of ops */
  int64_t *bring;        /* by slot: a byte's price of a copy in there */
  pl_range_least least_back, least_leave, least_send, least_again, least_bring;
  int64_t *kept; /* by position and one more: bytes that stay from there on, or no longer */
  pl_signed_wide *with_copy,
      *without; /* by gap of a version and one more: the least from there on, if the host has it or not */
  int32_t *back_slot, *send_slot, *again_slot; /* by gap of a version */
  pl_bound_leaving *leaving;                   /* by gap of a version */
  uint8_t *way_with, *way_without;             /* by gap of a version */
} pl_bound_scratch;

static inline int32_t pl_bound_n_slots(const pl_bound_model *model) {
  return 2 * model->n;
}

/* The first position whose op finds what is copied in in a slot on the device, or what is copied out gone. Memory
 * counts when an op begins: while it runs, one thing may leave and another take its place. */
static inline int32_t pl_bound_found_from(int32_t slot) {
  return slot / 2 + 1;
}

/* --- Slopes (bound_slopes.c) -------------------------------------------------------------------------------------- */

/* An op of so many ns pays for less of its time where the price of its slot is higher. */
void pl_bound_slope_of_time(pl_bound_value *v, int32_t slot, int64_t paid, int64_t ns);
/* On the device at the ops from `first` up to, not including, `end`. */
void pl_bound_keep(pl_bound_value *v, int32_t first, int32_t end, int64_t bytes);
/* A copy in a slot. */
void pl_bound_slope_of_copy(pl_bound_value *v, int32_t slot, planc_route route, int64_t bytes);
/* Copied in, in a slot, and on the device from then on, up to `end`. */
void pl_bound_copy_in(pl_bound_value *v, int32_t slot, int32_t end, int64_t bytes);

/* --- What runs again reads (bound_value_again.c) ------------------------------------------------------------------ */

/* Where something runs again: in the gap's slots. Slots are of no meaning where it reads nothing that is gone. */
typedef struct pl_bound_window {
  int32_t from, to;
  int32_t again_slot, bring_slot; /* the cheapest to run in, and to copy in, */
  int32_t back_slot;              /* and to copy in what is on the device from then on */
} pl_bound_window;

/* Inputs of the model, of an op that makes so many bytes of them; 0: they do not give way to these
 * (bound_value_again.c). */
typedef struct pl_bound_inputs {
  int32_t first, n;
  int64_t made_bytes;
} pl_bound_inputs;

pl_signed_wide pl_bound_price_of_inputs(const pl_bound_value *v, const pl_bound_window *window, pl_bound_inputs inputs);
/* What these take of memory and links, divided into so many parts. */
void pl_bound_take_inputs(pl_bound_value *v, const pl_bound_window *window, pl_bound_inputs inputs, int64_t parts);

#endif
