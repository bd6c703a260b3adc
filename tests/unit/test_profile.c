/* Profiles: what the reader accepts and rejects, the device descriptions that come with planc, and measured tables. */
#include <check.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"
#include "cost/profile_print.h"
#include "planc/cost.h"
#include "tests/support/unit.h"
#include "util/file.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
static const char toy_path[] = "tests/data/profile/toy.json";

static char *read_text(const char *path) {
  char *text = NULL;
  size_t length = 0;
  ck_assert_ptr_null(pl_file_read(path, 1 << 20, &text, &length));
  return text;
}

static planc_profile *read_profile(const char *path) {
  planc_profile *profile = NULL;
  planc_status status = planc_profile_read(path, &profile);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  return profile;
}

/* The text is rejected as bad input with exactly this message. */
static void assert_rejected(const char *text, size_t length, const char *message) {
  planc_profile *profile = NULL;
  planc_status status = planc_profile_parse(text, length, "f", &profile);
  ck_assert_msg(status != NULL, "accepted, expected: %s", message);
  ck_assert_ptr_null(profile);
  ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
  ck_assert_str_eq(planc_status_message(status), message);
  planc_status_free(status);
}

/* --- Malformed text ----------------------------------------------------------------------------------------------- */

static const struct {
  const char *file, *message;
} bad_files[] = {
    {"empty.json", "f:1: not valid JSON"},
    {"not-an-object.json", "f: must be an object"},
    {"truncated.json", "f:36: not valid JSON"},
    {"trailing.json", "f:75: text after the end of the JSON value"},
    {"duplicate-key.json", "f: device.launch_ns: the key stands twice"},
    {"deep.json", "f:1: not valid JSON"},
    {"beyond-2-53.json", "f: device.memory_bytes: is beyond 2^53"},
    {"op-twice.json", "f: ops[1]: op conv1 is measured twice, also in ops[0]"},
};

START_TEST(malformed_file_is_rejected) {
  char path[128];
  snprintf(path, sizeof path, "tests/data/profile/%s", bad_files[_i].file);
  char *text = read_text(path);
  assert_rejected(text, strlen(text), bad_files[_i].message);
  free(text);
}
END_TEST

#define A_LINK "{\"bytes_per_second\": 7, \"latency_ns\": 3}"

