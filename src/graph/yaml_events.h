/* libyaml's events with planc's errors: "path:line:column: what", lines and columns from 1. Anchors, aliases and tags
 * are errors. */
#ifndef PLANC_GRAPH_YAML_EVENTS_H
#define PLANC_GRAPH_YAML_EVENTS_H

#include <stdbool.h>
#include <yaml.h>

#include "planc/status.h"
#include "util/vec.h"

typedef struct planc_yaml {
  const char *path;
  const char *text;
  size_t length;
  yaml_parser_t parser;
  yaml_event_t event; /* the current one */
  VEC(yaml_event_t) held;
} planc_yaml;

typedef struct planc_text_place {
  int32_t line, column;
} planc_text_place;

planc_status planc_yaml_open(planc_yaml *yaml, const char *text, size_t length, const char *path);
void planc_yaml_close(planc_yaml *yaml);
/* Goes on to the next event. */
planc_status planc_yaml_next(planc_yaml *yaml);
/* Goes on to the next event, which must be of `type`; else the error is "expected `what`". */
planc_status planc_yaml_expect(planc_yaml *yaml, yaml_event_type_t type, const char *what);

/* Where the current event starts, and the current scalar's text. */
planc_text_place planc_yaml_here(const planc_yaml *yaml);
static inline const char *planc_yaml_text(const planc_yaml *yaml) {
  return (const char *)yaml->event.data.scalar.value;
}
/* The current scalar is not in quotes. */
static inline bool planc_yaml_is_plain(const planc_yaml *yaml) {
  return yaml->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}
/* Keeps the current scalar: its text stays valid until planc_yaml_release. */
planc_status planc_yaml_hold(planc_yaml *yaml, const char **out_text);
void planc_yaml_release(planc_yaml *yaml);

/* Puts a place before the message of `status`; OK stays OK. */
planc_status planc_yaml_at(const planc_yaml *yaml, planc_text_place place, planc_status status);
/* The same for a fault at `at` inside the current scalar's text. */
planc_status planc_yaml_within(const planc_yaml *yaml, const char *at, planc_status status);
/* A BAD_INPUT status at the current event. */
planc_status planc_yaml_error(const planc_yaml *yaml, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Goes on to the next key of a mapping, which must be one of `keys` and not in *seen; *out_key is its index, -1 at the
 * mapping's end. */
planc_status planc_yaml_key(planc_yaml *yaml, const char *const *keys, int n_keys, uint32_t *seen, int *out_key);
/* The index of the current scalar in `names`; else the error is "unknown `what`". */
planc_status planc_yaml_choice(const planc_yaml *yaml, const char *what, const char *const *names, int n_names,
                               int *out);
/* The current scalar as a plain integer from `min` to `max`. */
planc_status planc_yaml_integer(const planc_yaml *yaml, int64_t min, int64_t max, int64_t *out);

#endif
