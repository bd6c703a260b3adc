/* Reads planc-graph(5): a recursive descent over YAML events. Here are the header and the whole; tensors and ops are
 * yaml_body.c's. The places of ops and results are kept, so that what only the whole graph shows is told where it
 * stands in the file as well. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/builder.h"
#include "graph/spec.h"
#include "graph/yaml_body.h"
#include "util/file.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

enum { MAX_FILE_BYTES = 1 << 30 };

/* A scalar of the header. */
typedef struct header_text {
  const char *text;
  pl_text_place place;
} header_text;

typedef struct reader {
  pl_yaml yaml;
  pl_arena arena; /* the header's texts */
  pl_text_place start;
  pl_yaml_body body;
  planc_layout layout;
  int64_t batch;
  header_text name, device, optimizer, policy, origin, loss;
  VEC(header_text) outputs;
} reader;

enum { VERSION, NAME, LAYOUT, BATCH, DEVICE, OPTIMIZER, POLICY, ORIGIN, LOSS, OUTPUTS, TENSORS, OPS };
static const char *const header_keys[] = {
    [VERSION] = "planc-graph", [NAME] = "name",           [LAYOUT] = "layout",   [BATCH] = "batch",
    [DEVICE] = "device",       [OPTIMIZER] = "optimizer", [POLICY] = "policy",   [ORIGIN] = "origin",
    [LOSS] = "loss",           [OUTPUTS] = "outputs",     [TENSORS] = "tensors", [OPS] = "ops"};

static planc_status read_graph(reader *r, planc_graph **out);
static planc_status read_document(reader *r);
static planc_status give_header(reader *r);
static planc_status finish(reader *r, planc_graph **out);
static planc_status read_key(reader *r, uint32_t *seen, int *out);
static planc_status read_header_value(reader *r, int key);
static planc_status read_version(reader *r);
static planc_status read_header_name(reader *r, header_text *out);
static planc_status read_layout(reader *r);
static planc_status read_batch(reader *r);
static planc_status read_header_text(reader *r, header_text *out);
static planc_status read_outputs(reader *r);

planc_status planc_graph_parse(const char *text, size_t length, const char *path, planc_graph **out) {
  *out = NULL;
  if (length > MAX_FILE_BYTES) return planc_error(PLANC_BAD_INPUT, "%s: has more than 1 GiB", path);
  reader r = {0};
  PLANC_TRY(pl_yaml_open(&r.yaml, text, length, path));
  planc_status status = read_graph(&r, out);
  pl_yaml_close(&r.yaml);
  planc_graph_builder_free(r.body.builder);
  pl_arena_free(&r.arena);
  pl_yaml_body_free(&r.body);
  VEC_FREE(&r.outputs);
  return status;
}

static planc_status read_graph(reader *r, planc_graph **out) {
  r->body.yaml = &r->yaml;
  PLANC_TRY(planc_graph_builder_new(&r->body.builder));
  PLANC_TRY(read_document(r));
  PLANC_TRY(give_header(r));
  return finish(r, out);
}

static planc_status read_document(reader *r) {
  uint32_t seen = 0;
  PLANC_TRY(pl_yaml_expect(&r->yaml, YAML_STREAM_START_EVENT, "a stream"));
  PLANC_TRY(pl_yaml_expect(&r->yaml, YAML_DOCUMENT_START_EVENT, "a graph, found an empty file"));
  PLANC_TRY(pl_yaml_expect(&r->yaml, YAML_MAPPING_START_EVENT, "a mapping that starts with \"planc-graph: 1\""));
  r->start = pl_yaml_here(&r->yaml);
  for (;;) {
    int key;
    PLANC_TRY(read_key(r, &seen, &key));
    if (key < 0) break;
    if (!(seen & 1)) return pl_yaml_error(&r->yaml, "the first key must be \"planc-graph\"");
    PLANC_TRY(read_header_value(r, key));
  }
  static const int required[] = {VERSION, NAME, TENSORS, OPS};
  for (int i = 0; i < COUNT(required); i++) {
    if (seen >> required[i] & 1) continue;
    planc_status missing = planc_error(PLANC_BAD_INPUT, "key \"%s\" is missing", header_keys[required[i]]);
    return pl_yaml_at(&r->yaml, r->start, missing);
  }
  PLANC_TRY(pl_yaml_next(&r->yaml)); /* the document's end */
  return pl_yaml_expect(&r->yaml, YAML_STREAM_END_EVENT, "the end of the file");
}

static planc_status read_header_value(reader *r, int key) {
  switch (key) {
    case VERSION:
      return read_version(r);
    case NAME:
      return read_header_name(r, &r->name);
    case LAYOUT:
      return read_layout(r);
    case BATCH:
      return read_batch(r);
    case DEVICE:
      return read_header_name(r, &r->device);
    case OPTIMIZER:
      return read_header_name(r, &r->optimizer);
    case POLICY:
      return read_header_name(r, &r->policy);
    case ORIGIN:
      return read_header_text(r, &r->origin);
    case LOSS:
      return read_header_text(r, &r->loss);
    case OUTPUTS:
      return read_outputs(r);
    case TENSORS:
      return pl_yaml_read_tensors(&r->body);
    default:
      return pl_yaml_read_ops(&r->body);
  }
}

planc_status planc_graph_read(const char *path, planc_graph **out) {
  char *text;
  size_t length;
  *out = NULL;
  PLANC_TRY(pl_file_read_text(path, MAX_FILE_BYTES, &text, &length));
  planc_status status = planc_graph_parse(text, length, path, out);
  free(text);
  return status;
}