/* The toy profile with one piece of text replaced. */
static const struct {
  const char *find, *replace, *message;
} mutations[] = {
    {"\"planc-profile\": 1", "\"planc-profile\": 2",
     "f: planc-profile: profile format 2 is not known; this planc reads format 1"},
    {"\"planc-profile\": 1,", "\"added\": [], \"planc-profile\": 2,",
     "f: planc-profile: profile format 2 is not known; this planc reads format 1"},
    {"\"planc-profile\": 1,", "", "f: planc-profile: is missing"},
    {"\"planc-profile\"", "\"planc-Profile\"", "f: planc-Profile: unknown key"},
    {"\"planc-profile\": 1,", "\"planc-profile\": 1, \"graph_hash\": \"0123456789abcdeF\",",
     "f: graph_hash: must be 16 hexadecimal digits"},
    {"\"planc-profile\": 1,", "\"planc-profile\": 1, \"graph_hash\": 5,", "f: graph_hash: must be a string"},
    {"\"planc-profile\": 1,", "\"planc-profile\": 1, \"code\": [],", "f: code: must be an object"},
    {"\"planc-profile\": 1,", "\"planc-profile\": 1, \"code\": {},", "f: code: must not be empty"},
    {"\"planc-profile\": 1,", "\"planc-profile\": 1, \"code\": {\"fft\": -1},",
     "f: code.fft: is -1, must be at least 0"},
    {"\"planc-profile\": 1,", "\"planc-profile\": 1, \"code\": {\"fft\": 9007199254740991, \"gemm\": 1},",
     "f: code: the sum is beyond 2^53"},
    {"\"planc-profile\": 1,", "\"planc-profile\": 1, \"code\": {\"fft\": 1, \"a\": 2, \"fft\": 1},",
     "f: code: the key fft stands twice"},
    {"\"planc-profile\": 1,", "\"planc-profile\": 1, \"code\": {\"f t\": 1},",
     "f: code.f t: the key must be printable ASCII without spaces, quotes and backslashes"},
    {"\"planc-profile\": 1,", "\"planc-profile\": 1, \"refused\": {},", "f: refused: must be an array"},
    {"\"planc-profile\": 1,",
     "\"planc-profile\": 1, \"refused\": [{\"op\": \"c\", \"algorithm\": \"a\", \"batch\": 1}],",
     "f: refused[0].reason: is missing"},
    {"\"planc-profile\": 1,",
     "\"planc-profile\": 1, \"refused\": [{\"op\": \"c\", \"algorithm\": \"a\", \"batch\": 0, \"reason\": \"x\"}],",
     "f: refused[0].batch: is 0, must be at least 1"},
    {"\"deterministic\": false", "\"deterministic\": false, \"sampled\": 1",
     "f: ops[0].variants[0].sampled: must be true or false"},
    {"\"launch_ns\": 500", "\"launch_ns\": -1", "f: device.launch_ns: is -1, must be at least 0"},
    {"\"launch_ns\": 500", "\"launch_ns\": 1.5", "f: device.launch_ns: must be an integer"},
    {"\"launch_ns\": 500", "\"launch_ns\": \"500\"", "f: device.launch_ns: must be an integer"},
    {"\"launch_ns\": 500", "\"launch_ns\": null", "f: device.launch_ns: must be an integer"},
    {"\"launch_ns\": 500", "\"launch_ns\": 1e999", "f: device.launch_ns: is beyond 2^53"},
    {"\"launch_ns\": 500", "\"launch_ns\": 9007199254740992", "f: device.launch_ns: is beyond 2^53"},
    {"\"launch_ns\": 500", "\"launch_ns\": -9007199254740992", "f: device.launch_ns: is beyond 2^53"},
    {"\"launch_ns\": 500", "\"launch_ns\": 5e2", "f:7: 5e2 is not a plain integer"},
    {"\"launch_ns\": 500", "\"launch_ns\": 500.0", "f:7: 500.0 is not a plain integer"},
    {"\"launch_ns\": 500", "\"launch_ns\": 0500", "f:7: 0500 is not a plain integer"},
    {"\"launch_ns\": 500", "\"launch_ns\": 9007199254740991.4", "f:7: 9007199254740991.4 is not a plain integer"},
    {"\"launch_ns\": 500,", "\"launch_ns\": 500, \"lunch_ns\": 1,", "f: device.lunch_ns: unknown key"},
    {"\"launch_ns\": 500,", "", "f: device.launch_ns: is missing"},
    {"\"in_flight\": 8", "\"in_flight\": 0", "f: device.in_flight: is 0, must be at least 1"},
    {"\"in_flight\": 8", "\"in_flight\": 4294967297", "f: device.in_flight: is 4294967297, must be at most 2147483647"},
    {"\"memory_bytes\": 1000000000", "\"memory_bytes\": 0", "f: device.memory_bytes: is 0, must be at least 1"},
    {"\"reserved_bytes\": 1000", "\"reserved_bytes\": 1000000001",
     "f: device.reserved_bytes: is 1000000001, must be at most 1000000000"},
    {"\"name\": \"toy\"", "\"name\": \"\"", "f: device.name: must not be empty"},
    {"\"name\": \"toy\"", "\"name\": \"t y\"",
     "f: device.name: must be printable ASCII without spaces, quotes and backslashes"},
    {"\"name\": \"toy\"", "\"name\": 7", "f: device.name: must be a string"},
    {"made up for tests", "made\nup", "f:40: control character in a string"},
    {"made up for tests", "made\\u0000up", "f:40: control character in a string"},
    {"{\"bytes_per_second\": 1000000000, \"latency_ns\": 100}", "[]", "f: device.h2d: must be an object"},
    {"\"bytes_per_second\": 1000000000", "\"bytes_per_second\": 0",
     "f: device.h2d.bytes_per_second: is 0, must be at least 1"},
    {"\"duplex_ppm\": 900000", "\"storage\": 5, \"duplex_ppm\": 900000", "f: device.storage: must be an object"},
    {"\"duplex_ppm\": 900000", "\"storage\": {\"write\": " A_LINK "}, \"duplex_ppm\": 900000",
     "f: device.storage.read: is missing"},
    {"\"duplex_ppm\": 900000", "\"storage\": {\"read\": " A_LINK "}, \"duplex_ppm\": 900000",
     "f: device.storage.write: is missing"},
    {"\"duplex_ppm\": 900000",
     "\"storage\": {\"write\": " A_LINK
     ", \"read\": {\"bytes_per_second\": 0, \"latency_ns\": 0}}, \"duplex_ppm\": 900000",
     "f: device.storage.read.bytes_per_second: is 0, must be at least 1"},
    {"\"duplex_ppm\": 900000", "\"duplex_ppm\": 1000001", "f: device.duplex_ppm: is 1000001, must be at most 1000000"},
    {"\"conv\": 1000000", "\"conv\": 0", "f: efficiency.conv: is 0, must be at least 1"},
    {"\"copy\": 1000000", "\"paste\": 1000000", "f: efficiency.paste: unknown key"},
    {"\"fft\": {", "\"fft\": {\"tile\": 4,", "f: multiply.fft.tile: the key stands twice"},
    {"\"tile\": 16", "\"tile\": 5000", "f: multiply.linear.tile: is 5000, must be at most 4096"},
    {"\"fft\": {", "\"fft\": {\"small_tile\": 4, ", "f: multiply.fft: small_tile and small_flops_ppm stand together"},
    {"\"split_depth\": 8", "\"split_depth\": 8, \"sustained_ppm\": 0",
     "f: compute.sustained_ppm: is 0, must be at least 1"},
    {"\"fft\": {", "\"batched\": {\"tile\": 4}, \"fft\": {", "f: multiply.batched.flops_ppm: is missing"},
    {"\"origin\": {", "\"cache\": {\"bytes\": 0, \"bytes_per_second\": 1}, \"origin\": {",
     "f: cache.bytes: is 0, must be at least 1"},
    {"\"origin\": {", "\"cache\": {\"bytes\": 1}, \"origin\": {", "f: cache.bytes_per_second: is missing"},
    {"\"origin\": {", "\"occupancy\": {\"threads\": 1}, \"origin\": {", "f: occupancy.thread_elements: is missing"},
    {"\"origin\": {",
     "\"occupancy\": {\"threads\": 0, \"thread_elements\": 1, \"norm_threads\": 1, \"result_threads\": 1, "
     "\"outputs\": 1}, \"origin\": {",
     "f: occupancy.threads: is 0, must be at least 1"},
    {"\"origin\": {", "\"types\": [], \"origin\": {", "f: types: must be an object"},
    {"\"origin\": {", "\"types\": {\"relu\": 1000001}, \"origin\": {",
     "f: types.relu: is 1000001, must be at most 1000000"},
    {"\"origin\": {", "\"types\": {\"relu\": 1, \"relu\": 2}, \"origin\": {", "f: types: the key relu stands twice"},
    {"\"origin\": {", "\"rates\": {\"relu\": 0}, \"origin\": {", "f: rates.relu: is 0, must be at least 1"},
    {"\"origin\": {", "\"types\": {\"re lu\": 1}, \"origin\": {",
     "f: types.re lu: the key must be printable ASCII without spaces, quotes and backslashes"},
    {"\"device\": \"made up", "\"divice\": \"made up", "f: origin.divice: names nothing in this file"},
    {"\"device\": \"made up", "\"device.\": \"made up", "f: origin.device.: names nothing in this file"},
    {"\"device\": \"made up for tests\"", "\"device\": \"\"", "f: origin.device: must not be empty"},
    {"\"device.h2d.latency_ns\"", "\"device\"", "f: origin.device: the key stands twice"},
    {"\"deterministic\": false", "\"deterministic\": 0", "f: ops[0].variants[0].deterministic: must be true or false"},
    {"\"algorithm\": \"direct\"", "\"algorithm\": \"winograd\"",
     "f: ops[0].variants[1]: algorithm winograd is measured twice, also in variants[0]"},
    {"\"batch\": 20", "\"batch\": 10",
     "f: ops[0].variants[0].points[1]: batch 10 follows batch 10: batches must ascend"},
    {"\"batch\": 20", "\"batch\": 9", "f: ops[0].variants[0].points[1]: batch 9 follows batch 10: batches must ascend"},
    {"\"batch\": 10", "\"batch\": 0", "f: ops[0].variants[0].points[0].batch: is 0, must be at least 1"},
    {"\"time_ns\": 2000", "\"time_ns\": -2", "f: ops[0].variants[0].points[0].time_ns: is -2, must be at least 0"},
    {"\"busy_ppm\": 400000", "\"busy_ppm\": 0", "f: ops[0].variants[0].points[0].busy_ppm: is 0, must be at least 1"},
    {"\"workspace_bytes\": 500, ", "", "f: ops[0].variants[0].points[0].workspace_bytes: is missing"},
    {"[{\"batch\": 10, \"time_ns\": 5000, \"workspace_bytes\": 30, \"busy_ppm\": 1000000}]", "[]",
     "f: ops[0].variants[1].points: must not be empty"},
    {"[{\"batch\": 10, \"time_ns\": 800, \"workspace_bytes\": 16, \"busy_ppm\": 250000}]", "{}",
     "f: ops[1].variants[0].points: must be an array"},
    {"\"op\": \"step1\"", "\"op\": \"a\\u0007b\"",
     "f: ops[1].op: must be printable ASCII without spaces, quotes and backslashes"},
};

