/* Regions of a mix (Zico): random tensors of several owners never overlap, a region never holds tensors of two owners,
 * what is empty is everybody's again, and nothing is refused while a long enough stretch of regions is free. */
#include <check.h>
#include <stdlib.h>

#include "planc/schedule.h"
#include "planner/colocate/memory/regions.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { OWNERS = 4, TENSORS = 200, STEPS = 4000, REGIONS = 64 };
#define REGION (INT64_C(1) << 16)

typedef struct tensor {
  int32_t owner;
  int64_t address, bytes;
} tensor;

typedef struct play {
  uint64_t seed;
  int64_t region_bytes;
  pl_regions regions;
  int32_t n;
  tensor live[TENSORS];
} play;

static int64_t end_of(const tensor *t) {
  return t->address + (t->bytes + PLANC_ALIGNMENT - 1) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
}

static void assert_apart(const play *p, const tensor *t) {
  ck_assert_int_ge(t->address, 0);
  ck_assert_int_eq(t->address % PLANC_ALIGNMENT, 0);
  ck_assert_int_le(end_of(t), p->regions.capacity);
  for (int32_t k = 0; k < p->n; k++) {
    const tensor *other = &p->live[k];
    ck_assert(end_of(other) <= t->address || end_of(t) <= other->address);
    if (p->region_bytes == 0 || other->owner == t->owner) continue;
    int64_t first = t->address / p->region_bytes, last = (end_of(t) - 1) / p->region_bytes;
    int64_t others_first = other->address / p->region_bytes, others_last = (end_of(other) - 1) / p->region_bytes;
    ck_assert(others_last < first || last < others_first);
  }
}

/* Whether as many regions behind each other hold no tensor. */
static bool has_stretch(const play *p, int64_t bytes) {
  int64_t wanted = (bytes + p->region_bytes - 1) / p->region_bytes, free_regions = 0;
  for (int64_t r = 0; r < p->regions.capacity / p->region_bytes; r++) {
    bool used = false;
    for (int32_t k = 0; k < p->n; k++)
      used |= p->live[k].address < (r + 1) * p->region_bytes && end_of(&p->live[k]) > r * p->region_bytes;
    free_regions = used ? 0 : free_regions + 1;
    if (free_regions == wanted) return true;
  }
  return false;
}

static void take(play *p) {
  tensor t = {.owner = (int32_t)rand_below(&p->seed, OWNERS)};
  t.bytes = 1 + rand_below(&p->seed, rand_chance(&p->seed, 20) ? 4 * REGION : REGION / 4);
  ok(pl_regions_take(&p->regions, t.owner, rand_chance(&p->seed, 50), t.bytes, &t.address));
  if (t.address < 0) {
    if (p->region_bytes > 0) ck_assert(!has_stretch(p, t.bytes));
    return;
  }
  assert_apart(p, &t);
  p->live[p->n++] = t;
}

static void give(play *p, int32_t k) {
  ok(pl_regions_give(&p->regions, p->live[k].owner, p->live[k].address, p->live[k].bytes));
  p->live[k] = p->live[--p->n];
}

/* Of every owner, as many bytes as the regions that its tensors touch have. */
static void assert_held(const play *p) {
  int64_t held[OWNERS] = {0};
  for (int64_t r = 0; p->region_bytes > 0 && r < p->regions.capacity / p->region_bytes; r++) {
    int32_t owner = -1;
    for (int32_t k = 0; k < p->n; k++)
      if (p->live[k].address < (r + 1) * p->region_bytes && end_of(&p->live[k]) > r * p->region_bytes)
        owner = p->live[k].owner;
    if (owner >= 0) held[owner] += p->region_bytes;
  }
  for (int32_t k = 0; p->region_bytes == 0 && k < p->n; k++)
    held[p->live[k].owner] += end_of(&p->live[k]) - p->live[k].address;
  for (int32_t o = 0; o < OWNERS; o++) ck_assert_int_eq(p->regions.held[o], held[o]);
}

START_TEST(tensors_are_apart) {
  static play p;
  p = (play){.seed = (uint64_t)_i, .region_bytes = _i % 2 ? REGION : 0};
  ok(pl_regions_init(&p.regions, OWNERS, p.region_bytes, REGIONS * REGION + 1000));
  ck_assert_int_le(p.regions.capacity, REGIONS * REGION + 1000);
  for (int k = 0; k < STEPS; k++) {
    bool takes = p.n == 0 || (p.n < TENSORS && rand_chance(&p.seed, 55));
    if (takes)
      take(&p);
    else
      give(&p, (int32_t)rand_below(&p.seed, p.n));
    if (k % 50 == 0) assert_held(&p);
  }
  while (p.n > 0) give(&p, p.n - 1);
  assert_held(&p);
  int64_t address;
  ok(pl_regions_take(&p.regions, 1, false, REGIONS * REGION, &address));
  ck_assert_int_eq(address, 0);
  ok(pl_regions_take(&p.regions, 2, false, 1000, &address));
  if (p.region_bytes > 0) ck_assert_int_eq(address, -1);
  pl_regions_free(&p.regions);
}
END_TEST

START_TEST(there_may_be_no_room_at_all) {
  pl_regions regions;
  int64_t address;
  ok(pl_regions_init(&regions, 1, REGION, -5));
  ok(pl_regions_take(&regions, 0, _i == 1, 1, &address));
  ck_assert_int_eq(address, -1);
  pl_regions_free(&regions);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("regions");
  TCase *tests = tcase_create("tests");
  tcase_set_timeout(tests, 0);
  tcase_add_loop_test(tests, tensors_are_apart, 0, 10);
  tcase_add_loop_test(tests, there_may_be_no_room_at_all, 0, 2);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
