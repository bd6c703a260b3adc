/* The digits: reading, splitting, shuffling, and what is not a data file. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "planrt/data.h"
#include "tests/support/forward.h"
#include "tests/support/unit.h"

static const char digits[] = "tests/data/digits/digits.csv.gz";

static planc_graph *parse(const char *inputs) {
  char text[512];
  planc_graph *graph;
  int length = snprintf(text, sizeof text,
                        "planc-graph: 1\nname: g\ntensors:\n%s  y: f32[N,4]\nops:\n"
                        "  - {op: o, type: t.any, in: [x], out: [y]}\n",
                        inputs);
  ok(planc_graph_parse(text, (size_t)length, "g", &graph));
  return graph;
}

static const char usual_inputs[] = "  x: input f32[N,1,8,8]\n  l: input i64[N]\n";

typedef struct bound {
  planc_graph *graph;
  int64_t batch;
  planc_job job;
  planrt_data *data;
} bound;

static void open_bound(bound *b, int64_t batch, uint64_t seed) {
  *b = (bound){.graph = parse(usual_inputs), .batch = batch};
  b->job = (planc_job){.graph = b->graph, .batch = batch, .n_rounds = 1, .rounds = &b->batch, .iterations = 1};
  ok(planrt_data_read(digits, seed, &b->data));
  ok(planrt_data_bind(b->data, 0, &b->job));
}

static void close_bound(bound *b) {
  planrt_data_free(b->data);
  planc_graph_free(b->graph);
}

/* A labelled picture as one row of numbers. */
typedef struct sample {
  float pixels[64];
  int64_t label;
} sample;

static void fetch(const bound *b, planrt_feed feed, int64_t iteration, int64_t offset, int64_t count, sample *out) {
  float *pixels = malloc((size_t)count * 64 * sizeof *pixels);
  int64_t *labels = malloc((size_t)count * sizeof *labels);
  planrt_feed_request request = {.storage = b->graph->tensors[0].storage,
                                 .iteration = iteration,
                                 .offset = offset,
                                 .count = count,
                                 .out = pixels,
                                 .bytes = count * 64 * (int64_t)sizeof *pixels};
  ok(feed(b->data, &request));
  request.storage = b->graph->tensors[1].storage;
  request.out = labels;
  request.bytes = count * (int64_t)sizeof *labels;
  ok(feed(b->data, &request));
  for (int64_t i = 0; i < count; i++) {
    memcpy(out[i].pixels, pixels + i * 64, sizeof out[i].pixels);
    out[i].label = labels[i];
  }
  free(pixels);
  free(labels);
}

/* The file's rows, read here by other means. */
enum { ROWS = 1797, TRAIN = 1438, HELD_OUT = 359 };

static void read_rows(sample *out) {
  gzFile file = gzopen(digits, "rb");
  char line[512];
  ck_assert(file);
  for (int i = 0; i < ROWS; i++) {
    ck_assert(gzgets(file, line, sizeof line));
    char *at = line;
    for (int k = 0; k < 64; k++, at++) out[i].pixels[k] = (float)strtol(at, &at, 10) / 16.0F;
    out[i].label = strtol(at, &at, 10);
  }
  gzclose(file);
}

START_TEST(held_out_rows) {
  bound b;
  static sample rows[ROWS], held_out[HELD_OUT + 1];
  read_rows(rows);
  open_bound(&b, 10, 1);
  ck_assert_int_eq(planrt_data_held_out(b.data), HELD_OUT);
  for (int i = 0; i < 36; i++) fetch(&b, planrt_data_feed_held_out, i, 0, 10, held_out + (ptrdiff_t)i * 10);
  for (int i = 0; i < HELD_OUT; i++) ck_assert_mem_eq(&held_out[i], &rows[i * 5 + 4], sizeof(sample));
  ck_assert_mem_eq(&held_out[HELD_OUT], &rows[4], sizeof(sample));
  close_bound(&b);
}
END_TEST

static int compare_samples(const void *a, const void *b) {
  return memcmp(a, b, sizeof(sample));
}

/* An epoch is a permutation of the rows to train on, another one each time, and the same again for the same seed. */
START_TEST(epochs) {
  bound b, again, other;
  static sample rows[ROWS], train[TRAIN], epoch[4][TRAIN], elsewhere;
  read_rows(rows);
  for (int i = 0, n = 0; i < ROWS; i++)
    if (i % 5 != 4) train[n++] = rows[i];
  open_bound(&b, TRAIN / 2, 1);
  open_bound(&again, TRAIN / 2, 1);
  open_bound(&other, TRAIN / 2, 2);
  ck_assert_int_eq(planrt_data_iterations(b.data), 2);
  for (int half = 0; half < 2; half++) {
    ptrdiff_t at = (ptrdiff_t)half * (TRAIN / 2);
    fetch(&b, planrt_data_feed, half, 0, TRAIN / 2, epoch[0] + at);
    fetch(&b, planrt_data_feed, 2 + half, 0, TRAIN / 2, epoch[1] + at);
    fetch(&other, planrt_data_feed, half, 0, TRAIN / 2, epoch[3] + at);
    /* In rounds and out of order. */
    fetch(&again, planrt_data_feed, 3, 0, 1, &elsewhere);
    fetch(&again, planrt_data_feed, half, 600, TRAIN / 2 - 600, epoch[2] + at + 600);
    fetch(&again, planrt_data_feed, half, 0, 600, epoch[2] + at);
  }
  ck_assert_mem_eq(epoch[0], epoch[2], sizeof epoch[0]);
  ck_assert_mem_ne(epoch[0], epoch[1], sizeof epoch[0]);
  ck_assert_mem_ne(epoch[0], epoch[3], sizeof epoch[0]);
  ck_assert_mem_ne(epoch[0], train, sizeof epoch[0]);
  qsort(train, TRAIN, sizeof(sample), compare_samples);
  for (int e = 0; e < 4; e++) {
    qsort(epoch[e], TRAIN, sizeof(sample), compare_samples);
    ck_assert_mem_eq(epoch[e], train, sizeof train);
  }
  close_bound(&b);
  close_bound(&again);
  close_bound(&other);
}
END_TEST

