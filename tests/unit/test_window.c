/* The window schedule (papers: out-of-core, 3): each rule on a sequence small enough to follow by hand, random
 * sequences against the paper's trial and rescheduling, and what must hold of any schedule; and the addresses of what
 * no allocator finds room for. */
#include <check.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/policy.h"
#include "planner/policies/adaptive_window.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

/* --- Sequences ---------------------------------------------------------------------------------------------------- */

enum { MAX_INSTANCES = 40, MAX_USES = 160, MAX_BUFFERS = 26 };

typedef struct sequence {
  pl_window_sequence it;
  int32_t first_use[MAX_INSTANCES + 1];
  pl_window_use uses[MAX_USES];
  int64_t bytes[MAX_BUFFERS];
} sequence;

static void end_instance(sequence *s, int32_t n_uses) {
  s->first_use[++s->it.n_instances] = n_uses;
}

static void end_sequence(sequence *s) {
  bool read_next[MAX_BUFFERS] = {false};
  for (int32_t u = s->first_use[s->it.n_instances] - 1; u >= 0; u--) {
    s->uses[u].keeps = read_next[s->uses[u].buffer];
    read_next[s->uses[u].buffer] = s->uses[u].reads;
  }
  s->it.n_buffers = MAX_BUFFERS;
  s->it.first_use = s->first_use;
  s->it.uses = s->uses;
  s->it.bytes = s->bytes;
}

/* Instances are separated by |; a small letter is a buffer that is read, a capital one that is made. All have one
 * byte, but those in `large`, which have ten. */
static void parse(sequence *s, const char *instances, const char *large) {
  int32_t n = 0;
  *s = (sequence){0};
  for (int b = 0; b < MAX_BUFFERS; b++) s->bytes[b] = strchr(large, 'a' + b) ? 10 : 1;
  for (const char *c = instances; *c; c++) {
    if (*c == '|') end_instance(s, n);
    if (isalpha(*c)) s->uses[n++] = (pl_window_use){.buffer = tolower(*c) - 'a', .reads = islower(*c)};
  }
  end_instance(s, n);
  end_sequence(s);
}

/* "+a" swap-in, "A" reserve, "(0)" run, "-a" swap-out, "~a" one that was cancelled, ".a" completion, "!a" clear. */
static void print(const sequence *s, const pl_window_steps *steps, char *text) {
  static const char *const signs[] = {"+", "", "", "-", "~", ".", "!"};
  for (int64_t i = 0; i < steps->len; i++) {
    const pl_window_step *step = &steps->data[i];
    if (step->kind == PL_WINDOW_RUN) {
      text += sprintf(text, "(%d)", step->use);
      continue;
    }
    int32_t letter = 'a' + s->uses[step->use].buffer;
    if (step->kind == PL_WINDOW_RESERVE) letter = toupper(letter);
    text += sprintf(text, "%s%c", signs[step->kind], letter);
  }
}

static void expect(const char *instances, const char *large, pl_schedule_window window, const char *expected) {
  sequence s;
  pl_window_steps steps = {0};
  char text[4 * 1024];
  parse(&s, instances, large);
  ok(pl_window_schedule(&s.it, &window, &steps));
  print(&s, &steps, text);
  ck_assert_str_eq(text, expected);
  VEC_FREE(&steps);
}

/* --- The rules ---------------------------------------------------------------------------------------------------- */

START_TEST(all_stays_where_window_and_budget_hold_all) {
  expect("A|aB|bC|ac", "", (pl_schedule_window){.budget_bytes = 9, .window_bytes = 9}, "A(0)B(1)C(2)!b(3)!a!c");
}
END_TEST

/* (a) What comes into the window is swapped in, as far as its bytes go; an instance's own operands always come in. */
START_TEST(the_window_is_counted_in_bytes) {
  pl_schedule_window window = {.budget_bytes = 40, .window_bytes = 2};
  expect("a|b|c|d", "", window, "+a+b(0)!a+c(1)!b+d(2)!c(3)!d");
  window.window_bytes = 3;
  expect("a|b|c|d", "", window, "+a+b+c(0)!a+d(1)!b(2)!c(3)!d");
  window.window_bytes = 10;
  expect("a|b|c|d", "b", window, "+a(0)!a+b(1)!b+c+d(2)!c(3)!d");
  window.window_bytes = 1;
  expect("abc|d", "", window, "+a+b+c(0)!a!b!c+d(1)!d");
}
END_TEST

