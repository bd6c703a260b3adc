/* The checker on what stands before the instructions: counts, memories, links, streams, mappings, budgets. */
#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/plan_tables.h"
#include "tests/support/tiny_plan.h"
#include "tests/support/unit.h"

static planc_graph *graph;

static void set_up(void) {
  graph = judge_graph(tiny_graph);
}

static void tear_down(void) {
  planc_graph_free(graph);
}

/* --- Counts and tables -------------------------------------------------------------------------------------------- */

/* One number of a row of a table, or of the plan itself, is another. */
typedef struct wrong_number {
  enum { PLAN, MEMORIES, LINKS, STREAMS, PREDICTED } table;
  int32_t row;
  size_t at, size;
  int64_t number;
  const char *message;
} wrong_number;

#define MEMBER(type, member) offsetof(type, member), sizeof(((type *)0)->member)
#define OF_PLAN(member) PLAN, 0, MEMBER(planc_plan, member)
#define OF_MEMORY(m, member) MEMORIES, m, MEMBER(planc_memory, member)
#define OF_LINK(l, member) LINKS, l, MEMBER(planc_plan_link, member)
#define OF_STREAM(s, member) STREAMS, s, MEMBER(planc_stream, member)
#define OF_PREDICTED(j, member) PREDICTED, j, MEMBER(planc_job_predictions, member)

/* What no file can say. */
#define BEYOND ((INT64_C(1) << 53) + 1)

/* Links 0 to 2, of engine 0, lead from the user to the device and the host, and from the host to the device; links 3 to
 * 5, of engine 1, back. */
