// The scan of a deep transition: each step is a perceptron of several layers from one state to the next.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "products.h"
#include "vectors.h"

namespace {

// A right factor that stays: the panels of a weight (rows, depth), transposed, or of a weight (depth, columns).
class Matrix {
 public:
  Matrix(const Tensor& weight, bool transposed)
      : transposed(transposed), columns(weight.size(transposed ? 0 : 1)), depth(weight.size(transposed ? 1 : 0)),
        weight(weight.const_data_ptr<float>()), packed(buffer(panels_of(columns) * depth * W)),
        packed_(packed.mutable_data_ptr<float>()) {}

  // By all threads of a team.
  void pack() const {
#pragma omp for
    for (int64_t p = 0; p < panels_of(columns); ++p) {
      float* out = packed_ + p * depth * W;
      if (transposed)
        pack_panel_transposed(weight + p * W * depth, depth, depth, columns - p * W, out);
      else
        pack_panel(weight + p * W, columns, depth, columns - p * W, out);
    }
  }

  // sum += this tile of a packed left factor (B, depth) times the matrix.
  void multiply(const Tile& tile, const float* left, float* sum) const {
    tile.block.kernels().product(tile.columns)(left + tile.block.start * depth, packed_ + tile.p * depth * W,
                                               depth * W, depth, sum);
  }

 private:
  bool transposed;
  int64_t columns, depth;
  const float* weight;
  Tensor packed;
  float* packed_;
};

// z_l = f(W z_{l-1} + u's part [+ S h_{t-1}])
struct TransitionLayer {
  Sizes z;        // whose H is the layer's units
  int64_t start;  // of its part of u
  Activation f;
  Matrix weight;
  std::optional<Matrix> shortcut;
};

// The layers, and room for what each of them holds at a step as a packed left factor: its units or their gradients.
// Of the last layer it is kept for two steps, since one step is computed from the other.
class Transition {
 public:
  Transition(const Tensor& u, at::TensorList weights, at::TensorList shortcuts,
             const std::vector<std::string>& activations, bool transposed)
      : B(u.size(1)), room(buffer(B * (u.size(2) + weights.back().size(0)))), room_(room.mutable_data_ptr<float>()) {
    int64_t start = 0;
    for (size_t l = 0; l < weights.size(); ++l) {
      std::optional<Matrix> shortcut;
      if (l > 0 && shortcuts.size()) shortcut.emplace(shortcuts[l - 1], transposed);
      layers.push_back({Sizes(u.size(0), B, weights[l].size(0)), start, activation_of(activations[l]),
                        Matrix(weights[l], transposed), shortcut});
      start += weights[l].size(0);
    }
  }

  void pack() const {
    for (const TransitionLayer& layer : layers) {
      layer.weight.pack();
      if (layer.shortcut) layer.shortcut->pack();
    }
  }

  float* factor(size_t l, int64_t t) const {
    const TransitionLayer& layer = layers[l];
    return room_ + B * (layer.start + (l + 1 == layers.size() && t % 2 ? layer.z.H : 0));
  }

  int team(int64_t threads) const {
    int most = 1;
    for (const TransitionLayer& layer : layers) most = std::max(most, layer.z.team(threads));
    return most;
  }

  std::vector<TransitionLayer> layers;

 private:
  int64_t B;
  Tensor room;
  float* room_;
};

// All steps from the first to the last: the states (T, B, H), and where `keep` the units of the layers below them
// (T, B, G - H), side by side as in u (T, B, G).
std::tuple<Tensor, Tensor> transition(const Tensor& u, const Tensor& h_0, at::TensorList weights,
                                      at::TensorList shortcuts, std::vector<std::string> activations, bool keep,
                                      int64_t threads) {
  const Transition network(u, weights, shortcuts, activations, true);
  const int64_t T = u.size(0), B = u.size(1), G = u.size(2), H = h_0.size(1), below = G - H;
  const size_t last = weights.size() - 1;
  const std::vector<Block> blocks = blocks_of(B);
  const int64_t wide = widest(blocks.back().rows);

  Tensor y = at::empty({T, B, H}, at::kFloat);
  Tensor hidden = at::empty({keep ? T : 0, B, below}, at::kFloat);
  const float* u_ = u.const_data_ptr<float>();
  float* y_ = y.mutable_data_ptr<float>();
  float* hidden_ = hidden.mutable_data_ptr<float>();

  Barrier barrier;
#pragma omp parallel num_threads(network.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    network.pack();
#pragma omp for
    for (size_t i = 0; i < blocks.size(); ++i)
      blocks[i].kernels().pack_rows(h_0.const_data_ptr<float>() + blocks[i].start * H, H, H,
                                    network.factor(last, -1) + blocks[i].start * H);

    float sum[ACCUMULATORS * W];
    for (int64_t t = 0; t < T; ++t)
      for (size_t l = 0; l <= last; ++l) {
        const TransitionLayer& layer = network.layers[l];
        const float* state = network.factor(last, t - 1);
        for_tiles(layer.z, blocks, wide, team, me, [&](const Tile& tile) {
          const auto input = [&](int64_t b, int64_t j) { return u_ + (t * B + b) * G + layer.start + j; };
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t) {
            store(sum + i, Vec{});
            __builtin_prefetch(input(b, j));
          });
          layer.weight.multiply(tile, l ? network.factor(l - 1, t) : state, sum);
          if (layer.shortcut) layer.shortcut->multiply(tile, state, sum);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            const Vec z = activate(load(sum + i) + load(input(b, j), lanes), layer.f);
            store(sum + i, z);
            if (l == last)
              store(y_ + (t * B + b) * H + j, z, lanes);
            else if (keep)
              store(hidden_ + (t * B + b) * below + layer.start + j, z, lanes);
          });
          tile.pack(sum, network.factor(l, t));
        });
        barrier.wait(team);
      }
  }
  return {y, hidden};
}

