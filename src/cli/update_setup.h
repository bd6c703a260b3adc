/* What `planc update` has read, asks for and makes. */
#ifndef PLANC_CLI_UPDATE_SETUP_H
#define PLANC_CLI_UPDATE_SETUP_H

#include "cli/mix_setup.h"
#include "util/arena.h"

typedef struct cli_update {
  const prog_arguments *arguments;
  pl_arena arena;
  const char *output;        /* or NULL */
  int32_t n_profile_outputs; /* of jobs in their order */
  int64_t weight_ppm, threshold_ppm;
  planc_plan *plan;
  planc_timeline *timeline;
  planc_profile **read;        /* by job: its own; NULL where an earlier one's serves */
  const planc_profile **bases; /* by job; NULL: none was given */
  planc_update *update;
  int64_t predicted_ns, measured_ns; /* a period of the plan */
  bool is_mix;
  const planc_policy *policy;         /* of a plan of one job, */
  planc_problem problem;              /* as it is to be planned next */
  const planc_mix_policy *mix_policy; /* of a mix */
  cli_mix mix;
  planc_mix_share shares[PLANC_MIX_MAX_JOBS];
  bool asks_for_other_decisions; /* the plan's own are no answer */
  bool asks_for_another;         /* that, or other budgets: reason enough for a plan */
  planc_replanned next;          /* all zero: none was wanted */
  int32_t n_others;              /* ops that it runs with other algorithms; -1: other rounds, or none was wanted */
} cli_update;

/* What is to be planned next: the plan's problem again, as far as the plan tells, with the options given. */
planc_status cli_update_ask_job(cli_update *u);
planc_status cli_update_ask_mix(cli_update *u);
/* Plans that, or says on standard error why not. */
planc_status cli_update_replan_job(cli_update *u);
planc_status cli_update_replan_mix(cli_update *u);

/* Whether a policy has use for a setting of the plan, whose `users` settings.h tells: the plan's own had. */
bool cli_update_has_use(const planc_plan *plan, const char *policy, uint32_t supports, uint32_t users);
/* What was asked for the plan, as far as a policy that supports this has use for it; of the plan's own policy all. */
planc_settings cli_update_kept_settings(const planc_plan *plan, const char *policy, uint32_t supports);
/* The plan's budgets, by kind of memory; a mix is planned without storage. */
void cli_update_read_budgets(const cli_update *u, int64_t budgets[PLANC_N_BUDGETS]);
/* Whether the terms have others. */
bool cli_update_has_other_budgets(const cli_update *u, const planc_terms *terms);
/* Says on standard error what the plan's own decisions need, where planning failed on terms that they do not fit. */
void cli_update_note_kept(const planc_terms *terms, const planc_plan *kept, planc_status failed);
/* Says on standard error, where planning failed in the plan's rounds, how smaller ones are had. */
void cli_update_note_rounds(const cli_update *u, planc_status failed);

/* On standard output, what was done. */
planc_status cli_update_report(const cli_update *u, bool updated);

#endif