static const wrong_number broken[] = {
    {OF_PLAN(n_residencies), 13, "body: it opens residencies up to 12, the header counts 13"},
    {OF_PLAN(n_residencies), 11, "residency 11 comes where 11 is due, of 11"},
    {OF_PLAN(n_residencies), 1, "the number of residencies is out of range"},
    {OF_PLAN(n_events), 8, "there are 8 events"},
    {OF_PLAN(n_events), 1 << 30, "the number of events is out of range"},
    {OF_PLAN(n_jobs), 0, "the number of jobs is out of range"},
    {OF_PLAN(n_algorithms), 0, "exec f1: there is no algorithm 0"},
    {OF_PLAN(n_links), 0, "stream 1: there is no engine 0"},

    {OF_PLAN(device.launch_ns), -1, "device: launch or in_flight are out of range"},
    {OF_PLAN(device.launch_ns), BEYOND, "device: launch or in_flight are out of range"},
    {OF_PLAN(device.in_flight), -1, "device: launch or in_flight are out of range"},
    {OF_PLAN(device.duplex_ppm), 0, "device: a duplex of 0"},
    {OF_PLAN(device.duplex_ppm), 1000001, "device: a duplex of 1000001"},
    {OF_PLAN(device.slowdown_ppm), -1, "device: a slowdown of -1"},
    {OF_PLAN(device.slowdown_ppm), INT64_C(1) << 31, "device: a slowdown of 2147483648"},
    {OF_PLAN(predicted.period_ns), -1, "predictions: -1 is out of range"},
    {OF_PLAN(predicted.bound_ns), BEYOND, "predictions: 9007199254740993 is out of range"},
    {OF_PREDICTED(0, ideal_ns), -1, "predictions: -1 is out of range"},
    {OF_PREDICTED(0, busy_ns), BEYOND, "predictions: 9007199254740993 is out of range"},
    {OF_PREDICTED(0, stall_ns), BEYOND, "predictions: 9007199254740993 is out of range"},

    {OF_PLAN(n_memories), 0, "the memories are not those of devices, host, storage and user in order"},
    {OF_PLAN(n_memories), 2, "the memories are not those of devices, host, storage and user in order"},
    {OF_MEMORY(DEVICE, kind), PLANC_MEMORY_HOST, "the memories are not those of devices, host, storage and user"},
    {OF_MEMORY(HOST, kind), PLANC_MEMORY_DEVICE, "the memories are not those of devices, host, storage and user"},
    {OF_MEMORY(HOST, kind), PLANC_MEMORY_STORAGE, "the memories are not those of devices, host, storage and user"},
    {OF_MEMORY(USER, kind), PLANC_MEMORY_STORAGE, "the memories are not those of devices, host, storage and user"},
    {OF_MEMORY(USER, kind), PLANC_MEMORY_HOST, "the memories are not those of devices, host, storage and user"},
    {OF_MEMORY(DEVICE, gpu), 1, "memory 0: it belongs to GPU 1"},
    {OF_MEMORY(DEVICE, arena_bytes), 3072, "512 bytes from workspace address 3072 on are not inside the arena of 3072"},
    {OF_MEMORY(DEVICE, arena_bytes), -1, "memory 0: an arena or reserved memory of -1 bytes"},
    {OF_MEMORY(HOST, arena_bytes), 0, "acquire y: 256 bytes from address 0 on are not inside the arena of 0 bytes"},
    {OF_MEMORY(HOST, arena_bytes), BEYOND, "memory 1: an arena or reserved memory of 9007199254740993 bytes"},
    {OF_MEMORY(DEVICE, reserved_bytes), -1, "memory 0: an arena or reserved memory of -1 bytes"},
    {OF_MEMORY(HOST, reserved_bytes), -1, "memory 1: an arena or reserved memory of -1 bytes"},
    {OF_MEMORY(HOST, reserved_bytes), BEYOND - 1, "memory 1: its arenas and reserved memory are beyond 2^53 bytes"},
    {OF_MEMORY(DEVICE, bytes), -2, "memory 0: its bytes or budget are out of range"},
    {OF_MEMORY(HOST, bytes), BEYOND, "memory 1: its bytes or budget are out of range"},
    {OF_MEMORY(HOST, budget_bytes), -2, "memory 1: its bytes or budget are out of range"},
    {OF_MEMORY(DEVICE, budget_bytes), BEYOND, "memory 0: its bytes or budget are out of range"},
    {OF_MEMORY(DEVICE, alignment), 300, "memory 0: an alignment of 300"},
    {OF_MEMORY(HOST, alignment), 0, "memory 1: an alignment of 0"},
    {OF_MEMORY(HOST, alignment), -256, "memory 1: an alignment of -256"},
    {OF_MEMORY(HOST, chunk_bytes), 256, "memory 1: it has what only others have"},

    {OF_LINK(2, to), 3, "link 2: it leads from or to a memory that there is not"},
    {OF_LINK(2, from), -1, "link 2: it leads from or to a memory that there is not"},
    {OF_LINK(0, to), USER, "link 0: it leads from a memory to itself"},
    {OF_LINK(3, engine), 6, "link 3: engine or bus are out of range"},
    {OF_LINK(3, engine), -1, "link 3: engine or bus are out of range"},
    {OF_LINK(5, engine), 3, "engine 2 has no link, engine 3 has"},
    {OF_LINK(4, bus), 6, "link 4: engine or bus are out of range"},
    {OF_LINK(4, bus), 0, "link 4: another link of its engine is on another bus"},
    {OF_LINK(0, bus), 1, "link 1: another link of its engine is on another bus"},
    {OF_LINK(0, cost.bytes_per_second), 0, "link 0: its rate or latency is out of range"},
    {OF_LINK(0, cost.latency_ns), -1, "link 0: its rate or latency is out of range"},
    {OF_LINK(0, cost.bytes_per_second), BEYOND, "link 0: its rate or latency is out of range"},
    {OF_LINK(0, cost.latency_ns), BEYOND, "link 0: its rate or latency is out of range"},
    {OF_LINK(1, to), DEVICE, "it stands twice, as link"},
    {OF_LINK(0, engine), 1, "prefetch w: stream 1 does not copy from the user to device 0"},
    {OF_LINK(5, from), USER, "offload y: stream 2 does not copy from device 0 to the host"},

    {OF_STREAM(1, job), 3, "stream 1: there is no job 3"},
    {OF_STREAM(1, job), -1, "stream 1: there is no job -1"},
    {OF_STREAM(0, on), HOST, "stream 0: memory 1 is not a device's"},
    {OF_STREAM(0, on), -1, "stream 0: memory -1 is not a device's"},
    {OF_STREAM(2, on), 2, "stream 2: there is no engine 2"},
    {OF_STREAM(2, on), 0, "offload y: stream 2 does not copy from device 0 to the host"},
    {OF_STREAM(0, kind), PLANC_STREAM_KIND_copy, "exec f1: stream 0 is not a compute stream"},
};

