/* What the device takes beside the arena (profile_taken.h).
 *
 * CUDA loads a kernel's code when it first runs, and keeps it. So the growth while an algorithm's calls are prepared,
 * which runs each once, is its code; summed over all its ops it covers any of them. Two things are shared, so that one
 * algorithm pays for what others need as well: the rest of a block, in which code is laid out, and kernels, libraries
 * and stacks that several use. For the former every algorithm is charged with a block more. The latter is counted with
 * the algorithm that came first; a plan that does not run that one would lack it, and so the most that any one takes is
 * reserved in every plan. */
#include "runtime/profile/profile_taken.h"

#include "util/json_tree.h"
#include "util/math.h"

enum {
  BLOCK = 2 << 20,          /* CUDA's unit of device memory */
  STEP = 64 << 20,          /* to which is rounded up */
  MEMORY_PER_TABLES = 4096, /* page tables: 16 bytes for 64 KiB at most */
};

void rt_piece_add_taken(cJSON *piece, const rt_memory_taken *taken) {
  if (!taken) return;
  pl_json_add_int(piece, "taken_bytes", taken->beside_bytes);
  cJSON *code = pl_json_add_object(piece, "code");
  for (int64_t c = 0; c < taken->code.len; c++)
    pl_json_add_int(code, taken->code.data[c].algorithm, taken->code.data[c].bytes);
}

static double number_in(const cJSON *item) {
  return cJSON_IsNumber(item) && item->valuedouble > 0 ? item->valuedouble : 0;
}

static void add_to(cJSON *object, const char *key, double bytes) {
  cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (item)
    cJSON_SetNumberValue(item, item->valuedouble + bytes);
  else
    pl_json_add_real(object, key, bytes);
}

/* By algorithm, over all pieces: none counts what the pieces before it have loaded, in whatever sitting. */
static cJSON *sum_code(const cJSON *pieces) {
  cJSON *sum = cJSON_CreateObject();
  const cJSON *piece, *size;
  cJSON_ArrayForEach(piece, pieces) {
    cJSON_ArrayForEach(size, cJSON_GetObjectItemCaseSensitive(piece, "code")) {
      add_to(sum, size->string, number_in(size));
    }
  }
  return sum;
}

static int64_t largest_in(const cJSON *code) {
  int64_t largest = 0;
  const cJSON *size;
  cJSON_ArrayForEach(size, code) {
    if (number_in(size) > (double)largest) largest = (int64_t)number_in(size);
  }
  return largest;
}

bool rt_pieces_have_code(const cJSON *pieces) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    if (largest_in(cJSON_GetObjectItemCaseSensitive(piece, "code")) > 0) return true;
  }
  return false;
}

/* With room for what a run has beyond a measurement: streams, events, a captured graph. */
planc_status rt_profile_reserved(const cJSON *pieces, int64_t memory_bytes, int64_t *out) {
  int64_t most = 0;
  *out = 0;
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    double taken = number_in(cJSON_GetObjectItemCaseSensitive(piece, "taken_bytes"));
    if (taken > (double)most) most = (int64_t)taken;
  }
  if (most == 0) return NULL;
  cJSON *code = sum_code(pieces);
  bool whole = pl_json_is_whole(code);
  most += largest_in(code) + memory_bytes / MEMORY_PER_TABLES;
  cJSON_Delete(code);
  *out = pl_align_up(most, STEP) + STEP;
  return whole ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "profile");
}

void rt_profile_add_code(cJSON *root, const cJSON *pieces) {
  cJSON *code = sum_code(pieces), *size;
  if (pl_json_is_whole(code) && largest_in(code) == 0) {
    cJSON_Delete(code);
    return;
  }
  cJSON_ArrayForEach(size, code) cJSON_SetNumberValue(size, size->valuedouble + BLOCK);
  pl_json_add(root, "code", code);
  pl_json_add_string(cJSON_GetObjectItemCaseSensitive(root, "origin"), "code",
                     "measured by planrun profile: what the device took as each algorithm's calls first ran, and a "
                     "block");
}