/* What is in the window counts once, or for each of its uses. */
START_TEST(the_window_counts_buffers_or_uses) {
  pl_schedule_window window = {.budget_bytes = 40, .window_bytes = 2};
  expect("a|a|a|b", "", window, "+a+b(0)(1)(2)!a(3)!b");
  window.per_occurrence = true;
  expect("a|a|a|b", "", window, "+a(0)(1)+b(2)!a(3)!b");
}
END_TEST

/* What an instance only makes is no prefetch: it gets its memory at the instance. */
START_TEST(what_is_made_is_reserved_at_its_instance) {
  expect("A|B|ab", "", (pl_schedule_window){.budget_bytes = 40, .window_bytes = 40}, "A(0)B(1)(2)!a!b");
}
END_TEST

/* (b) Oldest first, and only as many as are needed. (c) Swapped out where the window holds no further use. */
START_TEST(the_oldest_swap_outs_are_completed_first) {
  pl_schedule_window window = {.budget_bytes = 3, .window_bytes = 1};
  expect("A|B|C|D|a|b|c|d", "", window, "A(0)-aB(1)-bC(2)~c.aD(3)~d.b+a(4)!a+b(5)!b(6)!c(7)!d");
}
END_TEST

/* (d) A buffer that comes back into the window before its swap-out was awaited has never left. */
START_TEST(a_swap_out_is_cancelled) {
  pl_schedule_window window = {.budget_bytes = 3, .window_bytes = 1};
  expect("A|B|a|b", "", window, "A(0)~aB(1)~b(2)!a(3)!b");
  window.budget_bytes = 1;
  expect("A|B|a|b", "", window, "A(0)-a.aB(1)-b.b+a(2)!a+b(3)!b");
}
END_TEST

/* PRECLEAR: what nobody reads again is not copied, even where it is made anew within the window. */
START_TEST(what_nobody_reads_is_cleared) {
  pl_schedule_window window = {.budget_bytes = 2, .window_bytes = 9};
  expect("A|a|B|A|ab", "", window, "A(0)(1)!aB(2)A(3)(4)!a!b");
}
END_TEST

/* Backtracking: x would fit when it comes into the window, but not beside what instance 2 makes. It waits until
 * instance 2 is over, and so does all behind it. */
START_TEST(prefetches_leave_room_for_what_is_made) {
  pl_schedule_window window = {.budget_bytes = 11, .window_bytes = 30};
  expect("a|B|C|xd", "cx", window, "+a(0)!aB(1)!bC(2)!c+x+d(3)!x!d");
  window.budget_bytes = 12;
  expect("a|B|C|dx", "cx", window, "+a+d(0)!aB(1)!bC(2)!c+x(3)!d!x");
  window.budget_bytes = 22;
  expect("a|B|C|dx", "cx", window, "+a+d+x(0)!aB(1)!bC(2)!c(3)!d!x");
}
END_TEST

START_TEST(the_least_budget_is_the_largest_instance) {
  sequence s;
  int32_t instance;
  parse(&s, "A|bcd|EF|f", "ce");
  ck_assert_int_eq(pl_window_least(&s.it, &instance), 12);
  ck_assert_int_eq(instance, 1);
  pl_window_steps steps = {0};
  pl_schedule_window window = {.budget_bytes = 11, .window_bytes = 11};
  assert_fails(pl_window_schedule(&s.it, &window, &steps), PLANC_INTERNAL, "instance 1");
  VEC_FREE(&steps);
}
END_TEST

/* --- Against trial and rescheduling ------------------------------------------------------------------------------- */

/* The schedule as the paper's implementation finds it: an instance that does not fit forbids the last prefetches until
 * it is over, and everything starts again. */
typedef enum rival_state { R_AWAY, R_EXPECTED, R_IN, R_OUT } rival_state;

typedef struct rival {
  const sequence *s;
  const pl_schedule_window *window;
  rival_state state[MAX_BUFFERS];
  int32_t count[MAX_BUFFERS], left_at[MAX_BUFFERS];
  int32_t stopper[MAX_USES]; /* the use must not enter the window before this instance */
  int32_t head, tail;
  int64_t in, out, in_window;
  char text[4 * 1024];
} rival;

