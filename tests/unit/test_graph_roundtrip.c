/* Reading what was written gives the same graph, and writing that gives the same text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/graphtext.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

static bool same_text(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_law(planc_law a, planc_law b) {
  return a.fixed == b.fixed && a.per_sample == b.per_sample;
}

static bool same_indices(const int32_t *a, int32_t n_a, const int32_t *b, int32_t n_b) {
  return n_a == n_b && (!n_a || memcmp(a, b, (size_t)n_a * sizeof *a) == 0);
}

static bool same_tensor(const planc_tensor *a, const planc_tensor *b) {
  bool same = same_text(a->name, b->name) && a->storage == b->storage && a->dtype == b->dtype && a->rank == b->rank;
  for (int32_t i = 0; same && i < a->rank; i++) same = same_law(a->dims[i], b->dims[i]);
  return same && same_law(a->bytes, b->bytes) && same_law(a->offset, b->offset);
}

static bool same_attr(const planc_attr *a, const planc_attr *b) {
  if (!same_text(a->key, b->key) || a->type != b->type) return false;
  if (a->type == PLANC_ATTR_INT) return a->value.integer == b->value.integer;
  if (a->type == PLANC_ATTR_REAL) {
    return a->value.real == b->value.real && signbit(a->value.real) == signbit(b->value.real);
  }
  if (a->type == PLANC_ATTR_STRING) return same_text(a->value.string, b->value.string);
  size_t size = (size_t)a->count * sizeof(int64_t);
  return a->count == b->count && (!size || memcmp(a->value.ints, b->value.ints, size) == 0);
}

static bool same_op(const planc_op *a, const planc_op *b) {
  bool same = same_text(a->name, b->name) && same_text(a->type, b->type) && a->phase == b->phase &&
              a->flags == b->flags && a->n_attrs == b->n_attrs && same_text(a->loop, b->loop) &&
              a->loop_step == b->loop_step && same_law(a->flops, b->flops) && same_law(a->traffic, b->traffic) &&
              same_law(a->workspace, b->workspace);
  for (int32_t i = 0; same && i < a->n_attrs; i++) same = same_attr(&a->attrs[i], &b->attrs[i]);
  return same && same_indices(a->in, a->n_in, b->in, b->n_in) && same_indices(a->out, a->n_out, b->out, b->n_out) &&
         same_indices(a->effects, a->n_effects, b->effects, b->n_effects);
}

static void assert_same(const planc_graph *a, const planc_graph *b) {
  ck_assert(same_text(a->name, b->name) && a->layout == b->layout && a->batch == b->batch);
  ck_assert(same_text(a->device, b->device) && same_text(a->optimizer, b->optimizer));
  ck_assert(same_text(a->policy, b->policy) && same_text(a->origin, b->origin) && a->loss == b->loss);
  ck_assert(same_indices(a->outputs, a->n_outputs, b->outputs, b->n_outputs));
  ck_assert(a->n_tensors == b->n_tensors && a->n_storages == b->n_storages && a->n_ops == b->n_ops);
  for (int32_t i = 0; i < a->n_tensors; i++) ck_assert(same_tensor(&a->tensors[i], &b->tensors[i]));
  for (int32_t i = 0; i < a->n_storages; i++) {
    const planc_storage *s = &a->storages[i], *t = &b->storages[i];
    ck_assert(s->tensor == t->tensor && s->kind == t->kind && same_law(s->bytes, t->bytes));
  }
  for (int32_t i = 0; i < a->n_ops; i++) {
    ck_assert_msg(same_op(&a->ops[i], &b->ops[i]), "op %s", a->ops[i].name);
  }
}

static void assert_round_trip(const planc_graph *graph) {
  char *text = text_of(graph);
  planc_graph *again = graph_of(text);
  assert_same(graph, again);
  ck_assert_uint_eq(planc_graph_hash(graph), planc_graph_hash(again));
  char *text_again = text_of(again);
  ck_assert_str_eq(text, text_again);
  free(text);
  free(text_again);
  planc_graph_free(again);
}

static planc_law random_law(uint64_t *random) {
  int64_t fixed = rand_chance(random, 50) ? rand_below(random, 1000) : 0;
  return (planc_law){fixed, fixed && rand_chance(random, 50) ? 0 : 1 + rand_below(random, 1000)};
}

/* Tensors 0 .. n-1, all state so that any may be read and written; some are views of one before. */
static void add_random_tensors(planc_graph_builder *builder, uint64_t *random, int32_t n) {
  static const char *const names[] = {"a", "conv.1", "0", "1.5", "null", "~", "x:y", "<<", "=", "(f)", "a/b$c^d", "N"};
  for (int32_t i = 0; i < n; i++) {
    char name[32];
    planc_law dims[PLANC_MAX_RANK], offset = {0};
    planc_dtype dtype = (planc_dtype)rand_below(random, PLANC_DTYPE_bool + 1);
    int32_t rank = (int32_t)rand_below(random, PLANC_MAX_RANK + 1), of = -1, tensor;
    for (int32_t d = 0; d < rank; d++) dims[d] = (planc_law){1 + rand_below(random, 5), 0};
    if (rank) dims[rand_below(random, rank)] = random_law(random);
    if (i && rand_chance(random, 30)) {
      of = (int32_t)rand_below(random, i);
      const planc_tensor *root = planc_graph_builder_tensor_at(builder, of);
      dtype = PLANC_DTYPE_u8;
      rank = 1;
      dims[0] = (planc_law){root->bytes.fixed / 2, root->bytes.per_sample / 2};
      if (!dims[0].fixed && !dims[0].per_sample) dims[0] = root->bytes;
      offset = (planc_law){root->offset.fixed + (root->bytes.fixed - dims[0].fixed) / 2,
                           root->offset.per_sample + root->bytes.per_sample - dims[0].per_sample};
    }
    snprintf(name, sizeof name, "%s%d", names[rand_below(random, 12)], i);
    ok(planc_graph_builder_tensor(builder, name, PLANC_KIND_state, dtype, rank, dims, of, offset, &tensor));
    ck_assert_int_eq(tensor, i);
  }
}

