// The smooth restricted master: minimise loss(P w) over w >= 0, sum w <= theta.
//
// Newton's method on a working set of columns; each step is a quadratic program over the budget
// simplex followed by a line search. A large budget is reached through a sequence of smaller
// ones, because the dual weights u then concentrate on few rows only gradually.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "model.hpp"
#include "smooth_loss.hpp"

namespace tcboost {

// Everything that follows from w. What is as long as the margins is shared by copies.
struct State {
    Vector w, g;
    std::shared_ptr<const Vector> z, u, h;
    double r, loss, gap;
    int n_steps;  // that were added up to z since it was computed as P w
};

// Room for what is as long as the margins, used again when nobody holds it any more. Memory that
// is freed and taken anew at every step takes a quarter of the time of 500,000 rows, to be cleared.
class Rooms {
   public:
    Rooms() = default;
    Rooms(const Rooms&) {}  // a copy shares what is held, and needs room of its own
    Rooms& operator=(const Rooms&) { return *this; }

    std::shared_ptr<Vector> take(std::size_t n) {
        auto idle = std::find_if(all_.begin(), all_.end(),
                                 [](const auto& room) { return room.use_count() == 1; });
        if (idle == all_.end()) idle = all_.insert(idle, std::make_shared<Vector>());
        (*idle)->resize(n);
        return *idle;
    }

    // Keep what most steps need: z and u of a state and of the next, h of the model.
    void trim() {
        for (std::size_t i = all_.size(); i-- > 0 && all_.size() > 5;)
            if (all_[i].use_count() == 1) all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
    }

   private:
    std::vector<std::shared_ptr<Vector>> all_;
};

struct Solution {
    State at;
    int n_iter;
    bool optimal;
};

// A restricted master whose columns may grow; it keeps its model from one solve to the next.
template <class Column>
class Master {
   public:
    // A growing master is solved again and again: then a model that halves the gap is good
    // enough, and z is not rebuilt every time.
    Master(std::size_t n, Expand expand, bool centred, bool growing)
        : n_(n),
          expand_(std::move(expand)),
          centred_(centred),
          growing_(growing),
          rounding_(centred ? 1e-11 : 1e-16),
          model_(growing) {}

    void add(Column column) {
        owned_.push_back(std::make_shared<const Column>(std::move(column)));
        columns_.push_back(owned_.back().get());
    }

    // Forget the other columns.
    void keep(const std::vector<char>& kept) {
        for (std::size_t j = columns_.size(); j-- > 0;)
            if (!kept[j]) owned_.erase(owned_.begin() + static_cast<std::ptrdiff_t>(j));
        point();
        model_.forget();
        last_ = {};
    }

    // Go on with more rows. Those that were one have had the same margins, and what was one weight
    // they share: the loss of all columns so far is the same function, and so is its model.
    void split(const Split& rows, Expand expand) {
        for (auto& column : owned_)
            column = std::make_shared<const Column>(column->of_rows(rows.parent, rows.width));
        point();
        n_ = rows.parent.size() * rows.width, expand_ = std::move(expand);
        model_.split(rows);
        const bool same = last_.h == last_.u;
        rows.margins(last_.z), rows.weights(last_.u);
        if (same) last_.h = last_.u;
        else rows.weights(last_.h);
    }

    std::size_t n_rows() const { return n_; }
    std::size_t n_columns() const { return columns_.size(); }
    const auto& columns() const { return owned_; }

    // Solve for one budget from w, through smaller budgets if w is far from optimal.
    //
    // The next budget starts from a Newton step, which follows the path of optima while it is
    // curved, or from the same w scaled up: the path of a separable problem becomes a ray.
    Solution solve(double theta, Vector w, double tol, int max_iter, int n_threads) {
        max_iter_ = max_iter, n_threads_ = n_threads, narrow_ = centred_;
        double budget = theta;
        State state = first_state(std::move(w), budget);
        last_ = {};
        int n_iter = 0;
        Vector rival;
        while (budget < theta) {
            Solution loose = newton(budget, std::move(state), rival, std::max(tol, kLoose), n_iter);
            const double larger = std::min(theta, kBudgetFactor * budget);
            state = std::move(loose.at), rival = state.w, n_iter = loose.n_iter;
            for (double& value : rival) value *= larger / budget;
            budget = larger;
        }
        Solution solution = newton(theta, std::move(state), rival, tol, n_iter);
        if (growing_) last_ = solution.at;
        rooms_.trim();
        return solution;
    }