/* --- Header ------------------------------------------------------------------------------------------------------- */

/* The current scalar, kept until the file has been read. */
static planc_status keep(reader *r, header_text *out) {
  out->place = pl_yaml_here(&r->yaml);
  return pl_arena_strndup(&r->arena, pl_yaml_text(&r->yaml), r->yaml.event.data.scalar.length, &out->text);
}

static planc_status read_header_text(reader *r, header_text *out) {
  PLANC_TRY(pl_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "a scalar"));
  return keep(r, out);
}

/* A header text that is a name. */
static planc_status read_header_name(reader *r, header_text *out) {
  char shown[PL_SHOWN_TEXT];
  PLANC_TRY(read_header_text(r, out));
  const char *fault = pl_name_fault(out->text);
  return fault ? pl_yaml_error(&r->yaml, "\"%s\" %s", pl_shown(out->text, shown), fault) : NULL;
}

static planc_status read_outputs(reader *r) {
  PLANC_TRY(pl_yaml_expect(&r->yaml, YAML_SEQUENCE_START_EVENT, "a list of tensors"));
  for (;;) {
    header_text output;
    PLANC_TRY(pl_yaml_next(&r->yaml));
    if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT) return NULL;
    if (r->yaml.event.type != YAML_SCALAR_EVENT) return pl_yaml_error(&r->yaml, "expected a tensor's name");
    PLANC_TRY(keep(r, &output));
    VEC_PUSH(&r->outputs, output);
  }
}

static planc_status read_version(reader *r) {
  PLANC_TRY(pl_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "the version"));
  const char *version = pl_yaml_text(&r->yaml);
  char shown[PL_SHOWN_TEXT];
  if (strcmp(version, "1") == 0) return NULL;
  return pl_yaml_error(&r->yaml, "graph format %s is not known; this planc reads format 1", pl_shown(version, shown));
}

static planc_status read_layout(reader *r) {
  static const char *const layouts[] = {[PLANC_LAYOUT_NCHW] = "NCHW", [PLANC_LAYOUT_NHWC] = "NHWC"};
  int layout;
  PLANC_TRY(pl_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "a layout"));
  PLANC_TRY(pl_yaml_choice(&r->yaml, "layout", layouts, COUNT(layouts), &layout));
  r->layout = (planc_layout)layout;
  return NULL;
}

static planc_status read_batch(reader *r) {
  PLANC_TRY(pl_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "an integer"));
  return pl_yaml_integer(&r->yaml, 1, INT32_MAX, &r->batch);
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

/* Another file of planc's, which its first key tells, is called by its name. */
static planc_status read_key(reader *r, uint32_t *seen, int *out) {
  static const char *const others[][2] = {
      {"planc-plan", "a plan, which planc show, check, simulate and update and planrun exec take"},
      {"planc-profile", "a profile, which the options profile and device take"}};
  planc_status status = pl_yaml_key(&r->yaml, header_keys, COUNT(header_keys), seen, out);
  bool is_key = status && *seen == 0 && r->yaml.event.type == YAML_SCALAR_EVENT;
  for (int i = 0; is_key && i < COUNT(others); i++) {
    if (strcmp(pl_yaml_text(&r->yaml), others[i][0]) != 0) continue;
    planc_status_free(status);
    return pl_yaml_error(&r->yaml, "a graph is asked for, and this is %s", others[i][1]);
  }
  return status;
}

static planc_status resolve(const reader *r, const header_text *name, int32_t *out) {
  *out = planc_graph_builder_find(r->body.builder, name->text);
  return *out >= 0 ? NULL : pl_yaml_at(&r->yaml, name->place, pl_yaml_unknown_tensor(name->text));
}

static planc_status give_header(reader *r) {
  int32_t tensor;
  planc_status status = planc_graph_builder_header(r->body.builder, r->name.text, r->layout, r->batch, r->device.text,
                                                   r->optimizer.text, r->policy.text, r->origin.text);
  if (status) return pl_yaml_at(&r->yaml, r->name.place, status);
  if (r->loss.text) {
    PLANC_TRY(resolve(r, &r->loss, &tensor));
    PLANC_TRY(planc_graph_builder_loss(r->body.builder, tensor));
  }
  for (int64_t i = 0; i < r->outputs.len; i++) {
    PLANC_TRY(resolve(r, &r->outputs.data[i], &tensor));
    PLANC_TRY(planc_graph_builder_output(r->body.builder, tensor));
  }
  return NULL;
}

/* Finishes the graph; a fault is told at the op or result it is in. */
static planc_status finish(reader *r, planc_graph **out) {
  pl_graph_fault fault;
  planc_status status = pl_graph_builder_finish_at(r->body.builder, out, &fault);
  if (!status) return NULL;
  if (fault.later_op >= 0) {
    planc_status plain = status;
    status = planc_error(planc_status_code(plain), "%s (line %" PRId32 ")", planc_status_message(plain),
                         r->body.places.data[fault.later_op].line);
    planc_status_free(plain);
  }
  pl_text_place place = r->start;
  if (fault.op >= 0) {
    place = r->body.places.data[fault.op];
  } else if (fault.output >= 0) {
    place = r->outputs.data[fault.output].place;
  } else if (fault.tensor >= 0) {
    place = r->loss.place;
  }
  return pl_yaml_at(&r->yaml, place, status);
}
