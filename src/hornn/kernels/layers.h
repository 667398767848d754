// The scan of layers of units, each of which hears other layers, and itself, at this step or at steps before it.
#pragma once

#include <omp.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "products.h"
#include "vectors.h"

namespace {

// How N units hear k N pieces, piece after piece: the largest of each unit's k, or, of `orders` p (N), their normalised
// L_p norm; then times `factors` (T, B, N), where there are any. `slopes` (T, B, k N) are the derivatives by the pieces,
// `order_slopes` (T, B, N) by the orders.
struct Pool {
  int64_t pieces, N;
  const float* orders;   // or null
  const float* factors;  // or null
  float* slopes;
  float* order_slopes;   // or null

  // Of the units from j on in row `row` = t B + b, from the row's pieces; writes their slopes.
  Vec forward(const float* a, int64_t row, int64_t j, int64_t lanes) const {
    const Vec factor = factors ? load(factors + row * N + j, lanes) : splat(1.0f);
    float* slope = slopes + row * pieces * N + j;
    if (!orders) return factor * largest(a + j, factor, slope, lanes);
    return factor * norm(a + j, factor, load(orders + j, lanes), slope, order_slopes + row * N + j, lanes);
  }

  // What the unit of each piece from j on gets, times the slope. `gradient`: of the units of this row.
  Vec backward(const float* gradient, int64_t row, int64_t j, int64_t lanes) const {
    const int64_t unit = j % N;
    Vec given{};
    if (unit + W <= N)
      given = load(gradient + unit);
    else
      for (int64_t i = 0; i < std::min<int64_t>(W, lanes); ++i) given[i] = gradient[(unit + i) % N];
    return given * load(slopes + row * pieces * N + j, lanes);
  }

 private:
  Vec largest(const float* a, Vec factor, float* slope, int64_t lanes) const {
    Vec most = load(a, lanes), nan = only_nan(most);
    Ints winner{};
    for (int64_t q = 1; q < pieces; ++q) {
      const Vec x = load(a + q * N, lanes);
      winner = x > most ? static_cast<int32_t>(q) - Ints{} : winner;
      most = x > most ? x : most;
      nan += only_nan(x);
    }
    for (int64_t q = 0; q < pieces; ++q)
      store(slope + q * N, winner == static_cast<int32_t>(q) ? factor : Vec{}, lanes);
    return most + nan;
  }

  Vec norm(const float* a, Vec factor, Vec p, float* slope, float* order_slope, int64_t lanes) const {
    Vec scale{}, nan{}, mean{}, weighted{};  // the scale cancels; with it no power overflows
    for (int64_t q = 0; q < pieces; ++q) {
      const Vec x = load(a + q * N, lanes), size = x < 0.0f ? -x : x;
      scale = size > scale ? size : scale;
      nan += only_nan(x);
    }
    const Vec inverse = 1.0f / (scale > 0.0f ? scale : splat(1.0f));
    const auto log_ratio = [&](Vec x) { return log((x < 0.0f ? -x : x) * inverse); };
    for (int64_t q = 0; q < pieces; ++q) {
      const Vec x = load(a + q * N, lanes);
      const Vec ratio = log_ratio(x), power = x == 0.0f ? Vec{} : exp(p * ratio);
      mean += power;
      weighted += power * ratio;
    }
    mean = mean / static_cast<float>(pieces);
    mean = mean > 0.0f ? mean : splat(1.0f);  // 0 where all pieces are: the scale is 0, too
    const Vec log_y = log(mean) / p, y = scale * exp(log_y);
    store(order_slope, factor * y * (weighted / (mean * static_cast<float>(pieces)) - log_y) / p, lanes);
    for (int64_t q = 0; q < pieces; ++q) {
      const Vec x = load(a + q * N, lanes);
      const Vec size = exp((p - 1.0f) * (log_ratio(x) - log_y)) * (factor / static_cast<float>(pieces));
      store(slope + q * N, x > 0.0f ? size : x < 0.0f ? -size : Vec{}, lanes);
    }
    return y + nan;
  }

  static Vec only_nan(Vec x) { return x == x ? Vec{} : x; }
};

// `layer` hears `source` of `lag` steps before, through a matrix, pooled, or as it is.
struct Tap {
  size_t layer, source;
  int64_t lag;
  std::optional<Matrix> matrix;
  std::optional<Pool> pool;
};

// The pools of the last taps, in their order: empty tensors where there are no orders or factors.
struct Pools {
  at::IntArrayRef pieces;
  at::TensorList orders, factors, slopes, order_slopes;

