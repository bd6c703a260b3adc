/* Configurations (cudnn_config.h). */
#include "runtime/cuda/cudnn_config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* --- Names -------------------------------------------------------------------------------------------------------- */

bool rt_cudnn_config_name(const rt_cudnn_config *of, const char *head, char *out, size_t room) {
  int length = snprintf(out, room, "%s%lld", head, (long long)of->engine);
  for (int32_t k = 0; k < of->n_knobs && length > 0 && (size_t)length < room; k++)
    length += snprintf(out + length, room - (size_t)length, "%c%d=%lld", k == 0 ? ':' : ',', (int)of->knobs[k].type,
                       (long long)of->knobs[k].value);
  return length > 0 && (size_t)length < room;
}

static bool read_name(const char *name, rt_cudnn_config *out);

planc_status rt_cudnn_config_named(const char *algorithm, const char *head, rt_cudnn_config *out) {
  size_t length = strlen(head);
  if (strncmp(algorithm, head, length) != 0)
    return planc_error(PLANC_DEVICE, "was chosen for another cuDNN or device; here algorithms begin %s", head);
  if (!read_name(algorithm + length, out)) return planc_error(PLANC_DEVICE, "names no engine");
  return NULL;
}

static bool read_number(const char **at, int64_t *out) {
  enum { DIGITS = 9 };
  const char *from = *at;
  *out = 0;
  while (isdigit((unsigned char)**at) && *at - from < DIGITS) *out = *out * 10 + (*(*at)++ - '0');
  return *at > from;
}

/* Knobs have negative values as well: SPLIT_K_BUF is -1 where it is left to the engine. */
static bool read_value(const char **at, int64_t *out) {
  bool negative = **at == '-';
  if (negative) (*at)++;
  if (!read_number(at, out)) return false;
  if (negative) *out = -*out;
  return true;
}

static bool read_name(const char *name, rt_cudnn_config *out) {
  int64_t type;
  *out = (rt_cudnn_config){0};
  if (!read_number(&name, &out->engine)) return false;
  for (char before = ':'; *name == before && out->n_knobs < RT_CUDNN_KNOBS; before = ',') {
    name++;
    rt_cudnn_knob *at = &out->knobs[out->n_knobs++];
    if (!read_number(&name, &type) || *name++ != '=' || !read_value(&name, &at->value)) return false;
    at->type = (cudnnBackendKnobType_t)type;
  }
  return *name == 0;
}

/* --- Descriptors -------------------------------------------------------------------------------------------------- */

enum { MAX_NOTES = 16 };

planc_status rt_cudnn_config_read(rt_cudnn_pile *pile, cudnnBackendDescriptor_t from, rt_cudnn_config *out,
                                  uint32_t *out_notes, bool *out_deterministic) {
  static const struct {
    cudnnBackendNumericalNote_t theirs;
    rt_note ours;
  } known[] = {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, RT_NOTE_TENSOR_CORE},
               {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, RT_NOTE_DOWN_CONVERT},
               {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, RT_NOTE_REDUCED_REDUCTION},
               {CUDNN_NUMERICAL_NOTE_FFT, RT_NOTE_FFT},
               {CUDNN_NUMERICAL_NOTE_WINOGRAD, RT_NOTE_WINOGRAD}};
  cudnnBackendDescriptor_t engine, choices[RT_CUDNN_KNOBS];
  cudnnBackendNumericalNote_t numerical[MAX_NOTES];
  cudnnBackendBehaviorNote_t behaviour[MAX_NOTES];
  int64_t n_choices, n_numerical, n_behaviour;
  *out = (rt_cudnn_config){0};
  *out_notes = 0;
  *out_deterministic = true;
  PLANC_TRY(rt_cudnn_new(pile, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
  for (int k = 0; k < RT_CUDNN_KNOBS; k++)
    PLANC_TRY(rt_cudnn_new(pile, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &choices[k]));
  PLANC_TRY(rt_cudnn_get(from, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine, NULL));
  PLANC_TRY(rt_cudnn_get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &out->engine, NULL));
  PLANC_TRY(rt_cudnn_get(from, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, RT_CUDNN_KNOBS,
                         choices, &n_choices));
  for (out->n_knobs = 0; out->n_knobs < n_choices; out->n_knobs++) {
    rt_cudnn_knob *at = &out->knobs[out->n_knobs];
    PLANC_TRY(rt_cudnn_get(choices[out->n_knobs], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &at->type,
                           NULL));
    PLANC_TRY(
        rt_cudnn_get(choices[out->n_knobs], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &at->value, NULL));
  }
  PLANC_TRY(rt_cudnn_get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, numerical,
                         &n_numerical));
  for (int64_t i = 0; i < n_numerical; i++) {
    if (numerical[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) *out_deterministic = false;
    for (size_t n = 0; n < sizeof known / sizeof *known; n++)
      if (numerical[i] == known[n].theirs) *out_notes |= 1U << known[n].ours;
  }
  PLANC_TRY(rt_cudnn_get(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, MAX_NOTES, behaviour,
                         &n_behaviour));
  for (int64_t i = 0; i < n_behaviour; i++)
    if (behaviour[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) *out_notes |= 1U << RT_NOTE_COMPILED;
  return NULL;
}

planc_status rt_cudnn_config_make(rt_cudnn_pile *pile, cudnnBackendDescriptor_t graph, cudnnBackendDescriptor_t device,
                                  const rt_cudnn_config *from, cudnnBackendDescriptor_t *out) {
  cudnnBackendDescriptor_t engine, choices[RT_CUDNN_KNOBS];
  PLANC_TRY(rt_cudnn_new(pile, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
  PLANC_TRY(rt_cudnn_set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph));
  PLANC_TRY(rt_cudnn_set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &from->engine));
  if (device) PLANC_TRY(rt_cudnn_set(engine, CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device));
  PLANC_TRY(rt_cudnn_finalize(engine, "engine"));
  for (int32_t k = 0; k < from->n_knobs; k++) {
    PLANC_TRY(rt_cudnn_new(pile, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &choices[k]));
    PLANC_TRY(
        rt_cudnn_set(choices[k], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &from->knobs[k].type));
    PLANC_TRY(rt_cudnn_set(choices[k], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &from->knobs[k].value));
    PLANC_TRY(rt_cudnn_finalize(choices[k], "knob"));
  }
  PLANC_TRY(rt_cudnn_new(pile, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, out));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine));
  if (from->n_knobs > 0)
    PLANC_TRY(
        rt_cudnn_set(*out, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, from->n_knobs, choices));
  return rt_cudnn_finalize(*out, "engine configuration");
}