static char *mutant_of(const char *text, const char *find, const char *replace) {
  const char *at = strstr(text, find);
  ck_assert_ptr_nonnull(at);
  size_t size = strlen(text) + strlen(replace) + 1;
  char *mutant = malloc(size);
  ck_assert_ptr_nonnull(mutant);
  snprintf(mutant, size, "%.*s%s%s", (int)(at - text), text, replace, at + strlen(find));
  return mutant;
}

static char *mutant_of_toy(const char *find, const char *replace) {
  char *text = read_text(toy_path), *mutant = mutant_of(text, find, replace);
  free(text);
  return mutant;
}

START_TEST(mutation_is_rejected) {
  char *mutant = mutant_of_toy(mutations[_i].find, mutations[_i].replace);
  assert_rejected(mutant, strlen(mutant), mutations[_i].message);
  free(mutant);
}
END_TEST

/* What looks like a number, or like the end of a string, is neither inside a string. */
START_TEST(any_text_may_be_an_origin) {
  static const char *const texts[] = {"1.5 or 01", "\\\"01\\\", 1.5", "01\\\\", "\\u0001 \\\\u0000 1e3"};
  char *mutant = mutant_of_toy("made up for tests", texts[_i]);
  planc_profile *profile = NULL;
  planc_status status = planc_profile_parse(mutant, strlen(mutant), "f", &profile);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  planc_profile_free(profile);
  free(mutant);
}
END_TEST

