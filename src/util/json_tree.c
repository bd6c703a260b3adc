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

cJSON *planc_json_add(cJSON *to, const char *key, cJSON *item) {
  bool added = to && item && (key ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item));
  if (added) return item;
  spoil(to);
  cJSON_Delete(item);
  return NULL;
}

cJSON *planc_json_add_object(cJSON *to, const char *key) {
  return planc_json_add(to, key, cJSON_CreateObject());
}

cJSON *planc_json_add_array(cJSON *to, const char *key) {
  return planc_json_add(to, key, cJSON_CreateArray());
}

cJSON *planc_json_add_int(cJSON *to, const char *key, int64_t value) {
  return planc_json_add(to, key, cJSON_CreateNumber((double)value));
}

cJSON *planc_json_add_real(cJSON *to, const char *key, double value) {
  return planc_json_add(to, key, cJSON_CreateNumber(value));
}

cJSON *planc_json_add_string(cJSON *to, const char *key, const char *value) {
  return planc_json_add(to, key, cJSON_CreateString(value));
}

cJSON *planc_json_add_bool(cJSON *to, const char *key, bool value) {
  return planc_json_add(to, key, cJSON_CreateBool(value));
}

cJSON *planc_json_add_null(cJSON *to, const char *key) {
  return planc_json_add(to, key, cJSON_CreateNull());
}

cJSON *planc_json_add_known(cJSON *to, const char *key, bool known, int64_t value) {
  return known ? planc_json_add_int(to, key, value) : planc_json_add_null(to, key);
}

cJSON *planc_json_add_finite(cJSON *to, const char *key, double value) {
  return isfinite(value) ? planc_json_add_real(to, key, value) : planc_json_add_null(to, key);
}

bool planc_json_is_whole(const cJSON *tree) {
  if (!tree || cJSON_IsInvalid(tree)) return false;
  for (const cJSON *child = tree->child; child; child = child->next)
    if (!planc_json_is_whole(child)) return false;
  return true;
}

/* --- Printing ----------------------------------------------------------------------------------------------------- */

static void print_number(planc_emit *emit, double value) {
  static const double exact = 9007199254740992.0; /* 2^53 */
  if (fabs(value) <= exact && value == trunc(value)) {
    planc_emit_int(emit, (int64_t)value);
  } else {
    planc_emit_real(emit, value);
  }
}

static void print_value(planc_emit *emit, const cJSON *item, planc_json_layout layout, int32_t depth);

static void print_margin(planc_emit *emit, int32_t depth) {
  EMIT(emit, "\n");
  for (int32_t i = 0; i < depth; i++) EMIT(emit, "\t");
}

static void print_object(planc_emit *emit, const cJSON *object, planc_json_layout layout, int32_t depth) {
  EMIT(emit, "{");
  for (const cJSON *member = object->child; member; member = member->next) {
    if (layout == PLANC_JSON_LINES) print_margin(emit, depth + 1);
    planc_emit_string(emit, member->string);
    planc_emit_text(emit, layout == PLANC_JSON_LINES ? ":\t" : ":");
    print_value(emit, member, layout, depth + 1);
    if (member->next) EMIT(emit, ",");
  }
  if (layout == PLANC_JSON_LINES && object->child) print_margin(emit, depth);
  EMIT(emit, "}");
}

static void print_array(planc_emit *emit, const cJSON *array, planc_json_layout layout, int32_t depth) {
  EMIT(emit, "[");
  for (const cJSON *item = array->child; item; item = item->next) {
    print_value(emit, item, layout, depth + 1);
    if (item->next) planc_emit_text(emit, layout == PLANC_JSON_LINES ? ", " : ",");
  }
  EMIT(emit, "]");
}

static void print_value(planc_emit *emit, const cJSON *item, planc_json_layout layout, int32_t depth) {
  if (cJSON_IsObject(item)) {
    print_object(emit, item, layout, depth);
  } else if (cJSON_IsArray(item)) {
    print_array(emit, item, layout, depth);
  } else if (cJSON_IsNumber(item)) {
    print_number(emit, item->valuedouble);
  } else if (cJSON_IsString(item)) {
    planc_emit_string(emit, item->valuestring);
  } else if (cJSON_IsBool(item)) {
    planc_emit_text(emit, cJSON_IsTrue(item) ? "true" : "false");
  } else if (cJSON_IsNull(item)) {
    EMIT(emit, "null");
  } else {
    planc_emit_fail(emit, planc_error(PLANC_OUT_OF_MEMORY, "out of memory"));
  }
}

planc_status planc_json_print(const cJSON *tree, planc_json_layout layout, char **out_text, size_t *out_length) {
  planc_emit emit = {0};
  print_value(&emit, tree, layout, 0);
  if (layout == PLANC_JSON_LINES) EMIT(&emit, "\n");
  return planc_emit_take(&emit, out_text, out_length);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* cJSON does not tell a fault in the text from a want of memory; malloc does. */
planc_status planc_json_tree(const char *text, size_t length, const char **out_end, cJSON **out) {
  planc_c_locale locale = planc_c_locale_enter();
  errno = 0;
  *out = cJSON_ParseWithLengthOpts(text, length, out_end, false);
  bool no_memory = errno == ENOMEM;
  planc_c_locale_leave(locale);
  if (*out) return NULL;
  return no_memory ? planc_error(PLANC_OUT_OF_MEMORY, "out of memory") : planc_error(PLANC_BAD_INPUT, "not valid JSON");
}
