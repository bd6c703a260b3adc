/* The graph: one training (or inference) iteration as ops in execution order over tensors.
 *
 * Sizes are laws in the batch size N: value(N) = fixed + per_sample * N. Memory is planned per storage: a tensor is a
 * typed part of a storage. Tensors share one where one is a view of the other or a result in place of it. Reading a
 * tensor reads what its storage holds at that point of the order; every write makes a new version of the storage
 * (trace.h). File format: planc-graph(5). */
#ifndef PLANC_GRAPH_H
#define PLANC_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A size law in the batch size: fixed + per_sample * N; both parts are non-negative. */
typedef struct planc_law {
  int64_t fixed, per_sample;
} planc_law;

/* X(name, bytes) */
#define PLANC_DTYPES(X) X(f32, 4) X(f16, 2) X(bf16, 2) X(i64, 8) X(i32, 4) X(u8, 1) X(bool, 1)
typedef enum planc_dtype {
#define X(name, bytes) PLANC_DTYPE_##name,
  PLANC_DTYPES(X)
#undef X
} planc_dtype;

/* X(name, what it is). The first four exist before the iteration: inputs are fed anew each iteration, params and state
 * (optimizer moments, running statistics) persist from one iteration to the next. A grad is accumulated over rounds. */
#define PLANC_KINDS(X)                                                  \
  X(input, "fed from the host every iteration")                         \
  X(param, "trained weight, persists")                                  \
  X(state, "optimizer state or running statistics, persists")           \
  X(grad, "gradient of a parameter, accumulated over rounds")           \
  X(activation, "made in a forward op, or a gradient of such a tensor") \
  X(temp, "anything else that dies within the iteration")
typedef enum planc_kind {
#define X(name, text) PLANC_KIND_##name,
  PLANC_KINDS(X)
#undef X
} planc_kind;

#define PLANC_PHASES(X) X(forward) X(backward) X(optimizer)
typedef enum planc_phase {
#define X(name) PLANC_PHASE_##name,
  PLANC_PHASES(X)
#undef X
} planc_phase;

enum { PLANC_MAX_RANK = 8 };

typedef struct planc_tensor {
  const char *name;
  int32_t storage;
  planc_dtype dtype;
  int32_t rank;
  planc_law dims[PLANC_MAX_RANK]; /* at most one depends on N */
  planc_law bytes;                /* product of dims times the dtype's size */
  planc_law offset;               /* bytes from the start of the storage */
} planc_tensor;

typedef struct planc_storage {
  int32_t tensor; /* the root tensor: offset 0, the storage's name and size are its */
  planc_kind kind;
  planc_law bytes;
} planc_storage;

typedef enum planc_attr_type { PLANC_ATTR_INT, PLANC_ATTR_REAL, PLANC_ATTR_STRING, PLANC_ATTR_INTS } planc_attr_type;
typedef struct planc_attr {
  const char *key;
  planc_attr_type type;
  int32_t count; /* of ints */
  union {
    int64_t integer;
    double real;
    const char *string;
    const int64_t *ints;
  } value;
} planc_attr;

/* What an op's time is like: the efficiency classes of the device descriptions (planc-profile(5)), by which policies
 * tell layers that are dear to run again from cheap ones. */
#define PLANC_CLASSES(X) X(conv) X(gemm) X(elementwise) X(reduction) X(norm) X(pool) X(optimizer) X(copy)
typedef enum planc_class {
#define X(name) PLANC_CLASS_##name,
  PLANC_CLASSES(X)
#undef X
} planc_class;

/* Flags of an op; for types in the op table (optypes.h) they are set from it, for others from the file. */
enum {
  PLANC_OP_BATCH_COUPLED = 1, /* results depend on the batch as a whole: batch norm in training */
  PLANC_OP_STOCHASTIC = 2,    /* draws random numbers, counted by global sample */
  PLANC_OP_BATCH_MEAN = 4,    /* a mean over the batch: a round scales by 1/B */
  PLANC_OP_ACCUMULATES = 8,   /* can add its result to its single grad output in place (beta = 1) */
  PLANC_OP_NO_RECOMPUTE = 16, /* must not run a second time to restore what it made */
  PLANC_OP_FLAGS = 31         /* all of them */
};

typedef struct planc_optype planc_optype; /* optypes.h */