START_TEST(every_truncation_is_rejected) {
  char *text = read_text(toy_path);
  size_t end = strlen(text);
  while (text[end - 1] != '}') end--;
  for (size_t length = 0; length < end; length++) {
    planc_profile *profile = NULL;
    planc_status status = planc_profile_parse(text, length, "f", &profile);
    ck_assert_msg(status != NULL, "accepted the first %zu bytes", length);
    ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
    planc_status_free(status);
  }
  free(text);
}
END_TEST

START_TEST(unreadable_file_is_bad_input) {
  planc_profile *profile = NULL;
  planc_status status = planc_profile_read("tests/data/profile/no-such-file.json", &profile);
  assert_fails(status, PLANC_BAD_INPUT, "no-such-file.json");
}
END_TEST

START_TEST(sections_are_read_where_they_belong) {
  planc_profile *profile = read_profile(toy_path);
  const planc_device *device = planc_profile_device(profile);
  ck_assert_str_eq(device->name, "toy");
  ck_assert_int_eq(device->memory_bytes, 1000000000);
  ck_assert_int_eq(device->reserved_bytes, 1000);
  ck_assert_int_eq(device->launch_ns, 500);
  ck_assert_int_eq(device->in_flight, 8);
  ck_assert_int_eq(device->links[PLANC_ROUTE_H2D].bytes_per_second, 1000000000);
  ck_assert_int_eq(device->links[PLANC_ROUTE_H2D].latency_ns, 100);
  ck_assert_int_eq(device->links[PLANC_ROUTE_D2H].bytes_per_second, 2000000000);
  ck_assert_int_eq(device->links[PLANC_ROUTE_D2H].latency_ns, 200);
  ck_assert_int_eq(device->links[PLANC_ROUTE_STORE].bytes_per_second, 0);
  ck_assert_int_eq(device->links[PLANC_ROUTE_LOAD].bytes_per_second, 0);
  ck_assert_int_eq(device->duplex_ppm, 900000);
  ck_assert_int_eq(device->slowdown_ppm, 50000);
  ck_assert_int_eq(profile->efficiency_ppm[PLANC_CLASS_elementwise], 500000);
  ck_assert_int_eq(profile->efficiency_ppm[PLANC_CLASS_optimizer], 250000);
  ck_assert_int_eq(profile->multiply[PL_MULTIPLY_IMPLICIT_GEMM].depth_overhead, 16);
  ck_assert_int_eq(profile->multiply[PL_MULTIPLY_LINEAR].flops_ppm, 500000);
  planc_profile_free(profile);
}
END_TEST

