/* The emulated cuDNN: its convolutions against scattered sums in double, with every engine, and its descriptors' rules.
 */
#include <cudnn.h>
#include <math.h>
#include <stdbool.h>

#include "tests/cuda/emulated.h"

static void dnn_ok(cudnnStatus_t status) {
  char why[256];
  cudnnGetLastErrorString(why, sizeof why);
  ck_assert_msg(status == CUDNN_STATUS_SUCCESS, "%s: %s", cudnnGetErrorString(status), why);
}

#define dnn_gives(call, expected) ck_assert_str_eq(cudnnGetErrorString(call), cudnnGetErrorString(expected))

/* --- Descriptors, all destroyed at a test's end ------------------------------------------------------------------- */

static cudnnBackendDescriptor_t made[256];
static int n_made;

static cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type) {
  ck_assert_int_lt(n_made, 256);
  dnn_ok(cudnnBackendCreateDescriptor(type, &made[n_made]));
  return made[n_made++];
}

static void destroy_all(void) {
  while (n_made > 0) dnn_ok(cudnnBackendDestroyDescriptor(made[--n_made]));
}

static void set_int64s(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int64_t n, const int64_t *values) {
  dnn_ok(cudnnBackendSetAttribute(d, name, CUDNN_TYPE_INT64, n, values));
}

static void set_descriptor(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t to) {
  dnn_ok(cudnnBackendSetAttribute(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to));
}

static int64_t get_int64(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name) {
  int64_t value, n;
  dnn_ok(cudnnBackendGetAttribute(d, name, CUDNN_TYPE_INT64, 1, &n, &value));
  ck_assert_int_eq(n, 1);
  return value;
}

/* --- A convolution ------------------------------------------------------------------------------------------------ */

typedef struct tensor {
  int64_t uid, dims[4], strides[4];
} tensor;

typedef struct conv {
  cudnnBackendDescriptorType_t type;
  cudnnDataType_t dtype;
  tensor x, w, y;
  int64_t pad[2], stride[2], dilation[2];
  cudnnConvolutionMode_t mode;
  float alpha, beta;
} conv;

static const cudnnBackendDescriptorType_t directions[] = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
};

static tensor shaped(int64_t uid, int64_t n, int64_t c, int64_t h, int64_t w, bool channels_last) {
  tensor t = {uid, {n, c, h, w}, {c * h * w, h * w, w, 1}};
  if (channels_last) memcpy(t.strides, (const int64_t[]){c * h * w, 1, w * c, c}, sizeof t.strides);
  return t;
}

