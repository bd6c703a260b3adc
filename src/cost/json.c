/* Strict access to a JSON tree (json.h). cJSON bounds the nesting depth itself. */
#include "cost/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/json_tree.h"
#include "util/label.h"

static int64_t line_of(const char *text, const char *position);
static bool is_space(char c);

planc_status pl_json_parse(const char *text, size_t length, const char *path, cJSON **out) {
  const char *end = text;
  planc_status status = pl_json_tree(text, length, &end, out);
  if (planc_status_code(status) == PLANC_OUT_OF_MEMORY) return planc_context(status, "%s", path);
  PLANC_TRY(planc_context(status, "%s:%" PRId64, path, line_of(text, end <= text + length ? end : text + length)));
  while (end < text + length && is_space(*end)) end++;
  if (end == text + length) return NULL;
  cJSON_Delete(*out);
  *out = NULL;
  return planc_error(PLANC_BAD_INPUT, "%s:%" PRId64 ": text after the end of the JSON value", path, line_of(text, end));
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int64_t line_of(const char *text, const char *position) {
  int64_t line = 1;
  for (const char *c = text; c < position; c++) line += *c == '\n';
  return line;
}

static const char *plain_string_end(const char *c, const char *end);
static const char *number_end(const char *c, const char *end);
static bool is_plain_integer(const char *c, const char *end);

planc_status pl_json_check_plain(const char *text, size_t length, const char *path) {
  const char *end = text + length;
  for (const char *c = text; c < end; c++) {
    if (*c == '"') {
      const char *close = plain_string_end(c + 1, end);
      if (!close) {
        return planc_error(PLANC_BAD_INPUT, "%s:%" PRId64 ": control character in a string", path, line_of(text, c));
      }
      c = close;
    } else if (*c == '-' || (*c >= '0' && *c <= '9')) {
      const char *stop = number_end(c, end);
      if (!is_plain_integer(c, stop)) {
        return planc_error(PLANC_BAD_INPUT, "%s:%" PRId64 ": %.*s is not a plain integer", path, line_of(text, c),
                           stop - c > 32 ? 32 : (int)(stop - c), c);
      }
      c = stop - 1;
    }
  }
  return NULL;
}

/* The end of the string that opens before `c`, or NULL when it holds a raw control character or an escaped NUL. */
static const char *plain_string_end(const char *c, const char *end) {
  for (; c < end && *c != '"'; c++) {
    if ((unsigned char)*c < 0x20) return NULL;
    if (*c != '\\') continue;
    if (end - c >= 6 && memcmp(c, "\\u0000", 6) == 0) return NULL;
    c++;
  }
  return c;
}

static const char *number_end(const char *c, const char *end) {
  while (c < end && (*c == '-' || *c == '+' || *c == '.' || *c == 'e' || *c == 'E' || (*c >= '0' && *c <= '9'))) c++;
  return c;
}

static bool is_plain_integer(const char *c, const char *end) {
  if (c < end && *c == '-') c++;
  if (c == end || (*c == '0' && end - c > 1)) return false;
  while (c < end && *c >= '0' && *c <= '9') c++;
  return c == end;
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

enum { PLACE_BYTES = 256, SHOWN_NAME_BYTES = 64 };

typedef struct json_place {
  char text[PLACE_BYTES];
  size_t length;
} json_place;

static void append(json_place *to, const char *text, size_t limit) {
  for (size_t i = 0; text[i] && i < limit && to->length + 1 < sizeof to->text; i++) {
    to->text[to->length++] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
  }
  to->text[to->length] = '\0';
}

static void append_place(json_place *to, const pl_json *at) {
  if (!at->parent) return;
  append_place(to, at->parent);
  if (at->name) {
    if (to->length) append(to, ".", 1);
    append(to, at->name, SHOWN_NAME_BYTES);
  } else {
    char index[16];
    snprintf(index, sizeof index, "[%" PRId32 "]", at->index);
    append(to, index, sizeof index);
  }
}

planc_status pl_json_error(const pl_json *at, const char *format, ...) {
  json_place where = {{0}, 0};
  append_place(&where, at);
  const pl_json *root = at;
  while (root->parent) root = root->parent;
  char what[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return planc_error(PLANC_BAD_INPUT, "%s: %s%s%s", root->name, where.text, where.length ? ": " : "", what);
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

pl_json pl_json_first(const pl_json *at) {
  const cJSON *child = at->value->child;
  return (pl_json){.value = child, .parent = at, .name = child ? child->string : NULL, .index = 0};
}

void pl_json_next(pl_json *item) {
  item->value = item->value->next;
  item->name = item->value ? item->value->string : NULL;
  item->index++;
}

planc_status pl_json_members(const pl_json *at, const pl_json_key *keys, int32_t n_keys, pl_json *out) {
  if (!cJSON_IsObject(at->value)) return pl_json_error(at, "must be an object");
  for (int32_t k = 0; k < n_keys; k++) out[k] = (pl_json){.value = NULL, .parent = at, .name = keys[k].name};
  for (pl_json member = pl_json_first(at); member.value; pl_json_next(&member)) {
    int32_t k = 0;
    while (k < n_keys && strcmp(keys[k].name, member.name) != 0) k++;
    if (k == n_keys) return pl_json_error(&member, "unknown key");
    if (out[k].value) return pl_json_error(&member, "the key stands twice");
    out[k].value = member.value;
  }
  for (int32_t k = 0; k < n_keys; k++) {
    if (!out[k].value && !keys[k].optional) return pl_json_error(&out[k], "is missing");
  }
  return NULL;
}

planc_status pl_json_array(const pl_json *at, int32_t *out_count) {
  if (!cJSON_IsArray(at->value)) return pl_json_error(at, "must be an array");
  *out_count = cJSON_GetArraySize(at->value);
  return *out_count > 0 ? NULL : pl_json_error(at, "must not be empty");
}

planc_status pl_json_int(const pl_json *at, int64_t min, int64_t max, int64_t *out) {
  if (!at->value || !cJSON_IsNumber(at->value)) return pl_json_error(at, "must be an integer");
  double number = at->value->valuedouble;
  if (!(number >= -(double)PL_JSON_MAX && number <= (double)PL_JSON_MAX)) {
    return pl_json_error(at, "is beyond 2^53");
  }
  *out = (int64_t)number;
  if ((double)*out != number) return pl_json_error(at, "must be an integer");
  if (*out < min) return pl_json_error(at, "is %" PRId64 ", must be at least %" PRId64, *out, min);
  if (*out > max) return pl_json_error(at, "is %" PRId64 ", must be at most %" PRId64, *out, max);
  return NULL;
}

planc_status pl_json_bool(const pl_json *at, bool *out) {
  if (!cJSON_IsBool(at->value)) return pl_json_error(at, "must be true or false");
  *out = cJSON_IsTrue(at->value);
  return NULL;
}

planc_status pl_json_string(const pl_json *at, const char **out) {
  if (!cJSON_IsString(at->value)) return pl_json_error(at, "must be a string");
  *out = at->value->valuestring;
  return **out ? NULL : pl_json_error(at, "must not be empty");
}

planc_status pl_json_name(const pl_json *at, const char **out) {
  PLANC_TRY(pl_json_string(at, out));
  const char *fault = pl_label_fault(*out);
  return fault ? pl_json_error(at, "%s", fault) : NULL;
}

planc_status pl_json_hash(const pl_json *at, uint64_t *out) {
  enum { DIGITS = 16 };
  const char *text = "";
  PLANC_TRY(pl_json_string(at, &text));
  if (strlen(text) != DIGITS || strspn(text, "0123456789abcdef") != DIGITS)
    return pl_json_error(at, "must be 16 hexadecimal digits");
  *out = strtoull(text, NULL, DIGITS);
  return NULL;
}

planc_status pl_json_struct(const pl_json *at, const pl_json_field *fields, int32_t n_fields, void *out_struct) {
  return pl_json_struct_partly(at, fields, n_fields, n_fields, out_struct);
}

planc_status pl_json_struct_partly(const pl_json *at, const pl_json_field *fields, int32_t n_required, int32_t n_fields,
                                   void *out_struct) {
  pl_json_key keys[PL_JSON_MAX_FIELDS] = {0};
  pl_json members[PL_JSON_MAX_FIELDS] = {0};
  if (n_fields > PL_JSON_MAX_FIELDS) return planc_error(PLANC_INTERNAL, "too many fields in a JSON struct");
  for (int32_t f = 0; f < n_fields; f++) keys[f] = (pl_json_key){fields[f].name, f >= n_required};
  PLANC_TRY(pl_json_members(at, keys, n_fields, members));
  for (int32_t f = 0; f < n_fields; f++) {
    int64_t value;
    if (!members[f].value) continue;
    PLANC_TRY(pl_json_int(&members[f], fields[f].min, fields[f].max, &value));
    memcpy((char *)out_struct + fields[f].offset, &value, sizeof value);
  }
  return NULL;
}