static planc_profile *parse(const char *text, size_t length) {
  planc_profile *profile;
  planc_status status = planc_profile_parse(text, length, "f", &profile);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  return profile;
}

/* And stays in profiles that are made of one, with its origin. */
START_TEST(storage_is_part_of_a_device) {
  char *text = mutant_of_toy("\"duplex_ppm\": 900000", "\"storage\": {\"write\": " A_LINK
                                                       ", \"read\": {\"bytes_per_second\": 11, "
                                                       "\"latency_ns\": 5}}, \"duplex_ppm\": 900000");
  char *told = mutant_of(text, "\"origin\": {", "\"origin\": {\"device.storage\": \"a drum\", "), *printed;
  size_t length;
  planc_profile *profile = parse(told, strlen(told));
  planc_status status = pl_profile_print_ops(profile, "x", &printed, &length);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  ck_assert_ptr_nonnull(strstr(printed, "\"device.storage\":\"a drum\""));
  planc_profile *again = parse(printed, length);
  for (int k = 0; k < 2; k++) {
    const planc_device *device = planc_profile_device(k ? again : profile);
    ck_assert_int_eq(device->links[PLANC_ROUTE_STORE].bytes_per_second, 7);
    ck_assert_int_eq(device->links[PLANC_ROUTE_STORE].latency_ns, 3);
    ck_assert_int_eq(device->links[PLANC_ROUTE_LOAD].bytes_per_second, 11);
    ck_assert_int_eq(device->links[PLANC_ROUTE_LOAD].latency_ns, 5);
  }
  planc_profile_free(profile);
  planc_profile_free(again);
  free(printed);
  free(told);
  free(text);
}
END_TEST

START_TEST(code_is_found_by_algorithm) {
  char *text = mutant_of_toy("\"planc-profile\": 1,",
                             "\"planc-profile\": 1, \"code\": {\"winograd\": 700, \"direct\": 30, \"fft\": 0},");
  planc_profile *profile;
  planc_status status = planc_profile_parse(text, strlen(text), "f", &profile);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  ck_assert_int_eq(planc_profile_code(profile, "direct"), 30);
  ck_assert_int_eq(planc_profile_code(profile, "winograd"), 700);
  ck_assert_int_eq(planc_profile_code(profile, "gemm"), 0);
  ck_assert_int_eq(planc_profile_code_of_all(profile), 730);
  planc_profile_free(profile);
  free(text);
  profile = read_profile(toy_path);
  ck_assert_int_eq(planc_profile_code(profile, "winograd"), 0);
  planc_profile_free(profile);
}
END_TEST

static const char told[] =
    "\"occupancy\": {\"threads\": 12, \"thread_elements\": 13, \"norm_threads\": 14, \"result_threads\": 15, "
    "\"outputs\": 16}, \"cache\": {\"bytes\": 5, \"bytes_per_second\": 6}, \"types\": {\"relu\": 7, \"aten.mul\": 8}, "
    "\"rates\": "
    "{\"tanh\": 11}, \"origin\": {"
    "\"cache\": \"c\", \"occupancy\": \"o\", \"types.relu\": \"t\", ";

