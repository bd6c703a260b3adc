/* Checkpoints: a resumed run is the uninterrupted one bit for bit, under the same plan or another; a damaged file is
 * refused and changes nothing. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "planrt/planrt.h"
#include "tests/support/forge.h"
#include "tests/support/graphtext.h"
#include "tests/support/unit.h"
#include "tests/support/weave.h"
#include "util/file.h"

static const char text[] =
    "planc-graph: 1\nname: small\nloss: loss\ntensors:\n"
    "  x: input f32[N,6]\n  labels: input i64[N]\n  w: param f32[5,6]\n  h: f32[N,5]\n  d: f32[N,5]\n"
    "  v: param f32[3,5]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n"
    "ops:\n"
    "  - {op: h, type: linear, in: [x, w], out: [h]}\n"
    "  - {op: d, type: dropout, in: [h], out: [d], attrs: {p: 0.25, seed: 1}}\n"
    "  - {op: z, type: linear, in: [d, v], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

/* --- A session and its values ------------------------------------------------------------------------------------- */

typedef struct fixture {
  planc_graph *graph;
  woven w;
  planrt_session *session;
} fixture;

static planc_graph *train(planc_optimizer optimizer) {
  planc_graph *forward = graph_of(text), *trained;
  ok(planc_graph_train(forward, optimizer, &trained));
  planc_graph_free(forward);
  return trained;
}

