/* Training derivation, between its files: train.c walks the graph, train_rules.c says what each type's derivative is,
 * train_grads.c keeps track of which bytes hold whose gradient. */
#ifndef PLANC_GRAPH_TRAIN_H
#define PLANC_GRAPH_TRAIN_H

#include "graph/byte_range.h"
#include "graph/optypes.h"

/* A storage of the derived graph that holds gradients. */
typedef struct pl_grad_store {
  int32_t tensor;     /* its root; -1 for the loss's own gradient, the constant 1 */
  int32_t users;      /* storages that still need what it holds, and the current op; not kept for exclusive ones */
  VEC(int32_t) views; /* tensors on it other than the root */
} pl_grad_store;

/* A write of a forward op met on the way back: what the storage held before is gone. */
typedef struct pl_overwrite {
  pl_byte_range range;
  const planc_op *op;
} pl_overwrite;

/* What the derivation knows of a forward storage at the point it has reached. */
typedef struct pl_grad_state {
  pl_byte_ranges active; /* forwards: bytes that depend on a parameter */
  /* An exclusive storage, a parameter or one that ops use in parts, shares its gradient with no other storage: every
   * view's gradient is the same bytes of one store. Of the others the gradient is whole or absent, and its store
   * may be another storage's too, as behind an add. */
  bool exclusive;
  int32_t store;          /* of the last gradient there was; -1 = none yet */
  pl_byte_ranges defined; /* bytes that have a gradient */
  VEC(pl_overwrite) overwrites;
  int32_t names; /* counts the names made for its gradients */
} pl_grad_state;

typedef struct pl_derivation {
  const planc_graph *graph;
  planc_graph_builder *builder;
  pl_grad_state *states; /* per storage of `graph` */
  VEC(pl_grad_store) stores;
  bool *wanted; /* per input of every op: does it depend on a parameter? */
  int64_t n_wanted;

  /* The op whose derivative is being made. */
  const planc_op *op;
  const bool *op_wanted;  /* of its inputs */
  VEC(int32_t) dy_stores; /* by output: what holds its gradient; -1: it has none, or that is written over */
} pl_derivation;

enum { PL_STORE_OF_LOSS = 0 };

/* As users call it, and its op type. */
const char *pl_optimizer_name(planc_optimizer optimizer);
/* BAD_INPUT where the graph has ops other than forward ones. */
planc_status pl_train_check_forward(const planc_graph *graph);

/* Where the gradient of an operand is to be written. */
typedef struct pl_grad_target {
  int32_t tensor, store;
} pl_grad_target;

/* Adds a backward op "OP.SUFFIX" of the current forward op, in the same loop. */
planc_status pl_train_emit(pl_derivation *d, pl_optype_id type, const char *suffix, const int32_t *in, int32_t n_in,
                           const int32_t *out, int32_t n_out, const planc_attr *attrs, int32_t n_attrs);

/* --- Rules -------------------------------------------------------------------------------------------------------- */

typedef struct pl_train_rule pl_train_rule;
/* The rule of a forward type, or NULL. */
const pl_train_rule *pl_train_rule_find(pl_optype_id type);
bool pl_train_rule_takes_all(const pl_train_rule *rule);
/* Emits the backward ops of the current op. */
planc_status pl_train_rule_apply(pl_derivation *d, const pl_train_rule *rule);

/* --- Gradients ---------------------------------------------------------------------------------------------------- */

/* Readies the storages' states: which ones are exclusive. */
planc_status pl_grads_init(pl_derivation *d);
void pl_grads_free(pl_derivation *d);
/* The loss has gradient 1. */
planc_status pl_grads_seed(pl_derivation *d, int32_t loss);
/* Takes the gradients of the current op's outputs: *out_any is false when nothing depends on them. Only a rule that
 * `takes_all` reads those of outputs other than the first. */
planc_status pl_grads_take(pl_derivation *d, bool takes_all, bool *out_any);
void pl_grads_release(pl_derivation *d);
/* The tensor with the gradient of the current op's output number `output`. */
planc_status pl_grads_dy(pl_derivation *d, int32_t output, int32_t *out_tensor);
/* Where the gradient of the current op's input `operand` goes: over dy when `over_dy` is set and nobody else needs
 * that, else to bytes of its own. */
planc_status pl_grads_target(pl_derivation *d, int32_t operand, bool over_dy, pl_grad_target *out);
/* The target has been written: it becomes the operand's gradient, or is added to the one there is. */
planc_status pl_grads_arrive(pl_derivation *d, int32_t operand, pl_grad_target target);
/* The operand's gradient is dy itself. */
planc_status pl_grads_pass(pl_derivation *d, int32_t operand);
/* A tensor shaped as `like` for a result nobody needs. */
planc_status pl_grads_scratch(pl_derivation *d, int32_t like, int32_t *out_tensor);
/* The gradient of a parameter's storage, -1 when it has none. */
planc_status pl_grads_of_param(pl_derivation *d, int32_t storage, int32_t *out_tensor);
/* Adds a tensor shaped as tensor `like` of the forward graph, called `prefix`NAME`suffix`, numbered if that name is
 * taken. */
planc_status pl_grads_tensor(pl_derivation *d, const char *prefix, int32_t like, const char *suffix, planc_kind kind,
                             int32_t of, planc_law offset, int32_t *out_tensor);

#endif
