/* What planc tells of a plan that does not fit, held to its word: with the budget that it names, and the host's beside
 * it where it names one, there is a plan, and none of them is more than a plan without that budget takes. On random
 * graphs, for every policy. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planc/graph.h"
#include "planc/policy.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/file.h"
#include "util/math.h"

enum { GRAPHS = 16, TRIES = 3, TEXT = 8192, RESERVED = 1000 };

static const int64_t no_limit = INT64_C(1) << 40;

static char folder[] = "/tmp/planc-refusals-XXXXXX";
static char planc_path[512];

static void in_folder(const char *name, char out[64]) {
  snprintf(out, 64, "%s/%s", folder, name);
}

/* A k40m with a disk, and one that keeps memory for itself as well. */
static void write_device(const char *name, int reserved) {
  static const char disk[] =
      "\"storage\": {\"write\": {\"bytes_per_second\": 1000000000, \"latency_ns\": 1000}, "
      "\"read\": {\"bytes_per_second\": 1000000000, \"latency_ns\": 1000}}, ";
  static const char keeps[] = "\"reserved_bytes\": 0,", links[] = "\"duplex_ppm\"";
  char *text, path[64];
  size_t length;
  ok(pl_file_read_text("profiles/k40m.json", 1 << 20, &text, &length));
  char *a = strstr(text, keeps), *b = strstr(text, links), *edited = malloc(length + sizeof disk + 64);
  ck_assert(a && b && a < b && edited);
  int n = sprintf(edited, "%.*s\"reserved_bytes\": %d,%.*s%s%s", (int)(a - text), text, reserved,
                  (int)(b - a - (int)strlen(keeps)), a + strlen(keeps), disk, b);
  in_folder(name, path);
  ok(pl_file_write(path, edited, (size_t)n));
  free(edited);
  free(text);
}

static void set_up(void) {
  ssize_t length = readlink("/proc/self/exe", planc_path, sizeof planc_path - 16);
  ck_assert_int_gt(length, 0);
  planc_path[length] = 0;
  for (int up = 0; up < 2; up++) *strrchr(planc_path, '/') = 0;
  strcat(planc_path, "/planc");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  write_device("plain.json", 0);
  write_device("reserving.json", RESERVED);
}

static void tear_down(void) {
  static const char *const names[] = {"plain.json", "reserving.json", "graph.yaml", "made.plan"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    char path[64];
    in_folder(names[k], path);
    ck_assert(unlink(path) == 0 || errno == ENOENT);
  }
  ck_assert_int_eq(rmdir(folder), 0);
}

/* --- Asking planc ------------------------------------------------------------------------------------------------- */

/* By memory: the budgets; of the host -1 = not limited, of storage 0 = none. */
typedef struct request {
  const char *policy;
  int64_t batch;
  int gpus;
  bool reserving;
  int64_t budgets[PLANC_MEMORY_STORAGE + 1];
} request;

