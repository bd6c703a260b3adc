/* What a job of a mix does where it is alone: its candidate for one iteration, which the mix repeats and weaves with
 * those of the others. */
#ifndef PLANC_COLOCATE_SOLO_H
#define PLANC_COLOCATE_SOLO_H

#include "planc/colocate.h"

typedef struct pl_solo {
  planc_candidate candidate; /* of one iteration; its own */
  const char *policy;        /* static */
  int64_t asked_bytes;       /* the device budget at which all policies were asked; 0: none were */
} pl_solo;

/* By policy none where that fits the problem's budgets, with algorithms that are as fast as the device has them, else
 * by the fastest policy that does. INFEASIBLE where none does. */
planc_status pl_solo_make(const planc_mix_evaluator *evaluator, const planc_problem *problem, pl_solo *out);
void pl_solo_free(pl_solo *solo);

/* The jobs of a mix. Those whose problems are the same have one candidate. */
typedef struct pl_solos {
  int32_t n;
  pl_solo *made;               /* by job; empty where an earlier job's serves */
  planc_candidate *candidates; /* by job; borrowed from those */
} pl_solos;
/* Of each of the mix's jobs, by that policy; NULL: as pl_solo_make. *out_failed is the job that failed. Freed with
 * pl_solos_free, also after a failure. */
planc_status pl_solos_make(const planc_mix_evaluator *evaluator, const planc_problem *problems,
                           const planc_policy *policy, pl_solos *out, int32_t *out_failed);
/* Makes what was made for other problems anew, for these, which have no more memory: of each job by the policy it has
 * where all were asked at a budget that was little larger, else as pl_solo_make. To ask all takes long. */
planc_status pl_solos_remake(const planc_mix_evaluator *evaluator, const planc_problem *problems, pl_solos *solos,
                             int32_t *out_failed);
/* Has the candidates follow what was made, after that has changed. */
void pl_solos_share(const planc_problem *problems, pl_solos *solos);
void pl_solos_free(pl_solos *solos);

/* What of the job stays on the device while others have their turn: its parameters and the optimizer's state. */
planc_status pl_solo_kept(const planc_problem *problem, int64_t *out_bytes);

#endif
