/* What the subcommands of planc share: inputs with defaults, reports. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/setting_options.h"
#include "planc/colocate.h"
#include "planc/metrics.h"
#include "program/program.h"
#include "util/json_tree.h"
#include "util/size.h"

extern const prog_subcommand cli_cmd_plan, cli_cmd_colocate, cli_cmd_check, cli_cmd_simulate, cli_cmd_compare,
    cli_cmd_show, cli_cmd_train, cli_cmd_predict, cli_cmd_update, cli_cmd_place, cli_cmd_bound, cli_cmd_explain,
    cli_cmd_torch;

/* Options of every command that is to run a graph under a budget. Storage is there for plans only, and stands in their
 * help behind the other budgets. */
#define CLI_BUDGET_OPTIONS CLI_BUDGET_OPTIONS_WITH("FILE")
/* `profiles` ends in " ..." where there may be several. */
#define CLI_BUDGET_OPTIONS_WITH(profiles)                                                                 \
  {"batch", 'b', "N", "samples per iteration (default: the graph's header, else 32)"},                    \
      {"device", 'd', "NAME|FILE", "device description (default: the graph's header, else h100)"},        \
      {"profile", 'p', profiles, "measured profile to plan with, instead of --device"},                   \
      {"launch", 0, "TIME", "host time to launch an op (default: the profile's)"},                        \
      {"reserved", 0, "SIZE", "device memory that contexts and libraries take (default: the profile's)"}, \
      {"budget", 'm', "SIZE",                                                                             \
       "device memory, reserved bytes included (default: the device's, or what is lent of it)"},          \
  {                                                                                                       \
    "host-budget", 0, "SIZE", "host memory for offloaded data (default: not limited)"                     \
  }
#define CLI_TRAINING_OPTIONS                                                                              \
  {"optimizer", 0, "NAME",                                                                                \
   "sgd, momentum or adam, where the graph has no backward ops (default: the graph's header, else sgd)"}, \
      {"inference", 0, NULL, "plan the graph as it stands, without deriving training"},                   \
      {"sub-batch", 0, "N", "samples per round, for policies that split (default: they choose)"}, {       \
    "split-batch-norm", 0, NULL, "allow rounds although batch normalisation couples the batch"            \
  }
#define CLI_WORK_OPTIONS CLI_BUDGET_OPTIONS, CLI_TRAINING_OPTIONS
/* Options of every command that plans. */
#define CLI_PROBLEM_OPTIONS CLI_PROBLEM_OPTIONS_WITH("FILE")
#define CLI_PROBLEM_OPTIONS_WITH(profiles)                                                               \
  CLI_BUDGET_OPTIONS_WITH(profiles),                                                                     \
      {"storage", 0, "SIZE", "storage for what the host budget has no room for (default: none)"},        \
      CLI_TRAINING_OPTIONS,                                                                              \
      {"gpus", 0, "N", "GPUs that train together, each on an equal part of the batch (default: 1)"},     \
      {"shared-link", 0, NULL, "the GPUs share one link to the host"},                                   \
      {"placement", 0, "NAME",                                                                           \
       "best-fit: in one piece; paged: in pages of virtual memory; vmm: in chunks (default: best-fit)"}, \
      {"chunk", 0, "SIZE", "chunk of --placement vmm, page of paged (defaults: 40M, 2M)"},               \
      PLANC_JOB_SETTINGS(CLI_OWN_SETTING) PLANC_ANY_SETTINGS(CLI_OWN_SETTING)

/* The device where nothing names one. */
#define CLI_DEFAULT_DEVICE "h100"

/* Says on standard error what is reserved of a device on which something has no room. */
void cli_note_reserved(const planc_device *device);

/* How long the bound is looked for that a plan states: 50 ms for a thousand ops. */
enum { CLI_BOUND_EFFORT = 1 };

/* A planning problem with everything it borrows. */
typedef struct cli_setup {
  planc_graph *graph;
  planc_profile *profile;
  planc_problem problem;
} cli_setup;

/* Reads graph and profile and fills the problem from options and defaults; says on standard error which defaults it
 * took. Free with cli_setup_free, also after a failure. */
planc_status cli_setup_read(const prog_arguments *arguments, const char *graph_path, cli_setup *out);
/* The same, but for a budget of the device where none is given: -1 then. */
planc_status cli_setup_work(const prog_arguments *arguments, const char *graph_path, cli_setup *out);
void cli_setup_free(cli_setup *setup);
/* Reads a graph and, unless it has backward ops or `inference`, derives training with `optimizer` (NULL: default); says
 * so on standard error, and that `as_it_is` on the command line leaves it as it is. */
planc_status cli_setup_graph(const char *path, const char *optimizer, bool inference, const char *as_it_is,
                             planc_graph **out);
