/* Forward graphs written down in a test, one at a time: begin, tensors and ops, finish. Any failure fails the test. */
#ifndef PLANC_TESTS_FORWARD_H
#define PLANC_TESTS_FORWARD_H

#include "planc/graph.h"
#include "tests/support/unit.h"

void forward_begin(void);
/* Adds a tensor by its spec in planc-graph(5). */
void forward_tensor(const char *name, const char *text);
/* Adds an op. Operands are names between spaces, attributes "key=1 key=1,1 key=0.5 key=text". */
void forward_op(const char *name, const char *type, const char *in, const char *out, const char *attrs);
void forward_op_in_loop(const char *name, const char *type, const char *in, const char *out, const char *effects,
                        const char *attrs, const char *loop, int32_t step);
/* `features` numbers of every sample of tensor `x` lead to three classes and the loss, "loss". */
void forward_classifier(const char *x, int features);
void forward_loss(const char *name);
void forward_output(const char *name);
planc_graph *forward_finish(void);

#endif
