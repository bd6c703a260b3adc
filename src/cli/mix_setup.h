/* From command-line operands and options to a mix of jobs. */
#ifndef CLI_MIX_SETUP_H
#define CLI_MIX_SETUP_H

#include "cli/cli.h"

/* A job as the command line names it: [NAME=]GRAPH[:BATCH[:ITERATIONS]][:inference]. */
typedef struct cli_mix_operand {
  char *name;         /* malloc'ed, or NULL */
  char *path;         /* malloc'ed */
  int64_t batch;      /* 0 = the graph's */
  int32_t iterations; /* 0 = planc chooses */
  bool inference;
} cli_mix_operand;
/* USAGE when a number is out of range, or the name too long. What comes out is freed in any case. */
planc_status cli_mix_operand_parse(const char *text, cli_mix_operand *out);
void cli_mix_operand_free(cli_mix_operand *operand);
/* USAGE where there is one job alone that has no name, and no --accumulate. */
planc_status cli_mix_check_number(const prog_arguments *arguments);

/* A mix with everything that it borrows. Jobs of the same graph file, settings and profile share both. */
typedef struct cli_mix {
  int32_t n;
  cli_mix_operand *operands;
  planc_graph **graphs;
  planc_profile **profiles;
  planc_workload *jobs;
  int32_t *iterations;
  const char **names;        /* NULL = none */
  int64_t *deadlines_ns;     /* 0 = none */
  int64_t *least_shares_ppm; /* 0 = none */
  int32_t *weights;
  bool takes_optimizer; /* some graph is trained with that of --optimizer */
  planc_mix mix;
} cli_mix;

#define CLI_MIX_OPERANDS "[NAME=]GRAPH[:BATCH[:ITERATIONS]][:inference] ..."
/* Options of every command that plans a mix; those of policies' own settings. */
#define CLI_MIX_EACH_SETTING(name, option, kind, least, most, standard, users, help) \
  {option, 0, CLI_ARGUMENT_##kind " ...",                                            \
   CLI_HELP_##kind(help ", one of all jobs or one of each, in order", least, most, PLANC_SETTING_TEXT(standard))},
#define CLI_MIX_OPTIONS                                                                                          \
  {"device", 'd', "NAME|FILE", "device description (default: the graphs' headers, else h100)"},                  \
      {"profile", 'p', "FILE ...", "measured profiles to plan with, one of all jobs or one of each, in order"},  \
      {"launch", 0, "TIME", "host time to launch an op (default: the profile's)"},                               \
      {"reserved", 0, "SIZE", "device memory that contexts and libraries take (default: the profile's)"},        \
      {"budget", 'm', "SIZE",                                                                                    \
       "device memory of all jobs, reserved bytes included (default: the device's, or what is lent of it)"},     \
      {"host-budget", 0, "SIZE", "host memory for offloaded data of all jobs (default: not limited)"},           \
      {"optimizer", 0, "NAME",                                                                                   \
       "sgd, momentum or adam, where a graph has no backward ops (default: its header, else sgd)"},              \
      {"max-ratio", 0, "N",                                                                                      \
       "most iterations per period that are chosen for a job (default: 8; 1024 for a job with a deadline)"},     \
      {"priority", 0, "JOB:N ...",                                                                               \
       "of a job's ops on the GPU beside those of other jobs, from 0 to 5, the most first (default: 0)"},        \
      {"weight", 0, "JOB:N ...",                                                                                 \
       "time of the GPU that a job gets for each that one of weight 1 gets, from 1 to 1000 (default: 1)"},       \
      PLANC_EACH_SETTINGS(CLI_MIX_EACH_SETTING){                                                                 \
          "accumulate", 0, "[JOB:]K ...",                                                                        \
          "split a job's batch into K rounds that run side by side, without JOB that of every job that trains"}, \
      {"split-batch-norm", 0, NULL, "allow rounds although batch normalisation couples the batch"},              \
      PLANC_MIX_SETTINGS(CLI_OWN_SETTING) PLANC_ANY_SETTINGS(CLI_OWN_SETTING)

/* Reads everything; says on standard error which defaults it took, but for the budget, which cli_mix_budget takes. Free
 * with cli_mix_free, also after a failure. */
planc_status cli_mix_read(const prog_arguments *arguments, cli_mix *out);
void cli_mix_free(cli_mix *mix);
/* Room for so many jobs, of which nothing is known yet, in a mix that has them. Freed as above, also after a failure.
 */
planc_status cli_mix_allocate(int32_t n, cli_mix *out);
/* Says on standard error which profiles have other figures of the device than the first, whose count for all. */
void cli_mix_note_devices(const cli_mix *mix);
/* Plans the mix under another budget than is read; negative: the device's, as a note says. */
planc_status cli_mix_budget(int64_t bytes, cli_mix *mix);
/* What plans of a mix are held to. By option `deadline`, [JOB:]TIME, deadlines of jobs, without JOB of every job for
 * inference; by option `min-share`, [JOB:]PERCENT, least shares, without JOB of every job. */
#define CLI_MIX_DEMAND_OPTIONS                                                            \
  {"deadline", 0, "[JOB:]TIME ...",                                                       \
   "the longest that a request of a job may take, without JOB of those for inference"},   \
  {                                                                                       \
    "min-share", 0, "[JOB:]PERCENT ...",                                                  \
        "the least part of what it does alone that a job is to do, without JOB every job" \
  }
planc_status cli_mix_read_demands(const prog_arguments *arguments, cli_mix *mix);
/* Which of the jobs run rounds side by side, by option `accumulate`: [JOB:]K, without JOB of every job that trains. */
planc_status cli_mix_read_rounds(const prog_arguments *arguments, cli_mix *mix);
/* USAGE where that is asked for and policies that support this (planc_mix_policy) have no use for it. */
planc_status cli_mix_check_rounds(const prog_arguments *arguments, uint32_t supports);
/* Says on standard error of which jobs the most iterations that may be chosen are far too few to take their part of the
 * period. `shares` are those of planc_mix_resolve. */
void cli_mix_note_ratio(const planc_mix *mix, const planc_mix_share *shares);
/* The JOB of [JOB:]VALUE, a number or a name that it was given, -1 = none, and where the value begins. USAGE where
 * there is no such job. */
planc_status cli_mix_read_job(const char *text, const cli_mix *mix, int32_t *out_job, const char **out_value);
/* The policy for mixes called `name`; USAGE where there is none, or none that has plans, which `for_plan` asks for. */
planc_status cli_mix_policy(const char *name, bool for_plan, const planc_mix_policy **out);
/* The files of the operands and profiles, as list_files of a command tells them. */
planc_status cli_mix_list_files(const prog_arguments *arguments, prog_used_files *files);

#endif