/* How a command with one graph says that. */
#define CLI_AS_IT_IS "--inference plans it as it is"
/* Finds the description of a device, or the model, and reads it: a file more that the command uses. */
planc_status cli_setup_device(const prog_arguments *arguments, const char *name, planc_profile **out);
/* That of --device, else the one that the graph's header names, else the fall-back, which it says on standard error. */
planc_status cli_setup_device_for(const prog_arguments *arguments, const planc_graph *graph, planc_profile **out);
/* What launching an op costs the host by option `launch`, and what is reserved by option `reserved`, in place of what
 * the profile says. */
planc_status cli_setup_instead(const prog_arguments *arguments, planc_profile *profile);
/* Hands each of the names "A,B,..." that an option lists to `take`. */
planc_status cli_each_name(const char *names, planc_status (*take)(void *user, const char *name), void *user);
/* The batch: what is asked for, where 0 is nothing: the header's then, else the fall-back, which it says on standard
 * error. USAGE where another one is asked for, as `what` says, than a graph has that is of one batch size; where the
 * header does not tell which that is, the batch is 1. */
planc_status cli_setup_batch(const planc_graph *graph, const char *what, int64_t asked, int64_t *out);
/* That a graph has one batch size, as one that `planc torch` has recorded without --batches: USAGE. */
planc_status cli_refuse_batch(const planc_graph *graph, const char *what);
/* Whether it is known how many samples a batch of a graph has. */
bool cli_knows_batch(const planc_graph *graph, int64_t batch);
enum { CLI_BATCH_TEXT = 32 };
/* "batch 64", or "its own batch". */
const char *cli_batch_format(const planc_graph *graph, int64_t batch, char buffer[CLI_BATCH_TEXT]);
/* Member "batch": null where it is not known. */
void cli_report_batch(cJSON *object, const planc_graph *graph, int64_t batch);
/* Whether a profile is of a graph, and how many of its ops it lists: says on standard error when it was made for
 * another. */
planc_profile_of cli_note_graph(const char *path, const planc_profile *profile, const planc_graph *graph,
                                int32_t *out_listed);
/* Reads a profile of a graph's ops; says on standard error when it was made for another. */
planc_status cli_setup_measured(const char *path, const planc_graph *graph, planc_profile **out);
/* The device's memory, or what whoever lends the GPU allows of it, where no budget is given, which it says on standard
 * error; a warning where the budget is beyond the device. USAGE when what the environment says is no size. */
planc_status cli_setup_budget(const planc_device *device, planc_terms *terms);
/* The budgets that options give, by kind of memory; those of memories that none is given for stay what they are. */
planc_status cli_setup_budgets(const prog_arguments *arguments, int64_t budgets[PLANC_N_BUDGETS]);
/* Storage takes what is beyond the host's budget, so there must be one, and the device must know a storage: else USAGE.
 */
planc_status cli_setup_storage(const planc_problem *problem);
/* How policies allocate that do so as they go, the window of policy window, the rate of policy tensile. */
planc_status cli_setup_policy_options(const prog_arguments *arguments, planc_problem *problem);
/* USAGE when an option is given that is for other policies than this one, for a job or for mixes. `policy` is its name;
 * NULL: `supports` are those of several. */
planc_status cli_setup_useful(const prog_arguments *arguments, const char *policy, uint32_t supports);
/* The same, or when a chunk is given where there are none. */
planc_status cli_setup_own_options(const prog_arguments *arguments, const planc_policy *policy,
                                   const planc_problem *problem);
/* An option that is a decimal fraction from 0 to `most`, in ppm. */
planc_status cli_setup_share(const prog_arguments *arguments, const char *name, int32_t most, int64_t fallback_ppm,
                             int64_t *out_ppm);
/* The policy called `name`; one that there is not fails with `code`. */
planc_status cli_setup_policy(const char *name, planc_code code, const planc_policy **out);
/* USAGE when the policy is only simulated. */
planc_status cli_setup_plans(const planc_policy *policy);

/* Returns how planning ended; where there is no plan for the budget, says before on standard error what the least one
 * is and what binds there. Takes ownership of `status`. */
planc_status cli_explain(const planc_problem *problem, const planc_policy *policy, planc_status status);
/* The same of a mix: says what the least budget of each job alone is, and of all of them. */
planc_status cli_explain_mix(const planc_mix *mix, const planc_mix_policy *policy, planc_status status);
/* The same where a mix is late by those shares: says with which iterations it would be in time, or which deadlines.
 * `how` is said behind iterations where the command at hand does not take them; else it is empty. */
planc_status cli_explain_late(const planc_mix *mix, const planc_mix_policy *policy, const planc_mix_share *shares,
                              const char *how, planc_status status);
/* From here on a terminal shows which policies are asked by whoever is given this, and the first interrupt ends their
 * planning with the best plan that was found. */
