/* Pieces that processes left which came to their end while they tried something (profile_file.h): the device was lost,
 * or they were killed, by a signal of their own or by someone who found them hanging. */
#include <stdlib.h>
#include <string.h>

#include "runtime/profile/profile_file.h"
#include "runtime/profile/profile_json.h"
#include "util/json_tree.h"

cJSON *rt_piece_of_trial(int64_t load_ppm, int64_t batch, const rt_trial *trial) {
  cJSON *piece = cJSON_CreateObject();
  pl_json_add_string(piece, "piece", "trying");
  pl_json_add_int(piece, "load_ppm", load_ppm);
  pl_json_add_int(piece, "batch", batch);
  pl_json_add_int(piece, "pass", trial->pass);
  if (!trial->op) return piece;
  pl_json_add_string(piece, "op", trial->op);
  pl_json_add_string(piece, "algorithm", trial->algorithm);
  if (trial->only) pl_json_add_bool(piece, "only", true);
  return piece;
}

bool rt_piece_is_trial(const cJSON *piece) {
  return strcmp(rt_get_string(piece, "piece"), "trying") == 0;
}

bool rt_trial_has_algorithm(const cJSON *trial) {
  return rt_piece_is_trial(trial) && *rt_get_string(trial, "algorithm") &&
         !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(trial, "only"));
}

cJSON *rt_trial_refusal(const cJSON *trial) {
  const char *reason = rt_get_string(trial, "reason");
  cJSON *refusal = cJSON_CreateObject();
  pl_json_add_string(refusal, "op", rt_get_string(trial, "op"));
  pl_json_add_string(refusal, "algorithm", rt_get_string(trial, "algorithm"));
  pl_json_add_int(refusal, "batch", rt_get_int(trial, "batch"));
  pl_json_add_string(refusal, "reason", *reason ? reason : "planrun came to its end while it ran");
  return refusal;
}

static bool is_of_algorithm(const cJSON *piece, const char *algorithm) {
  return rt_trial_has_algorithm(piece) && strcmp(rt_get_string(piece, "algorithm"), algorithm) == 0;
}

bool rt_pieces_ended_at(const cJSON *pieces, const char *op, const char *algorithm) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    if (is_of_algorithm(piece, algorithm) && strcmp(rt_get_string(piece, "op"), op) == 0) return true;
  }
  return false;
}

bool rt_pieces_leave_out(const cJSON *pieces, const char *op, const char *algorithm) {
  const cJSON *piece;
  const char *before = NULL;
  cJSON_ArrayForEach(piece, pieces) {
    if (!is_of_algorithm(piece, algorithm)) continue;
    const char *of = rt_get_string(piece, "op");
    if (strcmp(of, op) == 0 || (before && strcmp(of, before) != 0)) return true;
    before = of;
  }
  return false;
}

/* One that named an algorithm is explained by it. */
bool rt_pieces_ended_in(const cJSON *pieces, int64_t load_ppm, int64_t batch, int32_t pass) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    if (rt_piece_is_trial(piece) && !rt_trial_has_algorithm(piece) && rt_get_int(piece, "load_ppm") == load_ppm &&
        rt_get_int(piece, "batch") == batch && rt_get_int(piece, "pass") == pass)
      return true;
  }
  return false;
}