   private:
    static constexpr double kFirstGap = 50.0;  // the gap from which Newton may start at once
    static constexpr double kBudgetFactor = 4.0;  // from one budget to the next
    static constexpr double kLoose = 0.2;   // the gap to which a budget on the way is solved
    static constexpr double kSlope = 0.3;   // a full step may leave this share of the slope
    static constexpr double kNarrowRidge = 3e-7;  // above the rounding of a float32 Hessian
    static constexpr double kServed = 0.1, kGrowingServed = 0.5;
    static constexpr double kClose = 0.1;  // the gap below which Newton's method is quadratic
    static constexpr int kShort = 3;       // steps of less than half that one budget may take
    static constexpr std::size_t kExtend = 16;
    static constexpr std::size_t kFew = 60;  // new columns: so many, or as many as there are
    static constexpr int kStalled = 12;  // steps without a better gap: precision is exhausted
    static constexpr double kLong = 1e4;  // margins beyond which z is always P w
    static constexpr int kUndone = 3;    // solutions that were none once P w was computed
    static constexpr int kRebuild = 64;  // steps after which a growing master computes P w

    void point() {
        columns_.clear();
        for (const auto& column : owned_) columns_.push_back(column.get());
    }

    // The state at w, and the largest budget at which that has a moderate gap; w is scaled back
    // to have one.
    State first_state(Vector w, double& budget) const {
        double total = sum(w);
        if (total > budget * (1 + 1e-14)) {
            for (double& value : w) value *= budget / total;
            total = budget;
        }
        State state = known_state(w);
        set_gap(state, std::min(total, budget));
        if (state.gap > kFirstGap) {
            const double scale = kFirstGap / state.gap;
            for (double& value : w) value *= scale;
            budget = scale * total;
            return state_at(w, budget);
        }
        const double room = kFirstGap - state.gap;
        if (state.r * (budget - total) > room) budget = total + room / state.r;
        return state;
    }

    // That of the last solve, if it ended at w; new columns are not in it.
    State known_state(const Vector& w) const {
        const std::size_t before = last_.w.size();
        const bool same = before > 0 && before <= w.size() &&
                          std::equal(last_.w.begin(), last_.w.end(), w.begin()) &&
                          std::all_of(w.begin() + static_cast<std::ptrdiff_t>(before), w.end(),
                                      [](double value) { return value == 0; });
        if (!same) return state_at(w, 0.0);
        State state = last_;
        state.w = w;
        for (std::size_t j = before; j < columns_.size(); ++j)
            state.g.push_back(column_inner(*columns_[j], state.u->data(), n_));
        return state;
    }

