/* Reading labelled 8x8 images and feeding them (planrt/data.h). */
#include "planrt/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/input_limits.h"
#include "runtime/random.h"
#include "util/input.h"
#include "util/vec.h"

enum {
  PIXELS = 64,
  BRIGHTEST = 16,
  CLASSES = 10,
  HELD_OUT = 5,   /* every fifth row */
  MAX_LINE = 512, /* with leading zeros and spaces to spare */
  MAX_ROWS = 1 << 20
};

typedef struct data_row {
  uint8_t pixels[PIXELS], label;
} data_row;

struct planrt_data {
  VEC(data_row) rows;
  VEC(int32_t) train, held_out; /* rows of either kind, in file order */
  uint64_t seed;
  int64_t epoch; /* whose order `shuffled` is, -1 = none */
  int32_t *shuffled;
  int32_t number; /* of the job, once bound */
  planc_job job;
  int32_t x, labels;            /* the inputs' storages */
  bool ids;                     /* x is of integers */
  int64_t x_limit, label_limit; /* what the graph's ops take of integers; 0: any */
};

static planc_status open_rows(const char *path, gzFile *out);
static planc_status read_rows(planrt_data *data, gzFile file, const char *path);
static planc_status split(planrt_data *data);
static planc_status check_stream(gzFile file);
static planc_status read_row(const char *line, data_row *out);

planc_status planrt_data_read(const char *path, uint64_t seed, planrt_data **out) {
  planrt_data *data = calloc(1, sizeof *data);
  if (!data) return planc_error(PLANC_OUT_OF_MEMORY, "%s", path);
  data->seed = seed;
  gzFile file = NULL;
  planc_status status = open_rows(path, &file);
  if (!status) status = read_rows(data, file, path);
  if (file) gzclose(file);
  if (!status) status = split(data);
  if (status)
    planrt_data_free(data);
  else
    *out = data;
  return status;
}

static planc_status read_rows(planrt_data *data, gzFile file, const char *path) {
  char line[MAX_LINE];
  while (gzgets(file, line, sizeof line)) {
    size_t length = strlen(line);
    bool whole = length > 0 && line[length - 1] == '\n';
    if (whole) line[--length] = '\0';
    if (length > 0 && line[length - 1] == '\r') line[--length] = '\0';
    data_row next;
    planc_status status = NULL;
    if (data->rows.len == MAX_ROWS) status = planc_error(PLANC_BAD_INPUT, "more than %d rows", MAX_ROWS);
    if (!status && !whole) status = check_stream(file);
    if (!status && !whole && !gzeof(file)) status = planc_error(PLANC_BAD_INPUT, "the line is too long or not text");
    if (!status) status = read_row(line, &next);
    if (status) return planc_context(status, "%s:%lld", path, (long long)data->rows.len + 1);
    VEC_PUSH(&data->rows, next);
  }
  PLANC_TRY(planc_context(check_stream(file), "%s:%lld", path, (long long)data->rows.len + 1));
  if (data->rows.len == 0) return planc_error(PLANC_BAD_INPUT, "%s:1: no rows", path);
  return NULL;
}

void planrt_data_free(planrt_data *data) {
  if (!data) return;
  VEC_FREE(&data->rows);
  VEC_FREE(&data->train);
  VEC_FREE(&data->held_out);
  free(data->shuffled);
  free(data);
}