const planc_watch *cli_watch(void);
/* The line on the terminal is at an end. Gives back what it is given. */
planc_status cli_watch_end(planc_status status);
/* "budget", "host budget" or "storage". */
const char *cli_budget_name(planc_memory_kind memory);
/* Says on standard error for which sizes of rounds workspaces of a job are guesses, as its profile lists none. */
planc_status cli_note_workspaces(const planc_plan *plan, int32_t job, const planc_profile *profile);
/* What --output says, else the first operand's name with its folder and ending cut off and `ending` put on; malloc'ed.
 */
planc_status cli_output_name(const prog_arguments *arguments, const char *ending, char **out);
const char *cli_without_folder(const char *path);
/* Writes a plan that was made here, once it has passed its own check. */
planc_status cli_write_plan(const planc_plan *plan, const char *output);
/* The text of one, for files that are written together; malloc'ed. */
planc_status cli_print_plan(const planc_plan *plan, char **text, size_t *length);
/* What is in a plan that was written, on standard output. Of a mix, `shares` are by job; else NULL. */
planc_status cli_summarize(const planc_plan *plan, const planc_mix_share *shares, const char *output, bool json);
/* The text of that; where `has_ideal` is false, ideal times are left out. */
void cli_print_summary(const planc_plan *plan, const planc_mix_share *shares, const char *output, bool has_ideal);
/* The same as a JSON object. */
cJSON *cli_summary_json(const planc_plan *plan, const planc_mix_share *shares, const char *output);

/* A line on standard error: "planc: note: ...". */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* All measures; null those that are not defined, and all of them where `metrics` is NULL. */
void cli_report_metrics(cJSON *object, const planc_metrics *metrics);
/* A measure for people, "-" where it is not defined: parts per million as a number with so many digits behind the
 * point, or as "+2.3%". Both return `buffer`. */
enum { CLI_METRIC_TEXT = 32 };
const char *cli_metric_format(int64_t ppm, int digits, char buffer[CLI_METRIC_TEXT]);
const char *cli_percent_format(int64_t ppm, char buffer[CLI_METRIC_TEXT]);

/* A budget for people, of which there is none where it is negative. Returns `buffer`, or a static string. */
const char *cli_budget_format(int64_t bytes, char buffer[PL_SIZE_TEXT]);

/* The job of a plan that has one, NULL of a plan with several. */
const planc_job *cli_only_job(const planc_plan *plan);
/* What the plan repeats, for people: "period", or "iteration" where that is one iteration of one job. */
const char *cli_period_word(const planc_plan *plan);
/* Whether GPUs share the bandwidth of one link. */
bool cli_shares_link(const planc_plan *plan);
/* Whether the rounds of a job run side by side. */
bool cli_runs_side_by_side(const planc_plan *plan, int32_t job);
/* The work and how GPUs part it, for people: "batch 64 in 2 rounds", "batch 64 on 2 GPUs, 32 each in 1 round", "2
 * jobs"; with the sizes of rounds, "in 2 rounds of 32". */
void cli_print_work(const planc_plan *plan, bool sizes);
/* The same; null what is each job's own. */
void cli_report_work(const planc_plan *plan, cJSON *object);
/* Of a plan with several jobs a few lines, or an element of the array "jobs", for each; of others nothing, and NULL.
 * What is predicted of them may be the plan's own or newly simulated; ideal times are left out where `has_ideal` is
 * false. */
void cli_print_jobs(const planc_plan *plan, const planc_job_predictions *predicted, bool has_ideal);
void cli_report_jobs(const planc_plan *plan, const planc_job_predictions *predicted, cJSON *object);
cJSON *cli_jobs_json(const planc_plan *plan, const planc_job_predictions *predicted);
/* How fast the jobs of a mix are beside each alone: a line, or members of the objects. */
void cli_print_shares(const planc_plan *plan, const planc_mix_share *shares);
void cli_report_shares(const planc_plan *plan, const planc_mix_share *shares, cJSON *object);
/* A line that says why a policy chose a plan, behind `before`; nothing where it does not say. */
void cli_print_explanation(const char *before, const char *explanation);
void cli_report_explanation(const char *explanation, cJSON *object);

/* The storage that a plan uses, behind `separator`; nothing where it uses none. */
void cli_print_storage(const planc_plan *plan, const char *separator);
/* What binds the peak of a plan in a memory, for people: the op there and the largest live buffers. */
planc_status cli_print_peak(const planc_plan *plan, planc_memory_kind memory, FILE *out);
planc_status cli_report_peak(const planc_plan *plan, planc_memory_kind memory, const char *key, cJSON *object);
/* What a plan was made for, beside the device's budget: those of host and storage with what is there, its links, and
 * what was asked of its policy for all jobs, or for one. */
void cli_print_moved(const planc_job_predictions *predicted); /* ends the line */
void cli_print_away(const planc_plan *plan);
void cli_print_links(const planc_plan *plan);
void cli_print_settings(const planc_plan *plan);
void cli_print_own_settings(const planc_job *job);
void cli_report_terms(const planc_plan *plan, cJSON *object);

#endif