/* Its exit code, and all that it says. */
static int ask(const request *r, char out[TEXT]) {
  char command[1024], host[48] = "", storage[48] = "";
  bool searches = planc_policy_find(r->policy)->supports & PLANC_POLICY_SEARCHES;
  if (r->budgets[PLANC_MEMORY_HOST] >= 0)
    snprintf(host, sizeof host, "--host-budget %lld", (long long)r->budgets[PLANC_MEMORY_HOST]);
  if (r->budgets[PLANC_MEMORY_STORAGE] > 0)
    snprintf(storage, sizeof storage, "--storage %lld", (long long)r->budgets[PLANC_MEMORY_STORAGE]);
  snprintf(command, sizeof command,
           "%s plan %s/graph.yaml --json -o %s/made.plan --device %s/%s.json --policy %s --batch %lld --gpus %d "
           "--budget %lld %s %s %s 2>&1",
           planc_path, folder, folder, folder, r->reserving ? "reserving" : "plain", r->policy, (long long)r->batch,
           r->gpus, (long long)r->budgets[PLANC_MEMORY_DEVICE], host, storage, searches ? "--effort 0" : "");
  FILE *file = popen(command, "r"); /* NOLINT(cert-env33-c): the test's own words */
  ck_assert_ptr_nonnull(file);
  out[fread(out, 1, TEXT - 1, file)] = 0;
  int status = pclose(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The number behind `words`; -1: they are not said. */
static int64_t number_behind(const char *text, const char *words) {
  const char *at = strstr(text, words);
  return at ? strtoll(at + strlen(words), NULL, 10) : -1;
}

/* --- What it tells ------------------------------------------------------------------------------------------------ */

typedef struct told {
  planc_memory_kind memory;
  int64_t bytes, host_bytes; /* -1: nothing of the host */
  bool is_least;
} told;

static void read_told(const request *r, const char *text, told *out) {
  static const char *const names[] = {"budget", "host budget", "storage"};
  *out = (told){.bytes = -1, .is_least = !strstr(text, "as far as a few plans can tell")};
  for (int m = PLANC_MEMORY_DEVICE; m <= PLANC_MEMORY_STORAGE && out->bytes < 0; m++) {
    char words[96];
    snprintf(words, sizeof words, "the least feasible %s of %s is ", names[m], r->policy);
    out->memory = (planc_memory_kind)m;
    out->bytes = number_behind(text, words);
  }
  out->host_bytes = number_behind(text, "it needs a host budget of ");
  ck_assert_msg(out->bytes >= 0, "%s: nothing is told: %s", r->policy, text);
}

/* The last line names the memory that the note names, and the policy. */
static void names_what_fails(const told *t, const char *text) {
  static const char *const said[] = {": does not fit ", " host budget of ", ": does not fit a storage of "};
  static const char *const needed[] = {" of device memory, ", " of host memory, ", " of storage, "};
  const char *line = strstr(text, "\nplanc: does not fit"), *with = strstr(text, ", with policy ");
  ck_assert_msg(line && strstr(line, said[t->memory]), "%s", text);
  bool stays = strstr(line, " stays on the device: ") != NULL;
  for (int m = 0; m <= PLANC_MEMORY_STORAGE; m++) {
    bool may = m == (stays ? PLANC_MEMORY_DEVICE : (int)t->memory);
    ck_assert_msg(may || !strstr(line, needed[m]), "%s", text);
  }
  const char *reason = strstr(line, ": policy ");
  if (!with || !reason) return;
  with += strlen(", with policy ");
  reason += strlen(": policy ");
  ck_assert_msg(strncmp(with, reason, strcspn(with, " ,;")) == 0, "%s", text);
}

static int64_t up_to_unit(const request *r, planc_memory_kind memory, int64_t bytes) {
  int64_t floor = memory == PLANC_MEMORY_DEVICE && r->reserving ? RESERVED : 0;
  return floor + pl_align_up(bytes - floor, PLANC_ALIGNMENT);
}

/* Not more than a plan without that budget takes, where that would do as the budget. The budgets that lms can meet lie
 * between others that it cannot, so that one unit less may fail where much less would not. */
static void is_not_too_much(request r, const told *t, const char *text) {
  static const char *const peaks[] = {"\"peak_bytes\":", "\"host_peak_bytes\":", "\"storage_peak_bytes\":"};
  char out[TEXT];
  if (t->is_least && strcmp(r.policy, "lms") == 0) return;
  if (t->memory == PLANC_MEMORY_DEVICE) {
    r.budgets[PLANC_MEMORY_HOST] = -1;
    r.budgets[PLANC_MEMORY_STORAGE] = 0;
  }
  r.budgets[t->memory] = t->memory == PLANC_MEMORY_HOST ? -1 : no_limit;
  if (ask(&r, out) != 0) return; /* without a limit another policy may be chosen, and not fit storage */
  int64_t most = up_to_unit(&r, t->memory, number_behind(out, peaks[t->memory]));
  if (t->bytes <= most) return;
  r.budgets[t->memory] = most;
  ck_assert_msg(ask(&r, out) != 0, "%lld would do: %s", (long long)most, text);
  ck_assert_msg(t->bytes <= 4 * most, "%lld is too much: %s", (long long)most, text);
}

/* Beside storage no more is told of the host than what is told where the host alone is too small. */
static void host_is_the_least(request r, const told *t, const char *text) {
  char out[TEXT];
  told then;
  if (t->host_bytes < 0 || r.budgets[PLANC_MEMORY_STORAGE] == 0) return;
  r.budgets[t->memory] = t->bytes;
  ck_assert_msg(ask(&r, out) == 1, "%s", out);
  read_told(&r, out, &then);
  if (then.memory != PLANC_MEMORY_HOST) return;
  ck_assert_msg(t->host_bytes <= then.bytes, "%s\nthen %s", text, out);
}

static void keeps_its_word(request r) {
  char text[TEXT], out[TEXT];
  told t;
  int code = ask(&r, text);
  if (code == 0) return;
  ck_assert_msg(code == 1, "%s", text);
  read_told(&r, text, &t);
  names_what_fails(&t, text);
  is_not_too_much(r, &t, text);
  host_is_the_least(r, &t, text);
  r.budgets[t.memory] = t.bytes;
  if (t.host_bytes >= 0) r.budgets[PLANC_MEMORY_HOST] = t.host_bytes;
  ck_assert_msg(ask(&r, out) == 0, "%s at %lld bytes, host %lld: %s\nthen %s", r.policy,
                (long long)r.budgets[PLANC_MEMORY_DEVICE], (long long)r.budgets[PLANC_MEMORY_HOST], text, out);
}

/* --- Random refusals ---------------------------------------------------------------------------------------------- */

static void write_graph(int seed, uint64_t *state) {
  planc_graph *graph;
  randgraph_options options = {.max_ops = 8 + (int32_t)rand_below(state, 20), .max_elements = seed % 2 ? 2048 : 64};
  char *text, path[64];
  size_t length;
  ok(randgraph_make((uint64_t)seed, &options, &graph));
  ok(planc_graph_print(graph, &text, &length));
  in_folder("graph.yaml", path);
  ok(pl_file_write(path, text, length));
  free(text);
  planc_graph_free(graph);
}

/* Where everything fits the device: what it takes. 0: the graph is none that planc trains. */
static int64_t all_of(request r) {
  char out[TEXT];
  r.policy = "none";
  r.budgets[PLANC_MEMORY_DEVICE] = no_limit;
  int code = ask(&r, out);
  if (code == planc_exit_code(PLANC_BAD_INPUT)) return 0;
  ck_assert_msg(code == 0, "%s", out);
  return number_behind(out, "\"peak_bytes\":");
}

START_TEST(what_is_told_will_do) {
  int seed = _i;
  uint64_t state = (uint64_t)seed;
  write_graph(seed, &state);
  request r = {.batch = 1 + seed % 5, .gpus = seed % 3 == 1 ? 2 : 1, .reserving = seed % 4 == 0};
  r.batch *= r.gpus;
  r.budgets[PLANC_MEMORY_HOST] = -1;
  int64_t all = all_of(r);
  for (const planc_policy *policy = planc_policies(); all > 0 && policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    r.policy = policy->name;
    for (int t = 0; t < TRIES; t++) {
      int64_t host = rand_below(&state, 2) ? 0 : rand_below(&state, all);
      r.budgets[PLANC_MEMORY_DEVICE] = rand_below(&state, all);
      r.budgets[PLANC_MEMORY_HOST] = rand_below(&state, 4) == 0 ? -1 : host;
      r.budgets[PLANC_MEMORY_STORAGE] =
          r.budgets[PLANC_MEMORY_HOST] < 0 || rand_below(&state, 2) ? 0 : rand_below(&state, all);
      keeps_its_word(r);
    }
  }
}
END_TEST

/* Where more host asks for more storage, and less for more host, each failure tells of another memory. */
START_TEST(host_and_storage_lack_together) {
  char *text, path[64];
  size_t length;
  request r = {.policy = "window", .batch = 16, .gpus = 1, .budgets = {150 * 1024, 4096, 1024}};
  ok(pl_file_read_text("graphs/tiny-transformer.yaml", 1 << 20, &text, &length));
  in_folder("graph.yaml", path);
  ok(pl_file_write(path, text, length));
  free(text);
  keeps_its_word(r);
  r.policy = "best";
  keeps_its_word(r);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("refusals");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 120);
  tcase_add_unchecked_fixture(tests, set_up, tear_down);
  tcase_add_loop_test(tests, what_is_told_will_do, 0, sampled(GRAPHS));
  tcase_add_test(tests, host_and_storage_lack_together);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