/* What no file can say, or only in one way. */
static const wrong_number unwritten[] = {
    {OF_PLAN(n_streams), PLANC_PLAN_MAX_STREAMS + 1, "the number of streams is out of range"},
    {OF_PLAN(n_streams), -1, "the number of streams is out of range"},
    {OF_PLAN(n_links), PLANC_PLAN_MAX_LINKS + 1, "the number of links is out of range"},
    {OF_PLAN(n_memories), PLANC_PLAN_MAX_MEMORIES + 1, "the memories are not those of devices"},
    {OF_MEMORY(USER, kind), PLANC_N_MEMORY_KINDS, "the memories are not those of devices, host, storage and user"},
    {OF_MEMORY(HOST, gpu), 0, "memory 1: it belongs to GPU 0"},
    {OF_MEMORY(USER, arena_bytes), 256, "memory 2: it has what only others have"},
    {OF_MEMORY(USER, alignment), 128, "memory 2: an alignment of 128"},
    {OF_LINK(4, bus), -2, "link 4: engine or bus are out of range"},
    {OF_STREAM(1, kind), PLANC_STREAM_KIND_copy + 1, "stream 1: there is no engine 0"},
};

static planc_plan *with_number(const wrong_number *wrong) {
  planc_plan *plan = tiny_plan(graph, tiny_script);
  char *rows[] = {[PLAN] = (char *)plan,
                  [MEMORIES] = (char *)&plan->memories[wrong->row],
                  [LINKS] = (char *)&plan->links[wrong->row],
                  [STREAMS] = (char *)&plan->streams[wrong->row],
                  [PREDICTED] = (char *)&plan->predicted.jobs[wrong->row]};
  int32_t narrow = (int32_t)wrong->number;
  const void *number = wrong->size == sizeof narrow ? (const void *)&narrow : &wrong->number;
  memcpy(rows[wrong->table] + wrong->at, number, wrong->size);
  return plan;
}

START_TEST(a_wrong_number_is_named) {
  planc_plan *plan = with_number(&broken[_i]);
  judge_expect(plan, PLANC_INVALID_PLAN, broken[_i].message, broken[_i].message);
  planc_plan_free(plan);
}
END_TEST

START_TEST(so_is_one_that_no_file_says) {
  planc_plan *plan = with_number(&unwritten[_i]);
  assert_fails(planc_check(plan, NULL, NULL), PLANC_INVALID_PLAN, unwritten[_i].message);
  planc_plan_free(plan);
}
END_TEST

/* --- Jobs --------------------------------------------------------------------------------------------------------- */

/* A recompute with another algorithm restores other bits. */
START_TEST(a_recompute_takes_the_same_algorithm) {
  static const char *const algorithms[] = {"one", "other"};
  planc_plan *plan = tiny_plan(graph, tiny_script);
  plan->algorithms = algorithms;
  plan->n_algorithms = 2;
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].recompute) ((planc_instr *)plan->body.instrs)[i].aux = 1;
  judge_expect(plan, PLANC_INVALID_PLAN, "exec f1: recomputes with algorithm other what ran with one", "other");
  planc_plan_free(plan);
}
END_TEST

static const int64_t two_rounds[] = {2, 2};

static const struct {
  int64_t batch;
  int32_t n_rounds, iterations;
  const char *message;
} jobs[] = {
    {3, 1, 1, "jobs: the rounds have 2 samples, the batch 3"},
    {4, 2, 1, "the jobs have at least 11 instances and 28 accesses, the body has 49 instructions and 19 uses"},
    /* A trace far beyond any memory must be refused before it is made. */
    {2, 1, INT32_MAX, "the jobs have at least 12884901882 instances"},
};