typedef struct planc_op {
  const char *name, *type;
  const planc_optype *known; /* the type's entry in the op table; NULL: a foreign type, known by its name alone */
  planc_phase phase;
  uint32_t flags;
  int32_t n_in, n_out, n_effects, n_attrs;
  const int32_t *in;      /* tensors read, in the type's operand order */
  const int32_t *out;     /* tensors written, in the type's operand order; in place when it shares an input's storage */
  const int32_t *effects; /* tensors read and updated as a side effect (running statistics): skipped by a recompute */
  const planc_attr *attrs; /* sorted by key */
  planc_law flops;         /* multiply-add = 2 */
  planc_law traffic;       /* bytes of device memory read and written, each operand once */
  planc_law workspace;     /* bytes that it works in beside its operands, where no profile and no formula tells */
  const char *loop;        /* the recurrence it came from, or NULL */
  int32_t loop_step;
  bool has_class; /* the file states class_, and it is not what follows from its type */
  planc_class class_;
} planc_op;

typedef enum planc_layout { PLANC_LAYOUT_NCHW, PLANC_LAYOUT_NHWC } planc_layout;

typedef struct planc_graph {
  const char *name;
  planc_layout layout;
  /* Defaults of the command line from the file's header; 0 or NULL where absent. */
  int64_t batch;
  const char *device, *optimizer, *policy;
  const char *origin; /* where the graph came from, free text, or NULL */
  int32_t n_tensors, n_storages, n_ops;
  const planc_tensor *tensors;
  const planc_storage *storages;
  const planc_op *ops;
  int32_t loss; /* tensor that leaves for the host every iteration, -1 if none */
  int32_t n_outputs;
  const int32_t *outputs; /* further tensors that leave for the host */
} planc_graph;

/* value(batch), or -1 when it overflows int64. */
int64_t planc_law_at(planc_law law, int64_t batch);
int64_t planc_dtype_bytes(planc_dtype dtype);
const char *planc_dtype_name(planc_dtype dtype);
/* f16 and bf16 are half; these and f32 are of floating point. */
static inline bool planc_dtype_is_half(planc_dtype dtype) {
  return dtype == PLANC_DTYPE_f16 || dtype == PLANC_DTYPE_bf16;
}
static inline bool planc_dtype_is_float(planc_dtype dtype) {
  return dtype == PLANC_DTYPE_f32 || planc_dtype_is_half(dtype);
}
const char *planc_kind_name(planc_kind kind);
const char *planc_phase_name(planc_phase phase);
/* input, param and state exist before the iteration starts. */
static inline bool planc_kind_exists_before(planc_kind kind) {
  return kind <= PLANC_KIND_state;
}
/* param and state keep their content from one iteration to the next. */
static inline bool planc_kind_persists(planc_kind kind) {
  return kind == PLANC_KIND_param || kind == PLANC_KIND_state;
}
bool planc_graph_has_backward(const planc_graph *graph);
bool planc_graph_is_batch_coupled(const planc_graph *graph);
/* Whether anything in it is a law in the batch size: a size of a tensor, or what an op computes, moves or works in.
 * Otherwise it is of one batch size, that at which it was written or recorded, whatever that was. */
bool planc_graph_has_samples(const planc_graph *graph);
/* The op's attribute `key`, or NULL. */
const planc_attr *planc_op_attr(const planc_op *op, const char *key);
/* An integer attribute (element `index` of a list), or `fallback`. */
int64_t planc_op_int(const planc_op *op, const char *key, int32_t index, int64_t fallback);
double planc_op_real(const planc_op *op, const char *key, double fallback);

/* --- Building ----------------------------------------------------------------------------------------------------- */

/* Collects tensors and ops and checks them as a whole. Used by the reader, by training derivation and by tests.
 * Strings and arrays passed in are copied. Every failure is BAD_INPUT and names the tensor or op. */
typedef struct planc_graph_builder planc_graph_builder;
planc_status planc_graph_builder_new(planc_graph_builder **out);
void planc_graph_builder_free(planc_graph_builder *builder);
/* Header fields as in planc_graph; strings may be NULL. */
planc_status planc_graph_builder_header(planc_graph_builder *builder, const char *name, planc_layout layout,
                                        int64_t batch, const char *device, const char *optimizer, const char *policy,
                                        const char *origin);
/* Adds a tensor with a storage of its own (`of` < 0), or a view of the storage of tensor `of` at `offset`, whose kind
 * is then ignored. *out_tensor is its index. */
