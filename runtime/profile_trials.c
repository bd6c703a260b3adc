/* Pieces that processes left which came to their end while they tried something (profile_file.h): the device was lost,
 * or they were killed, by a signal of their own or by someone who found them hanging. */
#include <stdlib.h>
#include <string.h>

#include "runtime/profile_file.h"
#include "runtime/profile_json.h"
#include "util/json_tree.h"

cJSON *planrt_piece_of_trial(int64_t load_ppm, int64_t batch, const planrt_trial *trial) {
  cJSON *piece = cJSON_CreateObject();
  planc_json_add_string(piece, "piece", "trying");
  planc_json_add_int(piece, "load_ppm", load_ppm);
  planc_json_add_int(piece, "batch", batch);
  planc_json_add_int(piece, "pass", trial->pass);
  if (!trial->op) return piece;
  planc_json_add_string(piece, "op", trial->op);
  planc_json_add_string(piece, "algorithm", trial->algorithm);
  if (trial->only) planc_json_add_bool(piece, "only", true);
  return piece;
}

bool planrt_piece_is_trial(const cJSON *piece) {
  return strcmp(get_string(piece, "piece"), "trying") == 0;
}

bool planrt_trial_has_algorithm(const cJSON *trial) {
  return planrt_piece_is_trial(trial) && *get_string(trial, "algorithm") &&
         !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(trial, "only"));
}

cJSON *planrt_trial_refusal(const cJSON *trial) {
  const char *reason = get_string(trial, "reason");
  cJSON *refusal = cJSON_CreateObject();
  planc_json_add_string(refusal, "op", get_string(trial, "op"));
  planc_json_add_string(refusal, "algorithm", get_string(trial, "algorithm"));
  planc_json_add_int(refusal, "batch", get_int(trial, "batch"));
  planc_json_add_string(refusal, "reason", *reason ? reason : "planrun came to its end while it ran");
  return refusal;
}

static bool is_of_algorithm(const cJSON *piece, const char *algorithm) {
  return planrt_trial_has_algorithm(piece) && strcmp(get_string(piece, "algorithm"), algorithm) == 0;
}

bool planrt_pieces_ended_at(const cJSON *pieces, const char *op, const char *algorithm) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    if (is_of_algorithm(piece, algorithm) && strcmp(get_string(piece, "op"), op) == 0) return true;
  }
  return false;
}

bool planrt_pieces_leave_out(const cJSON *pieces, const char *op, const char *algorithm) {
  const cJSON *piece;
  const char *before = NULL;
  cJSON_ArrayForEach(piece, pieces) {
    if (!is_of_algorithm(piece, algorithm)) continue;
    const char *of = get_string(piece, "op");
    if (strcmp(of, op) == 0 || (before && strcmp(of, before) != 0)) return true;
    before = of;
  }
  return false;
}

/* One that named an algorithm is explained by it. */
bool planrt_pieces_ended_in(const cJSON *pieces, int64_t load_ppm, int64_t batch, int32_t pass) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    if (planrt_piece_is_trial(piece) && !planrt_trial_has_algorithm(piece) && get_int(piece, "load_ppm") == load_ppm &&
        get_int(piece, "batch") == batch && get_int(piece, "pass") == pass)
      return true;
  }
  return false;
}