void planrt_data_reseed(planrt_data *data, uint64_t seed) {
  data->seed = seed;
  data->epoch = -1;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* Reads a number of at most `most` followed by `end`; false when there is none. */
static bool read_number(const char **at, long most, char end, uint8_t *out) {
  char *after;
  if (**at < '0' || **at > '9') return false;
  long value = strtol(*at, &after, 10);
  if (value < 0 || value > most || *after != end) return false;
  *at = after + 1;
  *out = (uint8_t)value;
  return true;
}

static planc_status read_row(const char *line, data_row *out) {
  const char *at = line;
  for (int i = 0; i < PIXELS; i++)
    if (!read_number(&at, BRIGHTEST, ',', &out->pixels[i]))
      return planc_error(PLANC_BAD_INPUT, "value %d should be a pixel, an integer from 0 to %d", i + 1, BRIGHTEST);
  if (!read_number(&at, CLASSES - 1, '\0', &out->label))
    return planc_error(PLANC_BAD_INPUT, "value %d should be the label, an integer from 0 to %d, and the last",
                       PIXELS + 1, CLASSES - 1);
  return NULL;
}

/* What is compressed may end before its end; what has come out of it by then is a part of a line. */
static planc_status check_stream(gzFile file) {
  int code;
  (void)gzerror(file, &code);
  if (code == Z_MEM_ERROR) return planc_error(PLANC_OUT_OF_MEMORY, "rows");
  if (code == Z_OK || code == Z_STREAM_END) return NULL;
  return planc_error(PLANC_BAD_INPUT,
                     code == Z_BUF_ERROR ? "the compressed file is cut short" : "the compressed file is damaged");
}

static planc_status split(planrt_data *data) {
  for (int32_t i = 0; i < data->rows.len; i++)
    if (i % HELD_OUT == HELD_OUT - 1)
      VEC_PUSH(&data->held_out, i);
    else
      VEC_PUSH(&data->train, i);
  data->epoch = -1;
  data->shuffled = malloc(((size_t)data->train.len + 1) * sizeof *data->shuffled);
  return data->shuffled ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "rows");
}

static planc_status open_rows(const char *path, gzFile *out) {
  int file;
  PLANC_TRY(pl_input_open(path, true, &file));
  *out = gzdopen(file, "rb");
  if (*out) return NULL;
  close(file);
  return planc_error(PLANC_OUT_OF_MEMORY, "%s", path);
}

/* --- Binding ------------------------------------------------------------------------------------------------------ */

static void find_limits(planrt_data *data, const planc_graph *graph) {
  int32_t input;
  int64_t limit;
  data->x_limit = data->label_limit = 0;
  for (int32_t o = 0; o < graph->n_ops; o++) {
    if (!rt_limits_input(graph, &graph->ops[o], &input, &limit)) continue;
    if (graph->tensors[input].storage == data->labels) data->label_limit = limit;
    if (graph->tensors[input].storage == data->x && data->ids) data->x_limit = limit;
  }
}

planc_status planrt_data_bind(planrt_data *data, int32_t number, const planc_job *job) {
  const planc_graph *graph = job->graph;
  data->number = number;
  data->x = data->labels = -1;
  for (int32_t s = 0; s < graph->n_storages; s++) {
    const planc_tensor *tensor = &graph->tensors[graph->storages[s].tensor];
    if (graph->storages[s].kind != PLANC_KIND_input) continue;
    bool pixels = tensor->dtype == PLANC_DTYPE_f32 && tensor->bytes.per_sample == PIXELS * (int64_t)sizeof(float);
    bool ids = tensor->dtype == PLANC_DTYPE_i64 && tensor->bytes.per_sample == PIXELS * (int64_t)sizeof(int64_t);
    bool labels = tensor->dtype == PLANC_DTYPE_i64 && tensor->bytes.per_sample == (int64_t)sizeof(int64_t);
    int32_t *place = labels ? &data->labels : &data->x;
    if ((!pixels && !ids && !labels) || tensor->bytes.fixed != 0 || *place >= 0)
      return planc_error(PLANC_BAD_INPUT, "input %s: the data has %d pixels, f32 or i64, and one i64 label a sample",
                         tensor->name, PIXELS);
    *place = s;
    if (!labels) data->ids = ids;
  }
  if (data->x < 0 || data->labels < 0)
    return planc_error(PLANC_BAD_INPUT, "the graph has no input for the data's %s", data->x < 0 ? "pixels" : "labels");
  find_limits(data, graph);
  data->job = *job;
  data->job.batch = planc_job_whole_batch(job);
  if (data->job.batch > data->train.len)
    return planc_error(PLANC_BAD_INPUT, "a batch of %lld samples is more than the %lld rows to train on",
                       (long long)data->job.batch, (long long)data->train.len);
  return NULL;
}

int64_t planrt_data_iterations(const planrt_data *data) {
  return data->train.len / data->job.batch;
}
int64_t planrt_data_held_out(const planrt_data *data) {
  return data->held_out.len;
}

