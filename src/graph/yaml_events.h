/* libyaml's events with planc's errors: "path:line:column: what", lines and columns from 1. Anchors, aliases and tags
 * are errors. */
#ifndef PLANC_GRAPH_YAML_EVENTS_H
#define PLANC_GRAPH_YAML_EVENTS_H

#include <stdbool.h>
#include <yaml.h>

#include "planc/status.h"
#include "util/vec.h"

typedef struct pl_yaml {
  const char *path;
  const char *text;
  size_t length;
  yaml_parser_t parser;
  yaml_event_t event; /* the current one */
  VEC(yaml_event_t) held;
} pl_yaml;

typedef struct pl_text_place {
  int32_t line, column;
} pl_text_place;

planc_status pl_yaml_open(pl_yaml *yaml, const char *text, size_t length, const char *path);
void pl_yaml_close(pl_yaml *yaml);
/* Goes on to the next event. */
planc_status pl_yaml_next(pl_yaml *yaml);
/* Goes on to the next event, which must be of `type`; else the error is "expected `what`". */
planc_status pl_yaml_expect(pl_yaml *yaml, yaml_event_type_t type, const char *what);

/* Where the current event starts, and the current scalar's text. */
pl_text_place pl_yaml_here(const pl_yaml *yaml);
static inline const char *pl_yaml_text(const pl_yaml *yaml) {
  return (const char *)yaml->event.data.scalar.value;
}
/* The current scalar is not in quotes. */
static inline bool pl_yaml_is_plain(const pl_yaml *yaml) {
  return yaml->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}
/* Keeps the current scalar: its text stays valid until pl_yaml_release. */
planc_status pl_yaml_hold(pl_yaml *yaml, const char **out_text);
void pl_yaml_release(pl_yaml *yaml);

/* Puts a place before the message of `status`; OK stays OK. */
planc_status pl_yaml_at(const pl_yaml *yaml, pl_text_place place, planc_status status);
/* The same for a fault at `at` inside the current scalar's text. */
planc_status pl_yaml_within(const pl_yaml *yaml, const char *at, planc_status status);
/* A BAD_INPUT status at the current event. */
planc_status pl_yaml_error(const pl_yaml *yaml, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Goes on to the next key of a mapping, which must be one of `keys` and not in *seen; *out_key is its index, -1 at the
 * mapping's end. */
planc_status pl_yaml_key(pl_yaml *yaml, const char *const *keys, int n_keys, uint32_t *seen, int *out_key);
/* The index of the current scalar in `names`; else the error is "unknown `what`". */
planc_status pl_yaml_choice(const pl_yaml *yaml, const char *what, const char *const *names, int n_names, int *out);
/* The current scalar as a plain integer from `min` to `max`. */
planc_status pl_yaml_integer(const pl_yaml *yaml, int64_t min, int64_t max, int64_t *out);

#endif
