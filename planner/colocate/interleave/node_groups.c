/* Node groups (node_groups.h). What is never cut is a node: an op with the commands that it needs before it, and those
 * behind it that give back what it was the last to use. */
#include "planner/colocate/interleave/node_groups.h"

#include <stdlib.h>
#include <string.h>

#include "planner/base/held.h"
#include "util/math.h"

typedef struct op_node {
  int32_t end; /* of its commands */
  int32_t exec;
  int64_t held, most; /* as of a group */
  int64_t ns;         /* when the next one begins */
  bool cut;           /* whether one may cut behind it */
} op_node;

/* A node of what a recurrence does in a phase of a round. */
typedef struct step {
  const char *loop;
  int32_t round;
  planc_phase phase;
  int32_t node;
} step;

typedef struct cutting {
  pl_arena *arena;
  const planc_candidate *of;
  const pl_pass *pass;
  const pl_cut *cut;
  int32_t n;
  op_node *nodes;
  pl_node_group *groups;
  pl_node_groups *out;
} cutting;

static planc_status list_nodes(cutting *c);
static planc_status forbid_cuts(cutting *c);
static planc_status cut_nodes(cutting *c);
static int32_t find_last_forward(const cutting *c);
static int32_t find_fullest_node(const cutting *c);
static int32_t nearest_cut(const cutting *c, int32_t node);
static void make_part(cutting *c, int32_t first, int32_t last, bool allocates);

planc_status pl_node_groups_make(pl_arena *arena, const planc_candidate *candidate, const pl_pass *pass,
                                 const pl_cut *cut, pl_node_groups *out) {
  cutting c = {.arena = arena, .of = candidate, .pass = pass, .cut = cut, .out = out};
  *out = (pl_node_groups){0};
  PLANC_TRY(list_nodes(&c));
  if (c.n == 0) return NULL;
  PLANC_TRY(forbid_cuts(&c));
  return cut_nodes(&c);
}

static planc_status cut_nodes(cutting *c) {
  int32_t fullest = c->cut->where == PL_CUT_AT_PHASES ? find_last_forward(c) : find_fullest_node(c);
  int32_t top = nearest_cut(c, fullest);
  PLANC_TRY(PL_NEW(c->arena, &c->groups, c->n));
  c->out->groups = c->groups;
  c->out->most_bytes = c->nodes[find_fullest_node(c)].most;
  make_part(c, 0, top, true);
  c->out->n_allocating = c->out->n;
  make_part(c, top + 1, c->n - 1, false);
  return NULL;
}

int64_t pl_node_group_size(const pl_node_groups *groups, int32_t group) {
  int64_t before = group > 0 ? groups->groups[group - 1].held_bytes : 0;
  int64_t change = groups->groups[group].held_bytes - before;
  return change < 0 ? -change : change;
}

/* --- Nodes -------------------------------------------------------------------------------------------------------- */

/* What persists is the job's for all time. */
static bool comes_and_goes(const planc_buffer *buffer) {
  return !(buffer->flags & PLANC_BUFFER_PERSISTENT);
}

static planc_status list_nodes(cutting *c) {
  const planc_schedule *s = c->of->schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int32_t n_commands = planc_schedule_n_commands(s);
  pl_held held = {.schedule = s, .unit = PLANC_ALIGNMENT, .counts = comes_and_goes};
  bool ran = false;
  pl_held_start(&held);
  PLANC_TRY(PL_NEW(c->arena, &c->nodes, (int64_t)n_commands + 1));
  c->nodes[0].exec = -1;
  for (int32_t k = 0; k < n_commands; k++) {
    if (ran && !planc_schedule_gives(s, &commands[k])) {
      c->nodes[++c->n].exec = -1;
      ran = false;
    }
    op_node *now = &c->nodes[c->n];
    pl_held_follow(&held, &commands[k]);
    if (pl_held_bytes(&held) > now->most) now->most = pl_held_bytes(&held);
    if (commands[k].kind == PLANC_CMD_EXEC) {
      now->exec = k;
      ran = true;
    }
    now->end = k + 1;
    now->held = held.data;
    now->cut = true;
  }
  c->n += n_commands > 0;
  for (int32_t k = 0; k < c->n; k++)
    c->nodes[k].ns = c->nodes[k].end < n_commands ? c->pass->at_ns[c->nodes[k].end] : c->pass->ns;
  return NULL;
}

