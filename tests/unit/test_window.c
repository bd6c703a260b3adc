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

enum { MAX_FUNCTIONS = 40, MAX_USES = 160, MAX_VARIABLES = 26 };

typedef struct sequence {
  pl_window_sequence it;
  int32_t first_use[MAX_FUNCTIONS + 1];
  pl_window_use uses[MAX_USES];
  int64_t bytes[MAX_VARIABLES];
} sequence;

static void end_function(sequence *s, int32_t n_uses) {
  s->first_use[++s->it.n_functions] = n_uses;
}

static void end_sequence(sequence *s) {
  bool read_next[MAX_VARIABLES] = {false};
  for (int32_t u = s->first_use[s->it.n_functions] - 1; u >= 0; u--) {
    s->uses[u].keeps = read_next[s->uses[u].variable];
    read_next[s->uses[u].variable] = s->uses[u].reads;
  }
  s->it.n_variables = MAX_VARIABLES;
  s->it.first_use = s->first_use;
  s->it.uses = s->uses;
  s->it.bytes = s->bytes;
}

/* Functions are separated by |; a small letter is a variable that is read, a capital one that is made. All have one
 * byte, but those in `large`, which have ten. */
static void parse(sequence *s, const char *functions, const char *large) {
  int32_t n = 0;
  *s = (sequence){0};
  for (int v = 0; v < MAX_VARIABLES; v++) s->bytes[v] = strchr(large, 'a' + v) ? 10 : 1;
  for (const char *c = functions; *c; c++) {
    if (*c == '|') end_function(s, n);
    if (isalpha(*c)) s->uses[n++] = (pl_window_use){.variable = tolower(*c) - 'a', .reads = islower(*c)};
  }
  end_function(s, n);
  end_sequence(s);
}

/* "+a" swap-in, "A" reserve, "(0)" call, "-a" swap-out, "~a" one that was cancelled, ".a" completion, "!a" clear. */
static void print(const sequence *s, const pl_window_steps *steps, char *text) {
  static const char *const signs[] = {"+", "", "", "-", "~", ".", "!"};
  for (int64_t i = 0; i < steps->len; i++) {
    const pl_window_step *step = &steps->data[i];
    if (step->kind == PL_WINDOW_CALL) {
      text += sprintf(text, "(%d)", step->use);
      continue;
    }
    int32_t letter = 'a' + s->uses[step->use].variable;
    if (step->kind == PL_WINDOW_RESERVE) letter = toupper(letter);
    text += sprintf(text, "%s%c", signs[step->kind], letter);
  }
}

