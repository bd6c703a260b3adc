/* The op table and the look-ups in it. */
#include "graph/optypes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "graph/operands.h"

#define POSITIVE 1, INT32_MAX
#define NATURAL 0, INT32_MAX
#define FRACTION 0, 1
#define TF32 \
  { PL_TF32_KEY, PLANC_ATTR_INT, false, FRACTION }

static const pl_attr_rule conv_attrs[] = {{"stride", PLANC_ATTR_INTS, false, POSITIVE},
                                          {"pad", PLANC_ATTR_INTS, false, NATURAL},
                                          {"dilation", PLANC_ATTR_INTS, false, POSITIVE},
                                          {"groups", PLANC_ATTR_INT, false, POSITIVE},
                                          TF32,
                                          {0}};
static const pl_attr_rule pool_attrs[] = {{"kernel", PLANC_ATTR_INTS, true, POSITIVE},
                                          {"stride", PLANC_ATTR_INTS, true, POSITIVE},
                                          {"pad", PLANC_ATTR_INTS, false, NATURAL},
                                          {0}};
static const pl_attr_rule batchnorm_attrs[] = {
    {"momentum", PLANC_ATTR_REAL, false, FRACTION}, {"epsilon", PLANC_ATTR_REAL, false, FRACTION}, {0}};
static const pl_attr_rule epsilon_attrs[] = {{"epsilon", PLANC_ATTR_REAL, false, FRACTION}, {0}};
static const pl_attr_rule linear_attrs[] = {TF32, {0}};
static const pl_attr_rule matmul_attrs[] = {{"scale", PLANC_ATTR_REAL, false, -1e9, 1e9}, TF32, {0}};
static const pl_attr_rule affine_attrs[] = {
    {"scale", PLANC_ATTR_REAL, false, -1e9, 1e9}, {"shift", PLANC_ATTR_REAL, false, -1e9, 1e9}, {0}};
static const pl_attr_rule transpose_attrs[] = {{"axis", PLANC_ATTR_INT, true, 1, PLANC_MAX_RANK - 2}, {0}};
static const pl_attr_rule concat_attrs[] = {{"axis", PLANC_ATTR_INT, true, 0, PLANC_MAX_RANK - 1}, {0}};
static const pl_attr_rule concat_grad_attrs[] = {
    {"axis", PLANC_ATTR_INT, true, 0, PLANC_MAX_RANK - 1}, {"offset", PLANC_ATTR_INT, true, 0, 1e18}, {0}};
static const pl_attr_rule upsample_attrs[] = {
    {"scale", PLANC_ATTR_INT, true, POSITIVE}, {"mode", PLANC_ATTR_STRING, false, 0, 0}, {0}};
static const pl_attr_rule dropout_attrs[] = {
    {"p", PLANC_ATTR_REAL, true, FRACTION}, {"seed", PLANC_ATTR_INT, true, 0, 1e18}, {0}};
static const pl_attr_rule sgd_attrs[] = {{"lr", PLANC_ATTR_REAL, false, 0, 1e9}, {0}};
static const pl_attr_rule momentum_attrs[] = {
    {"lr", PLANC_ATTR_REAL, false, 0, 1e9}, {"momentum", PLANC_ATTR_REAL, false, FRACTION}, {0}};
static const pl_attr_rule adam_attrs[] = {{"lr", PLANC_ATTR_REAL, false, 0, 1e9},
                                          {"beta1", PLANC_ATTR_REAL, false, FRACTION},
                                          {"beta2", PLANC_ATTR_REAL, false, FRACTION},
                                          {"epsilon", PLANC_ATTR_REAL, false, FRACTION},
                                          {0}};

#define CLASS(name) .class_ = PLANC_CLASS_##name
#define OF_ALL .linear = PL_LINEAR_IN_ALL
#define OF_ONE .linear = PL_LINEAR_IN_ONE
#define OF_LAST .linear = PL_LINEAR_IN_LAST
#define COUPLED .flags = PLANC_OP_BATCH_COUPLED
#define STOCHASTIC .flags = PLANC_OP_STOCHASTIC
#define MEAN .flags = PLANC_OP_BATCH_MEAN
#define ACCUMULATES .flags = PLANC_OP_ACCUMULATES
#define CONV .attrs = conv_attrs, .check = pl_check_conv, .flops = "NKPQcRS"
#define POOL CLASS(pool), .attrs = pool_attrs, .check = pl_check_pool
#define LINEAR CLASS(gemm), .attrs = linear_attrs, .flops = "*IO"
#define MATMUL CLASS(gemm), .attrs = matmul_attrs, .flops = "*MKJ"
#define UPSAMPLE CLASS(elementwise), .attrs = upsample_attrs, .check = pl_check_upsample