/* What is printed for a profile tells the same of the optional constants as the profile itself. */
START_TEST(optional_constants_are_read_and_printed) {
  char *with_sections = mutant_of_toy("\"origin\": {", told);
  planc_profile *profile = NULL;
  planc_status status = planc_profile_parse(with_sections, strlen(with_sections), "f", &profile);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  free(with_sections);
  ck_assert_int_eq(profile->multiply[PL_MULTIPLY_BATCHED].tile, 0);
  profile->multiply[PL_MULTIPLY_BATCHED] = (pl_multiply){1, 2, 3, 4, 5};
  profile->compute.sustained_ppm = 9;
  for (int turn = 0; turn < 2; turn++) {
    ck_assert_int_eq(profile->cache.bytes, 5);
    ck_assert_int_eq(profile->cache.bytes_per_second, 6);
    const pl_occupancy *occupancy = &profile->occupancy;
    ck_assert_int_eq(occupancy->threads, 12);
    ck_assert_int_eq(occupancy->thread_elements, 13);
    ck_assert_int_eq(occupancy->norm_threads, 14);
    ck_assert_int_eq(occupancy->result_threads, 15);
    ck_assert_int_eq(occupancy->outputs, 16);
    ck_assert_int_eq(profile->types.n, 2);
    ck_assert_int_eq(profile->compute.sustained_ppm, 9);
    ck_assert_str_eq(profile->types.of[0].label, "aten.mul"); /* ascending */
    ck_assert_int_eq(profile->types.of[0].value, 8);
    ck_assert_int_eq(profile->rates.n, 1);
    ck_assert_int_eq(profile->rates.of[0].value, 11);
    const pl_multiply *batched = &profile->multiply[PL_MULTIPLY_BATCHED];
    ck_assert_int_eq(batched->depth_overhead, 3);
    ck_assert_int_eq(batched->small_tile, 4);
    ck_assert_int_eq(batched->small_flops_ppm, 5);
    ck_assert_int_eq(profile->multiply[PL_MULTIPLY_LINEAR_BIAS].tile, 0);
    char *text;
    size_t length;
    ck_assert_ptr_null(pl_profile_print_ops(profile, "printed", &text, &length));
    planc_profile_free(profile);
    status = planc_profile_parse(text, length, "printed", &profile);
    ck_assert_msg(!status, "%s in %s", planc_status_message(status), text);
    ck_assert(turn == 1 || strstr(text, "\"types.relu\":\"t\"") != NULL);
    free(text);
  }
  planc_profile_free(profile);
}
END_TEST

/* --- Device descriptions ------------------------------------------------------------------------------------------ */

static const struct {
  const char *name;
  int64_t mib;
} devices[] = {
    {"k40m", 12288},      {"p100", 16384},  {"v100-16g-nvlink", 16384}, {"v100-32g", 32510},
    {"rtx2080ti", 11019}, {"a6000", 48666}, {"a100-40g", 40326},        {"a100-80g", 81039},
    {"l4", 22558},        {"h100", 80998},  {"h200", 143073},
};

static bool has_origin(const cJSON *origins, const char *dotted) {
  char path[256];
  snprintf(path, sizeof path, "%s", dotted);
  for (;;) {
    if (cJSON_GetObjectItemCaseSensitive(origins, path)) return true;
    char *dot = strrchr(path, '.');
    if (!dot) return false;
    *dot = '\0';
  }
}

/* Every number below `value` has an origin, its own or its section's; returns how many there are. */
static int assert_origins(const cJSON *origins, const cJSON *value, const char *dotted) {
  if (cJSON_IsNumber(value)) {
    ck_assert_msg(has_origin(origins, dotted), "%s has no origin", dotted);
    return 1;
  }
  int count = 0;
  for (const cJSON *member = value->child; member; member = member->next) {
    char path[256];
    snprintf(path, sizeof path, "%s%s%s", dotted, *dotted ? "." : "", member->string);
    if (!*dotted && strcmp(member->string, "planc-profile") == 0) continue;
    count += assert_origins(origins, member, path);
  }
  return count;
}

START_TEST(device_is_complete) {
  char path[128];
  snprintf(path, sizeof path, "profiles/%s.json", devices[_i].name);
  planc_profile *profile = read_profile(path);
  const planc_device *device = planc_profile_device(profile);
  ck_assert_str_eq(device->name, devices[_i].name);
  ck_assert_int_eq(device->memory_bytes, devices[_i].mib << 20);
  ck_assert_int_eq(device->reserved_bytes == 0, strcmp(device->name, "k40m") == 0);
  ck_assert_int_gt(device->launch_ns, 0);
  planc_profile_free(profile);

  char *text = read_text(path);
  cJSON *tree = cJSON_Parse(text);
  const cJSON *origins = cJSON_GetObjectItemCaseSensitive(tree, "origin");
  ck_assert_ptr_nonnull(origins);
  ck_assert_int_ge(assert_origins(origins, tree, ""), 39);
  cJSON_Delete(tree);
  free(text);
}
END_TEST