static void say(rival *r, const char *sign, int32_t letter) {
  size_t length = strlen(r->text);
  snprintf(r->text + length, sizeof r->text - length, "%s%c", sign, letter);
}

static void wait_for_oldest(rival *r) {
  int32_t use = r->tail++, b = r->s->uses[use].buffer;
  if (r->state[b] != R_OUT || r->left_at[b] != use) return;
  say(r, ".", 'a' + b);
  r->out -= r->s->bytes[b];
  r->state[b] = R_AWAY;
}

static void mark_cancelled(rival *r, int32_t b) {
  char *last = NULL;
  for (char *c = r->text; *c; c++) {
    if (c[0] == '-' && c[1] == 'a' + b) last = c;
  }
  ck_assert_ptr_nonnull(last);
  *last = '~';
}

static void rival_swap_in(rival *r, int32_t i) {
  const sequence *s = r->s;
  for (; r->head < s->first_use[s->it.n_instances]; r->head++) {
    int32_t b = s->uses[r->head].buffer;
    bool own = r->head < s->first_use[i + 1], counts = r->count[b] == 0 || r->window->per_occurrence;
    if (r->stopper[r->head] > i) return;
    if (!own && counts && r->in_window + s->bytes[b] > r->window->window_bytes) return;
    if (r->count[b] == 0) {
      if (!own && s->uses[r->head].reads && r->state[b] != R_OUT && r->in + s->bytes[b] > r->window->budget_bytes)
        return;
      if (r->state[b] == R_OUT) {
        mark_cancelled(r, b);
        r->out -= s->bytes[b];
        r->in += s->bytes[b];
        r->state[b] = R_IN;
      } else if (!s->uses[r->head].reads) {
        r->state[b] = R_EXPECTED;
      } else {
        while (r->in + r->out + s->bytes[b] > r->window->budget_bytes && r->tail < s->first_use[i]) wait_for_oldest(r);
        say(r, "+", 'a' + b);
        r->in += s->bytes[b];
        r->state[b] = R_IN;
      }
    }
    if (counts) r->in_window += s->bytes[b];
    r->count[b]++;
  }
}

/* False when prefetches have been forbidden and all must start again. */
static bool rival_reserve(rival *r, int32_t i) {
  const sequence *s = r->s;
  int64_t need = 0, room;
  for (int32_t u = s->first_use[i]; u < s->first_use[i + 1]; u++) {
    if (r->state[s->uses[u].buffer] == R_EXPECTED) need += s->bytes[s->uses[u].buffer];
  }
  while (room = r->window->budget_bytes - r->in - r->out, room < need && r->tail < s->first_use[i]) wait_for_oldest(r);
  if (room < need) {
    int32_t count[MAX_BUFFERS];
    memcpy(count, r->count, sizeof count);
    for (int32_t back = r->head - 1; room < need; back--) {
      ck_assert_int_ge(back, s->first_use[i + 1]);
      int32_t b = s->uses[back].buffer;
      if (count[b] == 1 && r->state[b] == R_IN) room += s->bytes[b];
      if (count[b]-- == 1) r->stopper[back] = i + 1;
    }
    return false;
  }
  r->in += need;
  for (int32_t u = s->first_use[i]; u < s->first_use[i + 1]; u++) {
    if (r->state[s->uses[u].buffer] != R_EXPECTED) continue;
    r->state[s->uses[u].buffer] = R_IN;
    say(r, "", 'A' + s->uses[u].buffer);
  }
  return true;
}

static void rival_swap_out(rival *r, int32_t i) {
  const sequence *s = r->s;
  for (int32_t u = s->first_use[i]; u < s->first_use[i + 1]; u++) {
    int32_t b = s->uses[u].buffer;
    if (r->count[b]-- == 1 || r->window->per_occurrence) r->in_window -= s->bytes[b];
    if (s->uses[u].keeps && r->count[b] > 0) continue;
    r->in -= s->bytes[b];
    if (s->uses[u].keeps) r->out += s->bytes[b];
    r->state[b] = s->uses[u].keeps ? R_OUT : r->count[b] > 0 ? R_EXPECTED : R_AWAY;
    r->left_at[b] = u;
    say(r, s->uses[u].keeps ? "-" : "!", 'a' + b);
  }
}