/* --- Recurrences -------------------------------------------------------------------------------------------------- */

static int32_t list_steps(const cutting *c, step *steps);
static int compare_steps(const void *left, const void *right);
static bool is_same(const step *a, const step *b);

static planc_status forbid_cuts(cutting *c) {
  step *steps;
  int32_t *open; /* by node: how many recurrences begin at it, less those that have ended before it */
  PLANC_TRY(PL_NEW(c->arena, &steps, c->n));
  PLANC_TRY(PL_NEW(c->arena, &open, c->n));
  int32_t n = list_steps(c, steps);
  qsort(steps, (size_t)n, sizeof *steps, compare_steps);
  for (int32_t k = 0; k < n; k++) {
    bool first = k == 0 || !is_same(&steps[k], &steps[k - 1]), last = k == n - 1 || !is_same(&steps[k], &steps[k + 1]);
    if (first) open[steps[k].node]++;
    if (last) open[steps[k].node]--;
  }
  for (int32_t k = 0, now = 0; k < c->n; k++) {
    now += open[k];
    if (now > 0) c->nodes[k].cut = false;
  }
  return NULL;
}

/* Recomputes are left out: they may run anywhere. */
static int32_t list_steps(const cutting *c, step *steps) {
  const planc_command *commands = planc_schedule_commands(c->of->schedule);
  int32_t n = 0;
  for (int32_t k = 0; k < c->n; k++) {
    if (c->nodes[k].exec < 0 || commands[c->nodes[k].exec].recompute) continue;
    int32_t instance = commands[c->nodes[k].exec].instance;
    const char *loop = planc_trace_op(c->of->trace, instance)->loop;
    if (loop)
      steps[n++] = (step){loop, c->of->trace->instances[instance].round, planc_trace_phase(c->of->trace, instance), k};
  }
  return n;
}

static int compare_steps(const void *left, const void *right) {
  const step *a = left, *b = right;
  int by_name = strcmp(a->loop, b->loop);
  if (by_name != 0) return by_name;
  if (a->round != b->round) return a->round < b->round ? -1 : 1;
  if (a->phase != b->phase) return a->phase < b->phase ? -1 : 1;
  return (a->node > b->node) - (a->node < b->node);
}

static bool is_same(const step *a, const step *b) {
  return strcmp(a->loop, b->loop) == 0 && a->round == b->round && a->phase == b->phase;
}

/* --- Where allocation ends ---------------------------------------------------------------------------------------- */

static int32_t find_fullest_node(const cutting *c) {
  int32_t fullest = 0;
  for (int32_t k = 1; k < c->n; k++)
    if (c->nodes[k].most > c->nodes[fullest].most) fullest = k;
  return fullest;
}

static int32_t find_last_forward(const cutting *c) {
  const planc_command *commands = planc_schedule_commands(c->of->schedule);
  int32_t last = 0;
  for (int32_t k = 0; k < c->n; k++) {
    if (c->nodes[k].exec < 0 || commands[c->nodes[k].exec].recompute) continue;
    if (planc_trace_phase(c->of->trace, commands[c->nodes[k].exec].instance) == PLANC_PHASE_forward) last = k;
  }
  return last;
}

/* The node behind which one may cut, from `node` on if there is one but the last, else before. The last where that is
 * `node`, or there is no other. */
static int32_t nearest_cut(const cutting *c, int32_t node) {
  for (int32_t k = node; k < c->n - 1; k++)
    if (c->nodes[k].cut) return k;
  for (int32_t k = node < c->n - 1 ? node : -1; k >= 0; k--)
    if (c->nodes[k].cut) return k;
  return c->n - 1;
}

/* --- Groups ------------------------------------------------------------------------------------------------------- */