static int64_t size_of(const tensor *t) {
  return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

static int64_t at(const tensor *t, int64_t n, int64_t c, int64_t h, int64_t w) {
  return n * t->strides[0] + c * t->strides[1] + h * t->strides[2] + w * t->strides[3];
}

static uint64_t random_state;
static int64_t below(int64_t n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((random_state >> 33) % (uint64_t)n);
}

static conv random_conv(int number) {
  random_state = (uint64_t)number;
  below(2);
  int64_t groups = 1 + below(3), channels = groups * (1 + below(3)), outputs = groups * (1 + below(3));
  bool last = below(2) == 1;
  conv c = {directions[number % 3], below(2) == 0 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16, .mode = below(2)};
  c.alpha = below(2) == 0 ? 1 : 0.5F;
  c.beta = below(2) == 0 ? 0 : 2;
  int64_t in[2], window[2], out[2];
  bool simple = below(3) == 0; /* one that a Winograd engine takes */
  for (int i = 0; i < 2; i++) {
    window[i] = simple ? 3 : 1 + below(3);
    c.pad[i] = below(2);
    c.stride[i] = simple ? 1 : 1 + below(2);
    c.dilation[i] = simple ? 1 : 1 + below(2);
    in[i] = 5 + below(4);
    out[i] = (in[i] + 2 * c.pad[i] - (window[i] - 1) * c.dilation[i] - 1) / c.stride[i] + 1;
  }
  int64_t n = 1 + below(3);
  if (simple) groups = 1;
  c.x = shaped('x', n, channels, in[0], in[1], last);
  c.w = shaped('w', outputs, channels / groups, window[0], window[1], last);
  c.y = shaped('y', n, outputs, out[0], out[1], last);
  return c;
}

static double bf16(double value) {
  float f = (float)value;
  uint32_t bits;
  memcpy(&bits, &f, 4);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  memcpy(&f, &bits, 4);
  return f;
}

/* Every product goes where it belongs, which is another walk than an engine's. */
static void scatter(const conv *c, double *x, double *w, double *y, double *sum) {
  int64_t groups = c->x.dims[1] / c->w.dims[1], outputs = c->w.dims[0] / groups, k[6];
  for (k[0] = 0; k[0] < c->y.dims[0]; k[0]++)
    for (k[1] = 0; k[1] < c->y.dims[1]; k[1]++)
      for (k[2] = 0; k[2] < c->y.dims[2]; k[2]++)
        for (k[3] = 0; k[3] < c->y.dims[3]; k[3]++)
          for (int64_t ch = 0; ch < c->w.dims[1]; ch++)
            for (k[4] = 0; k[4] < c->w.dims[2]; k[4]++)
              for (k[5] = 0; k[5] < c->w.dims[3]; k[5]++) {
                bool flip = c->mode == CUDNN_CONVOLUTION;
                int64_t r = flip ? c->w.dims[2] - 1 - k[4] : k[4], s = flip ? c->w.dims[3] - 1 - k[5] : k[5];
                int64_t h = k[2] * c->stride[0] - c->pad[0] + r * c->dilation[0];
                int64_t v = k[3] * c->stride[1] - c->pad[1] + s * c->dilation[1];
                if (h < 0 || v < 0 || h >= c->x.dims[2] || v >= c->x.dims[3]) continue;
                int64_t xi = at(&c->x, k[0], k[1] / outputs * c->w.dims[1] + ch, h, v);
                int64_t wi = at(&c->w, k[1], ch, k[4], k[5]), yi = at(&c->y, k[0], k[1], k[2], k[3]);
                if (c->type == directions[0]) sum[yi] += x[xi] * w[wi];
                if (c->type == directions[1]) sum[xi] += y[yi] * w[wi];
                if (c->type == directions[2]) sum[wi] += x[xi] * y[yi];
              }
}

static cudnnBackendDescriptor_t tensor_descriptor(const tensor *t, cudnnDataType_t dtype) {
  cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  dnn_ok(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &dtype));
  set_int64s(d, CUDNN_ATTR_TENSOR_DIMENSIONS, 4, t->dims);
  set_int64s(d, CUDNN_ATTR_TENSOR_STRIDES, 4, t->strides);
  set_int64s(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &t->uid);
  set_int64s(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &(int64_t){16});
  dnn_ok(cudnnBackendFinalize(d));
  return d;
}