static void open_plan(fixture *f, const planc_graph *graph, weave_mode mode, int64_t batch, uint64_t seed) {
  planc_job job = {.graph = graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  ok(weave(&job, mode, 0, &f->w));
  planrt_options options = {.seed = seed, .concurrent = mode == WEAVE_SWAP};
  ok(planrt_session_new(&f->w.plan, &options, &f->session));
  ok(planrt_init(f->session));
}

static void open_fixture(fixture *f, planc_optimizer optimizer, weave_mode mode, int64_t batch, uint64_t seed) {
  f->graph = train(optimizer);
  open_plan(f, f->graph, mode, batch, seed);
}

static void close_fixture(fixture *f) {
  planrt_session_free(f->session);
  woven_free(&f->w);
  planc_graph_free(f->graph);
}

enum { ROOM = 4096 };

/* Every persistent byte of a session, one behind the other. */
static int64_t read_all(const fixture *f, char *out) {
  int64_t at = 0;
  for (int32_t s = 0; s < f->graph->n_storages; s++) {
    const planc_storage *storage = &f->graph->storages[s];
    if (storage->kind != PLANC_KIND_param && storage->kind != PLANC_KIND_state) continue;
    int64_t bytes = storage->bytes.fixed;
    ck_assert_int_le(at + bytes, ROOM);
    ok(planrt_read(f->session, 0, 0, s, out + at, bytes));
    at += bytes;
  }
  return at;
}

static void assert_same_values(const fixture *a, const fixture *b) {
  char ours[ROOM], theirs[ROOM];
  int64_t bytes = read_all(a, ours);
  ck_assert_int_gt(bytes, 100);
  ck_assert_int_eq(read_all(b, theirs), bytes);
  ck_assert_mem_eq(ours, theirs, (size_t)bytes);
}

static char path[64];

static void name_file(void) {
  snprintf(path, sizeof path, "/tmp/planc-checkpoint-%ld", (long)getpid());
}
static void remove_file(void) {
  unlink(path);
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

/* Adam and dropout depend on the step; the seed and the position in the data come from the file. */
START_TEST(resumed_runs_go_on) {
  static const planc_optimizer optimizers[] = {PLANC_SGD, PLANC_MOMENTUM, PLANC_ADAM};
  fixture whole, first, second;
  open_fixture(&whole, optimizers[_i], WEAVE_RESIDENT, 4, 3);
  ok(planrt_run(whole.session, 7));
  open_fixture(&first, optimizers[_i], WEAVE_SWAP, 4, 3);
  ok(planrt_run(first.session, 5));
  ok(planrt_save(first.session, path));
  close_fixture(&first);
  open_fixture(&second, optimizers[_i], WEAVE_SWAP, 4, 99);
  ok(planrt_resume(second.session, path));
  ck_assert_uint_eq(planrt_seed(second.session), 3);
  ck_assert_int_eq(planrt_get_step(second.session).period, 5);
  ok(planrt_run(second.session, 2));
  assert_same_values(&whole, &second);
  close_fixture(&second);
  close_fixture(&whole);
}
END_TEST

static void write_file(const char *data, size_t length) {
  ok(pl_file_write(path, data, length));
}

/* A damaged copy of a good checkpoint, made by `damage`, is refused and leaves the session as it was. */
static void assert_refused(const char *data, size_t length, planc_code code) {
  fixture f, untouched;
  open_fixture(&f, PLANC_SGD, WEAVE_RESIDENT, 4, 1);
  open_fixture(&untouched, PLANC_SGD, WEAVE_RESIDENT, 4, 1);
  write_file(data, length);
  planc_status status = planrt_resume(f.session, path);
  assert_fails(status, code, path);
  assert_same_values(&f, &untouched);
  ck_assert_uint_eq(planrt_seed(f.session), 1);
  ck_assert_int_eq(planrt_get_step(f.session).period, 0);
  close_fixture(&untouched);
  close_fixture(&f);
}

START_TEST(damaged_files_are_refused) {
  fixture f;
  open_fixture(&f, PLANC_SGD, WEAVE_RESIDENT, 4, 3);
  ok(planrt_run(f.session, 2));
  ok(planrt_save(f.session, path));
  close_fixture(&f);
  char *data, *copy;
  size_t length;
  ok(pl_file_read(path, 1 << 20, &data, &length));
  copy = malloc(length + 1);
  for (size_t at = 0; at < length; at += 7) {
    memcpy(copy, data, length);
    copy[at] = (char)((unsigned char)copy[at] ^ (1U << at % 8));
    assert_refused(copy, length, PLANC_BAD_INPUT);
    assert_refused(data, at, PLANC_BAD_INPUT);
  }
  memcpy(copy, data, length);
  copy[length] = '\n';
  assert_refused(copy, length + 1, PLANC_BAD_INPUT);
  free(copy);
  free(data);
}
END_TEST

/* Such as a large file given by mistake: it is refused by how it begins, not by a sum over all of it. */
START_TEST(what_is_no_checkpoint_is_not_summed) {
  fixture f;
  char zeros[4096] = {0};
  open_fixture(&f, PLANC_SGD, WEAVE_RESIDENT, 4, 3);
  write_file(zeros, sizeof zeros);
  assert_fails(planrt_resume(f.session, path), PLANC_BAD_INPUT, "line 1: not a checkpoint");
  close_fixture(&f);
}
END_TEST

START_TEST(other_graphs_are_refused) {
  fixture f;
  open_fixture(&f, PLANC_ADAM, WEAVE_RESIDENT, 4, 3);
  ok(planrt_save(f.session, path));
  close_fixture(&f);
  open_fixture(&f, PLANC_SGD, WEAVE_RESIDENT, 4, 3);
  assert_fails(planrt_resume(f.session, path), PLANC_STALE, "made from another graph");
  close_fixture(&f);
  open_fixture(&f, PLANC_ADAM, WEAVE_RESIDENT, 5, 3);
  assert_fails(planrt_resume(f.session, path), PLANC_STALE, "made for 4 samples in a batch, the run has 5");
  close_fixture(&f);
}
END_TEST

/* Not by a hash, which another graph may have as well. */
START_TEST(forged_graphs_are_refused) {
  fixture f, g = {.graph = NULL};
  forged other;
  open_fixture(&f, PLANC_SGD, WEAVE_RESIDENT, 4, 3);
  ok(planrt_save(f.session, path));
  forge(f.graph, &other);
  open_plan(&g, &other.graph, WEAVE_RESIDENT, 4, 3);
  assert_fails(planrt_resume(g.session, path), PLANC_STALE, "made from another graph");
  close_fixture(&g);
  forged_free(&other);
  close_fixture(&f);
}
END_TEST

/* A graph's name and the defaults of its header make no difference to what is trained. */
START_TEST(other_headers_are_no_other_graphs) {
  fixture f, g = {.graph = NULL};
  open_fixture(&f, PLANC_SGD, WEAVE_RESIDENT, 4, 3);
  ok(planrt_save(f.session, path));
  planc_graph renamed = *f.graph;
  renamed.name = "other";
  renamed.batch = 17;
  renamed.device = renamed.optimizer = renamed.policy = renamed.origin = "x";
  open_plan(&g, &renamed, WEAVE_RESIDENT, 4, 3);
  ok(planrt_resume(g.session, path));
  close_fixture(&g);
  close_fixture(&f);
}
END_TEST

/* Changes a piece of the file's first line, and its sum with it. */
static void edit_file(const char *find, const char *replace) {
  enum { SUM = 8 };
  char *data, sum[SUM + 1];
  size_t length, cut = strlen(find), put = strlen(replace);
  ok(pl_file_read(path, 1 << 20, &data, &length));
  char *at = strstr(data, find), *out = malloc(length + put);
  ck_assert_ptr_nonnull(at);
  size_t before = (size_t)(at - data), kept = length - SUM - before - cut;
  memcpy(out, data, before);
  memcpy(out + before, replace, put);
  memcpy(out + before + put, at + cut, kept);
  snprintf(sum, sizeof sum, "%08lx", crc32(0, (const Bytef *)out, (uInt)(before + put + kept)));
  memcpy(out + before + put + kept, sum, SUM);
  write_file(out, before + put + kept + SUM);
  free(out);
  free(data);
}

/* Of jobs on several GPUs; the batch is that of each. */
static void open_split(fixture *f, planc_optimizer optimizer, int32_t gpus, int64_t batch) {
  f->graph = train(optimizer);
  planc_job job = {
      .graph = f->graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1, .replicas = gpus};
  ok(weave(&job, WEAVE_RESIDENT, 0, &f->w));
  ok(planrt_session_new(&f->w.plan, &(planrt_options){.seed = 1}, &f->session));
  ok(planrt_init(f->session));
}

/* Of all that differs the graph is told, then the number of replicas, then the batch, which is that of all replicas. */
START_TEST(the_difference_is_told_as_it_was_given) {
  static const struct {
    planc_optimizer optimizer;
    int32_t gpus;
    int64_t batch;
    const char *told;
  } cases[] = {{PLANC_ADAM, 3, 5, "made from another graph"},
               {PLANC_SGD, 3, 4, "made for 2 replicas, the run has 3"},
               {PLANC_SGD, 1, 8, "made for 2 replicas, the run has 1"},
               {PLANC_SGD, 2, 5, "made for 8 samples in a batch, the run has 10"}};
  fixture f;
  open_split(&f, PLANC_SGD, 2, 4);
  ok(planrt_save(f.session, path));
  close_fixture(&f);
  open_split(&f, cases[_i].optimizer, cases[_i].gpus, cases[_i].batch);
  assert_fails(planrt_resume(f.session, path), PLANC_STALE, cases[_i].told);
  close_fixture(&f);
}
END_TEST

/* Numbers that are none are not compared. */
START_TEST(splits_that_are_none_are_refused) {
  static const char *const splits[] = {"\"replicas\":\"0\"", "\"replicas\":\"18446744073709551615\"", "\"replicas\":2",
                                       "\"replicas\":\"x\""};
  fixture f;
  open_split(&f, PLANC_SGD, 2, 4);
  ok(planrt_save(f.session, path));
  edit_file("\"replicas\":\"2\"", splits[_i]);
  assert_fails(planrt_resume(f.session, path), PLANC_BAD_INPUT, "line 1: not a checkpoint");
  close_fixture(&f);
}
END_TEST

/* Another job in the file, which has nothing that persists, is away; what is none is refused, and changes nothing. */
START_TEST(other_jobs_are_read_with_care) {
  static const struct {
    const char *job, *refused; /* NULL: it is read */
  } cases[] = {
      {"{\"graph\":\"g\",\"content\":\"c\",\"batch\":\"1\",\"iterations\":\"3\",\"values\":[]}", NULL},
      {"{\"name\":\"x\",\"graph\":\"g\",\"content\":\"c\",\"batch\":\"1\",\"iterations\":\"3\",\"failed\":"
       "{\"iteration\":\"2\",\"why\":\"so\"},\"values\":[]}",
       NULL},
      {"{\"graph\":\"g\",\"content\":\"c\",\"batch\":\"1\",\"iterations\":\"3\",\"values\":[{\"name\":\"w\","
       "\"bytes\":\"4\"}]}",
       "wrong length"},
      {"{\"graph\":\"g\",\"content\":\"c\",\"batch\":\"1\",\"iterations\":\"3\",\"values\":[{\"name\":\"w\","
       "\"bytes\":\"9223372036854775807\"},{\"name\":\"w\",\"bytes\":\"1\"}]}",
       "line 1: not"},
      {"{\"graph\":\"g\",\"content\":\"c\",\"batch\":\"1\",\"replicas\":\"4096\",\"iterations\":\"3\",\"values\":"
       "[{\"name\":\"w\",\"bytes\":\"9223372036854775\"}]}",
       "line 1: not"},
      {"{\"graph\":\"g\",\"content\":\"c\",\"batch\":\"1\",\"values\":[]}", "line 1: not"},
      {"{\"graph\":\"g\",\"batch\":\"1\",\"iterations\":\"3\",\"values\":[]}", "line 1: not"},
      {"{\"content\":\"c\",\"batch\":\"1\",\"iterations\":\"3\",\"values\":[]}", "line 1: not"},
      {"{\"graph\":\"g\",\"content\":\"c\",\"batch\":\"1\",\"iterations\":\"3\"}", "line 1: not"},
      {"{\"graph\":\"g\",\"content\":\"c\",\"batch\":\"1\",\"iterations\":\"-1\",\"values\":[]}", "line 1: not"},
      {"{\"graph\":\"g\",\"content\":\"c\",\"batch\":\"1\",\"iterations\":\"3\",\"failed\":{},\"values\":[]}",
       "line 1: not"},
      {"7", "line 1: not"},
  };
  fixture f;
  char put[512];
  open_fixture(&f, PLANC_SGD, WEAVE_RESIDENT, 4, 3);
  ok(planrt_save(f.session, path));
  snprintf(put, sizeof put, "]},%s]}\n", cases[_i].job);
  edit_file("]}]}\n", put);
  if (cases[_i].refused) {
    assert_fails(planrt_resume(f.session, path), PLANC_BAD_INPUT, cases[_i].refused);
    ck_assert_int_eq(planrt_jobs(f.session), 1);
  } else {
    ok(planrt_resume(f.session, path));
    ck_assert_int_eq(planrt_jobs(f.session), 2);
    planrt_job away = planrt_job_of(f.session, 1);
    ck_assert_int_eq(away.job, -1);
    ck_assert_int_eq(away.iterations, 3);
    ck_assert_str_eq(away.graph, "g");
    ck_assert(away.why ? strcmp(away.why, "so") == 0 && away.failed_at == 2 : away.name == NULL);
    ok(planrt_save(f.session, path));
    ok(planrt_resume(f.session, path));
    ck_assert_int_eq(planrt_jobs(f.session), 2);
  }
  close_fixture(&f);
}
END_TEST

static planc_status feed_zeros(void *user, const planrt_feed_request *request) {
  (void)user;
  memset(request->out, 0, (size_t)request->bytes);
  return NULL;
}

static void open_fed(fixture *f, planrt_feed feed) {
  int64_t batch = 4;
  f->graph = train(PLANC_SGD);
  planc_job job = {.graph = f->graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  ok(weave(&job, WEAVE_RESIDENT, 0, &f->w));
  ok(planrt_session_new(&f->w.plan, &(planrt_options){.feed = feed}, &f->session));
  ok(planrt_init(f->session));
}

/* Who trains on his own samples and goes on with pseudo-random ones, or the other way round, can be told. */
START_TEST(whose_samples_they_were_is_kept) {
  static const planrt_feed feeds[] = {NULL, feed_zeros};
  fixture f, g;
  open_fed(&f, feeds[_i % 2]);
  open_fed(&g, feeds[_i / 2]);
  ok(planrt_run(f.session, 1));
  ok(planrt_save(f.session, path));
  ck_assert_int_eq(planrt_resumed_samples(g.session, 0), PLANRT_SAMPLES_UNKNOWN);
  ok(planrt_resume(g.session, path));
  ck_assert_int_eq(planrt_resumed_samples(g.session, 0), _i % 2 ? PLANRT_SAMPLES_USER : PLANRT_SAMPLES_RANDOM);
  edit_file(_i % 2 ? ",\"feed\":true" : ",\"feed\":false", "");
  ok(planrt_resume(g.session, path));
  ck_assert_int_eq(planrt_get_step(g.session).period, 1);
  ck_assert_int_eq(planrt_resumed_samples(g.session, 0), PLANRT_SAMPLES_UNKNOWN);
  close_fixture(&g);
  close_fixture(&f);
}
END_TEST

/* What stand-ins leave behind is no training: neither goes on from the other, and both from their own. */
START_TEST(stand_ins_and_training_do_not_mix) {
  fixture f[2];
  for (int k = 0; k < 2; k++) {
    int64_t batch = 4;
    f[k].graph = train(PLANC_SGD);
    planc_job job = {.graph = f[k].graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
    ok(weave(&job, WEAVE_RESIDENT, 0, &f[k].w));
    ok(planrt_session_new(&f[k].w.plan, &(planrt_options){.synthetic = k == 1}, &f[k].session));
    ok(planrt_init(f[k].session));
  }
  for (int k = 0; k < 2; k++) {
    ok(planrt_run(f[k].session, 1));
    ok(planrt_save(f[k].session, path));
    assert_fails(planrt_resume(f[!k].session, path), PLANC_STALE,
                 k == 1 ? "saved by a run of stand-ins" : "saved by a run of real ops");
    ck_assert_int_eq(planrt_get_step(f[!k].session).period, k);
    ok(planrt_resume(f[k].session, path));
  }
  for (int k = 0; k < 2; k++) close_fixture(&f[k]);
}
END_TEST

/* Samples are counted from the first one, of 4 in each iteration. */
START_TEST(positions_beyond_all_counting_are_refused) {
  static const struct {
    const char *period;
    bool right;
  } cases[] = {{"\"1152921504606846975\"", true},
               {"\"1152921504606846976\"", false},
               {"\"9223372036854775807\"", false},
               {"\"18446744073709551615\"", false}};
  fixture f;
  open_fixture(&f, PLANC_SGD, WEAVE_RESIDENT, 4, 3);
  ok(planrt_save(f.session, path));
  edit_file("\"0\"", cases[_i].period);
  planc_status status = planrt_resume(f.session, path);
  if (cases[_i].right)
    ok(status);
  else
    assert_fails(status, PLANC_BAD_INPUT, "line 1: not a checkpoint");
  close_fixture(&f);
}
END_TEST

START_TEST(files_that_cannot_be_had) {
  fixture f;
  open_fixture(&f, PLANC_SGD, WEAVE_RESIDENT, 4, 3);
  assert_fails(planrt_resume(f.session, "/nowhere/at/all"), PLANC_BAD_INPUT, "/nowhere/at/all: No such file");
  assert_fails(planrt_save(f.session, "/nowhere/at/all"), PLANC_IO, "/nowhere/at/all: No such file");
  assert_fails(planrt_save(f.session, "/dev/full"), PLANC_IO, "/dev/full: No space left");
  close_fixture(&f);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("checkpoint");
  TCase *c = tcase_create("checkpoint");
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, name_file, remove_file);
  tcase_add_loop_test(c, resumed_runs_go_on, 0, 3);
  tcase_add_test(c, damaged_files_are_refused);
  tcase_add_test(c, what_is_no_checkpoint_is_not_summed);
  tcase_add_test(c, other_graphs_are_refused);
  tcase_add_test(c, forged_graphs_are_refused);
  tcase_add_test(c, other_headers_are_no_other_graphs);
  tcase_add_loop_test(c, the_difference_is_told_as_it_was_given, 0, 4);
  tcase_add_loop_test(c, splits_that_are_none_are_refused, 0, 4);
  tcase_add_loop_test(c, other_jobs_are_read_with_care, 0, 12);
  tcase_add_test(c, stand_ins_and_training_do_not_mix);
  tcase_add_loop_test(c, whose_samples_they_were_is_kept, 0, 4);
  tcase_add_loop_test(c, positions_beyond_all_counting_are_refused, 0, 4);
  tcase_add_test(c, files_that_cannot_be_had);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