START_TEST(a_wrong_job_is_named) {
  planc_plan *plan = tiny_plan(graph, tiny_script);
  planc_job job = plan->jobs[0];
  job.batch = jobs[_i].batch;
  job.n_rounds = jobs[_i].n_rounds;
  job.rounds = two_rounds;
  job.iterations = jobs[_i].iterations;
  plan->jobs = &job;
  judge_expect(plan, PLANC_INVALID_PLAN, jobs[_i].message, jobs[_i].message);
  planc_plan_free(plan);
}
END_TEST

/* --- Alignments --------------------------------------------------------------------------------------------------- */

static planc_instr *first_of(const planc_plan *plan, planc_instr_op op, int32_t memory) {
  planc_instr *instrs = (planc_instr *)plan->body.instrs;
  int32_t i = 0;
  while (instrs[i].op != op || (op == PLANC_INSTR_acquire && instrs[i].memory != memory)) i++;
  return &instrs[i];
}

/* Moves what is on the device to multiples of 1024. */
static planc_plan *spread_out(void) {
  planc_plan *plan = tiny_plan(graph, tiny_script);
  planc_memory *device = &plan->memories[DEVICE];
  const planc_section *sections[] = {&plan->prologue, &plan->body};
  for (int s = 0; s < 2; s++) {
    for (int32_t i = 0; i < sections[s]->n; i++) {
      planc_instr *instr = (planc_instr *)&sections[s]->instrs[i];
      if (instr->op == PLANC_INSTR_exec || (instr->op == PLANC_INSTR_acquire && instr->memory == DEVICE))
        instr->address *= 4;
    }
  }
  for (int32_t b = 0; b < plan->n_boundary; b++) ((planc_boundary *)plan->boundary)[b].address *= 4;
  device->arena_bytes = device->budget_bytes = 4 * device->arena_bytes;
  device->alignment = 1024;
  return plan;
}

START_TEST(addresses_are_aligned_as_their_memory_says) {
  planc_plan *plan = spread_out();
  judge_expect(plan, PLANC_OK, "ok", "multiples of 1024");
  first_of(plan, PLANC_INSTR_exec, DEVICE)->address += 256;
  judge_expect(plan, PLANC_INVALID_PLAN, "exec f1: workspace address 12544 is not a multiple of 1024", "workspace");
  first_of(plan, PLANC_INSTR_exec, DEVICE)->address -= 256;
  first_of(plan, PLANC_INSTR_acquire, DEVICE)->address += 512;
  judge_expect(plan, PLANC_INVALID_PLAN, "acquire x: address 2560 is not a multiple of 1024", "residency");
  first_of(plan, PLANC_INSTR_acquire, DEVICE)->address -= 512;
  /* Of the host it is another. */
  first_of(plan, PLANC_INSTR_acquire, HOST)->address = 256;
  judge_expect(plan, PLANC_OK, "ok", "a multiple of 256");
  plan->memories[HOST].alignment = 512;
  judge_expect(plan, PLANC_INVALID_PLAN, "acquire y: address 256 is not a multiple of 512", "host");
  planc_plan_free(plan);
}
END_TEST

/* --- Budgets ------------------------------------------------------------------------------------------------------ */

START_TEST(budgets_are_checked_last_and_with_numbers) {
  planc_plan *plan = tiny_plan(graph, tiny_script);
  plan->memories[DEVICE].reserved_bytes = 100;
  judge_expect(plan, PLANC_INFEASIBLE,
               "needs 4196 bytes on the device (arena 4096, reserved 100), the budget is 4096, 100 too few", "budget");
  planc_check_options options = {.budgets = {4196, -1, -1}};
  ok(planc_check(plan, &options, NULL));
  options.budgets[PLANC_MEMORY_HOST] = 511;
  static const char host[] = "host needs 512 bytes, its budget is 511, 1 too few";
  planc_status status = planc_check(plan, &options, NULL);
  ck_assert_int_eq(planc_status_code(status), PLANC_INFEASIBLE);
  ck_assert_str_eq(planc_status_message(status), host);
  planc_status_free(status);
  /* The plan's own, and what is reserved of the host counts too. */
  plan->memories[DEVICE].budget_bytes = -1;
  plan->memories[HOST].budget_bytes = 511;
  judge_expect(plan, PLANC_INFEASIBLE, host, "the host's own budget");
  plan->memories[HOST].budget_bytes = 512;
  judge_expect(plan, PLANC_OK, "ok", "no budget of the device");
  plan->memories[HOST].reserved_bytes = 8;
  judge_expect(plan, PLANC_INFEASIBLE, "host needs 520 bytes, its budget is 512, 8 too few", "reserved host memory");
  planc_plan_free(plan);

  char *text = judge_edited(tiny_script, "release 10\n", "");
  plan = tiny_plan(graph, text);
  plan->memories[DEVICE].budget_bytes = 1;
  judge_expect(plan, PLANC_INVALID_PLAN, "residency 10", "an invalid plan over budget is invalid");
  planc_plan_free(plan);
  free(text);
}
END_TEST