static int rival_schedule(rival *r) {
  for (int restarts = 0;; restarts++) {
    bool done = true;
    rival fresh = {.s = r->s, .window = r->window};
    memcpy(fresh.stopper, r->stopper, sizeof fresh.stopper);
    *r = fresh;
    for (int32_t i = 0; i < r->s->it.n_instances && done; i++) {
      rival_swap_in(r, i);
      done = rival_reserve(r, i);
      size_t length = strlen(r->text);
      if (done) snprintf(r->text + length, sizeof r->text - length, "(%d)", i);
      if (done) rival_swap_out(r, i);
    }
    if (done) return restarts;
  }
}

static void make_random(sequence *s, uint64_t *state) {
  int32_t n = 0, n_instances = 1 + (int32_t)rand_below(state, MAX_INSTANCES - 1);
  int32_t n_buffers = 1 + (int32_t)rand_below(state, MAX_BUFFERS - 1);
  bool made[MAX_BUFFERS] = {false};
  *s = (sequence){0};
  for (int32_t b = 0; b < MAX_BUFFERS; b++) s->bytes[b] = rand_chance(state, 10) ? 0 : 1 + rand_below(state, 9);
  for (int32_t i = 0; i < n_instances; i++) {
    bool used[MAX_BUFFERS] = {false};
    for (int64_t k = rand_below(state, 5); k > 0; k--) {
      int32_t b = (int32_t)rand_below(state, n_buffers);
      if (used[b] || n == MAX_USES) continue;
      used[b] = true;
      bool reads = made[b] ? rand_chance(state, 80) : rand_chance(state, 30);
      made[b] = true;
      s->uses[n++] = (pl_window_use){.buffer = b, .reads = reads};
    }
    end_instance(s, n);
  }
  end_sequence(s);
}

START_TEST(random_sequences_are_scheduled_as_by_trial) {
  int64_t restarts = 0;
  for (uint64_t seed = 0; seed < 4000; seed++) {
    uint64_t state = seed;
    sequence s;
    int32_t instance;
    make_random(&s, &state);
    int64_t least = pl_window_least(&s.it, &instance);
    pl_schedule_window window = {.budget_bytes = least + rand_below(&state, 40),
                                 .window_bytes = 1 + rand_below(&state, 60),
                                 .per_occurrence = rand_chance(&state, 30)};
    pl_window_steps steps = {0};
    ok(pl_window_schedule(&s.it, &window, &steps));
    char text[4 * 1024] = "";
    print(&s, &steps, text);
    rival r = {.s = &s, .window = &window};
    restarts += rival_schedule(&r);
    ck_assert_msg(strcmp(text, r.text) == 0, "sequence %llu:\n%s\nby trial:\n%s", (unsigned long long)seed, text,
                  r.text);
    VEC_FREE(&steps);
  }
  ck_assert_int_gt(restarts, 1000);
}
END_TEST

/* --- What must hold ----------------------------------------------------------------------------------------------- */