    // Newton's method from a state, or from `rival` if that is worse even after a step.
    Solution newton(double theta, State state, Vector rival, double tol, int n_iter) {
        set_gap(state, theta);
        State best = state;
        const int most_steps = growing_ ? kRebuild : 0;
        int stalled = 0, undone = 0, n_short = 0;
        double ridge = 1e-11;
        Vector d;
        for (;;) {
            if (best.gap <= tol && best.n_steps > most_steps) {
                best = state_at(best.w, theta);
                if (best.gap > tol) {  // the rounding of z decides, and will do so again
                    state = best;
                    model_.forget();
                    if (++undone >= kUndone) break;
                }
            }
            if (best.gap <= tol || n_iter >= max_iter_ || stalled >= kStalled) break;
            ++n_iter;
            bool fresh;
            if (!newton_direction(state, theta, ridge, fresh, d)) {  // indefinite by rounding
                if (fresh && !narrow_) ridge *= 100.0;
                if (fresh) narrow_ = false;
                continue;
            }
            double step;
            State next = line_search(state, d, theta, step);
            // A model that served well may serve again: a step without a Hessian takes a fifth.
            const double share = growing_ ? kGrowingServed : kServed;
            const bool served = step == 1.0 && next.gap <= share * state.gap;
            if (!served) model_.forget();
            // What was rounded matters where a fresh model does not serve close to the optimum, or
            // goes too far again and again.
            if (!growing_ && fresh && !served &&
                (state.gap < kClose || (step < 0.5 && ++n_short > kShort)))
                narrow_ = false;
            // What a model of the past achieves says nothing about rounding.
            if (fresh && step > 1.25) {  // the ridge, not the curvature, held the step back
                if (!narrow_) ridge = std::max(ridge / 10.0, 1e-15);
                narrow_ = false;
            } else if (fresh && step < 1e-9) {  // rounding has made it a direction of ascent
                ridge *= 100.0;
                narrow_ = false;
            }
            if (!rival.empty()) {
                State other = state_at(rival, theta);
                if (other.loss < next.loss) next = std::move(other);
                rival.clear();
            }
            const double rounding = rounding_ * std::max(1.0, std::fabs(next.loss));
            const bool progress =
                next.gap < 0.9 * best.gap || state.loss - next.loss > rounding;
            if (fresh) stalled = progress ? 0 : stalled + 1;
            if (fresh && !progress) narrow_ = false;
            state = std::move(next);
            if (state.gap < best.gap)
                best = state;
            else
                best.u = best.h = nullptr;  // room for the next step; they follow from z
        }
        if (best.n_steps > most_steps) best = state_at(best.w, theta);
        if (!best.u) weigh(best);
        const bool optimal = best.gap <= tol;
        return {std::move(best), n_iter, optimal};
    }

    State state_at(const Vector& w, double theta) const {
        State state;
        state.w = w;
        state.z = combine_columns(w);
        state.n_steps = 0;
        weigh(state);
        finish(state, theta, growing_);
        return state;
    }

    void finish(State& state, double theta, bool integers) const {
        state.g.resize(columns_.size());
        column_inners(columns_, *state.u, integers, n_threads_, state.g.data());
        set_gap(state, theta);
    }

    void weigh(State& state) const {
        auto u = rooms_.take(n_), h = std::make_shared<Vector>();
        *u = *state.z;
        state.loss = expand_(*u, *h);
        state.u = u, state.h = h->empty() ? u : h;
    }

    static void set_gap(State& state, double theta) {
        state.r = state.gap = 0.0;
        for (double slope : state.g) state.r = std::max(state.r, slope);
        // Nonnegative terms only, so that the gap is not lost to cancellation.
        for (std::size_t j = 0; j < state.g.size(); ++j)
            state.gap += state.w[j] * (state.r - state.g[j]);
        state.gap += state.r * std::max(0.0, theta - sum(state.w));
    }

    std::shared_ptr<Vector> combine_columns(const Vector& w) const {
        auto z = rooms_.take(n_);
        std::vector<const Column*> used;
        Vector coefficients;
        for (std::size_t j = 0; j < columns_.size(); ++j)
            if (w[j] != 0) used.push_back(columns_[j]), coefficients.push_back(w[j]);
        combine(used.data(), coefficients.data(), used.size(), n_, z->data());
        return z;
    }

    // Support and best violators; the others keep their zero in this step.
    std::vector<std::size_t> working_set(const State& state) const {
        std::vector<std::size_t> cols, others;
        double floor = std::numeric_limits<double>::infinity();
        for (std::size_t j = 0; j < columns_.size(); ++j)
            if (state.w[j] > 0) cols.push_back(j), floor = std::min(floor, state.g[j]);
        floor = cols.empty() ? 0.0 : std::min(floor, state.r);
        for (std::size_t j = 0; j < columns_.size(); ++j)
            if (!(state.w[j] > 0) && state.g[j] > floor) others.push_back(j);
        const std::size_t most = std::max<std::size_t>(kFew, cols.size());
        if (others.size() > most) {
            auto steeper = [&](std::size_t a, std::size_t b) {
                return state.g[a] != state.g[b] ? state.g[a] > state.g[b] : a < b;
            };
            std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(most),
                             others.end(), steeper);
            others.resize(most);
        }
        cols.insert(cols.end(), others.begin(), others.end());
        std::sort(cols.begin(), cols.end());
        return cols;
    }