/* Of several devices each has its own budget. */
START_TEST(every_device_has_its_budget) {
  char *text = judge_edited(tiny_script, "boundary w 0\n", "gpus 1\nboundary w 0\n");
  planc_plan *plan = tiny_plan(graph, text);
  judge_expect(plan, PLANC_OK, "ok", "on the second GPU");
  plan->memories[0].reserved_bytes = 1;
  judge_expect(plan, PLANC_INFEASIBLE, "needs 4097 bytes on GPU 0", "the first");
  plan->memories[0] = (planc_memory){.budget_bytes = 0, .alignment = PLANC_ALIGNMENT};
  judge_expect(plan, PLANC_OK, "ok", "nothing is on the first");
  plan->memories[1].budget_bytes = 4095;
  judge_expect(plan, PLANC_INFEASIBLE, "the budget is 4095, 1 too few", "the second");
  planc_plan_free(plan);
  free(text);
}
END_TEST

/* --- Virtual memory ----------------------------------------------------------------------------------------------- */

enum { CHUNK = 256, CHUNKS = TINY_ARENA / CHUNK };

/* The plan with its chunks in another order in the arena. */
static planc_plan *make_mapped(planc_mapping mappings[CHUNKS]) {
  planc_plan *plan = tiny_plan(graph, tiny_script);
  for (int k = 0; k < CHUNKS; k++) mappings[k] = (planc_mapping){CHUNKS - 1 - k, 1};
  tables_map(plan, CHUNK, mappings, CHUNKS);
  return plan;
}

START_TEST(chunks_may_lie_anywhere) {
  planc_mapping mappings[CHUNKS];
  planc_plan *plan = make_mapped(mappings);
  judge_expect(plan, PLANC_OK, "ok", "backwards");
  /* What no instruction touches may be a second name of anything, and the arena smaller for it. */
  for (int k = 0; k < CHUNKS; k++) mappings[k] = (planc_mapping){k < 14 ? k : 0, 1};
  plan->memories[DEVICE].arena_bytes = INT64_C(14) * CHUNK;
  planc_check_report report;
  ok(planc_check(plan, NULL, &report));
  ck_assert_int_eq(report.peak_bytes[PLANC_MEMORY_DEVICE], INT64_C(14) * CHUNK);
  ck_assert_int_eq(report.touched_bytes[PLANC_MEMORY_DEVICE], INT64_C(14) * CHUNK);
  planc_plan_free(plan);
}
END_TEST

/* Chunk `chunk` of the addresses, or (-1) all of them, is mapped to where `as` is. */
static const struct {
  int chunk, as;
  const char *message;
} broken_maps[] = {
    {3, 2, "acquire y: overlaps x in residency 2, which is open at 512"},
    {0, 1, "acquire s: overlaps w in residency 0, which is open at 0"},
    {13, 12, "exec f1: lies twice on the same bytes of the arena"},
    {12, 0, "exec f1: overlaps w in residency 0"},
    {8, 5, "move y: writes y, whose bytes offload at line 79"}, /* the loss is released, but nobody has waited for its
                                                                   copy to the user */
    {4, 14, "valid"},
};

