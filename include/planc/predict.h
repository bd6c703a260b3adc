/* Prediction: how long the ops of a graph take that has never run, from what other graphs' ops took on the device.
 *
 * A model belongs to a device and is a part of its profile (planc-profile(5), section model). It is fitted in floating
 * point, and what it holds then are integers: a prediction is integer arithmetic alone and the same on every machine.
 *
 * Only times of ops are predicted here, as costs that plans are made of. What a whole plan takes is predicted by the
 * simulator (planc_predictions in planc/plan.h), wherever the times of its ops come from. */
#ifndef PLANC_PREDICT_H
#define PLANC_PREDICT_H

#include "planc/cost.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct planc_model planc_model;

/* A graph and the profile in which its ops were measured; sections loads count as well. */
typedef struct planc_fit_case {
  const planc_graph *graph;
  const planc_profile *profile;
  const char *name; /* of the profile, for messages */
} planc_fit_case;

/* Relative errors of predictions of what the model had not seen, in ppm of the measured time. */
typedef struct planc_fit_error {
  int64_t n;         /* times predicted */
  int64_t n_unknown; /* of a type or algorithm that was measured nowhere else: not predicted */
  int64_t median_ppm, p90_ppm;
  int64_t roofline_median_ppm; /* of the constants alone, on the same times */
} planc_fit_error;

typedef struct planc_fit_report {
  int32_t n_groups;       /* of a type and an algorithm each */
  int32_t n_graphs;       /* different ones */
  int64_t n_times;        /* measured times used */
  planc_fit_error ops;    /* a fifth of the ops left out at a time, drawn by a fixed rule */
  planc_fit_error graphs; /* a graph left out at a time; nothing where there is only one */
  /* Times of shapes that were measured several times, and how far they are from the others of their shape: no
   * prediction can be expected to be nearer. */
  int64_t n_repeated, repeat_median_ppm;
} planc_fit_report;

/* Fits a model to measured times; the constants for the roofline are those of `base`. Times marked as predicted are
 * left out. BAD_INPUT when a profile has an op that its graph does not have, or nothing is left. */
planc_status planc_model_fit(const planc_profile *base, const planc_fit_case *cases, int32_t n_cases, planc_model **out,
                             planc_fit_report *report);
void planc_model_free(planc_model *model);
/* The model of a profile, or NULL. */
const planc_model *planc_profile_model(const planc_profile *profile);
/* Types and algorithms that the model knows. */
int32_t planc_model_n_groups(const planc_model *model);

/* Costs of every op at every batch, as planc_costs, and whether the model knew the op's type; the other ops have the
 * roofline's. */
typedef struct planc_predicted_costs {
  const planc_graph *graph;
  const planc_profile *profile, *listed;
  int64_t load_ppm;
  int32_t n_batches;
  const int64_t *batches; /* ascending, distinct */
  const int32_t *first;   /* variants of op o at batch index k: from first[o * n_batches + k] to the next first */
  const planc_variant *variants; /* by algorithm */
  int32_t n_modelled;            /* ops with times from the model */
} planc_predicted_costs;

typedef struct planc_predict_options {
  const planc_profile *profile; /* of the device; where it has a model, that is used */
  const planc_profile *listed;  /* NULL, or where algorithms and workspaces of ops come from that it has */
  const planc_graph *graph;
  int32_t n_batches;
  const int64_t *batches; /* positive; need be neither sorted nor distinct */
  int64_t load_ppm;       /* share of the time that others keep the device busy; 0 to 1,000,000 */
} planc_predict_options;

/* Borrows all that the options name. */
planc_status planc_predict(const planc_predict_options *options, planc_predicted_costs **out);
void planc_predicted_costs_free(planc_predicted_costs *costs);

/* The text of a planc-profile(5): the constants of their device, and all ops with "predicted": true. It is
 * malloc'ed and NUL-terminated. */
planc_status planc_predicted_costs_print(const planc_predicted_costs *costs, char **out_text, size_t *out_length);
/* The same with a model instead of ops, its device called `name` (NULL: as it is). */
planc_status planc_model_print(const planc_profile *base, const planc_model *model, const char *name, char **out_text,
                               size_t *out_length);

#ifdef __cplusplus
}
#endif

#endif