#define TYPE(type, ...) [PL_OPTYPE_##type] = {.id = PL_OPTYPE_##type, .name = #type, __VA_ARGS__}

/* By id. In patterns, c is C / groups. */
static const planc_optype table[PL_N_OPTYPES] = {
    TYPE(adam, CLASS(optimizer), .in = "w:* dw:*! m:*! v:*!", .out = "w:* m:*! v:*!", .attrs = adam_attrs,
         .in_place = {1, 3, 4}, .only_in_place = true),
    TYPE(add, OF_ALL, CLASS(elementwise), .in = "a:* b:*", .out = "y:*", .in_place = {1}),
    TYPE(affine, CLASS(elementwise), .in = "x:*", .out = "y:*", .attrs = affine_attrs, .in_place = {1}),
    TYPE(affine_grad, OF_ALL, CLASS(elementwise), .in = "dy:*", .out = "dx:*", .attrs = affine_attrs, .in_place = {1}),
    TYPE(avgpool2d, OF_ALL, POOL, .in = "x:NCHW", .out = "y:NCPQ"),
    TYPE(avgpool2d_grad, OF_ALL, POOL, .in = "dy:NCPQ", .out = "dx:NCHW"),
    TYPE(batchnorm, CLASS(norm), COUPLED, .in = "x:NC* gamma:C! beta:C!", .out = "y:NC* mean:C! invstd:C!",
         .effects = "running_mean:C! running_var:C!", .attrs = batchnorm_attrs, .read_twice = 1 << 0),
    TYPE(batchnorm_grad, CLASS(norm), .flags = PLANC_OP_BATCH_COUPLED | PLANC_OP_ACCUMULATES,
         .in = "x:NC* gamma:C! mean:C! invstd:C! dy:NC*", .out = "dx:NC* dgamma:C! dbeta:C!", .overwrites = 1 << 0,
         .read_twice = 1 << 0 | 1 << 4),
    TYPE(batchnorm_infer, CLASS(norm), .in = "x:NC* gamma:C! beta:C! running_mean:C! running_var:C!", .out = "y:NC*",
         .attrs = epsilon_attrs),
    TYPE(bias, OF_ALL, CLASS(elementwise), .in = "x:NC* b:C!", .out = "y:NC*", .in_place = {1}),
    TYPE(bias_grad, OF_ALL, CLASS(reduction), ACCUMULATES, .in = "dy:NC*", .out = "db:C!"),
    TYPE(cast, OF_ALL, CLASS(elementwise), ACCUMULATES, .in = "x:*!", .out = "y:*!", .check = pl_check_cast),
    TYPE(concat, OF_ALL, CLASS(copy), .in = "a...:.", .out = "y:.", .attrs = concat_attrs, .check = pl_check_concat),
    TYPE(concat_grad, OF_ALL, CLASS(copy), .in = "dy:.", .out = "da:.", .attrs = concat_grad_attrs,
         .check = pl_check_concat_grad),
    TYPE(conv2d, OF_ONE, CLASS(conv), CONV, .in = "x:NCHW w:KcRS b?:K!", .out = "y:NKPQ"),
    TYPE(conv2d_bgrad, OF_ALL, CLASS(reduction), ACCUMULATES, .in = "dy:NKPQ", .out = "db:K!"),
    TYPE(conv2d_dgrad, OF_ONE, CLASS(conv), CONV, .in = "w:KcRS dy:NKPQ", .out = "dx:NCHW"),
    TYPE(conv2d_wgrad, OF_ONE, CLASS(conv), ACCUMULATES, CONV, .in = "x:NCHW dy:NKPQ", .out = "dw:KcRS"),
    TYPE(dropout, CLASS(elementwise), STOCHASTIC, .in = "x:*", .out = "y:*", .attrs = dropout_attrs, .in_place = {1},
         .check = pl_check_dropout),
    TYPE(dropout_grad, CLASS(elementwise), STOCHASTIC, .in = "dy:*", .out = "dx:*", .attrs = dropout_attrs,
         .in_place = {1}, .check = pl_check_dropout),
    TYPE(embedding, CLASS(copy), .in = "ids:*# w:VC", .out = "y:*C", .gathered = 1 << 1),
    TYPE(embedding_grad, OF_LAST, CLASS(copy), ACCUMULATES, .in = "ids:*# dy:*C", .out = "dw:VC"),
    TYPE(expand, OF_ALL, CLASS(elementwise), .in = "x:*C", .out = "y:*TC"),
    TYPE(expand_grad, OF_ALL, CLASS(reduction), .in = "dy:*TC", .out = "dx:*C"),
    TYPE(gelu, CLASS(elementwise), .in = "x:*", .out = "y:*", .in_place = {1}),
    TYPE(gelu_grad, OF_LAST, CLASS(elementwise), .in = "x:* dy:*", .out = "dx:*", .in_place = {2}),
    TYPE(layernorm, CLASS(norm), .in = "x:*C gamma:C! beta:C!", .out = "y:*C mean:*! invstd:*!", .attrs = epsilon_attrs,
         .read_twice = 1 << 0),
    TYPE(layernorm_grad, OF_LAST, CLASS(norm), ACCUMULATES, .in = "x:*C gamma:C! mean:*! invstd:*! dy:*C",
         .out = "dx:*C dgamma:C! dbeta:C!", .overwrites = 1 << 0, .read_twice = 1 << 0 | 1 << 4),
    TYPE(linear, OF_ONE, LINEAR, .in = "x:*I w:OI b?:O!", .out = "y:*O"),
    TYPE(linear_bgrad, OF_ALL, CLASS(reduction), ACCUMULATES, .in = "dy:*O", .out = "db:O!"),
    TYPE(linear_dgrad, OF_ONE, LINEAR, .in = "w:OI dy:*O", .out = "dx:*I"),
    TYPE(linear_wgrad, OF_ONE, LINEAR, ACCUMULATES, .in = "x:*I dy:*O", .out = "dw:OI"),
    TYPE(matmul, OF_ONE, MATMUL, .in = "a:*MK b:*KJ", .out = "y:*MJ"),
    TYPE(matmul_nt, OF_ONE, MATMUL, .in = "a:*MK b:*JK", .out = "y:*MJ"),
    TYPE(matmul_tn, OF_ONE, MATMUL, .in = "a:*KM b:*KJ", .out = "y:*MJ"),
    TYPE(maxpool2d, POOL, .in = "x:NCHW", .out = "y:NCPQ"),
    TYPE(maxpool2d_grad, OF_LAST, POOL, .in = "x:NCHW y:NCPQ dy:NCPQ", .out = "dx:NCHW"),
    TYPE(mean, OF_ALL, CLASS(reduction), .in = "x:*TC", .out = "y:*C"),
    TYPE(mean_grad, OF_ALL, CLASS(elementwise), .in = "dy:*C", .out = "dx:*TC"),
    TYPE(momentum, CLASS(optimizer), .in = "w:* dw:*! v:*!", .out = "w:* v:*!", .attrs = momentum_attrs,
         .in_place = {1, 3}, .only_in_place = true),
    TYPE(mse, CLASS(reduction), MEAN, .in = "x:N* target:N*", .out = "loss:!"),
    TYPE(mse_grad, CLASS(elementwise), MEAN, .in = "x:N* target:N*", .out = "dx:N*"),
    TYPE(mul, OF_ONE, CLASS(elementwise), .in = "a:* b:*", .out = "y:*", .in_place = {1}),
    TYPE(position, OF_ALL, CLASS(elementwise), .in = "x:N* p:*", .out = "y:N*", .in_place = {1}),
    TYPE(position_grad, OF_ALL, CLASS(reduction), ACCUMULATES, .in = "dy:N*", .out = "dp:*"),
    TYPE(relu, CLASS(elementwise), .in = "x:*", .out = "y:*", .in_place = {1}),
    TYPE(relu_grad, OF_LAST, CLASS(elementwise), .in = "y:* dy:*", .out = "dx:*", .in_place = {2}),
    TYPE(sgd, CLASS(optimizer), .in = "w:* dw:*!", .out = "w:*", .attrs = sgd_attrs, .in_place = {1},
         .only_in_place = true),
    TYPE(sigmoid, CLASS(elementwise), .in = "x:*", .out = "y:*", .in_place = {1}),
    TYPE(sigmoid_grad, OF_LAST, CLASS(elementwise), .in = "y:* dy:*", .out = "dx:*", .in_place = {2}),
    TYPE(softmax, CLASS(reduction), .in = "x:*C", .out = "y:*C", .in_place = {1}),
    TYPE(softmax_grad, OF_LAST, CLASS(reduction), .in = "y:*C dy:*C", .out = "dx:*C", .in_place = {2}),
    TYPE(softmax_xent, CLASS(reduction), MEAN, .in = "logits:NC* labels:N*#", .out = "loss:! probs:NC*!"),
    TYPE(softmax_xent_grad, CLASS(elementwise), MEAN, .in = "probs:NC*! labels:N*#", .out = "dlogits:NC*"),
    TYPE(split, OF_ALL, CLASS(copy), .in = "x:.", .out = "y...:.", .attrs = concat_attrs, .check = pl_check_split),
    TYPE(tanh, CLASS(elementwise), .in = "x:*", .out = "y:*", .in_place = {1}),
    TYPE(tanh_grad, OF_LAST, CLASS(elementwise), .in = "y:* dy:*", .out = "dx:*", .in_place = {2}),
    TYPE(transpose, OF_ALL, CLASS(copy), .in = "x:.", .out = "y:.", .attrs = transpose_attrs,
         .check = pl_check_transpose),
    TYPE(upsample, OF_ALL, UPSAMPLE, .in = "x:NCHW", .out = "y:NCPQ"),
    TYPE(upsample_grad, OF_ALL, UPSAMPLE, .in = "dy:NCPQ", .out = "dx:NCHW"),
};

