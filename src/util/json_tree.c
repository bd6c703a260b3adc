/* Trees of JSON (json_tree.h): building, printing, reading. */
#include "util/json_tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/c_locale.h"

/* --- Building ----------------------------------------------------------------------------------------------------- */

/* cJSON's own word for no value at all. */
static void spoil(cJSON *item) {
  if (item) item->type = cJSON_Invalid;
}

cJSON *pl_json_add(cJSON *to, const char *key, cJSON *item) {
  bool added = to && item && (key ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item));
  if (added) return item;
  spoil(to);
  cJSON_Delete(item);
  return NULL;
}

cJSON *pl_json_add_object(cJSON *to, const char *key) {
  return pl_json_add(to, key, cJSON_CreateObject());
}

cJSON *pl_json_add_array(cJSON *to, const char *key) {
  return pl_json_add(to, key, cJSON_CreateArray());
}

cJSON *pl_json_add_int(cJSON *to, const char *key, int64_t value) {
  return pl_json_add(to, key, cJSON_CreateNumber((double)value));
}

cJSON *pl_json_add_real(cJSON *to, const char *key, double value) {
  return pl_json_add(to, key, cJSON_CreateNumber(value));
}

cJSON *pl_json_add_string(cJSON *to, const char *key, const char *value) {
  return pl_json_add(to, key, cJSON_CreateString(value));
}

cJSON *pl_json_add_bool(cJSON *to, const char *key, bool value) {
  return pl_json_add(to, key, cJSON_CreateBool(value));
}

cJSON *pl_json_add_null(cJSON *to, const char *key) {
  return pl_json_add(to, key, cJSON_CreateNull());
}

cJSON *pl_json_add_known(cJSON *to, const char *key, bool known, int64_t value) {
  return known ? pl_json_add_int(to, key, value) : pl_json_add_null(to, key);
}

cJSON *pl_json_add_finite(cJSON *to, const char *key, double value) {
  return isfinite(value) ? pl_json_add_real(to, key, value) : pl_json_add_null(to, key);
}

bool pl_json_is_whole(const cJSON *tree) {
  if (!tree || cJSON_IsInvalid(tree)) return false;
  for (const cJSON *child = tree->child; child; child = child->next)
    if (!pl_json_is_whole(child)) return false;
  return true;
}

/* --- Printing ----------------------------------------------------------------------------------------------------- */

static void print_value(pl_emit *emit, const cJSON *item, pl_json_layout layout, int32_t depth);
static void print_object(pl_emit *emit, const cJSON *object, pl_json_layout layout, int32_t depth);
static void print_array(pl_emit *emit, const cJSON *array, pl_json_layout layout, int32_t depth);
static void print_number(pl_emit *emit, double value);
static void print_margin(pl_emit *emit, int32_t depth);

planc_status pl_json_print(const cJSON *tree, pl_json_layout layout, char **out_text, size_t *out_length) {
  pl_emit emit = {0};
  print_value(&emit, tree, layout, 0);
  if (layout == PL_JSON_LINES) EMIT(&emit, "\n");
  return pl_emit_take(&emit, out_text, out_length);
}

static void print_value(pl_emit *emit, const cJSON *item, pl_json_layout layout, int32_t depth) {
  if (cJSON_IsObject(item)) {
    print_object(emit, item, layout, depth);
  } else if (cJSON_IsArray(item)) {
    print_array(emit, item, layout, depth);
  } else if (cJSON_IsNumber(item)) {
    print_number(emit, item->valuedouble);
  } else if (cJSON_IsString(item)) {
    pl_emit_string(emit, item->valuestring);
  } else if (cJSON_IsBool(item)) {
    pl_emit_text(emit, cJSON_IsTrue(item) ? "true" : "false");
  } else if (cJSON_IsNull(item)) {
    EMIT(emit, "null");
  } else {
    pl_emit_fail(emit, planc_error(PLANC_OUT_OF_MEMORY, "out of memory"));
  }
}

static void print_object(pl_emit *emit, const cJSON *object, pl_json_layout layout, int32_t depth) {
  EMIT(emit, "{");
  for (const cJSON *member = object->child; member; member = member->next) {
    if (layout == PL_JSON_LINES) print_margin(emit, depth + 1);
    pl_emit_string(emit, member->string);
    pl_emit_text(emit, layout == PL_JSON_LINES ? ":\t" : ":");
    print_value(emit, member, layout, depth + 1);
    if (member->next) EMIT(emit, ",");
  }
  if (layout == PL_JSON_LINES && object->child) print_margin(emit, depth);
  EMIT(emit, "}");
}

static void print_array(pl_emit *emit, const cJSON *array, pl_json_layout layout, int32_t depth) {
  EMIT(emit, "[");
  for (const cJSON *item = array->child; item; item = item->next) {
    print_value(emit, item, layout, depth + 1);
    if (item->next) pl_emit_text(emit, layout == PL_JSON_LINES ? ", " : ",");
  }
  EMIT(emit, "]");
}

static void print_number(pl_emit *emit, double value) {
  static const double exact = 9007199254740992.0; /* 2^53 */
  if (fabs(value) <= exact && value == trunc(value)) {
    pl_emit_int(emit, (int64_t)value);
  } else {
    pl_emit_real(emit, value);
  }
}

static void print_margin(pl_emit *emit, int32_t depth) {
  EMIT(emit, "\n");
  for (int32_t i = 0; i < depth; i++) EMIT(emit, "\t");
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* cJSON does not tell a fault in the text from a want of memory; malloc does. */
planc_status pl_json_tree(const char *text, size_t length, const char **out_end, cJSON **out) {
  pl_c_locale locale = pl_c_locale_enter();
  errno = 0;
  *out = cJSON_ParseWithLengthOpts(text, length, out_end, false);
  bool no_memory = errno == ENOMEM;
  pl_c_locale_leave(locale);
  if (*out) return NULL;
  return no_memory ? planc_error(PLANC_OUT_OF_MEMORY, "out of memory") : planc_error(PLANC_BAD_INPUT, "not valid JSON");
}
