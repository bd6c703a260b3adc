#include "tests/support/toy.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit.h"
#include "util/file.h"

const char toy_graph[] =
    "planc-graph: 1\n"
    "name: small\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  w: param f32[64,32]\n"
    "  y: f32[N,64]\n"
    "  z: f32[N,64]\n"
    "  u: f32[N,64]\n"
    "ops:\n"
    "  - {op: fc, type: linear, in: [x, w], out: [y]}\n"
    "  - {op: act, type: relu, in: [y], out: [z]}\n"
    "  - {op: odd, type: odd.one, in: [z], out: [u], flops: 3000+7N, traffic: 10}\n"
    "  - {op: conv1, type: odd.conv, in: [u], out: [u]}\n"
    "  - {op: step1, type: odd.step, phase: optimizer, in: [w], out: [w], traffic: 100}\n";

planc_profile *profile_of(const char *path) {
  planc_profile *profile = NULL;
  planc_status status = planc_profile_read(path, &profile);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  return profile;
}

planc_profile *toy(void) {
  return profile_of("tests/data/profile/toy.json");
}

planc_profile *toy_with(const char *families, const char *sections) {
  static const char product[] = "\"fft\"", section[] = "\"origin\"";
  char *text = NULL;
  size_t length;
  ck_assert_ptr_null(pl_file_read("tests/data/profile/toy.json", 1 << 20, &text, &length));
  const char *fft = strstr(text, product), *origin = strstr(text, section);
  ck_assert(fft && origin && fft < origin);
  size_t size = length + strlen(families) + strlen(sections) + 1;
  char *made = malloc(size);
  ck_assert_ptr_nonnull(made);
  snprintf(made, size, "%.*s%s%.*s%s%s", (int)(fft - text), text, families, (int)(origin - fft), fft, sections, origin);
  planc_profile *profile = NULL;
  planc_status status = planc_profile_parse(made, strlen(made), "toy", &profile);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  free(made);
  free(text);
  return profile;
}

planc_costs *costs_of(const planc_profile *profile, const planc_graph *graph, int32_t n, const int64_t *batches) {
  planc_costs *costs = NULL;
  planc_status status = planc_costs_make(profile, graph, n, batches, &costs);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  return costs;
}

const planc_variant *find_variant(const planc_variant *variants, int32_t count, const char *algorithm) {
  for (int32_t v = 0; v < count; v++) {
    if (strcmp(variants[v].algorithm, algorithm) == 0) return &variants[v];
  }
  return NULL;
}