static void cut_part(cutting *c, int32_t first, int32_t last, bool allocates);
static int64_t size_of(const cutting *c, int32_t first, int32_t last);
static int64_t held_before(const cutting *c, int32_t node);
static int64_t time_of(const cutting *c, int32_t first, int32_t last);
static int64_t size_wanted(const cutting *c, bool allocates, int32_t number);
static int32_t find_end(const cutting *c, int32_t first, int32_t end, bool allocates, int64_t bytes, int64_t target_ns);
static bool is_large(const cutting *c, int32_t at, bool allocates, int64_t bytes);
static int64_t distance(int64_t a, int64_t b);
static void add_group(cutting *c, int32_t first, int32_t last);

static void make_part(cutting *c, int32_t first, int32_t last, bool allocates) {
  if (first > last) return;
  if (c->cut->where == PL_CUT_BY_SIZE) {
    cut_part(c, first, last, allocates);
  } else {
    add_group(c, first, last);
  }
}

/* Cuts nodes first, ..., last into groups of one kind. */
static void cut_part(cutting *c, int32_t first, int32_t last, bool allocates) {
  int64_t all = size_of(c, first, last), ns = time_of(c, first, last);
  int32_t n_before = c->out->n, before = first;
  for (int32_t from = first, to; from <= last; from = to + 1) {
    int64_t bytes = size_wanted(c, allocates, c->out->n - n_before);
    to = find_end(c, from, last, allocates, bytes, all > bytes ? pl_muldiv_floor(ns, bytes, all) : ns);
    if (to == last && c->out->n > n_before && size_of(c, from, to) < bytes - bytes / 2) {
      c->out->n--;
      from = before;
    }
    add_group(c, from, to);
    before = from;
  }
}

static int64_t size_of(const cutting *c, int32_t first, int32_t last) {
  int64_t change = c->nodes[last].held - held_before(c, first);
  return change < 0 ? -change : change;
}

static int64_t held_before(const cutting *c, int32_t node) {
  return node > 0 ? c->nodes[node - 1].held : 0;
}

/* The time of nodes first, ..., last. */
static int64_t time_of(const cutting *c, int32_t first, int32_t last) {
  return c->nodes[last].ns - (first > 0 ? c->nodes[first - 1].ns : 0);
}

static int64_t size_wanted(const cutting *c, bool allocates, int32_t number) {
  if (!allocates) return c->cut->release_bytes;
  int64_t bytes = number < c->cut->n_sizes ? c->cut->sizes[number] : c->cut->split_bytes;
  return bytes > 0 ? bytes : c->cut->split_bytes;
}

/* The last node of a group that begins with `first`, of nodes up to `end`: as soon as it has its size; or, relaxed, the
 * one at which its time is nearest to `target_ns`. */
static int32_t find_end(const cutting *c, int32_t first, int32_t end, bool allocates, int64_t bytes,
                        int64_t target_ns) {
  int32_t best = -1;
  for (int32_t k = first; k < end; k++) {
    int64_t change = c->nodes[k].held - held_before(c, first), size = allocates ? change : -change;
    if (k > first && c->nodes[k - 1].cut && is_large(c, k, allocates, bytes)) return k - 1;
    if (!c->nodes[k].cut) continue;
    if (!c->cut->relaxed && size >= bytes) return k;
    if (c->cut->relaxed && best >= 0 && size - bytes > bytes / 2) break;
    if (!c->cut->relaxed || size < bytes - bytes / 2) continue;
    if (best < 0 || distance(time_of(c, first, k), target_ns) < distance(time_of(c, first, best), target_ns)) best = k;
  }
  return best >= 0 ? best : end;
}

/* What alone has more than the size is a group of its own. */
static bool is_large(const cutting *c, int32_t at, bool allocates, int64_t bytes) {
  int64_t change = c->nodes[at].held - held_before(c, at);
  return (allocates ? change : -change) > bytes;
}

static int64_t distance(int64_t a, int64_t b) {
  return a > b ? a - b : b - a;
}

static void add_group(cutting *c, int32_t first, int32_t last) {
  pl_node_group *group = &c->groups[c->out->n++];
  *group = (pl_node_group){.first = first > 0 ? c->nodes[first - 1].end : 0, .end = c->nodes[last].end};
  group->held_bytes = c->nodes[last].held;
  group->most_bytes = held_before(c, first);
  for (int32_t k = first; k <= last; k++)
    if (c->nodes[k].most > group->most_bytes) group->most_bytes = c->nodes[k].most;
}