// All steps from the last to the first: the gradients of u, which are those of the layers' arguments, and of h_0.
std::tuple<Tensor, Tensor> transition_backward(const Tensor& grad_y, const Tensor& grad_last, const Tensor& y,
                                               const Tensor& hidden, at::TensorList weights, at::TensorList shortcuts,
                                               std::vector<std::string> activations, std::optional<double> bound,
                                               int64_t threads) {
  const int64_t T = y.size(0), B = y.size(1), H = y.size(2), below = hidden.size(2), G = below + H;
  Tensor grad_u = at::empty({T, B, G}, at::kFloat);
  Tensor grad_h_0 = at::empty({B, H}, at::kFloat);
  const Transition network(grad_u, weights, shortcuts, activations, false);
  const std::vector<TransitionLayer>& layers = network.layers;
  const size_t last = layers.size() - 1;
  const Sizes& z = layers[last].z;
  const std::vector<Block> blocks = blocks_of(B);
  const int64_t wide = widest(blocks.back().rows);

  const float* grad_y_ = grad_y.const_data_ptr<float>();
  const float* grad_last_ = grad_last.const_data_ptr<float>();
  const float* y_ = y.const_data_ptr<float>();
  const float* hidden_ = hidden.const_data_ptr<float>();
  float* grad_u_ = grad_u.mutable_data_ptr<float>();
  float* grad_h_0_ = grad_h_0.mutable_data_ptr<float>();

  Bounded carried(bound, z);
  Barrier barrier;
#pragma omp parallel num_threads(network.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    network.pack();

    float sum[ACCUMULATORS * W];
    const auto flow_back = [&](const Tile& tile, int64_t s) {  // sum += what step s gives the state before it
      layers[0].weight.multiply(tile, network.factor(0, s), sum);
      for (size_t l = 1; l <= last; ++l)
        if (layers[l].shortcut) layers[l].shortcut->multiply(tile, network.factor(l, s), sum);
    };
    // From the gradient of the units (in sum) to the gradient of the layer's argument.
    const auto finish = [&](const Tile& tile, size_t l, int64_t s, const float* units, int64_t ld) {
      tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
        const Vec da = load(sum + i) * slope(load(units + (s * B + b) * ld + j, lanes), layers[l].f);
        store(sum + i, da);
        store(grad_u_ + (s * B + b) * G + layers[l].start + j, da, lanes);
      });
      tile.pack(sum, network.factor(l, s));
    };
    for (int64_t s = T - 1; s >= -1; --s) {
      const bool flows = s < T - 1, bounded = carried && flows;
      if (bounded) {
        for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
          std::fill(sum, sum + ACCUMULATORS * W, 0.0f);
          flow_back(tile, s + 1);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) { carried.put(b, j, load(sum + i), lanes); });
        });
        barrier.wait(team);
      }
      const float factor = bounded ? carried.factor() : 1.0f;
      for_tiles(z, blocks, wide, team, me, [&](const Tile& tile) {
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          Vec dh{};
          if (s >= 0) {
            dh += load(grad_y_ + (s * B + b) * H + j, lanes);
            __builtin_prefetch(y_ + (s * B + b) * H + j);
          }
          if (!flows) dh += load(grad_last_ + b * H + j, lanes);
          if (bounded) dh += carried.take(b, j, lanes, factor);
          store(sum + i, dh);
        });
        if (flows && !bounded) flow_back(tile, s + 1);
        if (s >= 0)
          finish(tile, last, s, y_, H);
        else
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            store(grad_h_0_ + b * H + j, load(sum + i), lanes);
          });
      });
      barrier.wait(team);
      for (size_t l = last; s >= 0 && l-- > 0;) {
        for_tiles(layers[l].z, blocks, wide, team, me, [&](const Tile& tile) {
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t) {
            store(sum + i, Vec{});
            __builtin_prefetch(hidden_ + (s * B + b) * below + layers[l].start + j);
          });
          layers[l + 1].weight.multiply(tile, network.factor(l + 1, s), sum);
          finish(tile, l, s, hidden_ + layers[l].start, below);
        });
        barrier.wait(team);
      }
    }
  }
  return {grad_u, grad_h_0};
}

}  // namespace
