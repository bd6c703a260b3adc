/* The op table: everything the compiler knows about an op type in one entry. An op of a foreign type, PREFIX.NAME, is
 * planned like any other from the sizes, FLOPs, class and flags its file gives. The operand orders are those of
 * planc-graph(5). */
#ifndef PLANC_GRAPH_OPTYPES_H
#define PLANC_GRAPH_OPTYPES_H

#include "planc/graph.h"

/* The attribute of convolutions and matrix products that lets a device round their operands to TF32. */
#define PLANC_TF32_KEY "tf32"

/* An attribute of a type. Lists have two numbers (height, width); a real may be written as an integer. */
typedef struct planc_attr_rule {
  const char *key;
  planc_attr_type type;
  bool required;
  double min, max; /* of every number; both are allowed */
} planc_attr_rule;

struct planc_dims;

typedef struct planc_optype {
  const char *name;
  planc_class class_;
  uint32_t flags;
  /* Operands: "NAME[?|...]:DIMS[!|#]" separated by spaces. `?` may be left out, `...` is one or more. A dimension is a
   * letter, the same size wherever it stands in the op, or `*` for any number of dimensions, the same list everywhere;
   * only N and `*` may depend on the batch. In an NHWC graph the second dimension of a pattern that starts with a
   * letter moves to its end. `.` is any shape. Operands are of one floating-point type; `!` is of any floating-point
   * type, `#` is i64. */
  const char *in, *out, *effects;
  const planc_attr_rule *attrs; /* ended by one without a key; NULL = none */
  /* in_place[o] - 1 is the input that output o may be written over: exactly the same bytes; 0 = none. Where
   * `only_in_place`, it must be. No other output may overlap an input. */
  int8_t in_place[3];
  bool only_in_place;
  uint32_t read_twice; /* bit i: input i is read twice */
  uint32_t gathered;   /* bit i: of input i as many bytes are read as the first output has */
  const char *flops;   /* dimensions whose product is the number of multiply-adds; NULL = none */
  /* What operands and attributes cannot say: further conditions. Context is added by the caller. May be NULL. */
  planc_status (*check)(const planc_graph *graph, const planc_op *op, const struct planc_dims *dims);
} planc_optype;

/* The entry for `name`, or NULL for a type that is not in the table. None there has a point in its name. */
const planc_optype *planc_optype_find(const char *name);
/* All entries, by name. */
const planc_optype *planc_optypes(int32_t *out_count);
/* The class of any op: its table entry's; else the one it states; else gemm when it has FLOPs, else elementwise. */
planc_class planc_op_class(const planc_op *op);
/* The same of an op that states none. */
planc_class planc_op_class_unstated(const planc_op *op);
const char *planc_class_name(planc_class class_);

/* Checks operands and attributes of an op of a known type; an op of another type passes where that is a foreign one. */
planc_status planc_op_check(const planc_graph *graph, const planc_op *op);
/* FLOPs and traffic as the type gives them; for an unknown type none and each operand once. */
planc_status planc_op_flops(const planc_graph *graph, const planc_op *op, planc_law *out);
planc_status planc_op_traffic(const planc_graph *graph, const planc_op *op, planc_law *out);
/* Whether an op's FLOPs and its traffic are what its type gives; where the type gives none they are not. */
planc_status planc_op_costs_are_derived(const planc_graph *graph, const planc_op *op, bool *out_flops,
                                        bool *out_traffic);
/* The part of that of one operand: inputs first, then outputs and effects. A size beyond 64 bits is negative. */
planc_law planc_operand_traffic(const planc_graph *graph, const planc_op *op, int32_t which);

/* A convolution's geometry from its operands, whatever its direction. H and W are the input's, P and Q the output's. */
typedef struct planc_conv {
  enum { PLANC_CONV_FORWARD, PLANC_CONV_DGRAD, PLANC_CONV_WGRAD } direction;
  int64_t c, h, w, k, r, s, p, q;
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups;
} planc_conv;
/* True when `op` is conv2d, conv2d_dgrad or conv2d_wgrad; then *out is its geometry. */
bool planc_conv_of(const planc_graph *graph, const planc_op *op, planc_conv *out);

/* The mode of upsample and upsample_grad. */
typedef enum planc_upsampling {
  PLANC_UPSAMPLE_NEAREST,
  PLANC_UPSAMPLE_BILINEAR,
  PLANC_UPSAMPLE_ALIGNED
} planc_upsampling;
/* False where the op names a mode that does not exist. */
bool planc_upsampling_of(const planc_op *op, planc_upsampling *out);

#endif