static void expect(const char *functions, const char *large, pl_schedule_window window, const char *expected) {
  sequence s;
  pl_window_steps steps = {0};
  char text[4 * 1024];
  parse(&s, functions, large);
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

/* (a) What comes into the window is swapped in, as far as its bytes go; a function's own operands always come in. */
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
START_TEST(the_window_counts_variables_or_uses) {
  pl_schedule_window window = {.budget_bytes = 40, .window_bytes = 2};
  expect("a|a|a|b", "", window, "+a+b(0)(1)(2)!a(3)!b");
  window.per_occurrence = true;
  expect("a|a|a|b", "", window, "+a(0)(1)+b(2)!a(3)!b");
}
END_TEST

/* What a function only makes is no prefetch: it gets its memory at the function. */
START_TEST(what_is_made_is_reserved_at_its_function) {
  expect("A|B|ab", "", (pl_schedule_window){.budget_bytes = 40, .window_bytes = 40}, "A(0)B(1)(2)!a!b");
}
END_TEST

/* (b) Oldest first, and only as many as are needed. (c) Swapped out where the window holds no further use. */
START_TEST(the_oldest_swap_outs_are_completed_first) {
  pl_schedule_window window = {.budget_bytes = 3, .window_bytes = 1};
  expect("A|B|C|D|a|b|c|d", "", window, "A(0)-aB(1)-bC(2)~c.aD(3)~d.b+a(4)!a+b(5)!b(6)!c(7)!d");
}
END_TEST

/* (d) A variable that comes back into the window before its swap-out was awaited has never left. */
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

/* Backtracking: x would fit when it comes into the window, but not beside what f2 makes. It waits until f2 is over,
 * and so does all behind it. */
START_TEST(prefetches_leave_room_for_what_is_made) {
  pl_schedule_window window = {.budget_bytes = 11, .window_bytes = 30};
  expect("a|B|C|xd", "cx", window, "+a(0)!aB(1)!bC(2)!c+x+d(3)!x!d");
  window.budget_bytes = 12;
  expect("a|B|C|dx", "cx", window, "+a+d(0)!aB(1)!bC(2)!c+x(3)!d!x");
  window.budget_bytes = 22;
  expect("a|B|C|dx", "cx", window, "+a+d+x(0)!aB(1)!bC(2)!c(3)!d!x");
}
END_TEST

START_TEST(the_least_budget_is_the_largest_function) {
  sequence s;
  int32_t function;
  parse(&s, "A|bcd|EF|f", "ce");
  ck_assert_int_eq(pl_window_least(&s.it, &function), 12);
  ck_assert_int_eq(function, 1);
  pl_window_steps steps = {0};
  pl_schedule_window window = {.budget_bytes = 11, .window_bytes = 11};
  assert_fails(pl_window_schedule(&s.it, &window, &steps), PLANC_INTERNAL, "function 1");
  VEC_FREE(&steps);
}
END_TEST

/* --- Against trial and rescheduling ------------------------------------------------------------------------------- */

/* The schedule as the paper's implementation finds it: a function that does not fit forbids the last prefetches until
 * it is over, and everything starts again. */
typedef enum rival_state { R_AWAY, R_EXPECTED, R_IN, R_OUT } rival_state;

typedef struct rival {
  const sequence *s;
  const pl_schedule_window *window;
  rival_state state[MAX_VARIABLES];
  int32_t count[MAX_VARIABLES], left_at[MAX_VARIABLES];
  int32_t stopper[MAX_USES]; /* the use must not enter the window before this function */
  int32_t head, tail;
  int64_t in, out, in_window;
  char text[4 * 1024];
} rival;

static void say(rival *r, const char *sign, int32_t letter) {
  size_t length = strlen(r->text);
  snprintf(r->text + length, sizeof r->text - length, "%s%c", sign, letter);
}

static void wait_for_oldest(rival *r) {
  int32_t use = r->tail++, v = r->s->uses[use].variable;
  if (r->state[v] != R_OUT || r->left_at[v] != use) return;
  say(r, ".", 'a' + v);
  r->out -= r->s->bytes[v];
  r->state[v] = R_AWAY;
}

static void mark_cancelled(rival *r, int32_t v) {
  char *last = NULL;
  for (char *c = r->text; *c; c++) {
    if (c[0] == '-' && c[1] == 'a' + v) last = c;
  }
  ck_assert_ptr_nonnull(last);
  *last = '~';
}

static void rival_swap_in(rival *r, int32_t f) {
  const sequence *s = r->s;
  for (; r->head < s->first_use[s->it.n_functions]; r->head++) {
    int32_t v = s->uses[r->head].variable;
    bool own = r->head < s->first_use[f + 1], counts = r->count[v] == 0 || r->window->per_occurrence;
    if (r->stopper[r->head] > f) return;
    if (!own && counts && r->in_window + s->bytes[v] > r->window->window_bytes) return;
    if (r->count[v] == 0) {
      if (!own && s->uses[r->head].reads && r->state[v] != R_OUT && r->in + s->bytes[v] > r->window->budget_bytes)
        return;
      if (r->state[v] == R_OUT) {
        mark_cancelled(r, v);
        r->out -= s->bytes[v];
        r->in += s->bytes[v];
        r->state[v] = R_IN;
      } else if (!s->uses[r->head].reads) {
        r->state[v] = R_EXPECTED;
      } else {
        while (r->in + r->out + s->bytes[v] > r->window->budget_bytes && r->tail < s->first_use[f]) wait_for_oldest(r);
        say(r, "+", 'a' + v);
        r->in += s->bytes[v];
        r->state[v] = R_IN;
      }
    }
    if (counts) r->in_window += s->bytes[v];
    r->count[v]++;
  }
}

/* False when prefetches have been forbidden and all must start again. */
static bool rival_reserve(rival *r, int32_t f) {
  const sequence *s = r->s;
  int64_t need = 0, room;
  for (int32_t u = s->first_use[f]; u < s->first_use[f + 1]; u++) {
    if (r->state[s->uses[u].variable] == R_EXPECTED) need += s->bytes[s->uses[u].variable];
  }
  while (room = r->window->budget_bytes - r->in - r->out, room < need && r->tail < s->first_use[f]) wait_for_oldest(r);
  if (room < need) {
    int32_t count[MAX_VARIABLES];
    memcpy(count, r->count, sizeof count);
    for (int32_t back = r->head - 1; room < need; back--) {
      ck_assert_int_ge(back, s->first_use[f + 1]);
      int32_t v = s->uses[back].variable;
      if (count[v] == 1 && r->state[v] == R_IN) room += s->bytes[v];
      if (count[v]-- == 1) r->stopper[back] = f + 1;
    }
    return false;
  }
  r->in += need;
  for (int32_t u = s->first_use[f]; u < s->first_use[f + 1]; u++) {
    if (r->state[s->uses[u].variable] != R_EXPECTED) continue;
    r->state[s->uses[u].variable] = R_IN;
    say(r, "", 'A' + s->uses[u].variable);
  }
  return true;
}

static void rival_swap_out(rival *r, int32_t f) {
  const sequence *s = r->s;
  for (int32_t u = s->first_use[f]; u < s->first_use[f + 1]; u++) {
    int32_t v = s->uses[u].variable;
    if (r->count[v]-- == 1 || r->window->per_occurrence) r->in_window -= s->bytes[v];
    if (s->uses[u].keeps && r->count[v] > 0) continue;
    r->in -= s->bytes[v];
    if (s->uses[u].keeps) r->out += s->bytes[v];
    r->state[v] = s->uses[u].keeps ? R_OUT : r->count[v] > 0 ? R_EXPECTED : R_AWAY;
    r->left_at[v] = u;
    say(r, s->uses[u].keeps ? "-" : "!", 'a' + v);
  }
}

static int rival_schedule(rival *r) {
  for (int restarts = 0;; restarts++) {
    bool done = true;
    rival fresh = {.s = r->s, .window = r->window};
    memcpy(fresh.stopper, r->stopper, sizeof fresh.stopper);
    *r = fresh;
    for (int32_t f = 0; f < r->s->it.n_functions && done; f++) {
      rival_swap_in(r, f);
      done = rival_reserve(r, f);
      size_t length = strlen(r->text);
      if (done) snprintf(r->text + length, sizeof r->text - length, "(%d)", f);
      if (done) rival_swap_out(r, f);
    }
    if (done) return restarts;
  }
}

static void make_random(sequence *s, uint64_t *state) {
  int32_t n = 0, n_functions = 1 + (int32_t)rand_below(state, MAX_FUNCTIONS - 1);
  int32_t n_variables = 1 + (int32_t)rand_below(state, MAX_VARIABLES - 1);
  bool made[MAX_VARIABLES] = {false};
  *s = (sequence){0};
  for (int32_t v = 0; v < MAX_VARIABLES; v++) s->bytes[v] = rand_chance(state, 10) ? 0 : 1 + rand_below(state, 9);
  for (int32_t f = 0; f < n_functions; f++) {
    bool used[MAX_VARIABLES] = {false};
    for (int64_t k = rand_below(state, 5); k > 0; k--) {
      int32_t v = (int32_t)rand_below(state, n_variables);
      if (used[v] || n == MAX_USES) continue;
      used[v] = true;
      bool reads = made[v] ? rand_chance(state, 80) : rand_chance(state, 30);
      made[v] = true;
      s->uses[n++] = (pl_window_use){.variable = v, .reads = reads};
    }
    end_function(s, n);
  }
  end_sequence(s);
}

START_TEST(random_sequences_are_scheduled_as_by_trial) {
  int64_t restarts = 0;
  for (uint64_t seed = 0; seed < 4000; seed++) {
    uint64_t state = seed;
    sequence s;
    int32_t function;
    make_random(&s, &state);
    int64_t least = pl_window_least(&s.it, &function);
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
  bool held[MAX_VARIABLES] = {false}, filled[MAX_VARIABLES] = {false}, saved[MAX_VARIABLES];
  int64_t bytes = 0;
  int32_t calls = 0;
  for (int32_t v = 0; v < MAX_VARIABLES; v++) saved[v] = true; /* what is read first comes from the host */
  for (int64_t i = 0; i < steps->len; i++) {
    const pl_window_step *step = &steps->data[i];
    int32_t v = step->kind == PL_WINDOW_CALL ? 0 : s->uses[step->use].variable;
    switch (step->kind) {
      case PL_WINDOW_SWAP_IN:
      case PL_WINDOW_RESERVE:
        ck_assert_msg(!held[v], "sequence %llu: twice", (unsigned long long)seed);
        held[v] = true;
        bytes += s->bytes[v];
        filled[v] = step->kind == PL_WINDOW_SWAP_IN;
        if (filled[v]) ck_assert_msg(saved[v], "sequence %llu: nothing to swap in", (unsigned long long)seed);
        break;
      case PL_WINDOW_CALL:
        ck_assert_int_eq(step->use, calls++);
        for (int32_t u = s->first_use[step->use]; u < s->first_use[step->use + 1]; u++) {
          int32_t own = s->uses[u].variable;
          ck_assert_msg(held[own] && (filled[own] || !s->uses[u].reads), "sequence %llu: function %d lacks %c",
                        (unsigned long long)seed, step->use, 'a' + own);
          filled[own] = true;
          saved[own] = false;
        }
        break;
      case PL_WINDOW_SWAP_OUT:
        saved[v] = true;
        break;
      case PL_WINDOW_CANCELLED:
        break;
      case PL_WINDOW_COMPLETE:
      case PL_WINDOW_CLEAR:
        ck_assert(held[v] && (saved[v] || step->kind == PL_WINDOW_CLEAR));
        held[v] = filled[v] = false;
        bytes -= s->bytes[v];
        break;
    }
    ck_assert_msg(bytes <= window->budget_bytes, "sequence %llu: beyond the budget", (unsigned long long)seed);
  }
  ck_assert_int_eq(calls, s->it.n_functions);
  ck_assert_int_eq(bytes, 0);
}

START_TEST(random_schedules_are_right) {
  for (uint64_t seed = 10000; seed < 14000; seed++) {
    uint64_t state = seed;
    sequence s;
    int32_t function;
    make_random(&s, &state);
    pl_schedule_window window = {.budget_bytes = pl_window_least(&s.it, &function) + rand_below(&state, 30),
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
  tcase_add_test(tests, the_window_counts_variables_or_uses);
  tcase_add_test(tests, what_is_made_is_reserved_at_its_function);
  tcase_add_test(tests, the_oldest_swap_outs_are_completed_first);
  tcase_add_test(tests, a_swap_out_is_cancelled);
  tcase_add_test(tests, what_nobody_reads_is_cleared);
  tcase_add_test(tests, prefetches_leave_room_for_what_is_made);
  tcase_add_test(tests, the_least_budget_is_the_largest_function);
  tcase_add_test(tests, random_sequences_are_scheduled_as_by_trial);
  tcase_add_test(tests, random_schedules_are_right);
  tcase_add_test(tests, addresses_are_planned_where_caching_finds_no_room);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