/* Those behind PL_OPTYPE_FOREIGN, which is no type: they stand in order of name as their ids do. */
static const planc_optype *const types = table + 1;
enum { N_TYPES = PL_N_OPTYPES - 1 };

const planc_optype *pl_optypes(int32_t *out_count) {
  *out_count = N_TYPES;
  return types;
}

static int compare_name(const void *name, const void *entry) {
  return strcmp(name, ((const planc_optype *)entry)->name);
}

const planc_optype *pl_optype_find(const char *name) {
  return bsearch(name, types, N_TYPES, sizeof *types, compare_name);
}

const planc_optype *pl_optype_at(pl_optype_id id) {
  assert(id > PL_OPTYPE_FOREIGN && id < PL_N_OPTYPES);
  return &table[id];
}

bool pl_op_same_type(const planc_op *a, const planc_op *b) {
  return a->known == b->known && (a->known || strcmp(a->type, b->type) == 0);
}

bool pl_op_accumulates(const planc_op *op, int32_t out) {
  return (op->flags & PLANC_OP_ACCUMULATES) && !(op->known && op->known->overwrites >> out & 1);
}

pl_linearity pl_op_linearity(const planc_op *op) {
  pl_optype_id type = pl_optype_of(op);
  if (type == PL_OPTYPE_affine) return planc_op_real(op, "shift", 0) == 0 ? PL_LINEAR_IN_ALL : PL_LINEAR_IN_NONE;
  bool has_bias = (type == PL_OPTYPE_linear || type == PL_OPTYPE_conv2d) && op->n_in == 3;
  return has_bias ? PL_LINEAR_IN_NONE : op->known->linear;
}

planc_class pl_op_class_unstated(const planc_op *op) {
  if (op->known) return op->known->class_;
  return op->flops.fixed || op->flops.per_sample ? PLANC_CLASS_gemm : PLANC_CLASS_elementwise;
}

planc_class pl_op_class(const planc_op *op) {
  return op->has_class ? op->class_ : pl_op_class_unstated(op);
}

const char *pl_class_name(planc_class class_) {
  static const char *const names[] = {
#define X(name) #name,
      PLANC_CLASSES(X)
#undef X
  };
  return names[class_];
}