#define SET_OPERATION(d, PREFIX, X, W, Y)                                                \
  do {                                                                                   \
    set_descriptor(d, PREFIX##_##X, tensor_descriptor(&c->x, c->dtype));                 \
    set_descriptor(d, PREFIX##_##W, tensor_descriptor(&c->w, c->dtype));                 \
    set_descriptor(d, PREFIX##_##Y, tensor_descriptor(&c->y, c->dtype));                 \
    set_descriptor(d, PREFIX##_CONV_DESC, conv_descriptor(c));                           \
    dnn_ok(cudnnBackendSetAttribute(d, PREFIX##_ALPHA, CUDNN_TYPE_FLOAT, 1, &c->alpha)); \
    dnn_ok(cudnnBackendSetAttribute(d, PREFIX##_BETA, CUDNN_TYPE_FLOAT, 1, &c->beta));   \
  } while (0)

static cudnnBackendDescriptor_t conv_descriptor(const conv *c) {
  cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  cudnnDataType_t sum = CUDNN_DATA_FLOAT;
  dnn_ok(cudnnBackendSetAttribute(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sum));
  dnn_ok(cudnnBackendSetAttribute(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &c->mode));
  set_int64s(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1, &(int64_t){2});
  set_int64s(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 2, c->pad);
  set_int64s(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 2, c->pad);
  set_int64s(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 2, c->stride);
  set_int64s(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, 2, c->dilation);
  dnn_ok(cudnnBackendFinalize(d));
  return d;
}

static cudnnBackendDescriptor_t operation(const conv *c) {
  cudnnBackendDescriptor_t d = make(c->type);
  if (c->type == directions[0])
    SET_OPERATION(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD, X, W, Y);
  else if (c->type == directions[1])
    SET_OPERATION(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA, DX, W, DY);
  else
    SET_OPERATION(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER, X, DW, DY);
  return d;
}

/* Of one convolution; `handle` may be NULL. */
static cudnnBackendDescriptor_t graph_of(const conv *c, cudnnHandle_t handle) {
  cudnnBackendDescriptor_t op = operation(c), graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  dnn_ok(cudnnBackendFinalize(op));
  set_descriptor(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, op);
  if (handle != NULL)
    dnn_ok(cudnnBackendSetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle));
  dnn_ok(cudnnBackendFinalize(graph));
  return graph;
}

enum { MAX_CONFIGS = 16 };

/* What the heuristics offer for a graph; `device` may be NULL. */
static int64_t configs_of(cudnnBackendDescriptor_t graph, cudnnBackendDescriptor_t device, cudnnBackendHeurMode_t mode,
                          cudnnBackendDescriptor_t configs[MAX_CONFIGS]) {
  cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  int64_t n, again;
  set_descriptor(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  if (device != NULL) set_descriptor(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  dnn_ok(cudnnBackendSetAttribute(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
  dnn_ok(cudnnBackendFinalize(d));
  dnn_ok(cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL));
  ck_assert_int_le(n, MAX_CONFIGS);
  for (int64_t i = 0; i < n; i++) configs[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  dnn_ok(cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &again, configs));
  ck_assert_int_eq(n, again);
  return n;
}

static cudnnBackendDescriptor_t engine_of(cudnnBackendDescriptor_t config) {
  cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  int64_t n;
  dnn_ok(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine));
  return engine;
}

static bool has_note(cudnnBackendDescriptor_t engine, cudnnBackendNumericalNote_t note) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  int64_t n;
  dnn_ok(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, notes));
  for (int64_t i = 0; i < n; i++)
    if (notes[i] == note) return true;
  return false;
}

static cudnnBackendDescriptor_t plan_of(cudnnBackendDescriptor_t config, cudnnHandle_t handle) {
  cudnnBackendDescriptor_t plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set_descriptor(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  dnn_ok(cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle));
  cudnnStatus_t status = cudnnBackendFinalize(plan);
  return status == CUDNN_STATUS_SUCCESS ? plan : NULL;
}

/* --- On the device ------------------------------------------------------------------------------------------------ */

typedef struct machine {
  cudaStream_t stream;
  cudnnHandle_t handle;
  char *memory; /* x, w, y, workspace, each within its part */
} machine;

enum { PART = 1 << 16 };

static machine open_machine(void) {
  machine m = {.stream = new_stream(), .memory = new_memory(4 * PART)};
  dnn_ok(cudnnCreate(&m.handle));
  dnn_ok(cudnnSetStream(m.handle, m.stream));
  return m;
}

static void close_machine(machine *m) {
  destroy_all();
  dnn_ok(cudnnDestroy(m->handle));
  cuda_ok(cudaFree(m->memory));
  free_stream(m->stream);
  ck_assert_int_eq(emulator_misuses(), 0);
}

static void upload(const machine *m, int part, const double *values, int64_t n, cudnnDataType_t dtype) {
  char host[PART];
  for (int64_t i = 0; i < n; i++) {
    float f = (float)values[i];
    if (dtype == CUDNN_DATA_FLOAT)
      memcpy(host + 4 * i, &f, 4);
    else
      memcpy(host + 2 * i, (const char *)&f + 2, 2); /* given values are bf16 */
  }
  size_t bytes = (size_t)n * (dtype == CUDNN_DATA_FLOAT ? 4 : 2);
  cuda_ok(cudaMemcpyAsync(m->memory + part * PART, host, bytes, cudaMemcpyHostToDevice, m->stream));
}

static void download(const machine *m, int part, double *values, int64_t n, cudnnDataType_t dtype) {
  char host[PART];
  size_t bytes = (size_t)n * (dtype == CUDNN_DATA_FLOAT ? 4 : 2);
  cuda_ok(cudaMemcpyAsync(host, m->memory + part * PART, bytes, cudaMemcpyDeviceToHost, m->stream));
  for (int64_t i = 0; i < n; i++) {
    float f = 0;
    if (dtype == CUDNN_DATA_FLOAT)
      memcpy(&f, host + 4 * i, 4);
    else
      memcpy((char *)&f + 2, host + 2 * i, 2);
    values[i] = f;
  }
}

static cudnnStatus_t execute(const machine *m, cudnnBackendDescriptor_t plan, const conv *c, void *workspace) {
  cudnnBackendDescriptor_t pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  int64_t uids[] = {c->y.uid, c->x.uid, c->w.uid};
  void *pointers[] = {m->memory + 2 * PART, m->memory, m->memory + PART};
  set_int64s(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 3, uids);
  dnn_ok(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers));
  dnn_ok(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace));
  dnn_ok(cudnnBackendFinalize(pack));
  return cudnnBackendExecute(m->handle, plan, pack);
}

/* Runs the convolution with a plan from the same operands and puts what it gave into `out`. */
static void run(const machine *m, cudnnBackendDescriptor_t plan, const conv *c, double *const values[3], double *out) {
  const tensor *tensors[] = {&c->x, &c->w, &c->y};
  int to = c->type == directions[0] ? 2 : c->type == directions[1] ? 0 : 1;
  int64_t workspace = get_int64(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  ck_assert_int_le(workspace, PART - 16);
  cuda_ok(cudaMemsetAsync(m->memory + 3 * PART, 0x11, PART, m->stream));
  for (int i = 0; i < 3; i++) upload(m, i, values[i], size_of(tensors[i]), c->dtype);
  dnn_ok(execute(m, plan, c, workspace == 0 ? NULL : m->memory + 3 * PART));
  download(m, to, out, size_of(tensors[to]), c->dtype);
  char tail[16];
  cuda_ok(cudaMemcpyAsync(tail, m->memory + 3 * PART + workspace, 16, cudaMemcpyDeviceToHost, m->stream));
  for (int i = 0; i < 16; i++) ck_assert_int_eq(tail[i], 0x11);
}

static double values[3][PART / 4], expected[PART / 4], result[PART / 4], second[PART / 4];

/* Operands of a few bits each, so that rounding them to bf16 or TF32 loses nothing. */
static void fill(const conv *c) {
  const tensor *tensors[] = {&c->x, &c->w, &c->y};
  for (int i = 0; i < 3; i++)
    for (int64_t k = 0; k < size_of(tensors[i]); k++) values[i][k] = (double)(below(33) - 16) / 8;
}

START_TEST(every_engine_gives_the_convolution) {
  conv c = random_conv(_i);
  machine m = open_machine();
  fill(&c);
  int to = c.type == directions[0] ? 2 : c.type == directions[1] ? 0 : 1;
  int64_t n = size_of(to == 2 ? &c.y : to == 0 ? &c.x : &c.w);
  memset(expected, 0, sizeof expected);
  scatter(&c, values[0], values[1], values[2], expected);
  for (int64_t k = 0; k < n; k++) {
    expected[k] = c.alpha * expected[k] + c.beta * values[to][k];
    if (c.dtype == CUDNN_DATA_BFLOAT16) expected[k] = bf16(expected[k]);
    if (c.beta == 0) values[to][k] = NAN; /* not to be read */
  }
  double *all[3] = {values[0], values[1], values[2]};
  cudnnBackendDescriptor_t configs[MAX_CONFIGS];
  int64_t n_configs = configs_of(graph_of(&c, m.handle), NULL, CUDNN_HEUR_MODE_A, configs);
  int ran = 0;
  for (int64_t i = 0; i < n_configs; i++) {
    cudnnBackendDescriptor_t plan = plan_of(configs[i], m.handle);
    if (plan == NULL) continue;
    ran++;
    run(&m, plan, &c, all, result);
    for (int64_t k = 0; k < n; k++) ck_assert_double_eq_tol(result[k], expected[k], 1e-9); /* sums are exact */
  }
  ck_assert_int_ge(ran, 3);
  ck_assert_int_lt(ran, n_configs); /* the heuristics offer one that cannot be had */
  close_machine(&m);
}
END_TEST

/* On operands of full precision: deterministic engines repeat themselves, the other does not, engines differ, and
 * tensor cores round f32 operands. */
START_TEST(engines_are_what_their_notes_say) {
  conv c = {directions[2],
            CUDNN_DATA_FLOAT,
            shaped('x', 4, 8, 9, 9, false),
            shaped('w', 8, 8, 3, 3, false),
            shaped('y', 4, 8, 9, 9, false),
            {1, 1},
            {1, 1},
            {1, 1},
            CUDNN_CROSS_CORRELATION,
            1,
            0};
  machine m = open_machine();
  random_state = 3;
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < PART / 4; k++) values[i][k] = (double)below(1 << 20) / (1 << 20) - 0.5;
  double *all[3] = {values[0], values[1], values[2]};
  cudnnBackendDescriptor_t configs[MAX_CONFIGS], graph = graph_of(&c, m.handle);
  int64_t n = configs_of(graph, NULL, CUDNN_HEUR_MODE_A, configs);
  bool random = false, rounded = false, fallback = false;
  memset(expected, 0, sizeof expected);
  scatter(&c, values[0], values[1], values[2], expected);
  for (int64_t i = 0; i < n; i++) {
    cudnnBackendDescriptor_t engine = engine_of(configs[i]), plan = plan_of(configs[i], m.handle);
    if (plan == NULL) continue;
    run(&m, plan, &c, all, result);
    run(&m, plan, &c, all, second);
    bool same = memcmp(result, second, (size_t)size_of(&c.w) * sizeof *result) == 0;
    ck_assert(same != has_note(engine, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
    double error = 0;
    for (int64_t k = 0; k < size_of(&c.w); k++) error = fmax(error, fabs(result[k] - expected[k]));
    bool tensor_core = has_note(engine, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    ck_assert_double_lt(error, tensor_core ? 1e-1 : 1e-4);
    ck_assert(!tensor_core || error > 1e-4);
    random = random || !same;
    rounded = rounded || tensor_core;
    fallback = fallback || get_int64(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == 0;
  }
  ck_assert(random && rounded && fallback);
  ck_assert_int_eq(configs_of(graph, NULL, CUDNN_HEUR_MODE_FALLBACK, configs), 1);
  ck_assert_int_eq(get_int64(engine_of(configs[0]), CUDNN_ATTR_ENGINE_GLOBAL_INDEX), 0);
  close_machine(&m);
}
END_TEST

/* An engine by index with a knob as before gives the plan that the heuristics gave. */
START_TEST(engines_can_be_had_by_index_and_knobs) {
  conv c = random_conv(1);
  machine m = open_machine();
  cudnnBackendDescriptor_t configs[MAX_CONFIGS], graph = graph_of(&c, m.handle);
  int64_t n_configs = configs_of(graph, NULL, CUDNN_HEUR_MODE_B, configs), knobs = 0;
  int64_t last_index = -1, last_workspace = -1;
  bool knob_matters = false;
  for (int64_t i = 0; i < n_configs; i++) {
    cudnnBackendDescriptor_t choice = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    int64_t n, index = get_int64(engine_of(configs[i]), CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    dnn_ok(cudnnBackendGetAttribute(configs[i], CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                                    &choice));
    cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    set_descriptor(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
    set_int64s(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1, &index);
    dnn_ok(cudnnBackendFinalize(engine));
    cudnnBackendDescriptor_t config = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    set_descriptor(config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (n > 0) set_descriptor(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choice);
    dnn_ok(cudnnBackendFinalize(config));
    knobs += n;
    int64_t workspace = get_int64(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
    knob_matters = knob_matters || (index == last_index && workspace != last_workspace);
    last_index = index;
    last_workspace = workspace;
    ck_assert_int_eq(workspace, get_int64(configs[i], CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE));
  }
  ck_assert(knobs >= 2 && knob_matters);
  int64_t count = get_int64(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
  int had = 0;
  for (int64_t index = 0; index <= count; index++) {
    cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    set_descriptor(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
    set_int64s(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1, &index);
    cudnnStatus_t status = cudnnBackendFinalize(engine);
    had += status == CUDNN_STATUS_SUCCESS;
    ck_assert(index < count || status == CUDNN_STATUS_BAD_PARAM);
  }
  ck_assert(had >= 3 && had < count);
  close_machine(&m);
}
END_TEST

static void no_device(void) {
  setenv("EMULATED_CUDA_DEVICES", "0", 1);
}

/* Heuristics and workspaces of a device that there is not. */
START_TEST(plans_need_no_device) {
  static const char properties[] = "{\"deviceVer\": 900}";
  conv c = random_conv(0);
  cudnnHandle_t handle;
  dnn_gives(cudnnCreate(&handle), CUDNN_STATUS_NOT_INITIALIZED);
  cudnnBackendDescriptor_t device = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR), configs[MAX_CONFIGS];
  dnn_ok(cudnnBackendSetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, sizeof properties,
                                  properties));
  dnn_ok(cudnnBackendFinalize(device));
  char text[sizeof properties];
  int64_t n;
  dnn_ok(cudnnBackendGetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, sizeof text, &n,
                                  text));
  ck_assert_str_eq(text, properties);
  cudnnBackendDescriptor_t graph = graph_of(&c, NULL);
  int64_t n_configs = configs_of(graph, device, CUDNN_HEUR_MODE_INSTANT, configs);
  ck_assert_int_ge(n_configs, 3);
  cudnnBackendDescriptor_t plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set_descriptor(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[n_configs - 1]);
  dnn_gives(cudnnBackendFinalize(plan), CUDNN_STATUS_BAD_PARAM);
  set_descriptor(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  dnn_ok(cudnnBackendFinalize(plan));
  ck_assert_int_eq(get_int64(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE),
                   get_int64(configs[n_configs - 1], CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE));
  cudnnBackendDescriptor_t none = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set_descriptor(none, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  dnn_ok(cudnnBackendSetAttribute(none, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1,
                                  &(cudnnBackendHeurMode_t){CUDNN_HEUR_MODE_A}));
  dnn_gives(cudnnBackendFinalize(none), CUDNN_STATUS_BAD_PARAM);
  destroy_all();
}
END_TEST

/* The codes are those that cuDNN 9.19 gave. */
START_TEST(descriptors_have_rules) {
  conv c = random_conv(0);
  int64_t one = 1, n;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnBackendDescriptor_t t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR), done = tensor_descriptor(&c.x, type);
  const cudnnBackendAttributeName_t of_tensor = CUDNN_ATTR_TENSOR_DATA_TYPE;
  dnn_gives(cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
  dnn_gives(cudnnBackendSetAttribute(t, of_tensor, CUDNN_TYPE_INT64, 1, &one), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  dnn_gives(cudnnBackendSetAttribute(t, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type),
            CUDNN_STATUS_BAD_PARAM);
  dnn_gives(cudnnBackendSetAttribute(t, of_tensor, CUDNN_TYPE_DATA_TYPE, 2, &type), CUDNN_STATUS_BAD_PARAM);
  dnn_gives(cudnnBackendSetAttribute(t, of_tensor, CUDNN_TYPE_DATA_TYPE, 1, NULL), CUDNN_STATUS_BAD_PARAM);
  dnn_gives(cudnnBackendGetAttribute(t, of_tensor, CUDNN_TYPE_DATA_TYPE, 1, &n, &type), CUDNN_STATUS_NOT_INITIALIZED);
  dnn_gives(cudnnBackendSetAttribute(done, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &one),
            CUDNN_STATUS_BAD_PARAM);
  dnn_gives(cudnnBackendFinalize(done), CUDNN_STATUS_BAD_PARAM);
  dnn_gives(cudnnBackendDestroyDescriptor(NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  c.y.dims[2]++;
  cudnnBackendDescriptor_t op = operation(&c), graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  dnn_gives(cudnnBackendFinalize(op), CUDNN_STATUS_BAD_PARAM);
  dnn_gives(cudnnBackendSetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op),
            CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  dnn_gives(cudnnBackendFinalize(graph), CUDNN_STATUS_BAD_PARAM);
  destroy_all();
  ck_assert_int_eq(emulator_misuses(), 0);
}
END_TEST

/* Memory that is too small, misplaced or used twice. */
START_TEST(execution_checks_its_memory) {
  conv c = random_conv(2);
  machine m = open_machine();
  cudnnBackendDescriptor_t configs[MAX_CONFIGS], plan = NULL;
  int64_t n = configs_of(graph_of(&c, m.handle), NULL, CUDNN_HEUR_MODE_A, configs);
  for (int64_t i = 0; i < n && plan == NULL; i++) {
    plan = plan_of(configs[i], m.handle);
    if (plan != NULL && get_int64(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) == 0) plan = NULL;
  }
  ck_assert_ptr_nonnull(plan);
  static char host[PART];
  int64_t workspace = get_int64(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  char *end = m.memory + 4 * PART;
  dnn_ok(execute(&m, plan, &c, end - (workspace + 15) / 16 * 16));
  dnn_gives(execute(&m, plan, &c, NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  dnn_gives(execute(&m, plan, &c, end - (workspace + 15) / 16 * 16 + 16), CUDNN_STATUS_BAD_PARAM);
  dnn_gives(execute(&m, plan, &c, host), CUDNN_STATUS_BAD_PARAM);
  dnn_gives(execute(&m, plan, &c, m.memory + PART), CUDNN_STATUS_BAD_PARAM);
  ck_assert_int_eq(emulator_misuses(), 3);
  cuda_ok(cudaStreamSynchronize(m.stream));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_cudnn");
  TCase *numbers = tcase_create("numbers");
  tcase_add_loop_test(numbers, every_engine_gives_the_convolution, 0, 60);
  tcase_add_test(numbers, engines_are_what_their_notes_say);
  tcase_add_test(numbers, engines_can_be_had_by_index_and_knobs);
  suite_add_tcase(suite, numbers);
  TCase *rules = tcase_create("rules");
  tcase_add_test(rules, descriptors_have_rules);
  tcase_add_test(rules, execution_checks_its_memory);
  suite_add_tcase(suite, rules);
  TCase *deviceless = tcase_create("deviceless");
  tcase_add_checked_fixture(deviceless, no_device, NULL);
  tcase_add_test(deviceless, plans_need_no_device);
  suite_add_tcase(suite, deviceless);
  return run_suite(suite);
}