/* --- Measured tables ---------------------------------------------------------------------------------------------- */

static planc_variant at(const char *op, int variant, int64_t batch, bool scales) {
  planc_profile *profile = read_profile(toy_path);
  const pl_measured_op *measured = pl_measured_find(&profile->measured, op);
  ck_assert_ptr_nonnull(measured);
  ck_assert_int_lt(variant, measured->n_variants);
  planc_variant out = pl_measured_at(&measured->variants[variant], batch, scales, profile->compute.kernel_ns);
  planc_profile_free(profile);
  return out; /* its algorithm is gone */
}

static const struct {
  const char *op;
  int64_t batch, time_ns, workspace_bytes, busy_ppm;
  int variant;
  bool scales;
} table[] = {
    {"conv1", 10, 2000, 500, 400000, 0, true}, /* exact at the points */
    {"conv1", 20, 3001, 700, 600000, 0, true},
    {"conv1", 40, 9000, 700, 1000000, 0, true},
    {"conv1", 11, 2101, 520, 420000, 0, true}, /* 2100.1 up */
    {"conv1", 39, 8701, 700, 980000, 0, true}, /* 8700.05 up */
    {"conv1", 5, 1500, 400, 400000, 0, true},  /* 1499.5 up; busy is not carried on */
    {"conv1", 60, 14999, 700, 1000000, 0, true},
    {"conv1", 20, 9000, 60, 1000000, 1, true}, /* one point: 1000 + 4000 * 20 / 10 */
    {"conv1", 1, 1400, 3, 1000000, 1, true},
    {"step1", 40, 800, 16, 250000, 0, false}, /* does not depend on the batch */
    {"step1", 40, 800, 64, 250000, 0, true},  /* shorter than a kernel: all of it is fixed */
};

START_TEST(table_is_linear_between_points) {
  planc_variant variant = at(table[_i].op, table[_i].variant, table[_i].batch, table[_i].scales);
  ck_assert_int_eq(variant.time_ns, table[_i].time_ns);
  ck_assert_int_eq(variant.workspace_bytes, table[_i].workspace_bytes);
  ck_assert_int_eq(variant.busy_ppm, table[_i].busy_ppm);
  ck_assert(variant.measured);
  ck_assert_int_eq(variant.deterministic, table[_i].op[0] == 's' || table[_i].variant == 1);
}
END_TEST

START_TEST(line_is_monotone_and_never_negative) {
  static const pl_point rising[] = {
      {100, 10, 0, 1, 0, 0}, {101, 13, 5, 2, 0, 0}, {200, 5000, 6, 3, 0, 0}, {1000, 5001, 900, 1000000, 0, 0}};
  static const pl_point falling[] = {{100, 900, 70, 5, 0, 0}, {150, 500, 20, 4, 0, 0}};
  const pl_measured_variant up = {"up", true, false, COUNT(rising), rising, 0, NULL, false};
  const pl_measured_variant down = {"down", true, false, COUNT(falling), falling, 0, NULL, false};
  planc_variant before = pl_measured_at(&up, 1, true, 0);
  ck_assert_int_eq(before.time_ns, 1); /* its share of the first point's; the line would be at -287 */
  for (int64_t batch = 2; batch <= 1200; batch++) {
    planc_variant now = pl_measured_at(&up, batch, true, 0);
    ck_assert_int_ge(now.time_ns, before.time_ns);
    ck_assert_int_ge(now.workspace_bytes, before.workspace_bytes);
    before = now;
    planc_variant other = pl_measured_at(&down, batch, true, 0);
    ck_assert_int_ge(other.time_ns, 0);
    ck_assert_int_ge(other.workspace_bytes, 0);
    ck_assert(other.busy_ppm == 4 || other.busy_ppm == 5);
  }
  ck_assert_int_eq(pl_measured_at(&down, 1000, true, 0).time_ns, 0);
  ck_assert_int_eq(pl_measured_at(&up, INT64_MAX, true, 0).workspace_bytes, INT64_MAX);
}
END_TEST

/* Where workspaces are sampled, or beyond the last point, what is not known is no less than the next larger that is;
 * elsewhere it is on the line. */