/* Follows a schedule: memory within the budget, operands there when they are used, content never lost. */
static void follow(const sequence *s, const pl_schedule_window *window, const pl_window_steps *steps, uint64_t seed) {
  bool held[MAX_BUFFERS] = {false}, filled[MAX_BUFFERS] = {false}, saved[MAX_BUFFERS];
  int64_t bytes = 0;
  int32_t runs = 0;
  for (int32_t b = 0; b < MAX_BUFFERS; b++) saved[b] = true; /* what is read first comes from the host */
  for (int64_t i = 0; i < steps->len; i++) {
    const pl_window_step *step = &steps->data[i];
    int32_t b = step->kind == PL_WINDOW_RUN ? 0 : s->uses[step->use].buffer;
    switch (step->kind) {
      case PL_WINDOW_SWAP_IN:
      case PL_WINDOW_RESERVE:
        ck_assert_msg(!held[b], "sequence %llu: twice", (unsigned long long)seed);
        held[b] = true;
        bytes += s->bytes[b];
        filled[b] = step->kind == PL_WINDOW_SWAP_IN;
        if (filled[b]) ck_assert_msg(saved[b], "sequence %llu: nothing to swap in", (unsigned long long)seed);
        break;
      case PL_WINDOW_RUN:
        ck_assert_int_eq(step->use, runs++);
        for (int32_t u = s->first_use[step->use]; u < s->first_use[step->use + 1]; u++) {
          int32_t own = s->uses[u].buffer;
          ck_assert_msg(held[own] && (filled[own] || !s->uses[u].reads), "sequence %llu: instance %d lacks %c",
                        (unsigned long long)seed, step->use, 'a' + own);
          filled[own] = true;
          saved[own] = false;
        }
        break;
      case PL_WINDOW_SWAP_OUT:
        saved[b] = true;
        break;
      case PL_WINDOW_CANCELLED:
        break;
      case PL_WINDOW_COMPLETE:
      case PL_WINDOW_CLEAR:
        ck_assert(held[b] && (saved[b] || step->kind == PL_WINDOW_CLEAR));
        held[b] = filled[b] = false;
        bytes -= s->bytes[b];
        break;
    }
    ck_assert_msg(bytes <= window->budget_bytes, "sequence %llu: beyond the budget", (unsigned long long)seed);
  }
  ck_assert_int_eq(runs, s->it.n_instances);
  ck_assert_int_eq(bytes, 0);
}

START_TEST(random_schedules_are_right) {
  for (uint64_t seed = 10000; seed < 14000; seed++) {
    uint64_t state = seed;
    sequence s;
    int32_t instance;
    make_random(&s, &state);
    pl_schedule_window window = {.budget_bytes = pl_window_least(&s.it, &instance) + rand_below(&state, 30),
                                 .window_bytes = 1 + rand_below(&state, 60)};
    pl_window_steps steps = {0};
    ok(pl_window_schedule(&s.it, &window, &steps));
    follow(&s, &window, &steps, seed);
    VEC_FREE(&steps);
  }
}
END_TEST

/* --- Addresses ---------------------------------------------------------------------------------------------------- */

/* VGG-16's ops differ so much in size that best fit with caching takes twice what the largest op does, whatever is
 * scheduled. */
START_TEST(addresses_are_planned_where_caching_finds_no_room) {
  const planc_policy *window = planc_policy_find("window");
  planc_problem problem = {
      .job.batch = 64, .terms.budgets[PLANC_MEMORY_DEVICE] = 1, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  planc_graph *forward, *graph;
  planc_profile *profile;
  planc_plan *plan;
  ok(planc_graph_read("graphs/vgg16.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  ok(planc_profile_read("profiles/k40m.json", &profile));
  problem.job.graph = graph;
  problem.job.profile = profile;
  planc_status status = planc_make_plan(&problem, window, &plan);
  ck_assert_int_eq(planc_status_code(status), PLANC_INFEASIBLE);
  int64_t largest_op = planc_status_shortage(status).bytes;
  planc_status_free(status);
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = largest_op + largest_op / 8;
  ok(planc_make_plan(&problem, window, &plan));
  ck_assert_int_le(plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE], problem.terms.budgets[PLANC_MEMORY_DEVICE]);
  planc_plan_free(plan);
  planc_profile_free(profile);
  planc_graph_free(graph);
  planc_graph_free(forward);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("window");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, all_stays_where_window_and_budget_hold_all);
  tcase_add_test(tests, the_window_is_counted_in_bytes);
  tcase_add_test(tests, the_window_counts_buffers_or_uses);
  tcase_add_test(tests, what_is_made_is_reserved_at_its_instance);
  tcase_add_test(tests, the_oldest_swap_outs_are_completed_first);
  tcase_add_test(tests, a_swap_out_is_cancelled);
  tcase_add_test(tests, what_nobody_reads_is_cleared);
  tcase_add_test(tests, prefetches_leave_room_for_what_is_made);
  tcase_add_test(tests, the_least_budget_is_the_largest_instance);
  tcase_add_test(tests, random_sequences_are_scheduled_as_by_trial);
  tcase_add_test(tests, random_schedules_are_right);
  tcase_add_test(tests, addresses_are_planned_where_caching_finds_no_room);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