START_TEST(partial_batches) {
  bound b;
  open_bound(&b, 64, 1);
  ck_assert_int_eq(planrt_data_iterations(b.data), 22);
  close_bound(&b);
}
END_TEST

START_TEST(other_graphs) {
  static const struct {
    const char *inputs;
    int64_t batch;
    const char *message;
  } cases[] = {
      {"  x: input f32[N,63]\n  l: input i64[N]\n", 4, "input x: the data has 64 pixels, f32 or i64"},
      {"  x: input f32[N,64]\n  l: input i64[N,2]\n", 4, "input l"},
      {"  x: input f32[N,64]\n  l: input i64[2+N]\n", 4, "input l"},
      {"  x: input f32[N,64]\n  l: input i64[N]\n  m: input i64[N]\n", 4, "input m"},
      {"  x: input f32[N,64]\n", 4, "no input for the data's labels"},
      {"  x: input f32[N,64]\n  l: input i64[N]\n", 1439, "1439 samples is more than the 1438 rows"},
  };
  planc_graph *graph = parse(cases[_i].inputs);
  planc_job job = {
      .graph = graph, .batch = cases[_i].batch, .n_rounds = 1, .rounds = &cases[_i].batch, .iterations = 1};
  planrt_data *data;
  ok(planrt_data_read(digits, 0, &data));
  assert_fails(planrt_data_bind(data, 0, &job), PLANC_BAD_INPUT, cases[_i].message);
  planrt_data_free(data);
  planc_graph_free(graph);
}
END_TEST

/* --- Malformed files ---------------------------------------------------------------------------------------------- */

static char path[64];

static void write_file(const void *bytes, size_t length) {
  snprintf(path, sizeof path, "/tmp/planrt-data-XXXXXX");
  int descriptor = mkstemp(path);
  ck_assert_int_ge(descriptor, 0);
  ck_assert_int_eq(write(descriptor, bytes, length), (ssize_t)length);
  close(descriptor);
}

static planc_status read_file(void) {
  planrt_data *data = NULL;
  planc_status status = planrt_data_read(path, 0, &data);
  planrt_data_free(data);
  unlink(path);
  return status;
}

#define EIGHT "0,1,2,3,4,5,6,16,"
#define PICTURE EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT
#define ZEROS "00000000000000000000000000000000000000000000000000000000000000000000000000000000"

START_TEST(malformed) {
  static const struct {
    const char *text;
    size_t length; /* 0: the string's */
    const char *message;
  } cases[] = {
      {"", 0, ":1: no rows"},
      {PICTURE "3\n" PICTURE "10\n", 0, ":2: value 65 should be the label"},
      {PICTURE "3\n\n", 0, ":2: value 1 should be a pixel"},
      {PICTURE "3,\n", 0, ":1: value 65"},
      {PICTURE "3 \n", 0, ":1: value 65"},
      {PICTURE "\n", 0, ":1: value 65"},
      {PICTURE "-1\n", 0, ":1: value 65"},
      {"17," PICTURE "\n", 0, ":1: value 1 should be"},
      {"0x1," PICTURE "\n", 0, ":1: value 1 should be"},
      {" 1," PICTURE "\n", 0, ":1: value 1 should be"},
      {EIGHT "99999999999999999999999,", 0, ":1: value 9"},
      {EIGHT "1;2", 0, ":1: value 9"},
      {PICTURE ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS "1\n", 0, ":1: the line is too long or not text"},
      {PICTURE "3\0, not seen\n", sizeof PICTURE + 13, ":1: the line is too long or not text"},
      {"\x1f\x8b\x08\x00 not deflate", 0, ":1: "},
  };
  write_file(cases[_i].text, cases[_i].length ? cases[_i].length : strlen(cases[_i].text));
  assert_fails(read_file(), PLANC_BAD_INPUT, cases[_i].message);
}
END_TEST

START_TEST(well_formed) {
  static const char *const texts[] = {PICTURE "9\n", PICTURE "9", PICTURE "0\r\n" PICTURE "9\r\n"};
  write_file(texts[_i], strlen(texts[_i]));
  ok(read_file());
}
END_TEST

/* Wherever the compressed file is cut, it is refused. */
START_TEST(truncated) {
  static char bytes[65536];
  FILE *file = fopen(digits, "rb");
  ck_assert(file);
  size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  ck_assert_uint_eq(length, 57512);
  for (size_t cut = 1; cut < length; cut += cut < 32 || cut > length - 16 ? 1 : 1777) {
    write_file(bytes, cut);
    /* Of less than gzip's first two bytes nobody can tell what it was to be. */
    assert_fails(read_file(), PLANC_BAD_INPUT, cut < 2 ? path : "the compressed file is cut short");
  }
  assert_fails(planrt_data_read("tests/data/none.csv", 0, &(planrt_data *){NULL}), PLANC_BAD_INPUT,
               "tests/data/none.csv: No such file or directory");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("data");
  TCase *c = tcase_create("data");
  tcase_set_timeout(c, 60);
  tcase_add_test(c, held_out_rows);
  tcase_add_test(c, epochs);
  tcase_add_test(c, partial_batches);
  tcase_add_loop_test(c, other_graphs, 0, 6);
  tcase_add_loop_test(c, malformed, 0, 15);
  tcase_add_loop_test(c, well_formed, 0, 3);
  tcase_add_test(c, truncated);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