START_TEST(sampled_workspaces_round_up) {
  static const pl_point points[] = {{20, 10, 200, 1, 0, 0}, {40, 20, 400, 1, 0, 0}};
  static const pl_measured_workspace listed[] = {{10, 150}, {15, -1}, {30, 500}, {50, 10}};
  pl_measured_variant variant = {"a", true, false, COUNT(points), points, COUNT(listed), listed, false};
  static const struct {
    int64_t batch, line, rounded;
    bool known;
  } cases[] = {{5, 50, 150, false},   {10, 150, 150, true}, {12, 120, 200, false}, {15, -1, -1, true},
               {18, 180, 200, false}, {20, 200, 200, true}, {21, 210, 500, false}, {30, 500, 500, true},
               {31, 310, 400, false}, {40, 400, 400, true}, {41, 410, 410, false}, {51, 510, 510, false}};
  for (int i = 0; i < COUNT(cases); i++) {
    variant.sampled = false;
    ck_assert_int_eq(pl_measured_at(&variant, cases[i].batch, true, 0).workspace_bytes, cases[i].line);
    ck_assert_int_eq(pl_measured_is_listed(&variant, cases[i].batch), cases[i].batch <= 40);
    variant.sampled = true;
    ck_assert_int_eq(pl_measured_at(&variant, cases[i].batch, true, 0).workspace_bytes, cases[i].rounded);
    ck_assert_int_eq(pl_measured_is_listed(&variant, cases[i].batch), cases[i].known);
  }
  const pl_measured_workspace beyond = {60, 900};
  variant.n_workspaces = 1;
  variant.workspaces = &beyond;
  variant.sampled = false;
  ck_assert_int_eq(pl_measured_at(&variant, 30, true, 0).workspace_bytes, 300);
  ck_assert_int_eq(pl_measured_at(&variant, 41, true, 0).workspace_bytes, 900);
  ck_assert_int_eq(pl_measured_at(&variant, 61, true, 0).workspace_bytes, 610);
  ck_assert(!pl_measured_is_listed(&variant, 41) && pl_measured_is_listed(&variant, 60));
  variant.n_workspaces = 0;
  ck_assert(pl_measured_is_listed(&variant, 1000));
}
END_TEST

/* A point that was scaled from another is a guess: on the line to it, and nothing that smaller batches are held to. */
START_TEST(scaled_points_are_guesses) {
  static const pl_point points[] = {{10, 10, 100, 1, 0, 0}, {40, 40, 400, 1, 0, 10}};
  pl_measured_variant variant = {"a", true, false, COUNT(points), points, 0, NULL, true};
  static const struct {
    int64_t batch, bytes;
    bool known;
  } cases[] = {{5, 100, false}, {10, 100, true}, {20, 200, false}, {40, 400, false}};
  for (int i = 0; i < COUNT(cases); i++) {
    ck_assert_int_eq(pl_measured_at(&variant, cases[i].batch, true, 0).workspace_bytes, cases[i].bytes);
    ck_assert_int_eq(pl_measured_is_listed(&variant, cases[i].batch), cases[i].known);
  }
}
END_TEST

int main(void) {
  TCase *reading = tcase_create("reading");
  tcase_add_loop_test(reading, malformed_file_is_rejected, 0, COUNT(bad_files));
  tcase_add_loop_test(reading, mutation_is_rejected, 0, COUNT(mutations));
  tcase_add_loop_test(reading, any_text_may_be_an_origin, 0, 4);
  tcase_add_test(reading, every_truncation_is_rejected);
  tcase_add_test(reading, unreadable_file_is_bad_input);
  tcase_add_test(reading, sections_are_read_where_they_belong);
  tcase_add_test(reading, storage_is_part_of_a_device);
  tcase_add_test(reading, code_is_found_by_algorithm);
  tcase_add_test(reading, optional_constants_are_read_and_printed);
  TCase *descriptions = tcase_create("devices");
  tcase_add_loop_test(descriptions, device_is_complete, 0, COUNT(devices));
  TCase *tables = tcase_create("measured");
  tcase_add_loop_test(tables, table_is_linear_between_points, 0, COUNT(table));
  tcase_add_test(tables, line_is_monotone_and_never_negative);
  tcase_add_test(tables, sampled_workspaces_round_up);
  tcase_add_test(tables, scaled_points_are_guesses);
  Suite *suite = suite_create("profile");
  suite_add_tcase(suite, reading);
  suite_add_tcase(suite, descriptions);
  suite_add_tcase(suite, tables);
  return run_suite(suite);
}
