/* Strict access to a JSON tree: every value is asked for with its type and range, every key must be known and stand
 * once, and errors name the place: "p100.json: ops[3].variants[0].time_ns: must be an integer". */
#ifndef PLANC_COST_JSON_H
#define PLANC_COST_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planc/status.h"

/* The largest integer that every JSON reader keeps exactly, 2^53 - 1. */
#define PL_JSON_MAX INT64_C(9007199254740991)

/* A value and where it stands. Children point to their parent, which must outlive them. */
typedef struct pl_json {
  const cJSON *value; /* NULL: an optional member that is absent */
  const struct pl_json *parent;
  const char *name; /* of the member; NULL for an element; of the root: the file */
  int32_t index;
} pl_json;

/* Parses one JSON value with nothing but white space after it; *out is freed with cJSON_Delete. */
planc_status pl_json_parse(const char *text, size_t length, const char *path, cJSON **out);
/* What the JSON grammar forbids but cJSON lets pass (01, 1., control characters in strings), and numbers that are not
 * written as plain integers (1.0, 1e3). `text` must have passed pl_json_parse. */
planc_status pl_json_check_plain(const char *text, size_t length, const char *path);

planc_status pl_json_error(const pl_json *at, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct pl_json_key {
  const char *name;
  bool optional;
} pl_json_key;
/* The members of an object that may have these keys and no others; out[i] belongs to keys[i]. */
planc_status pl_json_members(const pl_json *at, const pl_json_key *keys, int32_t n_keys, pl_json *out);
/* Checks that `at` is an array, and not an empty one. */
planc_status pl_json_array(const pl_json *at, int32_t *out_count);
/* Steps to the first element or member of `at`, then to the next; `out->value` is NULL after the last. */
pl_json pl_json_first(const pl_json *at);
void pl_json_next(pl_json *item);

planc_status pl_json_int(const pl_json *at, int64_t min, int64_t max, int64_t *out);
planc_status pl_json_bool(const pl_json *at, bool *out);
/* A string that is not empty; it belongs to the tree. */
planc_status pl_json_string(const pl_json *at, const char **out);
/* A string that may be such a name. */
planc_status pl_json_name(const pl_json *at, const char **out);
/* A hash as 16 hexadecimal digits. */
planc_status pl_json_hash(const pl_json *at, uint64_t *out);

/* An integer member of a struct. */
typedef struct pl_json_field {
  const char *name;
  size_t offset; /* of an int64_t */
  int64_t min, max;
} pl_json_field;
enum { PL_JSON_MAX_FIELDS = 16 };
/* Reads an object that consists of these integers into *out_struct. */
planc_status pl_json_struct(const pl_json *at, const pl_json_field *fields, int32_t n_fields, void *out_struct);
/* The same, where those from the n_required-th on may be absent; what is absent is left as it was. */
planc_status pl_json_struct_partly(const pl_json *at, const pl_json_field *fields, int32_t n_required, int32_t n_fields,
                                   void *out_struct);

#endif
