/* The op table: everything the compiler knows about an op type in one entry. The graph builder looks an op's type up
 * once; from then on the op has its entry, planc_op.known, and nobody reads the type's name but to write it.
 *
 * An op of a foreign type, PREFIX.NAME, has no entry. Its type is known by its name alone: two of them are of one type
 * when the names are equal, and what a profile says of a type it says of a name. Such an op is planned like any other
 * from the sizes, FLOPs, class and flags its file gives. The operand orders are those of planc-graph(5). */
#ifndef PLANC_GRAPH_OPTYPES_H
#define PLANC_GRAPH_OPTYPES_H

#include "planc/graph.h"

/* The attribute of convolutions and matrix products that lets a device round their operands to TF32. */
#define PL_TF32_KEY "tf32"

/* planc's types, in order of name. */
typedef enum pl_optype_id {
  PL_OPTYPE_FOREIGN, /* none of them; tables by type keep its place empty */
  PL_OPTYPE_adam,
  PL_OPTYPE_add,
  PL_OPTYPE_affine,
  PL_OPTYPE_affine_grad,
  PL_OPTYPE_avgpool2d,
  PL_OPTYPE_avgpool2d_grad,
  PL_OPTYPE_batchnorm,
  PL_OPTYPE_batchnorm_grad,
  PL_OPTYPE_batchnorm_infer,
  PL_OPTYPE_bias,
  PL_OPTYPE_bias_grad,
  PL_OPTYPE_cast,
  PL_OPTYPE_concat,
  PL_OPTYPE_concat_grad,
  PL_OPTYPE_conv2d,
  PL_OPTYPE_conv2d_bgrad,
  PL_OPTYPE_conv2d_dgrad,
  PL_OPTYPE_conv2d_wgrad,
  PL_OPTYPE_dropout,
  PL_OPTYPE_dropout_grad,
  PL_OPTYPE_embedding,
  PL_OPTYPE_embedding_grad,
  PL_OPTYPE_expand,
  PL_OPTYPE_expand_grad,
  PL_OPTYPE_gelu,
  PL_OPTYPE_gelu_grad,
  PL_OPTYPE_layernorm,
  PL_OPTYPE_layernorm_grad,
  PL_OPTYPE_linear,
  PL_OPTYPE_linear_bgrad,
  PL_OPTYPE_linear_dgrad,
  PL_OPTYPE_linear_wgrad,
  PL_OPTYPE_matmul,
  PL_OPTYPE_matmul_nt,
  PL_OPTYPE_matmul_tn,
  PL_OPTYPE_maxpool2d,
  PL_OPTYPE_maxpool2d_grad,
  PL_OPTYPE_mean,
  PL_OPTYPE_mean_grad,
  PL_OPTYPE_momentum,
  PL_OPTYPE_mse,
  PL_OPTYPE_mse_grad,
  PL_OPTYPE_mul,
  PL_OPTYPE_position,
  PL_OPTYPE_position_grad,
  PL_OPTYPE_relu,
  PL_OPTYPE_relu_grad,
  PL_OPTYPE_sgd,
  PL_OPTYPE_sigmoid,
  PL_OPTYPE_sigmoid_grad,
  PL_OPTYPE_softmax,
  PL_OPTYPE_softmax_grad,
  PL_OPTYPE_softmax_xent,
  PL_OPTYPE_softmax_xent_grad,
  PL_OPTYPE_split,
  PL_OPTYPE_tanh,
  PL_OPTYPE_tanh_grad,
  PL_OPTYPE_transpose,
  PL_OPTYPE_upsample,
  PL_OPTYPE_upsample_grad,
  PL_N_OPTYPES
} pl_optype_id;

/* An attribute of a type. Lists have two numbers (height, width); a real may be written as an integer. */
typedef struct pl_attr_rule {
  const char *key;
  planc_attr_type type;
  bool required;
  double min, max; /* of every number; both are allowed */
} pl_attr_rule;

struct pl_dims;

/* In which inputs a type's results are linear, so that results of sums are the sums of results. */
typedef enum pl_linearity {
  PL_LINEAR_IN_NONE,
  PL_LINEAR_IN_ALL, /* together */
  PL_LINEAR_IN_ONE, /* any one, while the others stay the same */
  PL_LINEAR_IN_LAST /* the last one, while the others stay the same */
} pl_linearity;

