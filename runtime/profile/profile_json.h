/* Reading what this program has written itself: members that are not there are 0 and "". */
#ifndef PLANRT_PROFILE_JSON_H
#define PLANRT_PROFILE_JSON_H

#include <cjson/cJSON.h>
#include <stdint.h>

static inline int64_t rt_get_int(const cJSON *object, const char *key) {
  const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsNumber(value) && value->valuedouble >= 0 && value->valuedouble < 9e15 ? (int64_t)value->valuedouble
                                                                                       : 0;
}

static inline const char *rt_get_string(const cJSON *object, const char *key) {
  const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  return value ? value : "";
}

#endif
