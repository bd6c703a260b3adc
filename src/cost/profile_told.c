/* What a profile tells and is not planned with: its form is checked (profile_sections.h). */
#include "cost/json.h"
#include "cost/profile_sections.h"

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof *(array)))

static planc_status check_link(const pl_json *at);
static planc_status check_storage(const pl_json *at);

planc_status pl_check_links(const pl_json *at) {
  enum { H2D, D2H, STORAGE, N };
  static const pl_json_key keys[N] = {{"h2d", false}, {"d2h", false}, {"storage", true}};
  pl_json members[N];
  PLANC_TRY(pl_json_members(at, keys, N, members));
  PLANC_TRY(check_link(&members[H2D]));
  PLANC_TRY(check_link(&members[D2H]));
  return members[STORAGE].value ? check_storage(&members[STORAGE]) : NULL;
}

/* Algorithms that the device did not run. */
planc_status pl_check_refused(const pl_json *at) {
  enum { OP, ALGORITHM, BATCH, REASON, N };
  static const pl_json_key keys[N] = {{"op", false}, {"algorithm", false}, {"batch", false}, {"reason", false}};
  int32_t count;
  PLANC_TRY(pl_json_array(at, &count));
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item)) {
    pl_json members[N];
    const char *text;
    int64_t batch;
    PLANC_TRY(pl_json_members(&item, keys, N, members));
    PLANC_TRY(pl_json_string(&members[OP], &text));
    PLANC_TRY(pl_json_string(&members[ALGORITHM], &text));
    PLANC_TRY(pl_json_int(&members[BATCH], 1, PL_JSON_MAX, &batch));
    PLANC_TRY(pl_json_string(&members[REASON], &text));
  }
  return NULL;
}

/* Transfers by size as they were measured; the device's links are the lines through them. */
static planc_status check_transfers(const pl_json *at) {
  typedef struct transfer {
    int64_t bytes, ns;
  } transfer;
  static const pl_json_field fields[] = {
      {"bytes", offsetof(transfer, bytes), 1, PL_JSON_MAX},
      {"ns", offsetof(transfer, ns), 0, PL_JSON_MAX},
  };
  int32_t count;
  PLANC_TRY(pl_json_array(at, &count));
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item)) {
    transfer unused;
    PLANC_TRY(pl_json_struct(&item, fields, COUNT(fields), &unused));
  }
  return NULL;
}

static planc_status check_link(const pl_json *at) {
  enum { ALONE, BOTH, LOADED, N };
  static const pl_json_key keys[N] = {{"alone", false}, {"both_ways", false}, {"under_load", false}};
  pl_json members[N];
  PLANC_TRY(pl_json_members(at, keys, N, members));
  for (int32_t m = 0; m < N; m++) PLANC_TRY(check_transfers(&members[m]));
  return NULL;
}

static planc_status check_storage(const pl_json *at) {
  static const pl_json_key keys[] = {{"write", false}, {"read", false}};
  pl_json members[COUNT(keys)];
  PLANC_TRY(pl_json_members(at, keys, COUNT(keys), members));
  PLANC_TRY(check_transfers(&members[0]));
  return check_transfers(&members[1]);
}