static void add_random_op(planc_graph_builder *builder, uint64_t *random, int32_t index, int32_t n_tensors) {
  static const char *const strings[] = {
      "",           "text", "12", "-1",   "1e5",  ".5",   "5.",  "1.2.3", "nan",    "- a",
      "a: b",       "a #b", "'",  "\"\\", "\t\n", "\x7f", "[1]", "true",  "\u00e9", "\u00a0\u2028\ufeff",
      "\U0001F600", "x ",   "?",  "a:",   "-",    "0x10", "1_0"};
  int64_t ints[3] = {INT64_MIN, INT64_MAX, (int64_t)rand_next(random)};
  planc_attr attrs[4] = {{.key = "z", .type = PLANC_ATTR_INT, .value.integer = (int64_t)rand_next(random)},
                         {.key = "b.c", .type = PLANC_ATTR_REAL},
                         {.key = "1", .type = PLANC_ATTR_STRING, .value.string = strings[rand_below(random, 27)]},
                         {.key = "a", .type = PLANC_ATTR_INTS, .value.ints = ints}};
  uint64_t bits = rand_next(random);
  memcpy(&attrs[1].value.real, &bits, sizeof bits);
  if (!isfinite(attrs[1].value.real)) attrs[1].value.real = -0.0;
  attrs[3].count = (int32_t)rand_below(random, 4);
  int32_t in[4], out;
  for (int k = 0; k < 4; k++) in[k] = (int32_t)rand_below(random, n_tensors);
  out = (int32_t)rand_below(random, n_tensors);
  char name[32];
  snprintf(name, sizeof name, "op.%d", index);
  planc_op op = {.name = name,
                 .type = rand_chance(random, 50) ? "my.type" : "aten.add_.Tensor",
                 .phase = PLANC_PHASE_optimizer,
                 .flags = (uint32_t)rand_below(random, 16),
                 .n_in = (int32_t)rand_below(random, 5),
                 .in = in,
                 .n_out = (int32_t)rand_below(random, 2),
                 .out = &out,
                 .n_attrs = (int32_t)rand_below(random, 5),
                 .attrs = attrs,
                 .flops = rand_chance(random, 50) ? (planc_law){-1, -1} : random_law(random),
                 .traffic = rand_chance(random, 50) ? (planc_law){-1, -1} : random_law(random)};
  if (rand_chance(random, 30)) op.workspace = random_law(random);
  if (rand_chance(random, 30)) op.loop = "rnn", op.loop_step = (int32_t)rand_below(random, INT32_MAX);
  ok(planc_graph_builder_op(builder, &op));
}

START_TEST(any_graph_survives_writing_and_reading) {
  for (uint64_t seed = 0; seed < 500; seed++) {
    uint64_t random = seed;
    planc_graph_builder *builder;
    planc_graph *graph;
    ok(planc_graph_builder_new(&builder));
    bool bare = rand_chance(&random, 30);
    ok(planc_graph_builder_header(builder, "g", (planc_layout)rand_below(&random, 2), rand_below(&random, 3),
                                  bare ? NULL : "k40m", bare ? NULL : "sgd", bare ? NULL : "modnn",
                                  bare ? NULL : "line 1\nline 2: \"\xe2\x82\xac\""));
    int32_t n_tensors = 1 + (int32_t)rand_below(&random, 30), n_ops = 1 + (int32_t)rand_below(&random, 30);
    add_random_tensors(builder, &random, n_tensors);
    for (int32_t i = 0; i < n_ops; i++) add_random_op(builder, &random, i, n_tensors);
    ok(planc_graph_builder_finish(builder, &graph, NULL, NULL));
    assert_round_trip(graph);
    planc_graph_free(graph);
    planc_graph_builder_free(builder);

    ok(randgraph_make(seed, NULL, &graph));
    assert_round_trip(graph);
    planc_graph_free(graph);
  }
}
END_TEST

START_TEST(the_library_survives_writing_and_reading) {
  static const char *const paths[] = {"graphs/lenet-digits.yaml", "graphs/vgg16.yaml", "graphs/resnet50.yaml",
                                      "graphs/recorded/lstm4.yaml"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    planc_graph *graph;
    ok(planc_graph_read(paths[i], &graph));
    assert_round_trip(graph);
    planc_graph_free(graph);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("graph_roundtrip");
  TCase *cases = tcase_create("all");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, any_graph_survives_writing_and_reading);
  tcase_add_test(cases, the_library_survives_writing_and_reading);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
