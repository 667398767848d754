// The operators of the native kernels, for torch. What they compute lies in the headers beside this file: scans over time,
// the cross entropy of the output layer and its products in 16 bits, the update of weights and their noise.
// The Python files beside it say what each operator computes and check every argument; nothing is checked twice here.
//
// Results do not depend on the number of threads: threads share out columns, rows or blocks, and every sum is taken by
// one of them in one order.

#include <torch/library.h>

#include "cross_entropy.h"
#include "leak.h"
#include "gru.h"
#include "gru_early.h"
#include "layers.h"
#include "linear_cross_entropy.h"
#include "linear_nll.h"
#include "lstm.h"
#include "noise.h"
#include "reduced.h"
#include "scan.h"
#include "update.h"

// TORCH_LIBRARY pastes the name that it is given as it stands; this macro has HORNN_NAMESPACE expanded before.
#define OPERATORS(name, library) TORCH_LIBRARY(name, library)

OPERATORS(HORNN_NAMESPACE, library) {
  library.def(
      "scan(Tensor u, Tensor history, Tensor weight, Tensor? gate_weight, Tensor? factors, str pooling,"
      " str activation, bool keep, bool in_bf16, int threads) -> (Tensor, Tensor, Tensor, Tensor)",
      &scan);
  library.def(
      "scan_backward(Tensor grad_y, Tensor grad_last, Tensor states, Tensor weight, Tensor? gate_weight,"
      " Tensor? factors, Tensor winners, Tensor gates, Tensor taps, str pooling, str activation, float? bound,"
      " bool need_history, bool need_weights, bool in_bf16, int threads) -> (Tensor, Tensor, Tensor, Tensor)",
      &scan_backward);
  library.def(
      "lstm(Tensor u, Tensor r_0, Tensor c_0, Tensor weight, Tensor? projection, bool keep, bool in_bf16, int threads)"
      " -> (Tensor, Tensor, Tensor)",
      &lstm);
  library.def(
      "lstm_backward(Tensor grad_y, Tensor grad_r, Tensor grad_c, Tensor c_0, Tensor weight, Tensor? projection,"
      " Tensor cells, Tensor gates, float? bound, bool in_bf16, int threads) -> (Tensor, Tensor, Tensor, Tensor)",
      &lstm_backward);
  library.def(
      "gru(Tensor u, Tensor h_0, Tensor weight, Tensor? bias, bool keep, bool in_bf16, int threads)"
      " -> (Tensor, Tensor)",
      &gru);
  library.def(
      "gru_backward(Tensor grad_y, Tensor grad_last, Tensor y, Tensor h_0, Tensor weight, Tensor gates, float? bound,"
      " bool in_bf16, int threads) -> (Tensor, Tensor, Tensor)",
      &gru_backward);
  library.def(
      "gru_early(Tensor u, Tensor h_0, Tensor weight, bool keep, bool in_bf16, int threads) -> (Tensor, Tensor)",
      &gru_early);
  library.def(
      "gru_early_backward(Tensor grad_y, Tensor grad_last, Tensor y, Tensor h_0, Tensor weight, Tensor gates,"
      " float? bound, bool in_bf16, int threads) -> (Tensor, Tensor)",
      &gru_early_backward);
  library.def(
      "layers(Tensor u, Tensor(a!)[] timelines, Tensor[] weights, int[] taps, str[] activations, int[] fed,"
      " int[] pieces, Tensor[] orders, Tensor[] factors, Tensor(b!)[] slopes, Tensor(c!)[] order_slopes, bool in_bf16,"
      " int threads) -> ()",
      &layers);
  library.def(
      "layers_backward(Tensor(a!)[] gradients, Tensor[] timelines, Tensor[] weights, int[] taps, str[] activations,"
      " int steps, float? bound, int[] pieces, Tensor[] slopes, bool in_bf16, int threads) -> Tensor",
      &layers_backward);
  library.def("leak(Tensor b, Tensor s_0, Tensor kept) -> Tensor", &leak);
  library.def("leak_backward(Tensor grad_s, Tensor grad_last, Tensor kept, float? bound) -> (Tensor, Tensor)",
              &leak_backward);
  library.def(
      "cross_entropy(Tensor(a!)[] logits, Tensor? bias, Tensor targets, bool overwrite, float scale,"
      " int threads) -> (Tensor, Tensor)",
      &cross_entropy);
  library.def(
      "linear_cross_entropy(Tensor h, Tensor weight, Tensor? bias, Tensor targets, Tensor(a!)[] tiles,"
      " Tensor(b!) grad_weight, bool in_bf16, float raised, float lowered, int threads) -> (Tensor, Tensor, Tensor)",
      &linear_cross_entropy);
  library.def("pack_words(Tensor weight, int threads) -> Tensor", &pack_words);
  library.def("linear_nll(Tensor h, Tensor packed, int V, Tensor? bias, Tensor targets, int threads) -> Tensor",
              &linear_nll);
  library.def("has_fp16() -> bool", &has_fp16);
  library.def("has_bf16() -> bool", &has_bf16);
  library.def("has_amx() -> bool", &has_amx);
  library.def(
      "reduced_product(Tensor left, Tensor right, Tensor(a!) out, bool in_bf16, float factor, bool add, int threads) "
      "-> ()",
      &reduced_product);
  library.def("is_shared(Tensor x) -> bool", &is_shared);
  library.def("transpose(Tensor x, int threads) -> Tensor", &transpose);
  library.def("grad_norm(Tensor[] grads, int threads) -> float", &grad_norm);
  library.def(
      "momentum_update(Tensor(a!)[] params, Tensor(b!)[] momenta, Tensor[] grads, Tensor(c!)[] copies, float lr,"
      " float momentum,"
      " float decay, float clip, float scale, float max_norm, int threads) -> ()",
      &momentum_update);
  library.def(
      "momentum_update_rows(Tensor(a!) param, Tensor(b!) momentum, Tensor rows, Tensor grad, float lr, float mu,"
      " float decay, float clip, float scale, int threads) -> ()",
      &momentum_update_rows);
  library.def("add_noise(Tensor(a!) weight, Tensor? rows, float std, int seed, int threads) -> ()", &add_noise);
}