  Pool at(size_t i, int64_t N) const {
    const auto part = [](const Tensor& x) { return x.numel() ? static_cast<float*>(x.data_ptr()) : nullptr; };
    return {pieces[i], N, part(orders[i]), part(factors[i]), part(slopes[i]), part(order_slopes[i])};
  }
};

// A layer of units. Its timeline (past + T, B, H) holds the steps -past .. T - 1.
struct Layer {
  Sizes z;
  int64_t past;
  int64_t start;   // of its arguments among those of all layers
  int64_t reach;   // the largest lag at which it hears
  Activation f;
  float* timeline;
  float* ring;     // what the taps multiply, packed: of some steps, step t in slot t modulo their number
  int64_t slots;

  float* at(int64_t t) const { return timeline + (past + t) * z.B * z.H; }
  float* slot(int64_t t) const { return ring + (t + slots) % slots * z.B * z.H; }
};

// All layers and their taps. Forward, the taps multiply the units of the steps before; backward, the gradients of the
// arguments of the steps after.
class Network {
 public:
  Network(int64_t T, at::TensorList timelines, at::TensorList weights, at::IntArrayRef places,
          const std::vector<std::string>& activations, const Pools& pools, bool forward, bool in_bf16)
      : B(timelines[0].size(1)) {
    const size_t count = places.size() / 3, pooled = count - pools.pieces.size();
    for (size_t i = 0; i < count; ++i) {
      taps.push_back({static_cast<size_t>(places[3 * i]), static_cast<size_t>(places[3 * i + 1]), places[3 * i + 2],
                      std::nullopt, std::nullopt});
      if (i < weights.size()) taps[i].matrix.emplace(weights[i], forward, in_bf16);
      if (i >= pooled) taps[i].pool = pools.at(i - pooled, timelines[taps[i].layer].size(2));
    }
    int64_t room = 0;
    for (size_t l = 0; l < timelines.size(); ++l) {
      Layer layer{Sizes(T, B, timelines[l].size(2)), timelines[l].size(0) - T, width, 0, activation_of(activations[l]),
                  static_cast<float*>(timelines[l].data_ptr()), nullptr, 0};
      layer.z.K = 0;
      for (const Tap& tap : taps)
        if (tap.layer == l) {
          layer.reach = std::max(layer.reach, tap.lag);
          layer.z.K += tap.matrix.has_value();
        }
      layer.slots = (forward ? layer.past : layer.reach) + 1;
      room += layer.slots * B * layer.z.H;
      width += layer.z.H;
      layers.push_back(layer);
    }
    rings = buffer(room);
    float* next = rings.mutable_data_ptr<float>();
    for (Layer& layer : layers) {
      layer.ring = next;
      next += layer.slots * B * layer.z.H;
    }
    blocks = blocks_of(B, in_bf16);
  }

  void pack() const {
    for (const Tap& tap : taps)
      if (tap.matrix) tap.matrix->pack();
  }

  int team(int64_t threads) const {
    int most = 1;
    for (const Layer& layer : layers) most = std::max(most, layer.z.team(threads));
    return most;
  }

  template <class F>
  void tiles(const Layer& layer, int team, int me, F work) const {
    for_tiles(layer.z, blocks, blocks.back().kernels().widest, team, me, work);
  }

  const int64_t B;
  int64_t width = 0;  // of all layers together
  std::vector<Layer> layers;
  std::vector<Tap> taps;
  std::vector<Block> blocks;

 private:
  Tensor rings;
};

// All steps from the first to the last, which each timeline receives after its past. u (T, B, G) has the parts of the
// layers that are `fed`, side by side. The taps are triples (layer, source, lag), the first ones with `weights`, the last
// ones with pools.
void layers(const Tensor& u, at::TensorList timelines, at::TensorList weights, at::IntArrayRef taps,
            std::vector<std::string> activations, at::IntArrayRef fed, at::IntArrayRef pieces, at::TensorList orders,
            at::TensorList factors, at::TensorList slopes, at::TensorList order_slopes, bool in_bf16, int64_t threads) {
  const int64_t T = u.size(0), G = u.size(2);
  const Network network(T, timelines, weights, taps, activations, {pieces, orders, factors, slopes, order_slopes}, true,
                        in_bf16);
  const float* u_ = u.const_data_ptr<float>();

  Barrier barrier;
#pragma omp parallel num_threads(network.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    network.pack();
    for (const Layer& layer : network.layers) {
      for (int64_t n = 1; n <= layer.past; ++n) pack_left(layer.at(-n), network.blocks, layer.z.H, layer.slot(-n));
    }
    float sum[TILE];
    for (int64_t t = 0; t < T; ++t) {
      int64_t part = 0;  // where the layer's part of u begins
      for (size_t l = 0; l < network.layers.size(); ++l) {
        const Layer& layer = network.layers[l];
        const float* input = fed[l] ? u_ + t * network.B * G + part : nullptr;
        if (fed[l]) part += layer.z.H;
        network.tiles(layer, team, me, [&](const Tile& tile) {
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t) {
            store(sum + i, Vec{});
            if (input) __builtin_prefetch(input + b * G + j);
          });
          for (const Tap& tap : network.taps)
            if (tap.layer == l && tap.matrix)
              tap.matrix->multiply(tile, network.layers[tap.source].slot(t - tap.lag), sum);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            Vec z = load(sum + i);
            if (input) z += load(input + b * G + j, lanes);
            for (const Tap& tap : network.taps)
              if (tap.layer == l && !tap.matrix) {
                const Layer& source = network.layers[tap.source];
                const float* heard = source.at(t - tap.lag) + b * source.z.H;
                z += tap.pool ? tap.pool->forward(heard, t * network.B + b, j, lanes) : load(heard + j, lanes);
              }
            z = activate(z, layer.f);
            store(sum + i, z);
            store(layer.at(t) + b * layer.z.H + j, z, lanes);
          });
          tile.pack(sum, layer.slot(t));
        });
        barrier.wait(team);
      }
    }
  }
}

