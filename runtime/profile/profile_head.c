/* What the pieces of a profile belong to (profile_head.h). */
#include "runtime/profile/profile_head.h"

#include <stdio.h>
#include <string.h>

#include "util/json_tree.h"
#include "util/real.h"

static void add_list(cJSON *head, const char *key, int32_t n, const int64_t *values) {
  cJSON *list = pl_json_add_array(head, key);
  for (int32_t i = 0; i < n; i++) pl_json_add_int(list, NULL, values[i]);
}

cJSON *rt_profile_head_of(const rt_profile_ways *ways) {
  cJSON *head = cJSON_CreateObject();
  pl_json_add_string(head, "planrun", "profile/2");
  rt_add_graph_hash(head, ways->graph);
  pl_json_add_string(head, "machine", ways->machine);
  add_list(head, "batches", ways->n_batches, ways->batches);
  add_list(head, "loads", ways->n_loads, ways->loads);
  pl_json_add_int(head, "repetitions", ways->repetitions);
  pl_json_add_int(head, "most", ways->most);
  pl_json_add_int(head, "warm_up_ms", ways->warm_up_ms);
  pl_json_add_int(head, "link_bytes_per_second", ways->link_bytes_per_s);
  if (ways->storage) pl_json_add_string(head, "storage", ways->storage);
  if (ways->deterministic) pl_json_add_bool(head, "deterministic", true);
  return head;
}

/* What each member is called where the two differ. */
static const struct {
  const char *key, *called;
} members[] = {
    {"planrun", "format"},
    {"graph_hash", "graph"},
    {"machine", "machine"},
    {"batches", "--batches"},
    {"loads", "--loads"},
    {"repetitions", "--repetitions"},
    {"most", "--most"},
    {"warm_up_ms", "--warm-up"},
    {"link_bytes_per_second", "--link"},
    {"storage", "--storage"},
    {"deterministic", "--deterministic"},
};

static planc_status refuse(size_t member, const cJSON *found, const cJSON *wanted);

planc_status rt_profile_head_check(const char *line, const cJSON *head) {
  cJSON *left;
  planc_status status = pl_json_tree(line, strlen(line), NULL, &left);
  if (planc_status_code(status) == PLANC_OUT_OF_MEMORY) return status;
  planc_status_free(status);
  status = NULL;
  for (size_t m = 0; !status && m < sizeof members / sizeof *members; m++) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(left, members[m].key);
    const cJSON *wanted = cJSON_GetObjectItemCaseSensitive(head, members[m].key);
    if (m == 0 && !cJSON_IsString(found))
      status = planc_error(PLANC_STALE, "is no part of a profile; remove it to start anew");
    else if ((found || wanted) && !cJSON_Compare(found, wanted, true))
      status = refuse(m, found, wanted);
  }
  cJSON_Delete(left);
  return status;
}

static void print_list(const cJSON *list, char *out, size_t room) {
  const cJSON *value;
  size_t length = 0;
  out[0] = '\0';
  cJSON_ArrayForEach(value, list) {
    char number[PL_NUMBER_TEXT];
    if (!cJSON_IsNumber(value) || length >= room) continue;
    length += (size_t)snprintf(out + length, room - length, "%s%s", length > 0 ? "," : "",
                               pl_real_rounded(value->valuedouble, 15, number));
  }
}

static void print_value(const cJSON *value, char *out, size_t room) {
  char number[PL_NUMBER_TEXT];
  if (!value)
    snprintf(out, room, "not given");
  else if (cJSON_IsString(value))
    snprintf(out, room, "%s", value->valuestring);
  else if (cJSON_IsNumber(value))
    snprintf(out, room, "%s", pl_real_rounded(value->valuedouble, 15, number));
  else if (cJSON_IsArray(value))
    print_list(value, out, room);
  else
    snprintf(out, room, "given");
}

static planc_status refuse(size_t member, const cJSON *found, const cJSON *wanted) {
  enum { ROOM = 600 };
  char was[ROOM], is[ROOM];
  print_value(found, was, sizeof was);
  print_value(wanted, is, sizeof is);
  return planc_error(
      PLANC_STALE, "was measured with another %s, which is %s there and %s here; %sremove it to start anew",
      members[member].called, was, is, members[member].called[0] == '-' ? "give the same to go on, or " : "");
}