/* --- Feeding ------------------------------------------------------------------------------------------------------ */

static void shuffle(planrt_data *data, int64_t epoch);
static planc_status check_range(const planrt_data *data, const planrt_feed_request *request, const int32_t *order,
                                int64_t first, int64_t total);
static planc_status fill(const planrt_data *data, const planrt_feed_request *request, const int32_t *order,
                         int64_t first, int64_t total);

planc_status planrt_data_feed(void *data, const planrt_feed_request *request) {
  planrt_data *from = data;
  int64_t per_epoch = planrt_data_iterations(from);
  int64_t first = request->iteration % per_epoch * from->job.batch;
  shuffle(from, request->iteration / per_epoch);
  PLANC_TRY(check_range(from, request, from->shuffled, first, from->train.len));
  return fill(from, request, from->shuffled, first, from->train.len);
}

planc_status planrt_data_feed_held_out(void *data, const planrt_feed_request *request) {
  planrt_data *from = data;
  if (from->held_out.len == 0) return planc_error(PLANC_BAD_INPUT, "no rows are held out");
  return fill(from, request, from->held_out.data, request->iteration * from->job.batch, from->held_out.len);
}

/* Fisher and Yates, by a counter of the epoch. */
static void shuffle(planrt_data *data, int64_t epoch) {
  if (data->epoch == epoch) return;
  uint64_t key = rt_random(data->seed, (uint64_t)epoch);
  memcpy(data->shuffled, data->train.data, (size_t)data->train.len * sizeof *data->shuffled);
  for (int64_t i = data->train.len - 1; i > 0; i--) {
    int64_t other = (int64_t)(rt_random(key, (uint64_t)i) % (uint64_t)(i + 1));
    int32_t row_index = data->shuffled[i];
    data->shuffled[i] = data->shuffled[other];
    data->shuffled[other] = row_index;
  }
  data->epoch = epoch;
}

/* The row of a request's i-th sample. */
static int32_t row_of(const planrt_feed_request *request, const int32_t *order, int64_t first, int64_t total,
                      int64_t i) {
  return order[(first + request->offset + i) % total];
}

/* Ops ignore labels and ids beyond what they have; data that is to be trained on must not have any. */
static planc_status check_range(const planrt_data *data, const planrt_feed_request *request, const int32_t *order,
                                int64_t first, int64_t total) {
  bool pixels = request->storage == data->x;
  int64_t limit = pixels ? data->x_limit : data->label_limit;
  for (int64_t i = 0; limit > 0 && i < request->count; i++) {
    int32_t index = row_of(request, order, first, total, i);
    const data_row *row = &data->rows.data[index];
    uint8_t largest = pixels ? 0 : row->label;
    for (int k = 0; pixels && k < PIXELS; k++)
      if (row->pixels[k] > largest) largest = row->pixels[k];
    if (largest >= limit)
      return planc_error(PLANC_BAD_INPUT, "row %d of the data has %s %d, and the graph takes those below %lld",
                         index + 1, pixels ? "pixel" : "label", largest, (long long)limit);
  }
  return NULL;
}

static planc_status fill(const planrt_data *data, const planrt_feed_request *request, const int32_t *order,
                         int64_t first, int64_t total) {
  bool pixels = request->storage == data->x;
  int64_t size = !pixels     ? (int64_t)sizeof(int64_t)
                 : data->ids ? PIXELS * (int64_t)sizeof(int64_t)
                             : PIXELS * (int64_t)sizeof(float);
  if (request->job != data->number || (!pixels && request->storage != data->labels) ||
      request->bytes != request->count * size)
    return planc_error(PLANC_INTERNAL, "a request that the data was not bound to");
  float *x = request->out;
  int64_t *integers = request->out;
  for (int64_t i = 0; i < request->count; i++) {
    const data_row *from = &data->rows.data[row_of(request, order, first, total, i)];
    if (!pixels) *integers++ = from->label;
    for (int k = 0; pixels && data->ids && k < PIXELS; k++) *integers++ = from->pixels[k];
    for (int k = 0; pixels && !data->ids && k < PIXELS; k++) *x++ = (float)from->pixels[k] / (float)BRIGHTEST;
  }
  return NULL;
}
