/* Events, places and the small scalars of planc-graph(5). */
#include "graph/yaml_events.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/spec.h"
#include "util/real.h"

planc_status pl_yaml_open(pl_yaml *yaml, const char *text, size_t length, const char *path) {
  *yaml = (pl_yaml){.path = path, .text = text, .length = length};
  if (!yaml_parser_initialize(&yaml->parser)) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  yaml_parser_set_input_string(&yaml->parser, (const unsigned char *)text, length);
  return NULL;
}

void pl_yaml_close(pl_yaml *yaml) {
  pl_yaml_release(yaml);
  VEC_FREE(&yaml->held);
  yaml_event_delete(&yaml->event);
  yaml_parser_delete(&yaml->parser);
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

static int32_t from_one(size_t count) {
  return count < INT32_MAX ? (int32_t)count + 1 : INT32_MAX;
}

static pl_text_place place_of(yaml_mark_t mark) {
  return (pl_text_place){from_one(mark.line), from_one(mark.column)};
}

pl_text_place pl_yaml_here(const pl_yaml *yaml) {
  return place_of(yaml->event.start_mark);
}

planc_status pl_yaml_at(const pl_yaml *yaml, pl_text_place place, planc_status status) {
  return planc_context(status, "%s:%" PRId32 ":%" PRId32, yaml->path, place.line, place.column);
}

planc_status pl_yaml_within(const pl_yaml *yaml, const char *at, planc_status status) {
  pl_text_place place = pl_yaml_here(yaml);
  bool one_line = yaml->event.start_mark.line == yaml->event.end_mark.line;
  if (pl_yaml_is_plain(yaml) && one_line) place.column += (int32_t)(at - pl_yaml_text(yaml));
  return pl_yaml_at(yaml, place, status);
}

planc_status pl_yaml_error(const pl_yaml *yaml, const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return pl_yaml_at(yaml, pl_yaml_here(yaml), planc_error(PLANC_BAD_INPUT, "%s", message));
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

/* libyaml tells the place of what it cannot decode as an offset only. */
static pl_text_place place_of_offset(const pl_yaml *yaml, size_t offset) {
  yaml_mark_t mark = {0};
  for (size_t i = 0; i < offset && i < yaml->length; i++) {
    mark.line += yaml->text[i] == '\n';
    mark.column = yaml->text[i] == '\n' ? 0 : mark.column + 1;
  }
  return place_of(mark);
}

static planc_status parser_fault(const pl_yaml *yaml) {
  const yaml_parser_t *parser = &yaml->parser;
  if (parser->error == YAML_MEMORY_ERROR) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  pl_text_place place = parser->error == YAML_READER_ERROR ? place_of_offset(yaml, parser->problem_offset)
                                                           : place_of(parser->problem_mark);
  return pl_yaml_at(yaml, place, planc_error(PLANC_BAD_INPUT, "%s", parser->problem));
}

planc_status pl_yaml_next(pl_yaml *yaml) {
  yaml_event_delete(&yaml->event);
  if (!yaml_parser_parse(&yaml->parser, &yaml->event)) return parser_fault(yaml);
  const unsigned char *anchor = NULL, *tag = NULL;
  switch (yaml->event.type) {
    case YAML_ALIAS_EVENT:
      return pl_yaml_error(yaml, "aliases are not supported");
    case YAML_SCALAR_EVENT:
      anchor = yaml->event.data.scalar.anchor;
      tag = yaml->event.data.scalar.tag;
      if (strlen(pl_yaml_text(yaml)) != yaml->event.data.scalar.length) {
        return pl_yaml_error(yaml, "the character 0 is not supported");
      }
      break;
    case YAML_SEQUENCE_START_EVENT:
      anchor = yaml->event.data.sequence_start.anchor;
      tag = yaml->event.data.sequence_start.tag;
      break;
    case YAML_MAPPING_START_EVENT:
      anchor = yaml->event.data.mapping_start.anchor;
      tag = yaml->event.data.mapping_start.tag;
      break;
    default:
      break;
  }
  if (anchor) return pl_yaml_error(yaml, "anchors are not supported");
  return tag ? pl_yaml_error(yaml, "tags are not supported") : NULL;
}

planc_status pl_yaml_expect(pl_yaml *yaml, yaml_event_type_t type, const char *what) {
  PLANC_TRY(pl_yaml_next(yaml));
  return yaml->event.type == type ? NULL : pl_yaml_error(yaml, "expected %s", what);
}

planc_status pl_yaml_hold(pl_yaml *yaml, const char **out_text) {
  *out_text = pl_yaml_text(yaml);
  VEC_PUSH(&yaml->held, yaml->event);
  yaml->event.type = YAML_NO_EVENT;
  return NULL;
}

void pl_yaml_release(pl_yaml *yaml) {
  for (int64_t i = 0; i < yaml->held.len; i++) yaml_event_delete(&yaml->held.data[i]);
  yaml->held.len = 0;
}

/* --- Scalars ------------------------------------------------------------------------------------------------------ */

static int find(const char *name, const char *const *names, int n_names) {
  for (int i = 0; i < n_names; i++) {
    if (strcmp(name, names[i]) == 0) return i;
  }
  return -1;
}

static planc_status unknown(const pl_yaml *yaml, const char *what) {
  char shown[PL_SHOWN_TEXT];
  return pl_yaml_error(yaml, "unknown %s \"%s\"", what, pl_shown(pl_yaml_text(yaml), shown));
}

planc_status pl_yaml_choice(const pl_yaml *yaml, const char *what, const char *const *names, int n_names, int *out) {
  *out = find(pl_yaml_text(yaml), names, n_names);
  return *out >= 0 ? NULL : unknown(yaml, what);
}

planc_status pl_yaml_key(pl_yaml *yaml, const char *const *keys, int n_keys, uint32_t *seen, int *out_key) {
  *out_key = -1;
  PLANC_TRY(pl_yaml_next(yaml));
  if (yaml->event.type == YAML_MAPPING_END_EVENT) return NULL;
  if (yaml->event.type != YAML_SCALAR_EVENT) return pl_yaml_error(yaml, "expected a key");
  int key = find(pl_yaml_text(yaml), keys, n_keys);
  if (key < 0) return unknown(yaml, "key");
  if (*seen >> key & 1) return pl_yaml_error(yaml, "key \"%s\" is given twice", keys[key]);
  *seen |= (uint32_t)1 << key;
  *out_key = key;
  return NULL;
}

planc_status pl_yaml_integer(const pl_yaml *yaml, int64_t min, int64_t max, int64_t *out) {
  const char *text = pl_yaml_text(yaml);
  bool integer = pl_yaml_is_plain(yaml) && pl_number_kind(text) == PL_NUMBER_INT;
  if (integer && pl_integer_parse(text, out) && *out >= min && *out <= max) return NULL;
  return pl_yaml_error(yaml, "expected an integer from %" PRId64 " to %" PRId64, min, max);
}