struct planc_optype {
  const char *name;
  pl_optype_id id;
  planc_class class_;
  /* Operands: "NAME[?|...]:DIMS[!|#]" separated by spaces. `?` may be left out, `...` is one or more. A dimension is a
   * letter, the same size wherever it stands in the op, or `*` for any number of dimensions, the same list everywhere;
   * only N and `*` may depend on the batch. In an NHWC graph the second dimension of a pattern that starts with a
   * letter moves to its end. `.` is any shape. Operands are of one floating-point type; `!` is of any floating-point
   * type, `#` is i64. */
  const char *in, *out, *effects;
  const pl_attr_rule *attrs; /* ended by one without a key; NULL = none */
  uint32_t flags;
  uint32_t overwrites; /* bit o: output o is no gradient that the type accumulates */
  pl_linearity linear; /* see pl_op_linearity */
  /* in_place[o] - 1 is the input that output o may be written over: exactly the same bytes; 0 = none. Where
   * `only_in_place`, it must be. No other output may overlap an input. */
  int8_t in_place[3];
  bool only_in_place;
  uint32_t read_twice; /* bit i: input i is read twice */
  uint32_t gathered;   /* bit i: of input i as many bytes are read as the first output has */
  const char *flops;   /* dimensions whose product is the number of multiply-adds; NULL = none */
  /* What operands and attributes cannot say: further conditions. Context is added by the caller. May be NULL. */
  planc_status (*check)(const planc_graph *graph, const planc_op *op, const struct pl_dims *dims);
};

/* The type of an op: what to ask where it matters which one it is. */
static inline pl_optype_id pl_optype_of(const planc_op *op) {
  return op->known ? op->known->id : PL_OPTYPE_FOREIGN;
}
/* In which inputs the op is linear: its type, without a bias or a shift that comes on top. */
pl_linearity pl_op_linearity(const planc_op *op);
/* Whether the op can add its output `out` to what is there. */
bool pl_op_accumulates(const planc_op *op, int32_t out);
/* Whether two ops are of one type, foreign ones included. */
bool pl_op_same_type(const planc_op *a, const planc_op *b);

/* The entry for `name`, or NULL for a type that is not in the table. None there has a point in its name. */
const planc_optype *pl_optype_find(const char *name);
/* The entry of a type that is not foreign. */
const planc_optype *pl_optype_at(pl_optype_id id);
/* All entries, by name. */
const planc_optype *pl_optypes(int32_t *out_count);
/* The class of any op: its table entry's; else the one it states; else gemm when it has FLOPs, else elementwise. */
planc_class pl_op_class(const planc_op *op);
/* The same of an op that states none. */
planc_class pl_op_class_unstated(const planc_op *op);
const char *pl_class_name(planc_class class_);

/* Checks operands and attributes of an op of a known type. An op of another type passes where the name is one that a
 * foreign type may have. */
planc_status pl_op_check(const planc_graph *graph, const planc_op *op);
/* FLOPs and traffic as the type gives them; for an unknown type none and each operand once. */
planc_status pl_op_flops(const planc_graph *graph, const planc_op *op, planc_law *out);
planc_status pl_op_traffic(const planc_graph *graph, const planc_op *op, planc_law *out);
/* Whether an op's FLOPs and its traffic are what its type gives; where the type gives none they are not. */
planc_status pl_op_costs_are_derived(const planc_graph *graph, const planc_op *op, bool *out_flops, bool *out_traffic);
/* The part of that of one operand: inputs first, then outputs and effects. A size beyond 64 bits is negative. */
planc_law pl_operand_traffic(const planc_graph *graph, const planc_op *op, int32_t which);

/* A convolution's geometry from its operands, whatever its direction. H and W are the input's, P and Q the output's. */
typedef struct pl_conv {
  enum { PL_CONV_FORWARD, PL_CONV_DGRAD, PL_CONV_WGRAD } direction;
  int64_t c, h, w, k, r, s, p, q;
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups;
} pl_conv;
/* True when `op` is conv2d, conv2d_dgrad or conv2d_wgrad; then *out is its geometry. */
bool pl_conv_of(const planc_graph *graph, const planc_op *op, pl_conv *out);

/* The mode of upsample and upsample_grad. */
typedef enum pl_upsampling { PL_UPSAMPLE_NEAREST, PL_UPSAMPLE_BILINEAR, PL_UPSAMPLE_ALIGNED } pl_upsampling;
/* False where the op names a mode that does not exist. */
bool pl_upsampling_of(const planc_op *op, pl_upsampling *out);

#endif