    // The step d of the model, which is formed anew unless it still serves.
    bool newton_direction(const State& state, double theta, double ridge, bool& fresh,
                          Vector& d) {
        auto cols = working_set(state);
        std::vector<std::size_t> missing;
        for (std::size_t j : cols)
            if (!model_.has(j)) missing.push_back(j);
        fresh = !model_.formed() || missing.size() * kExtend > model_.size() || model_.outgrown();
        if (fresh) {
            const double steepest = largest_size(state.g.data(), state.g.size());
            // float32 takes half the time; float64 when rounding is seen to matter, and where a
            // call back to Python takes longer anyway.
            const double least = narrow_ ? std::max(ridge, kNarrowRidge) : ridge;
            model_.form(columns_, std::move(cols), state.h, state.g, centred_, narrow_,
                        least, steepest / theta, n_threads_);
        } else {
            for (std::size_t j : missing)
                model_.extend(columns_, j, growing_, n_threads_, *rooms_.take(n_));
        }
        return model_.step(state.g, theta, state.w, d);
    }

    // The full step if it removes most of the slope, else the exact minimiser along d.
    //
    // Near the optimum the exact one would trade stiff directions for flat ones and zigzag.
    State line_search(const State& state, const Vector& d, double theta, double& t) const {
        double t_max = std::numeric_limits<double>::infinity(), change = 0.0, total = 0.0;
        for (std::size_t j = 0; j < d.size(); ++j) {
            if (d[j] < 0) t_max = std::min(t_max, -state.w[j] / d[j]);
            change += d[j], total += state.w[j];
        }
        if (change > 0) t_max = std::min(t_max, std::max(0.0, theta - total) / change);
        t_max = std::min(std::max(t_max, 1.0), 1e3);
        const auto moved = combine_columns(d);  // zd, and then the new z
        Vector& zd = *moved;
        const double rounding = rounding_ * std::max(1.0, std::fabs(state.loss));
        const double enough = std::max(kSlope * inner(*state.u, zd), rounding);
        auto u = rooms_.take(n_), h = std::make_shared<Vector>();
        const Along found = minimise_along(expand_, centred_, *state.z, zd, t_max, *u, *h, enough,
                                           state.loss + rounding, !growing_);
        t = found.t;
        State next;
        next.w.resize(d.size());
        total = 0.0;
        for (std::size_t j = 0; j < d.size(); ++j) {
            next.w[j] = std::max(state.w[j] + t * d[j], 0.0);
            total += next.w[j];
        }
        const double scale = total > theta ? theta / total : 1.0;
        for (double& value : next.w) value *= scale;
        for (std::size_t i = 0; i < n_; ++i) zd[i] = ((*state.z)[i] + t * zd[i]) * scale;
        next.z = moved;
        if (largest_size(zd.data(), n_) > kLong)  // where rounding shows at once
            return state_at(next.w, theta);
        next.n_steps = state.n_steps + 1;
        // What the line search saw is not computed again, which would be a second exponential of
        // every row. A growing master is as exact as ever.
        if (found.seen && (scale == 1.0 || (!growing_ && scale > 1.0 - 1e-14)))
            next.u = u, next.h = h->empty() ? u : h, next.loss = found.loss;
        else
            weigh(next);
        finish(next, theta, true);
        return next;
    }

    std::vector<std::shared_ptr<const Column>> owned_;  // shared by copies
    std::vector<const Column*> columns_;
    std::size_t n_;
    Expand expand_;
    bool centred_, growing_, narrow_ = true;
    double rounding_;
    int max_iter_ = 0, n_threads_ = 1;
    Model<Column> model_;
    State last_{};
    mutable Rooms rooms_;
};

}  // namespace tcboost