// All steps from the last to the first, and then those of the past: the gradients of the layers' arguments (T, B, all
// of them side by side). `gradients` are those of the timelines, or empty where they are zeros; their past receives its
// whole gradient. `bound` is for one state, of one step, of the last layer.
Tensor layers_backward(at::TensorList gradients, at::TensorList timelines, at::TensorList weights, at::IntArrayRef taps,
                       std::vector<std::string> activations, int64_t T, std::optional<double> bound,
                       at::IntArrayRef pieces, at::TensorList slopes, bool in_bf16, int64_t threads) {
  const std::vector<Tensor> none(pieces.size(), at::empty({0}));
  const Network network(T, timelines, weights, taps, activations, {pieces, none, none, slopes, none}, false, in_bf16);
  const int64_t B = network.B;
  const size_t last = network.layers.size() - 1;
  Tensor arguments = at::empty({T, B, network.width}, at::kFloat);
  float* arguments_ = arguments.mutable_data_ptr<float>();
  int64_t past = 0;
  for (const Layer& layer : network.layers) past = std::max(past, layer.past);

  Bounded carried(bound, network.layers[last].z);
  Barrier barrier;
#pragma omp parallel num_threads(network.team(threads))
  {
    const int team = omp_get_num_threads(), me = omp_get_thread_num();
    network.pack();

    float sum[TILE];
    // sum += what the layers that hear layer l of step s give it, from steps in [s + least, s + most].
    const auto flow_back = [&](const Tile& tile, size_t l, int64_t s, int64_t least, int64_t most) {
      for (const Tap& tap : network.taps) {
        const int64_t t = s + tap.lag;
        if (tap.source != l || tap.lag < least || tap.lag > most || t < 0 || t >= T) continue;
        const Layer& listener = network.layers[tap.layer];
        if (tap.matrix) {
          tap.matrix->multiply(tile, listener.slot(t), sum);
          continue;
        }
        tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
          const float* given = arguments_ + (t * B + b) * network.width + listener.start;
          const Vec part = tap.pool ? tap.pool->backward(given, t * B + b, j, lanes) : load(given + j, lanes);
          store(sum + i, load(sum + i) + part);
        });
      }
    };
    for (int64_t s = T - 1; s >= -past; --s) {
      for (size_t l = last + 1; l-- > 0;) {
        const Layer& layer = network.layers[l];
        if (s < -layer.past) continue;
        const int64_t H = layer.z.H;
        const bool bounded = carried && l == last && s < T - 1;
        if (bounded) {
          network.tiles(layer, team, me, [&](const Tile& tile) {
            std::fill_n(sum, tile.size(), 0.0f);
            flow_back(tile, l, s, 1, 1);
            tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) { carried.put(b, j, load(sum + i), lanes); });
          });
          barrier.wait(team);
        }
        const float factor = bounded ? carried.factor() : 1.0f;
        float* gradient = gradients[l].numel() ? static_cast<float*>(gradients[l].data_ptr()) : nullptr;
        if (gradient) gradient += (layer.past + s) * B * H;
        network.tiles(layer, team, me, [&](const Tile& tile) {
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            Vec dh = gradient ? load(gradient + b * H + j, lanes) : Vec{};
            if (bounded) dh += carried.take(b, j, lanes, factor);
            store(sum + i, dh);
            if (s >= 0) __builtin_prefetch(layer.at(s) + b * H + j);
          });
          flow_back(tile, l, s, 0, bounded ? 0 : layer.z.T + past);
          tile.each([&](int64_t i, int64_t b, int64_t j, int64_t lanes) {
            if (s < 0) {
              store(gradient + b * H + j, load(sum + i), lanes);
              return;
            }
            const Vec da = load(sum + i) * slope(load(layer.at(s) + b * H + j, lanes), layer.f);
            store(sum + i, da);
            store(arguments_ + (s * B + b) * network.width + layer.start + j, da, lanes);
          });
          if (s >= 0) tile.pack(sum, layer.slot(s));
        });
        barrier.wait(team);
      }
    }
  }
  return arguments;
}

}  // namespace
