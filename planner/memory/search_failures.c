/* Places are looked for in slots, each from the slot on that it has modulo their number. There are twice as many as are
 * used, until each place has its own. */
#include "planner/memory/search_failures.h"

#include <stdlib.h>

enum { N_PLACES = 1 << 20, FEWEST_SLOTS = 1 << 8 };

static pl_failure *slot_of(pl_failure *slots, int64_t n_slots, const pl_failure *failure);
static bool is_empty(const pl_failure *slot);
static planc_status grow(pl_failures *table);

bool pl_failures_know(const pl_failures *table, const pl_failure *asked) {
  const pl_failure none = {0};
  const pl_failure *known = table->n_slots > 0 ? slot_of(table->slots, table->n_slots, asked) : &none;
  return known->key == asked->key && known->address <= asked->address;
}

planc_status pl_failures_keep(pl_failures *table, const pl_failure *failed) {
  if (2 * table->n_used >= table->n_slots && table->n_slots < N_PLACES) PLANC_TRY(grow(table));
  pl_failure *slot = slot_of(table->slots, table->n_slots, failed);
  table->n_used += is_empty(slot);
  if (slot->key != failed->key || slot->address > failed->address) *slot = *failed;
  return NULL;
}

void pl_failures_free(pl_failures *table) {
  free(table->slots);
  *table = (pl_failures){0};
}

static planc_status grow(pl_failures *table) {
  int64_t n_slots = table->n_slots > 0 ? 2 * table->n_slots : FEWEST_SLOTS;
  pl_failure *slots = calloc((size_t)n_slots, sizeof *slots);
  if (!slots) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int64_t i = 0; i < table->n_slots; i++)
    if (!is_empty(&table->slots[i])) *slot_of(slots, n_slots, &table->slots[i]) = table->slots[i];
  free(table->slots);
  table->slots = slots;
  table->n_slots = n_slots;
  return NULL;
}

static int64_t place_of(const pl_failure *failure) {
  return (int64_t)(failure->key % N_PLACES);
}

/* That of the failure's place, or the empty one that it would take. */
static pl_failure *slot_of(pl_failure *slots, int64_t n_slots, const pl_failure *failure) {
  int64_t place = place_of(failure), at = place & (n_slots - 1);
  while (!is_empty(&slots[at]) && place_of(&slots[at]) != place) at = (at + 1) & (n_slots - 1);
  return &slots[at];
}

static bool is_empty(const pl_failure *slot) {
  return slot->key == 0 && slot->address == 0;
}