planc_status planc_graph_builder_tensor(planc_graph_builder *builder, const char *name, planc_kind kind,
                                        planc_dtype dtype, int32_t rank, const planc_law *dims, int32_t of,
                                        planc_law offset, int32_t *out_tensor);
/* Adds an op. Of `op`, name, type, phase, operands, attributes and loop are used as they are; `known` is looked up by
 * the type's name, whatever it was; flags are or-ed with the type's; flops and traffic below 0 (set both parts to -1)
 * are derived from the type. */
planc_status planc_graph_builder_op(planc_graph_builder *builder, const planc_op *op);
planc_status planc_graph_builder_loss(planc_graph_builder *builder, int32_t tensor);
planc_status planc_graph_builder_output(planc_graph_builder *builder, int32_t tensor);
/* The tensor called `name`, or -1. */
int32_t planc_graph_builder_find(const planc_graph_builder *builder, const char *name);
/* The tensor at `index`, valid until the next tensor is added. */
const planc_tensor *planc_graph_builder_tensor_at(const planc_graph_builder *builder, int32_t index);
/* Checks the whole (names unique; every byte read is written before or exists; phases in order; views inside
 * their storage; operands of known types as the type demands) and gives out the graph; the builder is then empty. When
 * an op or tensor is at fault *out_op or *out_tensor (either may be NULL) is its index, else -1: readers turn it into a
 * place in the file. */
planc_status planc_graph_builder_finish(planc_graph_builder *builder, planc_graph **out, int32_t *out_op,
                                        int32_t *out_tensor);
void planc_graph_free(planc_graph *graph);

/* --- Files -------------------------------------------------------------------------------------------------------- */

/* Reads planc-graph(5). `path` is used in messages; errors are "path:line:column: what". */
planc_status planc_graph_read(const char *path, planc_graph **out);
planc_status planc_graph_parse(const char *text, size_t length, const char *path, planc_graph **out);
/* Canonical YAML; reading it back gives an equal graph. *out_text is malloc'ed, NUL-terminated. */
planc_status planc_graph_print(const planc_graph *graph, char **out_text, size_t *out_length);
/* Whether two graphs have the same content: tensors, ops, loss, outputs; not defaults, comments or formatting. */
bool planc_graph_equal(const planc_graph *a, const planc_graph *b);
/* A 64-bit hash of that content, to recognize a graph by. Another graph of the same hash is easily made: what must not
 * be mistaken is compared. */
uint64_t planc_graph_hash(const planc_graph *graph);

/* --- Training ----------------------------------------------------------------------------------------------------- */

/* TF32: convolutions and matrix products may round their f32 operands to TF32. BF16: activations and copies of weights
 * are bf16; parameters, their gradients, state, losses and statistics stay f32. */
typedef enum planc_precision { PLANC_F32, PLANC_TF32, PLANC_BF16 } planc_precision;
/* USAGE when `name` names none. */
planc_status planc_precision_parse(const char *name, planc_precision *out);
/* The forward graph in that precision, to be trained or planned: given tensors keep their indices, copies that casts
 * make come behind them. BAD_INPUT for a graph with backward ops and, for BF16, one that has f16 or bf16 tensors. */
planc_status planc_graph_convert(const planc_graph *forward, planc_precision precision, planc_graph **out);

typedef enum planc_optimizer { PLANC_SGD, PLANC_MOMENTUM, PLANC_ADAM } planc_optimizer;
planc_status planc_optimizer_parse(const char *name, planc_optimizer *out);
/* Appends backward and optimizer ops to a forward graph that ends in a loss. Gradients nobody needs are not computed.
 */
planc_status planc_graph_train(const planc_graph *forward, planc_optimizer optimizer, planc_graph **out);
/* The optimizer that `name` names, USAGE if there is none; without a name (NULL) the graph's header's, else sgd. */
planc_status planc_graph_optimizer(const planc_graph *graph, const char *name, planc_optimizer *out,
                                   const char **out_name);
/* Reads a graph and, unless it has backward ops or `inference`, derives training with planc_graph_optimizer's; its
 * name, static or of `optimizer`, is then in *out_derived, which is NULL otherwise. USAGE where an optimizer is named
 * and nothing is derived, or where a graph with backward ops is asked for as inference. */
planc_status planc_graph_prepare(const char *path, const char *optimizer, bool inference, planc_graph **out,
                                 const char **out_derived);

#ifdef __cplusplus
}
#endif

#endif