START_TEST(what_is_mapped_to_the_same_bytes_conflicts) {
  planc_mapping mappings[CHUNKS];
  planc_plan *plan = make_mapped(mappings);
  mappings[broken_maps[_i].chunk].first = mappings[broken_maps[_i].as].first;
  bool valid = strcmp(broken_maps[_i].message, "valid") == 0;
  judge_expect(plan, valid ? PLANC_OK : PLANC_INVALID_PLAN, valid ? "ok" : broken_maps[_i].message, "alias");
  planc_plan_free(plan);
}
END_TEST

START_TEST(mappings_are_whole_chunks_of_the_arena) {
  planc_mapping mappings[CHUNKS];
  planc_plan *plan = make_mapped(mappings);
  planc_memory *device = &plan->memories[DEVICE];
  mappings[7].first = CHUNKS;
  judge_expect(plan, PLANC_INVALID_PLAN, "memory 0: mapping 7: 1 chunks from 16 on, of 16 in the arena",
               "beyond the arena");
  mappings[7] = (planc_mapping){CHUNKS - 1, 2};
  judge_expect(plan, PLANC_INVALID_PLAN, "memory 0: mapping 7", "its end beyond the arena");
  mappings[7] = (planc_mapping){8, 1};
  tables_map(plan, CHUNK, mappings, 13);
  judge_expect(plan, PLANC_INVALID_PLAN, "workspace address 3072 on are not inside", "addresses that are not mapped");
  device->chunk_bytes = 2048 + 256;
  judge_expect(plan, PLANC_INVALID_PLAN, "memory 0: chunks of 2304 bytes", "no whole chunks");
  device->chunk_bytes = 128;
  judge_expect(plan, PLANC_INVALID_PLAN, "memory 0: chunks of 128 bytes", "chunks that are not aligned");
  device->chunk_bytes = CHUNK;
  device->alignment = 2 * CHUNK;
  judge_expect(plan, PLANC_INVALID_PLAN, "memory 0: chunks of 256 bytes", "chunks smaller than the alignment");
  planc_plan_free(plan);
}
END_TEST

START_TEST(every_mapping_belongs_to_a_memory) {
  static const char gap[] = "its mappings do not follow those of the memory before";
  planc_mapping mappings[CHUNKS];
  planc_plan *plan = make_mapped(mappings);
  plan->memories[HOST].first_mapping--;
  assert_fails(planc_check(plan, NULL, NULL), PLANC_INVALID_PLAN, gap);
  plan->memories[HOST].first_mapping++;
  plan->memories[DEVICE].n_mappings = -1;
  assert_fails(planc_check(plan, NULL, NULL), PLANC_INVALID_PLAN, gap);
  plan->memories[DEVICE].n_mappings = CHUNKS + 1;
  assert_fails(planc_check(plan, NULL, NULL), PLANC_INVALID_PLAN, gap);
  tables_map(plan, CHUNK, mappings, CHUNKS - 1);
  plan->n_mappings = CHUNKS;
  assert_fails(planc_check(plan, NULL, NULL), PLANC_INVALID_PLAN, "16 mappings, of which memories have 15");
  planc_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("check_tables");
  TCase *cases = tcase_create("all");
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_loop_test(cases, a_wrong_number_is_named, 0, sizeof broken / sizeof *broken);
  tcase_add_loop_test(cases, so_is_one_that_no_file_says, 0, sizeof unwritten / sizeof *unwritten);
  tcase_add_test(cases, a_recompute_takes_the_same_algorithm);
  tcase_add_loop_test(cases, a_wrong_job_is_named, 0, sizeof jobs / sizeof *jobs);
  tcase_add_test(cases, addresses_are_aligned_as_their_memory_says);
  tcase_add_test(cases, budgets_are_checked_last_and_with_numbers);
  tcase_add_test(cases, every_device_has_its_budget);
  tcase_add_test(cases, chunks_may_lie_anywhere);
  tcase_add_loop_test(cases, what_is_mapped_to_the_same_bytes_conflicts, 0, sizeof broken_maps / sizeof *broken_maps);
  tcase_add_test(cases, mappings_are_whole_chunks_of_the_arena);
  tcase_add_test(cases, every_mapping_belongs_to_a_memory);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
